"""Formats of ballot files, their detection and their readers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from witan.core.ballot import Ballot, BallotTable, Groups, Unreadable
from witan.core.scale import Scale
from witan.errors import BallotFileError, InvalidParameter, Remedy, UnknownName, Way
from witan.files.ballots.columns import (
    ALIASES,
    BARE_CR,
    CANDIDATES,
    LENGTHS,
    QUESTIONS,
    TEXTS,
    CellDialect,
    Header,
    Rows,
    csv_rows,
    fold_name,
    restore_controls,
    split_cells,
    text_of,
)
from witan.files.ballots.opening import (
    PARQUET,
    SQLITE,
    ZIP,
    OpenedFile,
    inspect_samples,
    is_array,
    is_spread,
    json_object,
    open_source,
    unfold_objects,
)
from witan.files.ballots.problems import ProblemReport, scale_ballots, scale_table
from witan.files.ballots.records import (
    objects,
    open_parquet,
    parquet_cells,
    parquet_records,
    read_council_log,
    read_jsonl,
    read_parquet,
    read_table,
)
from witan.files.ballots.tables import (
    LONG_FORMS,
    SAMPLE,
    PairSessions,
    grade_columns,
    has_criteria,
    is_grade,
    long_rows,
    read_long,
    read_pairs,
)

_SHAPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "csv": ("a row per reviewer and candidate", ("reviewer", "candidate", "grade")),
    "csv-pairs": ("a row per comparison", ("reviewer", "first", "second", "outcome")),
}
"""Format → description of a row, and required columns."""


def unknown_table(path: str, names: Sequence[str], columns: Mapping[str, str]) -> BallotFileError:
    """Return the error for an unknown table, with the nearest format."""
    header = Header(names, columns, path)
    fields_by_shape = {
        shape: [field for field in fields if field in header]
        for shape, (_, fields) in _SHAPES.items()
    }
    nearest = max(fields_by_shape, key=lambda shape: len(fields_by_shape[shape]))
    purpose, fields = _SHAPES[nearest]
    rank_or_grade = {"grade"} if "rank" in header or has_criteria(header) else set()
    missing = [field for field in fields if field not in header and field not in rank_or_grade]
    listing = ", ".join(name for name in names[:12] if name)
    problem = f"is not a recognised table; its columns are {listing}"
    present = " and ".join(
        f"{field} in {header.column(field)!r}" for field in fields_by_shape[nearest]
    )
    if not present:
        problem += ", none of which Witan knows"
    else:
        problem += f"; the nearest format is {nearest}, {purpose}, with {present}"
        problem += f", but no column for {' and '.join(missing)}"
        if unread := ", ".join(_unread_columns(header, nearest)[:12]):
            problem += f"; not read: {unread}"
    field_hints = [f"{field} ({', '.join(ALIASES[field][:3])})" for field in missing]
    has_sessions = bool(_session_places(header, nearest))
    column_arguments = dict.fromkeys(missing if has_sessions else (*missing, "session"), "HEADER")
    session_hint = "" if has_sessions else " (session if the table contains several questions)"
    remedy = Remedy(
        f"add a column for {' and '.join(field_hints)}",
        Way("name the existing ones with ", {"columns": column_arguments}, after=session_hint),
    )
    return BallotFileError(path, problem, remedy=remedy)


def _unread_columns(header: Header, shape: str) -> list[str]:
    criteria, criteria_are_guessed = header.criteria()
    places_read = header.places(ALIASES) | _session_places(header, shape)
    places_read |= set() if criteria_are_guessed else {place for _, place in criteria}
    return [name for place, name in enumerate(header.names) if name and place not in places_read]


def _session_places(header: Header, shape: str) -> set[int]:
    """Return the columns that separate sessions; for pairs, also a row number."""
    places = header.places(("session", "question"))
    if shape == "csv-pairs" and (number := header.place("id", "index")) is not None:
        places.add(number)
    return places


SESSION_MARKS = ("witan_session", "witan_imported")
"""First keys of a line with a whole session."""

_LINE_STARTS = re.compile(r"#\s*[A-Z ]+\d*\s*:|\d+\s*$")
_PAIR_FIELDS = frozenset({"first", "second"})
_VOTES = frozenset({"ranking", "grades", "abstained"})
"""Fields of a ballot on a single line."""

_RESULT_FIELDS = frozenset({"row", "session", "status", "leaders", "missing"})
"""Fields of each line that ``witan batch`` writes."""

_BALLOT_FIELDS = ("ranking", "rankings", "grades", "abstained", "first", "second", "type", "run_id")
"""Fields of a ballot, or of a line of a log, except a reviewer's names."""


