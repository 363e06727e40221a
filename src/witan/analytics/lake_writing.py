"""Write a lake from a history, a day at a time.

Names go first, so that no code is ever without one. The five files of a day are written aside and
then take their places one right after the other; each carries the mark of its export, so that a
reader can tell when some of them are of another. At the end all files are listed, so that a reader
can tell when one is lost.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from witan.analytics.lake_files import (
    DAILY,
    EXPORT,
    TABLES,
    ListedFile,
    arrow,
    begin_list,
    dictionary_columns,
    key_of,
    schema_of,
    write_list,
)
from witan.errors import HistoryError
from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Database
from witan.history.schema import code_of

if TYPE_CHECKING:
    import pyarrow


Columns = dict[str, list[Any]]

ROWS_IN_A_GROUP = 122_880
"""What engines read at a time and by one thread; DuckDB's own size."""

_SHARED = ("session", "at_us", "bucket", "category", "simulated", "rejudged")

_READ: Mapping[str, tuple[str, ...]] = {
    "standings": ("human", "rule", "model", "score", "z", "votes", "offered", "wins"),
    "matchups": ("human", "models", "wins", "losses", "ties", "p_beats"),
    "ballots": tuple(name for name in TABLES["ballots"] if name not in _SHARED),
    "answers": ("seat", "model", "chars", "seconds", "cost_usd", "failed"),
}
"""What is read of a history beside the session of each row."""

# What is summed by bucket over all sessions stands by bucket within its day: the sums that rows go
# into one after the other are few, and stay in the cache of the processor.
_ORDER = {
    "standings": "s.bucket, s.at_us, s.session, t.human, t.rule, t.model",
    "matchups": "s.bucket, s.at_us, s.session, t.human",
    "ballots": "s.bucket, s.at_us, s.session, t.ballot",
    "answers": "s.bucket, s.at_us, s.session, t.seat",
}

# A ballot that neither votes nor abstains does not count.
_ONLY = {"ballots": " AND (t.abstained = 1 OR t.models <> '[]')"}

# A session that somebody still writes to has a holder; in place of another its heir counts.
_COUNTS = f"s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})"
_DAYS = f"SELECT DISTINCT s.day FROM sessions s WHERE {_COUNTS} ORDER BY s.day"  # noqa: S608
_SESSIONS = (
    "SELECT session, at_us, bucket, category, simulated, rejudged, session, kendall_w, agreement"  # noqa: S608
    f" FROM sessions s WHERE s.day = :day AND {_COUNTS} ORDER BY at_us, session"
)


class HistoryRecorder(Protocol):
    """A history: whatever has a database in its schema."""

    @property
    def database(self) -> Database:
        """Its database."""


@dataclass(frozen=True, slots=True)
class LakeWritten:
    """The numbers of sessions and days written."""

    sessions: int
    days: int


