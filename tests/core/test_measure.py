"""A measured number has an interval or the reason why it has none."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import beta, norm, t

from witan.core.stats.measures import (
    Count,
    centred_correlation,
    compare_means,
    correlation,
    divide_means,
    estimate_measure,
    jackknife,
    join_buckets,
    krippendorff_alpha,
    lack_data,
    mean_correlation,
    per_bucket,
    rate,
    rate_by_session,
    ratio,
)


def side(rng, n_buckets):
    """Hits and cases of one side, with a share that varies between buckets."""
    share = np.clip(rng.normal(0.7, 0.15, n_buckets), 0.02, 0.98)
    return np.arange(n_buckets), (
        rng.binomial(15, share).astype(float),
        np.full(n_buckets, 15.0),
    )


def difference(rng, mine, people):
    """A difference of two sides in these numbers of buckets."""
    sums = join_buckets(side(rng, mine), side(rng, people))
    return compare_means(sums, Count(15 * people, "pairs", 30), "difference of shares", 0.95)


class TestTwoSides:
    """The error of a difference reflects the side with fewer data."""

    @pytest.mark.parametrize(
        "people", [*(pytest.param(n, marks=pytest.mark.slow) for n in (5, 8, 200)), 20]
    )
    def test_intervals_cover_their_level(self, people):
        """Reviewer in 200 buckets, people in fewer: 93 to 97.5 of 100 at nominal 95.

        2,000 histories bound the Monte-Carlo error by 0.5 points.
        """
        rng = np.random.default_rng(people)

        result = [difference(rng, 200, people).interval for _ in range(2_000)]

        assert 0.93 <= np.mean([i.low <= 0 <= i.high for i in result]) <= 0.975

    @pytest.mark.parametrize("people", [2, 4])
    def test_a_side_in_under_five_buckets_has_no_interval(self, people):
        """There is a value, and the reason why its error is unknown."""
        result = difference(np.random.default_rng(0), 200, people)

        assert result.value is not None
        assert result.interval is None
        assert all(fact in result.why for fact in ("error unknown", "fewer than 5 groups"))

    def test_either_side_may_have_fewer_buckets(self):
        """The order of the two does not matter."""
        assert difference(np.random.default_rng(1), 4, 200).interval is None


class TestNoSpread:
    """Constant data do not show their variance."""

    def test_without_spread_there_is_no_interval(self):
        """Twenty buckets of one mean: the value is known, its error is not, and it says so."""
        sums = np.stack([np.full(20, 1.3), np.full(20, 2.0)], axis=1)

        result = estimate_measure(sums, ratio, Count(40, "grades", 30), "grade points", level=0.95)

        assert result.value == pytest.approx(0.65)
        assert result.interval is None
        assert "error unknown" in result.why

    def test_a_rate_without_spread_has_an_interval(self):
        """All of a hundred cases: the lower end is that of twenty independent ones."""
        result = rate(np.full((20, 2), 5.0), Count(100, "cases", 30), level=0.95)

        assert result.interval.high == 1
        assert 0.8 < result.interval.low < 0.95

    def test_negatively_correlated_cases_narrow_the_interval(self):
        """Of ten cases a bucket has 4, 5 or 6 hits: narrower by far than the binomial interval.

        Where every bucket has 5, nothing is known of the spread, and cases count as independent.
        """
        count = Count(300, "cases", 30)
        near, same = (
            np.stack([np.array(hits * 10, dtype=float), np.full(30, 10.0)], axis=1)
            for hits in ([4, 5, 6], [5, 5, 5])
        )

        def width(sums, **rest):
            interval = rate(sums, count, level=0.95, **rest).interval
            return interval.high - interval.low

        # The error of a mean of 30 shares that deviate by .083 is .0152; t is 2.045.
        assert width(near, opposed_pairs=True) == pytest.approx(2 * 2.045 * 0.0152, rel=0.03)
        assert (
            width(near)
            == pytest.approx(width(same))
            == pytest.approx(width(same, opposed_pairs=True))
        )


class TestUnequalSessions:
    """Two of thirty sessions have most of the cases."""

    SIZES = np.array([100, 100, *[3] * 28])

    def histories(self, n=300):
        rng = np.random.default_rng(4)
        shares = rng.beta(0.6, 0.4, (n, len(self.SIZES)))
        hits = rng.binomial(self.SIZES, shares).astype(float)
        return [np.stack([row, self.SIZES.astype(float)], axis=1) for row in hits]

    @pytest.mark.parametrize(
        ("infer", "least"), [(rate, 0.93), (partial(rate_by_session, likeness=0.5), 0.9)]
    )
    def test_intervals_of_shares_cover(self, infer, least):
        """The spread of two sessions says little, which the degrees of freedom reflect."""
        count = Count(284, "cases", 30)

        result = [infer(sums, count, level=0.95).interval for sums in self.histories()]

        assert np.mean([i.low <= 0.6 <= i.high for i in result]) >= least

    def test_intervals_of_means_cover(self):
        """The mean of grades has the degrees of a rate."""
        rng = np.random.default_rng(5)
        spread = np.sqrt(0.1 + 0.9 / self.SIZES)
        grades = 6 + spread * rng.normal(size=(500, len(self.SIZES)))
        sums = [np.stack([row * self.SIZES, self.SIZES], axis=1) for row in grades]
        count = Count(284, "grades", 30)

        result = [estimate_measure(one, ratio, count, "grade", level=0.95).interval for one in sums]

        assert np.mean([i.low <= 6 <= i.high for i in result]) >= 0.93

    @pytest.mark.parametrize(
        "sizes", [SIZES, np.array([372, *[1] * 28])], ids=["two large", "one large"]
    )
    @pytest.mark.parametrize("shared", [True, False], ids=["same sessions", "other sessions"])
    @pytest.mark.parametrize("infer", [compare_means, divide_means])
    def test_intervals_of_two_means_cover(self, infer, shared, sizes):
        """Whether both sides are in the same sessions or not, and however few have most cases."""
        rng = np.random.default_rng(6)
        n_sessions, n = len(sizes), np.concatenate([sizes, sizes]).astype(float)
        session = np.tile(np.arange(n_sessions), 2) if shared else np.arange(2 * n_sessions)
        second = np.arange(2 * n_sessions) >= n_sessions
        truth, hits = (0.0 if infer is compare_means else 1.0), 0
        rest = ("grade points", 0.95) if infer is compare_means else (0.95,)
        for _ in range(300):
            means = 6 + np.sqrt(0.5 + 0.5 / n) * rng.normal(size=len(n))
            totals = [np.where(side, column, 0.0) for side in (~second, second)
                      for column in (means * n, n)]  # fmt: skip
            sums = per_bucket(session, *totals)
            interval = infer(sums, Count(284, "grades", 30), *rest).interval
            hits += interval.low <= truth <= interval.high

        assert hits / 300 >= 0.92

    @pytest.mark.parametrize("statistic", [correlation, centred_correlation])
    def test_intervals_of_correlations_cover(self, statistic):
        """Slopes vary between sessions, and two of them have most of the grades."""
        rng = np.random.default_rng(8)
        session, hits = np.repeat(np.arange(len(self.SIZES)), self.SIZES), 0
        truth = 0.5 / np.sqrt(0.5**2 + 0.3**2 + 1)
        for _ in range(500):
            slope = 0.5 + 0.3 * rng.normal(size=len(self.SIZES))
            x = rng.normal(size=len(session))
            y = slope[session] * x + rng.normal(size=len(session))
            columns = [x * x, x * y, y * y]
            if statistic is correlation:
                columns = [np.ones_like(x), x, y, x * x, y * y, x * y]
            result = estimate_measure(
                per_bucket(session, *columns), statistic, Count(284, "grades", 30), "correlation",
                level=0.95, link="fisher",
            )  # fmt: skip
            hits += result.interval.low <= truth <= result.interval.high

        assert hits / 500 >= 0.92

    @pytest.mark.parametrize(
        "sizes", [SIZES, np.array([372, *[1] * 28])], ids=["two large", "one large"]
    )
    @pytest.mark.parametrize("statistic", [krippendorff_alpha, mean_correlation])
    def test_intervals_of_agreement_cover(self, statistic, sizes):
        """How much reviewers agree varies between sessions, as do the answers graded there."""
        rng = np.random.default_rng(9)
        session, hits = np.repeat(np.arange(len(sizes)), sizes), 0
        pairs = [(0, 1), (0, 2), (1, 2)]
        # A gamma variable of mean 1 and variance 1/4 has a mean square of 5/4.
        truth = 1 / (1 + 5 / 4)
        for _ in range(500):
            shared = np.sqrt(0.3) * rng.normal(size=len(sizes))[session]
            shared += np.sqrt(0.7) * rng.normal(size=len(session))
            noise = rng.gamma(4, 1 / 4, len(sizes))[session]
            x = shared[:, np.newaxis] + noise[:, np.newaxis] * rng.normal(size=(len(session), 3))
            total, squares = x.sum(axis=1), (x**2).sum(axis=1)
            one = np.ones(len(session))
            if statistic is krippendorff_alpha:
                columns = [3 * one, total, squares, (3 * squares - total**2) / 2]
            else:
                columns = [np.stack([one, x[:, i], x[:, j], x[:, i] ** 2, x[:, j] ** 2,
                                     x[:, i] * x[:, j]], axis=1) for i, j in pairs]  # fmt: skip
            sums = np.zeros((len(sizes), *np.stack(columns, axis=1).shape[1:]))
            np.add.at(sums, session, np.stack(columns, axis=1))
            count = Count(len(session), "candidates", 30)
            interval = estimate_measure(sums, statistic, count, "correlation", level=0.95).interval
            hits += interval.low <= truth <= interval.high

        assert hits / 500 >= 0.92

    def test_equal_sessions_keep_their_degrees(self):
        """Twenty sessions of five cases have nineteen."""
        hits = np.array([1.0, 4.0] * 10)
        sums = np.stack([hits, np.full(20, 5.0)], axis=1)
        [variance] = jackknife(sums, lambda s: ratio(s)[:, np.newaxis]).std_error ** 2
        n = 0.25 / variance * (norm.ppf(0.975) / t.ppf(0.975, 19)) ** 2

        interval = rate(sums, Count(100, "cases", 30), level=0.95).interval

        assert interval.low == pytest.approx(beta.ppf(0.025, n / 2 + 0.5, n / 2 + 0.5))


class TestDifferenceBySession:
    """A share minus the expected one, of fifteen sessions with a hundred draws each."""

    def interval(self, share, expected):
        rng = np.random.default_rng(2)
        cases = np.full(15, 100.0)
        hits = np.rint(cases * np.clip(share + 0.05 * rng.normal(size=15), 0, 1))
        count = Count(15, "sessions", 2)
        sums = np.stack([hits, cases], axis=1)
        measure = rate_by_session(sums, count, level=0.95, likeness=0.5, expected=expected * cases)
        gaps = hits / 100 - expected
        return measure.interval, gaps.mean(), gaps.std(ddof=1) / np.sqrt(15)

    def test_sessions_that_agree_make_it_narrow(self):
        """With both results in many sessions it is Student's t on 14 degrees of freedom."""
        interval, mean, error = self.interval(0.7, 0.67)

        reach = t.ppf(0.975, 14) * error
        assert (interval.low, interval.high) == pytest.approx((mean - reach, mean + reach))

    def test_a_rare_result_makes_it_wide(self):
        """Where .99 are hits the few misses say little about how many others would show."""
        interval, mean, error = self.interval(1.0, 0.97)

        assert interval.low < mean - 3 * error
        assert interval.low < 0 < interval.high


@pytest.mark.parametrize(
    ("n", "of", "said"),
    [
        (1, "sessions", "1 session"),
        (1, "pairs seen in both orders", "1 pair seen in both orders"),
        (1, "decided pairs by people", "1 decided pair by people"),
        (0, "sessions", "0 sessions"),
        (2, "votes on its own answers", "2 votes on its own answers"),
    ],
)
def test_one_is_singular(n, of, said):
    """The sentence on missing data is grammatical."""
    assert lack_data(Count(n, of, 30), "share").why == f"not enough data: {said}, 30 needed"
