"""Weights for `weighted_borda` from the other sessions of a file: by order, or by agreement."""

from collections import Counter
from collections.abc import Mapping, Sequence

from witan.core.consistency import learn_consistency
from witan.core.interpretation import Electorate
from witan.core.learned import known_by_order
from witan.core.reliability import learn_reliability

__all__ = ["learn_weights"]


def learn_weights(electorates: Sequence[Electorate]) -> list[Mapping[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    By order-consistency (`learn_consistency`) where at least half of the reviewers compared twenty
    pairs or more in both orders, all sessions together; else by agreement with the others
    (`learn_reliability`).

    Returns
    -------
    list of mapping
        Reviewer → weight, aligned with `electorates`.
    """
    kept: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for electorate in electorates:
        for reviewer, (alike, twice) in electorate.order_kept.items():
            kept[reviewer] += alike
            compared[reviewer] += twice
    order_kept = {reviewer: (kept[reviewer], n) for reviewer, n in compared.items()}
    reviewers = {name for electorate in electorates for name in electorate.reviewers}
    if known_by_order(order_kept, reviewers):
        return [*learn_consistency([electorate.order_kept for electorate in electorates])]
    return learn_reliability(electorates)
