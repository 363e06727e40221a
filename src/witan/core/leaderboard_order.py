"""Sums of a window gathered by model, and the order that they put models in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.leaderboard_lines import Effort, Terms
from witan.core.mean_scores import MeanScores, mean_scores
from witan.core.rules.registry import Rule
from witan.core.stats.ratings import Ratings, rate_sums
from witan.core.stats.sums import AnswerSums, MatchupSums, Names, StandingSums, places
from witan.errors import NothingToCount

__all__ = ["Board", "Order", "gather", "put_in_order"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

DIGITS = 10
"""Numbers that agree to this many digits of the largest are equal: what sums in floats leave."""


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """What is known of M models.

    Parameters
    ----------
    models : tuple of str
        In alphabetical order; so is everything below.
    means : MeanScores
    efforts : tuple of Effort
    ratings : Ratings, optional
        None: no ballot compares two models.
    rated : integer array, shape (M,)
        Place of each model in `ratings`; −1: not there.
    """

    models: tuple[str, ...]
    means: MeanScores
    efforts: tuple[Effort, ...]
    ratings: Ratings | None
    rated: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Models of a board in order.

    Parameters
    ----------
    rows, apart : integer arrays
        Models with a rank, and those without, group by group and best first.
    rank : integer array, shape (M,)
        In its group; 0 for those apart.
    group : integer array, shape (M,)
        From 1; 0 for those that no ballot compares.
    elo : float array, shape (M,)
        NaN where unknown.
    ahead : bool array, shape (M, M), optional
        Whether model i is above model j of its group beyond noise; None: the order states no
        noise.
    """

    rows: Counts
    apart: Counts
    rank: Counts
    group: Counts
    elo: Array
    ahead: Flags | None


def gather(
    standings: StandingSums,
    matchups: MatchupSums | None,
    answers: AnswerSums | None,
    names: Names,
    terms: Terms,
) -> Board:
    """Add the sums of a window up by model."""
    none = np.empty(0, dtype=np.int64)
    columns = [
        standings.model,
        none if answers is None else answers.model,
        none if matchups is None else matchups.first,
        none if matchups is None else matchups.second,
    ]
    models, (stood, answered, *_) = places(names, *columns)
    ratings = None
    if matchups is not None:
        ratings = _ratings(matchups, names, terms)
    where = {} if ratings is None else {name: row for row, name in enumerate(ratings.models)}
    return Board(
        models=models,
        means=mean_scores(standings, stood, len(models)),
        efforts=_efforts(answers, answered, len(models)),
        ratings=ratings,
        rated=np.array([where.get(model, -1) for model in models], dtype=np.int64),
    )


def put_in_order(board: Board, rule: Rule, terms: Terms, elo: Mapping[str, float]) -> Order:
    """Rank the models that may be ranked, by the number that orders.

    Models can be compared within a group that chains of comparisons join: a score says how a model
    fared in its company, and ratings are centred in their group. Each group is ranked by itself.

    Parameters
    ----------
    elo : mapping of str to float
        By the names of models.

    Raises
    ------
    NothingToCount
        If no model has a number to be ordered by.
    """
    by_elo = np.array([elo.get(model, np.nan) for model in board.models])
    ahead: Flags | None = None
    if terms.order_by == "score":
        sign = -1.0 if rule.lower_is_better else 1.0
        key = sign * board.means.mean
        told = board.means.ahead(terms.level)
        ahead = told.T.copy() if rule.lower_is_better else told
    elif terms.order_by == "rating":
        key, ahead = _by_rating(board)
    else:
        key = by_elo
    if np.isnan(key).all():
        raise NothingToCount(
            f"no model has a {terms.order_by} {terms.window}; order by "
            f"{'rating' if terms.order_by == 'score' else 'score'}, or widen the window"
        )
    key = _rounded(key)
    may = (board.means.sessions >= terms.min_sessions) & ~np.isnan(key)
    group = _groups(board, may)
    if board.ratings is not None:
        may &= group > 0
    together = group[:, np.newaxis] == group
    last = np.where(np.isnan(key), -np.inf, key)
    # Alphabetical where equal; whoever met nobody comes last.
    order = np.lexsort((-last, np.where(group > 0, group, len(group) + 1)))
    higher = (key > key[:, np.newaxis]) & may & together
    rank = np.where(may, 1 + higher.sum(axis=1), 0)
    if ahead is not None:
        ahead &= together
    return Order(order[may[order]], order[~may[order]], rank, group, by_elo, ahead)


def _ratings(matchups: MatchupSums, names: Names, terms: Terms) -> Ratings | None:
    """Ratings of the window; None where no ballot compares two models."""
    try:
        return rate_sums(matchups, names, ghost_wins=terms.ghost_wins, level=terms.level)
    except NothingToCount:
        return None


def _efforts(answers: AnswerSums | None, place: Counts, n_models: int) -> tuple[Effort, ...]:
    """What the answers of each model took."""
    if answers is None:
        return (Effort(),) * n_models

    def added(column: NDArray[Any]) -> list[float]:
        total: list[float] = np.bincount(place, column, minlength=n_models).tolist()
        return total

    columns = (
        answers.answers, answers.failed, answers.cost_usd, answers.costed, answers.seconds,
        answers.timed,
    )  # fmt: skip
    return tuple(
        Effort(
            answers=round(asked),
            failure_rate=failed / asked if asked else None,
            cost_usd=cost / costed if costed else None,
            costed=round(costed),
            seconds=seconds / timed if timed else None,
            timed=round(timed),
        )
        for asked, failed, cost, costed, seconds, timed in zip(*map(added, columns), strict=True)
    )


def _by_rating(board: Board) -> tuple[Array, Flags]:
    """Ratings in the order of the board, and who is ahead of whom."""
    n_models = len(board.models)
    key, ahead = np.full(n_models, np.nan), np.zeros((n_models, n_models), dtype=np.bool_)
    if board.ratings is not None:
        rows = np.flatnonzero(board.rated >= 0)
        key[rows] = board.ratings.rating[board.rated[rows]]
        ahead[np.ix_(rows, rows)] = board.ratings.ahead[
            np.ix_(board.rated[rows], board.rated[rows])
        ]
    return key, ahead


def _groups(board: Board, may: Flags) -> Counts:
    """Number the groups of models that chains of comparisons join, shape (M,); 0: met nobody.

    The first has the most models that may be ranked, then the most comparisons, then the
    alphabetically first model.
    """
    numbered = np.zeros(len(board.models), dtype=np.int64)
    ratings = board.ratings
    if ratings is None:
        return numbered
    met = (ratings.wins + ratings.losses + ratings.ties)[board.rated]
    weight = np.where(board.rated >= 0, met, 0.0)
    found = np.where(weight > 0, ratings.group[board.rated], -1)
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    n_ranked = np.bincount(place, may)
    n_met = np.round(np.bincount(place, weight), DIGITS)
    order = np.lexsort((first, -n_met, -n_ranked))
    order = order[found[first[order]] >= 0]
    number = np.zeros(len(first), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    numbered[:] = number[place]
    return numbered


def _rounded(key: Array) -> Array:
    """Drop the digits that the order of summation decides."""
    # Never finer than the unit itself: numbers that are all but 0 differ by dust alone.
    rounded: Array = np.round(key / np.fmax.reduce(np.abs(key), initial=1.0), DIGITS)
    return rounded
