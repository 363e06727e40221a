"""Leaderboards: dots with intervals, and who is stronger than whom."""

from collections.abc import Iterator, Sequence

from witan.core.outcome import Interval
from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.errors import NothingToCount
from witan.service.text import UNKNOWN, clean, counted, number
from witan.surfaces.charts.grammar import (
    AHEAD,
    FAINT,
    MUTED,
    NAME_LIMIT,
    Spec,
    cell_side,
    frame,
    labels,
    matrix,
    name_pixels,
    paint,
)
from witan.surfaces.charts.rows import boxed, cells, dots, headed
from witan.surfaces.report.scale import SCORES

WIDTH, LINE = 400, 26

TABLE = 190
"""Room for the number, the ranks and the sessions right of the plot."""

ORDERS = {"rating": "Bradley–Terry rating, logits", "elo": "Elo rating"}


def leaderboard_chart(board: Leaderboard) -> Spec:
    """Draw each model's number with its interval, best on top, neighbours alike in one box.

    Models without a rank stand below the others, hollow.
    """
    lines, boxes, depth = _laid_out(board)
    x, y = axis_of(board, lines), _rows(depth)
    names = name_pixels(line["name"] for line in lines)
    finding = board.interpretation
    return frame(
        title=finding,
        notes=[*circumstances(board), *bars(board)],
        description=f"{counted(len(lines), 'model')}, best first. {finding}",
        size=(WIDTH, round(LINE * depth)),
        beside=names + 38 + TABLE,
        datasets={"lines": lines, "boxes": boxes},
        layers=[boxed("boxes", y, WIDTH), *_dots(x, y), *_columns(y)],
    )


def circumstances(board: Leaderboard) -> list[str]:
    """Rule, ballots and window: what any chart of a leaderboard depends on."""
    whose = "ballots of models" if board.terms.kind == "model" else "ballots of people"
    return [f"rule {board.terms.rule}", whose, str(board.terms.window)]


def bars(board: Leaderboard) -> list[str]:
    """Explain bars and hollow dots, and name groups that cannot be compared."""
    groups = ["groups of models that never met cannot be compared"] * (len(board.groups) > 1)
    if board.terms.order_by == "elo":
        return ["Elo states no noise", *groups]
    notes = [f"bars: {100 * board.terms.level:.4g} % intervals", *groups]
    if board.provisional:
        few = counted(board.terms.min_sessions, "scored session")
        notes.append(f"hollow: without a rank, for want of {few}")
    return notes


def number_of(board: Leaderboard, line: LeaderboardLine) -> tuple[float | None, Interval | None]:
    """Find the number that orders, and its interval."""
    if board.terms.order_by == "rating":
        return line.rating, line.rating_interval
    if board.terms.order_by == "elo":
        return line.elo, None
    return line.score, line.interval


def _laid_out(board: Leaderboard) -> tuple[list[Spec], list[Spec], float]:
    """Lines with their places, boxes round neighbours that noise may part, height in lines."""
    lines: list[Spec] = []
    boxes: list[Spec] = []
    depth = 0.0
    for group in board.groups:
        for band in bands_of(group):
            top = depth
            for line in band:
                lines.append({"y": depth + 0.5, **line_of(board, line)})
                depth += 1
            boxes.append({"top": top, "bottom": depth})
            depth += 0.2
        if group is not board.groups[-1]:
            depth += 0.5
    depth += 0.3 * bool(board.provisional)
    for line in board.provisional:
        lines.append({"y": depth + 0.5, **line_of(board, line)})
        depth += 1
    return lines, boxes, round(max(depth, 1.0), 6)


def bands_of(group: Sequence[LeaderboardLine]) -> Iterator[list[LeaderboardLine]]:
    """Part a group into neighbours that are too close to call."""
    band: list[LeaderboardLine] = []
    for line in group:
        band.append(line)
        if line.tied_with_next is not True or line is group[-1]:
            yield band
            band = []


def ranks_text(line: LeaderboardLine) -> str:
    """Print the ranks that noise leaves to a model."""
    if line.rank_low is None:
        return UNKNOWN
    alone = line.rank_low == line.rank_high
    return str(line.rank_low) if alone else f"{line.rank_low} to {line.rank_high}"


