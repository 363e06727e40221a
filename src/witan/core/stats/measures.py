"""Measured numbers with jackknife intervals: estimate, error and basis."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, sqrt
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import Interval
from witan.core.stats.distributions import beta_quantile, t_quantile
from witan.core.stats.prediction_powered import MeanKind, equal_clusters, infer_shares
from witan.errors import InvalidParameter

Array = NDArray[np.float64]

MIN_BUCKETS = 5
"""Fewest buckets with data to estimate how much buckets vary."""

Statistic = Callable[[Array], Array]
Link = Literal["none", "clip", "fisher", "log"]
MeasureUnit = Literal[
    "share", "difference of shares", "grade points", "correlation", "difference of correlations",
    "ratio", "slope", "variance", "votes", "grade",
]  # fmt: skip

UNITS: Mapping[MeanKind, MeasureUnit] = MappingProxyType(
    {
        "grades": "grade",
        "differences of grades": "grade points",
        "shares": "share",
        "differences of shares": "difference of shares",
    }
)

NO_VARIANCE = 1e-12
"""A variance below this is rounding: shares, grades and logarithms differ by far more."""

SAME = "error unknown: all groups of sessions say the same"
POOR_SIDE = f"error unknown: a side of it has data in fewer than {MIN_BUCKETS} groups of sessions"


class Side(NamedTuple):
    """One side of a comparison of sums.

    Parameters
    ----------
    at
        Its sums, on their second axis.
    cases : float array, shape (B,)
        How much of its data each bucket has: a number of cases, or a sum of squares.
    """

    at: slice | NDArray[np.intp]
    cases: Array


class JackknifeEstimate(NamedTuple):
    """Estimates with errors, in arrays of one shape; scalars without axes.

    Parameters
    ----------
    estimate : float array
        The statistic of all sums; NaN where it is undefined.
    std_error : float array
        NaN: unknown.
    degrees : float array
        Degrees of freedom of Student's t: buckets with data minus one; with sides, see `jackknife`.
        Below 1 they count as 1.
    """

    estimate: Array
    std_error: Array
    degrees: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Interval at a level, estimate ∓ t · std_error; NaN if unknown."""
        degrees, place = np.unique(np.maximum(self.degrees, 1.0), return_inverse=True)
        quantiles = [
            nan if isnan(df) else t_quantile(0.5 + level / 2, df) for df in degrees.tolist()
        ]
        reach = np.array(quantiles)[place].reshape(np.shape(self.degrees)) * self.std_error
        return self.estimate - reach, self.estimate + reach


