"""Learned priors and weights enter the record and every count of it."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from councils import QUESTION, member
from witan.core.outcome import Interval, Prior
from witan.core.settings import Settings
from witan.core.stats.calibration import BandBlock, Calibration
from witan.core.stats.learning import Lessons
from witan.core.stats.measures import Measure
from witan.core.stats.priors import Severity
from witan.deliberation.council import BaseCouncil
from witan.deliberation.learning import LessonCache, learn_lessons
from witan.deliberation.ports import SystemClock
from witan.deliberation.procedure import Procedure
from witan.deliberation.record import session_from_json, session_to_json
from witan.models.scripted import Line

PRIOR = Prior(0.3, 60.0, 1.5, "grades", 80)

SHARE = Measure(0.78, Interval(0.70, 0.85, 0.95), 120, "pairs", 20, "share")

KNOWN = Calibration(400, (), (BandBlock(0.5, 1.0, 120, SHARE),))


class FixedTeacher:
    """A teacher with a fixed lesson, which records its requests."""

    def __init__(self, learned):
        self.said = learned
        self.asked = []
        self.judges = []

    def learn(self, reviewers=(), *, exclude=None, judges=()):
        self.asked.append((list(reviewers), exclude))
        self.judges.append(list(judges))
        return self.said


class GrowingTeacher(FixedTeacher):
    """A teacher whose prior rests on one more session each time."""

    def __init__(self, prior):
        super().__init__(None)
        self.prior = prior

    def learn(self, reviewers=(), *, exclude=None, judges=()):
        super().learn(reviewers, exclude=exclude, judges=judges)
        n_sessions = self.prior.n_sessions + len(self.asked) - 1
        return Lessons((replace(self.prior, n_sessions=n_sessions),))


class InterruptedTeacher(FixedTeacher):
    """A teacher during whose first lesson a session of the council ends."""

    def __init__(self, learned, cache):
        super().__init__(learned)
        self.cache = cache

    def learn(self, reviewers=(), *, exclude=None, judges=()):
        if not self.asked:
            self.cache.n_ended += 1
        return super().learn(reviewers, exclude=exclude, judges=judges)


async def ask_all(open_council, n_sessions):
    """Ask the same question several times."""
    async with open_council:
        return [await open_council.ask(QUESTION, seed=3) for _ in range(n_sessions)]


def council(teacher=None, procedure=None, names="abc"):
    """Members who agree, except the last, who grades all alike."""
    seats = [member(name, "abc") for name in names[:-1]]
    seats.append(member(names[-1], reviews=[Line(prefers=("says b,", "says a,"))]))
    chairs = (member("chair"),)
    return BaseCouncil(seats, chairs, procedure, clock=SystemClock(), teacher=teacher)


async def ask(held):
    async with held:
        return await held.ask(QUESTION, seed=3)


class TestOpening:
    """The opening event has everything learned, so that nothing is learned again."""

    def test_prior_and_rho_are_in_record_and_outcome(self):
        """The outcome names the prior and ρ of the procedure."""
        session = anyio.run(ask, council(FixedTeacher(Lessons((PRIOR,), rho=0.3))))

        counting = session.opening.procedure.counting
        assert (counting.prior, counting.rho) == (PRIOR, 0.3)
        assert (session.outcome.prior, session.outcome.rho) == (PRIOR, 0.3)

    def test_a_recount_of_the_record_gives_the_same_numbers(self):
        """It needs no teacher."""
        session = anyio.run(
            ask, council(FixedTeacher(Lessons((PRIOR,), rho=0.3, calibration=KNOWN)))
        )

        again = session_from_json(session_to_json(session))

        assert again.opening == session.opening
        assert again.recount() == session.outcome
        assert again.recount("borda").prior == PRIOR

    def test_without_a_teacher_nothing_is_learned(self):
        """The procedure is unchanged, and the public prior is used."""
        session = anyio.run(ask, council())

        assert session.opening.procedure == Procedure()
        assert session.opening.calibration is None
        assert session.outcome.prior.source == "public"

    def test_explicit_settings_are_not_learned(self):
        """A given prior, ρ or reliability is used, including none at all."""
        mine = replace(PRIOR, n_sessions=7)
        settings = Settings.of("weighted_borda", prior=mine, rho=None, reliability={"a": 2.0})
        teacher = FixedTeacher(Lessons((PRIOR,), rho=0.3, reliability={"script:a": 9.0}))

        session = anyio.run(ask, council(teacher, Procedure(counting=settings)))

        counting = session.opening.procedure.counting
        assert (counting.prior, counting.rho, counting.reliability) == (mine, None, {"a": 2.0})
        assert teacher.asked == [([], None)]

    def test_the_unit_of_the_prior_is_that_of_the_ballots(self):
        """Reviewers who only rank use a prior of ranks."""
        ranks = replace(PRIOR, unit="ranks")
        procedure = Procedure(rubric_scoring=False)

        session = anyio.run(ask, council(FixedTeacher(Lessons((PRIOR, ranks))), procedure))

        assert session.opening.procedure.counting.prior == ranks


class TestReliability:
    """Weights of reviewers: learned by model, applied to seats."""

    def test_seats_have_the_weights_of_their_models(self):
        """The history knows models; the record names seats; unknown ones weigh 1."""
        teacher = FixedTeacher(Lessons(reliability={"script:a": 1.5, "script:b": 0.5}))
        counting = Settings.of("weighted_borda", prior="learn")

        session = anyio.run(ask, council(teacher, Procedure(counting=counting)))

        assert teacher.asked == [(["script:a", "script:b", "script:c"], None)]
        assert session.opening.procedure.counting.reliability == {"a": 1.5, "b": 0.5}
        weighed = session.recount(reliability={"a": 1.5, "b": 0.5, "c": 1.0})
        assert weighed.standings == session.outcome.standings
        assert weighed.standings != session.recount(reliability={}).standings

    def test_only_a_rule_with_weights_learns_them(self):
        """Under other rules no weights are requested or recorded."""
        teacher = FixedTeacher(Lessons(reliability={"script:a": 1.5}))

        session = anyio.run(ask, council(teacher))

        assert teacher.asked == [([], None)]
        assert session.opening.procedure.counting.reliability is None

    def test_adaptive_spending_calls_the_more_reliable_first(self):
        """Reliability comes from earlier sessions, under any rule, whatever the order of seats."""
        teacher = FixedTeacher(Lessons(reliability={"script:e": 1.5, "script:a": 0.5}))

        session = anyio.run(ask, council(teacher, Procedure(spend="adaptive"), "abcdef"))

        called = [event.seat for event in session.events if event.kind == "review_started"]
        assert called[:5] == ["e", "b", "c", "d", "f"]
        assert session.opening.procedure.counting.rule == "auto"

    def test_a_jury_does_not_learn_from_the_answers_it_judges(self):
        """It learns from all other sessions."""
        first = anyio.run(ask, council())
        teacher = FixedTeacher(Lessons((PRIOR,)))

        async def rejudged():
            async with council(teacher, names="xyz") as jury:
                return await jury.rejudge(first, seed=4)

        session = anyio.run(rejudged)

        assert teacher.asked == [([], first.id)]
        assert session.outcome.prior == PRIOR


class TestSeverity:
    """Severity of jurors: learned by model, subtracted from the grades of a verdict."""

    def judged(self, teacher, **options):
        """Three jurors' grades of a text, nine each."""
        grades = dict.fromkeys(
            ("accuracy", "relevance", "completeness", "conciseness", "clarity"), 9
        )

        async def judge():
            seats = [member(name, reviews=[Line(grades={"moraine": grades})]) for name in "xyz"]
            procedure = Procedure(counting=Settings(**{"prior": "learn", **options}))
            held = BaseCouncil(seats, (), procedure, clock=SystemClock(), teacher=teacher)
            async with held:
                return await held.judge("It is a moraine.", seed=3, pass_mark=7)

        return anyio.run(judge)

    def test_severity_is_recorded_by_seat_and_named_in_the_verdict(self):
        """The record gives the same count; without a prior grades are unchanged."""
        models = tuple(f"script:{name}" for name in "xyw")
        covariance = tuple(tuple(0.1 * (a == b) for b in "xyw") for a in "xyw")
        severity = Severity(models, (1.0, 2.0, 9.0), covariance, 0.5, 60)
        teacher = FixedTeacher(Lessons(severity=severity))
        session = self.judged(teacher)
        back = session_from_json(session_to_json(session))
        [text] = session.verdict.texts
        as_given = {"prior": "none"}
        given = session.conclude(
            session.recount(**as_given), session.recount_settings(None, as_given)
        )

        assert teacher.judges == [["script:x", "script:y", "script:z"]]
        assert session.verdict.severity.reviewers == ("x", "y")
        assert text.overall.mean == pytest.approx(9 - (1 + 2) / 3)
        assert back.verdict == session.verdict
        assert given.texts[0].overall.mean == 9
        assert given.severity is None

    def test_only_a_judgment_with_a_learned_prior_uses_severity(self):
        """A question does not, nor does a judgment with the public prior."""
        teacher = FixedTeacher(Lessons())
        anyio.run(ask, council(teacher))
        self.judged(teacher, prior="public")

        assert teacher.judges == [[], []]


