"""Ratings across sessions: published numbers, other packages, calibrated errors, warnings."""

import math

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.stats.comparisons import FIRST, SECOND, TIE, Comparisons, encode
from witan.core.stats.ratings import MAX_MODELS, rate
from witan.errors import InvalidParameter, NothingToCount, TooLarge, UnsuitableBallots


def from_wins(models: list[str], wins: list[list[int]]) -> Comparisons:
    """One comparison per win, the winner shown first."""
    table = np.array(wins)
    first, second = np.nonzero(table)
    times = table[first, second]
    first, second = np.repeat(first, times), np.repeat(second, times)
    return Comparisons(tuple(models), first, second, np.full(len(first), FIRST))


def random_comparisons(
    rng: np.random.Generator, n: int = 400, n_models: int = 6, n_sessions: int = 40
) -> Comparisons:
    """Comparisons of models of different strength, a tenth of them ties, in random sessions."""
    strength = np.linspace(-1, 1, n_models)
    first = rng.integers(0, n_models, n)
    second = (first + rng.integers(1, n_models, n)) % n_models
    won = rng.random(n) < 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(n) < 0.1, TIE, np.where(won, FIRST, SECOND))
    session = np.sort(rng.integers(0, n_sessions, n))
    return Comparisons(tuple("abcdefghij"[:n_models]), first, second, outcome, session)


def choix_pairs(comparisons: Comparisons) -> list[tuple[int, int]]:
    """Winner and loser, a decided comparison twice, a tie once each way."""
    pairs = []
    for i, j, outcome in zip(
        comparisons.first.tolist(),
        comparisons.second.tolist(),
        comparisons.outcome.tolist(),
        strict=True,
    ):
        pairs += {FIRST: [(i, j)] * 2, SECOND: [(j, i)] * 2, TIE: [(i, j), (j, i)]}[outcome]
    return pairs


class TestPublished:
    """Published numbers are reproduced."""

    def test_the_american_league_of_1987(self):
        """Seven teams, 273 games, ties impossible: coefficients and errors against Baltimore.

        Data: Agresti, Categorical Data Analysis, table of the 1987 season; coefficients and
        standard errors: Turner and Firth, "Bradley-Terry models in R: the BradleyTerry2 package",
        Journal of Statistical Software 48(9), 2012, first baseball model.
        """
        teams = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
        wins = [
            [0, 7, 9, 7, 7, 9, 11],
            [6, 0, 7, 5, 11, 9, 9],
            [4, 6, 0, 7, 7, 8, 12],
            [6, 8, 6, 0, 6, 7, 10],
            [6, 2, 6, 7, 0, 7, 12],
            [4, 4, 5, 6, 6, 0, 6],
            [2, 4, 1, 3, 1, 7, 0],
        ]

        ratings = rate(from_wins(teams, wins), ghost_wins=0)

        against_baltimore = ratings.rating[:6] - ratings.rating[6]
        covariance_error = model_contrasts(ratings.rating, np.array(wins))[:6, 6]
        assert against_baltimore == pytest.approx(
            [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839], abs=5e-5
        )
        assert covariance_error == pytest.approx(
            [0.3433, 0.3396, 0.3367, 0.3359, 0.3339, 0.3319], abs=5e-5
        )
        assert ratings.contrast_error[:6, 6] == pytest.approx(covariance_error, rel=0.06)

    def test_citations_between_journals_of_statistics(self):
        """Four journals, the cited one wins: coefficients and errors against Biometrika.

        Data: Stigler, "Citation patterns in the journals of statistics and probability",
        Statistical Science 9 (1994) 94–108; coefficients and standard errors: Firth,
        "Bradley-Terry models in R", Journal of Statistical Software 12(1), 2005.
        """
        journals = ["Biometrika", "Comm Statist", "JASA", "JRSS-B"]
        cited = [[0, 730, 498, 221], [33, 0, 68, 17], [320, 813, 0, 142], [284, 276, 325, 0]]

        ratings = rate(from_wins(journals, cited), ghost_wins=0)

        errors = model_contrasts(ratings.rating, np.array(cited))[1:, 0]
        assert ratings.rating[1:] - ratings.rating[0] == pytest.approx(
            [-2.94907, -0.47957, 0.26895], abs=5e-6
        )
        assert errors == pytest.approx([0.10255, 0.06059, 0.07083], abs=5e-6)


