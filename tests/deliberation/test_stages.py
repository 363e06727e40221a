"""A question passes through the stages, and every seat ends with a stated result."""

import gc
import tracemalloc
from dataclasses import replace
from functools import partial

import anyio
import pytest

from councils import QUESTION, council, member, members, says
from loops import jumping_loop
from witan.deliberation import events as e
from witan.deliberation import prompts
from witan.deliberation.ports import Options, Price
from witan.deliberation.procedure import ThrottlePolicy
from witan.deliberation.session import Session
from witan.errors import ModelError, OverBudget
from witan.models.scripted import Line
from witan.service.trust import session_trust
from witan.surfaces.live_board import progress_lines

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request) -> str:
    """Both event loops."""
    return request.param


HANGS = Line("Let me", hang=True)
DOWN = Line(error="is overloaded", status=503)


async def ask(held, **options) -> Session:
    with anyio.fail_after(25):
        async with held as opened:
            return await opened.ask(QUESTION, seed=5, **options)


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events]


class MemoryModel:
    """A model that measures the memory of prompts when it is called."""

    def __init__(self, model, sizes):
        self.model, self.sizes = model, sizes

    async def complete(self, call, hear):
        """Note it, and reply as the model does."""
        if tracemalloc.is_tracing():
            gc.collect(1)  # of finished calls, which Trio leaves in cycles
            texts = tracemalloc.take_snapshot().filter_traces(
                [tracemalloc.Filter(True, prompts.__file__)]
            )
            size = sum(each.size for each in texts.statistics("filename"))
            self.sizes.setdefault(call.stage, []).append(size)
        return await self.model.complete(call, hear)


class RecordingModel:
    """A model that records its calls."""

    def __init__(self, model, calls):
        self.model, self.calls = model, calls

    async def complete(self, call, hear):
        """Keep it, and reply as the model does."""
        self.calls.append(call)
        return await self.model.complete(call, hear)


class CountedText(str):
    """A system text that counts the prompts written with it."""

    n_written = 0

    def strip(self):
        """Count one more prompt."""
        self.n_written += 1
        return super().strip()


class UnwritableText(str):
    """A system text that no prompt can be written with."""

    def strip(self):
        """Refuse."""
        raise ModelError("d", "has no system text")


