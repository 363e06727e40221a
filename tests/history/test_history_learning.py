"""What a council learns from a history, and from which sessions."""

import time
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from lessons import MODELS, lessons
from witan.analytics.leaderboards import leaderboard
from witan.analytics.sums import WindowSums
from witan.analytics.views import SqlEngine
from witan.core.ballot import Ballot
from witan.core.stats.audit import shared_votes
from witan.core.stats.calibration import calibrate
from witan.core.stats.leaderboard import Terms
from witan.core.stats.learning import learn_reliability_from_people
from witan.core.stats.sums import CalibrationSums, HumanSums
from witan.history import History


class TestPrior:
    """Noise and quality from fifty sessions on."""

    def test_prior_needs_fifty_sessions(self, history):
        """The prior names the number of sessions behind it, and its unit."""
        history.add(lessons(49), "49", "49")
        assert history.learn().priors == ()

        history.add(lessons(1, first=49), "1", "1")
        prior = history.learn().prior("grades")

        assert (prior.n_sessions, prior.unit) == (50, "grades")
        assert prior.noise_variance == pytest.approx(0.25 + 1 / 12, rel=0.35)
        assert prior.quality_variance == pytest.approx(1.44, rel=0.35)
        assert history.learn().prior("ranks") is None

    def test_simulated_sessions_teach_nothing(self, history):
        """Scripts are no reviewers, however many sessions there are."""
        history.add(lessons(60, people=60, simulated=True), "x", "x")

        learned = history.learn(MODELS)

        assert (learned.priors, learned.rho, learned.reliability) == ((), None, {})
        assert learned.calibration is None

    def test_current_session_is_left_out(self, history):
        """Of fifty sessions, forty-nine are left to learn from."""
        history.add(lessons(50), "x", "x")

        assert history.learn(exclude="lesson 7").priors == ()


class TestSeverity:
    """How severe models are, by all sessions in which others graded the same."""

    def test_models_that_grade_alike_are_known_to(self, history):
        """Five of one severity, each read by four others a session; one unheard of is left out."""
        history.add(lessons(60), "x", "x")

        severity = history.learn(judges=[*MODELS, "test:new"]).severity

        assert severity.reviewers == MODELS
        assert severity.offsets == pytest.approx([0] * 5, abs=0.15)
        assert severity.noise == pytest.approx(0.25 + 1 / 12, rel=0.35)
        assert severity.n_sessions == 60

    def test_nobody_asked_is_nothing_learned(self, history):
        """Nor from simulated sessions."""
        history.add(lessons(60), "x", "x")
        history.add(lessons(60, simulated=True, first=100), "y", "y")

        assert history.learn().severity is None
        assert history.learn(judges=MODELS).severity.n_sessions == 60


class TestRenamed:
    """A renamed model is one reviewer, with the record of both names."""

    ALIASES = MappingProxyType({"test:ada": "test:ada-2"})

    @pytest.mark.parametrize("people", [0, 40])
    def test_record_of_the_old_name_counts(self, history, people):
        """Its weight under the new name is that under the old one."""
        history.add(lessons(40, people=people), "x", "x")
        now = ["test:ada-2", *MODELS[1:]]

        before = history.learn(MODELS).reliability
        history.aliases = self.ALIASES
        after = history.learn(now).reliability

        assert after["test:ada-2"] == pytest.approx(before["test:ada"])
        assert len(set(before.values())) > 1

    def test_both_names_have_the_same_weight(self, history):
        """A seat under the old name is the same model."""
        history.add(lessons(40, people=40), "x", "x")

        history.aliases = self.ALIASES
        weights = history.learn(["test:ada-2", *MODELS]).reliability

        assert weights["test:ada"] == weights["test:ada-2"]

    def test_without_aliases_the_new_name_has_no_record(self, history):
        """The new name alone is unknown."""
        history.add(lessons(40, people=40), "x", "x")

        assert history.learn(["test:ada-2", *MODELS[1:]]).reliability["test:ada-2"] == 1


class TestHalves:
    """Each half of a history can be weighed by the other."""

    def test_halves_partition_the_history(self, history):
        """No session is in both, and none in neither."""
        history.add(lessons(160), "x", "x")

        halves = [history.learn(half=half).prior("grades").n_sessions for half in (0, 1)]

        assert sum(halves) == 160

    @pytest.mark.parametrize(
        "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
    )
    def test_leaderboard_weighs_reviewers(self, history):
        """weighted_borda differs from borda, and is the same on a second call."""
        history.add(lessons(80, people=80), "x", "x")
        weighed = leaderboard(history, Terms(rule="weighted_borda"))
        plain = leaderboard(history, Terms(rule="borda"))

        again = leaderboard(history, Terms(rule="weighted_borda"))

        scores = [{line.model: line.score for line in b.lines} for b in (weighed, plain, again)]
        assert scores[0] != scores[1]
        assert scores[0] == scores[2]
        assert scores[0] == pytest.approx(scores[1], abs=0.05)

    @pytest.mark.slow
    def test_leaderboard_accepts_aliases(self, tmp_path):
        """Aliases as a parameter have the same effect as those of an open history."""
        with History.open(tmp_path / "a.sqlite") as one, History.open(tmp_path / "b.sqlite") as two:
            for history in (one, two):
                history.add(lessons(40, people=40), "x", "x")
                history.add(map(renamed, lessons(40, people=40, first=40)), "y", "y")
            one.aliases = TestRenamed.ALIASES
            asked = Terms(rule="weighted_borda")

            by_history = leaderboard(one, asked, aliases=TestRenamed.ALIASES)
            by_hand = leaderboard(two, asked, aliases=TestRenamed.ALIASES)

        assert [line.score for line in by_hand.lines] == [line.score for line in by_history.lines]


