"""``witan resume``: take up an interrupted session."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import UnknownName, WitanError
from witan.service.requests import ResumeRequest
from witan.surfaces.cli.council_options import session_options
from witan.surfaces.cli.generated import parameter_options
from witan.surfaces.cli.history_options import config_option, recorded_by
from witan.surfaces.cli.reseating import refuse_untrusted, reseated, trust_option
from witan.surfaces.cli.session import Say, hold
from witan.surfaces.cli.session_options import Telling
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.council import Council
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import Following, Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan resume last
  witan resume session.json
"""


@click.command(
    "resume", cls=SectionedCommand, short_help="Take up an interrupted session.", epilog=EXAMPLES
)
@click.argument("session", metavar="ID|FILE")
@section("Session", config_option)
@section("Session", trust_option)
@parameter_options(ResumeRequest, without=("session",))
@session_options
def command(
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
    telling = Telling.of(options, save=file)
    vain: list[tuple[Session, bool]] = []

    def opened(say: Say) -> "RecordingPlace | None":
        place = recorded_by({**options, "config": config}, say)
        if place is None and file is None:
            raise click.UsageError("history.enabled is false; name the history with --history")
        return place

    def seat(say: Say, place: "RecordingPlace | None") -> "Hold":
        taken, trusted = _taken(session, file, place, by_force=take_over)
        if taken.status != "interrupted":
            return _shown(taken)
        if not (trust or trusted):
            refuse_untrusted(taken.opened.called)
        apart = (
            file is not None
            and place is not None
            and _is_closed(place.history, taken.id, by_force=take_over)
        )
        if apart:
            say("the history has this session whole: what follows is kept in the file alone")
        council = reseated(taken, config, say, max_cost_usd)
        return _going_on(taken, council, vain.append, apart=apart)

    status = hold(telling, seat, opened)
    if vain:
        left, spent = vain[0]
        _leave(left, file, telling, spent=spent)
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


def _taken(
    name: str, file: Path | None, place: "RecordingPlace | None", *, by_force: bool
) -> "tuple[Session, bool]":
    """The session, and whether its seats are those that the user himself once configured."""
    from witan.surfaces.cli.stored_sessions import whole_name

    if file is not None:
        from witan.files.session_files import read_session

        return read_session(file), False
    assert place is not None  # noqa: S101 - refused before
    session_name = whole_name(place.history, name, or_file=True)
    own = place.own and not place.history.summary(session_name).imported
    return place.history.claim(session_name, by_force=by_force), own


def _is_closed(history: "History", session: str, *, by_force: bool) -> bool:
    """Take over what the history holds of the session of a file; whether that is all of it."""
    try:
        history.summary(session)
    except UnknownName:
        return False
    if not history.has_record(session):
        return True
    return history.claim(session, by_force=by_force).status != "interrupted"


def _going_on(
    session: "Session",
    council: "Council",
    in_vain: "Callable[[tuple[Session, bool]], None]",
    *,
    apart: bool,
) -> "Hold":
    """Seat those who sat, and let them go on; what comes of it is kept `apart` from the history.

    `in_vain` is told how the session is left where nothing does, and whether that cost something.
    """

    async def held(following: "Following") -> "Session":
        following.record.goes_on_from(session, apart=apart)
        async with council:
            after = await council.resume(session, listener=following)
        if (left := following.record.left_in_vain()) is not None:
            in_vain((left, left.cost != session.cost))
        return after

    return held


def _leave(session: "Session", file: Path | None, telling: Telling, *, spent: bool) -> None:
    """Leave the session open: closed, it could never be taken up again."""
    if file is not None and telling.save == file:
        from witan.files.session_files import write_session

        write_session(session, file)
    where = session.id if file is None else file
    came = "nothing more came of it but its cost" if spent else "nothing more came of it"
    echo(f"{came}: {where} stays interrupted, to be resumed", err=True)


def _shown(session: "Session") -> "Hold":
    """A session that is over: nobody has to be seated to look at it."""

    async def held(_: "Following") -> "Session":
        return session

    return held
