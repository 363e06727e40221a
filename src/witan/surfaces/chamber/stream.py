"""One session's events, followed by any number of readers, each at its own pace.

There is one log, which readers share; none has a queue of its own, so one that reads slowly costs
no memory and holds up nobody. The pieces of a text are told while it is written; once it is whole,
the event that holds all of it stands in their place.

A session that is taken up again numbers on from the last event that was kept, so the numbers of
pieces that were told before come a second time. What a reader has heard last is therefore named by
the number and a mark: of an event, what it says; of a piece, the stream that told it.
"""

import secrets
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import TypeAlias

import anyio

from witan.deliberation import events as e
from witan.deliberation.record import event_to_json
from witan.surfaces.discretion import Veil

__all__ = ["PACE_SECONDS", "Stream", "Told", "heard"]

PACE_SECONDS = 0.04
"""How long the pieces of a text are gathered, after the first, before they are told together."""

MARK_BYTES = 4

MOST_DIGITS = 18

Piece: TypeAlias = e.AnswerDelta | e.SynthesisDelta

_Text = tuple[str, str | None, int]
"""Which text a piece belongs to: answer or synthesis, whose, in which round."""


class Told:
    """An event as readers are told of it.

    Parameters
    ----------
    simulated
        Whether any seat of the session plays a script.
    mark
        That of a piece; None: the event is kept, and bears the mark of what it says.
    """

    __slots__ = ("_json", "_mark", "_simulated", "event")

    def __init__(self, event: e.Event, *, simulated: bool, mark: str | None = None) -> None:
        self.event = event
        self._simulated = simulated
        self._mark = mark
        self._json: bytes | None = None

    @property
    def seq(self) -> int:
        """The number of the event; of pieces told together, that of the last."""
        return self.event.seq

    @property
    def json(self) -> bytes:
        """The event as one line of JSON, encoded once for all readers."""
        if self._json is None:
            self._json = event_to_json(self.event, simulated=self._simulated).encode()
        return self._json

    @property
    def mark(self) -> str:
        """What tells it from another event that has its number."""
        if self._mark is None:
            self._mark = blake2s(self.json, digest_size=MARK_BYTES).hexdigest()
        return self._mark

    @property
    def id(self) -> str:
        """Its number and its mark: by these a reader says what it heard last."""
        return f"{self.seq}-{self.mark}"


def heard(told: Sequence[Told], last: str, mark: str | None = None) -> int:
    """The number of the last of these events that a reader has heard; 0: none is sure to be so.

    Parameters
    ----------
    told
        In order.
    last
        What the reader heard last, as `Told.id` has it; a number alone is taken at its word.
    mark
        That of the pieces which were told along with these events.
    """
    number, dash, given = last.partition("-")
    if not (number.isascii() and number.isdecimal()):
        return 0
    seq = int(number[:MOST_DIGITS])
    if not dash or given == mark:
        return seq
    at = bisect_right(told, seq, key=lambda each: each.seq)
    return seq if at and told[at - 1].seq == seq and told[at - 1].mark == given else 0


@dataclass(slots=True)
class _Gathering:
    """Pieces of a text that are yet to be told."""

    told_at: float
    pending: Piece | None = None


