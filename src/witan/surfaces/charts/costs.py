"""Score beside cost: a dot with its interval for each model, named beside the plot."""

from collections.abc import Sequence

from witan.core.stats.leaderboard import Leaderboard
from witan.errors import NothingToCount
from witan.service.text import counted
from witan.surfaces.charts.grammar import FAINT, NAME_LIMIT, Spec, frame, name_pixels
from witan.surfaces.charts.leaderboards import (
    ORDERS,
    axis_of,
    bars,
    circumstances,
    line_of,
    states,
)

__all__ = ["cost_chart"]

SCATTER, NAMES_APART = 460, 17
"""Width of a scatter, and pixels from one name beside it to the next."""


def cost_chart(board: Leaderboard) -> Spec:
    """Draw each model's number with its interval beside what an answer of it costs.

    Raises
    ------
    NothingToCount
        If no answer has a known cost.
    """
    rows = [*board.lines, *board.provisional]
    lines: list[Spec] = []
    for line in rows:
        cost = line.effort.cost_usd
        data = line_of(board, line)
        if cost is not None and data["value"] is not None:
            lines.append({**data, "cost": cost})
    if not lines:
        raise NothingToCount(f"no answer has a known cost {board.terms.window}")
    unknown = len(rows) - len(lines)
    left_out = [f"left out, without a known cost: {counted(unknown, 'model')}"] * bool(unknown)
    y = axis_of(board, lines)
    y["axis"]["title"] = f"{_what(board)} · {y['axis']['title'].rpartition(' · ')[2]}"
    height = max(320, NAMES_APART * len(lines))
    dearest = 1.05 * (max(line["cost"] for line in lines) or 1.0)
    return frame(
        title=board.interpretation,
        notes=[*circumstances(board), *bars(board), *left_out],
        description=f"Number beside cost of {counted(len(lines), 'model')}.",
        size=(SCATTER, height),
        beside=name_pixels(line["name"] for line in lines) + 90,
        datasets={"lines": _named(lines, y["scale"], dearest, height)},
        layers=_scatter(y, dearest),
    )


def _what(board: Leaderboard) -> str:
    if board.terms.order_by == "score":
        return f"Mean score ({board.terms.rule})"
    return ORDERS[board.terms.order_by]


def _named(lines: Sequence[Spec], y: Spec, dearest: float, height: float) -> list[Spec]:
    """Lines with the places of their names: right of the plot, none on top of another."""
    low, high = y["domain"]
    scale = height / (high - low) * (-1 if y["reverse"] else 1)
    middle = (low + high) / 2
    # Down the plot, in pixels from its middle.
    order = sorted(lines, key=lambda line: -(line["value"] - middle) * scale)
    places: list[float] = []
    for line in order:
        wanted = -(line["value"] - middle) * scale
        places.append(max(wanted, places[-1] + NAMES_APART) if places else wanted)
    room = height / 2 - NAMES_APART / 2
    over = max(places[-1] - room, 0.0)
    for row in reversed(range(len(places))):
        most = room if row + 1 == len(places) else places[row + 1] - NAMES_APART
        places[row] = min(places[row], most) if over else places[row]
    beyond = dearest * (1 + 22 / SCATTER)
    return [
        {**line, "name_x": beyond, "name_y": middle - place / scale}
        for line, place in zip(order, places, strict=True)
    ]


def _scatter(y: Spec, dearest: float) -> list[Spec]:
    """Intervals and dots over cost, and a fine line from each dot to its name."""
    x: Spec = {
        "type": "quantitative",
        "scale": {"domain": [0, dearest], "nice": False},
        "axis": {"tickCount": 6, "grid": False, "title": "← cheaper · mean cost of an answer, US$"},
    }
    cost: Spec = {"field": "cost", **x}
    value: Spec = {"field": "value", **y}
    fill, stroke = states()
    tooltip = [{"field": name} for name in ("name", "value", "cost", "sessions")]
    named: Spec = {"x": {"field": "name_x", **x}, "y": {"field": "name_y", **y}}
    ends: Spec = {"y": {"field": "low", **y}, "y2": {"field": "high"}}
    beside: Spec = {"x2": {"field": "name_x"}, "y2": {"field": "name_y"}}
    layers: list[tuple[Spec, Spec]] = [
        (
            {"type": "rule", "strokeWidth": 1, "color": FAINT, "aria": False},
            {"x": cost, "y": value, **beside},
        ),
        (
            {"type": "rule", "strokeWidth": 2, "opacity": 0.6, "aria": False},
            {"x": cost, **ends, "color": stroke},
        ),
        (
            {"type": "point", "size": 75, "opacity": 1, "strokeWidth": 1.5},
            {"x": cost, "y": value, "fill": fill, "stroke": stroke, "tooltip": tooltip},
        ),
        (
            {"type": "text", "align": "left", "dx": 4, "limit": NAME_LIMIT},
            {**named, "text": {"field": "name"}},
        ),
    ]
    return [
        {"data": {"name": "lines"}, "mark": mark, "encoding": encoding} for mark, encoding in layers
    ]
