"""Build the leaderboard: mean scores, ratings, order, and differences beyond noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.outcome import Confidence, Interval
from witan.core.rules import RULES
from witan.core.rules.registry import Rule
from witan.core.stats.distributions import t_cdf_each, t_quantile
from witan.core.stats.leaderboard import (
    Change,
    Effort,
    Leaderboard,
    LeaderboardLine,
    Terms,
    describe_board,
    describe_groups,
)
from witan.core.stats.measures import MIN_BUCKETS, jeffreys
from witan.core.stats.ratings import Ratings, rate_sums
from witan.core.stats.sums import AnswerSums, MatchupSums, Names, StandingSums, places
from witan.errors import InvalidParameter, NothingToCount

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

ROUNDING = 1e-12
"""A sum of squared deviations this small, relative to the squares, is rounding."""

SYMMETRIC = 1e-6
"""Half an interval, relative to the distance of the bounds, up to which no skew is visible."""


@dataclass(frozen=True, slots=True, eq=False)
class MeanScores:
    """Means of M models; NaN where there is no number.

    Parameters
    ----------
    sessions, appearances, votes, offered : integer arrays, shape (M,)
        As in `StandingSums`, over all buckets.
    wins : float array, shape (M,)
    mean : float array, shape (M,)
        Σ score / sessions.
    std_error : float array, shape (M,)
        s / √sessions with s the sample deviation of a session's score. NaN for one session, and
        where all sessions gave the same score, which does not show how scores vary.
    constant : bool array, shape (M,)
        Two sessions or more gave the same score.
    z : float array, shape (M,)
        Mean standardised grade.
    pulls : float array, shape (B, M)
        How far each bucket moves the mean: (Σ score − mean · sessions) of the bucket, over all
        sessions. The sum over buckets is 0.
    presence : bool array, shape (B, M)
        The bucket has a score of the model.
    """

    sessions: Counts
    appearances: Counts
    votes: Counts
    offered: Counts
    wins: Array
    mean: Array
    std_error: Array
    constant: NDArray[np.bool_]
    z: Array
    pulls: Array
    presence: NDArray[np.bool_]

    def clear_leads(self, level: float) -> NDArray[np.bool_]:
        r"""True where model i's mean exceeds model j's beyond noise, (M, M).

        With u_bi the pull of bucket b on model i, B_i the buckets that hold it, and
        v_bi = u_bi · √(B_i/(B_i − 1)),

            error² = Σ_b (v_bi − v_bj)²,        |t| = difference / error,

        over all buckets, so that what two models share in a bucket cancels. The sum falls into
        that over the buckets that hold both, only i, and only j; with P the size of a part and n
        its buckets, Student's t is two-sided at `level` on Satterthwaite's degrees of freedom

            error⁴ / Σ_parts P²/(n − 1).

        A model with equal scores in all sessions gets its rival's spread per session: a few equal
        scores do not prove that all are equal. If neither varies, or the difference is the same in
        every bucket, the signs decide: n equal signs in the shared buckets occur by chance with
        probability 2^(1 − n). A model in fewer than `MIN_BUCKETS` buckets is never above or below
        another.

        References
        ----------
        Cochran, Sampling Techniques, 3rd edition 1977, section 6.4 (ratio of two sums, by
        cluster). Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 2 (1946) 110–114. Dixon and Mood, "The statistical sign test", Journal
        of the American Statistical Association 41 (1946) 557–566.
        """
        holds = self.presence.astype(np.float64)
        n = holds.sum(axis=0)
        scaled = self.pulls * np.sqrt(n / np.maximum(n - 1, 1))
        both = holds.T @ holds
        gap = self.mean[:, np.newaxis] - self.mean
        shared, apart = _squares_in_buckets(scaled, holds)
        squares = shared + apart + apart.T
        own = (scaled**2).sum(axis=0)
        exact = squares <= ROUNDING * np.maximum(gap**2, own[:, np.newaxis] + own)
        constant_squares = self._constant_squares(own)
        parts = [
            (shared, both), (apart, n[:, np.newaxis] - both), (apart.T, n - both),
            (constant_squares, n[:, np.newaxis] + 0 * both), (constant_squares.T, n + 0 * both),
        ]  # fmt: skip
        squares = squares + constant_squares + constant_squares.T
        doubt = sum(part**2 / np.maximum(count - 1, 1) for part, count in parts)
        degrees = np.divide(squares**2, doubt, out=np.ones_like(squares), where=doubt > 0)
        t = np.divide(
            gap, np.sqrt(squares), out=np.zeros_like(gap), where=(squares > 0) & (gap > 0)
        )
        p = t_cdf_each(t, np.maximum(degrees, 1.0))
        beyond = np.where(exact, 2.0 ** (1 - both) < 1 - level, p > 0.5 + level / 2)
        enough = n >= MIN_BUCKETS
        return np.asarray(beyond & (gap > 0) & enough & enough[:, np.newaxis])

    def _constant_squares(self, own: Array) -> Array:
        """Squares from model i for a j of constant scores, (M, M)."""
        varies = ~self.constant & (own > 0)
        spread = np.where(varies, own * self.sessions, 0.0)
        rate = spread[:, np.newaxis] / np.maximum(self.sessions, 1)
        return np.where(self.constant, rate, 0.0)


def _squares_in_buckets(values: Array, holds: Array) -> tuple[Array, Array]:
    """Sum (v_i − v_j)² over shared buckets, v_i² over the others."""
    squares = values**2
    together = squares.T @ holds
    shared = together + together.T - 2 * (values.T @ values)
    apart = squares.sum(axis=0)[:, np.newaxis] - together
    return np.maximum(shared, 0.0), np.maximum(apart, 0.0)


def mean_scores(sums: StandingSums, place: Counts, n_models: int) -> MeanScores:
    """Add up standings.

    Parameters
    ----------
    sums : StandingSums
        Rows in any order; a key may have several.
    place : integer array
        Index of each row's model, of `n_models`.
    """

    def sum_by_model(column: NDArray[np.integer] | Array) -> Array:
        return np.asarray(np.bincount(place, column, minlength=n_models), dtype=np.float64)

    def count_by_model(column: Counts) -> Counts:
        return np.rint(sum_by_model(column)).astype(np.int64)

    _, bucket = np.unique(sums.bucket, return_inverse=True)
    shape = (int(bucket.max(initial=-1)) + 1, n_models)
    cell, cells = bucket * n_models + place, shape[0] * n_models
    by_bucket = np.bincount(cell, sums.total, minlength=cells).reshape(shape)
    n_by_bucket = np.bincount(cell, sums.sessions, minlength=cells).reshape(shape)
    n, squares = count_by_model(sums.sessions), sum_by_model(sums.squares)
    mean = _ratio(sum_by_model(sums.total), n)
    deviations = squares - mean * mean * n
    constant = (n > 1) & (deviations <= ROUNDING * squares)
    variance = _ratio(deviations, np.where(constant, 0, n * (n - 1)))
    pulls = np.where(n > 0, (by_bucket - np.nan_to_num(mean) * n_by_bucket) / np.maximum(n, 1), 0.0)
    return MeanScores(
        sessions=n,
        appearances=count_by_model(sums.appearances),
        votes=count_by_model(sums.votes),
        offered=count_by_model(sums.offered),
        wins=sum_by_model(sums.wins),
        mean=mean,
        std_error=np.sqrt(variance),
        constant=constant,
        z=_ratio(sum_by_model(sums.z_total), count_by_model(sums.z_sessions)),
        pulls=pulls,
        presence=n_by_bucket > 0,
    )


def _ratio(total: Array, n: NDArray[np.integer]) -> Array:
    """Total / n; NaN where n is 0."""
    ratio: Array = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return ratio


DIGITS = 10
"""Significant digits, relative to the largest number, beyond which differences are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelSums:
    """Sums of a window for M models.

    Parameters
    ----------
    models : tuple of str
        In alphabetical order, as are all fields below.
    ratings : Ratings, optional
        None: no ballot compares two models.
    rating_rows : integer array, shape (M,)
        Index of each model in `ratings`; −1: absent.
    """

    models: tuple[str, ...]
    means: MeanScores
    efforts: tuple[Effort, ...]
    ratings: Ratings | None
    rating_rows: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Models of a board in order.

    Parameters
    ----------
    rows, unranked_rows : integer arrays
        Models with a rank, and those without, group by group and best first.
    rank : integer array, shape (M,)
        Rank in its group; 0 for unranked models.
    group : integer array, shape (M,)
        Group from 1; 0 for those that no ballot compares.
    elo : float array, shape (M,)
        NaN where unknown.
    clear_leads : bool array, shape (M, M), optional
        Whether model i is above model j of its group beyond noise; None: unknown in this order.
    """

    rows: Counts
    unranked_rows: Counts
    rank: Counts
    group: Counts
    elo: Array
    clear_leads: Flags | None


def gather(
    standings: StandingSums,
    matchups: MatchupSums | None,
    answers: AnswerSums | None,
    names: Names,
    terms: Terms,
) -> ModelSums:
    """Add the sums of a window up by model."""
    none = np.empty(0, dtype=np.int64)
    columns = [
        standings.model,
        none if answers is None else answers.model,
        none if matchups is None else matchups.first,
        none if matchups is None else matchups.second,
    ]
    models, (stood, answered, *_) = places(names, *columns)
    ratings = None if matchups is None else _ratings(matchups, names, terms)
    where = {} if ratings is None else {name: row for row, name in enumerate(ratings.models)}
    return ModelSums(
        models=models,
        means=mean_scores(standings, stood, len(models)),
        efforts=_efforts(answers, answered, len(models)),
        ratings=ratings,
        rating_rows=np.array([where.get(model, -1) for model in models], dtype=np.int64),
    )


def put_in_order(board: ModelSums, rule: Rule, terms: Terms, elo: Mapping[str, float]) -> Order:
    """Rank the eligible models by rating or mean score.

    Models are comparable only within a group joined by chains of comparisons: a score depends on
    the rivals, and ratings are centred in each group. Each group is ranked by itself.

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
        ahead = board.means.clear_leads(terms.level)
        ahead = ahead.T.copy() if rule.lower_is_better else ahead
    elif terms.order_by == "rating":
        key, ahead = _order_by_rating(board)
    else:
        key = by_elo
    if np.isnan(key).all():
        if board.ratings is None and np.isnan(board.means.mean).all():
            why = "no reviewer voted; see why all abstained"
            if board.means.votes.any():
                why = "no ballot compares two models; have reviewers judge two or more texts each"
            raise NothingToCount(f"no model has a {terms.order_by} {terms.window}, as {why}")
        raise NothingToCount(
            f"no model has a {terms.order_by} {terms.window}; order by "
            f"{'rating' if terms.order_by == 'score' else 'score'}, or widen the window"
        )
    key = _round_noise(key)
    may = (board.means.sessions >= terms.min_sessions) & ~np.isnan(key)
    group = _groups(board, may)
    if board.ratings is not None:
        may &= group > 0
    together = group[:, np.newaxis] == group
    last = np.where(np.isnan(key), -np.inf, key)
    # Alphabetical where equal; models without comparisons come last.
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
    if answers is None:
        return (Effort(),) * n_models

    def add_up(column: NDArray[Any]) -> list[float]:
        total: list[float] = np.bincount(place, column, minlength=n_models).tolist()
        return total

    columns = (
        answers.answers, answers.failed, answers.cost_usd, answers.costed, answers.seconds,
        answers.timed,
    )  # fmt: skip
    return tuple(
        Effort(
            answers=round(attempts),
            failure_rate=failed / attempts if attempts else None,
            cost_usd=cost / costed if costed else None,
            costed=round(costed),
            seconds=seconds / timed if timed else None,
            timed=round(timed),
        )
        for attempts, failed, cost, costed, seconds, timed in zip(
            *map(add_up, columns), strict=True
        )
    )


