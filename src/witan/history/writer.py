"""Recordings of running sessions, and the thread that commits them.

The event loop never waits for the disk. Events that come while one commit is under way go into the
next, so that many sessions share the price of one. While another process locks the history, events
stay queued and are tried again, as long as nobody waits for them: whoever does decides when they
are given up.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, Protocol, Self

import anyio
import anyio.lowlevel

from witan.deliberation.events import (
    AnswerDelta,
    Event,
    SessionClosed,
    SessionOpened,
    SynthesisDelta,
)
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.history.counting import SessionRows, count_sessions
from witan.history.database import Database
from witan.history.events import EventBatch, admit_events, event_rows, insert_events
from witan.history.locks import (
    OPENING_SECONDS,
    LockWait,
    is_transient,
    mark_recording,
    new_holder,
    unmark_recording,
)
from witan.history.rows import Rows, close_session

ATTEMPT_SECONDS = 2.0
"""How long one attempt waits for another process; what is told meanwhile joins the next."""

MOST_AT_ONCE = 1_000
"""Most sessions of one commit."""

SPOILT = (WitanError, ValueError, ArithmeticError)
"""What one session with a text, a time or a number that no row holds may raise for all of them."""


class Recorder(Protocol):
    """Whoever tells of sessions."""

    def fail(self, session: str, error: Exception) -> None:
        """Note why what was told of a session is not kept."""
        ...


class SessionQueue:
    """One session as its owner tells it.

    Parameters
    ----------
    token
        What the owner holds the session by.
    """

    def __init__(self, opened: SessionOpened, token: str, owner: Recorder) -> None:
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

    def piece(self, upto: int) -> EventBatch:
        """What was told and is not written yet."""
        told = self.events[:upto]
        ended = isinstance(told[-1], SessionClosed)
        closing = Session.of(told) if ended else None
        return EventBatch(self.opened, self.token, tuple(told[self.written :]), closing)

    def fail(self, error: Exception) -> None:
        """Keep nothing more of it."""
        session = self.opened.session
        if not isinstance(error, HistoryError):
            problem = f"could not keep the session {session}: {str(error) or type(error).__name__}"
            error = HistoryError("the history", problem, "see what it says, and try again")
        self.failure = error
        self.owner.fail(session, error)


Pending = dict[SessionQueue, int]
"""Lines, each with how many of its events were told."""


def commit_pending(database: Database, told: Pending) -> None:
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


def _keep_each(database: Database, alive: Sequence[tuple[SessionQueue, int]]) -> None:
    for line, upto in alive:
        try:
            _commit(database, [(line, upto)])
        except SPOILT as error:
            _raise_if_it_may_pass(error)
            line.fail(error)


def _raise_if_it_may_pass(error: Exception) -> None:
    if isinstance(error, HistoryError) and is_transient(error):
        raise error


def _commit(database: Database, told: Sequence[tuple[SessionQueue, int]]) -> None:
    """Write the next pieces of several sessions in one transaction.

    They come in the order of their names, in which every writer locks them. Every row is made
    before the transaction: while it lasts, other writers wait.
    """
    pieces = [(line, upto, _Ready(line.piece(upto))) for line, upto in told]
    ending = _counted([ready for *_, ready in pieces])
    rows = _rows(ending)
    refused: list[tuple[SessionQueue, HistoryError]] = []
    with database.transaction(wait=ATTEMPT_SECONDS):
        ended = []
        for line, _, ready in pieces:
            fresh = admit_events(database, ready.piece)
            if isinstance(fresh, HistoryError):
                refused.append((line, fresh))
                continue
            insert_events(database, ready.events[len(ready.events) - len(fresh) :])
            if fresh and ready.left is not None:
                close_session(database, ready.settled)
                ended.append(ready)
        if len(ended) < len(ending):
            rows = _rows(ended)
        rows.write(database)
    for line, error in refused:
        line.fail(error)
    for line, upto, _ in pieces:
        line.written = upto


class _Ready:
    """The next piece of a session, and what it leaves where it ends the session."""

    def __init__(self, piece: EventBatch) -> None:
        self.piece = piece
        self.events = event_rows(piece.session, piece.events)
        self.left: SessionRows | None = None
        self.settled: Mapping[str, Any] = {}


def _counted(pieces: Sequence[_Ready]) -> list[_Ready]:
    """Those that end a session, with what it leaves."""
    closing = [(ready, held) for ready in pieces if (held := ready.piece.closing) is not None]
    for (ready, _), left in zip(
        closing, count_sessions([held for _, held in closing]), strict=True
    ):
        ready.left, ready.settled = left, left.row.closing_values()
    return [ready for ready, _ in closing]


def _rows(ended: Sequence[_Ready]) -> Rows:
    """What sessions leave beside their own rows."""
    rows = Rows()
    for ready in ended:
        if ready.left is not None:
            ready.left.add_to(rows)
    return rows


LOOK_SECONDS = 0.1
"""How often it is looked whether a lock is still what is waited for."""

MOST_TAKEN = 10_000
"""Things from the queue before what they tell is committed."""


class _Notice(Signal):
    """A signal that calls something when it is set."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def set(self) -> None:
        """Call it."""
        super().set()
        self._call()


