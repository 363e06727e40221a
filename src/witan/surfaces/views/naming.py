"""Who is called what on the page: by name, or by label until the names are revealed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from witan.core.blinding import label_map
from witan.deliberation.closing import SYNTHESIS
from witan.deliberation.events import SessionOpened
from witan.deliberation.masking import mask, names_of
from witan.deliberation.session import Session
from witan.surfaces.text import clean

__all__ = ["Naming", "seat_called"]


@dataclass(frozen=True, slots=True)
class Naming:
    """What the seats of a session are called.

    Parameters
    ----------
    labels
        Seat to label: those of the closing text, which stay the same all over the page.
    others
        Whoever holds no seat, to what is said instead while names are hidden.
    places
        Seat to its number, from 0 in seat order; anchors are made of it.
    """

    veiled: bool
    labels: Mapping[str, str]
    others: Mapping[str, str]
    places: Mapping[str, int]
    opened: SessionOpened | None = field(default=None, repr=False)

    @classmethod
    def plain(cls, names: Sequence[str]) -> "Naming":
        """The names of candidates that hold no seats, and of which nothing is hidden."""
        return cls(False, {}, {}, {name: at for at, name in enumerate(names)})

    @classmethod
    def of(cls, session: Session, *, veiled: bool) -> "Naming":
        """The names of a session as far as it came."""
        opened = session.opened
        seats = [seat.name for seat in opened.seats]
        labels = _labels(session, seats)
        jurors = [seat.name for seat in opened.jury if seat.name not in labels]
        others = {name: f"juror {number}" for number, name in enumerate(jurors, start=1)}
        for seat in opened.chairmen:
            if seat.name not in labels:
                others.setdefault(seat.name, "the chairman")
        return cls(veiled, labels, others, {name: at for at, name in enumerate(seats)}, opened)

    def name(self, seat: str) -> str:
        """A seat, or whoever holds none, in one word or two."""
        if not self.veiled:
            return clean(seat)
        return self.labels.get(seat) or self.others.get(seat, "another")

    def value(self, seat: str) -> str:
        """What stands for a seat in forms and addresses, which must not tell its name either."""
        return f"#{_everyone(self._council).index(seat)}" if self.veiled else seat

    def said(self, sentence: str) -> str:
        """A sentence of ours, in which names may stand."""
        if not self.veiled:
            return clean(sentence)
        masked = self._names().sub(lambda found: self.name(found[0]), sentence)
        return clean(mask(masked, self._council.question, self._models()))

    def quoted(self, text: str) -> str:
        """What a model wrote: while names are hidden, without those that tell of an author."""
        return mask(text, self._council.question, self._models()) if self.veiled else text

    def answer_at(self, seat: str) -> str:
        """Where the answer of a seat stands on the page."""
        return f"#answer-{self.places[seat]}" if seat in self.places else "#answers"

    def cited(self) -> dict[str, str]:
        """Label to where its answer stands."""
        return {label: self.answer_at(seat) for seat, label in self.labels.items()}

    def _names(self) -> re.Pattern[str]:
        names = sorted({*self.labels, *self.others}, key=len, reverse=True)
        return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])")

    def _models(self) -> tuple[str, ...]:
        return tuple(names_of((*self._council.seats, *self._council.called)))

    @property
    def _council(self) -> SessionOpened:
        assert self.opened is not None  # noqa: S101 - only seats are hidden
        return self.opened


def seat_called(session: Session, value: str) -> str:
    """The seat that a form or an address means: by its name, or by its number while hidden.

    What is neither is returned as it is, for whoever looks it up to refuse.
    """
    everyone = _everyone(session.opened)
    number = value.removeprefix("#")
    known = value not in everyone and value != number and number.isascii() and number.isdigit()
    if known and int(number[:6]) < len(everyone):
        return everyone[int(number)]
    return value


def _everyone(opened: SessionOpened) -> list[str]:
    return list(dict.fromkeys(seat.name for seat in (*opened.seats, *opened.jury)))


def _labels(session: Session, seats: list[str]) -> dict[str, str]:
    """Seat to label: as the chairman has them, or will have them; then the seats that it has not.

    Those are drawn too, as the order of the seats would tell who is who.
    """
    held = {} if session.synthesis is None else session.synthesis.labels
    if held:
        labels = {seat: label for label, seat in held.items()}
    else:
        over = any(not ballot.abstained for ballot in session.ballots)
        shown = [name for name in session.answers if name not in session.failed] if over else seats
        labels = _drawn(session, shown)
    rest = [name for name in seats if name not in labels]
    letters = [each for each in _drawn(session, seats).values() if each not in labels.values()]
    return labels | dict(zip(_drawn(session, rest), letters, strict=False))


def _drawn(session: Session, seats: list[str]) -> dict[str, str]:
    sheet = label_map("chairman", seats, (session.opened.seed, SYNTHESIS))
    return dict(zip(sheet.candidates, sheet.labels, strict=True))