def jackknife(
    per_bucket: Array, statistic: Callable[[Array], Array], *, sides: Sequence[Side] = ()
) -> JackknifeEstimate:
    r"""Estimate a statistic of sums, with its delete-one-bucket standard error.

    With the sums T = Σ_b T_b over the B buckets that hold data, θ₍b₎ = statistic(T − T_b) and
    θ₍·₎ their mean,

        estimate  = statistic(T),
        std_error = √((B − 1)/B · Σ_b (θ₍b₎ − θ₍·₎)²),        degrees = B − 1.

    A statistic that compares sides is only as precise as its weaker side, and as the buckets that
    have most of the data. With V_s the same variance for side s alone, its sums left out by bucket
    and those of the others kept, and n_sb of its n_s cases in bucket b, the degrees are
    Satterthwaite's for independent cases, as in `rate`:

        degrees = (Σ_s V_s)² / Σ_b (Σ_s V_s·n_sb/n_s)² − 1.

    Buckets are groups of whole sessions, so dependence within sessions is allowed for. For the mean
    of B numbers the error is the sample deviation over √B. The jackknife is not valid for a median.

    Parameters
    ----------
    per_bucket : float array, shape (B, …)
        Per bucket, the sums behind the statistic. Usually (B, K) for K sums and one estimate, or
        (B, K, M) for M estimates at once.
    statistic : function
        From sums of shape (N, …), N times as many as are wanted, to N times the estimates: shape
        (N,) or (N, M). For a ratio of two sums: ``lambda sums: sums[:, 0] / sums[:, 1]``. It may
        return NaN; division by 0 is not reported.
    sides
        For a single estimate: the sides that are compared.

    Returns
    -------
    JackknifeEstimate
        The error is NaN below `MIN_BUCKETS` buckets with data, or where some θ₍b₎ is undefined.
        A bucket has no data for estimate m if all its sums ``[b, :, m]`` are 0; if the last axes of
        the sums are not those of the estimates, if all its sums are 0. With sides, the error is
        also NaN if one of them fills fewer than `MIN_BUCKETS`.

    References
    ----------
    Quenouille, "Notes on bias in estimation", Biometrika 43 (1956) 353–360. Efron and Stein, "The
    jackknife estimate of variance", Annals of Statistics 9 (1981) 586–596. Satterthwaite, "An
    approximate distribution of estimates of variance components", Biometrics Bulletin 2 (1946)
    110–114.
    """
    if per_bucket.ndim < 1:
        raise InvalidParameter("per_bucket", per_bucket.shape, "one row of sums per bucket")
    totals = np.asarray(per_bucket, dtype=np.float64)
    with_data = totals.reshape(len(totals), -1).any(axis=1)
    totals = totals[with_data]
    total = totals.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = _mask_infinite(statistic(total))[0]
        left_out = _mask_infinite(statistic(total - totals))
    if left_out.shape != (len(totals), *estimate.shape):
        raise InvalidParameter(
            "statistic", f"shape {left_out.shape}", f"shape {(len(totals), *estimate.shape)}"
        )
    result = _conclude(estimate, left_out, _buckets_with_data(totals, estimate.shape))
    known_sides = [Side(side.at, side.cases[with_data]) for side in sides]
    return _of_sides(result, totals, statistic, known_sides) if sides else result


def fewest_buckets(per_bucket: Array, sides: Sequence[Side]) -> int:
    """Number of buckets with data on the poorest side."""
    return min(int(_has_data(per_bucket, side).sum()) for side in sides)


def _has_data(sums: Array, side: Side) -> NDArray[np.bool_]:
    """Buckets with data of a side, shape (B,)."""
    filled: NDArray[np.bool_] = (sums[:, side.at] != 0).reshape(len(sums), -1).any(axis=1)
    return filled


def _of_sides(
    whole: JackknifeEstimate,
    sums: Array,
    statistic: Callable[[Array], Array],
    sides: Sequence[Side],
) -> JackknifeEstimate:
    if fewest_buckets(sums, sides) < MIN_BUCKETS:
        return whole._replace(std_error=np.full_like(whole.std_error, np.nan))
    total = sums.sum(axis=0, keepdims=True)
    variances = np.zeros(len(sums))
    for side in sides:
        with_data = _has_data(sums, side)
        subtotals = np.repeat(total, int(with_data.sum()), axis=0)
        subtotals[:, side.at] -= sums[with_data][:, side.at]
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = _mask_infinite(statistic(subtotals))
        share = divide(side.cases, side.cases.sum())
        variances += (len(subtotals) - 1) * float(left_out.var()) * share
    if not variances.any():
        return whole
    return whole._replace(degrees=equal_clusters(variances) - 1)


