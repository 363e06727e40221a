"""Calls: replies, deadlines, cancellation, retries, hedges and foreign failures."""

import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from sniffio import current_async_library

from calling import CALL, HANGS, PRICE, Script, Step, Table, busy, fails, mute, returns, says
from loops import jumping_loop
from witan.deliberation.calls import CallFailure, CallResult
from witan.deliberation.ports import Hear, Member, Reply, Usage
from witan.deliberation.procedure import ThrottlePolicy
from witan.errors import MissingKey, ModelError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both event loops; trio's jumps over the time in which nothing happens."""
    if request.param == "trio":
        return jumping_loop()
    return "asyncio", {}


class TestReply:
    """A call that works."""

    async def test_reply_has_text_and_usage(self):
        """Text, tokens, money, time and the number of requests; pieces are in order."""
        table = Table()

        made = await table.ask(Script(says("be", "cause", after=0.02)))

        assert isinstance(made, CallResult)
        assert made.reply.text == "because"
        assert table.heard == ["be", "cause"]
        assert table.spent.usage == Usage(10, 5)
        assert table.spent.cost_usd == pytest.approx(15e-6)
        assert 0.02 - 1e-6 <= table.spent.seconds < 20
        assert table.spent.calls == 1
        assert table.notices == []

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_a_timeout_after_a_failure_names_it(self):
        """What failed before the attempt that hung may be the cause of both."""
        failed = await Table(call_seconds=30.0).ask(Script(fails(busy()), HANGS))

        assert failed.reason == "timed out after 30 s; the attempt before: is busy (503)"

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_waiting_for_a_slot_is_not_part_of_the_timeout(self):
        """Three calls of 0.4 s through one slot are all made, each within its second."""
        table = Table(throttling=ThrottlePolicy(concurrency=1), call_seconds=1.0)
        results, seconds = [], []

        async def one(name):
            results.append(await table.ask(Script(says("yes", after=0.4)), name))
            seconds.append(table.spent.seconds)

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(one, name)

        assert [type(result) for result in results] == [CallResult] * 3
        assert max(seconds) < 1.0

    async def test_a_call_is_written_once_it_has_a_slot(self):
        """Of three calls through one slot the two that wait have no texts yet."""
        table, written = Table(throttling=ThrottlePolicy(concurrency=1)), []
        let_go = anyio.Event()

        async def reply(_: Hear) -> Reply:
            await let_go.wait()
            return Reply("yes", Usage(10, 5))

        async def one(name):
            def write():
                written.append(name)
                return CALL

            member = Member(name, Script(reply), provider="p", price=PRICE)
            await table.caller.write_and_call(member, "answer", write)

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(one, name)
            await anyio.wait_all_tasks_blocked()
            n_written = len(written)
            let_go.set()

        assert n_written == 1
        assert sorted(written) == ["a", "b", "c"]


class TestDeadline:
    """A call ends at its timeout, and the caller can end it before."""

    async def test_hanging_model_times_out(self):
        """The reason has the time; the cost is unknown; nothing is left running."""
        table = Table(call_seconds=0.05, throttling=ThrottlePolicy(concurrency=1))
        script = Script(HANGS)

        failed = await table.ask(script)

        assert isinstance(failed, CallFailure)
        assert failed.reason == "timed out after 0.05 s"
        assert table.spent.cost_usd is None
        assert 0.05 - 1e-6 <= table.spent.seconds < 20
        assert script.running == 0
        assert await table.is_free(1)


class TestCancellation:
    """The caller can end a call at any moment, and nothing is left of it."""

    async def cancel(self, table: Table, *scripts: Script, requests: int = 1) -> None:
        """Make calls, cancel them after these requests; check that none returned or goes on."""
        returned = []

        async def one(script: Script) -> None:
            returned.append(await table.ask(script))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for script in scripts:
                    group.start_soon(one, script)
                while sum(script.requests for script in scripts) < requests:  # noqa: ASYNC110
                    await anyio.sleep(0.001)
                await anyio.sleep(0.02)
                group.cancel_scope.cancel()

        assert group.cancel_scope.cancelled_caught
        assert returned == []
        assert [script.running for script in scripts] == [0] * len(scripts)

    async def test_while_a_call_waits_for_a_slot(self):
        """One of three calls has the only slot, which nobody answers: it is free again."""
        table = Table(throttling=ThrottlePolicy(concurrency=1))
        scripts = [Script(HANGS), Script(HANGS), Script(HANGS)]

        await self.cancel(table, *scripts)

        assert sum(script.requests for script in scripts) == 1
        assert await table.is_free(1)

    async def test_while_a_call_waits_to_try_again(self):
        """Nothing is tried again after the end."""
        table = Table(throttling=ThrottlePolicy(concurrency=1))
        script = Script(fails(busy(429, retry_after=0.5)), says("yes"))

        await self.cancel(table, script)

        await anyio.sleep(0.5)
        assert (len(table.notices), script.requests) == (1, 1)
        assert await table.is_free(1)

    async def test_while_both_requests_of_a_hedge_are_under_way(self):
        """Both are cancelled, both slots are free, and both may have been billed."""
        table = Table(throttling=ThrottlePolicy(concurrency=2), hedge_seconds=0.01)
        script = Script(HANGS)

        await self.cancel(table, script, requests=2)

        assert script.requests == 2
        spent = table.caller.collect_spent("a")
        assert (spent.cost_usd, spent.calls) == (None, 2)
        assert await table.is_free(2)

    @pytest.mark.parametrize("steps", range(12))
    async def test_cancelling_at_every_step_frees_both_slots(self, steps):
        """Every early step of a hedged call is tried."""
        table = Table(throttling=ThrottlePolicy(concurrency=2), hedge_seconds=1e-6)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(table.ask, Script(says("yes", every=1e6)))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

        assert await table.is_free(2)


