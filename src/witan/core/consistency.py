"""How often each reviewer keeps its opinion when the order is turned: weights without labels."""

from collections import Counter
from collections.abc import Mapping, Sequence

from witan.errors import InvalidParameter

__all__ = ["PAIRS_OF_EQUALITY", "consistency_weights", "learn_consistency"]

PAIRS_OF_EQUALITY = 20.0
"""How many comparisons of average consistency each reviewer is credited with before its own."""

OrderKept = Mapping[str, tuple[int, int]]
"""Per reviewer: pairs judged alike in both orders, and pairs seen in both orders."""


def consistency_weights(
    order_kept: OrderKept, pairs_of_equality: float = PAIRS_OF_EQUALITY
) -> dict[str, float]:
    """Weigh reviewers by their order-consistency, shrunk toward equal.

    With h[r] pairs kept of n[r] compared, and p̄ = Σ h / Σ n of the whole panel,

        weight[r] = (h[r] + k·p̄) / (n[r] + k) / p̄,    k = `pairs_of_equality`.

    This is the posterior mean of r's chance to keep an opinion, over that of the panel, under the
    prior Beta(k·p̄, k·(1 − p̄)). It is 1 without evidence, and for everyone where all are equally
    consistent. It rises with h[r]. It does not know that a flip has already cancelled in
    a count of both orders: it lowers what the same reviewer says where it does not flip, because
    who answers by position keeps some opinions by chance. It is a proportion, not an optimum.

    Parameters
    ----------
    order_kept
        Per reviewer (h, n), counts of pairs; those of several sessions are added up.
    pairs_of_equality
        k > 0, in pairs. Such a prior has the variance p̄·(1 − p̄)/(k + 1) between reviewers. In a
        council of five models (Vicuna-80, judged in both orders; see the study in the
        documentation) they differ by a standard deviation of 0.16, which is k = 9 independent
        comparisons, and comparisons within one session vary about twice as much as independent
        ones do; hence 20.

    Returns
    -------
    dict
        Reviewer → weight, dimensionless, ≥ 0, aligned with `order_kept`. 1 for all where no pair
        was kept by anybody, for then nobody is known to be better.

    Raises
    ------
    InvalidParameter
        If a count is negative, more pairs are kept than compared, or k is not a finite
        number > 0.

    References
    ----------
    Efron and Morris, "Data analysis using Stein's estimator and its generalizations", JASA 70
    (1975) 311–319, for shrinking proportions. Gelman et al., *Bayesian Data Analysis*, 3rd ed.
    (2013), ch. 5, for the beta-binomial model.
    """
    _check(order_kept, pairs_of_equality)
    n_kept = sum(kept for kept, _ in order_kept.values())
    n_compared = sum(compared for _, compared in order_kept.values())
    if n_kept == 0:
        return dict.fromkeys(order_kept, 1.0)
    panel = n_kept / n_compared
    return {
        # Divided by the panel's share first, so that equal counts give exactly equal weights.
        reviewer: (kept / panel + pairs_of_equality) / (compared + pairs_of_equality)
        for reviewer, (kept, compared) in order_kept.items()
    }


def learn_consistency(
    sessions: Sequence[OrderKept], pairs_of_equality: float = PAIRS_OF_EQUALITY
) -> list[dict[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    Parameters
    ----------
    sessions
        Per session, `Electorate.order_kept` or `Outcome.order_kept`.
    pairs_of_equality
        k of `consistency_weights`.

    Returns
    -------
    list of dict
        Reviewer → weight, aligned with `sessions`; every reviewer of any session is named.

    Raises
    ------
    InvalidParameter
        As `consistency_weights` does.
    """
    kept: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for order_kept in sessions:
        # Checked one by one: added up, a wrong count could hide behind the others.
        _check(order_kept, pairs_of_equality)
        for reviewer, (alike, twice) in order_kept.items():
            kept[reviewer] += alike
            compared[reviewer] += twice
    learned = []
    for order_kept in sessions:
        others = {}
        for reviewer in compared:
            alike, twice = order_kept.get(reviewer, (0, 0))
            others[reviewer] = (kept[reviewer] - alike, compared[reviewer] - twice)
        learned.append(consistency_weights(others, pairs_of_equality))
    return learned


def _check(order_kept: OrderKept, pairs_of_equality: float) -> None:
    if not 0 < pairs_of_equality < float("inf"):
        raise InvalidParameter("pairs_of_equality", pairs_of_equality, "a finite number > 0")
    for reviewer, (kept, compared) in order_kept.items():
        if not 0 <= kept <= compared:
            raise InvalidParameter(
                f"the order-consistency of {reviewer}",
                f"{kept} of {compared}",
                "counts with 0 ≤ kept ≤ compared",
            )
