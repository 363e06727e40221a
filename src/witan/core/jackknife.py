"""How far a statistic of sums would vary with the sessions: leave one bucket out."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from witan.errors import InvalidParameter

__all__ = ["MIN_BUCKETS", "Jackknifed", "Side", "fewest_buckets", "jackknife"]

Array = NDArray[np.float64]
Side = slice | NDArray[np.intp]
"""Where the sums of one side of a comparison stand on the second axis of the sums."""

MIN_BUCKETS = 5
"""Fewer buckets with data than this say too little of how much buckets vary."""


class Jackknifed(NamedTuple):
    """Estimates with their errors; arrays of one shape, without axes for a single estimate.

    Parameters
    ----------
    estimate : float array
        The statistic of all sums; NaN where it is undefined.
    std_error : float array
        NaN: unknown.
    degrees : float array
        Of freedom of Student's t: buckets with data, less one; of sides, as `jackknife` says.
    """

    estimate: Array
    std_error: Array
    degrees: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends of the interval at a level, estimate ∓ t · std_error; NaN where unknown."""
        from scipy.special import stdtrit

        reach = stdtrit(np.maximum(self.degrees, 1.0), 0.5 + level / 2) * self.std_error
        return self.estimate - reach, self.estimate + reach


def jackknife(
    per_bucket: Array, statistic: Callable[[Array], Array], *, sides: Sequence[Side] = ()
) -> Jackknifed:
    r"""Estimate a statistic of sums, and its standard error with one bucket left out at a time.

    With the sums T = Σ_b T_b over the B buckets that hold data, θ₍b₎ = statistic(T − T_b) and
    θ₍·₎ their mean,

        estimate  = statistic(T),
        std_error = √((B − 1)/B · Σ_b (θ₍b₎ − θ₍·₎)²),        degrees = B − 1.

    A statistic that compares sides which fill different buckets is no better known than its poorer
    side. With V_s the same variance for side s alone, its sums left out by bucket and those of the
    others kept, and B_s the buckets that it fills, the degrees are Satterthwaite's, at most B − 1:

        degrees = (Σ_s V_s)² / Σ_s V_s²/(B_s − 1).

    Buckets are groups of whole sessions, so that what sessions share inside is allowed for. For
    the mean of B numbers the error is the sample deviation over √B. It is no good for a median.

    Parameters
    ----------
    per_bucket : float array, shape (B, …)
        Per bucket, the sums that the statistic is made from. Usually (B, K) for K sums and one
        estimate, or (B, K, M) for M estimates at once.
    statistic : function
        From sums of shape (N, …), N times as many as are wanted, to N times the estimates: shape
        (N,) or (N, M). For a ratio of two sums: ``lambda sums: sums[:, 0] / sums[:, 1]``. It may
        return NaN; division by 0 is not reported.
    sides : sequence of slices or index arrays
        Of a single estimate: the second axis of `per_bucket`, cut into what is compared.

    Returns
    -------
    Jackknifed
        The error is NaN below `MIN_BUCKETS` buckets with data, or where some θ₍b₎ is undefined.
        A bucket has no data for estimate m if all its sums ``[b, :, m]`` are 0; where estimates
        do not stand on the last axes of the sums, if all its sums are. Of sides, the error is NaN
        too where one of them fills fewer than `MIN_BUCKETS`.

    References
    ----------
    Quenouille, "Notes on bias in estimation", Biometrika 43 (1956) 353–360. Efron and Stein, "The
    jackknife estimate of variance", Annals of Statistics 9 (1981) 586–596. Satterthwaite, "An
    approximate distribution of estimates of variance components", Biometrics Bulletin 2 (1946)
    110–114.
    """
    if per_bucket.ndim < 1:
        raise InvalidParameter("per_bucket", per_bucket.shape, "one row of sums per bucket")
    held = np.asarray(per_bucket, dtype=np.float64)
    held = held[held.reshape(len(held), -1).any(axis=1)]
    total = held.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = _defined(statistic(total))[0]
        left_out = _defined(statistic(total - held))
    if left_out.shape != (len(held), *estimate.shape):
        raise InvalidParameter(
            "statistic", f"shape {left_out.shape}", f"shape {(len(held), *estimate.shape)}"
        )
    found = _conclude(estimate, left_out, _filled(held, estimate.shape))
    return _of_sides(found, held, statistic, sides) if sides else found


def fewest_buckets(per_bucket: Array, sides: Sequence[Side]) -> int:
    """How many buckets the poorest side fills."""
    return min(int(_holding(per_bucket, side).sum()) for side in sides)


def _holding(held: Array, side: Side) -> NDArray[np.bool_]:
    """Which buckets hold anything of a side, shape (B,)."""
    filled: NDArray[np.bool_] = (held[:, side] != 0).reshape(len(held), -1).any(axis=1)
    return filled


def _of_sides(
    found: Jackknifed, held: Array, statistic: Callable[[Array], Array], sides: Sequence[Side]
) -> Jackknifed:
    """A single estimate with the degrees that its sides leave it."""
    if fewest_buckets(held, sides) < MIN_BUCKETS:
        return found._replace(std_error=np.full_like(found.std_error, np.nan))
    total = held.sum(axis=0, keepdims=True)
    variances, degrees = [], []
    for side in sides:
        filled = _holding(held, side)
        left = np.repeat(total, int(filled.sum()), axis=0)
        left[:, side] -= held[filled][:, side]
        with np.errstate(divide="ignore", invalid="ignore"):
            left_out = _defined(statistic(left))
        n = len(left)
        variances.append((n - 1) * float(left_out.var()))
        degrees.append(n - 1)
    parts = np.array(variances)
    doubt = float((parts**2 / np.array(degrees)).sum())
    if doubt == 0:
        return found
    of_sides = np.minimum(parts.sum() ** 2 / doubt, found.degrees)
    return found._replace(degrees=np.asarray(of_sides))


def _defined(values: Array) -> Array:
    """Infinity is no estimate."""
    return np.where(np.isfinite(values), values, np.nan)


def _filled(held: Array, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which buckets hold data for which estimate, shape (B, …) as the estimates have."""
    filled: NDArray[np.bool_] = held != 0
    if held.ndim == 2 + len(shape) and held.shape[2:] == shape:
        return np.asarray(filled.any(axis=1))
    return np.ones((len(held), *shape), dtype=np.bool_)


def _conclude(estimate: Array, left_out: Array, filled: NDArray[np.bool_]) -> Jackknifed:
    """Spread of the estimates that leave one bucket out."""
    n = filled.sum(axis=0)
    divisor = np.maximum(n, 1)
    centre = np.where(filled, left_out, 0.0).sum(axis=0) / divisor
    squares = (np.where(filled, left_out - centre, 0.0) ** 2).sum(axis=0)
    variance = squares * (n - 1) / divisor
    std_error = np.where(n < MIN_BUCKETS, np.nan, np.sqrt(np.maximum(variance, 0.0)))
    std_error = np.where(np.isnan(estimate), np.nan, std_error)
    return Jackknifed(estimate, std_error, np.maximum(n - 1.0, 0.0))
