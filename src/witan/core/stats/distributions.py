"""Logistic, Student's t, normal, chi-square, beta and scaled F distributions, without scipy.

`scipy.special` has the same functions, but its import takes longer than the rest of a small tally;
tests check that the results are equal.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.core.profile import Floats

NODES = 4096
"""Number of steps in tables of Student's t; their error is below 1e-7."""

NEARLY_NORMAL = 1e4
"""Degrees of freedom from which an expansion about the normal is exact to 1e-9."""

CONVERGED = 1e-15
"""Relative change below which a continued fraction has converged."""

CLOSE = 1e-14
"""Relative step below which a quantile has converged."""

Number = TypeVar("Number", float, Floats)

GRID = 16_001
"""Points of the grids that quantile functions are inverted on: four digits and more."""

N_RATIOS = 10
"""Points of the prior of the ratio of quality to noise."""

MEDIAN_RATIO, RATIO_SPREAD = 0.92, 0.7
"""Median of the standard deviation of quality over that of noise, and that of its logarithm.

The log-normal distribution most likely on real sessions of five has, for panels of five, eight and
twenty of the 33 judges of the LLMJudge benchmark, a median of .9 to 1.0 and a spread of .3 to .6;
for the two judges of WildBench 1.2 with the public noise and 1.8 with their own, and .5. This one
is wider than those, its median near their lower end.
"""

MEDIAN_CANDIDATES, FEWEST_CANDIDATES, MOST_CANDIDATES = 5, 3, 8
MEDIAN_POWER = 0.7
"""With the public noise of grades the median for C candidates is .92·(5/C)^.7, 3 ≤ C ≤ 8.

Chosen by calibration: few grades say little about the noise, which makes probabilities too
cautious, and with many nearly equal candidates one too easily looks better.
"""

RANK_RATIO, RANK_POWER, RANK_SPREAD = 0.83, -0.3, 0.55
"""The same prior for ranks whose noise is known by `CHANCE_DF`: the median rises with C.

Chosen by calibration on simulated rankings of a mix of spreads.
"""

MOST_STEPS = 200

LEAST_DF, MOST_DF = 0.5, 1000.0


def logistic(x: Floats) -> NDArray[np.float64]:
    """1 / (1 + exp(−x)), the logistic distribution function."""
    with np.errstate(over="ignore"):  # the result underflows to 0
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


def t_cdf(t: Floats, df: float) -> NDArray[np.float64]:
    """Compute P(T ≤ t) of Student's t, finite t, df > 0.

    For t > 0 it is 1 − ½·I_x(df/2, ½) with x = df/(df + t²) and I the regularised incomplete beta
    function; from `NEARLY_NORMAL` on the normal at t·(1 − 1/(4·df)) / √(1 + t²/(2·df)).

    References
    ----------
    Abramowitz and Stegun, Handbook of Mathematical Functions, 1964: 26.7.1 and 26.7.8.
    """
    values = np.asarray(t, dtype=np.float64)
    if df >= NEARLY_NORMAL:
        z = values * (1 - 1 / (4 * df)) / np.sqrt(1 + values * values / (2 * df))
        normal = [0.5 * math.erfc(-point / math.sqrt(2)) for point in z.ravel()]
        return np.array(normal).reshape(values.shape)
    return t_cdf_each(values, df)


def t_cdf_each(t: Floats, df: float | Floats) -> NDArray[np.float64]:
    """Compute P(T ≤ t) of Student's t, each t with its df.

    Each df is below `NEARLY_NORMAL`.
    """
    tail = 0.5 * incomplete_beta(df / (df + t * t), df / 2, 0.5)
    return np.where(t > 0, 1 - tail, tail)


def tabulated_t_cdf(t: Floats, df: float) -> Floats:
    """Read P(T ≤ t) of Student's t from a table; NaN: NaN."""
    levels, slopes = _t_table(df)
    # The table position of 1e300 is exactly 1, like that of infinity.
    finite = np.minimum(np.maximum(t, -1e300), 1e300)
    place = finite / (1 + np.abs(finite))
    unknown = np.isnan(place)
    place[unknown] = 0.0
    node = ((place + 1) * (NODES / 2)).astype(np.intp)
    beyond = place - (node / (NODES / 2) - 1)
    beyond *= slopes[node]
    beyond += levels[node]
    beyond[unknown] = np.nan
    return np.asarray(beyond)


