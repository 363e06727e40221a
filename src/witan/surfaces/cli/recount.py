"""``witan recount``: a stored session under another rule, or without some reviewers."""

import sys
from typing import TYPE_CHECKING, Any

import click

from witan.service.counting import BallotSettings
from witan.service.text import Page
from witan.surfaces.cli.counting import take_settings, weights_option
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.generated import named_options, parameter_options
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.cli.options import json_option
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.outcome import Outcome
    from witan.deliberation.session import Session
    from witan.history import History

EXAMPLES = """\b
Examples:
  witan recount last --rule schulze
  witan recount session.json --without gpt-5
"""


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
@parameter_options(BallotSettings)
@weights_option
@section("History", config_option)
@history_option
@json_option
def command(session: str, as_json: bool, **options: Any) -> int:
    """Count the ballots of a session again; no model is called.

    An ID is the name of a session in the history, or a beginning of it that no other has; `last`
    is the latest. A FILE exists, ends in .json or has a path. Whatever is not given stays as the
    session was counted. --without leaves a reviewer's ballot out; its answer still stands. Of a
    session in the history, --kind counts the ballots that people cast, or all of them; --prior
    learn, --rho learn and --rule weighted_borda learn from the other sessions there.
    """
    from witan.surfaces.cli.stored_sessions import session_called

    given: BallotSettings = take_settings(BallotSettings, options)
    with (
        named_options(BallotSettings),
        session_called(session, options["config"], options["history"]) as (found, history),
    ):
        if isinstance(found, str):
            assert history is not None  # noqa: S101 - only a history has ballots alone
            outcome = _imported(history, found, options, given)
        else:
            outcome = _recounted(found, history, options, given)
    return _told(outcome, as_json=as_json)


def _recounted(
    session: "Session", history: "History | None", options: dict[str, Any], given: BallotSettings
) -> "Outcome":
    from witan.service.operations.recount import recounted

    rule = options["rule"]
    given.settings(rule or session.settings.rule)
    changed = given.counted()
    if history is None:
        _refuse_learning(changed)
    changed |= changed.pop("parameters", {})
    return recounted(session, history, rule, without=options["without"], given=changed)


def _refuse_learning(given: dict[str, Any]) -> None:
    """Refuse to learn where there is nothing to learn from."""
    for name in ("prior", "rho"):
        if given.get(name) == "learn":
            raise click.UsageError(
                f"--{name} learn needs a history, and a file holds one session alone: import the "
                "file, and recount the session by its name"
            )


def _imported(
    history: "History", session: str, options: dict[str, Any], given: BallotSettings
) -> "Outcome":
    from witan.service.operations.recount import recounted_import

    settings, named = given.settings(options["rule"]), given.counted()
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
