"""Means of a jury's many judgments, corrected by people's few votes."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats
from witan.core.scale import NATIVE
from witan.core.stats.distributions import beta_quantile, t_quantile

MIN_CLUSTERS = 5
"""Fewest clusters to estimate how much they vary."""

NO_SPREAD = 1e-12
"""A sum of squares below this is rounding."""

MOST_LEVERAGE = 0.9
"""Most leverage of a cluster on the slope; above, its residual is meaningless."""

INFINITE = 1e15

COPIES = 1.0
"""Clusters of an outcome that count as copies of one row without other evidence."""

MeanKind = Literal["grades", "differences of grades", "shares", "differences of shares"]
Mask = NDArray[np.bool_]


class Means(NamedTuple):
    """Means of M columns with intervals, arrays of shape (M,); NaN: unknown."""

    value: Floats
    low: Floats
    high: Floats
    n: NDArray[np.intp]
    n_clusters: NDArray[np.intp]


class PoweredMeans(NamedTuple):
    """The same means by three estimators, with the jury's correction slope λ."""

    corrected: Means
    jury: Means
    people: Means
    slope: Floats


def estimate_powered_means(
    people: Floats,
    jury: Floats,
    clusters: NDArray[np.intp] | None = None,
    *,
    kind: MeanKind = "grades",
    level: float = 0.95,
) -> PoweredMeans:
    r"""Correct the jury's M column means by people's votes on some rows.

    With y people's values on n rows and f the jury's on N, both on b of them,

        θ = mean_n(y) − λ·(mean_b(f) − mean_N(f)),

    which for b = n is λ·mean_N(f) + mean_n(y − λ·f). It is unbiased for every λ if the rows that
    people judged are drawn at random; λ minimises its variance. With A_k and G_k the parts of
    mean_n(y) and of mean_b(f) − mean_N(f) that come from cluster k, both about their means,

        λ = Σ_k A_k·G_k / Σ_k G_k²,        V = Σ_k (A_k − λ·G_k)² / (1 − h_k)

    with the leverage h_k of cluster k on mean and slope (HC2). The interval is Student's t on two
    degrees fewer than the `equal_clusters` with people's votes, for the jury or people alone, where
    h_k is the cluster's share of the rows, on one fewer: few large clusters leave V uncertain. If
    the interval is not narrower than that of people alone, λ is 0 and the estimate is theirs.

    Near the ends of their scale means of grades are skewed: with p the mean's share of the scale,
    its interval is Jeffreys' for p(1 − p)/V · (z/t)² votes, where grades on the scale can vary so
    much. For shares it is that for the number of independent votes that V is worth, so its width is
    never zero; for the jury or people alone this number comes from `_count_votes`.
    Corrected shares have 1/n² added to V, the variance of half a vote in either direction, as a
    jury that never erred on n clusters may err on the next. So have differences of shares, also
    those of people alone (Agresti and Min).

    Parameters
    ----------
    people, jury : float array, shape (rows, M)
        NaN: not judged.
    clusters : int array, shape (rows,)
        Numbers from 0 up; rows with the same number vary together. None: each row by itself.
    kind : str
        ``grades`` from 1 to 10, ``shares`` in [0, 1], or differences of these.

    Returns
    -------
    PoweredMeans
        Without people's votes, the corrected value is NaN. There is no interval with fewer than
        `MIN_CLUSTERS` clusters, or if all grades are equal.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, "PPI++: efficient prediction-powered inference", 2023.
    MacKinnon and White, "Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties", Journal of Econometrics 29 (1985) 305–325. Agresti and Min,
    "Effects and non-effects of paired identical observations in comparing proportions with binary
    matched-pairs data", Statistics in Medicine 23 (2004) 65–75.
    """
    rows = np.arange(len(people)) if clusters is None else clusters
    by_people, by_jury = ~np.isnan(people), ~np.isnan(jury)
    by_both = by_people & by_jury
    centre = _mean(jury, by_jury)
    f = np.where(by_jury, jury - centre, 0.0)
    shift = np.nan_to_num(_mean(f, by_both))
    y = np.where(by_people, people - _mean(people, by_people), 0.0)
    a = _sum_by(rows, _divide(y, by_people))
    part = _sum_by(rows, _divide(np.where(by_both, f - shift, 0.0), by_both))
    g = part - _sum_by(rows, _divide(f, by_jury))
    squares = (g**2).sum(axis=0)
    usable = (squares > NO_SPREAD) & by_both.any(axis=0)
    slope = np.where(usable, (a * g).sum(axis=0) / np.where(usable, squares, 1.0), 0.0)
    leverage = _sum_by(rows, _divide(by_people.astype(np.float64), by_people))
    leverage += part**2 / np.maximum((part**2).sum(axis=0), NO_SPREAD)
    variance = ((a - slope * g) ** 2 / (1 - np.minimum(leverage, MOST_LEVERAGE))).sum(axis=0)
    n_clusters = _count_clusters(by_people, rows)
    if kind in ("shares", "differences of shares"):
        variance += 1 / np.maximum(n_clusters, 1) ** 2
    alone = _mean_of(people, by_people, rows, kind, level)
    value = alone.value - slope * shift
    degrees = equal_clusters(_sum_by(rows, by_people.astype(np.float64))) - 2
    low, high = _interval(value, variance, degrees, kind=kind, level=level)
    is_narrower = usable & (n_clusters >= MIN_CLUSTERS) & (high - low < alone.high - alone.low)
    corrected = Means(
        np.where(is_narrower, _within(value, kind), alone.value),
        np.where(is_narrower, low, alone.low),
        np.where(is_narrower, high, alone.high),
        alone.n,
        n_clusters,
    )
    slope = np.where(is_narrower, slope, 0.0)
    return PoweredMeans(corrected, _mean_of(jury, by_jury, rows, kind, level), alone, slope)


