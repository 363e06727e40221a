"""What readers are told: an event, a piece of a text, or many pieces kept as one."""

import secrets
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2s
from typing import TypeAlias

from witan.deliberation import events as e
from witan.deliberation.record import event_to_json

__all__ = ["MARK_BYTES", "Piece", "StreamMessage", "TextRun", "heard"]

MARK_BYTES = 4

MOST_DIGITS = 18

Piece: TypeAlias = e.AnswerDelta | e.SynthesisDelta


class StreamMessage:
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
    def n_bytes(self) -> int:
        """The length of its JSON, which is not held for that."""
        if self._json is not None:
            return len(self._json)
        return len(event_to_json(self.event, simulated=self._simulated))

    @property
    def mark(self) -> str:
        """What tells it from another event that has its number."""
        if self._mark is None:
            said = self.json
            if self.event.provisional:  # an event is the same one once it is kept
                kept = replace(self.event, provisional=False)
                said = event_to_json(kept, simulated=self._simulated).encode()
            self._mark = blake2s(said, digest_size=MARK_BYTES).hexdigest()
        return self._mark

    @property
    def id(self) -> str:
        """Its number and its mark: by these a reader says what it heard last."""
        return f"{self.seq}-{self.mark}"

    def since(self, after: int) -> "StreamMessage":
        """What of it a reader has not heard that has heard all up to a lower number."""
        del after
        return self


class TextRun(StreamMessage):
    """Pieces of a text that were told one by one long ago, kept as one.

    Its mark is its own: to have heard it is not to have heard the pieces of other texts that lie
    between its own, as those are told after it.

    Attributes
    ----------
    seqs, ends
        The number of each piece, and where it ended: some readers had heard only some of them.
    """

    __slots__ = ("_piece", "ends", "seqs")

    def __init__(self, told: Sequence[StreamMessage], *, simulated: bool) -> None:
        self.seqs, self.ends = array("q"), array("q")
        pieces = [each.event for each in told if isinstance(each.event, Piece)]
        length = 0
        for each, piece in zip(told, pieces, strict=True):
            if isinstance(each, TextRun):
                self.seqs.extend(each.seqs)
                self.ends.extend(array("q", (length + end for end in each.ends)))
            else:
                self.seqs.append(piece.seq)
                self.ends.append(length + len(piece.text))
            length += len(piece.text)
        self._piece: Piece = replace(pieces[-1], text="".join(piece.text for piece in pieces))
        mark = secrets.token_hex(MARK_BYTES)
        super().__init__(self._piece, simulated=simulated, mark=mark)

    def since(self, after: int) -> StreamMessage:
        """The rest of the text, for a reader that has heard the pieces up to this number."""
        n_heard = bisect_right(self.seqs, after)
        if not n_heard:
            return self
        rest = replace(self._piece, text=self._piece.text[self.ends[n_heard - 1] :])
        return StreamMessage(rest, simulated=self._simulated, mark=self._mark)


def heard(told: Sequence[StreamMessage], last: str, mark: str | None = None) -> int:
    """The number of the last of these events that a reader has heard; 0: none is sure to be so.

    Parameters
    ----------
    told
        In order.
    last
        The `StreamMessage.id` that the reader received last, or its number alone.
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
    if not at or isinstance(told[at - 1], TextRun):
        return 0
    return seq if told[at - 1].seq == seq and told[at - 1].mark == given else 0
