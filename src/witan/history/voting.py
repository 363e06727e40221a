"""Votes that people add to a session, which is then counted again."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from witan.core.ballot import Ballot
from witan.core.entering import entries_of
from witan.core.entries import Entries
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, InvalidBallot
from witan.history.counting import leave
from witan.history.database import Database
from witan.history.reading import answers, ballot_of, cast_of, require
from witan.history.sessions import recounted
from witan.history.stored_events import read_events
from witan.history.writing import Rows

__all__ = ["check", "vote"]

_RECOUNTED = ("ballots", "standings", "matchups", "counted")


def vote(
    database: Database, session: str, votes: Sequence[Ballot], *, replacing: bool = False
) -> None:
    """Add people's ballots to a session, and count it again.

    Parameters
    ----------
    replacing
        A ballot takes the place of an earlier one of its reviewer.

    Raises
    ------
    InvalidBallot
        If one is not a person's, is of another session, names an answer that is not there, is cast
        under the name of a candidate, or is the second of its reviewer.
    HistoryConflict
        If the session is not closed, or cannot be counted.
    """
    with database.transaction():
        require(database, session)
        sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
        database.rows(sql, {"session": session})
        at_us, category, _, status, *_ = require(database, session)
        if status == "interrupted":
            problem = f"the session {session} is not closed, so nobody can vote on it yet"
            raise HistoryConflict(database.where, problem, "wait for its end, or resume it")
        sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
        there = [ballot_of(body) for (body,) in database.rows(sql, {"session": session})]
        new = [replace(ballot, session=ballot.session or session) for ballot in votes]
        if replacing:
            voters = {ballot.reviewer for ballot in new}
            there = [b for b in there if not (_whole_vote(b) and b.reviewer in voters)]
        check(session, there, new, answers(database, session))
        cast, entries = _counted(database, (session, at_us, category), [*there, *new])
        for table in _RECOUNTED:
            database.execute(
                f"DELETE FROM {table} WHERE session = :session",  # noqa: S608 - names of our own
                {"session": session},
            )
        recounted(database, entries.session)
        rows = Rows()
        # The answers stand as they are.
        rows.add(session, replace(entries, answers=()), cast, {})
        rows.mark(session, at_us)
        rows.write(database)


def _whole_vote(ballot: Ballot) -> bool:
    """Whether it is a person's ballot on the session as a whole, of which there is one."""
    return ballot.kind == "human" and not ballot.paired


def check(
    session: str, there: Sequence[Ballot], new: Sequence[Ballot], answered: Collection[str]
) -> None:
    """Refuse people's ballots that cannot be cast on a session, beside those that are there.

    Parameters
    ----------
    answered
        Seats, or candidates, with an answer.

    Raises
    ------
    InvalidBallot
        If one is not a person's, is of another session, names an answer that is not there, is cast
        under the name of a candidate, or is the second of its reviewer.
    """
    known = {*answered, *(name for ballot in there for name in ballot.mentioned())}
    voted = {ballot.reviewer for ballot in there if _whole_vote(ballot)}
    for ballot in new:
        if ballot.kind != "human":
            raise InvalidBallot(ballot.reviewer, "is not a person's, and only people vote later")
        if ballot.session != session:
            raise InvalidBallot(ballot.reviewer, f"is of the session {ballot.session}")
        if ballot.reviewer in known:
            raise InvalidBallot(ballot.reviewer, "has the name of a candidate; vote under another")
        strange = [name for name in ballot.mentioned() if name not in known]
        if strange:
            raise InvalidBallot(ballot.reviewer, f"names {strange[0]}, which has no answer there")
        if not ballot.paired and ballot.reviewer in voted:
            raise InvalidBallot(ballot.reviewer, "is there already; a person votes once")
        if not ballot.paired:
            voted.add(ballot.reviewer)


def _counted(
    database: Database, where: tuple[str, int, str | None], cast: Sequence[Ballot]
) -> tuple[Sequence[Ballot], Entries]:
    """The session's ballots in the order in which they are kept, and what they leave."""
    events = read_events(database, where[0])
    if not events:
        held = replace(cast_of(database, *where), ballots=tuple(cast))
        return cast, entries_of(held)
    people = tuple(ballot for ballot in cast if ballot.kind == "human")
    left = leave(Session.of(events), people)
    if left.entries is None:
        problem = f"the session {where[0]} has nothing that could be voted on"
        raise HistoryConflict(database.where, problem, "vote on a session with answers")
    return left.ballots, left.entries