def design_effects(values: Floats, rows: NDArray[np.intp]) -> Floats:
    """Return the design effect of clusters on means, at least 1.

    Parameters
    ----------
    values : float array, shape (rows, M)
        NaN: none.
    rows : int array, shape (rows,)
        The cluster of each.

    Returns
    -------
    float array, shape (M,)
        As in `estimate_powered_means`, copies of a row count as one more cluster.
    """
    present = ~np.isnan(values)
    value = _mean(values, present)
    variance, alone, sizes = _variances(values, present, rows)
    share = np.clip(np.nan_to_num(value), 0.0, 1.0)
    return _design_effect(share, sizes, variance, alone)


def _mean_of(
    values: Floats, present: Mask, rows: NDArray[np.intp], kind: MeanKind, level: float
) -> Means:
    """Average present values, with intervals clustered by row."""
    value = _mean(values, present)
    n, n_clusters = present.sum(axis=0), _count_clusters(present, rows)
    variance, alone, sizes = _variances(values, present, rows)
    if kind == "differences of shares":
        variance += 1 / np.maximum(n_clusters, 1) ** 2
    degrees = equal_clusters(sizes) - 1
    if kind == "shares":
        low, high = infer_shares(value, sizes, variance, alone, level, degrees=degrees)
    else:
        low, high = _interval(value, variance, degrees, kind=kind, level=level)
    known = n_clusters >= MIN_CLUSTERS
    return Means(value, np.where(known, low, np.nan), np.where(known, high, np.nan), n, n_clusters)


def infer_shares(
    share: Floats,
    sizes: Floats,
    variance: Floats,
    alone: Floats,
    level: float,
    *,
    degrees: Floats,
    likeness: float = 1.0,
) -> tuple[Floats, Floats]:
    """Compute the intervals of M shares of clustered rows; their width is never zero.

    Parameters
    ----------
    share : float array, shape (M,)
        NaN: unknown.
    sizes : float array, shape (clusters, M)
        Number of rows.
    variance, alone : float array, shape (M,)
        Variance of each share's error, by clusters and by rows taken alone.
    degrees : array, shape (M,)
        Degrees of freedom of `variance`.
    likeness
        Correlation of a cluster's rows in the cluster that `_count_votes` adds; 1: copies.
    """
    t = _t_quantiles(degrees, level)
    discount = (t_quantile(0.5 + level / 2, INFINITE) / t) ** 2
    votes = _count_votes(share, sizes, variance, alone, discount, likeness)
    return _share_interval(share, votes, level)


def equal_clusters(sizes: Floats) -> NDArray[np.float64]:
    """Number of clusters of equal size with the information of these (Kish), per column."""
    squares = np.maximum((sizes**2).sum(axis=0), NO_SPREAD)
    return np.asarray(sizes.sum(axis=0) ** 2 / squares, dtype=np.float64)


def _variances(
    values: Floats, present: Mask, rows: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats]:
    """Compute variances of means by clusters (HC2) and by rows."""
    apart = np.where(present, values - _mean(values, present), 0.0)
    sizes = _sum_by(rows, present.astype(np.float64))
    n = present.sum(axis=0)
    parts, leverage = _sum_by(rows, _divide(apart, present)), sizes / np.maximum(n, 1)
    variance = (parts**2 / (1 - np.minimum(leverage, MOST_LEVERAGE))).sum(axis=0)
    alone = (apart**2).sum(axis=0) / np.maximum(n * (n - 1), 1)
    return variance, alone, sizes


def _mean(values: Floats, present: Mask) -> Floats:
    n = present.sum(axis=0)
    total = np.where(present, values, 0.0).sum(axis=0)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def _divide(values: Floats, present: Mask) -> Floats:
    return np.asarray(values / np.maximum(present.sum(axis=0), 1))


