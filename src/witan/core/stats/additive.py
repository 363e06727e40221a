"""The additive fit: candidate effects free of reviewer offsets.

Model, for ballot r and candidate c of one session,

    y[r, c] = effect[c] + offset[r] + error,    error ~ N(0, σ² / weight[r]),

with y the grades divided by the reviewer's scale, or ranks with the sign turned. Least squares
removes offsets exactly, even where reviewers judged different sets; centring each ballot does not.
The pattern of present cells enters only through a C × C Laplacian, shared by all sessions of one
pattern, so a batch takes a few passes over contiguous sessions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import (
    BLOCK_CELLS,
    FRACTION_VARIANCE,
    ORDER_VARIANCE,
    ROUNDING_VARIANCE,
    Floats,
    Profile,
    closure,
    pair_indices,
)

SCALE_DF = 5.0
"""Prior degrees of freedom that draw a reviewer's scale toward the panel's."""

REMEMBERED_CELLS = 4096
"""Most cells, or pairs, of a pattern whose solution is cached: 10 MB.

Councils of one size share a pattern.
"""

Solved = tuple[Floats, NDArray[np.integer[Any]], Floats]
"""Laplacian inverses, components and residual freedom per pattern."""


@dataclass(frozen=True, slots=True)
class AdditiveFit:
    """Candidate effects of S sessions, centred on 0, with common residual variance.

    Parameters
    ----------
    effects : float array, shape (C, S)
        NaN for a candidate on no ballot. In grade points of the panel, or in ranks.
    residual_variance : float array, shape (S,)
        s², at least the variance from rounding; NaN without residual freedom.
    least_variance : float array, shape (S,)
        Variance from the rounding of the data alone.
    df : float array, shape (S,)
        Residual degrees of freedom: cells − ballots − candidates + components.
    inverses : float array, shape (P, C, C)
        Pseudo-inverse of each pattern's Laplacian: covariance of the effects over σ².
    components : int array, shape (P, C)
        Candidates with different numbers were never compared, directly or through others; −1:
        absent.
    pattern : int array, shape (S,)
        Which pattern each session has.
    observed_variance : float array, shape (S,)
        Residual variance without a floor; NaN without residual freedom.
    chance_variance : float array, shape (S,), optional
        Variance of strict places on ballots of this length if ranked at random; None: not from
        ranks.
    """

    effects: Floats
    residual_variance: Floats
    least_variance: Floats
    df: Floats
    inverses: Floats
    components: NDArray[np.integer[Any]]
    pattern: NDArray[np.integer[Any]]
    observed_variance: Floats
    chance_variance: Floats | None = None

    def take(self, sessions: NDArray[np.integer[Any]]) -> "AdditiveFit":
        """Return the fit of some sessions, with only their patterns."""
        patterns = np.array(sorted(set(self.pattern[sessions].tolist())), dtype=np.intp)
        pattern = np.searchsorted(patterns, self.pattern[sessions])
        chance = self.chance_variance
        return AdditiveFit(
            effects=self.effects[:, sessions],
            residual_variance=self.residual_variance[sessions],
            least_variance=self.least_variance[sessions],
            df=self.df[sessions],
            inverses=self.inverses[patterns],
            components=self.components[patterns],
            pattern=pattern,
            observed_variance=self.observed_variance[sessions],
            chance_variance=None if chance is None else chance[sessions],
        )

    def variance_factors(self) -> Floats:
        """Variance of effect[i] − effect[j] over σ², (P, C, C); NaN: incomparable."""
        own = self.inverses.diagonal(axis1=1, axis2=2)
        factors = own[:, :, np.newaxis] + own[:, np.newaxis] - 2 * self.inverses
        component = self.components
        comparable = component[:, :, np.newaxis] == component[:, np.newaxis]
        return np.where(comparable & (component >= 0)[:, np.newaxis], factors, np.nan)

    def std_errors(self) -> Floats:
        """Standard error of centred effects, (C, S); NaN without residual freedom."""
        own = self.inverses.diagonal(axis1=1, axis2=2)
        present = np.where(self.components >= 0, own, np.nan)
        root = np.sqrt(present[self.pattern].T)
        result: Floats = root * np.sqrt(self.residual_variance)
        return result


def fit_grades(profile: Profile) -> AdditiveFit:
    """Fit grades divided by their reviewer's relative scale.

    With S²[r] the variance of the n[r] grades on ballot r and S̄² pooled over the ballots,

        scale²[r] = (5·S̄² + (n[r] − 1)·S²[r]) / (5 + n[r] − 1),    y = grade · S̄ / scale[r],

    so a reviewer that spreads its grades wider than its peers counts no more than they do, and
    effects stay in grade points. The residual variance is at least that of rounding: 1/12 for whole
    grades, 1/48 for others, and step²/12 for grades converted from whole numbers on a scale with
    steps larger than half a point of 1 to 10.
    """
    _, fit = fit_effects(profile)
    return fit()


def fit_effects(profile: Profile) -> tuple[Floats, Callable[[], AdditiveFit]]:
    """Find the effects of `fit_grades`; return them with a function that makes the whole fit."""
    grades, mask = profile.grades, profile.grade_mask
    if grades is None:
        grades = np.zeros(profile.places.shape, dtype=np.uint8)
    values = grades if grades.dtype.kind in "iu" else np.where(mask, grades, 0.0)
    effects, fit = _fit(values, mask, profile.weights, is_scaled=True)
    return effects, lambda: fit(_rounding_variance(values, profile.rounding))


def _rounding_variance(grades: NDArray[Any], rounding: Floats | None) -> Floats:
    """Variance from the rounding of grades (R, C, S) alone; absent ones are 0."""
    if grades.dtype.kind in "iu":
        least = np.full(grades.shape[2], ROUNDING_VARIANCE)
    else:
        whole = np.all(grades == np.rint(grades), axis=(0, 1))
        least = np.where(whole, ROUNDING_VARIANCE, FRACTION_VARIANCE)
    return least if rounding is None else np.where(np.isnan(rounding), least, rounding)


def fit_ranks(profile: Profile) -> AdditiveFit:
    """Fit negated ranks: higher is better.

    The residual variance is at least 1/2: two candidates in random order have a difference of
    variance 1, however consistently the others are ranked.
    """
    mask = profile.rank_mask
    _, fit = _fit(profile.places, mask, profile.weights, is_scaled=False, unit=-0.5)
    n = profile.mask_weighed(mask).sum(axis=1).astype(np.float64)
    freedom = np.maximum(n - 1, 0.0).sum(axis=0)
    chance = (n * (n**2 - 1)).sum(axis=0) / 12 / np.maximum(freedom, 1.0)
    return replace(
        fit(np.full(profile.n_sessions, ORDER_VARIANCE)),
        # Two places vary by 1/2, and an informative ballot has at least two.
        chance_variance=np.maximum(chance, ORDER_VARIANCE),
    )


def fit_rows(values: Floats) -> AdditiveFit:
    """Fit float ranks (R, C, S); NaN: none.

    The least variance is that of ranks. The residual variance may be half of it: tests use the
    larger, probabilities the smaller.
    """
    mask = ~np.isnan(values)
    least = np.full(values.shape[2], ORDER_VARIANCE)
    _, fit = _fit(np.where(mask, values, 0.0), mask, None, is_scaled=False)
    return replace(fit(least / 2), least_variance=least)


def adjusted_grades(profile: Profile) -> Floats:
    """Grades in `fit_grades`, each ballot on the panel's scale.

    Returns
    -------
    float array, shape (R, C, S)
        NaN where there is no grade.
    """
    mask = profile.grade_mask
    values = np.where(mask, 0 if profile.grades is None else profile.grades, 0.0)
    counts = mask.sum(axis=1)
    mean = values.sum(axis=1) / np.maximum(counts, 1)
    spread = (np.where(mask, values - mean[:, np.newaxis], 0.0) ** 2).sum(axis=1)
    adjusted: Floats = np.where(
        mask, values * _scale_factors(spread, counts)[:, np.newaxis], np.nan
    )
    return adjusted


def pair_variances(values: Floats) -> tuple[Floats, NDArray[np.integer[Any]]]:
    """Variance of a pair's mean difference, from its own ballots.

    The pooled variance of the fit assumes the same noise for all candidates. A pair judged with
    more noise shows it in its own differences.

    Parameters
    ----------
    values : float array, shape (R, C, S)
        NaN where a ballot has none.

    Returns
    -------
    variances : float array, shape (C, C, S)
        Sample variance of values[r, i] − values[r, j] over their number; 0 where fewer than two
        ballots have both.
    n_ballots : int array, shape (C, C, S)
        Ballots that have both; 0 on the diagonal.
    """
    n_candidates, n_sessions = values.shape[1:]
    variances = np.zeros((n_candidates, n_candidates, n_sessions))
    n_ballots = np.zeros(variances.shape, dtype=np.int32)
    every_first, every_second = pair_indices(n_candidates)
    step = max(1, BLOCK_CELLS // max(1, len(values) * n_sessions))  # limits memory
    for start in range(0, len(every_first), step):
        first, second = every_first[start : start + step], every_second[start : start + step]
        difference = values[:, first] - values[:, second]
        both = ~np.isnan(difference)
        n = both.sum(axis=0)
        divisor = np.maximum(n, 1)
        difference = np.where(both, difference, 0.0)
        away = np.where(both, difference - difference.sum(axis=0) / divisor, 0.0)
        variance = (away**2).sum(axis=0) / np.maximum(n - 1, 1) / divisor
        variances[first, second] = variances[second, first] = variance
        n_ballots[first, second] = n_ballots[second, first] = n
    return variances, n_ballots


def _fit(
    values: NDArray[Any],
    mask: NDArray[np.bool_],
    weights: Floats | None,
    *,
    is_scaled: bool,
    unit: float = 1.0,
) -> tuple[Floats, Callable[[Floats], AdditiveFit]]:
    """Solve the normal equations of every session; absent cells hold 0.

    Returns
    -------
    effects : float array, shape (C, S)
    fit
        A function of the least variances that computes what recounts do not need.
    """
    if weights is not None:
        mask = mask & (weights > 0)[:, np.newaxis]
        values = values * mask
    inverses, components, freedom, pattern = _patterns(mask, weights)
    counts = mask.sum(axis=1, dtype=np.uint16).astype(np.int32)
    accumulate = np.int64 if values.dtype.kind in "iu" else np.float64
    small = np.int32 if accumulate is np.int64 and values.dtype.itemsize == 1 else accumulate
    values = values.astype(small)
    sums = values.sum(axis=1, dtype=small)
    squares = np.einsum("rcs,rcs->rs", values, values)
    n = np.maximum(counts, 1)
    # n·Σx² − (Σx)² is exact in whole numbers: a flat ballot has exactly no variance.
    spread = np.maximum((n * squares - sums * sums) / n, 0.0) * unit**2
    factor = _scale_factors(spread, counts) if is_scaled else np.ones(spread.shape)
    mass = factor if weights is None else factor * weights
    centred = np.subtract(values, (sums / n)[:, np.newaxis], dtype=np.float64)
    centred *= mask
    load = np.einsum("rcs,rs->cs", centred, mass * unit)
    solved = np.empty_like(load)
    for number in range(len(inverses)):
        chosen = slice(None) if len(inverses) == 1 else pattern == number
        solved[:, chosen] = inverses[number] @ load[:, chosen]
    effects = np.where((components < 0)[pattern].T, np.nan, solved)

    # Quoted: the type would be rebuilt for every recount.
    def fit(least: "Floats") -> AdditiveFit:
        df = freedom[pattern]
        total = np.einsum("rs,rs->s", spread, mass * factor)
        left = np.maximum(total - np.einsum("cs,cs->s", load, solved), 0.0)
        observed = np.where(df > 0, left / np.maximum(df, 1.0), np.nan)
        return AdditiveFit(
            effects=effects,
            residual_variance=np.where(df > 0, np.fmax(observed, least), np.nan),
            least_variance=least,
            df=df,
            inverses=inverses,
            components=components,
            pattern=pattern,
            observed_variance=observed,
        )

    return effects, fit


def _scale_factors(spread: Floats, counts: NDArray[np.integer[Any]]) -> Floats:
    """Divide panel scale by reviewer scale, (R, S).

    It is 1 if all ballots are flat.
    """
    freedom = np.maximum(counts - 1, 0)
    panel = spread.sum(axis=0) / np.maximum(freedom.sum(axis=0), 1)
    own = (SCALE_DF * panel + spread) / (SCALE_DF + freedom)
    factors: Floats = np.sqrt(np.divide(panel, own, out=np.ones_like(own), where=panel > 0))
    return factors


def _patterns(
    mask: NDArray[np.bool_], weights: Floats | None
) -> tuple[Floats, NDArray[np.integer[Any]], Floats, NDArray[np.integer[Any]]]:
    """Laplacian inverses, components and residual freedom per distinct pattern of cells."""
    first, pattern = _distinct(mask, weights)
    cells = np.ascontiguousarray(mask[:, :, first].transpose(2, 0, 1))
    mass = np.ones(cells.shape[:2])
    if weights is not None:
        mass = weights[:, first].T.astype(np.float64)
    n_patterns, n_ballots, n_candidates = cells.shape
    if n_patterns * n_candidates * max(n_ballots, n_candidates) <= REMEMBERED_CELLS:
        inverses, components, freedom = _solve_cached(cells.tobytes(), mass.tobytes(), cells.shape)
    else:
        inverses, components, freedom = _solve(cells, mass)
    return inverses, components, freedom, pattern


def _distinct(
    mask: NDArray[np.bool_], weights: Floats | None
) -> tuple[NDArray[np.intp], NDArray[np.integer[Any]]]:
    """Find the first session of each distinct pattern, and each session's pattern."""
    n_reviewers, n_candidates, n_sessions = mask.shape
    alone = np.zeros(1, dtype=np.intp)
    if n_sessions == 1:
        return alone, alone
    packed = np.packbits(mask.reshape(n_reviewers * n_candidates, n_sessions), axis=0)
    if weights is not None:
        raw = np.ascontiguousarray(weights.T, dtype=np.float64).view(np.uint8)
        packed = np.concatenate([packed, raw.reshape(n_sessions, -1).T])
    if n_sessions and (packed == packed[:, :1]).all():
        return alone, np.zeros(n_sessions, dtype=np.intp)
    keys = np.ascontiguousarray(packed.T).view(np.dtype((np.void, packed.shape[0]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return first, pattern


@lru_cache(maxsize=256)
def _solve_cached(cells: bytes, mass: bytes, shape: tuple[int, int, int]) -> Solved:
    """Cached solution of patterns (P, R, C) in bytes; read-only."""
    solved = _solve(
        np.frombuffer(cells, dtype=np.bool_).reshape(shape),
        np.frombuffer(mass).reshape(shape[:2]),
    )
    for columns in solved:
        columns.setflags(write=False)
    return solved


def _solve(cells: NDArray[np.bool_], mass: Floats) -> Solved:
    """Solve each pattern's normal equations: cells (P, R, C), weights (P, R)."""
    n_candidates = cells.shape[2]
    counted = (cells & (mass > 0)[:, :, np.newaxis]).astype(np.float64)
    length = np.maximum(counted.sum(axis=2), 1.0)
    mass = mass * (length > 1)  # a single cell compares nothing; its mass would cancel inexactly
    scaled = counted * (mass / length)[:, :, np.newaxis]
    laplacian = -np.einsum("prc,prd->pcd", scaled, counted)
    degree = np.einsum("prc,pr->pc", counted, mass)
    diagonal = np.arange(n_candidates)
    laplacian[:, diagonal, diagonal] += degree
    components = _components(counted)
    inverses = np.linalg.pinv(laplacian, rcond=1e-10, hermitian=True)
    freedom = (
        counted.sum(axis=(1, 2))
        - (counted.max(axis=2, initial=0.0) > 0).sum(axis=1)
        - (components >= 0).sum(axis=1)
        + (components.max(axis=1, initial=-1) + 1)
    )
    return inverses, components, freedom


def _components(cells: Floats) -> NDArray[np.intp]:
    """Number connected groups per pattern, (P, R, C) → (P, C).

    The groups are of candidates; −1: absent.
    """
    n_patterns, _, n_candidates = cells.shape
    present: NDArray[np.bool_] = cells.max(axis=1, initial=0.0) > 0
    reach = closure(np.einsum("prc,prd->dcp", cells, cells) > 0)
    lowest = reach.argmax(axis=0).T
    components = np.full((n_patterns, n_candidates), -1, dtype=np.intp)
    for number in range(n_patterns):
        _, groups = np.unique(lowest[number][present[number]], return_inverse=True)
        components[number, present[number]] = groups
    return components
