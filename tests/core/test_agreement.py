"""Agreement of ballots: τ, W, shared error, of one session and of many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from elections import ballots, mean_ranks
from witan.core.outcome import Prior
from witan.core.outcome_builder import majority_cycles, mutual_reach
from witan.core.profile import Profile
from witan.core.stats.agreement import kendall_tau, kendall_taus, kendall_w, kendall_ws
from witan.core.tally import tally


class TestKendallTaus:
    """Many ballots against one ranking, as one ballot after another."""

    def test_each_is_the_tau_b_of_what_its_ballot_ranks(self):
        """Unranked candidates are left out, and ties are allowed for."""
        rng = np.random.default_rng(5)
        cast = rng.integers(1, 4, (40, 6)).astype(float)
        cast[rng.random(cast.shape) < 0.2] = np.nan
        ranking = np.array([1.0, 2.0, 2.0, 4.0, 5.0, 6.0])

        # A second session, ranked in reverse, has the same correlations with their signs changed.
        taus = kendall_taus(np.stack([cast, cast], axis=2), np.stack([ranking, -ranking], axis=1))

        assert taus[:, 1] == pytest.approx(-taus[:, 0], nan_ok=True)
        for row, tau in zip(cast, taus[:, 0], strict=True):
            held = ~np.isnan(row)
            expected = stats.kendalltau(row[held], ranking[held]).statistic
            assert tau == pytest.approx(expected, nan_ok=True)
            assert kendall_tau(row, ranking) == (None if np.isnan(tau) else tau)

    @pytest.mark.parametrize("ballot", [[2.0, 2.0, 2.0], [1.0, np.nan, np.nan], [np.nan] * 3])
    def test_a_ballot_that_orders_nobody_has_none(self, ballot):
        """A flat, a single or an empty ballot agrees with nothing."""
        assert kendall_tau(np.array(ballot), np.array([1.0, 2.0, 3.0])) is None

    def test_no_ballot_has_none(self):
        """Nothing cast, nothing said."""
        assert kendall_taus(np.empty((0, 3, 1)), np.ones((3, 1))).shape == (0, 1)


@pytest.mark.parametrize(
    ("ahead", "rings"),
    [([(0, 1), (1, 2), (0, 2)], ()), ([(0, 1), (1, 2), (2, 0)], ((0, 1, 2),))],
    ids=["a line", "a ring"],
)
def test_only_a_ring_is_a_cycle(ahead, rings):
    """Who beats whom in a line makes no group."""
    margins = np.zeros((3, 3))
    for winner, loser in ahead:
        margins[winner, loser], margins[loser, winner] = 1, -1

    assert majority_cycles(mutual_reach(margins)) == rings


def test_candidates_known_to_be_equal_share_the_first_place():
    """A prior without any spread of quality makes all draws ties, which favour nobody."""
    cast = ballots("x: a > b > c", "y: a > c > b", "z: b > a > c")
    prior = Prior(0.5, 10.0, 0.0, "ranks", 50)

    outcome = tally(cast, "borda", prior=prior)

    assert [line.p_best for line in outcome.standings] == pytest.approx([1 / 3] * 3)


class TestConcordance:
    """The same as session by session."""

    @given(seed=st.integers(0, 10_000), gaps=st.booleans())
    def test_it_is_that_of_each_session(self, seed, gaps):
        """With ties and gaps, and candidates that nobody ranks."""
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)), 7)
        keys = rng.integers(0, 4, shape).astype(float)
        if gaps:
            keys[rng.random(shape) < 0.3] = np.nan
        keys[:, rng.random(shape[1]) < 0.2] = np.nan
        ranks = mean_ranks(keys)
        profile = Profile.from_ranks(ranks)

        found = kendall_ws(profile)

        for session in range(shape[2]):
            held = ranks[:, :, session]
            expected = kendall_w(held[:, ~np.isnan(held).all(axis=0)])
            assert found[session] == (None if expected is None else pytest.approx(expected))