def _mask_infinite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def _buckets_with_data(sums: Array, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Buckets with data by estimate, shape (B, …) as the estimates have."""
    filled: NDArray[np.bool_] = sums != 0
    if sums.ndim == 2 + len(shape) and sums.shape[2:] == shape:
        return np.asarray(filled.any(axis=1))
    return np.ones((len(sums), *shape), dtype=np.bool_)


def _conclude(estimate: Array, left_out: Array, has_data: NDArray[np.bool_]) -> JackknifeEstimate:
    n = has_data.sum(axis=0)
    divisor = np.maximum(n, 1)
    centre = np.where(has_data, left_out, 0.0).sum(axis=0) / divisor
    squares = (np.where(has_data, left_out - centre, 0.0) ** 2).sum(axis=0)
    variance = squares * (n - 1) / divisor
    std_error = np.where(n < MIN_BUCKETS, np.nan, np.sqrt(np.maximum(variance, 0.0)))
    std_error = np.where(np.isnan(estimate), np.nan, std_error)
    return JackknifeEstimate(estimate, std_error, np.maximum(n - 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of an audit.

    Parameters
    ----------
    value
        The value; None: see `why`.
    interval
        From the jackknife over buckets of sessions; None: unknown, as with data in fewer than five.
    n, of
        Number of cases, and what they are: votes, pairs, ballots …
    needed
        Smallest n for a value.
    unit
        Unit of the value.
    why
        Why there is no value, or no interval.
    """

    value: float | None
    interval: Interval | None
    n: int
    of: str
    needed: int
    unit: MeasureUnit
    why: str | None = None

    @property
    def enough(self) -> bool:
        """True if there are enough data for a value."""
        return self.n >= self.needed

    def columns(self, name: str) -> dict[str, float | int | None]:
        """Return value, interval and count as columns of a data frame."""
        interval = self.interval
        return {
            name: self.value,
            f"{name}_low": None if interval is None else interval.low,
            f"{name}_high": None if interval is None else interval.high,
            f"{name}_n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Count:
    """Number of cases behind a measure, and the number required."""

    n: float
    of: str
    needed: int


def lack_data(count: Count, unit: MeasureUnit) -> Measure:
    """Make a measure without enough data."""
    n = round(count.n)
    why = f"not enough data: {count_text(n, count.of)}, {count.needed} needed"
    return Measure(None, None, n, count.of, count.needed, unit, why)


def count_text(n: int, of: str) -> str:
    """Describe a count: the plural, or the singular for one."""
    noun = re.sub(r"s\b", "", of, count=1) if n == 1 else of
    return f"{n} {noun}"


def undefined_measure(count: Count, unit: MeasureUnit, reason: str) -> Measure:
    """Make a measure without a value despite enough data."""
    return Measure(None, None, round(count.n), count.of, count.needed, unit, reason)


def estimate_measure(
    sums: Array,
    statistic: Statistic,
    count: Count,
    unit: MeasureUnit,
    *,
    level: float,
    link: Link = "none",
    sides: Sequence[Side] = (),
) -> Measure:
    """Estimate a statistic of sums with a jackknife interval over buckets.

    The interval is  g⁻¹(g(θ) ∓ t · se(g(θ)))  with Student's t on the degrees of `jackknife`, for a
    `ratio`, a correlation or α those of `rate`, and the link g: none; ``clip``, none, with the ends
    cut to [0, 1]; ``fisher``, artanh, for correlations; ``log``, for ratios. If all buckets agree,
    the error is unknown, not 0.

    Parameters
    ----------
    sums : float array, shape (B, …)
        Per bucket.
    statistic : function
        From sums of shape (N, …) to N estimates; NaN where undefined.
    link : str
        The scale on which errors are assumed to be symmetric.
    sides
        What the statistic compares, as in `jackknife`.

    References
    ----------
    Fisher, Metron 1 (1921) 3–32, for artanh; `witan.core.stats.measures` for the errors.
    """
    if count.n < count.needed:
        return lack_data(count, unit)
    to, back = _LINKS[link]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(sums.sum(axis=0, keepdims=True))[0])
    result = jackknife(sums, lambda sums_left: to(statistic(sums_left)), sides=sides)
    if (cases := _CASES.get(statistic)) is not None:
        by_bucket = sums[..., cases].reshape(len(sums), -1).sum(axis=1)
        result = result._replace(degrees=equal_clusters(by_bucket) - 1)
    if not np.isfinite(value):
        return undefined_measure(
            count, unit, "undefined: what it compares does not vary, or is missing"
        )
    n, of, needed = round(count.n), count.of, count.needed
    if result.std_error**2 <= NO_VARIANCE * max(1.0, float(result.estimate) ** 2):
        return Measure(value, None, n, of, needed, unit, SAME)
    if sides and fewest_buckets(sums, sides) < MIN_BUCKETS:
        return Measure(value, None, n, of, needed, unit, POOR_SIDE)
    ends = [float(back(end)) for end in result.interval(level)]
    interval = Interval(ends[0], ends[1], level) if np.isfinite(ends).all() else None
    if interval is not None and link == "clip":
        interval = Interval(max(0.0, ends[0]), min(1.0, ends[1]), level)
    return Measure(value, interval, n, of, needed, unit)


def compare_means(sums: Array, count: Count, unit: MeasureUnit, level: float) -> Measure:
    """Estimate the difference of two means from totals and counts, (B, 4)."""
    return estimate_measure(
        sums,
        lambda totals: ratio(totals[:, :2]) - ratio(totals[:, 2:]),
        count,
        unit,
        level=level,
        sides=(Side(slice(0, 2), sums[:, 1]), Side(slice(2, 4), sums[:, 3])),
    )


def divide_means(sums: Array, count: Count, level: float) -> Measure:
    """Estimate the ratio of two means from totals and counts, (B, 4)."""
    return estimate_measure(
        sums,
        lambda totals: divide(ratio(totals[:, :2]), ratio(totals[:, 2:])),
        count,
        "ratio",
        level=level,
        link="log",
        sides=(Side(slice(0, 2), sums[:, 1]), Side(slice(2, 4), sums[:, 3])),
    )


def compare_correlations(sums: Array, count: Count, level: float) -> Measure:
    """Estimate the difference of two centred correlations from sums (B, 6)."""
    return estimate_measure(
        sums,
        lambda totals: centred_correlation(totals[:, :3]) - centred_correlation(totals[:, 3:]),
        count,
        "difference of correlations",
        level=level,
        sides=(Side(slice(0, 3), sums[:, 2]), Side(slice(3, 6), sums[:, 5])),
    )


def divide(numerator: Array, denominator: Array) -> Array:
    """Divide one by the other; NaN: the other is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def _identity(values: Array) -> Array:
    return values


def _artanh(values: Array) -> Array:
    # A correlation of ±1 is infinite on this scale and has no interval, despite rounding.
    within = np.where(np.abs(values) < 1 - NO_VARIANCE, values, np.nan)
    return np.asarray(np.arctanh(within))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


_LINKS: dict[str, tuple[Statistic, Statistic]] = {
    "none": (_identity, _identity),
    "clip": (_identity, _identity),
    "fisher": (_artanh, np.tanh),
    "log": (_log, np.exp),
}


def rate(sums: Array, count: Count, *, level: float, opposed_pairs: bool = False) -> Measure:
    r"""Estimate the share of hits, with an interval clustered by session.

    With h hits of n cases, n_b of them in bucket b, p = h/n, and v the jackknife variance of p,

        deff = max(1, v / (p(1 − p)/n)),        of opposed cases v / (p(1 − p)/n),
        B    = n² / Σ_b n_b²,                   the number of buckets of equal size,
        m    = n / deff · (z/t)²,      z, t: normal and Student's quantiles, B − 1 degrees,

    the interval is that of Jeffreys for p·m hits of m cases: the quantiles of
    Beta(p·m + ½, (1 − p)·m + ½), the lower end 0 at p = 0 and the upper 1 at p = 1. At these ends
    sessions show no spread, so there are B cases. If v is 0 at another p, deff is 1. The width is
    never zero. B − 1 are Satterthwaite's degrees for independent cases: few large buckets, which
    decide v, leave it uncertain.

    Parameters
    ----------
    sums : float array, shape (B, 2)
        Per bucket, hits (a tie counts half) and cases.
    opposed_pairs : bool
        Cases come in pairs in which one tends to hit if the other misses, such as a pair shown in
        both orders, so that their sum may vary less than with independent cases.

    References
    ----------
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24 (1998) 193–201. Brown, Cai and
    DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001)
    101–133. Kish, Survey Sampling, 1965, section 11.7, for B.
    """
    if count.n < count.needed:
        return lack_data(count, "share")
    result = jackknife(sums, ratio)
    p, n = float(result.estimate), float(sums[:, 1].sum())
    if not np.isfinite(p):
        return undefined_measure(count, "share", "undefined: there is no case")
    interval = None
    if np.isfinite(result.std_error):
        equal = float(equal_clusters(sums[:, 1]))
        cases = _independent(p, n, float(result.std_error) ** 2, equal, opposed_pairs=opposed_pairs)
        quantile = 0.5 + level / 2
        cases *= (t_quantile(quantile, inf) / t_quantile(quantile, max(equal - 1, 1.0))) ** 2
        interval = jeffreys(p, cases, level)
    return Measure(p, interval, round(count.n), count.of, count.needed, "share")


FEW_SESSIONS = 2.0
"""Sessions' worth of the rarer outcome below which their spread says too little.

