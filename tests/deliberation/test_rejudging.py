"""A jury judges stored answers: stages, money, resumes, refusals, rows."""

import gc
import json
from dataclasses import replace

import pytest

from councils import QUESTION, CountingClock, council, member, members, says
from juries import prompts_of, record_calls, rejudge, session_of_five, sheets, votes
from witan.core.gate import SafetyVerdict
from witan.deliberation import events as e
from witan.deliberation.council import BaseCouncil
from witan.deliberation.ports import Price
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import NoCouncil, NothingToCount, OverBudget
from witan.history.counting import session_entries
from witan.models.scripted import Line
from witan.service.trust import session_trust
from witan.surfaces.web.rendering import render_session

pytestmark = pytest.mark.anyio


class TestStages:
    """The jury reviews, ballots are counted, and the final answer is written."""

    async def test_the_jury_judges_the_same_answers(self):
        """Seats and answers are those of the first session, ballots and outcome the jury's."""
        first = await session_of_five()
        again = await rejudge(first)

        assert (again.status, again.missing) == ("complete", ())
        assert {seat: said.text for seat, said in again.answers.items()} == {
            seat: said.text for seat, said in first.answers.items()
        }
        assert [line.candidate for line in first.outcome.standings] == list("cabde")
        assert [line.candidate for line in again.outcome.standings] == list("ebacd")
        assert [ballot.reviewer for ballot in again.ballots] == list("xyz")

    async def test_a_rejudgment_is_a_new_session(self):
        """It names its parent and its relation to it; the parent is unchanged."""
        first = await session_of_five()
        record = session_to_json(first)
        again = await rejudge(first)

        assert (again.opening.parent, again.opening.relation) == (first.id, "rejudged")
        assert again.id != first.id
        assert all(ballot.session == again.id for ballot in again.ballots)
        assert session_to_json(first) == record

    async def test_no_juror_answers(self):
        """There is no event of an answer."""
        jury = record_calls(members("xyz", "ebacd"))
        again = await rejudge(await session_of_five(), jury)

        assert prompts_of(jury, "answer") == []
        told = {event.kind for event in again.events}
        assert not told & {"answer_started", "answer_done", "answer_failed"}

    async def test_jurors_get_the_material_of_the_question(self):
        """Conversation, files and category are those of the first session."""
        async with council(members("abc")) as opened:
            first = await opened.ask(QUESTION, files={"a.txt": "brine"}, category="seas")
        jury = record_calls(members("xyz"))
        again = await rejudge(first, jury)

        assert again.opening.category == "seas"
        assert all("brine" in text for text in prompts_of(jury, "review"))

    async def test_the_record_round_trips(self):
        again = await rejudge(await session_of_five())
        record = session_to_json(again)

        assert session_from_json(record) == again
        assert session_to_json(session_from_json(record)) == record

    async def test_a_recount_gives_the_same_outcome(self):
        """Without a juror it gives another."""
        again = await rejudge(await session_of_five())

        assert again.recount() == again.outcome
        assert again.recount(without=["x"]).n_ballots == 2

    async def test_a_rejudged_session_can_be_rejudged(self):
        """The answers are the same; the parent is the latest session."""
        second = await rejudge(await session_of_five())
        third = await rejudge(second, members("uvw", "dcbae"))

        assert third.opening.parent == second.id
        assert third.outcome.standings[0].candidate == "d"

    async def test_a_seat_without_an_answer_is_not_a_candidate(self):
        """Nothing is reported as missing because of it."""
        down = member("d", answers=[Line(error="is overloaded", status=503)])
        first = await session_of_five([*members("abc"), down], attempts=1)
        again = await rejudge(first)

        assert first.status == "degraded"
        assert again.status == "complete"
        assert [seat.name for seat in again.opening.seats] == list("abc")

    async def test_failures_of_the_safety_gate_are_kept(self):
        """Such answers cannot win here, and are not checked again."""

        def suspects_c(text: str) -> SafetyVerdict:
            return SafetyVerdict(("odd",) if text == says("c") else ())

        async with BaseCouncil(
            members(), procedure=Procedure(safety=True), clock=CountingClock(), check=suspects_c
        ) as opened:
            first = await opened.ask(QUESTION)
        for options in ({}, {"safety": True}):
            again = await rejudge(first, members("xyz", "cabde"), **options)

            assert again.failed == {"c": ("odd",)}
            assert again.outcome.standings[0].candidate == "a"
            assert not [x for x in again.events if isinstance(x, e.GateVerdict)]

    async def test_the_jurys_gate_checks_unchecked_answers(self):
        """The first session had no gate."""
        again = await rejudge(await session_of_five(), safety=True)

        assert len([x for x in again.events if isinstance(x, e.GateVerdict)]) == 5

    @pytest.mark.parametrize(
        "options", [{"mirrored": True}, {"review_rounds": 2}, {"safety": True}]
    )
    async def test_all_options_of_reviews_apply(self, options):
        """Both orders, second rounds and gates work with a jury, too."""
        again = await rejudge(await session_of_five(), **options)

        assert again.status == "complete"
        assert [line.candidate for line in again.outcome.standings] == list("ebacd")

    async def test_the_jury_stops_when_decided(self):
        """With one order for all, a juror that hangs is not awaited."""
        jury = [*members("uvwxy", "ebacd"), member("z", reviews=[Line("Well", hang=True)])]
        again = await rejudge(await session_of_five(), jury, rule="borda", spend="until_decided")

        decided = [event for event in again.events if isinstance(event, e.Decided)]
        assert [(x.leader, x.cancelled) for x in decided] == [("e", ("z",))]

    async def test_a_juror_that_fails_abstains(self):
        """The session is degraded by a ballot, and names the juror."""
        jury = [*members("xy", "ebacd"), member("z", reviews=[Line(error="is down", status=500)])]
        again = await rejudge(await session_of_five(), jury, attempts=1)

        assert again.status == "degraded"
        [lack] = again.missing
        assert all(fact in lack for fact in ("z cast no ballot", "is down"))


