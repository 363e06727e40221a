"""The lines of an outcome."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import Confidence, Interval, Standing
from witan.core.profile import Floats
from witan.core.rules import RULES
from witan.core.stats.distributions import t_quantile
from witan.core.stats.uncertainty import tiers
from witan.core.view import View, known_all

__all__ = ["pooled_errors", "standings"]

BANDS = ((8.0, "excellent"), (6.0, "good"), (4.0, "fair"))


def standings(view: View, apart: NDArray[np.bool_]) -> tuple[Standing, ...]:
    """The lines, best first."""
    tier = tiers(apart)
    intervals, coverages = _intervals(view), _coverages(view)
    best, grades = known_all(view.p_best()), known_all(_mean_grades(view))
    scores, errors = known_all(view.score), known_all(view.std_error)
    effects = known_all(view.uncertainty.effects) if view.uncertainty else [None] * len(best)
    votes, wins, ranks = view.votes.tolist(), view.wins.tolist(), view.ranks.tolist()
    alone = len(view.electorate.reviewers) < 2
    lines = []
    for line, c in enumerate(view.order):
        following = line + 1
        tied = following < len(view.order) and not apart[line, following]
        lines.append(
            Standing(
                candidate=view.names[c],
                rank=ranks[c],
                score=scores[c],
                std_error=errors[c],
                interval=intervals[c],
                votes=votes[c],
                wins=wins[c],
                coverage=coverages[c],
                confidence=_confidence(coverages[c], alone=alone),
                tied_with_next=tied and bool(votes[c] and votes[view.order[following]]),
                p_best=best[c],
                effect=effects[c],
                tier=tier[line],
                mean_grade=grades[c],
                band=_band(grades[c]),
                failed=view.electorate.failed.get(view.names[c], ()),
                details=view.details(c),
            )
        )
    return tuple(lines)


def pooled_errors(errors: Floats, n_votes: NDArray[np.integer[Any]]) -> tuple[Floats, float]:
    """Errors of mean scores from the variance of a vote pooled over all candidates of a session.

    A candidate's own few votes know their variance badly: intervals from it cover 86 % instead of
    95 % at the ends of a bounded scale. Pooled, with n[c] votes and error e[c] of candidate c,

        v = Σ (n[c] − 1)·n[c]·e[c]² / Σ (n[c] − 1),    error[c] = √(v / n[c]),

    on Σ (n[c] − 1)·(C − 1)/C degrees of freedom, since the scores of a ballot hang together.

    Parameters
    ----------
    errors : float array, shape (C,)
        Sample standard deviation of the votes over √votes; NaN: none.
    n_votes : int array, shape (C,)

    Returns
    -------
    errors : float array, shape (C,)
        NaN where there was none.
    df : float
        0 where nothing is known.
    """
    known = ~np.isnan(errors) & (n_votes > 1)
    freedom = np.where(known, n_votes - 1, 0)
    if not freedom.sum():
        return np.full(len(errors), np.nan), 0.0
    own = np.where(known, errors, 0.0)
    variance = (freedom * n_votes * own**2).sum() / freedom.sum()
    pooled = np.sqrt(variance / np.maximum(n_votes, 1))
    share = max(known.sum() - 1, 1) / known.sum()
    return np.where(known, pooled, np.nan), float(freedom.sum() * share)


def _intervals(view: View) -> list[Interval | None]:
    """Scores by Student's t, or the normal where the error is asymptotic."""
    rule = RULES["borda"] if view.fell_back() else view.rule
    errors, df = view.std_error, math.inf
    if rule.error == "fit":
        df = view.uncertainty.df if view.uncertainty else 0.0
    elif rule.error != "asymptotic":
        n = view.votes
        sample = np.sqrt(n / np.maximum(n - 1, 1)) if rule.error == "population" else 1.0
        errors, df = pooled_errors(errors * sample, n)
    if not df > 0:
        return [None for _ in view.names]
    level = view.settings.level
    reach = t_quantile(1 - (1 - level) / 2, df) * errors
    least, most = rule.bounds
    intervals: list[Interval | None] = []
    for score, half in zip(view.score, reach, strict=True):
        low, high = max(score - half, min(least, score)), min(score + half, max(most, score))
        known = half > 0 and not np.isnan(score)
        intervals.append(Interval(float(low), float(high), level) if known else None)
    return intervals


def _coverages(view: View) -> list[float]:
    return [
        min(1.0, votes / offered) if offered else 0.0
        for votes, offered in zip(view.votes.tolist(), view.electorate.offered, strict=True)
    ]


def _confidence(coverage: float, *, alone: bool) -> Confidence:
    if alone or coverage < 0.5:
        return "low"
    return "high" if coverage >= 0.8 else "medium"


def _mean_grades(view: View) -> Floats:
    if view.profile.grades is None:
        return np.full(len(view.names), np.nan)
    graded = view.profile.graded[:, :, 0]
    weights = np.array([vote.weight for vote in view.electorate.votes])
    mass = graded * (weights / weights.max(initial=1e-300))[:, np.newaxis]
    total = (mass * np.where(graded, view.profile.grades[:, :, 0], 0.0)).sum(axis=0)
    whole = mass.sum(axis=0)
    return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.nan)


def _band(grade: float | None) -> str | None:
    if grade is None:
        return None
    return next((name for least, name in BANDS if grade >= least), "poor")
