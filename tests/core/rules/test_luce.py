"""Bradley–Terry and Plackett–Luce: the maximum, its errors, the purpose of the prior."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import check_sessions_alone, election, profiles, random_profile
from witan.core.profile import Profile
from witan.core.rules.luce import bradley_terry, plackett_luce
from witan.core.rules.registry import RULES
from witan.errors import InvalidParameter, UnsuitableBallots

BOTH = pytest.mark.parametrize("rule", [bradley_terry, plackett_luce], ids=str)


def log_chance(strength: float, rival: float) -> float:
    """Logarithm of the chance of a win."""
    return -math.log1p(math.exp(rival - strength))


def ghost_terms(theta: np.ndarray, ghost: float, ghost_wins: float) -> float:
    return ghost_wins * sum(log_chance(t, ghost) + log_chance(ghost, t) for t in theta)


def bradley_terry_likelihood(ranks: np.ndarray, weights: np.ndarray):
    """The objective of `bradley_terry`, ballot by ballot and pair by pair."""

    def pair(theta, row, i, j):
        if row[i] == row[j]:
            return (log_chance(theta[i], theta[j]) + log_chance(theta[j], theta[i])) / 2
        return log_chance(*(theta[[i, j]] if row[i] < row[j] else theta[[j, i]]))

    def likelihood(theta: np.ndarray, ghost: float, ghost_wins: float) -> float:
        log_terms = sum(
            weight * pair(theta, row, i, j)
            for row, weight in zip(ranks, weights, strict=True)
            for i, j in combinations(np.flatnonzero(~np.isnan(row)), 2)
        )
        return log_terms + ghost_terms(theta, ghost, ghost_wins)

    return likelihood


def plackett_luce_likelihood(ranks: np.ndarray, weights: np.ndarray):
    """The objective of `plackett_luce`, place by place, from the definition of the shares."""

    def log_terms(theta, row):
        ranked = np.flatnonzero(~np.isnan(row))
        size = {i: sum(row[j] == row[i] for j in ranked) for i in ranked}
        first = {i: 1 + sum(row[j] < row[i] for j in ranked) for i in ranked}
        total = sum(theta[i] for i in ranked)
        for place in range(1, len(ranked) + 1):
            shares = {i: (first[i] + size[i] - place) / size[i] for i in ranked}
            total -= math.log(
                sum(min(max(shares[i], 0.0), 1.0) * math.exp(theta[i]) for i in ranked)
            )
        return total

    def likelihood(theta: np.ndarray, ghost: float, ghost_wins: float) -> float:
        ballots = sum(w * log_terms(theta, row) for row, w in zip(ranks, weights, strict=True))
        return ballots + ghost_terms(theta, ghost, ghost_wins)

    return likelihood


LIKELIHOODS = {
    "bradley_terry": bradley_terry_likelihood,
    "plackett_luce": plackett_luce_likelihood,
}


def maximize(objective, n: int) -> np.ndarray:
    """The maximum over n numbers by a general-purpose optimiser without our derivatives."""
    from scipy.optimize import minimize

    result = minimize(lambda x: -objective(x), np.zeros(n), method="BFGS", options={"gtol": 1e-9})
    return result.x


def curvature(objective, at: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """Minus the second derivatives by central differences."""
    n = len(at)
    steps = np.eye(n) * h
    return -np.array(
        [
            [
                (
                    objective(at + steps[i] + steps[j])
                    - objective(at + steps[i] - steps[j])
                    - objective(at - steps[i] + steps[j])
                    + objective(at - steps[i] - steps[j])
                )
                / (4 * h * h)
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


RANKS = np.array(
    [
        [1.0, 2.0, 3.0, 4.0],
        [2.0, 1.0, 3.0, math.nan],
        [1.5, 1.5, 4.0, 3.0],
        [3.0, 3.0, 1.0, 3.0],
        [math.nan, 2.0, math.nan, 1.0],
        [2.5, 2.5, 2.5, 2.5],
    ]
)
WEIGHTS = np.array([1.0, 0.5, 2.0, 1.0, 1.5, 0.7])
PAIRS = np.array(
    [
        [1.0, 2.0, math.nan, math.nan],
        [math.nan, 1.0, 2.0, math.nan],
        [2.0, math.nan, 1.0, math.nan],
        [math.nan, math.nan, 1.0, 2.0],
        [1.5, math.nan, math.nan, 1.5],
    ]
)


class TestLikelihood:
    """Scores maximise the stated likelihood and errors are its curvature."""

    @BOTH
    @pytest.mark.parametrize("ghost_wins", [0.5, 0.1, 3.0])
    def test_scores_equal_a_general_optimiser(self, rule, ghost_wins):
        """A general optimiser on the written-out likelihood, ghost free, finds the same scores."""
        likelihood = LIKELIHOODS[str(rule)](RANKS, WEIGHTS)

        result = maximize(lambda x: likelihood(x[:4], x[4], ghost_wins), 5)
        scores = rule(Profile.from_ranks(RANKS, weights=WEIGHTS), ghost_wins=ghost_wins)

        assert scores.score[:, 0] == pytest.approx(result[:4] - result[:4].mean(), abs=1e-5)

    @BOTH
    def test_the_gradient_vanishes_at_the_scores(self, rule):
        """By finite differences, with the ghost at its optimum."""
        likelihood = LIKELIHOODS[str(rule)](RANKS, WEIGHTS)
        theta = rule(Profile.from_ranks(RANKS, weights=WEIGHTS)).score[:, 0]
        ghost = maximize(lambda x: ghost_terms(theta, x[0], 0.5), 1)[0]

        slopes = [
            (likelihood(theta + step, ghost, 0.5) - likelihood(theta - step, ghost, 0.5)) / 2e-5
            for step in np.eye(4) * 1e-5
        ]

        assert slopes == pytest.approx([0.0] * 4, abs=1e-6)

    @pytest.mark.parametrize(
        ("rule", "ranks"),
        [(plackett_luce, RANKS), (bradley_terry, PAIRS)],
        ids=["plackett_luce", "bradley_terry on pairs"],
    )
    def test_errors_are_the_inverse_curvature(self, rule, ranks):
        """Second differences of the likelihood, inverted and centred, give the errors."""
        weights = np.resize(WEIGHTS, len(ranks))
        likelihood = LIKELIHOODS[str(rule)](ranks, weights)
        scores = rule(Profile.from_ranks(ranks, weights=weights))
        theta = scores.score[:, 0]
        ghost = maximize(lambda x: ghost_terms(theta, x[0], 0.5), 1)[0]

        bent = curvature(lambda x: likelihood(x[:4], x[4], 0.5), np.append(theta, ghost))
        centring = np.hstack([np.eye(4) - 0.25, np.zeros((4, 1))])
        covariance = centring @ np.linalg.pinv(bent, rcond=1e-6) @ centring.T

        assert scores.std_error[:, 0] == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-4)


class TestPeers:
    """With a weak prior the scores are those of choix."""

    def test_bradley_terry_agrees_with_choix(self):
        """`choix.opt_pairwise` on all pairs of forty strict ballots finds the same strengths."""
        import choix

        profile = random_profile(np.random.default_rng(3), (40, 5, 1))
        ranks = profile.ranks[:, :, 0]
        pairs = [(i, j) for row in ranks for i, j in permutations(range(5), 2) if row[i] < row[j]]

        scores = bradley_terry(profile, ghost_wins=1e-9).score[:, 0]

        assert scores == pytest.approx(choix.opt_pairwise(5, pairs), abs=1e-5)
        assert scores == pytest.approx(choix.ilsr_pairwise(5, pairs), abs=1e-5)

    def test_plackett_luce_agrees_with_choix(self):
        """`choix.opt_rankings` on forty strict ballots finds the same worths."""
        import choix

        profile = random_profile(np.random.default_rng(4), (40, 5, 1))
        rankings = [tuple(np.argsort(row)) for row in profile.ranks[:, :, 0]]

        scores = plackett_luce(profile, ghost_wins=1e-9).score[:, 0]

        assert scores == pytest.approx(choix.opt_rankings(5, rankings), abs=1e-5)
        assert scores == pytest.approx(choix.ilsr_rankings(5, rankings), abs=1e-5)

    def test_plackett_luce_agrees_with_choix_on_partial_ballots(self):
        """A partial ballot is a ranking of the candidates on it."""
        import choix

        profile = random_profile(np.random.default_rng(5), (60, 5, 1), partial=True)
        rankings = [
            tuple(np.argsort(row)[: int((~np.isnan(row)).sum())])
            for row in profile.ranks[:, :, 0]
            if (~np.isnan(row)).sum() > 1
        ]

        scores = plackett_luce(profile, ghost_wins=1e-9).score[:, 0]

        assert scores == pytest.approx(choix.opt_rankings(5, rankings), abs=1e-5)


class TestPrior:
    """Half a win and half a loss against a ghost: finite, stated, symmetric."""

    def test_an_undefeated_candidate_has_a_finite_score(self):
        """With w wins to none the ghost is halfway, and two equations give the gap.

        At a gap of 2x, w σ(−2x) = ghost_wins · tanh(x / 2).
        """
        scores = bradley_terry(election("3 × r: a > b"))
        x = scores.score[0, 0]

        assert 3 / (1 + math.exp(2 * x)) == pytest.approx(0.5 * math.tanh(x / 2), rel=1e-9)
        assert scores.score[:, 0] == pytest.approx([x, -x])
        assert np.all(scores.std_error > 0.5)

    @BOTH
    def test_unanimous_ballots_have_finite_scores(self, rule):
        """Three ballots a > b > c give a > b > c with finite, positive errors."""
        scores = rule(election("3 × r: a > b > c"))

        assert scores.score[0, 0] > scores.score[1, 0] > scores.score[2, 0]
        assert np.all(np.isfinite(scores.score))
        assert np.all(np.isfinite(scores.std_error))
        assert np.all(scores.std_error > 0.1)

    @BOTH
    def test_one_vote_has_wider_errors_than_ten(self, rule):
        """The errors of a single ballot are wider than those of ten like it."""
        one = rule(election("r: a > b > c")).std_error
        ten = rule(election("10 × r: a > b > c")).std_error

        assert np.all(one > 0.5)
        assert one[1, 0] > ten[1, 0]

    @BOTH
    @pytest.mark.parametrize("ghost_wins", [0.0, -1.0, math.nan, math.inf, True])
    def test_a_prior_of_zero_is_refused(self, rule, ghost_wins):
        """The error names the prior, which must be above 0."""
        with pytest.raises(InvalidParameter, match="ghost_wins"):
            rule(election("r: a > b"), ghost_wins=ghost_wins)

    def test_heavy_ballots_converge(self):
        """A million votes to none gives a large finite score."""
        profile = election("r: a > b").replace_weights(np.array([[1e6]]))

        gap = float(np.diff(bradley_terry(profile).score[::-1, 0])[0])

        assert gap == pytest.approx(math.log(2e6), abs=0.1)

    def test_a_fit_that_does_not_converge_is_an_error(self):
        """Weights beyond the precision of floats raise instead of giving a number."""
        profile = election("r: a > b > c", "s: c > b > a")
        profile = profile.replace_weights(np.array([[1e15], [1.0]]))

        with pytest.raises(UnsuitableBallots, match="settle"):
            plackett_luce(profile)

    def test_the_registry_names_the_prior(self):
        """A stored outcome can name the prior of either rule."""
        assert RULES["bradley_terry"].parameters == {"ghost_wins": 0.5}
        assert RULES["plackett_luce"].parameters == {"ghost_wins": 0.5}


class TestCandidatesCounted:
    """Candidates without votes, lone candidates and disconnected graphs are reported."""

    @BOTH
    def test_a_candidate_without_votes_has_no_score(self, rule):
        """Its score, error and chances are NaN; the others are centred without it."""
        scores = rule(election("r: a > b", "s: b > a", "t: a > b", candidates="abc"))

        assert np.isnan(scores.score[2, 0])
        assert np.isnan(scores.std_error[2, 0])
        assert np.isnan(scores.details["p_beats_matchup"][2]).all()
        assert scores.score[:2, 0].sum() == pytest.approx(0, abs=1e-12)
        assert scores.details["connected"].tolist() == [True]

    @BOTH
    def test_a_ballot_of_weight_zero_is_no_vote(self, rule):
        """A candidate on nothing but a ballot of weight 0 has no score."""
        profile = election("r: a > b", "s: c > a").replace_weights(np.array([[1.0], [0.0]]))

        scores = rule(profile)

        assert np.isnan(scores.score[2, 0])
        assert scores.score[:, 0][:2] == pytest.approx(rule(election("r: a > b")).score[:, 0])

    @BOTH
    def test_a_lone_candidate_has_no_error(self, rule):
        """Its score is 0 and its error unknown, never 0."""
        scores = rule(election("r: a", candidates="ab"))

        assert scores.score[0, 0] == 0
        assert np.isnan(scores.std_error).all()

    @BOTH
    def test_disconnected_groups_are_not_compared(self, rule):
        """Candidates in different groups have no chance against each other."""
        scores = rule(election("2 × r: a > b", "2 × s: c > d"))
        p_beats = scores.details["p_beats_matchup"][..., 0]

        assert scores.details["connected"].tolist() == [False]
        assert np.isnan(p_beats[:2, 2:]).all()
        assert p_beats[0, 1] > 0.5

    @BOTH
    def test_a_chain_of_ballots_connects_candidates(self, rule):
        """With a against b and b against c, a and c are comparable without having met."""
        scores = rule(election("r: a > b", "s: b > c", "t: c > b"))

        assert scores.details["connected"].tolist() == [True]
        assert scores.details["p_beats_matchup"][0, 2, 0] > 0.5

    @BOTH
    def test_chances_follow_the_scores(self, rule):
        """P(i beats j) is the logistic of the difference, and NaN on the diagonal."""
        scores = rule(election("2 × r: a > b > c", "s: c > a > b"))
        theta, p_beats = scores.score[:, 0], scores.details["p_beats_matchup"][..., 0]

        assert p_beats[0, 1] == pytest.approx(1 / (1 + math.exp(theta[1] - theta[0])))
        assert p_beats[0, 1] + p_beats[1, 0] == pytest.approx(1)
        assert np.isnan(np.diag(p_beats)).all()


class TestTies:
    """Tied candidates have equal scores."""

    @BOTH
    def test_ballots_that_tie_all_candidates_are_a_dead_heat(self, rule):
        """All candidates have exactly the same score."""
        scores = rule(election("3 × r: a = b = c = d")).score[:, 0]

        assert scores.tolist() == [scores[0]] * 4

    @BOTH
    @given(profile=profiles(reviewers=(1, 4), candidates=(2, 4)))
    def test_swapped_ballots_give_equal_scores(self, rule, profile):
        """Adding every ballot again with two candidates swapped makes these two a dead heat."""
        places = profile.places
        swapped = places.copy()
        swapped[:, [0, 1]] = places[:, [1, 0]]
        scores = rule(Profile(np.concatenate([places, swapped]))).score[:, 0]

        assert scores[0] == scores[1] or np.isnan(scores[:2]).all()

    def test_a_tie_equals_a_win_and_a_loss(self):
        """Under Efron's treatment two tied candidates score as after one ballot each way."""
        tied = plackett_luce(election("r: a > b", "s: a = b"))
        split = plackett_luce(election("r: a > b", "s: a > b", "t: b > a"))

        assert tied.score == pytest.approx(split.score)
        assert tied.std_error == pytest.approx(split.std_error)

    def test_a_tie_scores_between_its_two_orders(self):
        """A ballot that ties b and c scores each between being first and second of the two."""
        tied = plackett_luce(election("r: a > b = c", "s: b > c > a", "t: c > b > a")).score[:, 0]
        strict = plackett_luce(election("r: a > b > c", "s: b > c > a", "t: c > b > a")).score[:, 0]

        assert tied[1] == tied[2]
        assert strict[2] < tied[2] < strict[1]


