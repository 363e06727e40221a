"""Scales of grades: their notation, and their conversion to 1–10."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from witan.errors import InvalidParameter

LOWEST, HIGHEST = 1.0, 10.0

HOLISTIC = "overall"
"""Key of the reviewer's own holistic grade on a ballot; no criterion may have this name."""

NUMBER_TYPES = frozenset({int, float})
"""Types of numeric grades; a boolean counts as a word."""

GRAIN = 1e9
"""Converted grades are multiples of 1 / GRAIN, so mathematically equal grades compare equal."""

PASSED = frozenset({"pass", "passed", "yes", "true"})
FAILED = frozenset({"fail", "failed", "no", "false"})
"""Words for the two ends of the scale pass-fail, in any letter case."""

STARS = (5.0, 10.0)
"""Denominators of scales that may begin at 1; all others begin at 0."""

WRITTEN = re.compile(
    r"([-+]?(?:\d{1,15}(?:\.\d{0,20}|,\d{1,2})?|\.\d{1,20}))\s{0,9}"
    r"(?:(%)|/\s{0,9}(\d{1,6}(?:\.\d{1,20}|,\d{1,2})?))?",
    re.ASCII,
)
"""A number as text, alone, in percent, or as a fraction: ``8.5``, ``80%``, ``4/5``.

At most two digits may follow a comma, as in ``8,5``, because ``1,200`` may mean 1200.
"""

_RANGE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*(?:-|–|\.\.|to)\s*([-+]?\d+(?:\.\d+)?)", re.ASCII)

EXPECTED = "a scale such as 0-1, 1-5, 0-100 or pass-fail, for a criterion style=1-5"


@dataclass(frozen=True, slots=True)
class Range:
    """The worst and best possible grade; the worst may be larger.

    Parameters
    ----------
    low
        The worst grade.
    high
        The best grade.
    in_words
        Whether it is written ``pass-fail``. On any range, these words, and true and false, mean its
        ends.
    """

    low: float = LOWEST
    high: float = HIGHEST
    in_words: bool = False

    def __str__(self) -> str:
        return "pass-fail" if self.in_words else f"{self.low:.15g}-{self.high:.15g}"

    @property
    def step(self) -> float:
        """One whole step of this range, in grades from 1 to 10."""
        return (HIGHEST - LOWEST) / abs(self.high - self.low)

    def convert(self, number: float) -> tuple[float, bool]:
        """Convert a number to 1–10; flag one outside the range.

        With w the worst and b the best grade,

            grade = 1 + 9 · (number - w) / (b - w),    clipped to [1, 10].
        """
        if self.low == LOWEST and self.high == HIGHEST:
            if LOWEST <= number <= HIGHEST:
                return float(number), False
            return (LOWEST if number < LOWEST else HIGHEST), True
        share = (number - self.low) / (self.high - self.low)
        if not 0 <= share <= 1:
            return (LOWEST if share < 0 else HIGHEST), True
        return round((LOWEST + (HIGHEST - LOWEST) * share) * GRAIN) / GRAIN, False


NATIVE = Range()
"""The range of the council's own reviews, 1 to 10."""

PASS_FAIL = Range(0.0, 1.0, in_words=True)


