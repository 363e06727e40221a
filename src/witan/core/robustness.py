"""Robustness of the lead: recounts with ballots removed or reversed.

Each recount is one more session for the rule, so that thousands of them are one call.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile

Decide = Callable[[Profile, NDArray[np.integer[Any]]], NDArray[np.bool_]]
"""Who leads: profile and the session each column came from → bool array (C, columns)."""

KEEP, REMOVE, REVERSE = 0, 1, 2

MAX_RECOUNTS = 20_000
"""Recounts per session before the search for the exact number gives way to a bound."""

CELLS_AT_ONCE = 20_000_000
"""Cells (R, C, recounts) of one call of the rule."""


def ballots_to_flip(
    profile: Profile,
    leads: NDArray[np.bool_],
    decide: Decide,
    *,
    effective: NDArray[np.bool_] | None = None,
    max_cells: int = 200_000_000,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Count the fewest removed or reversed ballots to end each lead.

    All subsets are tried, smallest first, each ballot of one removed or reversed; once the next
    size is too large to try in full, ballots are reversed in the order of their weight against the
    leader, which bounds the number from above.

    Parameters
    ----------
    leads : bool array, shape (C, S)
        Who leads as the ballots are.
    effective : bool array, shape (R, S), optional
        Ballots that the rule reads anything from; only these are taken into a bound.

    Returns
    -------
    counts : int array, shape (S,)
        0 where the lead is shared, −1 where nobody leads or nothing was found or searched.
    exact : bool array, shape (S,)
        Whether no smaller number does.
    """
    n_sessions, n_ballots = profile.n_sessions, profile.n_reviewers
    alone = leads.sum(axis=0) == 1
    counts = np.where(leads.any(axis=0), 0, -1).astype(np.int64)
    counts[alone] = -1
    exact = np.ones(n_sessions, dtype=np.bool_)
    open_sessions = np.flatnonzero(alone)
    tried, cells = 0, n_ballots * profile.n_candidates
    for size in range(1, n_ballots + 1):
        tried += comb(n_ballots, size) * 2**size
        too_many = tried > MAX_RECOUNTS or tried * cells > max_cells
        if not len(open_sessions) or too_many:
            break
        flipped = np.zeros(n_sessions, dtype=np.bool_)
        for actions in _batches(n_ballots, size):
            flipped[open_sessions] |= _flips(profile, open_sessions, actions, leads, decide)
        counts[flipped] = size
        open_sessions = open_sessions[~flipped[open_sessions]]
    else:
        return counts, exact
    if n_ballots * n_ballots * profile.n_candidates**2 > max_cells:
        exact[open_sessions] = False
        return counts, exact
    for session in open_sessions:
        read = None if effective is None else effective[:, session]
        counts[session] = _upper_bound(profile, int(session), leads, decide, read)
        exact[session] = counts[session] == size
    return counts, exact


def lead_kept_without_one(profile: Profile, decide: Decide) -> NDArray[np.float64]:
    """Share of ballots removable without any change of leaders, shape (S,)."""
    actions = np.full((profile.n_reviewers, profile.n_reviewers), KEEP, dtype=np.int8)
    np.fill_diagonal(actions, REMOVE)
    sessions = np.arange(profile.n_sessions)
    leads = decide(profile, sessions)
    shares = np.zeros(profile.n_sessions)
    for column in actions.T:
        recount = _apply(profile, sessions, column[:, np.newaxis])
        shares += (decide(recount, sessions) == leads).all(axis=0)
    return shares / max(1, profile.n_reviewers)


@lru_cache(maxsize=16)
def _batches(n_ballots: int, size: int) -> tuple[NDArray[np.int8], ...]:
    """All ways to remove or reverse `size` ballots, as columns (R, up to 4096)."""
    columns = []
    for chosen in combinations(range(n_ballots), size):
        for what in product((REMOVE, REVERSE), repeat=size):
            column = np.zeros(n_ballots, dtype=np.int8)
            column[list(chosen)] = what
            columns.append(column)
    starts = range(0, len(columns), 4096)
    return tuple(np.stack(columns[start : start + 4096], axis=1) for start in starts)


