"""Which means differ beyond noise: equal models are seldom separated."""

import numpy as np
import pytest

from leaderboard_sums import NAMES, standing_sums
from witan.core.stats.leaderboard import Terms
from witan.core.stats.leaderboard_builder import leaderboard

ALL = Terms(min_sessions=1)


def separated(sessions):
    """Whether the two models of these sessions are separated."""
    return (
        not leaderboard(standing_sums(sessions), None, None, NAMES, terms=ALL)
        .lines[0]
        .tied_with_next
    )


def history(rng, n, few, shared, draw):
    """Sessions of "a", and `few` sessions of "b", in the same sessions or in others."""
    sessions = [{"a": float(draw())} for _ in range(n)]
    if shared:
        for session in sessions[:few]:
            session["b"] = float(draw())
        rng.shuffle(sessions)
        return sessions
    # The other sessions lie in buckets drawn at random, as names do.
    apart = [{} for _ in range(256)]
    for at in rng.permutation(256)[:few]:
        apart[at] = {"b": float(draw())}
    return [*sessions, *[{}] * (256 - n), *apart]


class TestUnequalNumbers:
    """A model with few sessions against one with many."""

    @pytest.mark.parametrize("few", [1, 2, 4])
    @pytest.mark.parametrize("shared", [True, False])
    def test_under_five_groups_of_sessions_no_models_are_separated(self, few, shared):
        """Four sessions show too little of the variance of a model's scores."""
        rng = np.random.default_rng(few)

        result = [
            separated(history(rng, 200, few, shared, lambda: rng.normal(0.5, 0.25)))
            for _ in range(50)
        ]

        assert not any(result)

    def test_a_model_with_one_session_leaves_other_ranks_open(self):
        """A line without an error may have either rank, and so may the line above it."""
        rng = np.random.default_rng(5)
        sessions = [{"a": x} for x in rng.normal(0.55, 0.2, 200).tolist()]
        sessions[7]["b"] = 0.05

        first, second = leaderboard(standing_sums(sessions), None, None, NAMES, terms=ALL).lines

        assert (second.model, second.std_error) == ("b", None)
        assert [(line.rank_low, line.rank_high) for line in (first, second)] == [(1, 2), (1, 2)]
        assert first.tied_with_next

    @pytest.mark.slow
    @pytest.mark.parametrize("few", [5, 10, 30])
    @pytest.mark.parametrize("shared", [True, False])
    def test_equal_models_are_seldom_separated(self, few, shared):
        """Truly equal, 200 sessions against few: at most 7 of 100 at nominal 5.

        1,000 histories bound the Monte-Carlo error by 0.7 points.
        """
        rng = np.random.default_rng(10 * few + shared)

        wrong = [
            separated(history(rng, 200, few, shared, lambda: rng.normal(0.5, 0.25)))
            for _ in range(1_000)
        ]

        assert 0.025 <= np.mean(wrong) <= 0.07

    @pytest.mark.slow
    @pytest.mark.parametrize("few", [5, 8, 15])
    def test_a_model_without_spread_is_not_certain(self, few):
        """Nine wins in ten: some sets of few sessions are all wins, by chance."""
        rng = np.random.default_rng(few)

        wrong = [
            separated(history(rng, n, few, shared, lambda: rng.random() < 0.9))
            for n, shared in ((200, True), (200, False), (800, True))
            for _ in range(300)
        ]

        assert np.mean(wrong) <= 0.07

    def test_a_difference_beyond_noise_is_found_in_few_sessions(self):
        """Ten sessions show a gap of two deviations nearly always."""
        rng = np.random.default_rng(6)
        result = []
        for _ in range(200):
            sessions = history(rng, 200, 10, False, lambda: rng.normal(0.5, 0.2))
            result.append(
                separated([{m: x - 0.4 * (m == "b") for m, x in s.items()} for s in sessions])
            )

        assert np.mean(result) > 0.95

    def test_signs_count_only_in_common_sessions(self):
        """Without a common session and without variance, other opponents may explain the gap."""
        apart = [{"a": 1.0}] * 20 + [{"b": 0.0}] * 20
        together = [{"a": 1.0, "b": 0.0}] * 20

        assert not separated(apart)
        assert separated(together)
