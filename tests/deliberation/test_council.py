"""A council leaves nothing running after its block, and its records are reproducible."""

import gc
import json
import os
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from councils import QUESTION, CountingClock, council, member, members, says
from witan.deliberation import events as e
from witan.deliberation.council import BaseCouncil
from witan.deliberation.ports import Price, Reply
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import (
    InvalidParameter,
    ModelError,
    NoCouncil,
    NothingToCount,
    OverBudget,
    UnknownName,
)
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request) -> str:
    """Both event loops."""
    return request.param


class TestSeating:
    """Invalid and valid seats."""

    async def test_a_council_of_one_member_is_refused(self):
        with pytest.raises(NoCouncil, match="at least two members"):
            council(members("a"))

    async def test_two_seats_of_one_name_are_refused(self):
        """The error states the name."""
        with pytest.raises(InvalidParameter, match="'a'"):
            council(members("aa"))

    @pytest.mark.parametrize("option", ["quorum", "enough"])
    async def test_a_quorum_above_the_number_of_members_is_refused(self, option):
        """No call is paid for."""
        with pytest.raises(InvalidParameter, match="at most the 3 members"):
            council(members("abc"), **{option: 4})

    async def test_one_model_may_have_several_seats(self):
        """Their names differ."""
        one = member("a", "ab").model
        seated = [replace(seat, model=one) for seat in members("abc")]
        async with council(seated) as opened:
            session = await opened.ask(QUESTION)

        assert len(session.answers) == 3


class TestMisuse:
    """Errors of the caller are raised as they are."""

    async def test_an_empty_question_is_refused(self):
        """The error is not wrapped in an exception group."""
        with pytest.raises(InvalidParameter, match="question"):
            async with council(members("ab")) as opened:
                await opened.ask(" \n")

    async def test_a_council_outside_its_block_is_refused(self):
        """The error explains how to use it."""
        with pytest.raises(NoCouncil, match="async with"):
            await council(members("ab")).ask(QUESTION)

    @pytest.mark.parametrize("seed", [-1, 2**53])
    async def test_a_seed_too_large_for_json_is_refused(self, seed):
        """Seeds that JSON cannot hold exactly are refused."""
        with pytest.raises(InvalidParameter, match="seed"):
            async with council(members("ab")) as opened:
                await opened.ask(QUESTION, seed=seed)

    async def test_an_exception_in_the_block_is_not_wrapped(self):
        with pytest.raises(KeyError, match="mine"):
            async with council(members("ab")):
                raise KeyError("mine")

    async def test_an_unknown_reviewer_cannot_be_left_out_of_a_recount(self):
        """The error suggests the nearest seat."""
        async with council(members("abc")) as opened:
            session = await opened.ask(QUESTION)

        with pytest.raises(UnknownName, match="reviewer"):
            session.recount(without=["x"])
        with pytest.raises(NothingToCount):
            session.recount(without=["a", "b", "c"])


class TestStream:
    """The events of a session as they happen."""

    async def test_the_stream_folds_into_the_session(self):
        """Every event is yielded, and together they give the result of `ask`."""
        async with council(members()) as opened:
            events = [event async for event in opened.deliberate(QUESTION, seed=3)]
            asked = await opened.ask(QUESTION, seed=3)

        session = Session.of(events)
        assert isinstance(events[-1], e.SessionClosed)
        assert session.text == asked.text
        assert session.outcome.standings == asked.outcome.standings

    async def test_leaving_the_loop_cancels_the_session(self):
        """Calls in flight are cancelled."""
        seated = [*members("ab"), member("c", answers=[Line(hang=True)])]
        with anyio.fail_after(25):
            async with council(seated) as opened, aclosing(opened.deliberate(QUESTION)) as stream:
                async for event in stream:
                    if isinstance(event, e.AnswerDone):
                        break

    async def test_many_sessions_run_at_once(self):
        """Each of fifty questions gets its own session."""
        texts = {}

        async def ask(number: int) -> None:
            session = await opened.ask(f"Question {number}?")
            texts[number] = (session.question, session.status)

        async with council(members("abc")) as opened, anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(ask, number)

        assert texts == {n: (f"Question {n}?", "complete") for n in range(50)}


