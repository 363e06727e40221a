"""Weights of reviewers for `weighted_borda`, learned from how often they side with people."""

import math
from collections.abc import Mapping

from witan.core.shared_error import MIN_DECIDED
from witan.core.sums import HumanSums, Names

__all__ = ["PAIRS_OF_PEOPLE", "learn_reliability_from_people"]

PAIRS_OF_PEOPLE = 50.0
"""Pairs judged exactly as well as the panel that every reviewer is credited with before its own.

Assumed: reviewers whose true shares spread by .06 about .75 are best shrunk by
.75 · .25/.06² − 1 ≈ 51 pairs, the weight of a beta prior of that spread. How much panels spread is
not known; the one council measured, of unequal models, spreads by more.
"""


def learn_reliability_from_people(humans: HumanSums, names: Names) -> Mapping[str, float]:
    r"""Weigh each reviewer by the log-odds of siding with people, shrunk toward the panel.

    On n_r pairs that people decided, reviewer r sided with them on h_r, a tie half. With the
    panel's share p̄ = Σ h_r / Σ n_r and k = 50 pairs of equality,

        p_r = (h_r + k·p̄) / (n_r + k),
        w_r = max(0, log(p_r / (1 − p_r))),        weight_r = w_r / mean of w.

    p_r is the posterior mean under a Beta(k·p̄, k·(1 − p̄)) prior, and log-odds are the weights with
    which a majority of independent reviewers is most often right. A reviewer without pairs weighs
    as the panel's mean share does, and without any evidence all weigh alike.

    Parameters
    ----------
    humans : HumanSums
        Opinions beside people's; of sessions other than the ones that the weights will count.
    names : Names
        Of reviewers.

    Returns
    -------
    mapping
        Reviewer → weight, mean 1, for every reviewer with such pairs. All are 1 where the panel
        sides with people no more often than not; empty while no reviewer has judged fifty pairs.

    References
    ----------
    Nitzan and Paroush, "Optimal decision rules in uncertain dichotomous choice situations",
    International Economic Review 23 (1982) 289–297. Shapley and Grofman, "Optimizing group
    judgmental accuracy in the presence of interdependencies", Public Choice 43 (1984) 329–343.
    """
    sided: dict[int, tuple[float, float]] = {}
    alone = humans.reviewer == humans.other
    for code, n, x in zip(humans.reviewer[alone], humans.n[alone], humans.x[alone], strict=True):
        hits, pairs = sided.get(int(code), (0.0, 0.0))
        sided[int(code)] = (hits + (x + n) / 2, pairs + n)
    if max((pairs for _, pairs in sided.values()), default=0) < MIN_DECIDED:
        return {}
    whole = sum(hits for hits, _ in sided.values()) / sum(pairs for _, pairs in sided.values())
    if whole <= 0.5:
        return {names[code]: 1.0 for code in sided}
    odds = {code: _log_odds(hits, pairs, whole) for code, (hits, pairs) in sided.items()}
    # Above 0: a share of the panel above ½ is that of one reviewer at least.
    mean = sum(odds.values()) / len(odds)
    return {names[code]: held / mean for code, held in odds.items()}


def _log_odds(hits: float, pairs: float, whole: float) -> float:
    """Log-odds of the shrunk share, at least 0; half a miss is credited where nobody ever erred."""
    credited = min(whole, 1 - 0.5 / PAIRS_OF_PEOPLE)
    share = (hits + PAIRS_OF_PEOPLE * credited) / (pairs + PAIRS_OF_PEOPLE)
    return max(0.0, math.log(share / (1 - share)))
