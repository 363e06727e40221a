"""A database connection and its locks.

Statements are written once, with parameters as ``:name``, and converted for each driver.

The holder of a session is a token of a process: its machine, number and start time, because numbers
are reused. Processes on other machines, or on Windows, cannot be checked where the history is a
file; in PostgreSQL, a process that records has a heartbeat.
"""

import json
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, lru_cache, wraps
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from threading import RLock
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from witan.errors import HistoryError

Dialect = Literal["sqlite", "postgresql"]

Params = Mapping[str, Any]
T = TypeVar("T")
P = ParamSpec("P")

NO_PARAMS: Params = MappingProxyType({})

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|:([A-Za-z_]\w*)|%")


def translating(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Raise a driver's errors in a method of a `Database` as `HistoryError`."""

    @wraps(method)
    def translate(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except self.driver_errors as error:
            translated = self.translate(error)
            raise translated from translated.__cause__ or error

    return translate


class Database(ABC):
    """A connection shared by threads, one statement or transaction at a time.

    Parameters
    ----------
    location
        The place in error messages, without a password.
    """

    dialect: ClassVar[Dialect]
    locking: ClassVar[str] = ""
    """Clause that locks the rows of a SELECT against changes until the transaction ends."""
    sharing: ClassVar[str] = ""
    """Clause that locks the rows of a SELECT against deletion until the transaction ends."""

    read_only = False
    """True if it is open for reading only."""

    exists = True
    """False if its file is missing; the first transaction that may write creates it."""

    on_wait: Callable[[str], None] | None = None
    """Called with a sentence when a transaction waits for another process."""

    _connection: Any
    """The driver's connection."""

    def __init__(self, location: str) -> None:
        self.lock_seconds = LOCK_SECONDS
        self.location = location
        self._lock = RLock()
        self._depth = 0
        self._is_closed = False

    @property
    @abstractmethod
    def journal(self) -> str:
        """The journal mode: ``wal``, ``truncate`` or ``postgresql``."""

    def close(self) -> None:
        """Close the connection; roll back an open transaction."""
        self._is_closed = True
        self._connection.close()

    @abstractmethod
    def truncate_log(self, wait: float) -> bool:
        """Remove deleted rows from the log; false if a reader blocked it."""

    @abstractmethod
    def reopen(self, wait: float) -> "Database":
        """Open another connection with a lock timeout of `wait` seconds.

        It does not wait for users of this connection, and fails if this one was closed.
        """

    @abstractmethod
    def _run(self, sql: str, params: Params) -> Any:
        """Run one statement and return its cursor."""

    @abstractmethod
    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run one statement with positional parameters (``?``) for each row."""

    @abstractmethod
    def _begin(self, *, write: bool, wait: float | None) -> None:
        """Begin a transaction, waiting `wait` seconds for locks."""

    @abstractmethod
    def _end(self, *, commit: bool) -> None:
        """End the transaction."""

    @property
    @abstractmethod
    def driver_errors(self) -> tuple[type[Exception], ...]:
        """The errors that a statement may raise, to be translated."""

    @abstractmethod
    def translate(self, error: Exception) -> HistoryError:
        """Translate one of the `driver_errors`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @translating
    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        """Run one statement; return the number of rows it changed."""
        with self._lock:
            self._require_open()
            return int(self._run(sql, params).rowcount)

    @translating
    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        """Run one query; return its rows."""
        with self._lock:
            self._require_open()
            rows: list[tuple[Any, ...]] = self._run(sql, params).fetchall()
            return rows

    @translating
    def columns(self, sql: str, params: Params = NO_PARAMS) -> dict[str, NDArray[Any]]:
        """Run one query; return its columns by name, NULL numbers as NaN."""
        with self._lock:
            self._require_open()
            cursor = self._run(sql, params)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return {name: _array(values) for name, values in zip(names, columns, strict=True)}

    @translating
    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        ignore_existing: bool = False,
    ) -> int:
        """Insert rows, all or none; return the number inserted."""
        if not rows:
            return 0
        with self._lock:
            if not self._depth:
                with self.transaction():
                    return self.insert(table, columns, rows, ignore_existing=ignore_existing)
            self._require_open()
            if ignore_existing:
                return self._run_many(f"{_insert_sql(table, columns)} ON CONFLICT DO NOTHING", rows)
            return self._insert(table, columns, rows)

    def _insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        return self._run_many(_insert_sql(table, columns), rows)

    @property
    def in_transaction(self) -> bool:
        """True if a transaction or snapshot is open; another would join it."""
        with self._lock:
            return self._depth > 0

    def transaction(self, *, wait: float | None = None) -> AbstractContextManager[None]:
        """Commit all writes of the block, or none; join an outer transaction.

        `wait`: seconds to wait for locks, without a message; None: `lock_seconds`.
        """
        return self._block(write=True, wait=wait)

    def beat(self) -> float | None:
        """Send this process's heartbeat if it is due; return the seconds until it is due again.

        None: the history is a file of this machine.
        """
        return None

    def end_beats(self) -> None:  # noqa: B027 - a file has no heartbeat
        """Delete this process's heartbeat, unless it still records."""

    def find_process(self, holder: str) -> str | None:
        """Name the other process that records a holder's session, if any."""
        number = other_process(holder)
        return None if number is None else f"process {number}"

    def is_running(self, holder: str) -> bool:
        """True if this or another process records a holder's session."""
        return holder in _RECORDING or self.find_process(holder) is not None

    def check_file(self) -> None:  # noqa: B027 - a server has no file
        """Check for the removal of an open file, whose later content is lost."""

    def wait_until_writable(self, wait: float) -> None:
        """Wait up to `wait` seconds for the write lock, then release it."""
        if self.read_only:
            problem = "is open read-only"
            raise HistoryError(self.location, problem, "open it for writing")
        self.check_file()
        with self.transaction(wait=wait):
            pass

    def snapshot(self) -> AbstractContextManager[None]:
        """Read one consistent state while others write."""
        return self._block(write=False)

    @contextmanager
    def _block(self, *, write: bool, wait: float | None = None) -> Iterator[None]:
        is_outer = self._begin_block(write=write, wait=wait)
        is_complete = False
        try:
            yield
            is_complete = True
        finally:
            self._end_block(is_outer, is_complete)

    def _require_open(self) -> None:
        if self._is_closed:
            raise HistoryError(self.location, "was closed", "open the history again")

    @translating
    def _begin_block(self, *, write: bool, wait: float | None) -> bool:
        """Begin a transaction unless one is open; return whether it was begun."""
        self._lock.acquire()
        is_begun = False
        try:
            self._require_open()
            is_outer = not self._depth
            if is_outer:
                self._begin(write=write, wait=wait)
                self._depth = 1
            is_begun = True
        finally:
            if not is_begun:
                self._lock.release()
        return is_outer

    @translating
    def _end_block(self, is_outer: bool, is_complete: bool) -> None:
        """End what `_begin_block` began."""
        try:
            if not is_outer:
                return
            self._depth = 0
            self._end(commit=is_complete)
        finally:
            self._lock.release()


def in_list(values: Iterable[Any], prefix: str = "s") -> tuple[str, dict[str, Any]]:
    """Return the right-hand side of SQL's ``IN``, and its parameters."""
    params = {f"{prefix}{k}": value for k, value in enumerate(values)}
    return f"({', '.join(f':{name}' for name in params)})", params


def parse_lists(texts: Iterable[str]) -> list[Any]:
    """Parse JSON texts together, which is faster than one by one."""
    lists: list[Any] = json.loads(f"[{','.join(texts)}]")
    return lists


def blocks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into blocks of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))