class TestRetries:
    """What may succeed later is tried again, in time and not too often."""

    async def test_transient_failure_is_retried_and_reported(self):
        """Two failures and a reply: three requests, two notices, and the waits they name."""
        table = Table()

        made = await table.ask(Script(fails(busy()), fails(busy(429)), says("yes")))

        assert isinstance(made, CallResult)
        assert [told[:4] for told in table.notices] == [
            ("a", "answer", 1, "is busy (503)"),
            ("a", "answer", 2, "is busy (429)"),
        ]
        assert table.spent.calls == 3
        assert table.spent.seconds >= sum(told[4] for told in table.notices) - 1e-6

    async def test_permanent_failure_is_not_retried(self):
        """A rejected key is final."""
        table = Table()
        script = Script(fails(ModelError("m", "rejected the API key in M_KEY (401)", 401)))

        failed = await table.ask(script)

        assert "M_KEY (401)" in failed.reason
        assert (script.requests, table.notices) == (1, [])

    async def test_provider_sets_the_wait(self):
        """No other call of the provider begins either before the wait is over."""
        table = Table()
        begun = []

        async def other():
            await anyio.sleep(0.01)
            async with table.throttles["p"].slot():
                begun.append(anyio.current_time())

        start = anyio.current_time()
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            made = await table.ask(Script(fails(busy(429, retry_after=0.6)), says("yes")))

        assert isinstance(made, CallResult)
        assert table.notices[0][4] == 0.6
        assert begun[0] - start >= 0.6 - 1e-6

    async def test_wait_beyond_the_deadline_is_skipped(self):
        """The failure has the stated wait and the time left, and blocks no other call."""
        table = Table(call_seconds=85)

        failed = await table.ask(Script(fails(busy(429, retry_after=600))))

        assert all(fact in failed.reason for fact in ("(429)", "600 s", "85 s left"))
        assert failed.error.status == 429
        assert table.notices == []
        assert await table.is_free(32)

    async def test_the_slot_is_free_while_a_call_waits_to_try_again(self):
        """Through a single slot another call passes between two attempts."""
        table = Table(throttling=ThrottlePolicy(concurrency=1))
        order = []

        def marked(name: str, step: Step) -> Step:
            async def marking(hear: Hear) -> Reply:
                order.append(name)
                return await step(hear)

            return marking

        async def other():
            await anyio.sleep(0.005)
            await table.ask(Script(marked("other", says("yes"))))

        async with anyio.create_task_group() as group:
            group.start_soon(other)
            first, again = marked("first", fails(busy(), after=0.01)), marked("again", says("yes"))
            await table.ask(Script(first, again))

        assert order == ["first", "other", "again"]

    async def test_every_attempt_is_streamed_from_its_beginning(self):
        """The broken text comes first, then after the notice the whole text."""
        table = Table()
        broke = fails(busy(None), "be")

        made = await table.ask(Script(broke, says("be", "cause")))

        assert table.heard == ["be", "be", "cause"]
        assert made.reply.text == "because"


