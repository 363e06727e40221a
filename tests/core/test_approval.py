"""Approval by k of n votes: against scipy, and against further votes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from witan.core.verdict import approval
from witan.errors import InvalidParameter


def votes(approve: int, reject: int, silent: int = 0) -> list[bool | None]:
    return [True] * approve + [False] * reject + [None] * silent


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 40, 2_000])
def test_the_interval_is_jeffreys(n, level):
    """Its ends are scipy's quantiles of Beta(k + ½, n − k + ½); 0 and 1 for unanimous votes."""
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        result = approval(votes(k, n - k), level).share

        posterior = stats.beta(k + 0.5, n - k + 0.5)
        low = 0.0 if k == 0 else posterior.ppf((1 - level) / 2)
        high = 1.0 if k == n else posterior.ppf((1 + level) / 2)
        assert (result.low, result.high) == pytest.approx((low, high), rel=1e-9)
        assert result.level == level


@pytest.mark.parametrize("n", [1, 3, 4, 5, 9, 60])
def test_the_chance_of_the_same_majority_is_beta_binomial(n):
    """It is scipy's probability that most of n further votes agree."""
    for k in range(n + 1):
        result = approval(votes(k, n - k)).p_majority

        side = max(k, n - k)
        further = stats.betabinom(n, side + 0.5, n - side + 0.5)
        expected = None if 2 * k == n else pytest.approx(further.sf(n // 2), rel=1e-9)
        assert result == expected


@pytest.mark.parametrize("n", [3, 5, 9])
def test_the_interval_meets_its_level(n):
    """Over all shares alike it covers 93 to 97% of them, and at no share less than 86%."""
    shares = np.linspace(0.0005, 0.9995, 1_000)
    covered = np.zeros(len(shares))
    for k in range(n + 1):
        interval = approval(votes(k, n - k)).share
        inside = (interval.low <= shares) & (shares <= interval.high)
        covered += inside * stats.binom.pmf(k, n, shares)

    assert 0.93 <= covered.mean() <= 0.97
    assert covered.min() >= 0.86


def test_three_of_three_is_not_certain():
    """Half of the shares remain possible, and one further vote in twelve rejects."""
    result = approval(votes(3, 0))

    assert (result.share.low, result.share.high) == pytest.approx((0.4644, 1.0), abs=1e-4)
    assert result.p_majority == pytest.approx(0.9187, abs=1e-4)
    assert result.is_approved is True


def test_missing_votes_are_counted_separately():
    """A member without a vote changes neither the share nor the verdict."""
    result, bare = approval(votes(1, 2, silent=4)), approval(votes(1, 2))

    assert (result.approve, result.reject, result.silent) == (1, 2, 4)
    assert (result.share, result.p_majority) == (bare.share, bare.p_majority)
    assert result.is_approved is False


@pytest.mark.parametrize("cast", [[], [None, None]])
def test_without_votes_share_and_verdict_are_unknown(cast):
    """The share is unknown, not 0, and there is no probability of a majority."""
    result = approval(cast)

    assert (result.share, result.p_majority, result.is_approved) == (None, None, None)
    assert result.silent == len(cast)


def test_a_tie_has_a_share_and_no_verdict():
    """Two votes stand against two."""
    result = approval(votes(2, 2))

    assert (result.is_approved, result.p_majority) == (None, None)
    assert result.share.low == pytest.approx(1 - result.share.high)


@given(n=st.integers(1, 60), data=st.data())
def test_one_more_approval_never_lowers_the_share(n, data):
    """Both ends of the interval rise with every vote changed from rejection to approval."""
    k = data.draw(st.integers(0, n - 1))
    fewer, more = approval(votes(k, n - k)).share, approval(votes(k + 1, n - k - 1)).share

    assert fewer.low <= more.low
    assert fewer.high <= more.high


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, float("nan")])
def test_a_level_outside_0_to_1_is_refused(level):
    """The error names the level."""
    with pytest.raises(InvalidParameter, match="level cannot be"):
        approval([True], level)
