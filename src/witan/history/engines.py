"""The engines of a history: a SQLite file, or PostgreSQL through psycopg.

The journal of a file is a write-ahead log if the library is newer than 3.51.2, because earlier ones
may damage it in a rare race. Otherwise it is a rollback journal, truncated at every commit.
"""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache
from glob import escape
from importlib import import_module
from itertools import combinations
from math import log, sqrt
from pathlib import Path
from threading import Event, Lock, Thread
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from witan.errors import HistoryError, MissingExtra
from witan.history.database import (
    LOCK_SECONDS,
    NO_PARAMS,
    QUIET_SECONDS,
    Database,
    Params,
    is_lock_refusal,
    is_recording,
    machine_name,
    own_machine,
    own_process,
    percent_style,
    translating,
    unstorable_error,
    waiting_text,
)
from witan.history.location import redact_password

Function = Callable[[float], float]

MATHEMATICS: Mapping[str, Function] = MappingProxyType({"LN": log, "SQRT": sqrt})


def add_missing_functions(connection: Any, functions: Mapping[str, Function] = MATHEMATICS) -> None:
    """Define functions missing from a connection's library.

    Like SQLite's own, they return NULL for NULL and for undefined values.
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
    """List a session's pairs as rows: first model, second model, counts.

    Queries call this function, because SQLite cannot read several JSON lists side by side. The
    lists contain only numbers, so commas separate their items.
    """
    pairs = [*combinations(models[1:-1].split(","), 2)]
    if not pairs:
        return "[]"
    rows = zip(map(",".join, pairs), *(text[1:-1].split(",") for text in counts), strict=True)
    return f"[[{'],['.join(map(','.join, rows))}]]"


@lru_cache(maxsize=4)
def list_rows(*lists: str) -> str:
    """List the items of several lists side by side, as rows.

    Queries call this function for every candidate of a ballot; the lists contain only numbers, as
    in `list_pairs`.
    """
    if lists[0] == "[]":
        return "[]"
    rows = zip(*(text[1:-1].split(",") for text in lists), strict=True)
    return f"[[{'],['.join(map(','.join, rows))}]]"


_WAL_IS_SAFE = (3, 51, 3)

_MIN_VERSION = (3, 35, 0)
"""The first version with ``AS MATERIALIZED``, used by the queries of sums."""

_PAUSE_SECONDS = 0.0002
"""Seconds between two attempts to lock the file for writing."""

_JOURNAL_SECONDS = 1.0
"""Seconds to wait before changing the journal mode of a file in use."""

_COPY = "import shutil, sys; shutil.copy2(sys.argv[1], sys.argv[2])"

_HEADER_BYTES = 100

_SCHEMA_BYTES = 65_536
"""Sizes of a file's header and of its largest possible first page, with the schema."""

SIDE_FILES = ("-wal", "-journal")
"""Suffixes of the log and the journal, which contain part of a file's data."""

_MIN_FREE_BYTES = 65_536
"""Free bytes that SQLite needs for its temporary files, even to read."""


@cache
def _driver() -> Any:
    """Import the newer SQLite: the standard library's or `pysqlite3`."""
    try:
        other = import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3
    return other if other.sqlite_version_info > sqlite3.sqlite_version_info else sqlite3


def library_version() -> str:
    """Return the version of the SQLite library in use."""
    return str(_driver().sqlite_version)


def safe_journal() -> str:
    """Return the journal mode that is safe with this library."""
    return "wal" if _driver().sqlite_version_info >= _WAL_IS_SAFE else "truncate"


def check_library(location: str, version: str) -> None:
    """Refuse a SQLite library older than the history needs."""
    if tuple(map(int, version.split("."))) < _MIN_VERSION:
        oldest = ".".join(map(str, _MIN_VERSION))
        problem = f"needs SQLite {oldest} or newer, and this Python has {version}"
        raise HistoryError(
            location, problem, "install pysqlite3, a newer Python, or a newer SQLite"
        )


QUICK_CHECK_SECONDS = 0.1
"""Time limit of the check for damage at opening; `witan doctor` checks the whole file."""


