"""The engines of a history: a SQLite file, or PostgreSQL through psycopg.

The journal of a file is a write-ahead log where the library is new enough: up to 3.51.2 a rare race
of two connections could damage it. Elsewhere it is a rollback journal, truncated at every commit.
"""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import cache, lru_cache
from glob import escape
from importlib import import_module
from itertools import combinations
from math import log, sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from witan.errors import HistoryError, MissingExtra
from witan.history.database import (
    NO_PARAMS,
    Database,
    Params,
    is_lock_refusal,
    percent_style,
    unstorable_error,
)
from witan.history.location import redact_password

Function = Callable[[float], float]

MATHEMATICS: Mapping[str, Function] = MappingProxyType({"LN": log, "SQRT": sqrt})


def add_missing_functions(connection: Any, functions: Mapping[str, Function] = MATHEMATICS) -> None:
    """Define functions missing from a connection's library.

    As SQLite's own, they return NULL for NULL and where they are undefined.
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


def list_pairs(models: str, *counts: str) -> str:
    """List the pairs of a session as rows: first model, second model, counts.

    A function of the queries: SQLite has none that reads several JSON lists side by side. The lists
    are of numbers, so that commas part their items.
    """
    pairs = [*combinations(models[1:-1].split(","), 2)]
    if not pairs:
        return "[]"
    rows = zip(map(",".join, pairs), *(text[1:-1].split(",") for text in counts), strict=True)
    return f"[[{'],['.join(map(','.join, rows))}]]"


@lru_cache(maxsize=4)
def list_rows(*lists: str) -> str:
    """List the items of several lists side by side, as rows.

    A function of the queries, which call it again for every candidate of a ballot; of numbers as
    those of `list_pairs`.
    """
    if lists[0] == "[]":
        return "[]"
    rows = zip(*(text[1:-1].split(",") for text in lists), strict=True)
    return f"[[{'],['.join(map(','.join, rows))}]]"


BUSY_SECONDS = 60.0
"""Seconds that a statement waits for a lock; an import may keep the file locked that long."""

_WAL_IS_SAFE = (3, 51, 3)

_OLDEST = (3, 35, 0)
"""The first version with ``AS MATERIALIZED``, which the sums are queried with."""

_PAUSE_SECONDS = 0.0002
"""Seconds between two attempts to lock the file for writing."""

_JOURNAL_SECONDS = 1.0
"""Seconds to wait before changing the journal mode; if others use the file, it stays."""

_COPY = "import shutil, sys; shutil.copy2(sys.argv[1], sys.argv[2])"

_HEADER_BYTES = 100

_SCHEMA_BYTES = 65_536
"""Sizes of a file's header and of its largest first page, which holds the tables' definitions."""

SIDE_FILES = ("-wal", "-journal")
"""Suffixes of the log and the journal, which hold part of a file's content."""

_ROOM = 65_536
"""Free bytes that SQLite needs for the files that it makes even to read one."""


