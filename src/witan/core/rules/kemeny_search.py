"""Exact Kemeny rankings: by subsets of candidates, or a linear program.

Candidates that majority cycles do not tie together are in a forced order, so each strongly
connected component of the weak-majority graph is ranked by itself: with up to `BY_SUBSETS`
candidates over all of its subsets, with more over those that a linear program cannot rule out.

**Subsets.** ``rest[U]`` is the least cost of ordering the candidates of the set U among
themselves. The cost of placing one of them first does not depend on the order of the others, so

    rest[U] = min over c in U of  cost(c above U − c) + rest[U − c].

A choice of c that attains the minimum is *tight*; the paths of tight choices from the full set to
the empty one are exactly the optimal rankings, which can therefore be counted, averaged and
filtered without listing them. A set is a bit mask, and all sets of one size are done at once, for
all sessions (Held and Karp's scheme; C·2^(C−1) choices instead of C! rankings).

**Bound.** The linear orders of n candidates are 0/1 points: the variable of a pair i < j is 1 if i
is above j, and 0 ≤ x_ij + x_jk − x_ik ≤ 1 for all i < j < k. Without the requirement that points
are whole numbers, this is a linear program. Any non-negative duals of its cuts, optimal or not,
prove that for every ranking

    cost = bound + sum of the penalties of its pairs + sum of the tolls of its triples,

where no penalty (the reduced cost of a pair, if it is placed against its sign) and no toll (the
dual of a cut, if the triple leaves it slack) is negative. The bound is summed here from the duals,
so it is valid however precisely the program was solved; a precise solution only makes the excess
small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.rules.pairwise import FOLLOWED
from witan.errors import TooLarge

Cells = NDArray[Any]
Index = NDArray[np.intp]

CUTS = 600
"""Most cuts added at once, the most violated first; more slow the next program down."""

VIOLATED = 1e-6
"""A cut is violated if it is missed by more than this; pairs are between 0 and 1."""

LARGEST = 1e4
"""Costs are scaled to this for the solver, whose tolerances are absolute."""

MAX_PREFIXES = 500_000
"""Most sets in one search, which then takes a few seconds."""

AT_ONCE = 1 << 22
"""Cells of (sets, triples) that are processed at once."""

Sets = NDArray[np.bool_]

Goals = Sequence[tuple[Cells, float]]
"""Costs of placing j above i, each with the distance at which sums count as equal."""

BY_SUBSETS = 16
"""Components up to this size are ranked over all their subsets: 2^16 take 0.05 seconds."""

MAX_TIED = 60
"""Most candidates in one majority cycle."""

ROUNDING = 1e-2
"""Tolerance for sums of whole numbers in floating point."""

COUNTED = 2**53
"""Numbers of optimal rankings up to this one are exact; larger ones are not reported."""


@dataclass(frozen=True, slots=True)
class Layer:
    """All k-sets of C candidates, and each without one member.

    Parameters
    ----------
    sets : shape (n_sets,)
        Bit masks in ascending order; a set's row is its index in this array.
    member, less : shape (n_sets, k)
        The members of each set in seat order, and the set without that member.
    """

    sets: Index
    member: Index
    less: Index


@dataclass(frozen=True, slots=True)
class Optima:
    """Every optimal ranking of S sessions, as a graph of tight choices.

    Parameters
    ----------
    least : shape (S,)
        The least cost.
    tight : per layer, bool arrays of shape (n_sets, k, S)
        Whether a member may come first in its set.
    paths : shape (2^C, S)
        Optimal orders of each set within itself.
    """

    least: Cells
    tight: list[NDArray[np.bool_]]
    paths: Cells

    @property
    def count(self) -> Cells:
        """Number of optimal rankings, shape (S,)."""
        counted: Cells = self.paths[-1]
        return counted


@lru_cache(maxsize=16)
def layers_of(n_candidates: int) -> tuple[Layer, ...]:
    """Return the layers of sets of 1, 2, …, C candidates."""
    sizes = np.bitwise_count(np.arange(1 << n_candidates))
    seats = np.arange(n_candidates)
    layers = []
    for size in range(1, n_candidates + 1):
        sets = np.flatnonzero(sizes == size)
        member = np.nonzero(sets[:, np.newaxis] >> seats & 1)[1].reshape(-1, size)
        layers.append(Layer(sets, member, sets[:, np.newaxis] ^ (1 << member)))
    return tuple(layers)


def optima_of(
    pair_costs: Cells,
    *,
    slack: Cells | None = None,
    within: list[NDArray[np.bool_]] | None = None,
) -> Optima:
    """Find all rankings of least cost.

    Parameters
    ----------
    pair_costs : array, shape (C, C, S)
        ``over[i, j]`` is the cost of placing j above i. Integers, or floats.
    slack : float array, shape (S,), optional
        Costs no further apart than this count as equal; None (integers) means exactly equal.
    within : optional
        Tight choices of an earlier search: only rankings made of them are considered.
    """
    n_candidates, _, n_sessions = pair_costs.shape
    layers = layers_of(n_candidates)
    kind = _cost_type(pair_costs)
    steps = _steps(pair_costs, kind)
    rest = np.zeros((1 << n_candidates, n_sessions), dtype=kind)
    # Up to FOLLOWED candidates there are at most 720 rankings, and 720 · 6 fits sixteen bits.
    counts = np.int16 if n_candidates <= FOLLOWED else np.int64
    paths = np.ones((1 << n_candidates, n_sessions), dtype=counts)
    tight = []
    for k, layer in enumerate(layers):
        costs = steps[(layer.member << n_candidates) | layer.less]
        costs += rest[layer.less]
        if within is not None:
            costs[~within[k]] = np.iinfo(kind).max
        least = costs.min(axis=1)
        rest[layer.sets] = least
        bound = least if slack is None else least + slack
        tight.append(costs <= bound[:, np.newaxis])
        paths[layer.sets] = (tight[-1] * paths[layer.less]).sum(axis=1, dtype=counts)
    return Optima(rest[-1], tight, paths)


def _cost_type(pair_costs: Cells) -> np.dtype[Any]:
    """Smallest integer type for every ranking's cost; floats stay floats."""
    if not np.issubdtype(pair_costs.dtype, np.integer) and pair_costs.dtype != np.bool_:
        return np.dtype(np.float64)
    n_candidates = pair_costs.shape[0]
    largest = int(pair_costs.max(initial=0)) * n_candidates * (n_candidates - 1)
    return np.dtype(
        next(t for t in (np.int8, np.int16, np.int32, np.int64) if largest < np.iinfo(t).max)
    )


