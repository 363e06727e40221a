"""Rubrics: criteria, ceilings, the overall grade, and the named rubrics."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import fsum, isfinite
from types import MappingProxyType
from typing import Any

from witan.core.display import brief
from witan.core.scale import HIGHEST, HOLISTIC, LOWEST, Scale
from witan.errors import InvalidRubric, UnknownName

BANDS = ((9, 10), (7, 8), (5, 6), (3, 4), (1, 2))
"""The grade bands described in the named rubrics, best first."""

SUM_TOLERANCE = 0.001
"""Maximum distance from 1 of the sum of a rubric's weights."""

ROUNDING = 1e-9
"""Tolerance for decimal weights in binary floats: 0.1 + 0.2 + 0.2 counts as half of 1."""

GRAIN = 1e9
"""Overall grades are multiples of 1 / GRAIN, so that mathematically equal grades compare equal."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Description of an answer worth a grade from `low` to `high`.

    Parameters
    ----------
    low, high
        The grades that it describes.
    text
        Description of such an answer.
    """

    low: int
    high: int
    text: str


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion, graded from 1 to 10.

    Parameters
    ----------
    name
        Its name on ballots.
    weight
        Its share of the overall grade.
    description
        The question that a grade answers.
    anchors
        Descriptions of the grade bands, best first; may be empty.
    """

    name: str
    weight: float
    description: str
    anchors: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Cap the overall grade at `at_most` if `criterion` is under `below`.

    Parameters
    ----------
    criterion
        The criterion that triggers the ceiling.
    below
        The ceiling applies to grades below this one.
    at_most
        The highest overall grade when it applies.
    """

    criterion: str
    below: float
    at_most: float


@dataclass(frozen=True, slots=True)
class Rubric:
    """Weighted criteria and ceilings on the overall grade.

    Parameters
    ----------
    name
        Its name.
    criteria
        The criteria to grade.
    ceilings
        Limits on the overall grade, each set by one criterion.
    total_weight
        The sum of the weights.
    lowest_first
        The ceilings, lowest first.
    scale
        Default scale of grades in files; None: recognised. Anchors and ceilings are always on 1–10.

    Raises
    ------
    InvalidRubric
        If it has no criteria, a repeated name, negative weights, weights that do not sum to 1
        within 0.001, overlapping anchors, or a ceiling on an unknown criterion.
    """

    name: str
    criteria: tuple[Criterion, ...]
    ceilings: tuple[Ceiling, ...] = ()
    scale: Scale | None = None
    total_weight: float = field(init=False, repr=False, compare=False, default=1.0)
    lowest_first: tuple[Ceiling, ...] = field(init=False, repr=False, compare=False, default=())

    def __hash__(self) -> int:
        # Every sheet uses its rubric as a cache key, and hashing every field is slow.
        return hash((self.name, len(self.criteria)))

    def __post_init__(self) -> None:
        for problem in (*_naming_problems(self), *_weight_problems(self)):
            raise InvalidRubric(self.name, problem)
        for problem in (*_anchor_problems(self), *_ceiling_problems(self)):
            raise InvalidRubric(self.name, problem)
        weights = [criterion.weight for criterion in self.criteria]
        object.__setattr__(self, "total_weight", fsum(weights))
        lowest_first = tuple(sorted(self.ceilings, key=lambda ceiling: ceiling.at_most))
        object.__setattr__(self, "lowest_first", lowest_first)

    def __repr__(self) -> str:
        criteria = ", ".join(f"{each.name} {each.weight:.4g}" for each in self.criteria)
        ceilings = f"; ceilings: {len(self.ceilings)}" if self.ceilings else ""
        scale = "" if self.scale is None else f"; scale {brief(str(self.scale), 24)[1:-1]}"
        return f"<Rubric {brief(self.name, 24)}: {brief(criteria, 56)[1:-1]}{ceilings}{scale}>"

    def missing_criteria(self, graded: Collection[str]) -> tuple[str, ...]:
        """Name the criteria without a grade; none if half of the weight is graded."""
        weight = sum(each.weight for each in self.criteria if each.name in graded)
        if 2.0 * weight >= self.total_weight - ROUNDING:
            return ()
        return tuple(each.name for each in self.criteria if each.name not in graded)

    def replace_weights(self, weights: Mapping[str, float]) -> "Rubric":
        """Return the rubric with other weights; unnamed criteria keep theirs.

        Raises
        ------
        UnknownName
            If a name is not a criterion; the error names the closest one.
        InvalidRubric
            If the weights no longer sum to 1; the error states the sum.
        """
        criterion_names = [criterion.name for criterion in self.criteria]
        for name in weights:
            if name not in criterion_names:
                raise UnknownName("criterion", name, criterion_names)
        criteria = (replace(c, weight=weights.get(c.name, c.weight)) for c in self.criteria)
        return Rubric(self.name, tuple(criteria), self.ceilings, self.scale)


