"""A history that can only be read: a file, a folder or a disk that refuses writing or is full."""

import os
import stat
from contextlib import ExitStack, closing
from pathlib import Path

from witan.errors import HistoryError
from witan.history.schema import MIGRATIONS
from witan.history.sqlite import BESIDE, SqliteDatabase, is_busy
from witan.history.versions import look_into, version_of

__all__ = ["has_log", "is_whole", "may_write", "open_to_read"]


def may_write(path: Path) -> bool:
    """Whether a file may be written, and its folder, in which a journal lies beside it."""
    return all(os.access(where, os.W_OK) for where in (path, path.absolute().parent))


def has_log(path: Path) -> bool:
    """Whether a log lies beside a file: without it the file says something else."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def is_whole(path: Path) -> bool:
    """Whether a file says all by itself: beside it lies no log, and no journal of a write."""
    return not any(
        beside.exists() and beside.stat().st_size
        for beside in (Path(f"{path}{suffix}") for suffix in BESIDE)
    )


def open_to_read(path: Path, wait: float, *, is_full: bool = False) -> SqliteDatabase:
    """Open a file that may not be written; nothing is made, migrated or changed.

    Parameters
    ----------
    is_full
        It may, and is whole, but nothing more fits on its disk.

    Raises
    ------
    HistoryError
        If it is of an earlier version, or needs its log worked in first.
    """
    try:
        return _opened(path, wait, "ro&immutable=1" if is_full else _mode(path))
    except HistoryError as error:
        if not has_log(path) or is_busy(error):
            raise
        problem = "cannot be read here: its log lies beside it, and would have to be worked in"
        remedy = "copy it, and what lies beside it, to a folder that you may write"
        raise HistoryError(str(path), problem, remedy) from error


def _opened(path: Path, wait: float, mode: str) -> SqliteDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(
            closing(SqliteDatabase(path, str(path), busy_seconds=wait, mode=mode))
        )
        version = version_of(database)
        if version < len(MIGRATIONS):
            problem = (
                f"is of version {version}, this Witan reads version {len(MIGRATIONS)}, and it"
                " may not be written here"
            )
            raise HistoryError(str(path), problem, "copy it to a place that you may write")
        look_into(database)
        database.be_patient()
        stack.pop_all()
    return database


def _mode(path: Path) -> str:
    """How SQLite is to open it: as a file that nobody changes, where nobody can.

    Only then it lays nothing beside the file, and needs nothing there.
    """
    if has_log(path):
        return "ro"
    folder_is_closed = not os.access(path.absolute().parent, os.W_OK)
    by_nobody = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    return "ro&immutable=1" if folder_is_closed or by_nobody else "ro"
