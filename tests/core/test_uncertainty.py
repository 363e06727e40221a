"""Size and power of the contrast, what is borrowed, and coverage of intervals by size."""

import csv
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elections import ballots, mean_ranks
from simulation import council, panels_of_judges
from sizes import declared_and_found, first_is_told_apart, uncertainty_of, worlds_of_equals
from witan import Ballot, explain, tally
from witan.core.outcome import Prior
from witan.core.profile import Profile
from witan.core.rules import RULES
from witan.core.settings import Settings
from witan.core.stats.additive import fit_grades, fit_rows
from witan.core.stats.distributions import t_quantile
from witan.core.stats.priors import GRADE_NOISE, learn_prior, public_prior
from witan.core.stats.separation import POWER, TYPICAL_NOISE, separation
from witan.core.stats.uncertainty import Uncertainty, pooled_errors, tiers
from witan.core.tally import tally_sessions

DATA = Path(__file__).parents[3] / "shared" / "data"
WILDBENCH = DATA / "wildbench" / "pointwise.csv"
LLMJUDGE = DATA / "llmjudge_relevance" / "pointwise.csv.gz"

SESSIONS = 3000
SLACK = 3 * np.sqrt(0.05 * 0.95 / SESSIONS)
CLEAR_LEADER = (3.0, 0.0, 0.0, 0.0, 0.0)

SLOW = pytest.mark.slow


def graded(reviewer: str, kind: str = "model", **grades: float) -> Ballot:
    return Ballot(reviewer, grades=grades, kind=kind)


def share_found(gap: float, reviewers: int, others: float, sessions: int = 1_500) -> float:
    """The share of simulated councils that separate the first two answers."""
    quality = [gap, 0.0, *(others * (n % 2) for n in range(reviewers - 2))]
    rng = np.random.default_rng(17 + reviewers)
    profile = council(quality, reviewers=reviewers, sessions=sessions, rng=rng, shared=0.2)
    return float(uncertainty_of(profile).separate_pairs(0.95)[0, 1].mean())


def lines_and_tiers(uncertainty: Uncertainty) -> tuple[np.ndarray, np.ndarray]:
    """Candidates by their effects, best first, and the tiers of these lines."""
    order = np.argsort(-uncertainty.fit.effects, axis=0, kind="stable")
    sessions = np.arange(order.shape[1])
    return order, tiers(uncertainty.separate_pairs(0.95)[order[:, np.newaxis], order, sessions])


def reversed_boundaries(uncertainty: Uncertainty, truth: np.ndarray) -> tuple[int, int]:
    """Number of boundaries with a truly worse candidate above a better one, and of all."""
    order, tier = lines_and_tiers(uncertainty)
    truth = np.take_along_axis(truth, order, axis=0)
    wrong = 0
    for line in range(1, len(order)):
        is_reversed = truth[:line].min(axis=0) < truth[line:].max(axis=0)
        wrong += int(((tier[line] > tier[line - 1]) & is_reversed).sum())
    return wrong, int((tier[-1] - 1).sum())


def wrong_boundaries(quality: np.ndarray, unit: str, **drawn: object) -> tuple[float, float]:
    """Share of pairs, and of sessions, with a better candidate below a boundary and a worse."""
    uncertainty = uncertainty_of(council(quality, sessions=50, **drawn), unit)
    order, tier = lines_and_tiers(uncertainty)
    truth = quality[order]
    wrong = (tier[:, np.newaxis] < tier) & (truth[:, np.newaxis] < truth)
    n_pairs = len(quality) * (len(quality) - 1) / 2
    return float(wrong.sum(axis=(0, 1)).mean() / n_pairs), float(wrong.any(axis=(0, 1)).mean())


@pytest.mark.parametrize(
    "reviewers", [4, 7, *(pytest.param(size, marks=SLOW) for size in (5, 6, 9))]
)
def test_a_gap_of_the_stated_size_is_found_four_times_of_five(reviewers):
    """Simulated reviewers with own levels, spreads and whole grades find it in 72 to 88%."""
    gap = separation(reviewers, reviewers).grades

    share = np.mean([share_found(gap, reviewers, others) for others in (0.0, gap / 2, gap)])

    assert share == pytest.approx(POWER, abs=0.08)


def test_a_larger_council_separates_smaller_gaps():
    """Every further reviewer narrows the gap; so does a jury that judges every answer."""
    gaps = [separation(n, n).grades for n in range(4, 13)]

    assert gaps == sorted(gaps, reverse=True)
    assert separation(4, 4, authors=False).grades < separation(4, 4).grades
    assert separation(3, 4, authors=False).grades is not None


