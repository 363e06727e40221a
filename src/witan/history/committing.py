"""What recordings are told, committed as one; what no row holds spoils nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from witan.deliberation.events import Event, SessionClosed, SessionOpened
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.history.counting import Left, leave_all
from witan.history.database import Database
from witan.history.sessions import complete
from witan.history.sqlite import may_pass
from witan.history.stored_events import Piece, admit, event_rows, insert_events
from witan.history.superseding import RETRIED, mark_family
from witan.history.writing import Rows

__all__ = ["ATTEMPT_SECONDS", "Line", "Owner", "Told", "keep"]

ATTEMPT_SECONDS = 2.0
"""How long one attempt waits for another process; what is told meanwhile joins the next."""

MOST_AT_ONCE = 1_000
"""Most sessions of one commit."""

SPOILT = (WitanError, ValueError, ArithmeticError)
"""What one session with a text, a time or a number that no row holds may raise for all of them."""


class Owner(Protocol):
    """Whoever tells of sessions."""

    def fail(self, session: str, error: Exception) -> None:
        """Note why what was told of a session is not kept."""
        ...


class Line:
    """One session as its owner tells it.

    Parameters
    ----------
    token
        What the owner holds the session by.
    """

    def __init__(self, opened: SessionOpened, token: str, owner: Owner) -> None:
        self.opened = opened
        self.token = token
        self.owner = owner
        self.events: list[Event] = []
        self.queued = 0
        self.written = 0
        self.failure: Exception | None = None

    @property
    def durable(self) -> int:
        """The number of the last event that is durable; 0: none is."""
        written = self.written if self.failure is None else 0
        return self.events[written - 1].seq if written else 0

    def piece(self, upto: int) -> Piece:
        """What was told and is not written yet."""
        told = self.events[:upto]
        ended = isinstance(told[-1], SessionClosed)
        closing = Session.of(told) if ended else None
        return Piece(self.opened, self.token, tuple(told[self.written :]), closing)

    def fail(self, error: Exception) -> None:
        """Keep nothing more of it."""
        session = self.opened.session
        if not isinstance(error, HistoryError):
            problem = f"could not keep the session {session}: {str(error) or type(error).__name__}"
            error = HistoryError("the history", problem, "see what it says, and try again")
        self.failure = error
        self.owner.fail(session, error)


Told = dict[Line, int]
"""Lines, each with how many of its events were told."""


def keep(database: Database, told: Told) -> None:
    """Commit what was told; where that fails as one, session by session.

    Raises
    ------
    HistoryError
        If another process keeps it locked: what is not written yet may be tried again.
    """
    lines = sorted(told.items(), key=lambda item: item[0].opened.session)
    for at in range(0, len(lines), MOST_AT_ONCE):
        alive = [
            (line, upto)
            for line, upto in lines[at : at + MOST_AT_ONCE]
            if line.failure is None and upto > line.written
        ]
        try:
            _commit(database, alive)
        except SPOILT as error:
            _raise_if_it_may_pass(error)
            _keep_each(database, alive)


def _keep_each(database: Database, alive: Sequence[tuple[Line, int]]) -> None:
    for line, upto in alive:
        try:
            _commit(database, [(line, upto)])
        except SPOILT as error:
            _raise_if_it_may_pass(error)
            line.fail(error)


def _raise_if_it_may_pass(error: Exception) -> None:
    if isinstance(error, HistoryError) and may_pass(error):
        raise error


def _commit(database: Database, told: Sequence[tuple[Line, int]]) -> None:
    """Write the next pieces of several sessions in one transaction.

    They come in the order of their names, in which every writer locks them. Every row is made
    before the transaction: while it lasts, other writers wait.
    """
    pieces = [(line, upto, _Ready(line.piece(upto))) for line, upto in told]
    ending = _counted([ready for *_, ready in pieces])
    rows = _rows(ending)
    refused: list[tuple[Line, HistoryError]] = []
    with database.transaction(wait=ATTEMPT_SECONDS):
        ended = []
        for line, _, ready in pieces:
            fresh = admit(database, ready.piece)
            if isinstance(fresh, HistoryError):
                refused.append((line, fresh))
                continue
            insert_events(database, ready.events[len(ready.events) - len(fresh) :])
            if fresh and ready.left is not None:
                complete(database, ready.settled)
                ended.append(ready)
        if len(ended) < len(ending):
            rows = _rows(ended)
        for ready in ended:
            if ready.piece.opened.relation == RETRIED:
                mark_family(database, rows, ready.piece.session)
        rows.write(database)
    for line, error in refused:
        line.fail(error)
    for line, upto, _ in pieces:
        line.written = upto


class _Ready:
    """The next piece of a session, and what it leaves where it ends the session."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.events = event_rows(piece.session, piece.events)
        self.left: Left | None = None
        self.settled: Mapping[str, Any] = {}


def _counted(pieces: Sequence[_Ready]) -> list[_Ready]:
    """Those that end a session, with what it leaves."""
    closing = [(ready, held) for ready in pieces if (held := ready.piece.closing) is not None]
    for (ready, _), left in zip(closing, leave_all([held for _, held in closing]), strict=True):
        ready.left, ready.settled = left, left.row.settled()
    return [ready for ready, _ in closing]


def _rows(ended: Sequence[_Ready]) -> Rows:
    """What sessions leave beside their own rows."""
    rows = Rows()
    for ready in ended:
        if ready.left is not None:
            ready.left.add_to(rows)
    return rows
