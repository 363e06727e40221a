"""Tests of contrasts: candidates beyond noise, and tiers.

They come from the additive fit. "Beyond noise" means that another draw of similar reviewers, on the
same answers, would rarely show the reverse. Probabilities come from `witan.core.inference`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.attributes import cached_property
from witan.core.outcome import MIN_VOTES, Prior
from witan.core.profile import Floats, pair_mask
from witan.core.stats.additive import AdditiveFit, pair_variances
from witan.core.stats.distributions import t_quantile
from witan.core.stats.priors import CHANCE_DF, belief_prior

MIN_DF = 2.0
"""Fewest degrees of freedom to separate a pair."""


UNANIMITY = 0.15
"""Standard deviation, in grades, up to which differences are equal apart from reviewers' scales.

Whole grades that differ by the same two points differ by 1.9 and 2.1 on the panel's scale.
"""


UNANIMITY_BALLOTS = 5
"""Most ballots whose equal differences may be chance: five agree one time in 16, six in 32."""


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Evidence about the noise of each pair's difference from its own ballots.

    Parameters
    ----------
    variances : float array, shape (C, C, S)
        `pair_variances`; moderated by the prior where the pair is unanimous, or everywhere.
    n_ballots : int array, shape (C, C, S)
        Ballots that have both candidates.
    is_unanimous : bool array, shape (C, C, S)
        Two to `UNANIMITY_BALLOTS` ballots, all with the same difference in grades up to
        `UNANIMITY`. Three agree by chance one time in four. For ranks, their least variance
        prevents this.
    """

    variances: Floats
    n_ballots: NDArray[np.integer[Any]]
    is_unanimous: NDArray[np.bool_]

    @classmethod
    def of(
        cls, values: Floats, prior: Prior | None, *, is_repeated: bool = False
    ) -> "PairEvidence":
        """Compute the evidence of values (R, C, S); NaN: absent.

        With `is_repeated`, every pair is moderated, because the first of several looks sees few
        ballots.
        """
        variances, n = pair_variances(values)
        unanimous = (n >= MIN_VOTES) & (n <= UNANIMITY_BALLOTS)
        unanimous &= variances <= UNANIMITY**2 / np.maximum(n, 1)
        if prior is None or prior.unit == "ranks":
            unanimous &= False
        if prior is not None:
            moderated = moderate_pairs(variances, n, prior)
            variances = moderated if is_repeated else np.where(unanimous, moderated, variances)
        return cls(variances, n, unanimous)