In simulation of 6 to 40 sessions Student's t then covers as little as .83, beyond it at least .91.
"""


def rate_by_session(
    sums: Array, count: Count, *, level: float, likeness: float, expected: Array | None = None
) -> Measure:
    r"""Estimate the share of hits, or that minus the expected share, from sums by session.

    Near 0 and 1 few sessions have the rarer outcome, so their spread says little: the interval of
    the share is that of `infer_shares`. The interval of a difference is

        p − e ∓ t · std_error

    with the standard error of the difference by session and the degrees of `rate`. Where the rarer
    outcome is worth less than `FEW_SESSIONS`, each end is the outer one of this and the share's,
    minus e.

    Parameters
    ----------
    sums : float array, shape (S, 2)
        Per session, hits (a tie counts half) and cases.
    likeness
        As for `infer_shares`.
    expected : float array, shape (S,)
        Sum of the expected shares of a session's cases.
    """
    if count.n < count.needed:
        return lack_data(count, "share")
    n, k = float(sums[:, 1].sum()), int(np.count_nonzero(sums[:, 1]))
    share = float(sums[:, 0].sum()) / n
    mean = 0.0 if expected is None else float(expected.sum()) / n
    value, interval = share - mean, None
    if k >= MIN_BUCKETS:
        errors = sums[:, 0] - (0.0 if expected is None else expected) - sums[:, 1] * value
        variance = float((errors**2).sum()) / n**2 * k / (k - 1)
        alone = share * (1 - share) / n
        degrees = max(float(equal_clusters(sums[:, 1])) - 1, 1.0)
        of_one = (np.array([share]), sums[:, 1:], np.array([variance]), np.array([alone]))
        ends = infer_shares(*of_one, level, degrees=np.array([degrees]), likeness=likeness)
        [low], [high] = np.array(ends) - mean
        if expected is not None:
            reach = t_quantile(0.5 + level / 2, degrees) * sqrt(variance)
            is_rare = k * min(share, 1 - share) < FEW_SESSIONS
            low = min(low, value - reach) if is_rare else value - reach
            high = max(high, value + reach) if is_rare else value + reach
        interval = Interval(float(low), float(high), level)
    return Measure(value, interval, round(count.n), count.of, count.needed, "share")


def _independent(
    p: float, n: float, variance: float, buckets: float, *, opposed_pairs: bool
) -> float:
    """Independent equivalent of n clustered cases, as in `rate`."""
    spread = p * (1 - p)
    if spread <= NO_VARIANCE:
        return min(n, buckets)
    effect = variance * n / spread
    return n / effect if opposed_pairs and variance > NO_VARIANCE else n / max(1.0, effect)


def jeffreys(p: float, n: float, level: float) -> Interval:
    """Compute Jeffreys' interval of a share of n independent cases."""
    hits, misses = p * n + 0.5, (1 - p) * n + 0.5
    low = 0.0 if p == 0 else beta_quantile((1 - level) / 2, hits, misses)
    high = 1.0 if p == 1 else beta_quantile((1 + level) / 2, hits, misses)
    return Interval(low, high, level)