class TestIsolation:
    """A fault of one part of a council does not affect the others."""

    async def test_a_model_that_cancels_itself_fails_alone(self):
        """Its seat has the reason; the others deliberate."""

        class Cancels:
            async def complete(self, _call, _hear, /):
                raise anyio.get_cancelled_exc_class()

        if "trio" in str(anyio.get_cancelled_exc_class()):
            pytest.skip("trio's cancellation cannot be raised by hand")
        seated = [*members("abc"), replace(member("d"), model=Cancels())]
        async with council(seated, attempts=1) as opened:
            session = await opened.ask(QUESTION)

        assert session.unanswered == {"d": "cancelled its own call"}
        assert session.outcome.n_ballots == 3

    @pytest.mark.parametrize("cost", [-100.0, float("nan"), "5", True])
    async def test_an_invalid_cost_is_a_fault_of_the_model(self, cost):
        """A cost is a number, and not negative."""

        class Bills:
            async def complete(self, _call, _hear, /):
                return Reply("Seven.", cost_usd=cost)

        seated = [*members("abc"), replace(member("d"), model=Bills())]
        async with council(seated) as opened:
            session = await opened.ask(QUESTION)

        assert "cost_usd" in session.unanswered["d"]

    async def test_a_failing_callback_ends_only_its_session(self):
        """Its own error is raised."""

        def listen(event):
            if isinstance(event, e.AnswerDone):
                raise KeyError("mine")

        async with council(members("abc")) as opened:
            with pytest.raises(KeyError, match="mine"):
                await opened.ask(QUESTION, listener=listen)
            assert (await opened.ask(QUESTION)).status == "complete"

    async def test_a_failing_stream_ends_only_its_session(self):
        """Its safety check raises."""

        def check(text):
            raise ValueError("no verdict")

        held = BaseCouncil(
            members("abc"), procedure=Procedure(safety=True), clock=CountingClock(), check=check
        )
        async with held as opened:
            with pytest.raises(ValueError, match="no verdict"):
                async for _ in opened.deliberate(QUESTION):
                    pass
            with pytest.raises(ValueError, match="no verdict"):
                async for _ in opened.deliberate(QUESTION):
                    pass


class TestSettings:
    """Settings that cannot be counted are refused before the first call."""

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"rule": "borda", "variant": "rooster"}, "variant"),
            ({"rule": "range", "rubric_scoring": False}, "rule"),
            ({"rule": "elo"}, "rule"),
            ({"kind": "human"}, "kind"),
            ({"rule": "hybrid", "alpha": 7}, "alpha"),
        ],
    )
    async def test_a_setting_that_cannot_be_counted_is_refused(self, options, words):
        """The error names it."""
        with pytest.raises(InvalidParameter, match=words):
            council(members("abc"), **options)

    async def test_sessions_of_one_seed_have_different_names(self):
        """They begin at the same moment."""
        async with council(members("abc")) as opened:
            names = {(await opened.ask(QUESTION, seed=1)).id for _ in range(5)}

        assert len(names) == 5


