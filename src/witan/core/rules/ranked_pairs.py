"""The rule `ranked_pairs`: the clearest majorities are locked in first, and none may contradict."""

from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile
from witan.core.rules.pairwise import (
    FOLLOWED,
    candidates_with_votes,
    share_of_rivals_not_above,
    voted_first,
    whole_margins,
)
from witan.core.rules.registry import Axiom, Scores, rule

__all__ = ["ranked_pairs"]

Margins = NDArray[np.signedinteger[Any]]

CHUNK_CELLS = 1 << 17
"""Orders times sessions examined at once, so that the passes stay inside the cache."""


@rule(
    "ranked_pairs",
    needs="rankings",
    source="Tideman, Social Choice and Welfare 4, 1987",
    summary="Majorities are locked in from the clearest down, skipping what would close a cycle.",
    use_when="there are majority cycles and the clearest majorities must stand.",
    evidence="Condorcet consistent, monotone, and near-copies of a candidate change the winner "
    "only where margins are equal. At few reviewers equal margins are the rule, so several "
    "candidates often share the first place.",
    satisfies={
        Axiom.ANONYMITY,
        Axiom.NEUTRALITY,
        Axiom.UNANIMITY,
        Axiom.CONDORCET,
        Axiom.MONOTONICITY,
    },
)
def ranked_pairs(profile: Profile) -> Scores:
    """Score a candidate by the share of rivals not above it in its best locked-in order.

    Pairs are locked in by falling margin unless they would close a cycle. With equal margins the
    order of locking may matter. For up to six candidates all of them are followed, each candidate
    being credited with its best place:

        score[c] = 1 − (best place of c − 1) / rivals.

    A linear order comes out under some breaking of ties if and only if it is a stack: for every x
    above y, a path leads down the order from x to y whose every margin is at least that of y over
    x. Pairs with margin 0 may go either way. Where the majorities have no cycle all of them are
    locked, and the best place of c is one below the candidates with a chain of majorities over c.

    With votes for more candidates, equal margins are locked in seat order, and the rivals above c
    are those with a locked path to it.

    Parameters
    ----------
    profile
        Ballots of shape (R, C, S).

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that no ballot ranks; every winner has 1.
        ``seat_order_decided`` (S,): with seven candidates or more, a pair was refused that
        another order of equal margins would have locked.

    References
    ----------
    Tideman, Independence of clones as a criterion for voting rules, Social Choice and Welfare 4
    (1987) 185–206. Zavist and Tideman, Complete independence of clones in the ranked pairs rule,
    Social Choice and Welfare 6 (1989) 167–173 (stacks). Conitzer, Rognlie and Xia, Preference
    functions that score rankings and maximum likelihood estimation, IJCAI 2009 (all tie orders).
    """
    margins = whole_margins(profile)
    chained = _closure(margins > 0)
    above = chained.sum(axis=0, dtype=np.int16)
    seat_order_decided = np.zeros(profile.n_sessions, dtype=np.bool_)
    voted = candidates_with_votes(profile)
    cyclic = chained.diagonal().any(axis=1)
    few = np.flatnonzero(cyclic & (voted.sum(axis=0) <= FOLLOWED))
    many = np.flatnonzero(cyclic & (voted.sum(axis=0) > FOLLOWED))
    if few.size:
        seats = voted_first(voted[:, few])
        above[seats, few] = _fewest_above(margins[seats[:, np.newaxis], seats, few])
    if many.size:
        above[:, many], seat_order_decided[many] = _lock_in_seat_order(margins[:, :, many])
    return Scores(
        score=share_of_rivals_not_above(above, voted), seat_order_decided=seat_order_decided
    )