class TestCompleteSession:
    """A council without failures."""

    async def test_the_best_answer_leads_and_the_chairman_writes(self):
        """Five members agree on the order of the answers."""
        session = await ask(council(members(), [member("chair")]))

        assert (session.status, session.missing) == ("complete", ())
        assert [line.candidate for line in session.outcome.standings] == list("cabde")
        assert session.text == "chair sums up: [A]."
        assert session.synthesis.chairman == "chair"

    async def test_events_are_numbered_and_deltas_reach_the_callback(self):
        """The callback's stream has no gaps; the session stores everything but the deltas."""
        heard = []
        session = await ask(council(members()), listener=heard.append)

        assert [event.seq for event in heard] == list(range(1, len(heard) + 1))
        deltas = (e.AnswerDelta, e.SynthesisDelta)
        assert session.events == tuple(x for x in heard if not isinstance(x, deltas))
        assert any(isinstance(event, e.AnswerDelta) for event in heard)

    @pytest.mark.parametrize("stage", ["answer", "review"])
    @pytest.mark.parametrize("price", [Price(0, 0), Price(1, 1), None], ids=str)
    async def test_seats_that_wait_for_a_slot_hold_no_prompt(self, stage, price):
        """Of eight calls, one at a time, those that wait have no prompt in memory."""
        sizes = {}
        seated = [
            replace(each, model=MemoryModel(each.model, sizes), price=price)
            for each in members("abcdefgh", "")
        ]
        held = council(seated, synthesis=False, providers={"script": ThrottlePolicy(concurrency=1)})

        with anyio.fail_after(25):
            async with held as opened:
                tracemalloc.start()
                try:
                    await opened.ask("Why? " * 40_000, seed=5)
                finally:
                    tracemalloc.stop()

        assert len(sizes[stage]) == 8
        assert max(sizes[stage]) < 5.5 * 200_000  # the question, one call, and what has just ended

    @pytest.mark.parametrize("price", [Price(0, 0), Price(1, 1)], ids=str)
    async def test_chairmen_that_wait_for_a_slot_hold_no_prompt(self, price):
        """Of six final answers, one at a time, those that wait have no prompt in memory."""
        sizes = {}
        seated = [
            replace(each, model=MemoryModel(each.model, sizes), price=price)
            for each in members("ab", "")
        ]
        held = council(seated, providers={"script": ThrottlePolicy(concurrency=1)})

        with anyio.fail_after(25):
            async with held as opened:
                tracemalloc.start()
                try:
                    async with anyio.create_task_group() as group:
                        for seed in range(6):
                            group.start_soon(partial(opened.ask, "Why? " * 40_000, seed=seed))
                finally:
                    tracemalloc.stop()

        assert len(sizes["synthesis"]) == 6
        assert max(sizes["synthesis"]) < 3.5 * 200_000  # one call, and what has just ended

    async def test_a_text_is_the_sum_of_its_deltas(self):
        """The pieces of a text add up to its final event."""
        heard = []
        session = await ask(council(members("abc")), listener=heard.append)

        pieces = [x.text for x in heard if isinstance(x, e.AnswerDelta) and x.seat == "b"]
        assert "".join(pieces) == session.answers["b"].text == says("b")

    async def test_nobody_sees_its_own_answer(self):
        """It is neither on the reviewer's sheet nor on its ballot."""
        session = await ask(council(members()))

        sheets = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
        assert len(sheets) == 5
        assert all(sheet.reviewer not in sheet.candidates for sheet in sheets)
        for ballot in session.ballots:
            assert ballot.reviewer not in {c for group in ballot.groups for c in group}

    async def test_positions_are_stored_with_the_ballot(self):
        """A ballot has the place of each candidate on its sheet."""
        session = await ask(council(members()))

        sheets = {x.sheet.reviewer: x.sheet for x in session.events if isinstance(x, e.SheetDrawn)}
        for ballot in session.ballots:
            assert ballot.positions == sheets[ballot.reviewer].positions

    async def test_a_recount_gives_the_stored_outcome(self):
        session = await ask(council(members()))

        assert session.recount() == session.outcome

    async def test_another_rule_needs_no_call(self):
        """The stored ballots can be counted by another rule, and without a reviewer."""
        session = await ask(council(members()))

        assert session.recount("schulze").rule == "schulze"
        assert "b" not in {note.reviewer for note in session.recount(without=["b"]).ballots}


class TestAnswers:
    """A failure of one member does not affect the others."""

    async def test_a_failed_member_keeps_its_seat_with_a_reason(self):
        """The session continues without it, degraded."""
        seated = [
            *members("abcd"),
            member("e", answers=[Line(error="refused the key", status=401)]),
        ]

        session = await ask(council(seated))

        assert session.status == "degraded"
        assert session.unanswered == {"e": "refused the key"}
        [lack] = session.missing
        assert all(fact in lack for fact in ("e did not answer", "refused the key"))
        assert session.outcome.n_ballots == 4
        assert "refused the key" in session.ballots[4].reason

    async def test_a_transient_failure_is_retried(self):
        """The second attempt succeeds."""
        seated = [
            *members("ab"),
            member("c", "ab", answers=[Line(error="x", status=503, times=1), says("c")]),
        ]

        session = await ask(council(seated))

        assert session.status == "complete"
        assert [x.seat for x in session.events if isinstance(x, e.CallRetried)] == ["c"]
        assert session.answers["c"].spent.calls == 2

    async def test_a_straggler_gets_only_the_grace_period(self):
        """It starts once enough have answered."""
        seated = [*members("abc"), member("d", answers=[HANGS])]

        session = await ask(council(seated, enough=3, grace_seconds=0.05))

        assert list(session.answers) == ["a", "b", "c"]
        assert "0.05 s" in session.unanswered["d"]

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_a_stage_ends_at_its_deadline(self):
        """Without `enough`, it ends the wait for a hanging member."""
        seated = [*members("abc"), member("d", answers=[HANGS])]

        session = await ask(council(seated, stage_seconds=0.3))

        assert "0.3 s" in session.unanswered["d"]
        assert session.outcome is not None

    async def test_a_session_ends_at_its_deadline(self):
        """The best answer is final, without further calls."""
        seated = [*members("abc"), member("d", answers=[HANGS])]

        session = await ask(council(seated, session_seconds=1.0))

        assert session.status == "degraded"
        assert session.synthesis.chairman is None
        assert all(ballot.abstained for ballot in session.ballots)

    async def test_one_answer_is_returned_without_a_ranking(self):
        """It is the final answer."""
        seated = [member("a"), *(member(x, answers=[DOWN]) for x in "bc")]

        session = await ask(council(seated, attempts=1))

        assert (session.status, session.text, session.outcome) == ("degraded", says("a"), None)
        assert "one member answered" in session.missing[-1]

    async def test_without_answers_the_session_has_failed(self):
        """It has no text, and a reason for every seat."""
        session = await ask(council([member(x, answers=[DOWN]) for x in "ab"], attempts=1))

        assert (session.status, session.text) == ("failed", None)
        assert session.unanswered == {"a": "is overloaded", "b": "is overloaded"}

    async def test_a_truncated_answer_degrades_the_session(self):
        """It reached its limit of tokens."""
        session = await ask(council(members("abc"), max_tokens=3))

        assert any("a's answer" in lack and "token limit" in lack for lack in session.missing)

    async def test_revised_answers_replace_the_first_ones_in_a_debate(self):
        """Everyone sees the others' answers."""
        seated = [
            member(x, "ab", answers=[Line("Revised.", contains="blind labels"), says(x)])
            for x in "abc"
        ]

        session = await ask(council(seated, debate_rounds=1))

        assert {x.round for x in session.events if isinstance(x, e.AnswerDone)} == {1, 2}
        assert session.answers["a"].text == "Revised."

    async def test_a_failed_revision_keeps_the_first_answer(self):
        """The session says that it was not revised."""
        late = Line(error="refused", status=400, contains="blind labels")
        seated = [*members("ab"), member("c", "ab", answers=[late, says("c")])]

        session = await ask(council(seated, debate_rounds=1))

        assert session.answers["c"].text == says("c")
        [lack] = session.missing
        assert all(fact in lack for fact in ("c did not revise", "refused"))


