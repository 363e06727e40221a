"""How far each reviewer agreed with the others in other sessions: weights for `weighted_borda`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import nan

import numpy as np

from witan.core.agreement import kendall_tau
from witan.core.interpretation import Electorate, Vote
from witan.core.profile import Floats

__all__ = ["SESSIONS_OF_EQUALITY", "learn_reliability", "reliability_from_shares"]

SESSIONS_OF_EQUALITY = 10.0
"""How many sessions of perfect averageness each reviewer is credited with before its own count."""


def learn_reliability(electorates: Sequence[Electorate]) -> list[Mapping[str, float]]:
    """Weights per reviewer for each session, learned from all the *other* sessions.

    In each session a reviewer's agreement is 1 + τ-b between the shares of rivals that its ballot,
    or its comparisons, place each candidate above and the mean of these over two others or more.
    With x̄ the reviewer's mean agreement over the other sessions, over the panel's mean, and n
    their number,

        weight = (n·x̄ + k) / (n + k),    k = 10,

    which is 1 without evidence and never learned from the session that it decides.

    Returns
    -------
    list of mapping
        Reviewer → weight, aligned with `electorates`.
    """
    agreements = [_agreements(electorate) for electorate in electorates]
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, int] = defaultdict(int)
    for found in agreements:
        for reviewer, agreement in found.items():
            total[reviewer] += agreement
            times[reviewer] += 1
    whole, n_whole = sum(total.values()), sum(times.values())
    learned: list[Mapping[str, float]] = []
    for found in agreements:
        n_left = n_whole - len(found)
        panel = (whole - sum(found.values())) / n_left if n_left else 0.0
        weights: dict[str, float] = {}
        for reviewer in total:
            n = times[reviewer] - (reviewer in found)
            own = total[reviewer] - found.get(reviewer, 0.0)
            relative = own / panel if panel > 0 else float(n)
            weights[reviewer] = (relative + SESSIONS_OF_EQUALITY) / (n + SESSIONS_OF_EQUALITY)
        learned.append(weights)
    return learned


def reliability_from_shares(sessions: Iterable[Mapping[str, Floats]]) -> Mapping[str, float]:
    """Weigh reviewers by sessions other than the one to be decided, as `learn_reliability` does.

    Parameters
    ----------
    sessions
        Per session, reviewer → shares of rivals that it places each candidate above, shape (votes,
        candidates); NaN: no vote, or its own.

    Returns
    -------
    mapping
        Reviewer → weight; empty where no session has three reviewers.
    """
    total: defaultdict[str, float] = defaultdict(float)
    times: defaultdict[str, int] = defaultdict(int)
    for shares in sessions:
        for reviewer, agreement in _agreement(shares).items():
            total[reviewer] += agreement
            times[reviewer] += 1
    panel = sum(total.values()) / sum(times.values()) if times else 0.0
    weights = {}
    for reviewer, n in times.items():
        relative = total[reviewer] / panel if panel > 0 else float(n)
        weights[reviewer] = (relative + SESSIONS_OF_EQUALITY) / (n + SESSIONS_OF_EQUALITY)
    return weights


def _agreements(electorate: Electorate) -> dict[str, float]:
    """1 + τ-b of each reviewer's shares of rivals beaten with the mean shares the others give."""
    return _agreement(
        {
            reviewer: np.array([_shares(v) for v in electorate.votes if v.reviewer == reviewer])
            for reviewer in electorate.reviewers
        }
    )


def _agreement(shares: Mapping[str, Floats]) -> dict[str, float]:
    found = {}
    for reviewer, own in shares.items():
        others = [held for other, held in shares.items() if other != reviewer]
        if len(others) < 2:
            continue
        tau = kendall_tau(_mean(own), _mean(np.concatenate(others)))
        if tau is not None:
            found[reviewer] = 1 + tau
    return found


def _shares(vote: Vote) -> list[float]:
    """The share of its rivals on the ballot that each candidate is placed above; NaN: no vote."""
    rivals = max(vote.length - 1, 1)
    return [(vote.length - place / 2) / rivals if place else nan for place in vote.places]


def _mean(shares: Floats) -> Floats:
    """Mean over ballots, NaN where none has a vote."""
    known = ~np.isnan(shares)
    count = known.sum(axis=0)
    total = np.where(known, shares, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
