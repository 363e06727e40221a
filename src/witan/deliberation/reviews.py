"""From the reply of a reviewer to its ballot, or to what is wrong with it.

A ladder: the reply as the schema asks for it; then whatever JSON object in it reads as a ballot;
then a list under the heading FINAL RANKING. Prose in which labels merely occur is no ballot, and
nothing is a refusal but what cannot be read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.core.rubric import HOLISTIC, Rubric, read_grade
from witan.deliberation.ballot_forms import Asked, Reading, chain, tied
from witan.deliberation.events import ReadBy
from witan.deliberation.reading_json import values_in, whole
from witan.deliberation.review_words import NOT_GRADED, NOT_RANKED, judges_only
from witan.deliberation.thoughts import split_thoughts
from witan.errors import InvalidBallot

__all__ = ["LONGEST_REPLY", "Review", "read_review"]

LONGEST_REPLY = 200_000
"""Characters beyond which a reply is not looked into."""

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
        If nothing in the reply ranks or grades at least half of the sheet.
    """
    asked = Asked.of(sheet, rubric, holistic=holistic)
    if not reply.strip() or reply.strip() == "null":
        raise InvalidBallot(sheet.reviewer, "says nothing")
    if len(reply) > LONGEST_REPLY:
        problem = f"has {len(reply):,} characters, more than the {LONGEST_REPLY:,} that are read"
        raise InvalidBallot(sheet.reviewer, problem)
    reply = split_thoughts(reply).text
    said = whole(reply)
    if isinstance(said, Mapping) and _as_asked(said, sheet, asked, holistic=holistic):
        return Review(_ballot(asked.read(said), sheet, session, roster), "schema")
    reading = _tolerantly(reply, sheet, asked)
    notes = (*reading.notes, *_left_out(reading, sheet, asked))
    return Review(_ballot(reading, sheet, session, roster), "tolerant", notes)


def _ballot(reading: Reading, sheet: Sheet, session: str, roster: Sequence[str]) -> Ballot:
    return Ballot(
        reviewer=sheet.reviewer,
        groups=reading.groups,
        grades=reading.grades,
        session=session,
        candidates=tuple(roster),
        positions=sheet.positions,
        notes=reading.remark,
    )


def _as_asked(said: Mapping[str, Any], sheet: Sheet, asked: Asked, *, holistic: bool) -> bool:
    """Whether an object is what the schema describes, to the letter."""
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
        return names == {HOLISTIC} and not isinstance(given, str) and read_grade(given) is not None
    return given.keys() == names and not any(
        isinstance(grade, str) or read_grade(grade) is None for grade in given.values()
    )


def _tolerantly(reply: str, sheet: Sheet, asked: Asked) -> Reading:
    """The fullest ballot in the reply, of several the last: models draft first, and conclude last.

    A ballot that an answer fakes has to be quoted by its reviewer after its own, and no less full,
    to be taken for it; that there was more than one is noted.
    """
    read = [r for said in values_in(reply) for r in _ballots_in(said, asked)]
    fullest = max((reading.fullness for reading in read), default=0)
    full = [reading for reading in read if reading.fullness == fullest]
    if full and _is_enough(full[-1], sheet):
        several = f"the reply holds {len(read)} ballots; the last of the fullest counts"
        return replace(full[-1], notes=(*full[-1].notes, *([several] if len(read) > 1 else [])))
    listed = _final_ranking(reply, asked)
    if _is_enough(listed, sheet):
        return replace(listed, notes=("read off a list headed FINAL RANKING", *listed.notes))
    raise InvalidBallot(sheet.reviewer, _problem([*full, listed], sheet))


def _ballots_in(said: object, asked: Asked) -> Iterator[Reading]:
    """Every ballot in a JSON value; what stands inside a ballot is part of it."""
    pending = [said]
    while pending:
        value = pending.pop()
        if value and isinstance(value, dict | list):
            reading = asked.read(value)
            if reading.fullness:
                yield reading
            else:
                inner = list(value.values() if isinstance(value, dict) else value)
                pending.extend(reversed(inner))


def _is_enough(reading: Reading, sheet: Sheet) -> bool:
    """Whether at least half of the sheet, and two candidates if it has them, are judged."""
    judged = max(len(reading.ranked), len(reading.graded))
    return 2 * judged >= len(sheet.labels) and judged >= min(2, len(sheet.labels))


def _final_ranking(reply: str, asked: Asked) -> Reading:
    """The list, or the line, under the last heading FINAL RANKING."""
    lines = reply.splitlines()
    headings = [(at, found[1]) for at, line in enumerate(lines) if (found := _HEADING.match(line))]
    if not headings:
        return Reading()
    at, beside = headings[-1]
    if beside.strip():
        return asked.listed(chain(beside))
    return asked.listed(_items(lines[at + 1 :], asked))


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
    """What is wrong with the fullest reading there is."""
    best = max(read, key=lambda reading: reading.fullness)
    judged = best.ranked if len(best.ranked) >= len(best.graded) else best.graded
    if not judged:
        return "holds no ranking of the labels on its sheet"
    return judges_only(len(judged), len(sheet.candidates))
