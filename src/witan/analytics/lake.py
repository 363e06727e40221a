"""A lake of Parquet files: columns, reading, checking and writing.

    sessions/   a row per session, and the only table with its name
    standings/  a row per session, kind, rule and model
    matchups/   a row per session, kind and pair of models
    ballots/    a row per counted ballot, with lists in the order of its candidates
    answers/    a row per answer
    names/      code → name; a name may be in several files

The first five are partitioned into ``day=YYYY-MM-DD/*.parquet``. Each row has the columns by which
sessions are filtered, so that no tables need to be joined. `session` is a key of 64 bits, a hash of
the session's name: numbers are grouped and joined faster than text. Pairs are rows, not lists:
summing rows took half the time of unpacking lists.

A lake is written a day at a time. Names come first, so that every code has one. The five files of a
day are written under temporary names and then renamed together; each contains the mark of its
export, so that a reader notices files of another export. At the end all files are listed, so that a
reader notices a missing one.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from hashlib import blake2b
from itertools import combinations, pairwise
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from witan.core.stats.leaderboard import Window
from witan.core.stats.sums import Names
from witan.errors import HistoryError, MissingExtra
from witan.history import History
from witan.history.database import Database, parse_lists
from witan.history.schema import SUPERSEDED_SESSIONS, code_of

if TYPE_CHECKING:
    import pyarrow


_SESSION = (
    "session int64, at_us int64, bucket int16, category string, simulated int8, rejudged int8, "
)

_COLUMNS = {
    "sessions": _SESSION + "name string, kendall_w float64, agreement float64",
    "standings": _SESSION + "human int8, rule string, model int64, score float64, z float64,"
    " votes int32, offered int32, wins float64",
    "matchups": _SESSION + "human int8, i int64, j int64, wins float64, losses float64,"
    " ties float64, p_beats float64",
    "ballots": _SESSION + "ballot int32, human int8, reviewer int64, paired int8, abstained int8,"
    " repaired int8, flat int8, kept int32, compared int32, weight float64, models [int64],"
    " own [int8], shares [float64], grades [float64], positions [int32], chars [int32],"
    " criteria [int64], criterion_grades [[float64]]",
    "answers": _SESSION + "seat string, model int64, chars int32, seconds float64,"
    " cost_usd float64, failed int8",
    "names": "code int64, name string",
}  # fmt: skip

TABLES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        table: dict(column.split(" ") for column in columns.split(", "))
        for table, columns in _COLUMNS.items()
    }
)
"""Type by column by table; brackets mean a list."""

FLOAT_COLUMNS = {"z", "p_beats", "seconds", "cost_usd", "kendall_w", "agreement"}
"""Columns whose values rarely repeat, so that a dictionary would not help."""

TABLES_BY_DAY = tuple(table for table in TABLES if table != "names")
"""Tables partitioned by day."""

EXPORT = "witan.export"
"""Key of the export's mark in a file's metadata; a day's tables share one mark."""


