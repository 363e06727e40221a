"""The rule `kemeny`: published examples, brute-force twins, each method against the next."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from elections import (
    TENNESSEE,
    check_sessions_alone,
    election,
    mean_ranks,
    profiles,
    random_profile,
)
from witan.core.profile import Profile, matchups
from witan.core.rules.kemeny import kemeny
from witan.core.rules.kemeny_search import (
    MAX_TIED,
    barrier,
    components,
    cost,
    rank_component,
    rank_session,
)
from witan.core.rules.positional import borda
from witan.errors import TooLarge

CONDORCET = (
    "23 × p: a > b > c",
    "17 × q: b > c > a",
    "2 × r: b > a > c",
    "10 × s: c > a > b",
    "8 × t: c > b > a",
)


def exhaustive_search(profile: Profile) -> tuple[list[float], float, int]:
    """Mean places, distance and number of optimal rankings of one session, by trying all."""
    ranks = profile.ranks[:, :, 0].tolist()
    weights = [1.0] * len(ranks) if profile.weights is None else profile.weights[:, 0].tolist()
    n = profile.n_candidates
    voted = [
        c
        for c in range(n)
        if any(row[c] > 0 and w > 0 for row, w in zip(ranks, weights, strict=True))
    ]
    distance = {
        order: sum(
            w
            for a, b in combinations(order, 2)
            for row, w in zip(ranks, weights, strict=True)
            if row[b] < row[a]
        )
        for order in permutations(voted)
    }
    least = min(distance.values())
    optimal = [o for o, d in distance.items() if d <= least + 1e-9 * (1 + sum(weights))]
    places = [
        -sum(order.index(c) + 1 for order in optimal) / len(optimal) if c in voted else np.nan
        for c in range(n)
    ]
    return places, least, len(optimal)


def optimal_orders(over: np.ndarray) -> tuple[np.ndarray, int]:
    """All optimal rankings, one per row, and the distance, by trying all rankings."""
    orders = np.array(list(permutations(range(len(over)))))
    paid = sum(over[orders[:, b], orders[:, a]] for a, b in combinations(range(len(over)), 2))
    return orders[paid == paid.min()], int(paid.min())


def seats_against(order: tuple[int, ...]) -> int:
    """The number of pairs in a ranking against seat order."""
    return sum(a > b for a, b in combinations(order, 2))


def order_of(scores, s: int = 0) -> list[int]:
    """The ranking given by the places of one session."""
    return np.argsort(-scores.score[:, s]).tolist()


def borda_pairs(profile: Profile) -> np.ndarray:
    """Whether i has a higher Borda score than j, in the first session."""
    score = borda(profile).score[:, 0].round(9)
    return score[:, np.newaxis] > score


class TestPublishedExamples:
    """Published results are reproduced."""

    def test_tennessee(self):
        """The capital of Tennessee: 393 agreements of 600 (Wikipedia, "Kemeny method")."""
        chattanooga, knoxville, memphis, nashville = range(4)

        scores = kemeny(election(*TENNESSEE))

        assert order_of(scores) == [nashville, chattanooga, knoxville, memphis]
        assert scores.details["distance"].tolist() == [600 - 393]
        assert scores.details["optima"].tolist() == [1]
        assert scores.details["unique"].tolist() == [True]

    def test_condorcets_example_of_60_voters(self):
        """Young 1988 solves Condorcet's own example of 60 voters by b > c > a, not a > b > c."""
        scores = kemeny(election(*CONDORCET))

        assert order_of(scores) == [1, 2, 0]
        assert scores.details["distance"].tolist() == [18 + 25 + 33]

    def test_a_cycle_of_three_has_three_optima(self):
        """A perfect majority cycle has three optimal rankings with equal mean places."""
        scores = kemeny(election("p: a > b > c", "q: b > c > a", "r: c > a > b"))

        assert scores.score[:, 0].tolist() == [-2.0, -2.0, -2.0]
        assert scores.details["optima"].tolist() == [3]
        assert scores.details["unique"].tolist() == [False]
        assert scores.details["distance"].tolist() == [4]


