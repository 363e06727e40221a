"""``witan compare``: every rule on the same ballots."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from witan.errors import UnknownName
from witan.surfaces.commands.options import (
    chart_option,
    counting_options,
    json_option,
    reading_options,
    settings_of,
)
from witan.surfaces.commands.reading import Body
from witan.surfaces.commands.stacking import SectionedCommand, section
from witan.surfaces.exits import Status
from witan.surfaces.terminal import echo
from witan.surfaces.text import Page

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
@section(
    "Output",
    click.option(
        "--limit",
        type=click.IntRange(min=0),
        metavar="NUMBER",
        default=3,
        show_default=True,
        help="Show the tables of single sessions if there are no more than this.",
    ),
)
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
    comparison = compare_rules(body, settings, rules)
    body.require(options["sessions"])
    body.match(settings)
    sessions = options["sessions"] or comparison.sessions
    if options["plot"]:
        _draw(comparison, sessions, options["plot"])
    if as_json:
        from witan.surfaces.json_output import comparison_object, to_json

        echo(to_json(comparison_object(comparison, sessions)))
    else:
        from witan.surfaces.comparing import comparison_text

        page = Page.of(sys.stdout)
        shown = sessions if options["sessions"] or len(sessions) <= options["limit"] else ()
        echo("\n".join(comparison_text(page, comparison, shown)))
    if not comparison.rules:
        return Status.MISUSED
    outcomes = [held for name in sessions for held in comparison.outcomes[name].values()]
    return Status.ANSWERED if any(held.leaders for held in outcomes) else Status.NO_QUORUM


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


def _draw(comparison: "Comparison", sessions: Sequence[str], path: str) -> None:
    """Draw one session; of several, what they have in common."""
    from witan.adapters.charts import save_chart
    from witan.surfaces.plots import comparison_chart

    session = sessions[0] if len(sessions) == 1 else None
    save_chart(comparison_chart(comparison, session), path)
