"""A history in a SQLite file.

The write-ahead log is used where the library is new enough: up to 3.51.2 two connections could, in
a rare race, damage it. Elsewhere a rollback journal, which is truncated at every commit.
"""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cache
from glob import escape
from importlib import import_module
from math import log, sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any

from witan.errors import HistoryError
from witan.history.database import Database, Params, unstorable_error
from witan.history.locks import is_lock_refusal

Function = Callable[[float], float]

MATHEMATICS: Mapping[str, Function] = MappingProxyType({"LN": log, "SQRT": sqrt})


def add_missing_functions(connection: Any, functions: Mapping[str, Function] = MATHEMATICS) -> None:
    """Give a connection those of the functions that its library does not have.

    They are NULL of NULL, and where they are not defined, as SQLite's own are.
    """
    for name, function in functions.items():
        try:
            connection.execute(f"SELECT {name}(1.0)").fetchall()
        except connection.OperationalError:
            connection.create_function(name, 1, _or_null(function), deterministic=True)


def _or_null(function: Function) -> Callable[[object], float | None]:
    def of(value: object) -> float | None:
        if not isinstance(value, int | float):
            return None
        try:
            return function(value)
        except ValueError:
            return None

    return of


BUSY_SECONDS = 60.0
"""How long a statement waits for another process; an import may hold the file that long."""

_WAL_IS_SAFE = (3, 51, 3)

_OLDEST = (3, 35, 0)
"""The first library that knows ``AS MATERIALIZED``, which sums are asked with."""

_PAUSE_SECONDS = 0.0002
"""Between two attempts to have the file for writing."""

_JOURNAL_SECONDS = 1.0
"""How long to wait for a file to be free for another journal; if it is not, that is for later."""

_COPY = "import shutil, sys; shutil.copy2(sys.argv[1], sys.argv[2])"

_HEADER_BYTES = 100

_SCHEMA_BYTES = 65_536
"""The header of a file, and its first page, which the tables are written in."""

SIDE_FILES = ("-wal", "-journal")
"""What lies beside a file and belongs to it: without it the file says something else."""

_ROOM = 65_536
"""Bytes; with less SQLite cannot lay beside a file what it needs even to read it."""