def recognise(source: OpenedFile, columns: Mapping[str, str]) -> str:
    """Detect the format of a non-empty text file."""
    first = source.first_line() or ""
    if first.startswith("{"):
        return _json_format(source, first, columns)
    if "\r" in re.sub(r'"[^"]*"', "", first):
        raise BallotFileError(source.path, BARE_CR, 1)
    if _LINE_STARTS.match(first):
        return "preflib"
    dialect = CellDialect.of(first, columns)
    below = int(dialect.separator_line)
    names = split_cells(source.peek_lines(1 + below)[-1], dialect.delimiter)
    shape = header_format(Header(names, columns, source.path))
    if shape is None:
        sample = dialect.rows(source.peek_lines(1 + below + SAMPLE)[1 + below :], len(names))
        shape = table_format(names, sample, columns, source.path)
        if shape is None and len(names) < 2:
            text = "".join(names)
            text = text if len(text) <= 60 else text[:60] + "…"
            problem = f"is not recognised as ballots; its first line is {text!r}; expected JSON "
            problem += "objects, a PrefLib header, or a table with columns such as session, "
            raise BallotFileError(source.path, f"{problem}reviewer, candidate and grade")
        if shape is None:
            raise unknown_table(source.path, names, columns)
    return shape


def header_format(header: Header) -> str | None:
    """Detect a table's format by its columns only."""
    if _prefers(header):
        return "preferences"
    is_pair = "outcome" in header or header.place("winner_model_a") is not None
    if "first" in header and "second" in header and is_pair:
        literal = {"model_a", "model_b"} <= {fold_name(name) for name in header.names}
        return "battles" if literal or "reviewer" not in header else "csv-pairs"
    return "csv" if "candidate" in header and "reviewer" in header else None


def table_format(
    names: Sequence[str],
    sample: Sequence[Sequence[str]],
    columns: Mapping[str, str],
    path: str,
) -> str | None:
    """Detect a table's format by columns and sample rows, if possible."""
    header = Header(names, columns, path)
    if shape := header_format(header):
        return shape
    if "candidate" in header:
        if "grade" in header or "rank" in header or has_criteria(header):
            return None if _unknown_texts(header, sample) else "csv"
        several = len(grade_columns(header, ("session", "candidate"), sample)) > 1
        return "csv-judges" if several else None
    by_item = "session" in header or "reviewer" in header or "question" in header
    if not (by_item or header.place("id", "index") is not None) or "grade" in header:
        return None
    several = len(grade_columns(header, ("session", "reviewer"), sample)) > 1
    return "csv-models" if several and not has_criteria(header) else None


def _unknown_texts(header: Header, sample: Sequence[Sequence[str]]) -> bool:
    places = header.places(ALIASES)
    return any(
        name and place not in places and _is_text(place, sample)
        for place, name in enumerate(header.names)
    )


def _is_text(place: int, sample: Sequence[Sequence[str]]) -> bool:
    cells = [row[place].strip() for row in sample if place < len(row) and row[place].strip()]
    return bool(cells) and not all(map(is_grade, cells))


