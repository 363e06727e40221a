"""Counting that may take long, a few at a time: what is brief has threads of its own."""

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio.lowlevel import RunVar

__all__ = ["in_turn"]

AT_ONCE = 4
"""Threads that count: more would only take time from each other, and from those who listen."""

T = TypeVar("T")

_places: RunVar[anyio.CapacityLimiter] = RunVar("witan_counting_places")


async def in_turn(work: Callable[[], T]) -> T:
    """What comes of some counting, done in a thread once it is its turn."""
    places = _places.get(None)
    if places is None:
        places = anyio.CapacityLimiter(AT_ONCE)
        _places.set(places)
    return await anyio.to_thread.run_sync(work, limiter=places)
