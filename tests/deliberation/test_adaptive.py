"""Adaptive spending: the fewest reviewers first, the next only while it is too close to call."""

import anyio
import pytest

from councils import QUESTION, council, member, members
from witan.core.settings import Settings
from witan.deliberation import events as e
from witan.deliberation.planner import order_reviewers, order_sheets
from witan.deliberation.ports import Seat
from witan.deliberation.record import session_from_json, session_to_json
from witan.deliberation.session import Session
from witan.errors import InvalidParameter
from witan.models.scripted import Line
from witan.service.trust import session_trust

pytestmark = pytest.mark.anyio

CRITERIA = ("accuracy", "relevance", "completeness", "conciseness", "clarity")

TEXTS = {"new.md": "The newer text says moraine.", "old.md": "The older text says glacier."}

NINE = "rstuvwxyz"


def juror(name, **words):
    """A juror that grades texts by the words in them, alike on every criterion."""
    grades = {word: dict.fromkeys(CRITERIA, grade) for word, grade in words.items()}
    return member(name, reviews=[Line(grades=grades), Line(grades=grades)])


def jury(names=NINE, *, moraine=9.0, glacier=2.0):
    """Jurors who agree."""
    return [juror(name, moraine=moraine, glacier=glacier) for name in names]


async def judge_adaptively(texts, seated, **options) -> Session:
    """Have a jury judge texts, with as few ballots as are needed."""
    what = {name: options.pop(name) for name in ("pass_mark", "expected") if name in options}
    with anyio.fail_after(60):
        async with council(seated, spend="adaptive", **options) as opened:
            return await opened.judge(texts, seed=3, **what)


def reviewers_called(session):
    """Reviewers in the order in which they were called."""
    return "".join(x.seat for x in session.events if isinstance(x, e.ReviewStarted))


def reviewers_with_ballots(session):
    """Reviewers in the order of their ballots; one who voted in both orders occurs twice."""
    return [x.seat for x in session.events if isinstance(x, e.BallotCast)]


class TestJury:
    """A jury of nine judges texts that the caller supplies."""

    async def test_an_agreeing_jury_stops_at_the_minimum(self):
        """Three ballots settle it; the others are neither called nor listed as abstentions."""
        session = await judge_adaptively(TEXTS, jury())

        assert reviewers_called(session) == "rst"
        assert (session.status, session.missing) == ("complete", ())
        assert (session.ending.reason, session.ending.leader) == ("settled", "new.md")
        assert session.ending.cancelled == tuple("uvwxyz")
        assert (session.outcome.n_abstentions, len(session.ballots)) == (0, 3)
        assert "3 of 9 reviewers were enough" in session_trust(session)

    async def test_a_narrow_lead_takes_more_ballots(self):
        """They come one by one until the lead is clear."""
        session = await judge_adaptively(TEXTS, jury(moraine=8, glacier=6))

        assert 3 < len(reviewers_called(session)) < 9
        assert session.verdict.leader == "new.md"
        assert session.outcome.n_ballots == len(reviewers_called(session))

    async def test_a_split_jury_calls_every_reviewer(self):
        """The first ballots agree too little for a clear lead."""
        gaps = [2.5, 0.5, 2.5, 2.5, 0.0, 2.5, 1.0, 2.5, 0.0]
        seated = [juror(n, moraine=6 + gap, glacier=6) for n, gap in zip(NINE, gaps, strict=True)]
        session = await judge_adaptively(TEXTS, seated)

        assert reviewers_called(session) == NINE
        assert session.ending is None
        assert "all 9 reviewers were asked" in session_trust(session)

    async def test_reviews_stop_where_more_ballots_would_hardly_settle_the_question(self):
        """The probability that the other ballots would have settled it is recorded and shown."""
        turns = [juror(n, moraine=7 + at % 2, glacier=8 - at % 2) for at, n in enumerate(NINE)]
        session = await judge_adaptively(TEXTS, turns)

        assert session.ending.reason == "hopeless"
        assert session.ending.p_settled < 0.05
        assert session.verdict.decision == "too close to call"
        assert "the other 6 would settle it with probability" in session_trust(session)

    @pytest.mark.parametrize(
        ("mark", "decision", "n_asked"), [(4, "passed", 3), (8, "passed", 9), (9, None, 3)]
    )
    async def test_one_text_takes_more_ballots_near_its_pass_mark(self, mark, decision, n_asked):
        """Far above the mark three suffice; just above it takes nine; at it none would do."""
        session = await judge_adaptively("So says the moraine.", jury(), pass_mark=mark)

        assert len(reviewers_called(session)) == n_asked
        assert session.verdict.decision == (decision or "too close to call")
        assert session.verdict.look_level > session.verdict.level

    async def test_one_text_without_a_pass_mark_is_refused(self):
        """Nothing about it is too close to call."""
        with pytest.raises(InvalidParameter, match="pass mark"):
            await judge_adaptively("So says the moraine.", jury())

    async def test_a_juror_that_fails_is_replaced_by_the_next(self):
        """Its abstention degrades the session; reviewers that were not needed do not."""
        seated = [member("q", reviews=["I cannot judge this."] * 2), *jury()]
        session = await judge_adaptively(TEXTS, seated)

        assert reviewers_called(session) == "qrst"
        assert [line.partition(" ")[0] for line in session.missing] == ["q"]
        assert session.outcome.n_abstentions == 1


