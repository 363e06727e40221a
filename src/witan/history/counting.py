"""Sessions that are over, counted: the rows that they leave in the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from witan.core.ballot import Ballot
from witan.core.entries import Entries
from witan.deliberation.leaving import counted_ballots, entries_of_sessions, session_entries
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.history.sessions import COUNCIL, SessionRow
from witan.history.writing import Rows

__all__ = ["Left", "leave", "leave_all"]


@dataclass(frozen=True, slots=True)
class Left:
    """What a session leaves.

    Parameters
    ----------
    entries
        None: it cannot be counted, and leaves its row alone.
    ballots
        Those that the entries were read off, in their order.
    answers
        Seat, or candidate, to text.
    """

    row: SessionRow
    entries: Entries | None
    ballots: Sequence[Ballot]
    answers: Mapping[str, str]

    def of_source(self, source: str, at: datetime) -> "Left":
        """The same, as it came in from a file at a time."""
        return replace(self, row=replace(self.row, source=source, added=at))

    def add_to(self, rows: Rows) -> None:
        """Hand on every row but the session's own."""
        if self.entries is not None:
            rows.add(self.row.session, self.entries, self.ballots, self.answers)
        rows.mark(self.row.session, self.row.at_us, self.row.own_bucket)


def leave(session: Session, votes: Sequence[Ballot] = ()) -> Left:
    """Count a closed session, and with it what people voted on it; another is not counted.

    Raises
    ------
    WitanError
        If it could be counted but for the votes.
    """
    entries = _entries(session)
    if votes and session.status != "interrupted":
        try:
            entries = session_entries(session, votes)
        except WitanError:
            if entries is not None:
                raise
    return _left(session, entries, votes)


def leave_all(sessions: Sequence[Session]) -> list[Left]:
    """Count closed sessions, all at once; where one cannot be counted, each by itself."""
    entries: Sequence[Entries | None]
    try:
        entries = entries_of_sessions(sessions)
    except WitanError:
        entries = [_entries(session) for session in sessions]
    return [_left(session, held) for session, held in zip(sessions, entries, strict=True)]


def _left(session: Session, entries: Entries | None, votes: Sequence[Ballot] = ()) -> Left:
    answers = {seat: answer.text for seat, answer in session.answers.items()}
    ballots = (*counted_ballots(session), *votes)
    return Left(_row(session, entries), entries, ballots, answers)


def _entries(session: Session) -> Entries | None:
    """What the session leaves without votes."""
    if session.status == "interrupted":
        return None
    try:
        return session_entries(session)
    except WitanError:
        return None  # no answer, no ballot: it is kept, and nothing is summed from it


def _row(session: Session, entries: Entries | None) -> SessionRow:
    outcome = session.outcome
    return SessionRow(
        session=session.id,
        at=session.opened.at,
        category=session.opened.category,
        simulated=session.simulated,
        source=COUNCIL,
        status=session.status,
        question=session.question,
        closing=session.text,
        rule=None if outcome is None else outcome.rule,
        cost_usd=session.cost.total_usd,
        seconds=session.seconds,
        entry=None if entries is None else entries.session,
        parent=session.opened.parent,
        relation=session.opened.relation,
        judges_only=bool(session.opened.answers),
    )
