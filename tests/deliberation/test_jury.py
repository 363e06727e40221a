"""A council with a separate jury: members only answer, jurors only review."""

from dataclasses import replace

import pytest

from councils import QUESTION, council, member, members, says
from juries import prompts_of, record_calls, rejudge, sheets
from witan.deliberation import events as e
from witan.deliberation.ports import Price
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NoCouncil, UnknownName, WitanError
from witan.history.counting import session_entries
from witan.models.scripted import Line
from witan.service.trust import session_trust
from witan.surfaces.live_board import Board

pytestmark = pytest.mark.anyio

FAILS = Line(error="unavailable")


async def ask_with_jury(names="abc", jury=None, chairmen=(), **options) -> Session:
    """A session of these members with a jury of three, who rank the answer of b first."""
    jury = members("xyz", "bac") if jury is None else jury
    async with council(members(names, "cab"), chairmen, jury=jury, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


def until_last(session: Session, kind: type[e.Event]) -> Session:
    """The session up to the last event of this kind."""
    last = max(n for n, event in enumerate(session.events) if isinstance(event, kind))
    return Session.of(session.events[: last + 1])


class TestRoles:
    """Who is called at which stage."""

    async def test_members_answer_and_jurors_review(self):
        """Nobody does both; the outcome is the jury's, on the members' answers."""
        seated, jury = record_calls(members("abc", "cab")), record_calls(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            session = await opened.ask(QUESTION, seed=5)

        assert (session.status, session.missing) == ("complete", ())
        assert {seat: said.text for seat, said in session.answers.items()} == {
            name: says(name) for name in "abc"
        }
        assert [len(prompts_of(seated, stage)) for stage in ("answer", "review")] == [3, 0]
        assert [len(prompts_of(jury, stage)) for stage in ("answer", "review")] == [0, 3]
        assert [ballot.reviewer for ballot in session.ballots] == list("xyz")
        assert [line.candidate for line in session.outcome.standings] == list("bac")

    async def test_jurors_see_every_answer_but_that_of_their_own_model(self):
        """Such a juror is recused only from that member's answer."""
        twin = replace(member("z", "bac"), source="script:c")
        session = await ask_with_jury(jury=[*members("xy", "bac"), twin])

        assert sheets(session) == {"x": tuple("abc"), "y": tuple("abc"), "z": tuple("ab")}
        votes = {line.candidate: line.votes for line in session.outcome.standings}
        assert votes == {"a": 3, "b": 3, "c": 2}

    async def test_the_best_member_stands_in_for_the_chairman(self):
        """Without a chairman it writes the final answer; a juror never does."""
        assert (await ask_with_jury()).synthesis.chairman == "b"
        broken = member("q", synthesis=[FAILS])
        session = await ask_with_jury(chairmen=[broken], attempts=1)
        assert (session.synthesis.chairman, list(session.synthesis.failed)) == ("b", ["q"])

    async def test_the_trust_line_counts_jurors(self):
        """A member is not a missing reviewer."""
        seated = members("ab", "ba")
        async with council(seated, jury=members("xyz", "ba")) as opened:
            assert "3 of 3 reviewers" in session_trust(await opened.ask(QUESTION))
        dumb = member("z", reviews=[FAILS])
        session = await ask_with_jury(jury=[*members("xy", "bac"), dumb], attempts=1)

        assert "2 of 3 reviewers" in session_trust(session)
        assert session.progress == "3 of 3 answers, 2 of 3 ballots"
        assert [each.split(" ballot")[0] for each in session.missing] == ["z cast no"]

    async def test_a_member_that_fails_costs_no_ballot(self):
        """Only its answer is missing."""
        seated = [*members("ab", "ba"), member("c", answers=[FAILS])]
        async with council(seated, jury=members("xyz", "bac"), attempts=1) as opened:
            session = await opened.ask(QUESTION)

        assert [ballot.abstained for ballot in session.ballots] == [False] * 3
        assert [each[:16] for each in session.missing] == ["c did not answer"]

    async def test_a_debate_is_among_members(self):
        """Jurors judge the revised answers."""
        jury = record_calls(members("xyz", "bac"))
        session = await ask_with_jury(jury=jury, debate_rounds=1)

        assert {said.round for said in session.answers.values()} == {2}
        assert prompts_of(jury, "answer") == []

    async def test_two_members_who_only_rank_need_a_jury(self):
        """Each member would have one answer to rank; a juror has both."""
        ranking = {"rubric_scoring": False, "holistic": False}
        async with council(members("ab"), **ranking) as opened:
            with pytest.raises(InvalidParameter, match="rank one answer alone"):
                await opened.ask("Which?")
        session = await ask_with_jury("ab", **ranking)
        assert session.outcome.ranking[0] == ("b",)


class TestRefusals:
    """Invalid juries."""

    def test_a_jury_of_one_is_refused(self):
        """The message has a remedy."""
        with pytest.raises(NoCouncil, match="at least two jurors"):
            council(members("abc"), jury=members("x"))

    @pytest.mark.parametrize("names", ["cx", "xx"])
    def test_a_juror_with_the_name_of_another_seat_is_refused(self, names):
        """Its ballot would be taken for a member's."""
        with pytest.raises(InvalidParameter, match="no other seat has"):
            council(members("abc"), jury=members(names))

    def test_a_quorum_above_the_number_of_jurors_is_refused(self):
        with pytest.raises(InvalidParameter, match="at most the 2 jurors"):
            council(members("abc"), jury=members("xy"), quorum=3)
        council(members("ab"), jury=members("xyz"), quorum=3)


class TestPlan:
    """The cost is known in advance."""

    def test_the_plan_has_reviews_only_by_jurors(self):
        """The separation is that of a jury."""
        opened = council(members("abcd"), jury=members("xyz"))
        plan = opened.plan("Why?")

        stages = {}
        for line in plan.lines:
            stages.setdefault(line.stage, []).append(line.seat)
        assert stages["answer"] == list("abcd")
        assert stages["review"] == stages["repair"] == list("xyz")
        assert stages["synthesis"][0] in "abcd"
        assert (plan.separation.reviewers, plan.separation.candidates) == (3, 4)
        alone = council(members("abc")).plan("Why?").separation
        assert plan.separation.grades != alone.grades

    async def test_no_session_costs_more_than_planned(self):
        """Nor does the rest of one that has its answers."""
        priced = [replace(each, price=Price(1, 2)) for each in members("abc", "cab")]
        jury = [replace(each, price=Price(3, 4)) for each in members("xyz", "bac")]
        async with council(priced, jury=jury) as opened:
            plan = opened.plan(QUESTION)
            session = await opened.ask(QUESTION)

        assert 0 < session.cost.total_usd <= plan.worst_usd
        assert 0 < plan.expected_usd <= plan.worst_usd

    async def test_a_ceiling_below_the_minimum_cost_is_refused(self):
        """The minimum includes the jury's reviews."""
        jury = [replace(each, price=Price(300, 400)) for each in members("xyz", "bac")]
        with pytest.raises(WitanError, match="ceiling"):
            await ask_with_jury(jury=jury, max_cost_usd=0.01)


class TestLater:
    """A session with a jury is stored, resumed, retried and judged again like any other."""

    async def test_the_record_round_trips(self):
        session = await ask_with_jury()

        assert session_from_json(session_to_json(session)) == session
        opened = session.opening
        assert [seat.name for seat in opened.members] == list("abc")
        assert [seat.name for seat in opened.reviewers] == list("xyz")
        assert opened.answers == ()

    @pytest.mark.parametrize("kind", [e.AnswerStarted, e.AnswerDone, e.BallotCast])
    async def test_an_interrupted_session_is_resumed(self, kind):
        """No call is repeated, and the outcome is the same."""
        whole = await ask_with_jury()
        broken = until_last(whole, kind)
        seated, jury = record_calls(members("abc", "cab")), record_calls(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            taken_up = await opened.resume(broken)

        assert taken_up.status == "complete"
        assert taken_up.outcome.ranking == whole.outcome.ranking
        assert len(prompts_of(seated, "answer")) == (3 if kind is e.AnswerStarted else 0)
        assert prompts_of(seated, "review") == prompts_of(jury, "answer") == []

    async def test_only_the_same_jury_resumes_it(self):
        """Another one, or none, is refused."""
        broken = until_last(await ask_with_jury(), e.AnswerDone)
        for jury in ((), members("xy", "bac")):
            async with council(members("abc", "cab"), jury=jury) as opened:
                with pytest.raises(NoCouncil, match="was started with other jurors"):
                    await opened.resume(broken)

    async def test_a_failed_juror_is_retried(self):
        """Answers and other ballots are kept."""
        dumb = member("z", reviews=[FAILS])
        first = await ask_with_jury(jury=[*members("xy", "bac"), dumb], attempts=1)
        seated, jury = record_calls(members("abc", "cab")), record_calls(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            again = await opened.retry(first)

        assert (again.status, again.opening.retried) == ("complete", ("z",))
        assert [len(prompts_of([each], "review")) for each in jury] == [0, 0, 1]
        assert prompts_of(seated, "answer") == []

    async def test_a_failed_member_answers_again(self):
        """The whole jury reviews again, as there is another answer."""
        seated = [*members("ab", "ba"), member("c", answers=[FAILS])]
        async with council(seated, jury=members("xyz", "bac"), attempts=1) as opened:
            first = await opened.ask(QUESTION)
        seated, jury = record_calls(members("abc", "cab")), record_calls(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            again = await opened.retry(first)

        assert (again.status, again.opening.retried) == ("complete", ("c",))
        assert [len(prompts_of([each], "answer")) for each in seated] == [0, 0, 1]
        assert len(prompts_of(jury, "review")) == 3

    async def test_another_jury_judges_the_same_answers(self):
        """It may reuse the names of the first jury, whose ballots are not included."""
        again = await rejudge(await ask_with_jury(), members("xuv", "cab"))

        assert again.opening.members == ()
        assert [ballot.reviewer for ballot in again.ballots] == list("xuv")
        assert again.outcome.ranking[0] == ("c",)

    async def test_a_council_judges_again_with_its_jury(self):
        """Its members make no call, as there are answers."""
        first = await ask_with_jury()
        seated = record_calls(members("def", "abc"))
        async with council(seated, jury=members("uvw", "cab")) as opened:
            again = await opened.rejudge(first)

        assert [ballot.reviewer for ballot in again.ballots] == list("uvw")
        assert prompts_of(seated, "review") == []

    async def test_jurors_are_left_out_of_a_recount_like_any_reviewer(self):
        """They are named; a member's name is not a reviewer's."""
        session = await ask_with_jury()

        assert session.recount(without=["x"]).n_ballots == 2
        with pytest.raises(UnknownName, match="unknown reviewer"):
            session.recount(without=["a"])

    async def test_a_leaderboard_has_members_and_an_audit_jurors(self):
        """Members have the answers, jurors the ballots; nobody judged itself."""
        entries = session_entries(await ask_with_jury())

        assert {each.model for each in entries.answers} == {f"script:{n}" for n in "abc"}

    async def test_the_live_view_has_a_line_per_seat(self):
        """Members are counted by answers, jurors by reviews."""
        board = Board()
        session = await ask_with_jury(jury=[*members("xy", "bac"), member("z", reviews=[FAILS])])
        for event in session.events:
            board = board.apply_event(event)

        assert [line.name for line in board.seats] == list("abcxyz")
        assert (board.n_answering, board.n_reviewing) == (3, 3)