def model_contrasts(rating: np.ndarray, wins: np.ndarray) -> np.ndarray:
    """Errors of all differences from the information of the counts, written out."""
    chance = 1 / (1 + np.exp(rating - rating[:, np.newaxis]))
    weight = (wins + wins.T) * chance * (1 - chance)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    own = np.diag(inverse)
    return np.sqrt(own[:, np.newaxis] + own - 2 * inverse)


class TestPeers:
    """Other packages agree where they are defined."""

    def test_choix_finds_the_same_ratings(self):
        """`choix.opt_pairwise` and `ilsr_pairwise` agree when the prior is nearly zero."""
        comparisons = random_comparisons(np.random.default_rng(1))

        rating = rate(comparisons, ghost_wins=1e-9).rating

        assert rating == pytest.approx(choix.opt_pairwise(6, choix_pairs(comparisons)), abs=1e-5)
        assert rating == pytest.approx(choix.ilsr_pairwise(6, choix_pairs(comparisons)), abs=1e-5)

    def test_evalica_finds_the_same_ratings_up_to_scale(self):
        """The logarithms of evalica's scores, centred, are ours without a prior."""
        import evalica

        comparisons = random_comparisons(np.random.default_rng(2))
        winners = [
            [evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y][o]
            for o in comparisons.outcome.tolist()
        ]
        names = np.array(comparisons.models)

        theirs = evalica.bradley_terry(
            names[comparisons.first].tolist(),
            names[comparisons.second].tolist(),
            winners,
            tolerance=1e-12,
            limit=10_000,
        ).scores
        logits = np.log([theirs[name] for name in comparisons.models])

        assert rate(comparisons, ghost_wins=0).rating == pytest.approx(
            logits - logits.mean(), abs=1e-5
        )

    def test_unanimous_ballots_where_evalica_sees_no_difference(self):
        """Three ballots a > b > c: evalica scores all three alike, ours are ordered and finite."""
        import evalica

        first, second = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3

        theirs = evalica.bradley_terry(first, second, [evalica.Winner.X] * 9).scores
        ours = rate(encode(first, second, ["first"] * 9))

        assert theirs["a"] == pytest.approx(theirs["c"], rel=1e-3)
        assert ours.rating[0] > ours.rating[1] > ours.rating[2]
        assert np.all(np.isfinite(ours.std_error))
        assert np.all(ours.std_error > 0.5)


def sandwich(comparisons: Comparisons, ratings, groups: list[np.ndarray], factor: float):
    """Errors of the ratings from the definition: one gradient per group of comparisons."""
    n_models = len(comparisons.models)
    theta, ghost_wins = ratings.rating, ratings.ghost_wins
    # The ghost's strength is free: at its best, wins and losses against it balance.
    low, high = theta.min() - 1, theta.max() + 1
    for _ in range(200):
        ghost = (low + high) / 2
        low, high = (ghost, high) if np.tanh((theta - ghost) / 2).sum() > 0 else (low, ghost)
    own = 1 / (1 + np.exp(ghost - theta))
    haunted = np.diag(2 * ghost_wins * own * (1 - own))
    information, squares = haunted.copy(), haunted.copy()
    for rows in groups:
        gradient = np.zeros(n_models)
        for n in rows:
            x = np.zeros(n_models)
            x[comparisons.first[n]], x[comparisons.second[n]] = 1, -1
            chance = 1 / (1 + math.exp(-x @ theta))
            result = {FIRST: 1.0, SECOND: 0.0, TIE: 0.5}[int(comparisons.outcome[n])]
            gradient += (result - chance) * x
            information += chance * (1 - chance) * np.outer(x, x)
        squares += factor * np.outer(gradient, gradient)
    centring = np.eye(n_models) - 1 / n_models
    inverse = np.linalg.inv(information)
    model = centring @ inverse @ centring
    robust = centring @ inverse @ squares @ inverse @ centring
    return np.sqrt(np.diag(model)), np.sqrt(np.diag(robust))


