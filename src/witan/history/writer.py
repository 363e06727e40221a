"""Recordings of running sessions, and their committing thread.

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
from witan.history.database import (
    OPENING_SECONDS,
    Database,
    LockWait,
    blocks,
    is_transient,
    mark_recording,
    new_holder,
    unmark_recording,
)
from witan.history.rows import (
    EventBatch,
    Rows,
    admit_events,
    close_session,
    event_rows,
    insert_events,
)

ATTEMPT_SECONDS = 2.0
"""Seconds that one attempt waits for a lock; events that come meanwhile join the next."""

MOST_AT_ONCE = 1_000
"""Most sessions of one commit."""

UNSTORABLE = (WitanError, ValueError, ArithmeticError)
"""Errors of a session with a text, a time or a number that no row can store."""


class EventRecorder(Protocol):
    """The listener queueing a session's events."""

    def fail(self, session: str, error: Exception) -> None:
        """Note why later events of a session are not stored."""
        ...


class SessionQueue:
    """The events of one session, as its recorder queues them.

    Parameters
    ----------
    holder
        The token of the recorder.
    """

    def __init__(self, opening: SessionOpened, holder: str, recorder: EventRecorder) -> None:
        self.opening = opening
        self.holder = holder
        self.recorder = recorder
        self.events: list[Event] = []
        self.n_queued = 0
        self.n_written = 0
        self.failure: Exception | None = None

    @property
    def durable(self) -> int:
        """The number of the last durable event; 0: none."""
        written = self.n_written if self.failure is None else 0
        return self.events[written - 1].seq if written else 0

    def batch(self, upto: int) -> EventBatch:
        """Return the queued, unwritten events."""
        events = self.events[:upto]
        closing = Session.of(events) if isinstance(events[-1], SessionClosed) else None
        return EventBatch(self.opening, self.holder, tuple(events[self.n_written :]), closing)

    def fail(self, error: Exception) -> None:
        """Store no more events of the session."""
        session = self.opening.session
        if not isinstance(error, HistoryError):
            problem = f"could not keep the session {session}: {str(error) or type(error).__name__}"
            error = HistoryError("the history", problem, "see what it says, and try again")
        self.failure = error
        self.recorder.fail(session, error)


Pending = dict[SessionQueue, int]
"""Sessions, each with the number of its queued events."""


def commit_pending(database: Database, pending: Pending) -> None:
    """Commit pending events in one transaction; on failure retry each session alone."""
    in_order = sorted(pending.items(), key=lambda item: item[0].opening.session)
    for block in blocks(in_order, MOST_AT_ONCE):
        unwritten = [
            (queue, upto)
            for queue, upto in block
            if queue.failure is None and upto > queue.n_written
        ]
        try:
            _commit(database, unwritten)
        except UNSTORABLE as error:
            _raise_if_transient(error)
            _commit_each(database, unwritten)


def _commit_each(database: Database, unwritten: Sequence[tuple[SessionQueue, int]]) -> None:
    for queue, upto in unwritten:
        try:
            _commit(database, [(queue, upto)])
        except UNSTORABLE as error:
            _raise_if_transient(error)
            queue.fail(error)


def _raise_if_transient(error: Exception) -> None:
    if isinstance(error, HistoryError) and is_transient(error):
        raise error


def _commit(database: Database, unwritten: Sequence[tuple[SessionQueue, int]]) -> None:
    """Write the next events of several sessions in one transaction.

    The sessions are in the order of their names, in which every writer locks them. All rows are
    made before the transaction, because other writers wait while it lasts.
    """
    writes = [(queue, upto, _Write(queue.batch(upto))) for queue, upto in unwritten]
    closing = _count([write for *_, write in writes])
    rows = _rows(closing)
    refusals: list[tuple[SessionQueue, HistoryError]] = []
    with database.transaction(wait=ATTEMPT_SECONDS):
        closed = []
        for queue, _, write in writes:
            new = admit_events(database, write.batch)
            if isinstance(new, HistoryError):
                refusals.append((queue, new))
                continue
            insert_events(database, write.events[len(write.events) - len(new) :])
            if new and write.count is not None:
                close_session(database, write.closing_values)
                closed.append(write)
        if len(closed) < len(closing):
            rows = _rows(closed)
        rows.write(database)
    for queue, error in refusals:
        queue.fail(error)
    for queue, upto, _ in writes:
        queue.n_written = upto


