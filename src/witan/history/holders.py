"""Who holds a session: a token that says which process it is, so that a living one is left alone.

A process is known by its machine, its number and when it began: numbers are given out again. Of
processes of other machines, and of those of Windows, nothing is known.
"""

import os
import sys
from pathlib import Path
from secrets import token_hex
from socket import gethostname

__all__ = ["another_alive", "is_running", "new_token", "release", "retain"]

_RETAINED: set[str] = set()
"""Tokens of the sessions that this process records now."""


def retain(token: str) -> None:
    """Note that this process records the session of a token."""
    _RETAINED.add(token)


def release(token: str) -> None:
    """Note that this process records the session of a token no longer."""
    _RETAINED.discard(token)


def is_running(token: str) -> bool:
    """Check that a session is recorded now, by this process or another of this machine."""
    return token in _RETAINED or another_alive(token) is not None


def new_token() -> str:
    """A token of this process, unlike any other."""
    number = os.getpid()
    return f"{token_hex(8)}@{gethostname()}/{number}/{_began(number)}"


def another_alive(token: str) -> int | None:
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
        told = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        state, *rest = told.rpartition(")")[2].split()
        return "over" if state in "ZX" else rest[18]
    except (OSError, IndexError, ValueError):
        return ""
