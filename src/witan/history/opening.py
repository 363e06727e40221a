"""Opening a history: its place, a lock while it is made or migrated, and what is refused.

Migrations are numbered and only go forward; each is one transaction, and the history itself keeps
which it has had. A history of a later version is left as it is.
"""

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
from witan.history.locks import LockWait, is_busy, lock_file
from witan.history.postgres import PostgresDatabase
from witan.history.schema import MIGRATIONS, probe_tables, read_version
from witan.history.sqlite import (
    SIDE_FILES,
    SqliteDatabase,
    check_library,
    copy_aside,
    is_damage,
    is_disk_full_error,
    library_version,
)
from witan.version import __version__

_ADVISORY_KEY = 0x77_69_74_61_6E
"""The key of the advisory lock that openers of a PostgreSQL history take: "witan" in ASCII."""

GLANCE_SECONDS = 0.1
"""How long an opening looks for damage; a check of the whole file is `witan doctor`'s."""

_TABLE = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at_us BIGINT NOT NULL, witan TEXT NOT NULL)
"""


class _Unsound(Exception):
    """A check found a file damaged."""


def open_database(
    url: str | Path, clock: Clock, lock_wait: LockWait, *, reading: bool = False
) -> Database:
    """Open the history at a place, and make or migrate it where that is needed.

    Parameters
    ----------
    reading
        It is only read: it is not made, and where it cannot be written, nothing is.
    """
    place = parse_location(url)
    if isinstance(place, str):
        return _open_postgresql(place, clock)
    try:
        return _open_sqlite(place, clock, lock_wait, reading=reading)
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        raise _no_place(place, error) from error
    except HistoryError as error:
        if not is_damage(error, place):
            raise
        lost = "is damaged: its beginning is lost"
        problem = lost if "no SQLite file" in error.problem else error.problem
        is_readable = isinstance(error.__cause__, _Unsound)
        raise damage_error(place, problem, clock.now(), is_readable=is_readable) from error


def damage_error(
    path: Path, problem: str, at: datetime, *, is_readable: bool = True
) -> HistoryError:
    """Copy a damaged file aside, leave it where it is, and make the error that says so.

    Parameters
    ----------
    is_readable
        The file can still be opened to be read, and its sessions exported.
    """
    found = problem if problem.startswith("is damaged") else f"is damaged: {problem}"
    try:
        copy = copy_aside(path, at)
    except (OSError, ValueError) as error:
        return HistoryError(
            str(path), f"{found}; no copy could be made ({error})", "copy it, and move it away"
        )
    problem = f"{found}; it is left as it is, and copied to {copy}"
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


def _open_sqlite(path: Path, clock: Clock, lock_wait: LockWait, *, reading: bool) -> SqliteDatabase:
    _refuse_other(path)
    check_library(str(path), library_version())
    size = path.stat().st_size if path.exists() else 0
    if size == 0 and has_log(path):
        problem = "is damaged: it has lost every byte, and its log has not"
        raise damage_error(path, problem, clock.now())
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
            opened = lock_wait.run(str(path), lambda wait: _opened(path, wait, reading=reading))
        except HistoryError as error:
            # Whoever has it open has laid there what a reader shares, so that nobody has.
            if not (reading and is_disk_full_error(error.__cause__, path) and has_no_log(path)):
                raise
            full = partial(open_read_only, path, is_full=True)
            return lock_wait.run(str(path), full)
        if opened is not None:
            return opened
    _make_place(path)
    return lock_wait.run(str(path), lambda wait: _made(path, clock, wait))


def _refuse_other(path: Path) -> None:
    """Refuse what is there and no file; nothing is laid beside it."""
    if path.is_dir():
        raise HistoryError(str(path), "is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        problem = "is no file, but a device or a pipe, which keeps nothing"
        raise HistoryError(str(path), problem, "name a file, or do without a history")


def _opened(path: Path, wait: float, *, reading: bool) -> SqliteDatabase | None:
    """The history in a file, if it is of this version; to be written only if it is sound."""
    with ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        if read_version(database) < len(MIGRATIONS):
            return None
        probe_tables(database)
        if not reading and (found := database.quick_check(GLANCE_SECONDS)) is not None:
            raise HistoryError(str(path), f"is damaged: {found}", "") from _Unsound("malformed")
        database.choose_journal()
        database.restore_busy_timeout()
        stack.pop_all()
    return database


def _made(path: Path, clock: Clock, wait: float) -> SqliteDatabase:
    with _alone(path, wait), ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        # Several openers may have waited for the lock: the first one made it.
        if read_version(database) < len(MIGRATIONS):
            database.choose_journal()
            _migrate(database, clock)
        probe_tables(database)
        database.restore_busy_timeout()
        stack.pop_all()
    return database


@contextmanager
def _alone(path: Path, wait: float) -> Iterator[None]:
    try:
        with lock_file(path.with_name(f"{path.name}.lock"), wait) as held:
            if not held:
                problem = f"another process has been opening it for {wait:g} s"
                error = HistoryError(str(path), problem, "let that finish, then try again")
                raise error from BlockingIOError()
            path.touch(mode=0o600)
            yield
    except OSError as error:
        raise _no_place(path, error) from error


def _make_place(path: Path) -> None:
    """The folder, for its owner alone where it is made here."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _no_place(path, error) from error


