"""Retries: failed seats are asked again, and plans bound what that costs."""

from collections import Counter
from dataclasses import replace

import anyio
import pytest

from councils import QUESTION, council, member, members, says
from juries import held, judged, overheard, sheets
from witan.deliberation import events as e
from witan.deliberation.openings import plan_rejudgment
from witan.deliberation.ports import Expense, Price
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.retries import plan_rest, plan_retry
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NoCouncil, NothingToCount, UnknownName
from witan.models.scripted import Line

pytestmark = pytest.mark.anyio

DOWN = [Line(error="is down")]
REVISED = "revise"
"""What only the second round of reviews asks for."""


def seated(names: str = "abc", **troubled: dict) -> list:
    """Members who prefer the answer of c, some of them with a script of their own."""
    return [member(name, "cab", **troubled.get(name, {})) for name in names]


async def first(members_, chairmen=(), **options) -> Session:
    async with council(members_, chairmen, attempts=1, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


async def retried(session, seats, again, chairmen=(), listener=None, **options):
    """The session retried by the same seats, and how often each was asked what."""
    heard, chairs = overheard(again), overheard(chairmen)
    with anyio.fail_after(60):
        async with council(heard, chairs, attempts=1, **options) as opened:
            after = await opened.retry(session, seats, listener=listener)
    calls = {(seat.name, call.stage) for seat in (*heard, *chairs) for call in seat.model.calls}
    return after, calls


class TestAReviewerThatAbstained:
    """Only its review is asked; the count and the final answer follow."""

    async def test_only_its_review_and_the_closing_text_are_asked(self):
        """The others' answers and ballots stand, and nobody is asked for them again."""
        before = await first(seated(b={"reviews": DOWN}))
        after, calls = await retried(before, None, seated())

        assert before.missing == ("b cast no ballot: is down",)
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert (after.status, after.missing) == ("complete", ())
        assert after.outcome.n_ballots == before.outcome.n_ballots + 1
        assert after.answers == before.answers
        kept = [b for b in before.ballots if not b.abstained]
        assert [b for b in after.ballots if b.reviewer != "b"] == [
            replace(ballot, session=after.id) for ballot in kept
        ]

    async def test_its_sheet_is_the_one_that_it_could_not_review(self):
        """Down to labels and fences, and it is recorded once."""
        before = await first(seated(b={"reviews": DOWN}))
        after, _ = await retried(before, ["b"], seated())
        drawn = [
            {x.sheet for x in session.events if isinstance(x, e.SheetDrawn)}
            for session in (before, after)
        ]

        assert drawn[0] == drawn[1]
        assert len([x for x in after.events if isinstance(x, e.SheetDrawn)]) == 3

    async def test_it_fails_again_and_nobody_else_is_asked(self):
        """The final answer of the parent stands where no ballot was added."""
        before = await first(seated(b={"reviews": DOWN}))
        after, calls = await retried(before, None, seated(b={"reviews": DOWN}))

        assert calls == {("b", "review")}
        assert after.synthesis == before.synthesis
        assert (after.status, after.missing) == (before.status, before.missing)
        assert [x.candidate for x in after.outcome.standings] == [
            x.candidate for x in before.outcome.standings
        ]

    async def test_one_of_two_is_asked_and_the_other_stays_silent(self):
        """Who is not named has failed for good: it is not asked in passing."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        after, calls = await retried(before, ["b"], seated(), quorum=1)

        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.missing == ("a cast no ballot: is down",)

    async def test_who_was_not_waited_for_can_be_asked_after_all(self):
        """An abstention of a complete session is taken up like any other, and waited for."""
        slow = {"reviews": [Line(prefers=("says c,",), hang=True)]}
        five = [*members("abcd"), member("e", "cabde", **slow)]
        before = await first(
            five, spend="until_decided", synthesis=False, rule="tournament", call_seconds=5
        )
        after, calls = await retried(before, None, members())

        assert (before.status, before.outcome.n_ballots) == ("complete", 4)
        assert calls == {("e", "review")}
        assert after.outcome.n_ballots == 5

    async def test_a_juror_is_asked_again(self):
        """A session of a jury keeps its answers, and the ballots of the other jurors."""
        jury = members("xyz", "ebacd")
        broken = [*jury[:2], member("z", "ebacd", reviews=DOWN)]
        before = await judged(await held(), broken, attempts=1)
        after, calls = await retried(before, None, jury)

        assert calls == {("z", "review"), ("x", "synthesis")}
        assert after.status == "complete"
        assert [ballot.reviewer for ballot in after.ballots] == list("xyz")
        assert after.opening.answers == before.opening.answers

    async def test_a_failure_in_the_first_round_is_heard_in_the_second(self):
        """Everybody saw the ballots of the first round, so all are asked for the second again."""
        before = await first(seated(b={"reviews": DOWN}), review_rounds=2)
        after, _ = await retried(before, None, seated())
        kept = after.opening.kept
        new = [x for x in after.events if isinstance(x, e.BallotCast) and x.seq > kept]

        assert {(x.seat, x.round) for x in new} >= {("b", 1), ("a", 2), ("b", 2), ("c", 2)}
        assert after.status == "complete"

    async def test_a_failure_in_the_second_round_is_its_own_alone(self):
        """The first round stands, and so does what the others said in the second."""
        once = {"reviews": [Line(contains=REVISED, error="is down"), Line(prefers=("says c,",))]}
        before = await first(seated(b=once), review_rounds=2)
        after, calls = await retried(before, None, seated())

        assert before.missing == ("b did not revise its ballot: is down",)
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.status == "complete"


class TestAMemberThatFailed:
    """It answers, and then all reviews are made again, since every sheet changes."""

    async def test_it_answers_and_everybody_reviews_again(self):
        """The answers of the others stand, and nobody writes a second one."""
        before = await first(seated(b={"answers": DOWN}))
        after, calls = await retried(before, None, seated())

        assert {seat for seat, stage in calls if stage == "answer"} == {"b"}
        assert {seat for seat, stage in calls if stage == "review"} == set("abc")
        assert after.status == "complete"
        assert after.answers["b"].text == says("b")
        assert {"b" in seen for seat, seen in sheets(after).items() if seat != "b"} == {True}
        assert after.recount() == after.outcome

    async def test_it_fails_again_and_everything_else_stands(self):
        """No review is asked for a second time when every sheet is what it was."""
        before = await first(seated("abcd", d={"answers": DOWN}))
        after, calls = await retried(before, None, seated("abcd", d={"answers": DOWN}))

        assert calls == {("d", "answer")}
        assert (after.status, after.missing) == (before.status, before.missing)
        assert after.synthesis == before.synthesis
        assert sheets(after) == sheets(before)
        assert after.cost.total_usd == 0

    async def test_a_debate_is_held_again_with_it(self):
        """What the others said in the debate hung on who took part in it."""
        before = await first(seated(b={"answers": DOWN}), debate_rounds=1)
        after, calls = await retried(before, None, seated())
        rounds = [(x.seat, x.round) for x in after.events if isinstance(x, e.AnswerDone)]

        assert sorted(rounds) == [(seat, n) for seat in "abc" for n in (1, 2)]
        assert {seat for seat, stage in calls if stage == "answer"} == set("abc")

    async def test_who_failed_beside_it_and_is_not_named_is_not_asked(self):
        """Its failure stands, with its reason."""
        before = await first(seated("abcd", b={"answers": DOWN}, d={"answers": DOWN}))
        after, calls = await retried(before, ["d"], seated("abcd"))

        assert {seat for seat, stage in calls if stage == "answer"} == {"d"}
        assert after.missing == ("b did not answer: is down",)

    async def test_where_nobody_answered_everybody_is_asked(self):
        """A failed session is retried whole."""
        before = await first(seated(**{name: {"answers": DOWN} for name in "abc"}))
        after, calls = await retried(before, None, seated())

        assert before.status == "failed"
        assert after.opening.kept == 0
        assert after.status == "complete"
        assert {seat for seat, stage in calls if stage == "answer"} == set("abc")


class TestAChairmanThatFailed:
    """Only the final answer is written again."""

    async def test_only_the_closing_text_is_asked_for(self):
        """Answers, ballots and outcome stand."""
        before = await first(seated(), [member("x", synthesis=DOWN)])
        after, calls = await retried(before, None, seated(), [member("x")])

        assert before.missing == ("x did not write the final answer: is down",)
        assert calls == {("x", "synthesis")}
        assert after.synthesis.chairman == "x"
        assert (after.status, after.missing) == ("complete", ())

    async def test_another_that_failed_is_not_tried(self):
        """Who is not named is passed over, and still told of."""
        chairs = [member(name, synthesis=DOWN) for name in "xy"]
        before = await first(seated(), chairs)
        after, calls = await retried(before, ["y"], seated(), [member("x"), member("y")])

        assert calls == {("y", "synthesis")}
        assert after.missing == ("x did not write the final answer: is down",)


class TestTheRecord:
    """It stands by itself."""

    async def test_it_is_a_session_of_its_own(self):
        """It names its parent, who was asked again, and how much stands; the parent stays."""
        before = await first(seated(b={"reviews": DOWN}))
        record = session_to_json(before)
        after, _ = await retried(before, None, seated())
        opened = after.opening

        assert (opened.parent, opened.relation) == (before.id, "retried")
        assert opened.retried == ("b",)
        assert after.id != before.id
        assert [x.seq for x in after.events[: 1 + opened.kept]] == list(range(1, 2 + opened.kept))
        assert all(x.at >= opened.at for x in after.events)
        assert session_to_json(before) == record

    async def test_it_reads_back_and_recounts(self):
        """The record gives the same session, and its ballots the outcome that it tells of."""
        before = await first(seated(b={"reviews": DOWN}))
        after, _ = await retried(before, None, seated())

        assert session_from_json(session_to_json(after)) == after
        assert after.recount() == after.outcome

    async def test_its_cost_is_that_of_the_new_calls(self):
        """What the parent spent is not spent again, though its answers tell what they took."""

        def priced(**troubled):
            return [replace(m, price=Price(1e6, 1e6)) for m in seated(**troubled)]

        before = await first(priced(b={"reviews": DOWN}))
        after, _ = await retried(before, None, priced())
        new = [
            x.spent.cost_usd
            for x in after.events
            if x.seq > 1 + after.opening.kept and isinstance(getattr(x, "spent", None), Expense)
        ]

        assert after.cost.total_usd == pytest.approx(sum(new))
        assert 0 < after.cost.total_usd < before.cost.known_usd
        assert after.answers["a"].spent == before.answers["a"].spent
        assert after.opening.plan.calls == 2
        assert after.cost.total_usd <= after.opening.plan.worst_usd

    async def test_its_ceiling_is_for_the_new_calls_alone(self):
        """A session that ran into its ceiling can be retried under another."""

        def priced():
            return [replace(m, price=Price(1e6, 1e6)) for m in seated()]

        _, least = (await first(priced())).opening.plan.least_usd()
        before = await first(priced(), max_cost_usd=least)
        after, _ = await retried(before, None, priced(), max_cost_usd=1e12)

        assert before.over_budget
        assert (after.status, after.over_budget) == ("complete", False)

    async def test_broken_off_it_can_be_resumed(self):
        """What stands stays standing, and who is not to be asked again is not."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        whole, _ = await retried(before, ["b"], seated(), quorum=1)
        told = whole.events[: 1 + whole.opening.kept]
        heard = overheard(seated())
        async with council(heard, quorum=1) as opened:
            after = await opened.resume(Session.of(told))

        calls = {(seat.name, call.stage) for seat in heard for call in seat.model.calls}
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.ballots == whole.ballots
        assert after.missing == whole.missing

    async def test_it_can_be_retried_itself(self):
        """A second attempt keeps what the first one added."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        once, _ = await retried(before, ["b"], seated(), quorum=1)
        twice, calls = await retried(once, None, seated(), quorum=1)

        assert calls == {("a", "review"), ("c", "synthesis")}
        assert (twice.status, twice.opening.parent) == ("complete", once.id)

    async def test_a_listener_is_told_the_whole_of_it(self):
        """Whoever keeps what it hears has the record."""
        before = await first(seated(b={"reviews": DOWN}))
        heard = []
        after, _ = await retried(before, None, seated(), listener=heard.append)
        told = [x for x in heard if not isinstance(x, e.AnswerDelta | e.SynthesisDelta)]

        assert Session.of(told) == after


class TestRefusals:
    """What cannot be retried is said in one sentence."""

    async def test_nothing_failed(self):
        """A session without a failure has nothing to be retried."""
        whole = await first(seated())

        with pytest.raises(NothingToCount, match="no seat failed in session"):
            await retried(whole, None, seated())

    async def test_interrupted(self):
        """One that was interrupted is resumed first."""
        whole = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(NothingToCount, match="was interrupted: resume it"):
            await retried(Session.of(whole.events[:-1]), None, seated())

    async def test_a_seat_that_is_not_there(self):
        """The nearest seat that failed is suggested."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(UnknownName, match="unknown seat 'bo'"):
            await retried(broken, ["bo"], seated())

    async def test_a_seat_that_did_not_fail(self):
        """Only what failed is asked again; the others are named."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(InvalidParameter, match="a seat that failed: b"):
            await retried(broken, ["a"], seated())

    @pytest.mark.parametrize("seats", ["b", []])
    async def test_no_list_of_seats(self, seats):
        """A text is no list of names, and an empty list asks nobody."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(InvalidParameter):
            await retried(broken, seats, seated())

    async def test_another_council(self):
        """Only those who sat can be asked again."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(NoCouncil, match="was started with other members"):
            await retried(broken, None, members("abd"))


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
            plan = plan_rest(before)
            heard = overheard(members("abc"))
            with anyio.fail_after(60):
                async with council(heard, heard[2:], attempts=1, **ROUNDS) as opened:
                    await opened.resume(before)

            assert made(heard) <= planned(plan), n
            assert planned(plan) <= planned(whole.opening.plan)

    async def test_who_is_done_is_planned_no_more(self):
        """Once the final answer is begun, it alone is left."""
        whole = await asked(members("abc"))
        kinds = [event.kind for event in whole.events]
        half = plan_rest(Session.of(whole.events[: kinds.index("sheet_drawn") + 1]))
        last = plan_rest(Session.of(whole.events[: kinds.index("synthesis_started") + 1]))

        assert {line.stage for line in half.lines} == {"review", "repair", "synthesis"}
        assert {line.stage for line in last.lines} == {"synthesis"}

    async def test_who_failed_is_asked_again_and_planned_again(self):
        """Nothing of an interrupted session is final."""
        whole = await asked([*members("ab"), member("c", answers=DOWN)])
        failed = [event.kind for event in whole.events].index("answer_failed")
        left = plan_rest(Session.of(whole.events[: failed + 1]))

        assert ("c", "answer") in planned(left)


class TestAskingAgain:
    """What a retry asks for is what its session says it does."""

    async def test_it_is_the_plan_that_the_retry_opens_with(self):
        """Under the limits of the day."""
        before = await asked([member("a", "ab"), member("b", "ab", reviews=DOWN)])
        plan = plan_retry(before, None, Limits(max_tokens=100))
        async with council(members("ab", "ab"), max_tokens=100) as opened:
            after = await opened.retry(before)

        assert plan == after.opening.plan
        assert plan != plan_retry(before, None, before.opening.procedure.limits)

    @pytest.mark.parametrize("options", [{}, {"self_review": True, "mirrored": True}])
    async def test_answers_that_stand_are_read_as_they_are(self, options):
        """Not as if they filled their limits; no prompt is longer than planned."""
        before = await asked([*members("ab"), member("c", reviews=DOWN)], **options)
        plan = plan_retry(before, None, before.opening.procedure.limits)
        heard = overheard(members("abc"))
        async with council(heard, attempts=1, **options) as opened:
            await opened.retry(before)

        planned = {(line.seat, line.stage): line.input_tokens for line in plan.lines}
        read: Counter[tuple[str, str]] = Counter()
        for seat in heard:
            for call in seat.model.calls:
                read[seat.name, call.stage] += call.most_input_tokens()
        assert ("c", "review") in read
        assert all(tokens <= planned[key] for key, tokens in read.items() if key in planned)
        whole = {(line.seat, line.stage): line.input_tokens for line in before.opening.plan.lines}
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

        assert plan == after.opening.plan
        assert {line.stage for line in plan.lines} == {"review", "repair", "synthesis"}
