"""Kemeny rankings by dynamic programming over the few sets of candidates that can come first.

The scheme is that of `witan.core.rules.kemeny_subsets`, for one session, over only those sets that
can be the first k places of an optimal ranking. The excess over a proven bound, which
`witan.core.rules.kemeny_bound` splits over pairs and triples, adds up along a ranking; a set that
no ranking reaches without exceeding what is allowed is dropped, with all that lies behind it. Of
the 2^50 sets of 50 candidates some thousands are left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.rules.kemeny_bound import Barrier

__all__ = ["MAX_PREFIXES", "Choice", "Goals", "Prefixes", "choose", "prefixes_of"]

MAX_PREFIXES = 500_000
"""A search that meets more sets than this is given up, after a few seconds."""

AT_ONCE = 1 << 22
"""Cells of (sets, triples) that are looked at together."""

Cells = NDArray[Any]
Index = NDArray[np.intp]
Sets = NDArray[np.bool_]

Goals = Sequence[tuple[Cells, float]]
"""What a ranking pays for placing j above i, and how far apart sums of it still count as equal."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The sets that can come first, by size, and who can come next after each.

    Parameters
    ----------
    sets : per size from 0 to n − 1, bool array, shape (n_sets, n)
        Who is in the set.
    moves : per size, three arrays of one length
        Row of the set, the candidate placed next, and row of the set reached; ascending by the
        first and then the second.
    """

    sets: list[Sets]
    moves: list[tuple[Index, Index, Index]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The ranking chosen by several goals in turn.

    Parameters
    ----------
    order : shape (n,)
        Best first.
    counts
        After each goal, how many rankings were still level; exact up to 2^53.
    """

    order: Index
    counts: list[float]


def prefixes_of(wall: Barrier, client_limits: float) -> Prefixes | None:
    """List the sets that can come first without more excess than allowed.

    Parameters
    ----------
    wall
        What each pair and triple adds to the bound.
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
        row, candidate = np.nonzero(~sets[-1] & (paid <= client_limits))
        if not len(row):
            return Prefixes([], [])
        grown = sets[-1][row]
        grown[np.arange(len(row)), candidate] = True
        packed = np.packbits(grown, axis=1)
        keys = packed.view(f"V{packed.shape[1]}").ravel()
        _, found, target = np.unique(keys, return_index=True, return_inverse=True)
        spent = np.full(len(found), np.inf)
        np.minimum.at(spent, target, paid[row, candidate])
        sets.append(grown[found])
        moves.append((row, candidate, target))
        met += len(found)
        if met > MAX_PREFIXES:
            return None
    return Prefixes(sets[:-1], moves)


def _step(over: Cells, sets: Sets) -> Cells:
    """Return what each candidate pays for coming next, above all not in the set; (n_sets, n)."""
    paid: Cells = over.sum(axis=0) - sets.astype(np.float64) @ over
    return paid


def _tolls(wall: Barrier, sets: Sets) -> Cells:
    """Return the tolls of the triples whose second member each candidate would be; (n_sets, n).

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


def choose(prefixes: Prefixes, goals: Goals) -> Choice:
    """Find the ranking least in the first goal, of these least in the second, and so on.

    What no goal separates is separated by seat: the lowest seat first, then the lowest second,
    and so on. There has to be a ranking.
    """
    rest: list[Cells] = [np.zeros(1) for _ in goals]
    ways: list[Cells] = [np.ones(1) for _ in goals]
    chosen: list[tuple[Index, Index, Index]] = []
    for sets, (row, candidate, target) in zip(
        reversed(prefixes.sets), reversed(prefixes.moves), strict=True
    ):
        left = np.arange(len(row))
        for g, (over, slack) in enumerate(goals):
            at, reached = row[left], target[left]
            value = _step(over, sets)[at, candidate[left]] + rest[g][reached]
            least = np.full(len(sets), np.inf)
            np.minimum.at(least, at, value)
            level = np.isfinite(value) & (value <= least[at] + slack)
            left = left[level]
            rest[g] = least
            ways[g] = np.bincount(at[level], ways[g][reached[level]], minlength=len(sets))
        # Moves are in seat order within a set: the first that is left takes the lowest seat.
        started, first = np.unique(row[left], return_index=True)
        kept = left[first]
        chosen.append((started, candidate[kept], target[kept]))
    return Choice(_walk(chosen), [float(way[0]) for way in ways])


def _walk(chosen: list[tuple[Index, Index, Index]]) -> Index:
    """Follow the chosen moves from the empty set on."""
    order, at = [], 0
    for row, candidate, target in reversed(chosen):
        where = int(np.searchsorted(row, at))
        order.append(int(candidate[where]))
        at = int(target[where])
    return np.array(order, dtype=np.intp)
