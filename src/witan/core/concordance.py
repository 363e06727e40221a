"""Kendall's W of many sessions at once."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from witan.core.agreement import MOST_PAIRS, kendall_w
from witan.core.profile import BLOCK_CELLS, Floats, Profile

__all__ = ["kendall_ws"]


def kendall_ws(profile: Profile) -> list[float | None]:
    """`kendall_w` of every session of a batch, over the candidates that some ballot ranks.

    Parameters
    ----------
    profile : Profile
        Of whole ballots; weights do not matter.

    Returns
    -------
    list of float or None
        As `kendall_w` gives them, but for the last digits of a mean.
    """
    n_ballots, n_candidates = profile.n_reviewers, profile.n_candidates
    if n_ballots < 2 or n_candidates < 2:
        return [None] * profile.n_sessions
    if n_ballots * (n_ballots - 1) // 2 > MOST_PAIRS:
        return [_alone(profile, column) for column in range(profile.n_sessions)]
    found: list[float | None] = []
    step = max(1, BLOCK_CELLS // (n_ballots * n_candidates**2))
    for start in range(0, profile.n_sessions, step):
        places = profile.places[:, :, start : start + step].astype(np.int32)
        found += [None if np.isnan(w) else w for w in _of_block(places).tolist()]
    return found


def _alone(profile: Profile, column: int) -> float | None:
    ranks = profile.ranks[:, :, column]
    return kendall_w(ranks[:, ~np.isnan(ranks).all(axis=0)])


def _of_block(places: NDArray[np.int32]) -> Floats:
    """W of sessions, shape (R, C, S) → (S,); NaN where there is none."""
    ranked = places > 0
    present = np.logical_or.reduce(ranked, axis=0)
    complete = (ranked == present).all(axis=(0, 1))
    w = np.where(complete, _of_complete(places, present), _of_incomplete(places, ranked))
    return np.where(present.sum(axis=0) >= 2, w, np.nan)


def _of_complete(places: NDArray[np.int32], present: NDArray[np.bool_]) -> Floats:
    """From rank sums, ties taken out; sessions with gaps come out as nonsense.

    A candidate tied with t − 1 others contributes t² − 1 to the t³ − t of its group.
    """
    m, n = len(places), present.sum(axis=0)
    sums = places.sum(axis=0) / 2
    away = np.where(present, sums - sums.sum(axis=0) / np.maximum(n, 1), 0.0)
    alike = (places[:, :, np.newaxis] == places[:, np.newaxis]) & present
    tied = np.where(present, alike.sum(axis=2) ** 2 - 1, 0).sum(axis=(0, 1))
    room = m**2 * (n**3 - n) - m * tied
    with np.errstate(divide="ignore", invalid="ignore"):
        w: Floats = np.where(room > 0, 12 * (away**2).sum(axis=0) / room, np.nan)
    return w


def _of_incomplete(places: NDArray[np.int32], ranked: NDArray[np.bool_]) -> Floats:
    """From the mean correlation of pairs of ballots, each recounted among what both rank."""
    m, _, n_sessions = places.shape
    ahead = np.sign(places[:, :, np.newaxis] - places[:, np.newaxis])
    total, times = np.zeros(n_sessions), np.zeros(n_sessions)
    for first, second in combinations(range(m), 2):
        both = ranked[first] & ranked[second]
        a = np.where(both, np.where(both, ahead[first], 0).sum(axis=1), 0)
        b = np.where(both, np.where(both, ahead[second], 0).sum(axis=1), 0)
        spread = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
        total += (a * b).sum(axis=0) / np.where(spread > 0, spread, 1.0)
        times += spread > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / times
    w: Floats = np.maximum(0.0, (1 + (m - 1) * mean) / m)
    return w
