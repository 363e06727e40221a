"""Recordings of running sessions, and the thread that commits them.

The event loop never waits for the disk. Events that arrive during a commit go into the next one, so
that many sessions share the cost of one commit. While another process locks the history, events
stay queued and are tried again until a waiting caller's time limit drops them.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Lock, Thread
from typing import Any, Self

import anyio
import anyio.lowlevel

from witan.core.counting import CountColumn
from witan.core.tally import find_count
from witan.deliberation.events import DELTAS, Event, OutcomeChanged, SessionClosed, SessionOpened
from witan.deliberation.record import event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.history.counting import SessionRows, count_sessions, count_waiting_votes
from witan.history.database import (
    LOCK_SECONDS,
    Database,
    LockWait,
    blocks,
    is_recording,
    is_transient,
    mark_recording,
    new_holder,
    unmark_recording,
)
from witan.history.rows import (
    EventBatch,
    EventRow,
    Rows,
    admit_events,
    close_session,
    insert_events,
    to_microseconds,
)

ATTEMPT_SECONDS = 2.0
"""Lock timeout of one attempt in seconds; later events join the next attempt."""

MAX_SESSIONS_PER_COMMIT = 32
"""Maximum number of sessions per commit."""

MAX_COUNTS = 8
"""Most sessions of a commit whose counts are kept for their ends.

Ballots of more sessions are read together, which takes less, and their counts take memory.
"""

UNSTORABLE = (WitanError, ValueError, ArithmeticError)
"""Errors of a session with values that cannot be stored."""


class SessionQueue:
    """The queued events of one session.

    `is_certain`: exactly `n_written` events are stored. False after a failed commit, which may have
    stored its events nevertheless.
    """

    def __init__(self, opening: SessionOpened, holder: str, recording: "Recording") -> None:
        self.opening = opening
        self.holder = holder
        self.recording = recording
        self.events: list[Event] = []
        self.count: CountColumn | None = None
        self.n_queued = 0
        self.n_written = 0
        self.is_certain = False
        self.failure: Exception | None = None

    @property
    def durable(self) -> int:
        """The number of the last durable event; 0 if none."""
        n_written = self.n_written if self.failure is None else 0
        return self.events[n_written - 1].seq if n_written else 0

    @property
    def is_pending(self) -> bool:
        """True if some events are neither stored nor failed."""
        return self.failure is None and self.n_written < len(self.events)

    def batch(self, n_queued: int) -> EventBatch:
        """Return the queued, pending events."""
        events = tuple(self.events[self.n_written : n_queued])
        for event in events:
            if isinstance(event, OutcomeChanged):
                self.count = find_count(event.outcome)  # dropped once it is stored
        is_closing = isinstance(events[-1], SessionClosed)
        return EventBatch(
            self.opening,
            self.holder,
            events,
            closing=Session.of(self.events[:n_queued]) if is_closing else None,
            is_continued=self.is_certain,
        )

    def fail(self, error: Exception) -> None:
        """Store no more events of the session."""
        session = self.opening.session
        if not isinstance(error, HistoryError):
            problem = f"could not store the session {session}: {str(error) or type(error).__name__}"
            error = HistoryError("the history", problem, "check the cause, then try again")
        self.failure = error
        self.recording.fail(session, error)


PendingQueues = dict[SessionQueue, int]
"""Queue of a session → number of events to commit."""


def commit_pending(database: Database, pending: PendingQueues) -> None:
    """Commit pending events in one transaction; on failure retry each session alone."""
    in_order = sorted(pending.items(), key=lambda item: item[0].opening.session)
    for block in blocks(in_order, MAX_SESSIONS_PER_COMMIT):
        pending_batches = [
            (queue, n_queued)
            for queue, n_queued in block
            if queue.failure is None and n_queued > queue.n_written
        ]
        try:
            _commit(database, pending_batches)
        except UNSTORABLE as error:
            _raise_if_transient(error)
            _commit_each(database, pending_batches)


def _commit_each(database: Database, pending: Sequence[tuple[SessionQueue, int]]) -> None:
    for queue, n_queued in pending:
        try:
            _commit(database, [(queue, n_queued)])
        except UNSTORABLE as error:
            _raise_if_transient(error)
            queue.fail(error)


def _raise_if_transient(error: Exception) -> None:
    if isinstance(error, HistoryError) and is_transient(error):
        raise error


def _commit(database: Database, pending: Sequence[tuple[SessionQueue, int]]) -> None:
    """Write the next events of several sessions in one transaction.

    Sessions are sorted by name, the order in which every writer locks them. All rows are prepared
    before the transaction, because other writers wait for its end.
    """
    writes = [(queue, n_queued, _Write(queue.batch(n_queued))) for queue, n_queued in pending]
    counts = {queue.opening.session: queue.count for queue, *_ in writes if queue.count is not None}
    closing = _count([write for *_, write in writes], counts)
    rows = _rows(closing) if closing else None
    refusals: list[tuple[SessionQueue, HistoryError]] = []
    for queue, *_ in writes:
        queue.is_certain = False
    with database.transaction(wait=ATTEMPT_SECONDS):
        closed_sessions, has_votes = [], False
        for queue, _, write in writes:
            new = admit_events(database, write.batch)
            if isinstance(new, HistoryError):
                refusals.append((queue, new))
                continue
            insert_events(database, write.events[len(write.events) - len(new) :])
            if new and write.count is not None:
                has_votes |= write.add_votes(database)
                close_session(database, write.closing_values)
                closed_sessions.append(write)
        if has_votes or len(closed_sessions) < len(closing):
            rows = _rows(closed_sessions)
        if rows is not None:
            rows.write(database)
    for queue, error in refusals:
        queue.fail(error)
    for queue, n_queued, _ in writes:
        queue.n_written, queue.is_certain = n_queued, True
        if len(writes) > MAX_COUNTS:
            queue.count = None


def event_rows(session: str, events: Sequence[Event]) -> list[EventRow]:
    """Make the rows of a session's events."""
    return [(session, e.seq, e.kind, to_microseconds(e.at), event_to_json(e)) for e in events]