def _steps(pair_costs: Cells, kind: np.dtype[Any]) -> Cells:
    """Tabulate the cost of c above each set, (C·2^C, S).

    Its row is c·2^C + set.
    """
    n_candidates, _, n_sessions = pair_costs.shape
    steps = np.zeros((n_candidates, 1 << n_candidates, n_sessions), dtype=kind)
    for d in range(n_candidates):
        half = 1 << d
        np.add(
            steps[:, :half],
            pair_costs[d][:, np.newaxis].astype(kind, copy=False),
            out=steps[:, half : 2 * half],
        )
    return steps.reshape(n_candidates << n_candidates, n_sessions)


def place_sums(optima: Optima, n_candidates: int) -> Cells:
    """Sum each candidate's places over all optimal rankings; shape (C, S)."""
    layers = layers_of(n_candidates)
    reached = np.zeros_like(optima.paths)
    reached[-1] = 1
    sums = np.zeros((n_candidates, optima.paths.shape[1]), dtype=optima.paths.dtype)
    for k in reversed(range(n_candidates)):
        layer, place = layers[k], n_candidates - k
        flow = optima.tight[k] * reached[layer.sets][:, np.newaxis]
        through = flow * optima.paths[layer.less]
        for c in range(n_candidates):
            here = layer.member == c
            reached[layer.less[here]] += flow[here]
            sums[c] += place * through[here].sum(axis=0, dtype=sums.dtype)
    return sums