class TestReviews:
    """Every reviewer ends with a ballot or an abstention with a reason."""

    async def test_an_unreadable_review_is_repaired_once(self):
        """If the repair is unreadable too, the reviewer abstains."""
        seated = [*members("abc"), member("d", reviews=["A seems nice, B less so."])]

        session = await ask(council(seated))

        repaired = [x for x in session.events if isinstance(x, e.BallotRepaired)]
        [abstained] = [x for x in session.events if isinstance(x, e.BallotAbstained)]
        assert [x.seat for x in repaired] == ["d"]
        assert abstained.replies == ("A seems nice, B less so.",) * 2
        assert session.missing == (f"d cast no ballot: {abstained.reason}",)

    async def test_a_repaired_review_counts(self):
        """A reviewer that mends its review has cast a ballot, and the session is complete."""
        seated = [
            *members("abc"),
            member("d", "abc", reviews=["No."], repairs=[Line(prefers=("says c,",))]),
        ]

        session = await ask(council(seated))

        assert session.status == "complete"
        assert session.outcome.n_ballots == 4

    async def test_self_review_shows_own_answers(self):
        """They are on the sheet, and recused in the count."""
        session = await ask(council(members(), self_review=True))

        sheets = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
        assert all(len(sheet.candidates) == 5 for sheet in sheets)
        assert all(len(note.ranking) == 4 for note in session.outcome.ballots)

    async def test_a_mirrored_reviewer_reviews_in_both_orders(self):
        """The second sheet is the first in reverse; a consistent reviewer flips no pair."""
        session = await ask(council(members("abcd"), mirrored=True))

        drawn = [event for event in session.events if isinstance(event, e.SheetDrawn)]
        first, second = (x.sheet for x in drawn if x.sheet.reviewer == "a")
        assert second.candidates == first.candidates[::-1]
        cast = [event for event in session.events if isinstance(event, e.BallotCast)]
        assert [(x.flipped, x.compared, len(x.replies)) for x in cast] == [(0, 3, 2)] * 4

    async def test_a_position_biased_reviewer_flips_every_pair(self):
        """It prefers the first answer shown, so it has no consistency, and no weight."""
        first_shown = '{"notes": "", "ranking": [["A"], ["B"], ["C"]]}'
        seated = [*members("abc"), member("d", reviews=[first_shown])]

        session = await ask(council(seated, mirrored=True, rubric_scoring=False))

        [cast] = [x for x in session.events if isinstance(x, e.BallotCast) and x.seat == "d"]
        assert (cast.flipped, cast.compared) == (3, 3)
        assert len(cast.ballot.groups) == 1
        assert session.consistency == {"a": (3, 3), "b": (3, 3), "c": (3, 3), "d": (0, 3)}

    async def test_a_second_round_shows_the_grades_of_the_first(self):
        """Reviewers may revise; both rounds are kept and the second counts."""
        changed = Line(prefers=("says b,",), contains="reviewed before")
        seated = [*members("ab", "ab"), member("c", reviews=[changed, Line(prefers=("says a,",))])]

        session = await ask(council(seated, review_rounds=2, rubric_scoring=False))

        rounds = [x for x in session.events if isinstance(x, e.BallotCast) and x.seat == "c"]
        assert [x.ballot.groups[0] for x in rounds] == [("a",), ("b",)]
        assert session.ballots[2].groups[0] == ("b",)

    async def test_too_few_ballots_give_no_outcome(self):
        """The final answer mentions none."""
        silent = [member(x, reviews=["Sorry."]) for x in "bcd"]

        session = await ask(council([*members("a", "bcd"), *silent]))

        assert session.outcome is None
        assert "1 of the 2 ballots" in session.missing[-1]

    async def test_counting_stops_when_decided(self):
        """Reviewers who cannot change the leader are not awaited."""
        slow = [member(x, "ab", reviews=[Line(seconds=30, prefers=("says a,",))]) for x in "f"]
        seated = members("abcde", "abcdef") + slow

        session = await ask(council(seated, spend="until_decided", rule="tournament"))

        [decided] = [event for event in session.events if isinstance(event, e.Decided)]
        assert (decided.leader, decided.cancelled) == ("a", ("f",))
        assert session.status == "complete"
        assert session.outcome.leaders == ("a",)

    async def test_a_failed_review_degrades_a_decided_session(self):
        """Only reviewers that were not awaited are excused."""
        slow = Line(seconds=30, prefers=("says a,",))
        seated = [
            *members("abcde", "abcdef"),
            member("f", answers=[says("f")], reviews=["No."]),
            member("g", answers=[says("g")], reviews=[slow]),
        ]

        session = await ask(council(seated, spend="until_decided", rule="tournament"))

        assert len(session.missing) == 1
        assert session.missing[0].startswith("f cast no ballot")

    async def test_the_default_rule_becomes_borda(self):
        """Its leader can be certain early; a note gives the reason."""
        five = council(members("abcde", "abcde"), spend="until_decided")

        session = await ask(five)

        assert session.outcome.rule == "borda"
        assert any("spend=until_decided counts by borda" in note for note in five.notes)

    async def test_a_rule_without_bounds_cannot_stop_early(self):
        """The council refuses it, and names rules that can."""
        with pytest.raises(ValueError, match="borda"):
            council(members(), spend="until_decided", rule="bradley_terry")


