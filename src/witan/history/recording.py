"""Sessions as they happen: taken in event by event, and committed by a thread of their own.

The event loop never waits for the disk. What was taken in while one commit was under way goes into
the next, so that many sessions share the price of one.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import anyio
import anyio.lowlevel

from witan.deliberation.events import (
    AnswerDelta,
    Event,
    SessionClosed,
    SessionOpened,
    SynthesisDelta,
)
from witan.errors import HistoryError
from witan.history.committing import Line
from witan.history.holders import new_token, release, retain
from witan.history.lock_wait import LockWait
from witan.history.sqlite import may_pass
from witan.history.writer import Writer

__all__ = ["Recording"]

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
        self._line: Line | None = None
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
        self.keep(event)
        self._queue()

    def keep(self, event: Event) -> None:
        """Take an event in, deltas aside; the next commit or flush queues it with the others."""
        if isinstance(event, AnswerDelta | SynthesisDelta):
            return
        if isinstance(event, SessionOpened):
            while self._raised:  # another thread may be adding to it
                self._failures.pop(self._raised.pop(), None)
            self._queue()
            claimed = self._claim(event.session)
            self._line = Line(event, new_token() if claimed is None else claimed, self)
            self._over = False
        if self._line is None or self._over:
            problem = "was told of a session whose opening it was not told of"
            raise HistoryError("the recording", problem, "tell it the session from its beginning")
        self._line.events.append(event)
        self._over = isinstance(event, SessionClosed)
        (release if self._over else retain)(self._line.token)

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
            lock_wait.took(time.monotonic() - began)
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
            release(self._line.token)  # it has ended, or is broken off
        try:
            lock_wait.through(self._writer.where, self._writer.drain)
        except HistoryError as error:
            if not may_pass(error):
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