def test_three_reviewers_alone_separate_no_gap():
    """Mutual reviews of three have too few degrees of freedom, unless some noise is known."""
    three = separation(3, 3, prior=None)

    assert three.grades is None
    assert three.next_reviewers == 4
    assert separation(3, 3).grades is not None


def test_shared_error_widens_the_gap_and_a_history_narrows_it():
    """Shared error does not average out; known noise is worth reviewers."""
    alone = separation(4, 4).grades
    prior = Prior(1.0, 20.0, 1.0, "grades", 60)

    assert separation(4, 4, rho=0.3).grades > alone
    assert separation(4, 4, prior=prior).grades < alone


@pytest.mark.parametrize(("reviewers", "candidates"), [(0, 0), (1, 1), (1, 5), (2, 2), (500, 500)])
def test_any_council_size_has_a_result(reviewers, candidates):
    """Too small a council separates nothing; a very large one counts as one of forty."""
    gap = separation(reviewers, candidates).grades

    assert gap is None if reviewers < 3 else gap < 2.5


@pytest.mark.skipif(
    not WILDBENCH.exists(), reason="the real grades are not beside this checkout (../shared/data)"
)
def test_the_public_noise_is_above_that_of_two_judges_of_one_family():
    """Two such judges differ by .66 grades around candidate and severity; panels differ by more."""
    scored = defaultdict(lambda: defaultdict(dict))
    with WILDBENCH.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            scored[row["prompt_id"]][row["candidate"]][row["judge"]] = float(row["score"])
    squares = freedom = 0.0
    for answers in scored.values():
        pairs = [[by[judge] for judge in sorted(by)] for by in answers.values() if len(by) == 2]
        if len(pairs) > 1:
            difference = np.diff(np.array(pairs), axis=1)
            squares += float(((difference - difference.mean()) ** 2).sum() / 2)
            freedom += len(pairs) - 1

    assert np.sqrt(squares / freedom) == pytest.approx(0.66, abs=0.02)
    assert squares / freedom < TYPICAL_NOISE**2 < GRADE_NOISE


