"""Threads for long counts, a few at a time."""

import asyncio
from threading import Event

import anyio
import pytest

from witan.errors import Busy, NothingToCount
from witan.service.worker_pool import (
    AT_ONCE,
    cancel_counting,
    check_wanted,
    count_once,
    run_counting,
)

pytestmark = pytest.mark.anyio


async def test_short_work_does_not_wait_for_counts():
    """However many counts run, threads are free to read or record a session."""
    over = Event()
    came = []

    async def count(number):
        await run_counting(over.wait)
        came.append(number)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(count, number)
        await anyio.wait_all_tasks_blocked()
        try:
            with anyio.fail_after(60):
                assert await anyio.to_thread.run_sync(lambda: "read") == "read"
        finally:
            over.set()

    assert len(came) == 100


async def test_concurrent_counts_are_limited():
    """To exactly `AT_ONCE`."""
    over, counting = Event(), []

    def count():
        counting.append(1)
        over.wait()

    async with anyio.create_task_group() as group:
        for _ in range(3 * AT_ONCE):
            group.start_soon(run_counting, count)
        try:
            with anyio.fail_after(60):
                while len(counting) < AT_ONCE:  # noqa: ASYNC110 - threads count, which set no event
                    await anyio.sleep(0.01)
            await anyio.sleep(0.05)
            assert len(counting) == AT_ONCE
        finally:
            over.set()


async def count_on(counting):
    """Count until cancelled."""

    def count():
        counting.set()
        while True:
            check_wanted()

    await run_counting(count, "upload")


async def until(counting):
    """Wait until a thread has begun."""
    with anyio.fail_after(60):
        while not counting.is_set():  # noqa: ASYNC110 - a thread sets it
            await anyio.sleep(0.01)


async def test_a_cancelled_count_frees_its_slot():
    """As soon as its thread calls `check_wanted`."""
    for _ in range(AT_ONCE + 1):
        counting = Event()
        async with anyio.create_task_group() as group:
            group.start_soon(count_on, counting)
            await until(counting)
            group.cancel_scope.cancel()
    with anyio.fail_after(60):
        assert await run_counting(lambda: "counted", "upload") == "counted"


async def test_all_counts_can_be_cancelled():
    """Waiting callers learn that the server stops."""
    counting, told = Event(), []

    async def wait():
        try:
            await count_on(counting)
        except Busy as error:
            told.append(str(error))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await until(counting)
        with anyio.fail_after(60):
            await cancel_counting(4)

    [line] = told
    assert "about to stop" in line


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the event loop of the server
async def test_a_count_that_ignores_cancellation_still_ends_as_busy():
    """Cancelling its task at the server's stop is no internal error; no count starts later."""
    over, counting = Event(), Event()
    waiting = asyncio.ensure_future(run_counting(lambda: (counting.set(), over.wait(20))))
    await until(counting)
    await cancel_counting(0.05)

    waiting.cancel()
    try:
        with pytest.raises(Busy, match="about to stop"):
            await waiting
        with pytest.raises(Busy, match="about to stop"):
            await run_counting(lambda: "counted", "session")
    finally:
        over.set()


class TestOnce:
    """Callers with the same key share a count."""

    async def test_waiting_callers_share_the_next_count(self):
        """Callers that arrive during a count share the next one."""
        over, counting, came = Event(), [], []

        def count(key):
            counting.append(key)
            over.wait(5)
            return counting.count(key)

        async def ask(key):
            came.append((key, await count_once(key, lambda: count(key))))

        async with anyio.create_task_group() as group:
            for key in ("a", "b") * 5:
                group.start_soon(ask, key)
            await anyio.wait_all_tasks_blocked()
            over.set()
        assert sorted(counting) == ["a", "a", "b", "b"]
        assert sorted(came) == [("a", 1)] + [("a", 2)] * 4 + [("b", 1)] + [("b", 2)] * 4

        await ask("a")
        assert counting.count("a") == 3

    async def test_a_failure_is_raised_for_every_caller(self):
        """The next count may succeed."""
        over, heard = Event(), []

        def fail():
            over.wait(5)
            raise NothingToCount("there is nothing")

        async def ask():
            with pytest.raises(NothingToCount, match="there is nothing") as caught:
                await count_once("a", fail)
            heard.append(caught.value)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            over.set()

        assert len({id(each) for each in heard}) == 3
        assert await count_once("a", lambda: "fine") == "fine"

    async def test_a_cancelled_caller_does_not_end_a_shared_count(self):
        """It continues for the others."""
        over, came = Event(), []

        def count():
            over.wait(5)
            return "counted"

        async def ask():
            came.append(await count_once("a", count))

        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as gone:
                    gone.start_soon(ask)
                    await anyio.wait_all_tasks_blocked()
                    group.start_soon(ask)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
                    over.set()

        assert came[-1:] == ["counted"]
