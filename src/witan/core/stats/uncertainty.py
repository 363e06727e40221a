"""Tests of a session's contrasts: candidates beyond noise, and tiers.

They come from the additive fit. "Beyond noise" means: another draw of reviewers like these, on the
same answers, would hardly show the reverse. Probabilities come from `witan.core.stats.posterior`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import MIN_VOTES, Prior
from witan.core.profile import Floats
from witan.core.stats.additive import AdditiveFit
from witan.core.stats.distributions import t_quantile
from witan.core.stats.priors import belief_prior

MIN_DF = 2.0
"""Under two degrees of freedom nothing is told apart."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The fits of S sessions, with prior and shared error if any.

    Parameters
    ----------
    fit
        Of the S sessions.
    variance : float array, shape (S,)
        s², moderated by the prior where there is one; NaN without freedom.
    df : float array, shape (S,)
        Degrees of freedom of `variance`, the prior's included.
    votes : int array, shape (C, S)
        Ballots that the fit has for each candidate.
    shared_variance : float array, shape (S,)
        Variance over s² that the shared error of the reviewers adds to each effect.
    belief_variance, belief_df : float array, shape (S,)
        s² and its degrees of freedom for probabilities, moderated by `belief_prior`.
    pair_variances : float array, shape (C, C, S), optional
        `pair_variances`: a contrast's variance is not taken to be less than its own ballots show.
        Not used with the prior of a history, which knows the noise better than two or three of
        them.
    """

    fit: AdditiveFit
    variance: Floats
    df: Floats
    votes: NDArray[np.integer[Any]]
    shared_variance: Floats
    belief_variance: Floats
    belief_df: Floats
    pair_variances: Floats | None = None

    @classmethod
    def of(
        cls,
        fit: AdditiveFit,
        votes: NDArray[np.integer[Any]],
        *,
        shared: Floats | float = 0.0,
        prior: Prior | None = None,
        own: Floats | None = None,
        design: Floats | float = 1.0,
    ) -> "Uncertainty":
        """Add the prior's knowledge and the error shared by all reviewers.

        With a prior, s² becomes the moderated (d₀·s₀² + d·s²)/(d₀ + d) on d + d₀ degrees of
        freedom; s₀² is at least what the rounding of the session's data explains. A shared error ρ
        of all reviewers adds ρ/(1 − ρ)·s² to the variance of every candidate: what they get wrong
        together does not average out.

        Parameters
        ----------
        votes : int array, shape (C, S)
        shared : float or float array, shape (S,)
            Variance over s² that the shared error adds, ≥ 0.
        own : float array, shape (C, C, S), optional
        design : float or float array, shape (S,)
            `design_effect` of the ballots' weights, ≥ 1: variances grow by it, and what is left of
            the freedom, in quarters, shrinks by it. A weight says how much a ballot is to count,
            not how exact it is.

        References
        ----------
        Smyth, "Linear models and empirical Bayes methods …", Statistical Applications in Genetics
        and Molecular Biology 3 (2004), article 3.
        """
        variance, df = fit.residual_variance, fit.df
        df = np.where(np.asarray(design) > 1, np.floor(4 * df / design) / 4, df)
        belief_variance, belief_df = _moderate(
            variance, df, fit.least_variance, belief_prior(prior)
        )
        variance, df = _moderate(variance, df, fit.least_variance, prior)
        learned = prior is not None and prior.source != "public"
        # What all get wrong together does not depend on who of them counts for more.
        extra = np.broadcast_to(np.asarray(shared, dtype=np.float64) / design, df.shape)
        return cls(
            fit=fit,
            variance=variance * design,
            df=df,
            votes=votes,
            shared_variance=extra,
            belief_variance=belief_variance * design,
            belief_df=belief_df,
            pair_variances=None if learned else own,
        )

    @property
    def enough_votes(self) -> NDArray[np.bool_]:
        """Candidates with two votes, shape (C, S)."""
        enough: NDArray[np.bool_] = self.votes >= MIN_VOTES
        return enough

    @property
    def can_tell(self) -> NDArray[np.bool_]:
        """Sessions with freedom and votes enough to separate a pair, shape (S,)."""
        return np.asarray((self.df >= MIN_DF) & (self.enough_votes.sum(axis=0) >= 2))

    def std_errors(self) -> Floats:
        """Standard error of each effect, (C, S).

        NaN without freedom, or with one vote.
        """
        own = np.diagonal(self.fit.inverses, axis1=1, axis2=2)[self.fit.pattern].T
        # A pseudo-inverse may leave −1e-17 where there is nothing.
        errors: Floats = np.sqrt(self.variance * (np.maximum(own, 0.0) + self.shared_variance))
        return np.where(np.isnan(self.fit.effects) | ~self.enough_votes, np.nan, errors)

    def contrast_variances(self) -> Floats:
        """Variance of effect[i] − effect[j], (C, C, S); NaN: incomparable."""
        factors = np.moveaxis(self.fit.variance_factors()[self.fit.pattern], 0, 2)
        own = self.variance * factors
        if self.pair_variances is not None:
            own = np.where(np.isnan(own), np.nan, np.fmax(own, self.pair_variances))
        together = 2 * self.shared_variance * self.variance
        different = ~np.eye(len(factors), dtype=np.bool_)
        total: Floats = own + together * different[:, :, np.newaxis]
        return total

    def separate_pairs(self, level: float) -> NDArray[np.bool_]:
        """Find pairs with i above j beyond noise, (C, C, S).

        The test is a two-sided Student's t, for candidates of two votes or more.
        """
        effects, enough = self.fit.effects, self.enough_votes
        bar = np.full(self.df.shape, np.inf)
        for df in set(self.df[self.df >= MIN_DF].tolist()):
            bar[self.df == df] = t_quantile((1 + level) / 2, df)
        with np.errstate(invalid="ignore"):
            difference = effects[:, np.newaxis] - effects
            variance = self.contrast_variances()
            sure = (difference > 0) & (difference**2 > bar**2 * variance)
        apart: NDArray[np.bool_] = sure & enough[:, np.newaxis] & enough
        return apart


def _moderate(
    variance: Floats, df: Floats, least: Floats, prior: Prior | None
) -> tuple[Floats, Floats]:
    """Moderate s² by a prior: the mean of both by their degrees of freedom, and their sum."""
    if prior is None:
        return variance, df
    known = np.where(df > 0, df * variance, 0.0)
    total = np.maximum(df, 0.0) + prior.noise_df
    return (prior.noise_df * np.fmax(prior.noise_variance, least) + known) / total, total


def moderate_pairs(own: Floats, values: Floats, prior: Prior) -> Floats:
    """Moderate the variances of pairs by a prior, shape (C, C, S).

    Two or three ballots that agree by chance show no variance of a pair. With n of them on it, and
    s₀² and d₀ of the prior,

        variance = (d₀·2·s₀² / n + (n − 1)·own) / (d₀ + n − 1).

    Parameters
    ----------
    own : float array, shape (C, C, S)
        `pair_variances` of the values.
    values : float array, shape (R, C, S)
        NaN where a ballot has none.
    """
    present = (~np.isnan(values)).astype(np.float64)
    shared = np.einsum("ris,rjs->ijs", present, present)
    freedom = np.maximum(shared - 1, 0.0)
    borrowed = prior.noise_df * 2 * prior.noise_variance / np.maximum(shared, 1.0)
    moderated: Floats = (borrowed + freedom * own) / (prior.noise_df + freedom)
    return moderated


def design_effect(weights: Floats | None) -> Floats | float:
    """Compute Kish's design effect of unequal weights on a mean's variance.

    It is R·Σw²/(Σw)², of shape (S,).

    Parameters
    ----------
    weights : float array, shape (R, S), optional
        Ballots of weight 0 are none.

    References
    ----------
    Kish, Survey Sampling, 1965, section 11.7.
    """
    if weights is None:
        return 1.0
    total = np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    effect: Floats = (weights > 0).sum(axis=0) * (weights**2).sum(axis=0) / total**2
    # Equal weights have no effect, whatever their sums leave behind.
    return np.where(effect > 1 + 1e-9, effect, 1.0)


def tiers(apart: NDArray[np.bool_]) -> NDArray[np.integer[Any]]:
    """Number the groups of lines, best first, shape (C, S).

    A group ends where every line so far is above every line that follows beyond noise, so no
    boundary puts a candidate below one that it may well be better than.

    Parameters
    ----------
    apart : bool array, shape (C, C, S)
        ``apart[i, j]``: line i is above line j beyond noise; lines in the order of the standings.
    """
    n_lines = len(apart)
    # From which line on each line is above all others, at the latest at the end.
    surely_below = n_lines - np.argmin(apart[:, ::-1], axis=1) if n_lines else apart.sum(axis=1)
    latest = np.maximum.accumulate(surely_below, axis=0)
    numbers = np.ones(latest.shape, dtype=np.int64)
    lines = np.arange(1, n_lines).reshape(-1, *[1] * (latest.ndim - 1))
    numbers[1:] += np.cumsum(latest[:-1] <= lines, axis=0)
    return numbers
