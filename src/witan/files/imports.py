"""Sessions from any file: unpack, recognise, read."""

import hashlib
import json
import pickle
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, Any, cast

from witan.core.ballot import Ballot
from witan.core.ballot_records import (
    MOST,
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
from witan.core.ballot_table import BallotTable
from witan.core.entries import AnswerEntry
from witan.core.scale import Scale
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
from witan.files.battles import number_people, preferences_as_battles, read_battles
from witan.files.evaluations import (
    join_ballots,
    read_conversations,
    read_inspect,
    read_promptfoo,
)

IMPORTED = "witan_imported"
"""Marks a line that holds a session without events, as it was imported."""

VERSION = 1
"""The version of such a line."""

VOTES = "votes"
"""The field of people's ballots, by which a session is not counted."""


def read_session_lines(source: OpenedFile, report: ProblemReport) -> Iterator[SessionImport]:
    """Read one session a line."""
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
        raise Unreadable(None, f"is not JSON ({error}); expected one session a line") from None
    if not isinstance(record, dict) or not any(mark in record for mark in SESSION_MARKS):
        raise Unreadable(
            None, f"is no session; expected an object with {' or '.join(SESSION_MARKS)}"
        )
    return _imported_session(record) if IMPORTED in record else _council_session(line, record)


def _council_session(line: str, record: Mapping[str, Any]) -> SessionImport:
    """A council session from its events."""
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
    if record[IMPORTED] != VERSION:
        raise Unreadable(
            IMPORTED,
            f"is {record[IMPORTED]!r}, and this Witan reads {VERSION}; update Witan to read it",
        )
    session = session_name("session", name("session", record.get("session")))
    simulated = record.get("simulated", False)
    if not isinstance(simulated, bool):
        raise Unreadable("simulated", f"is {simulated!r}; expected true or false")
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
            who: _order_count(pair)
            for who, pair in _map("kept", record.get("kept", {}), list).items()
        },
        repaired=_names("repaired", record.get("repaired", [])),
        took=_took(record.get("took", [])),
    )


def _order_count(pair: list[Any]) -> tuple[int, int]:
    """Pairs judged alike in both orders, of so many."""
    if len(pair) != 2 or not all(_is_whole(n) for n in pair) or pair[0] > pair[1]:
        raise Unreadable("kept", f"has {pair!r}; expected pairs judged alike, and pairs")
    return pair[0], pair[1]


def _names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unreadable(field, "is no list of names")
    return tuple(name(field, one) for one in value)


def _took(records: object) -> tuple[AnswerEntry, ...]:
    """Usage of answers; missing numbers are unknown."""
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable("took", "is no list of what answers took")
    return tuple(_answer(one) for one in records)


def _answer(record: Mapping[str, Any]) -> AnswerEntry:
    whole = {key: record.get(key) for key in ("chars", "output_tokens")}
    real = {key: record.get(key) for key in ("seconds", "cost_usd")}
    for key, value in whole.items():
        if value is not None and not _is_whole(value):
            raise Unreadable(f"took.{key}", f"is {value!r}; expected a whole number")
    for key, value in real.items():
        if value is not None and not _is_amount(value):
            raise Unreadable(f"took.{key}", f"is {value!r}; expected a number of 0 or more")
    failed = record.get("failed", False)
    if not isinstance(failed, bool):
        raise Unreadable("took.failed", f"is {failed!r}; expected true or false")
    return AnswerEntry(
        name("took.seat", record.get("seat")),
        name("took.model", record.get("model")),
        chars=whole["chars"],
        seconds=real["seconds"],
        cost_usd=real["cost_usd"],
        output_tokens=whole["output_tokens"],
        failed=failed,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) <= MOST


def _ballots(field: str, records: object, session: str) -> tuple[Ballot, ...]:
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable(field, "is no list of ballots")
    read = []
    for place, record in enumerate(records):
        try:
            read.append(read_record({**record, "session": session}))
        except Unreadable as flaw:
            where = f"{field}[{place}]" + ("" if flaw.field is None else f".{flaw.field}")
            raise Unreadable(where, flaw.problem) from None
    return tuple(read)


def _text(field: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Unreadable(field, f"is {value!r}; expected text")
    return value


def _map(field: str, value: object, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(item) is kind for item in value.values()):
        expected = {str: "text", int: "whole numbers", list: "lists"}[kind]
        raise Unreadable(field, f"is no map from candidate to {expected}")
    return value


@dataclass(slots=True)
class _Extra:
    question: str = ""
    category: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)