@dataclass(frozen=True, slots=True)
class NearScale:
    """A smaller scale that nearly all grades fit.

    Parameters
    ----------
    scale
        Its notation, such as 0-3.
    n_outside
        Number of grades outside it.
    n_grades
        Number of all grades.
    extreme
        The highest grade, or the lowest if none is above it.
    is_above
        Whether any grade is above it.
    """

    scale: str
    n_outside: int
    n_grades: int
    extreme: float
    is_above: bool

    def describe(self, option: str) -> str:
        """Name the few grades that decide, and any option that declares the smaller scale."""
        end = "highest" if self.is_above else "lowest"
        advice = f"; {option}{self.scale} clamps such grades" if option else ""
        return (
            f"all but {self.n_outside:,} of {self.n_grades:,} grades fit {self.scale} "
            f"(the {end} is {self.extreme:.6g}{advice})"
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale of a ballot's grades: one range, or one per criterion.

    Parameters
    ----------
    criteria
        Criteria with ranges of their own, by name.
    recognised
        Whether it was recognised from the grades, not declared; ignored when scales are compared.
    instead
        Other scales that the same grades fit.
    shares
        Whether grades have different denominators, or some are percentages, so that each is read as
        a share of its own maximum.
    words
        Whether words such as ``pass``, which mean the ends of the scale, occur among numbers.
    reviewers
        Reviewers who use it, if reviewers of one source clearly use different scales.
    nearly
        Smaller scales that all but a few of the grades fit, so that these few decide the scale.
    """

    whole: Range = NATIVE
    criteria: tuple[tuple[str, Range], ...] = ()
    recognised: bool = field(default=False, compare=False)
    instead: tuple[str, ...] = field(default=(), compare=False)
    shares: bool = field(default=False, compare=False)
    words: bool = field(default=False, compare=False)
    reviewers: tuple[str, ...] = field(default=(), compare=False)
    nearly: tuple[NearScale, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, text: str) -> "Scale":
        """Read ``0-1``, ``pass-fail``, or a list with criteria such as ``1-10,style=1-5``.

        Raises
        ------
        InvalidParameter
            If the text has another form.
        """
        whole: Range | None = None
        criteria: dict[str, Range] = {}
        for part in text.split(","):
            name, equals, value_text = part.rpartition("=")
            if equals and name.strip() not in ("", HOLISTIC):
                criteria[name.strip()] = _range(value_text, text)
            elif whole is None:
                whole = _range(value_text, text)
            else:
                raise InvalidParameter("scale", text, EXPECTED)
        return cls.of_ranges(NATIVE if whole is None else whole, criteria)

    @classmethod
    def of_ranges(cls, whole: Range, criteria: Mapping[str, Range]) -> "Scale":
        """The scale of one range, with exceptions by criterion."""
        others = {name: one for name, one in criteria.items() if one != whole}
        return cls(whole, tuple(sorted(others.items())))

    @classmethod
    def of_record(cls, record: object) -> "Scale":
        """Read a scale from text, or from text by criterion.

        Raises
        ------
        InvalidParameter
            If it is neither, or does not describe a scale.
        """
        if isinstance(record, str):
            return cls.parse(record)
        if not isinstance(record, Mapping) or not all(isinstance(v, str) for v in record.values()):
            raise InvalidParameter("scale", record, EXPECTED)
        ranges = {str(name): _range(text, text) for name, text in record.items()}
        return cls.of_ranges(ranges.pop(HOLISTIC, NATIVE), ranges)

    def record(self) -> str | dict[str, str]:
        """The scale as data, the inverse of `of_record`."""
        if not self.criteria:
            return str(self.whole)
        return {HOLISTIC: str(self.whole)} | {name: str(one) for name, one in self.criteria}

    def __str__(self) -> str:
        return ",".join([str(self.whole), *(f"{name}={one}" for name, one in self.criteria)])

    @property
    def is_native(self) -> bool:
        """True if it is 1–10 throughout."""
        return (self.whole is NATIVE or self.whole == NATIVE) and not self.criteria

    @property
    def is_plain(self) -> bool:
        """True if it is certainly 1–10, so that no remark is needed."""
        return self.is_native and not self.recognised

    @property
    def sentence(self) -> str:
        """Describe the scale and its alternatives in terms of Python and HTTP."""
        return self.sentence_with("scale=")

    def sentence_with(self, option: str) -> str:
        """Describe the scale; `option` is the surface's name for the setting."""
        if self.whole.in_words and not (self.criteria or self.recognised):  # of any ballots
            return "pass and fail are read as 10 and 1"
        parts = [str(self.whole), *(f"of {name} as {one}" for name, one in self.criteria)]
        how = " (recognised)" if self.recognised else ""
        conversion_text = "" if self.is_native else ", and converted to 1-10"
        other = f"; they also fit {' or '.join(self.instead)}" if self.instead else ""
        # With several scales, the option would also apply to the other reviewers.
        option = "" if self.reviewers else option
        # It is named once, at the end, where a surface finds it.
        helps = option and self.instead and not self.nearly
        hint = f" ({option}{self.instead[-1]} reads them so)" if helps else ""
        shares = ", text such as 3/5 and 60% as shares of the best grade" if self.shares else ""
        words = ", words such as pass and fail as the ends of the scale" if self.words else ""
        reviewer_text = f" of {_join_names(self.reviewers)}" if self.reviewers else ""
        reading_text = f"{', '.join(parts)}{how}{shares}{words}"
        few = [one.describe("") for one in self.nearly[:-1]]
        few += [one.describe(option) for one in self.nearly[-1:]]
        nearly = "".join(f"; {each}" for each in few)
        whole = f"grades{reviewer_text} are read as {reading_text}{conversion_text}"
        return f"{whole}{other}{hint}{nearly}"

    def of(self, criterion: str) -> Range:
        """The range of one criterion."""
        if not self.criteria:
            return self.whole
        return next((one for name, one in self.criteria if name == criterion), self.whole)


def _join_names(names: tuple[str, ...]) -> str:
    items = [*names[:5], *([f"{len(names) - 5:,} more"] if len(names) > 5 else [])]
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def grade_on(within: Range, value: object) -> tuple[float, bool] | None:
    """Convert a grade to 1–10 and flag one outside; None: no grade.

    Numbers, and text that is just a number, are on the scale. A percentage, or a fraction whose
    denominator is not the best grade, is a share of its own maximum: ``"80%"``, ``"4/5"``. Booleans
    and words such as ``pass`` mean the ends of any scale. NaN and infinity are not grades.
    """
    if type(value) is int or type(value) is float:  # the usual case: not a boolean, not numpy
        number: float = value
    elif isinstance(value, str):
        return _format_number(within, value.strip())
    elif isinstance(value, bool):
        return (HIGHEST if value else LOWEST), False
    elif isinstance(value, Real):
        number = float(value)
    else:
        return None
    if -1e300 < number < 1e300:
        return within.convert(number)
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return None
    # An integer may be too large to divide.
    return (HIGHEST if (number > 0) == (within.high > within.low) else LOWEST), True


def decimal(text: str) -> float:
    """Convert a number matched by a group of `WRITTEN`."""
    return float(text.replace(",", "."))


def is_empty(value: object) -> bool:
    """True for empty text."""
    return isinstance(value, str) and not value.strip()


def may_be_typing_error(value: object) -> bool:
    """True for an unreadable grade that contains a digit, probably a typo."""
    return isinstance(value, str) and any(map(str.isdigit, value))


def read_grade(value: object, within: Range = NATIVE) -> float | None:
    """Convert a grade to 1–10, clipped to its scale.

    Returns
    -------
    float or None
        From 1 to 10; None if the value is not a grade (see `grade_on`).
    """
    if type(value) is int and 1 <= value <= 10 and within is NATIVE:
        return float(value)
    read = grade_on(within, value)
    return None if read is None else read[0]


def _format_number(within: Range, text: str) -> tuple[float, bool] | None:
    match = WRITTEN.fullmatch(text)
    if match is None:
        word = text.casefold()
        if word not in PASSED | FAILED:
            return None
        return (HIGHEST if word in PASSED else LOWEST), False
    number = decimal(match[1])
    if match[2]:
        return Range(0.0, 100.0).convert(number)
    best = within.high if match[3] is None else decimal(match[3])
    if best == within.high:
        return within.convert(number)
    return None if best == 0 else Range(0.0, best).convert(number)


def _range(notation: str, whole: str) -> Range:
    text = notation.strip()
    if text.casefold() in ("pass-fail", "pass/fail", "yes-no", "yes/no"):
        return PASS_FAIL
    match = _RANGE.fullmatch(text)
    if match is None or float(match[1]) == float(match[2]):
        raise InvalidParameter("scale", whole, EXPECTED)
    result = Range(float(match[1]), float(match[2]))
    return NATIVE if result == NATIVE else result


_PLAIN = {int, float, str, type(None)}
"""Types of a grade other than a mapping from criteria."""

CriterionGrades = tuple[tuple[str, ...], tuple[tuple[float | None, ...], ...]]
"""Criteria, and all candidates' grades on each."""


def read_criteria(cells: Sequence[Any], scale: Scale | None) -> CriterionGrades:
    """Read candidates' grades by criterion, in order of first mention.

    The reviewer's own overall grade is left out.
    """
    if {type(cell) for cell in cells} <= _PLAIN:
        return (), ()
    within = Scale() if scale is None else scale
    read = [
        {name: read_grade(value, within.of(name)) for name, value in cell.items()}
        if isinstance(cell, Mapping)
        else {}
        for cell in cells
    ]
    graded = {c: None for cell in read for c, grade in cell.items() if grade is not None}
    criteria = tuple([criterion for criterion in graded if criterion != HOLISTIC])
    return criteria, tuple([tuple([cell.get(c) for cell in read]) for c in criteria])
