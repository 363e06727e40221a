"""The leaderboard: models in order across sessions, with intervals and warnings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Kind
from witan.core.display import Displayed, list_names
from witan.core.outcome import Confidence, Interval, check_level, join_names
from witan.core.rules import RULES
from witan.core.rules.registry import Rule
from witan.core.stats.mean_scores import MeanScores, mean_scores
from witan.core.stats.ratings import Ratings, rate_sums
from witan.core.stats.sums import AnswerSums, MatchupSums, Names, StandingSums, places
from witan.core.window import ALWAYS, Window
from witan.errors import InvalidParameter, NothingToCount

OrderBy = Literal["score", "rating", "elo"]

ORDERS: tuple[OrderBy, ...] = ("score", "rating", "elo")

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

DIGITS = 10
"""Numbers that agree to this many digits of the largest are equal: what sums in floats leave."""

NUMBERS = {"score": "mean score", "rating": "rating", "elo": "Elo rating"}

MOST = 5
"""More names than this are counted instead of listed."""


TOLD = 3
"""Groups beyond these are counted and not told."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Parameters of a leaderboard.

    Parameters
    ----------
    rule
        Whose per-session scores are averaged.
    kind
        Whose ballots: those of models or of people.
    window
        Which sessions; it says what the sums were made of and selects nothing by itself.
    order_by
        ``score``, the mean over sessions; ``rating``, the Bradley–Terry strength; ``elo``.
    min_sessions
        Models with fewer scored sessions are listed apart.
    level
        Of all intervals and comparisons.
    ghost_wins
        The prior of the ratings: wins, and as many losses, of every model against one ghost.

    Raises
    ------
    InvalidParameter
        If an option is outside what it accepts.
    """

    rule: str = "borda"
    kind: Kind = "model"
    window: Window = ALWAYS
    order_by: OrderBy = "score"
    min_sessions: int = 10
    level: float = 0.95
    ghost_wins: float = 0.5

    def __post_init__(self) -> None:
        if self.order_by not in ORDERS:
            raise InvalidParameter("order_by", self.order_by, "'score', 'rating' or 'elo'")
        if self.kind not in ("model", "human"):
            raise InvalidParameter("kind", self.kind, "'model' or 'human'")
        if isinstance(self.min_sessions, bool) or self.min_sessions < 1:
            raise InvalidParameter("min_sessions", self.min_sessions, "a number from 1 up")
        check_level(self.level)


@dataclass(frozen=True, slots=True)
class Change:
    """A model now against the window before.

    Parameters
    ----------
    score
        Its mean score now less the one before.
    rank
        Ranks gained; negative: lost. None: without a rank in either window.
    beyond_error
        The change of score is larger than noise explains; None: an error is unknown.
    """

    score: float
    rank: int | None
    beyond_error: bool | None


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost and time of a model's answers.

    Parameters
    ----------
    answers, failure_rate
        Answers asked for, and the share of them that never came; None: none was asked for.
    cost_usd, costed
        Mean cost of an answer, and over how many whose cost is known. None: of none.
    seconds, timed
        Mean time of an answer, likewise.
    """

    answers: int = 0
    failure_rate: float | None = None
    cost_usd: float | None = None
    costed: int = 0
    seconds: float | None = None
    timed: int = 0