@cache
def arrow() -> ModuleType:
    """Import Arrow and its Parquet module on first use of a lake."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("a lake of Parquet files", "lake") from None
    return cast("ModuleType", pyarrow)


@cache
def schema_of(table: str) -> "pyarrow.Schema":
    """Return the Arrow schema of a table."""
    return arrow().schema([(name, _column_type(kind)) for name, kind in TABLES[table].items()])


@cache
def dictionary_columns(table: str) -> list[str]:
    """Return the columns worth a dictionary, by their names in Parquet."""
    return [
        name + kind.count("[") * ".list.element"
        for name, kind in TABLES[table].items()
        if name not in FLOAT_COLUMNS
    ]


def _column_type(kind: str) -> Any:
    if kind.startswith("["):
        return arrow().list_(_column_type(kind[1:-1]))
    return getattr(arrow(), kind)()


def key_of(session: str) -> int:
    """Return a session's key: 64 bits of its name's hash.

    The chance that any two of n sessions share one is about n²/2⁶⁵: 3 in 10⁸ for a million.
    """
    digest = blake2b(session.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def constants(files: Iterable[Path], columns: Collection[str]) -> Mapping[str, int]:
    """Return the columns with one value in all files, and the value.

    `columns`: integer columns, because a file may truncate the minimum and maximum of text.
    """
    values: dict[str, set[int | None]] = {name: set() for name in columns}
    for file in files:
        metadata = arrow().parquet.read_metadata(file)
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns if group.num_rows else 0)):
                if column.path_in_schema in columns:
                    values[column.path_in_schema].add(_single_value(column.statistics))
    return {
        name: value
        for name, distinct in values.items()
        if len(distinct) == 1 and (value := next(iter(distinct))) is not None
    }


def _single_value(statistics: Any) -> int | None:
    """Return the only value of a column in a row group, if its statistics show one."""
    if statistics is None or not (statistics.has_min_max and statistics.has_null_count):
        return None
    is_single = statistics.null_count == 0 and statistics.min == statistics.max
    return int(statistics.min) if is_single else None


FOLDER = "_exports"
"""Folder of the lists; Parquet readers skip names beginning with an underscore."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A file's number of rows, and any mark of its export."""

    rows: int
    export: str | None


@dataclass(frozen=True, slots=True)
class ListedFile:
    """An exported file: its path within the lake, with slashes, and summary."""

    file: str
    rows: int
    export: str


@dataclass(frozen=True, slots=True)
class _FileList:
    """The list of an export; incomplete while the first export is running."""

    complete: bool
    files: tuple[ListedFile, ...]


Lists = Mapping[Path, _FileList]
"""The lists of a lake by their paths."""


@dataclass(frozen=True, slots=True)
class _MissingFile:
    """A listed file that is missing or altered."""

    file: ListedFile
    rows: int
    """Number of missing rows; negative if there are additional rows."""
    path: Path
    """Path of the list."""


def _table(file: str) -> str:
    return file.partition("/")[0]


def _write_list(path: Path, files: _FileList) -> None:
    text = json.dumps(asdict(files), indent=1) + "\n"
    _write_files({path: lambda partial: partial.write_text(text, encoding="utf-8")})


