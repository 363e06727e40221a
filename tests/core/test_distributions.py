"""Our distributions against scipy's."""

import numpy as np
import pytest
from scipy import special
from scipy.optimize import minimize
from scipy.special import betaln

from witan.core.stats.distributions import (
    chi_square_quantiles,
    fit_scaled_f,
    logistic,
    normal_quantiles,
    t_cdf,
    t_cdf_each,
    t_probability,
    t_quantile,
)

FREEDOMS = [0.5, 1, 2, 2.7, 5, 11, 27, 100.3, 999, 9999, 10_001, 1e6]


@pytest.mark.parametrize("df", FREEDOMS)
def test_student_t_equals_scipy(df):
    """P(T ≤ t) agrees to 1e-9 absolutely, and to 1e-6 relatively far into the tail."""
    t = np.concatenate([np.linspace(-30, 30, 601), [0.0, 1e-9, -1e-9, 1e3, -1e3]])

    ours, theirs = t_cdf(t, df), special.stdtr(df, t)

    assert ours == pytest.approx(theirs, abs=1e-9)
    tail = theirs[(theirs > 1e-12) & (df < 1e4)]
    assert ours[(theirs > 1e-12) & (df < 1e4)] == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("df", FREEDOMS)
def test_one_probability_equals_that_of_an_array(df):
    """P(T ≤ t) of one number agrees with that of an array to the last digits."""
    t = [-1e3, -30.0, -2.5, -1e-9, 0.0, 1e-9, 0.3, 2.5, 30.0, 1e3]

    assert [t_probability(each, df) for each in t] == pytest.approx(
        t_cdf(np.array(t), df), rel=1e-12
    )


def test_degrees_of_freedom_may_differ_by_point():
    """P(T ≤ t) agrees to 1e-9 with a different df for every t, on both sides of the mean."""
    df = np.linspace(0.5, 400, 801)
    t = np.linspace(-8, 8, 801)

    assert t_cdf_each(t, df) == pytest.approx(special.stdtr(df, t), abs=1e-9)


def test_the_logistic_equals_scipy():
    """It agrees to the last digits, and reaches 0 and 1 without a warning."""
    x = np.array([-1e3, -40.0, -1.5, -1e-9, 0.0, 2.25, 40.0, 1e3])

    assert logistic(x) == pytest.approx(special.expit(x), rel=1e-15, abs=0)


@pytest.mark.parametrize("df", FREEDOMS)
def test_student_t_quantiles_equal_scipy(df):
    """The quantile agrees to 1e-6 relatively."""
    for probability in (1e-4, 0.025, 0.5, 0.8, 0.975, 0.9999):
        expected = special.stdtrit(df, probability)

        assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_infinite_degrees_of_freedom_are_normal():
    """The 97.5% quantile is 1.96."""
    assert t_quantile(0.975, np.inf) == pytest.approx(1.959963984540054)


def test_normal_quantiles_equal_scipy():
    """The inverted grid agrees to 1e-5 down to one in a million."""
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 1001), [1e-6, 1e-5]])

    assert normal_quantiles(p) == pytest.approx(special.ndtri(p), abs=1e-5)


@pytest.mark.parametrize("df", [2, 2.7, 5, 27, 100.3, 999])
def test_chi_square_quantiles_equal_scipy(df):
    """The inverted grid agrees to 1e-4 relatively down to one in ten thousand."""
    p = np.linspace(1e-4, 1 - 1e-4, 1001)

    assert chi_square_quantiles(p, df) == pytest.approx(special.chdtri(df, 1 - p), rel=1e-4)


def sample_variances(rng, n, noise_df, freedom):
    """Residual variances about 0.8, and their degrees of freedom."""
    df = rng.choice(freedom, n).astype(float)
    return 0.8 * rng.chisquare(df) / df / (rng.chisquare(noise_df, n) / noise_df), df


def log_likelihood(variances, freedom, scale, noise_df):
    """Of s² ~ scale · F(d, noise_df), up to a constant."""
    u = freedom * variances / (noise_df * scale)
    half = freedom / 2
    density = half * np.log(u) - (half + noise_df / 2) * np.log1p(u) - betaln(half, noise_df / 2)
    return float(density.sum())


@pytest.mark.parametrize(
    ("n", "noise_df", "freedom"),
    [(50, 5, (3, 5)), (60, 2, (1,)), (2000, 8, (11,)), (2000, 40, (3, 5, 11)), (300, 1, (1.5, 7))],
)
def test_the_fit_is_the_maximum_found_by_scipy(n, noise_df, freedom):
    """No likelihood is higher, and the place is scipy's within its tolerance."""
    variances, df = sample_variances(np.random.default_rng(n), n, noise_df, freedom)

    scale, fitted_df = fit_scaled_f(variances, df)

    best = minimize(
        lambda point: -log_likelihood(variances, df, *np.exp(point)),
        np.log([0.5, 4.0]),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000},
    )
    assert log_likelihood(variances, df, scale, fitted_df) >= -best.fun - 1e-7
    assert (scale, fitted_df) == pytest.approx(tuple(np.exp(best.x)), rel=1e-4)


def test_the_fit_recovers_the_parameters():
    """From many sessions it is near the true noise and degrees of freedom."""
    variances, df = sample_variances(np.random.default_rng(1), 20_000, 12, (5, 11))

    assert fit_scaled_f(variances, df) == pytest.approx((0.8, 12), rel=0.08)


def test_the_fit_stops_at_its_bounds():
    """Equal sessions have 1,000 degrees of freedom, and wild ones a half."""
    wild = sample_variances(np.random.default_rng(2), 200, 0.2, (11,))

    assert fit_scaled_f(np.full(60, 0.8), np.full(60, 5.0))[1] == pytest.approx(1000)
    assert fit_scaled_f(*wild)[1] == pytest.approx(0.5)


def test_the_fit_scales_with_the_variances():
    """Variances a million times as large have a scale a million times as large."""
    variances, df = sample_variances(np.random.default_rng(3), 100, 6, (5,))
    scale, noise_df = fit_scaled_f(variances, df)

    assert fit_scaled_f(variances * 1e6, df) == pytest.approx((scale * 1e6, noise_df), rel=1e-6)
