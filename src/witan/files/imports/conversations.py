"""Saved conversations of the web app karpathy/llm-council, one JSON object per conversation.

Its files keep, per question, the answers (``stage1``), each reviewer's reply with the labels that
the app read off it (``stage2``), and the final answer (``stage3``). They do not keep which label
stood for whom: the app gives "Response A", "Response B", … to the answers in the order of
``stage1``, the same for every reviewer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from string import ascii_uppercase
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, check_years, session_name
from witan.core.blinding import Sheet
from witan.deliberation.ballots import read_review
from witan.deliberation.record import Imported
from witan.errors import InvalidBallot
from witan.files.ballots.jsonl import objects
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport

IN_ORDER = "the file does not keep whose labels these are; they follow the order of its stage1"
"""Noted on the ballots of a conversation without ``label_to_model``."""


@dataclass(frozen=True, slots=True)
class _Stand:
    """The answers to one question.

    Parameters
    ----------
    answers
        Candidate to text.
    authors
        Candidate to model, of those that are not called by it.
    labels
        Label, such as ``Response A``, to candidate, in the order of the sheet.
    note
        What to know of the labels.
    """

    answers: Mapping[str, str]
    authors: Mapping[str, str]
    labels: Mapping[str, str]
    note: str | None


def read_conversations(source: OpenedFile, report: ProblemReport) -> Iterator[Imported]:
    """Read one session per question of each conversation."""
    for number, record in objects(source, report):
        try:
            yield from _sessions(record, source.stem, lambda flaw, n=number: report(n, flaw))
        except Unreadable as flaw:
            report(number, flaw)


def _sessions(record: Mapping[str, Any], stem: str, tell: Any) -> Iterator[Imported]:
    messages = record.get("messages")
    if not isinstance(messages, list):
        raise Unreadable("messages", "is no list; expected the messages of a conversation")
    if not any(isinstance(one, dict) and "stage1" in one for one in messages):
        raise Unreadable("messages", "holds no message with stage1; expected a council's answers")
    identifier = record.get("id")
    named = isinstance(identifier, str) and identifier.strip()
    conversation = session_name("id", str(identifier)) if named else stem
    at = _time(record.get("created_at"))
    question, n_questions = "", 0
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if not isinstance(message, dict):
            tell(Unreadable(where, "is no object; expected a message"))
        elif message.get("role") == "user":
            question = message["content"] if isinstance(message.get("content"), str) else ""
        elif "stage1" in message:
            n_questions += 1
            name = conversation if n_questions == 1 else f"{conversation}/{n_questions}"
            try:
                yield _session(Imported(name, at, question), message, where)
            except Unreadable as flaw:
                tell(flaw)


def _time(value: object) -> datetime | None:
    """The conversation's beginning, in UTC by the app's habit."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise Unreadable("created_at", f"is {value!r}; expected a time (ISO 8601)") from None
    return check_years("created_at", at if at.tzinfo is not None else at.replace(tzinfo=UTC))


def _session(bare: Imported, message: Mapping[str, Any], where: str) -> Imported:
    stand = _stand(message, where)
    if not stand.answers:
        raise Unreadable(f"{where}.stage1", "holds no answer; nothing was reviewed")
    reviews = message.get("stage2")
    if reviews is None:
        reviews = []
    if not isinstance(reviews, list):
        raise Unreadable(f"{where}.stage2", "is no list of reviews")
    closing = message.get("stage3")
    text = closing.get("response") if isinstance(closing, dict) else None
    return Imported(
        session=bare.session,
        at=bare.at,
        question=bare.question,
        ballots=tuple(
            _ballot(review, stand, bare, f"{where}.stage2[{place}]")
            for place, review in enumerate(reviews)
        ),
        answers=stand.answers,
        closing=text if isinstance(text, str) and text else None,
    )


