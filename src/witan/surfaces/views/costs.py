"""Cost against quality: a numbered dot for each model, and the numbers beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard
from witan.service.text import counted, number
from witan.surfaces.charts.leaderboards import line_of
from witan.surfaces.text.tables import Column
from witan.surfaces.views.numbers import Numbers, numbers
from witan.surfaces.views.scale import MARGIN, Scale

__all__ = ["Costs", "costs"]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a model lies, in percent from the left and from the top, and its interval."""

    key: str
    x: float
    y: float
    low: float | None
    high: float | None
    spoken: str


@dataclass(frozen=True, slots=True)
class Costs:
    """The chart.

    Parameters
    ----------
    dearest, low, high
        What its right end, its bottom and its top stand for.
    left_out
        Models without a known cost, in words; empty: none.
    """

    points: tuple[Point, ...]
    dearest: str
    low: str
    high: str
    numbers: Numbers
    left_out: str


def costs(board: Leaderboard) -> Costs | None:
    """The chart; None: of no two models both numbers are known."""
    lines = (*board.lines, *board.provisional)
    known = [
        (line.effort.cost_usd, said)
        for line in lines
        if line.effort.cost_usd is not None and (said := line_of(board, line))["value"] is not None
    ]
    most = max((cost for cost, _ in known), default=0.0)
    if len(known) < 2 or most <= 0:
        return None
    turned = board.terms.order_by == "score" and RULES[board.terms.rule].lower_is_better
    ends = [(said[end], None) for _, said in known for end in ("low", "value", "high")]
    scale = Scale.over(ends, turned=turned)
    points = [
        _point(str(key), cost / most, said, scale) for key, (cost, said) in enumerate(known, 1)
    ]
    usd = [number(cost, 4) for cost, _ in known]
    columns = [
        (Column("no."), [point.key for point in points]),
        (Column("model", "left"), [said["name"] for _, said in known]),
        (Column("number"), [said["printed"] for _, said in known]),
        (Column("$/answer"), usd),
    ]
    unknown = len(lines) - len(points)
    low, high = (number(end, 2).replace("-", "−") for end in scale.ends)
    return Costs(
        points=tuple(points),
        dearest=number(most, 4),
        low=low,
        high=high,
        numbers=numbers(columns, "model"),
        left_out=f"Left out, without a known cost: {counted(unknown, 'model')}." if unknown else "",
    )


def _point(key: str, share: float, said: Mapping[str, Any], scale: Scale) -> Point:
    """A model; `share` is its cost over that of the dearest."""
    low, high = (None if said[end] is None else scale.down(said[end]) for end in ("low", "high"))
    x = round(MARGIN + (100 - 2 * MARGIN) * share, 2)
    spoken = f"{key}, {said['name']}: {said['printed']}"
    return Point(key, x, scale.down(said["value"]), low, high, spoken)