@lru_cache(maxsize=64)
def _t_table(df: float) -> tuple[Floats, Floats]:
    """Tabulate P(T ≤ t) and its slopes.

    The grid is even in t/(1 + |t|); each slope is that from its node to the next.
    """
    inner = np.arange(1, NODES) / NODES * 2 - 1
    levels = np.concatenate([[0.0], t_cdf(inner / (1 - np.abs(inner)), df), [1.0]])
    return levels, np.diff(levels, append=1.0) * (NODES / 2)


@lru_cache(maxsize=4096)
def t_probability(t: float, df: float) -> float:
    """`t_cdf` of one number, in a fraction of an array's time."""
    if df >= NEARLY_NORMAL:
        z = t * (1 - 1 / (4 * df)) / math.sqrt(1 + t * t / (2 * df))
        return 0.5 * math.erfc(-z / math.sqrt(2))
    tail = 0.5 * _incomplete_beta_of(df / (df + t * t), df / 2, 0.5)
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=256)
def t_quantile(probability: float, df: float) -> float:
    """Compute Student's t quantile at 0 < p < 1.

    df = ∞ is normal.
    """
    if probability <= 0.5:
        return -t_quantile(1 - probability, df) if probability < 0.5 else 0.0
    df = min(df, 1e15)
    front = -math.log(df * math.pi) / 2
    if df < NEARLY_NORMAL:
        front += math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
    else:
        front += (math.log(df / 2) - 1 / (2 * df)) / 2

    def below(t: float) -> float:
        return t_probability(t, df)

    def log_density(t: float) -> float:
        return front - (df + 1) / 2 * math.log1p(t * t / df)

    low, high = 0.0, 1.0
    while below(high) < probability:
        low, high = high, 2 * high
    return _solve(below, log_density, probability, (low, (low + high) / 2, high))


def normal_quantiles(probabilities: Floats) -> NDArray[np.float64]:
    """Standard normal quantiles of probabilities in (1e-12, 1 − 1e-12)."""
    grid = np.linspace(-7.5, 7.5, GRID)
    return _invert(grid, np.exp(-grid * grid / 2), probabilities)


def chi_square_quantiles(probabilities: Floats, df: float) -> NDArray[np.float64]:
    """Chi-square quantiles, df > 0, of probabilities in (1e-12, 1 − 1e-12)."""
    # As a function of u = log x, the density is smooth at 0 for every df.
    centre, width = math.log(df), math.sqrt(2 / df)
    low, high = centre - 12 * width - 60 / df, centre + 9 * width
    grid = np.linspace(low, high, GRID)
    log_density = df / 2 * (grid - centre) - (np.exp(grid) - df) / 2
    return np.exp(_invert(grid, np.exp(log_density - log_density.max()), probabilities))


def _invert(grid: Floats, density: Floats, probabilities: Floats) -> NDArray[np.float64]:
    """The quantile function of an unnormalised density on a fine, even grid."""
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.interp(probabilities, mass / mass[-1], grid)


@lru_cache(maxsize=64)
def quality_ratios(n_candidates: int = MEDIAN_CANDIDATES) -> Floats:
    """Square midpoints, by probability, of the log-normal prior of quality over noise.

    See `MEDIAN_RATIO` and `MEDIAN_POWER`.
    """
    return _ratios(MEDIAN_RATIO, MEDIAN_POWER, RATIO_SPREAD, n_candidates)


@lru_cache(maxsize=64)
def rank_ratios(n_candidates: int) -> Floats:
    """Square midpoints of the prior of quality over noise in ranks."""
    return _ratios(RANK_RATIO, RANK_POWER, RANK_SPREAD, n_candidates)


def _ratios(median: float, power: float, spread: float, n_candidates: int) -> Floats:
    shares = (np.arange(N_RATIOS) + 0.5) / N_RATIOS
    n_candidates = min(max(n_candidates, FEWEST_CANDIDATES), MOST_CANDIDATES)
    median *= (MEDIAN_CANDIDATES / n_candidates) ** power
    return np.asarray((median * np.exp(spread * normal_quantiles(shares))) ** 2)


def incomplete_beta(x: Floats, a: float | Floats, b: float) -> NDArray[np.float64]:
    """Compute I_x(a, b) for x in [0, 1], Beta(a, b)'s distribution function.

    It is evaluated on whichever side of the mean its continued fraction converges quickly.
    """
    front = _log_gamma(a + b) - _log_gamma(a) - math.lgamma(b)
    with np.errstate(divide="ignore"):
        scale = np.exp(front + a * np.log(x) + b * np.log1p(-x))
    near = x < (a + 1) / (a + b + 2)
    below, above = (a[near], a[~near]) if isinstance(a, np.ndarray) else (a, a)
    value = np.empty_like(scale)
    value[near] = scale[near] * _continued_fraction(x[near], below, b) / below
    value[~near] = 1 - scale[~near] * _continued_fraction(1 - x[~near], b, above) / b
    return value


