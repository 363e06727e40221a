"""How noisy sessions were, as numbers to keep, and the prior that is learned from them."""

from collections.abc import Iterable, Sequence

import numpy as np

from witan.core.additive import AdditiveFit
from witan.core.counted import Fitted
from witan.core.entries import Noise
from witan.core.outcome import Prior, Unit
from witan.core.scaled_f import fit_scaled_f
from witan.core.uncertainty import MIN_HISTORY

__all__ = ["learn_prior_from_noise", "noise_of"]


def noise_of(fits: Sequence[Fitted]) -> list[Noise | None]:
    """What each fit says of its session's noise.

    With e[c] the centred effects of n candidates, s² the residual variance and L⁺ the
    pseudo-inverse of the Laplacian,

        effect_variance = (Σ e[c]² − s²·trace L⁺) / (n − 1),

    the moment estimate of the variance between candidates, which may be negative. It is unbiased
    but for the scales that `fit_grades` estimates.

    Returns
    -------
    list of Noise or None
        Aligned with `fits`; None without a residual degree of freedom.
    """
    read: dict[int, list[Noise | None]] = {}
    found = []
    for fit, at, unit in fits:
        if id(fit) not in read:
            read[id(fit)] = _all_of(fit, unit)
        found.append(read[id(fit)][at])
    return found


def _all_of(fit: AdditiveFit, unit: Unit) -> list[Noise | None]:
    """The noise of every session of a batch."""
    usable = (fit.df >= 1) & (fit.residual_variance > 0)
    variance = np.where(usable, fit.residual_variance, 0.0)
    present = (fit.components >= 0).sum(axis=1)[fit.pattern]
    spread = np.nan_to_num(fit.effects**2).sum(axis=0)
    traces = np.trace(fit.inverses, axis1=1, axis2=2)[fit.pattern]
    excess = (spread - variance * traces) / np.maximum(present - 1, 1)
    columns = (usable, present, variance, fit.df, excess)
    return [
        Noise(unit, s2, df, beyond if n > 1 else None) if known else None
        for known, n, s2, df, beyond in zip(*(held.tolist() for held in columns), strict=True)
    ]


def learn_prior_from_noise(kept: Iterable[Noise], unit: Unit) -> Prior | None:
    """Learn noise and quality spread from what sessions left, as `learn_prior` does from fits.

    The noise is the same to the last digit. The quality variance is the mean of the sessions'
    effect variances, or 0 where that is negative. `learn_prior` pools them by their degrees of
    freedom instead, which is the same where all sessions have as many candidates; else both
    estimate the same.

    Returns
    -------
    Prior or None
        None with fewer than `MIN_HISTORY` sessions of the unit.

    References
    ----------
    See `witan.core.uncertainty.learn_prior`.
    """
    usable = [n for n in kept if n.unit == unit and n.df >= 1 and n.variance > 0]
    if len(usable) < MIN_HISTORY:
        return None
    noise_variance, noise_df = fit_scaled_f(
        np.array([noise.variance for noise in usable]), np.array([noise.df for noise in usable])
    )
    beyond = [n.effect_variance for n in usable if n.effect_variance is not None]
    return Prior(
        noise_variance=noise_variance,
        noise_df=noise_df,
        quality_variance=max(float(np.mean(beyond)), 0.0) if beyond else 0.0,
        unit=unit,
        n_sessions=len(usable),
    )
