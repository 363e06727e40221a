"""Questions and answers beside ballots (JSON Lines), and lengths in tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from witan.core.ballot_records import MOST, Unreadable, length, session_name
from witan.deliberation.imported_session import Imported
from witan.files.ballots.cells import Rows, number
from witan.files.ballots.columns import (
    ALIASES,
    CANDIDATES,
    LENGTHS,
    QUESTIONS,
    TEXTS,
    Header,
)
from witan.files.ballots.jsonl import objects
from witan.files.ballots.opening import open_source
from witan.files.ballots.problems import Report
from witan.files.ballots.recognition import first_value


@dataclass(slots=True)
class _Extra:
    question: str = ""
    category: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)


class Beside:
    """Content of files beside the ballots, by session."""

    def __init__(self) -> None:
        self._extras: dict[str, _Extra] = {}

    def answers(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Take in answers: session, candidate, and a text or its length."""
        with open_source(path) as source:
            report = Report(source.path, on_problem)
            for line, record in objects(source, report):
                try:
                    self._answer(record)
                except Unreadable as flaw:
                    report(line, flaw)

    def questions(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Take in questions: session, text, and perhaps a category."""
        with open_source(path) as source:
            report = Report(source.path, on_problem)
            for line, record in objects(source, report):
                try:
                    self._question(record)
                except Unreadable as flaw:
                    report(line, flaw)

    def joined(self, one: Imported) -> Imported:
        """Join the session with it; the session's own words win."""
        extra = self._extras.get(one.session)
        if extra is None:
            return one
        return replace(
            one,
            question=one.question if one.question else extra.question,
            category=extra.category if one.category is None else one.category,
            answers={**extra.answers, **one.answers},
            lengths={**extra.lengths, **one.lengths},
        )

    def _answer(self, record: Mapping[str, Any]) -> None:
        extra = self._of(record)
        candidate = first_value(record, CANDIDATES)
        if not isinstance(candidate, str) or not candidate.strip():
            raise Unreadable("candidate", "is missing; expected who wrote the answer")
        text, chars = first_value(record, TEXTS), first_value(record, LENGTHS)
        if isinstance(text, str):
            extra.answers[candidate.strip()] = text
        elif chars is not None:
            extra.lengths[candidate.strip()] = length("chars", chars)
        else:
            raise Unreadable("text", "is missing; expected the answer as text, or its length")

    def _question(self, record: Mapping[str, Any]) -> None:
        extra = self._of(record)
        text, category = first_value(record, QUESTIONS), record.get("category")
        if text is None and category is None:
            raise Unreadable("text", "is missing; expected the question as text, or its category")
        for named, value in (("text", text), ("category", category)):
            if value is not None and not isinstance(value, str):
                raise Unreadable(named, f"is {value!r}; expected text")
        extra.question = extra.question if text is None else text
        extra.category = extra.category if category is None else category

    def _of(self, record: Mapping[str, Any]) -> _Extra:
        session = first_value(record, ALIASES["session"])
        if isinstance(session, bool) or not isinstance(session, str | int) or session == "":
            raise Unreadable("session", "is missing; expected the name of a session")
        return self._extras.setdefault(session_name("session", str(session)), _Extra())


def measured(
    rows: Rows, columns: Mapping[str, str], lengths: dict[tuple[str, str], int]
) -> Iterator[tuple[int, list[str]]]:
    """Pass on a long table's rows, collecting lengths of answers."""
    numbered = iter(rows)
    first = next(numbered, None)
    if first is None:
        return
    yield first
    header = Header(first[1], columns, "")
    place = header.place(*LENGTHS)
    session, candidate = header.cell("session"), header.cell("candidate")
    for line, row in numbered:
        if place is not None:
            chars = number(row[place].strip())
            if isinstance(chars, int) and 0 <= chars <= MOST:
                lengths[session(row).strip(), candidate(row).strip()] = chars
        yield line, row