class TestErrors:
    """The analytic errors equal their definition, comparison by comparison."""

    def test_robust_errors_are_the_sandwich_per_comparison(self):
        """One gradient per comparison, squared and summed."""
        comparisons = random_comparisons(np.random.default_rng(3))
        ratings = rate(comparisons, cluster=False)

        _, robust = sandwich(comparisons, ratings, [np.array([n]) for n in range(400)], 1.0)

        assert ratings.std_error == pytest.approx(robust, rel=1e-7)

    @pytest.mark.parametrize("shuffled", [False, True])
    def test_clustered_errors_are_the_sandwich_per_session(self, shuffled):
        """One gradient per session, squared, summed and scaled by G / (G − 1), in any order.

        G = n²/Σ n_s² is the number of sessions of equal size.
        """
        rng = np.random.default_rng(4)
        sorted_ = random_comparisons(rng)
        order = rng.permutation(400) if shuffled else np.arange(400)
        comparisons = Comparisons(
            sorted_.models,
            sorted_.first[order],
            sorted_.second[order],
            sorted_.outcome[order],
            sorted_.session[order],
        )
        ratings = rate(comparisons)

        groups = [np.flatnonzero(comparisons.session == s) for s in np.unique(comparisons.session)]
        n_equal = 400**2 / sum(len(group) ** 2 for group in groups)
        _, clustered = sandwich(comparisons, ratings, groups, n_equal / (n_equal - 1))

        assert ratings.n_sessions == len(groups)
        assert ratings.errors == "clustered"
        assert ratings.std_error == pytest.approx(clustered, rel=1e-7)

    def test_a_session_per_comparison_is_the_robust_error(self):
        """Where every comparison is its own session, only the factor G / (G − 1) is left."""
        comparisons = random_comparisons(np.random.default_rng(6), n=900)
        alone = Comparisons(
            comparisons.models,
            comparisons.first,
            comparisons.second,
            comparisons.outcome,
            np.arange(900),
        )

        clustered, robust = rate(alone), rate(alone, cluster=False)

        assert (clustered.errors, robust.errors) == ("clustered", "robust")
        assert clustered.std_error == pytest.approx(robust.std_error, rel=1e-3)

    def test_intervals_are_students_with_sessions_of_equal_size_less_one(self):
        """The half-width is Student's quantile on n²/Σ n_s² − 1 degrees times the error."""
        from scipy.stats import norm, t

        comparisons = random_comparisons(np.random.default_rng(7), n_sessions=9)
        sizes = np.bincount(comparisons.session)

        clustered = rate(comparisons, level=0.9)
        robust = rate(comparisons, level=0.9, cluster=False)

        assert clustered.high - clustered.rating == pytest.approx(
            t.ppf(0.95, sizes.sum() ** 2 / (sizes**2).sum() - 1) * clustered.std_error
        )
        assert robust.rating - robust.low == pytest.approx(norm.ppf(0.95) * robust.std_error)
        assert robust.errors == "robust"

    @pytest.mark.parametrize(
        "sizes", [[10] * 30, [100, 100, *[3] * 28], [90, *[3] * 30]], ids=["equal", "two", "one"]
    )
    def test_intervals_cover_if_few_sessions_have_most_comparisons(self, sizes):
        """Three equal models, whose strengths vary between sessions."""
        rng = np.random.default_rng(21)
        session = np.repeat(np.arange(len(sizes)), sizes)
        hits = 0
        for _ in range(300):
            strength = rng.normal(0, 0.8, (len(sizes), 3))
            first = rng.integers(3, size=len(session))
            second = (first + rng.integers(1, 3, size=len(session))) % 3
            gap = strength[session, first] - strength[session, second]
            wins = rng.random(len(session)) < 1 / (1 + np.exp(-gap))
            outcome = np.where(wins, FIRST, SECOND)
            ratings = rate(Comparisons(("a", "b", "c"), first, second, outcome, session))
            hits += ((ratings.low <= 0) & (ratings.high >= 0)).mean()

        assert hits / 300 >= 0.92

    def test_one_session_with_nearly_all_comparisons_gives_no_interval(self):
        """How ratings vary between sessions is then unknown, and a warning says so."""
        ratings = rate(
            Comparisons(
                ("a", "b"),
                np.zeros(100, dtype=int),
                np.ones(100, dtype=int),
                np.where(np.arange(100) % 3, FIRST, SECOND),
                np.maximum(np.arange(100) - 90, 0),
            )
        )

        assert np.isnan(ratings.low).all()
        assert np.isnan(ratings.std_error).all()
        assert any("nearly all comparisons are of one session" in w for w in ratings.warnings)

    def test_ranks_are_bounded_by_significant_contrasts(self):
        """A rank interval counts who is significantly above and below, pair by pair."""
        ratings = rate(random_comparisons(np.random.default_rng(8), n=2000))
        p = ratings.p_beats()
        above = (np.nan_to_num(p, nan=0.5) > 0.975).sum(axis=0)
        below = (np.nan_to_num(p, nan=0.5) > 0.975).sum(axis=1)

        assert ratings.rank_low.tolist() == (1 + above).tolist()
        assert ratings.rank_high.tolist() == (6 - below).tolist()
        assert (ratings.rank_low <= ratings.rank_high).all()
        assert ratings.rank_high[5] < 6

    def test_confidence_and_win_probability_differ(self):
        """Twice the data raises the confidence in the better model, and no win probability."""
        once = random_comparisons(np.random.default_rng(9), n=3000, n_sessions=300)
        twice = Comparisons(
            once.models,
            np.tile(once.first, 2),
            np.tile(once.second, 2),
            np.tile(once.outcome, 2),
            np.concatenate([once.session, once.session + 300]),
        )

        sure, surer = rate(once), rate(twice)

        assert surer.p_beats()[4, 3] > sure.p_beats()[4, 3] > 0.5
        assert surer.p_wins()[4, 3] == pytest.approx(sure.p_wins()[4, 3], abs=0.01)
        assert sure.p_wins()[4, 3] + sure.p_wins()[3, 4] == pytest.approx(1)


