"""The one stream of a session: numbers its events, keeps them, and tells whoever listens."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from witan.deliberation.events import (
    AnswerDelta,
    CallRetried,
    Event,
    SessionOpened,
    SynthesisDelta,
    TextWithdrawn,
)
from witan.deliberation.ports import Clock, Stage

__all__ = ["Keeper", "Listener", "Recorder", "anew"]

Listener = Callable[[Event], None]
"""Called with every event, in order, as it happens; it must not wait."""


@runtime_checkable
class Keeper(Protocol):
    """A listener that keeps what it is told."""

    def __call__(self, event: Event) -> None:
        """Take an event in; nothing is waited for."""
        ...

    async def kept(self, *, recorded: bool = False) -> None:
        """Wait until what was told so far outlives this process, as far as it can be kept.

        It is awaited before every call under a ceiling.

        Parameters
        ----------
        recorded
            All of it is in a history already.
        """
        ...


def anew(listener: Listener, since: datetime) -> Listener:
    """The same listener, told of the opening and of what happens since then.

    A session that is taken up, or that retries another, begins with what had happened before: who
    counts calls, or times them, has counted those.
    """
    stands = 0

    def told(event: Event) -> None:
        nonlocal stands
        if isinstance(event, SessionOpened):
            stands = event.seq + event.kept
            listener(event)
        elif event.at >= since and event.seq > stands:
            listener(event)

    return told


class Recorder:
    """Gives each event its number and time."""

    def __init__(self, clock: Clock, listener: Listener | None, earlier: Iterable[Event]) -> None:
        self._clock = clock
        self._listener = listener
        self.events: list[Event] = []
        self.failure: Exception | None = None
        self._seq = 0
        for event in earlier:
            self._keep(event)

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Record that something happened now."""
        self._keep(event(seq=self._seq + 1, at=self._clock.now(), **fields))

    def retried(self, seat: str, stage: Stage, attempt: int, reason: str, wait: float) -> None:
        """Record that an attempt at a call came to nothing, or stalls, and another follows."""
        self.emit(
            CallRetried,
            seat=seat,
            stage=stage,
            attempt=attempt,
            reason=reason,
            wait_seconds=wait,
        )

    def withdrawn(self, seat: str, stage: Stage) -> None:
        """Record that what was heard of a text so far was the model's reasoning."""
        self.emit(TextWithdrawn, seat=seat, stage=stage)

    async def kept(self) -> None:
        """Wait until everything recorded outlives this process, where somebody keeps it."""
        if isinstance(self._listener, Keeper):
            await self._listener.kept()

    def _keep(self, event: Event) -> None:
        self._seq = event.seq
        if not isinstance(event, AnswerDelta | SynthesisDelta):
            self.events.append(event)
        if self._listener is not None:
            try:
                self._listener(event)
            except Exception as error:
                self.failure = error
                raise
