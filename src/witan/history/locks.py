"""Locks: lock files, waiting for other processes, and the holders of sessions.

A holder is a token of a process: its machine, its number and its start time, because numbers are
reused. Nothing is known of processes on other machines, or on Windows.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from typing import TypeVar

from witan.errors import HistoryError
from witan.history.database import Database

_PAUSE_SECONDS = 0.01


@contextmanager
def lock_file(path: Path, seconds: float) -> Iterator[bool]:
    """Lock a file for the block; yield false after `seconds` of waiting."""
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
    """Tell whether another process keeps the database locked."""
    cause = error.__cause__
    return isinstance(cause, BlockingIOError) or (cause is not None and is_lock_refusal(cause))


def is_lost(error: HistoryError) -> bool:
    """Tell whether the connection to a server was lost."""
    return isinstance(error.__cause__, ConnectionError)


def is_transient(error: HistoryError) -> bool:
    """Tell whether the same statement may succeed in a moment."""
    return is_busy(error) or is_lost(error)


def is_lock_refusal(error: BaseException) -> bool:
    """Tell whether a driver gave up waiting for a lock."""
    if getattr(error, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
        return True
    code = getattr(error, "sqlite_errorname", "")
    return code.startswith("SQLITE_BUSY") or "is locked" in str(error)


OPENING_SECONDS = 10.0
"""Longest wait of one opening, in all."""

QUIET_SECONDS = 2.0
"""A shorter wait is not reported."""

T = TypeVar("T")


class LockWait:
    """A bounded wait for other processes; several attempts share one time limit.

    Parameters
    ----------
    on_wait
        Called with a sentence once a wait is longer than `QUIET_SECONDS`.
    """

    def __init__(
        self, on_wait: Callable[[str], None] | None = None, seconds: float = OPENING_SECONDS
    ) -> None:
        self._on_wait = on_wait
        self._seconds = seconds
        self._remaining = seconds

    @property
    def remaining(self) -> float:
        """Remaining seconds."""
        return max(0.0, self._remaining)

    def deduct(self, seconds: float) -> None:
        """Subtract a wait, unless too short to have been for a lock."""
        if seconds > QUIET_SECONDS:
            self._remaining -= seconds

    def run(self, where: str, attempt: Callable[[float], T]) -> T:
        """Run an attempt, waiting some seconds; repeat if locked.

        Raises
        ------
        HistoryError
            If another process still keeps it locked when the time is over.
        """
        quiet = min(QUIET_SECONDS, self._remaining)
        try:
            return self._time(attempt, quiet)
        except HistoryError as error:
            if not is_transient(error):
                raise
            lost = is_lost(error)
        if self._on_wait is not None and self._remaining > 0:
            what = (
                f"the connection to {where} is lost"
                if lost
                else f"another process has locked {where}"
            )
            self._on_wait(f"{what}: waiting {self._remaining:.0f} s for it")
        try:
            return self._time(attempt, self._remaining)
        except HistoryError as error:
            if not is_transient(error) or is_lost(error):
                raise
            problem = f"is locked: another process has kept it for {self._seconds:g} s"
            raise HistoryError(where, problem, "let that finish, then try again") from error

    def _time(self, attempt: Callable[[float], T], seconds: float) -> T:
        began = time.monotonic()
        try:
            return attempt(max(seconds, 0.0))
        finally:
            self._remaining -= time.monotonic() - began


_RECORDING: set[str] = set()
"""Holders of the sessions that this process records now."""


def mark_recording(holder: str) -> None:
    """Note this process as recording a holder's session."""
    _RECORDING.add(holder)


def unmark_recording(holder: str) -> None:
    """Note the end of this process's recording of a session."""
    _RECORDING.discard(holder)


def is_running(holder: str) -> bool:
    """Tell whether a process of this machine records a holder's session."""
    return holder in _RECORDING or other_process(holder) is not None


def new_holder() -> str:
    """Make a unique token of this process."""
    number = os.getpid()
    return f"{token_hex(8)}@{gethostname()}/{number}/{_start_time(number)}"


def other_process(holder: str) -> int | None:
    """Return the number of another running process by its token."""
    place = holder.partition("@")[2].rsplit("/", 2)
    if len(place) != 3 or place[0] != gethostname() or not place[1].isdecimal():
        return None
    number = int(place[1])
    if number == os.getpid() or not _is_alive(number) or _start_time(number) != place[2]:
        return None
    return number


def _is_alive(number: int) -> bool:
    if sys.platform == "win32":
        return False  # there, asking by a signal would end it
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
        # The name of the program, in brackets, may hold anything.
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = status.rpartition(")")[2].split()
        return "over" if state in "ZX" else rest[18]
    except (OSError, IndexError, ValueError):
        return ""


_SCHEMA_KEY = 0x77_69_74_61_6E
"""Key of the advisory lock on a PostgreSQL history's schema: "witan" in ASCII."""

_SUMS_KEY = 0x77_69_74_61_6F
"""Key of the advisory lock on a PostgreSQL history's sums: "witao" in ASCII."""


def lock_schema(database: Database) -> None:
    """Lock the schema of a PostgreSQL history until the caller's transaction ends."""
    database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _SCHEMA_KEY})


def lock_cached_sums(database: Database) -> None:
    """Lock the cached sums until the caller's transaction ends.

    Whoever locks them locks no session or name after that, which rules out a deadlock. Statements
    after it see every change that others have committed.
    """
    if database.dialect == "postgresql":
        database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _SUMS_KEY})