class TestCoverage:
    """Clustered intervals hold their level where comparisons of a session are correlated."""

    @pytest.mark.slow
    def test_clustered_intervals_cover_and_independent_ones_do_not(self):
        """95% intervals cover 93–97% clustered by session, and under 88% per comparison.

        700 histories of 80 sessions: four of six models answer a question, each answer better or
        worse than its model by a normal of deviation 0.8 logits, and five reviewers compare all
        pairs. The truth is the Bradley–Terry fit to the expected win shares (Gauss–Hermite). Six
        correlated coverages a history bound the Monte-Carlo error by √(.05·.95/700) = 0.8 points,
        and two of these widen the bounds.
        """
        rng = np.random.default_rng(20)
        strength = np.array([-0.9, -0.4, 0.0, 0.1, 0.4, 0.8])
        truth = true_ratings(strength, spread=0.8)
        covered = {"clustered": [], "robust": []}

        for _ in range(700):
            history = one_history(rng, strength, spread=0.8)
            for errors, inside in covered.items():
                ratings = rate(history, cluster=errors == "clustered")
                inside.append((ratings.low <= truth) & (truth <= ratings.high))

        assert 0.93 - 0.016 <= np.mean(covered["clustered"]) <= 0.97 + 0.016
        assert np.mean(covered["robust"]) < 0.88


def true_ratings(strength: np.ndarray, spread: float) -> np.ndarray:
    """The ratings of infinitely many sessions: the fit to expected win shares."""
    node, weight = np.polynomial.hermite_e.hermegauss(60)
    gap = strength[:, np.newaxis] - strength
    shares = (
        1 / (1 + np.exp(-(gap[..., np.newaxis] + math.sqrt(2) * spread * node))) @ weight
    ) / weight.sum()
    np.fill_diagonal(shares, 0)
    theta = np.zeros(len(strength))
    for _ in range(2000):
        chance = 1 / (1 + np.exp(theta - theta[:, np.newaxis]))
        np.fill_diagonal(chance, 0)
        theta += 0.5 * (shares - chance).sum(axis=1)
        theta -= theta.mean()
    return theta


