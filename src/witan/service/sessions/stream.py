"""Stream the events of a session to any number of readers."""

import secrets
from array import array
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import TypeAlias

import anyio

from witan.deliberation import events as e
from witan.deliberation.record import event_to_json
from witan.service.redaction import SessionRedactor

MARK_BYTES = 4

MOST_DIGITS = 18

Piece: TypeAlias = e.AnswerDelta | e.SynthesisDelta


class StreamMessage:
    """An event as readers receive it.

    Parameters
    ----------
    is_simulated
        Whether any seat of the session plays a script.
    mark
        That of a piece; None: the event is kept, and bears the mark of what it says.
    """

    __slots__ = ("_is_simulated", "_json", "_mark", "event")

    def __init__(self, event: e.Event, *, is_simulated: bool, mark: str | None = None) -> None:
        self.event = event
        self._is_simulated = is_simulated
        self._mark = mark
        self._json: bytes | None = None

    @property
    def seq(self) -> int:
        """Number of the event; the last one's for merged pieces."""
        return self.event.seq

    @property
    def json(self) -> bytes:
        """The event as one line of JSON, encoded once for all readers."""
        if self._json is None:
            self._json = event_to_json(self.event, is_simulated=self._is_simulated).encode()
        return self._json

    @property
    def n_bytes(self) -> int:
        """Length of its JSON, which is not stored for that."""
        if self._json is not None:
            return len(self._json)
        return len(event_to_json(self.event, is_simulated=self._is_simulated))

    @property
    def mark(self) -> str:
        """A mark to distinguish events with the same number."""
        if self._mark is None:
            payload = self.json
            if self.event.provisional:  # an event is the same one once it is kept
                event = replace(self.event, provisional=False)
                payload = event_to_json(event, is_simulated=self._is_simulated).encode()
            self._mark = blake2s(payload, digest_size=MARK_BYTES).hexdigest()
        return self._mark

    @property
    def id(self) -> str:
        """Number and mark, by which a reader names its last event."""
        return f"{self.seq}-{self.mark}"

    def part_after(self, after: int) -> "StreamMessage":
        """Return the part after a lower number."""
        del after
        return self


class TextRun(StreamMessage):
    """Old pieces of a text, merged into one.

    Its mark is its own: to have heard it is not to have heard the pieces of other texts that lie
    between its own, as those are told after it.

    Attributes
    ----------
    seqs, ends
        The number of each piece, and where it ended: some readers had heard only some of them.
    """

    __slots__ = ("_piece", "ends", "seqs")

    def __init__(self, messages: Sequence[StreamMessage], *, is_simulated: bool) -> None:
        self.seqs, self.ends = array("q"), array("q")
        pieces = [each.event for each in messages if isinstance(each.event, Piece)]
        length = 0
        for each, piece in zip(messages, pieces, strict=True):
            if isinstance(each, TextRun):
                self.seqs.extend(each.seqs)
                self.ends.extend(array("q", (length + end for end in each.ends)))
            else:
                self.seqs.append(piece.seq)
                self.ends.append(length + len(piece.text))
            length += len(piece.text)
        self._piece: Piece = replace(pieces[-1], text="".join(piece.text for piece in pieces))
        mark = secrets.token_hex(MARK_BYTES)
        super().__init__(self._piece, is_simulated=is_simulated, mark=mark)

    def part_after(self, after: int) -> StreamMessage:
        """Return the rest of the text after the piece of this number."""
        n_heard = bisect_right(self.seqs, after)
        if not n_heard:
            return self
        rest = replace(self._piece, text=self._piece.text[self.ends[n_heard - 1] :])
        return StreamMessage(rest, is_simulated=self._is_simulated, mark=self._mark)


def resume_point(messages: Sequence[StreamMessage], last: str, mark: str | None = None) -> int:
    """Return the number of a reader's last event; 0 if unsure.

    Parameters
    ----------
    messages
        In order.
    last
        The `StreamMessage.id` that the reader received last, or its number alone.
    mark
        That of the pieces which were told along with these events.
    """
    number, dash, mark_text = last.partition("-")
    if not (number.isascii() and number.isdecimal()):
        return 0
    seq = int(number[:MOST_DIGITS])
    if not dash or mark_text == mark:
        return seq
    at = bisect_right(messages, seq, key=lambda each: each.seq)
    if not at or isinstance(messages[at - 1], TextRun):
        return 0
    return seq if messages[at - 1].seq == seq and messages[at - 1].mark == mark_text else 0