def first_value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first non-empty field among these, if any."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def _json_format(source: OpenedFile, first: str, columns: Mapping[str, str]) -> str:
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl"  # the line is reported when it is read, and the other lines are still read
    kind = _record_format(record)
    if kind is not None or not record or not record.keys().isdisjoint(_VOTES):
        return kind or "jsonl"
    if not columns and record.keys() >= _RESULT_FIELDS:
        problem = "contains results of witan batch and no ballots, which are in the batch's history"
        words, after = "read them there, for example: ", " | witan estimate -"
        remedy = Remedy(Way(words, operation="export", after=after, command=True))
        raise BallotFileError(source.path, problem, remedy=remedy)
    if not columns and (attachment_kind := _attachment_kind(record)) is not None:
        path = source.path
        remedy = Remedy(Way("import the ballots with ", {attachment_kind: path}))
        raise BallotFileError(path, f"contains {attachment_kind} and no ballots", remedy=remedy)
    names = list(record)
    sample = [json_object(line) or {} for line in source.peek_lines(SAMPLE)]
    rows = [[text_of(each.get(name)) for name in names] if each else [] for each in sample]
    shape = table_format(names, rows, columns, source.path)
    if shape is None and "reviewer" not in record and not columns:
        if any("reviewer" in each and not each.keys().isdisjoint(_VOTES) for each in sample):
            return "jsonl"  # the first line is reported, and the ballots below it are still read
        raise unknown_table(source.path, names, columns)
    return shape or "jsonl"


def _record_format(record: Mapping[str, Any]) -> str | None:
    """Detect a file's format by an object in it; None for ballots."""
    compared = record.keys() >= _PAIR_FIELDS and ("outcome" in record or "score" in record)
    about = record.get("eval")
    marks = {
        "sessions": any(mark in record for mark in SESSION_MARKS),
        "promptfoo": _is_promptfoo(record),
        "inspect": isinstance(about, dict) and "task" in about and "model" in about,
        "preferences": _prefers(Header(record, {}, "")),
        "conversations": isinstance(record.get("messages"), list),
        "battles": compared,
        "council-log": ("rankings" in record and "label_to_model" in record)
        or (isinstance(record.get("type"), str) and "run_id" in record),
    }
    return next((name for name, matches in marks.items() if matches), None)


def _is_promptfoo(record: Mapping[str, Any]) -> bool:
    results = record.get("results")
    if isinstance(results, dict):
        return isinstance(results.get("results"), list)
    summary = isinstance(results, list) and ("stats" in record or "evalId" in record)
    return summary or record.keys() >= {"testIdx", "promptIdx", "provider"}


def _prefers(header: Header) -> bool:
    return any(
        header.place(name) is not None
        and header.place(name.replace("chosen", "rejected")) is not None
        for name in ("chosen", "chosen_model")
    )


def _attachment_kind(record: Mapping[str, Any]) -> str | None:
    """Classify a line without a ballot as ``answers``, ``questions`` or None."""
    if first_value(record, ALIASES["session"]) is None or not record.keys().isdisjoint(
        (*ALIASES["reviewer"], *_BALLOT_FIELDS)
    ):
        return None
    if first_value(record, CANDIDATES) is not None:
        return "answers" if first_value(record, (*TEXTS, *LENGTHS)) is not None else None
    return "questions" if first_value(record, QUESTIONS) is not None else None


Records = Iterator[tuple[int, Mapping[str, Any]]]
"""Rows by column, with their line numbers."""

_IS_A_HISTORY = "is a SQLite database, such as a history, not a file of sessions"


@dataclass(frozen=True, slots=True)
class Content:
    """An opened file of known format.

    `columns`: column of each field with a non-standard name.
    `table`: the Parquet table, if it is one.
    """

    format: str
    source: OpenedFile
    columns: Mapping[str, str]
    table: Any = None

    def rows(self, report: ProblemReport) -> Rows:
        """Return the rows as text cells, with the header first."""
        if self.table is not None:
            return parquet_cells(self.table, self.source.path)
        if self._is_json:
            return _cells(objects(self.source, report), report)
        return csv_rows(self.source, report, self.columns)

    def long_rows(self, report: ProblemReport) -> tuple[Rows, Mapping[str, str]]:
        """Return rows and columns of a long table, converted if wide."""
        return long_rows(self.rows(report), self.format, self.columns, self.source.stem, report)

    def records(self, report: ProblemReport, *, empty_cells: bool = False) -> Records:
        """Yield the rows by column; of CSV, empty cells only on request."""
        if self.table is not None:
            return parquet_records(self.table, self.source.path)
        if self._is_json:
            return objects(self.source, report)
        rows = _to_mapping(csv_rows(self.source, report, self.columns))
        if empty_cells:
            return rows
        return ((line, {n: cell for n, cell in row.items() if cell}) for line, row in rows)

    @property
    def _is_json(self) -> bool:
        return (self.source.first_line() or "").startswith("{")