class SessionExtras:
    """Content of files beside the ballots, by session."""

    def __init__(self) -> None:
        self._extras: dict[str, _Extra] = {}

    def answers(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Take in answers: session, candidate, and a text or its length."""
        self._read_lines(path, on_problem, self._answer)

    def questions(self, path: str | Path | IO[Any], on_problem: Any) -> None:
        """Take in questions: session, text, and perhaps a category."""
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
        extra = self._extra_of(record)
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
        extra = self._extra_of(record)
        text, category = first_value(record, QUESTIONS), record.get("category")
        if text is None and category is None:
            raise Unreadable("text", "is missing; expected the question as text, or its category")
        for named, value in (("text", text), ("category", category)):
            if value is not None and not isinstance(value, str):
                raise Unreadable(named, f"is {value!r}; expected text")
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
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    scales: tuple[Scale | None, Scale | None],
) -> Iterator[SessionImport]:
    """Read one piece per ballot, and pieces for other session data."""
    if content.format == "council-log":
        refuse_columns(content, columns)
        yield from _scale(_Log(content.source).pieces(report), report, scales)
    elif content.format in LONG_FORMS:
        yield from _scale(_read_long(content, report), report, scales)
    else:
        parts = scaled_ballots(content, columns, report, scales, apart=True)
        turn = _piece(content.source)
        first = next(parts, None)
        if isinstance(first, BallotTable):  # of the whole file
            for session, ballots in first.by_session().items():
                yield SessionImport(session, ballots=ballots)
        elif first is not None:
            each = cast("Iterator[Ballot]", chain([first], parts))
            for _, alike in groupby(each, key=_ABOUT_SESSION):
                yield turn(*alike)


def _piece(source: OpenedFile) -> Any:
    """A converter of ballots alike in session and notes; the file names nameless sessions."""
    stem = source.stem

    def of(*ballots: Ballot) -> SessionImport:
        first = ballots[0]
        if not first.session:
            ballots = tuple([replace(ballot, session=stem) for ballot in ballots])
        simulated = is_simulated(first)
        if simulated:
            ballots = tuple([unmark_simulated(ballot)[0] for ballot in ballots])
        return SessionImport(
            first.session or stem,
            first.at,
            first.question or "",
            first.category,
            ballots,
            simulated=simulated,
        )

    return of


_ABOUT_SESSION = attrgetter("session", "at", "question", "category", "notes")


def _read_long(content: Content, report: ProblemReport) -> Iterator[SessionImport]:
    """Ballots of a long table, and lengths of answers beside them."""
    lengths: dict[tuple[str, str], int] = {}
    rows, columns = content.long_rows(report)
    for ballot in read_long(collect_lengths(rows, columns, lengths), columns, report):
        # All rows are read before the first ballot comes.
        piece = _piece(content.source)(ballot)
        named = [(c, lengths.get((ballot.session, c))) for c in ballot.candidate_names()]
        known = {candidate: length for candidate, length in named if length is not None}
        yield replace(piece, lengths=known) if known else piece


class _Log:
    """Another council's log, of ballots, texts and costs."""

    def __init__(self, source: OpenedFile) -> None:
        self._source = source
        self._line: Mapping[str, Any] | None = None
        self._expected_answer: str | None = None
        self._events: list[SessionImport] = []

    def pieces(self, report: ProblemReport) -> Iterator[SessionImport]:
        """The ballots, and what the log says of their sessions besides."""
        turn = _piece(self._source)
        for ballot in read_council_log(tap_objects(self._source, self._hear), report):
            yield from self._pieces()
            if self._line is not None:
                yield _texts_of_session(ballot.session, self._line)
                self._line = None
            noted = self._expected_answer is not None and ballot.notes is None
            yield turn(
                replace(ballot, notes=f"expected answer: {self._expected_answer}")
                if noted
                else ballot
            )
        yield from self._pieces()

    def _hear(self, record: dict[str, Any]) -> None:
        """Note a line before its ballots, which precede the next line."""
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
    """Answers and final answer of a session on one line."""
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
    """The question, an answer or the final answer from an event."""
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
        return None  # a time that cannot be read is none; the ballots tell theirs


MOST_HELD = 200_000_000
"""Bytes, as far as they can be told, that are held in memory; beyond, all is laid aside on disk."""

_PIECE_BYTES = 1_500
"""Bytes of a ballot, or of a piece without any, about; texts of answers come on top."""

# The values of a dataclass in order: they are packed three times as fast as the dataclass itself.
_OF_PIECE = attrgetter(*(field.name for field in fields(SessionImport)))
_OF_BALLOT = attrgetter(*(field.name for field in fields(Ballot)))
_BALLOTS = [field.name for field in fields(SessionImport)].index("ballots")


def gather(pieces: Iterable[SessionImport], most: int = MOST_HELD) -> Iterator[SessionImport]:
    """Gather pieces into sessions, in order of first mention.

    Of what can be said once, the first word counts; the earliest time; of two texts of one
    answer the last.
    """
    numbers: dict[str, int] = {}
    buffered: list[tuple[int, SessionImport]] = []
    size = 0
    with closing(sqlite3.connect("")) as aside:  # without a name, it lives in a temporary file
        aside.execute("CREATE TABLE pieces (number INTEGER, place INTEGER PRIMARY KEY, body BLOB)")
        for piece in pieces:
            buffered.append((numbers.setdefault(piece.session, len(numbers)), piece))
            size += _PIECE_BYTES * (len(piece.ballots) or 1)
            size += sum(map(len, piece.answers.values()))
            if size >= most:
                _lay_aside(aside, buffered)
                buffered, size = [], 0
        buffered.sort(key=itemgetter(0))
        rows = merge(_restore_pieces(aside), buffered, key=itemgetter(0))
        for _, group in groupby(rows, key=itemgetter(0)):
            yield _join_pieces([piece for _, piece in group])


def _lay_aside(shelf: sqlite3.Connection, pieces: list[tuple[int, SessionImport]]) -> None:
    rows = ((number, pickle.dumps(_pack(piece), -1)) for number, piece in pieces)
    shelf.executemany("INSERT INTO pieces (number, body) VALUES (?, ?)", rows)


def _restore_pieces(shelf: sqlite3.Connection) -> Iterator[tuple[int, SessionImport]]:
    rows: Iterator[Any] = shelf.execute("SELECT number, body FROM pieces ORDER BY number, place")
    # They were pickled above, into a file that nobody else can name.
    return ((number, _unpack(pickle.loads(body))) for number, body in rows)  # noqa: S301


def _pack(piece: SessionImport) -> list[Any]:
    values = list(_OF_PIECE(piece))
    values[_BALLOTS] = [_OF_BALLOT(ballot) for ballot in piece.ballots]
    return values


def _unpack(values: list[Any]) -> SessionImport:
    values[_BALLOTS] = tuple(Ballot(*fields) for fields in values[_BALLOTS])
    return SessionImport(*values)


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

    All that a file says of a session is one `SessionImport`, wherever in it it stands.

    Parameters
    ----------
    format
        One of `FORMATS`; None: it is recognised from the content.
    answers, questions
        Files beside it, as JSON Lines. Sessions that it does not hold are passed over in them.
    columns
        Which column holds a field, as `read_ballots` takes it.
    scale
        On which all grades are given, as `read_ballots` takes it.
    category, at
        Of sessions of which the file does not say it.
    session_prefix
        Stands before the name of every session but whole council sessions, which keep theirs.
    on_problem
        Gets each line that cannot be read, which is left out, and what is odd about others, which
        come in: a ballot that says nothing, a grade off the scale, a pair judged again. None: the
        first that cannot be read raises.
    on_note
        Is told how the file is read, where that is not plain from its columns.

    Raises
    ------
    BallotFileError
        If the file cannot be read at all.
    UnknownName
        If there is no such format.
    InvalidParameter
        If no name can begin with the prefix.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    _check_prefix(session_prefix)
    finish = _Finish(category, at, session_prefix)
    declared = Scale.parse(scale) if isinstance(scale, str) else scale
    reading = format, columns or {}, declared
    return _read_sessions(path, reading, (answers, questions), finish, (on_problem, on_note))


def _check_prefix(prefix: str) -> None:
    try:
        session_name("session_prefix", prefix)
    except Unreadable as flaw:
        raise InvalidParameter("session_prefix", prefix, "text that a name can hold") from flaw


def _read_sessions(
    path: File,
    reading: tuple[str | None, Mapping[str, str], Scale | None],
    extra_files: tuple[Iterable[File], Iterable[File]],
    finish: "_Finish",
    callbacks: tuple[Callable[[LineProblem], None] | None, Callable[[str], None] | None],
) -> Iterator[SessionImport]:
    on_problem, on_note = callbacks
    extra = SessionExtras()
    for answers in extra_files[0]:
        extra.answers(answers, on_problem)
    for questions in extra_files[1]:
        extra.questions(questions, on_problem)
    with open_source(path) as source:
        report = ProblemReport(source.path, on_problem, reports_doubts=True, on_note=on_note)
        source_format, columns, scale = reading
        content = content_of(source, source_format, columns)
        if content is not None:
            for one in read_sessions(content, columns, report, scales=(scale, None)):
                yield finish(extra.join_session(one))


class _Finish:
    """Fills in what the file does not say, and names the session."""

    def __init__(self, category: str | None, at: datetime | None, prefix: str) -> None:
        self.category, self.at, self.prefix = category, at, prefix

    def __call__(self, one: SessionImport) -> SessionImport:
        """The session as the caller wants it."""
        at = self.at if one.at is None else one.at
        category = self.category if one.category is None else one.category
        said = at is one.at and category is one.category
        whole = one if said else replace(one, at=at, category=category)
        if not self.prefix or one.session_record is not None:
            return whole
        session = self.prefix + one.session
        ballots = tuple(replace(ballot, session=session) for ballot in one.ballots)
        return replace(whole, session=session, ballots=ballots)


def read_sessions(
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    *,
    scales: tuple[Scale | None, Scale | None] = (None, None),
    apart: bool = True,
) -> Iterator[SessionImport]:
    """The sessions of a file of known format.

    Parameters
    ----------
    scales
        On which all grades are given, and on which those are whose ballot declares none.
    apart
        A battle without an id is a session of its own; else all of them are one without a name.
    """
    if content.format == "sessions":
        refuse_columns(content, columns)
        whole = scales[0], Scale()  # who wrote them named every scale but 1-10
        return _scale(read_session_lines(content.source, report), report, whole)
    if content.format == "conversations":
        refuse_columns(content, columns)
        return read_conversations(content.source, report)
    if content.format in ("battles", "preferences"):
        stem, rows = content.source.stem, content.records(report)
        if content.format == "preferences":
            rows = preferences_as_battles(rows, columns, stem, report)
        battles = read_battles(rows, columns, report, PairSessions(stem, apart=apart))
        return map(number_people, gather(battles))
    if content.format in ("promptfoo", "inspect"):
        refuse_columns(content, columns)
        pieces = (
            read_promptfoo(content.records(report), content.source.stem, report)
            if content.format == "promptfoo"
            else read_inspect(content.records(report), report)
        )
        return map(join_ballots, gather(_scale(pieces, report, scales)))
    return gather(read_ballot_pieces(content, columns, report, scales))


def _scale(
    pieces: Iterable[SessionImport],
    report: ProblemReport,
    scales: tuple[Scale | None, Scale | None],
) -> Iterator[SessionImport]:
    parts = ((replace(piece, ballots=()), tuple(piece.ballots)) for piece in pieces)
    for piece, ballots in scale_parts(parts, report, *scales):
        yield replace(piece, ballots=ballots)


_CHUNK = 1 << 20


def import_files(path: str | Path) -> tuple[str, ...]:
    """The file of a name, or files in a folder of conversations."""
    folder = Path(path)
    if str(path) == "-" or not folder.is_dir():
        return (str(path),)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable_file("be read", str(path), error) from error
    files = tuple(str(one) for one in entries if one.suffix == ".json")
    if not files:
        problem = "is a folder without a .json file; name the files in it" if entries else (
            "is an empty folder; name a file, or a folder that holds .json files"
        )  # fmt: skip
        raise BallotFileError(str(path), problem)
    return files


@contextmanager
def rereadable_file(path: str | Path) -> Iterator[str | Path | IO[bytes]]:
    """A rereadable file: standard input and pipes are spooled first."""
    is_standard = str(path) == "-"
    if not is_standard and not Path(path).is_fifo():
        yield path
        return
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        try:
            piped: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin)
            if not is_standard:
                piped = stack.enter_context(Path(path).open("rb"))
            shutil.copyfileobj(piped, file)
        except OSError as error:
            raise unreadable_file("be read", str(path), error) from error
        file.seek(0)
        cast("Any", file).raw.name = "stdin" if is_standard else str(path)  # what errors call it
        yield file


def digest_of(sources: Iterable[str | Path | IO[bytes]], **options: object) -> str:
    """Checksum of contents in order, and of options affecting their meaning.

    An option that is None, empty or False says nothing. A stream is left at its beginning.
    """
    whole = hashlib.sha256()
    for source in sources:
        one = hashlib.sha256()
        if isinstance(source, str | Path):
            try:
                with Path(source).open("rb") as file:
                    _take(one, file)
            except OSError as error:
                raise unreadable_file("be read", str(source), error) from error
        else:
            source.seek(0)
            _take(one, source)
            source.seek(0)
        whole.update(one.digest())
    for option, value in sorted(options.items()):
        if value not in (None, False, "", (), []):
            whole.update(f"\0{option}={value!r}".encode())
    return whole.hexdigest()


def _take(digest: Any, file: IO[bytes]) -> None:
    while piece := file.read(_CHUNK):
        digest.update(piece)