class TestOrder:
    """Which reviewer is called next."""

    def test_models_of_different_makers_alternate(self):
        """Models of one maker make the same mistakes."""
        sources = ("openai:a", "openai:b", "openrouter:qwen/c", "openrouter:qwen/d", "groq:e")
        seats = [Seat(source, source, source.partition(":")[0]) for source in sources]
        ordered = [seat.name[-1] for seat in order_reviewers(seats, Settings())]

        assert "".join(ordered) == "acebd"

    def test_the_more_reliable_model_of_a_maker_comes_first(self):
        """Reliability is learned from the history."""
        seats = [Seat(name, f"{name}:x", name) for name in "abc"]
        settings = Settings(rule="weighted_borda", reliability={"c": 1.4, "a": 0.6})

        assert [seat.name for seat in order_reviewers(seats, settings)] == ["c", "b", "a"]

    def test_the_other_order_of_a_good_reviewer_comes_before_a_bad_reviewer(self):
        """A bad reviewer weighs less than a third; no second order is among the first ones."""
        seats = [Seat(name, f"{name}:x", name) for name in "abcd"]
        settings = Settings(reliability={"a": 2.0, "b": 1.0, "d": 0.5}, looks=(3, 4, 5))
        ordered = [f"{seat.name}{turn}" for seat, turn in order_sheets(seats, settings, 2)]

        assert ordered == ["a0", "b0", "c0", "a1", "d0", "b1", "c1", "d1"]

    async def test_second_orders_come_after_all_reviewers(self):
        """Both ballots are merged, and only as many are requested as are needed."""
        session = await judge_adaptively(TEXTS, jury("xyz", moraine=8, glacier=6), mirrored=True)
        sheets = [(x.sheet.reviewer, x.mirrored) for x in session.events if x.kind == "sheet_drawn"]

        assert sheets[:3] == [("x", False), ("y", False), ("z", False)]
        assert all(mirrored for _, mirrored in sheets[3:])
        assert sheets[3:]
        assert {name for name, _ in sheets[3:]} == {*session.consistency}
        assert len(session.ballots) == 3


