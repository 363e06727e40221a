"""Recognise the scale of all grades from one source."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import cast
from zlib import crc32

from witan.core.ballot import Ballot, BallotTable
from witan.core.scale import (
    FAILED,
    HOLISTIC,
    NATIVE,
    NUMBER_TYPES,
    PASS_FAIL,
    PASSED,
    STARS,
    WRITTEN,
    NearScale,
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
"""A scale up to 1 and one up to 10; larger grades are on a scale up to 100."""

NATIVE_SCALE = Scale()
"""The scale of the council's own reviews."""

BULK = 0.9
"""Minimum share of grades in one range for the others to count as outliers."""

FEW = 0.01
"""Maximum share of grades outside a smaller scale to name them as deciding the scale."""

MOST_UNREAD = 512
"""Number of a reviewer's grades to collect before equal ones are read and counted together."""

LONGEST_VALUE = 40
"""Maximum length of a textual grade to collect; longer ones are read immediately."""

MOST_REVIEWERS = 1000
"""Maximum number of reviewers for recognising scales reviewer by reviewer."""

MOST_CANDIDATES = 256
"""Maximum number of a reviewer's candidates with separate entries; beyond it, some share one."""

FEWEST_CANDIDATES = 2
"""Minimum number of highly graded candidates to show that a reviewer has its own scale."""

CHANCE = 0.1
"""Likelihood below which a reviewer is not on the scale of the others."""

DOUBTFUL = 0.5
"""Minimum share in one range for it to be likely; below `BULK`, the scale is unclear."""


@dataclass(slots=True)
class _Numbers:
    """Order-independent summary of the plain numbers on one criterion."""

    n: int = 0
    low: float = inf
    high: float = -inf
    are_whole: bool = True
    fits: Counter[Range] = field(default_factory=Counter)
    fractions: int = 0
    over_five: int = 0
    over_ten: int = 0
    fives: int = 0

    def add(self, number: float, times: int) -> None:
        self.n += times
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.are_whole = self.are_whole and number == int(number)
        self.fractions += times * (0 < number < 1)
        self.over_five += times * (5 < number <= 10)
        self.over_ten += times * (10 < number <= 100)
        self.fives += times * (number % 5 == 0)
        for known in (UNIT, THIRDS, HALF, FIVE, TEN, NATIVE, TWENTY, HUNDRED):
            self.fits[known] += times * (known.low <= number <= known.high)

    def merge(self, other: "_Numbers") -> None:
        self.n += other.n
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.are_whole = self.are_whole and other.are_whole
        self.fits += other.fits
        self.fractions += other.fractions
        self.over_five += other.over_five
        self.over_ten += other.over_ten
        self.fives += other.fives

    def share(self, scale: Range) -> float:
        return self.fits[scale] / self.n

    def near_scale(self, near: Range, notation: str) -> NearScale:
        """Count the grades outside a range."""
        is_above = self.high > near.high
        extreme = self.high if is_above else self.low
        return NearScale(notation, self.n - self.fits[near], self.n, extreme, is_above)

    def describe_fit(self, scale: Range) -> str:
        """State how many grades this scale would clamp."""
        out = self.n - self.fits[scale]
        return f"clamps {out:,} of {self.n:,} grades" if out else "takes all of them"


@dataclass(slots=True)
class _Grades:
    """One reviewer's numbers for a candidate: count, sum, excess by size."""

    n: int = 0
    total: float = 0.0
    excess: list[int] = field(default_factory=lambda: [0] * len(SIZES))

    def merge(self, other: "_Grades") -> None:
        self.n += other.n
        self.total += other.total
        self.excess = [mine + more for mine, more in zip(self.excess, other.excess, strict=True)]