class TestCancellation:
    """Nothing outlives the block."""

    async def test_hundreds_of_cancelled_sessions_leave_nothing(self):
        """After four hundred sessions cancelled at any stage there is no task more than before."""
        slow = [
            member(x, "ab", answers=[Line(says(x), seconds=0.002)], reviews=[Line(seconds=0.002)])
            for x in "abc"
        ]
        stopped = 0

        async def put(opened, seconds: float) -> None:
            nonlocal stopped
            with anyio.move_on_after(seconds) as scope:
                await opened.ask(QUESTION, seed=1)
            stopped += scope.cancelled_caught

        async with council(slow) as opened:
            before = len(_tasks())
            for _ in range(8):
                async with anyio.create_task_group() as group:
                    for number in range(50):
                        group.start_soon(put, opened, number * 0.0004)
            await anyio.lowlevel.checkpoint()
            after = len(_tasks())

        assert stopped > 200
        assert after == before

    async def test_a_cancelled_session_raises_only_the_cancellation(self):
        seated = [*members("ab"), member("c", answers=[Line(hang=True)])]
        async with council(seated) as opened:
            with anyio.move_on_after(0.1) as scope:
                await opened.ask(QUESTION)

        assert scope.cancelled_caught


def _tasks() -> list[object]:
    gc.collect()
    return list(anyio.get_running_tasks())