@dataclass(frozen=True, slots=True)
class LeaderboardLine:
    """One model. None is what cannot be said.

    Parameters
    ----------
    model
        Its present name.
    rank
        1 is best, among the lines of its group that are not provisional; dead heats share it
        (1, 2, 2, 4).
    rank_low, rank_high
        The best and the worst rank it may have: 1 + lines above it beyond noise, and lines of its
        group less those below it beyond noise, in the number that orders. Elo states no noise.
    tied_with_next
        The difference to the line below cannot be told from noise; the last of a group has none.
    provisional
        Listed apart and without a rank: fewer scored sessions than asked for, nothing to order
        it by, or nobody it was compared with.
    group
        Number, from 1, of the models that chains of comparisons join it with; only these can be
        compared. None: no ballot compares it, or no ballot any two.
    score, std_error, interval
        Mean over sessions of the session's score; its error clustered by session.
    sessions, appearances
        Sessions that gave it a score, and all in which it stood.
    votes, offered, wins
        Ballots that said something of it, seats that could have, and first places, k tied for
        first 1/k each.
    coverage, confidence
        votes / offered, and high from 0.8 on, medium from 0.5 on, else low; one session is low.
    z
        Mean over sessions of its mean standardised grade.
    rating, rating_error, rating_interval
        Bradley–Terry strength in logits, its error clustered by groups of sessions.
    elo
        After the last session.
    change
        Against the window before; None: not in it.
    """

    model: str
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    tied_with_next: bool | None
    provisional: bool
    group: int | None
    score: float | None
    std_error: float | None
    interval: Interval | None
    sessions: int
    appearances: int
    votes: int
    offered: int
    wins: float
    coverage: float | None
    confidence: Confidence
    z: float | None
    rating: float | None
    rating_error: float | None
    rating_interval: Interval | None
    elo: float | None
    change: Change | None
    effort: Effort


@dataclass(frozen=True, slots=True)
class Leaderboard(Displayed):
    """Models across the sessions of a window.

    Parameters
    ----------
    lines
        Group by group, the one with the most ranks first; best first in each, equal ones in
        alphabetical order.
    provisional
        Models listed apart, likewise.
    contenders
        Models below the first rank of their group that are too close to call against it: somebody
        who has it is not above them beyond noise. Where one has it alone, its worst rank is one
        more than these.
    p_beats
        Confidence that the model of row i is stronger than that of row j, by the ratings; rows
        are `lines`, then `provisional`. None: no chain of comparisons joins them, or no error.
    n_comparisons
        Weight of the comparisons behind the ratings.
    compared_to
        The window that changes refer to.
    warnings
        What the reader must know.
    interpretation
        What can be said of it, and no more, in a sentence.
    """

    terms: Terms
    lines: tuple[LeaderboardLine, ...]
    provisional: tuple[LeaderboardLine, ...]
    contenders: tuple[str, ...]
    p_beats: tuple[tuple[float | None, ...], ...]
    n_comparisons: float
    compared_to: Window | None
    warnings: tuple[str, ...]
    interpretation: str = ""

    def __repr__(self) -> str:
        lead = list_names(line.model for line in self.lines)
        few = f", {len(self.provisional)} provisional" if self.provisional else ""
        return f"<Leaderboard by {self.terms.rule}: {lead or 'nobody yet'}{few}>"

    @property
    def groups(self) -> tuple[tuple[LeaderboardLine, ...], ...]:
        """Ranked lines by groups of connected models."""
        return tuple(tuple(group) for _, group in groupby(self.lines, key=attrgetter("group")))

    @property
    def by_model(self) -> Mapping[str, LeaderboardLine]:
        """Every line by its model, provisional ones included."""
        return {line.model: line for line in (*self.lines, *self.provisional)}


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """Sums of a window for M models.

    Parameters
    ----------
    models : tuple of str
        In alphabetical order; so is everything below.
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
    ratings = None if matchups is None else _ratings(matchups, names, terms)
    where = {} if ratings is None else {name: row for row, name in enumerate(ratings.models)}
    return Board(
        models=models,
        means=mean_scores(standings, stood, len(models)),
        efforts=_efforts(answers, answered, len(models)),
        ratings=ratings,
        rated=np.array([where.get(model, -1) for model in models], dtype=np.int64),
    )


def put_in_order(board: Board, rule: Rule, terms: Terms, elo: Mapping[str, float]) -> Order:
    """Rank the eligible models by rating or mean score.

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
        ahead = board.means.ahead(terms.level)
        ahead = ahead.T.copy() if rule.lower_is_better else ahead
    elif terms.order_by == "rating":
        key, ahead = _order_by_rating(board)
    else:
        key = by_elo
    if np.isnan(key).all():
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
    """Add up the cost and time of each model's answers."""
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
            answers=round(attempts),
            failure_rate=failed / attempts if attempts else None,
            cost_usd=cost / costed if costed else None,
            costed=round(costed),
            seconds=seconds / timed if timed else None,
            timed=round(timed),
        )
        for attempts, failed, cost, costed, seconds, timed in zip(*map(added, columns), strict=True)
    )


