"""Formats of ballot files and what reads each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from types import MappingProxyType
from typing import Any

from witan.core.ballot import Ballot
from witan.errors import BallotFileError, InvalidParameter, Remedy, UnknownName, Way
from witan.files.ballots.cells import Rows, csv_rows, text_of
from witan.files.ballots.jsonl import objects, read_council_log, read_jsonl
from witan.files.ballots.opening import (
    OpenedFile,
    inspect_samples,
    is_array,
    is_spread,
    unfold_objects,
)
from witan.files.ballots.preflib import read_preflib
from witan.files.ballots.problems import ProblemReport
from witan.files.ballots.recognition import recognise, table_format
from witan.files.ballots.tables import (
    LONG_FORMS,
    SAMPLE,
    PairSessions,
    long_rows,
    read_long,
    read_pairs,
)

Records = Iterator[tuple[int, Mapping[str, Any]]]
"""Rows by column, with their line numbers."""

MOST_NAMED, MOST_COUNTED = 5, 100_000
"""Late fields that a note names each, and others that one note counts."""

_A_HISTORY = "is a SQLite database, as a history is, and no file of sessions"


@dataclass(frozen=True, slots=True)
class Content:
    """An opened file of known format.

    Parameters
    ----------
    columns
        Which column holds a field, where they are called otherwise.
    table
        The Parquet table, where it is one.
    """

    format: str
    source: OpenedFile
    columns: Mapping[str, str]
    table: Any = None

    def rows(self, report: ProblemReport) -> Rows:
        """The rows as cells of text, the header first."""
        if self.table is not None:
            # pyarrow is heavy and optional: only those who read Parquet wait for it.
            from witan.files.ballots.parquet import cells

            return cells(self.table, self.source.path)
        if self._is_json:
            return _cells(objects(self.source, report), report)
        return csv_rows(self.source, report, self.columns)

    def long_rows(self, report: ProblemReport) -> tuple[Rows, Mapping[str, str]]:
        """Rows and columns of a long table, converted from a wide one."""
        return long_rows(self.rows(report), self.format, self.columns, self.source.stem, report)

    def records(self, report: ProblemReport) -> Records:
        """The rows by column; an empty cell says nothing."""
        if self.table is not None:
            from witan.files.ballots.parquet import records

            return records(self.table, self.source.path)
        if self._is_json:
            return objects(self.source, report)
        return _to_mapping(csv_rows(self.source, report, self.columns))

    @property
    def _is_json(self) -> bool:
        return (self.source.first_line() or "").startswith("{")


def content_of(
    source: OpenedFile,
    format: str | None,  # noqa: A002
    columns: Mapping[str, str],
) -> Content | None:
    """Recognise a file's format, or use the caller's; None: empty.

    Raises
    ------
    BallotFileError
        If it is nothing that is read.
    """
    if source.is_empty:
        return None
    if source.is_sqlite:
        way = Way(
            "take over what a history holds: ",
            {"history": source.path},
            operation="export",
            after=" | witan import -",
            command=True,
        )
        raise BallotFileError(source.path, _A_HISTORY, remedy=Remedy(way))
    if source.is_zip:
        return Content("inspect", inspect_samples(source), columns)
    if source.is_parquet or format == "parquet":
        from witan.files.ballots.parquet import open_parquet

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
    """The format of a Parquet table; None: one ballot per row."""
    from witan.files.ballots.parquet import cells

    names = list(table.schema_arrow.names)
    if not {"ranking", "grades"}.isdisjoint(names):
        return None
    sample = [row for _, row in islice(cells(table, path), 1, SAMPLE + 1)]
    return table_format(names, sample, columns, path)


def _cells(records: Records, report: ProblemReport) -> Rows:
    """Objects as rows of a table, columns from the first one.

    A field that only later ones have is named in a note, with its first line; of many fields the
    first `MOST_NAMED` are, and one note at the end counts the others.
    """
    first = list(islice(records, SAMPLE))
    names = list(dict.fromkeys(name for _, record in first for name in record))
    yield 0, names
    known, others = set(names), _Others()
    for line, record in chain(first, records):
        for name in sorted(record.keys() - known):
            if len(known) < len(names) + MOST_NAMED:
                where = f"it first stands on line {line:,}, below {SAMPLE} rows without it"
                report.note(f"the field {name!r} is not read: {where}")
                known.add(name)
            else:
                others.add(name)
        yield line, [text_of(record.get(name)) for name in names]
    if others.n:
        what = "field that first stands" if others.n == 1 else "fields that first stand"
        report.note(f"{others} more {what} below {SAMPLE} rows are not read")


class _Others:
    """A bounded count of distinct names."""

    def __init__(self) -> None:
        self.names: set[int] = set()
        self.are_more = False

    def add(self, name: str) -> None:
        if len(self.names) < MOST_COUNTED:
            self.names.add(hash(name))
        elif hash(name) not in self.names:
            self.are_more = True

    @property
    def n(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return f"{'more than ' * self.are_more}{self.n:,}"


def _to_mapping(rows: Rows) -> Records:
    numbered = iter(rows)
    _, header = next(numbered, (0, []))
    names = [name.strip() for name in header]
    for line, row in numbered:
        cells = zip(names, row, strict=True)
        yield line, {name: cell for name, cell in cells if cell.strip()}


PLAIN = ("jsonl", *LONG_FORMS, "csv-pairs", "preflib", "parquet", "council-log")
"""Formats whose ballots are read one after another, without what else the file says."""


def plain_ballots(
    content: Content, columns: Mapping[str, str], report: ProblemReport, *, apart: bool = False
) -> Iterator[Ballot]:
    """The ballots of a file with little else.

    With `apart`, a row of a table of pairs that names no session is a session of its own.
    """
    if content.format == "jsonl":
        return read_jsonl(content.source, columns, report)
    if content.format in LONG_FORMS:
        return read_long(*content.long_rows(report), report)
    if content.format == "csv-pairs":
        sessions = PairSessions(content.source.stem, apart=apart)
        return read_pairs(content.rows(report), columns, report, sessions)
    if content.format == "parquet":
        from witan.files.ballots.parquet import read_parquet

        return read_parquet(content.table, columns, report)
    refuse_columns(content, columns)
    read = read_preflib if content.format == "preflib" else read_council_log
    return read(content.source, report)


def refuse_columns(content: Content, columns: Mapping[str, str]) -> None:
    """Refuse column names for a format without columns."""
    if columns:
        what = f"nothing, for a {content.format} file has none"
        raise InvalidParameter("columns", dict(columns), what)


WRITABLE = ("jsonl", "csv", "csv-pairs", "preflib", "parquet")
"""Formats in which ballots are written."""

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "jsonl": "JSON Lines: one ballot a line.",
        "csv": "CSV, long: one row per reviewer and candidate, with a rank, a grade or criteria.",
        "csv-pairs": "CSV, pairs: one row per comparison of two candidates.",
        "csv-judges": "CSV, a column per judge: one row per candidate, with a grade in each.",
        "csv-models": "CSV, a column per model: one row per item, or item and judge.",
        "preflib": "PrefLib .soc .soi .toc .toi: one line per distinct ranking, with its count.",
        "parquet": "Parquet: one row per ballot, or the columns of any CSV form.",
        "council-log": "JSON Lines: one council session a line, or the event log of one council.",
        "battles": "JSON, CSV or Parquet: one battle of two models a row, as arenas publish them.",
        "preferences": "JSON, CSV or Parquet: a chosen and a rejected answer a row.",
        "promptfoo": "JSON: the results of promptfoo, whole or one a line.",
        "inspect": "JSON or .eval: the log of an evaluation by Inspect.",
        "sessions": "JSON: whole sessions, as `witan ask --save` and `witan export` write them.",
        "conversations": "JSON: a saved conversation of the web app karpathy/llm-council.",
    }
)
"""Name and one sentence per format that is read."""


def check_format(name: str) -> None:
    """Refuse an unknown format."""
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