@cache
def _driver() -> Any:
    """The newer of the standard library's SQLite and the one that `pysqlite3` brings."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3
    return other if other.sqlite_version_info > sqlite3.sqlite_version_info else sqlite3


def library_version() -> str:
    """The version of the SQLite library in use."""
    return str(_driver().sqlite_version)


def safe_journal() -> str:
    """The journal mode that this library is safe with."""
    return "wal" if _driver().sqlite_version_info >= _WAL_IS_SAFE else "truncate"


def check_library(where: str, version: str) -> None:
    """Refuse a SQLite library that does not know all that a history is asked in.

    Raises
    ------
    HistoryError
        If its version is too old.
    """
    if tuple(map(int, version.split("."))) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        problem = f"needs SQLite {oldest} or newer, and this Python has {version}"
        raise HistoryError(where, problem, "install pysqlite3, or a newer Python or SQLite")


class SqliteDatabase(Database):
    """One connection to a SQLite file, which has to be there."""

    dialect = "sqlite"

    def __init__(
        self, path: Path, where: str, *, busy_seconds: float = BUSY_SECONDS, mode: str = "rw"
    ) -> None:
        super().__init__(where)
        self.path = path
        self.read_only = mode != "rw"
        self._mode = mode
        self._busy_seconds = self._waited = busy_seconds
        self._damage: HistoryError | None = None
        with self._translating():
            self._connection = _driver().connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=busy_seconds,
                cached_statements=256,
            )
        with ExitStack() as undo:
            undo.callback(self.close)
            # First of all, as it fails where the file is locked: other settings wait, and go on.
            self._pragma("schema_version")
            with self._translating():
                add_missing_functions(self._connection)
            for pragma in ("synchronous = FULL", "secure_delete = ON"):
                self._pragma(pragma)
            undo.pop_all()

    @property
    def journal(self) -> str:
        """What the file is in: another process may have chosen it."""
        [(mode,)] = self.rows("PRAGMA journal_mode")
        return str(mode).casefold()

    def choose_journal(self) -> None:
        """Put the file into the mode that this library is safe with, if nobody else is using it."""
        if self.journal != safe_journal():
            with self._lock, self._waiting(_JOURNAL_SECONDS), suppress(_driver().OperationalError):
                self._connection.execute(f"PRAGMA journal_mode = {safe_journal()}").fetchall()

    def _disconnect(self) -> None:
        self._connection.close()

    def reopen(self, wait: float) -> "SqliteDatabase":
        """Open another connection to the same place, which waits so many seconds for others."""
        return SqliteDatabase(self.path, self.where, busy_seconds=wait, mode=self._mode)

    def restore_busy_timeout(self) -> None:
        """Wait for other processes as long as statements do, once the opening is over."""
        self._busy_seconds = self._waited = BUSY_SECONDS
        self._pragma(f"busy_timeout = {round(1000 * BUSY_SECONDS)}")

    def truncate_log(self, wait: float) -> bool:
        """Take what was deleted out of the log as well."""
        with self._lock, self._waiting(wait):
            [(blocked, *_)] = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return not blocked

    def integrity_check(self) -> str | None:
        """What a check of the whole file finds wrong with it; None: nothing."""
        found = [str(line) for (line,) in self.rows("PRAGMA integrity_check(1)")]
        # Lines with asterisks are headings.
        said = [line for line in found[0].splitlines() if not line.startswith("***")]
        return None if found == ["ok"] else "; ".join(said) or found[0]

    def quick_check(self, seconds: float) -> str | None:
        """What a check of so many seconds finds wrong; None: nothing, as far as it came.

        It looks at every page, and not at what is written there.
        """
        deadline = time.monotonic() + seconds
        with self._lock:
            self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
            try:
                found = self.rows("PRAGMA quick_check(1)")
            except HistoryError as error:
                if "interrupted" in str(error.__cause__):
                    return None
                raise
            finally:
                self._connection.set_progress_handler(None, 0)
        return None if found == [("ok",)] else "its pages do not fit together"

    def _pragma(self, pragma: str) -> None:
        with self._translating():
            self._connection.execute(f"PRAGMA {pragma}").fetchall()

    def _run(self, sql: str, params: Params) -> Any:
        return self._connection.execute(sql, dict(params))

    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return int(self._connection.executemany(sql, rows).rowcount)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        if not write:
            self._connection.execute("BEGIN")
            return
        if self._damage is not None:
            raise self._damage
        self._waited = self._busy_seconds if wait is None else wait
        deadline = time.monotonic() + self._waited
        with self._waiting(0):
            while not self._begun() and time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
        self._waited = self._busy_seconds

    @contextmanager
    def _waiting(self, seconds: float) -> Iterator[None]:
        """SQLite itself waits so long for another process, and no longer."""
        self._pragma(f"busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self._pragma(f"busy_timeout = {round(1000 * self._busy_seconds)}")

    def _begun(self) -> bool:
        """Whether the file could be had for writing at once.

        SQLite itself sleeps longer and longer between its attempts, and of several writers that
        never rest all but one would starve.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except _driver().OperationalError as error:
            if not is_lock_refusal(error):
                raise
            return False
        return True

    def _end(self, *, commit: bool) -> None:
        try:
            if commit:
                self._connection.execute("COMMIT")
        finally:
            # After some failures SQLite has undone the transaction already.
            with suppress(_driver().Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _translating(self) -> Iterator[None]:
        driver = _driver()
        try:
            yield
        except (driver.Error, UnicodeDecodeError) as error:  # its own words may be damaged, too
            raise self._said(error) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise unstorable_error(self.where, error) from error

    def _said(self, error: Exception) -> HistoryError:
        code, words = getattr(error, "sqlite_errorname", ""), str(error)
        if is_disk_full_error(error, self.path):
            problem = "cannot be read or written: the disk is full"
            return HistoryError(self.where, problem, "free some space, then try again")
        for starts, said in _SENTENCES:
            if code.startswith(starts) or any(sign in words for sign in _SIGNS.get(starts, ())):
                problem, remedy = said
                told = HistoryError(
                    self.where, problem.format(words=words, wait=self._waited), remedy
                )
                if starts in _DAMAGE:
                    self._damage = told  # nothing more is written to it
                return told
        return HistoryError(self.where, f"SQLite says: {words}", "see what it says, and try again")


_SENTENCES: tuple[tuple[str, tuple[str, str]], ...] = (
    ("SQLITE_BUSY", ("is locked: another process has kept it for {wait:g} s",
                     "let that finish, then try again")),
    ("SQLITE_FULL", ("the disk is full; nothing of what was being written is kept",
                     "free some space, then try again")),
    ("SQLITE_IOERR", ("cannot be read or written: {words}",
                      "look after the disk and its free space, then try again")),
    ("SQLITE_READONLY", ("cannot be written: {words}",
                         "allow yourself to write the file and its folder")),
    ("SQLITE_CANTOPEN", ("cannot be opened: {words}",
                         "name a file in a folder that you may write")),
    ("SQLITE_NOTADB", ("is no SQLite file", "name another file, or move this one away")),
    ("SQLITE_CORRUPT", ("is damaged: {words}",
                        "run witan doctor, which copies it aside and says how to go on")),
    ("UTF-8", ("is damaged: a text in it is no text any more",
               "run witan doctor, which copies it aside and says how to go on")),
)  # fmt: skip

_DAMAGE = ("SQLITE_CORRUPT", "UTF-8")

_SIGNS = {
    "SQLITE_BUSY": ("database is locked", "database table is locked"),
    "SQLITE_FULL": ("disk is full",),
    "SQLITE_IOERR": ("disk I/O error",),
    "SQLITE_READONLY": ("readonly database",),
    "SQLITE_CANTOPEN": ("unable to open",),
    "SQLITE_NOTADB": ("not a database",),
    "SQLITE_CORRUPT": ("malformed", "no such column", "no such table", "no column named"),
    "UTF-8": ("Could not decode to UTF-8", "codec can't decode"),
}
"""How the messages read, where the driver does not hand on the code."""


def is_disk_full_error(error: BaseException | None, path: Path) -> bool:
    """Whether SQLite failed where nothing more fits on the disk: it has no word for that itself."""
    code, words = getattr(error, "sqlite_errorname", ""), str(error)
    failed = ("SQLITE_IOERR", "SQLITE_CANTOPEN")
    if not code.startswith(failed) and not any(s in words for key in failed for s in _SIGNS[key]):
        return False
    return is_full(path)


def is_full(path: Path) -> bool:
    """Whether nothing more fits on the disk that a file is on."""
    try:
        disk = os.statvfs(path.absolute().parent)
    except (OSError, AttributeError):  # Windows tells nothing of the kind
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM or (disk.f_files > 0 and not disk.f_favail)


def is_damage(error: HistoryError, path: Path) -> bool:
    """Whether an error says that the file is damaged, and not that it is something else."""
    cause = error.__cause__
    name, words = getattr(cause, "sqlite_errorname", ""), str(cause)
    if name.startswith("SQLITE_NOTADB") or "not a database" in words:
        return _was_database(path)
    signs = (*_SIGNS["SQLITE_CORRUPT"], *_SIGNS["UTF-8"])
    return name.startswith("SQLITE_CORRUPT") or any(sign in words for sign in signs)


def _was_database(path: Path) -> bool:
    """Whether a file that SQLite does not know was one of its own: what follows tells of it."""
    try:
        with path.open("rb") as file:
            start = file.read(_SCHEMA_BYTES)
    except OSError:
        return False
    return not any(start[:_HEADER_BYTES]) or b"CREATE TABLE sessions" in start


def copy_aside(path: Path, at: datetime) -> Path:
    """Copy a damaged file, its log and its journal beside it; a copy that is there is enough.

    The file itself gets its name last, so that whatever has that name is whole.

    Raises
    ------
    OSError
        If it cannot be copied; nothing of the copy is left then.
    """
    was = path.stat()
    for earlier in sorted(path.parent.glob(f"{escape(path.name)}.corrupt-*")):
        held = earlier.stat()
        if (held.st_size, int(held.st_mtime)) == (was.st_size, int(was.st_mtime)):
            return earlier
    target = path.with_name(f"{path.name}.corrupt-{at:%Y%m%d-%H%M%S}")
    parts = {}
    try:
        for suffix in (*SIDE_FILES, ""):
            source = Path(f"{path}{suffix}")
            if suffix == "" or (source.exists() and source.stat().st_size):
                part = path.with_name(f"{path.name}.copying-{os.getpid()}{suffix}")
                parts[part] = Path(f"{target}{suffix}")
                _copy(source, part)
        for part, copy in parts.items():
            part.replace(copy)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return target


def _copy(source: Path, target: Path) -> None:
    """Another process copies: closing a file lets go of every lock that this process has on it."""
    done = subprocess.run(  # noqa: S603 - our own interpreter on our own line
        [sys.executable, "-I", "-c", _COPY, os.fspath(source), os.fspath(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise OSError((done.stderr.strip().splitlines() or ["the copying process died"])[-1])