def _order_by_rating(board: ModelSums) -> tuple[Array, Flags]:
    n_models = len(board.models)
    key, ahead = np.full(n_models, np.nan), np.zeros((n_models, n_models), dtype=np.bool_)
    if board.ratings is not None:
        rows = np.flatnonzero(board.rating_rows >= 0)
        key[rows] = board.ratings.rating[board.rating_rows[rows]]
        ahead[np.ix_(rows, rows)] = board.ratings.clear_leads[
            np.ix_(board.rating_rows[rows], board.rating_rows[rows])
        ]
    return key, ahead


def _groups(board: ModelSums, may: Flags) -> Counts:
    """Connected groups of models, shape (M,); 0: no comparisons.

    The first has the most models that may be ranked, then the most comparisons, then the
    alphabetically first model.
    """
    numbered = np.zeros(len(board.models), dtype=np.int64)
    ratings = board.ratings
    if ratings is None:
        return numbered
    met = (ratings.wins + ratings.losses + ratings.ties)[board.rating_rows]
    weight = np.where(board.rating_rows >= 0, met, 0.0)
    label = np.where(weight > 0, ratings.group[board.rating_rows], -1)
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    n_ranked = np.bincount(place, may)
    n_met = np.round(np.bincount(place, weight), DIGITS)
    order = np.lexsort((first, -n_met, -n_ranked))
    order = order[label[first[order]] >= 0]
    number = np.zeros(len(first), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    numbered[:] = number[place]
    return numbered


def _round_noise(key: Array) -> Array:
    # Never finer than the unit itself: differences between numbers near 0 are rounding.
    rounded: Array = np.round(key / np.fmax.reduce(np.abs(key), initial=1.0), DIGITS)
    return rounded


def leaderboard(
    standings: StandingSums,
    matchups: MatchupSums | None,
    answers: AnswerSums | None,
    names: Names,
    *,
    terms: Terms | None = None,
    elo: Mapping[int, float] | None = None,
    previous: Leaderboard | None = None,
) -> Leaderboard:
    r"""Order models by their results across sessions.

    With x_s the score of a model in session s, the mean over its sessions of the mean over their
    ballots, each session counted once,

        score = Σ_s x_s / n,      std_error = √(Σ_s (x_s − score)² / (n − 1)) / √n,

    and the interval is Student's t with n − 1 degrees of freedom. Between two bounds of a rule's
    scores it is Jeffreys' for the share p of their distance and p(1 − p)/V · (z/t)² votes, with V
    the square of the error as a share: near a bound means are skewed. Whether one model is above
    another beyond noise is decided by contrasts that allow for shared sessions
    (`MeanScores.clear_leads`, or `Ratings.clear_leads` if ordered by rating), never by overlapping
    intervals. A change from the previous window is tested with Welch's t: the two windows share no
    session.

    Parameters
    ----------
    standings : StandingSums
        Of one rule and kind of ballot, and one window.
    matchups : MatchupSums, optional
        Sums of the same kind and window; None: no ratings.
    answers : AnswerSums, optional
        Sums of the same window; None: cost, time and failures are unknown.
    names : Names
        Names of all codes. Codes with the same name are one model.
    elo : mapping of code to float, optional
        Ratings after the last session, by `witan.core.rules.elo.rate_matches`.
    previous : Leaderboard, optional
        Leaderboard of the previous window, otherwise on the same terms.

    Raises
    ------
    NothingToCount
        If no session of the window has a candidate, or there is nothing to order by.
    InvalidParameter
        If the order is by Elo without Elo ratings, or `previous` is on other terms.
    UnknownName
        If the rule is unknown.
    UnsuitableBallots
        If ratings without a prior are not finite.

    References
    ----------
    Welch, "The generalization of 'Student's' problem when several different population variances
    are involved", Biometrika 34 (1947) 28–35.
    """
    terms = Terms() if terms is None else terms
    rule = RULES[terms.rule]
    _check(standings, elo, previous, terms)
    board = gather(standings, matchups, answers, names, terms)
    rated = {names[code]: rating for code, rating in ({} if elo is None else elo).items()}
    order = put_in_order(board, rule, terms, rated)
    lines = tuple(_line(board, order, row, rule, terms) for row in order.rows)
    apart = tuple(_line(board, order, row, rule, terms) for row in order.unranked_rows)
    if previous is not None:
        before, company = previous.by_model, _models_in_same_company(lines, previous.lines)
        lines, apart = (
            tuple(
                _add_change(
                    line, before.get(line.model), terms.level, has_ranks=line.model in company
                )
                for line in group
            )
            for group in (lines, apart)
        )
    board_now = Leaderboard(
        terms=terms,
        lines=lines,
        provisional=apart,
        contenders=_contenders(board, order),
        p_beats=_p_beats(board, [*order.rows, *order.unranked_rows]),
        n_comparisons=0 if board.ratings is None else board.ratings.n_comparisons,
        compared_to=None if previous is None else previous.terms.window,
        warnings=tuple(_warnings(board, terms)),
    )
    return replace(
        board_now,
        interpretation=describe_board(board_now),
        group_interpretations=describe_groups(board_now),
    )


def _check(
    standings: StandingSums,
    elo: Mapping[int, float] | None,
    previous: Leaderboard | None,
    terms: Terms,
) -> None:
    """Refuse an empty window, an unknown order, and incomparable windows."""
    if not standings.appearances.any():
        whose = "people's" if terms.kind == "human" else "models'"
        raise NothingToCount(
            f"no session with {whose} ballots is counted by {terms.rule} {terms.window}"
        )
    if terms.order_by == "elo" and elo is None:
        raise InvalidParameter("order_by", "elo", "'score' or 'rating', for Elo was not computed")
    if previous is None:
        return
    alike = previous.terms.during(terms.window) == terms
    if not alike or previous.terms.window.category != terms.window.category:
        raise InvalidParameter(
            "previous", str(previous.terms), f"the same terms but for the time, {terms}"
        )


def _line(board: ModelSums, order: Order, row: int, rule: Rule, terms: Terms) -> LeaderboardLine:
    """Write the line of one model, without its change."""
    means, rank = board.means, int(order.rank[row])
    n, offered, votes = (
        int(column[row]) for column in (means.sessions, means.offered, means.votes)
    )
    score, error = _none_if_nan(means.mean[row]), _none_if_nan(means.std_error[row])
    coverage = votes / offered if offered else None
    low, high = (None, None) if rank == 0 else _rank_interval(order, row)
    rating, rating_error, rating_interval = _rating_of_row(board, row)
    return LeaderboardLine(
        model=board.models[row],
        rank=rank if rank else None,
        rank_low=low,
        rank_high=high,
        tied_with_next=_tied_with_next(order, row) if rank else None,
        provisional=rank == 0,
        group=int(order.group[row]) or None,
        score=score,
        std_error=error,
        interval=_interval(score, error, n - 1, terms.level, rule.bounds),
        sessions=n,
        appearances=int(means.appearances[row]),
        votes=votes,
        offered=offered,
        wins=float(means.wins[row]),
        coverage=coverage,
        confidence=_confidence(coverage, n),
        z=_none_if_nan(means.z[row]),
        rating=rating,
        rating_error=rating_error,
        rating_interval=rating_interval,
        elo=_none_if_nan(order.elo[row]),
        change=None,
        effort=board.efforts[row],
    )


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(
    score: float | None,
    error: float | None,
    degrees: int,
    level: float,
    bounds: tuple[float, float],
) -> Interval | None:
    """Compute the interval of a mean: Jeffreys' between two bounds, otherwise Student's t."""
    if score is None or error is None:
        return None
    reach = t_quantile(0.5 + level / 2, degrees) * error
    least, most = bounds
    width = most - least
    share = (score - least) / width
    if reach <= SYMMETRIC * width or not 0 < share < 1:  # NaN without bounds
        return Interval(max(score - reach, least), min(score + reach, most), level)
    votes = share * (1 - share) * (width * t_quantile(0.5 + level / 2, math.inf) / reach) ** 2
    ends = jeffreys(share, votes, level)
    return Interval(least + width * ends.low, least + width * ends.high, level)


def _confidence(coverage: float | None, n_sessions: int) -> Confidence:
    """Describe the coverage in one word."""
    if coverage is None or n_sessions < 2 or coverage < 0.5:
        return "low"
    return "high" if coverage >= 0.8 else "medium"


def _rank_interval(order: Order, row: int) -> tuple[int | None, int | None]:
    if order.clear_leads is None:
        return None, None
    above = int(order.clear_leads[order.rows, row].sum())
    below = int(order.clear_leads[row, order.rows].sum())
    return 1 + above, int((order.group[order.rows] == order.group[row]).sum()) - below


def _tied_with_next(order: Order, row: int) -> bool | None:
    if order.clear_leads is None:
        return None
    place = int(np.flatnonzero(order.rows == row)[0])
    if place + 1 == len(order.rows):
        return False
    below = order.rows[place + 1]
    return bool(order.group[row] == order.group[below] and not order.clear_leads[row, below])


def _contenders(board: ModelSums, order: Order) -> tuple[str, ...]:
    """Models possibly first in their group within noise."""
    if order.clear_leads is None:
        return ()
    first = order.rows[order.rank[order.rows] == 1]
    below = order.rows[order.rank[order.rows] > 1]
    strange = order.group[first][:, np.newaxis] != order.group[below]
    apart = (order.clear_leads[np.ix_(first, below)] | strange).all(axis=0)
    return tuple(board.models[row] for row in below[~apart])


def _rating_of_row(
    board: ModelSums, row: int
) -> tuple[float | None, float | None, Interval | None]:
    ratings, place = board.ratings, int(board.rating_rows[row])
    if ratings is None or place < 0:
        return None, None, None
    low, high = _none_if_nan(ratings.low[place]), _none_if_nan(ratings.high[place])
    interval = None if low is None or high is None else Interval(low, high, ratings.level)
    return _none_if_nan(ratings.rating[place]), _none_if_nan(ratings.std_error[place]), interval


def _models_in_same_company(
    lines: Sequence[LeaderboardLine], before: Sequence[LeaderboardLine]
) -> frozenset[str]:
    """Models ranked among the same others in both windows, apart from new models."""
    both = {line.model for line in lines} & {line.model for line in before}
    companies: list[dict[int | None, set[str]]] = []
    for window in (lines, before):
        groups: dict[int | None, set[str]] = {}
        for line in window:
            if line.model in both:
                groups.setdefault(line.group, set()).add(line.model)
        companies.append(groups)
    now, then = companies
    return frozenset().union(*(group for group in now.values() if group in then.values()))


def _add_change(
    line: LeaderboardLine, before: LeaderboardLine | None, level: float, *, has_ranks: bool
) -> LeaderboardLine:
    """The line with its change; `has_ranks`: ranks are comparable."""
    if before is None or line.score is None or before.score is None:
        return line
    moved = None
    if has_ranks and line.rank is not None and before.rank is not None:
        moved = before.rank - line.rank
    gap = line.score - before.score
    return replace(line, change=Change(gap, moved, _is_beyond_noise(line, before, level)))


def _is_beyond_noise(line: LeaderboardLine, before: LeaderboardLine, level: float) -> bool | None:
    """True if two independent mean scores differ beyond noise, by Welch's t."""
    errors = line.std_error, before.std_error
    if line.score is None or before.score is None or errors[0] is None or errors[1] is None:
        return None
    now, then = errors[0] ** 2, errors[1] ** 2
    degrees = (now + then) ** 2 / (now**2 / (line.sessions - 1) + then**2 / (before.sessions - 1))
    reach = t_quantile(0.5 + level / 2, degrees) * math.sqrt(now + then)
    return abs(line.score - before.score) > reach


def _p_beats(board: ModelSums, rows: list[int]) -> tuple[tuple[float | None, ...], ...]:
    if board.ratings is None:
        return ((None,) * len(rows),) * len(rows)
    known = board.rating_rows[rows]
    table = board.ratings.p_beats()[np.ix_(known, known)]
    table[(known < 0)[:, np.newaxis] | (known < 0)] = np.nan
    return tuple(tuple(_none_if_nan(cell) for cell in line) for line in table)


def _warnings(board: ModelSums, terms: Terms) -> list[str]:
    warnings = [
        f"{model} had one and the same score in all {int(n)} sessions: its error is unknown"
        for model, n, constant in zip(
            board.models, board.means.sessions, board.means.constant, strict=True
        )
        if constant
    ]
    if board.ratings is None:
        return [*warnings, f"no ballot compares two models {terms.window}: there are no ratings"]
    return [*warnings, *(f"ratings: {line}" for line in board.ratings.warnings)]