def _flips(
    profile: Profile,
    sessions: NDArray[np.integer[Any]],
    actions: NDArray[np.int8],
    leads: NDArray[np.bool_],
    decide: Decide,
) -> NDArray[np.bool_]:
    """True where any of these actions ends the lead, per session given."""
    flipped = np.zeros(len(sessions), dtype=np.bool_)
    per_call = max(1, CELLS_AT_ONCE // (profile.places[..., 0].size * actions.shape[1]))
    for start in range(0, len(sessions), per_call):
        some = sessions[start : start + per_call]
        origin = np.repeat(some, actions.shape[1])
        recount = _apply(profile, origin, np.tile(actions, len(some)))
        unchanged = (decide(recount, origin) == leads[:, origin]).all(axis=0)
        flipped[start : start + per_call] = ~unchanged.reshape(len(some), -1).all(axis=1)
    return flipped


def _upper_bound(
    profile: Profile,
    session: int,
    leads: NDArray[np.bool_],
    decide: Decide,
    effective: NDArray[np.bool_] | None,
) -> int:
    """Upper bound by reversing the leader's strongest supporters first.

    Ballots without effect come last, so that none is counted on the way.
    """
    n_ballots, n_candidates = profile.n_reviewers, profile.n_candidates
    leader = int(leads[:, session].argmax())
    places = profile.places[:, :, session].astype(np.int64)
    ladder = np.tril(np.full((n_ballots, n_ballots), REVERSE, dtype=np.int8)).T
    fewest = n_ballots if effective is None else int(effective.sum())
    for rival in range(n_candidates):
        if rival == leader:
            continue
        both = (places[:, leader] > 0) & (places[:, rival] > 0)
        friendly = np.where(both, places[:, rival] - places[:, leader], 0)
        if effective is not None:
            friendly = np.where(effective, friendly, -n_candidates)
        order = np.argsort(-friendly, kind="stable")
        actions = np.empty_like(ladder)
        actions[order] = ladder
        recount = _apply(profile, np.full(n_ballots, session), actions)
        unchanged = (decide(recount, np.full(n_ballots, session)) == leads[:, [session]]).all(
            axis=0
        )
        if not unchanged.all():
            fewest = min(fewest, int(np.flatnonzero(~unchanged)[0]) + 1)
    return fewest


def _apply(
    profile: Profile, origin: NDArray[np.integer[Any]], actions: NDArray[np.int8]
) -> Profile:
    """Sessions of `origin` with ballots unchanged, removed or reversed, actions (R, V)."""
    base = profile.take(origin)
    act = actions[:, np.newaxis]
    lengths = base.ranked.sum(axis=1) if base.lengths is None else base.lengths
    mirrored = (2 * (lengths[:, np.newaxis] + 1) - base.places).astype(base.places.dtype)
    turned = np.where((act == REVERSE) & base.ranked, mirrored, base.places)
    places = np.where(act == REMOVE, base.places.dtype.type(0), turned)
    grades = None if base.grades is None else _turned_grades(base.grades, base.graded, act)
    return Profile(places, grades, base.weights, base.lengths, base.eligible, base.reliability)


def _turned_grades(
    grades: NDArray[Any], graded: NDArray[np.bool_], act: NDArray[np.int8]
) -> NDArray[Any]:
    """Grades mirrored about the middle of each ballot, or gone."""
    values = np.where(graded, grades, 0).astype(np.float64)
    low = np.where(graded, values, np.inf).min(axis=1, keepdims=True)
    high = np.where(graded, values, -np.inf).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        turned = np.where(act == REVERSE, low + high - values, values)
    return np.where(graded & (act != REMOVE), turned, np.nan)
