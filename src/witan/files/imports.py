"""Import of sessions from files of any format."""

import hashlib
import json
import pickle
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, Any, cast

from witan.core.ballot import (
    MOST,
    Ballot,
    BallotTable,
    Unreadable,
    check_years,
    is_simulated,
    length,
    moment,
    name,
    read_record,
    session_name,
    unmark_simulated,
)
from witan.core.scale import Scale
from witan.core.session_ballots import AnswerEntry
from witan.deliberation.ports import NO_QUESTION, REFERENCE
from witan.deliberation.record import SessionImport, session_from_json
from witan.errors import BallotFileError, InvalidParameter, SessionFileError
from witan.files.ballots.columns import (
    ALIASES,
    CANDIDATES,
    LENGTHS,
    QUESTIONS,
    TEXTS,
    Header,
    Rows,
    check_columns,
    number,
)
from witan.files.ballots.formats import (
    SESSION_MARKS,
    Content,
    check_format,
    content_of,
    first_value,
    refuse_columns,
    scaled_ballots,
)
from witan.files.ballots.opening import OpenedFile, open_source, tap_objects, unreadable_file
from witan.files.ballots.problems import LineProblem, ProblemReport, scale_parts
from witan.files.ballots.records import objects, read_council_log
from witan.files.ballots.tables import LONG_FORMS, PairSessions, read_long
from witan.files.battles import name_people, preferences_as_battles, read_battles
from witan.files.evaluations import (
    join_ballots,
    read_conversations,
    read_inspect,
    read_promptfoo,
)

IMPORT_KEY = "witan_imported"
"""Key that marks a line with a session without events."""

VERSION = 1
"""Version of such a line."""

VOTES = "votes"
"""Field of people's later ballots, not counted in the session's outcome."""


def read_session_lines(source: OpenedFile, report: ProblemReport) -> Iterator[SessionImport]:
    """Read one session per line."""
    for place, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        try:
            yield _read_line(line)
        except Unreadable as flaw:
            report(place, flaw)
        except SessionFileError as error:
            report(place, Unreadable(None, error.problem))


def _read_line(line: str) -> SessionImport:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(None, f"is not JSON ({error}); expected one session per line") from None
    if not isinstance(record, dict) or not any(mark in record for mark in SESSION_MARKS):
        raise Unreadable(
            None, f"is not a session; expected an object with {' or '.join(SESSION_MARKS)}"
        )
    return _imported_session(record) if IMPORT_KEY in record else _council_session(line, record)


def _council_session(line: str, record: Mapping[str, Any]) -> SessionImport:
    session = session_from_json(line)
    session_name("session", session.id)
    check_years("at", session.opening.at)
    votes = _ballots(VOTES, record.get(VOTES, []), session.id)
    return SessionImport(
        session=session.id,
        at=session.opening.at,
        question=session.question,
        ballots=(*session.ballots, *votes),
        answers={seat: answer.text for seat, answer in session.answers.items()},
        session_record=session,
        simulated=session.is_simulated,
        closing=session.text,
    )


def _imported_session(record: Mapping[str, Any]) -> SessionImport:
    if record[IMPORT_KEY] != VERSION:
        raise Unreadable(
            IMPORT_KEY,
            f"is {record[IMPORT_KEY]!r}, and this Witan reads {VERSION}; update Witan to read it",
        )
    session = session_name("session", name("session", record.get("session")))
    simulated = record.get("simulated", False)
    if not isinstance(simulated, bool):
        raise Unreadable("simulated", f"is {simulated!r}; expected true or false")
    repaired = record.get("repaired", [])
    if not isinstance(repaired, list):
        raise Unreadable("repaired", "is not a list of names")
    return SessionImport(
        session=session,
        at=None if record.get("at") is None else moment(record["at"]),
        question=_text("question", record.get("question")) or "",
        category=_text("category", record.get("category")),
        ballots=(
            *_ballots("ballots", record.get("ballots", []), session),
            *_ballots(VOTES, record.get(VOTES, []), session),
        ),
        answers=_map("answers", record.get("answers", {}), str),
        lengths={
            c: length("lengths", n)
            for c, n in _map("lengths", record.get("lengths", {}), int).items()
        },
        simulated=simulated,
        closing=_text("closing", record.get("closing")),
        models=_map("models", record.get("models", {}), str),
        kept={
            reviewer: _order_count(pair)
            for reviewer, pair in _map("kept", record.get("kept", {}), list).items()
        },
        repaired=tuple(name("repaired", one) for one in repaired),
        took=_read_usage(record.get("took", [])),
    )


