"""The lists of what exports wrote into a lake, by which a reader tells that something is missing.

Each history that writes a lake has one, ``_exports/….json``: every file by day, with its rows.
Files may be merged, split and renamed by hand all the same: then their rows are counted.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from witan.analytics.lake.columns import DAILY
from witan.errors import HistoryError

__all__ = [
    "Held",
    "Listed",
    "Lists",
    "begin_list",
    "read_lists",
    "refuse_lost",
    "refuse_mixed",
    "write_list",
]

FOLDER = "_exports"
"""A name that begins so is no table to any reader of Parquet."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the end of a file says: its rows, and the mark of its export, if it has one."""

    rows: int
    export: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its export wrote it, by its place within the lake, which has slashes."""

    file: str
    rows: int
    export: str


@dataclass(frozen=True, slots=True)
class _List:
    """What stands in a list; it is not complete while the first export still writes."""

    complete: bool
    files: tuple[Listed, ...]


Lists = Mapping[Path, _List]
"""The lists of a lake by their paths."""


@dataclass(frozen=True, slots=True)
class _Lack:
    """A listed file that is not as it was written."""

    file: Listed
    rows: int
    """Of its rows, those that are not there; fewer than none where there are more."""
    path: Path
    """Of the list."""


def begin_list(root: Path, source: str) -> None:
    """Say that an export has begun, where none has ended yet."""
    path = _path(root, source)
    if not path.exists():
        _write(path, _List(complete=False, files=()))


def write_list(root: Path, source: str, files: Sequence[Listed]) -> None:
    """Say what an export has written, whole or not at all."""
    order = sorted(files, key=lambda one: (DAILY.index(_table(one.file)), one.file))
    _write(_path(root, source), _List(complete=True, files=tuple(order)))


def _path(root: Path, source: str) -> Path:
    return root / FOLDER / f"{source}.json"


def _table(file: str) -> str:
    return file.partition("/")[0]


def _write(path: Path, listed: _List) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(asdict(listed), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def read_lists(root: Path) -> Lists:
    """Every list of a lake by its path, to be read before the files: it is written after them.

    Raises
    ------
    HistoryError
        If one cannot be read.
    """
    return {path: _read(path) for path in sorted((root / FOLDER).glob("*.json"))}


def refuse_lost(root: Path, lists: Lists, held: Mapping[str, Held]) -> None:
    """Refuse a lake that lacks rows that an export wrote into it.

    Parameters
    ----------
    held
        By place within the lake, what there is.

    Raises
    ------
    HistoryError
        With the first file that is missing, or the rows; if a first export never ended.
    """
    for path, listed in lists.items():
        if not listed.complete:
            problem = "holds an export that never ended, or still runs"
            remedy = f"let it end, or export the history again; else delete {_place(path)}"
            raise HistoryError(str(root), problem, remedy)
    lacking = [
        lack
        for path, listed in lists.items()
        for one in listed.files
        if (lack := _lack(one, held, path)) is not None
    ]
    known = {one.file for listed in lists.values() for one in listed.files}
    others = Counter[str]()
    for file, found in held.items():
        if file not in known:
            others[_table(file)] += found.rows
    lost = [lack for table in DAILY for lack in _lost(lacking, table, others[table])]
    if lost:
        raise _error(root, lost, others)


def refuse_mixed(root: Path, lists: Lists, held: Mapping[str, Held]) -> None:
    """Refuse a day of which one table was exported with other rows than another was.

    A file that other tools wrote anew has lost its mark. Where its export is listed, its rows were
    compared by `refuse_lost`; where nothing is listed, nothing is compared.

    Raises
    ------
    HistoryError
        With a file of the day, and the table that is not of its export.
    """
    marks = {(_table(file), one.export): file for file, one in held.items() if one.export}
    listed = {
        (_table(one.file), one.export): one.file for list_ in lists.values() for one in list_.files
    }
    unmarked = {_table(file) for file, one in held.items() if one.export is None}
    for (_, mark), file in sorted(marks.items()):
        for table in (table for table in DAILY if (table, mark) not in marks):
            if lists:
                known = listed.get((table, mark))
                is_there = known is not None
            else:
                known = table + file.removeprefix(_table(file))
                is_there = table in unmarked
            beside = None if known is None else held.get(known)
            if not is_there or (beside is not None and beside.export is not None):
                raise _mixed(root, file, table)


def _mixed(root: Path, file: str, table: str) -> HistoryError:
    problem = f"holds tables of two exports: {file} has no {table} of its own"
    remedy = "let an export that is running end, or export the history again"
    return HistoryError(str(root), problem, remedy)


def _lack(one: Listed, held: Mapping[str, Held], path: Path) -> _Lack | None:
    found = held.get(one.file)
    if found is None:
        return _Lack(one, one.rows, path)
    # One with another mark was written by a later export, whose list is still to come.
    if found.rows == one.rows or found.export not in (None, one.export):
        return None
    return _Lack(one, one.rows - found.rows, path)


def _lost(lacking: Sequence[_Lack], table: str, others: int) -> list[_Lack]:
    """What of a table is nowhere: the rows of other files do not make up for it."""
    here = [lack for lack in lacking if _table(lack.file.file) == table]
    n = sum(lack.rows for lack in here)
    return [] if n in (0, others) else [lack for lack in here if lack.rows > 0]


def _error(root: Path, lost: Sequence[_Lack], others: Mapping[str, int]) -> HistoryError:
    first = lost[0]
    table = _table(first.file.file)
    n = sum(lack.rows for lack in lost if _table(lack.file.file) == table) - others[table]
    if n > 0 and others[table]:
        problem = f"lacks {_rows(n)} of {table} that an export wrote"
    else:
        whole = first.rows == first.file.rows
        place = first.file.file
        problem = (
            f"lacks {place} with its {_rows(first.rows)}"
            if whole
            else f"lacks {_rows(first.rows)} of {place}"
        )
        more = len(lost) - 1
        problem += f", and {more:,} more file{'s' if more > 1 else ''}" if more else ""
    remedy = (
        "put back what is missing, or export the history again; "
        f"if it was taken out on purpose, delete {_place(first.path)}"
    )
    return HistoryError(str(root), problem, remedy)


def _rows(n: int) -> str:
    return f"{n:,} row{'s' if n > 1 else ''}"


def _place(path: Path) -> str:
    return f"{FOLDER}/{path.name}"


def _read(path: Path) -> _List:
    try:
        return TypeAdapter(_List).validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.errors()[0]["msg"]
        problem = f"is no list of the files of an export: {reason}"
        raise HistoryError(str(path), problem, "export the history again, or delete it") from error
