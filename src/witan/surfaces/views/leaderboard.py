"""A leaderboard as its page shows it: dots with intervals, who beats whom, cost, and time."""

from collections.abc import Sequence
from dataclasses import dataclass

from witan.core.outcome import Interval
from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.core.window import Window
from witan.service.text import clean, number
from witan.surfaces.charts.leaderboards import (
    ORDERS,
    bars,
    circumstances,
    line_of,
    probability_text,
)
from witan.surfaces.charts.standings import SCORES
from witan.surfaces.text.leaderboard import board_columns, board_notes, parted
from witan.surfaces.views.costs import Costs, costs
from witan.surfaces.views.numbers import Numbers, numbers
from witan.surfaces.views.scale import Dot, Scale
from witan.surfaces.views.trend import Trend, trend

__all__ = ["BoardView", "board_view"]

TIED = "neighbours too close to call"

SHADES = ((0.95, 1), (0.8, 2), (0.65, 3), (0.5, 4))
"""Confidence from which a cell has a shade."""

FIRST = 12
"""Models that everybody's strength is shown of at once: beyond it one grid is no longer read."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One model: its number with the interval, and the ranks that noise leaves to it."""

    name: str
    rank: str
    value: str
    interval: str
    may: str
    dot: Dot | None


@dataclass(frozen=True, slots=True)
class Band:
    """Neighbours that noise may part, or a model alone.

    Parameters
    ----------
    label
        What is said of them; empty: nothing.
    ranked
        They have ranks.
    """

    label: str
    bars: tuple[Bar, ...]
    ranked: bool = True


@dataclass(frozen=True, slots=True)
class Beats:
    """How surely the model of a row is stronger than that of a column.

    Parameters
    ----------
    shade
        From 1, nearly sure, to 4; 5: it is not, or nothing is known.
    """

    text: str
    spoken: str
    shade: int


@dataclass(frozen=True, slots=True)
class Strength:
    """Everybody against everybody.

    Parameters
    ----------
    shown
        How many of the first are shown before all are asked for.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Beats | None, ...], ...]
    shown: int


@dataclass(frozen=True, slots=True)
class BoardView:
    """Everything on the page of a leaderboard.

    Parameters
    ----------
    about
        Rule, ballots and window.
    low, high
        What the ends of the plot stand for.
    marks
        What bars and boxes mean.
    """

    about: str
    said: str
    axis: str
    low: str
    high: str
    marks: str
    bands: tuple[Band, ...]
    numbers: Numbers
    strength: Strength | None
    costs: Costs | None
    trend: Trend | None
    notes: tuple[str, ...]


def board_view(
    board: Leaderboard, parts: Sequence[tuple[Window, Leaderboard | None]] = ()
) -> BoardView:
    """The page of a leaderboard; `parts` are the same in parts of its time."""
    lines = (*board.lines, *board.provisional)
    by_score = board.terms.order_by == "score"
    rule = RULES[board.terms.rule]
    turned = by_score and rule.lower_is_better
    scale = Scale.over((_ordering(board, line) for line in lines), turned=turned)
    what = SCORES.get(rule.name, rule.name)
    axis = f"Mean over sessions · {what}" if by_score else ORDERS[board.terms.order_by]
    digits = 0 if board.terms.order_by == "elo" else 2
    low, high = (number(end, digits).replace("-", "−") for end in scale.ends)
    better = "lower is better" if turned else "higher is better"
    return BoardView(
        about=" · ".join(circumstances(board)),
        said=clean(board.interpretation),
        axis=f"{axis}; {better}",
        low=low,
        high=high,
        marks="; ".join(bars(board)).replace(" %", "%"),
        bands=tuple(_bands(board, scale)),
        numbers=numbers(board_columns(board, lines), "model", _breaks(board)),
        strength=_strength(board),
        costs=costs(board),
        trend=trend(board, parts),
        notes=tuple(map(clean, (*board_notes(board), *board.warnings))),
    )


def _ordering(board: Leaderboard, line: LeaderboardLine) -> tuple[float | None, Interval | None]:
    """What orders, and its interval."""
    if board.terms.order_by == "rating":
        return line.rating, line.rating_interval
    return (line.elo, None) if board.terms.order_by == "elo" else (line.score, line.interval)


def _bands(board: Leaderboard, scale: Scale) -> list[Band]:
    bands: list[Band] = []
    for lines in board.groups:
        held: list[Bar] = []
        group = [f"group {lines[0].group}"] * (len(board.groups) > 1)
        for line in lines:
            held.append(_bar(board, line, scale))
            if line.tied_with_next is not True or line is lines[-1]:
                label = [*group, *[TIED] * (len(held) > 1)]
                bands.append(Band(" · ".join(label), tuple(held)))
                held, group = [], []
    if board.provisional:
        apart = tuple(_bar(board, line, scale) for line in board.provisional)
        bands.append(Band("without a rank", apart, ranked=False))
    return bands


def _bar(board: Leaderboard, line: LeaderboardLine, scale: Scale) -> Bar:
    said = line_of(board, line)
    value, interval = _ordering(board, line)
    ends = "unknown"
    if interval is not None:
        digits = 3 if board.terms.order_by == "score" else 2
        ends = f"{number(interval.low, digits)} to {number(interval.high, digits)}"
    return Bar(
        said["name"],
        said["rank"],
        said["printed"],
        ends.replace("-", "−"),
        said["may"],
        scale.dot(value, interval),
    )


def _breaks(board: Leaderboard) -> set[int]:
    ranked, n_lines = len(board.lines), len(board.lines) + len(board.provisional)
    return (parted(board.lines) | {ranked}) - {n_lines}


def _strength(board: Leaderboard) -> Strength | None:
    names = [clean(line.model) for line in (*board.lines, *board.provisional)]
    if len(names) < 2 or not any(p is not None for row in board.p_beats for p in row):
        return None
    rows = [
        tuple(
            None if i == j else _beats(p, row_name, names[j])
            for j, p in enumerate(board.p_beats[i])
        )
        for i, row_name in enumerate(names)
    ]
    return Strength(tuple(names), tuple(rows), min(len(names), FIRST))


def _beats(p: float | None, name: str, rival: str) -> Beats:
    if p is None:
        return Beats("–", f"{name} over {rival}: unknown", 5)
    shade = next((shade for least, shade in SHADES if p >= least), 5)
    return Beats(probability_text(p), f"{name} over {rival}: {number(p)}", shade)
