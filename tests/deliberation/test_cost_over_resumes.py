"""The cost of an interrupted session includes its unfinished calls."""

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
    """Members with prices."""
    return [replace(seat, price=PRICE) for seat in members(names)]


async def cut_off(opened, until: type[e.Event], session: Session | None = None) -> list[e.Event]:
    """The events of a session before an event of this kind, once all its calls hang."""
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
    """A call that was interrupted may have been billed, even if its seat is called again."""

    @pytest.mark.parametrize("stage", ["answer", "review", "synthesis"])
    async def test_its_cost_stays_unknown_after_its_seat_answers(self, stage):
        """The total is None, and the bound includes the interrupted call."""
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

    async def test_an_interrupted_free_call_leaves_the_total_known(self):
        stuck = member("c", answers=[Line(hang=True)])
        async with council([*members("ab"), stuck]) as opened:
            heard = await cut_off(opened, e.AnswerDone)
        async with council([*members("ab"), member("c", "cab")]) as opened:
            whole = await opened.resume(Session.of(heard))

        assert whole.cost.total_usd == 0.0


class SlowJournal:
    """A journal whose commits wait for the test."""

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


class SilentModel:
    """A model that never replies, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, _call, _hear, /):
        self.calls += 1
        await anyio.sleep_forever()


class TestJournal:
    """Calls and events wait for the journal."""

    @pytest.mark.parametrize("ceiling", [None, 1.0])
    async def test_no_call_precedes_its_commit(self, ceiling):
        """With or without a ceiling on cost, calls wait; then all are made."""
        mute, slow = SilentModel(), SlowJournal()
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

    async def test_a_call_that_waits_past_its_deadline_costs_nothing(self):
        """Its seat is reported as out of time."""
        slow = SlowJournal()
        seated = council(priced("ab"), max_cost_usd=1.0, stage_seconds=0.05)
        async with seated as opened, anyio.create_task_group() as group:

            async def let() -> None:
                await anyio.sleep(0.3)
                slow.let.set()

            group.start_soon(let)
            session = await opened.ask(QUESTION, listener=slow)

        assert (session.status, session.cost.total_usd) == ("failed", 0.0)

    async def test_uncommitted_events_are_shown_as_provisional(self):
        """Commits fail after the second event: later ones say so, and the session continues."""
        slow = SlowJournal()
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

    async def test_an_error_of_the_journal_ends_the_session(self):
        """It is raised alone, not in an exception group."""

        class Broken(SlowJournal):
            async def commit(self) -> int:
                raise OSError("the disk is gone")

        async with council(priced("abc")) as opened:
            with pytest.raises(OSError, match="the disk is gone"):
                await opened.ask(QUESTION, listener=Broken())

    async def test_every_event_is_shown_once_and_in_order(self):
        """Deltas of texts keep their place between the events."""
        slow = SlowJournal()
        slow.let.set()
        slow.durable = 10**9
        async with council(priced("abc")) as opened:
            session = await opened.ask(QUESTION, listener=slow)

        assert [event.seq for event in slow.shown] == [*range(1, session.events[-1].seq + 1)]
