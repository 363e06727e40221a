"""How long an opening waits for other processes: once, not in silence, and never for long."""

import time
from collections.abc import Callable
from typing import TypeVar

from witan.errors import HistoryError
from witan.history.sqlite import is_lost, may_pass

__all__ = ["OPENING_SECONDS", "QUIET_SECONDS", "LockWait"]

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
        self, told: Callable[[str], None] | None = None, seconds: float = OPENING_SECONDS
    ) -> None:
        self._told = told
        self._seconds = seconds
        self._left = seconds

    @property
    def left(self) -> float:
        """Seconds that are left of it."""
        return max(0.0, self._left)

    def took(self, seconds: float) -> None:
        """Take a wait off it, unless it was so short that nobody was in the way."""
        if seconds > QUIET_SECONDS:
            self._left -= seconds

    def through(self, where: str, attempt: Callable[[float], T]) -> T:
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
            if not may_pass(error):
                raise
            lost = is_lost(error)
        if self._told is not None and self._left > 0:
            what = (
                f"the connection to {where} is lost"
                if lost
                else (f"another process has locked {where}")
            )
            self._told(f"{what}: waiting {self._left:.0f} s for it")
        try:
            return self._tried(attempt, self._left)
        except HistoryError as error:
            if not may_pass(error) or is_lost(error):
                raise
            problem = f"is locked: another process has kept it for {self._seconds:g} s"
            raise HistoryError(where, problem, "let that finish, then try again") from error

    def _tried(self, attempt: Callable[[float], T], seconds: float) -> T:
        began = time.monotonic()
        try:
            return attempt(max(seconds, 0.0))
        finally:
            self._left -= time.monotonic() - began
