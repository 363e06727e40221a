"""Go on with a stored session: ``witan resume`` and ``witan retry``."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import UnknownName, WitanError
from witan.service.requests import ResumeRequest, RetryRequest
from witan.surfaces.cli.council_options import seated, session_options
from witan.surfaces.cli.generated import parameter_options
from witan.surfaces.cli.options import SectionedCommand, config_option, open_record, section
from witan.surfaces.cli.plan import check_planned, plan_option, print_plan, retried_session
from witan.surfaces.cli.session import Say, SessionOutput, hold
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.council import Council
    from witan.service.history_access import RecordingPlace
    from witan.surfaces.cli.live_session import LiveSession, SessionRunner


trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Run the programs, and use the keys and addresses, that the record names.",
)


def reseat_council(
    session: "Session", config: Path | None, say: Say, max_cost_usd: float | None = None
) -> "Council":
    """Seat the council of a record with today's keys, under another ceiling."""
    from witan.deliberation.procedure import with_ceiling

    opened = session.opened
    answering = opened.members or opened.reviewers
    values: dict[str, Any] = {"members": [_table(held) for held in answering]}
    values["jury"] = [_table(held) for held in opened.jury] if opened.members else []
    values["chairmen"] = [_table(held) for held in opened.chairmen]
    procedure = with_ceiling(opened.procedure, max_cost_usd)
    return seated(config, values, say, procedure, giver="the record")


def refuse_untrusted(seats: "Iterable[Seat]") -> None:
    """Refuse a record that would run programs or send keys."""
    from witan.models.seats import describe_risk

    for seat in seats:
        if (deed := describe_risk(seat)) is not None:
            raise click.UsageError(f"the record would {deed}; allow it with --trust")


def _table(seat: "Seat") -> dict[str, Any]:
    """Return a seat of the record, as the configuration writes it."""
    if not seat.source:
        problem = f"{seat.name} is a model of your own: take the session up from Python."
        raise click.UsageError(problem)
    options = {name: value for name, value in asdict(seat.options).items() if value is not None}
    table = {"seat": seat.source, "name": seat.name, **options}
    table |= {"url": seat.url} if seat.url is not None else {}
    table |= {"key": seat.key_variable} if seat.key_variable is not None else {}
    if seat.price is not None:
        table["price"] = [seat.price.input_usd, seat.price.output_usd]
    return table


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
    vain: list[tuple[Session, bool]] = []

    def opened(say: Say) -> "RecordingPlace | None":
        place = open_record({**options, "config": config}, say)
        if place is None and file is None:
            raise click.UsageError("history.enabled is false; name the history with --history")
        return place

    def seat(say: Say, place: "RecordingPlace | None") -> "SessionRunner":
        taken, trusted = _claim_session(session, file, place, by_force=take_over)
        if taken.status != "interrupted":
            return _show_only(taken)
        if not (trust or trusted):
            refuse_untrusted(taken.opened.called)
        apart = (
            file is not None
            and place is not None
            and _is_closed(place.history, taken.id, by_force=take_over)
        )
        if apart:
            say("the history has this session whole: what follows is kept in the file alone")
        council = reseat_council(taken, config, say, max_cost_usd)
        return _going_on(taken, council, vain.append, apart=apart)

    status = hold(output, seat, opened)
    if vain:
        left, spent = vain[0]
        _leave(left, file, output, spent=spent)
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


def _claim_session(
    name: str, file: Path | None, place: "RecordingPlace | None", *, by_force: bool
) -> "tuple[Session, bool]":
    """Return the session, and whether its seats are those that the user himself once configured."""
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
) -> "SessionRunner":
    """Seat those who sat, and let them go on; what comes of it is kept `apart` from the history.

    `in_vain` is told how the session is left where nothing does, and whether that cost something.
    """

    async def held(following: "LiveSession") -> "Session":
        following.record.goes_on_from(session, apart=apart)
        async with council:
            after = await council.resume(session, listener=following)
        if (left := following.record.left_in_vain()) is not None:
            in_vain((left, left.cost != session.cost))
        return after

    return held


def _leave(session: "Session", file: Path | None, output: SessionOutput, *, spent: bool) -> None:
    """Leave the session open: closed, it could never be taken up again."""
    if file is not None and output.save == file:
        from witan.files.session_files import write_session

        write_session(session, file)
    where = session.id if file is None else file
    came = "nothing more came of it but its cost" if spent else "nothing more came of it"
    echo(f"{came}: {where} stays interrupted, to be resumed", err=True)


def _show_only(session: "Session") -> "SessionRunner":
    """Show a session that is over; nobody is seated."""

    async def held(_: "LiveSession") -> "Session":
        return session

    return held


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
    if plan:
        check_planned(output)
        request = RetryRequest(session, seats=seats, max_cost_usd=max_cost_usd)
        places = {"config": config, "history": options["history"]}
        return print_plan("plan_retry", places, request, as_json=output.as_json)

    def seat(say: Say, _: "RecordingPlace | None") -> "SessionRunner":
        parent, trusted = retried_session(session, config, options["history"])
        if not (trust or trusted):
            refuse_untrusted(parent.opened.called)
        council = reseat_council(parent, config, say, max_cost_usd)

        async def held(listener: "Listener") -> "Session":
            async with council:
                return await council.retry(parent, seats or None, listener=listener)

        return held

    return hold(output, seat, partial(open_record, {**options, "config": config}))
