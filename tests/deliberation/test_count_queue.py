"""Sessions of one text that end together are counted together, each as if it were alone."""

from dataclasses import replace

import anyio
import pytest

from witan.core.ballot import Ballot
from witan.core.gate import Gate
from witan.core.scale_recognition import declare_native
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation.count_queue import CountQueue

pytestmark = pytest.mark.anyio

SETTINGS = Settings(flips=False)


def cast(session, *grades):
    """Ballots of one session that grade its only text."""
    return [
        declare_native(
            Ballot(f"r{n}", (("text",),), {"text": grade}, session=session, candidates=("text",))
        )
        for n, grade in enumerate(grades)
    ]


SESSIONS = {
    "a": (cast("a", 9, 8, 7), SETTINGS),
    "b": (cast("b", 2, 3, 2), SETTINGS),
    "c": (cast("c", 5, 6), SETTINGS),
    "d": (cast("d", 9, 9, 9), replace(SETTINGS, level=0.8)),
    "e": (cast("e", 9, 9, 9), replace(SETTINGS, gates={"e": Gate({"text": ("x",)}, 3.0)})),
}


def count_alone(session):
    """The outcome of a session counted by itself."""
    [outcome] = tally_sessions(*SESSIONS[session])
    return outcome


async def count_queued(queue, results, session):
    """Count a session through the queue."""
    with queue.running():
        await anyio.lowlevel.checkpoint()
        results[session] = await queue.count(*SESSIONS[session], wait=True)


async def test_each_outcome_equals_that_of_the_session_alone():
    """It does to the last digit, next to sessions with other levels and gates too."""
    queue, results = CountQueue(), {}
    async with anyio.create_task_group() as group:
        for session in SESSIONS:
            group.start_soon(count_queued, queue, results, session)

    assert results == {session: count_alone(session) for session in SESSIONS}


async def test_a_cancelled_session_leaves_the_others_counted():
    """It was the first, which counts for all."""
    queue, results = CountQueue(), {}
    first = anyio.CancelScope()

    async def leave():
        with first, queue.running():
            await queue.count(*SESSIONS["a"], wait=True)

    with queue.running():
        async with anyio.create_task_group() as group:
            group.start_soon(leave)
            await anyio.lowlevel.checkpoint()
            group.start_soon(count_queued, queue, results, "b")
            await anyio.lowlevel.checkpoint()
            first.cancel()

    assert results == {"b": count_alone("b")}
