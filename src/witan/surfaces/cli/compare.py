"""``witan compare``: every rule on the same ballots."""

import sys
from typing import TYPE_CHECKING, Any

import click

from witan.errors import UnknownName
from witan.service.text import Page
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.options import (
    chart_option,
    counting_options,
    json_option,
    limit_option,
    reading_options,
    settings_of,
)
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.comparison import Comparison

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan compare ballots.jsonl
  witan compare last
  witan compare ballots.jsonl --rules borda,schulze,calibrated --session q1
"""


@click.command(
    "compare",
    cls=SectionedCommand,
    short_help="Count the same ballots under every rule.",
    epilog=EXAMPLES,
)
@reading_options
@section(
    "Counting",
    click.option(
        "--rules",
        metavar="NAME,NAME...",
        help="Compare only these rules; all that can count the ballots unless given.",
    ),
)
@counting_options(with_rule=False)
@json_option
@chart_option("--plot", "Draw the ranks under every rule to an .svg or .png file.")
@limit_option(3, "Show the tables of single sessions if there are no more than this.")
def command(as_json: bool, **options: Any) -> int:
    """Count the ballots in FILE..., or of a session of the history, under every rule.

    Shows who leads under each rule, how alike the rankings are, in how many sessions the leader
    differs, how often it survives the loss of one ballot, and which rules cannot count these.
    """
    from witan.core.comparison import compare_rules

    settings = settings_of(options)
    body = Body.of(options, rubric=settings.counting.rubric)
    rules = _rules(options["rules"])
    _check_parameters(options["parameters"])
    comparison = compare_rules(body, settings, rules, only=options["sessions"] or None)
    body.match(settings)
    sessions = comparison.sessions
    if options["plot"]:
        _draw(comparison, options["plot"])
    if as_json:
        from witan.service.json_output import comparison_object, to_json

        echo(to_json(comparison_object(comparison)))
    else:
        from witan.surfaces.text.comparison import comparison_text

        page = Page.of(sys.stdout)
        shown = sessions if options["sessions"] or len(sessions) <= options["limit"] else ()
        echo("\n".join(comparison_text(page, comparison, shown)))
    if not comparison.rules:
        return Status.MISUSED
    outcomes = [one for name in sessions for one in comparison.outcomes[name].values()]
    return Status.ANSWERED if any(one.leaders for one in outcomes) else Status.NO_QUORUM


def _rules(given: str | None) -> list[str] | None:
    """The rules named, each once."""
    if given is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("names no rule", param_hint="--rules")
    return names


def _check_parameters(parameters: dict[str, Any]) -> None:
    """Refuse a parameter that no rule has."""
    from witan.core.rules import RULES

    known = dict.fromkeys(name for rule in RULES.values() for name in rule.parameters)
    for name in parameters:
        if name not in known:
            raise UnknownName("parameter", name, known)


def _draw(comparison: "Comparison", path: str) -> None:
    """Draw the ranks of one session, or the agreement over several."""
    from witan.surfaces.charts import comparison_chart
    from witan.surfaces.charts.drawing import save_chart

    save_chart(comparison_chart(comparison), path)