@dataclass(frozen=True, slots=True)
class Overall:
    """One overall grade, and the ceiling applied.

    Parameters
    ----------
    value
        From 1 to 10; None if too little of the rubric was graded.
    capped_by
        The ceiling that lowered it; None if none did.
    """

    value: float | None
    capped_by: Ceiling | None


def overall(rubric: Rubric, grades: Mapping[str, float]) -> Overall:
    """Combine a candidate's grades on one ballot into an overall grade.

    Over the graded criteria k,

        value = Σ w[k] · grade[k] / Σ w[k],

    limited by the lowest ceiling that applies. A missing or NaN criterion neither lowers the grade
    nor triggers a ceiling. The value is rounded to 1e-9, so that rounding errors do not rank
    mathematically equal grades.

    Parameters
    ----------
    grades
        Grade by criterion, each from 1 to 10 as `read_grade` of `witan.core.scale` returns it.

    Returns
    -------
    Overall
        Without a value if less than half of the rubric's weight is graded.

    Raises
    ------
    UnknownName
        If a grade is for a criterion that the rubric does not have.
    """
    total = weight_given = 0.0
    n_criteria_read = 0
    for criterion in rubric.criteria:
        grade = grades.get(criterion.name)
        if grade is None:
            continue
        n_criteria_read += 1
        if grade == grade:  # noqa: PLR0124 — false only for NaN, and the fastest test
            total += criterion.weight * grade
            weight_given += criterion.weight
    if n_criteria_read != len(grades):
        criterion_names = [criterion.name for criterion in rubric.criteria]
        unknown = next(name for name in grades if name not in criterion_names)
        raise UnknownName("criterion", unknown, criterion_names)
    if 2.0 * weight_given < rubric.total_weight - ROUNDING:
        return Overall(None, None)
    value = round(total / weight_given * GRAIN) / GRAIN
    capped_by = trips(rubric, value, grades)
    if capped_by is not None:
        return Overall(capped_by.at_most, capped_by)
    return Overall(value, None)


@lru_cache(maxsize=64)
def weigher(rubric: Rubric) -> Callable[[tuple[tuple[str, Any], ...]], float | None]:
    """Return a function from grades by criterion to the overall grade.

    The function returns None if there is something to warn about. Results are cached, because a
    session is read for its outcome, its verdict and its rows.
    """
    names = {criterion.name for criterion in rubric.criteria}
    guards = {ceiling.criterion for ceiling in rubric.ceilings}

    # Annotations are quoted so that they are not evaluated for every rubric.
    @lru_cache(maxsize=1 << 14)
    def weigh(cells: "tuple[tuple[str, Any], ...]") -> float | None:
        if not all(LOWEST <= number <= HIGHEST for _, number in cells):
            return None
        grades = {name: float(number) for name, number in cells if name != HOLISTIC}
        is_plain = guards <= grades.keys() <= names
        return overall(rubric, grades).value if is_plain else None

    return weigh


def trips(rubric: Rubric, value: float, grades: Mapping[str, float]) -> Ceiling | None:
    """Find the lowest ceiling that applies and would reduce the value."""
    for ceiling in rubric.lowest_first:
        if value <= ceiling.at_most:
            return None
        if grades.get(ceiling.criterion, HIGHEST) < ceiling.below:
            return ceiling
    return None


def _naming_problems(rubric: Rubric) -> Iterator[str]:
    if not rubric.name.strip():
        yield "has no name"
    if not rubric.criteria:
        yield "has no criteria"
    names: set[str] = set()
    for criterion in rubric.criteria:
        if not criterion.name or criterion.name != criterion.name.strip():
            yield f"has a criterion named {criterion.name!r}; a name has no blanks around it"
        if criterion.name == HOLISTIC:
            yield f"cannot have a criterion {HOLISTIC!r}: on a ballot that is the holistic grade"
        if criterion.name in names:
            yield f"has the criterion {criterion.name!r} more than once"
        if not criterion.description.strip():
            yield f"does not describe {criterion.name!r}; say in a sentence what it asks"
        names.add(criterion.name)


def _weight_problems(rubric: Rubric) -> Iterator[str]:
    for criterion in rubric.criteria:
        if not (isfinite(criterion.weight) and criterion.weight >= 0):
            yield (
                f"gives {criterion.name!r} the weight {criterion.weight}; "
                "a weight is a finite number ≥ 0"
            )
    total = fsum(criterion.weight for criterion in rubric.criteria)
    if abs(total - 1.0) > SUM_TOLERANCE + ROUNDING:
        yield f"has weights that sum to {total:.10g}; they must sum to 1 within {SUM_TOLERANCE}"


