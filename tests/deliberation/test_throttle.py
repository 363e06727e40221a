"""Throttles: concurrency, rates, pauses and fairness."""

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calling import LoopClock, is_free
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


async def start_times(limited: Throttle, calls: int) -> list[float]:
    """Seconds after which each of several concurrent calls begins."""
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
    """The number of calls in flight has a limit."""

    async def test_calls_in_flight_are_limited(self):
        """Of ten calls at once to a provider of three, at most three are in flight."""
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

    async def test_calls_begin_in_order_of_arrival(self):
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

    async def test_a_failing_call_releases_its_slot(self):
        limited = throttle(concurrency=2)

        with pytest.raises(ValueError, match="no"):
            async with limited.slot():
                raise ValueError("no")

        assert await is_free(limited, 2)

    @pytest.mark.parametrize("after", [0.0, 0.005, 0.02])
    async def test_a_cancelled_waiting_call_takes_no_slot(self, after):
        """It may be cancelled at any time."""
        limited = throttle(concurrency=2)

        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(start_times, limited, 2)
            await anyio.sleep(after)
            group.cancel_scope.cancel()

        assert await is_free(limited, 2)

    async def test_a_wait_for_the_bucket_can_be_cancelled(self):
        """The first in line is cancelled during a pause, and takes no slot."""
        limited = throttle(concurrency=1)
        limited.pause(0.05)

        with anyio.move_on_after(0.01) as scope:
            async with limited.slot():
                pytest.fail("the provider was paused")

        assert scope.cancelled_caught
        await anyio.sleep(0.05)
        assert await is_free(limited, 1)


class TestBucket:
    """Calls a minute are limited and spread evenly, except for a burst of one second."""

    async def test_calls_after_the_burst_begin_evenly(self):
        """At 3,000 a minute the 51st call and later ones begin 20 ms apart."""
        times = await start_times(throttle(per_minute=3000), 55)

        assert times[49] < times[50]
        assert [times[50 + i] >= 0.02 * (i + 1) - 1e-6 for i in range(5)] == [True] * 5
        assert times[54] < 20

    @given(
        per_minute=st.floats(0.5, 600),
        gaps=st.lists(st.floats(0, 30), min_size=1, max_size=25),
    )
    def test_no_interval_exceeds_the_rate(self, per_minute, gaps):
        """In w seconds at most rate·w calls begin, and one burst."""
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

    async def test_without_a_rate_no_call_waits(self):
        """A thousand calls begin at once."""
        times = await start_times(throttle(concurrency=1000), 1000)

        assert times[-1] < 20


class TestPause:
    """A pause of a provider holds back every call."""

    async def test_a_pause_holds_back_every_call(self):
        """All begin after it."""
        limited = throttle()
        limited.pause(0.05)

        times = await start_times(limited, 5)

        assert 0.05 - 1e-6 <= times[0] <= times[-1] < 20

    async def test_the_later_end_of_two_pauses_counts(self):
        """It applies to calls that are waiting already, too."""
        limited = throttle()
        limited.pause(0.2)
        times = []

        async def wait():
            times.extend(await start_times(limited, 3))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.01)
            limited.pause(0.3)
            limited.pause(0.001)

        assert 0.305 <= times[0] <= times[-1] < 20

    async def test_a_pause_does_not_affect_calls_in_flight(self):
        limited = throttle()

        async with limited.slot():
            limited.pause(60)
            with anyio.fail_after(20):
                await anyio.sleep(0.01)


class TestThrottles:
    """Every provider has its own throttle."""

    async def test_calls_to_one_provider_share_its_throttle(self):
        """Two providers have two."""
        throttles = Throttles({}, LoopClock())

        assert throttles["a"] is throttles["a"]
        assert throttles["a"] is not throttles["b"]

    async def test_a_throttle_has_its_providers_limits_or_the_default(self):
        """A provider that is named gets its own limits, the others those of `ThrottlePolicy()`."""
        throttles = Throttles({"small": ThrottlePolicy(concurrency=1)}, LoopClock())

        assert await is_free(throttles["small"], 1)
        assert await is_free(throttles["other"], START)
