"""Recognition of the scale on which all grades of one source are given."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from witan.core.ballot import Ballot
from witan.core.scale import (
    FAILED,
    HOLISTIC,
    NATIVE,
    PASS_FAIL,
    PASSED,
    STARS,
    WRITTEN,
    Range,
    Scale,
)
from witan.errors import UnclearScale

__all__ = ["Evidence", "declared", "recognised", "rescaled"]

UNIT, THIRDS, HALF = Range(0.0, 1.0), Range(0.0, 3.0), Range(0.0, 5.0)
FIVE, SEVEN = Range(1.0, 5.0), Range(1.0, 7.0)
TEN, TWENTY, HUNDRED = Range(0.0, 10.0), Range(0.0, 20.0), Range(0.0, 100.0)

NATIVE_SCALE = Scale()
"""The scale of the council's own reviews."""

BULK = 0.9
"""Where this share of the grades lies in one range, the others are taken to lie outside it."""

DOUBTFUL = 0.5
"""Where this share does, but not the bulk, the grades are refused."""


@dataclass(slots=True)
class _Numbers:
    """What is known of the plain numbers on one criterion, whatever their order."""

    n: int = 0
    low: float = inf
    high: float = -inf
    whole: bool = True
    within: Counter[Range] = field(default_factory=Counter)
    fractions: int = 0
    over_five: int = 0
    over_ten: int = 0

    def add(self, number: float) -> None:
        self.n += 1
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole = self.whole and number == int(number)
        self.fractions += 0 < number < 1
        self.over_five += 5 < number <= 10
        self.over_ten += 10 < number <= 100
        for known in (UNIT, TEN, NATIVE, TWENTY, HUNDRED):
            self.within[known] += known.low <= number <= known.high

    def merge(self, other: "_Numbers") -> None:
        self.n += other.n
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole = self.whole and other.whole
        self.within += other.within
        self.fractions += other.fractions
        self.over_five += other.over_five
        self.over_ten += other.over_ten

    def share(self, known: Range) -> float:
        return self.within[known] / self.n

    def outside(self, known: Range) -> str:
        """What becomes of the grades on this scale."""
        out = self.n - self.within[known]
        return f"clamps {out:,} of {self.n:,} grades" if out else "takes all of them"


@dataclass(slots=True)
class _Criterion:
    """The grades on one criterion, by the way they are written."""

    numbers: _Numbers = field(default_factory=_Numbers)
    words: int = 0
    percents: int = 0
    out_of: dict[float, float] = field(default_factory=dict)

    def add(self, value: object) -> None:
        if isinstance(value, bool):
            self.words += 1
        elif isinstance(value, int | float):
            if -1e300 < value < 1e300:
                self.numbers.add(value)
        elif isinstance(value, str):
            self._add_text(value.strip())

    def _add_text(self, text: str) -> None:
        found = WRITTEN.fullmatch(text)
        if found is None:
            self.words += text.casefold() in PASSED or text.casefold() in FAILED
        elif found[2]:
            self.percents += 1
        elif found[3]:
            most, number = float(found[3]), float(found[1])
            self.out_of[most] = min(number, self.out_of.get(most, inf))
        else:
            self.numbers.add(float(found[1]))

    def written(self) -> Range | None:
        """The scale that the text of the grades says by itself; None: it says none."""
        if self.out_of:
            best = next(iter(self.out_of))
            worst = 1.0 if best in STARS and self.out_of[best] >= 1 else 0.0
            return Range(worst, best) if best > worst else None
        if self.percents:
            return HUNDRED
        return PASS_FAIL if self.words else None


class Evidence:
    """The grades of one source that declare no scale, counted as they come by."""

    def __init__(self) -> None:
        self._criteria: dict[str, _Criterion] = {}

    def add(self, ballot: Ballot) -> None:
        """Take in the grades of a ballot, unless it declares its scale."""
        if ballot.scale is not None:
            return
        for given in ballot.grades.values():
            if isinstance(given, Mapping):
                for criterion, value in given.items():
                    self._of(criterion).add(value)
            else:
                self._of(HOLISTIC).add(given)

    def _of(self, criterion: str) -> _Criterion:
        found = self._criteria.get(criterion)
        if found is None:
            found = self._criteria[criterion] = _Criterion()
        return found

    @property
    def may_be_native(self) -> bool:
        """Whether all grades, or half of those on each criterion and some above 5, are on 1-10."""
        return all(
            _may_be_native(held.numbers) if held.numbers.n else held.written() in (None, NATIVE)
            for held in self._criteria.values()
        )

    def scale(self) -> Scale:
        """The scale of the source.

        All criteria together are read on one scale, but for those that are on another beyond
        doubt: fractions up to 1 beside whole grades, or grades up to 100.

        Raises
        ------
        UnclearScale
            If the numbers fit no scale, or two as well.
        """
        apart, together, alternatives = self._parted()
        whole = NATIVE
        if together.n:
            whole, alternatives = _read(together, None)
        elif apart:
            whole = apart.get(HOLISTIC, Counter(apart.values()).most_common(1)[0][0])
        found = Scale.of_ranges(whole, apart)
        return replace(found, recognised=True, instead=tuple(map(str, alternatives)))

    def _parted(self) -> tuple[dict[str, Range], _Numbers, tuple[Range, ...]]:
        """Criteria on a scale of their own, the numbers of the others, and what else fits."""
        apart: dict[str, Range] = {}
        together = _Numbers()
        binary: dict[str, _Numbers] = {}
        alternatives: tuple[Range, ...] = ()
        for name, held in self._criteria.items():
            numbers = held.numbers
            if not numbers.n:
                if (said := held.written()) is not None:
                    apart[name] = said
            elif _is_binary(numbers):
                binary[name] = numbers
            elif _stands_alone(numbers):
                apart[name], alternatives = _read(numbers, name)
            else:
                together.merge(numbers)
        others = together.n, together.low
        for name, numbers in binary.items():
            # 0 and 1 are the ends of 0-1, unless others make them grades of a wider scale.
            if others[0] and (others[1] < 1 or numbers.low == 1):
                together.merge(numbers)
            else:
                apart[name] = UNIT
        if binary and all(numbers.low == 1 for numbers in binary.values()):
            alternatives = FIVE, NATIVE
        return apart, together, alternatives


