"""Number the events of a session, and show each once durable.

If a journal stores the session, each round of waiting covers all events since the last one and all
calls about to be made. Events that do not become durable in time are shown as `provisional`.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

import anyio

from witan.deliberation.events import DELTAS, CallRetried, Event, Listener, TextWithdrawn
from witan.deliberation.ports import Clock, Stage

_Event = TypeVar("_Event", bound=Event)

GATHER_SECONDS = 0.01
"""Seconds for which a round waits for more events, unless a call or the end waits for it."""

UNSEEN_GATHER_SECONDS = 0.1
"""The same where nobody sees the events: fewer and larger commits."""


class FailureNote:
    """A record of uncaught exceptions that leave its blocks."""

    __slots__ = ("errors",)

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    @property
    def error(self) -> Exception | None:
        """The first of them, if any."""
        return self.errors[0] if self.errors else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception):
            self.errors.append(error)


class Journal(Protocol):
    """A listener storing events before its call.

    `gather_seconds`: seconds for which events wait for others.
    """

    gather_seconds: float

    def keep(self, event: Event) -> None:
        """Accept an event as it happens, without waiting."""
        ...

    def flush(self) -> None:
        """Write pending events now, as a call is about to be made."""
        ...

    async def commit(self) -> int | None:
        """Wait until the events so far are durable, as far as possible.

        Return the number of the last durable event, 0 if there is none; None if events are not
        stored, so nothing waits.
        """
        ...

    def __call__(self, event: Event) -> None:
        """Show an event."""
        ...


class CallGuard(Protocol):
    """A listener awaited before every call."""

    def __call__(self, event: Event) -> None:
        """Accept an event."""
        ...

    async def before_call(self, *, is_recorded: bool) -> None:
        """Prepare for a call; raise to forbid it.

        `is_recorded`: true if all of the session so far is in a history.
        """
        ...


def find_guard(listener: Listener | None) -> CallGuard | None:
    """Return a listener that is a guard of calls; None for others."""
    return cast("CallGuard", listener) if hasattr(listener, "before_call") else None


class Recorder:
    """Recorder that gives each event its number and time."""

    def __init__(self, clock: Clock, listener: Listener | None, earlier: Iterable[Event]) -> None:
        self._clock = clock
        self._listener = listener
        is_journal = all(hasattr(listener, name) for name in ("keep", "flush", "commit"))
        self._journal = cast("Journal", listener) if is_journal else None
        self._guard = find_guard(listener)
        self.events: list[Event] = []
        self._note = FailureNote()
        self._seq = 0
        self._pending_events: list[Event] = []
        self._is_over = False
        self._durable: int | None = None
        self._demand = anyio.Event()
        self._arrival = anyio.Event()
        self._next_round = anyio.Event()
        for event in earlier:
            self._store(event)

    def emit(self, event: type[_Event], **fields: Any) -> _Event:
        """Record an event at the present time, and return it."""
        made = event(seq=self._seq + 1, at=self._clock.now(), **fields)
        self._store(made)
        return made

    def record_retry(self, seat: str, stage: Stage, attempt: int, reason: str, wait: float) -> None:
        """Record a failed or stalled attempt before its successor."""
        self.emit(
            CallRetried, seat=seat, stage=stage, attempt=attempt, reason=reason, wait_seconds=wait
        )

    def record_withdrawal(self, seat: str, stage: Stage) -> None:
        """Record the text so far as reasoning."""
        self.emit(TextWithdrawn, seat=seat, stage=stage)

    @property
    def failure(self) -> Exception | None:
        """The first exception of a listener, if any; it ends the session."""
        return self._note.error

    async def before_call(self) -> None:
        """Wait until all events are durable, then call the guard."""
        recorded = False
        if self._journal is not None:
            last_seq = self.events[-1].seq
            self._journal.flush()
            self._demand.set()
            self._arrival.set()
            await self._next_round.wait()
            recorded = self._durable is not None and self._durable >= last_seq
        if self._guard is not None:
            await self._guard.before_call(is_recorded=recorded)

    @asynccontextmanager
    async def show_events(self) -> AsyncGenerator[None, None]:
        """Show events during the block, and the last ones at its end."""
        if self._journal is None:
            yield
            return
        own_failure = FailureNote()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._show_in_rounds, self._journal, name="witan-journal")
                try:
                    with own_failure:
                        yield
                finally:
                    self._is_over = True
                    self._demand.set()
                    self._arrival.set()
        except ExceptionGroup as failed:
            if failed.exceptions != (own_failure.error,):
                raise
        if own_failure.error is not None:
            raise own_failure.error  # without the task group's exception group

    async def _show_in_rounds(self, journal: Journal) -> None:
        with anyio.CancelScope(shield=True):  # events before a cancellation are also shown
            is_over = False
            while not is_over:
                await self._demand.wait()
                if not self._arrival.is_set():
                    with anyio.move_on_after(journal.gather_seconds):
                        await self._arrival.wait()
                self._demand, self._arrival, is_over = anyio.Event(), anyio.Event(), self._is_over
                # Requests from here on belong to the next round.
                this_round, self._next_round = self._next_round, anyio.Event()
                await self._round(journal)
                this_round.set()

    async def _round(self, journal: Journal) -> None:
        """Commit the events so far and show them."""
        n_events = len(self._pending_events)
        with self._note:
            durable = self._durable = await journal.commit()
            showing, self._pending_events = (
                self._pending_events[:n_events],
                self._pending_events[n_events:],
            )
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
            elif is_delta and not self._pending_events:
                self._journal(event)
            else:
                if not is_delta:
                    self._journal.keep(event)
                self._pending_events.append(event)
                self._demand.set()


def _is_delta(event: Event) -> bool:
    return isinstance(event, DELTAS)
