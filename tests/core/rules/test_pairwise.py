"""The rules `tournament` and `schulze`: published examples, brute-force twins, stated limits."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import TENNESSEE, check_sessions_alone, election, profiles, random_profile
from witan.core.profile import Profile
from witan.core.rules.pairwise import ranked_pairs, round_to_grid, schulze, tournament
from witan.core.rules.registry import Axiom
from witan.errors import InvalidParameter

SCHULZE_45 = (
    "5 × p: A > C > B > E > D",
    "5 × q: A > D > E > C > B",
    "8 × r: B > E > D > A > C",
    "3 × s: C > A > B > E > D",
    "7 × t: C > A > E > B > D",
    "2 × u: C > B > A > D > E",
    "7 × v: D > C > E > B > A",
    "8 × w: E > B > A > D > C",
)


def tournament_by_hand(profile: Profile) -> list[float]:
    """Count every matchup of the first session, one ballot after another."""
    ranks = profile.ranks[:, :, 0]
    shares = []
    for i in range(profile.n_candidates):
        results = []
        for j in range(profile.n_candidates):
            both = [row for row in ranks if i != j and not np.isnan(row[[i, j]]).any()]
            if both:
                lead = sum(int(np.sign(row[j] - row[i])) for row in both)
                results.append((np.sign(lead) + 1) / 2)
        shares.append(np.mean(results) if results else np.nan)
    return shares


def schulze_by_hand(profile: Profile, strength: str) -> list[float]:
    """Follow every path between any two candidates of the first session."""
    ranks = profile.ranks[:, :, 0]
    seats = range(profile.n_candidates)
    over = [[int((ranks[:, i] < ranks[:, j]).sum()) for j in seats] for i in seats]

    def link(i: int, j: int) -> int:
        if over[i][j] <= over[j][i]:
            return 0
        return over[i][j] - (over[j][i] if strength == "margins" else 0)

    def strongest(i: int, j: int) -> int:
        between = [k for k in seats if k not in (i, j)]
        paths = ((i, *via, j) for n in seats for via in permutations(between, n))
        return max(min(map(link, path, path[1:])) for path in paths)

    voted = [i for i in seats if not np.isnan(ranks[:, i]).all()]
    shares = [np.nan for _ in seats]
    for i in voted:
        beaten = sum(strongest(j, i) > strongest(i, j) for j in voted if j != i)
        shares[i] = 1 - beaten / max(len(voted) - 1, 1)
    return shares


class TestTournament:
    """The share of its matchups that a candidate wins, with a draw as half."""

    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            pytest.param(["x: A > B > C", "y: A > B > C"], [1, 0.5, 0], id="unanimous"),
            pytest.param(
                ["x: A > B > C", "y: A > C > B", "z: B > A > C"], [1, 0.5, 0], id="two to one"
            ),
            pytest.param(["x: A > B > C", "y: B > A > C"], [0.75, 0.75, 0], id="drawn"),
            pytest.param(["x: C > A > B"], [0.5, 0, 1], id="single ranker"),
            pytest.param(
                ["x: A > B > C", "y: B > C > A", "z: C > A > B"], [0.5, 0.5, 0.5], id="cycle"
            ),
        ],
    )
    def test_scenarios_of_the_proposal(self, lines, expected):
        """Unanimity, split majorities, draws, one ballot and a cycle give the proposal's shares."""
        profile = election(*lines)

        scores = tournament(profile).score[:, 0]

        assert scores.tolist() == expected

    def test_a_session_without_ballots_has_no_scores(self):
        """Each score is NaN."""
        profile = Profile.from_ranks(np.full((3, 3), np.nan))

        scores = tournament(profile).score

        assert np.isnan(scores).all()

    def test_one_deviant_ballot_does_not_change_the_tournament(self):
        """The favourite of three, put third by a fourth, has mean rank 1.5 and wins all."""
        profile = election("x: A > B > C", "y: A > C > B", "z: A > B > C", "o: B > C > A")

        scores = tournament(profile).score[:, 0]

        assert profile.ranks[:, 0].mean() == 1.5
        assert scores[0] == 1.0

    def test_a_pair_without_ballots_is_no_matchup(self):
        """Two separate comparisons give one matchup each, a lone candidate gives none."""
        profile = election("x: A > B", "y: C > D", "z: E")

        scores = tournament(profile).score[:, 0]

        np.testing.assert_array_equal(scores, [1, 0, 1, 0, np.nan])

    def test_a_near_copy_can_change_the_leader(self):
        """B leads a cycle with A and C until C2, next to C on every ballot, is added."""
        before = election("x: A > C > B", "y: B > A > C", "z: C > B > A")
        after = election("x: A > C2 > C > B", "y: B > A > C2 > C", "z: C > C2 > B > A")

        led = tournament(before).score[:, 0]
        leads = tournament(after).score[:, 0]

        assert led.tolist() == [0.5, 0.5, 0.5]
        assert np.flatnonzero(leads == leads.max()).tolist() == [0, 3]
        assert Axiom.CLONES not in tournament.satisfies

    @given(profile=profiles())
    def test_tournament_equals_a_plain_count(self, profile):
        """Ties and partial ballots are included."""
        scores = tournament(profile).score[:, 0]

        np.testing.assert_allclose(scores, tournament_by_hand(profile), atol=1e-12)