def _order_by_rating(board: Board) -> tuple[Array, Flags]:
    """Ratings in board order, and pairs ahead of each other."""
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
    """Connected groups of models, shape (M,); 0: no comparisons.

    The first has the most models that may be ranked, then the most comparisons, then the
    alphabetically first model.
    """
    numbered = np.zeros(len(board.models), dtype=np.int64)
    ratings = board.ratings
    if ratings is None:
        return numbered
    met = (ratings.wins + ratings.losses + ratings.ties)[board.rated]
    weight = np.where(board.rated >= 0, met, 0.0)
    label = np.where(weight > 0, ratings.group[board.rated], -1)
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
    """Round away summation noise."""
    # Never finer than the unit itself: numbers that are all but 0 differ by dust alone.
    rounded: Array = np.round(key / np.fmax.reduce(np.abs(key), initial=1.0), DIGITS)
    return rounded


def conclusion(board: Leaderboard) -> str:
    """Name the leader, and the models too close to call against it.

    Of models that fall into groups that never met it is said group by group.
    """
    groups = board.groups
    if not groups:
        needed = board.terms.min_sessions
        few = f"fewer than {needed} scored session{'' if needed == 1 else 's'}"
        return f"No model has a rank: each has {few}, or nothing to be ordered by."
    if len(groups) == 1:
        sentence = _who_leads(board, groups[0])
    else:
        clauses = [
            f"in group {lines[0].group}, {_who_leads(board, lines)}" for lines in groups[:TOLD]
        ]
        if len(groups) > TOLD:
            more = len(groups) - TOLD
            clauses.append(f"{more} more group{'' if more == 1 else 's'} likewise")
        apart = f"{len(groups)} groups that never met, each ranked by itself"
        sentence = f"Models with a rank fall into {apart}: {'; '.join(clauses)}"
    if board.terms.order_by == "elo" and len(board.lines) > 1:
        return f"{sentence}; Elo states no noise, so whether that is chance cannot be told."
    return f"{sentence}."


def _who_leads(board: Leaderboard, lines: tuple[LeaderboardLine, ...]) -> str:
    first = [line.model for line in lines if line.rank == 1]
    if len(lines) == 1:
        return f"{first[0]} is the only model with a rank"
    number = NUMBERS[board.terms.order_by]
    lead = f"{_join_models(first)} {'share' if len(first) > 1 else 'has'} the best {number}"
    if board.terms.order_by == "elo":
        return lead
    return f"{lead}, {_how_surely(board, lines, f'{board.terms.level * 100:g}%')}"


def _how_surely(board: Leaderboard, lines: tuple[LeaderboardLine, ...], level: str) -> str:
    shared = sum(line.rank == 1 for line in lines) > 1
    if all(line.rank_low == 1 and line.rank_high == len(lines) for line in lines):
        return f"but all models are too close to call at {level}"
    known = {*board.contenders}
    if contenders := [line.model for line in lines if line.model in known]:
        return f"but too close to call against {_join_models(contenders)} at {level}"
    if shared:
        return f"and are too close to call at {level}"
    return f"above every other model beyond noise ({level})"