def _incomplete_beta_of(x: float, a: float, b: float) -> float:
    """`incomplete_beta` of one number, in a fraction of an array's time."""
    if not 0 < x < 1:
        return float(x >= 1)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    scale = math.exp(front + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return scale * _continued_fraction(x, a, b) / a
    return 1 - scale * _continued_fraction(1 - x, b, a) / b


def _log_gamma(x: float | Floats) -> float | Floats:
    if not isinstance(x, np.ndarray):
        return math.lgamma(x)
    return np.array([math.lgamma(value) for value in x.ravel()]).reshape(x.shape)


@lru_cache(maxsize=4096)
def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of Beta(a, b)."""
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def below(x: float) -> float:
        return _incomplete_beta_of(x, a, b)

    def log_density(x: float) -> float:
        return front + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x)

    return _solve(below, log_density, probability, (0.0, a / (a + b), 1.0))


def _solve(
    below: Callable[[float], float],
    log_density: Callable[[float], float],
    probability: float,
    bracket: tuple[float, float, float],
) -> float:
    """Invert a distribution function by Newton's method within a bracket.

    If a step leaves the bracket, the bracket is halved.
    """
    low, x, high = bracket
    for _ in range(200):
        error = below(x) - probability
        low, high = (x, high) if error < 0 else (low, x)
        density = log_density(x)
        step = x - error / math.exp(density) if density > -600 else low
        after = step if low < step < high else (low + high) / 2
        if not low < after < high or abs(after - x) <= CLOSE * x:
            return after
        x = after
    return x


def _continued_fraction(x: Number, a: Any, b: Any) -> Number:
    """Continued fraction of the incomplete beta function, to convergence of all x.

    References
    ----------
    Abramowitz and Stegun 26.5.8; evaluated forwards after Lentz, Applied Optics 15 (1976) 668–671.
    """
    first = 1 - (a + b) * x / (a + 1)
    d: Number = 1 / (first + (first == 0) * 1e-300)
    value = d
    c = 1 + 0 * d
    for m in range(1, 1000):
        step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + step * d)
        c = 1 + step / c
        value = value * (c * d)
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + step * d)
        c = 1 + step / c
        value = value * (c * d)
        if _is_near_one(c * d):
            break
    return value


def _is_near_one(change: float | Floats) -> bool:
    if isinstance(change, float):
        return abs(change - 1) < CONVERGED
    return bool(np.abs(change - 1).max(initial=0.0) < CONVERGED)


def fit_scaled_f(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """Fit s₀² and d₀ in s² ~ s₀²·F(d, d₀) by maximum likelihood.

    d₀ stays within 0.5 ≤ d₀ ≤ 1000.

    With u = d·s²/(d₀·s₀²), a maximum satisfies

        Σ (d + d₀)·u/(1 + u) = Σ d,            which has one root s₀² for any d₀, and
        Σ log(1 + u) = Σ ψ((d + d₀)/2) − ψ(d₀/2)        along these roots,

    where the left side is the greater one above the best d₀; without a root in the range, the
    maximum is at a bound.

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
        # Neighbouring d₀ have neighbouring roots, so the last root is the first guess for the next.
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
        # Both sides shrink in the same way as d₀ grows, so their ratio is nearly linear.
        return math.log(float(np.logaddexp(0.0, log_u).sum()) / expected)

    df = math.exp(_root(surplus, math.log(LEAST_DF), math.log(MOST_DF)))
    return math.exp(scale(df)), df


def _scale(log_ratios: Floats, freedom: Floats, df: float, start: float) -> float:
    """Root log s₀² of the first equation, by bounded Newton's method."""
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
    """Find a change of sign to positive; without one, return the nearer bound.

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
        value = function(point)
        if value == 0 or abs(point - latest) < 1e-9:
            return point
        if value * at_latest < 0:
            other, at_other = latest, at_latest
        else:
            at_other *= at_latest / (at_latest + value)
        latest, at_latest = point, value
    return latest


def _digamma(x: float) -> float:
    """ψ(x), x > 0: recurrence, then asymptotic series (Abramowitz, Stegun 6.3.18)."""
    carried = 0.0
    while x < 10.0:
        carried -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return carried + math.log(x) - 0.5 / x - series
