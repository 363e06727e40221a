"""The scaled F distribution of residual variances, fitted without scipy, which is slow to import.

A council that has a history fits it before its first call, so that it must not take long.
"""

import math
from collections.abc import Callable

import numpy as np

from witan.core.profile import Floats

__all__ = ["fit_scaled_f"]

MOST_STEPS = 200

LEAST_DF, MOST_DF = 0.5, 1000.0


def fit_scaled_f(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """s₀² and d₀ that maximise the likelihood of s² ~ s₀²·F(d, d₀); d₀ between 0.5 and 1000.

    With u = d·s²/(d₀·s₀²), a maximum satisfies

        Σ (d + d₀)·u/(1 + u) = Σ d,            which has one root s₀² for any d₀, and
        Σ log(1 + u) = Σ ψ((d + d₀)/2) − ψ(d₀/2)        along these roots,

    where the left side is the greater one above the best d₀; at a bound the maximum is there.

    Parameters
    ----------
    variances, freedom : float array, shape (S,)
        s² > 0 and d ≥ 1 of each session.

    Returns
    -------
    tuple of float
        s₀², in the unit of the variances, and d₀, to nine digits.
    """
    log_variances = np.log(variances)
    kinds, times = np.unique(freedom, return_counts=True)
    log_sums = log_variances + np.log(freedom)
    last = float(np.average(log_variances, weights=freedom))

    def scale(df: float) -> float:
        # Neighbouring d₀ have neighbouring roots: the last one is the best guess at the next.
        nonlocal last
        last = _scale(log_sums - math.log(df), freedom, df, last)
        return last

    def surplus(log_df: float) -> float:
        df = math.exp(log_df)
        log_u = log_sums - log_df - scale(df)
        expected = sum(
            n * (_digamma((d + df) / 2) - _digamma(df / 2))
            for d, n in zip(kinds.tolist(), times.tolist(), strict=True)
        )
        # As a ratio, both sides shrinking alike as d₀ grows, it is nearly a straight line.
        return math.log(float(np.logaddexp(0.0, log_u).sum()) / expected)

    df = math.exp(_root(surplus, math.log(LEAST_DF), math.log(MOST_DF)))
    return math.exp(scale(df)), df


def _scale(log_ratios: Floats, freedom: Floats, df: float, start: float) -> float:
    """The root log s₀² of the first equation, by Newton's method between two bounds."""
    target = float(freedom.sum())
    low, high = start - 60.0, start + 60.0
    point = start
    for _ in range(MOST_STEPS):
        share = 1.0 / (1.0 + np.exp(np.clip(point - log_ratios, -700.0, 700.0)))
        weighed = (freedom + df) * share
        excess = float(weighed.sum()) - target
        low, high = (point, high) if excess > 0 else (low, point)
        slope = float((weighed * (1.0 - share)).sum())
        step = point + excess / slope if slope > 0 else low
        after = step if low < step < high else (low + high) / 2
        if abs(after - point) < 1e-10:
            return after
        point = after
    return point


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function goes from below 0 to above it; the bound on whose side it never does.

    Regula falsi after Dowell and Jarratt, "The 'Pegasus' method", BIT 12 (1972) 503–508.
    """
    at_low, at_high = function(low), function(high)
    if at_low >= 0:
        return low
    if at_high <= 0:
        return high
    other, at_other, latest, at_latest = low, at_low, high, at_high
    for _ in range(MOST_STEPS):
        point = (other * at_latest - latest * at_other) / (at_latest - at_other)
        found = function(point)
        if found == 0 or abs(point - latest) < 1e-9:
            return point
        if found * at_latest < 0:
            other, at_other = latest, at_latest
        else:
            at_other *= at_latest / (at_latest + found)
        latest, at_latest = point, found
    return latest


def _digamma(x: float) -> float:
    """ψ(x) for x > 0: carried upwards, then the asymptotic series (Abramowitz, Stegun 6.3.18)."""
    carried = 0.0
    while x < 10.0:
        carried -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return carried + math.log(x) - 0.5 / x - series
