"""The smallest gap between two answers separable by a council."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from witan.core.outcome import MIN_VOTES, Prior
from witan.core.profile import ROUNDING_VARIANCE, Floats, Profile
from witan.core.stats.additive import fit_grades
from witan.core.stats.distributions import chi_square_quantiles, t_quantile
from witan.core.stats.priors import PUBLIC_RHO, public_prior
from witan.core.stats.uncertainty import (
    MIN_DF,
    UNANIMITY_BALLOTS,
    moderate_pairs,
)

POWER = 0.8
"""Share of sessions that detect a gap of the stated size."""

TYPICAL_NOISE = 1.0
"""Standard deviation of one reviewer's grade around the panel's, in grades of 1 to 10.

Between what real judges show: two judges of one family over 1,000 tasks, .66; panels of four or
five out of 33 judges, whose grades of 0 to 3 were converted, 1.5 (half of the panels below 1.3).
See docs/uncertainty.md.
"""

MOST_SIZE = 40
"""Most reviewers or candidates; a larger council is treated as one of this size."""

LARGER = 5
"""Most additional reviewers to try until a council can separate a gap."""

N_QUANTILES = 64
"""Quantiles of each variance that the power is averaged over."""

FARTHEST = 9.0
"""The largest difference of grades from 1 to 10."""

PUBLIC_PRIOR = public_prior("grades", 2)


@dataclass(frozen=True, slots=True)
class Separation:
    """The smallest gap separable by a council of a size.

    Parameters
    ----------
    reviewers, candidates
        Numbers of reviewers and candidates.
    grades
        The smallest gap in grades of 1 to 10 that it separates; None: none.
    next_reviewers, next_grades
        The next larger council that can separate a gap, and that gap.
    power, noise
        Power of the test, and noise of grades: typical, or of a history.
    authors
        Whether the reviewers wrote the answers; no reviewer judges its own.
    """

    reviewers: int
    candidates: int
    grades: float | None
    next_reviewers: int | None = None
    next_grades: float | None = None
    power: float = POWER
    noise: float = TYPICAL_NOISE
    authors: bool = False


@lru_cache(maxsize=256)
def separation(
    reviewers: int,
    candidates: int,
    *,
    authors: bool = True,
    level: float = 0.95,
    prior: Prior | None = PUBLIC_PRIOR,
    rho: float = PUBLIC_RHO["grades"],
) -> Separation:
    """Return the smallest grade gap separable by a council.

    Two answers are separated as in `Uncertainty.separate_pairs`, by the contrast of the fit with
    variance max(v·s², s_own²) + 2·ρ/(1 − ρ)·s², two-sided at `level`. Here s² is (d₀·s₀² +
    σ²·χ²(d))/(d₀ + d) with the prior's d₀ and s₀² and the residual freedom d of the design, v the
    contrast's factor, and s_own² is 2σ²/n·χ²(n − 1)/(n − 1) on the n ballots that have both
    answers; they are treated as independent, and σ² is `TYPICAL_NOISE`² plus that of rounding to
    whole grades. The gap is the g with

        E Φ((g − t·√variance) / (σ·√(v + 2·ρ/(1 − ρ)))) = 0.8.

    With a public prior, a pair on fewer than two ballots keeps d·2/C of d and its share of s², as
    in `Uncertainty.contrast_df`; it is unanimous if s_own²·n is below the variance from rounding.
    With the prior of a history, its noise and degrees of freedom replace these, and s_own² is not
    used.

    Parameters
    ----------
    authors
        Whether the reviewers wrote the answers; no reviewer judges its own.
    prior
        Borrowed strength, in grades; None: none.
    rho
        Share of the noise that all reviewers have in common, 0 ≤ ρ < 1.

    Returns
    -------
    Separation
        The gap with this number of reviewers, and with the next number that can separate one; if
        reviewers are authors, each additional one also writes an answer.
    """
    terms = _Terms(authors, level, prior, rho)
    own = _gap(min(reviewers, MOST_SIZE), min(candidates, MOST_SIZE), terms)
    noise = TYPICAL_NOISE if not _history_prior(prior) else math.sqrt(prior.noise_variance)
    for more in range(1, LARGER):
        judged = candidates + more if authors else candidates
        if reviewers + more > MOST_SIZE or judged > MOST_SIZE:
            break
        if (gap := _gap(reviewers + more, judged, terms)) is not None:
            larger = (own, reviewers + more, gap)
            return Separation(reviewers, candidates, *larger, noise=noise, authors=authors)
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
    """The gap in grades; None if beyond the scale or undefined."""
    if reviewers < 1 or candidates < 2:
        return None
    prior, rho = terms.prior, terms.rho
    factor, df, votes, shared = _design(reviewers, candidates, authors=terms.authors)
    if not math.isfinite(factor) or votes < MIN_VOTES:
        return None
    noise, learned = TYPICAL_NOISE**2 + ROUNDING_VARIANCE, _history_prior(prior)
    fixed = 0.0
    if prior is not None:
        if learned:
            noise = prior.noise_variance
        else:
            fixed = prior.noise_df * prior.noise_variance
        df += prior.noise_df
    if df < MIN_DF:
        return None
    points = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    free = df - (prior.noise_df if prior is not None and not learned else 0.0)
    pooled = fixed + (noise * chi_square_quantiles(points, free) if free > 0 else 0.0 * points)
    pooled = pooled / df
    together = 2 * rho / (1 - rho)
    if prior is not None and not learned and shared < MIN_VOTES:
        residual = (pooled * df - fixed) * 2 / candidates
        df = prior.noise_df + free * 2 / candidates
        pooled = np.maximum(pooled, (fixed + residual) / df)
    bar = t_quantile((1 + terms.level) / 2, df)
    bars = np.sqrt((factor + together) * pooled) * bar
    if not learned and shared >= MIN_VOTES:
        own = 2 * noise / shared * chi_square_quantiles(points, shared - 1.0) / (shared - 1.0)
        variance = np.maximum(factor * pooled[:, np.newaxis], own)
        every = np.sqrt(variance + together * pooled[:, np.newaxis]) * bar
        if prior is not None and shared <= UNANIMITY_BALLOTS:
            every[:, own * shared <= ROUNDING_VARIANCE] = _unanimous_bar(shared, prior, terms)
        bars = np.sort(every.ravel())[N_QUANTILES // 2 :: N_QUANTILES]
    return _smallest_gap(bars, math.sqrt((factor + together) * noise))


def _unanimous_bar(n_ballots: int, prior: Prior, terms: _Terms) -> float:
    """Return the least gap of a unanimous pair, by the prior alone."""
    own = float(moderate_pairs(np.zeros(1), np.array([n_ballots]), prior)[0])
    variance = own * (1 + n_ballots * terms.rho / (1 - terms.rho))
    return math.sqrt(variance) * t_quantile((1 + terms.level) / 2, prior.noise_df)


def _history_prior(prior: Prior | None) -> TypeGuard[Prior]:
    return prior is not None and prior.source != "public"


def _smallest_gap(bars: Floats, error: float) -> float | None:
    """The gap passing each bar with probability `POWER`, given `error`."""
    low, high = 0.0, FARTHEST
    if _power(bars, error, high) < POWER:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(bars, error, middle) < POWER else (low, middle)
    return high


def _power(bars: Floats, error: float, gap: float) -> float:
    return sum(math.erfc((bar - gap) / error / math.sqrt(2)) for bar in bars) / (2 * len(bars))


def _design(reviewers: int, candidates: int, *, authors: bool) -> tuple[float, float, int, int]:
    """Contrast variance factor, residual freedom, votes per candidate, shared ballots."""
    shape = (reviewers, candidates, 1)
    places = np.broadcast_to(np.arange(1, candidates + 1, dtype=np.float64)[:, np.newaxis], shape)
    grades = places.copy()
    if authors:
        own = np.arange(min(reviewers, candidates))
        grades[own, own] = np.nan
    fit = fit_grades(Profile.from_ranks(grades, grades=grades))
    graded = ~np.isnan(grades[:, :, 0])
    return (
        float(fit.variance_factors()[0, 0, 1]),
        float(fit.df[0]),
        int(graded[:, :2].sum(axis=0).min()),
        int(graded[:, :2].all(axis=1).sum()),
    )
