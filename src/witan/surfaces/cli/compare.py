"""``witan compare``: every rule on the same ballots."""

import sys
from collections.abc import Mapping
from typing import Any

from witan.service.operations.compare import CompareParameters, compare
from witan.service.text import Page
from witan.surfaces.cli.counting import ballot_command
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.options import chart_option, limit_option
from witan.surfaces.cli.reading import Body
from witan.surfaces.terminal import echo

EXAMPLES = """\b
Examples:
  witan compare ballots.jsonl
  witan compare last
  witan compare ballots.jsonl --rules borda,schulze,calibrated --session q1
"""


def _run(given: CompareParameters, _: Body, options: Mapping[str, Any]) -> Status:
    found = compare.handler(None, given)
    comparison = found.comparison
    if options["plot"]:
        from witan.surfaces.charts import comparison_chart
        from witan.surfaces.charts.drawing import save_chart

        save_chart(comparison_chart(comparison), options["plot"])
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json(found))
    else:
        from witan.surfaces.text.comparison import comparison_text

        sessions = comparison.sessions
        shown = sessions if given.sessions or len(sessions) <= options["limit"] else ()
        echo("\n".join(comparison_text(Page.of(sys.stdout), comparison, shown)))
    if not found.rules:
        return Status.MISUSED
    outcomes = [one for each in found.sessions for one in each.outcomes.values()]
    return Status.ANSWERED if any(one.leaders for one in outcomes) else Status.NO_QUORUM


command = ballot_command(
    compare,
    _run,
    options=[
        chart_option("--plot", "Draw the ranks under every rule to an .svg or .png file."),
        limit_option(3, "Show the tables of single sessions if there are no more than this."),
    ],
    examples=EXAMPLES,
)
