"""The time as this machine tells it."""

import time
from datetime import UTC, datetime

__all__ = ["SystemClock"]


class SystemClock:
    """The clock of the machine that the council runs on."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def seconds(self) -> float:
        """Seconds on a clock that never goes back, from an arbitrary start."""
        return time.monotonic()
