"""Our Student's t against scipy's."""

import numpy as np
import pytest
from scipy import special

from witan.core.stats.distributions import chi_square_quantiles, normal_quantiles, t_cdf, t_quantile

FREEDOMS = [0.5, 1, 2, 2.7, 5, 11, 27, 100.3, 999, 9999, 10_001, 1e6]


@pytest.mark.parametrize("df", FREEDOMS)
def test_the_distribution_is_scipy_s(df):
    """P(T ≤ t) agrees to 1e-9 absolutely, and to 1e-6 of itself far into the tail."""
    t = np.concatenate([np.linspace(-30, 30, 601), [0.0, 1e-9, -1e-9, 1e3, -1e3]])

    ours, theirs = t_cdf(t, df), special.stdtr(df, t)

    assert ours == pytest.approx(theirs, abs=1e-9)
    tail = theirs[(theirs > 1e-12) & (df < 1e4)]
    assert ours[(theirs > 1e-12) & (df < 1e4)] == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("probability", [1e-4, 0.025, 0.5, 0.8, 0.975, 0.9999])
def test_its_quantile_is_scipy_s(df, probability):
    """The quantile agrees to 1e-6 of itself."""
    expected = special.stdtrit(df, probability)

    assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_infinite_freedom_is_normal():
    """1.96 is 1.96."""
    assert t_quantile(0.975, np.inf) == pytest.approx(1.959963984540054)


def test_normal_quantiles_are_scipy_s():
    """The inverted grid agrees to 1e-5 down to one in a million."""
    p = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 1001), [1e-6, 1e-5]])

    assert normal_quantiles(p) == pytest.approx(special.ndtri(p), abs=1e-5)


@pytest.mark.parametrize("df", [2, 2.7, 5, 27, 100.3, 999])
def test_chi_square_quantiles_are_scipy_s(df):
    """The inverted grid agrees to 1e-4 of itself down to one in ten thousand."""
    p = np.linspace(1e-4, 1 - 1e-4, 1001)

    assert chi_square_quantiles(p, df) == pytest.approx(special.chdtri(df, 1 - p), rel=1e-4)