def nearest(optima: Optima, target: NDArray[np.bool_]) -> tuple[Index, NDArray[np.bool_]]:
    """Choose the optimal ranking nearest a weak order, then by seat order.

    Parameters
    ----------
    target : bool array, shape (C, C, S)
        ``target[i, j]``: i is placed strictly above j; pairs that are equal there do not count.

    Returns
    -------
    order : array, shape (C, S)
        Candidates, best first. Among several equally near, the one that reverses the fewest pairs
        of seat order; among these, the one with the lowest seat in first place, then in second
        place, and so on.
    several : bool array, shape (S,)
        Whether several were equally near.
    """
    n_candidates, _, n_sessions = target.shape
    near = optima_of(target, within=optima.tight)
    seats = np.triu(np.ones((n_candidates, n_candidates), dtype=np.bool_), 1)
    seated = np.broadcast_to(seats[..., np.newaxis], target.shape)
    last = optima_of(seated, within=near.tight)
    sessions = np.arange(n_sessions)
    remaining = np.full(n_sessions, (1 << n_candidates) - 1)
    order = np.empty((n_candidates, n_sessions), dtype=np.intp)
    layers = layers_of(n_candidates)
    for place in range(n_candidates):
        layer, tight = layers[-1 - place], last.tight[-1 - place]
        row = np.searchsorted(layer.sets, remaining)
        slot = tight[row, :, sessions].argmax(axis=1)
        order[place] = layer.member[row, slot]
        remaining = layer.less[row, slot]
    return order, near.count > 1


@dataclass(frozen=True, slots=True)
class Barrier:
    """Upper bound for the cost of optimal rankings.

    Parameters
    ----------
    order : shape (n,)
        The best ranking known, best candidate first.
    room : float
        Cost of `order` minus the bound; the excess of an optimal ranking is no larger.
    penalty : float array, shape (n, n)
        What placing j above i adds to the bound.
    triples : integer array, shape (3, n_tolls)
        Candidates a, b, c, in ascending order of b.
    tolls : float array, shape (n_tolls,)
        What placing a above b above c adds to the bound.
    """

    order: Index
    room: float
    penalty: Cells
    triples: Index
    tolls: Cells


def barrier(pair_costs: Cells) -> Barrier:
    """Bound the cost of rankings from below, and find a good one.

    Parameters
    ----------
    pair_costs : float array, shape (n, n)
        The cost of placing j above i; n ≥ 3.

    References
    ----------
    Grötschel, Jünger and Reinelt, "A cutting plane algorithm for the linear ordering problem",
    Operations Research 32 (1984) 1195–1220. Neumaier and Shcherbina, "Safe bounds in linear and
    mixed-integer linear programming", Mathematical Programming 99 (2004) 283–296.
    """
    n = len(pair_costs)
    pairs = np.triu_indices(n, 1)
    slope = pair_costs.T[pairs] - pair_costs[pairs]
    cuts = _Cuts(n)
    largest = float(np.abs(slope).max())
    scale = LARGEST / largest if largest > 0 else 1.0
    order, least = np.arange(n), np.inf
    while True:
        x, duals = cuts.solve(slope * scale)
        tried = _improve(pair_costs, _order_by_wins(x, n))
        if (paid := cost(pair_costs, tried)) < least:
            order, least = tried, paid
        reduced = slope + cuts.combine(duals) / scale
        bound = (
            pair_costs[pairs].sum() + np.minimum(reduced, 0.0).sum() - cuts.limits @ duals / scale
        )
        if not cuts.extend(x):
            break
    penalty = np.zeros((n, n))
    penalty[pairs] = np.maximum(-reduced, 0.0)
    penalty.T[pairs] = np.maximum(reduced, 0.0)
    triples, tolls = cuts.tolls(duals / scale)
    return Barrier(order, max(least - float(bound), 0.0), penalty, triples, tolls)