@dataclass(slots=True)
class _Candidates:
    """A reviewer's plain numbers by candidate."""

    entries: dict[str, _Grades] = field(default_factory=dict)
    are_hashed: bool = False

    def add(self, name: str, number: float, times: int) -> None:
        """Count a number; beyond `MOST_CANDIDATES`, names share entries by hash."""
        key = _bucket(name) if self.are_hashed else name
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = _Grades()
        entry.n += times
        entry.total += times * number
        for size, known in enumerate(SIZES):
            entry.excess[size] += times * (number > known.high)
        if not self.are_hashed and len(self.entries) > MOST_CANDIDATES:
            self.entries, self.are_hashed = self.hash_entries(), True

    def hash_entries(self) -> dict[str, _Grades]:
        """Return the entries by the hash bucket of their names."""
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
    """The grades on one criterion, by form of notation."""

    unread: list[tuple[str | None, float | str]] = field(default_factory=list)
    plain_numbers: _Numbers = field(default_factory=_Numbers)
    words: int = 0
    percents: int = 0
    lowest_grades: dict[float, float] = field(default_factory=dict)
    candidates: _Candidates = field(default_factory=_Candidates)
    are_numbers: bool = True

    def add(self, value: object, candidate: str | None) -> None:
        """Count one grade, and by candidate if it is one reviewer's count."""
        if type(value) is bool:
            self.words += 1
            self.are_numbers = False
        elif isinstance(value, str) and len(value) > LONGEST_VALUE:
            self._add_text(value.strip(), 1, candidate)
        elif isinstance(value, float | int | str):
            self.add_numbers([(candidate, value)])
        else:
            self.are_numbers = False

    def add_numbers(self, grades: Iterable[tuple[str | None, float | str]]) -> None:
        """Collect grades by candidate; count them on demand, or when many."""
        self.unread.extend(grades)
        if len(self.unread) > MOST_UNREAD:
            self.fold()

    def merge(self, other: "_Criterion") -> None:
        """Add the counts of another criterion."""
        other.fold()
        self.plain_numbers.merge(other.plain_numbers)
        self.are_numbers = self.are_numbers and other.are_numbers
        self.words += other.words
        self.percents += other.percents
        for best, least in other.lowest_grades.items():
            self.lowest_grades[best] = min(least, self.lowest_grades.get(best, inf))

    @property
    def numbers(self) -> _Numbers:
        self.fold()
        return self.plain_numbers

    @property
    def units(self) -> set[float]:
        """Denominators of the grades; 100 for percentages."""
        self.fold()
        return {*self.lowest_grades, *([100.0] if self.percents else [])}

    @property
    def is_mixed(self) -> bool:
        """True for different denominators, or fractions and percentages together."""
        self.fold()
        return len(self.lowest_grades) + bool(self.percents) > 1

    def stated_range(self) -> Range | None:
        """Return the scale written in the grades themselves, if any."""
        self.fold()
        if self.is_mixed:
            return UNIT
        for best, least in self.lowest_grades.items():
            return Range(1.0 if best in STARS and least >= 1 else 0.0, best)
        if self.percents:
            return HUNDRED
        return PASS_FAIL if self.words else None

    def takes_all(self, scale: Range) -> bool:
        """True if every grade is a plain number within this scale."""
        numbers = self.numbers
        return self.are_numbers and scale.low <= numbers.low and numbers.high <= scale.high

    def fold(self) -> None:
        """Count the collected grades; equal ones are read once."""
        unread, self.unread = self.unread, []
        numbers: Counter[float] = Counter()
        for (candidate, value), times in Counter(unread).items():
            if isinstance(value, str):
                self._add_text(value.strip(), times, candidate)
            elif -1e300 < value < 1e300:
                numbers[float(value)] += times
                if candidate is not None:
                    self.candidates.add(candidate, float(value), times)
            else:
                self.are_numbers = False
        for number, times in numbers.items():
            self.plain_numbers.add(number, times)

    def _add_text(self, text: str, times: int, candidate: str | None) -> None:
        self.are_numbers = False
        result = WRITTEN.fullmatch(text)
        if result is None:
            self.words += times * (text.casefold() in PASSED or text.casefold() in FAILED)
        elif result[2]:
            self.percents += times
        elif result[3]:
            best, number = decimal(result[3]), decimal(result[1])
            if best > 0:
                self.lowest_grades[best] = min(number, self.lowest_grades.get(best, inf))
        else:
            number = decimal(result[1])
            self.plain_numbers.add(number, times)
            if candidate is not None:
                self.candidates.add(candidate, number, times)


_Criteria = defaultdict[str, _Criterion]
"""The grades by criterion."""