class TestTrust:
    """Agreement of the ballots, and reliability by people's votes."""

    def test_reliability_is_that_at_the_time_of_the_session(self):
        """It follows from the calibration in the record."""
        taught = council(FixedTeacher(Lessons((PRIOR,), calibration=KNOWN)))
        taught.members = tuple(replace(each, simulated=False) for each in taught.members)
        taught.chairmen = tuple(replace(each, simulated=False) for each in taught.chairmen)
        session = anyio.run(ask, taught)

        assert session.reliability == SHARE

    def test_the_reliability_of_scripts_is_unknown(self):
        """Matches of models with people say nothing about them."""
        session = anyio.run(ask, council(FixedTeacher(Lessons((PRIOR,), calibration=KNOWN))))

        assert session.reliability.value is None

    @pytest.mark.parametrize("teacher", [None, FixedTeacher(Lessons())])
    def test_reliability_is_unknown_until_people_vote(self, teacher):
        """Without a calibration there is a reason in place of a number."""
        session = anyio.run(ask, council(teacher))

        assert session.reliability.value is None
        assert all(fact in session.reliability.why for fact in ("0 pairs", "50 needed"))


class ManualClock(SystemClock):
    """A clock that the test advances."""

    def __init__(self):
        self.passed = 0.0

    def seconds(self):
        return self.passed


