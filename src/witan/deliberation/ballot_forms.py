"""Rankings and grades in the forms in which models write them, read off parsed JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from witan.core.ballot import Grade, Groups
from witan.core.blinding import Sheet
from witan.core.rubric import Rubric
from witan.core.scale import FAILED, HOLISTIC, PASSED, read_grade
from witan.deliberation.review_words import NOT_ON_SHEET

__all__ = ["Asked", "Grades", "Reading", "chain", "is_remark", "tied"]

Grades = Mapping[str, Grade | Mapping[str, Grade]]
"""Candidate to one grade, or to grades by criterion."""

_RANKINGS = ("ranking", "rankings", "final_ranking", "ranks", "order")
_GRADES = ("grades", "scores", "ratings", "evaluations", "reviews")
_NOTES = ("notes", "note", "comments", "comment", "reasoning", "reason", "rationale", "explanation")
_LABELS = ("label", "labels", "answer", "response", "candidate", "id", "name")
_PLACES = ("rank", "place", "position")
_GRADE = ("grade", "score", "rating", "value", *_GRADES)

_LONGEST_LABEL = 40
_LONGEST_GRADE = 20
_SHOWN = 5

_AROUND = " \t\r\n*_`\"'[](){}<>.:,#"
_CALLED = re.compile(r"(?:answer|response|candidate|option)(?![a-z])", re.IGNORECASE)
_GAPS = re.compile(r"[\s_-]+")
_PLACE = re.compile(r"#?(\d{1,4})(?:st|nd|rd|th)?\.?", re.IGNORECASE)


def is_remark(key: str) -> bool:
    """Tell whether a key holds what a reviewer writes beside its ballot."""
    return _folded(key) in _NOTES


def tied(text: str) -> list[object]:
    """The labels that a text places equal: ``B = C``."""
    return list(re.split(r"[=~&]", text))


def chain(text: str) -> list[list[object]]:
    """Groups of labels, best first: ``A > B = C``, or ``A, B, C``."""
    if ">" in text:
        return [tied(part.replace(",", "=")) for part in text.split(">")]
    return [tied(part) for part in re.split(r"[,;\n]", text)]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read off one piece of a reply, candidates by name.

    Parameters
    ----------
    remark
        What the reviewer wrote beside its ranking.
    notes
        What had to be overlooked, in sentences.
    """

    groups: Groups = ()
    grades: Grades = field(default_factory=dict)
    remark: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ranked(self) -> tuple[str, ...]:
        """The candidates that have a place."""
        return tuple(candidate for group in self.groups for candidate in group)

    @property
    def graded(self) -> tuple[str, ...]:
        """The candidates that have a grade which can be read."""
        return tuple(c for c, given in self.grades.items() if any(_readable(given)))

    @property
    def fullness(self) -> int:
        """How much it says; 0: it is no ballot."""
        return len(self.ranked) + len(self.graded)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one reviewer was asked: to rank these labels, and perhaps to grade them.

    Parameters
    ----------
    labels
        Label, folded, to candidate.
    criteria
        Criterion, folded, to its name in the rubric; the holistic grade is one of them. Empty:
        no grades were asked for.
    """

    labels: Mapping[str, str]
    criteria: Mapping[str, str]

    @classmethod
    def of(cls, sheet: Sheet, rubric: Rubric | None, *, holistic: bool) -> "Asked":
        """What a sheet asks, under a rubric or none."""
        names = [] if rubric is None else [criterion.name for criterion in rubric.criteria]
        if holistic or rubric is not None:
            names.append(HOLISTIC)
        labels = zip(sheet.labels, sheet.candidates, strict=True)
        return cls(
            {label.casefold(): candidate for label, candidate in labels},
            {_folded(name): name for name in names},
        )

    @property
    def by_criterion(self) -> bool:
        """Whether grades are asked for criterion by criterion."""
        return len(self.criteria) > 1

    def candidate(self, label: object) -> str | None:
        """Who is meant by ``A``, ``a``, ``[A]``, ``Response A`` or ``Answer A:``; None: nobody."""
        if not isinstance(label, str) or len(label) > _LONGEST_LABEL:
            return None
        bare = label.strip(_AROUND).casefold()
        if bare in self.labels:
            return self.labels[bare]
        return self.labels.get(_CALLED.sub("", bare, count=1).strip(_AROUND))

    def read(self, said: Mapping[str, Any] | Sequence[Any]) -> Reading:
        """Read one JSON object, or a list of objects, each of them about one label."""
        if not isinstance(said, Mapping):
            about = [item for item in said if isinstance(item, Mapping) and _of(item, _LABELS)]
            return self.read({"grades": about})
        overlooked = _Overlooked()
        ranking, grades, remark = (_of(said, keys) for keys in (_RANKINGS, _GRADES, _NOTES))
        if grades is None and ranking is None and self._is_graded_by_label(said):
            grades = said
        elif grades is None and isinstance(ranking, list):
            grades = [item for item in ranking if isinstance(item, Mapping)]
        elif ranking is None and isinstance(grades, list):
            ranking = [i for i in grades if isinstance(i, Mapping) and _of(i, _PLACES) is not None]
        groups = self._ranked(_groups(ranking), overlooked)
        graded = self._graded(grades, overlooked)
        said_beside = _text(remark) if isinstance(remark, str) and remark.strip() else None
        return Reading(groups, graded, said_beside, overlooked.notes())

    def listed(self, groups: Iterable[Iterable[object]]) -> Reading:
        """Read groups of labels that were written as a list."""
        overlooked = _Overlooked()
        ranked = self._ranked(groups, overlooked)
        return Reading(ranked, notes=overlooked.notes())

    def _ranked(self, groups: Iterable[Iterable[object]], overlooked: "_Overlooked") -> Groups:
        """Labels as candidates; of a repeated one the first place counts."""
        seen: dict[str, None] = {}
        kept = []
        for group in groups:
            names = []
            for label in group:
                name = self.candidate(label)
                if name is None:
                    overlooked(NOT_ON_SHEET)
                elif name in seen:
                    overlooked.of("ranked more than once: {}; the first place counts", name)
                else:
                    names.append(name)
                    seen[name] = None
            if names:
                kept.append(tuple(names))
        return tuple(kept)

    def _is_graded_by_label(self, said: Mapping[str, Any]) -> bool:
        """Whether an object is nothing but labels, each with its grades by criterion."""
        return bool(self.criteria) and all(
            self.candidate(key) is not None and isinstance(value, Mapping)
            for key, value in said.items()
        )

    def _graded(self, said: object, overlooked: "_Overlooked") -> Grades:
        grades: dict[str, Grade | Mapping[str, Grade]] = {}
        pairs = list(self._by_label(said))
        if not self.criteria:
            if pairs:
                overlooked("grades were not asked for; dropped")
            return grades
        for label, given in pairs:
            name = self.candidate(label)
            if name is None:
                overlooked(NOT_ON_SHEET)
            elif name in grades:
                overlooked.of("graded more than once: {}; the first grade counts", name)
            else:
                read = self._grade(given, overlooked)
                if read is not None:
                    grades[name] = read
        return grades

    def _by_label(self, said: object) -> Iterator[tuple[object, object]]:
        """Label and what it is given: from a map, a list of objects, or a map per criterion."""
        if isinstance(said, list):
            for item in said:
                if isinstance(item, Mapping) and _of(item, _LABELS) is not None:
                    inner = _of(item, _GRADES)
                    beside = _without(item, (*_LABELS, *_PLACES))
                    given = inner if isinstance(inner, Mapping) else beside
                    if given:
                        yield _of(item, _LABELS), given
        elif isinstance(said, Mapping) and self._is_by_criterion(said):
            turned: dict[str, dict[str, Any]] = {}
            for criterion, column in said.items():
                for label, given in column.items():
                    turned.setdefault(label, {})[criterion] = given
            yield from turned.items()
        elif isinstance(said, Mapping):
            yield from said.items()

    def _is_by_criterion(self, said: Mapping[str, Any]) -> bool:
        return all(
            _folded(key) in self.criteria
            and self.candidate(key) is None
            and isinstance(column, Mapping)
            for key, column in said.items()
        )

    def _grade(
        self, given: object, overlooked: "_Overlooked"
    ) -> Grade | Mapping[str, Grade] | None:
        """One grade, or grades by criterion; None where there is none."""
        if not isinstance(given, Mapping):
            return _scalar(given, overlooked)
        known: dict[str, Grade] = {}
        for key, value in given.items():
            criterion = self.criteria.get(_folded(key))
            if criterion is None:
                if _folded(key) not in (*_NOTES, *_GRADE):
                    overlooked("no criterion of the rubric: {}; dropped", key)
            elif criterion not in known:
                read = _scalar(value, overlooked)
                if read is not None:
                    known[criterion] = read
        if not known:
            wrapped = _of(given, _GRADE)
            return None if wrapped is None else _scalar(wrapped, overlooked)
        return known if self.by_criterion else known[HOLISTIC]


class _Overlooked:
    """What a reading has to overlook, kind by kind, so that a flood of it stays a few sentences."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, None]] = {}

    def __call__(self, what: str, *shown: object) -> None:
        kind = self.found.setdefault(what, {})
        kind.update(dict.fromkeys(_shown(each) for each in shown))

    def of(self, what: str, candidate: str) -> None:
        """Overlook something of a candidate, which the sentence names: labels stay on a sheet."""
        self.found.setdefault(what, {})[candidate] = None

    def notes(self) -> tuple[str, ...]:
        """A sentence for each kind."""
        return tuple(kind.format(_listed(list(shown))) for kind, shown in self.found.items())


