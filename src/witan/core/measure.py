"""A measured number of an audit: its interval, what it rests on, and why there may be none."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.jackknife import MIN_BUCKETS, Side, fewest_buckets, jackknife
from witan.core.outcome import Interval
from witan.core.student import beta_quantile, t_quantile

__all__ = [
    "Count",
    "Link",
    "Measure",
    "MeasureUnit",
    "beside",
    "centred_correlation",
    "correlation",
    "counted",
    "lacking",
    "measured",
    "per_bucket",
    "rate",
    "ratio",
    "rows_by",
    "undefined",
]

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]
Link = Literal["none", "clip", "fisher", "log"]
MeasureUnit = Literal[
    "share", "difference of shares", "grade points", "correlation", "difference of correlations",
    "ratio", "slope", "variance", "votes", "grade",
]  # fmt: skip

NO_VARIANCE = 1e-12
"""A variance below this is rounding: whole shares and grades, or logarithms, differ by far more."""

SAME = "error unknown: all groups of sessions say the same"
POOR_SIDE = f"error unknown: a side of it has data in fewer than {MIN_BUCKETS} groups of sessions"


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of an audit.

    Parameters
    ----------
    value
        None: there is none, and `why` says so.
    interval
        From the jackknife over buckets of sessions; None: unknown, with data, or those of one side
        of a comparison, in fewer than five buckets, where a single bucket decides whether there is
        a value at all, or where the buckets do not differ.
    n, of
        How much it rests on, and of what: votes, pairs, ballots …
    needed
        Below this n there is no value: "not enough data".
    unit
        What the value is in.
    why
        Why there is no value, or no interval where it is for want of spread or of a side's buckets.
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
        """There are as many data as a value needs."""
        return self.n >= self.needed


@dataclass(frozen=True, slots=True)
class Count:
    """How many of what a measure rests on, and how many it needs."""

    n: float
    of: str
    needed: int


def lacking(count: Count, unit: MeasureUnit) -> Measure:
    """A measure without enough data."""
    n = round(count.n)
    why = f"not enough data: {counted(n, count.of)}, {count.needed} needed"
    return Measure(None, None, n, count.of, count.needed, unit, why)


def counted(n: int, of: str) -> str:
    """So many of what is named in the plural: one of it in the singular."""
    said = re.sub(r"s\b", "", of, count=1) if n == 1 else of
    return f"{n} {said}"


def undefined(count: Count, unit: MeasureUnit, why: str) -> Measure:
    """A measure whose data are enough in number and yet give no value."""
    return Measure(None, None, round(count.n), count.of, count.needed, unit, why)


def measured(
    sums: Array,
    statistic: Statistic,
    count: Count,
    unit: MeasureUnit,
    *,
    level: float,
    link: Link = "none",
    sides: Sequence[Side] = (),
) -> Measure:
    """Estimate a statistic of sums with an interval by the jackknife over buckets.

    The interval is  g⁻¹(g(θ) ∓ t · se(g(θ)))  with Student's t on the degrees of `jackknife` and
    the link g: none; ``clip``, none but ends cut to [0, 1]; ``fisher``, artanh, for
    correlations; ``log``, for ratios. Where all buckets say the same, nothing is known of how much
    they vary: the error is unknown, and not 0.

    Parameters
    ----------
    sums : float array, shape (B, …)
        Per bucket.
    statistic : function
        From sums of shape (N, …) to N estimates; NaN where undefined.
    count : Count
        What the measure rests on.
    unit : str
        Of the value.
    level : float
        Of the interval, between 0 and 1.
    link : str
        The scale on which errors are taken to be even.
    sides : sequence of slices or index arrays
        What the statistic compares, as `jackknife` has it.

    References
    ----------
    Fisher, Metron 1 (1921) 3–32, for artanh; `witan.core.jackknife` for the errors.
    """
    if count.n < count.needed:
        return lacking(count, unit)
    to, back = _LINKS[link]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(sums.sum(axis=0, keepdims=True))[0])
    found = jackknife(sums, lambda held: to(statistic(held)), sides=sides)
    if not np.isfinite(value):
        return undefined(count, unit, "undefined: what it compares does not vary, or is missing")
    n, of, needed = round(count.n), count.of, count.needed
    if found.std_error**2 <= NO_VARIANCE * max(1.0, float(found.estimate) ** 2):
        return Measure(value, None, n, of, needed, unit, SAME)
    if sides and fewest_buckets(sums, sides) < MIN_BUCKETS:
        return Measure(value, None, n, of, needed, unit, POOR_SIDE)
    ends = [float(back(end)) for end in found.interval(level)]
    interval = Interval(ends[0], ends[1], level) if np.isfinite(ends).all() else None
    if interval is not None and link == "clip":
        interval = Interval(max(0.0, ends[0]), min(1.0, ends[1]), level)
    return Measure(value, interval, n, of, needed, unit)


def _same(values: Array) -> Array:
    return values


def _artanh(values: Array) -> Array:
    # A correlation of ±1 is at infinity whatever its rounding, and has no interval.
    within = np.where(np.abs(values) < 1 - NO_VARIANCE, values, np.nan)
    return np.asarray(np.arctanh(within))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(values)


_LINKS: dict[str, tuple[Statistic, Statistic]] = {
    "none": (_same, _same),
    "clip": (_same, _same),
    "fisher": (_artanh, np.tanh),
    "log": (_log, np.exp),
}


def rate(sums: Array, count: Count, *, level: float, opposed: bool = False) -> Measure:
    r"""Estimate the share of cases that hit, with an interval that allows for sessions.

    With h hits of n cases, p = h/n, and v the jackknife variance of p over B buckets,

        deff = max(1, v / (p(1 − p)/n)),        of opposed cases v / (p(1 − p)/n),
        m    = n / deff · (z/t)²,      z, t: normal and Student's quantiles, B − 1 degrees,

    the interval is that of Jeffreys for p·m hits of m cases: the quantiles of
    Beta(p·m + ½, (1 − p)·m + ½), the lower end 0 at p = 0 and the upper 1 at p = 1. There, where
    no spread between sessions is seen, every bucket counts as one case. Where v is 0 at another p,
    deff is 1. It is never of zero width.

    Parameters
    ----------
    sums : float array, shape (B, 2)
        Per bucket, hits (a tie counts half) and cases.
    count : Count
        What the measure rests on.
    level : float
        Of the interval.
    opposed : bool
        Cases come in pairs of which one tends to hit where the other misses, as a pair shown in
        both orders does, so that their sum may vary less than that of independent ones.

    References
    ----------
    Korn and Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24 (1998) 193–201. Brown, Cai and
    DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001)
    101–133.
    """
    if count.n < count.needed:
        return lacking(count, "share")
    found = jackknife(sums, ratio)
    p, n = float(found.estimate), float(sums[:, 1].sum())
    if not np.isfinite(p):
        return undefined(count, "share", "undefined: there is no case")
    interval = None
    buckets = int((sums[:, 1] > 0).sum())
    if buckets >= MIN_BUCKETS and np.isfinite(found.std_error):
        cases = _independent(p, n, float(found.std_error) ** 2, buckets, opposed=opposed)
        quantile = 0.5 + level / 2
        cases *= (t_quantile(quantile, inf) / t_quantile(quantile, buckets - 1)) ** 2
        interval = _jeffreys(p, cases, level)
    return Measure(p, interval, round(count.n), count.of, count.needed, "share")


def _independent(p: float, n: float, variance: float, buckets: int, *, opposed: bool) -> float:
    """How many independent cases n cases in some buckets are worth, as `rate` says."""
    spread = p * (1 - p)
    if spread <= NO_VARIANCE:
        return min(n, float(buckets))
    effect = variance * n / spread
    return n / effect if opposed and variance > NO_VARIANCE else n / max(1.0, effect)


def _jeffreys(p: float, n: float, level: float) -> Interval:
    hits, misses = p * n + 0.5, (1 - p) * n + 0.5
    low = 0.0 if p == 0 else beta_quantile((1 - level) / 2, hits, misses)
    high = 1.0 if p == 1 else beta_quantile((1 + level) / 2, hits, misses)
    return Interval(low, high, level)


def ratio(sums: Array) -> Array:
    """First sum over the second, shape (N, 2) → (N,); NaN without a case."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums[:, 1] > 0.5, sums[:, 0] / sums[:, 1], np.nan)