class _Write:
    """The next events of a session as rows, with its final count."""

    def __init__(self, batch: EventBatch) -> None:
        self.batch = batch
        self.events = event_rows(batch.session, batch.events)
        self.count: SessionRows | None = None
        self.closing_values: Mapping[str, Any] = {}

    def add_votes(self, database: Database) -> bool:
        """Count the session with waiting votes; return true if there are any."""
        session = self.batch.closing
        count = None if session is None else count_waiting_votes(database, session)
        if count is None:
            return False
        self.count, self.closing_values = count, count.row.closing_values()
        return True


def _count(writes: Sequence[_Write], counts: Mapping[str, CountColumn]) -> list[_Write]:
    """Count the closing sessions; return their writes."""
    closing = [(write, one) for write in writes if (one := write.batch.closing) is not None]
    if not closing:
        return []
    session_rows = count_sessions([session for _, session in closing], counts)
    for (write, _), count in zip(closing, session_rows, strict=True):
        write.count, write.closing_values = count, count.row.closing_values()
    return [write for write, _ in closing]


def _rows(writes: Sequence[_Write]) -> Rows:
    """Collect the counted rows of closed sessions."""
    rows = Rows()
    for write in writes:
        if write.count is not None:
            write.count.add_to(rows)
    return rows


LOCK_CHECK_SECONDS = 0.1
"""Seconds between two attempts to get a lock."""

GATHER_SECONDS = 0.004
"""Seconds within which events of several sessions are committed together."""

MAX_BATCH_ITEMS = 10_000
"""Maximum number of queue items per commit."""


@dataclass(frozen=True, slots=True, eq=False)
class Notice:
    """A signal that calls a function on an event loop when set.

    `loop`: as asyncio or Trio has it.
    """

    loop: Any
    call: Callable[[], object]

    def set(self) -> None:
        """Call the function."""
        _call_soon(self.loop, [self.call])