class _GivenUp:
    """What an owner told waits no longer."""

    def __init__(self, owner: Recorder, error: HistoryError) -> None:
        self.owner, self.error = owner, error
        self.done = Signal()


class Writer:
    """Commits what recordings are told.

    Parameters
    ----------
    connect
        Opens a connection whose statements wait so many seconds for other processes.
    where
        What errors call the history.
    """

    def __init__(self, connect: Callable[[float], Database], where: str) -> None:
        self.where = where
        self._connect = connect
        self._queue: SimpleQueue[tuple[SessionQueue, int] | Signal | _GivenUp] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._closing = False
        self._closed_by = math.inf
        self._end = Signal()
        self._blocked: HistoryError | None = None

    def tell(self, line: SessionQueue, upto: int) -> None:
        """Queue the events of a line up to this one."""
        with self._starting:
            if self._closing:
                problem = "is closed, and keeps nothing more"
                raise HistoryError("the history", problem, "open it for as long as sessions run")
            if self._thread is None:
                self._thread = Thread(target=self._run, name="witan-history", daemon=True)
                self._thread.start()
            self._queue.put((line, upto))

    def when_dealt_with(self, call: Callable[[], None]) -> None:
        """Have the thread call something once what is queued now was dealt with."""
        with self._starting:
            if not self._closing:
                self._queue.put(_Notice(call))
                return
        call()

    def drain(self, wait: float) -> None:
        """Wait until what is queued now was dealt with.

        Raises
        ------
        HistoryError
            If another process has kept it locked for so many seconds.
        """
        if self._thread is None:
            return
        done = self._queued(Signal())
        there = done.wait(wait)
        while not there:
            if (held := self._blocked) is not None:
                raise HistoryError(held.where, held.problem, held.remedy) from held.__cause__
            there = done.wait(LOOK_SECONDS)

    def give_up(self, owner: Recorder, error: HistoryError) -> None:
        """Wait until nothing more that this owner told will be written: it failed, or is kept."""
        given_up = _GivenUp(owner, error)
        self._queued(given_up.done, given_up).wait()

    def close(self) -> None:
        """Deal with what is queued, and end the thread; a lock is waited for as by an opening."""
        with self._starting:
            if not self._closing and self._thread is not None:
                self._closed_by = time.monotonic() + OPENING_SECONDS
                self._queue.put(self._end)
            self._closing = True
        if self._thread is not None:
            self._thread.join()

    def _queued(self, done: Signal, item: _GivenUp | None = None) -> Signal:
        """Queue a signal, or what answers by one; what to wait for."""
        with self._starting:
            if self._closing:
                # Behind the end nothing is queued: whoever comes then waits for the end.
                return self._end
            self._queue.put(done if item is None else item)
            return done

    def _run(self) -> None:
        database: Database | None = None
        told: Pending = {}
        waiting: list[Signal] = []
        try:
            while True:
                given_up = self._taken(told, waiting)
                if self._blocked is not None:  # else what is given up would be tried once more
                    self._let_down(told, given_up)
                database = self._kept(database, told)
                self._let_down(told, given_up)
                if told:
                    continue
                if self._end in waiting:
                    return
                for signal in waiting:
                    signal.set()
                waiting.clear()
        finally:
            # Whatever ended the thread, nobody waits for it for ever.
            self._disconnect(waiting)
            if database is not None:
                database.close()

    def _taken(self, told: Pending, waiting: list[Signal]) -> list[_GivenUp]:
        """Take what is queued now, or the next thing if there is nothing to do."""
        given_up: list[_GivenUp] = []
        wait = LOOK_SECONDS if told else None
        with suppress(Empty):
            for _ in range(MOST_TAKEN):
                item = self._queue.get(timeout=wait)
                wait = 0
                if isinstance(item, tuple):
                    told[item[0]] = item[1]
                elif isinstance(item, Signal):
                    waiting.append(item)
                else:
                    given_up.append(item)
        return given_up

    def _kept(self, database: Database | None, told: Pending) -> Database | None:
        """Commit what was told, on this connection or a new one; the connection, if there is one.

        What another process is in the way of stays. The thread lives on whatever comes up, and
        whoever flushes is told of it.
        """
        try:
            if told:
                database = self._connect(ATTEMPT_SECONDS) if database is None else database
                commit_pending(database, told)
        except Exception as error:  # noqa: BLE001 - the thread serves every other session, too
            if isinstance(error, HistoryError) and is_transient(error):
                self._blocked = error
                return database
            for line, upto in told.items():
                if line.written < upto:
                    line.fail(error)
        self._blocked = None
        told.clear()
        return database

    def _let_down(self, told: Pending, given_up: Sequence[_GivenUp]) -> None:
        """Give up what nobody waits for any longer."""
        for one in given_up:
            for line in [line for line in told if line.owner is one.owner]:
                del told[line]
                line.fail(one.error)
            one.done.set()
        if self._blocked is not None and time.monotonic() >= self._closed_by:
            for line in told:
                line.fail(self._blocked)
            told.clear()

    def _disconnect(self, waiting: Sequence[Signal]) -> None:
        with self._starting:
            self._closing = True
            self._end.set()
            for signal in waiting:
                signal.set()
            with suppress(Empty):
                while True:
                    item = self._queue.get_nowait()
                    if isinstance(item, Signal):
                        item.set()
                    elif isinstance(item, _GivenUp):
                        item.done.set()


