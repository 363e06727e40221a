"""Ratings from sums equal ratings from comparisons, with errors as good."""

import time

import numpy as np
import pytest

from leaderboard_sums import LETTERS, NAMES, code, matchup_sums, shuffled, split
from witan.core.stats.comparisons import FIRST, SECOND, TIE, Comparisons, encode
from witan.core.stats.ratings import rate, rate_sums
from witan.core.stats.sums import MatchupSums
from witan.errors import InvalidParameter, NothingToCount


def history(rng: np.random.Generator, n_sessions: int = 1_500, n_models: int = 8) -> Comparisons:
    """Four seats a session, answers of random quality, five reviewers, a tenth of ties."""
    seats = np.argsort(rng.random((n_sessions, n_models)), axis=1)[:, :4]
    quality = np.linspace(-1, 1, n_models)[seats] + 0.8 * rng.normal(size=seats.shape)
    i, j = np.triu_indices(4, 1)
    chance = 1 / (1 + np.exp(quality[:, j] - quality[:, i]))
    luck = rng.random((5, *chance.shape))
    outcome = np.where(luck < chance, FIRST, SECOND)
    outcome = np.where(rng.random(outcome.shape) < 0.1, TIE, outcome)
    shape = outcome.shape
    return Comparisons(
        tuple(LETTERS[:n_models]),
        np.broadcast_to(seats[:, i], shape).transpose(1, 0, 2).ravel(),
        np.broadcast_to(seats[:, j], shape).transpose(1, 0, 2).ravel(),
        outcome.transpose(1, 0, 2).ravel(),
        np.repeat(np.arange(n_sessions), 5 * len(i)),
    )


