"""Opening a lake: which files it has, and whether each of them can be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from witan.analytics.lake.columns import DAILY, EXPORT, TABLES, arrow, schema_of
from witan.analytics.lake.lists import Held, Lists, read_lists, refuse_lost, refuse_mixed
from witan.core.stats.sums import Names
from witan.core.window import Window
from witan.errors import HistoryError

__all__ = ["Lake"]

BALLOTS_AT_ONCE = 400_000
"""Ballots that a sum over their pairs and peers takes in at a time; what bounds its memory."""


@dataclass(frozen=True, slots=True)
class _Day:
    day: date
    ballots: int


class Lake:
    """A folder of Parquet files in the columns of `TABLES`.

    Parameters
    ----------
    folder
        It holds ``sessions/day=…/*.parquet`` and the other tables.
    ballots_at_once
        How many ballots a span is to have at most, as far as can be told from the days.

    Raises
    ------
    HistoryError
        If the folder is no lake, or holds no session; if a file is missing, is damaged, has other
        columns, or is of another export than the tables beside it; the file is named.
    MissingExtra
        Without pyarrow.
    """

    def __init__(self, folder: str | Path, *, ballots_at_once: int = BALLOTS_AT_ONCE) -> None:
        arrow()
        self._at_once = ballots_at_once
        self.folder = Path(folder)
        lists = read_lists(self.folder)
        self.files = self._found(lists)
        days: dict[date, int] = {}
        held: dict[str, Held] = {}
        for table, paths in self.files.items():
            for path in paths:
                checked = _checked(path, table)
                day = _day_of(path)
                if table == "ballots" and day is not None:
                    days[day] = days.get(day, 0) + checked.rows
                if table in DAILY:
                    held[path.relative_to(self.folder).as_posix()] = checked
        refuse_lost(self.folder, lists, held)
        refuse_mixed(self.folder, lists, held)
        self._days = [_Day(day, ballots) for day, ballots in sorted(days.items())]

    def _found(self, lists: Lists) -> dict[str, tuple[Path, ...]]:
        """The files of each table, of which each has some."""
        patterns = {table: "day=*/*.parquet" if table in DAILY else "*.parquet" for table in TABLES}
        files = {
            table: tuple(sorted((self.folder / table).glob(pattern)))
            for table, pattern in patterns.items()
        }
        missing = [table for table, paths in files.items() if not paths]
        if missing == list(DAILY):
            refuse_lost(self.folder, lists, {})
            problem = "is a lake that holds no session yet"
            remedy = "ask a question, or import ballots, then export the history again"
            raise HistoryError(str(self.folder), problem, remedy)
        for table in missing:
            problem = f"is no lake: it has no {table}/{patterns[table]}"
            remedy = "name a folder that witan export wrote as a lake"
            raise HistoryError(str(self.folder), problem, remedy)
        return files

    def names(self) -> Names:
        """Every code and its name."""
        held: dict[int, str] = {}
        for path in self.files["names"]:
            table = _read(path)
            pairs = zip(table["code"].to_pylist(), table["name"].to_pylist(), strict=True)
            for code, name in pairs:
                if held.setdefault(code, name) != name:
                    problem = f"{name!r} and {held[code]!r} share a code"
                    raise HistoryError(str(path), problem, "give one of them another name")
        return Names(held)

    def spans(self, window: Window) -> tuple[Window, ...]:
        """The window cut into ones of few enough ballots each.

        They cover it without a gap whatever the folders are called, so that each session is in one.
        """
        cuts: list[datetime] = []
        held = 0
        for day in self._days:
            midnight = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC)
            pieces = -(-day.ballots // self._at_once)
            if held + day.ballots > self._at_once:
                cuts += [midnight + timedelta(days=1) * piece / pieces for piece in range(pieces)]
                held = 0
            held += day.ballots
        return _cut(window, cuts)

    def refuse_doubles(self) -> None:
        """Refuse a lake of which a session would be counted twice: two histories imported it.

        Raises
        ------
        HistoryError
            With the name of one such session, and the files that hold it.
        """
        twice = self._twice()
        # Held for another reading, which an engine does by itself.
        arrow().default_memory_pool().release_unused()
        if twice:
            name = min(twice)
            n = f"{len(twice):,} session{'s' if len(twice) > 1 else ''}"
            files = " and ".join(twice[name])
            problem = f"holds {n} more than once: {name!r} is in {files}"
            remedy = "export the histories to folders of their own, or forget it in one of them"
            raise HistoryError(str(self.folder), problem, remedy)

    def _twice(self) -> dict[str, list[str]]:
        """Sessions that stand in several rows, and the files of each."""
        keys = [_read(path, ["session"])["session"].to_numpy() for path in self.files["sessions"]]
        held = np.concatenate(keys)
        held.sort()
        several = held[1:][held[1:] == held[:-1]]
        twice: dict[str, list[str]] = {}
        for path, mine in zip(self.files["sessions"], keys, strict=True):
            if several.size and np.isin(mine, several).any():
                named = _read(path, ["name"])["name"].to_pylist()
                for at in np.flatnonzero(np.isin(mine, several)).tolist():
                    place = path.relative_to(self.folder).as_posix()
                    twice.setdefault(named[at], []).append(place)
        return twice

    def damaged(self) -> HistoryError | None:
        """Read every file to its end, and say which one cannot be; None: each can."""
        for path in (path for paths in self.files.values() for path in paths):
            try:
                file = arrow().parquet.ParquetFile(path)
                with file:
                    for _ in file.iter_batches():
                        pass
            except (OSError, arrow().ArrowException) as error:
                return _damage(path, error)
        return None


def _cut(window: Window, cuts: Iterable[datetime]) -> tuple[Window, ...]:
    ends: list[datetime | None] = [window.since]
    for cut in cuts:
        since, until = ends[-1], window.until
        if (since is None or since < cut) and (until is None or cut < until):
            ends.append(cut)
    ends.append(window.until)
    return tuple(Window(since, until, window.category) for since, until in pairwise(ends))


def _day_of(path: Path) -> date | None:
    """The day that the folder of a file is called after; None: no day."""
    try:
        return date.fromisoformat(path.parent.name.removeprefix("day="))
    except ValueError:
        return None


def _checked(path: Path, table: str) -> Held:
    """What the end of a file says, which has the columns of its table."""
    try:
        with arrow().parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, arrow().ArrowException) as error:
        raise _damage(path, error) from error
    for field in schema_of(table):
        found: Sequence[int] = schema.get_all_field_indices(field.name)
        if len(found) != 1:
            problem = f"has no column {field.name!r}" if not found else (
                f"has the column {field.name!r} {len(found)} times"
            )  # fmt: skip
            raise HistoryError(str(path), problem, _REMEDY)
        held = schema.field(found[0]).type
        if not _alike(held, field.type):
            problem = f"has {held} in the column {field.name!r}, where {field.type} is expected"
            raise HistoryError(str(path), problem, _REMEDY)
    mark = dict(schema.metadata or {}).get(EXPORT.encode())
    return Held(int(rows), None if mark is None else mark.decode(errors="replace"))


_REMEDY = "take the file out of the lake, or write the lake again"


def _alike(held: Any, wanted: Any) -> bool:
    """Of one type; how a list names its elements does not matter."""
    types = arrow().types
    if types.is_list(held) and types.is_list(wanted):
        return _alike(held.value_type, wanted.value_type)
    return bool(held == wanted)


def _read(path: Path, columns: list[str] | None = None) -> Any:
    try:
        return arrow().parquet.ParquetFile(path, pre_buffer=False).read(columns, use_threads=False)
    except (OSError, arrow().ArrowException) as error:
        raise _damage(path, error) from error


def _damage(path: Path, error: Exception) -> HistoryError:
    problem = f"is no readable Parquet file: {str(error).splitlines()[0]}"
    return HistoryError(str(path), problem, _REMEDY)
