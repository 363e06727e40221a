"""Read reviewers' replies as ballots.

In this order: the reply as the schema requires it; any JSON object in it that can be read as a
ballot; a list under the heading FINAL RANKING. Prose that merely mentions labels is not a ballot,
and only a reply that cannot be read is a refusal.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

from witan.core.ballot import Ballot, Grade, Groups, one_opinion_each
from witan.core.blinding import Sheet
from witan.core.escaping import is_blank
from witan.core.interpretation import Counting, interpret
from witan.core.rubric import Rubric
from witan.core.scale import FAILED, HIGHEST, HOLISTIC, LOWEST, NATIVE, PASSED, grade_on, read_grade
from witan.core.scale_recognition import NATIVE_SCALE
from witan.deliberation.events import (
    NOT_GRADED,
    NOT_ON_SHEET,
    NOT_RANKED,
    ReadBy,
    judges_only,
    name_candidates,
)
from witan.deliberation.replies import (
    ambiguous_keys,
    find_json_values,
    parse_json,
    split_groups,
    split_reasoning,
    split_ties,
)
from witan.errors import InvalidBallot

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
_MAX_NAMES_QUOTED = 5

_TRIMMED_CHARACTERS = " \t\r\n*_`\"'[](){}<>.:,#"
_LABEL_NOUN = re.compile(r"(?:answer|response|candidate|option)(?![a-z])", re.IGNORECASE)
_GAPS = re.compile(r"[\s_-]+")
_PLACE = re.compile(r"#?(\d{1,4})(?:st|nd|rd|th)?\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParsedReview:
    """Ranking and grades read from one piece of a reply, by candidate.

    `remark`: text that the reviewer wrote beside its ranking.
    `notes`: sentences on what was dropped.
    """

    groups: Groups = ()
    grades: Grades = field(default_factory=dict)
    remark: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ranked_candidates(self) -> tuple[str, ...]:
        """The candidates with a place."""
        return tuple(candidate for group in self.groups for candidate in group)

    @property
    def graded_candidates(self) -> tuple[str, ...]:
        """The candidates with a readable grade."""
        return tuple(c for c, raw in self.grades.items() if any(_readable_grades(raw)))

    @property
    def fullness(self) -> int:
        """Number of candidates placed or graded; 0 unless it is a ballot."""
        return len(self.ranked_candidates) + len(self.graded_candidates)


@dataclass(frozen=True, slots=True)
class ReviewForm:
    """The form of a review: labels to rank and criteria to grade.

    `labels`: label, folded, to candidate.
    `criteria`: criterion, folded, to its name in the rubric; the holistic grade is one of them.
    Empty if no grades were requested.
    """

    labels: Mapping[str, str]
    criteria: Mapping[str, str]

    @classmethod
    def of(cls, sheet: Sheet, rubric: Rubric | None, *, holistic: bool) -> "ReviewForm":
        """Make the form of a sheet, with or without a rubric."""
        labels = zip(sheet.labels, sheet.candidates, strict=True)
        criteria = _fold_criteria(rubric, holistic=holistic)
        return cls({label.casefold(): candidate for label, candidate in labels}, criteria)

    @property
    def by_criterion(self) -> bool:
        """True if grades are requested for each criterion."""
        return len(self.criteria) > 1

    def candidate(self, label: object) -> str | None:
        """Return the candidate of a label as written, if on the sheet.

        ``A``, ``a``, ``[A]``, ``Response A`` and ``Answer A:`` mean the same.
        """
        if not isinstance(label, str) or len(label) > _LONGEST_LABEL:
            return None
        bare = label.strip(_TRIMMED_CHARACTERS).casefold()
        if bare in self.labels:
            return self.labels[bare]
        return self.labels.get(_LABEL_NOUN.sub("", bare, count=1).strip(_TRIMMED_CHARACTERS))

    def read(self, data: Mapping[str, Any] | Sequence[Any]) -> ParsedReview:
        """Read one JSON object, or a list of objects with labels."""
        if not isinstance(data, Mapping):
            about = [
                item for item in data if isinstance(item, Mapping) and _first_value(item, _LABELS)
            ]
            return self.read({"grades": about})
        oversights = _Oversights()
        ranking, grades, remark = (
            _first_value(data, keys) for keys in (_RANKINGS, _GRADES, _NOTES)
        )
        if grades is None and ranking is None and self._is_graded_by_label(data):
            grades = data
        elif grades is None and isinstance(ranking, list):
            grades = [item for item in ranking if isinstance(item, Mapping)]
        elif ranking is None and isinstance(grades, list):
            ranking = [
                i for i in grades if isinstance(i, Mapping) and _first_value(i, _PLACES) is not None
            ]
        groups = self._read_ranking(_read_groups(ranking), oversights)
        graded = self._read_grades(grades, oversights)
        return ParsedReview(groups, graded, _read_remark(remark), oversights.notes())

    def read_exactly(self, data: Mapping[str, Any]) -> ParsedReview:
        """Read one JSON object that satisfies the schema."""
        if not data.keys() <= {"notes", "grades", "ranking"}:
            return self.read(data)
        groups = tuple(tuple(self.labels[x.casefold()] for x in group) for group in data["ranking"])
        grades: dict[str, Grade | Mapping[str, Grade]] = {}
        for label, raw in (data.get("grades") or {}).items():
            whole = self.by_criterion or not isinstance(raw, Mapping)
            grades[self.labels[label.casefold()]] = raw if whole else raw[HOLISTIC]
        return ParsedReview(groups, grades, _read_remark(data.get("notes")))

    def read_list(self, groups: Iterable[Iterable[object]]) -> ParsedReview:
        """Read groups of labels from a list."""
        oversights = _Oversights()
        groups_read = self._read_ranking(groups, oversights)
        return ParsedReview(groups_read, notes=oversights.notes())

    def _read_ranking(
        self, groups: Iterable[Iterable[object]], oversights: "_Oversights"
    ) -> Groups:
        """Replace labels by candidates; a repeated one keeps its first place."""
        labels: dict[str, None] = {}
        ranking = []
        for group in groups:
            names = []
            for label in group:
                name = self.candidate(label)
                if name is None:
                    oversights(NOT_ON_SHEET)
                elif name in labels:
                    oversights.of("ranked more than once: {}; the first place counts", name)
                else:
                    names.append(name)
                    labels[name] = None
            if names:
                ranking.append(tuple(names))
        return tuple(ranking)

    def _is_graded_by_label(self, data: Mapping[str, Any]) -> bool:
        """Return true if an object contains only labels with grades by criterion."""
        return bool(self.criteria) and all(
            self.candidate(key) is not None and isinstance(value, Mapping)
            for key, value in data.items()
        )

    def _read_grades(self, data: object, oversights: "_Oversights") -> Grades:
        grades: dict[str, Grade | Mapping[str, Grade]] = {}
        pairs = list(self._by_label(data))
        if not self.criteria:
            if pairs:
                oversights("grades were not requested; dropped")
            return grades
        for label, raw in pairs:
            name = self.candidate(label)
            if name is None:
                oversights(NOT_ON_SHEET)
            elif name in grades:
                oversights.of("graded more than once: {}; the first grade counts", name)
            else:
                grade = self._read_grade(raw, oversights)
                if grade is not None:
                    grades[name] = grade
        return grades

    def _by_label(self, data: object) -> Iterator[tuple[object, object]]:
        """Pair labels with their grades.

        The grades are in a map, a list of objects, or a map per criterion.
        """
        if isinstance(data, list):
            for item in data:
                if isinstance(item, Mapping) and _first_value(item, _LABELS) is not None:
                    inner = _first_value(item, _GRADES)
                    other_fields = {
                        key: value
                        for key, value in item.items()
                        if _fold_key(key) not in (*_LABELS, *_PLACES, *_NOTES)
                    }
                    raw = inner if isinstance(inner, Mapping) else other_fields
                    if raw:
                        yield _first_value(item, _LABELS), raw
        elif isinstance(data, Mapping) and self._is_by_criterion(data):
            grades_by_label: dict[str, dict[str, Any]] = {}
            for criterion, column in data.items():
                for label, raw in column.items():
                    grades_by_label.setdefault(label, {})[criterion] = raw
            yield from grades_by_label.items()
        elif isinstance(data, Mapping):
            yield from data.items()

    def _is_by_criterion(self, data: Mapping[str, Any]) -> bool:
        return all(
            _fold_key(key) in self.criteria
            and self.candidate(key) is None
            and isinstance(column, Mapping)
            for key, column in data.items()
        )

    def _read_grade(
        self, raw: object, oversights: "_Oversights"
    ) -> Grade | Mapping[str, Grade] | None:
        if not isinstance(raw, Mapping):
            return _read_scalar(raw, oversights)
        grade_by_criterion: dict[str, Grade] = {}
        for key, value in raw.items():
            criterion = self.criteria.get(_fold_key(key))
            if criterion is None:
                if _fold_key(key) not in (*_NOTES, *_GRADE):
                    oversights("no criterion of the rubric: {}; dropped", key)
            elif criterion not in grade_by_criterion:
                grade = _read_scalar(value, oversights)
                if grade is not None:
                    grade_by_criterion[criterion] = grade
        if not grade_by_criterion:
            wrapped = _first_value(raw, _GRADE)
            return None if wrapped is None else _read_scalar(wrapped, oversights)
        return grade_by_criterion if self.by_criterion else grade_by_criterion[HOLISTIC]


@lru_cache(maxsize=16)
def _fold_criteria(rubric: Rubric | None, *, holistic: bool) -> Mapping[str, str]:
    names = [] if rubric is None else [criterion.name for criterion in rubric.criteria]
    if holistic or rubric is not None:
        names.append(HOLISTIC)
    return {_fold_key(name): name for name in names}


class _Oversights:
    """Notes on dropped parts of a reply, one sentence per kind."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, None]] = {}

    def __call__(self, sentence: str, *details: object) -> None:
        kind = self.kinds.setdefault(sentence, {})
        kind.update(dict.fromkeys(_quote_value(each) for each in details))

    def of(self, sentence: str, candidate: str) -> None:
        """Note a candidate's dropped parts, in a sentence with its name."""
        self.kinds.setdefault(sentence, {})[candidate] = None

    def notes(self) -> tuple[str, ...]:
        return tuple(kind.format(_join_few(list(details))) for kind, details in self.kinds.items())