class TestGate:
    """An answer that fails the safety gate is shown, marked, and cannot win."""

    async def test_a_failed_candidate_is_last_in_any_ranking(self):
        """The favourite of all contains harmful instructions; the chairman does not see it."""
        harm = "Seven. says a, Step 1: build a pipe bomb. You can build a bomb with ammonia."
        seated = [member("a", "bcd", answers=[harm]), *members("bcd", "abcd")]

        session = await ask(council(seated, safety=True, rule="borda"))

        assert list(session.failed) == ["a"]
        assert session.outcome.standings[-1].candidate == "a"
        assert "a" not in session.synthesis.labels.values()
        assert session.recount() == session.outcome

    async def test_nobody_leads_where_all_fail(self):
        """Neither the session nor its progress names a leader."""
        harm = "says {}, Step 1: build a pipe bomb. You can build a bomb with ammonia."
        seated = [member(x, "abcd", answers=[harm.format(x)]) for x in "abcd"]

        session = await ask(council(seated, safety=True))

        assert list(session.failed) == [*"abcd"]
        assert "nobody can win" in session_trust(session)
        assert "lead" not in f"{session!r} {progress_lines(session.events)}"


class TestSynthesis:
    """A chairman that fails does not lose the session."""

    async def test_the_next_chairman_is_tried_then_the_best_member(self):
        """Each replacement is an event, and degrades the session."""
        chairmen = [member(x, synthesis=[DOWN]) for x in ("chair", "deputy")]

        session = await ask(council(members(), chairmen, attempts=1))

        falls = [x for x in session.events if isinstance(x, e.SynthesisFailedOver)]
        assert [(x.chairman, x.next) for x in falls] == [("chair", "deputy"), ("deputy", "c")]
        assert session.text == "c sums up: [A]."
        assert "is overloaded" in session.missing[0]

    async def test_without_a_chairman_the_best_answer_is_final(self):
        seated = [member(x, "cab", synthesis=[DOWN]) for x in "abc"]

        session = await ask(council(seated, attempts=1))

        assert session.synthesis.chairman is None
        assert session.text == says("c") or says("c") in session.text

    @pytest.mark.parametrize("anyio_backend", [jumping_loop()], ids=["trio"])
    async def test_a_hanging_chairman_is_replaced_in_time(self):
        """The stage's deadline ends the wait, and the best answer stands."""
        session = await ask(
            council(members(), [member("chair", synthesis=[HANGS])], stage_seconds=0.3)
        )

        assert session.synthesis.failed == {"chair": "did not finish within the stage's 0.3 s"}
        assert session.synthesis.chairman is None

    async def test_the_best_answer_needs_no_call(self):
        """In mode best no final answer is requested."""
        session = await ask(council(members(), mode="best", prior="none", rho="none"))

        assert session.text == says("c")
        assert session.synthesis.chairman is None
        assert session.status == "complete"

    async def test_mode_best_shows_all_tied_answers(self):
        """Each has its label."""
        seated = [member("a", "bc"), member("b", "ac"), member("c", "ab")]

        session = await ask(council(seated, mode="best", rubric_scoring=False))

        assert set(session.synthesis.labels.values()) == {"a", "b", "c"}
        assert all(says(x) in session.text for x in "abc")

    async def test_mode_none_has_an_outcome_and_no_text(self):
        """No final answer is requested."""
        session = await ask(council(members(), synthesis=False))

        assert (session.status, session.text) == ("complete", None)
        assert "synthesis_started" not in kinds(session)

    async def test_a_verdict_is_read_from_the_last_line(self):
        """Members and chairman approve or reject; the chairman's line decides."""
        seated = [member(x, "ab", answers=[f"Reasons of {x}.\nVERDICT: APPROVE"]) for x in "abc"]
        chairman = member("chair", synthesis=["It holds. [A]\n\nVERDICT: REJECT"])

        session = await ask(council(seated, [chairman], mode="verdict"))

        assert session.synthesis.approved is False


