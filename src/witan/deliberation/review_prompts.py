"""What a reviewer is asked: the sheet, the rubric, the others' grades, the form of its reply."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import cycle
from typing import Any

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.core.rubric import Rubric
from witan.core.scale import HOLISTIC, read_grade
from witan.deliberation.fences import neutral
from witan.deliberation.material import answers_shown, data_rule, opening, question_shown
from witan.deliberation.ports import Message

__all__ = [
    "PROBLEM_BYTES",
    "REPLY_LENGTH",
    "repair_messages",
    "review_messages",
    "review_schema",
]

_REVIEWER = """\
You are one of several reviewers. Each of you judges anonymous answers to one question, \
independently of the others.

Judge what an answer says: whether it is right, and whether it serves whoever asked. Length is no \
merit. Of two answers that say the same, the shorter is the better one; padding, repetition and \
detail that nobody needs count against an answer. A confident tone, handsome layout and the place \
on this sheet count for nothing. Do not guess who wrote what."""

_GRADING = """\
Grade every answer with whole numbers from 1 to 10, each criterion by itself. How the criteria are \
weighed is settled elsewhere and none of your business: add nothing up, average nothing."""

_OVERALL = """\
overall: All things considered, how good is it? Your own impression, not computed from the others.\
"""

_PEERS = """\
The answers have been reviewed before. This is what the other reviewers gave, per answer and in \
ascending order, so that nobody can be recognised by it:"""

_OWN = "Your own first review gave:"

_REVISE = """\
They may be right or wrong. Review the answers once more: keep your own judgement or revise it, \
for reasons that you find in the answers, and not because others are many."""

_RANKING = """\
Rank all of {labels}, best first. Answers that are equally good share a group; leave none out and \
name none twice."""

_REPAIR = """\
That reply cannot be read as a review: it {problem}.