def _write_files(writes: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write all files under temporary names, then rename them together."""
    # Every reader of a lake ignores names beginning with a dot.
    partial_paths = {path: path.with_name(f".{path.stem}.{os.getpid()}.partial") for path in writes}
    try:
        for path, partial in partial_paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            writes[path](partial)
        for path, partial in partial_paths.items():
            partial.replace(path)
    finally:
        for partial in partial_paths.values():
            # The cause of the failed write may also prevent the deletion.
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def check_complete(root: Path, lists: Lists, files: Mapping[str, FileSummary]) -> None:
    """Refuse a lake without some of its exported rows.

    `files`: summaries of the existing files, by path within the lake.
    """
    for path, file_list in lists.items():
        if not file_list.complete:
            problem = "contains an unfinished export"
            remedy = f"wait for it, export the history again, or delete {_place(path)}"
            raise HistoryError(str(root), problem, remedy)
    gaps_in_exports = [
        lack
        for path, file_list in lists.items()
        for one in file_list.files
        if (lack := _missing_rows(one, files, path)) is not None
    ]
    listed_files = {one.file for file_list in lists.values() for one in file_list.files}
    rows_elsewhere = Counter[str]()
    for file, summary in files.items():
        if file not in listed_files:
            rows_elsewhere[_table(file)] += summary.rows
    lost_files = [
        lack
        for table in TABLES_BY_DAY
        for lack in _uncovered_files(gaps_in_exports, table, rows_elsewhere[table])
    ]
    if lost_files:
        raise _error(root, lost_files, rows_elsewhere)


def check_exports(root: Path, lists: Lists, files: Mapping[str, FileSummary]) -> None:
    """Refuse a day with tables from different exports.

    A file rewritten by other tools has lost its mark. If its export is listed, `check_complete` has
    compared its rows; otherwise nothing is compared.
    """
    marks = {(_table(file), one.export): file for file, one in files.items() if one.export}
    file_by_mark = {
        (_table(one.file), one.export): one.file for list_ in lists.values() for one in list_.files
    }
    unmarked = {_table(file) for file, one in files.items() if one.export is None}
    for (_, mark), file in sorted(marks.items()):
        for table in (table for table in TABLES_BY_DAY if (table, mark) not in marks):
            if lists:
                expected_file = file_by_mark.get((table, mark))
                is_listed = expected_file is not None
            else:
                expected_file = table + file.removeprefix(_table(file))
                is_listed = table in unmarked
            file_rows = None if expected_file is None else files.get(expected_file)
            if not is_listed or (file_rows is not None and file_rows.export is not None):
                problem = f"mixes tables of two exports: {file} has no matching {table}"
                remedy = "wait for a running export to end, or export the history again"
                raise HistoryError(str(root), problem, remedy)


def _missing_rows(
    one: ListedFile, files: Mapping[str, FileSummary], path: Path
) -> _MissingFile | None:
    summary = files.get(one.file)
    if summary is None:
        return _MissingFile(one, one.rows, path)
    # A file with another mark was written by a later export, whose list is not written yet.
    if summary.rows == one.rows or summary.export not in (None, one.export):
        return None
    return _MissingFile(one, one.rows - summary.rows, path)


def _uncovered_files(
    gaps: Sequence[_MissingFile], table: str, n_other_rows: int
) -> list[_MissingFile]:
    """Return a table's files whose rows are in no other file."""
    gaps_of_table = [lack for lack in gaps if _table(lack.file.file) == table]
    n = sum(lack.rows for lack in gaps_of_table)
    return [] if n in (0, n_other_rows) else [lack for lack in gaps_of_table if lack.rows > 0]


def _error(root: Path, gaps: Sequence[_MissingFile], other_rows: Mapping[str, int]) -> HistoryError:
    first = gaps[0]
    table = _table(first.file.file)
    n = sum(lack.rows for lack in gaps if _table(lack.file.file) == table) - other_rows[table]
    if n > 0 and other_rows[table]:
        problem = f"lacks {_rows(n)} of {table} that an export wrote"
    else:
        is_whole_file = first.rows == first.file.rows
        place = first.file.file
        problem = (
            f"lacks {place} with its {_rows(first.rows)}"
            if is_whole_file
            else f"lacks {_rows(first.rows)} of {place}"
        )
        more = len(gaps) - 1
        problem += f", and {more:,} more file{'s' if more > 1 else ''}" if more else ""
    remedy = (
        "restore the missing files, or export the history again; "
        f"if you removed them on purpose, delete {_place(first.path)}"
    )
    return HistoryError(str(root), problem, remedy)


def _rows(n: int) -> str:
    return f"{n:,} row{'s' if n > 1 else ''}"


def _place(path: Path) -> str:
    return f"{FOLDER}/{path.name}"


def _read_list(path: Path) -> _FileList:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(_FileList).validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.errors()[0]["msg"]
        problem = f"is not a list of the files of an export: {reason}"
        raise HistoryError(str(path), problem, "export the history again, or delete it") from error


BALLOTS_AT_ONCE = 400_000
"""Number of ballots summed together, which limits memory."""


class Lake:
    """A folder of Parquet files in the columns of `TABLES`.

    Parameters
    ----------
    folder
        It contains ``sessions/day=…/*.parquet`` and the other tables.
    ballots_at_once
        Maximum number of ballots in a span; a single day may exceed it.

    Raises
    ------
    HistoryError
        If the folder is not a lake or has no sessions; if a file is missing, is damaged, has
        other columns, or is from another export than the rest of its day. The error names the file.
    MissingExtra
        Without pyarrow.
    """

    def __init__(self, folder: str | Path, *, ballots_at_once: int = BALLOTS_AT_ONCE) -> None:
        arrow()
        self._at_once = ballots_at_once
        self.folder = Path(folder)
        # An export writes its files before its list, so the lists are read first.
        list_paths = sorted((self.folder / FOLDER).glob("*.json"))
        lists = {path: _read_list(path) for path in list_paths}
        self.files = self._find_files(lists)
        days: dict[date, int] = {}
        summaries: dict[str, FileSummary] = {}
        for table, paths in self.files.items():
            for path in paths:
                summary = _summarize(path, table)
                day = _day_of(path)
                if table == "ballots" and day is not None:
                    days[day] = days.get(day, 0) + summary.rows
                if table in TABLES_BY_DAY:
                    summaries[path.relative_to(self.folder).as_posix()] = summary
        check_complete(self.folder, lists, summaries)
        check_exports(self.folder, lists, summaries)
        self._ballots_by_day = sorted(days.items())

    def _find_files(self, lists: Lists) -> dict[str, tuple[Path, ...]]:
        patterns = {
            table: "day=*/*.parquet" if table in TABLES_BY_DAY else "*.parquet" for table in TABLES
        }
        files = {
            table: tuple(sorted((self.folder / table).glob(pattern)))
            for table, pattern in patterns.items()
        }
        missing = [table for table, paths in files.items() if not paths]
        if missing == list(TABLES_BY_DAY):
            check_complete(self.folder, lists, {})
            problem = "contains no sessions yet"
            remedy = "ask a question or import ballots, then export the history again"
            raise HistoryError(str(self.folder), problem, remedy)
        for table in missing:
            problem = f"is not a lake: {table}/{patterns[table]} is missing"
            remedy = "choose a folder that witan export wrote as a lake"
            raise HistoryError(str(self.folder), problem, remedy)
        return files

    def names(self) -> Names:
        """Return the name of every code."""
        names: dict[int, str] = {}
        for path in self.files["names"]:
            table = _read_table(path)
            pairs = zip(table["code"].to_pylist(), table["name"].to_pylist(), strict=True)
            for code, name in pairs:
                if names.setdefault(code, name) != name:
                    problem = f"{name!r} and {names[code]!r} share a code"
                    raise HistoryError(str(path), problem, "rename one of them")
        return Names(names)

    def spans(self, window: Window) -> tuple[Window, ...]:
        """Split the window into parts, each with few enough ballots.

        They cover it without gaps, whatever the names of the folders, so each session is in one.
        """
        cuts: list[datetime] = []
        n_ballots = 0
        for day, n_of_day in self._ballots_by_day:
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            pieces = -(-n_of_day // self._at_once)
            if n_ballots + n_of_day > self._at_once:
                cuts += [midnight + timedelta(days=1) * piece / pieces for piece in range(pieces)]
                n_ballots = 0
            n_ballots += n_of_day
        return _split_window(window, cuts)

    def check_duplicates(self) -> None:
        """Refuse a lake that contains a session more than once."""
        duplicates = self._duplicates()
        # FileSummary for a further reading, which engines do on their own.
        arrow().default_memory_pool().release_unused()
        if duplicates:
            name = min(duplicates)
            n = f"{len(duplicates):,} session{'s' if len(duplicates) > 1 else ''}"
            files = " and ".join(duplicates[name])
            problem = f"contains {n} more than once: {name!r} is in {files}"
            remedy = "export the histories to separate folders, or forget it in one of them"
            raise HistoryError(str(self.folder), problem, remedy)

    def _duplicates(self) -> dict[str, list[str]]:
        keys = [
            _read_table(path, ["session"])["session"].to_numpy() for path in self.files["sessions"]
        ]
        in_order = np.sort(np.concatenate(keys))
        repeated_keys = in_order[1:][in_order[1:] == in_order[:-1]]
        files_by_session: dict[str, list[str]] = {}
        for path, own_keys in zip(self.files["sessions"], keys, strict=True):
            if repeated_keys.size and np.isin(own_keys, repeated_keys).any():
                model_names = _read_table(path, ["name"])["name"].to_pylist()
                for row in np.flatnonzero(np.isin(own_keys, repeated_keys)).tolist():
                    place = path.relative_to(self.folder).as_posix()
                    files_by_session.setdefault(model_names[row], []).append(place)
        return files_by_session

    def find_damage(self) -> HistoryError | None:
        """Read every file to its end; return the first error."""
        for path in (path for paths in self.files.values() for path in paths):
            try:
                file = arrow().parquet.ParquetFile(path)
                with file:
                    for _ in file.iter_batches():
                        pass
            except (OSError, arrow().ArrowException) as error:
                return _damage(path, error)
        return None


def _split_window(window: Window, cuts: Iterable[datetime]) -> tuple[Window, ...]:
    ends: list[datetime | None] = [window.since]
    for cut in cuts:
        since, until = ends[-1], window.until
        if (since is None or since < cut) and (until is None or cut < until):
            ends.append(cut)
    ends.append(window.until)
    return tuple(Window(since, until, window.category) for since, until in pairwise(ends))


def _day_of(path: Path) -> date | None:
    """Return the day in the name of a file's folder, if any."""
    try:
        return date.fromisoformat(path.parent.name.removeprefix("day="))
    except ValueError:
        return None


def _summarize(path: Path, table: str) -> FileSummary:
    """Check the columns of a file; return its summary."""
    try:
        with arrow().parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, arrow().ArrowException) as error:
        raise _damage(path, error) from error
    for field in schema_of(table):
        places: Sequence[int] = schema.get_all_field_indices(field.name)
        if len(places) != 1:
            problem = f"has no column {field.name!r}" if not places else (
                f"has the column {field.name!r} {len(places)} times"
            )  # fmt: skip
            raise HistoryError(str(path), problem, _REMEDY)
        kind = schema.field(places[0]).type
        if not _same_type(kind, field.type):
            problem = f"has {kind} in the column {field.name!r}, where {field.type} is expected"
            raise HistoryError(str(path), problem, _REMEDY)
    mark = dict(schema.metadata or {}).get(EXPORT.encode())
    return FileSummary(int(rows), None if mark is None else mark.decode(errors="replace"))


_REMEDY = "remove the file from the lake, or write the lake again"


def _same_type(one: Any, other: Any) -> bool:
    """Compare types; the name of a list's elements does not matter."""
    types = arrow().types
    if types.is_list(one) and types.is_list(other):
        return _same_type(one.value_type, other.value_type)
    return bool(one == other)


def _read_table(path: Path, columns: list[str] | None = None) -> Any:
    try:
        return arrow().parquet.ParquetFile(path, pre_buffer=False).read(columns, use_threads=False)
    except (OSError, arrow().ArrowException) as error:
        raise _damage(path, error) from error


def _damage(path: Path, error: Exception) -> HistoryError:
    problem = f"is not a readable Parquet file: {str(error).splitlines()[0]}"
    return HistoryError(str(path), problem, _REMEDY)


Columns = dict[str, list[Any]]

ROWS_IN_A_GROUP = 122_880
"""Number of rows that an engine's thread reads together; DuckDB's default."""

_SESSION_COLUMNS = tuple(column.split(" ")[0] for column in _SESSION.split(", ")[:-1])

_TABLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "standings": ("human", "rule", "model", "score", "z", "votes", "offered", "wins"),
    "matchups": ("human", "models", "wins", "losses", "ties", "p_beats"),
    "ballots": tuple(name for name in TABLES["ballots"] if name not in _SESSION_COLUMNS),
    "answers": ("seat", "model", "chars", "seconds", "cost_usd", "failed"),
}
"""Columns of each table, besides those of its session."""

