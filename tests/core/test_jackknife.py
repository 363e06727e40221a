"""The jackknife over buckets: exact for means, calibrated in simulation, NaN if unknown."""

import numpy as np
import pytest
from scipy.stats import t as student

from witan.core.stats.measures import MIN_BUCKETS, jackknife
from witan.errors import InvalidParameter


def ratio(sums: np.ndarray) -> np.ndarray:
    """The first sum over the second."""
    return sums[:, 0] / sums[:, 1]


class TestByHand:
    """Small tables."""

    def test_the_error_of_a_mean_is_the_sample_deviation_over_root_n(self):
        """Efron and Stein 1981: for a mean of n numbers the jackknife is s / √n exactly."""
        values = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])

        result = jackknife(np.stack([values, np.ones(6)], axis=1), ratio)

        assert result.estimate == pytest.approx(values.mean())
        assert result.std_error == pytest.approx(values.std(ddof=1) / np.sqrt(6))
        assert result.degrees == 5

    def test_the_error_of_a_ratio_equals_the_formula(self):
        """Five buckets of a ratio: the sum of squares over leave-one-out ratios, by loop."""
        sums = np.array([[3.0, 4], [1, 5], [4, 4], [2, 9], [6, 7]])
        leave_one_out = [(16 - sums[b, 0]) / (29 - sums[b, 1]) for b in range(5)]
        expected = np.sqrt(
            4 / 5 * sum((value - np.mean(leave_one_out)) ** 2 for value in leave_one_out)
        )

        result = jackknife(sums, ratio)

        assert result.estimate == pytest.approx(16 / 29)
        assert result.std_error == pytest.approx(expected, rel=1e-12)

    def test_many_estimates_equal_single_ones(self):
        """Columns with buckets of their own give the results of each alone."""
        rng = np.random.default_rng(0)
        sums = rng.random((30, 2, 4)) + 0.1
        sums[:10, :, 1] = 0
        sums[4:, :, 2] = 0

        together = jackknife(sums, ratio)

        for column in range(4):
            alone = jackknife(sums[:, :, column], ratio)
            assert together.estimate[column] == pytest.approx(alone.estimate)
            assert together.std_error[column] == pytest.approx(alone.std_error, nan_ok=True)
            assert together.degrees[column] == alone.degrees
        assert together.degrees.tolist() == [29, 19, 3, 29]

    def test_empty_buckets_and_order_change_nothing(self):
        """Rows of zeros are no buckets."""
        sums = np.random.default_rng(1).random((9, 2))
        padded = np.concatenate([np.zeros((5, 2)), sums[::-1], np.zeros((2, 2))])

        assert np.array(jackknife(padded, ratio)) == pytest.approx(np.array(jackknife(sums, ratio)))

    def test_a_statistic_of_matrices_has_one_estimate(self):
        """Without an axis in the estimate, a bucket with any data counts."""
        sums = np.random.default_rng(2).random((8, 3, 2, 2))

        result = jackknife(sums, lambda held: np.linalg.det(held[:, 0]))

        assert result.degrees == 7
        assert np.isfinite(result.std_error)


class TestUnknown:
    """Unknown results are NaN."""

    def test_too_few_buckets_have_no_error(self):
        """One bucket under the minimum gives the estimate alone."""
        sums = np.random.default_rng(3).random((MIN_BUCKETS, 2))

        assert np.isfinite(jackknife(sums, ratio).std_error)
        few = jackknife(sums[1:], ratio)
        assert np.isfinite(few.estimate)
        assert np.isnan(few.std_error)
        assert np.isnan(few.interval(0.95)).all()

    def test_no_data_have_no_estimate(self):
        """Estimate and error are NaN, without a warning."""
        result = jackknife(np.zeros((4, 2)), ratio)

        assert np.isnan(result.estimate)
        assert np.isnan(result.std_error)

    def test_an_estimate_from_a_single_bucket_has_no_error(self):
        """If leaving a bucket out leaves nothing to divide by, the error is unknown."""
        sums = np.array([[1.0, 2], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0]])

        assert np.isnan(jackknife(sums, ratio).std_error)

    def test_a_statistic_of_the_wrong_shape_is_refused(self):
        """The error names a statistic with one value for all samples."""
        with pytest.raises(InvalidParameter, match="statistic"):
            jackknife(np.ones((6, 2)), lambda sums: sums[:1, 0])


class TestCoverage:
    """Intervals cover at their level."""

    @pytest.mark.parametrize("n_buckets", [8, 20, 60])
    def test_intervals_of_clustered_data_cover_their_level(self, n_buckets):
        """Means and ratios of data clustered by session: 93 to 97 of 100 at nominal 95%.

        4,000 histories bound the Monte-Carlo error by 0.35 points; two of these widen the bounds.
        Sessions are of unequal size and share an effect; the ratio's parts move together.
        """
        rng = np.random.default_rng(n_buckets)
        shape = (n_buckets, 3, 4_000)
        size = rng.poisson(4, shape) + 1.0
        shared = rng.normal(0, 1, shape)
        total = size * (2 + shared) + rng.normal(0, 1, shape) * np.sqrt(size)
        part = rng.binomial(size.astype(int), 1 / (1 + np.exp(-shared)))
        truth = rng.normal(0, 1, 1_000_000)
        right = (1 / (1 + np.exp(-truth))).mean()

        for top, true in ((total, 2.0), (part, right)):
            sums = np.stack([top.sum(axis=1), size.sum(axis=1)], axis=1)
            result = jackknife(sums, ratio)
            low, high = result.interval(0.95)
            covered = np.mean((low <= true) & (true <= high))
            assert 0.93 - 0.007 <= covered <= 0.97 + 0.007
            reach = student.ppf(0.975, n_buckets - 1) * result.std_error
            assert high - result.estimate == pytest.approx(reach)
