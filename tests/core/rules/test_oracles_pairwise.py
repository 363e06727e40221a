"""The pairwise rules and `irv` agree with pref_voting, an independent implementation."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from elections import random_profile
from witan.core.profile import Profile
from witan.core.rules.elimination import irv
from witan.core.rules.pairwise import ranked_pairs, schulze, tournament

if TYPE_CHECKING:
    from pref_voting.profiles import Profile as LinearOrders
    from pref_voting.profiles_with_ties import ProfileWithTies


def sessions(seed: int, shape: tuple[int, int, int], **kind: bool) -> Iterator[Profile]:
    """Random sessions, one at a time."""
    batch = random_profile(np.random.default_rng(seed), shape, **kind)
    return (batch.take(slice(k, k + 1)) for k in range(shape[2]))


def linear_orders(profile: Profile) -> "LinearOrders":
    """One session of complete ballots without ties, in the form of pref_voting."""
    from pref_voting.profiles import Profile as LinearOrders

    return LinearOrders(profile.places[:, :, 0].argsort(axis=1).tolist())


def weak_orders(profile: Profile) -> "ProfileWithTies":
    """One session of any ballots in the form of pref_voting; unranked candidates are absent."""
    from pref_voting.profiles_with_ties import ProfileWithTies

    ballots = [
        {c: int(place) for c, place in enumerate(row) if place > 0}
        for row in profile.places[:, :, 0]
    ]
    return ProfileWithTies(ballots, candidates=list(range(profile.n_candidates)))


def winners(scores: np.ndarray) -> list[int]:
    """The candidates with a score of exactly 1."""
    return np.flatnonzero(scores == 1.0).tolist()


@pytest.mark.parametrize("shape", [(3, 4, 25), (4, 5, 25), (7, 6, 15), (5, 9, 5)])
def test_tournament_equals_copeland(shape):
    """On complete ballots a share is pref_voting's Copeland score, scaled to 0–1."""
    n = shape[1]
    for profile in sessions(11, shape):
        copeland = linear_orders(profile).copeland_scores()

        scores = tournament(profile).score[:, 0]

        expected = [(copeland[c] + n - 1) / (2 * (n - 1)) for c in range(n)]
        np.testing.assert_allclose(scores, expected)


@pytest.mark.parametrize("strength", ["winning_votes", "margins"])
@pytest.mark.parametrize("shape", [(4, 4, 25), (6, 5, 25), (5, 8, 10)])
def test_schulze_defeats_equal_pref_voting(strength, shape):
    """On tied and partial ballots each candidate has as many defeats as in pref_voting."""
    from pref_voting.margin_based_methods import beat_path_defeat

    for profile in sessions(12, shape, ties=True, partial=True):
        orders = weak_orders(profile)
        measure = orders.support if strength == "winning_votes" else orders.margin
        defeats = beat_path_defeat(orders, strength_function=measure)
        voted = profile.rank_mask[:, :, 0].any(axis=0)

        scores = schulze(profile, strength=strength).score[:, 0]

        beaten = np.array([defeats.in_degree(c) for c in range(shape[1])])
        np.testing.assert_allclose(scores[voted], 1 - beaten[voted] / (voted.sum() - 1))


@pytest.mark.parametrize("shape", [(3, 4, 40), (4, 4, 25), (5, 5, 25)])
def test_ranked_pairs_winners_equal_pref_voting(shape):
    """The winners are those of pref_voting over all ways of breaking ties."""
    from pref_voting.margin_based_methods import ranked_pairs as ranked_pairs_winners

    for profile in sessions(13, shape):
        expected = ranked_pairs_winners(linear_orders(profile), algorithm="from_stacks")

        scores = ranked_pairs(profile).score[:, 0]

        assert winners(scores) == sorted(expected)


@pytest.mark.parametrize("shape", [(4, 4, 40), (7, 5, 40), (25, 4, 30), (101, 5, 10)])
def test_irv_winners_are_winners_of_pref_voting(shape):
    """Winners are those over all tie orders, or some of them where Borda decided."""
    from pref_voting.iterative_methods import instant_runoff_put

    matches = 0
    for profile in sessions(14, shape):
        expected = instant_runoff_put(linear_orders(profile))

        outcome = irv(profile)

        elected = winners(outcome.score[:, 0])
        assert set(elected) <= set(expected)
        if not (outcome.details["decided_by_borda"][0] or outcome.seat_order_decided[0]):
            matches += 1
            assert elected == expected
    assert matches > 0


def test_irv_splits_tied_first_places_as_pref_voting_does():
    """On tied and partial ballots the winners are among those of pref_voting's split rule."""
    from pref_voting.iterative_methods import split_irv_put

    matches = 0
    for profile in sessions(15, (6, 4, 80), ties=True, partial=True):
        expected = split_irv_put(weak_orders(profile))

        outcome = irv(profile)

        elected = winners(outcome.score[:, 0])
        assert set(elected) <= set(expected)
        if not outcome.details["decided_by_borda"][0]:
            matches += 1
            assert elected == expected
    assert matches > 10