# Rows are sorted by bucket within a day, because sums are by bucket: consecutive rows add to a few
# sums, which stay in the processor's cache.
_ROW_ORDER = {
    "standings": "s.bucket, s.at_us, s.session, t.human, t.rule, t.model",
    "matchups": "s.bucket, s.at_us, s.session, t.human",
    "ballots": "s.bucket, s.at_us, s.session, t.ballot",
    "answers": "s.bucket, s.at_us, s.session, t.seat",
}

# A ballot that neither votes nor abstains does not count.
_ROW_FILTERS = {"ballots": " AND (t.abstained = 1 OR t.models <> '[]')"}

# A running session has a holder; a superseded session does not count.
_CLOSED_SQL = f"s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})"
_DAYS_SQL = f"SELECT DISTINCT s.day FROM sessions s WHERE {_CLOSED_SQL} ORDER BY s.day"  # noqa: S608
_SESSIONS_SQL = (
    "SELECT session, at_us, bucket, category, simulated, rejudged, session, kendall_w, agreement"  # noqa: S608
    f" FROM sessions s WHERE s.day = :day AND {_CLOSED_SQL} ORDER BY at_us, session"
)


@dataclass(frozen=True, slots=True)
class LakeReport:
    """The numbers of sessions and days written."""

    sessions: int
    days: int


