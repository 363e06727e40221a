"""A council with a jury of its own: members only answer, jurors only review."""

from dataclasses import replace

import pytest

from councils import QUESTION, council, member, members, says
from juries import asked, judged, overheard, sheets
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


async def held(names="abc", jury=None, chairmen=(), **options) -> Session:
    """A session of these members before a jury of three, who find the answer of b the best."""
    jury = members("xyz", "bac") if jury is None else jury
    async with council(members(names, "cab"), chairmen, jury=jury, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


def ending(session: Session, kind: type[e.Event]) -> Session:
    """The session as it was when the last event of this kind had happened."""
    last = max(n for n, event in enumerate(session.events) if isinstance(event, kind))
    return Session.of(session.events[: last + 1])


class TestRoles:
    """Who is asked for what."""

    async def test_members_answer_and_jurors_review(self):
        """Nobody does both; the outcome is the jury's, on the answers of the members."""
        seated, jury = overheard(members("abc", "cab")), overheard(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            session = await opened.ask(QUESTION, seed=5)

        assert (session.status, session.missing) == ("complete", ())
        assert {seat: said.text for seat, said in session.answers.items()} == {
            name: says(name) for name in "abc"
        }
        assert [len(asked(seated, stage)) for stage in ("answer", "review")] == [3, 0]
        assert [len(asked(jury, stage)) for stage in ("answer", "review")] == [0, 3]
        assert [ballot.reviewer for ballot in session.ballots] == list("xyz")
        assert [line.candidate for line in session.outcome.standings] == list("bac")

    async def test_jurors_see_every_answer_but_what_their_own_model_wrote(self):
        """A juror of a member's model is recused from that member's answer alone."""
        twin = replace(member("z", "bac"), source="script:c")
        session = await held(jury=[*members("xy", "bac"), twin])

        assert sheets(session) == {"x": tuple("abc"), "y": tuple("abc"), "z": tuple("ab")}
        votes = {line.candidate: line.votes for line in session.outcome.standings}
        assert votes == {"a": 3, "b": 3, "c": 2}

    async def test_the_best_member_stands_in_for_the_chairman(self):
        """Without one it writes the final answer; a juror never does."""
        assert (await held()).synthesis.chairman == "b"
        broken = member("q", synthesis=[FAILS])
        session = await held(chairmen=[broken], attempts=1)
        assert (session.synthesis.chairman, list(session.synthesis.failed)) == ("b", ["q"])

    async def test_the_trust_line_counts_jurors(self):
        """A member is no reviewer that is missing."""
        seated = members("ab", "ba")
        async with council(seated, jury=members("xyz", "ba")) as opened:
            assert "3 of 3 reviewers" in session_trust(await opened.ask(QUESTION))
        dumb = member("z", reviews=[FAILS])
        session = await held(jury=[*members("xy", "bac"), dumb], attempts=1)

        assert "2 of 3 reviewers" in session_trust(session)
        assert session.progress == "3 of 3 answers, 2 of 3 ballots"
        assert [each.split(" ballot")[0] for each in session.missing] == ["z cast no"]

    async def test_a_member_that_fails_leaves_the_jury_whole(self):
        """Its answer is missing, and no ballot."""
        seated = [*members("ab", "ba"), member("c", answers=[FAILS])]
        async with council(seated, jury=members("xyz", "bac"), attempts=1) as opened:
            session = await opened.ask(QUESTION)

        assert [ballot.abstained for ballot in session.ballots] == [False] * 3
        assert [each[:16] for each in session.missing] == ["c did not answer"]

    async def test_a_debate_is_among_members(self):
        """Jurors judge what came of it."""
        jury = overheard(members("xyz", "bac"))
        session = await held(jury=jury, debate_rounds=1)

        assert {said.round for said in session.answers.values()} == {2}
        assert asked(jury, "answer") == []

    async def test_two_members_who_only_rank_need_a_jury(self):
        """Each of them would have one answer to rank; a juror has both."""
        ranking = {"rubric_scoring": False, "holistic": False}
        async with council(members("ab"), **ranking) as opened:
            with pytest.raises(InvalidParameter, match="rank one answer alone"):
                await opened.ask("Which?")
        session = await held("ab", **ranking)
        assert session.outcome.ranking[0] == ("b",)


class TestRefusals:
    """What no council can be."""

    def test_a_jury_of_one_is_refused(self):
        """The message says what to do."""
        with pytest.raises(NoCouncil, match="at least two jurors"):
            council(members("abc"), jury=members("x"))

    @pytest.mark.parametrize("names", ["cx", "xx"])
    def test_no_juror_has_the_name_of_another_seat(self, names):
        """Nor of a member: its ballot would pass for the member's."""
        with pytest.raises(InvalidParameter, match="no other seat has"):
            council(members("abc"), jury=members(names))

    def test_the_quorum_is_of_jurors(self):
        """More ballots than jurors could never come."""
        with pytest.raises(InvalidParameter, match="at most the 2 jurors"):
            council(members("abc"), jury=members("xy"), quorum=3)
        council(members("ab"), jury=members("xyz"), quorum=3)


class TestPlan:
    """What it costs is known before."""

    def test_members_answer_and_jurors_review_in_the_plan(self):
        """The lines have no review by a member, and the separation is that of a jury."""
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
        """Nor does what is left of it, once its answers are there."""
        priced = [replace(each, price=Price(1, 2)) for each in members("abc", "cab")]
        jury = [replace(each, price=Price(3, 4)) for each in members("xyz", "bac")]
        async with council(priced, jury=jury) as opened:
            plan = opened.plan(QUESTION)
            session = await opened.ask(QUESTION)

        assert 0 < session.cost.total_usd <= plan.worst_usd
        assert 0 < plan.expected_usd <= plan.worst_usd

    async def test_a_ceiling_below_the_least_cost_is_refused_beforehand(self):
        """The jury's reviews are in that cost."""
        jury = [replace(each, price=Price(300, 400)) for each in members("xyz", "bac")]
        with pytest.raises(WitanError, match="ceiling"):
            await held(jury=jury, max_cost_usd=0.01)


class TestAfterwards:
    """A session with a jury is stored, taken up, retried and judged again like any other."""

    async def test_the_record_says_all_of_it(self):
        """Read back it is the same session."""
        session = await held()

        assert session_from_json(session_to_json(session)) == session
        opened = session.opening
        assert [seat.name for seat in opened.members] == list("abc")
        assert [seat.name for seat in opened.reviewers] == list("xyz")
        assert opened.answers == ()

    @pytest.mark.parametrize("kind", [e.AnswerStarted, e.AnswerDone, e.BallotCast])
    async def test_an_interrupted_session_is_resumed(self, kind):
        """Nobody is asked twice, and the outcome is what it would have been."""
        whole = await held()
        broken = ending(whole, kind)
        seated, jury = overheard(members("abc", "cab")), overheard(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            taken_up = await opened.resume(broken)

        assert taken_up.status == "complete"
        assert taken_up.outcome.ranking == whole.outcome.ranking
        assert len(asked(seated, "answer")) == (3 if kind is e.AnswerStarted else 0)
        assert asked(seated, "review") == asked(jury, "answer") == []

    async def test_only_the_same_jury_takes_it_up(self):
        """Others, or none, are refused."""
        broken = ending(await held(), e.AnswerDone)
        for jury in ((), members("xy", "bac")):
            async with council(members("abc", "cab"), jury=jury) as opened:
                with pytest.raises(NoCouncil, match="was started with other jurors"):
                    await opened.resume(broken)

    async def test_a_failed_juror_is_asked_again(self):
        """The answers stand, and so do the other ballots."""
        dumb = member("z", reviews=[FAILS])
        first = await held(jury=[*members("xy", "bac"), dumb], attempts=1)
        seated, jury = overheard(members("abc", "cab")), overheard(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            again = await opened.retry(first)

        assert (again.status, again.opening.retried) == ("complete", ("z",))
        assert [len(asked([each], "review")) for each in jury] == [0, 0, 1]
        assert asked(seated, "answer") == []

    async def test_a_failed_member_answers_again(self):
        """The whole jury judges anew, as there is another answer."""
        seated = [*members("ab", "ba"), member("c", answers=[FAILS])]
        async with council(seated, jury=members("xyz", "bac"), attempts=1) as opened:
            first = await opened.ask(QUESTION)
        seated, jury = overheard(members("abc", "cab")), overheard(members("xyz", "bac"))
        async with council(seated, jury=jury) as opened:
            again = await opened.retry(first)

        assert (again.status, again.opening.retried) == ("complete", ("c",))
        assert [len(asked([each], "answer")) for each in seated] == [0, 0, 1]
        assert len(asked(jury, "review")) == 3

    async def test_another_jury_judges_the_same_answers(self):
        """The first jury's names are free for it, as its ballots are not there."""
        again = await judged(await held(), members("xuv", "cab"))

        assert again.opening.members == ()
        assert [ballot.reviewer for ballot in again.ballots] == list("xuv")
        assert again.outcome.ranking[0] == ("c",)

    async def test_a_council_judges_again_with_its_jury(self):
        """Its members have nothing to do where the answers are there."""
        first = await held()
        seated = overheard(members("def", "abc"))
        async with council(seated, jury=members("uvw", "cab")) as opened:
            again = await opened.rejudge(first)

        assert [ballot.reviewer for ballot in again.ballots] == list("uvw")
        assert asked(seated, "review") == []

    async def test_jurors_are_left_out_of_a_recount_like_any_reviewer(self):
        """By their names; a member's name is no reviewer's."""
        session = await held()

        assert session.recount(without=["x"]).n_ballots == 2
        with pytest.raises(UnknownName, match="unknown reviewer"):
            session.recount(without=["a"])

    async def test_a_leaderboard_has_members_and_an_audit_jurors(self):
        """Members have the answers, jurors the ballots; nobody judged itself."""
        entries = session_entries(await held())

        assert {each.model for each in entries.answers} == {f"script:{n}" for n in "abc"}

    async def test_the_board_has_a_line_for_everyone(self):
        """Answers are counted of members, reviews of jurors."""
        board = Board()
        session = await held(jury=[*members("xy", "bac"), member("z", reviews=[FAILS])])
        for event in session.events:
            board = board.apply_event(event)

        assert [line.name for line in board.seats] == list("abcxyz")
        assert (board.n_answering, board.n_reviewing) == (3, 3)