def _join_models(models: Sequence[str]) -> str:
    names = [*models]
    if len(names) > MOST:
        names = [*names[: MOST - 1], f"{len(names) - MOST + 1} more"]
    return join_names(names)


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
        before, company = previous.by_model, _models_in_same_company(lines, previous.lines)
        lines, apart = (
            tuple(
                _add_change(line, before.get(line.model), terms.level, ranked=line.model in company)
                for line in group
            )
            for group in (lines, apart)
        )
    board_now = Leaderboard(
        terms=terms,
        lines=lines,
        provisional=apart,
        contenders=_contenders(board, order),
        p_beats=_p_beats(board, [*order.rows, *order.apart]),
        n_comparisons=0 if board.ratings is None else board.ratings.n_comparisons,
        compared_to=None if previous is None else previous.terms.window,
        warnings=tuple(_warnings(board, terms)),
    )
    return replace(board_now, interpretation=conclusion(board_now))


def _check(
    standings: StandingSums,
    elo: Mapping[int, float] | None,
    previous: Leaderboard | None,
    terms: Terms,
) -> None:
    """Refuse an empty window, an unknown order, and incomparable windows."""
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
    score, error = _none_if_nan(means.mean[row]), _none_if_nan(means.std_error[row])
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
    """Best and worst rank of a model within noise."""
    if order.ahead is None:
        return None, None
    above = int(order.ahead[order.rows, row].sum())
    below = int(order.ahead[row, order.rows].sum())
    return 1 + above, int((order.group[order.rows] == order.group[row]).sum()) - below


def _tied_with_next(order: Order, row: int) -> bool | None:
    """True if noise explains the difference to the next of its group."""
    if order.ahead is None:
        return None
    place = int(np.flatnonzero(order.rows == row)[0])
    if place + 1 == len(order.rows):
        return False
    below = order.rows[place + 1]
    return bool(order.group[row] == order.group[below] and not order.ahead[row, below])


def _contenders(board: Board, order: Order) -> tuple[str, ...]:
    """Models possibly first in their group within noise."""
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
    low, high = _none_if_nan(ratings.low[place]), _none_if_nan(ratings.high[place])
    interval = None if low is None or high is None else Interval(low, high, ratings.level)
    return _none_if_nan(ratings.rating[place]), _none_if_nan(ratings.std_error[place]), interval


def _models_in_same_company(
    lines: Sequence[LeaderboardLine], before: Sequence[LeaderboardLine]
) -> frozenset[str]:
    """Models ranked among the same others in both windows, newcomers aside."""
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
    line: LeaderboardLine, before: LeaderboardLine | None, level: float, *, ranked: bool
) -> LeaderboardLine:
    """The line with its change; `ranked`: ranks are comparable."""
    if before is None or line.score is None or before.score is None:
        return line
    moved = None
    if ranked and line.rank is not None and before.rank is not None:
        moved = before.rank - line.rank
    gap = line.score - before.score
    return replace(line, change=Change(gap, moved, _is_beyond_noise(line, before, level)))


def _is_beyond_noise(line: LeaderboardLine, before: LeaderboardLine, level: float) -> bool | None:
    """True if two independent mean scores differ beyond noise, by Welch's t."""
    from scipy.special import stdtrit

    errors = line.std_error, before.std_error
    if line.score is None or before.score is None or errors[0] is None or errors[1] is None:
        return None
    now, then = errors[0] ** 2, errors[1] ** 2
    degrees = (now + then) ** 2 / (now**2 / (line.sessions - 1) + then**2 / (before.sessions - 1))
    reach = float(stdtrit(degrees, 0.5 + level / 2)) * math.sqrt(now + then)
    return abs(line.score - before.score) > reach


def _p_beats(board: Board, rows: list[int]) -> tuple[tuple[float | None, ...], ...]:
    """P(one model is stronger than another), in line order."""
    if board.ratings is None:
        return ((None,) * len(rows),) * len(rows)
    known = board.rated[rows]
    table = board.ratings.p_beats()[np.ix_(known, known)]
    table[(known < 0)[:, np.newaxis] | (known < 0)] = np.nan
    return tuple(tuple(_none_if_nan(cell) for cell in line) for line in table)


def _warnings(board: Board, terms: Terms) -> list[str]:
    """Warnings about the scores and the ratings."""
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