def _new_criteria() -> _Criteria:
    return defaultdict(_Criterion)


@dataclass(slots=True)
class _Parts:
    """Criteria with their own scale, criteria with a shared one, and alternatives."""

    ranges: dict[str, Range] = field(default_factory=dict)
    pooled_numbers: _Numbers = field(default_factory=_Numbers)
    units: set[float] = field(default_factory=set)
    alternatives: dict[str, tuple[Range, ...]] = field(default_factory=dict)

    def merge(self, reading: _Criterion) -> None:
        """Add these grades to those with a shared scale."""
        self.pooled_numbers.merge(reading.numbers)
        if reading.is_mixed:
            self.units |= reading.units

    def scale(
        self, whole: Range | None = None, but: Mapping[str, Range] = MappingProxyType({})
    ) -> Scale:
        """Return the scale of the shared criteria, with exceptions."""
        apart = {**self.ranges, **but}
        if whole is None:
            often = Counter(apart.values())
            common = min(often, key=lambda one: (-often[one], str(one)), default=NATIVE)
            whole = apart.get(HOLISTIC, common)
        return Scale.of_ranges(whole, apart)


@dataclass(frozen=True, slots=True)
class Scales:
    """The scale of a source, and the scales of deviating reviewers."""

    shared_scale: Scale
    reviewer_scales: Mapping[str, Scale] = field(default_factory=dict)
    takes_all: bool = False
    """Every grade is a plain number within the shared scale."""

    @property
    def is_native(self) -> bool:
        """True if all grades are certainly on 1–10."""
        shared = self.shared_scale
        is_stated = shared.instead or shared.words or shared.nearly
        return self.takes_all and self.shared_scale.is_native and not is_stated

    def of(self, reviewer: str) -> Scale:
        """Return the scale of this reviewer's grades."""
        return self.reviewer_scales.get(reviewer, self.shared_scale)


class GradeEvidence:
    """Counts of one source's grades without a declared scale."""

    def __init__(self) -> None:
        self._reviewers: defaultdict[str, _Criteria] = defaultdict(_new_criteria)
        self._crowd: _Criteria | None = None

    def add(self, ballot: Ballot) -> None:
        """Add the grades of a ballot, unless it declares its scale."""
        if ballot.scale is not None or not ballot.grades:
            return
        criteria = self._crowd
        if criteria is None:
            criteria = self._reviewers[ballot.reviewer]
        if NUMBER_TYPES.issuperset(map(type, ballot.grades.values())) and self._crowd is None:
            criteria[HOLISTIC].add_numbers(
                cast("Iterable[tuple[str, float]]", ballot.grades.items())
            )
        else:
            self._add_each(ballot, criteria)
        if len(self._reviewers) > MOST_REVIEWERS:
            self._crowd = self._pool_criteria(self._reviewers)
            self._reviewers.clear()

    def add_table(self, table: BallotTable) -> None:
        """Add a table's grades; tables must come before ballots."""
        reviewers: dict[str, list[dict[str, float]]] = {}
        for reviewer, grades in zip(table.reviewers, table.grades, strict=True):
            reviewers.setdefault(reviewer, []).append(grades)
        for reviewer, grades_of_reviewer in reviewers.items():
            criteria = self._reviewers[reviewer]
            criteria[HOLISTIC].add_numbers(chain.from_iterable(map(dict.items, grades_of_reviewer)))
        if len(self._reviewers) > MOST_REVIEWERS:
            self._crowd = self._pool_criteria(self._reviewers)
            self._reviewers.clear()

    def _add_each(self, ballot: Ballot, criteria: _Criteria) -> None:
        for name, grade_or_sheet in ballot.grades.items():
            candidate = name if self._crowd is None else None
            if isinstance(grade_or_sheet, Mapping):
                for criterion, value in grade_or_sheet.items():
                    criteria[criterion].add(value, candidate)
            else:
                criteria[HOLISTIC].add(grade_or_sheet, candidate)

    def _pool_scales(self) -> Scales:
        criteria = self._pool_criteria(self._reviewers) if self._crowd is None else self._crowd
        scale = _scale(criteria)
        fits = (reading.takes_all(scale.of(name)) for name, reading in criteria.items())
        return Scales(scale, takes_all=all(fits))

    def scales(self) -> Scales:
        """Recognise the source's scale and any smaller ones of single reviewers.

        All criteria share one scale, except those that are certainly on another: fractions up to 1
        if others have whole grades, or grades up to 100. Fractions with different denominators, and
        percentages among other grades, are shares of their own maximum. The order of the grades
        does not matter.

        Raises
        ------
        UnclearScale
            If the numbers fit no scale, or fit two equally well.
        """
        sizes = self._sizes() if len(self._reviewers) > 1 else {}
        if not sizes:
            return self._pool_scales()
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
        """Map reviewers to the sizes of their criteria with a smaller scale."""
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
    ) -> _Criteria:
        """Pool reviewers' grades by criterion if their sizes match `kind`."""
        result = _new_criteria()
        for reviewer in reviewers:
            mine = sizes.get(reviewer, {})
            for criterion, reading in self._reviewers[reviewer].items():
                if mine.get(criterion) == kind.get(criterion):
                    result[criterion].merge(reading)
        return result