class TestLongWaits:
    """Waits of minutes run on a simulated clock."""

    @pytest.fixture
    def anyio_backend(self):
        """Trio alone."""
        return jumping_loop()

    async def test_attempts_and_waits_share_the_seconds(self):
        """Attempts of 50 s that fail are followed by a third that has what is left of 120 s."""
        table = Table()

        failed = await table.ask(Script(*[fails(busy(), after=50)] * 2, HANGS))

        assert failed.reason == "timed out after 120 s; the attempt before: is busy (503)"
        assert table.spent.seconds == pytest.approx(120)
        assert table.spent.calls == 3

    async def test_failure_without_time_for_a_wait_is_the_reason(self):
        """A failure just before the deadline is reported instead of a timeout."""
        table = Table()

        failed = await table.ask(Script(fails(busy(), after=119.99)))

        assert failed.reason == "is busy (503)"
        assert table.spent.seconds == pytest.approx(119.99)
        assert table.notices == []

    async def test_it_gives_up_after_its_attempts(self):
        """Four attempts by default, and the failure is the last one's."""
        table = Table()
        script = Script(*[fails(busy())] * 3, fails(busy(500)), says("too late"))

        failed = await table.ask(script)

        assert failed.reason == "is busy (500)"
        assert (script.requests, table.spent.calls, len(table.notices)) == (4, 4, 3)

    async def test_waits_grow_and_spread(self):
        """The n-th wait lies anywhere below half a second doubled n - 1 times, 20 s at most."""
        waits = []
        for seat in range(40):
            table = Table(attempts=9, call_seconds=1e4)
            await table.ask(Script(fails(busy())), name=f"seat {seat}")
            waits.append([told[4] for told in table.notices])

        longest = np.max(waits, axis=0)
        caps = [0.5, 1, 2, 4, 8, 16, 20, 20]
        assert np.all(longest <= caps)
        assert np.all(longest >= 0.8 * np.array(caps))
        assert np.all(np.min(waits, axis=0) <= 0.2 * np.array(caps))

    async def test_waits_do_not_depend_on_who_fails_first(self):
        """Each seat waits as long whichever of the two is asked first."""
        waits = []
        for order in (("a", "b"), ("b", "a")):
            table = Table(attempts=3)
            for name in order:
                await table.ask(Script(fails(busy())), name=name)
            waits.append(sorted((told[0], told[4]) for told in table.notices))

        assert waits[0] == waits[1]
        assert waits[0][0][1] != waits[0][2][1]

    async def test_a_thousand_attempts_still_have_a_wait(self):
        """Doubling stops where the cap is long reached."""
        table = Table(attempts=1200, call_seconds=1e6)

        await table.ask(Script(fails(busy())))

        assert table.spent.calls == 1200


EXITS = """
import sys, anyio
sys.path.insert(0, sys.argv[2])
from calling import Script, Table, fails

async def main():
    await Table().ask(Script(fails(SystemExit(7))))

anyio.run(main, backend=sys.argv[1])
"""


class TestForeign:
    """A model that is not ours may raise and return anything."""

    async def test_foreign_exception_is_reported_by_name(self):
        """Kind and words in one line of bounded length, without another attempt."""
        table = Table()
        script = Script(fails(ValueError("no\n such " + "x" * 999)))

        failed = await table.ask(script)

        assert isinstance(failed.error, ModelError)
        assert failed.reason.startswith("raised ValueError: no such xxx")
        assert len(failed.reason) < 350
        assert script.requests == 1

    async def test_exception_without_words_is_reported_by_kind(self):
        """The reason is the kind alone."""
        failed = await Table().ask(Script(fails(KeyError())))

        assert failed.reason == "raised KeyError"

    async def test_an_object_that_is_no_model_fails_alone(self):
        """What cannot be called is its own seat's failure, as what fails when it is called."""
        failed = await Table().ask(object())

        assert failed.reason.startswith("raised AttributeError: 'object' object has no attribute")

    @pytest.mark.parametrize("error", [TimeoutError("slow"), ConnectionResetError("gone")])
    async def test_transient_exception_of_python_is_retried(self, error):
        """A timeout or a dropped connection may pass."""
        assert isinstance(await Table().ask(Script(fails(error), says("yes"))), CallResult)

    async def test_what_ends_a_program_is_not_caught(self):
        """A model that exits ends the program, with its own status."""
        run = await anyio.run_process(
            [sys.executable, "-c", EXITS, current_async_library(), str(Path(__file__).parents[1])],
            check=False,
        )

        assert run.returncode == 7

    @pytest.mark.parametrize("thing", [None, "because", {"text": "because"}])
    async def test_anything_but_a_reply_is_refused(self, thing):
        """The reason names what came instead."""
        failed = await Table().ask(Script(returns(thing)))

        assert all(
            fact in failed.reason
            for fact in (f"returned {type(thing).__name__}", "instead of a Reply")
        )

    @pytest.mark.parametrize("text", ["", " \n\t", None])
    async def test_empty_reply_is_retried(self, text):
        """An empty reply may pass, and its cost counts."""
        table = Table()

        await table.ask(Script(mute(text), says("yes")))

        assert table.notices[0][3] == "said nothing"
        assert table.spent.usage == Usage(20, 10)
        assert table.spent.cost_usd == pytest.approx(30e-6)

    async def test_own_errors_keep_their_sentence(self):
        """A missing key has the same message as everywhere else."""
        failed = await Table().ask(Script(fails(MissingKey("a", "A_KEY"))))

        assert "set the variable A_KEY" in failed.reason

    async def test_failing_callback_is_not_a_fault_of_the_model(self):
        """The callback's error is raised unchanged."""
        table = Table()

        def listen(text: str) -> None:
            raise ValueError("our own bug")

        member = Member("a", Script(says("yes")), provider="p")
        with pytest.raises(ValueError, match="our own bug"):
            await table.caller.call(member, CALL, listen)


