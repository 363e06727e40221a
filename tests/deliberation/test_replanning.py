"""Plans of what goes on with a session that is there: bounds of what is still to come."""

from collections import Counter

import anyio
import pytest

from councils import QUESTION, council, member, members
from juries import overheard
from witan.deliberation.money import most_input_tokens
from witan.deliberation.opening import plan_rejudgment
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.retries import plan_remaining, plan_retry
from witan.deliberation.session import Session
from witan.errors import NothingToCount
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio

DOWN = [Line(error="is down")]

ROUNDS = {"debate_rounds": 1, "review_rounds": 2}


async def asked(seated, chairmen=(), **options) -> Session:
    async with council(seated, chairmen, attempts=1, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


def made(seats) -> Counter[tuple[str, str]]:
    return Counter((seat.name, call.stage) for seat in seats for call in seat.model.calls)


def planned(plan) -> Counter[tuple[str, str]]:
    calls: Counter[tuple[str, str]] = Counter()
    for line in plan.lines:
        calls[line.seat, line.stage] += line.calls
    return calls


class TestTakingUp:
    """What an interrupted session still asks for."""

    async def test_wherever_it_broke_off_no_more_is_called_than_planned(self):
        """Whatever is still to come has its place in the plan, and what is done has none."""
        seated = members("abc")
        whole = await asked(seated, seated[2:], **ROUNDS)
        for n in range(1, len(whole.events)):
            before = Session.of(whole.events[:n])
            plan = plan_remaining(before)
            heard = overheard(members("abc"))
            with anyio.fail_after(20):
                async with council(heard, heard[2:], attempts=1, **ROUNDS) as opened:
                    await opened.resume(before)

            assert made(heard) <= planned(plan), n
            assert planned(plan) <= planned(whole.opened.plan)

    async def test_who_is_done_is_planned_no_more(self):
        """Once the closing text is begun, it alone is left."""
        whole = await asked(members("abc"))
        kinds = [event.kind for event in whole.events]
        half = plan_remaining(Session.of(whole.events[: kinds.index("sheet_drawn") + 1]))
        last = plan_remaining(Session.of(whole.events[: kinds.index("synthesis_started") + 1]))

        assert {line.stage for line in half.lines} == {"review", "repair", "synthesis"}
        assert {line.stage for line in last.lines} == {"synthesis"}

    async def test_who_failed_is_asked_again_and_planned_again(self):
        """Nothing of an interrupted session is final."""
        whole = await asked([*members("ab"), member("c", answers=DOWN)])
        failed = [event.kind for event in whole.events].index("answer_failed")
        left = plan_remaining(Session.of(whole.events[: failed + 1]))

        assert ("c", "answer") in planned(left)


class TestAskingAgain:
    """What a retry asks for is what its session says it does."""

    async def test_it_is_the_plan_that_the_retry_opens_with(self):
        """Under the limits of the day."""
        before = await asked([member("a", "ab"), member("b", "ab", reviews=DOWN)])
        plan = plan_retry(before, None, Limits(max_tokens=100))
        async with council(members("ab", "ab"), max_tokens=100) as opened:
            after = await opened.retry(before)

        assert plan == after.opened.plan
        assert plan != plan_retry(before, None, before.opened.procedure.limits)

    @pytest.mark.parametrize("options", [{}, {"self_review": True, "mirrored": True}])
    async def test_answers_that_stand_are_read_as_they_are(self, options):
        """Not as if they filled their limits; no prompt is longer than planned."""
        before = await asked([*members("ab"), member("c", reviews=DOWN)], **options)
        plan = plan_retry(before, None, before.opened.procedure.limits)
        heard = overheard(members("abc"))
        async with council(heard, attempts=1, **options) as opened:
            await opened.retry(before)

        planned = {(line.seat, line.stage): line.input_tokens for line in plan.lines}
        read: Counter[tuple[str, str]] = Counter()
        for seat in heard:
            for call in seat.model.calls:
                read[seat.name, call.stage] += most_input_tokens(call.messages, call.schema)
        assert ("c", "review") in read
        assert all(tokens <= planned[key] for key, tokens in read.items() if key in planned)
        whole = {(line.seat, line.stage): line.input_tokens for line in before.opened.plan.lines}
        assert planned["c", "review"] < whole["c", "review"] / 2

    async def test_where_nobody_failed_there_is_none(self):
        """The refusal is that of the retry."""
        with pytest.raises(NothingToCount, match="no seat failed"):
            plan_retry(await asked(members("ab", "ab")), None, Limits())


class TestAnotherJury:
    """What a jury is asked is what its session says it is."""

    async def test_it_is_the_plan_that_the_session_opens_with(self):
        """Jurors are named apart from those who answered."""
        before = await asked(members("abc"))
        jury = [*members("ax", "ab"), member("b", "ab")]
        plan = plan_rejudgment(before, jury, (), Procedure())
        async with council(jury) as opened:
            after = await opened.rejudge(before)

        assert plan == after.opened.plan
        assert {line.stage for line in plan.lines} == {"review", "repair", "synthesis"}
