"""Hedges: a call that stalls is made a second time."""

import anyio
import pytest
from trio.testing import MockClock

from calling import HANGS, PRICE, Script, Table, busy, fails, mute, says
from witan.deliberation.calls import CallResult
from witan.deliberation.procedure import Throttling
from witan.errors import ModelError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both event loops; trio's jumps over the time in which nothing happens."""
    if request.param == "trio":
        return "trio", {"clock": MockClock(autojump_threshold=0)}
    return "asyncio", {}


class TestHedge:
    """A call that stalls is made a second time, and the first to finish counts."""

    async def test_the_second_may_win(self):
        """Its reply counts; the first is cancelled, and nobody knows what it cost."""
        table = Table(hedge_seconds=0.02)
        script = Script(HANGS, says("be", "cause"))

        made = await table.ask(script)

        assert made.reply.text == "because"
        assert table.heard == ["be", "cause"]
        assert table.notices == [("a", "answer", 1, "said nothing for 0.02 s", 0.0)]
        assert (made.spent.calls, made.spent.cost_usd) == (2, None)
        assert script.running == 0
        assert await table.is_free(64)

    async def test_the_first_may_still_win(self):
        """It began late and ended first: the second is cancelled."""
        table = Table(hedge_seconds=0.02)
        script = Script(says("first", after=0.1), says("second", after=9.0))

        made = await table.ask(script)

        assert made.reply.text == "first"
        assert script.running == 0

    async def test_only_the_first_to_speak_is_heard(self):
        """The one that is heard loses, and the winner's text is whole all the same."""
        table = Table(hedge_seconds=0.02)
        slow, quick = says("s", "low", after=0.1, every=9.0), says("qu", "ick", after=0.3)

        made = await table.ask(Script(slow, quick))

        assert made.reply.text == "quick"
        assert table.heard == ["s"]

    @pytest.mark.parametrize(
        "step",
        [
            says("a", "b", every=0.2),
            mute("yes", after=0.05),
            fails(ModelError("m", "no", 401)),
        ],
    )
    async def test_what_stirs_in_time_is_not_made_twice(self, step):
        """A word, a reply or a failure within the time is enough."""
        table = Table(hedge_seconds=0.3)
        script = Script(step)

        await table.ask(script)

        assert (script.requests, table.notices) == (1, [])

    async def test_a_second_that_fails_does_not_disturb_the_first(self):
        """The first still brings its reply."""
        table = Table(hedge_seconds=0.01)

        made = await table.ask(Script(says("yes", after=0.1), fails(busy())))

        assert (made.reply.text, made.spent.cost_usd) == ("yes", pytest.approx(15e-6))

    async def test_a_first_that_fails_leaves_the_second(self):
        """The second still brings its reply, and no further attempt is made."""
        table = Table(hedge_seconds=0.01)
        script = Script(fails(busy(), after=0.1), says("yes", after=0.2))

        made = await table.ask(script)

        assert (made.reply.text, script.requests) == ("yes", 2)

    async def test_if_both_fail_the_first_decides_what_follows(self):
        """A passing failure of the first is tried again, whatever the second said."""
        table = Table(hedge_seconds=0.01)
        refused = fails(ModelError("m", "no", 401))
        script = Script(fails(busy(), after=0.1), refused, says("yes"))

        made = await table.ask(script)

        assert (made.reply.text, script.requests) == ("yes", 3)

    async def test_without_money_for_two_there_is_one(self):
        """A second request that could cross the ceiling is not made, and not told."""
        once = PRICE.of(200, 100)
        table = Table(hedge_seconds=0.01, max_usd=once)
        script = Script(says("yes", after=0.05))

        made = await table.ask(script)

        assert isinstance(made, CallResult)
        assert (script.requests, table.notices) == (1, [])

    @pytest.mark.parametrize("places", [1, 2])
    async def test_without_a_free_slot_the_first_goes_on(self, places):
        """A call in time for its limit brings its reply, though no slot is left for a second."""
        table = Table(
            hedge_seconds=0.3, call_seconds=0.6, throttling=Throttling(concurrency=places)
        )
        scripts = [Script(mute("yes", after=0.4)) for _ in range(places)]
        made = []

        async def ask(script):
            made.append(await table.ask(script))

        async with anyio.create_task_group() as group:
            for script in scripts:
                group.start_soon(ask, script)

        assert [each.reply.text for each in made] == ["yes"] * places
        assert [script.requests for script in scripts] == [1] * places
        assert table.notices == []
        assert await table.is_free(places)

    async def test_reasoning_is_a_sign_of_life(self):
        """A model that reasons apart from its text in time is not asked a second time."""

        async def reasons(hear):
            await anyio.sleep(0.1)
            hear.hear_reasoning()
            await anyio.sleep(0.4)
            return await says("yes")(hear)

        table = Table(hedge_seconds=0.3)
        script = Script(reasons)

        made = await table.ask(script)

        assert (made.reply.text, script.requests, table.notices) == ("yes", 1, [])

    async def test_the_second_keeps_to_the_rate(self):
        """It waits for its minute, and is not sent where the first speaks meanwhile."""
        table = Table(hedge_seconds=0.02, throttling=Throttling(concurrency=2, per_minute=60))
        script = Script(says("yes", after=0.3))

        made = await table.ask(script)

        assert (made.reply.text, script.requests, table.notices) == ("yes", 1, [])

    async def test_both_end_with_the_call(self):
        """At the deadline both are cancelled, and both may have been billed."""
        table = Table(hedge_seconds=0.01, call_seconds=0.15)
        script = Script(HANGS)

        failed = await table.ask(script)

        assert failed.reason == "timed out after 0.15 s"
        assert (script.requests, script.running) == (2, 0)
        assert table.purse.total().unknown_calls == 2
