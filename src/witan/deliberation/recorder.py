"""Number, keep and show the events of a session.

Where a journal keeps the session, an event is shown once it is durable; the rounds in which that is
waited for are shared by everything that happened meanwhile, and by every call that is about to be
made. What could not be made durable in time is shown as `provisional`.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import anyio

from witan.deliberation.events import (
    AnswerDelta,
    CallRetried,
    Event,
    SessionOpened,
    SynthesisDelta,
    TextWithdrawn,
)
from witan.deliberation.ports import Clock, Stage

GATHER_SECONDS = 0.01
"""Events this close together share a round, unless a call or the session's end waits for it."""

Listener = Callable[[Event], None]
"""A callback for every event, in order; it must not wait."""


class FailureNote:
    """Notes exceptions that leave its blocks; nothing is caught."""

    __slots__ = ("errors",)

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    @property
    def error(self) -> Exception | None:
        """The first of them; None: there is none."""
        return self.errors[0] if self.errors else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            self.errors.append(error)


@runtime_checkable
class Journal(Protocol):
    """A listener storing events before its call."""

    def keep(self, event: Event) -> None:
        """Take an event in as it happens; nothing is waited for."""
        ...

    def flush(self) -> None:
        """Hold nothing back any longer: a call is about to be made."""
        ...

    async def commit(self) -> int | None:
        """Wait until the events so far are durable, as far as possible.

        Returns
        -------
        int or None
            The number of the last event that is durable, 0 if none is; None if nothing is kept, so
            that nothing is waited for.
        """
        ...

    def __call__(self, event: Event) -> None:
        """Show an event."""
        ...


@runtime_checkable
class CallGuard(Protocol):
    """A listener awaited before every call."""

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        ...

    async def before_call(self, *, is_recorded: bool) -> None:
        """Prepare for a call; raise to forbid it.

        Parameters
        ----------
        is_recorded
            All of the session so far is in a history.
        """
        ...


def skip_past_events(listener: Listener, since: datetime) -> Listener:
    """Forward the opening and events since then, skipping earlier ones.

    A session that is taken up, or that retries another, begins with what had happened before: who
    counts calls, or times them, has counted those.
    """
    stands = 0

    def forward(event: Event) -> None:
        nonlocal stands
        if isinstance(event, SessionOpened):
            stands = event.seq + event.kept
            listener(event)
        elif event.at >= since and event.seq > stands:
            listener(event)

    return forward


class Recorder:
    """Gives each event its number and time."""

    def __init__(self, clock: Clock, listener: Listener | None, earlier: Iterable[Event]) -> None:
        self._clock = clock
        self._listener = listener
        self._journal = listener if isinstance(listener, Journal) else None
        self._guard = listener if isinstance(listener, CallGuard) else None
        self.events: list[Event] = []
        self._note = FailureNote()
        self._seq = 0
        self._unshown: list[Event] = []
        self._over = False
        self._durable: int | None = None
        self._wanted = anyio.Event()
        self._awaited = anyio.Event()
        self._next_round = anyio.Event()
        for event in earlier:
            self._store(event)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Record an event at the present time."""
        self._store(event(seq=self._seq + 1, at=self._clock.now(), **fields))

    def record_retry(self, seat: str, stage: Stage, attempt: int, reason: str, wait: float) -> None:
        """Record a failed or stalled attempt before its successor."""
        self.emit(
            CallRetried,
            seat=seat,
            stage=stage,
            attempt=attempt,
            reason=reason,
            wait_seconds=wait,
        )

    def record_withdrawal(self, seat: str, stage: Stage) -> None:
        """Record the text so far as reasoning."""
        self.emit(TextWithdrawn, seat=seat, stage=stage)

    @property
    def failure(self) -> Exception | None:
        """The first exception of a listener, which ends the session; None: there is none."""
        return self._note.error

    async def before_call(self) -> None:
        """Wait until all events are durable, then call the guard."""
        recorded = False
        if self._journal is not None:
            last = self.events[-1].seq
            self._journal.flush()
            self._wanted.set()
            self._awaited.set()
            await self._next_round.wait()
            recorded = self._durable is not None and self._durable >= last
        if self._guard is not None:
            await self._guard.before_call(is_recorded=recorded)

    @asynccontextmanager
    async def show_events(self) -> AsyncGenerator[None, None]:
        """Show events during the block, and the last ones at its end."""
        if self._journal is None:
            yield
            return
        own = FailureNote()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._show_in_rounds, self._journal, name="witan-journal")
                try:
                    with own:
                        yield
                finally:
                    self._over = True
                    self._wanted.set()
                    self._awaited.set()
        except ExceptionGroup as failed:
            if failed.exceptions != (own.error,):
                raise
        if own.error is not None:
            raise own.error  # without the group, which is of tasks

    async def _show_in_rounds(self, journal: Journal) -> None:
        with anyio.CancelScope(shield=True):  # what happened before a cancellation is shown, too
            over = False
            while not over:
                await self._wanted.wait()
                with anyio.move_on_after(GATHER_SECONDS):
                    await self._awaited.wait()
                self._wanted, self._awaited, over = anyio.Event(), anyio.Event(), self._over
                # Who asks from here on has what it asks for in the next round.
                finished, self._next_round = self._next_round, anyio.Event()
                await self._round(journal)
                finished.set()

    async def _round(self, journal: Journal) -> None:
        """Commit what has happened until now, and show it."""
        n_events = len(self._unshown)
        with self._note:
            durable = self._durable = await journal.commit()
            showing, self._unshown = self._unshown[:n_events], self._unshown[n_events:]
            for event in showing:
                open_end = durable is not None and event.seq > durable and not _is_delta(event)
                journal(replace(event, provisional=True) if open_end else event)

    def _store(self, event: Event) -> None:
        self._seq = event.seq
        is_delta = _is_delta(event)
        if not is_delta:
            self.events.append(event)
        with self._note:
            if self._journal is None:
                if self._listener is not None:
                    self._listener(event)
            elif is_delta and not self._unshown:
                self._journal(event)
            else:
                if not is_delta:
                    self._journal.keep(event)
                self._unshown.append(event)
                self._wanted.set()


def _is_delta(event: Event) -> bool:
    return isinstance(event, AnswerDelta | SynthesisDelta)
