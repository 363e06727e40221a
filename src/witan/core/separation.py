"""How far apart two answers must be for a council of a size to separate them."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from witan.core.additive import fit_grades
from witan.core.outcome import Prior
from witan.core.profile import ROUNDING_VARIANCE, Floats, Profile
from witan.core.student import chi_square_quantiles, t_quantile
from witan.core.uncertainty import MIN_DF

__all__ = ["POWER", "TYPICAL_NOISE", "Separation", "separation"]

POWER = 0.8
"""The share of sessions in which a gap of the stated size is found."""

TYPICAL_NOISE = 1.0
"""Standard deviation of one reviewer's grade around the panel's, in grades of 1 to 10.

Between what real judges show: two judges of one family over 1,000 tasks, .66; panels of four or
five out of 33 judges, whose grades of 0 to 3 were converted, 1.5 (half of the panels below 1.3).
See docs/uncertainty.md.
"""

MOST_SIZE = 40
"""Reviewers or candidates beyond which a larger council is taken for one of this size."""

LARGER = 5
"""Reviewers more than there are, up to which a council that separates anything is looked for."""

N_POINTS = 64
"""Quantiles of each variance that the power is averaged over."""

FARTHEST = 9.0
"""Grades run from 1 to 10: no two are farther apart."""


@dataclass(frozen=True, slots=True)
class Separation:
    """The least gap that a council of a size separates.

    Parameters
    ----------
    reviewers, candidates
        How many judge, and how many are judged.
    grades
        The gap in grades of 1 to 10 that is found in `POWER` of the sessions; None: no gap is.
    next_reviewers, next_grades
        The next larger council that separates any gap, and its gap; None: no larger one is known.
    power, noise
        What it rests on: `POWER` and `TYPICAL_NOISE`, or the noise that a history showed.
    authors
        The reviewers wrote the answers, and none judges its own.
    """

    reviewers: int
    candidates: int
    grades: float | None
    next_reviewers: int | None = None
    next_grades: float | None = None
    power: float = POWER
    noise: float = TYPICAL_NOISE
    authors: bool = False


def separation(
    reviewers: int,
    candidates: int,
    *,
    authors: bool = True,
    level: float = 0.95,
    prior: Prior | None = None,
    rho: float | None = None,
) -> Separation:
    """Return the gap in grades between two answers that a council separates.

    Two answers are told apart as `Uncertainty.told_apart` does it: by the contrast of the additive
    fit with variance max(v·s², s_own²), two-sided at `level`. Here s² is v·σ²·χ²(d)/d on the
    residual freedom d of the design, and s_own² is 2σ²/n·χ²(n − 1)/(n − 1) on the n ballots that
    have both answers; they are taken as independent, and σ² is `TYPICAL_NOISE`² plus that of
    rounding to whole grades. The gap is the g with

        E Φ((g − t·√max(v·s², s_own²)) / (σ·√v)) = 0.8.

    With a prior, its noise and freedom stand in place of these, and s_own² is not used.

    Parameters
    ----------
    reviewers, candidates
        How many judge, and how many are judged.
    authors
        The reviewers wrote the answers: none has a say in the standing of its own.
    level
        Of the outcome's contrasts.
    prior
        Borrowed strength of the history, in grades.
    rho
        The share of the noise that all reviewers have in common, 0 ≤ ρ < 1.

    Returns
    -------
    Separation
        The gap with so many reviewers, and with the next number that separates any, each of whom
        writes an answer too where the reviewers are authors.
    """
    given = _Terms(authors, level, prior, rho or 0.0)
    own = _gap(min(reviewers, MOST_SIZE), min(candidates, MOST_SIZE), given)
    noise = TYPICAL_NOISE if prior is None else math.sqrt(prior.noise_variance)
    for more in range(1, LARGER):
        judged = candidates + more if authors else candidates
        if reviewers + more > MOST_SIZE or judged > MOST_SIZE:
            break
        if (gap := _gap(reviewers + more, judged, given)) is not None:
            found = (own, reviewers + more, gap)
            return Separation(reviewers, candidates, *found, noise=noise, authors=authors)
    return Separation(reviewers, candidates, own, noise=noise, authors=authors)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The parameters of `separation` beyond the size."""

    authors: bool
    level: float
    prior: Prior | None
    rho: float


@lru_cache(maxsize=256)
def _gap(reviewers: int, candidates: int, terms: _Terms) -> float | None:
    """The gap in grades; None: nothing is told apart, or only what no two grades show."""
    if reviewers < 1 or candidates < 2:
        return None
    prior, rho = terms.prior, terms.rho
    factor, df, votes, shared = _design(reviewers, candidates, authors=terms.authors)
    if not math.isfinite(factor) or votes < 2:
        return None
    factor += 2 * rho / (1 - rho)
    noise = TYPICAL_NOISE**2 + ROUNDING_VARIANCE
    if prior is not None:
        noise, df = prior.noise_variance, df + prior.noise_df
    if df < MIN_DF:
        return None
    points = (np.arange(N_POINTS) + 0.5) / N_POINTS
    variance = factor * noise * (chi_square_quantiles(points, df) / df)
    if prior is None and shared >= 2:
        own = 2 * noise / shared * chi_square_quantiles(points, shared - 1.0) / (shared - 1.0)
        variance = np.sort(np.maximum(variance[:, np.newaxis], own).ravel())[
            N_POINTS // 2 :: N_POINTS
        ]
    return _found(
        np.sqrt(variance) * t_quantile((1 + terms.level) / 2, df), math.sqrt(factor * noise)
    )


def _found(bars: Floats, error: float) -> float | None:
    """The gap whose estimate, off by `error`, passes each of these bars in `POWER` of the cases."""
    low, high = 0.0, FARTHEST
    if _power(bars, error, high) < POWER:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(bars, error, middle) < POWER else (low, middle)
    return high


def _power(bars: Floats, error: float, gap: float) -> float:
    """P(an estimate of the gap passes the bar), averaged over the bars."""
    return sum(math.erfc((bar - gap) / error / math.sqrt(2)) for bar in bars) / (2 * len(bars))


def _design(reviewers: int, candidates: int, *, authors: bool) -> tuple[float, float, int, int]:
    """Variance factor of a contrast, residual freedom, votes of a candidate, ballots with both."""
    shape = (reviewers, candidates, 1)
    places = np.broadcast_to(np.arange(1, candidates + 1, dtype=np.float64)[:, np.newaxis], shape)
    grades = places.copy()
    if authors:
        own = np.arange(min(reviewers, candidates))
        grades[own, own] = np.nan
    fit = fit_grades(Profile.from_ranks(grades, grades=grades))
    held = ~np.isnan(grades[:, :, 0])
    return (
        float(fit.variance_factors(0)[0, 1]),
        float(fit.df[0]),
        int(held[:, :2].sum(axis=0).min()),
        int(held[:, :2].all(axis=1).sum()),
    )