def _join_few(values: Sequence[str]) -> str:
    more = len(values) - _MAX_NAMES_QUOTED
    return ", ".join(values[:_MAX_NAMES_QUOTED]) + (f" and {more} more" if more > 0 else "")


def _quote_value(value: object) -> str:
    if isinstance(value, str):
        return repr(_replace_surrogates(value[:_LONGEST_LABEL]))
    return "a list or map" if isinstance(value, dict | list) else json.dumps(value)


def _read_remark(remark: object) -> str | None:
    return _replace_surrogates(remark) if isinstance(remark, str) and remark.strip() else None


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _fold_key(key: str) -> str:
    if key.isascii() and key.isalpha() and key.islower():
        return key  # nearly every key
    return _GAPS.sub("_", key.strip().casefold())


def _first_value(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the first value by these keys, in any case, if any."""
    values = {_fold_key(key): value for key, value in reversed(list(data.items()))}
    return next((values[key] for key in keys if values.get(key) is not None), None)


def _readable_grades(raw: Grade | Mapping[str, Grade]) -> Iterator[bool]:
    values = raw.values() if isinstance(raw, Mapping) else (raw,)
    return (read_grade(value) is not None for value in values)


def _read_scalar(raw: object, oversights: _Oversights) -> Grade | None:
    """Read a grade as written, for `witan.core.scale.read_grade` to convert."""
    if type(raw) is int or type(raw) is float:  # as nearly all are
        return raw
    if isinstance(raw, Mapping):
        raw = _first_value(raw, _GRADE)
    if (
        isinstance(raw, str)
        and len(raw) <= _LONGEST_GRADE
        and raw.strip().casefold()
        not in PASSED | FAILED  # not for a reviewer that was asked for 1-10
    ):
        return _replace_surrogates(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return raw
    oversights("no grade: {}; dropped", raw)
    return None


def _read_place(data: object) -> float | None:
    """Read a place from a number or text: ``1``, ``"2."``, ``"3rd"``."""
    if isinstance(data, str):
        match = _PLACE.fullmatch(data.strip())
        return None if match is None else float(match[1])
    if isinstance(data, bool) or not isinstance(data, int | float):
        return None
    return float(data)


def _read_groups(data: object) -> list[list[object]]:
    """Read groups of labels, best first, from any form of a ranking."""
    if isinstance(data, str):
        return split_groups(data)
    if isinstance(data, Mapping):
        return _group_by_place(
            [(_read_place(place), label) for label, place in data.items()]
        ) or _group_by_place([(_read_place(place), labels) for place, labels in data.items()])
    if not isinstance(data, list):
        return []
    about = [item for item in data if isinstance(item, Mapping)]
    if not about:
        return [_to_group(item) for item in data]
    return _group_by_place(
        [(_read_place(_first_value(item, _PLACES)), _first_value(item, _LABELS)) for item in about]
    ) or [_to_group(_first_value(item, _LABELS)) for item in about]


def _to_group(data: object) -> list[object]:
    if isinstance(data, list):
        return data
    return split_ties(data) if isinstance(data, str) else [data]


def _group_by_place(places: Sequence[tuple[float | None, object]]) -> list[list[object]]:
    """Group labels by place, smallest first; empty if a place is missing."""
    placed_labels = [(place, labels) for place, labels in places if place is not None]
    if len(placed_labels) < len(places):
        return []
    by_place = sorted(placed_labels, key=itemgetter(0))
    return [
        [label for _, labels in level for label in _to_group(labels)]
        for _, level in groupby(by_place, key=itemgetter(0))
    ]


LONGEST_REPLY = 200_000
"""Longest reply, without its reasoning, in which ballots are searched for."""

MOST_BALLOTS = 32
"""Most ballots in one reply that are compared; a reviewer that sends more is asked again."""

_HEADING = re.compile(r"[ \t#*_>]*final[ \t]+ranking[ \t*_]*(?::|$)[ \t*_]*(.*)", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:\d{1,3}[.):]|[-*•])\s*(.+)")
_REMARK = re.compile(r"\s[-–—(]|:")


@dataclass(frozen=True, slots=True)
class Review:
    """A ballot, how it was read, and notes on dropped parts."""

    ballot: Ballot
    read_by: ReadBy
    notes: tuple[str, ...] = ()


def read_review(
    reply: str,
    sheet: Sheet,
    *,
    rubric: Rubric | None,
    holistic: bool,
    session: str,
    roster: Sequence[str],
) -> Review:
    """Read a reply, without its reasoning, as the ballot of its reviewer.

    Without a rubric and without holistic grades only the ranking is read.

    Raises `InvalidBallot` if nothing in the reply ranks or grades at least half of the sheet, or
    two ballots in it contradict each other.
    """
    form = ReviewForm.of(sheet, rubric, holistic=holistic)
    reply = split_reasoning(reply).text
    if is_blank(reply) or reply.strip() == "null":
        raise InvalidBallot(sheet.reviewer, "says nothing")
    if len(reply) > LONGEST_REPLY:
        problem = f"has {len(reply):,} characters, more than the {LONGEST_REPLY:,} that are read"
        raise InvalidBallot(sheet.reviewer, problem)
    data = parse_json(reply)
    if isinstance(data, dict) and _matches_schema(data, sheet, form, holistic=holistic):
        _refuse_ambiguous(data, sheet)
        return Review(_ballot(form.read_exactly(data), sheet, session, roster), "schema")
    reading = _read_tolerantly(reply, sheet, form)
    notes = (*reading.notes, *_list_omissions(reading, sheet, form))
    return Review(_ballot(reading, sheet, session, roster), "tolerant", notes)


def _ballot(reading: ParsedReview, sheet: Sheet, session: str, roster: Sequence[str]) -> Ballot:
    """Make a ballot of a reading, without unreadable grades."""
    grades = _drop_illegible(reading.grades)
    return Ballot(
        reviewer=sheet.reviewer,
        groups=reading.groups,
        grades=grades,
        session=session,
        candidates=tuple(roster),
        positions=sheet.positions,
        notes=reading.remark and name_candidates(reading.remark, sheet),
        scale=NATIVE_SCALE if grades else None,
    )


def _drop_illegible(grades: Grades) -> Grades:
    """Drop unreadable grades: "n/a" counts as no grade."""
    legible: dict[str, Grade | Mapping[str, Grade]] = {}
    for name, raw in grades.items():
        if not isinstance(raw, dict):
            if read_grade(raw) is not None:
                legible[name] = raw
        elif set(map(type, raw.values())) == {int}:  # as nearly all are
            legible[name] = raw
        elif readable := {k: one for k, one in raw.items() if read_grade(one) is not None}:
            legible[name] = readable
    return legible


def _refuse_ambiguous(ballot: object, sheet: Sheet) -> None:
    if not all(_fold_key(key) in _NOTES for key in ambiguous_keys(ballot)):
        raise InvalidBallot(sheet.reviewer, "contradicts itself: one of its keys has two values")


def _matches_schema(
    data: Mapping[str, Any], sheet: Sheet, form: ReviewForm, *, holistic: bool
) -> bool:
    """Return true if an object satisfies the schema exactly."""
    ranking, grades = data.get("ranking"), data.get("grades")
    if not isinstance(ranking, list) or not all(isinstance(group, list) for group in ranking):
        return False
    ranked_labels = [label for group in ranking for label in group]
    if sorted(map(str, ranked_labels)) != sorted(sheet.labels) or not all(ranking):
        return False
    if not form.criteria:
        return grades is None
    if not isinstance(grades, dict) or sorted(grades) != sorted(sheet.labels):
        return False
    names = {name for name in form.criteria.values() if holistic or name != HOLISTIC}
    return all(_grades_match_schema(raw, names) for raw in grades.values())


def _grades_match_schema(raw: object, names: set[str]) -> bool:
    if not isinstance(raw, dict):
        return names == {HOLISTIC} and _is_native_grade(raw)
    return raw.keys() == names and all(map(_is_native_grade, raw.values()))


def _is_native_grade(grade: object) -> bool:
    if type(grade) is int:
        return LOWEST <= grade <= HIGHEST
    number = None if isinstance(grade, str | bool) else grade_on(NATIVE, grade)
    return number is not None and not number[1]


def _read_tolerantly(reply: str, sheet: Sheet, form: ReviewForm) -> ParsedReview:
    """Read the fullest ballot of the reply unless another contradicts it.

    We do not guess which of two ballots a reviewer means: one may be a quotation from an answer
    that fakes a ballot.
    """
    readings = [r for data in find_json_values(reply) for r in _find_ballots(data, sheet, form)]
    lists = list(_find_final_rankings(reply, form))
    covering_readings = [each for each in (*readings, *lists) if _covers_enough(each, sheet)]
    if any(
        _contradicts(one, other) for one, other in combinations(covering_readings[:MOST_BALLOTS], 2)
    ):
        raise InvalidBallot(sheet.reviewer, "contains ballots that contradict each other")
    if len(covering_readings) > MOST_BALLOTS:
        raise InvalidBallot(sheet.reviewer, f"contains more than {MOST_BALLOTS} ballots")
    fullest = max(readings, key=lambda reading: reading.fullness, default=ParsedReview())
    if _covers_enough(fullest, sheet):
        return fullest
    final_list = lists[-1] if lists else ParsedReview()
    if _covers_enough(final_list, sheet):
        notes = ("read off a list headed FINAL RANKING", *final_list.notes)
        return replace(final_list, notes=notes)
    raise InvalidBallot(sheet.reviewer, _describe_problem([fullest, final_list], sheet))


def _contradicts(one: ParsedReview, other: ParsedReview) -> bool:
    """Return true if two readings order or grade candidates differently."""
    first, second = (
        {candidate: place for place, group in enumerate(reading.groups) for candidate in group}
        for reading in (one, other)
    )
    if any(
        _sign(first, a, b) != _sign(second, a, b)
        for a, b in combinations([each for each in first if each in second], 2)
    ):
        return True
    graded = [candidate for candidate in one.grades if candidate in other.grades]
    return any(_grades_differ(one.grades[c], other.grades[c]) for c in graded)


def _grades_differ(one: Grade | Grades, other: Grade | Grades) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return any(_grades_differ(one[name], other[name]) for name in one.keys() & other.keys())
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        return False
    return read_grade(one) != read_grade(other)


def _find_ballots(data: object, sheet: Sheet, form: ReviewForm) -> Iterator[ParsedReview]:
    """Yield every outermost ballot in a JSON value."""
    pending = [data]
    while pending:
        value = pending.pop()
        if value and isinstance(value, dict | list):
            reading = form.read(value)
            if reading.fullness:
                _refuse_ambiguous(value, sheet)
                yield reading
            else:
                inner = list(value.values() if isinstance(value, dict) else value)
                pending.extend(reversed(inner))


def _covers_enough(reading: ParsedReview, sheet: Sheet) -> bool:
    """Return true if half of the sheet, and two candidates, are judged."""
    n_judged = max(len(reading.ranked_candidates), len(reading.graded_candidates))
    return 2 * n_judged >= len(sheet.labels) and n_judged >= min(2, len(sheet.labels))


def _find_final_rankings(reply: str, form: ReviewForm) -> Iterator[ParsedReview]:
    """Yield the list or line under each of the last headings."""
    lines = reply.splitlines()
    headings = [(at, match[1]) for at, line in enumerate(lines) if (match := _HEADING.match(line))]
    for at, line_rest in headings[-MOST_BALLOTS:]:
        yield form.read_list(
            split_groups(line_rest) if line_rest.strip() else _read_items(lines[at + 1 :], form)
        )


def _read_items(lines: Sequence[str], form: ReviewForm) -> Iterator[list[object]]:
    """Yield the groups in a list's items, up to its end."""
    has_begun = False
    for line in lines:
        item = _ITEM.fullmatch(line)
        if item is not None:
            labels = split_ties(item[1])
            if not any(form.candidate(label) for label in labels):
                labels = split_ties(_REMARK.split(item[1])[0])  # "A – the most complete"
            has_begun = True
            yield labels
        elif ">" in line and not has_begun:
            yield from split_groups(line)
            return
        elif line.strip():
            return


def _list_omissions(reading: ParsedReview, sheet: Sheet, form: ReviewForm) -> Iterator[str]:
    """Name the answers without a place, and those without a grade."""
    for left_out, candidates, is_required in (
        (NOT_RANKED, reading.ranked_candidates, bool(reading.groups) or not form.criteria),
        (NOT_GRADED, reading.graded_candidates, bool(form.criteria)),
    ):
        missing = [name for name in sheet.candidates if name not in candidates]
        if is_required and missing:
            yield f"{left_out}: {', '.join(missing)}"


def _describe_problem(reviews: Sequence[ParsedReview], sheet: Sheet) -> str:
    """Describe the problem of the fullest reading."""
    best = max(reviews, key=lambda reading: reading.fullness)
    judged = max(best.ranked_candidates, best.graded_candidates, key=len)
    if not judged:
        return "has no usable ranking"
    return judges_only(len(judged), len(sheet.candidates))


OneGrade = Grade | Mapping[str, Grade]
"""One grade, or grades by criterion."""


@dataclass(frozen=True, slots=True)
class MergedBallot:
    """A ballot merged from two, with counts of flipped pairs.

    `n_flipped`: pairs that the two ballots place strictly in opposite orders.
    `n_compared`: pairs that both place strictly.
    """

    ballot: Ballot
    n_flipped: int
    n_compared: int


def merge(first: Ballot, second: Ballot, settings: Counting | None = None) -> MergedBallot:
    """Merge one reviewer's two ballots; tie their flipped pairs.

    Ballots are compared in the order that counts: by overall grade if criteria are graded. Grades
    and places are averaged. Neighbours with a flipped pair are then tied, unless that would tie a
    pair on which both ballots agree. Tied candidates share their grades, so the tie stands under
    every rule.
    """
    counting = replace(settings or Counting(), recusal="off")
    orders = (_groups_of(first, counting), _groups_of(second, counting))
    places = (_places(orders[0]), _places(orders[1]))
    pairs = list(combinations([c for c in places[0] if c in places[1]], 2))
    signs = {pair: (_sign(places[0], *pair), _sign(places[1], *pair)) for pair in pairs}
    strict = {pair: both for pair, both in signs.items() if all(both)}
    agreed = {frozenset(pair) for pair, (one, other) in strict.items() if one == other}
    flipped = {frozenset(pair) for pair in strict} - agreed
    groups = _tie_flipped(_by_mean_place(*places), flipped, agreed)
    grades = {
        c: _mean_of([b.grades[c] for b in (first, second) if c in b.grades])
        for c in {**first.grades, **second.grades}
    }
    notes = [ballot.notes for ballot in (first, second) if ballot.notes is not None]
    merged = replace(
        first,
        groups=groups if first.groups or second.groups else (),
        grades=_share_grades(grades, groups, flipped),
        notes="\n\n".join(notes) if notes else None,
    )
    return MergedBallot(merged, len(flipped), len(strict))


def as_comparison(ballot: Ballot) -> Ballot:
    """Return the ballot of a sheet with two candidates as one comparison."""
    return replace(ballot, paired=True, candidates=None, grades={})


def rank_comparisons(comparisons: Sequence[Ballot], roster: Iterable[str]) -> MergedBallot:
    """Rank a reviewer's candidates by the share of rivals that they beat.

    Both orders of a pair are one opinion; a pair that is not judged alike in both counts as a
    tie, and as flipped.
    """
    opinions, order_kept = one_opinion_each(comparisons[0].session, comparisons, [])
    shares: dict[str, list[float]] = {}
    for opinion in opinions:
        best = opinion.groups[0]
        for name in opinion.candidate_names():
            shares.setdefault(name, []).append((name in best) / len(best))
    means = {name: -sum(each) / len(each) for name, each in shares.items()}
    notes = [ballot.notes for ballot in comparisons if ballot.notes is not None]
    [(n_kept, n_compared)] = order_kept.values() or [(0, 0)]
    ballot = replace(
        comparisons[0],
        groups=_levels(means),
        candidates=tuple(roster),
        positions=None,
        paired=False,
        notes="\n\n".join(dict.fromkeys(notes)) if notes else None,
    )
    return MergedBallot(ballot, n_compared - n_kept, n_compared)


def _groups_of(ballot: Ballot, settings: Counting) -> Groups:
    votes = interpret(ballot.session, [ballot], settings).votes
    return votes[0].groups if votes else ()


def _share_grades(
    grades: Mapping[str, OneGrade], groups: Groups, flips: set[frozenset[str]]
) -> dict[str, OneGrade]:
    """Give candidates tied by a flip equal grades."""
    new_grades = dict(grades)
    for group in groups:
        tied = [c for c in group if any(c in pair and pair <= {*group} for pair in flips)]
        tied_grades = [grades[c] for c in tied if c in grades]
        if len(tied_grades) > 1:
            new_grades |= dict.fromkeys(tied, _mean_of(tied_grades))
    return new_grades


def _places(groups: Groups) -> dict[str, float]:
    """Return each candidate's mean place; two tied for first have 1.5."""
    places: dict[str, float] = {}
    for group in groups:
        above = len(places)
        places.update(dict.fromkeys(group, above + (len(group) + 1) / 2))
    return places


def _sign(places: Mapping[str, float], one: str, other: str) -> int:
    return (places[one] > places[other]) - (places[one] < places[other])


def _levels(heights: Mapping[str, float]) -> Groups:
    by_height = sorted(heights, key=heights.__getitem__)
    return tuple(tuple(group) for _, group in groupby(by_height, key=heights.__getitem__))


def _by_mean_place(first: Mapping[str, float], second: Mapping[str, float]) -> Groups:
    places_by_name = {c: [p[c] for p in (first, second) if c in p] for c in {**first, **second}}
    return _levels({c: sum(places) / len(places) for c, places in places_by_name.items()})


def _tie_flipped(
    groups: Groups, flips: set[frozenset[str]], stable_pairs: set[frozenset[str]]
) -> Groups:
    """Tie neighbours whose order depends on the sheet."""
    tied: list[tuple[str, ...]] = []
    for group in groups:
        across = {frozenset((a, b)) for a in (tied[-1] if tied else ()) for b in group}
        if across & flips and not across & stable_pairs:
            tied[-1] += group
        else:
            tied.append(group)
    return tuple(tied)


def _mean_of(grades: Sequence[OneGrade]) -> OneGrade:
    """Average by criterion; drop single grades beside grades by criterion."""
    maps = [each for each in grades if isinstance(each, Mapping)]
    if not maps:
        return _mean_grade([each for each in grades if not isinstance(each, Mapping)])
    criteria = dict.fromkeys(criterion for each in maps for criterion in each)
    return {c: _mean_grade([each[c] for each in maps if c in each]) for c in criteria}


def _mean_grade(grades: Sequence[Grade]) -> Grade:
    """Average legible grades; two equal grades stay as written."""
    numeric_grades = [
        (grade, value) for value in grades if (grade := read_grade(value)) is not None
    ]
    if len({grade for grade, _ in numeric_grades}) > 1:
        return sum(grade for grade, _ in numeric_grades) / len(numeric_grades)
    return numeric_grades[0][1] if numeric_grades else grades[0]
