"""Frame, inks and words of all charts, and a matrix of printed cells.

Positions, words and inks are computed here and given as data. Names from ballots occur in data
values, titles and descriptions alone, never in an expression, so whatever they contain is drawn.
"""

import textwrap
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from witan.core.outcome import Outcome
from witan.service.text import clean, counted, span

__all__ = [
    "AHEAD",
    "BEHIND",
    "BOX",
    "CHARACTER",
    "FAINT",
    "INK",
    "MUTED",
    "NAME_LIMIT",
    "REMARK",
    "Spec",
    "cell_side",
    "circumstances",
    "frame",
    "labels",
    "matrix",
    "name_pixels",
    "paint",
    "signed",
    "two_states",
]

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"

INK, MUTED, FAINT, BOX = "#1a1a1a", "#5f6368", "#e3e5e8", "#eef2f7"
AHEAD, BEHIND = "#0072b2", "#d55e00"
"""Blue and vermilion of Okabe and Ito's palette, told apart under every colour blindness."""

CELL_AHEAD, CELL_LEVEL, CELL_BEHIND = "5aa9d9", "f7f7f7", "ec9a61"
"""The same two hues, light enough for dark numbers (contrast above 6 to 1)."""

REMARK = "#a34700"
"""The vermilion of what failed, dark enough for small words on white."""

CHARACTER = 6.1
"""Mean width of a character of a label, in pixels; only line breaks and limits depend on it."""

TITLE_LINES = 4
"""Lines a title may take; the description always holds all of it."""

NAME_LIMIT = 460
"""Pixels a name may take, forty of the widest letters; what is longer ends in an ellipsis."""

CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "text": {"color": INK, "fontSize": 12, "baseline": "middle"},
    "title": {
        "color": INK,
        "fontSize": 15,
        "fontWeight": "bold",
        "lineHeight": 19,
        "subtitleColor": MUTED,
        "subtitleFontSize": 11.5,
        "subtitleLineHeight": 15,
        "subtitlePadding": 5,
    },
    "axis": {
        "labelColor": MUTED,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "gridColor": FAINT,
        "domainColor": MUTED,
        "tickColor": MUTED,
    },
}


def frame(
    *,
    title: str,
    notes: Sequence[str],
    description: str,
    size: tuple[int, int],
    beside: float,
    datasets: dict[str, list[Spec]],
    layers: list[Spec],
) -> Spec:
    """Put layers into one chart; `beside` is the room left and right of its plot, in pixels."""
    width = max(size[0] + beside, 440)
    return {
        "$schema": SCHEMA,
        "description": clean(description),
        "background": "white",
        "padding": 12,
        "title": {
            "text": textwrap.wrap(
                clean(title),
                int(width / 7.6),
                max_lines=TITLE_LINES,
                placeholder=" …",
                break_on_hyphens=False,
            ),
            "subtitle": textwrap.wrap(clean(" · ".join(notes)), int(width / 5.7)),
            "anchor": "start",
            "frame": "bounds",
            "offset": 16,
        },
        "width": size[0],
        "height": size[1],
        "datasets": datasets,
        "layer": layers,
        "config": deepcopy(CONFIG),
    }


def matrix(words: Spec, columns: Sequence[str], tooltip: Sequence[str]) -> list[Spec]:
    """Cells with a printed number, named rows, and columns whose names slant unless they fit.

    Reads the datasets ``cells`` (row, column, text, note, fill), ``rows`` and ``columns``
    (index, name); `words` styles the numbers.
    """
    row: Spec = {"field": "row", "type": "ordinal", "axis": None}
    column: Spec = {"field": "column", "type": "ordinal", "axis": None}
    cells: Spec = {"name": "cells"}
    slant: Spec = {"align": "left", "angle": 315}
    if max(map(span, columns), default=0) <= 3:
        slant = {"align": "center"}
    number = {"y": row, "x": column, "text": {"field": "text"}}
    note = {**number, "text": {"field": "note"}}
    return [
        {
            "data": cells,
            "mark": {"type": "rect", "stroke": "white", "strokeWidth": 1.5},
            "encoding": {
                "y": row,
                "x": column,
                "color": {"field": "fill", "type": "nominal", "scale": None},
                "tooltip": [{"field": name} for name in tooltip],
            },
        },
        {"data": cells, "mark": {"type": "text", **words}, "encoding": number},
        {"data": cells, "mark": {"type": "text", "fontSize": 9, "dy": 9}, "encoding": note},
        {
            "data": {"name": "rows"},
            "mark": {"type": "text", "align": "right", "limit": NAME_LIMIT},
            "encoding": {
                "y": {**row, "field": "index"},
                "x": {"value": -8},
                "text": {"field": "name"},
            },
        },
        {
            "data": {"name": "columns"},
            "mark": {"type": "text", "limit": NAME_LIMIT, **slant},
            "encoding": {
                "x": {**column, "field": "index"},
                "y": {"value": -10},
                "text": {"field": "name"},
            },
        },
    ]


def labels(names: Iterable[str]) -> list[Spec]:
    """Names of rows or columns, numbered."""
    return [{"index": index, "name": name} for index, name in enumerate(names)]


def cell_side(texts: Iterable[str]) -> int:
    """Pixels of a square cell that holds the longest of these."""
    return max(26, round(12 + 7 * max(map(len, texts), default=0)))


def name_pixels(names: Iterable[str]) -> float:
    """About how wide a column of names is drawn."""
    return min(CHARACTER * max(map(span, names), default=0), NAME_LIMIT)


def signed(number: float) -> str:
    """``+3``, ``−1.5`` or ``0``."""
    if number == 0:
        return "0"
    return f"{'+' if number > 0 else '−'}{abs(number):.4g}"


def paint(share: float) -> str:
    """Fill of a cell from −1 (behind) over 0 to 1 (ahead); ink is legible on all of them."""
    end = CELL_AHEAD if share > 0 else CELL_BEHIND
    mixed = (
        round(low + (high - low) * min(abs(share), 1.0))
        for low, high in zip(bytes.fromhex(CELL_LEVEL), bytes.fromhex(end), strict=True)
    )
    return f"#{bytes(mixed).hex()}"


def two_states(states: Sequence[str], shapes: Sequence[str]) -> tuple[Spec, Spec]:
    """Colour and shape of dots that are in one of two states."""
    colour: Spec = {
        "field": "state",
        "type": "nominal",
        "scale": {"domain": states, "range": [AHEAD, BEHIND]},
        "legend": None,
    }
    return colour, {**colour, "scale": {"domain": states, "range": shapes}}


def circumstances(outcome: Outcome) -> list[str]:
    """Session, rule and ballots: what any chart of one outcome depends on."""
    abstained = f" ({counted(outcome.n_abstentions, 'abstention')})" * (outcome.n_abstentions > 0)
    return [
        *([f"session {outcome.session}"] if outcome.session else []),
        f"rule {outcome.rule}",
        f"{counted(outcome.n_ballots, 'ballot')}{abstained}",
    ]