class TestResuming:
    """An interrupted session continues where it stopped."""

    async def interrupt_after(self, held, after: type[e.Event], times: int) -> Session:
        """The session up to this many events of a kind."""
        heard: list[e.Event] = []
        async with held as opened, aclosing(opened.deliberate(QUESTION, seed=11)) as stream:
            async for event in stream:
                heard.append(event)
                if sum(isinstance(x, after) for x in heard) == times:
                    break
        return Session.of(heard)

    @pytest.mark.parametrize(
        ("after", "times"),
        [(e.AnswerDone, 1), (e.AnswerDone, 3), (e.BallotCast, 2), (e.SynthesisStarted, 1)],
    )
    async def test_finished_calls_are_not_repeated(self, after, times):
        """The session ends the same, and its first part is unchanged."""
        broken = await self.interrupt_after(council(members()), after, times)
        assert broken.status == "interrupted"

        async with council(members()) as opened:
            whole = await opened.ask(QUESTION, seed=11)
            resumed = await opened.resume(broken)

        assert resumed.events[: len(broken.events)] == broken.events
        assert (resumed.status, resumed.text) == (whole.status, whole.text)
        assert resumed.outcome.standings == whole.outcome.standings
        done = [x.seat for x in resumed.events if isinstance(x, e.AnswerDone)]
        assert sorted(done) == list("abcde")
        cast = [x.seat for x in resumed.events if isinstance(x, e.BallotCast)]
        assert sorted(cast) == list("abcde")

    async def test_interrupted_calls_count_at_their_maximum(self):
        """They may be billed: the cost is unknown, and bounded."""
        priced = [replace(seat, price=Price(10.0, 30.0)) for seat in members("abc")]
        broken = await self.interrupt_after(council(priced, max_tokens=100), e.AnswerDone, 1)

        [worst] = {x.worst_usd for x in broken.events if isinstance(x, e.AnswerStarted)}
        assert broken.cost.total_usd is None
        assert broken.cost.committed_usd == pytest.approx(broken.cost.known_usd + 2 * worst)

    @pytest.mark.parametrize("ceiling", [{"max_cost_usd": 0.45}, {"max_calls": 7}])
    async def test_resuming_does_not_renew_the_ceiling(self, ceiling):
        """Its calls stay below the ceiling, however often a session is resumed."""
        called = []

        class Slow:
            async def complete(self, call, _hear, /):
                called.append(call.stage)
                if len(called) % 2 == 0:  # both members are called
                    scope.cancel()
                await anyio.sleep_forever()

        priced = [replace(m, model=Slow(), price=Price(0.0, 1e4)) for m in members("ab")]
        options = {"max_tokens": 10, **ceiling}
        heard: list[e.Event] = []
        for _ in range(4):
            async with council(priced, **options) as opened:
                with anyio.CancelScope() as scope:
                    if not heard:
                        await opened.ask(QUESTION, listener=heard.append)
                    elif len(called) < 4:
                        await opened.resume(Session.of(heard), listener=heard.append)
                    else:
                        with pytest.raises(OverBudget):
                            await opened.resume(Session.of(heard), listener=heard.append)
            heard = sorted({event.seq: event for event in heard}.values(), key=lambda x: x.seq)

        assert len(called) == 4  # at $0.10 each

    async def test_a_repeated_call_counts_against_the_ceiling(self):
        """Two members that always fail are called seven times, not four times each."""
        called = []

        class Failing:
            async def complete(self, call, _hear, /):
                called.append(call.stage)
                raise ModelError("m", "is busy", 503, transient=True)

        shaky = [replace(each, model=Failing()) for each in members("ab")]
        async with council(shaky, max_calls=7) as opened:
            session = await opened.ask(QUESTION)

        assert len(called) == session.cost.calls == 7
        assert session.over_budget

    async def test_a_plan_above_the_ceiling_of_calls_is_refused(self):
        """The error states how many are needed."""
        async with council(members("ab"), max_calls=3) as opened:
            with pytest.raises(
                OverBudget, match="of 3 calls is too low for a complete session, whi"
            ):
                await opened.ask(QUESTION)

    @pytest.mark.parametrize(("rounds", "times"), [(1, 3), (2, 4), (2, 5)])
    async def test_a_quorum_of_ballots_is_counted_though_the_ceiling_stops_the_rest(
        self, rounds, times
    ):
        """The ballots cast decide."""
        priced = [replace(seat, price=Price(1, 1)) for seat in members("abcd", "cabd")]
        held = council(priced, review_rounds=rounds)
        broken = await self.interrupt_after(held, e.BallotCast, times)
        spent = broken.cost.committed_usd

        async with council(priced, review_rounds=rounds, max_cost_usd=1e-4) as opened:
            resumed = await opened.resume(broken)

        assert (resumed.status, resumed.over_budget) == ("degraded", True)
        assert (resumed.outcome.leaders, resumed.outcome.n_ballots) == (("c",), min(times, 4))
        assert resumed.cost.committed_usd == pytest.approx(spent, abs=1e-4)

    async def test_a_ceiling_below_a_quorum_leaves_the_session_interrupted(self):
        priced = [replace(seat, price=Price(1, 1)) for seat in members("abcd", "cabd")]
        broken = await self.interrupt_after(council(priced, quorum=3), e.BallotCast, 2)

        async with council(priced, max_cost_usd=1e-4) as opened:
            with pytest.raises(OverBudget, match="keeps its ceiling"):
                await opened.resume(broken)

    async def test_a_finished_round_is_not_repeated(self):
        """Abstentions of the first round stay once the second has begun."""
        shy = Line(prefers=("says a,",), contains="reviewed before")
        seated = [*members("abcd"), member("e", "abcd", reviews=[shy, "No."])]
        broken = await self.interrupt_after(council(seated, review_rounds=2), e.BallotCast, 6)

        async with council(seated, review_rounds=2) as opened:
            resumed = await opened.resume(broken)

        abstained = [x for x in resumed.events if isinstance(x, e.BallotAbstained)]
        assert [(x.seat, x.round) for x in abstained] == [("e", 1)]
        assert resumed.recount() == resumed.outcome
        assert (resumed.status, resumed.missing) == ("complete", ())

    async def test_reviewers_are_not_called_after_the_final_answer(self):
        """One failed before the synthesis."""
        seated = [*members("abcd"), member("e", "abcd", reviews=["No."])]
        broken = await self.interrupt_after(council(seated), e.SynthesisDone, 1)

        async with council(seated) as opened:
            resumed = await opened.resume(broken)

        new = [event.kind for event in resumed.events[len(broken.events) :]]
        assert new == ["session_closed"]
        assert resumed.missing[0].startswith("e cast no ballot")

    async def test_an_early_decision_is_kept(self):
        slow = Line(seconds=30, prefers=("says a,",))
        seated = [*members("abcde", "abcdef"), member("f", answers=[says("f")], reviews=[slow])]
        options = {"spend": "until_decided", "rule": "tournament"}
        broken = await self.interrupt_after(council(seated, **options), e.Decided, 1)

        with anyio.fail_after(25):
            async with council(seated, **options) as opened:
                resumed = await opened.resume(broken)

        assert resumed.status == "complete"
        assert resumed.outcome.n_ballots == 5

    async def test_the_grace_period_is_the_same_after_resuming(self):
        seated = [*members("abc"), member("d", answers=[Line(hang=True)])]
        options = {"enough": 3, "grace_seconds": 0.1, "stage_seconds": 60}
        broken = await self.interrupt_after(council(seated, **options), e.AnswerDone, 3)

        with anyio.fail_after(25):
            async with council(seated, **options) as opened:
                resumed = await opened.resume(broken)

        assert list(resumed.answers) == ["a", "b", "c"]

    async def test_a_closed_session_is_returned_unchanged(self):
        async with council(members("abc")) as opened:
            session = await opened.ask(QUESTION)

            assert await opened.resume(session) is session

    async def test_a_clock_set_back_makes_no_time_negative(self):
        """A record with a negative time is refused as damaged."""
        broken = await self.interrupt_after(council(members("abc")), e.AnswerDone, 1)
        opening = replace(broken.opening, at=broken.opening.at + timedelta(hours=1))
        set_back = Session.of([opening, *broken.events[1:]])

        async with council(members("abc")) as opened:
            resumed = await opened.resume(set_back)

        assert set_back.seconds == 0
        assert session_from_json(session_to_json(resumed)) == resumed

    async def test_other_members_cannot_resume_a_session(self):
        """The error names the required members."""
        broken = await self.interrupt_after(council(members("abc")), e.AnswerDone, 1)
        async with council(members("abd")) as opened:
            with pytest.raises(NoCouncil, match=r"a \(script:a\).*b \(script:b\).*c \(script:c\)"):
                await opened.resume(broken)