class TestAuthors:
    """Members who review each other."""

    async def test_four_of_seven_members_review_first(self):
        """Nobody judges its own answer, so each answer then has three ballots."""
        async with council(members("abcdefg", "cabdefg"), spend="adaptive") as opened:
            session = await opened.ask(QUESTION, seed=2)

        assert session.opening.procedure.counting.looks == (4, 5, 6, 7)
        assert reviewers_called(session).startswith("abcd")
        assert session.status == "complete"

    async def test_a_second_round_is_refused(self):
        """In a second round every reviewer would see every grade."""
        with pytest.raises(InvalidParameter, match="review_rounds"):
            council(members(), spend="adaptive", review_rounds=2)

    async def test_ties_by_overlapping_intervals_are_refused(self):
        """They are not a test whose level can be kept over several looks."""
        with pytest.raises(InvalidParameter, match="ties"):
            council(members(), spend="adaptive", ties="intervals")


class TestRecord:
    """What the record stores of adaptive spending."""

    async def test_the_record_round_trips(self):
        """It has the planned looks and the reason for stopping."""
        session = await judge_adaptively(TEXTS, jury())
        again = session_from_json(session_to_json(session))

        assert again == session
        assert again.opening.procedure.counting.looks == tuple(range(3, 10))

    async def test_a_recount_uses_the_same_level(self):
        """Three ballots alone and the first three of seven are judged by different levels."""
        session = await judge_adaptively(TEXTS, jury(moraine=8, glacier=5.5))
        first = [ballot.reviewer for ballot in session.ballots[3:]]

        assert reviewers_called(session) != "rst"
        assert session.recount(without=first).clear_leader is None

    @pytest.mark.parametrize(("names", "mirrored"), [(NINE, False), ("xyz", True)])
    async def test_a_session_is_resumed_adaptively(self, names, mirrored):
        """Interrupted after any ballot, it ends with the same ballots."""
        gap = {"moraine": 8, "glacier": 6}
        whole = await judge_adaptively(TEXTS, jury(names, **gap), mirrored=mirrored)
        ends = [at for at, x in enumerate(whole.events) if isinstance(x, e.BallotCast)]
        for cut in (*ends, len(whole.events) - 1):
            part = Session.of(whole.events[: cut + 1])
            async with council(jury(names, **gap), spend="adaptive", mirrored=mirrored) as opened:
                session = await opened.resume(part)

            assert session.ballots == whole.ballots
            assert session.outcome == whole.outcome
            assert sorted(reviewers_with_ballots(session)) == sorted(reviewers_with_ballots(whole))
            assert (session.status, session.consistency) == ("complete", whole.consistency)

    async def test_a_retry_calls_the_failed_reviewer(self):
        """Once it votes, nobody else is needed."""
        failed = await judge_adaptively(
            TEXTS, [member("q", reviews=["I cannot judge this."] * 2), *jury()]
        )
        async with council([juror("q", moraine=9, glacier=2), *jury()], spend="adaptive") as opened:
            session = await opened.retry(failed)

        assert reviewers_called(session).endswith("q")
        assert [ballot.reviewer for ballot in session.ballots] == ["q", "r", "s", "t"]
        assert session.status == "complete"

    async def test_the_setting_of_earlier_versions_is_read(self):
        """A record of a session that stopped when decided still says so."""
        async with council(members(), spend="until_decided", rule="tournament") as opened:
            session = await opened.ask(QUESTION, seed=2)
        text = session_to_json(session)
        assert '"spend": "until_decided"' in text
        old = text.replace('"spend": "until_decided"', '"stop_when_decided": true')

        assert session_from_json(old) == session


class TestPlan:
    """Expected and maximum cost."""

    def test_each_planned_review_has_a_probability(self):
        """The first three are certain; the last of nine is requested once in fifty."""
        plan = council(jury(), spend="adaptive").plan_judge(TEXTS)
        reviews = [line for line in plan.lines if line.stage == "review"]

        assert [line.probability for line in reviews[:3]] == [1, 1, 1]
        assert 0 < reviews[-1].probability < 0.1
        assert plan.calls == 9
