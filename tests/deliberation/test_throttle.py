"""Throttles: calls in flight, calls a minute, pauses and fairness."""

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calling import LoopClock
from loops import jumping_loop
from witan.deliberation.procedure import ThrottlePolicy
from witan.deliberation.throttle import START, Throttle, Throttles

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both event loops; trio's jumps over the time in which nothing happens."""
    if request.param == "trio":
        return jumping_loop()
    return "asyncio", {}


def throttle(concurrency: int = 64, per_minute: float | None = None) -> Throttle:
    return Throttle(ThrottlePolicy(concurrency, per_minute), LoopClock())


async def is_free(limited: Throttle, places: int) -> bool:
    """Whether so many calls can be in flight at once, right now."""
    arrived = 0

    async def stay():
        nonlocal arrived
        async with limited.slot():
            arrived += 1
            await anyio.sleep(60)

    async with anyio.create_task_group() as group:
        for _ in range(places + 1):
            group.start_soon(stay)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    return arrived == places


async def begun(limited: Throttle, calls: int) -> list[float]:
    """Seconds after which each of so many calls that come at once begins."""
    start = anyio.current_time()
    times = []

    async def one():
        async with limited.slot():
            times.append(anyio.current_time() - start)

    async with anyio.create_task_group() as group:
        for _ in range(calls):
            group.start_soon(one)
    return times


class TestConcurrency:
    """So many calls are in flight, and no more."""

    async def test_no_more_than_allowed_are_in_flight(self):
        """Of ten calls that come at once to a provider of three, three are ever in flight."""
        limited = throttle(concurrency=3)
        inside, most = 0, 0

        async def one():
            nonlocal inside, most
            async with limited.slot():
                inside += 1
                most = max(most, inside)
                await anyio.sleep(0.01)
                inside -= 1

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)

        assert most == 3

    async def test_first_come_first_served(self):
        """Calls begin in the order in which they came."""
        limited = throttle(concurrency=1)
        order = []

        async def one(number):
            async with limited.slot():
                order.append(number)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, number)
                await anyio.wait_all_tasks_blocked()

        assert order == list(range(8))

    async def test_a_failing_call_gives_its_place_back(self):
        """A call that raises leaves as many places as there were."""
        limited = throttle(concurrency=2)

        with pytest.raises(ValueError, match="no"):
            async with limited.slot():
                raise ValueError("no")

        assert await is_free(limited, 2)

    @pytest.mark.parametrize("after", [0.0, 0.005, 0.02])
    async def test_whoever_is_cancelled_while_waiting_takes_no_place(self, after):
        """Waiting calls that are cancelled, sooner or later, leave every place free."""
        limited = throttle(concurrency=2)

        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(begun, limited, 2)
            await anyio.sleep(after)
            group.cancel_scope.cancel()

        assert await is_free(limited, 2)

    async def test_a_wait_for_the_bucket_can_be_cancelled(self):
        """Whoever is first in line and leaves while the provider is paused takes no place."""
        limited = throttle(concurrency=1)
        limited.pause(0.05)

        with anyio.move_on_after(0.01) as scope:
            async with limited.slot():
                pytest.fail("the provider was paused")

        assert scope.cancelled_caught
        await anyio.sleep(0.05)
        assert await is_free(limited, 1)


class TestBucket:
    """So many calls begin in a minute, spread evenly but for a second's worth."""

    async def test_beyond_a_seconds_worth_calls_begin_evenly(self):
        """At 3,000 a minute the 51st call and those after it begin 20 ms apart."""
        times = await begun(throttle(per_minute=3000), 55)

        assert times[49] < times[50]
        assert [times[50 + i] >= 0.02 * (i + 1) - 1e-6 for i in range(5)] == [True] * 5
        assert times[54] < 20

    @given(
        per_minute=st.floats(0.5, 600),
        gaps=st.lists(st.floats(0, 30), min_size=1, max_size=25),
    )
    def test_no_stretch_of_time_sees_more_than_its_share(self, per_minute, gaps):
        """However calls arrive, w seconds see at most rate·w of them and one second's worth."""
        times = []

        async def arrive():
            limited = throttle(per_minute=per_minute)
            async with anyio.create_task_group() as group:
                for gap in gaps:
                    await anyio.sleep(gap)
                    group.start_soon(one, limited)

        async def one(limited):
            async with limited.slot():
                times.append(anyio.current_time())

        backend, options = jumping_loop()
        anyio.run(arrive, backend=backend, backend_options=options)

        rate, burst = per_minute / 60, max(1.0, per_minute / 60)
        assert len(times) == len(gaps)
        for first in range(len(times)):
            for last in range(first, len(times)):
                seen, seconds = last - first + 1, times[last] - times[first]
                assert seen <= burst + rate * seconds + 1e-6

    async def test_without_a_rate_nothing_waits(self):
        """A provider without a limit begins a thousand calls at once."""
        times = await begun(throttle(concurrency=1000), 1000)

        assert times[-1] < 20


class TestPause:
    """A provider that asks to be left alone is left alone by every call."""

    async def test_it_holds_back_every_call(self):
        """No call begins before the pause is over, and all do then."""
        limited = throttle()
        limited.pause(0.05)

        times = await begun(limited, 5)

        assert 0.05 - 1e-6 <= times[0] <= times[-1] < 20

    async def test_one_that_begins_during_another_prolongs_it(self):
        """Of two pauses the later end counts, also for a call that waits already."""
        limited = throttle()
        limited.pause(0.2)
        times = []

        async def wait():
            times.extend(await begun(limited, 3))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.01)
            limited.pause(0.3)
            limited.pause(0.001)

        assert 0.305 <= times[0] <= times[-1] < 20

    async def test_calls_in_flight_are_not_disturbed(self):
        """A pause says nothing about calls that have begun."""
        limited = throttle()

        async with limited.slot():
            limited.pause(60)
            with anyio.fail_after(20):
                await anyio.sleep(0.01)


class TestThrottles:
    """Every provider has one throttle, and its own."""

    async def test_calls_to_one_provider_share_it(self):
        """Asked for twice, it is the same; two providers have two."""
        throttles = Throttles({}, LoopClock())

        assert throttles["a"] is throttles["a"]
        assert throttles["a"] is not throttles["b"]

    async def test_it_is_made_of_the_providers_limits_or_the_default(self):
        """A provider that is named gets its own limits, the others those of `ThrottlePolicy()`."""
        throttles = Throttles({"small": ThrottlePolicy(concurrency=1)}, LoopClock())

        assert await is_free(throttles["small"], 1)
        assert await is_free(throttles["other"], START)
