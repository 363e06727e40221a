"""Grading by reviewer and criterion: by hand, and on councils with known habits."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from audited import audit_of, ballot, session
from reference_gradings import grading_sums
from reference_rows import names_of
from witan.core.stats.audit_reviewers import Gradings
from witan.history.schema import code_of

MODELS = ("ash", "elm", "fir", "oak")
CRITERIA = ("accuracy", "clarity", "depth")


def by_criterion(line):
    """The criteria of a line, by name."""
    return {result.criterion: result for result in line.criteria}


@dataclass(frozen=True)
class Habits:
    """How reviewers grade, by name: each answer has a quality per criterion, plus noise.

    `severity`, `itself` and `first` add to the grades on accuracy; reviewers in `one_impression`
    give their grade on accuracy on every criterion; those in `careless` grade clarity 7.
    """

    severity: dict[str, float] = field(default_factory=dict)
    itself: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    one_impression: tuple[str, ...] = ()
    careless: tuple[str, ...] = ()
    own_shown: bool = False


def grade_session(habits, rng, name):
    """One session in which four models grade each other."""
    quality = rng.normal(0, 0.8, len(MODELS))
    worth = {criterion: quality + rng.normal(0, 1, len(MODELS)) for criterion in CRITERIA}
    logs = rng.normal(7, 0.5, len(MODELS))
    ballots = []
    for reviewer in MODELS:
        candidates = [
            at for at, model in enumerate(MODELS) if habits.own_shown or model != reviewer
        ]
        places = (rng.permutation(len(candidates)) + 1).tolist()
        grades = {
            c: 6 + worth[c][candidates] + rng.normal(0, 0.7, len(candidates)) for c in CRITERIA
        }
        own = np.array([MODELS[at] == reviewer for at in candidates])
        grades["accuracy"] += (
            habits.severity.get(reviewer, 0.0)
            + habits.itself.get(reviewer, 0.0) * own
            + habits.first.get(reviewer, 0.0) * (np.array(places) == 1)
        )
        if reviewer in habits.one_impression:
            grades = dict.fromkeys(CRITERIA, grades["accuracy"])
        if reviewer in habits.careless:
            grades["clarity"] = np.full(len(candidates), 7.0)
        ballots.append(
            ballot(
                reviewer,
                {MODELS[at]: None for at in candidates},
                chars={MODELS[at]: int(np.exp(logs[at])) for at in candidates},
                positions=places,
                criteria=CRITERIA,
                criterion_grades=tuple(tuple(grades[c].tolist()) for c in CRITERIA),
            )
        )
    return session(name, *ballots)


def council(habits, seed, n=100):
    """The audit of this many sessions."""
    rng = np.random.default_rng(seed)
    return audit_of([grade_session(habits, rng, f"question {seed} {k}") for k in range(n)])


def covers(measure, truth):
    return measure.interval.low < truth < measure.interval.high


class TestByHand:
    """Two reviewers, two answers, two criteria, forty sessions."""

    @pytest.fixture
    def lines(self):
        def cast(reviewer, accuracy, clarity):
            return ballot(
                reviewer, {"x": 1.0, "y": 0.0}, chars={"x": 400, "y": 100}, positions=(1, 2),
                criteria=("accuracy", "clarity"), criterion_grades=(accuracy, clarity),
            )  # fmt: skip

        sessions = [
            session(
                f"question {k}",
                cast("a", (8.0, 4.0) if k % 2 else (6.0, 4.0), (7.0, 7.0)),
                cast("b", (9.0, 5.0), (8.0, 6.0) if k % 4 else (6.0, 8.0)),
            )
            for k in range(40)
        ]
        result = audit_of(sessions)
        return {line.reviewer: by_criterion(line) for line in result.reviewers}

    def test_mean_and_severity(self, lines):
        """The mean of 8, 4, 6, 4 is 5½, and 1½ below that of the other; clarity differs by 0."""
        a, b = lines["a"], lines["b"]

        assert a["accuracy"].mean.value == pytest.approx(5.5)
        assert a["accuracy"].severity.value == pytest.approx(-1.5)
        assert b["accuracy"].severity.value == pytest.approx(1.5)
        assert a["clarity"].severity.value == pytest.approx(0.0)
        assert (a["accuracy"].mean.n, a["accuracy"].mean.of) == (80, "grades")

    def test_spread_and_flat_rate(self, lines):
        """Deviations 2 and 1 by turns beside 2 always are 1.5 over 1.75; clarity is always flat."""
        a, b = lines["a"], lines["b"]

        assert a["accuracy"].spread.value == pytest.approx(1.5 / 1.75)
        assert a["clarity"].flat_rate.value == 1.0
        assert b["clarity"].flat_rate.value == 0.0
        assert (a["clarity"].flat_rate.n, a["clarity"].flat_rate.interval.high) == (40, 1.0)

    def test_correlations_within_ballots(self, lines):
        """Halo of b is the mean of ±1 weighted by spread; a, which never varies, has none."""
        halo = lines["b"]["accuracy"].halo

        # Centred: accuracy ±2 always; clarity ±1 in three sessions of four, ∓1 in the fourth.
        assert halo.value == pytest.approx((3 - 1) / 4)
        assert lines["a"]["accuracy"].halo.why.startswith("undefined")
        assert lines["b"]["accuracy"].length.value == pytest.approx(1.0)

    def test_position_effect(self, lines):
        """Of a, x at the first place is 3 and 1 below by turns, y at the last 1 below: −1."""
        assert lines["a"]["accuracy"].position_effect.value == pytest.approx(-1.0)


class TestKnownHabits:
    """Planted habits are measured on their own criterion."""

    def test_severity_on_one_criterion(self):
        """A point less on accuracy is found there and on no other criterion."""
        result = by_criterion(council(Habits(severity={"oak": -1.0}), 1)["oak"])

        assert covers(result["accuracy"].severity, -1.0)
        assert covers(result["clarity"].severity, 0.0)

    def test_equal_grades_on_all_criteria_are_a_halo(self):
        """A reviewer with one grade for all criteria has a halo of 1, far beyond the others'."""
        audit = council(Habits(one_impression=("oak",)), 2)
        oak, elm = by_criterion(audit["oak"]), by_criterion(audit["elm"])

        assert oak["depth"].halo.value == pytest.approx(1.0)
        assert oak["depth"].halo_beyond_others.interval.low > 0.5
        assert 0 < elm["depth"].halo.value < 0.6
        assert elm["depth"].halo_beyond_others.value < 0

    def test_answers_good_in_every_way_are_no_halo(self):
        """Answers of one quality on all criteria make no reviewer stand out."""
        audit = council(Habits(), 3)

        for line in audit.reviewers:
            for result in line.criteria:
                assert result.halo.interval.low > 0
                assert abs(result.halo_beyond_others.value) < 0.15

    def test_constant_grades_are_flat(self):
        """A reviewer that always grades clarity 7 is flat and has no discrimination there."""
        result = by_criterion(council(Habits(careless=("oak",)), 4)["oak"])

        assert result["clarity"].flat_rate.value == 1.0
        assert result["clarity"].mean.value == pytest.approx(7.0)
        assert result["clarity"].spread.value == pytest.approx(0.0)
        assert result["clarity"].discrimination.value == pytest.approx(0.0)
        assert result["clarity"].agreement.why.startswith("undefined")
        assert result["accuracy"].flat_rate.value == 0.0
        assert covers(result["accuracy"].discrimination, 1.0)

    def test_self_preference_by_criterion(self):
        """Two points more for its own answers, beside severity, are found on that criterion."""
        habits = Habits(itself={"oak": 2.0}, severity={"oak": -1.0}, own_shown=True)
        result = by_criterion(council(habits, 5)["oak"])

        assert covers(result["accuracy"].self_preference, 2.0)
        assert covers(result["depth"].self_preference, 0.0)
        assert covers(result["accuracy"].severity, -1.0)

    def test_position_effect_by_criterion(self):
        """A point and a half for the first place is found on that criterion."""
        result = by_criterion(council(Habits(first={"oak": 1.5}), 6)["oak"])

        assert covers(result["accuracy"].position_effect, 1.5)
        assert covers(result["clarity"].position_effect, 0.0)

    @pytest.mark.slow
    def test_intervals_cover_the_planted_values(self):
        """Of intervals at 95%, at least 90 in 100 contain the planted value."""
        habits = Habits(first={"elm": 0.5}, itself={"fir": 0.5}, own_shown=True)
        covered = []
        for seed in range(20):
            rng = np.random.default_rng(100 + seed)
            sessions = [grade_session(habits, rng, f"question {seed} {k}") for k in range(50)]
            table, names = grading_sums(sessions), names_of(sessions)
            result = Gradings(table, names, human=False, level=0.95)
            elm, fir = (result.of([code_of(name)])[0] for name in ("elm", "fir"))
            covered += [covers(elm.position_effect, 0.5), covers(fir.self_preference, 0.5)]

        assert np.mean(covered) >= 0.9


