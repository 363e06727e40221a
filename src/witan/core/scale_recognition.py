"""Recognition of the scale of all grades of one source."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from zlib import crc32

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
    decimal,
    grade_on,
    is_empty,
)
from witan.errors import UnclearScale

UNIT, THIRDS, HALF = Range(0.0, 1.0), Range(0.0, 3.0), Range(0.0, 5.0)
FIVE, SEVEN = Range(1.0, 5.0), Range(1.0, 7.0)
TEN, TWENTY, HUNDRED = Range(0.0, 10.0), Range(0.0, 20.0), Range(0.0, 100.0)

SIZES = (UNIT, TEN)
"""A scale up to 1, one up to 10; what lies beyond is on one up to 100."""

NATIVE_SCALE = Scale()
"""The scale of the council's own reviews."""

BULK = 0.9
"""Where this share of the grades lies in one range, the others are taken to lie outside it."""

MOST_VALUES = 256
"""Different grades on one criterion that are counted one by one before they are summed up."""

LONGEST_VALUE = 40
"""Characters of a grade in text that is counted before it is read; longer ones are read at once."""

MOST_REVIEWERS = 1000
"""Among more reviewers nobody has a scale of its own; their grades are counted together."""

MOST_CANDIDATES = 256
"""Candidates of one reviewer that are told apart by name; of more, some share an entry."""

FEWEST_CANDIDATES = 2
"""Candidates that others grade high, of whom a reviewer on a scale of its own grades so many."""

CHANCE = 0.1
"""Likelihood below which a reviewer is not on the scale of the others."""

DOUBTFUL = 0.5
"""Where this share does, but not the bulk, the grades are refused."""


@dataclass(slots=True)
class _Numbers:
    """The plain numbers on one criterion, summed up independently of their order."""

    n: int = 0
    low: float = inf
    high: float = -inf
    whole: bool = True
    within: Counter[Range] = field(default_factory=Counter)
    fractions: int = 0
    over_five: int = 0
    over_ten: int = 0
    fives: int = 0

    def add(self, number: float, times: int) -> None:
        self.n += times
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole = self.whole and number == int(number)
        self.fractions += times * (0 < number < 1)
        self.over_five += times * (5 < number <= 10)
        self.over_ten += times * (10 < number <= 100)
        self.fives += times * (number % 5 == 0)
        for known in (UNIT, TEN, NATIVE, TWENTY, HUNDRED):
            self.within[known] += times * (known.low <= number <= known.high)

    def merge(self, other: "_Numbers") -> None:
        self.n += other.n
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole = self.whole and other.whole
        self.within += other.within
        self.fractions += other.fractions
        self.over_five += other.over_five
        self.over_ten += other.over_ten
        self.fives += other.fives

    def share(self, known: Range) -> float:
        return self.within[known] / self.n

    def outside(self, known: Range) -> str:
        """Say how many grades this scale would clamp."""
        out = self.n - self.within[known]
        return f"clamps {out:,} of {self.n:,} grades" if out else "takes all of them"


@dataclass(slots=True)
class _Grades:
    """One reviewer's plain numbers for a candidate: count, sum, excess by size."""

    n: int = 0
    total: float = 0.0
    beyond: list[int] = field(default_factory=lambda: [0] * len(SIZES))

    def merge(self, other: "_Grades") -> None:
        self.n += other.n
        self.total += other.total
        self.beyond = [mine + more for mine, more in zip(self.beyond, other.beyond, strict=True)]


@dataclass(slots=True)
class _Candidates:
    """A reviewer's plain numbers by candidate."""

    entries: dict[str, _Grades] = field(default_factory=dict)
    are_hashed: bool = False

    def add(self, name: str, number: float) -> None:
        """Count one number; names beyond `MOST_CANDIDATES` share entries, whatever their order."""
        key = _bucket(name) if self.are_hashed else name
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = _Grades()
        entry.n += 1
        entry.total += number
        for size, known in enumerate(SIZES):
            entry.beyond[size] += number > known.high
        if not self.are_hashed and len(self.entries) > MOST_CANDIDATES:
            self.entries, self.are_hashed = self.hashed(), True

    def hashed(self) -> dict[str, _Grades]:
        """The entries by bucket of their names."""
        if self.are_hashed:
            return self.entries
        buckets: dict[str, _Grades] = {}
        for name, entry in self.entries.items():
            buckets.setdefault(_bucket(name), _Grades()).merge(entry)
        return buckets