def _set_all(signals: Iterable[Signal | Notice]) -> None:
    """Set signals, and wake each event loop once."""
    calls_by_loop: dict[Any, list[Callable[[], object]]] = {}
    for signal in signals:
        if isinstance(signal, Notice):
            calls_by_loop.setdefault(signal.loop, []).append(signal.call)
        else:
            signal.set()
    for loop, calls in calls_by_loop.items():
        _call_soon(loop, calls)


def _call_soon(loop: Any, calls: Sequence[Callable[[], object]]) -> None:
    def call_all() -> None:
        for call in calls:
            call()

    schedule = loop.run_sync_soon if hasattr(loop, "run_sync_soon") else loop.call_soon_threadsafe
    with suppress(RuntimeError):  # the loop is closed: no caller is waiting
        schedule(call_all)


class _Dismissal:
    """A request to drop the pending events of a recording."""

    def __init__(self, recording: "Recording", error: HistoryError) -> None:
        self.recording, self.error = recording, error
        self.complete = Signal()


_Events = tuple[SessionQueue, int, Notice | None]
"""A session, how many of its events to commit, and whom to tell."""


class Writer:
    """The thread that commits queued events, on its own connection.

    `connect`: opens a connection with a lock timeout in seconds.
    """

    def __init__(self, connect: Callable[[float], Database], location: str) -> None:
        self.location = location
        self._connect = connect
        self._queue: SimpleQueue[_Events | Signal | _Dismissal] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._is_closing = False
        self._closed_by = math.inf
        self._end = Signal()
        self._holders: set[str] = set()
        self._latest: SessionQueue | None = None
        self._next_beat: float | None = None
        self._block_error: HistoryError | None = None

    def enqueue(self, queue: SessionQueue, notice: Notice | None = None) -> None:
        """Queue a session's events for the next commit; then set a notice."""
        with self._starting:
            if self._is_closing and queue.n_queued == len(queue.events) and notice is not None:
                notice.set()  # the thread writes its queue and ends
                return
            if self._is_closing:
                problem = "is closed and accepts no more events"
                raise HistoryError("the history", problem, "keep it open while sessions run")
            if self._thread is None:
                self._thread = Thread(target=self._run, name="witan-history", daemon=True)
                self._thread.start()
            queue.n_queued = len(queue.events)
            self._queue.put((queue, queue.n_queued, notice))

    def begin_session(self, holder: str) -> None:
        """Send this process's heartbeat until the session ends or the writer closes."""
        if holder in self._holders:
            return
        with self._starting:
            if not self._is_closing:
                self._holders.add(holder)
                mark_recording(holder)

    def end_session(self, holder: str) -> None:
        """Stop this process's heartbeat if it was for this session only."""
        self._holders.discard(holder)
        unmark_recording(holder)

    def drain(self, wait: float) -> None:
        """Wait until the current queue is processed."""
        if self._thread is None:
            return
        signal = self._enqueue_signal(Signal())
        is_done = signal.wait(wait)
        while not is_done:
            if (error := self._block_error) is not None:
                raise type(error)(error.location, error.problem, error.remedy) from error.__cause__
            is_done = signal.wait(LOCK_CHECK_SECONDS)

    def dismiss(self, recording: "Recording", error: HistoryError) -> None:
        """Drop a recording's pending events; return when none is being written."""
        dismissal = _Dismissal(recording, error)
        self._enqueue_signal(dismissal.complete, dismissal).wait()

    def close(self) -> None:
        """Process the queue and end the thread, within `LOCK_SECONDS`."""
        with self._starting:
            if not self._is_closing and self._thread is not None:
                self._closed_by = time.monotonic() + LOCK_SECONDS
                self._queue.put(self._end)
            self._is_closing = True
            for holder in [*self._holders]:
                self.end_session(holder)
        if self._thread is not None:
            self._thread.join()

    def _enqueue_signal(self, signal: Signal, item: _Dismissal | None = None) -> Signal:
        """Queue a signal or its item; return the signal to wait for."""
        with self._starting:
            if self._is_closing:
                # Nothing is queued after the end, so wait for it.
                return self._end
            self._queue.put(signal if item is None else item)
            return signal

    def _run(self) -> None:
        database: Database | None = None
        pending: PendingQueues = {}
        signals: list[Signal | Notice] = []
        try:
            while True:
                dismissals = self._take(pending, signals)
                if self._block_error is not None:  # otherwise dismissed events would be tried again
                    self._drop(pending, dismissals)
                database = self._write(database, pending)
                self._drop(pending, dismissals)
                if pending:
                    continue
                if self._end in signals:
                    return
                _set_all(signals)
                signals.clear()
        finally:
            # Whatever ended the thread, no caller waits for it forever.
            self._release(signals)
            if database is not None:
                with suppress(HistoryError):
                    database.end_beats()
                database.close()

    def _take(self, pending: PendingQueues, signals: list[Signal | Notice]) -> list[_Dismissal]:
        """Take all items of the queue, or wait for the next one."""
        dismissals: list[_Dismissal] = []
        wait = LOCK_CHECK_SECONDS if pending else self._next_beat
        is_idle = not pending
        for _ in range(MAX_BATCH_ITEMS):
            try:
                item = self._queue.get(timeout=wait)
            except Empty:
                break
            if isinstance(item, tuple):
                queue, n_queued, notice = item
                pending[queue] = n_queued
                if notice is not None:
                    signals.append(notice)
                if is_idle:
                    self._gather(queue)
            elif isinstance(item, Signal):
                signals.append(item)
            else:
                dismissals.append(item)
            wait, is_idle = 0, False
            if self._queue.empty():  # faster than catching an exception
                break
        return dismissals

    def _gather(self, queue: SessionQueue) -> None:
        """Wait a moment for events of other running sessions, if any."""
        latest, self._latest = self._latest, queue
        if latest not in (None, queue) and self._holders.difference((queue.holder,)):
            time.sleep(GATHER_SECONDS)

    def _write(self, database: Database | None, pending: PendingQueues) -> Database | None:
        """Send a heartbeat, commit pending events, and return the connection.

        Events blocked by another process's lock stay pending. The thread survives any error; the
        next flush raises it.
        """
        try:
            if pending and database is None:
                database = self._connect(ATTEMPT_SECONDS)
            self._beat(database)
            if database is not None:
                commit_pending(database, pending)
        except Exception as error:  # noqa: BLE001 - the thread serves every other session, too
            if isinstance(error, HistoryError) and is_transient(error):
                self._block_error = error
                return database
            for queue, n_queued in pending.items():
                if queue.n_written < n_queued:
                    queue.fail(error)
        self._block_error = None
        pending.clear()
        return database

    def _beat(self, database: Database | None) -> None:
        """Send heartbeats while sessions are recorded; retry a failed one soon."""
        self._next_beat = None
        if database is not None and is_recording():
            try:
                self._next_beat = database.beat()
            except HistoryError:
                self._next_beat = LOCK_CHECK_SECONDS

    def _drop(self, pending: PendingQueues, dismissals: Sequence[_Dismissal]) -> None:
        """Fail pending events of dismissed recordings; at the end, all events."""
        for dismissal in dismissals:
            for queue in [queue for queue in pending if queue.recording is dismissal.recording]:
                del pending[queue]
                queue.fail(dismissal.error)
            dismissal.complete.set()
        if self._block_error is not None and time.monotonic() >= self._closed_by:
            for queue in pending:
                queue.fail(self._block_error)
            pending.clear()

    def _release(self, signals: Sequence[Signal | Notice]) -> None:
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
                    elif (notice := item[2]) is not None:
                        notice.set()