@dataclass(frozen=True)  # without slots: shared values are cached on first use
class Uncertainty:
    """The fits of S sessions, with prior and shared error if any.

    Parameters
    ----------
    fit
        Fit of the S sessions.
    variance : float array, shape (S,)
        s², moderated by the prior if there is one; NaN without degrees of freedom.
    df : float array, shape (S,)
        Degrees of freedom of `variance`, the prior's included.
    votes : int array, shape (C, S)
        Ballots that the fit has for each candidate.
    shared_variance : float array, shape (S,)
        Variance over s² that the shared error of the reviewers adds to each effect.
    belief_variance, belief_df : float array, shape (S,)
        s² and its degrees of freedom for probabilities, moderated by `belief_prior`; for ranks as
        observed, with the degrees of freedom that `chance_variance` adds.
    belief_design : float array, shape (S,)
        Design effect of the weights, by which the variance of an effect exceeds `belief_variance`
        times that of the fit. It widens no candidate's true spread, so λ is relative to s² alone.
    chance_variance : float array, shape (S,), optional
        Variance of random places, if used instead of a prior for noise.
    pairs
        Evidence of pairs: a contrast's variance must not be below that of its own ballots. None
        with the prior of a history, which is a better estimate of noise than two or three ballots.
    prior_variance : float array, shape (S,)
        s₀² of a public prior; 0: none.
    prior_df
        Degrees of freedom that a public prior is worth; 0: none.
    """

    fit: AdditiveFit
    variance: Floats
    df: Floats
    votes: NDArray[np.integer[Any]]
    shared_variance: Floats
    belief_variance: Floats
    belief_df: Floats
    belief_design: Floats
    chance_variance: Floats | None
    pairs: PairEvidence | None = None
    prior_variance: Floats | float = 0.0
    prior_df: float = 0.0

    @classmethod
    def of(
        cls,
        fit: AdditiveFit,
        votes: NDArray[np.integer[Any]],
        *,
        shared: Floats | float = 0.0,
        prior: Prior | None = None,
        own: PairEvidence | None = None,
        design: Floats | None = None,
    ) -> "Uncertainty":
        """Add the prior and the error shared by all reviewers.

        With a prior, s² becomes the moderated (d₀·s₀² + d·s²)/(d₀ + d) on d + d₀ degrees of
        freedom; s₀² is at least the variance from rounding in the session's data. A shared error ρ
        of all reviewers adds ρ/(1 − ρ)·s² to the variance of every candidate, because shared errors
        do not average out.

        Parameters
        ----------
        votes : int array, shape (C, S)
        shared : float or float array, shape (S,)
            Variance over s² that the shared error adds, ≥ 0.
        design : float array, shape (S,), optional
            `design_effect` of the ballots' weights, ≥ 1: variances are multiplied by it, and the
            degrees of freedom, in quarters, divided by it. A weight says how much a ballot counts,
            not how precise it is.

        References
        ----------
        Smyth, "Linear models and empirical Bayes methods …", Statistical Applications in Genetics
        and Molecular Biology 3 (2004), article 3.
        """
        variance, df = fit.residual_variance, fit.df
        if design is not None:
            # Rounded, so that a rounding error of the weights does not take a quarter.
            quarters = np.floor(np.round(4 * df / design, 6))
            df = np.where(design > 1, quarters / 4, df)
        growth = 1.0 if design is None else design
        learned = prior is not None and prior.source != "public"
        chance = None if learned else fit.chance_variance
        if chance is None:
            belief_variance, belief_df = _moderate(
                variance, df, fit.least_variance, belief_prior(prior)
            )
        else:
            belief_df = np.maximum(df, 0.0) + CHANCE_DF
            belief_variance = np.where(df > 0, df * fit.observed_variance, 0.0) / belief_df
        variance = np.maximum(variance, fit.least_variance)
        variance, df = _moderate(variance, df, fit.least_variance, prior)
        public = None if learned else prior
        known = 0.0 if public is None else np.fmax(public.noise_variance, fit.least_variance)
        return cls(
            fit=fit,
            variance=variance * growth,
            df=df,
            votes=votes,
            # Weights do not change the error that all reviewers share.
            shared_variance=np.full(df.shape, shared / growth),
            belief_variance=belief_variance,
            belief_df=belief_df,
            belief_design=np.full(df.shape, growth),
            chance_variance=chance,
            pairs=None if learned else own,
            prior_variance=known * growth,
            prior_df=0.0 if public is None else public.noise_df,
        )

    @cached_property
    def enough_votes(self) -> NDArray[np.bool_]:
        """Candidates with two votes, shape (C, S)."""
        enough: NDArray[np.bool_] = self.votes >= MIN_VOTES
        return enough

    @cached_property
    def can_tell(self) -> NDArray[np.bool_]:
        """Sessions with enough degrees of freedom and votes to separate a pair, shape (S,)."""
        return np.asarray((self.df >= MIN_DF) & (self.enough_votes.sum(axis=0) >= 2))

    def std_errors(self) -> Floats:
        """Standard error of each effect, (C, S).

        NaN without degrees of freedom, or with one vote.
        """
        own = self.fit.inverses.diagonal(axis1=1, axis2=2)[self.fit.pattern].T
        # A pseudo-inverse may have −1e-17 in place of 0.
        errors: Floats = np.sqrt(self.variance * (np.maximum(own, 0.0) + self.shared_variance))
        return np.where(np.isnan(self.fit.effects) | ~self.enough_votes, np.nan, errors)

    def contrast_variances(self) -> Floats:
        """Variance of effect[i] − effect[j], (C, C, S); NaN: incomparable.

        The shared error of a unanimous pair is a share of its own moderated noise, n/2 times the
        variance of its difference.
        """
        factors = self.fit.variance_factors()[self.fit.pattern].transpose(1, 2, 0)
        own = self._noise_of_pairs() * factors
        noise = self.variance
        if self.pairs is not None:
            own = np.maximum(own, self.pairs.variances)
            moderated = self.pairs.variances * self.pairs.n_ballots / 2
            noise = np.where(self.pairs.is_unanimous, np.fmax(noise, moderated), noise)
        together = 2 * self.shared_variance * noise
        above = pair_mask(len(factors))
        total: Floats = own + together * (above | above.swapaxes(0, 1))
        return total

    def contrast_df(self) -> Floats:
        """Degrees of freedom of each contrast, (C, C, S).

        It is `df`, unless a public prior is used and the pair's own ballots do not show its noise.
        Then, of the d that residuals add to the prior's d₀, a pair on fewer than two ballots keeps
        its share d·2/C, and a unanimous pair keeps nothing.
        """
        n_candidates, n_sessions = self.votes.shape
        df = self._by_pair(lambda df: df)
        return np.broadcast_to(df, (n_candidates, n_candidates, n_sessions))

    def _noise_of_pairs(self) -> Floats:
        """s² of each contrast, (C, C, S) or (S,).

        A pair on fewer than two ballots uses only its share of the residuals, as in `contrast_df`,
        and at least s².
        """
        if self.pairs is None or not self.prior_df:
            return self.variance
        known = self.prior_df * self.prior_variance
        residual = np.maximum(self.df * self.variance - known, 0.0)
        alone = (known + residual * 2 / self._n_candidates) / self._df_alone
        alone = np.fmax(alone, self.variance)
        return np.where(self.pairs.n_ballots < MIN_VOTES, alone, self.variance)

    @cached_property
    def _n_candidates(self) -> NDArray[np.integer[Any]]:
        """Candidates with votes, at least two, (S,)."""
        return np.asarray(np.maximum((self.votes > 0).sum(axis=0), 2))

    @cached_property
    def _df_alone(self) -> Floats:
        """Degrees of freedom of a pair on fewer than two ballots, (S,)."""
        share: Floats = np.maximum(self.df - self.prior_df, 0.0) * 2 / self._n_candidates
        return self.prior_df + share

    def _by_pair(self, function: Callable[[Floats], Floats]) -> Floats:
        """Apply a function of degrees of freedom to those of each contrast."""
        if self.pairs is None or not self.prior_df:
            return function(self.df)
        share, least = (np.minimum(df, self.df) for df in (self._df_alone, self.prior_df))
        usual, share, prior_alone = function(np.array([self.df, share, least]))
        alone = np.where(self.pairs.n_ballots < MIN_VOTES, share, usual)
        return np.where(self.pairs.is_unanimous, prior_alone, alone)

    def separate_pairs(self, level: float) -> NDArray[np.bool_]:
        """Find pairs with i above j beyond noise, (C, C, S).

        The test is a two-sided Student's t, for candidates of two votes or more.
        """
        effects, enough = self.fit.effects, self.enough_votes
        if len(effects) < 2:  # a text judged alone
            return np.zeros((len(effects), *effects.shape), dtype=np.bool_)
        bar = self._by_pair(lambda df: _bars(df, level))
        with np.errstate(invalid="ignore"):
            difference = effects[:, np.newaxis] - effects
            variance = self.contrast_variances()
            sure = (difference > 0) & (difference**2 > bar**2 * variance)
        apart: NDArray[np.bool_] = sure & enough[:, np.newaxis] & enough
        return apart