def _stand(message: Mapping[str, Any], where: str) -> _Stand:
    reviews = message["stage1"]
    if not isinstance(reviews, list):
        raise Unreadable(f"{where}.stage1", "is no list of answers")
    answers: dict[str, str] = {}
    authors: dict[str, str] = {}
    in_order: list[str] = []
    for place, answer in enumerate(reviews):
        model = answer.get("model") if isinstance(answer, dict) else None
        text = answer.get("response") if isinstance(answer, dict) else None
        if not isinstance(model, str) or not model or not isinstance(text, str):
            expected = "expected an object with model and response"
            raise Unreadable(f"{where}.stage1[{place}]", f"is no answer; {expected}")
        candidate = next(n for n in _names(model) if n not in answers)
        if candidate != model:
            authors[candidate] = model
        answers[candidate] = text
        in_order.append(candidate)
    metadata = message.get("metadata")
    labels = metadata.get("label_to_model") if isinstance(metadata, dict) else None
    if isinstance(labels, dict) and labels:
        return _Stand(answers, authors, _labels(labels, authors, answers), None)
    named = zip(ascii_uppercase, in_order, strict=False)
    return _Stand(answers, authors, {f"Response {a}": c for a, c in named}, IN_ORDER)


def _labels(
    mapping: Mapping[str, object], authors: Mapping[str, str], answers: Mapping[str, str]
) -> dict[str, str]:
    """Label to candidate: a model's n-th label is its n-th answer."""
    written: dict[str, list[str]] = {}
    for candidate in answers:
        written.setdefault(authors.get(candidate, candidate), []).append(candidate)
    labels: dict[str, str] = {}
    for label, model in mapping.items():
        waiting = written.get(model) if isinstance(model, str) else None
        if waiting:
            labels[label] = waiting.pop(0)
    return labels


def _names(model: str) -> Iterator[str]:
    yield model
    yield from (f"{model}#{place}" for place in count(2))


def _ballot(review: object, stand: _Stand, bare: Imported, where: str) -> Ballot:
    reviewer = review.get("model") if isinstance(review, dict) else None
    if not isinstance(review, dict) or not isinstance(reviewer, str) or not reviewer:
        raise Unreadable(where, "is no review; expected an object with model and ranking")
    shared: dict[str, Any] = {
        "session": bare.session,
        "candidates": tuple(stand.answers),
        "authors": stand.authors or None,
        "notes": stand.note,
        "at": bare.at,
    }
    reading = _read_reply(review, reviewer, stand)
    if isinstance(reading, str):
        return Ballot(reviewer, abstained=True, reason=reading, **shared)
    places = {candidate: place for place, candidate in enumerate(stand.labels.values(), start=1)}
    return Ballot(reviewer, groups=reading, positions=places, **shared)


def _read_reply(
    review: Mapping[str, Any], reviewer: str, stand: _Stand
) -> tuple[tuple[str, ...], ...] | str:
    """The ranking of a review, or why there is none.

    The reply itself is read again where it is kept: where it ends in no ranking, the app takes any
    label that occurs in it for one.
    """
    reply, parsed = review.get("ranking"), review.get("parsed_ranking")
    if isinstance(reply, str):
        bare = tuple(label.removeprefix("Response ") for label in stand.labels)
        sheet = Sheet(reviewer, tuple(stand.labels.values()), bare, "")
        try:
            read = read_review(
                reply, sheet, rubric=None, holistic=False, session="", roster=sheet.candidates
            )
        except InvalidBallot as error:
            return error.problem
        return read.ballot.groups
    if not isinstance(parsed, list) or not parsed:
        return "the file holds no ranking"
    labels = list(map(str, parsed))
    if strange := [label for label in labels if label not in stand.labels]:
        return f"ranks {strange[0]}, which is no label of an answer"
    if repeated := [label for at, label in enumerate(labels) if label in labels[:at]]:
        return f"ranks {repeated[0]} more than once"
    return tuple((stand.labels[label],) for label in labels)
