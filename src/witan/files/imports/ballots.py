"""Files of ballots as sessions: ballots and everything beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import (
    MOST,
    Unreadable,
    length,
    moment,
    session_name,
    unmark_simulated,
)
from witan.deliberation.record import Imported
from witan.files.ballots.cells import Rows, number
from witan.files.ballots.columns import (
    ALIASES,
    CANDIDATES,
    LENGTHS,
    QUESTIONS,
    TEXTS,
    Header,
)
from witan.files.ballots.formats import Content, plain_ballots, refuse_columns
from witan.files.ballots.jsonl import objects, read_council_log
from witan.files.ballots.opening import OpenedFile, open_source, tap_objects
from witan.files.ballots.problems import ProblemReport
from witan.files.ballots.recognition import first_value
from witan.files.ballots.tables import LONG_FORMS, read_long


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
            report = ProblemReport(source.path, on_problem)
            for line, record in objects(source, report):
                try:
                    self._answer(record)
                except Unreadable as flaw:
                    report(line, flaw)

    def questions(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Take in questions: session, text, and perhaps a category."""
        with open_source(path) as source:
            report = ProblemReport(source.path, on_problem)
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


def collect_lengths(
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


def read_ballot_pieces(
    content: Content, columns: Mapping[str, str], report: ProblemReport
) -> Iterator[Imported]:
    """Read one piece per ballot, and pieces for other session data."""
    if content.format == "council-log":
        refuse_columns(content, columns)
        yield from _Log(content.source).pieces(report)
    elif content.format in LONG_FORMS:
        yield from _long(content, report)
    else:
        ballots = plain_ballots(content, columns, report, apart=True)
        yield from map(_piece(content.source), ballots)


def _piece(source: OpenedFile) -> Any:
    """A converter of ballots into pieces; the file names nameless sessions."""
    stem = source.stem

    def of(ballot: Ballot) -> Imported:
        cast, simulated = unmark_simulated(
            ballot if ballot.session else replace(ballot, session=stem)
        )
        question = "" if cast.question is None else cast.question
        return Imported(
            cast.session, cast.at, question, cast.category, (cast,), simulated=simulated
        )

    return of


def _long(content: Content, report: ProblemReport) -> Iterator[Imported]:
    """Ballots of a long table, and lengths of answers beside them."""
    lengths: dict[tuple[str, str], int] = {}
    rows, columns = content.long_rows(report)
    for ballot in read_long(collect_lengths(rows, columns, lengths), columns, report):
        # All rows are read before the first ballot comes.
        piece = _piece(content.source)(ballot)
        named = [(c, lengths.get((ballot.session, c))) for c in ballot.mentioned()]
        known = {candidate: length for candidate, length in named if length is not None}
        yield replace(piece, lengths=known) if known else piece


class _Log:
    """Another council's log, of ballots, texts and costs."""

    def __init__(self, source: OpenedFile) -> None:
        self._source = source
        self._line: Mapping[str, Any] | None = None
        self._expected: str | None = None
        self._events: list[Imported] = []

    def pieces(self, report: ProblemReport) -> Iterator[Imported]:
        """The ballots, and what the log says of their sessions besides."""
        turn = _piece(self._source)
        for ballot in read_council_log(tap_objects(self._source, self._hear), report):
            yield from self._pieces()
            if self._line is not None:
                yield _texts_of_session(ballot.session, self._line)
                self._line = None
            noted = self._expected is not None and ballot.notes is None
            yield turn(
                replace(ballot, notes=f"expected answer: {self._expected}") if noted else ballot
            )
        yield from self._pieces()

    def _hear(self, record: dict[str, Any]) -> None:
        """Note a line before its ballots, which precede the next line."""
        if "rankings" in record:
            self._line = record
            self._expected = None if record.get("expected") is None else str(record["expected"])
        elif (piece := _texts_of_event(record)) is not None:
            self._events.append(piece)

    def _pieces(self) -> list[Imported]:
        pieces, self._events = self._events, []
        return pieces


def _texts_of_session(session: str, record: Mapping[str, Any]) -> Imported:
    """Answers and final answer of a session on one line."""
    stage1 = record.get("stage1")
    answers = stage1 if isinstance(stage1, dict) else {}
    closing, question = record.get("synthesis"), record.get("question")
    return Imported(
        session,
        question=question if isinstance(question, str) else "",
        answers={m: text for m, text in answers.items() if isinstance(text, str)},
        closing=closing if isinstance(closing, str) else None,
    )


def _texts_of_event(record: Mapping[str, Any]) -> Imported | None:
    """The question, an answer or the final answer from an event."""
    kind, run, at = record.get("type"), record.get("run_id"), _time(record.get("timestamp"))
    text = record.get("question" if kind == "config" else "response")
    if not isinstance(text, str) or not isinstance(run, str) or not run:
        return None
    if kind == "config":
        return Imported(run, at, text)
    model = record.get("model")
    if kind == "stage1_response" and isinstance(model, str):
        return Imported(run, at, answers={model: text})
    return Imported(run, at, closing=text) if kind == "stage3_synthesis" else None


def _time(value: object) -> datetime | None:
    try:
        return None if value is None else moment(value)
    except Unreadable:
        return None  # a time that cannot be read is none; the ballots tell theirs
