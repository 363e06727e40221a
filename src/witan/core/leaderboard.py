"""The leaderboard: models in order across sessions, with what can be said of each, and no more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from witan.core.leaderboard_lines import (
    Change,
    Effort,
    Leaderboard,
    LeaderboardLine,
    OrderBy,
    Terms,
)
from witan.core.leaderboard_order import Board, Order, gather, put_in_order
from witan.core.leaderboard_wording import conclusion
from witan.core.outcome import Confidence, Interval
from witan.core.rules import RULES
from witan.core.rules.registry import Rule
from witan.core.stats.sums import AnswerSums, MatchupSums, Names, StandingSums
from witan.core.window import ALWAYS
from witan.errors import InvalidParameter, NothingToCount

__all__ = [
    "Change",
    "Effort",
    "Leaderboard",
    "LeaderboardLine",
    "OrderBy",
    "Terms",
    "leaderboard",
]


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
    r"""Order models by how they fared across sessions.

    With x_s the score of a model in session s, the mean over its sessions of the mean over their
    ballots, each session counted once,

        score = Σ_s x_s / n,      std_error = √(Σ_s (x_s − score)² / (n − 1)) / √n,

    and the interval is Student's t with n − 1 degrees of freedom, cut where scores of the rule
    end. Who is above whom beyond noise is told by contrasts that allow for the sessions two
    models share (`MeanScores.ahead`, and `Ratings.ahead` in the order of ratings), never by
    intervals that overlap. A change against the window before is told by Welch's t: the two
    windows share no session.

    Parameters
    ----------
    standings : StandingSums
        Of one rule and kind of ballot, and one window.
    matchups : MatchupSums, optional
        Of the same kind and window; None: no ratings.
    answers : AnswerSums, optional
        Of the same window; None: nothing is said of cost, time and failures.
    names : Names
        Of every code. Codes of one name are one model.
    terms : Terms, optional
        What was asked for.
    elo : mapping of code to float, optional
        Ratings after the last session, by `witan.core.rules.elo.rate_matches`.
    previous : Leaderboard, optional
        Of the window before, on the same terms otherwise.

    Returns
    -------
    Leaderboard

    Raises
    ------
    NothingToCount
        If no model stood in any session of the window, or there is nothing to order by.
    InvalidParameter
        If the order is to be by Elo and no Elo ratings are given, or `previous` is on other terms.
    UnknownName
        If the rule is not known.
    UnsuitableBallots
        If ratings without a prior have no finite answer.

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
    apart = tuple(_line(board, order, row, rule, terms) for row in order.apart)
    if previous is not None:
        before, kept = previous.by_model, _in_company(lines, previous.lines)
        lines, apart = (
            tuple(
                _compared(line, before.get(line.model), terms.level, ranked=line.model in kept)
                for line in held
            )
            for held in (lines, apart)
        )
    found = Leaderboard(
        terms=terms,
        lines=lines,
        provisional=apart,
        contenders=_contenders(board, order),
        p_beats=_p_beats(board, [*order.rows, *order.apart]),
        n_comparisons=0 if board.ratings is None else board.ratings.n_comparisons,
        compared_to=None if previous is None else previous.terms.window,
        warnings=tuple(_warnings(board, terms)),
    )
    return replace(found, interpretation=conclusion(found))


def _check(
    standings: StandingSums,
    elo: Mapping[int, float] | None,
    previous: Leaderboard | None,
    terms: Terms,
) -> None:
    """Refuse an empty window, an order by nothing, and a comparison of unlike things."""
    if not standings.appearances.any():
        ballots, others = "models' ballots", "human"
        if terms.kind == "human":
            ballots, others = "people's ballots", "model"
        wider = "" if terms.window == ALWAYS else "a wider window, another category, "
        raise NothingToCount(
            f"no session with {ballots} is counted by {terms.rule} {terms.window}; "
            f"choose {wider}another rule, or the ballots of kind {others!r}"
        )
    if terms.order_by == "elo" and elo is None:
        raise InvalidParameter("order_by", "elo", "'score' or 'rating', for Elo was not computed")
    if previous is None:
        return
    alike = replace(previous.terms, window=terms.window) == terms
    if not alike or previous.terms.window.category != terms.window.category:
        raise InvalidParameter(
            "previous", str(previous.terms), f"the same terms but for the time, {terms}"
        )


def _line(board: Board, order: Order, row: int, rule: Rule, terms: Terms) -> LeaderboardLine:
    """Write the line of one model, without its change."""
    means, rank = board.means, int(order.rank[row])
    n, offered, votes = (
        int(column[row]) for column in (means.sessions, means.offered, means.votes)
    )
    score, error = _known(means.mean[row]), _known(means.std_error[row])
    coverage = votes / offered if offered else None
    low, high = (None, None) if rank == 0 else _rank_interval(order, row)
    rating, rating_error, rating_interval = _rating(board, row)
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
        z=_known(means.z[row]),
        rating=rating,
        rating_error=rating_error,
        rating_interval=rating_interval,
        elo=_known(order.elo[row]),
        change=None,
        effort=board.efforts[row],
    )