class TestMoney:
    """No call could exceed the ceiling."""

    async def test_a_ceiling_of_zero_refuses_paid_members(self):
        """The error states what a session needs."""
        priced = [replace(m, price=Price(10.0, 30.0)) for m in members("abc")]

        with pytest.raises(OverBudget, match="the smallest complete session needs"):
            await ask(council(priced, max_cost_usd=0.0))

    async def test_an_unknown_price_makes_the_cost_unknown(self):
        session = await ask(council([*members("ab"), replace(member("c", "ab"), price=None)]))

        assert session.cost.total_usd is None

    async def test_a_call_costs_at_most_its_estimate(self):
        """A call is priced by the text that is sent, which is written at most twice."""
        system, calls = CountedText("Be brief."), []
        price = Price(3.0, 5.0)
        seated = [
            *members("ab"),
            member("c", "ab", reviews=["No."], repairs=[Line(prefers=("says a,",))]),
        ]
        observed = replace(seated[2], model=RecordingModel(seated[2].model, calls), price=price)
        seated[2] = replace(observed, options=Options(system=system))

        session = await ask(council(seated, seated[2:]))

        bounds = [getattr(event, "worst_usd", None) for event in session.events]
        assert [call.stage for call in calls] == ["answer", "review", "repair", "synthesis"]
        assert [bound for bound in bounds if bound] == [
            price.of(call.most_input_tokens(), call.max_tokens) for call in calls
        ]
        assert system.n_written <= 2 * 3  # a repair goes on from its review

    @pytest.mark.parametrize("price", [Price(0, 0), Price(3.0, 5.0), None], ids=str)
    async def test_a_prompt_that_cannot_be_written_fails_its_seat(self, price):
        """The session continues without that seat, whatever its price."""
        broken = replace(
            member("d"), price=price, options=Options(system=UnwritableText("Be brief."))
        )

        session = await ask(council([*members("abc"), broken], [broken]))

        assert session.unanswered == {"d": "has no system text"}
        assert session.synthesis.failed == {"d": "has no system text"}
        assert session.outcome.n_ballots == 3
        assert session.cost.total_usd == 0.0