def _closure(links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a path leads from i to j, shape (C, C, S); the diagonal marks cycles."""
    chained = links.copy()
    for hops in range(links.shape[0]):
        chained |= chained[:, hops, np.newaxis] & chained[np.newaxis, hops]
    return chained


@cache
def _orders(n_candidates: int) -> NDArray[np.intp]:
    """Every linear order, shape (C, C!): the candidate in each place."""
    return np.ascontiguousarray(np.array(list(permutations(range(n_candidates)))).T)


def _fewest_above(margins: Margins) -> NDArray[np.int16]:
    """Best place over all stacks, less one, shape (C, S)."""
    n_candidates, _, n_sessions = margins.shape
    orders = _orders(n_candidates)
    fewest = np.zeros((n_candidates, n_sessions), dtype=np.int16)
    step = max(1, CHUNK_CELLS // orders.shape[1])
    for start in range(0, n_sessions, step):
        here = np.ascontiguousarray(margins[:, :, start : start + step])
        which, session = np.nonzero(_chains(here >= 0, orders))
        order = orders[:, which]
        kept = _stacked(here, order, session)
        order, session = order[:, kept], session[kept] + start
        for place in reversed(range(n_candidates)):  # the best place is written last
            fewest[order[place], session] = place
    return fewest


def _chains(not_beaten: NDArray[np.bool_], orders: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Orders in which nobody is beaten by the next below, shape (orders, S).

    Every stack is one of these few, since between neighbours the only path down is direct.
    """
    chains: NDArray[np.bool_] = not_beaten[orders[0], orders[1]]
    for upper, lower in pairwise(orders[1:]):
        chains &= not_beaten[upper, lower]
    return chains


def _stacked(
    margins: Margins, order: NDArray[np.intp], session: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which chains, given as orders of shape (C, n) in sessions of shape (n,), are stacks.

    ``widest[a, b]`` is the widest path from place a down to place b.
    """
    n_candidates, _, n_sessions = margins.shape
    flat = margins.reshape(-1)
    rows, columns = order * (n_candidates * n_sessions) + session, order * n_sessions
    stacked = np.ones(session.shape, dtype=np.bool_)
    widest: dict[tuple[int, int], Margins] = {}
    for length in range(1, n_candidates):
        for a in range(n_candidates - length):
            b = a + length
            direct = flat[rows[a] + columns[b]]
            width = direct.copy()
            for hops in range(a + 1, b):
                np.maximum(width, np.minimum(widest[a, hops], widest[hops, b]), out=width)
            widest[a, b] = width
            stacked &= width >= -direct
    return stacked


def _lock_in_seat_order(margins: Margins) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Lock pairs by falling margin, equal ones in seat order.

    Returns how many candidates have a locked path to each, shape (C, S), and whether the order
    within equal margins mattered, shape (S,). ``below[c]`` has a bit for every candidate that
    locked paths reach from c, itself included.
    """
    n_candidates, _, n_sessions = margins.shape
    bits = _bit_type(n_candidates)
    upper, lower = np.nonzero(~np.eye(n_candidates, dtype=np.bool_))
    falling = -margins[upper, lower]
    turn = np.argsort(falling, axis=0, kind="stable")
    sessions = np.arange(n_sessions)
    below = np.repeat(np.array([[1 << c] for c in range(n_candidates)], bits), n_sessions, axis=1)
    earlier = below.copy()
    mattered = np.zeros(n_sessions, dtype=np.bool_)
    previous = np.zeros(n_sessions, dtype=falling.dtype)
    for pair in turn[: (falling < 0).sum(axis=0).max(initial=0)]:
        size = falling[pair, sessions]
        np.copyto(earlier, below, where=size != previous)
        previous = size
        winner, loser = upper[pair].astype(bits), lower[pair]
        gained = below[loser, sessions]
        closes = _has(gained, winner)
        mattered |= (size < 0) & closes & ~_has(earlier[loser, sessions], winner)
        locked = (size < 0) & ~closes
        below |= np.where(_has(below, winner) & locked, gained, bits.type(0))
    seats = np.arange(n_candidates).astype(bits)
    above = [_has(below, seat).sum(axis=0) - 1 for seat in seats]
    return np.array(above, dtype=np.int16), mattered


def _bit_type(n_candidates: int) -> np.dtype[Any]:
    """Return the smallest type with a bit per candidate; beyond 64, Python's own integers."""
    for size in (8, 16, 32, 64):
        if n_candidates <= size:
            return np.dtype(f"uint{size}")
    return np.dtype(object)


def _has(sets: NDArray[Any], member: Any) -> NDArray[np.bool_]:
    """Where the set has the member's bit."""
    held: NDArray[np.bool_] = (sets >> member & 1).astype(np.bool_)
    return held