MIN_COMMIT_SECONDS = 0.2
"""Shortest wait for a commit in seconds, even if the lock wait is used up."""


class Recording:
    """A listener that stores the events of successive sessions.

    Any number of recordings may be open at once; they share the history's writer.

    Parameters
    ----------
    claim
        Returns the holder of a claimed session, else None.
    """

    def __init__(self, writer: Writer, claim: Callable[[str], str | None]) -> None:
        self._writer = writer
        self._claim = claim
        self._session: SessionQueue | None = None
        self._is_closed = True
        self._n_sessions = 0
        self._failures: dict[str, Exception] = {}
        self._reported_sessions: set[str] = set()

    @property
    def failure(self) -> Exception | None:
        """The first error; later events of its session are not stored.

        After a flush has raised it, the opening of another session clears it.
        """
        return next(iter([*self._failures.values()]), None)

    @property
    def events(self) -> Sequence[Event]:
        """The events of its session so far; empty once all are stored."""
        return () if self._session is None else tuple(self._session.events)

    @property
    def is_durable(self) -> bool:
        """True if all events are stored, so a flush returns immediately."""
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
        with suppress(HistoryError):  # the block's own error is more informative
            self.flush()

    def __call__(self, event: Event) -> None:
        """Queue an event, except deltas, for the next commit; return immediately."""
        self.append(event)
        self._queue()

    def append(self, event: Event) -> None:
        """Append an event, except deltas; the next commit or flush queues it."""
        if isinstance(event, DELTAS):
            return
        if isinstance(event, SessionOpened):
            while self._reported_sessions:  # another thread may be appending
                self._failures.pop(self._reported_sessions.pop(), None)
            self._queue()
            self.end_session()
            holder = self._claim(event.session)
            self._session = SessionQueue(event, new_holder() if holder is None else holder, self)
            self._is_closed = False
            self._n_sessions += 1
        if self._session is None or self._is_closed:
            problem = "received an event of a session before its opening"
            raise HistoryError(
                "the recording", problem, "pass it the session from its first event on"
            )
        self._session.events.append(event)
        self._is_closed = isinstance(event, SessionClosed)
        if not self._is_closed:
            self._writer.begin_session(self._session.holder)

    def end_session(self) -> None:
        """Let others continue the session, as it gets no more events."""
        if self._session is not None:
            self._writer.end_session(self._session.holder)

    async def commit(self, lock_wait: LockWait) -> int:
        """Wait until all appended events are durable or failed, within `lock_wait`.

        Return the number of the session's last durable event; 0 if none. Events blocked by another
        process's lock may still be stored later.
        """
        queue = self._session
        if queue is not None and queue.is_pending:
            event = anyio.Event()
            loop = anyio.lowlevel.current_token().native_token
            self._writer.enqueue(queue, Notice(loop, event.set))
            start = time.monotonic()
            with anyio.move_on_after(max(lock_wait.remaining, MIN_COMMIT_SECONDS)):
                await event.wait()
            lock_wait.deduct(time.monotonic() - start)
        return 0 if self._session is None else self._session.durable

    def _queue(self) -> None:
        """Pass new events to the writer."""
        queue = self._session
        if queue is not None and queue.is_pending and queue.n_queued < len(queue.events):
            self._writer.enqueue(queue)

    def flush(self, lock_wait: LockWait | None = None) -> None:
        """Wait until all appended events are durable, or raise `HistoryError`.

        `lock_wait`: limit of the wait for another process that locks the history; then the events
        are dropped. By default as long as an opening, without a message.
        """
        if self.is_durable:
            self.end_session()
            self._session = None  # it references every event and this recording
            return
        lock_wait = LockWait() if lock_wait is None else lock_wait
        self._queue()
        try:
            lock_wait.run(self._writer.location, self._writer.drain)
        except HistoryError as error:
            if not is_transient(error):
                raise
            self._writer.dismiss(self, error)
        finally:
            self.end_session()  # it is closed or interrupted
        if self._is_closed:
            self._session = None
        failures = [*self._failures.items()]
        if failures:
            session, failure = failures[0]
            self._reported_sessions.add(session)
            raise failure

    def fail(self, session: str, error: Exception) -> None:
        """Record why later events of a session are not stored."""
        self._failures.setdefault(session, error)
