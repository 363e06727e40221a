"""Priors of reviewers' noise: from judges elsewhere, or from a history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from witan.core.outcome import Prior, Unit
from witan.core.profile import Floats
from witan.core.stats.additive import AdditiveFit
from witan.core.stats.distributions import fit_scaled_f

MIN_HISTORY = 50
"""Fewest sessions to learn a prior from."""

PUBLIC_RHO: Mapping[Unit, float] = MappingProxyType({"grades": 0.2, "ranks": 0.12})
"""Assumed share of the noise that models have in common, unless it was measured.

Real sets show .18 to .42 in grades (see docs/uncertainty.md). These keep the size of the test below
8% if .3 is shared and two equals are far ahead, also for juries of nine; ranks then hide about half
of it. If others are close, it is up to 9% for grades, and 19% for ranks (see docs/benchmarks.md).
"""

GRADE_NOISE, GRADE_DF = 1.1, 3.0
"""Variance of a grade of 1 to 10 around the panel's, and its degrees of freedom as evidence.

Estimated as `learn_prior` does. Two judges of WildBench, of one maker: .26 on 6 degrees of freedom;
panels of four out of the 33 judges of the LLMJudge benchmark, grades of 0 to 3 converted: .9 to 1.2
on 3. This is the cautious end of these.
"""

BELIEF_DF = 5.0
"""Noise of a grade for probabilities: between the two sets above.

A test must rarely err, so it uses the cautious end; a probability must be right on average.
"""

RANK_NOISE, RANK_SHARE, RANK_DF = 0.35, 0.25, 4.0
"""Noise of a rank among C candidates: .35 + .25·(C² − 1)/12, where (C² − 1)/12 is pure chance.

The same sets, ranked: .52 to .55 at three candidates, .70 to .79 at five, 1.3 to 1.4 at eight, 3.4
to 4.9 at fifteen, on 3 degrees of freedom and more.
"""

CHANCE_DF = 6.0
"""Degrees of freedom for the noise of ranks in probabilities, given λ.

Quality and noise add up to the variance V of random places: given λ, V/(1 + λ) is noise.
"""


SEVERITY = 0.7
"""Variance of reviewers' severity, in grades of 1 to 10 squared.

It cancels where texts are compared, but not in the grade of a single text. The 33 judges of the
LLMJudge benchmark differ by .67 (grades of 0 to 3, converted), the two judges of WildBench, of one
maker, by .19. This is the cautious end.
"""


@dataclass(frozen=True, slots=True)
class Severity:
    """Offsets of reviewers' grades from those of others, learned from other sessions.

    Parameters
    ----------
    reviewers
        The reviewers.
    offsets
        Offset of each from similar reviewers, in grades of 1 to 10.
    covariance
        Covariance of the offsets.
    noise
        Variance of a grade around the panel's without these offsets.
    n_sessions
        Number of sessions it was learned from.
    """

    reviewers: tuple[str, ...]
    offsets: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    noise: float
    n_sessions: int

    def of(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Return reviewers' offsets and covariance; 0 and `SEVERITY` for unknown reviewers."""
        at = {name: number for number, name in enumerate(self.reviewers)}
        known = [at.get(name, len(at)) for name in names]
        offsets = np.append(self.offsets, 0.0)[known]
        whole = np.zeros((len(at) + 1, len(at) + 1))
        whole[:-1, :-1] = np.array(self.covariance).reshape(len(at), len(at))
        covariance = whole[np.ix_(known, known)]
        unknown = np.array([name not in at for name in names], dtype=np.bool_)
        covariance[unknown, unknown] = SEVERITY
        return offsets, covariance

    def by_seat(self, models: Mapping[str, str]) -> "Severity":
        """The severity of seats, from that of their models."""
        seats = tuple(seat for seat, model in models.items() if model in self.reviewers)
        offsets, covariance = self.of([models[seat] for seat in seats])
        rows = tuple(map(tuple, covariance.tolist()))
        return replace(self, reviewers=seats, offsets=tuple(offsets.tolist()), covariance=rows)


@lru_cache(maxsize=256)
def public_prior(unit: Unit, n_candidates: int) -> Prior:
    """Return the noise of published judges, worth few degrees of freedom."""
    if unit == "grades":
        noise, df = GRADE_NOISE, GRADE_DF
    else:
        noise, df = RANK_NOISE + RANK_SHARE * (n_candidates**2 - 1) / 12, RANK_DF
    return Prior(noise, df, None, unit, 0, source="public")


@lru_cache(maxsize=256)
def belief_prior(prior: Prior | None) -> Prior | None:
    """Adapt the prior of tests to probabilities, with `BELIEF_DF` for grades."""
    if prior is None or prior.source != "public" or prior.unit != "grades":
        return prior
    return replace(prior, noise_df=BELIEF_DF)


def prior_of(
    prior: Prior | str | None, unit: Unit, n_candidates: int, *, is_paired: bool = False
) -> Prior | None:
    """Find a setting's prior for a fit: its own, otherwise the public one.

    There is no public prior for the noise of single pairs.
    """
    if prior is None:
        return None
    prior_of_shape = public_prior(unit, n_candidates)
    if isinstance(prior, Prior) and prior.unit == unit:
        prior_of_shape = prior
    return None if is_paired and prior_of_shape.source == "public" else prior_of_shape


def rho_of(rho: float | str | None, unit: Unit) -> float:
    """Find a setting's shared error: a number, none, or public default."""
    if rho is None:
        return 0.0
    return rho if isinstance(rho, float | int) else PUBLIC_RHO[unit]


def learn_prior(fits: Sequence[AdditiveFit], unit: Unit) -> Prior | None:
    """Learn noise and quality spread from many sessions by marginal likelihood.

    The residual variances follow s² ~ s₀²·F(d, d₀); s₀² and d₀ maximise that likelihood. The
    quality variance is that of the effects beyond their own noise (method of moments, ≥ 0).

    Returns
    -------
    Prior or None
        None with fewer than `MIN_HISTORY` sessions that have a residual degree of freedom.

    References
    ----------
    Smyth 2004 (see `Uncertainty.of`), section 6, with likelihood instead of moments.
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
