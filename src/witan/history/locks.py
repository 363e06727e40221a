"""Locks: on files beside a history, on its sums, and of processes on their sessions.

A session's holder is a token of a process: its machine, its number and its start, because numbers
are given out again. Nothing is known of processes of other machines, nor of those of Windows.
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
    """Hold the lock file at `path`; False: somebody else has kept it for so many seconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    try:
        while not (held := _taken(descriptor)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        yield held
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


_LOCK_NOT_AVAILABLE = "55P03"
"""The code by which PostgreSQL says that it has waited long enough."""


def is_busy(error: HistoryError) -> bool:
    """Whether an error says that another process is in the way."""
    cause = error.__cause__
    return isinstance(cause, BlockingIOError) or (cause is not None and is_lock_refusal(cause))


def is_lost(error: HistoryError) -> bool:
    """Tell whether the connection to a server is lost, and may be made again."""
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
"""How long an opening waits in all."""

QUIET_SECONDS = 2.0
"""A shorter wait is not worth a word."""

T = TypeVar("T")


class LockWait:
    """The time that an opening has for all that it waits for.

    Parameters
    ----------
    told
        Is told of a wait that lasts, in a sentence.
    """

    def __init__(
        self, on_wait: Callable[[str], None] | None = None, seconds: float = OPENING_SECONDS
    ) -> None:
        self._on_wait = on_wait
        self._seconds = seconds
        self._left = seconds

    @property
    def left(self) -> float:
        """Seconds that are left of it."""
        return max(0.0, self._left)

    def deduct(self, seconds: float) -> None:
        """Take a wait off it, unless it was so short that nobody was in the way."""
        if seconds > QUIET_SECONDS:
            self._left -= seconds

    def run(self, where: str, attempt: Callable[[float], T]) -> T:
        """What an attempt gives that waits so many seconds at most for others to let go.

        Raises
        ------
        HistoryError
            If another process still holds it when the time is over.
        """
        quiet = min(QUIET_SECONDS, self._left)
        try:
            return self._tried(attempt, quiet)
        except HistoryError as error:
            if not is_transient(error):
                raise
            lost = is_lost(error)
        if self._on_wait is not None and self._left > 0:
            what = (
                f"the connection to {where} is lost"
                if lost
                else (f"another process has locked {where}")
            )
            self._on_wait(f"{what}: waiting {self._left:.0f} s for it")
        try:
            return self._tried(attempt, self._left)
        except HistoryError as error:
            if not is_transient(error) or is_lost(error):
                raise
            problem = f"is locked: another process has kept it for {self._seconds:g} s"
            raise HistoryError(where, problem, "let that finish, then try again") from error

    def _tried(self, attempt: Callable[[float], T], seconds: float) -> T:
        began = time.monotonic()
        try:
            return attempt(max(seconds, 0.0))
        finally:
            self._left -= time.monotonic() - began


_RETAINED: set[str] = set()
"""Tokens of the sessions that this process records now."""


def mark_recording(token: str) -> None:
    """Note that this process records the session of a token."""
    _RETAINED.add(token)


def unmark_recording(token: str) -> None:
    """Note that this process records the session of a token no longer."""
    _RETAINED.discard(token)


def is_running(token: str) -> bool:
    """Check that a session is recorded now, by this process or another of this machine."""
    return token in _RETAINED or other_process(token) is not None


def new_holder() -> str:
    """A token of this process, unlike any other."""
    number = os.getpid()
    return f"{token_hex(8)}@{gethostname()}/{number}/{_began(number)}"


def other_process(token: str) -> int | None:
    """The number of the other process of this machine that holds a session, if it still runs."""
    place = token.partition("@")[2].rsplit("/", 2)
    if len(place) != 3 or place[0] != gethostname() or not place[1].isdecimal():
        return None
    number = int(place[1])
    if number == os.getpid() or not _runs(number) or _began(number) != place[2]:
        return None
    return number


def _runs(number: int) -> bool:
    if sys.platform == "win32":
        return False  # there, asking by a signal would end it
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _began(number: int) -> str:
    """When a process began, as Linux counts it; nothing where that is not said, or it is over."""
    try:
        # The name of the program, in brackets, may hold anything.
        on_wait = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = on_wait.rpartition(")")[2].split()
        return "over" if state in "ZX" else rest[18]
    except (OSError, IndexError, ValueError):
        return ""


_SUMS_KEY = 0x77_69_74_61_6F
"""Of the lock that whoever changes sums in a PostgreSQL history takes for the moment of writing."""


def lock_sums(database: Database) -> None:
    """Let nobody else change sums until the caller's transaction ends; it is waited for.

    Who holds them locks no session or name after that, so that two never wait for each other.
    Statements after it see what others have kept, marked and forgotten until now.
    """
    if database.dialect == "postgresql":
        database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _SUMS_KEY})
