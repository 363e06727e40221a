"""Elo over histories: examples by hand, and which orders matter."""

import math

import numpy as np
import pytest

from elections import election, random_profile
from witan.core.profile import Profile
from witan.core.rules.elo import elo
from witan.errors import InvalidParameter


def history(*sessions: Profile) -> Profile:
    """Profiles of one session each, of one shape, as a history."""
    return Profile(np.concatenate([one.places for one in sessions], axis=2))


def rate_match_by_match(profile: Profile, k: float, base: float, initial: float) -> np.ndarray:
    """Ratings by the definition, one match at a time."""
    ranks = profile.ranks
    ratings = dict.fromkeys(range(profile.n_candidates), initial)
    for s in range(profile.n_sessions):
        before = dict(ratings)
        for i in ratings:
            for j in ratings:
                gap = ranks[:, j, s] - ranks[:, i, s]
                if i == j or np.isnan(gap).all():
                    continue
                ahead = int((gap > 0).sum()) - int((gap < 0).sum())
                result = (1 + (ahead > 0) - (ahead < 0)) / 2
                expected = 1 / (1 + 10 ** ((before[j] - before[i]) / base))
                ratings[i] += k * (result - expected)
    return np.array([ratings[c] for c in range(profile.n_candidates)])


class TestGolden:
    """Numbers that can be checked with a pencil."""

    def test_one_match_between_equals_moves_half_of_k(self):
        """Equal ratings expect one half, so the winner gains 16 of 32."""
        assert elo(election("r: a > b")).score.tolist() == [[1016.0], [984.0]]

    def test_a_draw_between_equals_changes_nothing(self):
        """Without a majority the match is a draw."""
        assert elo(election("r: a > b", "s: b > a")).score.tolist() == [[1000.0], [1000.0]]

    def test_the_second_win_gains_less(self):
        """After 1016 : 984 the leader expects 0.5460, so a second win is worth 14.53."""
        twice = history(election("r: a > b"), election("r: a > b"))

        expected = 1 / (1 + 10 ** (-32 / 400))

        assert elo(twice).score[0, 0] == pytest.approx(1016 + 32 * (1 - expected))
        assert elo(twice).score[0, 0] == pytest.approx(1030.53, abs=0.005)

    def test_matches_of_a_session_use_the_ratings_before_it(self):
        """From equal ratings, the first of three wins two matches at 16 each."""
        assert elo(election("r: a > b > c")).score[:, 0].tolist() == [1032.0, 1000.0, 968.0]


class TestDefinition:
    """The vectorised pass equals the definition."""

    @pytest.mark.parametrize("ties", [False, True])
    def test_ratings_equal_the_definition(self, ties):
        """Thirty sessions of partial ballots, rated in plain loops, give the same numbers."""
        profile = random_profile(np.random.default_rng(1), (4, 5, 30), ties=ties, partial=True)

        ours = elo(profile, k=24.0, base=300.0, initial=1500.0).score[:, 0]

        assert ours == pytest.approx(rate_match_by_match(profile, 24.0, 300.0, 1500.0), abs=1e-9)

    def test_long_histories_are_rated_across_blocks(self):
        """A cache-sized block starts from the ratings at the end of the previous one."""
        profile = random_profile(np.random.default_rng(2), (600, 3, 400))

        ratings = elo(profile).score[:, 0]

        assert sum(1 for _ in profile.blocks()) > 1
        assert ratings == pytest.approx(rate_match_by_match(profile, 32.0, 400.0, 1000.0), abs=1e-9)

    def test_ballots_count_by_weight(self):
        """One heavy ballot outvotes two light ones."""
        profile = election("r: a > b", "s: b > a", "t: b > a")

        assert elo(profile).score[1, 0] > 1000
        assert elo(profile.replace_weights(np.array([[3.0], [1.0], [1.0]]))).score[0, 0] > 1000

    def test_equal_sums_of_weights_are_a_draw(self):
        """0.1 + 0.2 against 0.3 is a draw in spite of binary rounding."""
        profile = election("r: a > b", "s: a > b", "t: b > a")

        scores = elo(profile.replace_weights(np.array([[0.1], [0.2], [0.3]])))

        assert scores.score[:, 0].tolist() == [1000.0, 1000.0]


class TestOrder:
    """Only the order of sessions matters."""

    def test_order_of_candidates_and_ballots_does_not_matter(self):
        """Permuting seats permutes the ratings; permuting ballots changes nothing."""
        rng = np.random.default_rng(5)
        profile = random_profile(rng, (4, 6, 25), ties=True, partial=True)
        seats, rows = rng.permutation(6), rng.permutation(4)

        scores = elo(profile).score

        assert elo(Profile(profile.places[:, seats])).score == pytest.approx(scores[seats])
        assert elo(profile.keep_ballots(rows)).score == pytest.approx(scores)

    def test_order_of_sessions_matters(self):
        """A recent win counts for more than an old one."""
        win, loss = election("r: a > b"), election("r: b > a")

        assert elo(history(loss, win)).score[0, 0] > elo(history(win, loss)).score[0, 0]

    def test_ratings_keep_their_sum(self):
        """Ratings always sum to the initial ratings."""
        profile = random_profile(np.random.default_rng(6), (3, 5, 40), ties=True)

        assert elo(profile).score.sum() == pytest.approx(5000)


class TestEdges:
    """Candidates without matches, and invalid options."""

    def test_a_candidate_without_a_match_has_no_rating(self):
        """A candidate that was never compared has NaN and no matches; the others have ratings."""
        scores = elo(election("r: a > b", "s: c", candidates="abcd"))

        assert scores.score[:2, 0].tolist() == [1016.0, 984.0]
        assert np.isnan(scores.score[2:]).all()
        assert scores.details["matches"].tolist() == [[1], [1], [0], [0]]

    def test_a_ballot_of_weight_zero_plays_no_match(self):
        """A pair on nothing but a ballot of weight 0 plays no match."""
        profile = election("r: a > b").replace_weights(np.array([[0.0]]))

        assert np.isnan(elo(profile).score).all()

    def test_an_empty_history_rates_nobody(self):
        """No sessions give no ratings, in an array of one column."""
        scores = elo(Profile(np.zeros((2, 3, 0), dtype=np.uint8)))

        assert scores.score.shape == (3, 1)
        assert np.isnan(scores.score).all()

    def test_huge_rating_gaps_do_not_overflow(self):
        """A step far beyond the base leaves finite ratings."""
        profile = random_profile(np.random.default_rng(7), (3, 4, 50))

        assert np.isfinite(elo(profile, k=1e6).score).all()

    @pytest.mark.parametrize(
        ("option", "value"),
        [("k", 0.0), ("k", math.nan), ("base", -1.0), ("base", True), ("initial", math.inf)],
    )
    def test_invalid_options_are_refused(self, option, value):
        """The error names the option."""
        with pytest.raises(InvalidParameter, match=option):
            elo(election("r: a > b"), **{option: value})