def ratio(sums: Array) -> Array:
    """Divide the first sum by the second, (N, 2) → (N,).

    NaN without cases.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] > 0.5, sums[:, 0] / sums[:, 1], np.nan)


def correlation(sums: Array) -> Array:
    """Compute Pearson's correlation from sums, (N, 6) → (N,).

    The sums are n, x, y, xx, yy, xy.
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    varied = (spread_x > NO_VARIANCE * n * xx) & (spread_y > NO_VARIANCE * n * yy)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (n * xy - x * y) / np.sqrt(spread_x * spread_y)
    return np.where(varied & (n > 1.5), value, np.nan)


def centred_correlation(sums: Array) -> Array:
    """Correlation lx/√(ll·xx) from centred ll, lx, xx, (N, 3) → (N,)."""
    ll, lx, xx = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = lx / np.sqrt(ll * xx)
    return np.where((ll > NO_VARIANCE) & (xx > NO_VARIANCE), value, np.nan)


def mean_correlation(sums: Array) -> Array:
    """Mean `correlation` over varied pairs, (N, P, 6) → (N,)."""
    n, n_pairs, _ = sums.shape
    pairwise = correlation(sums.reshape(n * n_pairs, 6)).reshape(n, n_pairs)
    known = ~np.isnan(pairwise)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(known, pairwise, 0.0).sum(axis=1) / known.sum(axis=1)
    return mean


