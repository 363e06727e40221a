"""Counting that may take long, a few at a time: what is brief has threads of its own."""

from collections.abc import Callable, Hashable
from typing import Any, Self, TypeVar

import anyio
from anyio.lowlevel import RunVar

__all__ = ["in_turn", "once"]

AT_ONCE = 4
"""Threads that count: more would only take time from each other, and from those who listen."""

T = TypeVar("T")

_wanted: RunVar[dict[Hashable, "_Wanted"]] = RunVar("witan_counting_wanted")

_places: RunVar[anyio.CapacityLimiter] = RunVar("witan_counting_places")


async def in_turn(work: Callable[[], T]) -> T:
    """What comes of some counting, done in a thread once it is its turn."""
    places = _places.get(None)
    if places is None:
        places = anyio.CapacityLimiter(AT_ONCE)
        _places.set(places)
    return await anyio.to_thread.run_sync(work, limiter=places)


async def once(key: Hashable, work: Callable[[], T]) -> T:
    """What comes of some counting, done in turn, and once for all who want it at the same time.

    Parameters
    ----------
    key
        The same for the same counting.
    """
    held = _wanted.get(None)
    if held is None:
        _wanted.set(held := {})
    while (others := held.get(key)) is not None:
        await others.over.wait()
        if others.failure is not None:
            raise others.failure
        if others.done:
            result: T = others.result
            return result
    held[key] = mine = _Wanted()
    with mine:
        try:
            mine.result = await in_turn(work)
        finally:
            del held[key]
    found: T = mine.result
    return found


class _Wanted:
    """Counting that several may want; neither done nor failed once it is over: it was cancelled."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.done = False
        self.result: Any = None
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, failure: BaseException | None, __: object) -> None:
        """Tell the others how it ended."""
        self.done = failure is None
        self.failure = failure if isinstance(failure, Exception) else None
        self.over.set()