PACE_SECONDS = 0.04
"""Seconds for which pieces of a text are gathered into one message."""

MAX_RECENT_PIECES = 128
"""Least pieces of a growing text to keep separate; twice as many at most."""

_Text = tuple[str, str | None, int]
"""The text that a piece belongs to: answer or synthesis, seat, round."""


@dataclass(slots=True)
class _PendingText:
    """A growing text: its unsent piece, and its number of separate pieces."""

    told_at: float = 0.0
    pending: Piece | None = None
    n_single: int = 0


class Stream:
    """The shared log of one session.

    Parameters
    ----------
    seconds
        A clock that never goes back.

    Attributes
    ----------
    mark
        Mark of its pieces, unique to this stream.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.mark = secrets.token_hex(MARK_BYTES)
        self._log: list[StreamMessage] = []
        self._kept_events: list[e.Event] = []
        self._veil: SessionRedactor | None = None
        self._texts: dict[_Text, _PendingText] = {}
        self._is_waiting = False
        self._gather_event = anyio.Event()
        self._wake = anyio.Event()
        self._is_simulated = False
        self.has_ended = False
        self.failure: str | None = None

    def take(self, event: e.Event) -> None:
        """Publish an event; buffer pieces of texts briefly."""
        if isinstance(event, e.AnswerDelta | e.SynthesisDelta):
            self._gather(event)
            return
        if isinstance(event, e.SessionOpened):
            self._is_simulated, self._veil = event.is_simulated, SessionRedactor(event)
        self._kept_events.append(event)
        self.flush()
        self._forget_pieces(event)
        self._tell(event)

    def end(self, failure: str | None = None) -> None:
        """End the stream of a closed, interrupted or failed session."""
        if self.has_ended:
            return
        self.flush()
        self.has_ended, self.failure = True, failure
        self._gather_event.set()
        self._rouse()

    @property
    def is_closed(self) -> bool:
        """True once the session was closed."""
        return bool(self._log) and isinstance(self._log[-1].event, e.SessionClosed)

    @property
    def is_interrupted(self) -> bool:
        """True if it ended before the session was closed."""
        return self.has_ended and not self.is_closed

    @property
    def public_events(self) -> list[e.Event]:
        """The messages so far, without pieces of texts."""
        return [
            entry.event
            for entry in self._log
            if not isinstance(entry.event, e.AnswerDelta | e.SynthesisDelta)
        ]

    @property
    def events(self) -> tuple[e.Event, ...]:
        """The events as they happened, with private words of seats."""
        return tuple(self._kept_events)

    @property
    def n_bytes(self) -> int:
        """Length of all published events, as JSON."""
        return sum(entry.n_bytes for entry in self._log)

    def __len__(self) -> int:
        return len(self._log)

    async def follow(self, after: int = 0) -> AsyncGenerator[StreamMessage, None]:
        """Yield published messages after number `after`, then new ones, until the end.

        Between two of them anything may have been told; a text that was completed meanwhile comes
        whole.
        """
        while True:
            for entry in self._messages_since(after):
                after = entry.seq
                yield entry
            if self._log and self._log[-1].seq > after:
                continue
            if self.has_ended:
                return
            await self.wait_for_change()

    def resume_point(self, last: str) -> int:
        """Return the number for a reader to continue after."""
        return resume_point(self._log, last, self.mark)

    async def wait_for_change(self) -> None:
        """Wait for a published message or the end of the stream."""
        await self._wake.wait()

    def messages_after(self, after: int) -> tuple[StreamMessage, ...]:
        """Return the messages so far with a number above `after`."""
        return tuple(self._messages_since(after))

    async def pace(self) -> None:
        """Publish buffered pieces at intervals, until the end."""
        while not self.has_ended:
            await self._gather_event.wait()
            if not self.has_ended:
                await anyio.sleep(PACE_SECONDS)
            self.flush()

    def flush(self) -> None:
        """Publish buffered pieces now."""
        if not self._is_waiting:
            return
        self._is_waiting, self._gather_event = False, anyio.Event()
        now = self._seconds()
        texts_to_send = [
            gathering for gathering in self._texts.values() if gathering.pending is not None
        ]
        for gathering in sorted(
            texts_to_send,
            key=lambda text_state: text_state.pending.seq if text_state.pending else 0,
        ):
            if gathering.pending is not None:
                self._tell_piece(gathering, gathering.pending)
            gathering.told_at, gathering.pending = now, None

    def _messages_since(self, after: int) -> Iterator[StreamMessage]:
        # Sliced, as the log may change between two readings.
        rest = self._log[bisect_right(self._log, after, key=lambda entry: entry.seq) :]
        return (entry.part_after(after) for entry in rest)

    def _gather(self, piece: Piece) -> None:
        text = _text_of(piece)
        gathering = self._texts.get(text)
        if gathering is None or (
            not self._is_waiting and self._seconds() - gathering.told_at >= PACE_SECONDS
        ):
            # The first piece of a text is what a reader waits for.
            self.flush()
            if gathering is None:
                gathering = self._texts[text] = _PendingText()
            gathering.told_at = self._seconds()
            self._tell_piece(gathering, piece)
            return
        pending_piece = gathering.pending
        gathering.pending = (
            piece if pending_piece is None else replace(piece, text=pending_piece.text + piece.text)
        )
        if not self._is_waiting:
            self._is_waiting = True
            self._gather_event.set()

    def _tell_piece(self, text_state: _PendingText, piece: Piece) -> None:
        """Publish a piece; merge old pieces of long texts."""
        self._tell(piece)
        text_state.n_single += 1
        if text_state.n_single < 2 * MAX_RECENT_PIECES:
            return
        text = _text_of(piece)
        own = [each for each in self._log if _is_of(each.event, text)]
        passage = TextRun(own[:-MAX_RECENT_PIECES], is_simulated=self._is_simulated)
        last, recent = own[-MAX_RECENT_PIECES - 1], {id(each) for each in own[-MAX_RECENT_PIECES:]}
        self._log = [
            passage if each is last else each
            for each in self._log
            if each is last or id(each) in recent or not _is_of(each.event, text)
        ]
        text_state.n_single = MAX_RECENT_PIECES

    def _forget_pieces(self, event: e.Event) -> None:
        """Drop the pieces of a complete or void text."""
        ended_part = _ended_by(event)
        if ended_part is None:
            return
        stage, seat = ended_part
        for text in [t for t in self._texts if t[0] == stage and t[1] == seat]:
            del self._texts[text]
        self._log = [
            entry
            for entry in self._log
            if not isinstance(entry.event, e.AnswerDelta | e.SynthesisDelta)
            or _text_of(entry.event)[:2] != ended_part
        ]

    def _tell(self, event: e.Event) -> None:
        event = event if self._veil is None else self._veil(event)
        mark = self.mark if isinstance(event, e.AnswerDelta | e.SynthesisDelta) else None
        self._log.append(StreamMessage(event, is_simulated=self._is_simulated, mark=mark))
        self._rouse()

    def _rouse(self) -> None:
        waking, self._wake = self._wake, anyio.Event()
        waking.set()


def _is_of(event: e.Event, text: _Text) -> bool:
    return isinstance(event, e.AnswerDelta | e.SynthesisDelta) and _text_of(event) == text


def _text_of(piece: Piece) -> _Text:
    if isinstance(piece, e.AnswerDelta):
        return "answer", piece.seat, piece.round
    return "synthesis", piece.chairman, 1


def _ended_by(event: e.Event) -> tuple[str, str | None] | None:
    """Return the stage and seat of a text that this event ends."""
    match event:
        case e.AnswerDone() | e.AnswerFailed():
            return "answer", event.seat
        case e.SynthesisDone() | e.SynthesisFailedOver():
            return "synthesis", event.chairman
        case e.CallRetried(stage="answer" | "synthesis") | e.TextWithdrawn():
            return event.stage, event.seat
        case _:
            return None
