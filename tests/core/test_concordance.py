"""Concordance of ballots: τ, W and shared error, of one session and of many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from elections import ballots, mean_ranks
from witan.core.outcome import Prior
from witan.core.profile import Profile
from witan.core.stats.concordance import (
    kendall_tau,
    kendall_taus,
    kendall_w,
    kendall_ws,
    majority_cycles,
    mutual_reach,
)
from witan.core.tally import tally


class TestKendallTaus:
    """Many ballots against one ranking equal ballot-by-ballot τ."""

    def test_each_tau_is_the_tau_b_of_its_ballot(self):
        """Unranked candidates are left out, and ties are corrected for."""
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
    def test_a_ballot_without_an_order_has_no_tau(self, ballot):
        """A flat, a single or an empty ballot has no correlation."""
        assert kendall_tau(np.array(ballot), np.array([1.0, 2.0, 3.0])) is None

    def test_no_ballots_have_no_tau(self):
        """An empty profile gives an empty result."""
        assert kendall_taus(np.empty((0, 3, 1)), np.ones((3, 1))).shape == (0, 1)


@pytest.mark.parametrize(
    ("ahead", "rings"),
    [([(0, 1), (1, 2), (0, 2)], ()), ([(0, 1), (1, 2), (2, 0)], ((0, 1, 2),))],
    ids=["a line", "a ring"],
)
def test_only_a_ring_of_wins_is_a_cycle(ahead, rings):
    """Candidates in a line of wins form no cycle."""
    margins = np.zeros((3, 3))
    for winner, loser in ahead:
        margins[winner, loser], margins[loser, winner] = 1, -1

    assert majority_cycles(mutual_reach(margins)) == rings


def test_candidates_known_to_be_equal_share_the_first_place():
    """A prior with zero spread of quality makes all draws ties, which favour no candidate."""
    cast = ballots("x: a > b > c", "y: a > c > b", "z: b > a > c")
    prior = Prior(0.5, 10.0, 0.0, "ranks", 50)

    outcome = tally(cast, "borda", prior=prior)

    assert [line.p_best for line in outcome.standings] == pytest.approx([1 / 3] * 3)


class TestConcordance:
    """Batched concordance equals concordance per session."""

    @pytest.mark.parametrize("rest", ["x: a > b > c", "x: a > b"])
    def test_a_ballot_with_one_candidate_changes_no_concordance(self, rest):
        """It compares nobody, whether the others are complete or not."""
        cast = ballots(rest, "y: b = a > c", "z: c > a > b")
        lone = ballots("v: c", "w: a")

        assert tally([*cast, *lone], "borda").kendall_w == tally(cast, "borda").kendall_w

    @given(seed=st.integers(0, 10_000), gaps=st.booleans())
    def test_concordance_equals_that_of_each_session(self, seed, gaps):
        """Ties, gaps and unranked candidates are included."""
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)), 7)
        keys = rng.integers(0, 4, shape).astype(float)
        if gaps:
            keys[rng.random(shape) < 0.3] = np.nan
        keys[:, rng.random(shape[1]) < 0.2] = np.nan
        ranks = mean_ranks(keys)
        profile = Profile.from_ranks(ranks)

        result = kendall_ws(profile)

        for session in range(shape[2]):
            session_ranks = ranks[:, :, session]
            expected = kendall_w(session_ranks[:, ~np.isnan(session_ranks).all(axis=0)])
            assert result[session] == (None if expected is None else pytest.approx(expected))