def one_history(rng: np.random.Generator, strength: np.ndarray, spread: float) -> Comparisons:
    """80 sessions: four models, answers of varying luck, five reviewers, all pairs."""
    n_sessions, n_reviewers = 80, 5
    seats = np.argsort(rng.random((n_sessions, 6)), axis=1)[:, :4]
    quality = strength[seats] + spread * rng.normal(size=seats.shape)
    i, j = np.triu_indices(4, 1)
    chance = 1 / (1 + np.exp(quality[:, j] - quality[:, i]))
    won = rng.random((n_reviewers, *chance.shape)) < chance
    shape = won.shape
    return Comparisons(
        tuple("abcdef"),
        np.broadcast_to(seats[:, i], shape).transpose(1, 0, 2).ravel(),
        np.broadcast_to(seats[:, j], shape).transpose(1, 0, 2).ravel(),
        np.where(won, FIRST, SECOND).transpose(1, 0, 2).ravel(),
        np.repeat(np.arange(n_sessions), n_reviewers * len(i)),
    )


class TestWarnings:
    """Undefined and weak results are reported."""

    def test_disconnected_groups_are_named_and_not_compared(self):
        """a, b and c, d never met: a warning names both groups, and p_beats across is NaN."""
        outcome = ["first", "second", "first", "second", "first", "second", "tie"]

        ratings = rate(encode(list("aabbccd"), list("bbaaddc"), outcome))

        assert ratings.group.any()
        assert any("a, b" in line and "c, d" in line for line in ratings.warnings)
        assert np.isnan(ratings.p_beats()[:2, 2:]).all()
        assert np.isnan(ratings.p_wins()[:2, 2:]).all()
        assert np.isfinite(ratings.p_beats()[0, 1])
        assert ratings.rating[:2].sum() == pytest.approx(0, abs=1e-12)
        assert ratings.rating[2:].sum() == pytest.approx(0, abs=1e-12)
        assert ratings.rank_low.tolist() == [1] * 4
        assert ratings.rank_high.tolist() == [4] * 4

    def test_undefeated_and_winless_models_are_named(self):
        """A never lost, d never won: both are named with the prior that keeps them finite."""
        ratings = rate(encode(list("aabcb"), list("bccbd"), ["first"] * 5))

        assert any(line.startswith("a never lost") for line in ratings.warnings)
        assert any(line.startswith("d never won") for line in ratings.warnings)
        assert any("prior of 0.5" in line for line in ratings.warnings)
        assert np.isfinite(ratings.rating).all()
        assert (ratings.high - ratings.low > 1).all()

    def test_a_group_that_never_lost_is_named_together(self):
        """A and b beat each other and everyone else: they are undefeated as a group."""
        ratings = rate(encode(list("ababcd"), list("baccdc"), ["first"] * 6))

        assert any(line.startswith("a, b never lost") for line in ratings.warnings)
        assert any(line.startswith("c, d never won") for line in ratings.warnings)

    def test_well_connected_comparisons_give_no_warning(self):
        """There are enough sessions, and every model has wins and losses."""
        ratings = rate(random_comparisons(np.random.default_rng(10), n=2000))

        assert not ratings.group.any()
        assert ratings.warnings == ()

    @pytest.mark.parametrize(
        ("first", "second"),
        [("aab", "bcc"), ("aabbccdd", "bbaaddcc")],
        ids=["undefeated", "disconnected"],
    )
    def test_without_a_prior_and_a_maximum_rating_fails(self, first, second):
        """The error says what to do."""
        outcome = ["first"] * len(first)

        with pytest.raises(UnsuitableBallots, match="ghost_wins above 0"):
            rate(encode(list(first), list(second), outcome), ghost_wins=0)

    def test_one_session_has_unknown_errors(self):
        """Clustered by the only session there is, errors are NaN and a warning says why."""
        ratings = rate(encode(list("aab"), list("bcc"), ["first"] * 3, session=["s"] * 3))

        assert np.isnan(ratings.std_error).all()
        assert any("one session" in line for line in ratings.warnings)
        assert ratings.rank_high.tolist() == [3, 3, 3]

    def test_few_and_missing_sessions_give_warnings(self):
        """Fewer sessions than models, or none, weaken the errors."""
        few = rate(encode(list("aab"), list("bcc"), ["tie"] * 3, session=["s", "t", "t"]))
        none = rate(encode(list("aab"), list("bcc"), ["tie"] * 3))

        assert any("2 sessions are few for 3 models" in line for line in few.warnings)
        assert any("without sessions" in line for line in none.warnings)

    def test_identical_sessions_keep_the_errors_of_the_model(self):
        """Two identical sessions have the errors of the information alone."""
        comparisons = encode(list("ab" * 2), list("ba" * 2), ["first"] * 4, list("sstt"))
        ratings = rate(comparisons)

        model, _ = sandwich(comparisons, ratings, [np.arange(4)], 1.0)

        assert ratings.widened
        assert ratings.std_error == pytest.approx(model, rel=1e-7)
        assert (ratings.std_error > 0.3).all()

    def test_a_model_without_comparisons_is_not_rated(self):
        """It has NaN and a warning."""
        ratings = rate(
            Comparisons(("a", "b", "c"), np.array([0, 1]), np.array([1, 0]), np.array([1, 1]))
        )

        assert np.isnan(ratings.rating[2])
        assert np.isnan(ratings.std_error[2])
        assert any("c met nobody" in line for line in ratings.warnings)
        assert ratings.rating[:2].tolist() == pytest.approx([0, 0], abs=1e-12)

    def test_long_lists_of_names_are_cut(self):
        """A warning names a few models and counts the rest."""
        names = [f"m{k:02d}" for k in range(13)]
        circle = [*names[1:], names[0]]

        ratings = rate(encode(names * 2, circle + ["king"] * 13, ["first"] * 13 + ["second"] * 13))

        assert any(
            all(fact in line for fact in ("m00, m01, m02", "10 more never won"))
            for line in ratings.warnings
        )

    def test_nothing_to_rate_is_an_error(self):
        """No comparisons, no ratings."""
        with pytest.raises(NothingToCount):
            rate(encode([], [], []))

    def test_too_many_models_are_refused(self):
        """A list beyond the stated limit is refused before memory is asked for."""
        names = tuple(str(k) for k in range(MAX_MODELS + 1))
        one = np.array([0])

        with pytest.raises(TooLarge, match="models"):
            rate(Comparisons(names, one, one + 1, one))

    @pytest.mark.parametrize(
        "options",
        [
            {"ghost_wins": -0.1},
            {"ghost_wins": math.nan},
            {"level": 1.0},
            {"level": 0.0},
            {"ghost_wins": True},
        ],
    )
    def test_invalid_options_are_refused(self, options):
        """The error names the option."""
        with pytest.raises(InvalidParameter, match=next(iter(options))):
            rate(encode(["a"], ["b"], ["tie"]), **options)


class TestSymmetry:
    """Names and sides do not matter."""

    @given(seed=st.integers(0, 10_000))
    def test_renaming_and_swapping_sides_change_nothing(self, seed):
        """Permuted codes permute the ratings; the side shown first does not matter."""
        rng = np.random.default_rng(seed)
        one = random_comparisons(rng, n=200)
        order = rng.permutation(6)
        swapped = np.array([TIE, SECOND, FIRST])[one.outcome]
        other = Comparisons(one.models, order[one.second], order[one.first], swapped, one.session)

        ours, theirs = rate(one), rate(other)

        assert theirs.rating[order] == pytest.approx(ours.rating, abs=1e-9)
        assert theirs.std_error[order] == pytest.approx(ours.std_error, abs=1e-9)
        assert theirs.wins[order].tolist() == ours.wins.tolist()
