"""The thread that commits what recordings are told, and the connection that it does so on.

Where another process keeps the history locked, what was told is held and tried again, for as long
as nobody waits for it: whoever does decides when it is given up.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Lock, Thread

from witan.errors import HistoryError
from witan.history.committing import ATTEMPT_SECONDS, Line, Owner, Told, keep
from witan.history.database import Database
from witan.history.lock_wait import OPENING_SECONDS
from witan.history.sqlite import may_pass

__all__ = ["Writer"]

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

    def __init__(self, owner: Owner, error: HistoryError) -> None:
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
        self._queue: SimpleQueue[tuple[Line, int] | Signal | _GivenUp] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()
        self._closing = False
        self._closed_by = math.inf
        self._end = Signal()
        self._blocked: HistoryError | None = None

    def tell(self, line: Line, upto: int) -> None:
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

    def give_up(self, owner: Owner, error: HistoryError) -> None:
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
        told: Told = {}
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
            self._let_go(waiting)
            if database is not None:
                database.close()

    def _taken(self, told: Told, waiting: list[Signal]) -> list[_GivenUp]:
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

    def _kept(self, database: Database | None, told: Told) -> Database | None:
        """Commit what was told, on this connection or a new one; the connection, if there is one.

        What another process is in the way of stays. The thread lives on whatever comes up, and
        whoever flushes is told of it.
        """
        try:
            if told:
                database = self._connect(ATTEMPT_SECONDS) if database is None else database
                keep(database, told)
        except Exception as error:  # noqa: BLE001 - the thread serves every other session, too
            if isinstance(error, HistoryError) and may_pass(error):
                self._blocked = error
                return database
            for line, upto in told.items():
                if line.written < upto:
                    line.fail(error)
        self._blocked = None
        told.clear()
        return database

    def _let_down(self, told: Told, given_up: Sequence[_GivenUp]) -> None:
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

    def _let_go(self, waiting: Sequence[Signal]) -> None:
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
