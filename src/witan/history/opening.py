"""Opening of histories: created, migrated or read-only; refused if damaged."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from shlex import quote

from witan.deliberation.ports import Clock
from witan.errors import HistoryError
from witan.history.database import Database
from witan.history.location import parse_location
from witan.history.locks import LockWait, is_busy, lock_file, lock_schema
from witan.history.postgres import PostgresDatabase
from witan.history.schema import MIGRATIONS, migrate, probe_tables, read_version
from witan.history.sqlite import (
    SIDE_FILES,
    SqliteDatabase,
    check_library,
    copy_aside,
    is_damage,
    is_disk_full_error,
    library_version,
)

GLANCE_SECONDS = 0.1
"""How long an opening checks for damage; `witan doctor` checks the whole file."""


class _FailedCheckError(Exception):
    """Damage found in a file still readable."""


def open_database(
    url: str | Path, clock: Clock, lock_wait: LockWait, *, reading: bool = False
) -> Database:
    """Open the history at a location; make or migrate it if needed.

    Parameters
    ----------
    reading
        Open for reading only: nothing is made, and nothing is written to a protected file.
    """
    place = parse_location(url)
    if isinstance(place, str):
        return _open_postgresql(place, clock)
    try:
        return _open_sqlite(place, clock, lock_wait, reading=reading)
    except (OSError, ValueError) as error:  # a name too long, or with an impossible character
        raise _unwritable(place, error) from error
    except HistoryError as error:
        if not is_damage(error, place):
            raise
        lost = "is damaged: its beginning is lost"
        problem = lost if "no SQLite file" in error.problem else error.problem
        is_readable = isinstance(error.__cause__, _FailedCheckError)
        raise damage_error(place, problem, clock.now(), is_readable=is_readable) from error


def damage_error(
    path: Path, problem: str, at: datetime, *, is_readable: bool = True
) -> HistoryError:
    """Copy a damaged file aside and make the error about it.

    Parameters
    ----------
    is_readable
        The file can still be opened, and its sessions exported.
    """
    damage = problem if problem.startswith("is damaged") else f"is damaged: {problem}"
    try:
        copy = copy_aside(path, at)
    except (OSError, ValueError) as error:
        return HistoryError(
            str(path), f"{damage}; no copy could be made ({error})", "copy it, and move it away"
        )
    problem = f"{damage}; it is left as it is, and copied to {copy}"
    if not is_readable:
        remedy = (
            "none of its tables can be read: put a backup in its place; or move it away to begin a "
            "new history, and take in what you saved or exported before: witan import FILE"
        )
        return HistoryError(str(path), problem, remedy)
    there, rescued = quote(str(path)), quote(f"{path}.jsonl")
    return HistoryError(
        str(path),
        problem,
        f"put a backup in its place; or save what can be read: witan export --history {there} "
        f"-o {rescued}, move it away to begin a new history, and: witan import {rescued}",
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_truncated(path: Path, lock_wait: LockWait) -> bool:
    """Tell if a file has lost every byte, but its log has not."""

    def check(wait: float) -> bool:
        with _lock_for_making(path, wait):
            return _size(path) == 0 and has_log(path)

    if _size(path) or not has_log(path):
        return False
    # Whoever makes the file has its first pages in the log alone, until the lock is released.
    return not may_write(path) or lock_wait.run(str(path), check)


def _open_sqlite(path: Path, clock: Clock, lock_wait: LockWait, *, reading: bool) -> SqliteDatabase:
    _require_file(path)
    check_library(str(path), library_version())
    if _is_truncated(path, lock_wait):
        problem = "is damaged: it has lost every byte, and its log has not"
        raise damage_error(path, problem, clock.now())
    size = _size(path)
    if reading and size == 0:
        problem = "there is no history yet" if not path.exists() else "is empty: no history yet"
        raise HistoryError(str(path), problem, "ask a question, or name another place")
    if reading and not may_write(path):
        return lock_wait.run(str(path), lambda wait: open_read_only(path, wait))
    if size and not may_write(path):
        problem = "cannot be written: the file, its folder or the disk refuses it"
        raise HistoryError(str(path), problem, "allow yourself to write both, or only read it")
    if size:
        try:
            database = lock_wait.run(
                str(path), lambda wait: _open_current(path, wait, reading=reading)
            )
        except HistoryError as error:
            # A process that had it open would have made the files that readers share.
            if not (reading and is_disk_full_error(error.__cause__, path) and has_no_log(path)):
                raise
            return lock_wait.run(str(path), partial(open_read_only, path, is_full=True))
        if database is not None:
            return database
    _make_folder(path)
    return lock_wait.run(str(path), lambda wait: _make_or_migrate(path, clock, wait))


def _require_file(path: Path) -> None:
    """Refuse a folder, a device or a pipe, before anything is written."""
    if path.is_dir():
        raise HistoryError(str(path), "is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        problem = "is no file, but a device or a pipe, which keeps nothing"
        raise HistoryError(str(path), problem, "name a file, or do without a history")


def _open_current(path: Path, wait: float, *, reading: bool) -> SqliteDatabase | None:
    """Open a file of this version; return None for older ones."""
    with ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        if read_version(database) < len(MIGRATIONS):
            return None
        probe_tables(database)
        if not reading and (damage := database.quick_check(GLANCE_SECONDS)) is not None:
            raise HistoryError(str(path), f"is damaged: {damage}", "") from _FailedCheckError(
                "malformed"
            )
        database.choose_journal()
        database.restore_busy_timeout()
        stack.pop_all()
    return database


def _make_or_migrate(path: Path, clock: Clock, wait: float) -> SqliteDatabase:
    with _lock_for_making(path, wait), ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        # Of several processes that waited for the lock, the first one has made it.
        if read_version(database) < len(MIGRATIONS):
            database.choose_journal()
            migrate(database, clock)
        probe_tables(database)
        database.restore_busy_timeout()
        stack.pop_all()
    return database


@contextmanager
def _lock_for_making(path: Path, wait: float) -> Iterator[None]:
    try:
        with lock_file(path.with_name(f"{path.name}.lock"), wait) as locked:
            if not locked:
                problem = f"another process has been opening it for {wait:g} s"
                error = HistoryError(str(path), problem, "let that finish, then try again")
                raise error from BlockingIOError()
            path.touch(mode=0o600)
            yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _make_folder(path: Path) -> None:
    """Make the folder, private to its owner, unless it exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: Exception) -> HistoryError:
    problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return HistoryError(str(path), problem, "name a file in a folder that you may write")


