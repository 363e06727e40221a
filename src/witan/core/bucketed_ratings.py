"""Ratings from sums of matchups: what `rate` finds, without a comparison in sight."""

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from witan.core.comparisons import FIRST, SECOND, TIE, PairCounts
from witan.core.merging import places
from witan.core.rating_fit import (
    MAX_MODELS,
    Clusters,
    Ratings,
    check_options,
    conclude,
    fit_pairs,
    residuals,
)
from witan.core.sums import MatchupSums, Names
from witan.errors import NothingToCount, TooLarge

__all__ = ["rate_sums"]

Array = NDArray[np.float64]
Codes = NDArray[np.integer]


def rate_sums(
    sums: MatchupSums, names: Names, *, ghost_wins: float = 0.5, level: float = 0.95
) -> Ratings:
    r"""Rate models by a Bradley–Terry fit to sums of matchups, errors clustered by bucket.

    The strengths are those that `rate` finds from the comparisons themselves. Errors differ from
    its own in the clusters alone: with g_b the gradient of all comparisons of bucket b at the fit,

        covariance = H⁻¹ (B/(B − 1) Σ_b g_b g_bᵀ + H₀) H⁻¹,

    as `rate` has it with a session in the place of a bucket. A bucket holds whole sessions, so
    that what a session shares is allowed for; sessions being independent, the two errors differ
    by chance only, and Student's t has B − 1 degrees of freedom.

    Parameters
    ----------
    sums : MatchupSums
        Rows in any order; a key may stand in several, a pair in either order. Weights of ballots
        count as so many ballots.
    names : Names
        Of every code in `sums`.
    ghost_wins, level : float
        As in `rate`.

    Returns
    -------
    Ratings
        Models in alphabetical order. `n_sessions` is None, `n_clusters` the number of buckets.

    Raises
    ------
    InvalidParameter, NothingToCount, TooLarge, UnsuitableBallots
        As `rate` does. Rows of weight 0, or of a model with itself, are no comparisons.

    References
    ----------
    Liang and Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73
    (1986) 13–22. Further in `rate`.
    """
    check_options(ghost_wins, level)
    models, (first, second) = places(names, sums.first, sums.second)
    met = ((sums.wins > 0) | (sums.losses > 0) | (sums.ties > 0)) & (first != second)
    if not met.any():
        raise NothingToCount("there are no comparisons to rate models by")
    if not met.all():
        sums = MatchupSums(*(getattr(sums, field.name)[met] for field in fields(sums)))
        models, (first, second) = places(names, sums.first, sums.second)
    if len(models) > MAX_MODELS:
        raise TooLarge("models", len(models), MAX_MODELS)
    table = np.stack([sums.ties, sums.wins, sums.losses])  # by outcome code
    cell = first * len(models) + second
    fit = fit_pairs(models, _counts(cell, table, len(models)), ghost_wins)
    residual = residuals(fit.strength).reshape(3, -1)
    pull = sum(table[outcome] * residual[outcome][cell] for outcome in (TIE, FIRST, SECOND))
    gradient = _by_bucket(sums.bucket, first, second, np.asarray(pull), len(models))
    clusters = Clusters(len(gradient), gradient.T @ gradient)
    return conclude(fit, clusters, level, tuple(_warnings(clusters.n, len(models))))


def _counts(cell: Codes, table: Array, n_models: int) -> PairCounts:
    """Totals of all buckets, shape (M, M) each."""
    tie, first, second = (
        np.bincount(cell, weights, minlength=n_models**2).reshape(n_models, n_models)
        for weights in table
    )
    return PairCounts(first=first, second=second, tie=tie)


def _by_bucket(bucket: Codes, first: Codes, second: Codes, pull: Array, n_models: int) -> Array:
    """The gradient of every bucket that holds a comparison, shape (B, M)."""
    _, row = np.unique(bucket, return_inverse=True)
    n_buckets = int(row.max()) + 1
    size = n_buckets * n_models
    gradient = np.bincount(row * n_models + first, pull, minlength=size)
    gradient -= np.bincount(row * n_models + second, pull, minlength=size)
    return np.asarray(gradient.reshape(n_buckets, n_models))


def _warnings(n_buckets: int, n_models: int) -> list[str]:
    """Say where the errors rest on little."""
    if n_buckets == 1:
        return ["all comparisons fall into one group of sessions: how ratings vary is unknown"]
    if n_buckets <= n_models:
        return [
            f"{n_buckets} groups of sessions are few for {n_models} models: "
            "clustered errors are rough"
        ]
    return []