class TestMoney:
    """What failed and may have been billed makes the cost unknown; what was refused does not."""

    @pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
    async def test_refused_call_costs_nothing(self, status):
        """A status without any text means that nothing was generated."""
        table = Table()

        await table.ask(Script(fails(ModelError("m", "refused", status))))

        assert (table.spent.cost_usd, table.spent.usage) == (0.0, Usage(0, 0))

    @pytest.mark.parametrize(
        "step",
        [
            fails(ModelError("m", "broke off"), "be"),
            fails(ModelError("m", "failed midway", 500), "be"),
            fails(ModelError("m", "cannot be reached")),
            fails(ModelError("m", "nobody waited", 504)),
            fails(ModelError("m", "nobody waited", 408)),
            fails(ValueError()),
        ],
    )
    async def test_what_may_have_been_billed_is_unknown(self, step):
        """A dropped connection, a gateway's time-out, text before the failure."""
        table = Table()

        await table.ask(Script(step))

        assert (table.spent.cost_usd, table.spent.usage) == (None, Usage())

    async def test_a_lost_attempt_makes_the_whole_call_unknown(self):
        table = Table()

        await table.ask(Script(fails(busy(None)), says("yes")))

        assert table.spent.cost_usd is None

    async def test_a_refused_attempt_leaves_the_cost_known(self):
        """A 429 that was tried again costs what the reply costs."""
        table = Table()

        await table.ask(Script(fails(busy(429)), says("yes")))

        assert table.spent.cost_usd == pytest.approx(15e-6)

    async def test_call_over_the_ceiling_is_not_made(self):
        """The failure is the budget's, nothing was spent, and no request was made."""
        table = Table(max_usd=1e-6)
        script = Script(says("yes"))

        failed = await table.ask(script)

        assert failed.over_budget
        assert failed.reason.startswith("not called: it could cost $")
        assert (table.spent.calls, table.spent.cost_usd, script.requests) == (0, 0.0, 0)
        assert await table.is_free(64)


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
        assert (table.spent.calls, table.spent.cost_usd) == (2, None)
        assert script.running == 0
        assert await table.is_free(64)

    async def test_the_first_may_still_win(self):
        """It began late and ended first: the second is cancelled."""
        table = Table(hedge_seconds=0.02)
        script = Script(says("first", after=0.1), says("second", after=9.0))

        made = await table.ask(script)

        assert made.reply.text == "first"
        assert script.running == 0

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_only_the_first_to_stream_is_passed_on(self):
        """Even if it loses, the winner's text is whole."""
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
    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_active_call_is_not_hedged(self, step):
        """A word, a reply or a failure within the time is enough."""
        table = Table(hedge_seconds=0.3)
        script = Script(step)

        await table.ask(script)

        assert (script.requests, table.notices) == (1, [])

    async def test_a_second_that_fails_does_not_disturb_the_first(self):
        """The first still brings its reply."""
        table = Table(hedge_seconds=0.01)

        made = await table.ask(Script(says("yes", after=0.1), fails(busy())))

        assert (made.reply.text, table.spent.cost_usd) == ("yes", pytest.approx(15e-6))

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

    async def test_hedge_over_the_ceiling_is_not_made(self):
        """A second request that could cross the ceiling is neither made nor reported."""
        once = PRICE.of(200, 100)
        table = Table(hedge_seconds=0.01, max_usd=once)
        script = Script(says("yes", after=0.05))

        made = await table.ask(script)

        assert isinstance(made, CallResult)
        assert (script.requests, table.notices) == (1, [])

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    @pytest.mark.parametrize("places", [1, 2])
    async def test_without_a_free_slot_the_first_goes_on(self, places):
        """A call in time for its limit brings its reply, though no slot is left for a second."""
        table = Table(
            hedge_seconds=0.3, call_seconds=0.6, throttling=ThrottlePolicy(concurrency=places)
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

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
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
        table = Table(hedge_seconds=0.02, throttling=ThrottlePolicy(concurrency=2, per_minute=60))
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
        assert (table.spent.cost_usd, table.spent.calls) == (None, 2)
