"""Names of candidates, reviewers and seats; labels until the reveal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from witan.core.blinding import label_map
from witan.core.outcome import Outcome
from witan.service.text import list_text

if TYPE_CHECKING:
    from witan.deliberation.events import SessionOpened
    from witan.deliberation.session import Session

_Cell = TypeVar("_Cell")
_Text = TypeVar("_Text", str, tuple[str, str])

CHAIRMAN = "the chairman"

AWAITED, AWAITED_CHARS = 3, 40
"""Last words of a growing text to delay, and their most characters."""


@dataclass(frozen=True, slots=True)
class CandidateNames:
    """Candidates and reviewers by their own names.

    `places` has the place of each answer on a page, for anchors; it may be empty.
    """

    places: Mapping[str, int]
    hides_names: bool = False

    def name(self, name: str) -> str:
        """Name a candidate or a reviewer."""
        return name

    def sentence(self, sentence: str) -> str:
        """Replace the names in a sentence."""
        return sentence

    def order(self, seats: Iterable[str]) -> tuple[str, ...]:
        """Order candidates or reviewers as the page does."""
        return tuple(seats)

    def order_outcome(self, outcome: Outcome) -> Outcome:
        """Order tied candidates of an outcome."""
        return outcome

    def anchor(self, candidate: str) -> str:
        """Link to an answer on the page."""
        return f"#answer-{self.places[candidate]}" if candidate in self.places else "#answers"


BY_NAME = CandidateNames({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatNames(CandidateNames):
    """Names of the seats of a session, or their labels.

    Parameters
    ----------
    labels
        Label in the final answer by seat, used on the whole page.
    others
        Name of each reviewer without a seat while names are hidden.
    places
        Number for anchors by seat, from 0 in the order of the page: that of labels while names are
        hidden, otherwise that of seats.
    """

    labels: Mapping[str, str]
    others: Mapping[str, str]
    opening: "SessionOpened" = field(repr=False)

    @classmethod
    def of(cls, session: "Session", *, hides_names: bool) -> "SeatNames":
        """Return the names of a session so far."""
        opened = session.opening
        seats = [seat.name for seat in opened.seats]
        labels = _labels(session, seats)
        jurors = [seat.name for seat in opened.jury if seat.name not in labels]
        # Numbered at random, because a juror's marked own answer would reveal its author.
        numbers = enumerate(_draw_labels(session, jurors), start=1)
        others = {name: f"juror {number}" for number, name in numbers}
        for seat in opened.chairmen:
            if seat.name not in labels:
                others.setdefault(seat.name, CHAIRMAN)
        seats_in_order = sorted(seats, key=labels.__getitem__) if hides_names else seats
        return cls(
            {name: at for at, name in enumerate(seats_in_order)},
            hides_names=hides_names,
            labels=labels,
            others=others,
            opening=opened,
        )

    def name(self, name: str) -> str:
        """Return the name of a seat, or of a reviewer without one, in one or two words."""
        if not self.hides_names:
            return name
        return self.labels.get(name) or self.others.get(name, "another")

    def value(self, seat: str) -> str:
        """A seat's value in forms and addresses, or its label."""
        return f"#{self.name(seat)}" if self.hides_names else seat

    def order_outcome(self, outcome: Outcome) -> Outcome:
        """Order tied standings of an outcome as the page does.

        An outcome has ties in the order of seats, which would reveal hidden names.
        """
        if not self.hides_names:
            return outcome
        lines = outcome.standings
        groups_by_rank = groupby(range(len(lines)), key=lambda at: lines[at].rank)
        rows = [
            at
            for _, equal in groups_by_rank
            for at in sorted(equal, key=lambda at: self.name(lines[at].candidate))
        ]
        row = {lines[at].candidate: number for number, at in enumerate(rows)}
        pairs = [(a, b) if row[a] < row[b] else (b, a) for a, b in outcome.unresolved]
        notes = [
            replace(note, ranking=tuple(map(self.order, note.ranking)))
            for note in sorted(outcome.ballots, key=lambda note: self.name(note.reviewer))
        ]
        return replace(
            outcome,
            standings=tuple(lines[at] for at in rows),
            p_beats=_permute(outcome.p_beats, rows),
            margins=_permute(outcome.margins, rows),
            unresolved=tuple(sorted(pairs, key=lambda pair: (row[pair[0]], row[pair[1]]))),
            disputed_by=self.order(outcome.disputed_by),
            cycles=tuple(map(self.order, outcome.cycles)),
            ballots=tuple(notes),
        )

    def order(self, seats: Iterable[str]) -> tuple[str, ...]:
        """Order seats by their labels while names are hidden."""
        return tuple(sorted(seats, key=self.name) if self.hides_names else seats)

    def sort(self, texts: Sequence[_Text]) -> Sequence[_Text]:
        """Sort texts of seats while names are hidden."""
        return sorted(texts) if self.hides_names else texts

    def name_list(self, seats: Iterable[str]) -> str:
        """List seats in words; in label order while names are hidden."""
        return list_text([*map(self.name, self.order(seats))])

    def sentence(self, sentence: str) -> str:
        """Replace names, or lists of them, in one of our sentences."""
        if not self.hides_names:
            return sentence
        one = self._one()
        # The chairman's name would reveal its label.
        masked = re.sub(rf"(?:the )?chairman {one}", CHAIRMAN, sentence)
        run = re.compile(rf"(?<![\w-]){one}(?:, {one})*(?: and {one})?")
        masked = run.sub(lambda match: self.name_list(re.findall(one, match[0])), masked)
        return self._mask(masked)

    def quote(self, text: str) -> str:
        """Mask names of authors in a model's text until the reveal."""
        return self._mask(text) if self.hides_names else text

    def quote_notes(self, text: str) -> str:
        """Rewrite bracketed candidates of a reviewer's notes as labels."""
        if not self.hides_names:
            return text
        one = self._one()
        label_list = re.compile(rf"\[{one}(?: ?[,;&/] ?{one})*\]")
        return self.quote(
            label_list.sub(
                lambda match: re.sub(one, lambda each: self.name(each[0]), match[0]), text
            )
        )

    def quote_partial(self, text: str) -> str:
        """Mask an unfinished text; while names are hidden, delay its end.

        Whether something is a name depends on the following words.
        """
        if not self.hides_names:
            return text
        words = text.rsplit(None, AWAITED)
        known = len(words[0]) if len(words) > AWAITED else 0
        return self.quote(text[: max(known, len(text) - AWAITED_CHARS)])

    def _one(self) -> str:
        """Return the pattern of one name."""
        names = sorted({*self.labels, *self.others}, key=len, reverse=True)
        return rf"(?:{'|'.join(map(re.escape, names))})(?![\w-])"

    def _mask(self, text: str) -> str:
        # Imported here because counting ballots does not need it.
        from witan.deliberation.texts import mask, masked_names

        models = tuple(masked_names((*self.opening.seats, *self.opening.callable_seats)))
        return mask(text, self.opening.question, models)