def unstorable_error(location: str, error: Exception) -> HistoryError:
    """Make the error for an unstorable value."""
    words = " ".join(str(error).split())
    problem = f"cannot store a text or a number ({words})"
    return HistoryError(location, problem, "look for unusual characters and very large numbers")


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Make an array of integers, floats (NaN for NULL) or objects."""
    kinds = {type(value) for value in values}
    if not kinds - {int, bool}:
        return np.asarray(values, dtype=np.int64)
    if not kinds - {int, bool, float, type(None)}:
        return np.asarray(values, dtype=np.float64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@lru_cache(maxsize=512)
def _insert_sql(table: str, columns: Sequence[str]) -> str:
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608


def percent_style(sql: str) -> str:
    """Convert ``:name`` to ``%(name)s``, outside literals and casts."""

    def convert(token: re.Match[str]) -> str:
        name = token[1]
        return f"%({name})s" if name is not None else token[0].replace("%", "%%")

    return _TOKEN.sub(convert, sql)


_PAUSE_SECONDS = 0.01


@contextmanager
def lock_file(path: Path, seconds: float) -> Iterator[bool]:
    """Lock a file for the block; yield false if `seconds` pass first."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    try:
        while not (locked := _try_lock(descriptor)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        yield locked
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


_LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock timeout."""


def is_busy(error: HistoryError) -> bool:
    """True if another process keeps the database locked."""
    cause = error.__cause__
    return isinstance(cause, BlockingIOError) or (cause is not None and is_lock_refusal(cause))


def is_lost(error: HistoryError) -> bool:
    """True if the connection to a server was lost."""
    return isinstance(error.__cause__, ConnectionError)


def is_transient(error: HistoryError) -> bool:
    """True if the same statement may soon succeed."""
    return is_busy(error) or is_lost(error)


def is_lock_refusal(error: BaseException) -> bool:
    """True if a driver gave up waiting for a lock."""
    if getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
        return True
    code = getattr(error, "sqlite_errorname", "")
    return code.startswith("SQLITE_BUSY") or "is locked" in str(error)


LOCK_SECONDS = 10.0
"""Longest wait for other processes, of one opening or one transaction."""

QUIET_SECONDS = 2.0
"""A shorter wait is not reported."""


def waiting_text(location: str, seconds: float) -> str:
    """Say that another process is waited for, and how long."""
    time_text = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"another process has locked {location}: waiting up to {time_text} for it"


class LockWait:
    """A bounded wait for other processes; several attempts share one time limit.

    Parameters
    ----------
    on_wait
        Called with a sentence once a wait is longer than `QUIET_SECONDS`.
    """

    def __init__(
        self, on_wait: Callable[[str], None] | None = None, seconds: float = LOCK_SECONDS
    ) -> None:
        self.on_wait = on_wait
        self.seconds = seconds
        self._remaining = seconds

    @property
    def remaining(self) -> float:
        """Remaining seconds."""
        return max(0.0, self._remaining)

    def deduct(self, seconds: float) -> None:
        """Subtract a wait, unless it was too short for a lock."""
        if seconds > QUIET_SECONDS:
            self._remaining -= seconds

    def run(self, location: str, attempt: Callable[[float], T]) -> T:
        """Run an attempt, waiting some seconds; repeat if locked.

        Raises `HistoryError` if another process still keeps it locked when the time is up.
        """
        quiet = min(QUIET_SECONDS, self._remaining)
        try:
            return self._time(attempt, quiet)
        except HistoryError as error:
            if not is_transient(error):
                raise
            is_connection_lost = is_lost(error)
        if self.on_wait is not None and self._remaining > 0:
            lost = f"the connection to {location} is lost: waiting up to"
            self.on_wait(
                f"{lost} {self._remaining:.0f} s for it"
                if is_connection_lost
                else waiting_text(location, self._remaining)
            )
        try:
            return self._time(attempt, self._remaining)
        except HistoryError as error:
            if not is_transient(error) or is_lost(error):
                raise
            problem = f"is locked by another process (waited {self.seconds:g} s)"
            raise HistoryError(
                location, problem, "wait until it finishes, then try again"
            ) from error

    def _time(self, attempt: Callable[[float], T], seconds: float) -> T:
        start = time.monotonic()
        try:
            return attempt(max(seconds, 0.0))
        finally:
            self._remaining -= time.monotonic() - start


_RECORDING: set[str] = set()
"""Holders of the sessions being recorded by this process."""


def is_recording() -> bool:
    """True if this process records any session."""
    return bool(_RECORDING)


def mark_recording(holder: str) -> None:
    """Register this process as recording a holder's session."""
    _RECORDING.add(holder)


def unmark_recording(holder: str) -> None:
    """Unregister a holder once its session is recorded."""
    _RECORDING.discard(holder)


def new_holder() -> str:
    """Make a unique token of this process."""
    return f"{token_hex(8)}@{own_process()}"


def own_process() -> str:
    """Return this process's machine, number and start time, as in its tokens."""
    number = os.getpid()
    return f"{own_machine()}/{number}/{_own_start_time(number)}"


@cache
def own_machine() -> str:
    """Return this machine's name and mark, as in its tokens.

    Copies of a machine, and containers, may share a name; no two share a boot and the numbers of
    their processes.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        numbers = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return gethostname()
    return f"{gethostname()}#{crc32(f'{boot}{numbers}'.encode()):08x}"


def machine_name(machine: str) -> str:
    """Return the name of a machine without its mark."""
    return machine.partition("#")[0]


def other_process(holder: str) -> int | None:
    """Return the number of another running process by its token."""
    place = holder.partition("@")[2].rsplit("/", 2)
    if len(place) != 3 or place[0] != own_machine() or not place[1].isdecimal():
        return None
    number = int(place[1])
    if number == os.getpid() or not _is_alive(number) or _start_time(number) != place[2]:
        return None
    return number


def _is_alive(number: int) -> bool:
    if sys.platform == "win32":
        return False  # on Windows the signal would end the process
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _start_time(number: int) -> str:
    """Return a process's start time on Linux, ``over``, or an empty text."""
    try:
        # The program's name, in parentheses, may contain any characters.
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = status.rpartition(")")[2].split()
        return "over" if state in "ZX" else rest[18]
    except (OSError, IndexError, ValueError):
        return ""


@lru_cache(maxsize=1)
def _own_start_time(number: int) -> str:
    return _start_time(number)


_SCHEMA_KEY = 0x77_69_74_61_6E
"""Key of the advisory lock on a PostgreSQL history's schema: "witan" in ASCII."""

_SUMS_KEY = 0x77_69_74_61_6F
"""Key of the advisory lock on a PostgreSQL history's sums: "witao" in ASCII."""


def lock_schema(database: Database) -> None:
    """Lock the schema of a PostgreSQL history until the caller's transaction ends."""
    database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _SCHEMA_KEY})


def lock_cached_sums(database: Database) -> None:
    """Lock the cached sums until the caller's transaction ends.

    A transaction locks no session or name after it has locked the sums, which rules out a deadlock.
    Later statements see every change that other connections have committed.
    """
    if database.dialect == "postgresql":
        database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _SUMS_KEY})