class TestSchulze:
    """The strongest paths decide each pair."""

    def test_schulzes_example_of_45_voters(self):
        """E > A > C > B > D, the example of Schulze 2011 as commonly cited."""
        profile = election(*SCHULZE_45)

        scores = schulze(profile).score[:, 0]

        assert scores.tolist() == [0.75, 0.25, 0.5, 0.0, 1.0]

    @pytest.mark.parametrize("strength", ["winning_votes", "margins"])
    @given(profile=profiles())
    def test_schulze_equals_an_enumeration_of_paths(self, strength, profile):
        """Ties and partial ballots are included."""
        scores = schulze(profile, strength=strength).score[:, 0]

        np.testing.assert_allclose(scores, schulze_by_hand(profile, strength), atol=1e-12)

    @given(profile=profiles(sessions=(1, 3)))
    def test_the_best_score_is_exactly_one(self, profile):
        """A single ballot with a ranking is enough."""
        scores = schulze(profile).score
        counted = profile.rank_mask.any(axis=(0, 1))

        assert np.nanmax(scores[:, counted], axis=0, initial=1.0).tolist() == [1.0] * counted.sum()
        assert (scores[:, counted] == 1.0).any(axis=0).all()

    def test_the_two_strengths_differ_on_partial_ballots(self):
        """A beats B 5–4, B beats C 3–0, C beats A 4–0: B–C has fewest votes, A–B least margin."""
        profile = election("5 × p: A > B", "4 × q: B > A", "3 × r: B > C", "4 × s: C > A")

        by_votes = schulze(profile).score[:, 0]
        by_margins = schulze(profile, strength="margins").score[:, 0]

        assert by_votes.tolist() == [0.5, 0.0, 1.0]
        assert by_margins.tolist() == [0.0, 1.0, 0.5]

    def test_an_unknown_strength_is_refused(self):
        """Any other value is an invalid parameter."""
        with pytest.raises(InvalidParameter, match="ratio"):
            schulze(election("x: A > B"), strength="ratio")


class TestEvery:
    """Properties that the rules of pairs share."""

    @pytest.mark.parametrize("rule", [tournament, schulze, ranked_pairs], ids=str)
    def test_tennessee_elects_nashville(self, rule):
        """The Condorcet winner wins the textbook example of Tennessee."""
        profile = election(*TENNESSEE)

        scores = rule(profile).score[:, 0]

        np.testing.assert_allclose(scores, [2 / 3, 1 / 3, 0, 1])

    @pytest.mark.parametrize("rule", [tournament, schulze], ids=str)
    def test_a_batch_scores_each_session_as_alone(self, rule):
        """Each of thousands of sessions has its own scores."""
        batch = random_profile(np.random.default_rng(1), (4, 5, 9_000), ties=True, partial=True)

        check_sessions_alone(rule, batch, range(0, 9_000, 50))

    @pytest.mark.parametrize("rule", [tournament, schulze, ranked_pairs], ids=str)
    @given(profile=profiles(), data=st.data())
    def test_a_weight_of_three_equals_three_ballots(self, rule, profile, data):
        """Whole weights equal repeated ballots, and a weight of 0 an absent one."""
        n = profile.n_reviewers
        times = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        weighted = profile.replace_weights(np.array(times, dtype=float)[:, np.newaxis])

        by_weight = rule(weighted).score
        by_number = rule(profile.keep_ballots(np.repeat(np.arange(n), times))).score

        np.testing.assert_array_equal(by_weight, by_number)

    @pytest.mark.parametrize("rule", [tournament, schulze], ids=str)
    def test_float_rounding_decides_no_matchup(self, rule):
        """Weights 0.1 and 0.2 draw with 0.3 in spite of binary rounding."""
        profile = election("x: A > B", "y: A > B", "z: B > A")

        scores = rule(profile.replace_weights(np.array([[0.1], [0.2], [0.3]]))).score[:, 0]

        assert scores[0] == scores[1]

    @pytest.mark.parametrize("n_candidates", [(2, 5), (6, 6)])
    @pytest.mark.parametrize("rule", [tournament, schulze, ranked_pairs], ids=str)
    @given(data=st.data())
    def test_a_candidate_without_votes_changes_nothing(self, rule, n_candidates, data):
        """Its score is NaN, and the other scores are those without it."""
        profile = data.draw(profiles(candidates=n_candidates))
        nobody = np.zeros((profile.n_reviewers, 1, 1), dtype=profile.places.dtype)

        outcome = rule(Profile(np.concatenate([nobody, profile.places], axis=1)))

        assert np.isnan(outcome.score[0, 0])
        assert outcome.seat_order_decided is None or not outcome.seat_order_decided[0]
        np.testing.assert_array_equal(outcome.score[1:], rule(profile).score)

    @pytest.mark.parametrize("rule", [tournament, schulze], ids=str)
    def test_fifty_candidates_are_ordered(self, rule):
        """A unanimous order of fifty candidates is the order of scores."""
        order = np.random.default_rng(2).permutation(50)
        profile = Profile.from_ranks(np.tile(order + 1.0, (3, 1)))

        scores = rule(profile).score[:, 0]

        np.testing.assert_allclose(scores, 1 - order / 49)


def test_the_grid_keeps_real_differences_of_weights():
    """Equal sums meet on the grid, a millionth stays a difference, and no weight becomes 0."""
    sums = np.array([[0.1 + 0.2, 0.0], [0.3, 0.0], [0.3 + 1e-6, 0.0]])

    whole = round_to_grid(sums, np.array([0.6, 0.0]))

    assert whole[0, 0] == whole[1, 0] < whole[2, 0]
    assert whole[:, 1].tolist() == [0, 0, 0]