class TestFinalAnswer:
    """Who writes the final answer."""

    async def test_the_jurys_chairman_writes(self):
        """It was configured with the jury."""
        again = await rejudge(await session_of_five(), chairmen=[member("chair")])

        assert again.synthesis.chairman == "chair"

    async def test_without_a_chairman_the_first_juror_writes(self):
        """The members who answered cannot be called."""
        again = await rejudge(await session_of_five())

        assert again.synthesis.chairman == "x"

    async def test_the_juror_with_the_best_answer_writes(self):
        """It is one of the jurors that answered in the first session."""
        again = await rejudge(
            await session_of_five(), [*members("xy", "ebacd"), *members("ab", "ebacd")]
        )

        assert again.synthesis.chairman == "b"

    async def test_the_best_answer_needs_no_call(self):
        """In mode best it is the final answer."""
        again = await rejudge(await session_of_five(), mode="best", prior="none", rho="none")

        assert again.text == says("e")


class TestRankings:
    """The old ranking is shown with the new one."""

    async def test_both_rankings_are_shown(self):
        """They are in the trust line, in the record and on the page."""
        again = await rejudge(await session_of_five())

        said = "ranked before: c > a > b > d and e; now: e > b > a > c and d"
        assert said in session_trust(again)
        record = json.loads(session_to_json(again))
        assert ["".join(group) for group in record["rankings"]["before"]] == ["c", "a", "b", "de"]
        assert ["".join(group) for group in record["rankings"]["now"]] == ["e", "b", "a", "cd"]
        assert said.replace(">", "&gt;") in render_session(again, show_names=True)
        assert "ranked before: " in render_session(again)
        assert said.replace(">", "&gt;") not in render_session(again)
        assert session_from_json(session_to_json(again)).rankings == again.rankings

    async def test_an_equal_ranking_is_reported(self):
        again = await rejudge(await session_of_five(), members("xyz", "cabde"))

        assert "c > a > b > d and e" in session_trust(again)

    async def test_a_parent_without_an_outcome_has_no_ranking_to_show(self):
        parent = await session_of_five(rule="borda", quorum=5, attempts=1, seated=[
            *members("abcd"), member("e", reviews=["No."], repairs=["No."])])  # fmt: skip
        again = await rejudge(parent)

        assert parent.outcome is None
        assert again.rankings == {}
        assert "ranked" not in session_trust(again)


