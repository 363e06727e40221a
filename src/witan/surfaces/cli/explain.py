"""``witan explain``: why the leader leads, by hand."""

import sys
from typing import Any

import click

from witan.service.operations.explain import ExplainParameters, explain
from witan.service.text import Page
from witan.surfaces.cli.counting import ballot_options, run_counting
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.options import json_option
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import SectionedCommand
from witan.surfaces.terminal import echo

EXAMPLES = """\b
Examples:
  witan explain last
  witan explain ballots.jsonl --session q1
  witan explain ballots.jsonl --session q1 --rule schulze
"""


@click.command(
    "explain",
    cls=SectionedCommand,
    short_help="Show by hand why the leader leads.",
    epilog=EXAMPLES,
)
@ballot_options(ExplainParameters)
@json_option
def command(as_json: bool, **options: Any) -> int:
    """Show step by step how the ballots in FILE..., or of a session, make its outcome.

    The ballots as cast, what recusal, rubric and safety gate changed, the numbers the rule reads,
    its arithmetic for the first two, and what the difference between them is worth.
    """

    def run(given: ExplainParameters, _: Body) -> Status:
        found = explain(None, given)
        if as_json:
            from witan.service.json_output import to_json

            echo(to_json(found))
        else:
            from witan.surfaces.text.explanation import explanation_text

            echo("\n".join(explanation_text(Page.of(sys.stdout), found)))
        return Status.ANSWERED if found.outcome.leaders else Status.NO_QUORUM

    return run_counting(ExplainParameters, options, run)
