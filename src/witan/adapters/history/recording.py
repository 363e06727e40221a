"""Sessions as they happen: told event by event, and committed by a thread of their own.

Whoever deliberates never waits for the disk. What has been told while one commit was under way goes
into the next, so that many sessions share the price of one.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, Self

from witan.adapters.history.counting import Left, leave_all
from witan.adapters.history.database import Database
from witan.adapters.history.holders import new_token
from witan.adapters.history.sessions import complete
from witan.adapters.history.stored_events import Piece, admit, event_rows, insert_events
from witan.adapters.history.superseding import RETRIED, mark_family
from witan.adapters.history.writing import Rows
from witan.deliberation.events import (
    AnswerDelta,
    Event,
    SessionClosed,
    SessionOpened,
    SynthesisDelta,
)
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError

__all__ = ["Recording", "Writer"]

MOST_AT_ONCE = 1_000
"""Most sessions of one commit."""

SPOILT = (WitanError, ValueError, ArithmeticError)
"""What one session with a text, a time or a number that no row holds may raise for all of them."""


class _Line:
    """One session as one recording tells it."""

    def __init__(self, opened: SessionOpened, token: str) -> None:
        self.opened = opened
        self.token = token
        self.events: list[Event] = []
        self.written = 0
        self.failure: Exception | None = None

    def piece(self, upto: int) -> Piece:
        """What was told and is not written yet."""
        told = self.events[:upto]
        ended = isinstance(told[-1], SessionClosed)
        closing = Session.of(told) if ended else None
        return Piece(self.opened, self.token, tuple(told[self.written :]), closing)


class Recording:
    """A listener that keeps what it is told: one session after another.

    Any number of recordings may be open at once; they share the history's writer.

    Parameters
    ----------
    claim
        The token by which a session was taken up, if it was.

    Attributes
    ----------
    failure
        The first thing that went wrong; what is told after it of that session is not kept. Once a
        flush has raised it, it is that of its session alone, and goes when another begins.
    """

    def __init__(self, writer: "Writer", claim: Callable[[str], str | None]) -> None:
        self._writer = writer
        self._claim = claim
        self._line: _Line | None = None
        self._failures: dict[str, Exception] = {}
        self._raised: set[str] = set()

    @property
    def failure(self) -> Exception | None:
        """The first thing that went wrong."""
        return next(iter([*self._failures.values()]), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        if kind is None:
            self.flush()
            return
        with suppress(HistoryError):  # what the block raised says more
            self.flush()

    def __call__(self, event: Event) -> None:
        """Queue an event, deltas aside; return at once."""
        if isinstance(event, AnswerDelta | SynthesisDelta):
            return
        if isinstance(event, SessionOpened):
            for session in self._raised:
                self._failures.pop(session, None)
            self._raised.clear()
            claimed = self._claim(event.session)
            self._line = _Line(event, new_token() if claimed is None else claimed)
        if self._line is None:
            problem = "was told of a session whose opening it was not told of"
            raise HistoryError("the recording", problem, "tell it the session from its beginning")
        line = self._line
        line.events.append(event)
        if isinstance(event, SessionClosed):
            self._line = None
        self._writer.tell(self, line, len(line.events))

    def flush(self) -> None:
        """Wait until everything told so far is durable.

        Raises
        ------
        HistoryError
            If some of it is not kept.
        """
        self._writer.drain()
        failures = [*self._failures.items()]
        if failures:
            session, failure = failures[0]
            self._raised.add(session)
            raise failure

    def fail(self, session: str, error: Exception) -> None:
        """Note why what was told of a session is not kept."""
        self._failures.setdefault(session, error)


class Writer:
    """The thread that commits what recordings are told, and the connection that it does so on."""

    def __init__(self, connect: Callable[[], Database]) -> None:
        self._connect = connect
        self._queue: SimpleQueue[tuple[Recording, _Line, int] | Signal] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._closing = False
        self._end = Signal()

    def tell(self, recording: Recording, line: _Line, upto: int) -> None:
        """Queue the events of a line up to this one."""
        with self._starting:
            if self._closing:
                problem = "is closed, and keeps nothing more"
                raise HistoryError("the history", problem, "open it for as long as sessions run")
            if self._thread is None:
                self._thread = Thread(target=self._run, name="witan-history", daemon=True)
                self._thread.start()
            self._queue.put((recording, line, upto))

    def drain(self) -> None:
        """Wait until what is queued now was dealt with."""
        done = Signal()
        with self._starting:
            if self._thread is None:
                return
            # Behind the end nothing is queued: whoever comes then waits for the end.
            done = self._end if self._closing else done
            if not self._closing:
                self._queue.put(done)
        done.wait()

    def close(self) -> None:
        """Deal with what is queued, and end the thread."""
        with self._starting:
            if not self._closing and self._thread is not None:
                self._queue.put(self._end)
            self._closing = True
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        database: Database | None = None
        try:
            while True:
                told, signals = self._taken()
                if told:
                    database = self._kept(database, told)
                for signal in signals:
                    signal.set()
                if self._end in signals:
                    return
        finally:
            # Whatever ended the thread, nobody waits for it for ever.
            self._let_go()
            if database is not None:
                database.close()

    def _kept(
        self, database: Database | None, told: "dict[tuple[Recording, _Line], int]"
    ) -> Database | None:
        """Commit what was told, on this connection or a new one; the connection, if there is one.

        The thread lives on whatever comes up, and whoever flushes is told of it.
        """
        try:
            database = self._connect() if database is None else database
            _keep(database, told)
        except Exception as error:  # noqa: BLE001 - the thread serves every other session, too
            for recording, line in told:
                _fail(recording, line, error)
        return database

    def _let_go(self) -> None:
        with self._starting:
            self._closing = True
            self._end.set()
            with suppress(Empty):
                while True:
                    item = self._queue.get_nowait()
                    if isinstance(item, Signal):
                        item.set()

    def _taken(self) -> "tuple[dict[tuple[Recording, _Line], int], list[Signal]]":
        """Everything that is queued now, or the next thing if nothing is."""
        told: dict[tuple[Recording, _Line], int] = {}
        signals: list[Signal] = []
        while len(told) + len(signals) < MOST_AT_ONCE:
            try:
                item = self._queue.get(block=not told and not signals)
            except Empty:
                break
            if isinstance(item, Signal):
                signals.append(item)
            else:
                told[item[0], item[1]] = item[2]
        return told, signals


def _keep(database: Database, told: "dict[tuple[Recording, _Line], int]") -> None:
    """Commit what was told; where that fails as one, session by session."""
    lines = sorted(told.items(), key=lambda item: item[0][1].opened.session)
    alive = [
        (who, line, upto)
        for (who, line), upto in lines
        if line.failure is None and upto > line.written
    ]
    try:
        _commit(database, alive)
    except SPOILT:
        for one in alive:
            try:
                _commit(database, [one])
            except SPOILT as error:
                _fail(one[0], one[1], error)


def _commit(database: Database, told: "Sequence[tuple[Recording, _Line, int]]") -> None:
    """Write the next pieces of several sessions in one transaction.

    They come in the order of their names, in which every writer locks them. Every row is made
    before the transaction: while it lasts, other writers wait.
    """
    pieces = [(who, line, upto, _Ready(line.piece(upto))) for who, line, upto in told]
    ending = _counted([ready for *_, ready in pieces])
    rows = _rows(ending)
    refused: list[tuple[Recording, _Line, HistoryError]] = []
    with database.transaction():
        ended = []
        for who, line, _, ready in pieces:
            fresh = admit(database, ready.piece)
            if isinstance(fresh, HistoryError):
                refused.append((who, line, fresh))
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
    for who, line, error in refused:
        _fail(who, line, error)
    for _, line, upto, _ in pieces:
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


def _fail(recording: Recording, line: _Line, error: Exception) -> None:
    session = line.opened.session
    if not isinstance(error, HistoryError):
        problem = f"could not keep the session {session}: {str(error) or type(error).__name__}"
        error = HistoryError("the history", problem, "see what it says, and try again")
    line.failure = error
    recording.fail(session, error)
