"""Counting that may take long, a few at a time."""

from threading import Event

import anyio
import pytest

from witan.surfaces.inquiries.in_turn import AT_ONCE, in_turn

pytestmark = pytest.mark.anyio


async def test_what_is_brief_does_not_wait_for_what_takes_long():
    """However many count at once, a thread is free for whoever reads or records a session."""
    over = Event()
    came = []

    async def count(number):
        await in_turn(over.wait)
        came.append(number)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(count, number)
        await anyio.wait_all_tasks_blocked()
        try:
            with anyio.fail_after(5):
                assert await anyio.to_thread.run_sync(lambda: "read") == "read"
        finally:
            over.set()

    assert len(came) == 100


async def test_so_many_count_at_once():
    """No more, no fewer."""
    over, counting = Event(), []

    def count():
        counting.append(1)
        over.wait()

    async with anyio.create_task_group() as group:
        for _ in range(3 * AT_ONCE):
            group.start_soon(in_turn, count)
        try:
            with anyio.fail_after(5):
                while len(counting) < AT_ONCE:  # noqa: ASYNC110 - threads count, which set no event
                    await anyio.sleep(0.01)
            await anyio.sleep(0.05)
            assert len(counting) == AT_ONCE
        finally:
            over.set()