def _anchor_problems(rubric: Rubric) -> Iterator[str]:
    for criterion in rubric.criteria:
        for anchor in criterion.anchors:
            if not LOWEST <= anchor.low <= anchor.high <= HIGHEST:
                yield (
                    f"anchors {criterion.name!r} at {anchor.low}–{anchor.high}; "
                    "a band lies within 1–10, its lower end first"
                )
            if not anchor.text.strip():
                yield f"leaves the anchor of {criterion.name!r} at {anchor.low}–{anchor.high} blank"
        for better, worse in pairwise(criterion.anchors):
            if worse.high >= better.low:
                yield (
                    f"anchors {criterion.name!r} at {worse.low}–{worse.high} after "
                    f"{better.low}–{better.high}; bands are listed best first and do not overlap"
                )


def _ceiling_problems(rubric: Rubric) -> Iterator[str]:
    criterion_names = [criterion.name for criterion in rubric.criteria]
    pairs: set[tuple[str, float]] = set()
    for ceiling in rubric.ceilings:
        if ceiling.criterion not in criterion_names:
            yield (
                f"has a ceiling on {ceiling.criterion!r}, which is none of its criteria "
                f"({', '.join(criterion_names)})"
            )
        if not (LOWEST <= ceiling.below <= HIGHEST and LOWEST <= ceiling.at_most <= HIGHEST):
            yield (
                f"has a ceiling below {ceiling.below} at most {ceiling.at_most}; "
                "both are grades from 1 to 10"
            )
        if (ceiling.criterion, ceiling.below) in pairs:
            yield f"has two ceilings on {ceiling.criterion!r} below {ceiling.below:g}"
        pairs.add((ceiling.criterion, ceiling.below))


def _criterion(name: str, weight: float, description: str, *texts: str) -> Criterion:
    """Build a criterion with one anchor per band, best first."""
    anchors = (Anchor(low, high, text) for (low, high), text in zip(BANDS, texts, strict=True))
    return Criterion(name, weight, description, tuple(anchors))


def _ceilings(criterion: str) -> tuple[Ceiling, ...]:
    return (Ceiling(criterion, below=5.0, at_most=4.0), Ceiling(criterion, below=7.0, at_most=7.0))