def recognised(ballots: Iterable[Ballot]) -> list[Ballot]:
    """The ballots, with the scale of all that declare none; it stays 1-10 where it may be that.

    Raises
    ------
    UnclearScale
        As `Evidence.scale`.
    """
    given, evidence = list(ballots), Evidence()
    for ballot in given:
        if ballot.grades:
            evidence.add(ballot)
    if evidence.may_be_native:
        return given
    return declared(given, evidence.scale())


def declared(ballots: Iterable[Ballot], scale: Scale = NATIVE_SCALE) -> list[Ballot]:
    """The ballots, with this scale where they declare none; council reviews are from 1 to 10."""
    return [replace(b, scale=scale) if b.grades and b.scale is None else b for b in ballots]


def rescaled(ballots: Iterable[Ballot], scale: Scale | str) -> list[Ballot]:
    """The ballots with this scale, whatever theirs was."""
    given = Scale.parse(scale) if isinstance(scale, str) else scale
    return [replace(b, scale=given) if b.grades else b for b in ballots]


def _may_be_native(numbers: _Numbers) -> bool:
    inside = numbers.share(NATIVE)
    return inside == 1 or (inside >= DOUBTFUL and numbers.over_five > 0)


def _is_binary(numbers: _Numbers) -> bool:
    return numbers.whole and numbers.low >= 0 and numbers.high <= 1


def _stands_alone(numbers: _Numbers) -> bool:
    """Whether these are fractions up to 1, or mostly beyond 10, whatever other criteria say."""
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return True
    return numbers.high > 10 and numbers.share(TEN) < DOUBTFUL


def _read(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    """The range of these numbers, and others that they fit."""
    low, high = numbers.low, numbers.high
    if low >= 0 and high <= 1:
        return UNIT, () if numbers.fractions or low < 1 else (FIVE, NATIVE)
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return _clamped(numbers, UNIT, _wider(numbers), criterion)
    if low < 0 or high > 10:
        return _beyond_ten(numbers, criterion)
    if low < 1 and high <= 5:
        thirds = numbers.whole and high <= 3
        return (THIRDS, (HALF, TEN)) if thirds else (HALF, (TEN,))
    if high <= 5:
        return FIVE, (NATIVE,)
    seven = numbers.whole and (low, high) == (SEVEN.low, SEVEN.high)
    return (NATIVE, (SEVEN,) if seven else ()) if low >= 1 else (TEN, ())


def _wider(numbers: _Numbers) -> Range:
    """The smallest known range that holds all, or the range that they span themselves."""
    known = (UNIT, HALF, TEN, TWENTY, HUNDRED)
    fits = (one for one in known if one.low <= numbers.low and numbers.high <= one.high)
    return next(fits, Range(min(numbers.low, 0.0), numbers.high))


def _beyond_ten(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    """The range of numbers of which some are below 0 or above 10."""
    tenth = NATIVE if numbers.share(NATIVE) == numbers.share(TEN) else TEN
    if numbers.over_five and numbers.share(tenth) >= DOUBTFUL:
        return _clamped(numbers, tenth, _wider(numbers), criterion)
    if numbers.low >= 0 and numbers.high <= 20:
        return TWENTY, (HUNDRED,)
    if numbers.low >= 0 and numbers.high <= 100:
        return HUNDRED, ()
    if numbers.over_ten and numbers.share(HUNDRED) >= DOUBTFUL:
        return _clamped(numbers, HUNDRED, _wider(numbers), criterion)
    raise _unclear(numbers, _nearest(numbers), _wider(numbers), criterion)


def _clamped(
    numbers: _Numbers, likely: Range, wider: Range, criterion: str | None
) -> tuple[Range, tuple[Range, ...]]:
    """The likely range where nearly all numbers lie in it; else nobody can tell."""
    if numbers.share(likely) >= BULK:
        return likely, (wider,)
    raise _unclear(numbers, likely, wider, criterion)


def _nearest(numbers: _Numbers) -> Range:
    """The known range that holds most of the numbers."""
    return max((NATIVE, TEN, UNIT, HUNDRED), key=lambda known: numbers.within[known])


def _unclear(numbers: _Numbers, likely: Range, wider: Range, criterion: str | None) -> UnclearScale:
    where = "" if criterion in (None, HOLISTIC) else f" on {criterion!r}"
    named = "" if not where else f"{criterion}="
    problem = f"the scale of the grades{where} is unclear: they run from {numbers.low:.6g} to "
    readings = [(f"{named}{wider}", "takes all of them")]
    if numbers.share(likely) >= DOUBTFUL:
        readings.insert(0, (f"{named}{likely}", numbers.outside(likely)))
    elif (spanned := Range(numbers.low, numbers.high)) != wider:
        readings.insert(0, (f"{named}{spanned}", "takes all of them"))
    return UnclearScale(f"{problem}{numbers.high:.6g}", readings)
