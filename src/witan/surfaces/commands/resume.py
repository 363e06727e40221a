"""``witan resume``: take up an interrupted session."""

from dataclasses import asdict
from operator import gt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.asking import Telling
from witan.surfaces.commands.council_options import config_option, seated, telling_options
from witan.surfaces.holding import Say, hold

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.recorder import Listener
    from witan.deliberation.session import Session
    from witan.surfaces.following import Hold

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan resume session.json
"""


@click.command("resume", short_help="Take up an interrupted session.", epilog=EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@config_option
@click.option(
    "--trust",
    is_flag=True,
    help="Run the programs, and use the keys and addresses, that the record names.",
)
@telling_options
@click.option(
    "--require-winner", is_flag=True, help="Exit 5 if the session has no single clear leader."
)
def command(file: Path, config: Path | None, trust: bool, **options: Any) -> int:
    """Take up the session in FILE where it was interrupted; answers and ballots in it are kept.

    The seats, the procedure and the seed are those of the session; keys are those of today. The
    record is written back to FILE unless --save names another; where no answer, ballot or closing
    text was added, FILE is left as it was. A session that was not interrupted is shown as it is.
    Exit status: as for witan ask.
    """
    telling = Telling.of(options, save=file)
    vain: list[Session] = []

    def seat(say: Say) -> "Hold":
        from witan.adapters.session_files import read_session

        session = read_session(file)
        if session.status != "interrupted":
            return _shown(session)
        opened = session.opened
        if not trust:
            _refuse_untrusted((*opened.seats, *opened.chairmen))
        given: dict[str, Any] = {"members": [_table(held) for held in opened.seats]}
        given["chairmen"] = [_table(held) for held in opened.chairmen]
        council = seated(config, given, say, opened.procedure, giver="the record")

        async def held(listener: "Listener") -> "Session":
            async with council:
                after = await council.resume(session, listener=listener)
            if not _got_on(session, after):
                vain.append(session)
            return after

        return held

    status = hold(telling, seat)
    if vain and telling.save == file:
        from witan.adapters.session_files import write_session

        # Closed, it could never be taken up again, though nobody has answered yet.
        write_session(vain[0], file)
        click.echo(f"nothing more came of it: {file} is left as it was, to be resumed", err=True)
    return status


def _got_on(before: "Session", after: "Session") -> bool:
    """Whether there is an answer, a ballot or a closing text more than before."""
    had, has = (
        (len(s.answers), sum(not ballot.abstained for ballot in s.ballots), _closed(s))
        for s in (before, after)
    )
    return after.status == "complete" or any(map(gt, has, had))


def _closed(session: "Session") -> bool:
    """Whether it has what it is to close with: a text that somebody wrote, or an outcome."""
    procedure = session.opened.procedure
    if procedure.mode == "best" or not procedure.synthesis:
        return session.outcome is not None
    return session.synthesis is not None and session.synthesis.chairman is not None


def _shown(session: "Session") -> "Hold":
    """A session that is over: nobody has to be seated to look at it."""

    async def held(_: "Listener") -> "Session":
        return session

    return held


def _refuse_untrusted(seats: "tuple[Seat, ...]") -> None:
    """A record may come from anywhere; what it would run, or send a key to, is not its to say."""
    from witan.surfaces.seating import to_trust

    for seat in seats:
        if (deed := to_trust(seat)) is not None:
            raise click.UsageError(f"the record would {deed}; allow it with --trust")


def _table(seat: "Seat") -> dict[str, Any]:
    """A seat of the record, as the configuration writes it."""
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