class _Write:
    """The next events of a session as rows, with its closing count."""

    def __init__(self, batch: EventBatch) -> None:
        self.batch = batch
        self.events = event_rows(batch.session, batch.events)
        self.count: SessionRows | None = None
        self.closing_values: Mapping[str, Any] = {}


def _count(writes: Sequence[_Write]) -> list[_Write]:
    """Count the closing sessions; return their writes."""
    closing = [(write, one) for write in writes if (one := write.batch.closing) is not None]
    counts = count_sessions([session for _, session in closing])
    for (write, _), count in zip(closing, counts, strict=True):
        write.count, write.closing_values = count, count.row.closing_values()
    return [write for write, _ in closing]


def _rows(writes: Sequence[_Write]) -> Rows:
    """Collect the counted rows of closed sessions."""
    rows = Rows()
    for write in writes:
        if write.count is not None:
            write.count.add_to(rows)
    return rows


LOOK_SECONDS = 0.1
"""Seconds between two checks of whether a lock is still in the way."""

MOST_TAKEN = 10_000
"""Most items taken from the queue before a commit."""


class _Notice(Signal):
    """A signal calling a function when set."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def set(self) -> None:
        """Set the signal and call the function."""
        super().set()
        self._call()


class _Dismissal:
    """A request to drop the pending events of a recorder."""

    def __init__(self, recorder: EventRecorder, error: HistoryError) -> None:
        self.recorder, self.error = recorder, error
        self.complete = Signal()


class Writer:
    """The thread committing queued events, on its own connection.

    Parameters
    ----------
    connect
        Opens a connection that waits so many seconds for locks.
    location
        The location in error messages.
    """

    def __init__(self, connect: Callable[[float], Database], location: str) -> None:
        self.location = location
        self._connect = connect
        self._queue: SimpleQueue[tuple[SessionQueue, int] | Signal | _Dismissal] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._is_closing = False
        self._closed_by = math.inf
        self._end = Signal()
        self._block_error: HistoryError | None = None

    def enqueue(self, queue: SessionQueue, upto: int) -> None:
        """Queue the first `upto` events of a session for the next commit."""
        with self._starting:
            if self._is_closing:
                problem = "is closed, and keeps nothing more"
                raise HistoryError("the history", problem, "open it for as long as sessions run")
            if self._thread is None:
                self._thread = Thread(target=self._run, name="witan-history", daemon=True)
                self._thread.start()
            self._queue.put((queue, upto))

    def notify(self, call: Callable[[], None]) -> None:
        """Have the thread call a function once everything queued now is processed."""
        with self._starting:
            if not self._is_closing:
                self._queue.put(_Notice(call))
                return
        call()

    def drain(self, wait: float) -> None:
        """Wait until everything queued now is processed."""
        if self._thread is None:
            return
        signal = self._enqueue_signal(Signal())
        is_done = signal.wait(wait)
        while not is_done:
            if (error := self._block_error) is not None:
                raise HistoryError(error.location, error.problem, error.remedy) from error.__cause__
            is_done = signal.wait(LOOK_SECONDS)

    def dismiss(self, recorder: EventRecorder, error: HistoryError) -> None:
        """Drop a recorder's pending events; return once no more are written."""
        dismissal = _Dismissal(recorder, error)
        self._enqueue_signal(dismissal.complete, dismissal).wait()

    def close(self) -> None:
        """Process the queue and end the thread, within `OPENING_SECONDS`."""
        with self._starting:
            if not self._is_closing and self._thread is not None:
                self._closed_by = time.monotonic() + OPENING_SECONDS
                self._queue.put(self._end)
            self._is_closing = True
        if self._thread is not None:
            self._thread.join()

    def _enqueue_signal(self, signal: Signal, item: _Dismissal | None = None) -> Signal:
        """Queue a signal or its item; return the signal to wait for."""
        with self._starting:
            if self._is_closing:
                # Nothing is queued after the end, so wait for that.
                return self._end
            self._queue.put(signal if item is None else item)
            return signal

    def _run(self) -> None:
        database: Database | None = None
        pending: Pending = {}
        signals: list[Signal] = []
        try:
            while True:
                dismissals = self._take(pending, signals)
                if self._block_error is not None:  # else dismissed events would be tried once more
                    self._drop(pending, dismissals)
                database = self._write(database, pending)
                self._drop(pending, dismissals)
                if pending:
                    continue
                if self._end in signals:
                    return
                for signal in signals:
                    signal.set()
                signals.clear()
        finally:
            # Whatever ended the thread, nobody waits for it for ever.
            self._release(signals)
            if database is not None:
                database.close()

    def _take(self, pending: Pending, signals: list[Signal]) -> list[_Dismissal]:
        """Take everything queued now, or wait for the next item."""
        dismissals: list[_Dismissal] = []
        wait = LOOK_SECONDS if pending else None
        with suppress(Empty):
            for _ in range(MOST_TAKEN):
                item = self._queue.get(timeout=wait)
                wait = 0
                if isinstance(item, tuple):
                    pending[item[0]] = item[1]
                elif isinstance(item, Signal):
                    signals.append(item)
                else:
                    dismissals.append(item)
        return dismissals

    def _write(self, database: Database | None, pending: Pending) -> Database | None:
        """Commit pending events, on a new connection if needed; return it.

        Events behind another process's lock stay pending. The thread survives any error, and
        whoever flushes gets it.
        """
        try:
            if pending:
                database = self._connect(ATTEMPT_SECONDS) if database is None else database
                commit_pending(database, pending)
        except Exception as error:  # noqa: BLE001 - the thread serves every other session, too
            if isinstance(error, HistoryError) and is_transient(error):
                self._block_error = error
                return database
            for queue, upto in pending.items():
                if queue.n_written < upto:
                    queue.fail(error)
        self._block_error = None
        pending.clear()
        return database

    def _drop(self, pending: Pending, dismissals: Sequence[_Dismissal]) -> None:
        """Fail pending events of dismissed recorders; after the end, all."""
        for dismissal in dismissals:
            for queue in [queue for queue in pending if queue.recorder is dismissal.recorder]:
                del pending[queue]
                queue.fail(dismissal.error)
            dismissal.complete.set()
        if self._block_error is not None and time.monotonic() >= self._closed_by:
            for queue in pending:
                queue.fail(self._block_error)
            pending.clear()

    def _release(self, signals: Sequence[Signal]) -> None:
        with self._starting:
            self._is_closing = True
            self._end.set()
            for signal in signals:
                signal.set()
            with suppress(Empty):
                while True:
                    item = self._queue.get_nowait()
                    if isinstance(item, Signal):
                        item.set()
                    elif isinstance(item, _Dismissal):
                        item.complete.set()


