"""Rules over pairwise majorities: `tournament`, `schulze` and `ranked_pairs`."""

from functools import cache
from itertools import pairwise, permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats, Profile, candidates_with_votes, closure, matchups
from witan.core.rules.registry import Axiom, Scores, rule
from witan.errors import InvalidParameter

GRID = 2.0**40
"""Weighted sums are compared in units of their session's total weight over this number."""

FOLLOWED = 6
"""Most candidates for following every way of breaking a tie."""

Margins = NDArray[np.signedinteger[Any]]

CHUNK_CELLS = 1 << 17
"""Orders times sessions examined at once, so that the passes stay inside the cache."""


def round_to_grid(sums: Floats, total: Floats) -> NDArray[np.int64]:
    """Round weighted sums to multiples of total/2⁴⁰, so that ties are exact.

    0.1 + 0.2 and 0.3 differ in binary; sums of real weights that differ by less than one part in
    10¹² of the total are taken as equal.

    Parameters
    ----------
    sums : float array, shape (..., S)
    total : float array, shape (S,)
        Total weight of each session; where it is 0 every sum is 0.
    """
    step = np.where(total > 0, total, 1.0) / GRID
    return np.rint(sums / step).astype(np.int64)


def voted_first(has_votes: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Seats of up to `FOLLOWED` candidates, (m, S), voted ones first.

    Candidates without votes thus never push a session over the limit for following ties. Both
    groups are in seat order.
    """
    return np.argsort(~has_votes, axis=0, kind="stable")[:FOLLOWED]


def whole_margins(profile: Profile) -> NDArray[np.signedinteger[Any]]:
    """Count ballots for i over j less the reverse, (C, C, S).

    Whole numbers: counts if every ballot weighs 1, otherwise multiples as in `round_to_grid`.
    """
    margins = matchups(profile).margins
    if profile.weights is None:
        return margins
    return round_to_grid(margins, profile.weights.sum(axis=0))


def share_of_rivals_not_above(
    above: NDArray[Any], has_votes: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(rivals − rivals above)/rivals per candidate, shape (C, S).

    Rivals are the other candidates with votes. A candidate without rivals has 1; one without
    votes has NaN.
    """
    rivals = np.maximum(has_votes.sum(axis=0) - 1, 1)
    return np.where(has_votes, (rivals - above) / rivals, np.nan)


@rule(
    "tournament",
    needs="rankings",
    shortest=2,
    source="Copeland, A reasonable social welfare function, 1951",
    summary="Share of its matchups that a candidate wins by majority, a draw counting half.",
    use_when="the result must be simple to state (“it won three of its four matchups”), or one "
    "odd ballot must not move a clear majority.",
    evidence="One odd ballot changes only the matchups that it decides, while it would move every "
    "mean. The rule ignores how clear a win was, so dead heats are frequent, and a near-copy of a "
    "candidate can change the winner.",
    satisfies={
        Axiom.ANONYMITY,
        Axiom.NEUTRALITY,
        Axiom.UNANIMITY,
        Axiom.CONDORCET,
        Axiom.MONOTONICITY,
    },
    bounds=(0.0, 1.0),
)
def tournament(profile: Profile) -> Scores:
    """Score a candidate by its share of matchups won.

    score[c] = (matchups won + ½ matchups drawn) / matchups played.

    A matchup is decided by the weighted majority of the ballots that rank both candidates; one
    that no ballot compares is not played. Where all are played, the order is Copeland's.

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that played no matchup.

    References
    ----------
    Copeland, A reasonable social welfare function, University of Michigan seminar on applications
    of mathematics to the social sciences, 1951.
    """
    counts = matchups(profile)
    margins = counts.margins
    if profile.weights is not None:
        margins = round_to_grid(margins, profile.weights.sum(axis=0))
    met = counts.comparisons > 0
    small = np.int8 if profile.n_candidates <= 64 else np.int16
    won = (margins > 0).sum(axis=1, dtype=small)
    lost = (margins < 0).sum(axis=1, dtype=small)
    played = met.sum(axis=1, dtype=small)
    # Played is won + drawn + lost, so won + ½ drawn is half of played + won − lost.
    halves = np.where(played > 0, 2.0 * played, np.nan)
    return Scores(score=(played + won - lost) / halves)


@rule(
    "schulze",
    needs="rankings",
    shortest=2,
    source="Schulze, Social Choice and Welfare 36, 2011",
    summary="A beats B if its strongest chain of majorities over B is stronger than any back.",
    use_when="near-copies of an answer or majority cycles are likely, and a head-to-head winner "
    "must always win.",
    evidence="Clone independent, monotone and Condorcet consistent at once. In simulation it finds "
    "the best candidate 1 to 3 points less often than Borda at 3 to 5 reviewers, and as often from "
    "9 on. It leaves more dead heats: at 4 reviewers it shares 33 of 100 leads, Borda 5.",
    satisfies=set(Axiom),
    bounds=(0.0, 1.0),
)
def schulze(
    profile: Profile, *, strength: Literal["winning_votes", "margins"] = "winning_votes"
) -> Scores:
    """Score a candidate by its share of rivals without a stronger path.

    A link i → j exists where more ballots prefer i to j than the reverse. Its strength is the
    number of those ballots (winning votes) or the difference (margins). A path is as strong as its
    weakest link; p[i, j] is the strongest path, 0 if there is none. Then

        score[c] = share of the rivals j with p[j, c] ≤ p[c, j].

    Beating is transitive, so there is always a winner, and every winner has exactly 1. The
    strongest paths come from the widest-path form of Floyd and Warshall's recursion, C³ steps.

    Parameters
    ----------
    strength
        ``winning_votes`` or ``margins``; they differ only where ballots are tied or partial.

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that no ballot ranks.

    Raises
    ------
    InvalidParameter
        If `strength` is neither.

    References
    ----------
    Schulze, A new monotonic, clone-independent, reversal symmetric, and Condorcet-consistent
    single-winner election method, Social Choice and Welfare 36 (2011) 267–303.
    """
    if strength not in {"winning_votes", "margins"}:
        raise InvalidParameter("strength", strength, "'winning_votes' or 'margins'")
    path = _links(profile, winning_votes=strength == "winning_votes")
    widen_paths(path)
    beaten_by = (path > path.swapaxes(0, 1)).sum(axis=0, dtype=np.int16)
    return Scores(score=share_of_rivals_not_above(beaten_by, candidates_with_votes(profile)))


def widen_paths(links: NDArray[Any]) -> None:
    """Replace the strength of each link by that of the strongest path, (C, C, …)."""
    for middle in range(len(links)):
        np.maximum(links, np.minimum(links[:, middle, np.newaxis], links[middle]), out=links)


def _links(profile: Profile, *, winning_votes: bool) -> NDArray[np.signedinteger[Any]]:
    """Majority strengths as whole numbers, 0 for minorities."""
    counts = matchups(profile)
    margins, strengths = counts.margins, counts.wins
    if profile.weights is not None:
        total = profile.weights.sum(axis=0)
        margins, strengths = round_to_grid(margins, total), round_to_grid(strengths, total)
    won = margins > 0
    return (strengths if winning_votes else margins) * won


@rule(
    "ranked_pairs",
    needs="rankings",
    shortest=2,
    source="Tideman, Social Choice and Welfare 4, 1987",
    summary="Majorities are locked in from the clearest down, skipping what would close a cycle.",
    use_when="there are majority cycles and the clearest majorities must be respected.",
    evidence="Condorcet consistent, monotone, and near-copies of a candidate change the winner "
    "only where margins are equal. With few reviewers margins are often equal, so several "
    "candidates share the first place.",
    satisfies={
        Axiom.ANONYMITY,
        Axiom.NEUTRALITY,
        Axiom.UNANIMITY,
        Axiom.CONDORCET,
        Axiom.MONOTONICITY,
    },
    bounds=(0.0, 1.0),
)
def ranked_pairs(profile: Profile) -> Scores:
    """Score a candidate by its locked share of rivals below or level.

    Pairs are locked in by falling margin unless they would close a cycle. With equal margins the
    order of locking may matter. With up to six candidates all orders are followed, and each
    candidate gets its best place:

        score[c] = 1 − (best place of c − 1) / rivals.

    Some way of breaking ties produces a linear order if and only if the order is a stack: for every
    x above y, a path down the order from x to y has only margins that are at least that of y over
    x. Pairs with margin 0 may go either way. If the majorities have no cycle, all of them are
    locked, and the best place of c is 1 + the number of candidates with a chain of majorities over
    c.

    If seven or more candidates have votes, equal margins are locked in seat order, and the rivals
    above c are those with a locked path to it.

    Returns
    -------
    Scores
        ``score`` (C, S), in [0, 1]; NaN for a candidate that no ballot ranks; every winner has 1.
        ``seat_order_decided`` (S,): with seven candidates or more, a pair was not locked that
        another order of equal margins would have locked.

    References
    ----------
    Tideman, Independence of clones as a criterion for voting rules, Social Choice and Welfare 4
    (1987) 185–206. Zavist and Tideman, Complete independence of clones in the ranked pairs rule,
    Social Choice and Welfare 6 (1989) 167–173 (stacks). Conitzer, Rognlie and Xia, Preference
    functions that score rankings and maximum likelihood estimation, IJCAI 2009 (all tie orders).
    """
    margins = whole_margins(profile)
    chained = closure(margins > 0)
    above = chained.sum(axis=0, dtype=np.int16)
    seat_order_decided = np.zeros(profile.n_sessions, dtype=np.bool_)
    has_votes = candidates_with_votes(profile)
    cyclic = chained.diagonal().any(axis=1)
    few = np.flatnonzero(cyclic & (has_votes.sum(axis=0) <= FOLLOWED))
    many = np.flatnonzero(cyclic & (has_votes.sum(axis=0) > FOLLOWED))
    if few.size:
        seats = voted_first(has_votes[:, few])
        above[seats, few] = _fewest_above(margins[seats[:, np.newaxis], seats, few])
    if many.size:
        above[:, many], seat_order_decided[many] = _lock_in_seat_order(margins[:, :, many])
    return Scores(
        score=share_of_rivals_not_above(above, has_votes), seat_order_decided=seat_order_decided
    )


@cache
def _orders(n_candidates: int) -> NDArray[np.intp]:
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
        order_above = _stack(here, order, session)
        order, session = order[:, order_above], session[order_above] + start
        for place in reversed(range(n_candidates)):  # so the best place overwrites the others
            fewest[order[place], session] = place
    return fewest


def _chains(no_defeat: NDArray[np.bool_], orders: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Orders without a defeat by the next below, shape (orders, S).

    Every stack is one of these, because the only path down between neighbours is direct.
    """
    chains: NDArray[np.bool_] = no_defeat[orders[0], orders[1]]
    for upper, lower in pairwise(orders[1:]):
        chains &= no_defeat[upper, lower]
    return chains


def _stack(
    margins: Margins, order: NDArray[np.intp], session: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Stacks among chains, given as orders (C, n) in sessions (n,).

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
            for middle in range(a + 1, b):
                np.maximum(width, np.minimum(widest[a, middle], widest[middle, b]), out=width)
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
        if (changed := np.flatnonzero(size != previous)).size:
            earlier[:, changed] = below[:, changed]
        previous = size
        winner, loser = upper[pair].astype(bits), lower[pair]
        gained = below[loser, sessions]
        closes = _has(gained, winner)
        mattered |= (size < 0) & closes & ~_has(earlier[loser, sessions], winner)
        known = _has(below[upper[pair], sessions], loser.astype(bits))
        if (locked := np.flatnonzero((size < 0) & ~closes & ~known)).size:
            sets = below[:, locked]
            below[:, locked] |= np.where(_has(sets, winner[locked]), gained[locked], bits.type(0))
    seats = np.arange(n_candidates).astype(bits)
    above = [_has(below, seat).sum(axis=0) - 1 for seat in seats]
    return np.array(above, dtype=np.int16), mattered


def _bit_type(n_candidates: int) -> np.dtype[Any]:
    """Smallest type with a bit per candidate; Python integers beyond 64."""
    for size in (8, 16, 32, 64):
        if n_candidates <= size:
            return np.dtype(f"uint{size}")
    return np.dtype(object)


def _has(sets: NDArray[Any], member: Any) -> NDArray[np.bool_]:
    member_bits: NDArray[np.bool_] = (sets >> member & 1).astype(np.bool_)
    return member_bits