class TestExhaustiveSearch:
    """Small elections, solved again by trying every ranking."""

    @given(profile=profiles())
    def test_results_equal_exhaustive_search(self, profile):
        """Distance, number of optima and mean places are those of trying every ranking."""
        places, distance, optima = exhaustive_search(profile)

        scores = kemeny(profile)

        assert scores.score[:, 0] == pytest.approx(places, nan_ok=True)
        assert scores.details["distance"].tolist() == [distance]
        assert scores.details["optima"].tolist() == [optima]
        assert scores.details["unique"].tolist() == [optima == 1]
        assert not scores.seat_order_decided.any()

    @given(
        profile=profiles(candidates=(2, 4)),
        weights=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.7]), min_size=6, max_size=6),
    )
    def test_weighted_results_equal_exhaustive_search(self, profile, weights):
        """Rankings whose weights differ by rounding alone stay tied."""
        weighted = profile.replace_weights(np.array(weights[: profile.n_reviewers])[:, np.newaxis])
        if not any(weights[: profile.n_reviewers]):
            return
        places, distance, optima = exhaustive_search(weighted)

        scores = kemeny(weighted)

        assert scores.score[:, 0] == pytest.approx(places, nan_ok=True)
        assert scores.details["distance"] == pytest.approx([distance])
        assert scores.details["optima"].tolist() == [optima]

    @pytest.mark.parametrize("seed", range(4))
    def test_six_candidates_average_over_all_rankings(self, seed):
        """With six candidates the mean still runs over all 720 rankings."""
        profile = random_profile(np.random.default_rng(seed), (4, 6, 1), ties=True)
        orders, distance = optimal_orders(matchups(profile).wins[..., 0])
        expected = -1.0 - orders.argsort(axis=1).mean(axis=0)

        scores = kemeny(profile)

        assert scores.score[:, 0] == pytest.approx(expected)
        assert scores.details["distance"].tolist() == [distance]
        assert scores.details["optima"].tolist() == [len(orders)]

    @pytest.mark.parametrize(("size", "seed"), [(7, 1), (7, 2), (7, 3), (8, 1), (8, 2)])
    @pytest.mark.parametrize("ties", [False, True])
    def test_above_six_candidates_the_optimum_is_nearest_to_borda(self, size, seed, ties):
        """Further ties are decided by seat order."""
        profile = random_profile(np.random.default_rng(seed), (4, size, 1), ties=ties)
        orders, distance = optimal_orders(matchups(profile).wins[..., 0])
        target = borda_pairs(profile)
        against = [sum(target[b, a] for a, b in combinations(o, 2)) for o in orders]
        nearest = [
            tuple(o) for o, n in zip(orders.tolist(), against, strict=True) if n == min(against)
        ]
        nearest_order = min(nearest, key=lambda order: (seats_against(order), order))

        scores = kemeny(profile)

        assert order_of(scores) == list(nearest_order)
        assert scores.details["distance"].tolist() == [distance]
        assert scores.details["optima"].tolist() == [len(orders)]
        assert scores.seat_order_decided.tolist() == [len(nearest) > 1]

    @pytest.mark.parametrize("size", [3, 4, 5])
    def test_optima_equal_those_of_pref_voting(self, size):
        """On complete ballots pref_voting finds the same distance and optimal rankings."""
        from pref_voting.other_methods import kemeny_young_rankings
        from pref_voting.profiles import Profile as LinearOrders

        for seed in range(6):
            profile = random_profile(np.random.default_rng(seed), (4, size, 1))
            ballots = LinearOrders(profile.places[:, :, 0].argsort(axis=1).tolist())
            rankings, distance = kemeny_young_rankings(ballots)
            places = np.array(rankings).argsort(axis=1)

            scores = kemeny(profile)

            assert scores.score[:, 0] == pytest.approx(-1.0 - places.mean(axis=0))
            assert scores.details["distance"].tolist() == [distance]
            assert scores.details["optima"].tolist() == [len(rankings)]


