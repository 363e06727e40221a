"""The rule `irv`: published examples, a brute-force twin, stated limits."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elections import TENNESSEE, check_sessions_alone, election, profiles, random_profile
from witan.core.placing import leads
from witan.core.profile import Profile
from witan.core.rules.elimination import irv, irv_rounds
from witan.core.rules.positional import borda
from witan.core.rules.registry import Axiom
from witan.errors import InvalidParameter

Remaining = tuple[int, ...]

BURLINGTON = {
    "m1: Montroll > Kiss > Wright": 1332,
    "m2: Montroll > Wright > Kiss": 767,
    "m3: Montroll": 455,
    "k1: Kiss > Montroll > Wright": 2043,
    "k2: Kiss > Wright > Montroll": 371,
    "k3: Kiss": 568,
    "w1: Wright > Montroll > Kiss": 1513,
    "w2: Wright > Kiss > Montroll": 495,
    "w3: Wright": 1289,
}


class Recount:
    """Recount the first session in fractions, one ballot and one elimination at a time."""

    def __init__(self, profile: Profile) -> None:
        rows = profile.ranks[:, :, 0]
        self.ballots = [
            {c: Fraction(int(2 * p), 2) for c, p in enumerate(row) if not np.isnan(p)}
            for row in rows
        ]
        self.voted = tuple(c for c in range(rows.shape[1]) if any(c in b for b in self.ballots))
        self.by_borda = self.by_seat = False

    def borda(self, c: int) -> Fraction:
        """The mean share of rivals beaten, over ballots that rank the candidate and a rival."""
        shares_beaten = [
            (len(b) - b[c]) / (len(b) - 1) for b in self.ballots if c in b and len(b) > 1
        ]
        return sum(shares_beaten, Fraction(0)) / max(len(shares_beaten), 1)

    def lowest_candidates(self, remaining: Remaining) -> list[int]:
        """The candidates that may be eliminated next."""
        first = dict.fromkeys(remaining, Fraction(0))
        for ballot in self.ballots:
            here = {c: p for c, p in ballot.items() if c in remaining}
            top = [c for c, p in here.items() if p == min(here.values())]
            for c in top:
                first[c] += Fraction(1, len(top))
        fewest = [c for c in remaining if first[c] == min(first.values())]
        lowest = [c for c in fewest if self.borda(c) == min(map(self.borda, fewest))]
        self.by_borda |= len(lowest) < len(fewest)
        return lowest

    def every_order(self) -> list[float]:
        """Score each candidate by its best place over all orders of elimination."""
        best = dict.fromkeys(self.voted, len(self.voted))

        @cache
        def follow(remaining: Remaining) -> None:
            if len(remaining) == 1:
                best[remaining[0]] = 1
                return
            for c in self.lowest_candidates(remaining):
                best[c] = min(best[c], len(remaining))
                follow(tuple(other for other in remaining if other != c))

        if self.voted:
            follow(self.voted)
        return self.shares(best)

    def seat_order(self) -> list[float]:
        """Score each candidate by its place when the later seat is eliminated."""
        best, remaining = {}, self.voted
        while len(remaining) > 1:
            lowest = self.lowest_candidates(remaining)
            self.by_seat |= len(lowest) > 1
            best[lowest[-1]] = len(remaining)
            remaining = tuple(c for c in remaining if c != lowest[-1])
        return self.shares(best | dict.fromkeys(remaining, 1))

    def shares(self, place: dict[int, int]) -> list[float]:
        """Turn places into scores."""
        n = len(self.voted)
        seats = range(max(self.voted, default=-1) + 1)
        return [(n - place[c]) / (n - 1) if n > 1 else 1.0 for c in seats if c in place]


def has_votes(profile: Profile) -> np.ndarray:
    """The candidates of the first session that some ballot ranks."""
    return profile.rank_mask[:, :, 0].any(axis=0)


class TestPublishedElections:
    """Elections with published rounds."""

    def test_tennessee_elects_knoxville(self):
        """Knoxville wins the textbook example: 58 to 42 over Memphis in the last round."""
        profile = election(*TENNESSEE)

        scores = irv(profile).score[:, 0]
        rounds = irv_rounds(profile)

        np.testing.assert_allclose(scores, [0, 1, 2 / 3, 1 / 3])
        assert [r.first_places.tolist() for r in rounds] == [
            [15, 17, 42, 26],
            [0, 32, 42, 26],
            [0, 58, 42, 0],
        ]
        assert [r.eliminated for r in rounds] == [0, 3, 2]

    def test_burlington_eliminates_the_condorcet_winner(self):
        """Burlington 2009: Montroll beats both other leaders head to head and is eliminated first.

        The nine piles reproduce all six pairwise totals that electowiki lists for the election
        (Montroll 4067–3477 Kiss, Montroll 4597–3668 Wright, Kiss 4314–4064 Wright).
        """
        weights = np.array([[float(count)] for count in BURLINGTON.values()])
        profile = election(*BURLINGTON).replace_weights(weights)

        outcome = irv(profile)
        rounds = irv_rounds(profile)

        kiss, montroll, wright = outcome.score[:, 0]
        assert (kiss, wright, montroll) == (1.0, 0.5, 0.0)
        assert [r.first_places.tolist() for r in rounds] == [[2982, 2554, 3297], [4314, 0, 4064]]
        assert [r.exhausted for r in rounds] == [0, 455]
        assert outcome.details["exhausted"].tolist() == [455]
        assert Axiom.CONDORCET not in irv.satisfies


class TestBruteForce:
    """A recount in fractions gives the same."""

    @given(profile=profiles(candidates=(1, 5)))
    def test_scores_equal_a_recount_of_every_tie(self, profile):
        """Scores, and whether Borda decided, equal those of a recursive recount."""
        twin = Recount(profile)

        outcome = irv(profile)

        scores = outcome.score[:, 0]
        np.testing.assert_allclose(scores[has_votes(profile)], twin.every_order(), atol=1e-12)
        assert np.isnan(scores[~has_votes(profile)]).all()
        assert outcome.details["decided_by_borda"].tolist() == [twin.by_borda]
        assert outcome.seat_order_decided.tolist() == [False]

    @given(profile=profiles(candidates=(7, 8), reviewers=(1, 5)))
    def test_above_six_candidates_the_later_seat_is_eliminated(self, profile):
        """Scores and tie-breaks equal a recount; up to six candidates every tie is followed."""
        twin = Recount(profile)
        followed = has_votes(profile).sum() <= 6

        outcome = irv(profile)

        expected = twin.every_order() if followed else twin.seat_order()
        np.testing.assert_allclose(outcome.score[has_votes(profile), 0], expected, atol=1e-12)
        assert outcome.details["decided_by_borda"].tolist() == [twin.by_borda]
        assert outcome.seat_order_decided.tolist() == [twin.by_seat]


class TestTies:
    """Borda breaks ties for fewest first places; remaining ties are followed both ways."""

    def test_borda_breaks_a_tie_for_fewest_first_places(self):
        """B and C have one first place each and C has the lower Borda score: C is eliminated."""
        profile = election("x: A > B > C", "y: A > B > C", "z: B > A > C", "w: C > B > A")

        outcome = irv(profile)

        assert outcome.score[:, 0].tolist() == [1.0, 1.0, 0.0]
        assert outcome.details["decided_by_borda"].tolist() == [True]
        assert [r.broken_by for r in irv_rounds(profile)] == ["borda", "seat"]

    def test_a_perfect_cycle_is_a_tie(self):
        """Each candidate wins under some order; the rounds shown eliminate the last seat first."""
        profile = election("x: A > B > C", "y: B > C > A", "z: C > A > B")

        scores = irv(profile).score[:, 0]
        rounds = irv_rounds(profile)

        assert scores.tolist() == [1.0, 1.0, 1.0]
        assert [(r.eliminated, r.broken_by) for r in rounds] == [(2, "seat"), (1, "none")]

    def test_tied_first_places_are_split(self):
        """Each of three candidates tied for first gets a third of the ballot."""
        profile = election("x: A = B = C > D", "y: A > D > B > C")

        rounds = irv_rounds(profile)

        np.testing.assert_allclose(rounds[0].first_places, [4 / 3, 1 / 3, 1 / 3, 0])

    def test_with_seven_candidates_seat_order_breaks_ties(self):
        """Two identical candidates are separated by seat, and the details say so."""
        tied = election("x: A > B > C > D > E > F = G")
        clear = election("x: A > B > C > D > E > F > G")

        assert irv(tied).seat_order_decided.tolist() == [True]
        assert irv(clear).seat_order_decided.tolist() == [False]
        np.testing.assert_allclose(irv(tied).score[:, 0], [1 - k / 6 for k in range(7)])


class TestLimits:
    """Properties that the rule lacks."""

    def test_more_support_can_lose_the_election(self):
        """Two ballots that raise the winner A from second to first make A lose to C."""
        before = election(
            "6 × p: A > B > C", "5 × q: C > A > B", "4 × r: B > C > A", "2 × s: B > A > C"
        )
        after = election(
            "6 × p: A > B > C", "5 × q: C > A > B", "4 × r: B > C > A", "2 × s: A > B > C"
        )

        assert irv(before).score[:, 0].argmax() == 0
        assert irv(after).score[:, 0].argmax() == 2
        assert Axiom.MONOTONICITY not in irv.satisfies

    def test_a_near_copy_changes_the_winner_where_borda_breaks_ties(self):
        """D, next to C on every ballot, changes a Borda score, hence elimination and winner."""
        before = election("x: A > C > B", "y: B > A > C", "z: C > B > A")
        after = election("x: A > D > C > B", "y: B > A > D > C", "z: C > D > B > A")

        led = irv(before).score[:, 0]
        leads = irv(after).score[:, 0]

        assert led.tolist() == [1.0, 1.0, 1.0]
        assert np.flatnonzero(leads == 1.0).tolist() == [0, 1]
        assert Axiom.CLONES not in irv.satisfies


class TestRounds:
    """The eliminations of one session, round by round."""

    @given(profile=profiles(candidates=(2, 8)))
    def test_the_remaining_candidate_wins(self, profile):
        """Rounds eliminate all but one candidate with votes, whose score is 1."""
        rounds = irv_rounds(profile)

        out = {r.eliminated for r in rounds}
        remaining = set(np.flatnonzero(has_votes(profile)).tolist()) - out
        assert len(out) == len(rounds) == max(has_votes(profile).sum() - 1, 0)
        assert [irv(profile).score[c, 0] for c in remaining] == [1.0] * min(
            1, has_votes(profile).sum()
        )

    @given(profile=profiles(candidates=(2, 8)))
    def test_every_ballot_is_counted_or_exhausted(self, profile):
        """First places and exhausted ballots add up to the ballots that rank a candidate."""
        cast = profile.rank_mask[:, :, 0].any(axis=1).sum()

        rounds = irv_rounds(profile)

        sums = [r.first_places.sum() + r.exhausted for r in rounds]
        np.testing.assert_allclose(sums, [cast] * len(rounds))
        if rounds:
            assert irv(profile).details["exhausted"].tolist() == [rounds[-1].exhausted]

    def test_several_sessions_are_refused(self):
        """Rounds exist for one session at a time."""
        batch = random_profile(np.random.default_rng(0), (3, 4, 2))

        with pytest.raises(InvalidParameter, match="2 sessions"):
            irv_rounds(batch)


@pytest.mark.parametrize("n_candidates", [2, 5, 6, 8])
@pytest.mark.parametrize("ties", [True, False])
def test_a_batch_scores_each_session_as_alone(n_candidates, ties):
    """Each session of a batch has its own scores and details."""
    rng = np.random.default_rng(7)
    batch = random_profile(rng, (4, n_candidates, 100), ties=ties, partial=True)

    check_sessions_alone(irv, batch)


@given(profile=profiles(), data=st.data())
def test_a_weight_of_three_equals_three_ballots(profile, data):
    """Whole weights equal repeated ballots, and a weight of 0 an absent one."""
    n = profile.n_reviewers
    times = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weighted = irv(profile.replace_weights(np.array(times, dtype=float)[:, np.newaxis]))

    repeated = irv(profile.keep_ballots(np.repeat(np.arange(n), times)))

    np.testing.assert_array_equal(weighted.score, repeated.score)
    np.testing.assert_allclose(weighted.details["exhausted"], repeated.details["exhausted"])


@pytest.mark.parametrize("n_candidates", [(2, 5), (6, 6)])
@given(data=st.data())
def test_a_candidate_without_votes_changes_nothing(n_candidates, data):
    """Its score is NaN, and the other scores are those without it."""
    profile = data.draw(profiles(candidates=n_candidates))
    nobody = np.zeros((profile.n_reviewers, 1, 1), dtype=profile.places.dtype)

    outcome = irv(Profile(np.concatenate([nobody, profile.places], axis=1)))

    assert np.isnan(outcome.score[0, 0])
    np.testing.assert_array_equal(outcome.score[1:], irv(profile).score)
    assert not outcome.seat_order_decided[0]


def test_float_rounding_decides_no_round():
    """Weights 0.1 and 0.2 for A tie with 0.3 for B in spite of binary rounding."""
    profile = election("x: A > B", "y: A > B", "z: B > A")

    scores = irv(profile.replace_weights(np.array([[0.1], [0.2], [0.3]]))).score[:, 0]

    assert scores.tolist() == [1.0, 1.0]


def test_a_candidate_missing_from_one_ballot_of_five_leads_less_often():
    """Of three equally good candidates it leads in 19% of sessions, and under Borda in 33%."""
    rng = np.random.default_rng(1)
    ranks = np.argsort(rng.random((5, 3, 4_000)), axis=1).argsort(axis=1) + 1.0
    ranks[0] -= ranks[0] > ranks[0, 0]
    ranks[0, 0] = np.nan
    profile = Profile(np.nan_to_num(2 * ranks).astype(np.uint8))

    def share(rule):
        leading = leads(rule(profile), profile, rule)
        return float((leading[0] / leading.sum(axis=0)).mean())

    assert share(irv) == pytest.approx(0.19, abs=0.02)
    assert share(borda) == pytest.approx(0.33, abs=0.02)
