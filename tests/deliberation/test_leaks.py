"""A thousand sessions, cancelled at every stage, leave nothing behind."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from misbehaving import MisbehavingServer
from witan.deliberation.events import AnswerDelta, Event, SynthesisDelta
from witan.service.council import Council

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc"),
]

SEATS = "abc"

SESSIONS, FIRST = 1_000, 400
"""Cancelled in all; after so many everything is as warm as it gets, and is measured."""

AT_ONCE = 25

EVENTS = 21
"""Of a session of three without a fault, its end and the pieces of its texts aside."""

LONGEST_SECONDS = 0.03
"""How long after an event a session is cancelled at the latest: any call is over by then."""

GROWTH_BYTES = 12_000_000
"""What the process may grow by: 20 kB a session, each of which sent and got some 50 kB."""

GROWTH_OBJECTS = 6_000
"""What the garbage collector may follow besides: 10 a session, of which each has hundreds."""


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """A server whose calls take 20 ms each."""
    with MisbehavingServer(seconds=0.02) as running:
        yield running


@dataclass(frozen=True)
class Resources:
    """Resources that this process uses."""

    objects: int
    bytes: int

    @classmethod
    def now(cls, server: MisbehavingServer) -> "Resources":
        """Measure, without what the server stores of the requests."""
        server.received.clear()
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE"))


def open_files() -> int:
    """The number of open file descriptors."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def files_left(at_most: int) -> int:
    """The number open once there are few, or after a while: sockets close a turn later."""
    with anyio.move_on_after(2):
        while open_files() > at_most:  # noqa: ASYNC110 - nobody tells when the system is done
            await anyio.sleep(0.01)
    return open_files()


async def cancel_sessions(council: Council, server: MisbehavingServer, count: int) -> Counter[str]:
    """Run this many sessions and cancel each at another moment; return their stages."""
    slots = anyio.CapacityLimiter(AT_ONCE)
    reached: Counter[str] = Counter()

    async def hold(events: int, seconds: float) -> None:
        heard: list[Event] = []

        def hear(event: Event) -> None:
            if not isinstance(event, AnswerDelta | SynthesisDelta):
                heard.append(event)
            if len(heard) == events:
                scope.deadline = min(scope.deadline, anyio.current_time() + seconds)

        async with slots:
            with anyio.CancelScope() as scope:
                await council.ask("Which?", listener=hear)
        reached[heard[-1].kind.partition("_")[0]] += 1
        server.received.clear()

    async with anyio.create_task_group() as group:
        for number in range(count):
            # Steps of the golden ratio are spread evenly, wherever one stops.
            spread = number * 0.618034 % 1
            group.start_soon(hold, 1 + number % EVENTS, LONGEST_SECONDS * spread)
    return reached


async def test_cancelled_sessions_leave_nothing(server):
    """They leave no connection, task, file or memory, whatever their stage."""
    files, tasks = open_files(), len(anyio.get_running_tasks())
    members = [f"{name}={server.url}#{name}" for name in SEATS]

    async with Council(members, environment={}) as council:
        around = len(anyio.get_running_tasks())
        reached = await cancel_sessions(council, server, FIRST)
        before = Resources.now(server)
        reached += await cancel_sessions(council, server, SESSIONS - FIRST)
        after = Resources.now(server)

        assert len(anyio.get_running_tasks()) == around
        idle = AT_ONCE * len(SEATS)
        assert server.open_connections(at_most=idle) <= idle

    assert after.objects - before.objects < GROWTH_OBJECTS
    assert after.bytes - before.bytes < GROWTH_BYTES
    assert server.open_connections() == 0
    assert len(anyio.get_running_tasks()) == tasks
    assert await files_left(at_most=files) <= files
    assert sum(reached.values()) == SESSIONS
    assert all(reached[stage] > 20 for stage in ("answer", "review", "synthesis"))
