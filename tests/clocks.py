"""Clocks that tests set."""

from dataclasses import dataclass
from datetime import datetime


@dataclass
class SetClock:
    """A clock that stands until the test sets it."""

    at: datetime

    def now(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return self.at.timestamp()
