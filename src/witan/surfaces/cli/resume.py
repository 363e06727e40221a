"""Go on with a stored session: ``witan resume`` and ``witan retry``."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import UnknownName, WitanError
from witan.service.requests import ResumeRequest, RetryRequest
from witan.surfaces.cli.council_options import session_options
from witan.surfaces.cli.generated import parameter_options
from witan.surfaces.cli.options import SectionedCommand, config_option, open_record, section
from witan.surfaces.cli.plan import (
    check_planned,
    plan_option,
    planned_councils,
    print_plan,
)
from witan.surfaces.cli.session import Say, SessionOutput, SessionStart, run_session

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import LiveSession


trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Run the programs, and use the keys and addresses, that the record names.",
)


def refuse_untrusted(seats: "Iterable[Seat]") -> None:
    """Refuse a record that would run programs or send keys."""
    from witan.models.seats import describe_risk

    for seat in seats:
        if (deed := describe_risk(seat)) is not None:
            raise click.UsageError(f"the record would {deed}; allow it with --trust")


RESUME_EXAMPLES = """\b
Examples:
  witan resume last
  witan resume session.json
"""


@click.command(
    "resume",
    cls=SectionedCommand,
    short_help="Take up an interrupted session.",
    epilog=RESUME_EXAMPLES,
)
@click.argument("session", metavar="ID|FILE")
@section("Session", config_option)
@section("Session", trust_option)
@parameter_options(ResumeRequest, without=("session",))
@session_options
def resume_command(
    session: str,
    config: Path | None,
    trust: bool,
    take_over: bool,
    max_cost_usd: float | None,
    **options: Any,
) -> int:
    """Take up a session where it was interrupted; answers and ballots in it are kept.

    An ID is the name of a session in the history, or a beginning of it that no other has; `last`
    is the latest. The seats, the procedure and the seed are those of the session; keys are those
    of today. The record of a FILE is written back to it unless --save names another. Where no
    answer, ballot or final answer was added, the session stays interrupted, and its record says
    that it was tried. One that was not interrupted is shown as it is. Exit status: as for witan
    ask.
    """
    from witan.surfaces.cli.stored_sessions import is_file

    file = Path(session) if is_file(session, config, options["history"]) else None
    if session == "-":
        raise click.UsageError("a session to be taken up cannot be read from standard input")
    if file is None and options["no_history"]:
        raise click.UsageError(
            "a session of the history is taken up in it; without it, give a FILE"
        )
    output = SessionOutput.of(options, save=file)

    def open_place(say: Say) -> "RecordingPlace | None":
        place = open_record({**options, "config": config}, say)
        if place is None and file is None:
            raise click.UsageError("history.enabled is false; name the history with --history")
        return place

    def prepare(live: "LiveSession") -> "SessionStart | Session":
        from witan.service.operations.ask import resume

        found, trusted = _find_session(session, file, live.place, by_force=take_over)
        if found.status != "interrupted":
            return found
        if not (trust or trusted):
            refuse_untrusted(found.opened.called)
        if file is not None and live.place is not None and _is_closed(live.place.history, found.id):
            live.say("the history has this session whole: what follows is kept in the file alone")
            live.leave_history()
        request = ResumeRequest(found.id, take_over=take_over, max_cost_usd=max_cost_usd)
        councils = live.councils(config)
        councils.council_of(found, max_cost_usd=max_cost_usd)
        return SessionStart(resume, request, councils, (found,), file)

    status = run_session(output, open_place, prepare)
    _clear_away(file, config, options)
    return status


def _clear_away(file: Path | None, config: Path | None, options: Mapping[str, Any]) -> None:
    """Delete a record that was set aside, once the history has all of it."""
    from witan.files.session_files import read_session
    from witan.service.history_access import configured
    from witan.service.rescue_files import is_aside
    from witan.surfaces.cli.stored_sessions import open_history

    if file is None or options["no_history"] or not is_aside(file):
        return
    # What cannot be compared stays.
    with suppress(WitanError, OSError):
        record = read_session(file)
        with open_history(configured(config, options["history"]), reading=True) as history:
            held = history.session(record.id)
        if held == record and held.status != "interrupted":
            file.unlink()


def _find_session(
    name: str, file: Path | None, place: "RecordingPlace | None", *, by_force: bool
) -> "tuple[Session, bool]":
    """Find a session, and whether its seats are those that the user himself once configured."""
    from witan.surfaces.cli.stored_sessions import whole_name

    if file is not None:
        from witan.files.session_files import read_session

        return read_session(file), False
    assert place is not None  # noqa: S101 - refused before
    session_name = whole_name(place.history, name, or_file=True)
    own = place.own and not place.history.summary(session_name).imported
    # Whoever is at it is said before anybody is seated.
    return place.history.claim(session_name, by_force=by_force), own


def _is_closed(history: "History", session: str) -> bool:
    """Check that the history has all of the session of a file."""
    try:
        return history.has_record(session) and history.session(session).status != "interrupted"
    except UnknownName:
        return False


RETRY_EXAMPLES = """\b
Examples:
  witan retry last
  witan retry session.json --seat ada --save again.json
  witan retry last --plan
"""


@click.command(
    "retry",
    cls=SectionedCommand,
    short_help="Ask the seats that failed again.",
    epilog=RETRY_EXAMPLES,
)
@click.argument("session", metavar="ID|FILE")
@parameter_options(RetryRequest, without=("session",))
@section("Session", config_option)
@section("Session", trust_option)
@plan_option
@session_options
def retry_command(
    session: str,
    config: Path | None,
    trust: bool,
    *,
    seats: tuple[str, ...],
    max_cost_usd: float | None,
    plan: bool,
    **options: Any,
) -> int:
    """Ask the seats that failed in a session again; what does not depend on them is kept.

    Without --seat, every seat that failed or abstained. After a review the ballots are counted and
    the final answer is written again; after an answer all reviews are made again as well; after a
    chairman's failure only the final answer. What comes of it is a new session, which names the
    other as its parent; that one stays as it was. Its cost is that of the new calls alone. Exit
    status: as for witan ask.
    """
    output = SessionOutput.of(options)
    request = RetryRequest(session, seats=seats, max_cost_usd=max_cost_usd)
    if plan:
        check_planned(output)
        parent, _ = _find_parent(session, config, options["history"])
        request = replace(request, session=parent.id)
        councils = planned_councils({"config": config})
        return print_plan("plan_retry", request, councils, [parent], as_json=output.as_json)

    def prepare(live: "LiveSession") -> SessionStart:
        from witan.service.operations.ask import retry

        parent, trusted = _find_parent(session, config, options["history"])
        if not (trust or trusted):
            refuse_untrusted(parent.opened.called)
        councils = live.councils(config)
        councils.council_of(parent, max_cost_usd=max_cost_usd)
        return SessionStart(retry, replace(request, session=parent.id), councils, (parent,))

    return run_session(output, partial(open_record, {**options, "config": config}), prepare)


def _find_parent(name: str, config: Path | None, history: str | None) -> "tuple[Session, bool]":
    from witan.surfaces.cli.stored_sessions import council_session

    return council_session(name, config, history, ": no council can be asked again")