def _bars(df: Floats, level: float) -> Floats:
    """Two-sided quantiles of Student's t; ∞ under `MIN_DF`."""
    bars = np.full(df.shape, np.inf)
    for each in set(df[df >= MIN_DF].tolist()):
        bars[df == each] = t_quantile((1 + level) / 2, each)
    return bars


def _moderate(
    variance: Floats, df: Floats, least: Floats, prior: Prior | None
) -> tuple[Floats, Floats]:
    """Moderate s² by a prior: mean by degrees of freedom, and sum."""
    if prior is None:
        return variance, df
    known = np.where(df > 0, df * variance, 0.0)
    total = np.maximum(df, 0.0) + prior.noise_df
    return (prior.noise_df * np.fmax(prior.noise_variance, least) + known) / total, total


def moderate_pairs(own: Floats, n_ballots: NDArray[np.integer[Any]], prior: Prior) -> Floats:
    """Moderate the variances of pairs by a prior, shape (C, C, S).

    Two or three ballots that agree by chance show no variance of a pair. With n ballots on the
    pair, and s₀² and d₀ of the prior,

        variance = (d₀·2·s₀² / n + (n − 1)·own) / (d₀ + n − 1).
    """
    freedom = np.maximum(n_ballots - 1, 0)
    borrowed = prior.noise_df * 2 * prior.noise_variance / np.maximum(n_ballots, 1)
    moderated: Floats = (borrowed + freedom * own) / (prior.noise_df + freedom)
    return moderated