class TestSize:
    """How often two equal candidates are separated."""

    @pytest.mark.parametrize("unit", ["grades", "ranks"])
    @pytest.mark.parametrize(
        "reviewers", [3, 5, 9, *(pytest.param(size, marks=SLOW) for size in (4, 6, 7, 8))]
    )
    def test_equal_candidates_are_seldom_separated(self, reviewers, unit):
        """In at most 6% of sessions in ordinary worlds, and in 8% of hostile ones.

        Three authors who review each other share one ballot on the first two, which cannot show
        that these alone are judged with much noise; and three coins agree one time in four.
        """
        sizes = {}
        for name, hostile, profile in worlds_of_equals(
            reviewers, SESSIONS, np.random.default_rng(reviewers)
        ):
            limit = 0.08 if hostile else 0.06
            sizes[name] = first_is_told_apart(profile, unit)[0].mean() - limit

        assert max(sizes.values()) <= SLACK, sizes

    def test_ignoring_shared_noise_is_overconfident(self):
        """With a third of the noise in common, equals are separated far more often than stated."""
        profile = council(
            (1.0, 1.0, -1.0, -2.0, -2.0),
            reviewers=7,
            sessions=SESSIONS,
            rng=np.random.default_rng(2),
            shared=0.3,
        )

        assert first_is_told_apart(profile, "grades", rho=0.0)[0].mean() > 0.10
        assert first_is_told_apart(profile, "grades")[0].mean() <= 0.08 + SLACK

    @pytest.mark.parametrize(
        ("unit", "rho", "most"),
        [("grades", None, 0.08), ("ranks", None, 0.18), ("ranks", 0.3, 0.07)],
    )
    def test_shared_noise_in_a_crowd_errs_as_often_as_the_benchmarks_state(self, unit, rho, most):
        """Rankings of close candidates need more than the public shared error."""
        crowded = {"reviewers": 5, "sessions": SESSIONS, "shared": 0.3, "recused": False}
        for quality in ((0.0, 0.0, -0.5, -1.0, -1.5), (0.0, 0.0, 1.0, -1.0, -2.0)):
            profile = council(quality, rng=np.random.default_rng(5), **crowded)
            apart = uncertainty_of(profile, unit, rho=rho).separate_pairs(0.95)

            assert (apart[0, 1] | apart[1, 0]).mean() <= most + SLACK, quality

    @pytest.mark.parametrize("heaviest", [3.0, 10.0, 1000.0])
    def test_unequal_weights_do_not_raise_confidence(self, heaviest):
        """A ballot of higher weight is no more exact than the others."""
        rng = np.random.default_rng(17)
        drawn = {"reviewers": 5, "sessions": SESSIONS, "rng": rng, "recused": False}
        profile = council((1.0, 1.0, -1.0, -2.0, -2.0), **drawn)
        weights = np.ones((5, SESSIONS))
        weights[0] = heaviest
        weights /= weights.mean(axis=0)

        told, _ = first_is_told_apart(profile.replace_weights(weights), "grades", rho=0.0)

        assert told.mean() <= 0.06 + SLACK

    def test_a_dominant_ballot_counts_as_one_vote(self):
        """Effective votes follow the weights, and one ballot has no confidence.

        Its leader is four points ahead, and best with probability .968. In simulations of such
        juries, spreads .5, 1 and 2 mixed, that ballot's leader is the best in .98 of sessions.
        """
        cast = [
            graded("r1", a=9.0, b=5.0, c=3.0),
            graded("r2", a=6.0, b=8.0, c=4.0),
            graded("r3", a=7.0, b=7.0, c=5.0),
        ]

        equal = tally(cast)
        outweighed = tally(cast, weights={"r1": 1e6}, rho=None)

        assert outweighed.effective_votes == pytest.approx(1.0, abs=1e-4)
        assert outweighed.standings[0].p_best < 0.97
        assert all(
            line.interval is None for line in tally(cast, "range", weights={"r1": 1e6}).standings
        )
        assert tally(cast, weights={"r1": 2.0, "r2": 2.0, "r3": 2.0}).standings == equal.standings

    def test_overlap_of_population_errors_is_overconfident(self):
        """ADR-010's intervals separate equals twice as often as stated at three reviewers."""
        rng = np.random.default_rng(0)
        profile = council((1.0, 1.0, -1.0, -2.0, -2.0), reviewers=3, sessions=SESSIONS, rng=rng)
        scores = RULES["normalized_scores"](profile)
        order = np.argsort(-scores.score, axis=0, kind="stable")
        first = np.take_along_axis(scores.score, order, 0)
        error = np.take_along_axis(scores.std_error, order, 0)

        overlap = first[0] - 1.96 * error[0] < first[1] + 1.96 * error[1]

        assert 1 - overlap.mean() > 2 * 0.05


class TestPower:
    """How often a clear leader is found."""

    @pytest.mark.parametrize(("reviewers", "least"), [(3, 0.09), (5, 0.37), (7, 0.65)])
    def test_a_clear_leader_is_found(self, reviewers, least):
        """A leader three noise deviations ahead is declared the more often, the more reviewers."""
        rng = np.random.default_rng(reviewers)

        found = declared_and_found(
            lambda profile: first_is_told_apart(profile, "grades"),
            reviewers=reviewers,
            sessions=SESSIONS,
            rng=rng,
        )[1]

        assert found / 100 >= least

    @pytest.mark.parametrize(
        ("unit", "recused", "share"),
        [
            ("grades", False, 0.36),
            ("ranks", False, 0.11),
            ("grades", True, 0.10),
            ("ranks", True, 0.00),
        ],
        ids=["grades", "ranks", "grades, leader is a reviewer", "ranks, leader is a reviewer"],
    )
    def test_three_reviewers_find_a_leader_as_often_as_documented(self, unit, recused, share):
        """`witan rules` quotes how often three reviewers find a leader 3 σ ahead."""
        rng = np.random.default_rng(1)
        profile = council(CLEAR_LEADER, reviewers=3, sessions=SESSIONS, rng=rng, recused=recused)

        apart, first = first_is_told_apart(profile, unit)

        assert (apart & (first == 0)).mean() == pytest.approx(share, abs=0.035)

    def test_three_unanimous_reviewers_separate_answers_in_the_first_session(self):
        """9.5, 6 and 2.5 by three are a clear result with the prior, and too few without it."""
        cast = [graded(reviewer, a=9.5, b=6, c=2.5) for reviewer in "xyz"]

        assert tally(cast).unresolved == ()
        assert tally(cast).clear_leader == "a"
        assert tally(cast).prior.source == "public"

    @pytest.mark.parametrize(("reviewers", "gap"), [(3, 3.0), (4, 2.5)])
    def test_unanimous_ballots_need_a_wider_gap(self, reviewers, gap):
        """They may agree by chance and show no noise; the explanation says how often."""
        wide, narrow = (
            [graded(str(r), a=5 + each, b=5, c=2, d=1) for r in range(reviewers)]
            for each in (gap, gap - 0.5)
        )

        assert tally(wide).clear_leader == "a"
        assert tally(narrow).clear_leader is None
        said = " ".join(word for step in explain(wide).steps for word in step.sentences)
        assert f"{reviewers} would agree in" in said

    @pytest.mark.parametrize(("reviewers", "is_clear"), [(5, False), (6, True)])
    def test_six_unanimous_ballots_are_evidence(self, reviewers, is_clear):
        """One point apart they lead clearly, and five, which may agree by chance, do not."""
        cast = [graded(str(r), a=6, b=5, c=2, d=1) for r in range(reviewers)]

        assert (tally(cast).clear_leader == "a") is is_clear
        said = " ".join(word for step in explain(cast).steps for word in step.sentences)
        assert (f"{reviewers} would agree in" in said) is not is_clear

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_the_interval_of_a_difference_covers_it(self, reviewers):
        """The 95% interval of a difference of effects covers it 93–97% of the time."""
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

        difference = fit.effects[0] - fit.effects[2]
        factors = fit.variance_factors()[fit.pattern, 0, 2]
        error = np.sqrt(fit.residual_variance * factors)
        reach = t_quantile(0.975, float(fit.df[0])) * error
        covered = (np.abs(difference - 1.0) <= reach).mean()

        assert 0.93 <= covered <= 0.97


