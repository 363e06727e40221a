"""Bradley–Terry ratings of models across sessions, from comparisons or from their sums."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.display import list_names
from witan.core.outcome import check_level
from witan.core.rules.luce import fit_matchups
from witan.core.stats.comparisons import (
    FIRST,
    SECOND,
    TIE,
    Comparisons,
    PairCounts,
    count_pairs,
    session_squares,
)
from witan.core.stats.distributions import logistic, t_cdf, t_quantile
from witan.core.stats.prediction_powered import equal_clusters
from witan.core.stats.sums import MatchupSums, Names, places
from witan.errors import InvalidParameter, NothingToCount, TooLarge, UnsuitableBallots

Array = NDArray[np.float64]
Errors = Literal["clustered", "robust"]

MAX_MODELS = 5_000
"""Most models; memory grows with their square, time with their cube."""

MIN_EQUAL_CLUSTERS = 1.5
"""Fewest clusters of equal size, by their information, for which there are intervals."""

FEW = 20
"""With fewer independent units, chance agreement can make a sandwich error too small.

In simulation, clustered intervals of 95% covered 94 to 96% from 20 sessions on, with and without
effects that a session's comparisons share.
"""

NAMED = 4
"""More names than this are counted in a warning instead of listed."""

Codes = NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Strengths of M models, each with its error, interval and ranks.

    Parameters
    ----------
    models : tuple of str
        In the order of the comparisons, as are all arrays below.
    rating : float array, shape (M,)
        Logits, mean 0 within each group of models that chains of comparisons join; NaN for a
        model without comparisons.
    std_error : float array, shape (M,)
        Error of the rating: the one named by `errors`, at least the model's own if `widened`.
    low, high : float arrays, shape (M,)
        The interval of the rating at `level`.
    level : float
        Level of all intervals.
    errors : str
        ``clustered`` by session or by groups of sessions, or ``robust`` per comparison.
    widened : bool
        Whether errors and contrasts are at least those of the information alone. With fewer than
        `FEW` clusters (or comparisons, if robust), chance agreement would otherwise look like
        certainty.
    wins, losses, ties : arrays, shape (M,)
        Comparisons by outcome, or their weight where ballots were weighted.
    rank_low, rank_high : integer arrays, shape (M,)
        The best and the worst rank a model may have: 1 + models significantly above it, and
        M − models significantly below it, each contrast at `level`.
    group : integer array, shape (M,)
        Group of each model, joined by comparisons, numbered by first appearance.
    n_comparisons : float
        Number or weight of comparisons.
    n_sessions, n_clusters : int
        Sessions, and the groups that errors are clustered by: the sessions themselves, or buckets
        of them. None without clusters, or for `n_sessions` if only buckets are known.
    ghost_wins : float
        Wins, and as many losses, of every model against one ghost.
    warnings : tuple of str
        Warnings about disconnected groups, models that never lost or never won, and too few
        sessions.
    contrast_error : float array, shape (M, M)
        Standard error of rating i − rating j; NaN between groups.
    degrees : float
        Degrees of freedom of Student's t for the intervals: those of as many clusters of equal
        size; 0 if nearly all comparisons are in one; or infinite.
    clear_leads : bool array, shape (M, M)
        Whether model i is above model j beyond noise.
    """

    models: tuple[str, ...]
    rating: Array
    std_error: Array
    low: Array
    high: Array
    level: float
    errors: Errors
    widened: bool
    wins: NDArray[Any]
    losses: NDArray[Any]
    ties: NDArray[Any]
    rank_low: NDArray[np.int64]
    rank_high: NDArray[np.int64]
    group: NDArray[np.int64]
    n_comparisons: float
    n_sessions: int | None
    n_clusters: int | None
    ghost_wins: float
    warnings: tuple[str, ...]
    contrast_error: Array = field(repr=False)
    degrees: float = field(repr=False)
    clear_leads: NDArray[np.bool_] = field(repr=False)

    def __repr__(self) -> str:
        known = f"{self.n_comparisons:g} comparisons, {self.n_sessions} sessions"
        return f"<Ratings of {len(self.models)} models from {known}: {list_names(self.models)}>"

    def p_beats(self) -> Array:
        """P(model i is stronger than model j), shape (M, M).

        Student's distribution function at (rating i − rating j) / its error. NaN on the diagonal
        and between models without a chain of comparisons, which are not comparable.
        """
        t = (self.rating[:, np.newaxis] - self.rating) / self.contrast_error
        p = np.full(t.shape, np.nan)
        known = ~np.isnan(t)
        if known.any():
            p[known] = t_cdf(t[known], self.degrees)
        return p

    def p_wins(self) -> Array:
        """Expected share of wins in one more comparison, shape (M, M).

        1 / (1 + exp(rating j − rating i)), ties counted half; NaN as in `p_beats`.
        """
        comparable = ~np.isnan(self.contrast_error)
        won: Array = logistic(self.rating[:, np.newaxis] - self.rating)
        return np.where(comparable, won, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Maximum-likelihood strengths, with gradient and information."""

    models: tuple[str, ...]
    counts: PairCounts
    strength: Array
    information: Array
    group: NDArray[np.int64]
    ghost_wins: float

    def name_models(self, inside: NDArray[np.bool_]) -> str:
        """Name the first models of a mask in one phrase."""
        names = [model for model, there in zip(self.models, inside, strict=True) if there]
        return _list_few(names, "")

    @property
    def centring_matrix(self) -> Array:
        """Projection to strengths minus their group's mean, shape (M, M)."""
        same = (self.group[:, np.newaxis] == self.group).astype(np.float64)
        return np.asarray(np.eye(len(self.group)) - same / same.sum(axis=1))

    def centre_covariance(self, squares: Array | None) -> Array:
        """Covariance of centred strengths given Σ g gᵀ; None: model-based."""
        projection = self.centring_matrix @ np.linalg.inv(self.information)
        if squares is None:
            return projection @ self.centring_matrix
        ghost = self.ghost_wins / 2 / np.cosh(self.strength / 2) ** 2
        covariance: Array = projection @ (squares + np.diag(ghost)) @ projection.T
        return covariance


def check_options(ghost_wins: float, level: float) -> None:
    """Refuse a prior or level outside its range."""
    if isinstance(ghost_wins, bool) or not (math.isfinite(ghost_wins) and ghost_wins >= 0):
        raise InvalidParameter("ghost_wins", ghost_wins, "a number from 0 up")
    check_level(level)


def fit_pairs(models: tuple[str, ...], counts: PairCounts, ghost_wins: float) -> Fit:
    """Fit strengths to pair counts, ties half a win each way."""
    if len(models) > MAX_MODELS:
        raise TooLarge("models", len(models), MAX_MODELS)
    if ghost_wins == 0 and counts.components("strong").any():
        raise UnsuitableBallots(
            "bradley_terry",
            "without a prior, models that never lost to the others or never met them have no "
            "finite rating",
            "give ghost_wins above 0",
        )
    wins, present = counts.points[..., np.newaxis], counts.present[:, np.newaxis]
    strength, information = fit_matchups(wins, ghost_wins, present)
    group = counts.components("weak")
    return Fit(models, counts, strength[..., 0], information[..., 0], group, ghost_wins)


def residuals(strength: Array) -> Array:
    """Outcome minus expectation, y − σ(θ_i − θ_j), by code.

    The shape is (3, M, M).
    """
    lost = logistic(strength - strength[:, np.newaxis])
    residual = np.empty((3, *lost.shape))
    residual[FIRST] = lost
    residual[SECOND] = -lost.T
    residual[TIE] = 0.5 - lost.T
    return residual


def _robust_squares(counts: PairCounts, residual: Array) -> Array:
    """Σ_n r_n² x_n x_nᵀ over comparisons, from counts alone, shape (M, M)."""
    table = np.empty(residual.shape)
    table[FIRST], table[SECOND], table[TIE] = counts.first, counts.second, counts.tie
    weight = (table * residual**2).sum(axis=0)
    weight += weight.T
    squares: Array = np.diag(weight.sum(axis=1)) - weight
    return squares


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Evidence of clusters of comparisons about the errors.

    Parameters
    ----------
    n : int
        Number of clusters.
    degrees : float
        Degrees of freedom of Student's t; 0 if one cluster has nearly all comparisons.
    squares : float array, shape (M, M)
        Σ g gᵀ over the clusters, g the gradient of one.
    n_sessions : int, optional
        Number of sessions in them; None: unknown.
    """

    n: int
    degrees: float
    squares: Array
    n_sessions: int | None = None

    @classmethod
    def of(cls, sizes: Array, squares: Array, n_sessions: int | None = None) -> "Clusters":
        """Make them from the comparisons in each cluster, (n,)."""
        n_equal = equal_clusters(sizes).item()
        degrees = n_equal - 1.0 if n_equal >= MIN_EQUAL_CLUSTERS else 0.0
        return cls(len(sizes), degrees, squares, n_sessions)


def conclude(
    fit: Fit, clusters: Clusters | None, level: float, warnings: tuple[str, ...]
) -> Ratings:
    """Turn strengths and gradients into intervals, contrasts and ranks."""
    counts = fit.counts
    errors: Errors = "robust" if clusters is None else "clustered"
    degrees, critical = _student(clusters, level)
    covariance = fit.centre_covariance(_squares(fit, clusters))
    rating = np.where(counts.present, fit.centring_matrix @ fit.strength, np.nan)
    std_error = _root(np.diag(covariance), counts.present)
    contrast = _contrasts(covariance, fit)
    n_comparisons = (counts.wins.sum() + counts.tie.sum()).item()
    widened = (n_comparisons if clusters is None else clusters.n) < FEW
    if widened:
        covariance = fit.centre_covariance(None)
        std_error = np.maximum(std_error, _root(np.diag(covariance), counts.present))
        contrast = np.maximum(contrast, _contrasts(covariance, fit))
    ahead = rating[:, np.newaxis] - rating > critical * contrast
    return Ratings(
        models=fit.models,
        rating=rating,
        std_error=std_error,
        low=rating - critical * std_error,
        high=rating + critical * std_error,
        level=level,
        errors=errors,
        widened=widened,
        wins=counts.wins.sum(axis=1),
        losses=counts.wins.sum(axis=0),
        ties=counts.ties.sum(axis=1),
        rank_low=1 + ahead.sum(axis=0),
        rank_high=len(fit.models) - ahead.sum(axis=1),
        group=fit.group,
        n_comparisons=n_comparisons,
        n_sessions=None if clusters is None else clusters.n_sessions,
        n_clusters=None if clusters is None else clusters.n,
        ghost_wins=fit.ghost_wins,
        warnings=(*_group_warnings(fit), *_defeat_warnings(fit), *warnings),
        contrast_error=contrast,
        degrees=degrees,
        clear_leads=ahead,
    )


def _student(clusters: Clusters | None, level: float) -> tuple[float, float]:
    degrees = math.inf if clusters is None else clusters.degrees
    return degrees, t_quantile(0.5 + level / 2, degrees) if degrees > 0 else math.nan


def _squares(fit: Fit, clusters: Clusters | None) -> Array:
    """Σ g gᵀ over the clusters, for a small sample; without clusters, over comparisons."""
    if clusters is None:
        return _robust_squares(fit.counts, residuals(fit.strength))
    factor = 1 + 1 / clusters.degrees if clusters.degrees else math.nan
    return factor * clusters.squares


def _root(variance: Array, is_known: NDArray[np.bool_]) -> Array:
    return np.where(is_known, np.sqrt(np.maximum(variance, 0.0)), np.nan)


def _contrasts(covariance: Array, fit: Fit) -> Array:
    """Compute errors of rating differences, (M, M).

    They are NaN between groups and on the diagonal.
    """
    own = np.diag(covariance)
    comparable = fit.group[:, np.newaxis] == fit.group
    np.fill_diagonal(comparable, val=False)
    return _root(own[:, np.newaxis] + own - 2 * covariance, comparable)


def _list_few(names: Sequence[str], kind: str) -> str:
    """List names, at most the first few."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1:,} more{kind}"


def _group_warnings(fit: Fit) -> list[str]:
    warnings = []
    if not fit.counts.present.all():
        warnings.append(f"{fit.name_models(~fit.counts.present)} met nobody and cannot be rated")
    numbers = np.unique(fit.group[fit.counts.present])
    groups = [f"({fit.name_models(fit.group == number)})" for number in numbers]
    if len(groups) > 1:
        warnings.append(
            f"no comparison joins the groups {_list_few(groups, ' groups')}: "
            "models can be compared within a group only"
        )
    return warnings


def _defeat_warnings(fit: Fit) -> list[str]:
    """Warn about models without a loss or win in their group."""
    part = fit.counts.components("strong")
    points = fit.counts.points
    rests = (
        f"; how far apart they are rests on the prior of {fit.ghost_wins:g} wins and losses each"
    )
    warnings = []
    for number in np.unique(part[fit.counts.present]):
        inside = part == number
        outside = (fit.group == fit.group[inside][0]) & ~inside
        if not outside.any():
            continue
        named = fit.name_models(inside)
        if not points[np.ix_(outside, inside)].any():
            warnings.append(f"{named} never lost to the others{rests}")
        if not points[np.ix_(inside, outside)].any():
            warnings.append(f"{named} never won against the others{rests}")
    return warnings


def rate(
    comparisons: Comparisons, *, ghost_wins: float = 0.5, cluster: bool = True, level: float = 0.95
) -> Ratings:
    r"""Rate models by a Bradley–Terry fit to all comparisons, with sandwich errors.

    The strengths θ are those of the rule `bradley_terry`, all comparisons in one matchup table,
    ties half a win each way. With H the information at θ, r = y − σ(θ_i − θ_j) the residual of a
    comparison with outcome y in {0, ½, 1}, x the vector with 1 for its first and −1 for its
    second model, and H₀ the part of H that the prior brings, the covariance of θ is

        H⁻¹                                                model-based,
        H⁻¹ (Σ_n r_n² x_n x_nᵀ + H₀) H⁻¹                   robust per comparison,
        H⁻¹ (G/(G − 1) Σ_s g_s g_sᵀ + H₀) H⁻¹              clustered by session,

    where g_s = Σ_{n in s} r_n x_n is the gradient of one session, and G = n²/Σ n_s² for n_s of n
    comparisons the number of sessions of equal size with as much information (Kish). Comparisons
    within a session share its question, answers and reviewers; only the clustered errors allow for
    that. They are used if sessions are given, with G − 1 degrees of freedom; `errors` of the result
    names the kind in use. They are unknown if nearly all comparisons are of one session (G < 1.5).
    With fewer than 20 sessions, errors and contrasts are at least the model-based ones, so that
    chance agreement does not look like certainty.

    Parameters
    ----------
    ghost_wins : float
        Wins, and as many losses, of every model against one ghost of free strength; half of each
        by default. With 0, the maximum without a prior must be finite.
    cluster : bool
        Whether to use the sessions, if there are any.

    Returns
    -------
    Ratings
        In logits, mean 0 within each connected group.

    Raises
    ------
    InvalidParameter
        If `ghost_wins` is negative or `level` not between 0 and 1.
    NothingToCount
        If there is no comparison.
    TooLarge
        If there are more than `MAX_MODELS` models.
    UnsuitableBallots
        If `ghost_wins` is 0 and some models never lost to, or never met, the others (Ford's
        condition).

    References
    ----------
    Bradley and Terry, Biometrika 39 (1952) 324–345. Ford, American Mathematical Monthly 64 (1957)
    28–33. White, "Maximum likelihood estimation of misspecified models", Econometrica 50 (1982)
    1–25. Liang and Zeger, "Longitudinal data analysis using generalized linear models",
    Biometrika 73 (1986) 13–22.
    """
    check_options(ghost_wins, level)
    if not len(comparisons):
        raise NothingToCount("there are no comparisons to rate models by")
    if len(comparisons.models) > MAX_MODELS:
        raise TooLarge("models", len(comparisons.models), MAX_MODELS)
    fit = fit_pairs(comparisons.models, count_pairs(comparisons), ghost_wins)
    sizes = comparisons.session_sizes if cluster else None
    clusters = None
    if sizes is not None:
        squares = session_squares(comparisons, residuals(fit.strength))
        clusters = Clusters.of(sizes, squares, len(sizes))
    warnings = _session_warnings(clusters, len(fit.models), cluster=cluster)
    return conclude(fit, clusters, level, tuple(warnings))


def _session_warnings(clusters: Clusters | None, n_models: int, *, cluster: bool) -> list[str]:
    if clusters is None:
        unknown = (
            "without sessions, comparisons are taken as independent and errors may be too small"
        )
        return [unknown] if cluster else []
    return _cluster_warnings(clusters, n_models, "session", "sessions")


def rate_sums(
    sums: MatchupSums, names: Names, *, ghost_wins: float = 0.5, level: float = 0.95
) -> Ratings:
    r"""Rate models by Bradley–Terry on matchup sums, errors clustered by bucket.

    The strengths are those that `rate` finds from the comparisons themselves. Only the clusters of
    the errors differ: with g_b the gradient of all comparisons of bucket b at the fit,

        covariance = H⁻¹ (G/(G − 1) Σ_b g_b g_bᵀ + H₀) H⁻¹,

    as in `rate` with buckets instead of sessions. A bucket has whole sessions, so dependence within
    a session is allowed for. Since sessions are independent, the two errors differ only by chance.

    Parameters
    ----------
    sums : MatchupSums
        Rows in any order; a key may have several, and a pair either order. A ballot of weight w
        counts as w ballots.

    Returns
    -------
    Ratings
        Models in alphabetical order. `n_sessions` is None, `n_clusters` the number of buckets.

    Raises
    ------
    InvalidParameter, NothingToCount, TooLarge, UnsuitableBallots
        As `rate` does. Rows of weight 0, or of a model with itself, are not comparisons.

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
    _, row = np.unique(sums.bucket, return_inverse=True)
    gradient = _sum_by_bucket(row, first, second, np.asarray(pull), len(models))
    sizes = np.bincount(row, table.sum(axis=0)).astype(np.float64)
    clusters = Clusters.of(sizes, gradient.T @ gradient)
    warnings = _cluster_warnings(clusters, len(models), "group of sessions", "groups of sessions")
    return conclude(fit, clusters, level, tuple(warnings))


def _counts(cell: Codes, table: Array, n_models: int) -> PairCounts:
    """Totals of all buckets, shape (M, M) each."""
    tie, first, second = (
        np.bincount(cell, weights, minlength=n_models**2).reshape(n_models, n_models)
        for weights in table
    )
    return PairCounts(first=first, second=second, tie=tie)


def _sum_by_bucket(
    row: NDArray[np.intp], first: Codes, second: Codes, pull: Array, n_models: int
) -> Array:
    """Gradient of each bucket, by its row, shape (B, M)."""
    n_buckets = int(row.max()) + 1
    size = n_buckets * n_models
    gradient = np.bincount(row * n_models + first, pull, minlength=size)
    gradient -= np.bincount(row * n_models + second, pull, minlength=size)
    return np.asarray(gradient.reshape(n_buckets, n_models))


def _cluster_warnings(clusters: Clusters, n_models: int, one: str, several: str) -> list[str]:
    if not clusters.degrees:
        share = "all" if clusters.n == 1 else "nearly all"
        unknown = f"how ratings vary between {several} is unknown"
        return [f"{share} comparisons are of one {one}: {unknown}"]
    if clusters.n <= n_models:
        return [f"{clusters.n} {several} are few for {n_models} models: clustered errors are rough"]
    return []