class TestBlindness:
    """Jurors cannot tell the authors of answers."""

    async def test_names_of_both_councils_are_masked(self):
        """They are those of seats that answered, and of jurors."""
        author = member("critic", answers=["I am mistermodel-8b, as judge-9b is. It is sea 3."])
        first = await session_of_five([replace(author, source="x:mistermodel-8b", simulated=False),
                            *members("abc")])  # fmt: skip
        jury = record_calls(members("xyz"))
        jury[0] = replace(jury[0], source="y:judge-9b", simulated=False)
        await rejudge(first, jury)

        shown = "\n".join(prompts_of(jury, "review"))
        assert "mistermodel" not in shown
        assert "judge-9b" not in shown
        assert "I am [model]" in shown

    async def test_every_sheet_is_redrawn(self):
        """Five jurors see five answers at every position equally often, with other nonces."""
        first = await session_of_five()
        again = await rejudge(first, members("vwxyz", "ebacd"))

        drawn = [event.sheet for event in again.events if isinstance(event, e.SheetDrawn)]
        before = [event.sheet for event in first.events if isinstance(event, e.SheetDrawn)]
        for candidate in "abcde":
            assert sorted(sheet.positions[candidate] for sheet in drawn) == [1, 2, 3, 4, 5]
        nonces = {sheet.nonce for sheet in (*drawn, *before)}
        assert len(nonces) == 10

    @pytest.mark.parametrize("self_review", [False, True])
    async def test_an_author_never_sees_its_own_answer(self, self_review):
        """A juror of the same source is recused, whatever its name and the settings."""
        author = replace(member("x", "ebacd"), source="script:e")
        jury = [author, *members("yz", "ebacd")]
        again = await rejudge(await session_of_five(), jury, self_review=self_review)

        assert sheets(again) == {"x": tuple("abcd"), "y": tuple("abcde"), "z": tuple("abcde")}
        [own] = [ballot for ballot in again.ballots if ballot.reviewer == "x"]
        assert own.authors == {"e": "x"}
        assert votes(again)["e"] == (2, 1.0)

    async def test_a_model_of_several_seats_sees_none_of_its_answers(self):
        """All jurors of one source are recused from all answers of that source."""
        one = [replace(seat, source="script:one") for seat in members("ab", "cabde")]
        first = await session_of_five([*one, *members("cde", "cabde")])
        jury = [replace(seat, source="script:one") for seat in members("wx", "ebacd")]
        again = await rejudge(first, [*jury, *members("yz", "ebacd")])

        assert sheets(again)["w"] == sheets(again)["x"] == tuple("cde")
        assert again.status == "complete"
        assert votes(again) == dict.fromkeys("ab", (2, 1.0)) | dict.fromkeys("cde", (4, 1.0))
        assert again.recount(unranked="last").standings == again.outcome.standings

    async def test_a_juror_with_the_name_of_a_seat_is_renamed(self):
        """It did not write for that seat, so it sees all answers."""
        other = replace(member("a", "ebacd"), source="script:elsewhere")
        again = await rejudge(await session_of_five(), [other, *members("yz", "ebacd")])

        assert [seat.name for seat in again.opening.jury] == ["a (2)", "y", "z"]
        assert sheets(again)["a (2)"] == tuple("abcde")

    async def test_a_juror_with_the_name_of_a_seat_without_an_answer_keeps_it(self):
        """No blind page shows the name."""
        silent = replace(member("quill", answers=[]), source="script:quill")
        parent = await session_of_five([*members("abcd"), silent], attempts=1)
        closing = {"synthesis": ["All told [A]."]}
        other = replace(member("quill", "abcd", **closing), source="script:elsewhere")
        again = await rejudge(parent, [other, *members("yz", "abcd")], [other])

        assert [*parent.unanswered] == ["quill"]
        assert [seat.name for seat in again.opening.jury] == ["quill", "y", "z"]
        assert (again.status, len(again.ballots)) == ("complete", 3)
        [note] = again.notes
        assert "chairman quill" in note
        page = render_session(again)
        assert "quill" not in page
        assert "the chairman is " in page
        revealed = render_session(again, show_names=True)
        assert revealed.count("quill is also a juror") == 1

    async def test_a_renamed_chairman_is_named_as_in_this_session(self):
        """The note on its two roles uses the new name, and is not on a blind page."""
        other = replace(member("a", "ebacd"), source="script:elsewhere")
        again = await rejudge(await session_of_five(), [other, *members("yz", "ebacd")], [other])

        [note] = again.notes
        assert "chairman a (2)" in note
        assert "a (2)" not in render_session(again)

    async def test_a_council_may_judge_its_own_answers_again(self):
        """Members are recused as before, and none is renamed."""
        again = await rejudge(await session_of_five(), members("abcde", "ebacd"))

        assert [ballot.reviewer for ballot in again.ballots] == list("abcde")
        assert all(ballot.authors is None for ballot in again.ballots)
        assert all(name not in shown for name, shown in sheets(again).items())

    async def test_the_author_of_every_answer_abstains(self):
        """It is not called, and the session says why."""
        one = [replace(seat, source="script:one") for seat in members("abc")]
        jury = record_calls([replace(member("x"), source="script:one"), *members("yz", "abc")])
        again = await rejudge(await session_of_five(one), jury)

        assert [call.stage for call in jury[0].model.calls] in ([], ["synthesis"])
        [lack] = again.missing
        assert all(fact in lack for fact in ("x cast no ballot", "wrote every answer"))