def _sum_by(rows: NDArray[np.intp], values: Floats) -> Floats:
    """Add up rows of one cluster, (rows, M) → (clusters, M)."""
    total = np.zeros((int(rows.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(total, rows, values)
    return total


def _count_clusters(present: Mask, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    counts: NDArray[np.intp] = (_sum_by(rows, present.astype(np.float64)) > 0).sum(axis=0)
    return counts


def _within(value: Floats, kind: MeanKind) -> Floats:
    return value if "grades" in kind else np.clip(value, 0.0 if kind == "shares" else -1.0, 1.0)


def _t_quantiles(degrees: Floats, level: float) -> Floats:
    distinct, place = np.unique(np.maximum(degrees, 1), return_inverse=True)
    return np.array([t_quantile(0.5 + level / 2, df) for df in distinct.tolist()])[place]


def _interval(
    value: Floats, variance: Floats, degrees: Floats, *, kind: MeanKind, level: float
) -> tuple[Floats, Floats]:
    """Compute each value's interval; NaN: it or its spread is unknown."""
    t, z = _t_quantiles(degrees, level), t_quantile(0.5 + level / 2, INFINITE)
    if kind == "shares":
        share = np.clip(value, 0.0, 1.0)
        votes = share * (1 - share) / np.maximum(variance, NO_SPREAD) * (z / t) ** 2
        return _share_interval(share, votes, level)
    known = ~np.isnan(value) & (variance > NO_SPREAD)
    reach = np.where(known, t * np.sqrt(np.maximum(variance, 0.0)), np.nan)
    low, high = _within(value - reach, kind), _within(value + reach, kind)
    if kind != "grades":
        return low, high
    width = NATIVE.high - NATIVE.low
    share = (value - NATIVE.low) / width
    spread = np.where(known, share * (1 - share) * width**2 / np.where(known, variance, 1.0), 0.0)
    is_bounded = spread >= np.maximum(degrees, 1)
    ends = _share_interval(np.where(is_bounded, share, np.nan), spread * (z / t) ** 2, level)
    skewed = NATIVE.low + width * np.array(ends)
    return np.where(is_bounded, skewed[0], low), np.where(is_bounded, skewed[1], high)


def _count_votes(  # noqa: PLR0917 - called only by `infer_shares`
    share: Floats,
    sizes: Floats,
    variance: Floats,
    alone: Floats,
    discount: Floats,
    likeness: float,
) -> Floats:
    r"""Count the independent votes that the rows of clusters are worth.

    With the variance V of the share by clusters, v by rows taken alone, n rows of which K clusters
    have n_k, the design effect and the votes are

        D = max(V/v, 1),    C = 1 + likeness·(Σ_k n_k²/n − 1),    w = K·min(p, 1 − p),
        m = p(1 − p)/v / ((w·D + C)/(w + 1)) · (z/t)²    at least    min(n / max(C, 2), p(1 − p)/V),

    where (z/t)² is the discount for the small number of clusters behind V.

    C is the design effect of clusters whose rows have the correlation `likeness`; 1: identical
    rows. With few clusters of the rarer outcome D is uncertain, so C counts as one more of them.
    Rows with shares instead of 0 and 1 have a smaller v. If all rows agree, m is n/C with the same
    discount, as for that many clusters.
    """
    n, spread = sizes.sum(axis=0), share * (1 - share)
    copies = _count_copies(sizes, likeness)
    varies = (alone > NO_SPREAD) & (spread > NO_SPREAD)
    votes = np.where(varies, spread / np.where(varies, alone, 1.0), n)
    votes /= _design_effect(share, sizes, variance, alone, likeness)
    fewest = n / np.maximum(copies, 2.0)
    fewest = np.where(varies, np.minimum(fewest, spread / np.maximum(variance, NO_SPREAD)), fewest)
    return np.asarray(np.maximum(votes * discount, fewest))


def _count_copies(sizes: Floats, likeness: float) -> Floats:
    copies = (sizes**2).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
    return np.asarray(1 + likeness * (copies - 1))


def _design_effect(
    share: Floats, sizes: Floats, variance: Floats, alone: Floats, likeness: float = 1.0
) -> Floats:
    """Compute the mean of C and D of `_count_votes`, D weighted w."""
    copies, varies = _count_copies(sizes, likeness), alone > NO_SPREAD
    effect = np.where(varies, np.maximum(variance / np.where(varies, alone, 1.0), 1.0), copies)
    weight = (sizes > 0).sum(axis=0) * np.minimum(share, 1 - share)
    return np.asarray((weight * effect + COPIES * copies) / (weight + COPIES))


def _share_interval(share: Floats, votes: Floats, level: float) -> tuple[Floats, Floats]:
    ends = np.full((2, *share.shape), np.nan)
    for at in np.flatnonzero(~np.isnan(share)).tolist():
        p, m = float(share[at]), float(votes[at])
        hits, misses = p * m + 0.5, (1 - p) * m + 0.5
        ends[0, at] = 0.0 if p <= 0 else beta_quantile((1 - level) / 2, hits, misses)
        ends[1, at] = 1.0 if p >= 1 else beta_quantile((1 + level) / 2, hits, misses)
    return ends[0], ends[1]