def design_effect(weights: Floats | None, cells: NDArray[np.bool_]) -> Floats | None:
    """Compute Kish's design effect of unequal weights on a mean's variance.

    It is R·Σw²/(Σw)², of shape (S,); None: there are no weights.

    Parameters
    ----------
    weights : float array, shape (R, S), optional
        Ballots of weight 0 do not count.
    cells : bool array, shape (R, C, S)
        The votes; a ballot with a single one compares nothing and does not count.

    References
    ----------
    Kish, Survey Sampling, 1965, section 11.7.
    """
    if weights is None:
        return None
    weights = np.where(np.count_nonzero(cells, axis=1) > 1, weights, 0.0)
    shares = weights / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    effect: Floats = (weights > 0).sum(axis=0) * (shares**2).sum(axis=0)
    # Equal weights have no effect apart from rounding.
    return np.where(effect > 1 + 1e-9, effect, 1.0)


def pooled_errors(errors: Floats, n_votes: NDArray[Any]) -> tuple[Floats, Floats]:
    """Errors of mean scores from the pooled variance of a vote.

    The variance of a candidate's own few votes is uncertain: intervals from it cover 86% instead of
    95% at the ends of a bounded scale. Pooled, with n[c] votes and error e[c] of candidate c,

        v = Σ (n[c] − 1)·n[c]·e[c]² / Σ (n[c] − 1),    error[c] = √(v / n[c]),

    on Σ (n[c] − 1)·(C − 1)/C degrees of freedom, since the scores of a ballot depend on each other.
    For votes of unequal weight, n is the equivalent number of equal votes.

    Parameters
    ----------
    errors : float array, shape (C, S)
        Sample standard deviation of the votes over √votes; NaN: none.
    n_votes : int or float array, shape (C, S)

    Returns
    -------
    errors : float array, shape (C, S)
        NaN where there was none.
    df : float array, shape (S,)
        0 where nothing is known.
    """
    known = ~np.isnan(errors) & (n_votes > 1)
    freedom = np.where(known, n_votes - 1, 0)
    total = freedom.sum(axis=0)
    own = np.where(known, errors, 0.0)
    variance = (freedom * n_votes * own**2).sum(axis=0) / np.where(total > 0, total, 1)
    pooled = np.where(known, np.sqrt(variance / np.maximum(n_votes, 1)), np.nan)
    n_known = known.sum(axis=0)
    return pooled, total * np.maximum(n_known - 1, 1) / np.maximum(n_known, 1)


def tiers(apart: NDArray[np.bool_]) -> NDArray[np.integer[Any]]:
    """Number the groups of lines, best first, shape (C, S).

    A group ends where every line so far is above every later line beyond noise, so that no boundary
    puts a candidate below one that it may be better than.

    Parameters
    ----------
    apart : bool array, shape (C, C, S)
        ``apart[i, j]``: line i is above line j beyond noise; lines in the order of the standings.
    """
    n_lines = len(apart)
    # Per line, the first place from which it is above all others; at most the last.
    surely_below = n_lines - apart[:, ::-1].argmin(axis=1) if n_lines else apart.sum(axis=1)
    latest = np.maximum.accumulate(surely_below, axis=0)
    numbers = np.ones(latest.shape, dtype=np.int64)
    lines = np.arange(1, n_lines).reshape(-1, *[1] * (latest.ndim - 1))
    numbers[1:] += (latest[:-1] <= lines).cumsum(axis=0)
    return numbers