Send the whole review once more, as one JSON object of the form described above and nothing else."""

_EXAMPLE = {"P1": (6, 5), "P2": (9, 8), "P3": (5, 6)}
"""Grades in turn, under labels that no sheet has: theirs are letters alone."""

_EXAMPLE_NOTES = (
    "[P2] answers what was asked. [P1] errs on one point; [P3] is sound but twice as long."
)

REPLY_LENGTH, PROBLEM_BYTES = 4_000, 600
"""Characters of a failed reply, and bytes of what was wrong with it, that its repair repeats."""


def review_messages(  # noqa: PLR0913 — a review rests on all of this
    question: str,
    sheet: Sheet,
    answers: Mapping[str, str],
    rubric: Rubric | None,
    *,
    holistic: bool,
    conversation: Sequence[Message],
    files: Mapping[str, str],
    system: str | None = None,
    peers: Mapping[str, Ballot] | None = None,
    own: Ballot | None = None,
) -> tuple[Message, ...]:
    """Ask for a review of the answers on a sheet.

    Parameters
    ----------
    answers
        Candidate to text, masked already.
    rubric
        What is graded; None: the reviewer only ranks.
    holistic
        Whether each answer also gets one grade of the reviewer's own.
    peers
        The other reviewers' ballots of the round before; None: this is the first.
    own
        The reviewer's own ballot of the round before; None: it cast none.
    """
    parts = [
        data_rule(sheet.nonce),
        *question_shown(question, conversation, files, sheet.nonce),
        "The answers:\n\n" + answers_shown(sheet, answers),
        *_criteria(rubric, holistic),
        *_peers(sheet, rubric, peers, own),
        _RANKING.format(labels=", ".join(sheet.labels)),
        _form(_graded(rubric, holistic)),
    ]
    return (*opening(system, _REVIEWER), Message("user", "\n\n".join(parts)))


def review_schema(sheet: Sheet, rubric: Rubric | None, *, holistic: bool) -> dict[str, Any]:
    """The JSON Schema of a review: reasons first, then grades, then the ranking.

    Only what every provider's strict mode knows: no bounds on numbers or lists.
    """
    label = {"type": "string", "enum": list(sheet.labels)}
    properties: dict[str, Any] = {"notes": {"type": "string"}}
    if graded := _graded(rubric, holistic):
        grade = {"type": "integer", "description": "a whole number from 1 to 10"}
        each = _object(dict.fromkeys(graded, grade))
        properties["grades"] = _object(dict.fromkeys(sheet.labels, each))
    properties["ranking"] = {
        "type": "array",
        "description": "groups of equally good answers, best first",
        "items": {"type": "array", "items": label},
    }
    return _object(properties)


def repair_messages(asked: tuple[Message, ...], reply: str, problem: str) -> tuple[Message, ...]:
    """Ask once more for a review that could not be read, and say why it could not."""
    # Providers refuse an empty turn.
    said = neutral(reply[:REPLY_LENGTH]) if reply.strip() else "(nothing)"
    named = neutral(_cut(" ".join(problem.split()), PROBLEM_BYTES))
    return (*asked, Message("assistant", said), Message("user", _REPAIR.format(problem=named)))


def _cut(text: str, most_bytes: int) -> str:
    """The beginning of a text in UTF-8, without what is no character there."""
    return text.encode("utf-8", "ignore")[:most_bytes].decode("utf-8", "ignore")


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _graded(rubric: Rubric | None, holistic: bool) -> tuple[str, ...]:
    """What every answer gets a grade for."""
    criteria = () if rubric is None else tuple(criterion.name for criterion in rubric.criteria)
    return (*criteria, HOLISTIC) if holistic else criteria


def _criteria(rubric: Rubric | None, holistic: bool) -> Iterator[str]:
    """What each grade asks, and what the bands look like."""
    if rubric is None and not holistic:
        return
    yield _GRADING
    for criterion in rubric.criteria if rubric is not None else ():
        bands = (f"  {band.low}–{band.high}: {band.text}" for band in criterion.anchors)
        yield "\n".join((f"{criterion.name}: {criterion.description}", *bands))
    if holistic:
        yield _OVERALL


@lru_cache(maxsize=16)
def _form(graded: tuple[str, ...]) -> str:
    """The form of the reply, with an example that fits no sheet; the same for all reviewers."""
    example: dict[str, Any] = {"notes": _EXAMPLE_NOTES}
    keys = [
        '"notes", why you judge as you do, in a sentence or two per answer, its label in brackets: '
        "[P2]"
    ]
    if graded:
        keys.append('"grades", per label a grade for each of ' + ", ".join(graded))
        example["grades"] = {
            label: dict(zip(graded, cycle(grades), strict=False))
            for label, grades in _EXAMPLE.items()
        }
    keys.append('"ranking", a list of groups of labels, best first')
    example["ranking"] = [["P2"], ["P1", "P3"]]
    return (
        f"Reply with one JSON object and nothing else. Its keys, in this order: {'; '.join(keys)}. "
        f"For example, with labels that are not on this sheet and numbers without meaning:\n\n"
        f"{json.dumps(example, ensure_ascii=False)}"
    )


def _peers(
    sheet: Sheet, rubric: Rubric | None, peers: Mapping[str, Ballot] | None, own: Ballot | None
) -> Iterator[str]:
    """What the others gave, so that neither a reviewer nor its ballot can be pieced together."""
    if peers is None:
        return
    yield "\n".join((_PEERS, *_given(sheet, rubric, peers)))
    if own is not None:
        yield "\n".join((_OWN, *_given(sheet, rubric, {own.reviewer: own})))
    yield _REVISE


def _given(sheet: Sheet, rubric: Rubric | None, ballots: Mapping[str, Ballot]) -> Iterator[str]:
    for label, candidate in zip(sheet.labels, sheet.candidates, strict=True):
        given = [*_places(sheet, candidate, ballots), *_grades(candidate, rubric, ballots)]
        yield f"[{label}] {'; '.join(given) or 'nothing'}"


def _places(sheet: Sheet, candidate: str, peers: Mapping[str, Ballot]) -> Iterator[str]:
    """At which places the others put a candidate, among those on this sheet."""
    places = []
    for reviewer, ballot in peers.items():
        better = 0
        for group in ballot.groups:
            if candidate in group and candidate != reviewer:
                places.append(better + 1)
                break
            better += sum(name in sheet.candidates and name != reviewer for name in group)
    if places:
        yield "placed " + ", ".join(str(place) for place in sorted(places))


def _grades(candidate: str, rubric: Rubric | None, peers: Mapping[str, Ballot]) -> Iterator[str]:
    """Which grades the others gave a candidate: numbers alone, whatever else a ballot holds."""
    for criterion in _graded(rubric, holistic=True):
        grades = []
        for reviewer, ballot in peers.items():
            if candidate == reviewer:  # recused from the count, and from what others hear of it
                continue
            given = ballot.grades.get(candidate, {})
            of_all = given if isinstance(given, Mapping) else {HOLISTIC: given}
            grade = read_grade(of_all.get(criterion))
            if grade is not None:
                grades.append(grade)
        if grades:
            yield f"{criterion} " + ", ".join(f"{grade:g}" for grade in sorted(grades))
