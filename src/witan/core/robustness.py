"""Robustness of the lead: recounts with ballots removed or reversed.

Each recount is one more session for the rule, so that thousands of them are one call.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Profile

Decide = Callable[[Profile, NDArray[np.integer[Any]]], NDArray[np.bool_]]
"""Function to the leaders: profile and session of each column → bool array (C, columns)."""

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
        for actions in _batches(n_ballots, size):
            flipped = _flips(profile, open_sessions, actions, leads, decide)
            counts[open_sessions[flipped]] = size
            open_sessions = open_sessions[~flipped]
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


def lead_kept_without_one(profile: Profile, rules: Sequence[Decide]) -> NDArray[np.float64]:
    """Share of ballots removable without any change of leaders, shape (rules, S)."""
    actions = np.full((profile.n_reviewers, profile.n_reviewers), KEEP, dtype=np.int8)
    np.fill_diagonal(actions, REMOVE)
    sessions = np.arange(profile.n_sessions)
    leads = [decide(profile, sessions) for decide in rules]
    shares = np.zeros((len(rules), profile.n_sessions))
    for column in actions.T:
        recount = _recounts(profile, sessions, column[:, np.newaxis])
        for number, decide in enumerate(rules):
            shares[number] += (decide(recount, sessions) == leads[number]).all(axis=0)
    return shares / max(1, profile.n_reviewers)


@lru_cache(maxsize=16)
def _batches(n_ballots: int, size: int) -> tuple[NDArray[np.int8], ...]:
    """List removals or reversals of `size` ballots, as columns (R, ≤ 4096).

    The first are those that only reverse: most leads end by one of them.
    """
    reversals: list[NDArray[np.int8]] = []
    others: list[NDArray[np.int8]] = []
    for chosen in combinations(range(n_ballots), size):
        for actions in product((REVERSE, REMOVE), repeat=size):
            column = np.zeros(n_ballots, dtype=np.int8)
            column[list(chosen)] = actions
            (others if REMOVE in actions else reversals).append(column)
    return tuple(
        np.stack(columns[start : start + 4096], axis=1)
        for columns in (reversals, others)
        for start in range(0, len(columns), 4096)
    )


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
        origin = np.tile(some, actions.shape[1])
        recount = _recounts(profile, some, actions)
        unchanged = (decide(recount, origin) == leads[:, origin]).all(axis=0)
        flipped[start : start + per_call] = ~unchanged.reshape(-1, len(some)).all(axis=0)
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
        recount = _recounts(profile, np.array([session]), actions)
        unchanged = (decide(recount, np.full(n_ballots, session)) == leads[:, [session]]).all(
            axis=0
        )
        if not unchanged.all():
            fewest = min(fewest, int(np.flatnonzero(~unchanged)[0]) + 1)
    return fewest


def _recounts(
    profile: Profile, sessions: NDArray[np.integer[Any]], actions: NDArray[np.int8]
) -> Profile:
    """Repeat every session under each column of actions (R, V).

    All sessions under the first column come first.
    """
    base, n_columns = profile.take(sessions), actions.shape[1]
    lengths = base.rank_mask.sum(axis=1) if base.lengths is None else base.lengths
    mirrored = (2 * (lengths[:, np.newaxis] + 1) - base.places).astype(base.places.dtype)
    mirrored[~base.rank_mask] = 0
    grades = base.grades
    if grades is not None:
        # Whole grades stay bytes, in which 0 is none: an eighth of the memory.
        none = np.full_like(grades, 0 if grades.dtype.kind in "iu" else np.nan)
        grades = _choose(actions, grades, none, _mirror(grades, base.grade_mask))

    # Quoted: the types would be built anew for every recount.
    def repeat(values: "NDArray[Any] | None") -> "NDArray[Any] | None":
        return None if values is None else np.concatenate([values] * n_columns, axis=-1)

    return Profile(
        _choose(actions, base.places, np.zeros_like(base.places), mirrored),
        grades,
        repeat(base.weights),
        repeat(base.lengths),
        repeat(base.eligible),
        repeat(base.reliability),
    )


def _choose(actions: NDArray[np.int8], *by_action: NDArray[Any]) -> NDArray[Any]:
    """Choose ballots kept, removed or reversed, shape (R, C, V·S).

    `by_action` has an array (R, C, S) for each.
    """
    ballots = np.arange(len(actions))[:, np.newaxis]
    chosen = np.array(by_action)[actions, ballots]
    result: NDArray[Any] = chosen.swapaxes(1, 2).reshape(len(actions), by_action[0].shape[1], -1)
    return result


def _mirror(grades: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Grades mirrored about the middle of each ballot."""
    top = np.iinfo(grades.dtype).max if grades.dtype.kind in "iu" else np.inf
    low = np.where(known, grades, top).min(axis=1, keepdims=True).astype(grades.dtype)
    high = np.where(known, grades, 0).max(axis=1, keepdims=True).astype(grades.dtype)
    with np.errstate(invalid="ignore"):
        return np.where(known, low + high - grades, grades)
