"""What a session costs that was broken off and taken up: nothing of it is forgotten."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from councils import QUESTION, council, member, members
from witan.adapters.scripted import Line
from witan.deliberation import events as e
from witan.deliberation.ports import Member, Price
from witan.deliberation.session import Session

pytestmark = pytest.mark.anyio

PRICE = Price(10.0, 30.0)


def priced(names: str) -> list[Member]:
    """Members who cost something."""
    return [replace(seat, price=PRICE) for seat in members(names)]


async def cut_off(opened, until: type[e.Event], session: Session | None = None) -> list[e.Event]:
    """What was told of a session until an event of this kind, and until all its calls hang."""
    heard: list[e.Event] = []
    seen = anyio.Event()

    def hear(event: e.Event) -> None:
        heard.append(event)
        if isinstance(event, until):
            seen.set()

    async def hold() -> None:
        if session is None:
            await opened.ask(QUESTION, seed=1, listener=hear)
        else:
            await opened.resume(session, listener=hear)

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        await seen.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    return heard


class TestCutOff:
    """A call that a broken sitting had begun may have been billed, whoever is asked again."""

    @pytest.mark.parametrize("stage", ["answer", "review", "synthesis"])
    async def test_its_cost_stays_unknown_when_its_seat_answers_later(self, stage):
        """The total is None, and the bound holds the call that nobody heard of again."""
        hanging = {f"{stage}s" if stage != "synthesis" else stage: [Line(hang=True)]}
        stuck = replace(member("c", "cab", **hanging), price=PRICE)
        began = {"answer": e.AnswerDone, "review": e.BallotCast, "synthesis": e.SynthesisStarted}
        seated = [*priced("ab"), stuck]
        async with council(seated, [stuck], max_tokens=100) as opened:
            heard = await cut_off(opened, began[stage])
        broken = Session.of(heard)
        begun = {"answer": e.AnswerStarted, "review": e.ReviewStarted}.get(
            stage, e.SynthesisStarted
        )
        worst = next(
            x.worst_usd
            for x in broken.events
            if isinstance(x, begun) and "c" in (getattr(x, "seat", ""), getattr(x, "chairman", ""))
        )

        well = replace(stuck, model=member("c", "cab").model)
        async with council([*priced("ab"), well], [well], max_tokens=100) as opened:
            whole = await opened.resume(broken)

        assert whole.status == "complete"
        assert broken.cost.committed_usd == pytest.approx(broken.cost.known_usd + worst)
        assert whole.cost.total_usd is None
        assert whole.cost.committed_usd == pytest.approx(whole.cost.known_usd + worst)
        assert whole.events[-1].cost_usd is None

    async def test_a_free_one_leaves_the_total_known(self):
        """Where the price is nothing, a call that was cut off cost nothing."""
        stuck = member("c", answers=[Line(hang=True)])
        async with council([*members("ab"), stuck]) as opened:
            heard = await cut_off(opened, e.AnswerDone)
        async with council([*members("ab"), member("c", "cab")]) as opened:
            whole = await opened.resume(Session.of(heard))

        assert whole.cost.total_usd == 0.0


class Slow:
    """A listener that has kept what it was told once it is let."""

    def __init__(self) -> None:
        self.heard: list[e.Event] = []
        self.asked = 0
        self.let = anyio.Event()

    def __call__(self, event: e.Event) -> None:
        self.heard.append(event)

    async def kept(self) -> None:
        self.asked += 1
        await self.let.wait()


class Mute:
    """A model that never replies, and counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, _call, _hear, /):
        self.calls += 1
        await anyio.sleep_forever()


class TestBegun:
    """Under a ceiling a request is made once it is kept that it may be billed."""

    async def test_no_call_is_made_before(self):
        """It waits; then all are made."""
        mute, slow = Mute(), Slow()
        seated = [replace(seat, model=mute) for seat in priced("ab")]
        async with council(seated, max_cost_usd=1.0) as opened, anyio.create_task_group() as group:
            group.start_soon(partial(opened.ask, QUESTION, listener=slow))
            await anyio.wait_all_tasks_blocked()
            assert (mute.calls, slow.asked) == (0, 2)
            assert [event.kind for event in slow.heard[1:]] == ["answer_started"] * 2
            slow.let.set()
            await anyio.wait_all_tasks_blocked()
            assert mute.calls == 2
            group.cancel_scope.cancel()

    async def test_whoever_waits_too_long_cost_nothing(self):
        """A call that was not made is not billed: its seat is out of time, and that is all."""
        slow = Slow()
        async with council(priced("ab"), max_cost_usd=1.0, stage_seconds=0.05) as opened:
            session = await opened.ask(QUESTION, listener=slow)

        assert (session.status, session.cost.total_usd) == ("failed", 0.0)

    async def test_without_a_ceiling_nothing_is_waited_for(self):
        """However slow a listener is at keeping, the session goes on."""
        slow = Slow()
        async with council(priced("abc")) as opened:
            session = await opened.ask(QUESTION, listener=slow)

        assert (session.status, slow.asked) == ("complete", 0)
