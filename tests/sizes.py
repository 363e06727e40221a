"""How often a leader is declared, wrongly and rightly: the figures of docs/benchmarks.md."""

from collections.abc import Callable

import numpy as np

from simulation import council
from witan.core.outcome import Prior
from witan.core.profile import Profile
from witan.core.rules import RULES
from witan.core.stats.additive import AdditiveFit, adjusted_grades, fit_grades, fit_ranks
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import Uncertainty, learn_prior

__all__ = ["declared_and_found", "history", "ways_to_tell"]

TIED_AT_THE_TOP = (1.0, 1.0, -1.0, -2.0, -2.0)
CLEAR_LEADER = (3.0, 0.0, 0.0, 0.0, 0.0)

Told = tuple[np.ndarray, np.ndarray]
"""Whether the first line is told apart from the second, and who is first, per session."""


def declared_and_found(
    told: Callable[[Profile], Told],
    *,
    reviewers: int,
    sessions: int,
    rng: np.random.Generator,
    shared: float = 0.0,
) -> tuple[float, float]:
    """In percent: a leader declared between equals, and a clear leader found."""
    drawn = {"reviewers": reviewers, "sessions": sessions, "rng": rng, "shared": shared}
    falsely, _ = told(council(TIED_AT_THE_TOP, **drawn))
    apart, first = told(council(CLEAR_LEADER, **drawn))
    return 100 * falsely.mean(), 100 * (apart & (first == 0)).mean()


def ways_to_tell(prior: Prior) -> dict[str, Callable[[Profile], Told]]:
    """What may tell two lines apart, by its name in the table."""
    return {
        "overlap of intervals (ADR-010)": _by_overlap,
        "contrast on grades (default)": lambda profile: _by_contrast(
            fit_grades(profile), adjusted_grades(profile)
        ),
        "contrast on ranks": lambda profile: _by_contrast(fit_ranks(profile), -profile.ranks),
        "contrast on grades, moderated": lambda profile: _by_contrast(
            fit_grades(profile), prior=prior
        ),
        "P(best) ≥ 0.95 with a history": lambda profile: _by_p_best(profile, prior),
        "contrast on grades, ρ unknown": lambda profile: _by_contrast(
            fit_grades(profile), adjusted_grades(profile)
        ),
        "contrast on grades, ρ = 0.5": lambda profile: _by_contrast(
            fit_grades(profile), adjusted_grades(profile), rho=0.5
        ),
    }


def history(reviewers: int, rng: np.random.Generator) -> Prior:
    """A prior learned from 400 sessions of councils of this size."""
    past = [
        fit_grades(council(rng.normal(0, 1, 5), reviewers=reviewers, sessions=20, rng=rng))
        for _ in range(20)
    ]
    prior = learn_prior(past, "grades")
    assert prior is not None
    return prior


def _by_overlap(profile: Profile) -> Told:
    scores = RULES["normalized_scores"](profile)
    order = np.argsort(-scores.score, axis=0, kind="stable")
    score = np.take_along_axis(scores.score, order, 0)
    error = np.take_along_axis(scores.std_error, order, 0)
    return score[0] - 1.96 * error[0] >= score[1] + 1.96 * error[1], order[0]


def _by_contrast(
    fit: AdditiveFit,
    values: np.ndarray | None = None,
    *,
    prior: Prior | None = None,
    rho: float = 0.0,
) -> Told:
    """All sessions at once: they share one pattern of ballots, hence freedom and factors."""
    first, second = np.argsort(-fit.effects, axis=0, kind="stable")[:2]
    sessions = np.arange(len(first))
    variance, df = fit.residual_variance, float(fit.df[0])
    if prior is not None:
        variance = (prior.noise_df * prior.noise_variance + df * variance) / (prior.noise_df + df)
        df += prior.noise_df
    factor = fit.variance_factors(0)[first, second] + 2 * rho / (1 - rho)
    contrast = variance * factor
    if values is not None:
        own = values[:, first, sessions] - values[:, second, sessions]
        n = (~np.isnan(own)).sum(axis=0)
        spread = np.nansum((own - np.nansum(own, axis=0) / np.maximum(n, 1)) ** 2, axis=0)
        contrast = np.fmax(contrast, spread / np.maximum(n - 1, 1) / np.maximum(n, 1))
    difference = fit.effects[first, sessions] - fit.effects[second, sessions]
    return difference > t_quantile(0.975, df) * np.sqrt(contrast), first


def _by_p_best(profile: Profile, prior: Prior) -> Told:
    fit, ballots = fit_grades(profile), profile.graded.sum(axis=0)
    everyone = np.ones(profile.n_candidates, dtype=bool)
    best = np.array(
        [
            Uncertainty.of(fit, s, ballots[:, s], prior=prior).p_best(everyone)
            for s in range(profile.n_sessions)
        ]
    )
    return best.max(axis=1) >= 0.95, best.argmax(axis=1)