def _scale(criteria: Mapping[str, _Criterion]) -> Scale:
    parts = _split_criteria(criteria)
    whole: Range | None = None
    others: tuple[Range, ...] = ()
    if parts.pooled_numbers.n:
        whole, others = _choose_range(parts.pooled_numbers, None)
        if whole.low == 1 and whole.high in parts.units:
            whole = Range(0.0, whole.high)  # so that 6, 6/10 and 60% are equal
    result = parts.scale(whole)
    instead = {str(parts.scale(other)): None for other in others}
    for name, others in parts.alternatives.items():
        instead |= {str(parts.scale(whole, {name: other})): None for other in others}
    nearly = []
    if whole is not None and (near := _near_range(parts.pooled_numbers, whole)) is not None:
        nearly.append(parts.pooled_numbers.near_scale(near, str(parts.scale(near))))
    for name, chosen in parts.ranges.items():
        numbers = criteria[name].numbers
        if (near := _near_range(numbers, chosen)) is not None:
            nearly.append(numbers.near_scale(near, str(parts.scale(whole, {name: near}))))
    mixed = any(reading.is_mixed for reading in criteria.values())
    known = parts.pooled_numbers.n > 0 or bool(parts.ranges)  # words alone show no scale
    words = any(reading.numbers.n and reading.words for reading in criteria.values())
    return replace(
        result,
        recognised=known,
        instead=tuple(instead),
        shares=mixed,
        words=words,
        nearly=tuple(nearly),
    )


def _smaller(criteria: Mapping[str, _Criterion]) -> dict[str, int]:
    """Find reviewers with clearly smaller scales than the others.

    A reviewer uses a smaller scale if all its grades are on it and not all equal, most of the
    others' grades are above it, and it grades several candidates that the others grade high,
    including one of the better ones, with grades that would be unlikely on the others' scale.
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
            continue  # a factor of two does not show another scale
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
    """Map reviewers to their numbers by candidate, with common keys."""
    if any(reading.candidates.are_hashed for reading in criteria.values()):
        return {
            reviewer: reading.candidates.hash_entries() for reviewer, reading in criteria.items()
        }
    return {reviewer: reading.candidates.entries for reviewer, reading in criteria.items()}


def _graded_high(
    reviewers: Iterable[tuple[_Numbers, Mapping[str, _Grades]]],
) -> tuple[dict[str, _Grades], set[str]]:
    """Find candidates that most grade above the middle, and the better ones.

    The better ones get at least the reviewer's average from most reviewers of several candidates.
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


def _may_be_smaller(numbers: _Numbers, larger: _Numbers, scale: Range) -> bool:
    """Test if grades vary as a strict reviewer's would not."""
    if numbers.low == numbers.high:
        return False
    if scale is UNIT and not numbers.fractions:
        # 0 and 1 may be the lowest grades of a wider scale, unless that scale begins at 1.
        return numbers.low == 0 and numbers.high == 1 and larger.low >= 1
    # A strict reviewer on 0-100 may give only 0, 5 and 10.
    return not (scale is TEN and larger.fits[scale] > 0 and numbers.fives == numbers.n)