def content_of(
    source: OpenedFile,
    format: str | None,  # noqa: A002
    columns: Mapping[str, str],
) -> Content | None:
    """Detect a file's format, or use the caller's; None if empty."""
    if source.is_empty:
        return None
    if source.begins_with(SQLITE):
        way = Way(
            "import the content of a history: ",
            {"history": source.path},
            operation="export",
            after=" | witan import -",
            command=True,
        )
        raise BallotFileError(source.path, _IS_A_HISTORY, remedy=Remedy(way))
    if source.begins_with(ZIP):
        return Content("inspect", inspect_samples(source), columns)
    if source.begins_with(PARQUET) or format == "parquet":
        table = open_parquet(source)
        shape = None if format == "parquet" else format
        shape = shape or _table_format(table, columns, source.path)
        return Content(shape or "parquet", source, columns, table)
    if is_array(source):
        source = unfold_objects(source)
    first = source.first_line()
    if first is not None and is_spread(first, source):
        source = unfold_objects(source)
        first = source.first_line()
    if first is None:
        return None
    return Content(format or recognise(source, columns), source, columns)


def _table_format(table: Any, columns: Mapping[str, str], path: str) -> str | None:
    """Return the format of a Parquet table; None for ballots by row."""
    names = list(table.schema_arrow.names)
    if not {"ranking", "grades"}.isdisjoint(names):
        return None
    sample = [row for _, row in islice(parquet_cells(table, path), 1, SAMPLE + 1)]
    return table_format(names, sample, columns, path)


def _cells(records: Records, report: ProblemReport) -> Rows:
    """Yield objects as rows of a table, with the first one's columns.

    A note names the first field that occurs only in later objects.
    """
    first = list(islice(records, SAMPLE))
    names = list(dict.fromkeys(name for _, record in first for name in record))
    yield 0, names
    field_names = {*names}
    for line, record in chain(first, records):
        if not field_names.issuperset(record) and len(field_names) == len(names):
            later_field = min(record.keys() - field_names)
            field_names.add(later_field)
            location = f"it first occurs on line {line:,}, after {SAMPLE} rows without it"
            report.note(f"the field {later_field!r} is not read: {location}, nor are later ones")
        yield line, [text_of(record.get(name)) for name in names]


def _to_mapping(rows: Rows) -> Records:
    numbered = iter(rows)
    _, header = next(numbered, (0, []))
    names = [name.strip() for name in header]
    for line, row in numbered:
        cells = zip(names, row, strict=True)
        full = ((name, cell if cell.strip() else "") for name, cell in cells)
        yield line, {name: cell for name, cell in full if name or cell}


PLAIN = ("jsonl", *LONG_FORMS, "csv-pairs", "preflib", "parquet", "council-log")
"""Formats whose ballots are read one by one, without further data."""


def plain_ballots(
    content: Content, columns: Mapping[str, str], report: ProblemReport, *, by_session: bool = False
) -> Iterator[Ballot]:
    """Read the ballots of a file without further data.

    With `by_session`, a row of a table of pairs without a session is a separate session.
    """
    if content.format == "jsonl":
        return read_jsonl(content.source, columns, report)
    if content.format in LONG_FORMS:
        return read_long(*content.long_rows(report), report)
    if content.format == "csv-pairs":
        sessions = PairSessions(content.source.stem, by_session=by_session)
        return read_pairs(content.rows(report), columns, report, sessions)
    if content.format == "parquet":
        return read_parquet(content.table, columns, report)
    refuse_columns(content, columns)
    reader = read_preflib if content.format == "preflib" else read_council_log
    return reader(content.source, report)