def line_of(board: Leaderboard, line: LeaderboardLine) -> Spec:
    """One model as data: numbers to place, words to print."""
    value, interval = number_of(board, line)
    digits = 0 if board.terms.order_by == "elo" else 3 if board.terms.order_by == "score" else 2
    return {
        "name": clean(line.model),
        "rank": UNKNOWN if line.rank is None else str(line.rank),
        "value": value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "state": "apart" if line.provisional else "ranked",
        "printed": number(value, digits).replace("-", "−"),
        "may": ranks_text(line),
        "sessions": f"{line.sessions:,}",
    }


def axis_of(board: Leaderboard, lines: Sequence[Spec]) -> Spec:
    """Run from worse to better, over all numbers and interval ends with a margin of 4 %."""
    by_score = board.terms.order_by == "score"
    low_is_better = by_score and RULES[board.terms.rule].lower_is_better
    held = [line[key] for line in lines for key in ("low", "value", "high")]
    known = [value for value in held if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    margin = 0.04 * (high - low)
    what = f"Mean over sessions · {SCORES.get(board.terms.rule, board.terms.rule)}"
    title = what if by_score else ORDERS[board.terms.order_by]
    return {
        "type": "quantitative",
        "scale": {
            "domain": [low - margin, high + margin],
            "nice": False,
            "zero": False,
            "reverse": low_is_better,
        },
        "axis": {
            "tickCount": 6,
            "grid": False,
            "title": f"{title} · {'lower' if low_is_better else 'higher'} is better →",
        },
    }


def _rows(depth: float) -> Spec:
    return {
        "type": "quantitative",
        "scale": {"domain": [0, depth], "nice": False, "reverse": True},
        "axis": None,
    }


def _dots(x: Spec, y: Spec) -> list[Spec]:
    """Intervals and dots; hollow for models without a rank."""
    fill, stroke = states()
    return dots(
        x,
        y,
        mark={"strokeWidth": 1.5},
        interval={"color": stroke},
        dot={"x": {"field": "value", **x}, "fill": fill, "stroke": stroke},
        told=("name", "rank", "value", "low", "high", "may", "sessions"),
    )


def _columns(y: Spec) -> list[Spec]:
    """Names and ranks left of the plot; the number, its ranks and sessions right of it."""
    return [
        cells("name", -38, y, {"align": "right", "limit": NAME_LIMIT}),
        *headed("rank", "rank", -12, y),
        *headed("printed", "value", WIDTH + 54, y),
        *headed("may", "may rank", WIDTH + 120, y),
        *headed("sessions", "sessions", WIDTH + 182, y),
    ]


def strength_chart(board: Leaderboard) -> Spec:
    """Draw how surely the model of a row is stronger than that of a column, by the ratings."""
    lines = [*board.lines, *board.provisional]
    names = [clean(line.model) for line in lines]
    cells: list[Spec] = [
        {
            "row": i,
            "column": j,
            "model": name,
            "rival": rival,
            "p_beats": p,
            "text": "" if i == j else probability_text(p),
            "note": "",
            "fill": FAINT if i == j or p is None else paint(2 * p - 1),
        }
        for i, (name, row) in enumerate(zip(names, board.p_beats, strict=True))
        for j, (rival, p) in enumerate(zip(names, row, strict=True))
    ]
    if not any(cell["p_beats"] is not None for cell in cells):
        raise NothingToCount(f"no two models are rated with an error {board.terms.window}")
    side = cell_side(cell["text"] for cell in cells)
    return frame(
        title=board.interpretation,
        notes=[
            *circumstances(board),
            "number: confidence that the row is stronger than the column, by the ratings",
            "rows as on the leaderboard",
        ],
        description=f"Confidence in who is stronger, of {counted(len(names), 'model')}.",
        size=(side * len(names), side * len(names)),
        beside=1.7 * name_pixels(names),
        datasets={"cells": cells, "rows": labels(names), "columns": labels(names)},
        layers=matrix({"fontSize": 11}, names, ("model", "rival", "p_beats")),
    )


def probability_text(p: float | None) -> str:
    """Two digits without the zero before them; nearly sure is no more than nearly."""
    if p is None:
        return UNKNOWN
    return "<.01" if p < 0.005 else ">.99" if p >= 0.995 else f"{p:.2f}"[1:] if p < 1 else "1"


def states() -> tuple[Spec, Spec]:
    """Return the inks of dots with a rank, and hollow ones without: fill and stroke."""
    states = ["ranked", "apart"]
    fill = {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": states, "range": [AHEAD, "white"]},
        "legend": None,
    }
    return fill, {**fill, "scale": {"domain": states, "range": [AHEAD, MUTED]}}