class TestBatch:
    """A session's result does not depend on the other sessions of its batch."""

    @pytest.mark.parametrize("size", [3, 5, 6, 7, 9, 11])
    def test_a_batch_equals_single_sessions(self, size):
        """Sessions counted together have the results of each alone."""
        rng = np.random.default_rng(size)
        profile = random_profile(rng, (4, size, 12), ties=True, partial=True)

        check_sessions_alone(kemeny, profile)

    def test_sessions_beyond_the_first_block(self):
        """Sessions past the first block of the cache have the same results."""
        rng = np.random.default_rng(3)
        few = random_profile(rng, (5, 6, 10), recused=True)
        many = Profile(np.tile(few.places, 900))

        assert np.array_equal(kemeny(many).score, np.tile(kemeny(few).score, 900))

    @pytest.mark.parametrize("size", [4, 6, 8, 12])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_candidates_without_votes_change_no_score(self, size, weighted):
        """An unranked candidate has no score, and the other scores stay the same."""
        rng = np.random.default_rng(size)
        plain = random_profile(rng, (3, size, 5), ties=True)
        weights = rng.random((3, 5)) if weighted else None
        places = np.insert(plain.places, [0, 2], 0, axis=1)
        voted = np.delete(np.arange(size + 2), [0, 3])

        before = kemeny(plain.replace_weights(weights))
        after = kemeny(Profile(places, weights=weights))

        assert np.isnan(after.score[[0, 3]]).all()
        assert np.array_equal(after.score[voted], before.score)
        assert after.details["distance"] == pytest.approx(before.details["distance"])
        assert after.details["optima"].tolist() == before.details["optima"].tolist()

    @pytest.mark.parametrize("size", [5, 8, 13])
    def test_a_weight_of_two_equals_two_ballots(self, size):
        """Weight 2 gives the same result as casting the ballot twice."""
        plain = random_profile(np.random.default_rng(size), (5, size, 4), ties=True)
        doubled = plain.replace_weights(np.array([[2.0], [1.0], [1.0], [1.0], [1.0]]) * np.ones(4))
        twice = plain.keep_ballots(np.array([0, 0, 1, 2, 3, 4]))

        assert np.array_equal(kemeny(doubled).score, kemeny(twice).score)
        assert np.array_equal(kemeny(doubled).details["optima"], kemeny(twice).details["optima"])


class TestManyCandidates:
    """Sessions too large for the search over subsets."""

    @pytest.mark.parametrize("size", [12, 13, 14])
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_bounded_search_equals_the_search_over_subsets(self, size, ties, weighted):
        """Branch and bound gives the result of searching every subset."""
        rng = np.random.default_rng(size)
        for _ in range(3):
            profile = random_profile(rng, (6, size, 1), ties=ties)
            if weighted:
                profile = profile.replace_weights(rng.choice([0.1, 0.2, 0.3], (6, 1)))
            over, target = matchups(profile).wins[..., 0], borda_pairs(profile)
            slack = 1e-9 * float(over.sum()) if weighted else None

            full = rank_component(over, target, slack)
            bounded = rank_component(over, target, slack, by_subsets=0)

            assert bounded.order.tolist() == full.order.tolist()
            assert bounded.optima == full.optima
            assert bounded.several == full.several

    @pytest.mark.parametrize("shape", [(3, 20), (10, 22), (11, 24)])
    def test_integer_programming_finds_no_better(self, shape):
        """A general integer program with every cycle of three cut off has the same optimum."""
        profile = random_profile(np.random.default_rng(shape[1]), (*shape, 1))
        over = matchups(profile).wins[..., 0].astype(float)

        assert kemeny(profile).details["distance"][0] == pytest.approx(least_distance(over))

    @pytest.mark.parametrize(
        ("ballots", "seed"),
        [
            (5, 1),
            *(
                pytest.param(*case, marks=pytest.mark.slow)
                for case in [(5, 7), (101, 9), (101, 18)]
            ),
        ],
    )
    def test_fifty_candidates_are_locally_optimal(self, ballots, seed):
        """Fifty candidates in cycles are ranked so that moving one candidate never improves."""
        profile = random_profile(np.random.default_rng(seed), (ballots, 50, 1))
        over = matchups(profile).wins[..., 0].astype(float)

        scores = kemeny(profile)

        order = np.array(order_of(scores))
        least = scores.details["distance"][0]
        assert sorted(order.tolist()) == list(range(50))
        assert least == cost(over, order)
        for start in range(50):
            rest = np.delete(order, start)
            assert all(cost(over, np.insert(rest, end, order[start])) >= least for end in range(50))

    @pytest.mark.slow
    def test_seat_order_decides_a_complete_dead_heat(self):
        """Where every ranking is optimal and Borda ties, seat order decides, and details say so."""
        profile = election("p: " + " = ".join(f"c{k:02d}" for k in range(50)))

        scores = kemeny(profile)

        assert order_of(scores) == list(range(50))
        assert scores.details["distance"].tolist() == [0]
        assert scores.details["optima"].tolist() == [0]
        assert scores.details["unique"].tolist() == [False]
        assert scores.seat_order_decided.tolist() == [True]

    @pytest.mark.slow
    @pytest.mark.parametrize("weighted", [False, True])
    def test_borda_chooses_among_the_optima_of_two_ballots(self, weighted):
        """Two equal ballots have too many optima to count; none is nearer to Borda than ours."""
        profile = random_profile(np.random.default_rng(23), (2, 50, 1))
        weights = np.full((2, 1), 0.7) if weighted else None
        over = matchups(profile).wins[..., 0]

        scores = kemeny(profile.replace_weights(weights))

        order = order_of(scores)
        target = borda_pairs(profile)
        disagreed = np.minimum(over, over.T).sum() / 2
        assert scores.details["distance"][0] == pytest.approx(disagreed * (0.7 if weighted else 1))
        assert scores.details["optima"].tolist() == [0]
        assert not any(target[b, a] for a, b in combinations(order, 2))

    @pytest.mark.slow
    def test_sparse_ballots_are_ranked(self):
        """Short ballots over many candidates, most pairs never compared, still give a ranking."""
        rng = np.random.default_rng(5)
        keys = np.full((20, 45, 1), np.nan)
        for row in keys[:, :, 0]:
            row[rng.choice(45, 6, replace=False)] = rng.random(6)
        profile = Profile.from_ranks(mean_ranks(keys))
        over = matchups(profile).wins[..., 0].astype(float)

        scores = kemeny(profile)

        order = np.array([c for c in order_of(scores) if not np.isnan(scores.score[c, 0])])
        assert scores.details["distance"][0] == pytest.approx(least_distance(over))
        assert scores.details["distance"][0] == cost(over, order)

    def test_hundreds_of_candidates_without_cycles_are_ranked(self):
        """Without majority cycles the order is forced and quick to find."""
        names = [f"c{k:03d}" for k in range(300)]
        profile = election("3 × p: " + " > ".join(reversed(names)), "q: " + " > ".join(names))

        scores = kemeny(profile)

        assert order_of(scores) == list(range(299, -1, -1))
        assert scores.details["unique"].tolist() == [True]

    def test_too_large_a_cycle_is_refused(self):
        """The error names the largest cycle that can be ranked exactly."""
        names = [f"c{k:02d}" for k in range(MAX_TIED + 1)]
        rotated = [names[k:] + names[:k] for k in (0, 20, 40)]
        profile = election(*(f"r{k}: " + " > ".join(o) for k, o in enumerate(rotated)))

        with pytest.raises(TooLarge, match="exact Kemeny") as caught:
            kemeny(profile)

        assert caught.value.limit == MAX_TIED