GLANCE_SECONDS = 0.2
"""How long a commit is waited for at least, also once patience is at its end."""


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

    def __init__(self, writer: Writer, claim: Callable[[str], str | None]) -> None:
        self._writer = writer
        self._claim = claim
        self._line: SessionQueue | None = None
        self._over = True
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
        self.append(event)
        self._queue()

    def append(self, event: Event) -> None:
        """Take an event in, deltas aside; the next commit or flush queues it with the others."""
        if isinstance(event, AnswerDelta | SynthesisDelta):
            return
        if isinstance(event, SessionOpened):
            while self._raised:  # another thread may be adding to it
                self._failures.pop(self._raised.pop(), None)
            self._queue()
            claimed = self._claim(event.session)
            self._line = SessionQueue(event, new_holder() if claimed is None else claimed, self)
            self._over = False
        if self._line is None or self._over:
            problem = "was told of a session whose opening it was not told of"
            raise HistoryError("the recording", problem, "tell it the session from its beginning")
        self._line.events.append(event)
        self._over = isinstance(event, SessionClosed)
        (unmark_recording if self._over else mark_recording)(self._line.token)

    async def commit(self, lock_wait: LockWait) -> int:
        """Wait until everything taken in so far is durable, or failed, as long as `lock_wait` has.

        What another process is in the way of may still be kept later.

        Returns
        -------
        int
            The number of the last event of the session that is durable; 0: none is.
        """
        if self._queue() and self._line is not None:
            done = anyio.Event()
            soon = _caller_of_this_loop()
            self._writer.when_dealt_with(lambda: soon(done.set))
            began = time.monotonic()
            with anyio.move_on_after(max(lock_wait.left, GLANCE_SECONDS)):
                await done.wait()
            lock_wait.deduct(time.monotonic() - began)
        return 0 if self._line is None else self._line.durable

    def _queue(self) -> bool:
        """Hand the writer what it was not handed yet; return true if some is not durable."""
        line = self._line
        if line is None or line.failure is not None:
            return False
        if line.queued < len(line.events):
            self._writer.tell(line, len(line.events))
            line.queued = len(line.events)
        return line.written < len(line.events)

    def flush(self, lock_wait: LockWait | None = None) -> None:
        """Wait until everything told so far is durable.

        Parameters
        ----------
        patience
            How long to wait for another process that keeps the history locked, after which what was
            told is given up, and who is told of it; None: as long as any opening, nobody.

        Raises
        ------
        HistoryError
            If some of it is not kept.
        """
        lock_wait = LockWait() if lock_wait is None else lock_wait
        self._queue()
        if self._line is not None:
            unmark_recording(self._line.token)  # it has ended, or is broken off
        try:
            lock_wait.run(self._writer.where, self._writer.drain)
        except HistoryError as error:
            if not is_transient(error):
                raise
            self._writer.give_up(self, error)
        if self._over:
            self._line = None  # it holds all that was said, and this recording
        failures = [*self._failures.items()]
        if failures:
            session, failure = failures[0]
            self._raised.add(session)
            raise failure

    def fail(self, session: str, error: Exception) -> None:
        """Note why what was told of a session is not kept."""
        self._failures.setdefault(session, error)


def _caller_of_this_loop() -> Callable[[Callable[[], object]], None]:
    """Make a function by which a thread has this event loop call something, without a wait."""
    loop: Any = anyio.lowlevel.current_token().native_token
    call = loop.run_sync_soon if hasattr(loop, "run_sync_soon") else loop.call_soon_threadsafe

    def soon(what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
            call(what)

    return soon