def _is_unlikely(mine: Mapping[str, _Grades], high: Mapping[str, _Grades], size: int) -> bool:
    """True if a reviewer's grades are improbably small for the others' scale."""
    shared_reviewers = [name for name in mine if name in high]
    if len(shared_reviewers) < FEWEST_CANDIDATES:
        return False
    n = sum(high[name].n for name in shared_reviewers)
    within = n - sum(high[name].excess[size] for name in shared_reviewers)
    chance = (within + 1) / (n + 2)
    return bool(chance ** sum(mine[name].n for name in shared_reviewers) < CHANCE)


def _split_criteria(criteria: Mapping[str, _Criterion]) -> _Parts:
    """Split criteria into those with their own scale and the others."""
    parts = _Parts()
    binary: dict[str, _Criterion] = {}
    for name, reading in sorted(criteria.items()):
        numbers = reading.numbers
        if not numbers.n:
            if (sentence := reading.stated_range()) is not None:
                parts.ranges[name] = sentence
        elif numbers.are_whole and numbers.low >= 0 and numbers.high <= 1:
            binary[name] = reading
        elif _stands_alone(numbers):
            parts.ranges[name], parts.alternatives[name] = _choose_range(numbers, name)
        else:
            parts.merge(reading)
    others = parts.pooled_numbers.n, parts.pooled_numbers.low
    for name, reading in binary.items():
        # 0 and 1 are the ends of 0-1, unless other criteria show a wider scale.
        if others[0] and (others[1] < 1 or reading.numbers.low == 1):
            parts.merge(reading)
        else:
            parts.ranges[name], parts.alternatives[name] = _choose_range(reading.numbers, name)
    return parts


def recognise_scales(ballots: Iterable[Ballot]) -> list[Ballot]:
    """Convert undeclared ballots to their recognised scale.

    Raises
    ------
    UnclearScale
        As `GradeEvidence.scales`.
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
    """Convert a ballot with undeclared grades to its reviewer's scale."""
    if not ballot.grades or ballot.scale is not None:
        return ballot
    if scales.is_native:
        return ballot.with_scale(NATIVE_SCALE)
    scale = scales.of(ballot.reviewer)
    named = scale.instead or scale.reviewers or scale.words or scale.nearly
    beyond_doubt = scale.is_native and not named and not _has_odd_grades(ballot)
    return ballot.with_scale(NATIVE_SCALE if beyond_doubt else scale)


def _has_odd_grades(ballot: Ballot) -> bool:
    """Test for a grade other than a number from 1 to 10."""
    for grade_or_sheet in ballot.grades.values():
        for one in (
            grade_or_sheet.values() if isinstance(grade_or_sheet, Mapping) else (grade_or_sheet,)
        ):
            if type(one) is int and 1 <= one <= 10:
                continue  # the usual case
            read = grade_on(NATIVE, one)
            if (read is None and not is_empty(one)) or (read is not None and read[1]):
                return True
    return False


def declare_native(ballot: Ballot) -> Ballot:
    """Declare the scale 1-10 on a ballot without one, as in reviews."""
    if not ballot.grades or ballot.scale is not None:
        return ballot
    return ballot.with_scale(NATIVE_SCALE)


def drop_native(ballot: Ballot) -> Ballot:
    """Remove the scale 1-10 from a ballot, as in council records."""
    if ballot.scale is None or not ballot.scale.is_native:
        return ballot
    return replace(ballot, scale=None)


def rescale(ballots: Iterable[Ballot], scale: Scale | str) -> list[Ballot]:
    """Set the ballots' scale, replacing any that they declare."""
    grade_or_sheet = Scale.parse(scale) if isinstance(scale, str) else scale
    return [b.with_scale(grade_or_sheet) if b.grades else b for b in ballots]


def _stands_alone(numbers: _Numbers) -> bool:
    """True for fractions up to 1, or grades mostly beyond 10."""
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return True
    return numbers.high > 10 and numbers.share(TEN) < DOUBTFUL


