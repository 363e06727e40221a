"""``witan explain``: why the leader leads, by hand."""

import sys
from typing import Any

import click

from witan.errors import MissingParameter
from witan.service.text import Page
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import (
    counting_options,
    format_options,
    json_option,
    settings_of,
    sources_argument,
)
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

__all__ = ["command"]


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
@sources_argument
@format_options
@config_option
@history_option
@section(
    "Ballots",
    click.option(
        "--session", metavar="NAME", help="Explain this session; needed where there are several."
    ),
)
@counting_options()
@json_option
def command(as_json: bool, **options: Any) -> int:
    """Show step by step how the ballots in FILE..., or of a session, make its outcome.

    The ballots as cast, what recusal, rubric and safety gate changed, the numbers the rule reads,
    its arithmetic for the first two, and what the difference between them is worth.
    """
    from witan.core.explanation import explain

    settings = settings_of(options)
    body = Body.of(options, rubric=settings.counting.rubric)
    try:
        explanation = explain(body, settings, options["session"])
    except MissingParameter as error:
        problem = f"name the session to explain with --session: {error.expected}"
        raise click.UsageError(problem) from None
    if as_json:
        from witan.service.json_output import explanation_object, to_json

        echo(to_json(explanation_object(explanation)))
    else:
        from witan.surfaces.text.explanation import explanation_text

        page = Page.of(sys.stdout)
        echo("\n".join(explanation_text(page, explanation)))
    return Status.ANSWERED if explanation.outcome.leaders else Status.NO_QUORUM
