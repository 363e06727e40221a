"""A person's votes beside the panels' outcomes, together and over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

import numpy as np

from witan.core.blind_vote import Agreement
from witan.core.stats.measures import Count, Measure, rate

MANY_DAYS = 31
"""From so many days with votes on, a period is a month."""


@dataclass(frozen=True, slots=True)
class ComparedVote:
    """A person's vote on one session, and its agreement with the panel.

    Parameters
    ----------
    session, at
        Its name, and when it was asked.
    agreement
        Of the person's ranking with the panel's.
    question
        What was asked; empty: not stored.
    """

    session: str
    at: datetime
    agreement: Agreement
    question: str = ""


@dataclass(frozen=True, slots=True)
class VotePeriod:
    """The votes on the sessions of a day, or of a month.

    Parameters
    ----------
    since
        Its first day (2026-11-21), or its month (2026-11).
    votes
        How many there are.
    agreement, clear, close
        As in `PersonalRecord`.
    """

    since: str
    votes: int
    agreement: Measure
    clear: Measure
    close: Measure


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """Agreement of a person's votes with panels.

    Parameters
    ----------
    votes
        How many there are.
    agreement
        Share of pairs ordered alike, of those that neither places equal.
    clear, close
        The same of pairs clear to the panel, and of those too close to call.
    same_best
        Share of votes whose best answer is a best one of the panel.
    periods
        By day or month, earliest first.
    """

    votes: int
    agreement: Measure
    clear: Measure
    close: Measure
    same_best: Measure
    periods: tuple[VotePeriod, ...]


def vote_record(votes: Sequence[ComparedVote], *, level: float = 0.95) -> VoteRecord:
    """Sum up a person's votes; a session is a cluster of pairs.

    Shares have the intervals of `rate`, from five sessions on.
    """
    ordered = sorted(votes, key=lambda each: (each.at, each.session))
    days = {f"{each.at:%Y-%m-%d}" for each in ordered}
    form = "%Y-%m" if len(days) >= MANY_DAYS else "%Y-%m-%d"
    periods = []
    for since, group in groupby(ordered, key=lambda each: each.at.strftime(form)):
        members = [*group]
        shares = (_share(members, pairs, level) for pairs in (_all_pairs, _clear, _close))
        periods.append(VotePeriod(since, len(members), *shares))
    judged = [each for each in ordered if each.agreement.same_best is not None]
    return VoteRecord(
        len(ordered),
        _share(ordered, _all_pairs, level),
        _share(ordered, _clear, level),
        _share(ordered, _close, level),
        _rate([(int(bool(each.agreement.same_best)), 1) for each in judged], "votes", level),
        tuple(periods),
    )


def _all_pairs(found: Agreement) -> tuple[int, int]:
    return found.pairs_alike, found.pairs_decided


def _clear(found: Agreement) -> tuple[int, int]:
    return found.clear_alike, found.clear_decided


def _close(found: Agreement) -> tuple[int, int]:
    return found.pairs_alike - found.clear_alike, found.pairs_decided - found.clear_decided


def _share(
    votes: Sequence[ComparedVote], pairs: Callable[[Agreement], tuple[int, int]], level: float
) -> Measure:
    return _rate([pairs(each.agreement) for each in votes], "pairs", level)


def _rate(hits_and_cases: Sequence[tuple[int, int]], of: str, level: float) -> Measure:
    sums = np.array(hits_and_cases, dtype=np.float64).reshape(-1, 2)
    return rate(sums, Count(float(sums[:, 1].sum()), of, 1), level=level)
