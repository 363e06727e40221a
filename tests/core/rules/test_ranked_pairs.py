"""The rule `ranked_pairs`: published examples, brute-force twins, stated limits."""

import numpy as np
import pytest
from hypothesis import given

from elections import check_sessions_alone, election, profiles, random_profile
from witan.core.profile import Profile
from witan.core.rules.pairwise import ranked_pairs
from witan.core.rules.registry import Axiom

Relation = frozenset[tuple[int, int]]


def margins_of(profile: Profile) -> dict[tuple[int, int], int]:
    """Margins of every ordered pair of the first session, without unranked candidates."""
    ranks = profile.ranks[:, :, 0]
    voted = np.flatnonzero(~np.isnan(ranks).all(axis=0)).tolist()
    return {
        (i, j): int((ranks[:, i] < ranks[:, j]).sum() - (ranks[:, j] < ranks[:, i]).sum())
        for i in voted
        for j in voted
        if i != j
    }


def with_pair(relation: Relation, i: int, j: int) -> Relation:
    """Lock i over j in, with every pair that follows from it."""
    over = {i} | {a for a, b in relation if b == i}
    under = {j} | {b for a, b in relation if a == j}
    return relation | {(a, b) for a in over for b in under}


def every_lock_in(margins: dict[tuple[int, int], int]) -> set[Relation]:
    """Lock pairs in by falling margin, in every order of equal margins."""
    states: set[Relation] = {frozenset()}
    for size in sorted({m for m in margins.values() if m >= 0}, reverse=True):
        group = [pair for pair, m in margins.items() if m == size]
        settled, open_states = set(), list(states)
        visited = set(states)
        while open_states:
            state = open_states.pop()
            free = [(i, j) for i, j in group if (i, j) not in state and (j, i) not in state]
            if not free:
                settled.add(state)
            for i, j in free:
                following = with_pair(state, i, j)
                if following not in visited:
                    visited.add(following)
                    open_states.append(following)
        states = settled
    return states


def ranked_pairs_by_hand(profile: Profile) -> list[float]:
    """Score each candidate of the first session by its best place over all lock-ins."""
    ranks = profile.ranks[:, :, 0]
    orders = every_lock_in(margins_of(profile))
    shares = [np.nan] * profile.n_candidates
    voted = np.flatnonzero(~np.isnan(ranks).all(axis=0)).tolist()
    for c in voted:
        above = min(sum(b == c for _, b in order) for order in orders)
        shares[c] = 1 - above / max(len(voted) - 1, 1)
    return shares


def lock_in_once(profile: Profile, rng: np.random.Generator | None = None) -> list[float]:
    """Lock majorities in by falling margin, equal ones in seat order or in a random one."""
    margins = margins_of(profile)
    pairs = [pair for pair, m in margins.items() if m > 0]
    if rng is not None:
        pairs = [pairs[k] for k in rng.permutation(len(pairs))]
    relation: Relation = frozenset()
    for i, j in sorted(pairs, key=lambda pair: -margins[pair]):
        if (j, i) not in relation:
            relation = with_pair(relation, i, j)
    seats = range(profile.n_candidates)
    return [1 - sum(b == c for _, b in relation) / (len(seats) - 1) for c in seats]