ACCURACY = _criterion(
    "accuracy",
    0.35,
    "Is what it states true, and is what is uncertain said to be uncertain?",
    "Every statement that can be checked holds; doubt is voiced exactly where there is doubt.",
    "Sound in all that matters; a detail is imprecise, such as a date or a rounded figure.",
    "The main point stands, yet several smaller statements are wrong or unsupported.",
    "A central statement is wrong or long out of date; acting on it would mislead.",
    "Mostly wrong or made up: invented facts, sources or quotations, told with assurance.",
)
RELEVANCE = _criterion(
    "relevance",
    0.10,
    "Does it answer the question that was asked?",
    "Answers just this question, in the form and within the limits it asked for.",
    "Answers the question and strays briefly into matters nobody raised.",
    "Answers part of the question; a good share of the text is about something else.",
    "Answers a neighbouring question, having misread what was wanted.",
    "Does not take up the question at all.",
)
COMPLETENESS = _criterion(
    "completeness",
    0.20,
    "Is everything there that the question needs?",
    "Each part of the question is dealt with, and so are the conditions that change the answer.",
    "All main parts are dealt with; a minor case or caveat is missing.",
    "Some parts are dealt with; something a careful reader would need is missing.",
    "A main part of the question is left open.",
    "A gesture at an answer: a heading, a promise or a platitude in place of content.",
)
CONCISENESS = _criterion(
    "conciseness",
    0.15,
    "Does every sentence earn its place?",
    "Nothing could be cut without losing content; as long as the question deserves.",
    "A few sentences could go, and the point is still reached quickly.",
    "The same things are said twice, or hedged until they say little.",
    "Long stretches of filler: the question restated, praise, summaries of what was just said.",
    "The answer is buried; most of the text carries nothing.",
)
CLARITY = _criterion(
    "clarity",
    0.20,
    "Can its reader follow it at first reading?",
    "Understood at once; order, wording and layout all serve the reader.",
    "Easy to follow; one passage would be better placed or better worded.",
    "Can be followed with effort: the points are there, their order is not.",
    "Has to be read again and again; terms shift or sentences can be taken two ways.",
    "Cannot be understood, or contradicts itself.",
)
CORRECTNESS = _criterion(
    "correctness",
    0.40,
    "Would the code do what was asked, as it stands?",
    "Runs as given and meets every stated requirement; each call exists and does what it is for.",
    "Right in substance; a slip such as a missing import is seen and mended at once.",
    "Works on the ordinary case and fails a stated requirement or an obvious other case.",
    "Does not run, or gives wrong output on the ordinary case, for a reason that takes work.",
    "Not a solution: invented interfaces, another problem's code, or only a sketch.",
)
ROBUSTNESS = _criterion(
    "robustness",
    0.15,
    "What happens with empty, large, hostile or failing input?",
    "Edge cases, failures and untrusted input are handled or refused with a plain message.",
    "The likely edge cases are handled; a rare one is not.",
    "Fails loudly on edge cases that its users are going to meet.",
    "Fails silently, leaks a resource, or is slow enough to matter at the stated size.",
    "Loses data or opens a hole: injected input, exposed secrets, a race.",
)
CRAFT = _criterion(
    "craft",
    0.30,
    "Is it well made: voice, rhythm, image, structure?",
    "Every choice of form does work; the voice is sure from first line to last.",
    "Well made with a soft spot: a forced line, a scene that runs on.",
    "Competent and uneven; good passages beside ones that only fill the form.",
    "The form fights the content; clumsy wording or a structure that falls apart.",
    "No shape to speak of, or not the form that was asked for.",
)
ORIGINALITY = _criterion(
    "originality",
    0.25,
    "Is there something in it that one would not have expected?",
    "An idea or an angle of its own, carried through, that makes one look again.",
    "A familiar idea with a turn of its own.",
    "Familiar throughout, though not copied.",
    "Stock figures, stock phrases, the first association at every point.",
    "A template with the names filled in, or somebody else's text.",
)
FIDELITY = _criterion(
    "fidelity",
    0.20,
    "Does it keep to the brief: form, subject, length, audience?",
    "Meets every demand of the brief, and its spirit.",
    "Meets the brief but for one small demand.",
    "Meets the main demand and drops others.",
    "Only loosely related to the brief.",
    "Ignores the brief.",
)
EFFECT = _criterion(
    "effect",
    0.25,
    "Does it move, amuse, disturb or persuade the reader it is meant for?",
    "Stays with the reader; the ending is earned.",
    "Holds interest throughout and lands in most places.",
    "Holds interest in places.",
    "Leaves the reader outside: told what to feel, given no cause.",
    "Works against itself: dull where it should thrill, comic where it should not be.",
)
CALIBRATION = _criterion(
    "calibration",
    0.15,
    "Does it show what it rests on, and how sure it is?",
    "Known, disputed and unknown are told apart, and what it rests on can be checked.",
    "Mostly says how sure it is; one statement is firmer than its support.",
    "One tone for everything, be it settled or disputed.",
    "Sure of itself on disputed matters, or hedges what is settled.",
    "Cites sources that do not exist or do not say so.",
)

_GENERAL = Rubric(
    "general",
    (ACCURACY, RELEVANCE, COMPLETENESS, CONCISENESS, CLARITY),
    _ceilings("accuracy"),
)
_FIRST_EDITION = Rubric(
    "general-first-edition",
    (
        ACCURACY,
        replace(COMPLETENESS, weight=0.25),
        replace(CONCISENESS, weight=0.20),
        CLARITY,
    ),
    _ceilings("accuracy"),
)
_CODING = Rubric(
    "coding",
    (
        CORRECTNESS,
        COMPLETENESS,
        ROBUSTNESS,
        replace(CLARITY, weight=0.15),
        replace(CONCISENESS, weight=0.10),
    ),
    _ceilings("correctness"),
)
_CREATIVE = Rubric("creative", (CRAFT, ORIGINALITY, EFFECT, FIDELITY))
_FACTUAL = Rubric(
    "factual",
    (
        replace(ACCURACY, weight=0.45),
        CALIBRATION,
        replace(COMPLETENESS, weight=0.15),
        replace(CONCISENESS, weight=0.10),
        replace(CLARITY, weight=0.15),
    ),
    _ceilings("accuracy"),
)

RUBRICS: Mapping[str, Rubric] = MappingProxyType(
    {rubric.name: rubric for rubric in (_GENERAL, _FIRST_EDITION, _CODING, _CREATIVE, _FACTUAL)}
)
"""Every named rubric by its name, the default first."""


def find_rubric(name: str) -> Rubric:
    """Look up a named rubric.

    Raises
    ------
    UnknownName
        If there is no rubric of that name; the error names the closest one.
    """
    if name not in RUBRICS:
        raise UnknownName("rubric", name, RUBRICS)
    return RUBRICS[name]