def write_lake(history: History, folder: str | Path, *, source: str | None = None) -> LakeReport:
    """Write every closed session of a history into a lake.

    Files are named after `source`, by default a code of the history's location: writing the same
    history again replaces its files, and removes those of days that it no longer has.

    Raises
    ------
    HistoryError
        If the folder cannot be written. Each existing day is then complete, old or new.
    MissingExtra
        Without pyarrow.
    """
    arrow()
    database, root = history.database, Path(folder)
    name = f"{code_of(database.location):014x}" if source is None else source
    files_written, sessions = list[ListedFile](), 0
    list_path = root / FOLDER / f"{name}.json"
    try:
        if not list_path.exists():
            _write_list(list_path, _FileList(complete=False, files=()))
        with database.snapshot():
            names = database.rows("SELECT code, name FROM names ORDER BY code")
            codes = {"code": [row[0] for row in names], "name": [row[1] for row in names]}
            write_table(root, "names", codes, source=name)
            for (day,) in database.rows(_DAYS_SQL):
                tables = _read_day(database, day)
                sessions += len(tables["sessions"]["session"])
                files_written += _write_day(
                    root,
                    tables,
                    (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date(),
                    name,
                )
        files_written.sort(key=lambda one: (TABLES_BY_DAY.index(_table(one.file)), one.file))
        _write_list(list_path, _FileList(complete=True, files=tuple(files_written)))
        _remove_others(root, name, {root / one.file for one in files_written})
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise HistoryError(str(root), problem, "choose a writable folder") from error
    return LakeReport(sessions, len(files_written) // len(TABLES_BY_DAY))


def write_table(
    root: Path, table: str, columns: Mapping[str, Any], *, source: str, day: date | None = None
) -> Path:
    """Write one file of a lake atomically."""
    path = _table_path(root, table, source, day)
    _write_files({path: _writer(table, arrow().table(dict(columns), schema=schema_of(table)))})
    return path


def _write_day(
    root: Path, day_columns: Mapping[str, Columns], day: date, source: str
) -> list[ListedFile]:
    """Write the files of one day; return the list of them."""
    tables = {
        table: arrow().table(columns, schema=schema_of(table))
        for table, columns in day_columns.items()
    }
    digest = blake2b(digest_size=8)
    for table in tables.values():
        for batch in table.to_batches():
            digest.update(batch.serialize())
    mark = digest.hexdigest()
    paths = {name: _table_path(root, name, source, day) for name in tables}
    marked = {EXPORT: mark}
    _write_files(
        {
            paths[name]: _writer(name, table.replace_schema_metadata(marked))
            for name, table in tables.items()
        }
    )
    return [
        ListedFile(paths[name].relative_to(root).as_posix(), len(table), mark)
        for name, table in tables.items()
    ]


def _table_path(root: Path, table: str, source: str, day: date | None) -> Path:
    part = root / table if day is None else root / table / f"day={day.isoformat()}"
    return part / f"{source}.parquet"


def _writer(table: str, rows: "pyarrow.Table") -> Callable[[Path], object]:
    return lambda path: arrow().parquet.write_table(
        rows,
        path,
        compression="zstd",
        use_dictionary=dictionary_columns(table),
        row_group_size=ROWS_IN_A_GROUP,
    )


def _remove_others(root: Path, source: str, paths: set[Path]) -> None:
    for table in TABLES_BY_DAY:
        for path in (root / table).glob(f"day=*/{source}.parquet"):
            if path not in paths:
                path.unlink()


def _read_day(database: Database, day: int) -> dict[str, Columns]:
    sessions = _columns_by_name(TABLES["sessions"], database.rows(_SESSIONS_SQL, {"day": day}))
    lines = zip(*(sessions[name] for name in _SESSION_COLUMNS), strict=True)
    by_name = {name: (key_of(name), *rest) for name, *rest in lines}
    if len({key for key, *_ in by_name.values()}) < len(by_name):
        raise HistoryError(database.location, "two sessions share a key", "rename one of them")
    tables = {"sessions": sessions}
    for table, names in _TABLE_COLUMNS.items():
        columns = _columns_by_name(("session", *names), database.rows(_join(table), {"day": day}))
        tables[table] = _CONVERTERS[table](columns) if table in _CONVERTERS else columns
    for columns in tables.values():
        rows = [by_name[name] for name in columns["session"]]
        for at, name in enumerate(_SESSION_COLUMNS):
            columns[name] = [row[at] for row in rows]
    return tables


def _join(table: str) -> str:
    columns = ", ".join(f"t.{name}" for name in ("session", *_TABLE_COLUMNS[table]))
    return (
        f"SELECT {columns} FROM {table} t JOIN sessions s ON s.session = t.session"  # noqa: S608
        f" WHERE s.day = :day AND {_CLOSED_SQL}{_ROW_FILTERS.get(table, '')}"
        f" ORDER BY {_ROW_ORDER[table]}"
    )


def _columns_by_name(names: Iterable[str], rows: Sequence[tuple[Any, ...]]) -> Columns:
    list_columns = list(names)
    tables = zip(*rows, strict=True) if rows else [()] * len(list_columns)
    return {name: list(values) for name, values in zip(list_columns, tables, strict=True)}


def _matchups(columns: Columns) -> Columns:
    """Convert rows per session and kind to a row per pair."""
    pairs: Columns = {name: [] for name in ("session", "human", "i", "j")}
    for session, human, models in zip(
        columns["session"], columns["human"], parse_lists(columns["models"]), strict=True
    ):
        for i, j in combinations(models, 2):
            for name, value in (("session", session), ("human", human), ("i", i), ("j", j)):
                pairs[name].append(value)
    for name in ("wins", "losses", "ties", "p_beats"):
        pairs[name] = [value for row in parse_lists(columns[name]) for value in row]
    return pairs


def _ballots(columns: Columns) -> Columns:
    lists = ("models", "own", "shares", "grades", "positions", "chars", "criteria")
    for name in (*lists, "criterion_grades"):
        columns[name] = parse_lists(columns[name])
    columns["own"] = [[int(each) for each in row] for row in columns["own"]]
    return columns


_CONVERTERS: Mapping[str, Callable[[Columns], Columns]] = {
    "matchups": _matchups,
    "ballots": _ballots,
}
