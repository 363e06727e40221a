"""Approve or reject: share of approval, and its stability under resampling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from witan.core.outcome import Interval, check_level
from witan.core.stats.distributions import beta_quantile

PRIOR = 0.5
"""Jeffreys' prior: half an approval and half a rejection before the first vote."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Votes of members on one thing, with inference to members like them.

    Parameters
    ----------
    approve, reject, silent
        Members that approved, rejected, and gave no vote that can be read.
    share
        Interval of the share of such members that would approve; None without votes.
    p_majority
        Probability that a majority of as many other such members would give the same verdict; None
        where there is none to repeat.
    """

    approve: int
    reject: int
    silent: int
    share: Interval | None
    p_majority: float | None

    @property
    def is_approved(self) -> bool | None:
        """Decision of the majority; None without a majority."""
        return None if self.approve == self.reject else self.approve > self.reject


def approval(votes: Sequence[bool | None], level: float = 0.95) -> Approval:
    """Count approvals and rejections.

    Of n votes let k approve. Under Jeffreys' prior the approving share p of all such members is
    distributed as Beta(k + ½, n − k + ½), from which both numbers come, so that they cannot
    contradict each other. The interval is cut at equal tails, its lower end 0 for k = 0 and its
    upper end 1 for k = n. Another n votes approve K times with

        P(K = j) = C(n, j)·B(j + k + ½, 2n − j − k + ½) / B(k + ½, n − k + ½),

    and `p_majority` sums this over K > n/2 where the verdict is approval, over K < n/2 where it is
    rejection.

    At 95% the interval covers 96.3% at n = 3, 95.8% at 5 and 95.4% at 9, averaged over all
    shares, and from 3 to 9 votes never less than 86% at any one share. Clopper and Pearson's exact
    interval never covers less than 95%, but 99.5% to 98.5% on average, and is a fifth wider.

    Parameters
    ----------
    votes
        True approves, False rejects, None says nothing.
    level
        Of the interval, between 0 and 1.

    Raises
    ------
    InvalidParameter
        If the level is not between 0 and 1.

    References
    ----------
    Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science
    16 (2001) 101–133.
    """
    check_level(level)
    approve = sum(1 for vote in votes if vote is True)
    reject = sum(1 for vote in votes if vote is False)
    return Approval(
        approve=approve,
        reject=reject,
        silent=len(votes) - approve - reject,
        share=_share(approve, reject, level) if approve + reject else None,
        p_majority=None if approve == reject else _repeat(approve, reject),
    )


@lru_cache(maxsize=256)
def _share(approve: int, reject: int, level: float) -> Interval:
    """Jeffreys' interval of the approving share."""
    tail = (1 - level) / 2
    a, b = approve + PRIOR, reject + PRIOR
    low = beta_quantile(tail, a, b) if approve else 0.0
    high = beta_quantile(1 - tail, a, b) if reject else 1.0
    return Interval(low, high, level)


def _repeat(approve: int, reject: int) -> float:
    """P(as many other votes have the same majority), by the beta-binomial distribution."""
    same, other = max(approve, reject), min(approve, reject)
    n = same + other
    start = _log_beta(same + PRIOR, other + PRIOR) + math.log(n + 1)
    return math.fsum(
        # C(n, j) is 1 / ((n + 1)·B(j + 1, n − j + 1)).
        math.exp(
            _log_beta(j + same + PRIOR, n - j + other + PRIOR) - _log_beta(j + 1, n - j + 1) - start
        )
        for j in range(n // 2 + 1, n + 1)
    )


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