def _listed(shown: Sequence[str]) -> str:
    more = len(shown) - _SHOWN
    return ", ".join(shown[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(_text(value[:_LONGEST_LABEL]))
    return "a list or map" if isinstance(value, dict | list) else json.dumps(value)


def _text(said: str) -> str:
    """The same as text that can be written: half a surrogate pair, which JSON can hold, cannot."""
    return said.encode("utf-8", "replace").decode("utf-8")


def _folded(key: str) -> str:
    if key.isascii() and key.isalpha() and key.islower():
        return key  # as nearly all are written
    return _GAPS.sub("_", key.strip().casefold())


def _of(said: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of these keys that an object has, in any case; None: it has none."""
    held = {_folded(key): value for key, value in reversed(list(said.items()))}
    return next((held[key] for key in keys if held.get(key) is not None), None)


def _without(said: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if _folded(key) not in (*keys, *_NOTES)}


def _readable(given: Grade | Mapping[str, Grade]) -> Iterator[bool]:
    values = given.values() if isinstance(given, Mapping) else (given,)
    return (read_grade(value) is not None for value in values)


def _scalar(given: object, overlooked: _Overlooked) -> Grade | None:
    """A grade as given; what `witan.core.scale.read_grade` makes of it is its business."""
    if type(given) is int or type(given) is float:  # as nearly all are
        return given
    if isinstance(given, Mapping):
        given = _of(given, _GRADE)
    if (
        isinstance(given, str)
        and len(given) <= _LONGEST_GRADE
        and given.strip().casefold() not in PASSED | FAILED  # who is asked for 1-10 says no word
    ):
        return _text(given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given
    overlooked("no grade: {}; dropped", given)
    return None


def _place(said: object) -> float | None:
    """A place as a number or as written: ``1``, ``"2."``, ``"3rd"``."""
    if isinstance(said, str):
        written = _PLACE.fullmatch(said.strip())
        return None if written is None else float(written[1])
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said)


def _groups(said: object) -> list[list[object]]:
    """Groups of labels, best first, from any of the forms of a ranking."""
    if isinstance(said, str):
        return chain(said)
    if isinstance(said, Mapping):
        return _by_place([(_place(place), label) for label, place in said.items()]) or _by_place(
            [(_place(place), labels) for place, labels in said.items()]
        )
    if not isinstance(said, list):
        return []
    about = [item for item in said if isinstance(item, Mapping)]
    if not about:
        return [_group(item) for item in said]
    return _by_place([(_place(_of(item, _PLACES)), _of(item, _LABELS)) for item in about]) or [
        _group(_of(item, _LABELS)) for item in about
    ]


def _group(said: object) -> list[object]:
    if isinstance(said, list):
        return said
    return tied(said) if isinstance(said, str) else [said]


def _by_place(placed: Sequence[tuple[float | None, object]]) -> list[list[object]]:
    """Groups from places, the smallest first; none where a place is no number."""
    known = [(place, said) for place, said in placed if place is not None]
    if len(known) < len(placed):
        return []
    ordered = sorted(known, key=itemgetter(0))
    return [
        [label for _, said in level for label in _group(said)]
        for _, level in groupby(ordered, key=itemgetter(0))
    ]