@cache
def _driver() -> Any:
    """Import the newer SQLite of the standard library and `pysqlite3`."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3
    return other if other.sqlite_version_info > sqlite3.sqlite_version_info else sqlite3


def library_version() -> str:
    """Return the version of the SQLite library in use."""
    return str(_driver().sqlite_version)


def safe_journal() -> str:
    """Return the journal mode safe with this library."""
    return "wal" if _driver().sqlite_version_info >= _WAL_IS_SAFE else "truncate"


def check_library(location: str, version: str) -> None:
    """Refuse a SQLite library without statements used by the history."""
    if tuple(map(int, version.split("."))) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        problem = f"needs SQLite {oldest} or newer, and this Python has {version}"
        raise HistoryError(location, problem, "install pysqlite3, or a newer Python or SQLite")


class SqliteDatabase(Database):
    """A connection to an existing SQLite file."""

    dialect = "sqlite"

    def __init__(
        self, path: Path, location: str, *, busy_seconds: float = BUSY_SECONDS, mode: str = "rw"
    ) -> None:
        super().__init__(location)
        self.path = path
        self.read_only = mode != "rw"
        self._mode = mode
        self._busy_seconds = self._wait_seconds = busy_seconds
        self._damage: HistoryError | None = None
        with self._translate_errors():
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
            # First, because it fails where the file is locked; the other settings only wait.
            self._pragma("schema_version")
            with self._translate_errors():
                add_missing_functions(self._connection)
                for function in (list_pairs, list_rows):
                    name = function.__name__
                    self._connection.create_function(name, -1, function, deterministic=True)
            for pragma in ("synchronous = FULL", "secure_delete = ON"):
                self._pragma(pragma)
            undo.pop_all()

    @property
    def journal(self) -> str:
        """The file's journal mode, possibly chosen by another process."""
        [(mode,)] = self.rows("PRAGMA journal_mode")
        return str(mode).casefold()

    def choose_journal(self) -> None:
        """Set the safe journal mode, unless others use the file."""
        if self.journal != safe_journal():
            with (
                self._lock,
                self._busy_timeout(_JOURNAL_SECONDS),
                suppress(_driver().OperationalError),
            ):
                self._connection.execute(f"PRAGMA journal_mode = {safe_journal()}").fetchall()

    def _disconnect(self) -> None:
        self._connection.close()

    def reopen(self, wait: float) -> "SqliteDatabase":
        """Open another connection with `wait` seconds of patience for locks."""
        self._require_open()
        return SqliteDatabase(self.path, self.location, busy_seconds=wait, mode=self._mode)

    def restore_busy_timeout(self) -> None:
        """Wait for locks as long as statements do, from now on."""
        self._busy_seconds = self._wait_seconds = BUSY_SECONDS
        self._pragma(f"busy_timeout = {round(1000 * BUSY_SECONDS)}")

    def truncate_log(self, wait: float) -> bool:
        """Remove deleted rows from the log; false if a reader blocked it."""
        with self._lock, self._busy_timeout(wait):
            [(blocked, *_)] = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return not blocked

    def integrity_check(self) -> str | None:
        """Check the whole file; return the first damage found, or None."""
        lines = [str(line) for (line,) in self.rows("PRAGMA integrity_check(1)")]
        # Lines with asterisks are headings.
        damage = [line for line in lines[0].splitlines() if not line.startswith("***")]
        return None if lines == ["ok"] else "; ".join(damage) or lines[0]

    def quick_check(self, seconds: float) -> str | None:
        """Check the pages, not their content, within `seconds`; return damage or None."""
        deadline = time.monotonic() + seconds
        with self._lock:
            self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 1000)
            try:
                result = self.rows("PRAGMA quick_check(1)")
            except HistoryError as error:
                if "interrupted" in str(error.__cause__):
                    return None
                raise
            finally:
                self._connection.set_progress_handler(None, 0)
        return None if result == [("ok",)] else "its pages do not fit together"

    def _pragma(self, pragma: str) -> None:
        with self._translate_errors():
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
        self._wait_seconds = self._busy_seconds if wait is None else wait
        deadline = time.monotonic() + self._wait_seconds
        with self._busy_timeout(0):
            while not self._try_begin() and time.monotonic() < deadline:
                time.sleep(_PAUSE_SECONDS)
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
        self._wait_seconds = self._busy_seconds

    @contextmanager
    def _busy_timeout(self, seconds: float) -> Iterator[None]:
        """Set SQLite's own wait for locks, for the block."""
        self._pragma(f"busy_timeout = {round(1000 * seconds)}")
        try:
            yield
        finally:
            self._pragma(f"busy_timeout = {round(1000 * self._busy_seconds)}")

    def _try_begin(self) -> bool:
        """Begin to write, or return false because another process does.

        SQLite itself sleeps longer and longer between its attempts, so all but one of several busy
        writers would starve.
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
            # After some failures SQLite has rolled the transaction back already.
            with suppress(_driver().Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        driver = _driver()
        try:
            yield
        except (driver.Error, UnicodeDecodeError) as error:  # the message may be damaged, too
            raise self._error_of(error) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise unstorable_error(self.location, error) from error

    def _error_of(self, error: Exception) -> HistoryError:
        code, words = getattr(error, "sqlite_errorname", ""), str(error)
        if is_disk_full_error(error, self.path):
            problem = "cannot be read or written: the disk is full"
            return HistoryError(self.location, problem, "free some space, then try again")
        for prefix, (sentence, remedy) in _SENTENCES:
            if code.startswith(prefix) or any(sign in words for sign in _SIGNS.get(prefix, ())):
                problem = sentence.format(words=words, wait=self._wait_seconds)
                history_error = HistoryError(self.location, problem, remedy)
                if prefix in _DAMAGE:
                    self._damage = history_error  # nothing more is written to it
                return history_error
        return HistoryError(
            self.location, f"SQLite says: {words}", "see what it says, and try again"
        )


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
"""Parts of the messages, for drivers that do not report the code."""


def is_disk_full_error(error: BaseException | None, path: Path) -> bool:
    """Tell whether SQLite failed for lack of space, whatever its code."""
    code, words = getattr(error, "sqlite_errorname", ""), str(error)
    failed = ("SQLITE_IOERR", "SQLITE_CANTOPEN")
    if not code.startswith(failed) and not any(s in words for key in failed for s in _SIGNS[key]):
        return False
    return is_full(path)


def is_full(path: Path) -> bool:
    """Tell whether the disk of a file is full."""
    try:
        disk = os.statvfs(path.absolute().parent)
    except (OSError, AttributeError):  # not on Windows
        return False
    return disk.f_bavail * disk.f_frsize < _ROOM or (disk.f_files > 0 and not disk.f_favail)


def is_damage(error: HistoryError, path: Path) -> bool:
    """Tell whether an error reports damage, not a file of another kind."""
    cause = error.__cause__
    name, words = getattr(cause, "sqlite_errorname", ""), str(cause)
    if name.startswith("SQLITE_NOTADB") or "not a database" in words:
        return _was_database(path)
    signs = (*_SIGNS["SQLITE_CORRUPT"], *_SIGNS["UTF-8"])
    return name.startswith("SQLITE_CORRUPT") or any(sign in words for sign in signs)


def _was_database(path: Path) -> bool:
    """Tell from the first page whether a damaged file was a history."""
    try:
        with path.open("rb") as file:
            start = file.read(_SCHEMA_BYTES)
    except OSError:
        return False
    return not any(start[:_HEADER_BYTES]) or b"CREATE TABLE sessions" in start


def copy_aside(path: Path, at: datetime) -> Path:
    """Copy a damaged file with its log and journal, unless copied before.

    The copy of the file itself gets its name last, so that it is complete once it has that name.
    """
    original = path.stat()
    for earlier in sorted(path.parent.glob(f"{escape(path.name)}.corrupt-*")):
        copy = earlier.stat()
        if (copy.st_size, int(copy.st_mtime)) == (original.st_size, int(original.st_mtime)):
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
        for part, name in parts.items():
            part.replace(name)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return target


def _copy(source: Path, target: Path) -> None:
    """Copy in another process: closing a file here would drop its locks."""
    process = subprocess.run(  # noqa: S603 - our own interpreter on our own line
        [sys.executable, "-I", "-c", _COPY, os.fspath(source), os.fspath(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise OSError((process.stderr.strip().splitlines() or ["the copying process died"])[-1])


RECONNECT_SECONDS = 5.0
"""Seconds of attempts to reconnect; a server that restarts is back soon."""

_RECONNECT_PAUSE = 0.1

_GONE = ("57P01", "57P02", "57P03")
"""Codes of a server that is stopping, has crashed, or is starting up."""

COPIED_ROWS = 100
"""Rows from which on COPY takes them faster than an INSERT each."""

CONNECT_SECONDS = 10
"""Seconds that a server may take to answer, unless the URL has a ``connect_timeout``."""


class PostgresDatabase(Database):
    """A connection to PostgreSQL with automatic reconnection."""

    dialect = "postgresql"
    locking = " FOR UPDATE"
    sharing = " FOR KEY SHARE"

    def __init__(self, url: str) -> None:
        super().__init__(redact_password(url))
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a history in PostgreSQL", "postgres") from None
        self._psycopg = psycopg
        self._url = url
        self._connection = self._wait_for_server(CONNECT_SECONDS, is_reconnect=False)

    @property
    def journal(self) -> str:
        """The journal mode: ``postgresql``."""
        return "postgresql"

    def _disconnect(self) -> None:
        self._connection.close()

    def reopen(self, wait: float) -> "PostgresDatabase":  # noqa: ARG002 - each transaction sets it
        """Open another connection."""
        self._require_open()
        return PostgresDatabase(self._url)

    def truncate_log(self, wait: float) -> bool:  # noqa: ARG002 - nobody blocks it
        """Leave deleted rows to the server's vacuum."""
        return True

    def encoding(self) -> str:
        """Return the encoding of this database."""
        [(encoding,)] = self.rows(
            "SELECT pg_encoding_to_char(encoding) FROM pg_database"
            " WHERE datname = current_database()"
        )
        return str(encoding)

    def _wait_for_server(self, seconds: float, *, is_reconnect: bool) -> Any:
        """Connect, waiting for a server to start or return."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._connect()
            except self._psycopg.Error as error:
                starts = error.sqlstate in _GONE or "is starting up" in str(error)
                refusal = self._refusal(error)
                passes = isinstance(error, self._psycopg.OperationalError) and (
                    starts or (is_reconnect and "no connection" in refusal.problem)
                )
                if not passes or time.monotonic() >= deadline:
                    raise refusal from (ConnectionError() if passes else None)
            time.sleep(_RECONNECT_PAUSE)

    def _connect(self) -> Any:
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.types.numeric import FloatLoader

        options = conninfo_to_dict(self._url)
        options.setdefault("connect_timeout", CONNECT_SECONDS)
        options.setdefault("application_name", "witan")
        # A statement outside a transaction commits at once, and leaves none open.
        connection = self._psycopg.connect(autocommit=True, **options)  # type: ignore[arg-type]
        connection.adapters.register_loader("numeric", FloatLoader)
        return connection

    def _refusal(self, error: Exception) -> HistoryError:
        words = self._redact(str(error))
        if "password" in words and "authentication" in words:
            return HistoryError(
                self.location,
                "the server refuses the user or the password",
                "put the right ones into the URL, or the password into PGPASSWORD or ~/.pgpass",
            )
        if isinstance(error, self._psycopg.OperationalError):
            return HistoryError(
                self.location,
                f"no connection: {words}",
                "see that the server runs and that the database exists",
            )
        expected = "write it as postgresql://user@host:5432/database"
        return HistoryError(self.location, "is no address of a PostgreSQL database", expected)

    def _redact(self, words: str) -> str:
        text = " ".join(words.split())
        with suppress(ValueError):
            secret = urlsplit(self._url).password
            for form in filter(None, (secret, secret and unquote(secret))):
                text = text.replace(form, "***")
        return text

    def _ensure_connection(self) -> Any:
        if self._depth == 0 and self._connection.closed:
            self._connection = self._wait_for_server(RECONNECT_SECONDS, is_reconnect=True)
        return self._connection

    def _run_with_reconnect(self, sql: str, params: Params) -> Any:
        """Run a read-only statement; reconnect and repeat if the connection is lost."""
        try:
            return self._ensure_connection().execute(sql, params)
        except self._psycopg.OperationalError:
            if self._depth or not self._connection.closed:
                raise
            return self._ensure_connection().execute(sql, params)

    def _run(self, sql: str, params: Params) -> Any:
        statement, values = percent_style(sql), dict(params)
        if sql.lstrip().startswith("SELECT"):
            return self._run_with_reconnect(statement, values)
        return self._ensure_connection().execute(statement, values)

    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        with self._ensure_connection().cursor() as cursor:
            cursor.executemany(percent_style(sql).replace("?", "%s"), rows)
            return int(cursor.rowcount)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        if len(rows) < COPIED_ROWS:
            return super()._insert(table, columns, rows)
        with self._ensure_connection().cursor() as cursor:
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return int(cursor.rowcount)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        how = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        begin = f"BEGIN ISOLATION LEVEL {how}"
        if wait is not None:
            begin += f"; SET LOCAL lock_timeout = {max(1, round(1000 * wait))}"
        self._run_with_reconnect(begin, NO_PARAMS)

    def _end(self, *, commit: bool) -> None:
        if commit:
            self._connection.execute("COMMIT")
            return
        with suppress(self._psycopg.Error):
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        errors = self._psycopg
        try:
            yield
        except errors.errors.DiskFull as error:
            problem = "the server's disk is full; nothing of what was being written is kept"
            raise HistoryError(
                self.location, problem, "free some space there, and try again"
            ) from (error)
        except errors.errors.LockNotAvailable as error:
            problem = "is locked: another connection keeps what is to be written"
            raise HistoryError(self.location, problem, "let that finish, then try again") from error
        except errors.OperationalError as error:
            lost = self._connection.closed or error.sqlstate in _GONE
            raise HistoryError(
                self.location,
                f"the connection failed: {self._redact(str(error))}",
                "see that the server runs, then try again",
            ) from (ConnectionError() if lost else error)
        except (UnicodeEncodeError, errors.DataError) as error:
            raise unstorable_error(self.location, error) from error
        except errors.Error as error:
            problem = f"PostgreSQL says: {self._redact(str(error))}"
            raise HistoryError(self.location, problem, "see what it says, and try again") from error