def _open_postgresql(url: str, clock: Clock) -> PostgresDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(closing(PostgresDatabase(url)))
        if (encoding := database.encoding()) != "UTF8":
            problem = f"is a database in the encoding {encoding}, which does not hold every text"
            remedy = "make another: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            raise HistoryError(database.where, problem, remedy)
        if read_version(database) < len(MIGRATIONS):
            with database.transaction():
                lock_schema(database)
                migrate(database, clock)
        stack.pop_all()
    return database


def may_write(path: Path) -> bool:
    """Tell whether a file and its folder may be written."""
    return all(os.access(where, os.W_OK) for where in (path, path.absolute().parent))


def has_log(path: Path) -> bool:
    """Tell whether a write-ahead log holds part of a file's content."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def has_no_log(path: Path) -> bool:
    """Tell whether no log or journal has part of a file's content."""
    return not any(
        beside.exists() and beside.stat().st_size
        for beside in (Path(f"{path}{suffix}") for suffix in SIDE_FILES)
    )


def open_read_only(path: Path, wait: float, *, is_full: bool = False) -> SqliteDatabase:
    """Open a write-protected file; make, migrate and change nothing.

    Parameters
    ----------
    is_full
        The file may be written and needs no log, but its disk is full.

    Raises
    ------
    HistoryError
        If it is of an earlier version, or its log has to be applied first.
    """
    try:
        return _open_in_mode(path, wait, "ro&immutable=1" if is_full else _mode(path))
    except HistoryError as error:
        if not has_log(path) or is_busy(error):
            raise
        problem = "cannot be read here: its log lies beside it, and would have to be worked in"
        remedy = "copy it, and what lies beside it, to a folder that you may write"
        raise HistoryError(str(path), problem, remedy) from error


def _open_in_mode(path: Path, wait: float, mode: str) -> SqliteDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(
            closing(SqliteDatabase(path, str(path), busy_seconds=wait, mode=mode))
        )
        version = read_version(database)
        if version < len(MIGRATIONS):
            problem = (
                f"is of version {version}, this Witan reads version {len(MIGRATIONS)}, and it"
                " may not be written here"
            )
            raise HistoryError(str(path), problem, "copy it to a place that you may write")
        probe_tables(database)
        database.restore_busy_timeout()
        stack.pop_all()
    return database


def _mode(path: Path) -> str:
    """Return the mode to open a file in: immutable if nobody writes.

    Only then SQLite makes no files beside it.
    """
    if has_log(path):
        return "ro"
    folder_is_closed = not os.access(path.absolute().parent, os.W_OK)
    is_protected = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    return "ro&immutable=1" if folder_is_closed or is_protected else "ro"