def summed(comparisons: Comparisons, n_buckets: int = 256) -> MatchupSums:
    """One row per bucket and ordered pair."""
    m = len(comparisons.models)
    bucket = np.random.default_rng(5).integers(0, n_buckets, comparisons.session.max() + 1)
    cell = (bucket[comparisons.session] * m + comparisons.first) * m + comparisons.second
    size = n_buckets * m * m
    table = [np.bincount(cell[comparisons.outcome == o], minlength=size) for o in (1, 2, 0)]
    rows = np.flatnonzero(sum(table))
    codes = np.array([code(model) for model in comparisons.models])
    return MatchupSums(
        rows // (m * m),
        codes[rows // m % m],
        codes[rows % m],
        *(counts[rows].astype(np.float64) for counts in table),
    )


class TestAgainstTheComparisons:
    """`rate` on the same comparisons is the reference."""

    def test_strengths_are_the_same_and_errors_within_a_tenth(self):
        """1,500 sessions in 256 buckets: equal ratings, errors like those clustered by session."""
        comparisons = history(np.random.default_rng(1))

        exact, ours = rate(comparisons), rate_sums(summed(comparisons), NAMES)

        assert ours.models == exact.models
        assert ours.rating == pytest.approx(exact.rating, abs=1e-9)
        assert ours.std_error == pytest.approx(exact.std_error, rel=0.10)
        assert np.mean(ours.std_error / exact.std_error) == pytest.approx(1, abs=0.04)
        assert (ours.errors, ours.n_clusters, ours.n_sessions) == ("clustered", 256, None)
        assert ours.n_comparisons == len(comparisons)

    def test_one_session_per_bucket_equals_rate(self):
        """Errors, ranks and contrasts are exactly those of `rate`."""
        comparisons = history(np.random.default_rng(2), n_sessions=200)
        rows = [
            (int(s), LETTERS[i], LETTERS[j], float(o == FIRST), float(o == SECOND), float(o == TIE))
            for s, i, j, o in zip(
                comparisons.session,
                comparisons.first,
                comparisons.second,
                comparisons.outcome,
                strict=True,
            )
        ]

        exact, ours = rate(comparisons), rate_sums(matchup_sums(rows), NAMES)

        assert ours.std_error == pytest.approx(exact.std_error, rel=1e-9)
        assert ours.contrast_error == pytest.approx(exact.contrast_error, rel=1e-9, nan_ok=True)
        assert ours.p_beats() == pytest.approx(exact.p_beats(), rel=1e-9, nan_ok=True)
        assert ours.rank_low.tolist() == exact.rank_low.tolist()
        assert ours.rank_high.tolist() == exact.rank_high.tolist()
        assert ours.warnings == exact.warnings

    @pytest.mark.slow
    def test_intervals_cover_their_level(self):
        """120 sessions in 256 buckets, 300 histories: 93 to 97 of 100 contrasts are covered.

        The truth is what 60,000 sessions give. Eight correlated coverages a history bound the
        Monte-Carlo error by √(.05·.95/300) = 1.3 points.
        """
        rng = np.random.default_rng(3)
        truth = rate(history(rng, n_sessions=60_000, n_models=5), cluster=False).rating
        covered = []

        for _ in range(300):
            ours = rate_sums(summed(history(rng, n_sessions=120, n_models=5)), NAMES)
            covered.append((ours.low <= truth) & (truth <= ours.high))

        assert 0.93 - 0.013 <= np.mean(covered) <= 0.97 + 0.013

    def test_twenty_models_take_at_most_twenty_milliseconds(self):
        """A table of 256 buckets and all pairs of twenty models takes 20 ms of CPU time."""
        rng = np.random.default_rng(4)
        i, j = np.triu_indices(20, 1)
        codes = np.array([code(letter) for letter in LETTERS])
        counts = rng.poisson(20, (3, 256 * len(i))).astype(np.float64)
        bucket = np.repeat(np.arange(256), len(i))
        sums = MatchupSums(bucket, np.tile(codes[i], 256), np.tile(codes[j], 256), *counts)
        rate_sums(sums, NAMES)
        seconds = []

        while not seconds or (seconds[-1] >= 0.020 and len(seconds) < 50):
            start = time.process_time()  # whatever else the machine does meanwhile
            rate_sums(sums, NAMES)
            seconds.append(time.process_time() - start)

        assert min(seconds) < 0.020


class TestRows:
    """Split, order and names of rows do not matter."""

    def test_splitting_and_reordering_rows_changes_nothing(self):
        """Keys in several rows, in any order and either orientation, give the same ratings."""
        sums = summed(history(np.random.default_rng(6), n_sessions=300))
        swapped = MatchupSums(
            sums.bucket, sums.second, sums.first, sums.losses, sums.wins, sums.ties
        )
        expected = rate_sums(sums, NAMES)

        for other in (
            shuffled(split(sums, {"bucket", "first", "second"}), np.random.default_rng(7)),
            swapped,
        ):
            again = rate_sums(other, NAMES)
            assert again.rating == pytest.approx(expected.rating, abs=1e-9)
            assert again.std_error == pytest.approx(expected.std_error, rel=1e-9)

    def test_ties_count_half_each_way(self):
        """Two ties equal a win each."""
        ties = rate_sums(matchup_sums([(0, "a", "b", 3, 1, 2), (1, "a", "b", 1, 1, 0)]), NAMES)
        even = rate_sums(matchup_sums([(0, "a", "b", 4, 2, 0), (1, "a", "b", 1, 1, 0)]), NAMES)

        assert ties.rating == pytest.approx(even.rating)
        assert ties.ties.tolist() == [2, 2]

    def test_hand_count_of_two_models(self):
        """Two models, 6 points to 2, half a win and a loss against the ghost each.

        With strengths ±h the score equation is 6 − 8σ(2h) − ½·tanh(h/2) = 0.
        """
        result = rate_sums(matchup_sums([(0, "a", "b", 5, 1, 2), (1, "b", "a", 0, 0, 0)]), NAMES)

        h = result.rating[0]
        assert 6 - 8 / (1 + np.exp(-2 * h)) - 0.5 * np.tanh(h / 2) == pytest.approx(0, abs=1e-9)

    def test_rows_of_weight_zero_are_no_comparisons(self):
        """A pair without ballots, and a model against itself, change nothing."""
        rows = [(0, "a", "b", 2, 1, 0), (1, "a", "b", 1, 1, 0)]
        more = [*rows, (2, "a", "c", 0, 0, 0), (3, "b", "b", 5, 0, 0)]

        assert rate_sums(matchup_sums(more), NAMES).models == ("a", "b")
        assert rate_sums(matchup_sums(more), NAMES).n_clusters == 2


class TestWarnings:
    """Undefined results are reported."""

    def test_one_bucket_has_unknown_errors(self):
        """Ratings are defined, errors are NaN, and a warning gives the reason."""
        result = rate_sums(matchup_sums([(3, "a", "b", 2, 1, 0)]), NAMES)

        assert np.isfinite(result.rating).all()
        assert np.isnan(result.std_error).all()
        assert any("one group of sessions" in line for line in result.warnings)

    def test_few_buckets_and_disconnected_groups_are_reported(self):
        """Warnings name the groups that never met and the number of buckets."""
        rows = [(b, i, j, 2, 1, 0) for b in (0, 1) for i, j in ("ab", "cd")]

        result = rate_sums(matchup_sums(rows), NAMES)

        assert any("(a, b), (c, d)" in line for line in result.warnings)
        assert any(
            all(fact in line for fact in ("2 groups of sessions", "4 models"))
            for line in result.warnings
        )
        assert np.isnan(result.p_beats()[0, 2])

    @pytest.mark.parametrize("rows", [[], [(0, "a", "b", 0.0, 0.0, 0.0)]], ids=["none", "empty"])
    def test_no_comparison_is_an_error(self, rows):
        """There is nothing to rate by."""
        with pytest.raises(NothingToCount, match="no comparisons"):
            rate_sums(matchup_sums(rows), NAMES)

    def test_invalid_options_are_refused(self):
        """The error names the option."""
        sums = matchup_sums([(0, "a", "b", 1, 0, 0)])

        with pytest.raises(InvalidParameter, match="ghost_wins"):
            rate_sums(sums, NAMES, ghost_wins=-1)
        with pytest.raises(InvalidParameter, match="level"):
            rate_sums(sums, NAMES, level=1)

    def test_a_lone_comparison_agrees_with_rate(self):
        """The smallest possible history gives the result of `rate`."""
        ours = rate_sums(matchup_sums([(0, "a", "b", 1, 0, 0)]), NAMES)

        assert ours.rating == pytest.approx(rate(encode(["a"], ["b"], ["first"])).rating)