def _order_count(pair: list[Any]) -> tuple[int, int]:
    if len(pair) != 2 or not all(_is_whole(n) for n in pair) or pair[0] > pair[1]:
        raise Unreadable(
            "kept", f"contains {pair!r}; expected the number of pairs judged alike, and of pairs"
        )
    return pair[0], pair[1]


def _read_usage(records: object) -> tuple[AnswerEntry, ...]:
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable("took", "is not a list of answers' usage")
    return tuple(_answer(one) for one in records)


def _answer(record: Mapping[str, Any]) -> AnswerEntry:
    whole_numbers = {key: record.get(key) for key in ("chars", "output_tokens")}
    real = {key: record.get(key) for key in ("seconds", "cost_usd")}
    for key, value in whole_numbers.items():
        if value is not None and not _is_whole(value):
            raise Unreadable(f"took.{key}", f"is {value!r}; expected a whole number")
    for key, value in real.items():
        if value is not None and not (type(value) in (int, float) and 0 <= value <= MOST):
            raise Unreadable(f"took.{key}", f"is {value!r}; expected a number of 0 or more")
    failed = record.get("failed", False)
    if not isinstance(failed, bool):
        raise Unreadable("took.failed", f"is {failed!r}; expected true or false")
    return AnswerEntry(
        name("took.seat", record.get("seat")),
        name("took.model", record.get("model")),
        chars=whole_numbers["chars"],
        seconds=real["seconds"],
        cost_usd=real["cost_usd"],
        output_tokens=whole_numbers["output_tokens"],
        failed=failed,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _ballots(field: str, records: object, session: str) -> tuple[Ballot, ...]:
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable(field, "is not a list of ballots")
    ballots = []
    for place, record in enumerate(records):
        try:
            ballots.append(read_record({**record, "session": session}))
        except Unreadable as flaw:
            location = f"{field}[{place}]" + ("" if flaw.field is None else f".{flaw.field}")
            raise Unreadable(location, flaw.problem) from None
    return tuple(ballots)


def _text(field: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Unreadable(field, f"is {value!r}; expected text")
    return value


def _map(field: str, value: object, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(item) is kind for item in value.values()):
        expected = {str: "text", int: "whole numbers", list: "lists"}[kind]
        raise Unreadable(field, f"is not a map from candidate to {expected}")
    return value


@dataclass(slots=True)
class _Extra:
    question: str = ""
    category: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)


class SessionExtras:
    """Questions and answers from separate files, by session."""

    def __init__(self) -> None:
        self._extras: dict[str, _Extra] = {}

    def answers(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Read answers: session, candidate, and a text or its length."""
        self._read_lines(path, on_problem, self._answer)

    def questions(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Read questions: session, and a text or a category."""
        self._read_lines(path, on_problem, self._question)

    def _read_lines(
        self, path: str | Path | IO[Any], on_problem: Any, take: Callable[[dict[str, Any]], None]
    ) -> None:
        with open_source(path) as source:
            report = ProblemReport(source.path, on_problem)
            for line, record in objects(source, report):
                try:
                    take(record)
                except Unreadable as flaw:
                    report(line, flaw)

    def join_session(self, one: SessionImport) -> SessionImport:
        """Add the extras to a session, except values that it already has."""
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
        extra = self._extra_of(record)
        candidate = first_value(record, CANDIDATES)
        if not isinstance(candidate, str) or not candidate.strip():
            raise Unreadable("candidate", "is missing; expected the author of the answer")
        text, chars = first_value(record, TEXTS), first_value(record, LENGTHS)
        if isinstance(text, str):
            extra.answers[candidate.strip()] = text
        elif chars is not None:
            extra.lengths[candidate.strip()] = length("chars", chars)
        else:
            raise Unreadable("text", "is missing; expected the answer as text, or its length")

    def _question(self, record: Mapping[str, Any]) -> None:
        extra = self._extra_of(record)
        text, category = first_value(record, QUESTIONS), record.get("category")
        if text is None and category is None:
            raise Unreadable("text", "is missing; expected the question as text, or its category")
        for field_name, value in (("text", text), ("category", category)):
            if value is not None and not isinstance(value, str):
                raise Unreadable(field_name, f"is {value!r}; expected text")
        extra.question = extra.question if text is None else text
        extra.category = extra.category if category is None else category

    def _extra_of(self, record: Mapping[str, Any]) -> _Extra:
        session = first_value(record, ALIASES["session"])
        if isinstance(session, bool) or not isinstance(session, str | int) or session == "":
            raise Unreadable("session", "is missing; expected the name of a session")
        return self._extras.setdefault(session_name("session", str(session)), _Extra())


def collect_lengths(
    rows: Rows, columns: Mapping[str, str], lengths: dict[tuple[str, str], int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a long table, collecting lengths of answers."""
    numbered_rows = iter(rows)
    first = next(numbered_rows, None)
    if first is None:
        return
    yield first
    header = Header(first[1], columns, "")
    place = header.place(*LENGTHS)
    session, candidate = header.cell("session"), header.cell("candidate")
    for line, row in numbered_rows:
        if place is not None:
            chars = number(row[place].strip())
            if isinstance(chars, int) and 0 <= chars <= MOST:
                lengths[session(row).strip(), candidate(row).strip()] = chars
        yield line, row


def read_ballot_pieces(
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    scales: tuple[Scale | None, Scale | None],
) -> Iterator[SessionImport]:
    """Yield a partial session per ballot, and others for further data."""
    if content.format == "council-log":
        refuse_columns(content, columns)
        yield from _scale(_Log(content.source).pieces(report), report, scales)
    elif content.format in LONG_FORMS:
        yield from _scale(_read_long(content, report), report, scales)
    else:
        parts = scaled_ballots(content, columns, report, scales, by_session=True)
        first = next(parts, None)
        if isinstance(first, BallotTable):  # of the entire file
            for session, ballots in first.by_session().items():
                yield SessionImport(session, ballots=ballots)
        elif first is not None:
            each = cast("Iterator[Ballot]", chain([first], parts))
            for _, rows_of_session in groupby(each, key=_ABOUT_SESSION):
                yield _piece(content.source.stem, *rows_of_session)


def _piece(stem: str, *ballots: Ballot) -> SessionImport:
    """Convert ballots of one session to a partial session, by default named after the file."""
    first = ballots[0]
    if not first.session:
        ballots = tuple([replace(ballot, session=stem) for ballot in ballots])
    simulated = is_simulated(first)
    if simulated:
        ballots = tuple([unmark_simulated(ballot) for ballot in ballots])
    return SessionImport(
        first.session or stem,
        first.at,
        first.question or "",
        first.category,
        ballots,
        simulated=simulated,
    )


_ABOUT_SESSION = attrgetter("session", "at", "question", "category", "notes")


def _read_long(content: Content, report: ProblemReport) -> Iterator[SessionImport]:
    """Read the ballots of a long table, and lengths of answers."""
    lengths: dict[tuple[str, str], int] = {}
    rows, columns = content.long_rows(report)
    for ballot in read_long(collect_lengths(rows, columns, lengths), columns, report):
        # All rows are read before the first ballot is yielded.
        piece = _piece(content.source.stem, ballot)
        lengths_by_candidate = [
            (c, lengths.get((ballot.session, c))) for c in ballot.candidate_names()
        ]
        known_lengths = {
            candidate: length for candidate, length in lengths_by_candidate if length is not None
        }
        yield replace(piece, lengths=known_lengths) if known_lengths else piece


class _Log:
    """The log of another council, with ballots and texts."""

    def __init__(self, source: OpenedFile) -> None:
        self._source = source
        self._line: Mapping[str, Any] | None = None
        self._expected_answer: str | None = None
        self._events: list[SessionImport] = []

    def pieces(self, report: ProblemReport) -> Iterator[SessionImport]:
        """Yield the ballots, and further data of their sessions."""
        for ballot in read_council_log(tap_objects(self._source, self._read_line), report):
            yield from self._pieces()
            if self._line is not None:
                yield _texts_of_session(ballot.session, self._line)
                self._line = None
            cast_ballot = ballot
            if self._expected_answer is not None and ballot.notes is None:
                cast_ballot = replace(ballot, notes=f"expected answer: {self._expected_answer}")
            yield _piece(self._source.stem, cast_ballot)
        yield from self._pieces()

    def _read_line(self, record: dict[str, Any]) -> None:
        """Store the line of the ballots that follow."""
        if "rankings" in record:
            self._line = record
            self._expected_answer = (
                None if record.get("expected") is None else str(record["expected"])
            )
        elif (piece := _texts_of_event(record)) is not None:
            self._events.append(piece)

    def _pieces(self) -> list[SessionImport]:
        pieces, self._events = self._events, []
        return pieces


def _texts_of_session(session: str, record: Mapping[str, Any]) -> SessionImport:
    """Return the answers and final answer of a session on one line."""
    stage1 = record.get("stage1")
    answers = stage1 if isinstance(stage1, dict) else {}
    closing, question = record.get("synthesis"), record.get("question")
    return SessionImport(
        session,
        question=question if isinstance(question, str) else "",
        answers={m: text for m, text in answers.items() if isinstance(text, str)},
        closing=closing if isinstance(closing, str) else None,
    )


def _texts_of_event(record: Mapping[str, Any]) -> SessionImport | None:
    """Return the question, an answer or the final answer of an event."""
    kind, run, at = record.get("type"), record.get("run_id"), _time(record.get("timestamp"))
    text = record.get("question" if kind == "config" else "response")
    if not isinstance(text, str) or not isinstance(run, str) or not run:
        return None
    if kind == "config":
        return SessionImport(run, at, text)
    model = record.get("model")
    if kind == "stage1_response" and isinstance(model, str):
        return SessionImport(run, at, answers={model: text})
    return SessionImport(run, at, closing=text) if kind == "stage3_synthesis" else None


def _time(value: object) -> datetime | None:
    try:
        return None if value is None else moment(value)
    except Unreadable:
        return None  # an unreadable time is ignored here and reported for the ballots


MAX_BUFFERED_BYTES = 200_000_000
"""Approximate number of bytes kept in memory; more are written to disk."""

_PIECE_BYTES = 1_500
"""Approximate bytes of a ballot, or of a partial session without one, without texts."""


def collect_sessions(
    pieces: Iterable[SessionImport], max_bytes: int = MAX_BUFFERED_BYTES
) -> Iterator[SessionImport]:
    """Merge partial sessions into sessions, in order of first occurrence.

    For fields with one value the first one counts; for the time the earliest; for two texts of one
    answer the last.
    """
    numbers: dict[str, int] = {}
    pending_sessions: list[tuple[int, SessionImport]] = []
    size = 0
    with closing(sqlite3.connect("")) as scratch_database:  # without a name, it is a temporary file
        scratch_database.execute(
            "CREATE TABLE pieces (number INTEGER, place INTEGER PRIMARY KEY, body BLOB)"
        )
        for piece in pieces:
            pending_sessions.append((numbers.setdefault(piece.session, len(numbers)), piece))
            size += _PIECE_BYTES * (len(piece.ballots) or 1)
            size += sum(map(len, piece.answers.values()))
            if size >= max_bytes:
                packed = ((number, pickle.dumps(one, -1)) for number, one in pending_sessions)
                scratch_database.executemany(
                    "INSERT INTO pieces (number, body) VALUES (?, ?)", packed
                )
                pending_sessions, size = [], 0
        pending_sessions.sort(key=itemgetter(0))
        on_disk: Iterator[Any] = scratch_database.execute(
            "SELECT number, body FROM pieces ORDER BY number, place"
        )
        # They were pickled above, into a file without a name.
        restored = ((number, pickle.loads(body)) for number, body in on_disk)  # noqa: S301
        rows = merge(restored, pending_sessions, key=itemgetter(0))
        for _, group in groupby(rows, key=itemgetter(0)):
            yield _join_pieces([piece for _, piece in group])


def _join_pieces(pieces: list[SessionImport]) -> SessionImport:
    first = pieces[0]
    if len(pieces) == 1:
        return first
    times = [piece.at for piece in pieces if piece.at is not None]
    return replace(
        first,
        at=min(times, default=None),
        question=next((piece.question for piece in pieces if piece.question), ""),
        category=next((p.category for p in pieces if p.category is not None), None),
        ballots=tuple(ballot for piece in pieces for ballot in piece.ballots),
        answers={c: text for piece in pieces for c, text in piece.answers.items()},
        lengths={c: length for piece in pieces for c, length in piece.lengths.items()},
        closing=next((p.closing for p in pieces if p.closing is not None), None),
        simulated=any(piece.simulated for piece in pieces),
    )


File = str | Path | IO[Any]


def read_imports(  # noqa: PLR0913 - all but the path by name
    path: File,
    *,
    format: str | None = None,  # noqa: A002 - the word users know from the command line
    answers: Iterable[File] = (),
    questions: Iterable[File] = (),
    columns: Mapping[str, str] | None = None,
    scale: Scale | str | None = None,
    category: str | None = None,
    at: datetime | None = None,
    session_prefix: str = "",
    on_problem: Callable[[LineProblem], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[SessionImport]:
    """Read the sessions of a file, a stream, or ``-`` (standard input).

    All data of a session becomes one `SessionImport`, wherever it is in the file.

    `format`: one of `FORMATS`; by default detected from the content.
    `answers`, `questions`: further files, as JSON Lines. Sessions missing from the main file are
    skipped.
    `columns`: column of each field, as in `read_ballots`.
    `scale`: scale of all grades, as in `read_ballots`.
    `category`, `at`: category and time of sessions without these in the file.
    `session_prefix`: prefix of the name of every session, except whole council sessions.
    `on_problem`: called with each unreadable line, which is skipped, and with doubts about imported
    lines: an empty ballot, a grade outside the scale, a repeated pair. By default the first
    unreadable line raises.
    `on_note`: called with a note on how the file is read, if its columns do not make that obvious.

    Raises `BallotFileError` if the file cannot be read at all; `UnknownName` if there is no such
    format; `InvalidParameter` if the prefix contains characters that no name can have.
    """
    if format is not None:
        check_format(format)
    columns = columns or {}
    check_columns(columns)
    try:
        session_name("session_prefix", session_prefix)
    except Unreadable as flaw:
        expected = "text allowed in a name"
        raise InvalidParameter("session_prefix", session_prefix, expected) from flaw
    scales = Scale.parse(scale) if isinstance(scale, str) else scale, None

    def sessions() -> Iterator[SessionImport]:
        extra = SessionExtras()
        for file in answers:
            extra.answers(file, on_problem)
        for file in questions:
            extra.questions(file, on_problem)
        with open_source(path) as source:
            report = ProblemReport(source.path, on_problem, reports_doubts=True, on_note=on_note)
            content = content_of(source, format, columns)
            if content is not None:
                for one in read_sessions(content, columns, report, scales=scales):
                    yield _complete(extra.join_session(one), category, at, session_prefix)

    return sessions()


def _complete(
    one: SessionImport, category: str | None, at: datetime | None, prefix: str
) -> SessionImport:
    """Add defaults to a session, and the prefix to its name."""
    at = at if one.at is None else one.at
    category = category if one.category is None else one.category
    is_unchanged = at is one.at and category is one.category
    complete = one if is_unchanged else replace(one, at=at, category=category)
    if not prefix or one.session_record is not None:
        return complete
    session = prefix + one.session
    ballots = tuple(replace(ballot, session=session) for ballot in one.ballots)
    return replace(complete, session=session, ballots=ballots)


def name_question(one: SessionImport) -> str | None:
    """Return a session's question, with a digest of files and earlier turns; None: unknown.

    Sessions with the same name are a cluster. A reference answer is not part of the question.
    """
    question = "" if one.question.endswith(NO_QUESTION) else one.question.strip()
    if one.session_record is None:
        return question or None
    opening = one.session_record.opening
    context = {name: text for name, text in sorted(opening.files.items()) if name != REFERENCE}
    if opening.conversation:
        context["conversation"] = json.dumps(
            [[turn.role, turn.text] for turn in opening.conversation]
        )
    if not context:
        return question or None
    digest = hashlib.sha256(json.dumps([*context.items()]).encode()).hexdigest()[:12]
    return f"{question} [{', '.join(context)}: {digest}]".lstrip()


def ballots_with_question(one: SessionImport) -> Iterator[Ballot]:
    """Yield the ballots of a named session with its question, unless they have one."""
    question = name_question(one) if one.session else None
    for ballot in one.ballots:
        yield ballot if ballot.question or not question else replace(ballot, question=question)


def read_sessions(
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    *,
    scales: tuple[Scale | None, Scale | None] = (None, None),
    by_session: bool = True,
) -> Iterator[SessionImport]:
    """Read the sessions of a file of known format.

    `scales`: scale of all grades, and default scale of ballots without one.
    `by_session`: true if each battle without an id is a session; else all of them are one unnamed
    session.
    """
    if content.format == "sessions":
        refuse_columns(content, columns)
        session_scales = scales[0], Scale()  # written files name every scale except 1-10
        return _scale(read_session_lines(content.source, report), report, session_scales)
    if content.format == "conversations":
        refuse_columns(content, columns)
        return read_conversations(content.source, report)
    if content.format in ("battles", "preferences"):
        stem, rows = content.source.stem, content.records(report)
        if content.format == "preferences":
            rows = preferences_as_battles(rows, columns, stem, report)
        battles = read_battles(rows, columns, report, PairSessions(stem, by_session=by_session))
        return map(name_people, collect_sessions(battles))
    if content.format in ("promptfoo", "inspect"):
        refuse_columns(content, columns)
        pieces = (
            read_promptfoo(content.records(report), content.source.stem, report)
            if content.format == "promptfoo"
            else read_inspect(content.records(report), report)
        )
        return map(join_ballots, collect_sessions(_scale(pieces, report, scales)))
    return collect_sessions(read_ballot_pieces(content, columns, report, scales))


def _scale(
    pieces: Iterable[SessionImport],
    report: ProblemReport,
    scales: tuple[Scale | None, Scale | None],
) -> Iterator[SessionImport]:
    parts = ((replace(piece, ballots=()), tuple(piece.ballots)) for piece in pieces)
    for piece, ballots in scale_parts(parts, report, *scales):
        yield replace(piece, ballots=ballots)


def import_files(path: str | Path) -> tuple[str, ...]:
    """List a file, or the files in a folder."""
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return (str(path),)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable_file("be read", str(path), error) from error
    files = tuple(str(one) for one in entries if one.suffix in (".json", ".eval"))
    if not files:
        problem = (
            "is a folder without a .json or .eval file; give the files in it"
            if entries
            else "is an empty folder; give a file, or a folder with .json or .eval files"
        )
        raise BallotFileError(str(path), problem)
    return files


@contextmanager
def rereadable_file(path: str | Path) -> Iterator[str | Path | IO[bytes]]:
    """Return a rereadable file; standard input and pipes are spooled first."""
    is_standard = str(path) == "-"
    if not is_standard and not Path(path).is_fifo():
        yield path
        return
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        try:
            standard_input: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin)
            if not is_standard:
                standard_input = stack.enter_context(Path(path).open("rb"))
            shutil.copyfileobj(standard_input, file)
        except OSError as error:
            raise unreadable_file("be read", str(path), error) from error
        file.seek(0)
        cast("Any", file).raw.name = "stdin" if is_standard else str(path)  # its name in errors
        yield file


def digest_of(sources: Iterable[str | Path | IO[bytes]], **options: object) -> str:
    """Return a digest of contents and of options that affect their meaning.

    An option that is None, empty or False is ignored. A stream is rewound.
    """
    total = hashlib.sha256()
    for source in sources:
        if isinstance(source, str | Path):
            try:
                with Path(source).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256")
            except OSError as error:
                raise unreadable_file("be read", str(source), error) from error
        else:
            source.seek(0)
            digest = hashlib.file_digest(cast("Any", source), "sha256")
            source.seek(0)
        total.update(digest.digest())
    for option, value in sorted(options.items()):
        if value not in (None, False, "", (), []):
            total.update(f"\0{option}={value!r}".encode())
    return total.hexdigest()