def find_seat(session: "Session", value: str) -> str:
    """Find the seat for a value in a form or address, hidden or not.

    Unknown values are returned unchanged, and the caller refuses them.
    """
    opened = session.opening
    seat_names = dict.fromkeys(seat.name for seat in (*opened.seats, *opened.jury))
    if value in seat_names:
        return value
    naming = SeatNames.of(session, hides_names=True)
    return {naming.value(seat): seat for seat in seat_names}.get(value, value)


def _labels(session: "Session", seats: list[str]) -> dict[str, str]:
    """Map seats to the chairman's labels, then the other seats.

    Other seats are numbered at random, because their order would reveal them.
    """
    has_ballots = any(not ballot.abstained for ballot in session.ballots)
    visible_seats = (
        [name for name in session.answers if name not in session.failed] if has_ballots else seats
    )
    labels = _draw_labels(session, visible_seats)
    cited = {} if session.synthesis is None else session.synthesis.labels
    if any(labels.get(seat) != label for label, seat in cited.items()):
        labels = {seat: label for label, seat in cited.items()}
    rest = [name for name in seats if name not in labels]
    letters = [
        each for each in _draw_labels(session, seats).values() if each not in labels.values()
    ]
    return labels | dict(zip(_draw_labels(session, rest), letters, strict=False))


def _draw_labels(session: "Session", seats: list[str]) -> dict[str, str]:
    from witan.deliberation.session import SYNTHESIS_LABELS

    sheet = label_map("chairman", seats, (session.opening.seed, SYNTHESIS_LABELS))
    return dict(zip(sheet.candidates, sheet.labels, strict=True))


def _permute(
    square: tuple[tuple[_Cell, ...], ...], rows: Sequence[int]
) -> tuple[tuple[_Cell, ...], ...]:
    """Reorder rows and columns; leave other shapes unchanged."""
    if len(square) != len(rows):
        return square
    return tuple(tuple(square[i][j] for j in rows) for i in rows)


MOST_PAIRED = 50
"""Most candidates in a table or chart of all pairs, which grows with their square."""


def first_of(n_candidates: int) -> str:
    """State that only the first candidates are shown, if so."""
    if n_candidates <= MOST_PAIRED:
        return ""
    return f", for the first {MOST_PAIRED} of {n_candidates:,} candidates"