GLANCE_SECONDS = 0.2
"""Shortest wait for a commit, also when the lock wait is used up."""


class Recording:
    """A listener storing the events of successive sessions.

    Any number of recordings may be open at once; they share the history's writer.

    Parameters
    ----------
    claim
        Returns the holder of a session that was claimed, else None.

    Attributes
    ----------
    failure
        The first error; later events of its session are not stored. Once a flush has raised it, it
        is cleared when another session opens.
    """

    def __init__(self, writer: Writer, claim: Callable[[str], str | None]) -> None:
        self._writer = writer
        self._claim = claim
        self._session: SessionQueue | None = None
        self._is_closed = True
        self._n_sessions = 0
        self._failures: dict[str, Exception] = {}
        self._raised: set[str] = set()

    @property
    def failure(self) -> Exception | None:
        """The first error."""
        return next(iter([*self._failures.values()]), None)

    @property
    def is_durable(self) -> bool:
        """True if all events of its only session are stored: a flush waits for nothing."""
        queue = self._session
        if queue is None or self._n_sessions > 1 or not self._is_closed:
            return False
        return queue.failure is None and queue.n_written == len(queue.events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        if kind is None:
            self.flush()
            return
        with suppress(HistoryError):  # the block's own error says more
            self.flush()

    def __call__(self, event: Event) -> None:
        """Queue an event for the next commit, deltas aside; return at once."""
        self.append(event)
        self._queue()

    def append(self, event: Event) -> None:
        """Append an event, deltas aside; the next commit or flush queues it."""
        if isinstance(event, AnswerDelta | SynthesisDelta):
            return
        if isinstance(event, SessionOpened):
            while self._raised:  # another thread may be adding to it
                self._failures.pop(self._raised.pop(), None)
            self._queue()
            holder = self._claim(event.session)
            self._session = SessionQueue(event, new_holder() if holder is None else holder, self)
            self._is_closed = False
            self._n_sessions += 1
        if self._session is None or self._is_closed:
            problem = "got an event of a session without its opening"
            raise HistoryError("the recording", problem, "pass it the session from its first event")
        self._session.events.append(event)
        self._is_closed = isinstance(event, SessionClosed)
        (unmark_recording if self._is_closed else mark_recording)(self._session.holder)

    async def commit(self, lock_wait: LockWait) -> int:
        """Wait until all appended events are durable or failed, within `lock_wait`.

        Events behind another process's lock may still be stored later.

        Returns
        -------
        int
            The number of the session's last durable event; 0: none.
        """
        if self._queue() and self._session is not None:
            event = anyio.Event()
            call_soon = _loop_caller()
            self._writer.notify(lambda: call_soon(event.set))
            began = time.monotonic()
            with anyio.move_on_after(max(lock_wait.remaining, GLANCE_SECONDS)):
                await event.wait()
            lock_wait.deduct(time.monotonic() - began)
        return 0 if self._session is None else self._session.durable

    def _queue(self) -> bool:
        """Hand new events to the writer; true if some are not durable."""
        queue = self._session
        if queue is None or queue.failure is not None:
            return False
        if queue.n_queued < len(queue.events):
            self._writer.enqueue(queue, len(queue.events))
            queue.n_queued = len(queue.events)
        return queue.n_written < len(queue.events)

    def flush(self, lock_wait: LockWait | None = None) -> None:
        """Wait until all appended events are durable.

        Parameters
        ----------
        lock_wait
            Wait for another process that keeps the history locked, after which the events are
            dropped; None: as long as an opening, in silence.

        Raises
        ------
        HistoryError
            If some events are not stored.
        """
        if self.is_durable:
            self._session = None  # it refers to every event, and to this recording
            return
        lock_wait = LockWait() if lock_wait is None else lock_wait
        self._queue()
        if self._session is not None:
            unmark_recording(self._session.holder)  # it is closed, or interrupted
        try:
            lock_wait.run(self._writer.location, self._writer.drain)
        except HistoryError as error:
            if not is_transient(error):
                raise
            self._writer.dismiss(self, error)
        if self._is_closed:
            self._session = None
        failures = [*self._failures.items()]
        if failures:
            session, failure = failures[0]
            self._raised.add(session)
            raise failure

    def fail(self, session: str, error: Exception) -> None:
        """Note why later events of a session are not stored."""
        self._failures.setdefault(session, error)


def _loop_caller() -> Callable[[Callable[[], object]], None]:
    """Make a function to schedule calls on this loop from threads."""
    loop: Any = anyio.lowlevel.current_token().native_token
    call = loop.run_sync_soon if hasattr(loop, "run_sync_soon") else loop.call_soon_threadsafe

    def call_soon(function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
            call(function)

    return call_soon
