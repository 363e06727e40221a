"""Cost over resumes: nothing of what a broken-off session cost is forgotten."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from councils import QUESTION, council, member, members
from witan.deliberation import events as e
from witan.deliberation.ports import Member, Price
from witan.deliberation.session import Session
from witan.models.scripted import Line

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
    """A journal whose commits end once they are let."""

    gather_seconds = 0.01

    def __init__(self) -> None:
        self.taken: list[e.Event] = []
        self.shown: list[e.Event] = []
        self.let = anyio.Event()
        self.durable = 0

    def keep(self, event: e.Event) -> None:
        self.taken.append(event)

    def flush(self) -> None:
        pass

    async def commit(self) -> int:
        if not self.let.is_set():
            await self.let.wait()
            self.durable = self.taken[-1].seq
        return self.durable

    def __call__(self, event: e.Event) -> None:
        self.shown.append(event)


class Mute:
    """A model that never replies, and counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, _call, _hear, /):
        self.calls += 1
        await anyio.sleep_forever()


class TestBegun:
    """A request is made, and an event shown, once the journal has it."""

    @pytest.mark.parametrize("ceiling", [None, 1.0])
    async def test_no_call_is_made_before(self, ceiling):
        """With a ceiling on cost or without, it waits; then all are made."""
        mute, slow = Mute(), Slow()
        seated = [replace(seat, model=mute) for seat in priced("ab")]
        async with (
            council(seated, max_cost_usd=ceiling) as opened,
            anyio.create_task_group() as group,
        ):
            group.start_soon(partial(opened.ask, QUESTION, listener=slow))
            await anyio.wait_all_tasks_blocked()
            assert (mute.calls, slow.shown) == (0, [])
            assert [event.kind for event in slow.taken[1:]] == ["answer_started"] * 2
            slow.let.set()
            await anyio.wait_all_tasks_blocked()
            assert mute.calls == 2
            assert slow.shown == slow.taken
            group.cancel_scope.cancel()

    async def test_whoever_waits_too_long_cost_nothing(self):
        """A call that was not made is not billed: its seat is out of time, and that is all."""
        slow = Slow()
        seated = council(priced("ab"), max_cost_usd=1.0, stage_seconds=0.05)
        async with seated as opened, anyio.create_task_group() as group:

            async def let() -> None:
                await anyio.sleep(0.3)
                slow.let.set()

            group.start_soon(let)
            session = await opened.ask(QUESTION, listener=slow)

        assert (session.status, session.cost.total_usd) == ("failed", 0.0)

    async def test_what_the_journal_has_not_is_shown_as_provisional(self):
        """Its commits end in vain after the second event: all that follows says so, and goes on."""
        slow = Slow()
        slow.let.set()
        slow.durable = 2
        async with council(priced("abc")) as opened:
            session = await opened.ask(QUESTION, listener=slow)

        deltas = (e.AnswerDelta, e.SynthesisDelta)
        shown = [event for event in slow.shown if not isinstance(event, deltas)]
        assert [event.provisional for event in shown[:3]] == [False, False, True]
        assert all(event.provisional for event in shown[2:])
        assert not any(event.provisional for event in session.events)
        assert shown == list(session.events)

    async def test_what_a_journal_raises_ends_the_session_as_it_is(self):
        """It comes out by itself, in no group of tasks."""

        class Broken(Slow):
            async def commit(self) -> int:
                raise OSError("the disk is gone")

        async with council(priced("abc")) as opened:
            with pytest.raises(OSError, match="the disk is gone"):
                await opened.ask(QUESTION, listener=Broken())

    async def test_every_event_is_shown_once_and_in_order(self):
        """Pieces of texts stand between the events where they came."""
        slow = Slow()
        slow.let.set()
        slow.durable = 10**9
        async with council(priced("abc")) as opened:
            session = await opened.ask(QUESTION, listener=slow)

        assert [event.seq for event in slow.shown] == [*range(1, session.events[-1].seq + 1)]
