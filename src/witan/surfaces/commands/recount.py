"""``witan recount``: a stored session under another rule, or without some reviewers."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from witan.surfaces.commands.options import counting_options, json_option, settings_of
from witan.surfaces.exits import Status
from witan.surfaces.text import Page

if TYPE_CHECKING:
    from witan.core.settings import Settings

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan recount session.json --rule schulze
  witan recount session.json --without gpt-5
"""

HELD_BY_COUNTING = ("recusal", "unranked", "rubric")


@click.command(
    "recount", short_help="Count a stored session again, without a call.", epilog=EXAMPLES
)
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--rule", metavar="NAME", help="Count by this rule; the session's own unless given.")
@click.option(
    "--without",
    multiple=True,
    metavar="REVIEWER",
    help="Leave out the ballot of this reviewer; may be repeated.",
)
@counting_options(with_rule=False)
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    file: Path,
    rule: str | None,
    without: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Count the ballots of the session in FILE again; no model is called.

    Whatever is not given stays as the session was counted. --without leaves a reviewer's ballot
    out; its answer still stands.
    """
    from witan.adapters.session_files import read_session

    session = read_session(file)
    named = [
        name
        for name in options
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    settings = settings_of({**options, "rule": rule or session.settings.rule})
    outcome = session.recount(rule, without=without, **_given(settings, named))
    if as_json:
        from witan.surfaces.json_output import sessions_json

        marked = replace(outcome, details={**outcome.details, "simulated": session.simulated})
        for piece in sessions_json([marked], []):
            click.echo(piece, nl=False)
    else:
        from witan.surfaces.render import outcome_text

        page = Page.of(sys.stdout)
        click.echo("\n".join(outcome_text(page, outcome, simulated=session.simulated)))
    return Status.ANSWERED if outcome.leaders else Status.NO_QUORUM


for _parameter in command.params:
    if isinstance(_parameter, click.Option):
        # What stands in the session holds, not what `witan tally` would take for granted.
        _parameter.show_default = False


def _given(settings: "Settings", named: list[str]) -> dict[str, Any]:
    """What was named on the command line, by the names that settings go by."""
    found: dict[str, Any] = {}
    for name in named:
        if name in HELD_BY_COUNTING:
            found[name] = getattr(settings.counting, name)
        elif name == "parameters":
            found |= settings.parameters
        elif name in ("weight", "weights_file"):
            found["weights"] = settings.weights
        elif name == "answers":
            found["gates"] = settings.gates
        else:
            found[name] = getattr(settings, name)
    return found