class _Cuts:
    """Violated cuts sign · (x_ij + x_jk − x_ik) ≤ limit."""

    def __init__(self, n: int) -> None:
        number = np.zeros((n, n), dtype=np.intp)
        pairs = np.triu_indices(n, 1)
        number[pairs] = np.arange(len(pairs[0]))
        earlier = np.triu(np.ones((n, n), dtype=np.bool_), 1)
        i, j, k = np.nonzero(earlier[:, :, np.newaxis] & earlier)
        self.n_pairs = len(pairs[0])
        self.members = np.stack([i, j, k])
        self.triples = np.stack([number[i, j], number[j, k], number[i, k]], axis=1)
        self.indices = np.empty(0, dtype=np.intp)

    @property
    def limits(self) -> Cells:
        """Right-hand sides: 1 for the first sign, 0 for the second."""
        return (self.indices < len(self.triples)).astype(np.float64)

    def matrix(self) -> Any:
        """The cuts as rows of a sparse matrix over the pairs."""
        from scipy.sparse import csr_array

        columns = self.triples[self.indices % len(self.triples)]
        signs = (2.0 * self.limits - 1.0)[:, np.newaxis] * np.array([1.0, 1.0, -1.0])
        starts = np.arange(0, columns.size + 1, 3)
        shape = (len(columns), self.n_pairs)
        return csr_array((signs.ravel(), columns.ravel(), starts), shape=shape)

    def solve(self, slope: Cells) -> tuple[Cells, Cells]:
        """Minimise slope · x under the cuts; return point and duals."""
        from scipy.optimize import linprog

        if not len(self.indices):
            return (slope < 0).astype(np.float64), np.empty(0)
        solved = linprog(
            slope, A_ub=self.matrix(), b_ub=self.limits, bounds=(0.0, 1.0), method="highs-ds"
        )
        if solved.x is None or solved.status != 0:
            raise ArithmeticError(f"the solver stopped: {solved.message}")
        return solved.x, np.maximum(-solved.ineqlin.marginals, 0.0)

    def combine(self, duals: Cells) -> Cells:
        """Sum the kept cuts, each times its dual; one number per pair."""
        if not len(self.indices):
            return np.zeros(self.n_pairs)
        total: Cells = duals @ self.matrix()
        return total

    def tolls(self, duals: Cells) -> tuple[Index, Cells]:
        """Orders of three candidates with a slack cut, and its dual."""
        members = self.members[:, self.indices % len(self.triples)]
        rows, paid = [], []
        for order in permutations(range(3)):
            i, j, k = (order.index(member) for member in range(3))
            value = (i < j) + (j < k) - (i < k)
            slack = (self.limits != value) & (duals > 0)
            rows.append(members[list(order)][:, slack])
            paid.append(duals[slack])
        triples = np.concatenate(rows, axis=1)
        by_second = np.argsort(triples[1], kind="stable")
        return triples[:, by_second], np.concatenate(paid)[by_second]

    def extend(self, x: Cells) -> bool:
        """Add the most violated cuts; return False if there are none."""
        value = x[self.triples] @ np.array([1.0, 1.0, -1.0])
        violation = np.concatenate([value - 1.0, -value])
        violation[self.indices] = 0.0
        violated = np.flatnonzero(violation > VIOLATED)
        worst = np.argsort(-violation[violated], kind="stable")[:CUTS]
        self.indices = np.concatenate([self.indices, violated[worst]])
        return len(violated) > 0


def _order_by_wins(x: Cells, n: int) -> Index:
    """Order candidates by the number below each at a point."""
    first, second = np.triu_indices(n, 1)
    wins = np.bincount(first, x, n) + np.bincount(second, 1.0 - x, n)
    return np.argsort(-wins, kind="stable")


def _improve(pair_costs: Cells, order: Index) -> Index:
    """Move the candidate of greatest gain until no move gains."""
    least = 1e-9 * float(np.abs(pair_costs - pair_costs.T).max())
    while True:
        gain = gains(pair_costs, order)
        start, end = divmod(int(gain.argmax()), len(order))
        if gain[start, end] <= least:
            return order
        order = np.insert(np.delete(order, start), end, order[start])


def gains(pair_costs: Cells, order: Index) -> Cells:
    """Savings of moving the candidate at i to j, shape (n, n)."""
    n = len(order)
    places = np.arange(n)
    ahead = (pair_costs - pair_costs.T)[np.ix_(order, order)]
    passed = np.concatenate([np.zeros((n, 1)), np.cumsum(ahead, axis=1)], axis=1)
    own = passed[places, places][:, np.newaxis]
    saved: Cells = np.where(
        places <= places[:, np.newaxis], own - passed[:, :-1], own - passed[:, 1:]
    )
    return saved