class Stream:
    """The shared log of one session.

    Parameters
    ----------
    seconds
        A clock that never goes back.

    Attributes
    ----------
    mark
        Of the pieces that it tells; no other stream has it.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.mark = secrets.token_hex(MARK_BYTES)
        self._log: list[Told] = []
        self._held: list[e.Event] = []
        self._veil: Veil | None = None
        self._written: dict[_Text, _Gathering] = {}
        self._waiting = False
        self._gathered = anyio.Event()
        self._wake = anyio.Event()
        self._simulated = False
        self.ended = False
        self.failure: str | None = None

    def take(self, event: e.Event) -> None:
        """Tell an event, or keep it for a moment where it is a piece of a text."""
        if isinstance(event, e.AnswerDelta | e.SynthesisDelta):
            self._gather(event)
            return
        if isinstance(event, e.SessionOpened):
            self._simulated, self._veil = event.simulated, Veil(event)
        self._held.append(event)
        self.tell_gathered()
        self._forget_pieces(event)
        self._tell(event)

    def end(self, failure: str | None = None) -> None:
        """Say that nothing follows: the session is closed, was broken off, or failed."""
        if self.ended:
            return
        self.tell_gathered()
        self.ended, self.failure = True, failure
        self._gathered.set()
        self._rouse()

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return bool(self._log) and isinstance(self._log[-1].event, e.SessionClosed)

    @property
    def interrupted(self) -> bool:
        """Whether it ended before the session was closed."""
        return self.ended and not self.closed

    @property
    def kept(self) -> list[e.Event]:
        """What was told so far, pieces of texts aside."""
        return [
            told.event
            for told in self._log
            if not isinstance(told.event, e.AnswerDelta | e.SynthesisDelta)
        ]

    @property
    def held(self) -> tuple[e.Event, ...]:
        """The same as it happened: readers are not told how seats are written."""
        return tuple(self._held)

    def __len__(self) -> int:
        return len(self._log)

    async def follow(self, after: int = 0) -> AsyncGenerator[Told, None]:
        """Yield what was told with a number above `after`, then what is, until nothing follows.

        Between two of them anything may have been told; a text that was completed meanwhile comes
        whole.
        """
        while True:
            for told in self._since(after):
                after = told.seq
                yield told
            if self._log and self._log[-1].seq > after:
                continue
            if self.ended:
                return
            await self.changed()

    def heard(self, last: str) -> int:
        """The number after which to go on telling whoever heard this last; as of `heard`."""
        return heard(self._log, last, self.mark)

    async def changed(self) -> None:
        """Wait until something is told, or nothing follows any more."""
        await self._wake.wait()

    def told_after(self, after: int) -> tuple[Told, ...]:
        """What was told with a number above `after`, so far."""
        return tuple(self._since(after))

    async def pace(self) -> None:
        """Tell what is gathered, again and again, until nothing follows."""
        while not self.ended:
            await self._gathered.wait()
            await anyio.sleep(PACE_SECONDS)
            self.tell_gathered()

    def tell_gathered(self) -> None:
        """Tell at once what was to wait."""
        if not self._waiting:
            return
        self._waiting, self._gathered = False, anyio.Event()
        now = self._seconds()
        ready = [held for held in self._written.values() if held.pending is not None]
        for held in sorted(ready, key=lambda held: held.pending.seq if held.pending else 0):
            if held.pending is not None:
                self._tell(held.pending)
            held.told_at, held.pending = now, None

    def _since(self, after: int) -> Iterator[Told]:
        # Sliced, as the log may change between two readings.
        return iter(self._log[bisect_right(self._log, after, key=lambda told: told.seq) :])

    def _gather(self, piece: Piece) -> None:
        text = _text_of(piece)
        held = self._written.get(text)
        if held is None or (not self._waiting and self._seconds() - held.told_at >= PACE_SECONDS):
            # The first piece of a text is what a reader waits for.
            self.tell_gathered()
            self._written[text] = _Gathering(self._seconds())
            self._tell(piece)
            return
        before = held.pending
        held.pending = piece if before is None else replace(piece, text=before.text + piece.text)
        if not self._waiting:
            self._waiting = True
            self._gathered.set()

    def _forget_pieces(self, event: e.Event) -> None:
        """Drop the pieces of a text that is whole, or void."""
        over = _ended_by(event)
        if over is None:
            return
        stage, whose = over
        for text in [t for t in self._written if t[0] == stage and t[1] == whose]:
            del self._written[text]
        self._log = [
            told
            for told in self._log
            if not isinstance(told.event, e.AnswerDelta | e.SynthesisDelta)
            or _text_of(told.event)[:2] != over
        ]

    def _tell(self, event: e.Event) -> None:
        event = event if self._veil is None else self._veil(event)
        mark = self.mark if isinstance(event, e.AnswerDelta | e.SynthesisDelta) else None
        self._log.append(Told(event, simulated=self._simulated, mark=mark))
        self._rouse()

    def _rouse(self) -> None:
        waking, self._wake = self._wake, anyio.Event()
        waking.set()


def _text_of(piece: Piece) -> _Text:
    if isinstance(piece, e.AnswerDelta):
        return "answer", piece.seat, piece.round
    return "synthesis", piece.chairman, 1


def _ended_by(event: e.Event) -> tuple[str, str | None] | None:
    """Whose text this event completes, or makes void, and of which stage."""
    match event:
        case e.AnswerDone() | e.AnswerFailed():
            return "answer", event.seat
        case e.SynthesisDone() | e.SynthesisFailedOver():
            return "synthesis", event.chairman
        case e.CallRetried(stage="answer" | "synthesis"):
            return event.stage, event.seat
        case _:
            return None