class TestParts:
    """The parts of the exact search."""

    @given(seed=st.integers(0, 10_000), size=st.integers(3, 9), ballots=st.integers(1, 8))
    def test_bound_and_excess_sum_to_the_cost(self, seed, size, ballots):
        """Bound, penalties and tolls sum to any ranking's cost, and none is negative."""
        rng = np.random.default_rng(seed)
        over = matchups(random_profile(rng, (ballots, size, 1))).wins[..., 0].astype(float)

        wall = barrier(over)

        bound = cost(over, wall.order) - wall.room
        order = rng.permutation(size)
        place = order.argsort()
        first, second, third = place[wall.triples]
        excess = cost(wall.penalty, order) + wall.tolls[(first < second) & (second < third)].sum()
        assert cost(over, order) == pytest.approx(bound + excess)
        assert wall.penalty.min() >= 0
        assert wall.tolls.min(initial=0) >= 0

    def test_components_are_in_forced_order(self):
        """Two cycles, one above the other, are two components, the upper one first."""
        profile = election(
            "p: d > e > f > a > b > c", "q: e > f > d > b > c > a", "r: f > d > e > c > a > b"
        )

        result = components(matchups(profile).wins[..., 0], None)

        assert [members.tolist() for members in result] == [[3, 4, 5], [0, 1, 2]]

    def test_optima_multiply_over_components(self):
        """Two cycles of three have three times three optimal rankings."""
        profile = election(
            "p: d > e > f > a > b > c", "q: e > f > d > b > c > a", "r: f > d > e > c > a > b"
        )

        consensus = rank_session(matchups(profile).wins[..., 0], borda_pairs(profile), None)

        assert consensus.optima == 9
        assert consensus.several


def least_distance(over: np.ndarray) -> float:
    """The least distance, by integer programming with all cycles of three cut off in advance."""
    n = len(over)
    pairs = list(combinations(range(n), 2))
    number = {pair: k for k, pair in enumerate(pairs)}
    rows = np.zeros((n * (n - 1) * (n - 2) // 6, len(pairs)))
    for row, (i, j, k) in zip(rows, combinations(range(n), 3), strict=True):
        row[[number[i, j], number[j, k], number[i, k]]] = 1, 1, -1
    slope = np.array([over[j, i] - over[i, j] for i, j in pairs])
    solved = milp(
        slope,
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(rows, 0, 1),
    )
    return solved.fun + sum(over[i, j] for i, j in pairs)
