"""``witan recount``: a stored session under another rule, or without some reviewers."""

import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from witan.service.text import Page
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import counting_options, json_option, settings_of
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.outcome import Outcome
    from witan.core.settings import Settings
    from witan.deliberation.session import Session
    from witan.history import History

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan recount last --rule schulze
  witan recount session.json --without gpt-5
"""

NOT_COUNTING = ("rule", "without", "config", "history")

HELD_BY_COUNTING = ("recusal", "unranked", "rubric")


@click.command(
    "recount",
    cls=SectionedCommand,
    short_help="Count a stored session again, without a call.",
    epilog=EXAMPLES,
)
@click.argument("session", metavar="ID|FILE")
@section(
    "Counting",
    click.option(
        "--rule", metavar="NAME", help="Count by this rule; the session's own unless given."
    ),
)
@section(
    "Counting",
    click.option(
        "--without",
        multiple=True,
        metavar="REVIEWER",
        help="Leave out the ballot of this reviewer; may be repeated.",
    ),
)
@counting_options(with_rule=False)
@section("History", config_option)
@history_option
@json_option
@click.pass_context
def command(context: click.Context, /, session: str, as_json: bool, **options: Any) -> int:
    """Count the ballots of a session again; no model is called.

    An ID is the name of a session in the history, or a beginning of it that no other has; `last`
    is the latest. A FILE exists, ends in .json or has a path. Whatever is not given stays as the
    session was counted. --without leaves a reviewer's ballot out; its answer still stands. Of a
    session in the history, --kind counts the ballots that people cast, or all of them; --prior
    learn, --rho learn and --rule weighted_borda learn from the other sessions there.
    """
    from witan.surfaces.cli.stored_sessions import session_called

    named = [
        name
        for name in options
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    with session_called(session, options["config"], options["history"]) as (found, history):
        if isinstance(found, str):
            assert history is not None  # noqa: S101 - only a history has ballots alone
            outcome = _imported(history, found, options, named)
        else:
            outcome = _recounted(found, history, options, named)
    return _told(outcome, as_json=as_json)


def _recounted(
    session: "Session", history: "History | None", options: dict[str, Any], named: list[str]
) -> "Outcome":
    from witan.service.operations.recount import recounted

    rule = options["rule"]
    settings = settings_of({**options, "rule": rule or session.settings.rule})
    given = _given(settings, named)
    if history is None:
        _refuse_learning(given)
    return recounted(session, history, rule, without=options["without"], given=given)


def _refuse_learning(given: dict[str, Any]) -> None:
    """Refuse to learn where there is nothing to learn from."""
    for name in ("prior", "rho"):
        if given.get(name) == "learn":
            raise click.UsageError(
                f"--{name} learn needs a history, and a file holds one session alone: import the "
                "file, and recount the session by its name"
            )


def _imported(
    history: "History", session: str, options: dict[str, Any], named: list[str]
) -> "Outcome":
    from witan.core.settings import AUTO
    from witan.service.operations.recount import recounted_import

    settings = settings_of({**options, "rule": options["rule"] or AUTO})
    return recounted_import(history, session, settings, without=options["without"], named=named)


def _told(outcome: "Outcome", *, as_json: bool) -> int:
    if as_json:
        from witan.service.json_output import sessions_json

        for piece in sessions_json([outcome], []):
            echo(piece, nl=False)
    else:
        from witan.surfaces.text.outcome import outcome_text

        page = Page.of(sys.stdout)
        simulated = bool(outcome.details.get("simulated"))
        echo("\n".join(outcome_text(page, outcome, simulated=simulated)))
    return Status.ANSWERED if outcome.leaders else Status.NO_QUORUM


for _parameter in command.params:
    if isinstance(_parameter, click.Option):
        # What stands in the session holds, not what `witan tally` would take for granted.
        _parameter.show_default = False


def _given(settings: "Settings", named: list[str]) -> dict[str, Any]:
    """What was named on the command line, by the names that settings go by."""
    found: dict[str, Any] = {}
    for name in named:
        if name in NOT_COUNTING:
            continue
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
