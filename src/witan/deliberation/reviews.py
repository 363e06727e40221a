"""From the reply of a reviewer to its ballot, or to what is wrong with it.

A ladder: the reply as the schema asks for it; then whatever JSON object in it reads as a ballot;
then a list under the heading FINAL RANKING. Prose in which labels merely occur is no ballot, and
nothing is a refusal but what cannot be read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from witan.core.ballot import Ballot, Grade
from witan.core.blinding import Sheet
from witan.core.rubric import Rubric
from witan.core.scale import HOLISTIC, NATIVE, grade_on, read_grade
from witan.core.scale_recognition import declared
from witan.deliberation.ballot_forms import Asked, Grades, Reading, chain, is_remark, tied
from witan.deliberation.blank import is_blank
from witan.deliberation.events import ReadBy
from witan.deliberation.reading_json import ambiguous_keys, values_in, whole
from witan.deliberation.review_words import NOT_GRADED, NOT_RANKED, judges_only, name_candidates
from witan.deliberation.thoughts import split_thoughts
from witan.errors import InvalidBallot

__all__ = ["LONGEST_REPLY", "Review", "read_review"]

LONGEST_REPLY = 200_000
"""Characters beyond which a reply, without its reasoning, is not looked into."""

MOST_BALLOTS = 32
"""Ballots in one reply that are compared with each other; who sends more is asked again."""

_HEADING = re.compile(r"[ \t#*_>]*final[ \t]+ranking[ \t*_]*(?::|$)[ \t*_]*(.*)", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:\d{1,3}[.):]|[-*•])\s*(.+)")
_REMARK = re.compile(r"\s[-–—(]|:")


@dataclass(frozen=True, slots=True)
class Review:
    """A ballot, how it was read, and what had to be overlooked, in sentences."""

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
    """Read a reply as the ballot of the reviewer whose sheet it is; its reasoning is passed over.

    Without a rubric and without holistic grades only the ranking is read.

    Raises
    ------
    InvalidBallot
        If nothing in the reply ranks or grades at least half of the sheet, or two ballots in it
        contradict each other.
    """
    asked = Asked.of(sheet, rubric, holistic=holistic)
    reply = split_thoughts(reply).text
    if is_blank(reply) or reply.strip() == "null":
        raise InvalidBallot(sheet.reviewer, "says nothing")
    if len(reply) > LONGEST_REPLY:
        problem = f"has {len(reply):,} characters, more than the {LONGEST_REPLY:,} that are read"
        raise InvalidBallot(sheet.reviewer, problem)
    said = whole(reply)
    if isinstance(said, Mapping) and _as_asked(said, sheet, asked, holistic=holistic):
        _refuse_ambiguous(said, sheet)
        return Review(_ballot(asked.read(said), sheet, session, roster), "schema")
    reading = _tolerantly(reply, sheet, asked)
    notes = (*reading.notes, *_left_out(reading, sheet, asked))
    return Review(_ballot(reading, sheet, session, roster), "tolerant", notes)


def _ballot(reading: Reading, sheet: Sheet, session: str, roster: Sequence[str]) -> Ballot:
    """The ballot of a reading; a grade that is none is left out, so that a repair asks for it."""
    ballot = Ballot(
        reviewer=sheet.reviewer,
        groups=reading.groups,
        grades=_legible(reading.grades),
        session=session,
        candidates=tuple(roster),
        positions=sheet.positions,
        notes=reading.remark and name_candidates(reading.remark, sheet),
    )
    return declared(ballot)


def _legible(grades: Grades) -> Grades:
    """The grades that can be read, so that writing "n/a" does no more than writing nothing."""
    legible: dict[str, Grade | Mapping[str, Grade]] = {}
    for name, given in grades.items():
        if not isinstance(given, Mapping):
            if read_grade(given) is not None:
                legible[name] = given
        elif held := {k: one for k, one in given.items() if read_grade(one) is not None}:
            legible[name] = held
    return legible


def _refuse_ambiguous(ballot: object, sheet: Sheet) -> None:
    """Refuse a ballot that gives a key two values; which of them is meant is not ours to guess."""
    if not all(map(is_remark, ambiguous_keys(ballot))):
        raise InvalidBallot(sheet.reviewer, "contradicts itself: one of its keys has two values")


def _as_asked(said: Mapping[str, Any], sheet: Sheet, asked: Asked, *, holistic: bool) -> bool:
    """Tell whether an object is what the schema describes, to the letter."""
    ranking, grades = said.get("ranking"), said.get("grades")
    if not isinstance(ranking, list) or not all(isinstance(group, list) for group in ranking):
        return False
    ranked = [label for group in ranking for label in group]
    if sorted(map(str, ranked)) != sorted(sheet.labels) or not all(ranking):
        return False
    if not asked.criteria:
        return grades is None
    if not isinstance(grades, Mapping) or sorted(grades) != sorted(sheet.labels):
        return False
    names = {name for name in asked.criteria.values() if holistic or name != HOLISTIC}
    return all(_graded_as_asked(given, names) for given in grades.values())


def _graded_as_asked(given: object, names: set[str]) -> bool:
    if not isinstance(given, Mapping):
        return names == {HOLISTIC} and _is_as_asked(given)
    return given.keys() == names and all(map(_is_as_asked, given.values()))


def _is_as_asked(grade: object) -> bool:
    """Tell whether a grade is a number from 1 to 10."""
    read = None if isinstance(grade, str) else grade_on(NATIVE, grade)
    return read is not None and not read[1]


def _tolerantly(reply: str, sheet: Sheet, asked: Asked) -> Reading:
    """Read the fullest ballot in the reply, where no other ballot in it says otherwise.

    Which of two ballots a reviewer means is not ours to guess, and one of them may be quoted from
    an answer that fakes it.
    """
    read = [r for said in values_in(reply) for r in _ballots_in(said, sheet, asked)]
    lists = list(_final_rankings(reply, asked))
    cast = [reading for reading in (*read, *lists) if _is_enough(reading, sheet)]
    if any(_contradict(one, other) for one, other in combinations(cast[:MOST_BALLOTS], 2)):
        raise InvalidBallot(sheet.reviewer, "holds ballots that contradict each other")
    if len(cast) > MOST_BALLOTS:
        raise InvalidBallot(sheet.reviewer, f"holds more than {MOST_BALLOTS} ballots")
    fullest = max(read, key=lambda reading: reading.fullness, default=Reading())
    if _is_enough(fullest, sheet):
        return fullest
    listed = lists[-1] if lists else Reading()
    if _is_enough(listed, sheet):
        return replace(listed, notes=("read off a list headed FINAL RANKING", *listed.notes))
    raise InvalidBallot(sheet.reviewer, _problem([fullest, listed], sheet))


def _contradict(one: Reading, other: Reading) -> bool:
    """Tell whether two readings place two candidates otherwise, or grade one otherwise."""
    first, second = (
        {candidate: place for place, group in enumerate(reading.groups) for candidate in group}
        for reading in (one, other)
    )
    both = [candidate for candidate in first if candidate in second]
    if any(
        _order(first[a], first[b]) != _order(second[a], second[b]) for a, b in combinations(both, 2)
    ):
        return True
    graded = [candidate for candidate in one.grades if candidate in other.grades]
    return any(_graded_otherwise(one.grades[c], other.grades[c]) for c in graded)


def _order(a: int, b: int) -> int:
    return (a > b) - (a < b)


def _graded_otherwise(one: Grade | Grades, other: Grade | Grades) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return any(_graded_otherwise(one[name], other[name]) for name in one.keys() & other.keys())
    if isinstance(one, Mapping) or isinstance(other, Mapping):
        return False
    return read_grade(one) != read_grade(other)


def _ballots_in(said: object, sheet: Sheet, asked: Asked) -> Iterator[Reading]:
    """Every ballot in a JSON value; what stands inside a ballot is part of it."""
    pending = [said]
    while pending:
        value = pending.pop()
        if value and isinstance(value, dict | list):
            reading = asked.read(value)
            if reading.fullness:
                _refuse_ambiguous(value, sheet)
                yield reading
            else:
                inner = list(value.values() if isinstance(value, dict) else value)
                pending.extend(reversed(inner))


def _is_enough(reading: Reading, sheet: Sheet) -> bool:
    """Tell whether at least half of the sheet, and two candidates if it has them, are judged."""
    judged = max(len(reading.ranked), len(reading.graded))
    return 2 * judged >= len(sheet.labels) and judged >= min(2, len(sheet.labels))


def _final_rankings(reply: str, asked: Asked) -> Iterator[Reading]:
    """The list, or the line, under each heading FINAL RANKING; of many headings, the last ones."""
    lines = reply.splitlines()
    headings = [(at, found[1]) for at, line in enumerate(lines) if (found := _HEADING.match(line))]
    for at, beside in headings[-MOST_BALLOTS:]:
        yield asked.listed(chain(beside) if beside.strip() else _items(lines[at + 1 :], asked))


def _items(lines: Sequence[str], asked: Asked) -> Iterator[list[object]]:
    """The groups that the items of a list name, up to the first line that is none."""
    begun = False
    for line in lines:
        item = _ITEM.fullmatch(line)
        if item is not None:
            named = tied(item[1])
            if not any(asked.candidate(label) for label in named):
                named = tied(_REMARK.split(item[1])[0])  # "A – the most complete"
            begun = True
            yield named
        elif ">" in line and not begun:
            yield from chain(line)
            return
        elif line.strip():
            return


def _left_out(reading: Reading, sheet: Sheet, asked: Asked) -> Iterator[str]:
    """Name the answers without a place, and those without a grade."""
    for left_out, judged, wanted in (
        (NOT_RANKED, reading.ranked, bool(reading.groups) or not asked.criteria),
        (NOT_GRADED, reading.graded, bool(asked.criteria)),
    ):
        missing = [name for name in sheet.candidates if name not in judged]
        if wanted and missing:
            yield f"{left_out}: {', '.join(missing)}"


def _problem(read: Sequence[Reading], sheet: Sheet) -> str:
    """Say what is wrong with the fullest reading there is."""
    best = max(read, key=lambda reading: reading.fullness)
    judged = best.ranked if len(best.ranked) >= len(best.graded) else best.graded
    if not judged:
        return "holds no ranking of the labels on its sheet"
    return judges_only(len(judged), len(sheet.candidates))