SAME = """
import sys, anyio
sys.path.insert(0, sys.argv[2])
from councils import QUESTION, CountingClock, council, member, says
from witan.models.scripted import Line
from witan.deliberation.ports import Price, Reply
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_to_json

def slow(name, place):
    wait = 0.3 * place
    review = Line(seconds=wait, prefers=("says c,", "says a,"))
    return member(name, answers=[Line(says(name), seconds=wait)], reviews=[review])

async def main():
    seated = [slow(name, place) for place, name in enumerate("abcde")]
    async with council(seated, clock=CountingClock()) as opened:
        print(session_to_json(await opened.ask(QUESTION, seed=77)))

anyio.run(main, backend=sys.argv[1])
"""


class TestReproducibility:
    """The same session gives the same bytes."""

    @pytest.fixture
    def anyio_backend(self):
        return "asyncio"

    @pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
    async def test_the_record_is_independent_of_hash_seed_and_event_loop(self, times):
        """Neither the order of sets nor the scheduler affects the record."""
        here = Path(__file__).parents[1]
        started = [
            subprocess.Popen(  # noqa: ASYNC220, S603 - our own interpreter on our own lines
                [sys.executable, "-c", SAME, backend, here],
                env={**os.environ, "PYTHONHASHSEED": str(seed)},
                stdout=subprocess.PIPE,
            )
            for seed, backend in enumerate(["asyncio", "trio"] * times)
        ]

        records = {process.communicate()[0] for process in started}

        assert [process.returncode for process in started] == [0] * len(started)
        assert len(records) == 1
        assert json.loads(records.pop())["status"] == "complete"

    async def test_the_record_round_trips(self):
        """It is equal after reading, and gives the same bytes again."""
        async with council(members(), clock=CountingClock(), mirrored=True) as opened:
            session = await opened.ask(QUESTION, seed=2, files={"a.txt": "salt"})

        record = session_to_json(session)
        assert session_from_json(record) == session
        assert session_to_json(session_from_json(record)) == record