def scaled_ballots(
    content: Content,
    columns: Mapping[str, str],
    report: ProblemReport,
    scales: tuple[Scale | None, Scale | None],
    *,
    by_session: bool = False,
) -> Iterator[Ballot | BallotTable]:
    """Read `plain_ballots` on their scale, or a table of grades only."""
    table = read_table(content.source) if content.format == "jsonl" and not columns else None
    if table is None:
        ballots = plain_ballots(content, columns, report, by_session=by_session)
        yield from scale_ballots(ballots, report, *scales)
    elif (scaled_table := scale_table(table, *scales)) is not None:
        yield scaled_table
    else:
        yield from scale_ballots(_number_lines(table, report), report, *scales)


def _number_lines(table: BallotTable, report: ProblemReport) -> Iterator[Ballot]:
    """Yield the ballots of a table, updating the line of the report."""
    for line, ballot in enumerate(table, start=1):
        report.doubt(line, None)
        yield ballot


def refuse_columns(content: Content, columns: Mapping[str, str]) -> None:
    """Refuse column names for a format without columns."""
    if columns:
        expected = f"nothing, because a {content.format} file has no columns"
        raise InvalidParameter("columns", dict(columns), expected)


FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "jsonl": "JSON Lines: one ballot per line.",
        "csv": "CSV, long: one row per reviewer and candidate, with a rank, a grade or criteria.",
        "csv-pairs": "CSV, pairs: one row per comparison of two candidates.",
        "csv-judges": "CSV, a column per judge: one row per candidate, with a grade in each.",
        "csv-models": "CSV, a column per model: one row per item, or item and judge.",
        "preflib": "PrefLib .soc .soi .toc .toi: one line per distinct ranking, with its count.",
        "parquet": "Parquet: one row per ballot, or the columns of any CSV form.",
        "council-log": "JSON Lines: one council session per line, or the event log of one council.",
        "battles": "JSON, CSV or Parquet: one battle of two models per row, as in arenas.",
        "preferences": "JSON, CSV or Parquet: a chosen and a rejected answer per row.",
        "promptfoo": "JSON: the results of promptfoo, as one document or one per line.",
        "inspect": "JSON or .eval: the log of an evaluation by Inspect.",
        "sessions": "JSON: whole sessions, as `witan ask --save` and `witan export` write them.",
        "conversations": "JSON: a saved conversation of the web app karpathy/llm-council.",
    }
)
"""Supported format → description."""


def check_format(name: str) -> None:
    """Refuse an unknown format."""
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)


MAX_EQUAL_VOTERS = 1_000_000
"""Maximum number of voters per order, each of whom becomes a ballot."""

PREFLIB_KINDS = ("soc", "soi", "toc", "toi")
"""Strict or tied orders, complete or incomplete."""

_HEADER = re.compile(r"#\s*([^:]*?)\s*:\s*(.*?)\s*$")
_NAME = re.compile(r"ALTERNATIVE NAME (\d+)$")
_ORDER = re.compile(r"\{[^{}]*\}|[^,{}]+")


def read_preflib(source: OpenedFile, report: ProblemReport) -> Iterator[Ballot]:
    """Read voters as voter-1 to voter-n; the title names the session."""
    lines = ((k, line.strip()) for k, line in enumerate(source.lines(), start=1))
    numbered_lines = ((k, line) for k, line in lines if line)
    election = _Election(source.path, source.stem)
    yield from election.ballots(numbered_lines, report)