class TestVotes:
    """A single vote has no error."""

    def test_a_candidate_judged_once_does_not_lead(self):
        """It ranks below those with two votes, even with a first place, and is named."""
        cast = ballots("x: c > a > b", "y: a > b", "z: a > b", "w: b > a")

        outcome = tally(cast)

        assert outcome.leaders == ("a",)
        assert outcome["c"].p_best is None
        assert "c" not in outcome.tied_for_best
        assert ("a", "c") in outcome.unresolved
        assert outcome.interpretation.endswith("; c has not enough votes.")

    @pytest.mark.parametrize("rule", sorted(RULES))
    @given(data=st.data())
    def test_one_vote_never_leads_where_two_have_more(self, rule, data):
        """Under every rule it comes after them, without p_best and not among the tied for best."""
        names = "abc"[: data.draw(st.integers(2, 3))]
        rows = data.draw(
            st.lists(st.permutations(range(2, 2 + len(names))), min_size=2, max_size=5)
        )
        z = data.draw(st.integers(1, 10))
        cast = [
            Ballot(
                str(n),
                grades=dict(zip(names, map(float, row), strict=True)) | ({} if n else {"z": z}),
                candidates=(*names, *([] if n else "z")),
            )
            for n, row in enumerate(rows)
        ]

        outcome = tally(cast, rule, flips=False)

        assert outcome["z"].votes == 1
        assert outcome["z"].rank == len(names) + 1
        assert outcome["z"].p_best is None
        assert "z" not in (*outcome.leaders, *outcome.tied_for_best)

    def test_a_single_ballot_orders_its_candidates(self):
        """There are no probabilities."""
        outcome = tally([graded("x", a=9, b=5)])

        assert outcome.leaders == ("a",)
        assert outcome.tied_for_best == ("a", "b")
        assert outcome.clear_leader is None


