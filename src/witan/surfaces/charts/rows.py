"""A table that is drawn: a row per line, boxes behind rows, dots with intervals, numbers beside.

The rows are the dataset ``lines``, each at its ``y``.
"""

from collections.abc import Sequence

from witan.surfaces.charts.grammar import BOX, MUTED, Spec

__all__ = ["boxed", "cells", "dots", "headed"]


def boxed(dataset: str, y: Spec, width: float) -> Spec:
    """Draw a light box behind rows that are too close to call."""
    return {
        "data": {"name": dataset},
        "mark": {"type": "rect", "color": BOX, "cornerRadius": 3, "aria": False},
        "encoding": {
            "y": {"field": "top", **y},
            "y2": {"field": "bottom"},
            "x": {"value": 0},
            "x2": {"value": width},
        },
    }


def dots(
    x: Spec, y: Spec, *, mark: Spec, interval: Spec, dot: Spec, told: Sequence[str]
) -> list[Spec]:
    """Intervals, and on each a dot.

    Parameters
    ----------
    mark
        What a dot looks like.
    interval, dot
        How the one and the other is coloured; in `dot` also the field of its place on x.
    told
        The fields that are told of a dot.
    """
    lines: Spec = {"name": "lines"}
    place: Spec = {"field": "y", **y}
    return [
        {
            "data": lines,
            "mark": {"type": "rule", "strokeWidth": 2, "aria": False},
            "encoding": {
                "y": place,
                "x": {"field": "low", **x},
                "x2": {"field": "high"},
                **interval,
            },
        },
        {
            "data": lines,
            "mark": {"type": "point", "size": 75, "opacity": 1, **mark},
            "encoding": {"y": place, **dot, "tooltip": [{"field": name} for name in told]},
        },
    ]


def headed(field: str, header: str, x: float, y: Spec) -> list[Spec]:
    """Draw a column of numbers under its name."""
    above: Spec = {
        "data": {"values": [{"header": header}]},
        "mark": {"type": "text", "align": "right", "color": MUTED, "fontSize": 11},
        "encoding": {"x": {"value": x}, "y": {"value": -10}, "text": {"field": "header"}},
    }
    return [above, cells(field, x, y, {"align": "right"})]


def cells(field: str, x: float, y: Spec, style: Spec) -> Spec:
    """One field of every line, written at x pixels from the left of the plot."""
    return {
        "data": {"name": "lines"},
        "mark": {"type": "text", **style},
        "encoding": {"x": {"value": x}, "y": {"field": "y", **y}, "text": {"field": field}},
    }