def _bucket(name: str) -> str:
    return str(crc32(name.encode("utf-8", "surrogatepass")) % MOST_CANDIDATES)


@dataclass(slots=True)
class _Criterion:
    """The grades on one criterion, by the way they are written."""

    counts: dict[float | str, int] = field(default_factory=dict)
    plain: _Numbers = field(default_factory=_Numbers)
    words: int = 0
    percents: int = 0
    least: dict[float, float] = field(default_factory=dict)
    candidates: _Candidates = field(default_factory=_Candidates)

    def add(self, value: object, candidate: str | None) -> None:
        """Count one grade, for a candidate where reviewers are told apart.

        Grades that are equal are one entry until somebody asks.
        """
        if type(value) is bool:
            self.words += 1
        elif isinstance(value, str) and len(value) > LONGEST_VALUE:
            self._add_text(value.strip(), 1)
        elif isinstance(value, float | int | str):
            self.counts[value] = self.counts.get(value, 0) + 1
            if len(self.counts) > MOST_VALUES:
                self.fold()
        if candidate is not None and (number := _plain_number(value)) is not None:
            self.candidates.add(candidate, number)

    def merge(self, other: "_Criterion") -> None:
        """Take in the grades of another."""
        other.fold()
        self.plain.merge(other.plain)
        self.words += other.words
        self.percents += other.percents
        for best, least in other.least.items():
            self.least[best] = min(least, self.least.get(best, inf))

    @property
    def numbers(self) -> _Numbers:
        self.fold()
        return self.plain

    @property
    def units(self) -> set[float]:
        """Denominators of the grades; 100 for per cent."""
        self.fold()
        return {*self.least, *([100.0] if self.percents else [])}

    @property
    def is_mixed(self) -> bool:
        """True for different denominators, or some in per cent."""
        self.fold()
        return len(self.least) + bool(self.percents) > 1

    def written(self) -> Range | None:
        """The scale written in the grades themselves, if any."""
        self.fold()
        if self.is_mixed:
            return UNIT
        for best, least in self.least.items():
            return Range(1.0 if best in STARS and least >= 1 else 0.0, best)
        if self.percents:
            return HUNDRED
        return PASS_FAIL if self.words else None

    def fold(self) -> None:
        """Sum up the individually counted grades."""
        counts, self.counts = self.counts, {}
        for value, times in counts.items():
            if isinstance(value, str):
                self._add_text(value.strip(), times)
            elif -1e300 < value < 1e300:
                self.plain.add(value, times)

    def _add_text(self, text: str, times: int) -> None:
        result = WRITTEN.fullmatch(text)
        if result is None:
            self.words += times * (text.casefold() in PASSED or text.casefold() in FAILED)
        elif result[2]:
            self.percents += times
        elif result[3]:
            best, number = decimal(result[3]), decimal(result[1])
            if best > 0:
                self.least[best] = min(number, self.least.get(best, inf))
        else:
            self.plain.add(decimal(result[1]), times)


@dataclass(slots=True)
class _Parts:
    """Criteria of their own scale, criteria of a shared one, and alternatives."""

    apart: dict[str, Range] = field(default_factory=dict)
    together: _Numbers = field(default_factory=_Numbers)
    units: set[float] = field(default_factory=set)
    instead: dict[str, tuple[Range, ...]] = field(default_factory=dict)

    def merge(self, reading: _Criterion) -> None:
        """Read these grades on one scale with the others."""
        self.together.merge(reading.numbers)
        if reading.is_mixed:
            self.units |= reading.units

    def scale(
        self, whole: Range | None = None, but: Mapping[str, Range] = MappingProxyType({})
    ) -> Scale:
        """The scale of the shared criteria, with exceptions."""
        apart = {**self.apart, **but}
        if whole is None:
            often = Counter(apart.values())
            common = min(often, key=lambda one: (-often[one], str(one)), default=NATIVE)
            whole = apart.get(HOLISTIC, common)
        return Scale.of_ranges(whole, apart)