def _no_place(path: Path, error: Exception) -> HistoryError:
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
                # Held to the end of the transaction, and so by one opener at a time.
                database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _ADVISORY_KEY})
                _migrate(database, clock)
        stack.pop_all()
    return database


def _migrate(database: Database, clock: Clock) -> None:
    """Take the history to this version, each step as one."""
    kinds = {"{bytes}": "BLOB" if database.dialect == "sqlite" else "BYTEA"}
    for version in range(read_version(database) + 1, len(MIGRATIONS) + 1):
        with database.transaction():
            if version == 1:
                database.execute(_TABLE)
            for statement in MIGRATIONS[version - 1]:
                written = statement
                for mark, kind in kinds.items():
                    written = written.replace(mark, kind)
                database.execute(written)
            at_us = round(clock.now().timestamp() * 1_000_000)
            database.execute(
                "INSERT INTO migrations (version, at_us, witan) VALUES (:version, :at_us, :witan)",
                {"version": version, "at_us": at_us, "witan": __version__},
            )


def may_write(path: Path) -> bool:
    """Whether a file may be written, and its folder, in which a journal lies beside it."""
    return all(os.access(where, os.W_OK) for where in (path, path.absolute().parent))


def has_log(path: Path) -> bool:
    """Whether a log lies beside a file: without it the file says something else."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def has_no_log(path: Path) -> bool:
    """Whether a file says all by itself: beside it lies no log, and no journal of a write."""
    return not any(
        beside.exists() and beside.stat().st_size
        for beside in (Path(f"{path}{suffix}") for suffix in SIDE_FILES)
    )


def open_read_only(path: Path, wait: float, *, is_full: bool = False) -> SqliteDatabase:
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
        return _open_read_only(path, wait, "ro&immutable=1" if is_full else _mode(path))
    except HistoryError as error:
        if not has_log(path) or is_busy(error):
            raise
        problem = "cannot be read here: its log lies beside it, and would have to be worked in"
        remedy = "copy it, and what lies beside it, to a folder that you may write"
        raise HistoryError(str(path), problem, remedy) from error


def _open_read_only(path: Path, wait: float, mode: str) -> SqliteDatabase:
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
    """How SQLite is to open it: as a file that nobody changes, where nobody can.

    Only then it lays nothing beside the file, and needs nothing there.
    """
    if has_log(path):
        return "ro"
    folder_is_closed = not os.access(path.absolute().parent, os.W_OK)
    by_nobody = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    return "ro&immutable=1" if folder_is_closed or by_nobody else "ro"
