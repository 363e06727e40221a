"""Power of a council, and coverage of intervals by size."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from elections import mean_ranks
from simulation import council
from witan.core.outcome import Prior
from witan.core.outcome_builder import pooled_errors
from witan.core.profile import Profile
from witan.core.rules import RULES
from witan.core.stats.additive import (
    AdditiveFit,
    adjusted_grades,
    fit_grades,
    fit_ranks,
    fit_rows,
    pair_variances,
)
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import POWER, TYPICAL_NOISE, Uncertainty, learn_prior, separation

WILDBENCH = Path(__file__).parents[3] / "shared" / "data" / "wildbench" / "pointwise.csv"

SESSIONS = 3000
SLACK = 3 * np.sqrt(0.05 * 0.95 / SESSIONS)
TIED_AT_THE_TOP = (1.0, 1.0, -1.0, -2.0, -2.0)
READ = {fit_grades: adjusted_grades, fit_ranks: lambda profile: -profile.ranks}
CLEAR_LEADER = (3.0, 0.0, 0.0, 0.0, 0.0)

SLOW = pytest.mark.slow


def found(gap: float, reviewers: int, others: float, sessions: int = 1_500) -> float:
    """In what share of simulated councils the first two answers are told apart."""
    quality = [gap, 0.0, *(others * (n % 2) for n in range(reviewers - 2))]
    rng = np.random.default_rng(17 + reviewers)
    profile = council(quality, reviewers=reviewers, sessions=sessions, rng=rng)
    fit, grades = fit_grades(profile), adjusted_grades(profile)
    votes = np.full(reviewers, reviewers - 1)
    apart = 0
    for session in range(sessions):
        own = pair_variances(grades[:, :, session])
        apart += bool(Uncertainty.of(fit, session, votes, own=own).separated(0.95)[0, 1])
    return apart / sessions


@pytest.mark.parametrize(
    "reviewers", [4, 7, *(pytest.param(size, marks=SLOW) for size in (5, 6, 9))]
)
def test_a_gap_of_the_stated_size_is_found_four_times_of_five(reviewers):
    """Simulated reviewers with own levels, spreads and whole grades find it in 72 to 88 %."""
    gap = separation(reviewers, reviewers).grades

    share = np.mean([found(gap, reviewers, others) for others in (0.0, gap / 2, gap)])

    assert share == pytest.approx(POWER, abs=0.08)


def test_three_reviewers_separate_nothing():
    """Three who review each other leave too little freedom, however far apart answers are."""
    three = separation(3, 3)

    assert three.grades is None
    assert three.next_reviewers == 4
    assert three.next_grades == separation(4, 4).grades
    assert found(9.0, 3, 4.0, sessions=200) == 0.0


def test_a_larger_council_separates_smaller_gaps():
    """Every reviewer more narrows the gap; so does a jury that judges every answer."""
    gaps = [separation(n, n).grades for n in range(4, 13)]

    assert gaps == sorted(gaps, reverse=True)
    assert separation(4, 4, authors=False).grades < separation(4, 4).grades
    assert separation(3, 4, authors=False).grades is not None


def test_shared_error_widens_the_gap_and_a_history_narrows_it():
    """What reviewers get wrong together does not average out; known noise is worth reviewers."""
    alone = separation(4, 4).grades
    prior = Prior(1.0, 20.0, 1.0, "grades", 60)

    assert separation(4, 4, rho=0.3).grades > alone
    assert separation(4, 4, prior=prior).grades < alone
    assert separation(3, 3, prior=prior).grades is not None


@pytest.mark.parametrize(("reviewers", "candidates"), [(0, 0), (1, 1), (1, 5), (2, 2), (500, 500)])
def test_any_size_has_an_answer(reviewers, candidates):
    """Too small a council separates nothing; a very large one is taken for one of forty."""
    gap = separation(reviewers, candidates).grades

    assert gap is None if reviewers < 3 else gap < 1.0


@pytest.mark.skipif(
    not WILDBENCH.exists(), reason="the real grades are not beside this checkout (../shared/data)"
)
def test_the_typical_noise_is_above_that_of_two_judges_of_one_family():
    """Two such judges differ by .66 grades around candidate and severity; panels differ by more."""
    graded = defaultdict(lambda: defaultdict(dict))
    with WILDBENCH.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            graded[row["prompt_id"]][row["candidate"]][row["judge"]] = float(row["score"])
    squares = freedom = 0.0
    for answers in graded.values():
        pairs = [list(map(held.get, sorted(held))) for held in answers.values() if len(held) == 2]
        if len(pairs) > 1:
            difference = np.diff(np.array(pairs), axis=1)
            squares += float(((difference - difference.mean()) ** 2).sum() / 2)
            freedom += len(pairs) - 1

    assert np.sqrt(squares / freedom) == pytest.approx(0.66, abs=0.02)
    assert np.sqrt(squares / freedom) < TYPICAL_NOISE


def leader_declared(fit: AdditiveFit, values: np.ndarray, **borrowed) -> np.ndarray:
    """Whether the first line is told apart from the second, per session, by what was fitted."""
    ballots = (~np.isnan(values)).sum(axis=0)
    declared = np.zeros(values.shape[2], dtype=bool)
    for session in range(values.shape[2]):
        first, second = np.argsort(-fit.effects[:, session], kind="stable")[:2]
        held = Uncertainty.of(
            fit, session, ballots[:, session], own=pair_variances(values[:, :, session]), **borrowed
        )
        declared[session] = held.separated(0.95)[first, second]
    return declared


class TestContrast:
    """The default rule of ties."""

    @pytest.mark.parametrize("reviewers", [3, 5, pytest.param(9, marks=SLOW)])
    @pytest.mark.parametrize("fit", [fit_grades, fit_ranks], ids=["grades", "ranks"])
    def test_a_leader_is_seldom_declared_between_equals(self, fit, reviewers):
        """Two candidates equal at the top are told apart in at most 7 % of sessions."""
        rng = np.random.default_rng(reviewers)
        profile = council(TIED_AT_THE_TOP, reviewers=reviewers, sessions=SESSIONS, rng=rng)

        declared = leader_declared(fit(profile), READ[fit](profile)).mean()

        assert declared <= 0.07 + SLACK

    @pytest.mark.parametrize(("reviewers", "least"), [(4, 0.42), (5, 0.62), (7, 0.88)])
    def test_a_clear_leader_is_found(self, reviewers, least):
        """A leader three noise deviations ahead is declared the more often, the more reviewers."""
        rng = np.random.default_rng(reviewers)
        profile = council(CLEAR_LEADER, reviewers=reviewers, sessions=SESSIONS, rng=rng)
        fit = fit_grades(profile)

        found = leader_declared(fit, adjusted_grades(profile)) & (fit.effects.argmax(axis=0) == 0)

        assert found.mean() >= least

    @pytest.mark.parametrize(
        ("fit", "recused", "share"),
        [
            (fit_grades, False, 0.54),
            (fit_ranks, False, 0.27),
            (fit_grades, True, 0.29),
            (fit_ranks, True, 0.01),
        ],
        ids=["grades", "ranks", "grades, leader is a reviewer", "ranks, leader is a reviewer"],
    )
    def test_three_reviewers_find_it_as_often_as_the_guide_says(self, fit, recused, share):
        """`witan rules` quotes how often three reviewers find a leader 3 σ ahead."""
        rng = np.random.default_rng(1)
        profile = council(CLEAR_LEADER, reviewers=3, sessions=SESSIONS, rng=rng, recused=recused)
        fitted = fit(profile)

        found = leader_declared(fitted, READ[fit](profile)) & (fitted.effects.argmax(axis=0) == 0)

        assert found.mean() == pytest.approx(share, abs=0.035)

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_its_interval_covers_the_true_difference(self, reviewers):
        """The 95 % interval of a difference of effects covers it 93–97 % of the time."""
        rng = np.random.default_rng(reviewers)
        profile = council(
            (0.5, 0.0, -0.5, 0.0, 0.0),
            reviewers=reviewers,
            sessions=8000,
            rng=rng,
            spreads=0.0,
            noise=2.0,
            rounded=False,
        )
        fit = fit_rows(profile.grades)

        difference, error = fit.contrasts(0, 2)
        reach = t_quantile(0.975, float(fit.df[0])) * error
        covered = (np.abs(difference - 1.0) <= reach).mean()

        assert 0.93 <= covered <= 0.97

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    @pytest.mark.parametrize("candidates", [5, pytest.param(12, marks=SLOW)])
    def test_coin_flips_above_a_fixed_order_are_no_lead(self, candidates, reviewers):
        """However clearly the others are ordered, two in coin-flip order seldom make a leader."""
        rng = np.random.default_rng(candidates * reviewers)
        keys = np.tile(np.arange(candidates)[np.newaxis, :, np.newaxis], (reviewers, 1, SESSIONS))
        keys = keys.astype(float)
        keys[:, 0] = rng.random((reviewers, SESSIONS)) < 0.5
        keys[:, 1] = 1 - keys[:, 0]
        profile = Profile.from_ranks(mean_ranks(keys))

        declared = leader_declared(fit_ranks(profile), -profile.ranks).mean()

        assert declared <= 0.07 + SLACK

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_grades_a_point_apart_by_chance_are_no_lead(self, reviewers):
        """Two graded 8 or 9 by chance above exact others: at most one false leader in ten."""
        rng = np.random.default_rng(reviewers)
        grades = np.tile(
            np.array([8, 8, 5, 3, 1])[np.newaxis, :, np.newaxis], (reviewers, 1, SESSIONS)
        )
        grades[:, :2] += rng.random((reviewers, 2, SESSIONS)) < 0.5
        profile = Profile.from_ranks(mean_ranks(-grades.astype(float)), grades.astype(np.uint8))

        declared = leader_declared(fit_grades(profile), adjusted_grades(profile)).mean()

        assert declared <= 0.10 + SLACK

    def test_the_interval_of_the_population_error_falls_short(self):
        """Overlap of population-error intervals declares falsely twice as often at three."""
        rng = np.random.default_rng(0)
        profile = council(TIED_AT_THE_TOP, reviewers=3, sessions=SESSIONS, rng=rng)
        scores = RULES["normalized_scores"](profile)
        order = np.argsort(-scores.score, axis=0, kind="stable")
        first = np.take_along_axis(scores.score, order, 0)
        error = np.take_along_axis(scores.std_error, order, 0)

        overlap = first[0] - 1.96 * error[0] < first[1] + 1.96 * error[1]

        assert 1 - overlap.mean() > 2 * 0.05


class TestSharedError:
    """Reviewers who err together."""

    def test_it_makes_every_plain_rule_too_sure(self):
        """With half the noise in common, equals are told apart far more often than claimed."""
        rng = np.random.default_rng(2)
        profile = council(TIED_AT_THE_TOP, reviewers=5, sessions=SESSIONS, rng=rng, shared=0.5)

        declared = leader_declared(fit_grades(profile), adjusted_grades(profile)).mean()

        assert declared > 0.10

    def test_a_stated_rho_restores_the_level(self):
        """Given ρ = 0.5, equals are told apart in at most 7 % of sessions again."""
        rng = np.random.default_rng(2)
        profile = council(TIED_AT_THE_TOP, reviewers=5, sessions=SESSIONS, rng=rng, shared=0.5)

        declared = leader_declared(fit_grades(profile), adjusted_grades(profile), rho=0.5).mean()

        assert declared <= 0.07


class TestBorrowedStrength:
    """A prior learned from other sessions."""

    @staticmethod
    def history(rng: np.random.Generator) -> Prior:
        past = []
        for _ in range(20):
            quality = rng.normal(0, 1, 5)
            past.append(fit_grades(council(quality, reviewers=3, sessions=20, rng=rng)))
        prior = learn_prior(past, "grades")
        assert prior is not None
        return prior

    @SLOW
    def test_it_finds_more_at_three_reviewers_and_keeps_its_level(self):
        """With a history, three reviewers find a clear leader more often, at no more than 7 %."""
        rng = np.random.default_rng(3)
        prior = self.history(rng)
        equal = council(TIED_AT_THE_TOP, reviewers=3, sessions=SESSIONS, rng=rng)
        clear = council(CLEAR_LEADER, reviewers=3, sessions=SESSIONS, rng=rng)

        size = leader_declared(fit_grades(equal), adjusted_grades(equal), prior=prior).mean()
        power = leader_declared(fit_grades(clear), adjusted_grades(clear), prior=prior).mean()
        alone = leader_declared(fit_grades(clear), adjusted_grades(clear)).mean()

        assert size <= 0.07 + SLACK
        assert power > alone + 0.1

    @pytest.mark.parametrize("reviewers", [3, pytest.param(5, marks=SLOW)])
    def test_the_hierarchical_p_best_seldom_declares_between_equals(self, reviewers):
        """P(best) ≥ .95 with a history falls on one of two equals in at most 8 % of sessions."""
        rng = np.random.default_rng(6)
        prior = self.history(rng)
        equal = council(TIED_AT_THE_TOP, reviewers=reviewers, sessions=1500, rng=rng)
        fit, ballots = fit_grades(equal), equal.graded.sum(axis=0)
        everyone = np.ones(5, dtype=bool)

        declared = [
            Uncertainty.of(fit, s, ballots[:, s], prior=prior).p_best(everyone).max() >= 0.95
            for s in range(equal.n_sessions)
        ]

        assert np.mean(declared) <= 0.08

    def test_the_noise_of_the_history_is_recovered(self):
        """s₀² is close to the noise the sessions were made with; fewer than fifty teach nothing."""
        rng = np.random.default_rng(4)
        prior = self.history(rng)
        few = [fit_grades(council((0.0,) * 5, reviewers=3, sessions=49, rng=rng))]

        assert prior.noise_variance == pytest.approx(1.0, rel=0.25)
        assert prior.quality_variance == pytest.approx(1.0, rel=0.5)
        assert prior.n_sessions == 400
        assert learn_prior(few, "grades") is None

    def test_the_hierarchical_p_best_is_calibrated(self):
        """Of leaders given P(best) ≥ .8 with a history, the share that is best is what it says."""
        rng = np.random.default_rng(5)
        prior = self.history(rng)
        said, right = [], []
        for _ in range(600):
            quality = rng.normal(0, 1, 5)
            profile = council(quality, reviewers=3, sessions=1, rng=rng)
            fit = fit_grades(profile)
            held = Uncertainty.of(fit, 0, profile.graded.sum(axis=0)[:, 0], prior=prior)
            best = held.p_best(np.ones(5, dtype=bool))
            if best.max() >= 0.8:
                said.append(best.max())
                right.append(best.argmax() == quality.argmax())

        assert len(said) > 100
        assert np.mean(right) == pytest.approx(np.mean(said), abs=0.09)


class TestMeanScores:
    """Intervals printed beside the scores of the mean-type rules."""

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_the_interval_of_a_mean_grade_covers_it(self, reviewers):
        """The 95 % interval of `range` covers the mean grade it estimates 93–98 % of the time."""
        rng = np.random.default_rng(reviewers)
        grades = np.clip(np.rint(rng.normal(6, 1.5, (reviewers, 3, 8000))), 1, 10)
        truth = np.clip(np.rint(rng.normal(6, 1.5, 2_000_000)), 1, 10).mean()
        profile = Profile.from_ranks(np.ones(grades.shape), grades=grades)

        scores = RULES["range"](profile)
        reach = t_quantile(0.975, reviewers - 1) * scores.std_error[0]
        covered = (np.abs(scores.score[0] - truth) <= reach).mean()

        assert 0.93 <= covered <= 0.98

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    @pytest.mark.parametrize("name", ["borda", "mean_rank", "range", "normalized_scores", "hybrid"])
    def test_pooled_intervals_cover_every_score(self, name, reviewers):
        """Intervals of mean scores cover 93–98 % over all candidates, and 91 % of each one."""
        rule, rng = RULES[name], np.random.default_rng(reviewers)

        def drawn(n_reviewers: int, n_sessions: int) -> Profile:
            strength = np.array([1.0, 0.5, 0.0, -0.5, -1.0])[np.newaxis, :, np.newaxis]
            liked = strength + rng.gumbel(size=(n_reviewers, 5, n_sessions))
            grades = np.clip(np.rint(6 + 1.5 * liked), 1, 10).astype(np.uint8)
            return Profile.from_ranks(mean_ranks(-liked), grades)

        truth = rule(drawn(1, 200_000)).score.mean(axis=1)
        scores = rule(drawn(reviewers, 2000))
        errors = scores.std_error.astype(float)
        if rule.error == "population":
            errors *= np.sqrt(reviewers / (reviewers - 1))
        covered = np.zeros(5)
        for session in range(2000):
            pooled, df = pooled_errors(errors[:, session], np.full(5, reviewers))
            reach = t_quantile(0.975, df) * pooled
            covered += np.abs(scores.score[:, session] - truth) <= reach

        assert 0.93 <= covered.mean() / 2000 <= 0.98
        assert covered.min() / 2000 >= 0.91