class SqliteDatabase(Database):
    """A connection to an existing SQLite file."""

    dialect = "sqlite"

    def __init__(
        self, path: Path, location: str, *, busy_seconds: float = LOCK_SECONDS, mode: str = "rw"
    ) -> None:
        super().__init__(location)
        self.path = path.absolute()  # also for connections opened in another folder
        self.read_only = mode != "rw"
        self._mode = mode
        self._busy_seconds = self._wait_seconds = self._timeout_seconds = busy_seconds
        self.lock_seconds = busy_seconds
        self._is_wal: bool | None = None
        self._damage: HistoryError | None = None
        self._connect()

    @translating
    def _connect(self) -> None:
        self._connection = _driver().connect(
            f"{self.path.as_uri()}?mode={self._mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_seconds,
            cached_statements=256,
        )
        with ExitStack() as undo:
            undo.callback(self._connection.close)
            # First, because it fails if the file is locked; the other settings wait.
            self._pragma("schema_version")
            add_missing_functions(self._connection)
            for function in (list_pairs, list_rows):
                name = function.__name__
                self._connection.create_function(name, -1, function, deterministic=True)
            for pragma in ("synchronous = FULL", "secure_delete = ON"):
                self._pragma(pragma)
            self._identity = _identity(self.path)
            undo.pop_all()

    @property
    def journal(self) -> str:
        """The file's journal mode, possibly set by another process."""
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
            self._is_wal = None

    def reopen(self, wait: float) -> "SqliteDatabase":
        """Open another connection with a lock timeout of `wait` seconds."""
        self._require_open()
        return SqliteDatabase(self.path, self.location, busy_seconds=wait, mode=self._mode)

    def check_file(self) -> None:
        """Check for the file's removal or replacement."""
        if self.exists and _identity(self.path) != self._identity:
            problem = "was removed or replaced while in use"
            raise HistoryError(self.location, problem, "move it back, or open the history again")

    def restore_busy_timeout(self) -> None:
        """Restore the lock timeout of statements."""
        self._busy_seconds = self._wait_seconds = self.lock_seconds = LOCK_SECONDS

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

    def quick_check(self) -> str | None:
        """Check the pages, not their content, for a moment; return damage or None."""
        deadline = time.monotonic() + QUICK_CHECK_SECONDS
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
        return None if result == [("ok",)] else "its pages are inconsistent"

    @translating
    def _pragma(self, pragma: str) -> None:
        self._connection.execute(f"PRAGMA {pragma}").fetchall()

    def _run(self, sql: str, params: Params) -> Any:
        if not self._depth:
            self._set_timeout(self._busy_seconds)
        return self._connection.execute(sql, dict(params))

    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return int(self._connection.executemany(sql, rows).rowcount)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        if not write:
            self._set_timeout(self._busy_seconds)
            self._connection.execute("BEGIN")
            return
        if self._damage is not None:
            raise self._damage
        self._wait_seconds = self.lock_seconds if wait is None else wait
        start = time.monotonic()
        on_wait = self.on_wait if wait is None else None  # callers with a limit report the wait
        try:
            self._set_timeout(0.0)
            while not self._try_begin():
                waited = time.monotonic() - start
                if waited >= self._wait_seconds:
                    break
                if on_wait is not None and waited >= QUIET_SECONDS:
                    on_wait(waiting_text(self.location, self._wait_seconds - waited))
                    on_wait = None
                time.sleep(_PAUSE_SECONDS)
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
        finally:
            if not (self._connection.in_transaction and self._has_log()):
                self._set_timeout(self._busy_seconds)
        self._wait_seconds = self._busy_seconds

    def _has_log(self) -> bool:
        """True if a write transaction, once begun, does not wait for others."""
        if self._is_wal is None:
            self._is_wal = self.journal == "wal"
        return self._is_wal

    def _set_timeout(self, seconds: float) -> None:
        if seconds != self._timeout_seconds:
            self._pragma(f"busy_timeout = {round(1000 * seconds)}")
            self._timeout_seconds = seconds

    @contextmanager
    def _busy_timeout(self, seconds: float) -> Iterator[None]:
        usual, self._busy_seconds = self._busy_seconds, seconds
        self._set_timeout(seconds)
        try:
            yield
        finally:
            self._busy_seconds = usual

    def _try_begin(self) -> bool:
        """Begin to write, or return false if another process is writing.

        SQLite sleeps longer and longer between its own attempts, so of several busy writers all
        but one would starve.
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
            # After some failures SQLite has already rolled back the transaction.
            with suppress(_driver().Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @property
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """The errors of SQLite, and of Python's texts and numbers that it cannot store."""
        return (_driver().Error, UnicodeError, OverflowError)

    def translate(self, error: Exception) -> HistoryError:
        """Translate one of the `driver_errors`."""
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return unstorable_error(self.location, error)
        return self._error_of(error)

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
                    self._damage = history_error  # no further writes to it
                return history_error
        return HistoryError(
            self.location, f"SQLite reports: {words}", "check the cause, then try again"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


WRITE_PROTECTED = "cannot be written: the file, its folder or the disk is write-protected"

_SENTENCES: tuple[tuple[str, tuple[str, str]], ...] = (
    ("SQLITE_BUSY", ("is locked by another process (waited {wait:g} s)",
                     "wait until it finishes, then try again")),
    ("SQLITE_FULL", ("the disk is full; the last write was rolled back",
                     "free some space, then try again")),
    ("SQLITE_IOERR", ("cannot be read or written: {words}",
                      "check the disk and its free space, then try again")),
    ("SQLITE_READONLY", (WRITE_PROTECTED, "make the file and its folder writable")),
    ("SQLITE_CANTOPEN", ("cannot be opened: {words}",
                         "choose a file in a writable folder")),
    ("SQLITE_NOTADB", ("is not a SQLite file", "choose another file, or move this one")),
    ("SQLITE_CORRUPT", ("is damaged: {words}",
                        "run witan doctor, which makes a copy and explains how to continue")),
    ("UTF-8", ("is damaged: invalid text",
               "run witan doctor, which makes a copy and explains how to continue")),
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
"""Parts of messages, for drivers that report no code."""


def is_disk_full_error(error: BaseException | None, path: Path) -> bool:
    """True if SQLite failed for lack of space, with any code."""
    code, words = getattr(error, "sqlite_errorname", ""), str(error)
    error_codes = ("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")
    if not code.startswith(error_codes) and not any(
        s in words for key in error_codes for s in _SIGNS[key]
    ):
        return False
    return is_full(path)


def is_full(path: Path) -> bool:
    """True if the disk of a file is full."""
    try:
        disk = os.statvfs(path.absolute().parent)
    except (OSError, AttributeError):  # not on Windows
        return False
    return disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES or (
        disk.f_files > 0 and not disk.f_favail
    )


def is_damage(error: HistoryError, path: Path) -> bool:
    """True if an error reports damage, not a file of another kind."""
    cause = error.__cause__
    name, words = getattr(cause, "sqlite_errorname", ""), str(cause)
    if name.startswith("SQLITE_NOTADB") or "not a database" in words:
        return _was_database(path)
    signs = (*_SIGNS["SQLITE_CORRUPT"], *_SIGNS["UTF-8"])
    return name.startswith("SQLITE_CORRUPT") or any(sign in words for sign in signs)


def _was_database(path: Path) -> bool:
    """True if a damaged file was a history, by its first page."""
    try:
        with path.open("rb") as file:
            start = file.read(_SCHEMA_BYTES)
    except OSError:
        return False
    return not any(start[:_HEADER_BYTES]) or b"CREATE TABLE sessions" in start


def back_up_damaged_file(path: Path, at: datetime) -> Path:
    """Copy a damaged file with its log and journal, unless copied before.

    The copy of the file itself is renamed last, so a copy with the final name is complete.
    """
    original = path.stat()
    for older_copy in sorted(path.parent.glob(f"{escape(path.name)}.corrupt-*")):
        copy = older_copy.stat()
        if (copy.st_size, int(copy.st_mtime)) == (original.st_size, int(original.st_mtime)):
            return older_copy
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
"""Seconds of attempts to reconnect, enough for a restart of the server."""

_RECONNECT_PAUSE = 0.1

_UNAVAILABLE_CODES = ("57P01", "57P02", "57P03")
"""Error codes of a server stopping, crashed or starting up."""

MIN_COPY_ROWS = 100
"""Number of rows from which COPY is faster than one INSERT per row."""

CONNECT_SECONDS = 10
"""Timeout of a connection in seconds, unless the URL has a ``connect_timeout``."""

_KEEPALIVE_SQL = f"""
SELECT set_config('tcp_keepalives_idle', '10', false),
    set_config('tcp_keepalives_interval', '5', false),
    set_config('lock_timeout', '{LOCK_SECONDS:g}s', false)
"""
"""Have the server drop a lost machine's locks within a minute, and limit waits for others'."""

HEARTBEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a process that records."""

GRACE_SECONDS = 30.0
"""Seconds without a heartbeat until a process of another machine counts as gone."""

FORGOTTEN_SECONDS = 86_400.0
"""Seconds after which the heartbeat of a process that was killed is deleted."""

_NOW_US = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint"

_BEAT_SQL = f"""
INSERT INTO heartbeats (process, at_us) VALUES (:process, {_NOW_US})
ON CONFLICT (process) DO UPDATE SET at_us = EXCLUDED.at_us
"""  # noqa: S608 - our own words

_WAITS_SQL = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"

_ALIVE_SQL = f"""
SELECT 1 FROM heartbeats
WHERE process = :process AND at_us > {_NOW_US} - {GRACE_SECONDS * 1e6:.0f}
"""  # noqa: S608 - our own words

_END_BEATS_SQL = f"""
DELETE FROM heartbeats
WHERE process = :process OR at_us < {_NOW_US} - {FORGOTTEN_SECONDS * 1e6:.0f}
"""  # noqa: S608 - our own words


@dataclass(slots=True)
class _Pulse:
    """Heartbeat of this process in one database, shared by its connections."""

    lock: Lock = field(default_factory=Lock)
    due_at: float = 0.0


_PULSES: dict[tuple[str, int], _Pulse] = {}
"""URL and number of the process to pulse."""


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
        self.url = url
        """Its URL, with any password."""
        self._wait_seconds, self._is_over = LOCK_SECONDS, Event()
        self._pulse = _PULSES.setdefault((url, os.getpid()), _Pulse())
        self._connection = self._wait_for_server(CONNECT_SECONDS, is_reconnect=False)

    @property
    def journal(self) -> str:
        """The journal mode: ``postgresql``."""
        return "postgresql"

    @property
    def host(self) -> str:
        """The server's name or address, or the folder of its socket."""
        return str(self._connection.info.host)

    def reopen(self, wait: float) -> "PostgresDatabase":  # noqa: ARG002 - each transaction sets its own
        """Open another connection."""
        self._require_open()
        return PostgresDatabase(self.url)

    def truncate_log(self, wait: float) -> bool:  # noqa: ARG002 - readers do not block it
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
                starts = error.sqlstate in _UNAVAILABLE_CODES or "is starting up" in str(error)
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

        options = conninfo_to_dict(self.url)
        options.setdefault("connect_timeout", CONNECT_SECONDS)
        options.setdefault("application_name", "witan")
        # A statement outside a transaction commits immediately and leaves none open.
        connection = self._psycopg.connect(autocommit=True, **options)  # type: ignore[arg-type]
        connection.adapters.register_loader("numeric", FloatLoader)
        connection.execute(_KEEPALIVE_SQL)
        return connection

    def beat(self) -> float:
        """Write this process's heartbeat, by the server's clock, if it is due."""
        with self._pulse.lock:
            now = time.monotonic()
            if now >= self._pulse.due_at:
                self._pulse.due_at = now + _RECONNECT_PAUSE  # if it fails
                self.execute(_BEAT_SQL, {"process": own_process()})
                self._pulse.due_at = now + HEARTBEAT_SECONDS
            return self._pulse.due_at - now

    def end_beats(self) -> None:
        """Delete this process's heartbeat if idle, and others' if long gone."""
        with self._pulse.lock:
            if is_recording():
                return
            self._pulse.due_at = 0.0
            self.execute(_END_BEATS_SQL, {"process": own_process()})

    def find_process(self, holder: str) -> str | None:
        """Name the other process that records a holder's session, on any machine.

        A process of this machine is checked directly. One elsewhere counts as gone after
        `GRACE_SECONDS` without a heartbeat, even if its connections are still open.
        """
        process = holder.partition("@")[2]
        machine, _, rest = process.partition("/")
        if not rest or process == own_process():
            return None
        if machine == own_machine():
            return super().find_process(holder)
        name = f"process {rest.partition('/')[0]} on {machine_name(machine)}"
        return name if self.rows(_ALIVE_SQL, {"process": process}) else None

    def _refusal(self, error: Exception) -> HistoryError:
        words = self._redact(str(error))
        if "password" in words and "authentication" in words:
            return HistoryError(
                self.location,
                "the server rejects the user or the password",
                "correct them in the URL, or set the password in PGPASSWORD or ~/.pgpass",
            )
        if isinstance(error, self._psycopg.OperationalError):
            return HistoryError(
                self.location,
                f"no connection: {words}",
                "check that the server runs and that the database exists",
            )
        expected = "write it as postgresql://user@host:5432/database"
        return HistoryError(self.location, "is not an address of a PostgreSQL database", expected)

    def _redact(self, words: str) -> str:
        text = " ".join(words.split())
        with suppress(ValueError):
            secret = urlsplit(self.url).password
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
        if len(rows) < MIN_COPY_ROWS:
            return super()._insert(table, columns, rows)
        with self._ensure_connection().cursor() as cursor:
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return int(cursor.rowcount)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        isolation = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        begin = f"BEGIN ISOLATION LEVEL {isolation}"
        self._wait_seconds = self.lock_seconds if wait is None else wait
        begin += f"; SET LOCAL lock_timeout = {max(1, round(1000 * self._wait_seconds))}"
        self._run_with_reconnect(begin, NO_PARAMS)
        if wait is None and self.on_wait is not None:
            self._is_over = Event()
            args = (self._is_over, self._connection.info.backend_pid)
            Thread(target=self._report_wait, args=args, daemon=True).start()

    def _report_wait(self, is_over: Event, server_process: int) -> None:
        """Report once that a transaction waits for a lock."""
        with suppress(self._psycopg.Error):
            while not is_over.wait(QUIET_SECONDS):
                with self._connect() as connection:
                    waits = connection.execute(_WAITS_SQL, (server_process,)).fetchone()
                if waits and self.on_wait is not None:
                    seconds = self._wait_seconds - QUIET_SECONDS
                    self.on_wait(waiting_text(self.location, seconds))
                    return

    def _end(self, *, commit: bool) -> None:
        self._is_over.set()
        self._wait_seconds = LOCK_SECONDS  # of a statement alone
        if commit:
            self._connection.execute("COMMIT")
            return
        with suppress(self._psycopg.Error):
            self._connection.execute("ROLLBACK")

    @property
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """The errors of psycopg, and of a text that no server can store."""
        return (self._psycopg.Error, UnicodeEncodeError)

    def translate(self, error: Exception) -> HistoryError:
        """Translate one of the `driver_errors`."""
        errors, retry = self._psycopg, "check the cause, then try again"
        if isinstance(error, errors.errors.DiskFull):
            problem, retry = (
                "the server's disk is full; the last write was rolled back",
                "free some space there, then try again",
            )
        elif isinstance(error, errors.errors.LockNotAvailable):
            problem, retry = (
                f"is locked by another process (waited {self._wait_seconds:g} s)",
                "wait until it finishes, then try again",
            )
        elif isinstance(error, errors.OperationalError):
            problem = f"the connection failed: {self._redact(str(error))}"
            failure = HistoryError(
                self.location, problem, "check that the server runs, then try again"
            )
            if self._connection.closed or error.sqlstate in _UNAVAILABLE_CODES:
                failure.__cause__ = ConnectionError()
            return failure
        elif isinstance(error, UnicodeEncodeError | errors.DataError):
            return unstorable_error(self.location, error)
        else:
            problem = f"PostgreSQL reports: {self._redact(str(error))}"
        return HistoryError(self.location, problem, retry)
