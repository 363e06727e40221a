"""Approve or reject by k of n: against scipy, and against what another draw does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from witan.core.stats.approval import approval
from witan.errors import InvalidParameter


def votes(approve: int, reject: int, silent: int = 0) -> list[bool | None]:
    return [True] * approve + [False] * reject + [None] * silent


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 40, 2_000])
def test_the_interval_is_jeffreys(n, level):
    """Its ends are scipy's quantiles of Beta(k + ½, n − k + ½); 0 and 1 where all agree."""
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        found = approval(votes(k, n - k), level).share

        posterior = stats.beta(k + 0.5, n - k + 0.5)
        low = 0.0 if k == 0 else posterior.ppf((1 - level) / 2)
        high = 1.0 if k == n else posterior.ppf((1 + level) / 2)
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
        assert found.level == level


@pytest.mark.parametrize("n", [1, 3, 4, 5, 9, 60])
def test_the_chance_of_the_same_majority_is_beta_binomial(n):
    """It is scipy's chance that more than half of n further votes fall the same way."""
    for k in range(n + 1):
        found = approval(votes(k, n - k)).p_majority

        side = max(k, n - k)
        further = stats.betabinom(n, side + 0.5, n - side + 0.5)
        expected = None if 2 * k == n else pytest.approx(further.sf(n // 2), rel=1e-9)
        assert found == expected


@pytest.mark.parametrize("n", [3, 5, 9])
def test_the_interval_meets_its_level(n):
    """Over all shares alike it covers 93 to 97 % of them, and at no share less than 86 %."""
    shares = np.linspace(0.0005, 0.9995, 1_000)
    covered = np.zeros(len(shares))
    for k in range(n + 1):
        held = approval(votes(k, n - k)).share
        inside = (held.low <= shares) & (shares <= held.high)
        covered += inside * stats.binom.pmf(k, n, shares)

    assert 0.93 <= covered.mean() <= 0.97
    assert covered.min() >= 0.86


def test_three_of_three_is_not_certain():
    """Three approvals leave half of the shares possible, and one draw in twelve says no."""
    found = approval(votes(3, 0))

    assert (found.share.low, found.share.high) == pytest.approx((0.4644, 1.0), abs=1e-4)
    assert found.p_majority == pytest.approx(0.9187, abs=1e-4)
    assert found.is_approved is True


def test_silence_is_counted_apart():
    """A member without a vote moves neither the share nor the verdict."""
    found, bare = approval(votes(1, 2, silent=4)), approval(votes(1, 2))

    assert (found.approve, found.reject, found.silent) == (1, 2, 4)
    assert (found.share, found.p_majority) == (bare.share, bare.p_majority)
    assert found.is_approved is False


@pytest.mark.parametrize("cast", [[], [None, None]])
def test_without_votes_nothing_is_known(cast):
    """No vote is no share of 0 and no even chance."""
    found = approval(cast)

    assert (found.share, found.p_majority, found.is_approved) == (None, None, None)
    assert found.silent == len(cast)


def test_a_tie_has_no_majority_to_repeat():
    """Two against two give a share and no verdict."""
    found = approval(votes(2, 2))

    assert (found.is_approved, found.p_majority) == (None, None)
    assert found.share.low == pytest.approx(1 - found.share.high)


@given(n=st.integers(1, 60), data=st.data())
def test_one_more_approval_never_lowers_the_share(n, data):
    """Both ends of the interval rise with every vote that turns from rejection to approval."""
    k = data.draw(st.integers(0, n - 1))
    fewer, more = approval(votes(k, n - k)).share, approval(votes(k + 1, n - k - 1)).share

    assert fewer.low <= more.low
    assert fewer.high <= more.high


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, float("nan")])
def test_a_level_is_between_0_and_1(level):
    """Nothing else is a level."""
    with pytest.raises(InvalidParameter, match="level cannot be"):
        approval([True], level)