def cost(pair_costs: Cells, order: Index) -> float:
    """Return the cost of a ranking, best first."""
    return float(np.tril(pair_costs[np.ix_(order, order)], -1).sum())


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Possible first sets by size, and the possible next candidates of each.

    Parameters
    ----------
    sets : per size from 0 to n − 1, bool array, shape (n_sets, n)
        Members of each set.
    moves : per size, three arrays of one length
        Row of the set, the candidate placed next, and row of the set reached; ascending by the
        first and then the second.
    """

    sets: list[Sets]
    moves: list[tuple[Index, Index, Index]]


@dataclass(frozen=True, slots=True)
class RankingChoice:
    """The ranking chosen by several goals, one after another.

    Parameters
    ----------
    order : shape (n,)
        Best first.
    counts
        Number of rankings still tied after each goal; exact up to 2^53.
    """

    order: Index
    counts: list[float]


def prefixes_of(wall: Barrier, allowance: float) -> Prefixes | None:
    """List the sets possible at the top within the allowed excess.

    Parameters
    ----------
    allowance : float
        The most by which a ranking may exceed the bound.

    Returns
    -------
    Prefixes, empty if no ranking is allowed; None if there are more than `MAX_PREFIXES`.
    """
    n = len(wall.order)
    sets: list[Sets] = [np.zeros((1, n), dtype=np.bool_)]
    moves: list[tuple[Index, Index, Index]] = []
    spent, met = np.zeros(1), 1
    for _ in range(n):
        paid = _step(wall.penalty, sets[-1]) + spent[:, np.newaxis]
        paid += _tolls(wall, sets[-1])
        row, candidate = np.nonzero(~sets[-1] & (paid <= allowance))
        if not len(row):
            return Prefixes([], [])
        grown = sets[-1][row]
        grown[np.arange(len(row)), candidate] = True
        packed = np.packbits(grown, axis=1)
        keys = packed.view(f"V{packed.shape[1]}").ravel()
        _, rows, target = np.unique(keys, return_index=True, return_inverse=True)
        spent = np.full(len(rows), np.inf)
        np.minimum.at(spent, target, paid[row, candidate])
        sets.append(grown[rows])
        moves.append((row, candidate, target))
        met += len(rows)
        if met > MAX_PREFIXES:
            return None
    return Prefixes(sets[:-1], moves)


def _step(pair_costs: Cells, sets: Sets) -> Cells:
    """Cost of each candidate as the next, above the rest; (n_sets, n)."""
    paid: Cells = pair_costs.sum(axis=0) - sets.astype(np.float64) @ pair_costs
    return paid


def _tolls(wall: Barrier, sets: Sets) -> Cells:
    """Tolls of the triples with each candidate second; (n_sets, n).

    The first member is in the set and the third is not: that fixes their order.
    """
    first, second, third = wall.triples
    paid = np.zeros(sets.shape)
    if not len(first):
        return paid
    starts = np.flatnonzero(np.diff(second, prepend=-1))
    step = max(1, AT_ONCE // len(first))
    for low in range(0, len(sets), step):
        part = sets[low : low + step]
        tolls = np.where(part[:, first] & ~part[:, third], wall.tolls, 0.0)
        paid[low : low + step, second[starts]] = np.add.reduceat(tolls, starts, axis=1)
    return paid


def choose(prefixes: Prefixes, goals: Goals) -> RankingChoice:
    """Find the ranking of lexicographically least goals.

    Remaining ties are broken by seat: the lowest seat first, then the lowest second, and so on.
    There must be at least one ranking.
    """
    rest: list[Cells] = [np.zeros(1) for _ in goals]
    ways: list[Cells] = [np.ones(1) for _ in goals]
    chosen: list[tuple[Index, Index, Index]] = []
    for sets, (row, candidate, target) in zip(
        reversed(prefixes.sets), reversed(prefixes.moves), strict=True
    ):
        rows = np.arange(len(row))
        for g, (pair_costs, slack) in enumerate(goals):
            at, reached = row[rows], target[rows]
            value = _step(pair_costs, sets)[at, candidate[rows]] + rest[g][reached]
            least = np.full(len(sets), np.inf)
            np.minimum.at(least, at, value)
            level = np.isfinite(value) & (value <= least[at] + slack)
            rows = rows[level]
            rest[g] = least
            ways[g] = np.bincount(at[level], ways[g][reached[level]], minlength=len(sets))
        # Moves are in seat order within a set, so the first one left takes the lowest seat.
        started, first = np.unique(row[rows], return_index=True)
        subset = rows[first]
        chosen.append((started, candidate[subset], target[subset]))
    return RankingChoice(_walk(chosen), [float(way[0]) for way in ways])


def _walk(cycles: list[tuple[Index, Index, Index]]) -> Index:
    """Follow the chosen moves from the empty set on."""
    order, at = [], 0
    for row, candidate, target in reversed(cycles):
        where = int(np.searchsorted(row, at))
        order.append(int(candidate[where]))
        at = int(target[where])
    return np.array(order, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Consensus:
    """The Kemeny ranking of one session, or of one component of it.

    Parameters
    ----------
    order : shape (C,)
        Candidates, best first: of the optimal rankings the one nearest to the target.
    optima
        How many rankings are optimal; 0 means "more than one, not counted".
    several
        Whether several were equally near, so that seat order chose.
    """

    order: Index
    optima: int
    several: bool


def rank_session(pair_costs: Cells, target: NDArray[np.bool_], slack: float | None) -> Consensus:
    """Rank the candidates of one session at the least total Kendall distance.

    Parameters
    ----------
    pair_costs : array, shape (C, C)
        Weight of the ballots that rank i strictly above j; integers, or floats with a slack.
    target : bool array, shape (C, C)
        ``target[i, j]``: the weak order to be near to places i strictly above j.
    slack : float, optional
        Distances no further apart than this count as equal; None for integers.

    Raises
    ------
    TooLarge
        If majority cycles tie more than `MAX_TIED` candidates together, or so many rankings are
        nearly optimal that the search would not end in reasonable time.
    """
    parts = []
    for members in components(pair_costs, slack):
        among = np.ix_(members, members)
        part = rank_component(pair_costs[among], target[among], slack)
        parts.append(Consensus(members[part.order], part.optima, part.several))
    optima = math.prod(part.optima for part in parts)
    return Consensus(
        order=np.concatenate([part.order for part in parts]),
        optima=optima if optima <= COUNTED else 0,
        several=any(part.several for part in parts),
    )


def components(pair_costs: Cells, slack: float | None) -> list[Index]:
    """Find the strongly connected components of the weak-majority graph, best first.

    Its edges run from i to j unless more ballots rank j above i than the reverse. Any two
    candidates are joined, so every member of an earlier component beats every member of a later
    one, and each optimal ranking keeps them in that order.
    """
    from scipy.sparse.csgraph import connected_components

    holds = pair_costs.astype(np.float64) - pair_costs.T >= -(slack or 0.0)
    n_found, label = connected_components(holds, directed=True, connection="strong")
    wins = holds.sum(axis=1)
    parts = [np.flatnonzero(label == k) for k in range(n_found)]
    return sorted(parts, key=lambda members: -int(wins[members].max()))


def rank_component(
    pair_costs: Cells,
    target: NDArray[np.bool_],
    slack: float | None,
    *,
    by_subsets: int = BY_SUBSETS,
) -> Consensus:
    """Rank inseparable candidates by the method for their number.

    Parameters are those of `rank_session`; `by_subsets` is the largest number ranked over all
    subsets. Both methods give the same answer.
    """
    n = len(pair_costs)
    if n <= max(by_subsets, 2):
        allowed = None if slack is None else np.array([slack])
        optima = optima_of(pair_costs[..., np.newaxis], slack=allowed)
        order, several = nearest(optima, target[..., np.newaxis])
        return Consensus(order[:, 0], int(optima.count[0]), bool(several[0]))
    if n > MAX_TIED:
        raise TooLarge("candidates in one majority cycle for exact Kemeny", n, MAX_TIED)
    return _rank_by_prefixes(pair_costs.astype(np.float64), target.astype(np.float64), slack)


def _rank_by_prefixes(pair_costs: Cells, target: Cells, slack: float | None) -> Consensus:
    """Search the possibly optimal rankings; beyond a limit, the nearest of them.

    With many ties, more rankings are optimal than can be searched. Then a second goal, and if
    needed a third, is added to the first with a weight below the first's smallest difference, so
    that the bound also rules out rankings that are worse by the later goals.
    """
    n = len(pair_costs)
    seats = np.triu(np.ones((n, n)), 1)
    goals = [
        (pair_costs, ROUNDING if slack is None else slack),
        (target, ROUNDING),
        (seats, ROUNDING),
    ]
    total, tolerance = goals[0]
    best_order = None
    for depth in range(len(goals)):
        wall = barrier(total)
        if best_order is not None and not _level(best_order, wall.order, goals[:depth]):
            break
        choice = _search(total, wall, tolerance, goals)
        if choice is not None:
            return _conclude(choice, depth, goals)
        if slack is not None:
            # Sums of floats may differ by any amount, so the next bound is valid only once this
            # goal's optimum, which the next ranking must also reach, is proven.
            if wall.room > tolerance:
                break
            best_order = wall.order
        if depth + 1 < len(goals):
            weight = float(n * (n - 1) // 2 + 1)
            if slack is not None:
                weight /= _least_margin(total, tolerance)
                tolerance = weight * tolerance + ROUNDING
            total = weight * total + goals[depth + 1][0]
    raise _too_many()


def _search(total: Cells, wall: Barrier, tolerance: float, goals: Goals) -> RankingChoice | None:
    """Choose among all rankings optimal in `total`; None beyond the limit.

    The known ranking may be worse than the best, so that its excess over the bound admits many
    sets. A part of the excess is therefore tried first: a ranking found there that costs no more
    than the bound plus that part is better than all rankings left out.
    """
    bound = cost(total, wall.order) - wall.room
    for share in (0.125, 0.25, 0.5, 1.0):
        room = share * wall.room
        prefixes = prefixes_of(wall, room + tolerance)
        if prefixes is None:
            return None
        if prefixes.sets:
            choice = choose(prefixes, goals)
            if share == 1.0 or cost(total, choice.order) <= bound + room:
                return choice
    return None


def _too_many() -> TooLarge:
    return TooLarge("sets of leaders in an exact Kemeny search", MAX_PREFIXES + 1, MAX_PREFIXES)


def _least_margin(pair_costs: Cells, slack: float) -> float:
    """Smallest positive margin; 1 if all pairs tie."""
    margins = np.abs(pair_costs - pair_costs.T)
    return float(margins.min(where=margins > slack, initial=np.inf) if margins.max() > slack else 1)


def _level(order: Index, other: Index, goals: Goals) -> bool:
    return all(
        abs(cost(pair_costs, order) - cost(pair_costs, other)) <= slack
        for pair_costs, slack in goals
    )


def _movable(order: Index, goals: Goals) -> bool:
    free = ~np.eye(len(order), dtype=np.bool_)
    for pair_costs, slack in goals:
        free &= np.abs(gains(pair_costs, order)) <= slack
    return bool(free.any())


def _conclude(choice: RankingChoice, depth: int, goals: Goals) -> Consensus:
    """Report the number of tied rankings, complete or cut off at `depth`."""
    optima, nearest_found = choice.counts[0], choice.counts[1]
    if depth >= 1 and optima == 1 and not _movable(choice.order, goals[:1]):
        raise _too_many()
    if depth == 2 and nearest_found == 1 and not _movable(choice.order, goals[:2]):
        raise _too_many()
    counted = depth == 0 and optima <= COUNTED
    return Consensus(
        order=choice.order,
        optima=int(optima) if counted else 0,
        several=nearest_found > 1 or depth == 2,
    )