class TestBatch:
    """A batch equals its sessions, a weight equals a number of ballots."""

    @given(data=st.data())
    def test_both_rules_agree_on_two_candidates(self, data):
        """On strict ballots of two candidates both rules are the same."""
        profile = data.draw(profiles(candidates=(2, 2), sessions=(1, 3), ties=False))

        ours, theirs = bradley_terry(profile), plackett_luce(profile)

        assert ours.score == pytest.approx(theirs.score, abs=1e-9, nan_ok=True)
        assert ours.std_error == pytest.approx(theirs.std_error, abs=1e-9, nan_ok=True)

    @BOTH
    @pytest.mark.parametrize("n_candidates", [4, 14])
    def test_a_batch_scores_each_session_as_alone(self, rule, n_candidates):
        """Sessions of a batch get their own scores, errors and details."""
        rng = np.random.default_rng(8)
        profile = random_profile(rng, (4, n_candidates, 7), ties=True, partial=True)
        profile = profile.replace_weights(rng.integers(0, 3, (4, 7)).astype(float))

        check_sessions_alone(rule, profile, tolerance=1e-9)

    @BOTH
    def test_no_sessions_give_no_scores(self, rule):
        """An empty batch has scores of shape (C, 0)."""
        empty = Profile(np.zeros((2, 3, 0), dtype=np.uint8))

        scores = rule(empty)

        assert scores.score.shape == (3, 0)
        assert scores.details["connected"].shape == (0,)

    @BOTH
    def test_a_weight_of_two_equals_two_ballots(self, rule):
        """Weight 2 gives the same result as casting the ballot twice."""
        heavy = election("r: a > b = c", "s: c > a").replace_weights(np.array([[2.0], [1.0]]))
        twice = election("2 × r: a > b = c", "s: c > a")

        assert rule(heavy).score == pytest.approx(rule(twice).score, abs=1e-9)
        assert rule(heavy).std_error == pytest.approx(rule(twice).std_error, abs=1e-9)

    def test_complete_ballots_give_the_order_of_borda(self):
        """With every pair met equally often, strengths are in the order of wins."""
        profile = random_profile(np.random.default_rng(9), (5, 4, 30), ties=True)
        borda = -profile.ranks.mean(axis=0)

        scores = bradley_terry(profile).score

        ours = np.sign(np.round(scores[:, np.newaxis] - scores, 9))
        assert (ours == np.sign(np.round(borda[:, np.newaxis] - borda, 9))).all()


