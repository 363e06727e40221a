"""Sequential looks at a session: their levels, and probabilities of settling.

A test repeated after each ballot has a larger error than a single test. The looks at a session are
planned by numbers of ballots and share one stricter level, so that all together have the stated
error.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import erfc, pi, sqrt

import numpy as np

from witan.core.stats.distributions import quality_ratios, t_cdf, t_quantile

FEWEST_VOTES = 3
"""Votes per candidate before the first look, because two agree too often by chance."""

LOOKED_AT_EACH = 8
"""Number of ballots up to which every ballot has a look; then looks are an eighth apart."""

N_NODES = 128
"""Number of quadrature nodes; ten times as many change levels by less than 1e-5."""

HOPELESS = 0.05
"""Probability of settling below which reviews end."""

NORMAL = 1e9
"""Degrees of freedom from which Student's t counts as normal."""

N_SIMULATED = 2_000
"""Number of sessions to simulate an expectation; its error is below a tenth of a ballot."""


def plan_looks(first: int, last: int) -> tuple[int, ...]:
    """Plan looks by numbers of ballots, from `first` to `last`.

    Looks are at all numbers up to sixteen, then at larger steps.

    Raises
    ------
    ValueError
        If `first` is below 1.
    """
    if first < 1:
        raise ValueError(first)
    looks = [min(first, last)]
    while looks[-1] < last:
        looks.append(min(looks[-1] + max(1, looks[-1] // LOOKED_AT_EACH), last))
    return tuple(looks)


@lru_cache(maxsize=256)
def look_level(level: float, looks: tuple[int, ...], shared: float) -> float:
    """Return each look's level for a joint error of 1 − `level`.

    After n ballots, a mean has the variance s²·(1/n + shared), and the covariance of two such means
    is the variance of the later one. Their z-values are therefore those of a Brownian motion at the
    times 1/(1/n + shared), and a constant bound c on them (Pocock's) must satisfy

        P(|Z(n)| > c at any look n) = 1 − level.

    It is found by integrating over the looks one after another. For Student's t, the bound with the
    same probability is used, as Jennison and Turnbull advise.

    Parameters
    ----------
    level
        Level of all looks together, two-sided, in (0, 1).
    looks
        Numbers of ballots, ascending; with one or none, `level` itself is returned.
    shared
        Variance of the error shared by all reviewers, divided by s², ≥ 0.

    References
    ----------
    Armitage, McPherson and Rowe, "Repeated significance tests on accumulating data", JRSS A 132
    (1969) 235–244. Pocock, "Group sequential methods …", Biometrika 64 (1977) 191–199. Jennison and
    Turnbull, Group Sequential Methods with Applications to Clinical Trials, 2000, 2.4 and 4.4.
    """
    if len(looks) < 2:
        return level
    times = [1 / (1 / n + shared) for n in looks]
    once = t_quantile((1 + level) / 2, float("inf"))
    low, high = once, once + 4.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if _p_crossing(middle, times) > 1 - level else (low, middle)
    return 1 - erfc(high / sqrt(2))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss–Legendre nodes and weights on [−1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    return nodes, weights


def _p_crossing(bound: float, times: Sequence[float]) -> float:
    """Compute P(|B(t)| > bound·√t at any time) for a Brownian motion B."""
    nodes, weights = _quadrature()
    before, mass = np.zeros(1), np.ones(1)
    elapsed = 0.0
    for time in times:
        half = bound * sqrt(time)
        here, variance = nodes * half, time - elapsed
        steps = np.exp(-((here[:, np.newaxis] - before) ** 2) / (2 * variance))
        mass = weights * half * (steps @ mass) / sqrt(2 * pi * variance)
        before, elapsed = here, time
    return 1 - float(mass.sum())


def p_settled(
    difference: float,
    variance: float,
    shared_variance: float,
    growth: float,
    bar: float,
) -> float:
    """Estimate the probability of a difference beyond noise after further ballots.

    With g times as many ballots at the end, the final difference has the distribution

        N(difference, variance·(1 − 1/g)),

    since the present difference already includes the error shared by all reviewers. It is beyond
    noise if it exceeds `bar` times √(variance/g + shared_variance).

    Parameters
    ----------
    variance
        Present variance of the difference over draws of other reviewers.
    shared_variance
        Variance added by the error shared by all reviewers.
    growth
        g > 1.
    bar
        Quantile of Student's t that the difference must exceed.
    """
    spread = sqrt(2 * variance * (1 - 1 / growth))
    beyond = bar * sqrt(variance / growth + shared_variance)
    if spread <= 0:
        return float(abs(difference) > beyond)
    return (erfc((beyond - difference) / spread) + erfc((beyond + difference) / spread)) / 2


@lru_cache(maxsize=64)
def p_asked(
    looks: tuple[int, ...], n_candidates: int, level: float, shared: float
) -> tuple[float, ...]:
    """Simulate the probability that each ballot is requested, in order.

    Sessions differ in λ, the variance of quality divided by that of noise, as in `quality_ratios`.
    Grades are normal with a known variance. The two best candidates are compared, or a single one
    with the pass mark.

    Parameters
    ----------
    n_candidates
        Number of texts to compare; 1: a single one is compared with a pass mark.
    shared
        Variance of the error shared by all reviewers, divided by that of the noise.
    """
    rng = np.random.default_rng(len(looks))
    ratios = np.resize(quality_ratios(), N_SIMULATED)
    rows = (n_candidates, N_SIMULATED)
    truth = np.sqrt(ratios) * rng.normal(size=rows) + sqrt(shared) * rng.normal(size=rows)
    noise = np.cumsum(rng.normal(size=(looks[-1], *rows)), axis=0)
    both = 2 if n_candidates > 1 else 1
    one_sided = level if both > 1 else 2 * max(level, 1 - level) - 1
    bar = t_quantile((1 + look_level(one_sided, looks, shared)) / 2, float("inf"))
    n_asked = np.full(N_SIMULATED, looks[0])
    open_ = np.ones(N_SIMULATED, dtype=np.bool_)
    for n, following in pairwise(looks):
        means = np.sort(truth + noise[n - 1] / n, axis=0)
        gaps = means[-1] - means[-2] if both > 1 else np.abs(means[0])
        open_ &= gaps <= bar * sqrt(both * (1 / n + shared))
        growth = looks[-1] / n
        spread = sqrt(both / n * (1 - 1 / growth))
        beyond = bar * sqrt(both * (1 / looks[-1] + shared))
        chances = t_cdf((gaps - beyond) / spread, NORMAL) + t_cdf((-gaps - beyond) / spread, NORMAL)
        open_ &= chances >= HOPELESS
        n_asked[open_] = following
    return tuple(float((n_asked >= n).mean()) for n in range(1, looks[-1] + 1))