class TestMoney:
    """The cost of the answers is not counted again."""

    async def test_only_the_jury_costs(self):
        """The cost is that of reviews and final answer; answers keep their own."""
        priced = [replace(seat, price=Price(1e6, 1e6)) for seat in members("abc")]
        first = await session_of_five(priced)
        again = await rejudge(first, members("xyz"))

        assert first.cost.total_usd > 0
        assert again.cost.total_usd == 0
        assert again.answers["a"].spent == first.answers["a"].spent

    async def test_the_plan_has_reviews_and_a_final_answer(self):
        """Its maximum bounds the money spent."""
        jury = [replace(seat, price=Price(1.0, 2.0)) for seat in members("xyz", "ebacd")]
        again = await rejudge(await session_of_five(), jury)

        plan = again.opening.plan
        assert [(line.seat, line.stage) for line in plan.lines if not line.if_needed] == [
            ("x", "review"), ("y", "review"), ("z", "review"), ("x", "synthesis"),
        ]  # fmt: skip
        assert plan.repairs == 3
        assert 0 < again.cost.total_usd < plan.worst_usd

    async def test_every_call_reads_at_most_what_was_planned(self):
        """The bound holds to the token."""
        jury = record_calls(members("xyz", "ebacd"))
        again = await rejudge(await session_of_five(), jury)

        planned = {line.seat: line for line in again.opening.plan.lines if line.stage == "review"}
        for seat in jury:
            [call] = [call for call in seat.model.calls if call.stage == "review"]
            read = sum(len(message.text.encode()) for message in call.messages)
            assert read < planned[seat.name].input_tokens < read + 2_000 + len(str(call.schema))

    async def test_the_ceiling_holds(self):
        """A jury above the ceiling is not called."""
        jury = [replace(seat, price=Price(1.0, 2.0)) for seat in members("xyz")]
        before = await session_of_five()

        with pytest.raises(OverBudget, match="the reviews are requested together"):
            await rejudge(before, jury, max_cost_usd=1e-9)


class TestResuming:
    """An interrupted rejudgment is resumed after its last finished seat."""

    async def test_resuming_from_any_event_gives_the_same_final_answer(self):
        first = await session_of_five()
        whole = await rejudge(first)
        for kept in range(1, len(whole.events)):
            jury = record_calls(members("xyz", "ebacd"))
            broken = Session.of(whole.events[:kept])
            async with council(jury) as opened:
                again = await opened.resume(broken)

            assert again.status == "complete", kept
            assert again.text == whole.text
            assert again.outcome.standings == whole.outcome.standings
            cast = sum(isinstance(x, e.BallotCast) for x in broken.events)
            assert len(prompts_of(jury, "review")) == 3 - cast
        gc.collect()

    async def test_a_renamed_juror_is_recognised(self):
        """It gets the same new name again."""
        other = replace(member("a", "ebacd"), source="script:elsewhere")
        jury = [other, *members("yz", "ebacd")]
        whole = await rejudge(await session_of_five(), jury)
        async with council(jury) as opened:
            again = await opened.resume(Session.of(whole.events[:3]))

        assert again.status == "complete"

    async def test_another_jury_is_refused(self):
        """The error names the seats of the jury."""
        whole = await rejudge(await session_of_five())
        with pytest.raises(NoCouncil, match=r"seat x \(script:x\), y"):
            async with council(members("xyw")) as opened:
                await opened.resume(Session.of(whole.events[:3]))


class TestRefusals:
    """Invalid requests are refused at once."""

    async def test_a_session_of_one_answer_is_refused(self):
        """There is nothing to rank, and no call is made."""
        down = [member(name, answers=[Line(error="is down")]) for name in "bc"]
        first = await session_of_five([member("a"), *down], attempts=1)
        with pytest.raises(NothingToCount, match="has one answer"):
            await rejudge(first)

    async def test_a_closed_council_is_refused(self):
        """The error explains how to use one."""
        first = await session_of_five()
        with pytest.raises(NoCouncil, match="async with"):
            await council(members("xyz")).rejudge(first)

    async def test_a_record_with_an_answer_without_a_seat_is_refused(self):
        again = await rejudge(await session_of_five())
        opened = replace(again.opening, seats=again.opening.seats[1:])
        with pytest.raises(NothingToCount, match="unknown seat"):
            Session.of([opened, *again.events[1:]])


class TestEntries:
    """Rows of a rejudgment in a history."""

    async def test_rows_name_models_by_role(self):
        """Candidates are named by the seats that answered, reviewers by the jurors."""
        author = replace(member("x", "ebacd"), source="script:e")
        again = await rejudge(await session_of_five(), [author, *members("yz", "ebacd")])
        entries = session_entries(again)

        assert [entry.reviewer for entry in entries.ballots] == ["script:e", "script:y", "script:z"]
        assert {entry.model for entry in entries.standings} == {f"script:{c}" for c in "abcde"}
        assert set(entries.ballots[0].models) == {f"script:{c}" for c in "abcd"}

    async def test_the_cost_of_an_answer_counts_once(self):
        """Its length is known; its cost belongs to the first session."""
        again = await rejudge(await session_of_five())
        entry = session_entries(again).answers[0]

        assert (entry.chars, entry.failed) == (len(says("a")), False)
        assert (entry.seconds, entry.cost_usd, entry.output_tokens) == (None, None, None)