class TestTooFewData:
    """A measure with too few data says so, criterion by criterion."""

    def test_too_few_grades_are_reported(self):
        """Four sessions are twelve grades, of the thirty that are needed."""
        result = by_criterion(council(Habits(), 7, n=4)["oak"])["depth"]

        assert result.mean.why == "not enough data: 12 grades, 30 needed"
        assert all(fact in result.flat_rate.why for fact in ("4 ballots", "20 needed"))
        assert all(fact in result.halo.why for fact in ("12 grades", "50 needed"))
        assert all(fact in result.self_preference.why for fact in ("0 grades", "30 needed"))

    def test_a_single_criterion_has_no_halo(self):
        """There is no other criterion to correlate with."""
        sessions = [
            session(
                f"question {k}",
                ballot("a", {"x": 1.0, "y": 0.0}, criteria=("accuracy",),
                       criterion_grades=((8.0, 5.0),)),
            )
            for k in range(40)
        ]  # fmt: skip
        [result] = audit_of(sessions)["a"].criteria

        assert (result.halo.n, result.halo.value) == (0, None)
        assert result.mean.value == pytest.approx(6.5)
        assert result.severity.n == 0

    def test_ballots_without_criteria_have_no_criterion_measures(self):
        """Overall grades and rankings have no criterion."""
        assert audit_of([session("q", ballot("a", {"x": 1.0, "y": 0.0}))])["a"].criteria == ()


def test_people_are_compared_with_people():
    """People write no answers and so have no self-preference."""
    sessions = [
        session(
            f"question {k}",
            *(
                ballot(name, {"x": 1.0, "y": 0.0}, kind=kind, criteria=("accuracy",),
                       criterion_grades=((grade, 5.0),))
                for name, kind, grade in (
                    ("ines", "human", 9.0), ("jan", "human", 7.0), ("ash", "model", 1.0)
                )
            ),
        )
        for k in range(40)
    ]  # fmt: skip
    audit = audit_of(sessions)
    [ines], [together] = audit["ines"].criteria, audit.people.criteria

    assert ines.severity.value == pytest.approx(1.0)
    assert together.mean.value == pytest.approx(6.5)
    assert together.severity.value == pytest.approx(0.0)
    assert together.halo_beyond_others.value is None
    assert ines.self_preference.why == "people write no answers"
