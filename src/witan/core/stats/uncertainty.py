"""Uncertainty of one session: contrasts, probabilities, tiers, priors and power.

All of it comes from one additive fit, so that ties, p_beats and p_best cannot contradict each
other. "Probability" means: of another draw of reviewers like these, on the same answers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import Prior, Unit
from witan.core.profile import ROUNDING_VARIANCE, Floats, Profile
from witan.core.stats.additive import AdditiveFit, fit_grades
from witan.core.stats.distributions import (
    chi_square_quantiles,
    fit_scaled_f,
    normal_quantiles,
    t_cdf,
    t_quantile,
)
from witan.errors import InvalidParameter

MIN_DF = 2.0
"""Under two residual degrees of freedom nothing is told apart."""

MIN_HISTORY = 50
"""Sessions a prior is learned from at least."""

LEVEL = 1e-9
"""Effects this close, relative to the largest, differ by rounding alone."""

N_POINTS = 4096
"""Points of the lattice that p_best is integrated on; its error is below 0.01."""

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

N_QUANTILES = 64
"""Quantiles of each variance that the power is averaged over."""

FARTHEST = 9.0
"""Grades run from 1 to 10: no two are farther apart."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The fit of one session, with prior and shared error if any.

    Parameters
    ----------
    effects : float array, shape (C,)
    factors : float array, shape (C, C)
        Variance of effect[i] − effect[j] over s²; NaN where not comparable.
    variance
        s², moderated by the prior where there is one; NaN without freedom.
    df
        Degrees of freedom of `variance`.
    votes : int array, shape (C,)
        Ballots that the fit has for each candidate.
    covariance : float array, shape (C, C)
        Of the effects, over s².
    own : float array, shape (C, C), optional
        `pair_variances`: a contrast's variance is not taken to be less than its own ballots show.
        Not used with a prior, which knows the noise better than two or three of them.
    """

    effects: Floats
    factors: Floats
    variance: float
    df: float
    votes: NDArray[np.integer[Any]]
    covariance: Floats
    components: NDArray[np.integer[Any]]
    quality_variance: float | None = None
    own: Floats | None = None

    @classmethod
    def of(
        cls,
        fit: AdditiveFit,
        session: int,
        votes: NDArray[np.integer[Any]],
        *,
        rho: float | None = None,
        prior: Prior | None = None,
        own: Floats | None = None,
    ) -> "Uncertainty":
        """Take one session out of a batch.

        With a prior, s² becomes the moderated (d₀·s₀² + d·s²)/(d₀ + d) on d + d₀ degrees of
        freedom. A shared error ρ adds ρ/(1 − ρ)·s² to the variance of every candidate: what all
        reviewers of an answer get wrong together does not average out.

        References
        ----------
        Smyth, "Linear models and empirical Bayes methods …", Statistical Applications in Genetics
        and Molecular Biology 3 (2004), article 3.
        """
        if rho is not None and not 0 <= rho < 1:
            raise InvalidParameter("rho", rho, "a number from 0 up to, not including, 1")
        variance = float(fit.residual_variance[session])
        df = float(fit.df[session])
        if prior is not None:
            known = df * variance if df > 0 else 0.0
            df = max(df, 0.0) + prior.noise_df
            variance = (prior.noise_df * prior.noise_variance + known) / df
        shared = 0.0 if rho is None else rho / (1 - rho)
        pattern = fit.pattern[session]
        n_candidates = len(fit.effects)
        different = ~np.eye(n_candidates, dtype=np.bool_)
        return cls(
            effects=fit.effects[:, session],
            factors=fit.variance_factors(session) + 2 * shared * different,
            variance=variance,
            df=df,
            votes=votes,
            covariance=fit.inverses[pattern] + shared * np.eye(n_candidates),
            components=fit.components[pattern],
            quality_variance=prior.quality_variance if prior is not None else None,
            own=own if prior is None else None,
        )

    def at(self, seats: NDArray[np.integer[Any]]) -> "Uncertainty":
        """Map to candidates at these seats, several sharing one."""
        pairs = np.ix_(seats, seats)
        return replace(
            self,
            effects=self.effects[seats],
            factors=self.factors[pairs],
            votes=self.votes[seats],
            covariance=self.covariance[pairs],
            components=self.components[seats],
            own=None if self.own is None else self.own[pairs],
        )

    @property
    def can_tell(self) -> bool:
        """True with ballots enough to separate anything."""
        return self.df >= MIN_DF

    def std_errors(self) -> Floats:
        """Standard error of each effect, shape (C,); NaN without residual freedom."""
        errors: Floats = np.sqrt(self.variance * np.diagonal(self.covariance))
        return errors

    def contrast_variances(self) -> Floats:
        """Variance of effect[i] − effect[j], shape (C, C); NaN where not comparable."""
        pooled = self.variance * self.factors
        if self.own is None:
            return pooled
        return np.where(np.isnan(pooled), np.nan, np.fmax(pooled, self.own))

    def p_beats(self) -> Floats:
        """P(i above j) from Student's t, (C, C); NaN if unknown, diagonal included."""
        n_candidates = len(self.effects)
        if not self.can_tell:
            return np.full((n_candidates, n_candidates), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (self.effects[:, np.newaxis] - self.effects) / np.sqrt(self.contrast_variances())
        voted = self.votes >= 1
        known = np.triu(np.isfinite(t) & voted & voted[:, np.newaxis], k=1)
        above = t_cdf(t[known], self.df)
        probability = np.full(t.shape, np.nan)
        probability[known] = above
        probability.T[known] = 1 - above
        return probability

    def separated(self, level: float, beats: Floats | None = None) -> NDArray[np.bool_]:
        """Pairs with i above j beyond noise, (C, C): two-sided, two votes each.

        `beats` is what `p_beats` gave, where the caller has it already.
        """
        beats = self.p_beats() if beats is None else beats
        enough = self.votes >= 2
        with np.errstate(invalid="ignore"):
            sure = beats > 1 - (1 - level) / 2
        apart: NDArray[np.bool_] = sure & enough[:, np.newaxis] & enough
        return apart

    def p_best(self, eligible: NDArray[np.bool_]) -> Floats:
        """P(highest effect) among the eligible, shape (C,); NaN if unknown.

        The effects are drawn from the multivariate t of the fit on a fixed lattice, so the same
        ballots give the same numbers. With a prior, the effects are first shrunk toward equal by
        the quality variance it holds (the hierarchical form).
        """
        chosen = np.flatnonzero((self.votes >= 1) & eligible)
        alone = np.full(len(self.effects), np.nan)
        if not self.can_tell or len(chosen) == 0 or np.ptp(self.components[chosen]) > 0:
            return alone
        mean, covariance = self._posterior(chosen)
        draws = _root(covariance) @ _t_draws(len(chosen), self.df)
        draws += mean[:, np.newaxis]
        alone[chosen] = _equalise(_shares_of_best(draws), mean, covariance)
        return alone

    def _excess(self, chosen: NDArray[np.integer[Any]]) -> float:
        """Contrast variance of the top two over the fit's; largest if tied.

        Effects that only rounding separates are level, so the processor decides no pair. Of copies
        of one answer, whose contrast has no variance, one is looked at.
        """
        apart = self.factors[np.ix_(chosen, chosen)] > LEVEL
        chosen = chosen[(apart | np.triu(np.ones_like(apart))).all(axis=1)]
        if len(chosen) < 2:
            return 1.0
        effects = self.effects[chosen]
        top, next_best = np.sort(effects)[::-1][:2]
        dust = LEVEL * (1.0 + float(np.abs(effects).max()))
        first = chosen[effects >= top - dust]
        second = chosen[effects >= next_best - dust]
        pairs = np.ix_(first, second)
        different = first[:, np.newaxis] != second
        pooled = self.variance * self.factors[pairs][different]
        return float((self.contrast_variances()[pairs][different] / pooled).max())

    def _posterior(self, chosen: NDArray[np.integer[Any]]) -> tuple[Floats, Floats]:
        """Mean and scale of chosen effects, shrunk by a prior if any."""
        mean = self.effects[chosen]
        among = self.covariance.take(chosen, axis=0).take(chosen, axis=1)
        covariance = self._excess(chosen) * self.variance * among
        if self.quality_variance is None:
            return mean, covariance
        prior = self.quality_variance * (np.eye(len(chosen)) - 1 / len(chosen))
        gain = prior @ np.linalg.pinv(prior + covariance, rcond=1e-10, hermitian=True)
        return gain @ mean, prior - gain @ prior


def _root(covariance: Floats) -> Floats:
    """Symmetric square root V √Λ Vᵀ of a covariance, shape (C, C).

    The only root that is itself positive semidefinite, so it does not depend on the eigenvectors
    that a numeric library happens to choose for equal eigenvalues.
    """
    values, vectors = np.linalg.eigh(covariance)
    # The square root would raise rounding errors of 1e-16 around 0 to 1e-8.
    values[values <= 1e-12 * values[-1]] = 0.0
    root: Floats = (vectors * np.sqrt(values)) @ vectors.T
    return root


def _shares_of_best(draws: Floats) -> Floats:
    """Share of draws (n, N_POINTS) with each candidate best; ties: the first."""
    best = draws.max(axis=0)
    times = np.array([np.count_nonzero(row == best) for row in draws])
    if times.sum() > len(best):
        times = np.bincount(draws.argmax(axis=0), minlength=len(draws))
    shares: Floats = times / len(best)
    return shares


def _equalise(shares: Floats, mean: Floats, covariance: Floats) -> Floats:
    """Equalise exchangeable candidates' shares; a lattice is not perfectly symmetric."""
    levelled = shares.copy()
    scale = np.sqrt(np.abs(np.diagonal(covariance)).max(initial=1e-300))
    level = np.abs(mean[:, np.newaxis] - mean) <= LEVEL * scale
    for i in np.flatnonzero(level.sum(axis=1) > 1):
        alike = [j for j in np.flatnonzero(level[i]) if _exchangeable(covariance, int(i), int(j))]
        levelled[i] = shares[alike].mean()
    return levelled


def _exchangeable(covariance: Floats, i: int, j: int) -> bool:
    """True if swapping i and j leaves the covariance as it is."""
    # A covariance is symmetric: one row holds all that the swap can change.
    other = covariance[j].copy()
    other[i], other[j] = covariance[j, j], covariance[j, i]
    change = np.abs(covariance[i] - other).max()
    return bool(change <= 1e-9 * np.abs(covariance).max())


@lru_cache(maxsize=32)
def _t_draws(n: int, df: float) -> NDArray[np.float64]:
    """Standard multivariate t points, (n, N_POINTS): a lattice and its mirror image."""
    normal, last = _lattice(n)
    stretched = normal * np.sqrt(df / chi_square_quantiles(last, df))[:, np.newaxis]
    points = np.ascontiguousarray(stretched.T)  # rows of which each is read in one go
    return np.concatenate([points, -points], axis=1)


@lru_cache(maxsize=32)
def _lattice(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Half the points: n normal columns and a uniform one for scale.

    Source: the additive recurrence with the roots of x^(d+1) = x + 1, a rank-one lattice of low
    discrepancy (Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992).
    """
    root = 1.5
    for _ in range(60):
        root = (1 + root) ** (1 / (n + 2))
    steps = (1 / root) ** np.arange(1, n + 2)
    half = N_POINTS // 2
    points = np.mod(0.5 + np.outer(np.arange(1, half + 1), steps), 1.0)
    points = np.clip(points, 1e-9, 1 - 1e-9)
    return normal_quantiles(points[:, :n]), points[:, n]


def tiers(apart: NDArray[np.bool_]) -> list[int]:
    """Number groups without significant differences, best first.

    A line joins the group above unless some member of it is above the line beyond noise.

    Parameters
    ----------
    apart : bool array, shape (C, C)
        ``apart[i, j]``: line i is above line j beyond noise; lines in the order of the standings.
    """
    numbers: list[int] = []
    start = 0
    for line in range(len(apart)):
        if apart[start:line, line].any():
            start = line
            numbers.append(numbers[-1] + 1)
        else:
            numbers.append(numbers[-1] if numbers else 1)
    return numbers


def learn_prior(fits: Sequence[AdditiveFit], unit: Unit) -> Prior | None:
    """Learn noise and quality spread from many sessions by marginal likelihood.

    The residual variances follow s² ~ s₀²·F(d, d₀); s₀² and d₀ maximise that likelihood. The
    quality variance is what the effects vary beyond their own noise (method of moments, ≥ 0).

    Returns
    -------
    Prior or None
        None with fewer than `MIN_HISTORY` sessions that have a residual degree of freedom.

    References
    ----------
    Smyth 2004 (see `Uncertainty.of`), section 6, with likelihood in place of moments.
    """
    variances = np.concatenate([fit.residual_variance for fit in fits]) if fits else np.empty(0)
    freedom = np.concatenate([fit.df for fit in fits]) if fits else np.empty(0)
    usable = (freedom >= 1) & (variances > 0)
    if usable.sum() < MIN_HISTORY:
        return None
    noise_variance, noise_df = fit_scaled_f(variances[usable], freedom[usable])
    return Prior(
        noise_variance=noise_variance,
        noise_df=noise_df,
        quality_variance=_quality_variance(fits),
        unit=unit,
        n_sessions=int(usable.sum()),
    )


def _quality_variance(fits: Sequence[AdditiveFit]) -> float:
    """Variance of effects between candidates, less their noise."""
    spread = noise = freedom = 0.0
    for fit in fits:
        usable = (fit.df >= 1) & np.isfinite(fit.residual_variance)
        centred = np.nan_to_num(fit.effects[:, usable])
        present = (fit.components >= 0).sum(axis=1)[fit.pattern[usable]]
        spread += float((centred**2).sum())
        traces = np.trace(fit.inverses, axis1=1, axis2=2)[fit.pattern[usable]]
        noise += float((traces * fit.residual_variance[usable]).sum())
        freedom += float(np.maximum(present - 1, 0).sum())
    return max((spread - noise) / freedom, 0.0) if freedom > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Separation:
    """The smallest gap separable by a council of a size.

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
    """Return the smallest grade gap separable by a council.

    Two answers are told apart as `Uncertainty.separated` does it: by the contrast of the additive
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
    terms = _Terms(authors, level, prior, rho or 0.0)
    own = _gap(min(reviewers, MOST_SIZE), min(candidates, MOST_SIZE), terms)
    noise = TYPICAL_NOISE if prior is None else math.sqrt(prior.noise_variance)
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
    if not math.isfinite(factor) or votes < 2:
        return None
    factor += 2 * rho / (1 - rho)
    noise = TYPICAL_NOISE**2 + ROUNDING_VARIANCE
    if prior is not None:
        noise, df = prior.noise_variance, df + prior.noise_df
    if df < MIN_DF:
        return None
    points = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    variance = factor * noise * (chi_square_quantiles(points, df) / df)
    if prior is None and shared >= 2:
        own = 2 * noise / shared * chi_square_quantiles(points, shared - 1.0) / (shared - 1.0)
        variance = np.sort(np.maximum(variance[:, np.newaxis], own).ravel())[
            N_QUANTILES // 2 :: N_QUANTILES
        ]
    return _smallest_gap(
        np.sqrt(variance) * t_quantile((1 + terms.level) / 2, df), math.sqrt(factor * noise)
    )


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
        float(fit.variance_factors(0)[0, 1]),
        float(fit.df[0]),
        int(graded[:, :2].sum(axis=0).min()),
        int(graded[:, :2].all(axis=1).sum()),
    )