class TestTiers:
    """Groups of lines too close to call."""

    @given(st.integers(1, 6).flatmap(lambda n: arrays(bool, (n, n))))
    def test_a_boundary_separates_all_lines_above_from_all_below(self, above):
        """A line separated from only some of the lines above it stays in their tier."""
        np.fill_diagonal(above, False)
        starts = [above[:line, line:].all() for line in range(1, len(above))]

        assert tiers(above).tolist() == [1, *(1 + np.cumsum(starts, dtype=int)).tolist()]

    @pytest.mark.parametrize("unit", ["grades", "ranks"])
    @pytest.mark.parametrize(
        "reviewers", [3, 5, 9, *(pytest.param(size, marks=SLOW) for size in (4, 6, 7, 8))]
    )
    def test_a_boundary_has_the_error_rate_of_a_separated_pair(self, reviewers, unit):
        """It puts the better below the worse in at most 2.5% of pairs, as a two-sided 5% means.

        Without shared error it does so in at most 2% of sessions.
        """
        rng = np.random.default_rng(reviewers)
        for shared, spread, recused in product((0.0, 0.3), (0.5, 1.0, 2.0), (True, False)):
            pairs, sessions = np.mean(
                [
                    wrong_boundaries(
                        rng.normal(0, spread, 5),
                        unit,
                        reviewers=reviewers,
                        rng=rng,
                        shared=shared,
                        recused=recused,
                    )
                    for _ in range(20)
                ],
                axis=0,
            )
            assert pairs <= 0.025, (shared, spread, recused)
            assert shared or sessions <= 0.02, (spread, recused)

    @pytest.mark.slow
    @pytest.mark.skipif(
        not LLMJUDGE.exists(), reason="the real grades are not beside this checkout"
    )
    @pytest.mark.parametrize("unit", ["grades", "ranks"])
    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_real_judges_held_out_seldom_reverse_a_boundary(self, reviewers, unit):
        """The mean of 24 judges and more reverses some pair across at most 3% of boundaries."""
        grades, means = panels_of_judges(LLMJUDGE, reviewers, draws=200)
        profile = Profile.from_ranks(mean_ranks(-grades), grades=grades)

        wrong, boundaries = reversed_boundaries(uncertainty_of(profile, unit), means)

        assert boundaries > 200
        assert wrong / boundaries <= 0.03

    @pytest.mark.slow
    @pytest.mark.parametrize("reviewers", [3, 5])
    def test_a_boundary_seldom_reverses_a_pair(self, reviewers):
        """Over random qualities, a truly better candidate is below a boundary in 5%."""
        rng = np.random.default_rng(reviewers)
        wrong = boundaries = 0
        for _ in range(25):
            quality = rng.normal(0, 1, 5)
            profile = council(quality, reviewers=reviewers, sessions=30, rng=rng, recused=False)
            for session in range(30):
                cast = [
                    graded(str(r), **dict(zip("abcde", row[:, session].tolist(), strict=True)))
                    for r, row in enumerate(profile.grades)
                ]
                lines = tally(cast, flips=False).standings
                truth = dict(zip("abcde", quality, strict=True))
                for tier in range(1, lines[-1].tier):
                    upper = min(truth[line.candidate] for line in lines if line.tier <= tier)
                    lower = max(truth[line.candidate] for line in lines if line.tier > tier)
                    boundaries += 1
                    wrong += upper < lower

        assert boundaries > 50
        assert wrong / boundaries <= 0.05


class TestPriors:
    """Noise known beforehand."""

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
    def test_a_history_raises_power_and_holds_its_level(self):
        """With a history, three reviewers find a clear leader more often, at no more than 7%."""
        prior = self.history(np.random.default_rng(3))

        def measured(prior):
            return declared_and_found(
                lambda profile: first_is_told_apart(profile, "grades", prior=prior),
                reviewers=3,
                sessions=SESSIONS,
                rng=np.random.default_rng(4),
            )

        size, power = measured(prior)

        assert size <= 7 + 100 * SLACK
        assert power > measured("public")[1] + 5

    def test_the_noise_of_the_history_is_recovered(self):
        """s₀² is close to the simulated noise; under fifty sessions there is no estimate."""
        rng = np.random.default_rng(4)
        prior = self.history(rng)
        few = [fit_grades(council((0.0,) * 5, reviewers=3, sessions=49, rng=rng))]

        assert prior.noise_variance == pytest.approx(1.0, rel=0.25)
        assert prior.quality_variance == pytest.approx(1.0, rel=0.5)
        assert prior.n_sessions == 400
        assert learn_prior(few, "grades") is None

    def test_ranks_of_more_candidates_are_noisier(self):
        """The public noise of a rank grows with the number of candidates, that of a grade not."""
        ranks = [public_prior("ranks", n).noise_variance for n in (3, 5, 8, 15)]

        assert ranks == pytest.approx([0.52, 0.85, 1.66, 5.02], abs=0.01)
        assert public_prior("grades", 3) == public_prior("grades", 15)

    def test_people_borrow_noise_and_share_no_error(self):
        """People are no less noisy than judges, and independent of each other."""
        cast = [graded(r, kind="human", a=9, b=6, c=2) for r in "xyz"]

        assert tally(cast).prior.source == "public"
        assert tally(cast).rho is None
        assert tally(cast).effective_votes == 3

    def test_prior_and_shared_error_can_be_turned_off(self):
        """With ``prior="none"`` and ``rho="none"`` only the ballots count."""
        cast = [graded(r, a=9, b=6, c=2) for r in "xyz"]
        alone = tally(cast, prior="none", rho="none")

        assert (alone.prior, alone.rho, alone.rho_is_assumed) == (None, None, False)
        assert tally(cast).df == alone.df + 3