class TestReuse:
    """A council learns again once its history has grown, or some time has passed."""

    @pytest.mark.parametrize(("n_sessions", "times"), [(5, 1), (6, 2)])
    def test_lessons_are_reused_for_a_tenth_more_sessions(self, n_sessions, times):
        """Lessons of 50 sessions serve five more; the next lesson includes the sixth."""
        teacher = GrowingTeacher(replace(PRIOR, n_sessions=50))

        sessions = anyio.run(ask_all, council(teacher), n_sessions)

        assert len(teacher.asked) == times
        priors = {str(session.opening.procedure.counting.prior) for session in sessions}
        assert len(priors) == times

    @pytest.mark.parametrize(
        "lessons",
        [Lessons(), Lessons((replace(PRIOR, unit="ranks", n_sessions=500),))],
        ids=["no prior", "one of ranks"],
    )
    def test_without_a_prior_every_session_learns_again(self, lessons):
        """The next session may complete a prior of grades if nobody says how many are missing."""
        teacher = FixedTeacher(lessons)

        anyio.run(ask_all, council(teacher), 3)

        assert len(teacher.asked) == 3

    def test_a_short_history_is_read_again_once_it_may_have_a_prior(self):
        """With 47 sessions of grades, the third that ends may complete a prior."""
        teacher = FixedTeacher(Lessons(n_sessions={"grades": 47, "ranks": 0}))

        anyio.run(ask_all, council(teacher), 4)

        assert len(teacher.asked) == 2

    def test_a_session_that_ends_during_learning_counts_as_new(self):
        """With 49 sessions of grades, the one that ends meanwhile may complete a prior."""
        cache = LessonCache(SystemClock())
        teacher = InterruptedTeacher(Lessons(n_sessions={"grades": 49}), cache)

        for _ in range(3):
            anyio.run(partial(learn_lessons, teacher, Procedure(), [], cache=cache))

        assert len(teacher.asked) == 2

    def test_lessons_are_reused_for_ten_seconds(self):
        """Additions of other processes to the history are seen after ten seconds."""
        teacher, clock = FixedTeacher(Lessons((PRIOR,))), ManualClock()
        seats = [member("a", "abc"), member("b", "abc")]

        async def ask_later():
            async with BaseCouncil(seats, clock=clock, teacher=teacher) as pair:
                for passed in (0.0, 9.9, 10.0):
                    clock.passed = passed
                    await pair.open_question(QUESTION)

        anyio.run(ask_later)

        assert len(teacher.asked) == 2