def with_margins(margins: np.ndarray) -> np.ndarray:
    """Build complete ballots with these even margins, after McGarvey."""
    seats = range(len(margins))
    ballots = []
    for i, j in np.argwhere(margins > 0):
        others = [k for k in seats if k not in (i, j)]
        for _ in range(int(margins[i, j]) // 2):
            ballots += [[i, j, *others], [*reversed(others), i, j]]
    return np.argsort(np.array(ballots), axis=1) + 1.0


class TestUpToSixCandidates:
    """Every way of breaking ties between equal margins is followed."""

    @given(profile=profiles())
    def test_scores_equal_every_tie_order(self, profile):
        """Partial ballots are included."""
        scores = ranked_pairs(profile).score[:, 0]

        np.testing.assert_allclose(scores, ranked_pairs_by_hand(profile), atol=1e-12)

    @given(profile=profiles(reviewers=(3, 5), candidates=(6, 6), ties=False, partial=False))
    def test_six_candidates_equal_every_tie_order(self, profile):
        """At six candidates the scores still equal those under all tie orders."""
        scores = ranked_pairs(profile).score[:, 0]

        np.testing.assert_allclose(scores, ranked_pairs_by_hand(profile), atol=1e-12)

    def test_the_least_majority_of_a_cycle_is_not_locked(self):
        """A beats B 7–2, B beats C 6–3, C beats A 5–4: the last is skipped and A wins."""
        profile = election("4 × x: A > B > C", "3 × y: C > A > B", "2 × z: B > C > A")

        scores = ranked_pairs(profile).score[:, 0]

        assert scores.tolist() == [1.0, 0.5, 0.0]

    def test_equal_margins_in_a_cycle_are_a_tie(self):
        """Each candidate leads under some tie order, and no seat decides."""
        outcome = ranked_pairs(election("x: A > B > C", "y: B > C > A", "z: C > A > B"))

        assert outcome.score[:, 0].tolist() == [1.0, 1.0, 1.0]
        assert not outcome.seat_order_decided.any()

    def test_a_near_copy_may_win_where_margins_are_equal(self):
        """E wins under no tie order, but with E2 beside it on every ballot one of them wins."""
        margins = np.array(
            [
                [0, -4, 2, 4, -4],
                [4, 0, -4, 2, -4],
                [-2, 4, 0, 2, 2],
                [-4, -2, -2, 0, 4],
                [4, 4, -2, -4, 0],
            ]
        )
        ranks = with_margins(margins)
        first = np.arange(len(ranks)) % 2 == 0
        doubled = ranks + (ranks > ranks[:, 4:])
        copies = np.stack([ranks[:, 4] + ~first, ranks[:, 4] + first], axis=1)
        cloned = np.concatenate([doubled[:, :4], copies], axis=1)

        before = ranked_pairs(Profile.from_ranks(ranks)).score[:, 0]
        after = ranked_pairs(Profile.from_ranks(cloned)).score[:, 0]

        assert before[4] < 1.0
        assert after[4:].max() == 1.0
        assert Axiom.CLONES not in ranked_pairs.satisfies


class TestFromSevenCandidatesOn:
    """Equal margins are locked in seat order, and the outcome says where that mattered."""

    @pytest.mark.parametrize("shape", [(4, 7, 60), (5, 9, 30), (3, 17, 6), (3, 33, 2), (3, 70, 1)])
    def test_scores_equal_locking_in_seat_order(self, shape):
        """Scores equal those of a plain lock-in, at every number of candidates."""
        batch = random_profile(np.random.default_rng(4), shape)

        scores = ranked_pairs(batch).score

        for k in range(shape[2]):
            expected = lock_in_once(batch.take(slice(k, k + 1)))
            np.testing.assert_allclose(scores[:, k], expected, atol=1e-12)

    def test_undecided_by_seat_order_means_no_tie_order_matters(self):
        """Where seat order did not decide, random tie orders give the same scores."""
        rng = np.random.default_rng(5)
        batch = random_profile(rng, (9, 7, 400))

        outcome = ranked_pairs(batch)

        cyclic = np.nanmax(np.abs(outcome.score - _by_majority_chains(batch)), axis=0) > 1e-9
        silent = np.flatnonzero(~outcome.seat_order_decided & cyclic)
        assert silent.size >= 10
        for k in silent[:40]:
            session = batch.take(slice(k, k + 1))
            for _ in range(3):
                np.testing.assert_allclose(outcome.score[:, k], lock_in_once(session, rng))

    def test_a_perfect_cycle_is_decided_by_seat_order(self):
        """With seven candidates a cycle of equal margins is cut in favour of the first seat."""
        profile = election(
            "x: A > B > C > D > E > F > G",
            "y: B > C > A > D > E > F > G",
            "z: C > A > B > D > E > F > G",
        )

        outcome = ranked_pairs(profile)

        assert outcome.seat_order_decided.tolist() == [True]
        np.testing.assert_allclose(outcome.score[:, 0], [1 - k / 6 for k in range(7)])

    def test_a_transitive_majority_is_not_decided_by_seat_order(self):
        """Equal margins without a cycle are locked in any order."""
        outcome = ranked_pairs(election("3 × x: G > F > E > D > C > B > A"))

        assert not outcome.seat_order_decided.any()
        assert outcome.score[:, 0].argsort().tolist() == [0, 1, 2, 3, 4, 5, 6]

    def test_a_cycle_of_unequal_margins_is_not_decided_by_seat_order(self):
        """A cycle with a unique least majority is cut there."""
        tail = "> D > E > F > G"
        profile = election(
            f"4 × x: A > B > C {tail}", f"3 × y: C > A > B {tail}", f"2 × z: B > C > A {tail}"
        )

        outcome = ranked_pairs(profile)

        assert not outcome.seat_order_decided.any()
        assert outcome.score[:, 0].argmax() == 0


def _by_majority_chains(batch: Profile) -> np.ndarray:
    """Score with every majority locked, which differs from the rule in cycles."""
    ranks = batch.ranks
    n = batch.n_candidates
    wins = np.sign(ranks[:, np.newaxis] - ranks[:, :, np.newaxis]).sum(axis=0) > 0
    for via in range(n):
        wins |= wins[:, via, np.newaxis] & wins[np.newaxis, via]
    return 1 - (wins.sum(axis=0) - wins.diagonal().T) / (n - 1)


@pytest.mark.parametrize("n_candidates", [3, 5, 6, 7])
def test_a_batch_scores_each_session_as_alone(n_candidates):
    """Each session of a batch has its own scores."""
    rng = np.random.default_rng(6)
    batch = random_profile(rng, (4, n_candidates, 150), ties=True, partial=True)

    check_sessions_alone(ranked_pairs, batch)