class TestMeanScores:
    """Intervals printed beside the scores of the mean-type rules."""

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    def test_the_interval_of_a_mean_grade_covers_it(self, reviewers):
        """The 95% interval of `range` covers the mean grade it estimates 93–98% of the time."""
        rng = np.random.default_rng(reviewers)
        grades = np.clip(np.rint(rng.normal(6, 1.5, (reviewers, 3, 8000))), 1, 10)
        truth = np.clip(np.rint(rng.normal(6, 1.5, 2_000_000)), 1, 10).mean()
        profile = Profile.from_ranks(np.ones(grades.shape), grades=grades)

        scores = RULES["range"](profile)
        reach = t_quantile(0.975, reviewers - 1) * scores.std_error[0]
        covered = (np.abs(scores.score[0] - truth) <= reach).mean()

        assert 0.93 <= covered <= 0.98

    def test_people_and_models_are_weighed_together(self):
        """One model that outweighs six people counts as one vote, and so does a person."""
        cast = [graded("m", a=9.0, b=5.0, c=3.0)]
        cast += [graded(f"p{n}", "human", a=6.0 + n / 4, b=7.0, c=4.0) for n in range(6)]

        assert tally(cast, weights={"m": 1e4}).effective_votes == pytest.approx(1.0, abs=0.01)
        assert tally(cast, rho=0.5).effective_votes == pytest.approx(7.0)

    @pytest.mark.parametrize(
        "name",
        [
            "borda",
            "range",
            *(pytest.param(name, marks=SLOW) for name in ("normalized_scores", "mean_rank")),
        ],
    )
    def test_intervals_of_weighted_scores_cover_them(self, name):
        """A ballot of ten times the weight widens the intervals of all scores."""
        rng = np.random.default_rng(11)
        quality = (0.6, 0.2, 0.0, -0.4)
        drawn = {"reviewers": 7, "rng": rng, "recused": False}
        rule = RULES[name]
        truth = rule(council(quality, sessions=50_000, **drawn)).score.mean(axis=1)
        profile = council(quality, sessions=300, **drawn)
        cast = [
            Ballot(
                f"r{r}",
                grades=dict(zip("abcd", profile.grades[r, :, s].tolist(), strict=True)),
                weight=10.0 if r == 0 else 1.0,
                session=str(s),
            )
            for s in range(300)
            for r in range(7)
        ]

        outcomes = tally_sessions(cast, Settings.of(name))

        lines = [line for outcome in outcomes for line in outcome.standings]
        covered = [
            line.interval.low <= truth["abcd".index(line.candidate)] <= line.interval.high
            for line in lines
        ]
        assert 0.92 <= np.mean(covered) <= 1.0

    @pytest.mark.parametrize("reviewers", [3, pytest.param(5, marks=SLOW), 9])
    @pytest.mark.parametrize("name", ["borda", "mean_rank", "range", "normalized_scores", "hybrid"])
    def test_pooled_intervals_cover_every_score(self, name, reviewers):
        """Intervals of mean scores cover 93–98% over all candidates, and 91% of each one."""
        rule, rng = RULES[name], np.random.default_rng(reviewers)

        def draw_profile(n_reviewers: int, n_sessions: int) -> Profile:
            strength = np.array([1.0, 0.5, 0.0, -0.5, -1.0])[np.newaxis, :, np.newaxis]
            liked = strength + rng.gumbel(size=(n_reviewers, 5, n_sessions))
            grades = np.clip(np.rint(6 + 1.5 * liked), 1, 10).astype(np.uint8)
            return Profile.from_ranks(mean_ranks(-liked), grades)

        truth = rule(draw_profile(1, 200_000)).score.mean(axis=1)
        scores = rule(draw_profile(reviewers, 2000))
        errors = scores.std_error.astype(float)
        if rule.error == "population":
            errors *= np.sqrt(reviewers / (reviewers - 1))
        pooled, df = pooled_errors(errors, np.full((5, 2000), reviewers))
        reach = np.array([t_quantile(0.975, each) for each in df.tolist()]) * pooled
        covered = (np.abs(scores.score - truth[:, np.newaxis]) <= reach).sum(axis=1)

        assert 0.93 <= covered.mean() / 2000 <= 0.98
        assert covered.min() / 2000 >= 0.91
