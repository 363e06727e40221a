"""Retries: failed seats are called again, and plans bound the cost."""

from collections import Counter
from dataclasses import replace

import anyio
import pytest

from councils import QUESTION, council, member, members, says
from juries import record_calls, rejudge, session_of_five, sheets
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


async def retry(session, seats, again, chairmen=(), listener=None, **options):
    """Retry a session with the same seats; return it with the number of calls by stage."""
    heard, chairs = record_calls(again), record_calls(chairmen)
    with anyio.fail_after(60):
        async with council(heard, chairs, attempts=1, **options) as opened:
            after = await opened.retry(session, seats, listener=listener)
    calls = {(seat.name, call.stage) for seat in (*heard, *chairs) for call in seat.model.calls}
    return after, calls


class TestReviewer:
    """An abstention: only the review is requested again, then the final answer."""

    async def test_only_the_review_and_the_final_answer_are_requested(self):
        """Other answers and ballots are kept."""
        before = await first(seated(b={"reviews": DOWN}))
        after, calls = await retry(before, None, seated())

        assert before.missing == ("b cast no ballot: is down",)
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert (after.status, after.missing) == ("complete", ())
        assert after.outcome.n_ballots == before.outcome.n_ballots + 1
        assert after.answers == before.answers
        kept = [b for b in before.ballots if not b.abstained]
        assert [b for b in after.ballots if b.reviewer != "b"] == [
            replace(ballot, session=after.id) for ballot in kept
        ]

    async def test_the_reviewer_gets_the_same_sheet(self):
        """Labels and fences are equal, and it is recorded once."""
        before = await first(seated(b={"reviews": DOWN}))
        after, _ = await retry(before, ["b"], seated())
        drawn = [
            {x.sheet for x in session.events if isinstance(x, e.SheetDrawn)}
            for session in (before, after)
        ]

        assert drawn[0] == drawn[1]
        assert len([x for x in after.events if isinstance(x, e.SheetDrawn)]) == 3

    async def test_a_repeated_failure_calls_nobody_else(self):
        """The final answer of the parent is kept if no ballot was added."""
        before = await first(seated(b={"reviews": DOWN}))
        after, calls = await retry(before, None, seated(b={"reviews": DOWN}))

        assert calls == {("b", "review")}
        assert after.synthesis == before.synthesis
        assert (after.status, after.missing) == (before.status, before.missing)
        assert [x.candidate for x in after.outcome.standings] == [
            x.candidate for x in before.outcome.standings
        ]

    async def test_only_the_named_reviewer_is_called(self):
        """Another failed seat stays failed."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        after, calls = await retry(before, ["b"], seated(), quorum=1)

        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.missing == ("a cast no ballot: is down",)

    async def test_a_reviewer_skipped_by_early_stopping_can_be_retried(self):
        """The retry waits for it."""
        slow = {"reviews": [Line(prefers=("says c,",), hang=True)]}
        five = [*members("abcd"), member("e", "cabde", **slow)]
        before = await first(
            five, spend="until_decided", synthesis=False, rule="tournament", call_seconds=5
        )
        after, calls = await retry(before, None, members())

        assert (before.status, before.outcome.n_ballots) == ("complete", 4)
        assert calls == {("e", "review")}
        assert after.outcome.n_ballots == 5

    async def test_a_juror_is_called_again(self):
        """Answers and ballots of other jurors are kept."""
        jury = members("xyz", "ebacd")
        broken = [*jury[:2], member("z", "ebacd", reviews=DOWN)]
        before = await rejudge(await session_of_five(), broken, attempts=1)
        after, calls = await retry(before, None, jury)

        assert calls == {("z", "review"), ("x", "synthesis")}
        assert after.status == "complete"
        assert [ballot.reviewer for ballot in after.ballots] == list("xyz")
        assert after.opening.answers == before.opening.answers

    async def test_a_failure_in_the_first_round_repeats_the_second_for_all(self):
        """Everybody saw the ballots of the first round."""
        before = await first(seated(b={"reviews": DOWN}), review_rounds=2)
        after, _ = await retry(before, None, seated())
        kept = after.opening.kept
        new = [x for x in after.events if isinstance(x, e.BallotCast) and x.seq > kept]

        assert {(x.seat, x.round) for x in new} >= {("b", 1), ("a", 2), ("b", 2), ("c", 2)}
        assert after.status == "complete"

    async def test_a_failure_in_the_second_round_calls_only_its_reviewer(self):
        """The first round and other ballots are kept."""
        once = {"reviews": [Line(contains=REVISED, error="is down"), Line(prefers=("says c,",))]}
        before = await first(seated(b=once), review_rounds=2)
        after, calls = await retry(before, None, seated())

        assert before.missing == ("b did not revise its ballot: is down",)
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.status == "complete"


class TestMember:
    """A member without an answer: all reviews are repeated, since every sheet changes."""

    async def test_a_new_answer_repeats_all_reviews(self):
        """Other answers are kept."""
        before = await first(seated(b={"answers": DOWN}))
        after, calls = await retry(before, None, seated())

        assert {seat for seat, stage in calls if stage == "answer"} == {"b"}
        assert {seat for seat, stage in calls if stage == "review"} == set("abc")
        assert after.status == "complete"
        assert after.answers["b"].text == says("b")
        assert {"b" in seen for seat, seen in sheets(after).items() if seat != "b"} == {True}
        assert after.recount() == after.outcome

    async def test_a_repeated_failure_repeats_no_review(self):
        """Every sheet is unchanged."""
        before = await first(seated("abcd", d={"answers": DOWN}))
        after, calls = await retry(before, None, seated("abcd", d={"answers": DOWN}))

        assert calls == {("d", "answer")}
        assert (after.status, after.missing) == (before.status, before.missing)
        assert after.synthesis == before.synthesis
        assert sheets(after) == sheets(before)
        assert after.cost.total_usd == 0

    async def test_a_new_answer_repeats_the_debate(self):
        """Revisions depend on who took part."""
        before = await first(seated(b={"answers": DOWN}), debate_rounds=1)
        after, calls = await retry(before, None, seated())
        rounds = [(x.seat, x.round) for x in after.events if isinstance(x, e.AnswerDone)]

        assert sorted(rounds) == [(seat, n) for seat in "abc" for n in (1, 2)]
        assert {seat for seat, stage in calls if stage == "answer"} == set("abc")

    async def test_another_failed_member_is_not_called(self):
        """Its failure and its reason are kept."""
        before = await first(seated("abcd", b={"answers": DOWN}, d={"answers": DOWN}))
        after, calls = await retry(before, ["d"], seated("abcd"))

        assert {seat for seat, stage in calls if stage == "answer"} == {"d"}
        assert after.missing == ("b did not answer: is down",)

    async def test_a_failed_session_is_retried_whole(self):
        before = await first(seated(**{name: {"answers": DOWN} for name in "abc"}))
        after, calls = await retry(before, None, seated())

        assert before.status == "failed"
        assert after.opening.kept == 0
        assert after.status == "complete"
        assert {seat for seat, stage in calls if stage == "answer"} == set("abc")


class TestChairman:
    """Only the final answer is written again."""

    async def test_only_the_final_answer_is_requested(self):
        """Answers, ballots and outcome are kept."""
        before = await first(seated(), [member("x", synthesis=DOWN)])
        after, calls = await retry(before, None, seated(), [member("x")])

        assert before.missing == ("x did not write the final answer: is down",)
        assert calls == {("x", "synthesis")}
        assert after.synthesis.chairman == "x"
        assert (after.status, after.missing) == ("complete", ())

    async def test_another_failed_chairman_is_skipped(self):
        """Its failure is still reported."""
        chairs = [member(name, synthesis=DOWN) for name in "xy"]
        before = await first(seated(), chairs)
        after, calls = await retry(before, ["y"], seated(), [member("x"), member("y")])

        assert calls == {("y", "synthesis")}
        assert after.missing == ("x did not write the final answer: is down",)


class TestRecord:
    """A retry is a session with a record."""

    async def test_a_retry_is_a_new_session(self):
        """It names its parent, the seats retried, and what it keeps."""
        before = await first(seated(b={"reviews": DOWN}))
        record = session_to_json(before)
        after, _ = await retry(before, None, seated())
        opened = after.opening

        assert (opened.parent, opened.relation) == (before.id, "retried")
        assert opened.retried == ("b",)
        assert after.id != before.id
        assert [x.seq for x in after.events[: 1 + opened.kept]] == list(range(1, 2 + opened.kept))
        assert all(x.at >= opened.at for x in after.events)
        assert session_to_json(before) == record

    async def test_the_record_round_trips_and_recounts(self):
        before = await first(seated(b={"reviews": DOWN}))
        after, _ = await retry(before, None, seated())

        assert session_from_json(session_to_json(after)) == after
        assert after.recount() == after.outcome

    async def test_the_cost_is_that_of_the_new_calls(self):
        """Answers keep the cost of the parent."""

        def priced(**troubled):
            return [replace(m, price=Price(1e6, 1e6)) for m in seated(**troubled)]

        before = await first(priced(b={"reviews": DOWN}))
        after, _ = await retry(before, None, priced())
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

    async def test_the_ceiling_applies_to_the_new_calls(self):
        """A session that reached its ceiling can be retried under another."""

        def priced():
            return [replace(m, price=Price(1e6, 1e6)) for m in seated()]

        _, least = (await first(priced())).opening.plan.least_usd()
        before = await first(priced(), max_cost_usd=least)
        after, _ = await retry(before, None, priced(), max_cost_usd=1e12)

        assert before.over_budget
        assert (after.status, after.over_budget) == ("complete", False)

    async def test_an_interrupted_retry_can_be_resumed(self):
        """What it keeps stays, and other failed seats are not called."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        whole, _ = await retry(before, ["b"], seated(), quorum=1)
        told = whole.events[: 1 + whole.opening.kept]
        heard = record_calls(seated())
        async with council(heard, quorum=1) as opened:
            after = await opened.resume(Session.of(told))

        calls = {(seat.name, call.stage) for seat in heard for call in seat.model.calls}
        assert calls == {("b", "review"), ("c", "synthesis")}
        assert after.ballots == whole.ballots
        assert after.missing == whole.missing

    async def test_a_retry_can_be_retried(self):
        """The second attempt keeps what the first one added."""
        before = await first(seated(a={"reviews": DOWN}, b={"reviews": DOWN}), quorum=1)
        once, _ = await retry(before, ["b"], seated(), quorum=1)
        twice, calls = await retry(once, None, seated(), quorum=1)

        assert calls == {("a", "review"), ("c", "synthesis")}
        assert (twice.status, twice.opening.parent) == ("complete", once.id)

    async def test_the_stream_of_a_retry_is_its_record(self):
        before = await first(seated(b={"reviews": DOWN}))
        heard = []
        after, _ = await retry(before, None, seated(), listener=heard.append)
        told = [x for x in heard if not isinstance(x, e.AnswerDelta | e.SynthesisDelta)]

        assert Session.of(told) == after