@dataclass(frozen=True, slots=True)
class Scales:
    """The scale of a source, and those of deviating reviewers."""

    shared: Scale
    apart: Mapping[str, Scale] = field(default_factory=dict)

    def of(self, reviewer: str) -> Scale:
        """The scale of this reviewer's grades."""
        return self.apart.get(reviewer, self.shared)


class GradeEvidence:
    """Counts of one source's grades without a declared scale."""

    def __init__(self) -> None:
        self._reviewers: dict[str, dict[str, _Criterion]] = {}
        self._crowd: dict[str, _Criterion] | None = None

    def add(self, ballot: Ballot) -> None:
        """Take in the grades of a ballot, unless it declares its scale."""
        if ballot.scale is not None or not ballot.grades:
            return
        criteria = self._crowd
        if criteria is None:
            criteria = self._reviewers.setdefault(ballot.reviewer, {})
        for name, grade_or_sheet in ballot.grades.items():
            candidate = name if self._crowd is None else None
            if isinstance(grade_or_sheet, Mapping):
                for criterion, value in grade_or_sheet.items():
                    _scale_of(criteria, criterion).add(value, candidate)
            else:
                _scale_of(criteria, HOLISTIC).add(grade_or_sheet, candidate)
        if len(self._reviewers) > MOST_REVIEWERS:
            self._crowd = self._pool_criteria(self._reviewers)
            self._reviewers = {}

    def scale(self) -> Scale:
        """The scale of the source, all reviewers together; see `scales`."""
        return _scale(self._pool_criteria(self._reviewers) if self._crowd is None else self._crowd)

    def scales(self) -> Scales:
        """Recognise the source's scale and the smaller ones of single reviewers.

        All criteria together are read on one scale, but for those that are on another beyond
        doubt: fractions up to 1 beside whole grades, or grades up to 100. Grades out of different
        numbers, and in per cent beside others, are shares of their best. The order in which grades
        come by decides nothing.

        Raises
        ------
        UnclearScale
            If the numbers fit no scale, or two as well.
        """
        sizes = self._sizes() if len(self._reviewers) > 1 else {}
        if not sizes:
            return Scales(self.scale())
        kinds: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for reviewer in sorted(self._reviewers):
            kinds.setdefault(tuple(sorted(sizes.get(reviewer, {}).items())), []).append(reviewer)
        result: dict[str, Scale] = {}
        for kind, reviewers in kinds.items():
            scale = _scale(self._pool_criteria(self._reviewers, dict(kind), sizes))
            scale = replace(scale, reviewers=tuple(reviewers))
            result |= dict.fromkeys(reviewers, scale)
        return Scales(result[next(iter(result))], result)

    def _sizes(self) -> dict[str, dict[str, int]]:
        """Reviewer to its criteria of a smaller scale, with sizes."""
        result: dict[str, dict[str, int]] = {}
        for criterion in sorted({name for reading in self._reviewers.values() for name in reading}):
            grades = {
                reviewer: reading[criterion]
                for reviewer, reading in self._reviewers.items()
                if criterion in reading and reading[criterion].numbers.n
            }
            for reviewer, size in _smaller(grades).items():
                result.setdefault(reviewer, {})[criterion] = size
        return result

    def _pool_criteria(
        self,
        reviewers: Iterable[str],
        kind: Mapping[str, int] = MappingProxyType({}),
        sizes: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> dict[str, _Criterion]:
        """Grades per criterion from reviewers of one kind."""
        result: dict[str, _Criterion] = {}
        for reviewer in reviewers:
            mine = sizes.get(reviewer, {})
            for criterion, reading in self._reviewers[reviewer].items():
                if mine.get(criterion) == kind.get(criterion):
                    _scale_of(result, criterion).merge(reading)
        return result


def _plain_number(value: object) -> float | None:
    """Read a grade as a plain number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, float | int | str):
        return None
    if isinstance(value, str):
        written = WRITTEN.fullmatch(value.strip())
        plain = written is not None and not written[2] and not written[3]
        return decimal(written[1]) if written is not None and plain else None
    return float(value) if -1e300 < value < 1e300 else None


def _scale_of(criteria: dict[str, _Criterion], name: str) -> _Criterion:
    result = criteria.get(name)
    if result is None:
        result = criteria[name] = _Criterion()
    return result


def _scale(criteria: Mapping[str, _Criterion]) -> Scale:
    """The scale of all these grades together."""
    parts = _split_criteria(criteria)
    whole: Range | None = None
    others: tuple[Range, ...] = ()
    if parts.together.n:
        whole, others = _read(parts.together, None)
        if whole.low == 1 and whole.high in parts.units:
            whole = Range(0.0, whole.high)  # so that 6, 6/10 and 60 % are one grade
    result = parts.scale(whole)
    instead = {str(parts.scale(other)): None for other in others}
    for name, others in parts.instead.items():
        instead |= {str(parts.scale(whole, {name: other})): None for other in others}
    mixed = any(reading.is_mixed for reading in criteria.values())
    known = parts.together.n > 0 or bool(parts.apart)  # of words alone nothing is recognised
    words = any(reading.numbers.n and reading.words for reading in criteria.values())
    return replace(result, recognised=known, instead=tuple(instead), shares=mixed, words=words)


def _smaller(criteria: Mapping[str, _Criterion]) -> dict[str, int]:
    """Reviewers with plainly smaller scales than the others'.

    A reviewer is on a smaller scale if all its grades lie on one and differ, most of the others'
    lie beyond, and it grades several candidates whom the others grade high, one of the better ones
    among them, so that grades such as those of the others would hardly ever all lie there.
    """
    numbers = {reviewer: reading.numbers for reviewer, reading in criteria.items()}
    size_of = {reviewer: _size(reading) for reviewer, reading in numbers.items()}
    by_candidate = _by_candidate(criteria)
    result: dict[str, int] = {}
    for size, known in enumerate(SIZES):
        larger = _Numbers()
        others = [reviewer for reviewer in numbers if size_of[reviewer] > size]
        for reviewer in others:
            larger.merge(numbers[reviewer])
        if not larger.n or larger.share(known) >= DOUBTFUL:
            continue
        if known is TEN and larger.share(TWENTY) >= DOUBTFUL:
            continue  # twice as high is no other scale beyond doubt
        high, better = _graded_high([(numbers[one], by_candidate[one]) for one in others])
        for reviewer, reading in numbers.items():
            if (
                size_of[reviewer] == size
                and _may_be_smaller(reading, larger, known)
                and not better.isdisjoint(by_candidate[reviewer])
                and _is_unlikely(by_candidate[reviewer], high, size)
            ):
                result[reviewer] = size
    return result


def _size(numbers: _Numbers) -> int:
    for size, known in enumerate(SIZES):
        if numbers.share(known) == 1 and numbers.high > 0:
            return size
    return len(SIZES)


def _by_candidate(criteria: Mapping[str, _Criterion]) -> dict[str, dict[str, _Grades]]:
    """Reviewer to its numbers by candidate, under the same keys for all."""
    if any(reading.candidates.are_hashed for reading in criteria.values()):
        return {reviewer: reading.candidates.hashed() for reviewer, reading in criteria.items()}
    return {reviewer: reading.candidates.entries for reviewer, reading in criteria.items()}


def _graded_high(
    reviewers: Iterable[tuple[_Numbers, Mapping[str, _Grades]]],
) -> tuple[dict[str, _Grades], set[str]]:
    """Candidates graded above the middle by most, and the better among them.

    The better ones are those whom most reviewers of several candidates grade at least as high as
    they do on the whole.
    """
    high: Counter[str] = Counter()
    better: Counter[str] = Counter()
    together: dict[str, _Grades] = {}
    for numbers, by_candidate in reviewers:
        wider = _wider(numbers)
        middle = (wider.low + wider.high) / 2
        mean = sum(one.total for one in by_candidate.values()) / numbers.n
        for name, grades in by_candidate.items():
            own = grades.total / grades.n
            high[name] += 1 if own > middle else -1
            if len(by_candidate) > 1:
                better[name] += 1 if own >= mean - 1e-9 * abs(mean) else -1
            together.setdefault(name, _Grades()).merge(grades)
    result = {name: grades for name, grades in together.items() if high[name] > 0}
    return result, {name for name in result if better[name] > 0}


def _may_be_smaller(numbers: _Numbers, larger: _Numbers, known: Range) -> bool:
    """Check for varied grades, unlike a strict reviewer's."""
    if numbers.low == numbers.high:
        return False
    if known is UNIT and not numbers.fractions:
        # 0 and 1 may be the lowest grades of a wider scale, unless that begins at 1.
        return numbers.low == 0 and numbers.high == 1 and larger.low >= 1
    # 0, 5 and 10 of 100 are what a strict reviewer gives.
    return not (known is TEN and larger.within[known] > 0 and numbers.fives == numbers.n)


def _is_unlikely(mine: Mapping[str, _Grades], high: Mapping[str, _Grades], size: int) -> bool:
    """Check that one reviewer's grades within this size would be improbable."""
    both = [name for name in mine if name in high]
    if len(both) < FEWEST_CANDIDATES:
        return False
    n = sum(high[name].n for name in both)
    within = n - sum(high[name].beyond[size] for name in both)
    chance = (within + 1) / (n + 2)
    return bool(chance ** sum(mine[name].n for name in both) < CHANCE)


def _split_criteria(criteria: Mapping[str, _Criterion]) -> _Parts:
    """Criteria of their own scale, and the numbers of the others."""
    parts = _Parts()
    binary: dict[str, _Criterion] = {}
    for name, reading in sorted(criteria.items()):
        numbers = reading.numbers
        if not numbers.n:
            if (sentence := reading.written()) is not None:
                parts.apart[name] = sentence
        elif _is_binary(numbers):
            binary[name] = reading
        elif _stands_alone(numbers):
            parts.apart[name], parts.instead[name] = _read(numbers, name)
        else:
            parts.merge(reading)
    others = parts.together.n, parts.together.low
    for name, reading in binary.items():
        # 0 and 1 are the ends of 0-1, unless others make them grades of a wider scale.
        if others[0] and (others[1] < 1 or reading.numbers.low == 1):
            parts.merge(reading)
        else:
            parts.apart[name], parts.instead[name] = _read(reading.numbers, name)
    return parts


def recognise_scales(ballots: Iterable[Ballot]) -> list[Ballot]:
    """Put undeclared ballots on their recognised scale.

    Raises
    ------
    UnclearScale
        As `GradeEvidence.scale`.
    """
    grade_or_sheet, evidence = list(ballots), GradeEvidence()
    unknown = False
    for ballot in grade_or_sheet:
        if ballot.grades and ballot.scale is None:
            unknown = True
            evidence.add(ballot)
    if not unknown:
        return grade_or_sheet
    scales = evidence.scales()
    return [put_on_scale(ballot, scales) for ballot in grade_or_sheet]


def put_on_scale(ballot: Ballot, scales: Scales) -> Ballot:
    """Put a ballot with undeclared grades on its reviewer's scale."""
    if not ballot.grades or ballot.scale is not None:
        return ballot
    scale = scales.of(ballot.reviewer)
    named = scale.instead or scale.reviewers or scale.words
    beyond_doubt = scale.is_native and not named and not _has_odd_grades(ballot)
    return replace(ballot, scale=NATIVE_SCALE if beyond_doubt else scale)


def _has_odd_grades(ballot: Ballot) -> bool:
    """Test for a grade other than a number from 1 to 10."""
    for grade_or_sheet in ballot.grades.values():
        for one in (
            grade_or_sheet.values() if isinstance(grade_or_sheet, Mapping) else (grade_or_sheet,)
        ):
            if type(one) is int and 1 <= one <= 10:
                continue  # as nearly every grade is
            read = grade_on(NATIVE, one)
            if (read is None and not is_empty(one)) or (read is not None and read[1]):
                return True
    return False


def declare_native(ballot: Ballot) -> Ballot:
    """Declare the scale 1-10 on a ballot without one, as in reviews."""
    if not ballot.grades or ballot.scale is not None:
        return ballot
    return replace(ballot, scale=NATIVE_SCALE)


def drop_native(ballot: Ballot) -> Ballot:
    """Drop the scale 1-10 from a ballot, as in council records."""
    if ballot.scale is None or not ballot.scale.is_native:
        return ballot
    return replace(ballot, scale=None)


def rescale(ballots: Iterable[Ballot], scale: Scale | str) -> list[Ballot]:
    """The ballots with this scale, whatever theirs was."""
    grade_or_sheet = Scale.parse(scale) if isinstance(scale, str) else scale
    return [replace(b, scale=grade_or_sheet) if b.grades else b for b in ballots]


def _is_binary(numbers: _Numbers) -> bool:
    return numbers.whole and numbers.low >= 0 and numbers.high <= 1


def _stands_alone(numbers: _Numbers) -> bool:
    """True for fractions up to 1, or grades mostly beyond 10."""
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return True
    return numbers.high > 10 and numbers.share(TEN) < DOUBTFUL


def _read(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    """The range of these numbers, and alternatives."""
    low, high = numbers.low, numbers.high
    if low >= 0 and high <= 1:
        return UNIT, () if numbers.fractions or low < 1 else (FIVE, NATIVE)
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return _clamp(numbers, UNIT, _wider(numbers), criterion)
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
    """The smallest sufficient known range, else the numbers' own."""
    known = (UNIT, HALF, TEN, TWENTY, HUNDRED)
    fits = (one for one in known if one.low <= numbers.low and numbers.high <= one.high)
    return next(fits, Range(min(numbers.low, 0.0), max(numbers.high, 0.0)))


def _beyond_ten(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    """The range of numbers partly below 0 or above 10."""
    tenth = NATIVE if numbers.share(NATIVE) == numbers.share(TEN) else TEN
    if numbers.over_five and numbers.share(tenth) >= DOUBTFUL:
        return _clamp(numbers, tenth, _wider(numbers), criterion)
    if numbers.low >= 0 and numbers.high <= 20:
        return TWENTY, (HUNDRED,)
    if numbers.low >= 0 and numbers.high <= 100:
        return HUNDRED, ()
    if numbers.over_ten and numbers.share(HUNDRED) >= DOUBTFUL:
        return _clamp(numbers, HUNDRED, _wider(numbers), criterion)
    raise _unclear(numbers, _nearest(numbers), _wider(numbers), criterion)


def _clamp(
    numbers: _Numbers, likely: Range, wider: Range, criterion: str | None
) -> tuple[Range, tuple[Range, ...]]:
    """The likely range if nearly all numbers lie within; else undecidable."""
    if numbers.share(likely) >= BULK:
        return likely, (wider,)
    raise _unclear(numbers, likely, wider, criterion)


def _nearest(numbers: _Numbers) -> Range:
    return max((NATIVE, TEN, UNIT, HUNDRED), key=lambda known: numbers.within[known])


def _unclear(numbers: _Numbers, likely: Range, wider: Range, criterion: str | None) -> UnclearScale:
    where = "" if criterion in (None, HOLISTIC) else f" on {criterion!r}"
    named = "" if not where else f"{criterion}="
    problem = f"the scale of the grades{where} is unclear: they run from {numbers.low:.6g} to "
    readings = [(f"{named}{wider}", "takes all of them")]
    if numbers.share(likely) >= DOUBTFUL:
        readings.insert(0, (f"{named}{likely}", numbers.outside(likely)))
    elif (spanned := Range(numbers.low, numbers.high)) != wider and numbers.low < numbers.high:
        readings.insert(0, (f"{named}{spanned}", "takes all of them"))
    return UnclearScale(f"{problem}{numbers.high:.6g}", readings)