class TestIntervals:
    """Simulated ballots: Gumbel noise, of which Plackett–Luce is the exact law."""

    @pytest.mark.parametrize("reviewers", [3, 5, 9])
    @pytest.mark.parametrize("rule", [bradley_terry, plackett_luce], ids=str)
    def test_intervals_cover_their_level(self, rule, reviewers):
        """At 3, 5 and 9 ballots of five candidates each interval covers at least 93%."""
        rng = np.random.default_rng(reviewers)
        truth = np.array([1.0, 0.5, 0.0, -0.5, -1.0])[:, np.newaxis]
        utilities = truth + rng.gumbel(size=(reviewers, 5, 3000))
        ranks = (-utilities).argsort(axis=1).argsort(axis=1) + 1.0

        scores = rule(Profile.from_ranks(ranks))
        covered = (np.abs(scores.score - truth) <= 1.96 * scores.std_error).mean(axis=1)

        assert covered.min() >= 0.93

    def test_intervals_without_widening_cover_too_little(self):
        """Without the widening, Bradley–Terry's intervals cover under 90% between equals."""
        rng = np.random.default_rng(0)
        ranks = rng.random((9, 5, 3000)).argsort(axis=1).argsort(axis=1) + 1.0
        batch = bradley_terry(Profile.from_ranks(ranks))
        naive = batch.std_error / np.sqrt((5 + 1) / 3)

        assert (np.abs(batch.score) <= 1.96 * naive).mean() < 0.9
        assert (np.abs(batch.score) <= 1.96 * batch.std_error).mean() >= 0.93