def krippendorff_alpha(sums: Array) -> Array:
    """Krippendorff's α from values, their total, squares and spread within units, (N, 4) → (N,)."""
    n, total, squares, within = np.moveaxis(sums, -1, 0)
    expected = n * squares - total * total
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = 1 - (n - 1) * within / expected
    return np.where((n > 1.5) & (expected > NO_VARIANCE * n * squares), alpha, np.nan)


_CASES: Mapping[Statistic, int] = MappingProxyType(
    {ratio: 1, correlation: 0, mean_correlation: 0, krippendorff_alpha: 0, centred_correlation: 2}
)
"""Column of each bucket's cases, or of their sum of squares."""


def per_bucket(bucket: NDArray[np.int64], *columns: NDArray[np.float64 | np.int64]) -> Array:
    """Add up K columns of n rows by bucket: (B, K)."""
    buckets, row = np.unique(bucket, return_inverse=True)
    summed = [np.bincount(row, weights=column, minlength=len(buckets)) for column in columns]
    return np.stack(summed, axis=1) if len(buckets) else np.zeros((0, len(columns)))


Rows = tuple[NDArray[np.int64], tuple[NDArray[np.float64 | np.int64], ...]]


def join_buckets(first: Rows, second: Rows) -> Array:
    """Add up two sets of rows side by side, (B, K₁+K₂)."""
    n_first, n_second = len(first[0]), len(second[0])
    columns = [np.concatenate([column, np.zeros(n_second)]) for column in first[1]]
    columns += [np.concatenate([np.zeros(n_first), column]) for column in second[1]]
    return per_bucket(np.concatenate([first[0], second[0]]), *columns)


def rows_by(codes: NDArray[np.int64]) -> dict[int, NDArray[np.intp]]:
    """Rows of each code, in the order of the codes."""
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(distinct) else []
    return {int(code): part for code, part in zip(distinct, parts, strict=True)}