def renamed(lesson):
    """A lesson in which Ada goes by her new name."""
    called = TestRenamed.ALIASES
    ballots = tuple(
        replace(
            ballot,
            reviewer=called.get(ballot.reviewer, ballot.reviewer),
            groups=tuple(tuple(called.get(c, c) for c in group) for group in ballot.groups),
            grades={called.get(c, c): grade for c, grade in ballot.grades.items()},
        )
        for ballot in lesson.ballots
    )
    return replace(lesson, ballots=ballots)


class TestPeople:
    """Shared error, reliability and calibration from what people decided."""

    @pytest.fixture
    def judged(self, history):
        history.add(lessons(40, people=30), "x", "x")
        return history

    def test_learned_values_equal_the_reductions(self, judged):
        """A direct query gives the engine's sums: counts alike, numbers to the last digits."""
        asked = WindowSums(SqlEngine(judged.database))
        expected = calibrate(asked.table(CalibrationSums), with_bands=False)
        weights = learn_reliability_from_people(asked.table(HumanSums), asked.names())

        learned = judged.learn(MODELS)

        assert learned.rho == pytest.approx(
            shared_votes(asked.table(HumanSums), level=0.95)[0].value
        )
        assert learned.calibration.pairs == expected.pairs
        for found, wanted in zip(learned.calibration.blocks, expected.blocks, strict=True):
            assert (found.low, found.pairs) == (wanted.low, wanted.pairs)
            assert found.reliability.value == pytest.approx(wanted.reliability.value)
        assert set(weights) == set(MODELS)
        # 30 sessions × 6 pairs without one's own: people outweigh agreement 180 to 50.
        for name in MODELS:
            assert abs(learned.reliability[name] - weights[name]) < 0.1

    def test_fewer_than_fifty_pairs_teach_nothing(self, history):
        """Four sessions of ten pairs each leave everything unknown."""
        history.add(lessons(40, people=4), "x", "x")

        learned = history.learn()

        assert learned.rho is None
        assert not learned.calibration.is_known

    def test_new_vote_counts_for_the_next_session(self, judged):
        """A person's ballot added later counts."""
        before = judged.learn().calibration.pairs
        order = tuple((model,) for model in MODELS)

        judged.vote("lesson 35", [Ballot("bob", order, kind="human")])

        assert judged.learn().calibration.pairs > before


class TestOrder:
    """Reliability by order-consistency."""

    def test_inconsistent_reviewer_weighs_less(self, history):
        """Pairs in both orders distinguish reviewers, without any votes by people."""
        history.add(map(turned, lessons(20)), "x", "x")

        weights = history.learn(MODELS[:3]).reliability

        assert weights[MODELS[0]] < weights[MODELS[1]] == weights[MODELS[2]]
        assert set(weights) == set(MODELS[:3])

    def test_weights_are_learned_only_for_rules_that_use_them(self, history):
        """A council whose rule does not weigh reviewers learns no weights."""
        history.add(map(turned, lessons(20)), "x", "x")

        assert history.learn().reliability == {}


def turned(lesson):
    """The same session as comparisons in both orders; the first reviewer picks the first shown."""
    cast = []
    for ballot in lesson.ballots:
        grades = ballot.grades
        for i, first in enumerate(grades):
            for second in [*grades][i + 1 :]:
                for shown in ((first, second), (second, first)):
                    best = max(shown, key=lambda name: (grades[name], name))
                    winner = shown[0] if ballot.reviewer == MODELS[0] else best
                    loser = shown[1] if winner == shown[0] else shown[0]
                    cast.append(
                        Ballot(
                            ballot.reviewer,
                            ((winner,), (loser,)),
                            session=ballot.session,
                            positions={shown[0]: 1, shown[1]: 2},
                            paired=True,
                        )
                    )
    return replace(lesson, ballots=tuple(cast))


@pytest.mark.slow
@pytest.mark.alone
def test_time_is_bounded_in_a_long_history(tmp_path):
    """Sessions with people's votes beyond the newest add nothing to the time it takes."""
    with History.open(tmp_path / "h.sqlite") as history:
        history.add(lessons(250, people=250), "x", "x")
        few = fastest(history)
        history.add(lessons(750, people=750, first=250), "y", "y")

        assert fastest(history) < 3 * few


def test_sessions_without_votes_cost_no_time(tmp_path):
    """Few sessions with votes, and those with noise, are found at once among many."""
    with History.open(tmp_path / "h.sqlite") as history:
        history.add(lessons(60, people=10), "x", "x")
        few = fastest(history, ())
        copied(history, "sessions", at_us="at_us - n", noise_unit="NULL")
        copied(history, "matchups")

        assert fastest(history, ()) < 3 * few
        assert history.learn().prior("grades").n_sessions == 60


def copied(history, table, **changed):
    """Put thousands of earlier sessions beside the first, without people's votes."""
    described = history.database.rows(f"PRAGMA table_info({table})")
    columns = [name for _, name, *_ in described]
    values = {"session": "'copy ' || n", "human": "0"} | changed
    history.database.execute(
        "WITH RECURSIVE many(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM many WHERE n < 60000)"  # noqa: S608
        f" INSERT INTO {table} SELECT {', '.join(values.get(c, c) for c in columns)}"
        f" FROM {table} JOIN many WHERE session = 'lesson 20'"
    )


def fastest(history, reviewers=MODELS):
    seconds = []
    for _ in range(5):
        began = time.process_time()
        history.learn(reviewers)
        seconds.append(time.process_time() - began)
    return float(np.min(seconds))