def _known(value: float) -> float | None:
    """A number, or None for NaN."""
    return None if np.isnan(value) else float(value)


def _interval(
    score: float | None,
    error: float | None,
    degrees: int,
    level: float,
    bounds: tuple[float, float],
) -> Interval | None:
    """Student's interval of a mean, cut where scores end."""
    from scipy.special import stdtrit

    if score is None or error is None:
        return None
    reach = float(stdtrit(degrees, 0.5 + level / 2)) * error
    least, most = bounds
    return Interval(max(score - reach, least), min(score + reach, most), level)


def _confidence(coverage: float | None, n_sessions: int) -> Confidence:
    """Coverage in a word."""
    if coverage is None or n_sessions < 2 or coverage < 0.5:
        return "low"
    return "high" if coverage >= 0.8 else "medium"


def _rank_interval(order: Order, row: int) -> tuple[int | None, int | None]:
    """The best and the worst rank that noise leaves to a ranked model."""
    if order.ahead is None:
        return None, None
    above = int(order.ahead[order.rows, row].sum())
    below = int(order.ahead[row, order.rows].sum())
    return 1 + above, int((order.group[order.rows] == order.group[row]).sum()) - below


def _tied_with_next(order: Order, row: int) -> bool | None:
    """Whether noise explains the difference to the next of its group; the last has none."""
    if order.ahead is None:
        return None
    place = int(np.flatnonzero(order.rows == row)[0])
    if place + 1 == len(order.rows):
        return False
    below = order.rows[place + 1]
    return bool(order.group[row] == order.group[below] and not order.ahead[row, below])


def _contenders(board: Board, order: Order) -> tuple[str, ...]:
    """Models below the first rank of their group that noise may have put there."""
    if order.ahead is None:
        return ()
    first = order.rows[order.rank[order.rows] == 1]
    below = order.rows[order.rank[order.rows] > 1]
    strange = order.group[first][:, np.newaxis] != order.group[below]
    apart = (order.ahead[np.ix_(first, below)] | strange).all(axis=0)
    return tuple(board.models[row] for row in below[~apart])


def _rating(board: Board, row: int) -> tuple[float | None, float | None, Interval | None]:
    """A model's rating, error and interval."""
    ratings, place = board.ratings, int(board.rated[row])
    if ratings is None or place < 0:
        return None, None, None
    low, high = _known(ratings.low[place]), _known(ratings.high[place])
    interval = None if low is None or high is None else Interval(low, high, ratings.level)
    return _known(ratings.rating[place]), _known(ratings.std_error[place]), interval


def _in_company(
    lines: Sequence[LeaderboardLine], before: Sequence[LeaderboardLine]
) -> frozenset[str]:
    """Models ranked in both windows among the same ones, but for those that came or went."""
    both = {line.model for line in lines} & {line.model for line in before}
    held: list[dict[int | None, set[str]]] = []
    for window in (lines, before):
        groups: dict[int | None, set[str]] = {}
        for line in window:
            if line.model in both:
                groups.setdefault(line.group, set()).add(line.model)
        held.append(groups)
    now, then = held
    return frozenset().union(*(group for group in now.values() if group in then.values()))


def _compared(
    line: LeaderboardLine, before: LeaderboardLine | None, level: float, *, ranked: bool
) -> LeaderboardLine:
    """The line with its change against the window before; `ranked`: its ranks compare."""
    if before is None or line.score is None or before.score is None:
        return line
    moved = None
    if ranked and line.rank is not None and before.rank is not None:
        moved = before.rank - line.rank
    gap = line.score - before.score
    return replace(line, change=Change(gap, moved, _beyond(line, before, level)))


def _beyond(line: LeaderboardLine, before: LeaderboardLine, level: float) -> bool | None:
    """Whether two mean scores of different sessions differ beyond noise, by Welch's t."""
    from scipy.special import stdtrit

    errors = line.std_error, before.std_error
    if line.score is None or before.score is None or errors[0] is None or errors[1] is None:
        return None
    now, then = errors[0] ** 2, errors[1] ** 2
    degrees = (now + then) ** 2 / (now**2 / (line.sessions - 1) + then**2 / (before.sessions - 1))
    reach = float(stdtrit(degrees, 0.5 + level / 2)) * math.sqrt(now + then)
    return abs(line.score - before.score) > reach


def _p_beats(board: Board, rows: list[int]) -> tuple[tuple[float | None, ...], ...]:
    """Confidence that one model is stronger than another, in the order of the lines."""
    if board.ratings is None:
        return ((None,) * len(rows),) * len(rows)
    known = board.rated[rows]
    table = board.ratings.p_beats()[np.ix_(known, known)]
    table[(known < 0)[:, np.newaxis] | (known < 0)] = np.nan
    return tuple(tuple(_known(cell) for cell in line) for line in table)


def _warnings(board: Board, terms: Terms) -> list[str]:
    """What the reader must know of the scores and of the ratings."""
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
