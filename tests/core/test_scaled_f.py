"""The fit of residual variances, against scipy's optimiser and against what was drawn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaln

from witan.core.stats.distributions import fit_scaled_f


def drawn(rng, n, noise_df, freedom):
    """Residual variances about 0.8, and their degrees of freedom."""
    df = rng.choice(freedom, n).astype(float)
    return 0.8 * rng.chisquare(df) / df / (rng.chisquare(noise_df, n) / noise_df), df


def log_likelihood(variances, freedom, scale, noise_df):
    """Of s² ~ scale · F(d, noise_df), but for what depends on neither."""
    u = freedom * variances / (noise_df * scale)
    half = freedom / 2
    density = half * np.log(u) - (half + noise_df / 2) * np.log1p(u) - betaln(half, noise_df / 2)
    return float(density.sum())


@pytest.mark.parametrize(
    ("n", "noise_df", "freedom"),
    [(50, 5, (3, 5)), (60, 2, (1,)), (2000, 8, (11,)), (2000, 40, (3, 5, 11)), (300, 1, (1.5, 7))],
)
def test_it_is_the_maximum_that_scipy_finds(n, noise_df, freedom):
    """No likelihood is higher, nor is the place another than scipy's but for its tolerance."""
    variances, df = drawn(np.random.default_rng(n), n, noise_df, freedom)

    scale, found = fit_scaled_f(variances, df)

    best = minimize(
        lambda point: -log_likelihood(variances, df, *np.exp(point)),
        np.log([0.5, 4.0]),
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000},
    )
    assert log_likelihood(variances, df, scale, found) >= -best.fun - 1e-7
    assert (scale, found) == pytest.approx(tuple(np.exp(best.x)), rel=1e-4)


def test_it_finds_what_was_drawn():
    """From many sessions it comes near the noise and the freedom they were drawn with."""
    variances, df = drawn(np.random.default_rng(1), 20_000, 12, (5, 11))

    assert fit_scaled_f(variances, df) == pytest.approx((0.8, 12), rel=0.08)


def test_it_ends_at_its_bounds():
    """Sessions that are all alike have 1,000 degrees of freedom, and wild ones a half."""
    wild = drawn(np.random.default_rng(2), 200, 0.2, (11,))

    assert fit_scaled_f(np.full(60, 0.8), np.full(60, 5.0))[1] == pytest.approx(1000)
    assert fit_scaled_f(*wild)[1] == pytest.approx(0.5)


def test_it_scales_with_the_variances():
    """Variances a million times as large have a scale a million times as large."""
    variances, df = drawn(np.random.default_rng(3), 100, 6, (5,))
    scale, noise_df = fit_scaled_f(variances, df)

    assert fit_scaled_f(variances * 1e6, df) == pytest.approx((scale * 1e6, noise_df), rel=1e-6)