def _choose_range(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    low, high = numbers.low, numbers.high
    if low >= 0 and high <= 1:
        return UNIT, () if numbers.fractions or low < 1 else (FIVE, NATIVE)
    if numbers.fractions and numbers.share(UNIT) >= DOUBTFUL:
        return _clamp(numbers, UNIT, _wider(numbers), criterion)
    if low < 0 or high > 10:
        return _beyond_ten(numbers, criterion)
    if low < 1 and high <= 5:
        thirds = numbers.are_whole and high <= 3
        return (THIRDS, (HALF, TEN)) if thirds else (HALF, (TEN,))
    if high <= 5:
        return FIVE, (NATIVE,)
    seven = numbers.are_whole and (low, high) == (SEVEN.low, SEVEN.high)
    return (NATIVE, (SEVEN,) if seven else ()) if low >= 1 else (TEN, ())


def _near_range(numbers: _Numbers, chosen: Range) -> Range | None:
    """Return the smallest range within the chosen one that all but a few numbers fit."""
    if not numbers.n or not (chosen.low <= numbers.low and numbers.high <= chosen.high <= 10):
        return None  # the few were clamped, or the chosen scale is not one of small numbers
    known: Iterable[Range] = (UNIT, *((THIRDS,) if numbers.are_whole else ()), FIVE, HALF, NATIVE)
    for near in known:
        is_within = chosen.low <= near.low and near.high <= chosen.high and near != chosen
        if is_within and 1 - FEW <= numbers.share(near) < 1:
            return near
    return None


def _wider(numbers: _Numbers) -> Range:
    """Return the smallest sufficient known range, else the numbers' own."""
    known = (UNIT, HALF, TEN, TWENTY, HUNDRED)
    fits = (one for one in known if one.low <= numbers.low and numbers.high <= one.high)
    return next(fits, Range(min(numbers.low, 0.0), max(numbers.high, 0.0)))


def _beyond_ten(numbers: _Numbers, criterion: str | None) -> tuple[Range, tuple[Range, ...]]:
    """Choose the range of numbers partly below 0 or above 10."""
    tenth = NATIVE if numbers.share(NATIVE) == numbers.share(TEN) else TEN
    if numbers.over_five and numbers.share(tenth) >= DOUBTFUL:
        return _clamp(numbers, tenth, _wider(numbers), criterion)
    if numbers.share(HALF) >= BULK:
        known = (UNIT, FIVE, *((THIRDS,) if numbers.are_whole else ()), HALF)
        small = next(one for one in known if numbers.share(one) == numbers.share(HALF))
        return _clamp(numbers, small, _wider(numbers), criterion)
    if numbers.low >= 0 and numbers.high <= 20:
        return TWENTY, (HUNDRED,)
    if numbers.low >= 0 and numbers.high <= 100:
        return HUNDRED, ()
    if numbers.over_ten and numbers.share(HUNDRED) >= DOUBTFUL:
        return _clamp(numbers, HUNDRED, _wider(numbers), criterion)
    nearest = max((NATIVE, TEN, UNIT, HUNDRED), key=lambda known: numbers.fits[known])
    raise _unclear(numbers, nearest, _wider(numbers), criterion)


def _clamp(
    numbers: _Numbers, likely: Range, wider: Range, criterion: str | None
) -> tuple[Range, tuple[Range, ...]]:
    """Return the likely range if it contains nearly all numbers; else raise."""
    if numbers.share(likely) >= BULK:
        return likely, (wider,)
    raise _unclear(numbers, likely, wider, criterion)


def _unclear(numbers: _Numbers, likely: Range, wider: Range, criterion: str | None) -> UnclearScale:
    where = "" if criterion in (None, HOLISTIC) else f" on {criterion!r}"
    named = "" if not where else f"{criterion}="
    problem = f"the scale of the grades{where} is unclear: they run from {numbers.low:.6g} to "
    readings = [(f"{named}{wider}", "takes all of them")]
    if numbers.share(likely) >= DOUBTFUL:
        readings.insert(0, (f"{named}{likely}", numbers.describe_fit(likely)))
    elif (spanned := Range(numbers.low, numbers.high)) != wider and numbers.low < numbers.high:
        readings.insert(0, (f"{named}{spanned}", "takes all of them"))
    return UnclearScale(f"{problem}{numbers.high:.6g}", readings)
