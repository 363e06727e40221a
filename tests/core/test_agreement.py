"""Agreement of ballots with a ranking, and majorities without a ring."""

import numpy as np
import pytest
from scipy import stats

from elections import ballots
from witan.core.outcome import Prior
from witan.core.outcome_builder import majority_cycles
from witan.core.stats.agreement import kendall_tau, kendall_taus
from witan.core.tally import tally


class TestKendallTaus:
    """Many ballots against one ranking, as one ballot after another."""

    def test_each_is_the_tau_b_of_what_its_ballot_ranks(self):
        """Unranked candidates are left out, and ties are allowed for."""
        rng = np.random.default_rng(5)
        cast = rng.integers(1, 4, (40, 6)).astype(float)
        cast[rng.random(cast.shape) < 0.2] = np.nan
        ranking = np.array([1.0, 2.0, 2.0, 4.0, 5.0, 6.0])

        for row, tau in zip(cast, kendall_taus(cast, ranking), strict=True):
            held = ~np.isnan(row)
            expected = stats.kendalltau(row[held], ranking[held]).statistic
            assert tau == (None if np.isnan(expected) else pytest.approx(expected))
            assert tau == kendall_tau(row, ranking)

    @pytest.mark.parametrize("ballot", [[2.0, 2.0, 2.0], [1.0, np.nan, np.nan], [np.nan] * 3])
    def test_a_ballot_that_orders_nobody_has_none(self, ballot):
        """A flat, a single or an empty ballot agrees with nothing."""
        assert kendall_taus(np.array([ballot]), np.array([1.0, 2.0, 3.0])) == [None]

    def test_no_ballot_has_none(self):
        """Nothing cast, nothing said."""
        assert kendall_taus(np.empty((0, 3)), np.array([1.0, 2.0, 3.0])) == []


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

    assert majority_cycles(margins) == rings


def test_candidates_known_to_be_equal_share_the_first_place():
    """A prior without any spread of quality makes all draws ties, which favour nobody."""
    cast = ballots("x: a > b > c", "y: a > c > b", "z: b > a > c")
    prior = Prior(0.5, 10.0, 0.0, "ranks", 50)

    outcome = tally(cast, "borda", prior=prior)

    assert [line.p_best for line in outcome.standings] == pytest.approx([1 / 3] * 3)
