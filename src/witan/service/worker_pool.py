"""Threads for long counting, a few at a time."""

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, Self, TypeVar

import anyio
from anyio.from_thread import check_cancelled
from anyio.lowlevel import RunVar

from witan.errors import Busy
from witan.service.catalogue import Pool

AT_ONCE = 4
"""Threads that count; more would slow each other and the event loop down."""

UPLOADS_AT_ONCE = 2
"""Threads that count uploaded ballots, for which no session waits."""

T = TypeVar("T")

_shared_counts: RunVar["_SharedCounts"] = RunVar("witan_counting_wanted")

_limiter_pools: RunVar[dict[Pool, anyio.CapacityLimiter]] = RunVar("witan_counting_places")

_under_way: RunVar["_Activity"] = RunVar("witan_counting_under_way")


async def run_counting(work: Callable[[], T], pool: Pool = "history") -> T:
    """Run a count in a thread when one is free.

    A cancelled caller frees its thread at the next `check_wanted` of the work.

    Raises `Busy` if all counting was cancelled.
    """
    under_way = _get_pool(_under_way, _Activity)
    stopping = Busy("the server is about to stop", "ask again when it is back", 5)
    if under_way.stopping:
        raise stopping
    with anyio.CancelScope() as scope:
        under_way.scopes.add(scope)
        try:
            return await anyio.to_thread.run_sync(work, limiter=_limiters()[pool])
        except anyio.get_cancelled_exc_class():
            # A stopping server also cancels tasks whose count was slow to notice.
            if under_way.stopping:
                raise stopping from None
            raise
        finally:
            under_way.scopes.discard(scope)
    raise stopping


def check_wanted() -> None:
    """Raise if the count was cancelled; outside `run_counting` do nothing."""
    try:
        check_cancelled()
    except RuntimeError:  # no event loop waits for this thread
        return


async def cancel_counting(lock_wait: float) -> None:
    """Cancel all counting, wait for its end, and start no more."""
    under_way = _get_pool(_under_way, _Activity)
    under_way.stopping = True
    for scope in under_way.scopes:
        scope.cancel()
    with anyio.move_on_after(lock_wait):
        while under_way.scopes:  # noqa: ASYNC110 - threads end it without setting an event
            await anyio.sleep(0.01)


class _Activity:
    """Running counts, and the signal to end them."""

    def __init__(self) -> None:
        self.scopes: set[anyio.CancelScope] = set()
        self.stopping = False


def _limiters() -> dict[Pool, anyio.CapacityLimiter]:
    return _get_pool(
        _limiter_pools,
        lambda: {
            "history": anyio.CapacityLimiter(AT_ONCE),
            "session": anyio.CapacityLimiter(AT_ONCE),
            "upload": anyio.CapacityLimiter(UPLOADS_AT_ONCE),
        },
    )


def _get_pool(variable: RunVar[T], make: Callable[[], T]) -> T:
    """Return the pool of the event loop, made on first use."""
    try:
        return variable.get()
    except LookupError:
        variable.set(value := make())
        return value


async def count_once(key: Hashable, work: Callable[[], T], pool: Pool = "history") -> T:
    """Run one count for all callers with the same key.

    Callers that arrive during a count share the next one, which includes everything recorded before
    they asked.
    """
    counts = _get_pool(_shared_counts, _SharedCounts)
    while (next_one := counts.next.get(key)) is not None:
        await next_one.end_event.wait()
        if next_one.failure is not None:
            raise copy(next_one.failure) from next_one.failure
        if next_one.is_done:
            result: T = next_one.result
            return result
    counts.next[key] = mine = _SharedCount()
    with mine:
        try:
            while (current := counts.current.get(key)) is not None:
                await current.end_event.wait()
        finally:
            del counts.next[key]
        counts.current[key] = mine
        try:
            mine.result = await run_counting(work, pool)
        finally:
            del counts.current[key]
    answer: T = mine.result
    return answer


class _SharedCounts:
    """Running and next counts, by key."""

    def __init__(self) -> None:
        self.current: dict[Hashable, _SharedCount] = {}
        self.next: dict[Hashable, _SharedCount] = {}


class _SharedCount:
    """A count shared by several callers.

    If it ends without result or failure, it was cancelled.
    """

    def __init__(self) -> None:
        self.end_event = anyio.Event()
        self.is_done = False
        self.result: Any = None
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, failure: BaseException | None, __: object) -> None:
        """Notify the other callers of the end."""
        self.is_done = failure is None
        self.failure = failure if isinstance(failure, Exception) else None
        self.end_event.set()