def correlation(sums: Array) -> Array:
    """Pearson's correlation from sums n, x, y, xx, yy, xy, shape (N, 6) → (N,)."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread_x, spread_y = n * xx - x * x, n * yy - y * y
    varied = (spread_x > NO_VARIANCE * n * xx) & (spread_y > NO_VARIANCE * n * yy)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (n * xy - x * y) / np.sqrt(spread_x * spread_y)
    return np.where(varied & (n > 1.5), found, np.nan)


def centred_correlation(sums: Array) -> Array:
    """Correlation lx/√(ll·xx) from sums ll, lx, xx of centred values, shape (N, 3) → (N,)."""
    ll, lx, xx = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = lx / np.sqrt(ll * xx)
    return np.where((ll > NO_VARIANCE) & (xx > NO_VARIANCE), found, np.nan)


def per_bucket(bucket: NDArray[np.int64], *columns: NDArray[np.float64 | np.int64]) -> Array:
    """Add up rows by bucket: K columns of n rows → (B, K), B the buckets that occur."""
    found, row = np.unique(bucket, return_inverse=True)
    summed = [np.bincount(row, weights=column, minlength=len(found)) for column in columns]
    return np.stack(summed, axis=1) if len(found) else np.zeros((0, len(columns)))


Rows = tuple[NDArray[np.int64], tuple[NDArray[np.float64 | np.int64], ...]]


def beside(first: Rows, second: Rows) -> Array:
    """Add up two sets of rows by bucket, side by side: (B, K₁ + K₂) over the buckets of both."""
    n_first, n_second = len(first[0]), len(second[0])
    columns = [np.concatenate([column, np.zeros(n_second)]) for column in first[1]]
    columns += [np.concatenate([np.zeros(n_first), column]) for column in second[1]]
    return per_bucket(np.concatenate([first[0], second[0]]), *columns)


def rows_by(codes: NDArray[np.int64]) -> dict[int, NDArray[np.intp]]:
    """Where each code stands, in the order of the codes."""
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    parts = np.split(order, starts[1:]) if len(found) else []
    return {int(code): part for code, part in zip(found, parts, strict=True)}
