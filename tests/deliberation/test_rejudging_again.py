"""What rejudging costs, how it is taken up and refused, and what it leaves in a history."""

import gc
from dataclasses import replace

import pytest

from councils import council, member, members, says
from juries import asked, held, judged, overheard
from witan.deliberation import events as e
from witan.deliberation.entries import session_entries
from witan.deliberation.ports import Price
from witan.deliberation.session import Session
from witan.errors import NoCouncil, NothingToCount, OverBudget
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio


class TestMoney:
    """What was spent on the answers is not spent again."""

    async def test_only_the_jury_costs(self):
        """The cost is that of reviews and closing text; the answers keep what they took."""
        priced = [replace(seat, price=Price(1e6, 1e6)) for seat in members("abc")]
        first = await held(priced)
        again = await judged(first, members("xyz"))

        assert first.cost.total_usd > 0
        assert again.cost.total_usd == 0
        assert again.answers["a"].spent == first.answers["a"].spent

    async def test_the_plan_is_of_reviews_and_closing_text(self):
        """One review a juror, then one closing text; the worst cost bounds what is spent."""
        jury = [replace(seat, price=Price(1.0, 2.0)) for seat in members("xyz", "ebacd")]
        again = await judged(await held(), jury)

        plan = again.opened.plan
        assert [(line.seat, line.stage) for line in plan.lines if not line.if_needed] == [
            ("x", "review"), ("y", "review"), ("z", "review"), ("x", "synthesis"),
        ]  # fmt: skip
        assert plan.repairs == 3
        assert 0 < again.cost.total_usd < plan.worst_usd

    async def test_no_call_is_planned_to_read_more_than_it_does(self):
        """Every call stays below what was planned of it, to the token."""
        jury = overheard(members("xyz", "ebacd"))
        again = await judged(await held(), jury)

        planned = {line.seat: line for line in again.opened.plan.lines if line.stage == "review"}
        for seat in jury:
            [call] = [call for call in seat.model.calls if call.stage == "review"]
            read = sum(len(message.text.encode()) for message in call.messages)
            assert read < planned[seat.name].input_tokens < read + 2_000 + len(str(call.schema))

    async def test_the_ceiling_holds(self):
        """A jury that cannot be paid is not asked."""
        jury = [replace(seat, price=Price(1.0, 2.0)) for seat in members("xyz")]
        before = await held()

        with pytest.raises(OverBudget, match="the reviews are requested together"):
            await judged(before, jury, max_cost_usd=1e-9)


class TestResuming:
    """An interrupted rejudging is taken up at its last finished seat."""

    async def test_from_any_event_it_ends_the_same(self):
        """Broken off after any event, and resumed, it comes to the same closing text."""
        first = await held()
        whole = await judged(first)
        for kept in range(1, len(whole.events)):
            jury = overheard(members("xyz", "ebacd"))
            broken = Session.of(whole.events[:kept])
            async with council(jury) as opened:
                again = await opened.resume(broken)

            assert again.status == "complete", kept
            assert again.text == whole.text
            assert again.outcome.standings == whole.outcome.standings
            cast = sum(isinstance(x, e.BallotCast) for x in broken.events)
            assert len(asked(jury, "review")) == 3 - cast
        gc.collect()

    async def test_a_renamed_juror_is_recognised(self):
        """The names given to tell jurors from seats are given again."""
        other = replace(member("a", "ebacd"), source="script:elsewhere")
        jury = [other, *members("yz", "ebacd")]
        whole = await judged(await held(), jury)
        async with council(jury) as opened:
            again = await opened.resume(Session.of(whole.events[:3]))

        assert again.status == "complete"

    async def test_another_jury_is_refused(self):
        """The seats of the jury are named."""
        whole = await judged(await held())
        with pytest.raises(NoCouncil, match=r"seat x \(script:x\), y"):
            async with council(members("xyw")) as opened:
                await opened.resume(Session.of(whole.events[:3]))


class TestRefusals:
    """What cannot be judged is said at once."""

    async def test_a_session_of_one_answer(self):
        """There is nothing to rank, and nobody is called."""
        down = [member(name, answers=[Line(error="is down")]) for name in "bc"]
        first = await held([member("a"), *down], attempts=1)
        with pytest.raises(NothingToCount, match="has one answer"):
            await judged(first)

    async def test_a_council_that_is_not_open(self):
        """The error says how it is used."""
        first = await held()
        with pytest.raises(NoCouncil, match="async with"):
            await council(members("xyz")).rejudge(first)

    async def test_a_record_with_an_answer_of_nobody(self):
        """An opening whose answers do not fit its seats is no session."""
        again = await judged(await held())
        opened = replace(again.opened, seats=again.opened.seats[1:])
        with pytest.raises(NothingToCount, match="nobody's seat"):
            Session.of([opened, *again.events[1:]])


class TestLeaving:
    """What a rejudged session leaves in a history."""

    async def test_models_are_named_by_who_they_are(self):
        """Candidates by the seats that answered, reviewers by the jurors."""
        author = replace(member("x", "ebacd"), source="script:e")
        again = await judged(await held(), [author, *members("yz", "ebacd")])
        entries = session_entries(again)

        assert [entry.reviewer for entry in entries.ballots] == ["script:e", "script:y", "script:z"]
        assert {entry.model for entry in entries.standings} == {f"script:{c}" for c in "abcde"}
        assert set(entries.ballots[0].models) == {f"script:{c}" for c in "abcd"}

    async def test_the_cost_of_an_answer_is_not_told_twice(self):
        """Its length is known, what it took belongs to the first session."""
        again = await judged(await held())
        entry = session_entries(again).answers[0]

        assert (entry.chars, entry.failed) == (len(says("a")), False)
        assert (entry.seconds, entry.cost_usd, entry.output_tokens) == (None, None, None)
