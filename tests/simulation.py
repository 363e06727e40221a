"""Simulated councils: known quality, reviewers with their own level, spread and noise."""

from collections.abc import Sequence

import numpy as np

from elections import mean_ranks
from witan.core.profile import Profile


def council(
    quality: Sequence[float],
    *,
    reviewers: int,
    sessions: int,
    rng: np.random.Generator,
    shared: float = 0.0,
    spreads: float = 0.25,
    noise: np.ndarray | float = 1.0,
    recused: bool = True,
    rounded: bool = True,
) -> Profile:
    """Grades = level + spread · (quality + noise), rounded to 1–10, own answer recused.

    Reviewers differ in level (sd 1 grade point) and spread (log sd `spreads`). `shared` is the
    share of the noise variance that all reviewers of an answer have in common. `noise` is its
    standard deviation, one for all sessions or one each.
    """
    shape = (reviewers, len(quality), sessions)
    level = rng.normal(0, 1, (reviewers, 1, sessions))
    spread = np.exp(rng.normal(0, spreads, (reviewers, 1, sessions)))
    errors = np.sqrt(1 - shared) * rng.normal(size=shape)
    errors += np.sqrt(shared) * rng.normal(size=(1, len(quality), sessions))
    truth = np.asarray(quality, dtype=float)[np.newaxis, :, np.newaxis]
    grades = 6 + level + spread * (truth + noise * errors)
    if rounded:
        grades = np.clip(np.rint(grades), 1, 10)
    if recused:
        for own in range(min(reviewers, len(quality))):
            grades[own, own] = np.nan
    return Profile.from_ranks(mean_ranks(-grades), grades=grades)