class _Election:
    """Alternatives and voters of one file so far."""

    def __init__(self, path: str, stem: str) -> None:
        self.path, self.session = path, stem
        self.names: dict[str, str] = {}
        self.stated_voters: tuple[int, int] | None = None
        self.n_voters = 0

    def ballots(
        self, numbered_lines: Iterator[tuple[int, str]], report: ProblemReport
    ) -> Iterator[Ballot]:
        """Yield the ballots of all lines; unreadable lines are reported."""
        for line, text in numbered_lines:
            try:
                if text.startswith("#"):
                    self._header(line, text)
                    continue
                if not self.names:
                    self._old_header(line, text, numbered_lines)
                    continue
                count, groups = self._order(text)
            except Unreadable as flaw:
                report(line, flaw)
                continue
            yield from self._repeat_ballot(count, groups)
        if self.stated_voters and self.stated_voters[1] != self.n_voters and not report.n_problems:
            line, voters = self.stated_voters
            report(
                line,
                Unreadable(None, f"declares {voters:,} voters, the file has {self.n_voters:,}"),
            )

    def _header(self, line: int, text: str) -> None:
        match = _HEADER.match(text)
        if match is None:
            return
        key, value = match[1].upper(), restore_controls(match[2])
        if key == "TITLE" and value:
            self.session = value
        elif key == "DATA TYPE" and value.lower() not in PREFLIB_KINDS:
            kinds = ", ".join(PREFLIB_KINDS)
            raise BallotFileError(
                self.path, f"contains PrefLib data of type {value!r}; expected one of {kinds}", line
            )
        elif key == "NUMBER VOTERS" and value.isdecimal():
            self.stated_voters = (line, int(value))
        elif number := _NAME.match(key):
            self._add(number[1], value)

    def _old_header(self, line: int, text: str, numbered_lines: Iterator[tuple[int, str]]) -> None:
        """Read an older header: alternatives, their names, voters, sum and orders."""
        if not text.isdecimal():
            raise BallotFileError(self.path, "names no alternatives before its first ranking", line)
        for _ in range(int(text)):
            line, text = next(numbered_lines, (line, ""))
            number, comma, alternative = text.partition(",")
            if not comma or not number.strip().isdecimal():
                raise BallotFileError(
                    self.path, f"has {text[:40]!r} where 'number,name' is expected", line
                )
            self._add(number.strip(), alternative.strip())
        line, text = next(numbered_lines, (line, ""))
        voters = text.split(",")[0].strip()
        if not voters.isdecimal() or len(text.split(",")) != 3:
            raise BallotFileError(
                self.path, f"has {text[:40]!r} where 'voters,sum,orders' is expected", line
            )
        self.stated_voters = (line, int(voters))

    def _add(self, number: str, alternative: str) -> None:
        alternative = alternative or f"alternative {number}"
        if alternative in self.names.values():
            raise BallotFileError(self.path, f"gives the name {alternative!r} to two alternatives")
        self.names[str(int(number))] = alternative

    def _order(self, text: str) -> tuple[int, Groups]:
        count, mark, order = text.partition(":")
        if not mark:
            count, _, order = text.partition(",")
        if not count.strip().isdecimal():
            raise Unreadable("count", f"is {count.strip()[:40]!r}; expected a whole number")
        places = _ORDER.findall(order)
        if re.sub(r"[,\s]", "", "".join(places)) != re.sub(r"[,\s]", "", order):
            raise Unreadable(
                "ranking", f"is {order.strip()[:60]!r}; expected an order such as 1,{{2,3}},4"
            )
        groups = (self._group(place.strip()) for place in places if place.strip())
        if int(count) > MAX_EQUAL_VOTERS:
            problem = f"is {int(count):,}; the maximum is {MAX_EQUAL_VOTERS:,} voters per order"
            raise Unreadable("count", problem)
        return int(count), tuple(group for group in groups if group)

    def _group(self, place: str) -> tuple[str, ...]:
        numbers = [n.strip() for n in place.strip("{}").split(",") if n.strip()]
        for number in numbers:
            if number not in self.names:
                raise Unreadable(
                    "ranking", f"has {number!r}, which is not the number of an alternative"
                )
        return tuple(self.names[number] for number in numbers)

    def _repeat_ballot(self, count: int, groups: Groups) -> Iterator[Ballot]:
        candidates = tuple(self.names.values())
        for _ in range(count):
            self.n_voters += 1
            yield Ballot(
                reviewer=f"voter-{self.n_voters}",
                groups=groups,
                grades={},
                session=self.session,
                candidates=candidates,
                kind="human",
            )


NO_ROWS = "has no rows; expected JSON Lines, a JSON list, CSV or Parquet"
"""The problem of an empty data set."""


def read_rows(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield rows with line numbers; empty cells are None or empty text.

    Raises
    ------
    BallotFileError
        If the file cannot be read or has no row, or a line is not an object; it names the line.
    """
    with open_source(path) as source:
        content = content_of(source, "rows", {})
        if content is None:
            raise BallotFileError(source.path, NO_ROWS)
        yield from content.records(ProblemReport(source.path, None), empty_cells=True)