class TestRefusals:
    """An invalid retry is refused in one sentence."""

    async def test_a_session_without_failures_is_refused(self):
        whole = await first(seated())

        with pytest.raises(NothingToCount, match="no seat failed in session"):
            await retry(whole, None, seated())

    async def test_an_interrupted_session_is_refused(self):
        """It is to be resumed first."""
        whole = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(NothingToCount, match="was interrupted: resume it"):
            await retry(Session.of(whole.events[:-1]), None, seated())

    async def test_an_unknown_seat_is_refused(self):
        """The error suggests the nearest seat that failed."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(UnknownName, match="unknown seat 'bo'"):
            await retry(broken, ["bo"], seated())

    async def test_a_seat_that_did_not_fail_is_refused(self):
        """The error names the failed ones."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(InvalidParameter, match="a seat that failed: b"):
            await retry(broken, ["a"], seated())

    @pytest.mark.parametrize("seats", ["b", []])
    async def test_an_invalid_list_of_seats_is_refused(self, seats):
        """It is a text, or empty."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(InvalidParameter):
            await retry(broken, seats, seated())

    async def test_another_council_is_refused(self):
        """Only the same seats can be retried."""
        broken = await first(seated(b={"reviews": DOWN}))

        with pytest.raises(NoCouncil, match="was started with other members"):
            await retry(broken, None, members("abd"))


ROUNDS = {"debate_rounds": 1, "review_rounds": 2}


async def ask(seated, chairmen=(), **options) -> Session:
    async with council(seated, chairmen, attempts=1, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


def count_calls(seats) -> Counter[tuple[str, str]]:
    return Counter((seat.name, call.stage) for seat in seats for call in seat.model.calls)


def planned(plan) -> Counter[tuple[str, str]]:
    calls: Counter[tuple[str, str]] = Counter()
    for line in plan.lines:
        calls[line.seat, line.stage] += line.calls
    return calls


class TestPlanOfResume:
    """The plan of the rest of an interrupted session."""

    async def test_a_resume_makes_at_most_the_planned_calls(self):
        """It may be interrupted after any event; finished calls are not planned."""
        seated = members("abc")
        whole = await ask(seated, seated[2:], **ROUNDS)
        for n in range(1, len(whole.events)):
            before = Session.of(whole.events[:n])
            plan = plan_rest(before)
            heard = record_calls(members("abc"))
            with anyio.fail_after(60):
                async with council(heard, heard[2:], attempts=1, **ROUNDS) as opened:
                    await opened.resume(before)

            assert count_calls(heard) <= planned(plan), n
            assert planned(plan) <= planned(whole.opening.plan)

    async def test_finished_stages_are_not_planned(self):
        """Once the final answer has begun, only that is left."""
        whole = await ask(members("abc"))
        kinds = [event.kind for event in whole.events]
        half = plan_rest(Session.of(whole.events[: kinds.index("sheet_drawn") + 1]))
        last = plan_rest(Session.of(whole.events[: kinds.index("synthesis_started") + 1]))

        assert {line.stage for line in half.lines} == {"review", "repair", "synthesis"}
        assert {line.stage for line in last.lines} == {"synthesis"}

    async def test_failed_seats_are_planned_again(self):
        """Nothing of an interrupted session is final."""
        whole = await ask([*members("ab"), member("c", answers=DOWN)])
        failed = [event.kind for event in whole.events].index("answer_failed")
        left = plan_rest(Session.of(whole.events[: failed + 1]))

        assert ("c", "answer") in planned(left)


class TestPlanOfRetry:
    """The plan of a retry equals that of its session."""

    async def test_the_plan_is_in_the_opening_of_the_retry(self):
        """It uses the current limits."""
        before = await ask([member("a", "ab"), member("b", "ab", reviews=DOWN)])
        plan = plan_retry(before, None, Limits(max_tokens=100))
        async with council(members("ab", "ab"), max_tokens=100) as opened:
            after = await opened.retry(before)

        assert plan == after.opening.plan
        assert plan != plan_retry(before, None, before.opening.procedure.limits)

    @pytest.mark.parametrize("options", [{}, {"self_review": True, "mirrored": True}])
    async def test_stored_answers_are_planned_at_their_length(self, options):
        """No prompt is longer than planned."""
        before = await ask([*members("ab"), member("c", reviews=DOWN)], **options)
        plan = plan_retry(before, None, before.opening.procedure.limits)
        heard = record_calls(members("abc"))
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

    async def test_a_session_without_failures_has_no_plan(self):
        """The error is that of the retry."""
        with pytest.raises(NothingToCount, match="no seat failed"):
            plan_retry(await ask(members("ab", "ab")), None, Limits())


class TestPlanOfRejudgment:
    """The plan of a jury equals that of its session."""

    async def test_the_plan_is_in_the_opening_of_the_session(self):
        """Jurors and authors have different names."""
        before = await ask(members("abc"))
        jury = [*members("ax", "ab"), member("b", "ab")]
        plan = plan_rejudgment(before, jury, (), Procedure())
        async with council(jury) as opened:
            after = await opened.rejudge(before)

        assert plan == after.opening.plan
        assert {line.stage for line in plan.lines} == {"review", "repair", "synthesis"}