def write_lake(
    history: HistoryRecorder, folder: str | Path, *, source: str | None = None
) -> LakeWritten:
    """Write every closed session of a history into a lake.

    Files are named after `source`, by default a code of where the history is: writing the same
    history again replaces its files, and takes away those of days that it no longer has.

    Raises
    ------
    HistoryError
        If the folder cannot be written. Days that were there are then whole, old or new.
    MissingExtra
        Without pyarrow.
    """
    arrow()
    database, root = history.database, Path(folder)
    name = f"{code_of(database.where):014x}" if source is None else source
    written, sessions = list[ListedFile](), 0
    try:
        begin_list(root, name)
        with database.snapshot():
            names = database.rows("SELECT code, name FROM names ORDER BY code")
            codes = {"code": [row[0] for row in names], "name": [row[1] for row in names]}
            write_table(root, "names", codes, source=name)
            for (day,) in database.rows(_DAYS):
                tables = _day(database, day)
                sessions += len(tables["sessions"]["session"])
                written += _write_day(
                    root,
                    tables,
                    (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date(),
                    name,
                )
        write_list(root, name, written)
        _remove_others(root, name, {root / one.file for one in written})
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise HistoryError(str(root), problem, "name a folder that you may write") from error
    return LakeWritten(sessions, len(written) // len(DAILY))


def write_table(
    root: Path, table: str, columns: Mapping[str, Any], *, source: str, day: date | None = None
) -> Path:
    """Write one file of a lake, whole or not at all."""
    path = _path(root, table, source, day)
    _write({path: (table, arrow().table(dict(columns), schema=schema_of(table)))})
    return path


def _write_day(
    root: Path, day_columns: Mapping[str, Columns], day: date, source: str
) -> list[ListedFile]:
    """Write the files of one day, and say what was written."""
    tables = {
        table: arrow().table(columns, schema=schema_of(table))
        for table, columns in day_columns.items()
    }
    digest = blake2b(digest_size=8)
    for table in tables.values():
        for batch in table.to_batches():
            digest.update(batch.serialize())
    mark = digest.hexdigest()
    paths = {name: _path(root, name, source, day) for name in tables}
    marked = {EXPORT: mark}
    _write({paths[name]: (name, tables[name].replace_schema_metadata(marked)) for name in tables})
    return [
        ListedFile(paths[name].relative_to(root).as_posix(), len(table), mark)
        for name, table in tables.items()
    ]


def _path(root: Path, table: str, source: str, day: date | None) -> Path:
    part = root / table if day is None else root / table / f"day={day.isoformat()}"
    return part / f"{source}.parquet"


def _write(tables: "Mapping[Path, tuple[str, pyarrow.Table]]") -> None:
    """Write a table to every path: first aside, then all into place."""
    # A name that begins with a dot is no part of a lake to any reader.
    aside = {path: path.with_name(f".{path.stem}.{os.getpid()}.partial") for path in tables}
    try:
        for path, partial in aside.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            table, rows = tables[path]
            arrow().parquet.write_table(
                rows,
                partial,
                compression="zstd",
                use_dictionary=dictionary_columns(table),
                row_group_size=ROWS_IN_A_GROUP,
            )
        for path, partial in aside.items():
            partial.replace(path)
    finally:
        for partial in aside.values():
            # What stood in the way of writing it stands in the way of this too.
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _remove_others(root: Path, source: str, written: set[Path]) -> None:
    for table in DAILY:
        for path in (root / table).glob(f"day=*/{source}.parquet"):
            if path not in written:
                path.unlink()


def _day(database: Database, day: int) -> dict[str, Columns]:
    """The rows of all sessions of a day, as columns by table."""
    sessions = _columns(TABLES["sessions"], database.rows(_SESSIONS, {"day": day}))
    lines = zip(*(sessions[name] for name in _SHARED), strict=True)
    by_name = {name: (key_of(name), *rest) for name, *rest in lines}
    if len({key for key, *_ in by_name.values()}) < len(by_name):
        raise HistoryError(database.where, "two sessions have one key", "give one another name")
    tables = {"sessions": sessions}
    for table, names in _READ.items():
        columns = _columns(("session", *names), database.rows(_join(table), {"day": day}))
        tables[table] = _SHAPED[table](columns)
    for columns in tables.values():
        rows = [by_name[name] for name in columns["session"]]
        for at, name in enumerate(_SHARED):
            columns[name] = [row[at] for row in rows]
    return tables


def _join(table: str) -> str:
    columns = ", ".join(f"t.{name}" for name in ("session", *_READ[table]))
    return (
        f"SELECT {columns} FROM {table} t JOIN sessions s ON s.session = t.session"  # noqa: S608
        f" WHERE s.day = :day AND {_COUNTS}{_ONLY.get(table, '')}"
        f" ORDER BY {_ORDER[table]}"
    )


def _columns(names: Iterable[str], rows: Sequence[tuple[Any, ...]]) -> Columns:
    listed = list(names)
    tables = zip(*rows, strict=True) if rows else [()] * len(listed)
    return {name: list(values) for name, values in zip(listed, tables, strict=True)}


def _identity(columns: Columns) -> Columns:
    return columns


def _parse_lists(texts: Sequence[str]) -> list[Any]:
    """Lists from JSON text."""
    parsed: list[Any] = json.loads(f"[{','.join(texts)}]")
    return parsed


def _matchups(columns: Columns) -> Columns:
    """A row per pair, from a row per session and kind."""
    pairs: Columns = {name: [] for name in ("session", "human", "i", "j")}
    for session, human, models in zip(
        columns["session"], columns["human"], _parse_lists(columns["models"]), strict=True
    ):
        for i, j in combinations(models, 2):
            for name, value in (("session", session), ("human", human), ("i", i), ("j", j)):
                pairs[name].append(value)
    for name in ("wins", "losses", "ties", "p_beats"):
        pairs[name] = [value for row in _parse_lists(columns[name]) for value in row]
    return pairs


def _ballots(columns: Columns) -> Columns:
    lists = ("models", "own", "shares", "grades", "positions", "chars", "criteria")
    for name in (*lists, "criterion_grades"):
        columns[name] = _parse_lists(columns[name])
    columns["own"] = [[int(each) for each in row] for row in columns["own"]]
    return columns


_SHAPED: Mapping[str, Callable[[Columns], Columns]] = {
    "standings": _identity,
    "matchups": _matchups,
    "ballots": _ballots,
    "answers": _identity,
}
