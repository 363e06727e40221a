"""The drawing of a chart: one SVG for pages, notebooks and files.

Every element has a class, by which a page colours it for light and dark, and the colour of a light
page itself, which a file shows. Names come from ballots: each text passes `_safe`.
"""

import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from witan.core.escaping import clean
from witan.errors import InvalidParameter, MissingExtra
from witan.service.text import shorten, span
from witan.surfaces.report.chart import (
    Axis,
    Dot,
    DotLine,
    DotPlot,
    Facets,
    Grid,
    Scatter,
    Strips,
)
from witan.surfaces.report.document import Chart

FONTS = (
    "system-ui, 'Helvetica Neue', Helvetica, Arial, 'Segoe UI', Roboto, 'Liberation Sans', "
    "'Noto Sans', 'DejaVu Sans', Ubuntu, Cantarell, 'Open Sans', sans-serif"
)

BLUE, VERMILION = "#0072b2", "#b84a00"
"""Hues that stay apart under every colour blindness."""

INKS = {
    "ink": {"fill": "#1a1a1a"},
    "quiet": {"fill": "#5f6368"},
    "bad": {"fill": "#a34700"},
    "box": {"fill": "#f4f6f9", "stroke": "#d5dae1"},
    "tick": {"stroke": "#dde1e7"},
    "edge": {"stroke": "#7a7f85", "stroke-dasharray": "3 3"},
    "join": {"stroke": "#c3c9d0"},
    "bar": {"stroke": BLUE, "stroke-width": "2"},
    "bar bad": {"stroke": VERMILION, "stroke-width": "2"},
    "dot": {"fill": BLUE},
    "dot bad": {"fill": VERMILION},
    "ring": {"fill": "#ffffff", "stroke": BLUE, "stroke-width": "1.5"},
    "cross": {"fill": "none", "stroke": VERMILION, "stroke-width": "2.5"},
    "own": {"fill": "#e3e5e8"},
    "s0": {"fill": "#f7f7f7"},
    "s1": {"fill": "#dcebf6"},
    "s2": {"fill": "#b4d5ec"},
    "s3": {"fill": "#87bde0"},
    "b1": {"fill": "#fae3d4"},
    "b2": {"fill": "#f4c5a6"},
    "b3": {"fill": "#efa878"},
}
"""Class to the colours of a light page."""

TEXT_SIZE, NOTE_SIZE = 13, 11
"""Pixels of a text, and of a note beside it."""

NAME, PLOT, STRIP, GAP, PADDING = 230, 320, 120, 14, 16
"""Room for a name; width of one axis, and of one among several; space between, and around."""

ROW_HEIGHT = 26
"""Height of a row."""

DENSE_ROW_HEIGHT, DENSE_FROM = 21, 17
"""Height of a row in a long chart, and the number of rows from which a chart is long."""

FLUID_WIDTHS = 576, 900
"""A page may shrink a chart of at most the second width, but not below the first."""

HEADLINE = 4
"""Lines that the headline of a file may take; the description holds all of it."""


class _Body(NamedTuple):
    parts: Iterable[str]
    width: float
    height: float


def draw_chart(chart: Chart, *, with_frame: bool = False) -> str:
    """Draw a chart as SVG; `with_frame` adds headline and background."""
    body: _Body = _DRAWERS[type(chart.drawing)](chart.drawing)
    about = " · ".join(filter(None, (*chart.about, chart.caption)))
    if with_frame:
        body = _frame(body, chart.finding or chart.name, about)
    width, height = _px(body.width), _px(body.height)
    fluid = ' class="fluid"' * (FLUID_WIDTHS[0] < body.width <= FLUID_WIDTHS[1])
    description = " ".join(filter(None, (chart.finding, about)))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="group"{fluid} {size} '
        f'font-family="{FONTS}" font-size="{TEXT_SIZE}">'
        f"<title>{_safe(chart.name)}</title><desc>{_safe(description)}</desc>"
        f"{''.join(body.parts)}</svg>\n"
    )


def _frame(body: _Body, headline: str, about: str) -> _Body:
    """Put the headline, and what the chart is of, above it."""
    width, top, parts = max(body.width, 440), PADDING + 8.0, []
    for words, ink, size, most in ((headline, "ink", 16, HEADLINE), (about, "quiet", 12, 8)):
        for line in _wrap(words, int(width / (0.61 * size)), most):
            weight = ' font-weight="bold"' * (ink == "ink")
            line_text = line.strip(" ·") if words is about else line
            parts.append(_text(PADDING, top, line_text, ink, size=size, style=weight))
            top += 1.35 * size
    full = width + 2 * PADDING, top + body.height + PADDING
    ground = f'<rect width="{_px(full[0])}" height="{_px(full[1])}" fill="#ffffff"/>'
    group_tag = f'<g transform="translate({PADDING} {_px(top)})">'
    return _Body([ground, *parts, group_tag, *body.parts, "</g>"], *full)


def _wrap(words: str, columns: int, most: int) -> list[str]:
    return textwrap.wrap(
        clean(words), columns, max_lines=most, placeholder=" …", break_on_hyphens=False
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Places across rows: of names, axes and printed numbers."""

    name: float
    room: float
    plots: Sequence[float]
    plot: float
    cells: Sequence[float]
    width: float

    @classmethod
    def of(cls, rows: DotPlot) -> "_Columns":
        lines = [line for band in rows.bands for line in band.lines]
        ranks = _widest(line.rank for line in lines)
        name = GAP + (ranks + GAP if ranks else 0)
        below = [*(band.label for band in rows.bands), *(line.remark for line in lines)]
        room = min(max(_widest(line.name for line in lines), _widest(below, NOTE_SIZE)), NAME)
        plot = STRIP if len(rows.axes) > 1 else PLOT
        plots = [name + room + GAP + at * (plot + 2 * GAP) for at in range(len(rows.axes))]
        right, cells = plots[-1] + plot, []
        for at, head in enumerate(rows.heads):
            wide = max(_widest(line.cells[at] for line in lines), _width(head, NOTE_SIZE))
            right += wide + 1.5 * GAP
            cells.append(right)
        return cls(name, room, plots, plot, cells, right + GAP)


def _draw_rows(rows: DotPlot) -> _Body:
    """Draw bands of lines with rank, name, dots and numbers."""
    columns = _Columns.of(rows)
    several, dense = len(rows.axes) > 1, sum(len(band.lines) for band in rows.bands) >= DENSE_FROM
    ground: list[str] = []
    left_columns = [
        _text(x, 9, head, "quiet", "end", size=NOTE_SIZE)
        for x, head in zip(columns.cells, rows.heads, strict=True)
    ]
    top = 20.0
    for band in rows.bands:
        began, top = top, top + 16 * bool(band.label)
        if band.label:
            left_columns.append(_text(columns.name, began + 9, band.label, "quiet", size=NOTE_SIZE))
        for line in band.lines:
            height = DENSE_ROW_HEIGHT if dense else ROW_HEIGHT
            left_columns += _draw_line(line, rows.axes, columns, top + height / 2)
            top += height + 13 * bool(line.remark)
        if band.has_box:
            ground.append(_rect((0.5, began), (columns.width - 1, top - began), "box", 6))
        top += 5
    bottom = top - 5
    for x, axis in zip(columns.plots, rows.axes, strict=True):
        ground += _axis(axis, x, columns.plot, 20, bottom, above=dense and not several)
        at = (x + columns.plot / 2, 9.0, "middle") if several else (x, bottom + 32, "start")
        left_columns.append(_text(at[0], at[1], axis.title, "quiet", at[2], size=NOTE_SIZE))
    ends = 0 if several else columns.plots[0] + _width(rows.axes[0].title, NOTE_SIZE)
    return _Body(
        [*ground, *left_columns], max(columns.width, ends), bottom + (20 if several else 42)
    )


def _draw_line(line: DotLine, axes: Sequence[Axis], columns: _Columns, y: float) -> Iterator[str]:
    name = _text(columns.name, y, line.name, room=columns.room)
    yield f'<a href="{_safe(line.link)}">{name}</a>' if line.link else name
    yield f'<g role="img"><title>{_safe(line.alt_text)}</title>'
    if line.rank:
        yield _text(columns.name - GAP, y, line.rank, anchor="end")
    if line.remark:
        ink = "bad" if any(dot and dot.mark == "cross" for dot in line.dots) else "quiet"
        room = columns.room + GAP + columns.plot
        yield _text(columns.name, y + 16, line.remark, ink, size=NOTE_SIZE, room=room)
    for axis, x, dot in zip(axes, columns.plots, line.dots, strict=True):
        if dot is not None:
            yield from _dot(dot, _scale_axis(axis, x, columns.plot), y)
    for x, cell in zip(columns.cells, line.cells, strict=True):
        yield _text(x, y, cell, anchor="end")
    yield "</g>"


def _scale_axis(axis: Axis, start: float, length: float) -> Callable[[float], float]:
    """Map values to places on an axis, from its worse end."""
    return lambda value: start + length * min(max(0.0, axis.share(value)), 1.0)


def _axis(
    axis: Axis, x: float, width: float, top: float, bottom: float, *, above: bool = False
) -> Iterator[str]:
    """Draw grid lines at round values, numbered below or above."""
    place = _scale_axis(axis, x, width)
    for value, words in _ticks(axis, place, lambda words: _width(words, NOTE_SIZE) + 8):
        yield _rule(place(value), top, place(value), bottom, "tick")
        for y in (bottom + 11, top - 11) if above else (bottom + 11,):
            yield _text(place(value), y, words, "quiet", "middle", size=NOTE_SIZE)
    if axis.line is not None:
        yield _rule(place(axis.line), top, place(axis.line), bottom, "edge")


def _ticks(
    axis: Axis, place: Callable[[float], float], room: Callable[[str], float]
) -> list[tuple[float, str]]:
    """Choose as many round values as have room for their numbers."""
    for most in (6, 5, 4, 3, 2, 1):
        ticks = axis.ticks(most)
        widest = max((room(words) for _, words in ticks), default=0)
        if len(ticks) < 2 or abs(place(ticks[1][0]) - place(ticks[0][0])) >= widest:
            return ticks
    return ticks[:1]


def _draw_matrix(matrix: Grid) -> _Body:
    """Draw printed cells; the names of columns slant unless they fit."""
    known = [square for row in matrix.squares for square in row if square is not None]
    side = max(30.0, _widest(square.text for square in known) + 10)
    tall = max(side, 36.0) if any(square.note for square in known) else 28.0
    room = min(_widest(matrix.rows), NAME)
    left, heads = room + GAP, min(_widest(matrix.columns), 0.7 * NAME)
    level = heads <= side - 6
    top = 20.0 if level else 0.71 * heads + 16
    parts = []
    for at, name in enumerate(matrix.columns):
        x = left + side * (at + 0.5)
        if level:
            parts.append(_text(x, top - 9, name, anchor="middle", size=12))
        else:
            turn = f' transform="rotate(-45 {_px(x)} {_px(top - 6)})"'
            parts.append(_text(x, top - 10, name, size=12, room=0.7 * NAME, style=turn))
    for at, (name, row) in enumerate(zip(matrix.rows, matrix.squares, strict=True)):
        y = top + tall * at
        parts.append(_text(room, y + tall / 2, name, anchor="end", room=room))
        for across, square in enumerate(row):
            parts += _square(square, left + side * across, y, (side, tall))
    width = left + side * len(matrix.columns) + (0 if level else 0.71 * heads)
    return _Body(parts, width, top + tall * len(matrix.rows))


def _square(square: Any, x: float, y: float, size: tuple[float, float]) -> Iterator[str]:
    width, height = size
    ink = "own" if square is None else _shade(square.share)
    rect = _rect((x, y), (width - 1.5, height - 1.5), ink)
    if square is None:
        yield rect
        return
    yield f'<g role="img"><title>{_safe(square.alt_text)}</title>{rect}'
    y += height / 2 - (6 if square.note else 1)
    yield _text(x + width / 2 - 0.75, y, square.text, anchor="middle", size=12)
    if square.note:
        yield _text(x + width / 2 - 0.75, y + 13, square.note, anchor="middle", size=10)
    yield "</g>"


def _shade(share: float | None) -> str:
    """Choose a cell's colour class, from −1 (behind) to 1 (ahead)."""
    if not share:
        return "s0"
    depth = min(max(int(abs(share) * 3.999), 1), 3)
    return f"{'b' if share < 0 else 's'}{depth}"


LABEL = 17
"""Pixels from one name beside a scatter to the next."""


def _draw_scatter(scatter: Scatter) -> _Body:
    """Draw dots, joined to their names in a column beside them."""
    wide, tall = 1.4 * PLOT, max(PLOT, LABEL * len(scatter.points))
    rise = _scale_axis(scatter.up, 24 + tall, -tall)
    ticks = _ticks(scatter.up, rise, lambda _: 24)
    left = _widest((words for _, words in ticks), NOTE_SIZE) + GAP
    run = _scale_axis(scatter.across, left, wide)
    parts = [_text(0, 9, scatter.up.title, "quiet", size=NOTE_SIZE)]
    parts += _axis(scatter.across, left, wide, 24, 24 + tall)
    for value, words in ticks:
        parts.append(_rule(left, rise(value), left + wide, rise(value), "tick"))
        parts.append(_text(left - 6, rise(value), words, "quiet", "end", size=NOTE_SIZE))
    points = sorted(scatter.points, key=lambda point: (rise(point.dot.value), point.name))
    names = _spread([rise(point.dot.value) for point in points], 24 + LABEL / 2, 24 + tall)
    beyond = left + wide + 2 * GAP
    for point, y in zip(points, names, strict=True):
        parts.append(_rule(run(point.x), rise(point.dot.value), beyond - 4, y, "join"))
    for point, y in zip(points, names, strict=True):
        parts.append(f'<g role="img"><title>{_safe(point.alt_text)}</title>')
        parts += _dot(point.dot, rise, run(point.x), upright=True)
        parts.append(_text(beyond, y, point.name, room=NAME) + "</g>")
    parts.append(_text(left, tall + 56, scatter.across.title, "quiet", size=NOTE_SIZE))
    width = max(
        beyond + min(_widest(point.name for point in points), NAME),
        left + _width(scatter.across.title, NOTE_SIZE), _width(scatter.up.title, NOTE_SIZE),
    )  # fmt: skip
    return _Body(parts, width, tall + 64)


def _spread(positions: Sequence[float], least: float, most: float) -> list[float]:
    """Move places apart for names, in order and minimally."""
    places: list[float] = []
    for place in positions:
        places.append(max(place, places[-1] + LABEL if places else least))
    room = most - LABEL / 2
    for at in reversed(range(len(places))):
        places[at], room = min(places[at], room), min(places[at], room) - LABEL
    return places


def _draw_strips(strips: Strips) -> _Body:
    """Draw a strip for each series, joining its dots."""
    room = min(_widest(each.name for each in strips.series), NAME)
    ticks = _ticks(strips.axis, _scale_axis(strips.axis, 0, 36), lambda _: 13)
    left = room + 2 * GAP + _widest((words for _, words in ticks), NOTE_SIZE)
    right = left + PLOT + GAP + _widest(["last", *(each.last for each in strips.series)])
    parts = [
        _text(left, 9, strips.first, "quiet", size=NOTE_SIZE),
        _text(left + PLOT, 9, strips.last, "quiet", "end", size=NOTE_SIZE),
        _text(right, 9, "last", "quiet", "end", size=NOTE_SIZE),
    ]
    for at, each in enumerate(strips.series):
        top = 20 + 48 * at
        rise = _scale_axis(strips.axis, top + 40, -36)
        for value, words in ticks:
            parts.append(_rule(left, rise(value), left + PLOT, rise(value), "tick"))
            parts.append(_text(left - 5, rise(value), words, "quiet", "end", size=9))
        marks = [
            (left + PLOT * (part + 0.5) / len(each.dots), dot)
            for part, dot in enumerate(each.dots)
            if dot is not None
        ]
        places = [(x, rise(dot.value)) for x, dot in marks]
        parts.append(f'<g role="img"><title>{_safe(each.alt_text)}</title>')
        parts.append(_text(0, top + 22, each.name, room=room))
        parts += [_rule(*one, *following, "join") for one, following in pairwise(places)]
        for x, dot in marks:
            parts += _dot(dot, rise, x, upright=True, r=3.5)
        parts.append(_text(right, top + 22, each.last, anchor="end") + "</g>")
    return _Body(parts, right, 24 + 48 * len(strips.series))


SIDE, FACETS_ACROSS = 200, 3
"""Width and height of a facet, and how many stand side by side."""


def _draw_facets(drawing: Facets) -> _Body:
    """Draw diagrams with their diagonals, three in a row."""
    ticks = _ticks(drawing.up, _scale_axis(drawing.up, SIDE, -SIDE), lambda _: 20)
    margin = _widest((words for _, words in ticks), NOTE_SIZE) + GAP
    parts = [_text(0, 9, drawing.up.title, "quiet", size=NOTE_SIZE)]
    wide, tall = margin + SIDE + GAP, SIDE + 84.0
    for at, facet in enumerate(drawing.facets):
        left, top = margin + wide * (at % FACETS_ACROSS), 46 + tall * (at // FACETS_ACROSS)
        run, rise = (
            _scale_axis(drawing.across, left, SIDE),
            _scale_axis(drawing.up, top + SIDE, -SIDE),
        )
        parts.append(_text(left, top - 14, facet.title))
        parts += _axis(drawing.across, left, SIDE, top, top + SIDE)
        for value, words in ticks:
            parts.append(_rule(left, rise(value), left + SIDE, rise(value), "tick"))
            parts.append(_text(left - 6, rise(value), words, "quiet", "end", size=NOTE_SIZE))
        low = max(drawing.across.low, drawing.up.low)
        parts.append(_rule(run(low), rise(low), run(1.0), rise(1.0), "join"))
        places = [(run(x), rise(y)) for x, y in facet.dashes]
        parts += [_rule(*one, *following, "edge") for one, following in pairwise(places)]
        for x, dot, spoken in facet.dots:
            parts.append(f'<g role="img"><title>{_safe(spoken)}</title>')
            parts += [*_dot(dot, rise, run(x), upright=True), "</g>"]
        title = drawing.across.title
        parts.append(_text(left + SIDE, top + SIDE + 32, title, "quiet", "end", size=NOTE_SIZE))
    columns = min(len(drawing.facets), FACETS_ACROSS)
    rows = -(-len(drawing.facets) // FACETS_ACROSS)
    return _Body(parts, max(wide * columns, _width(drawing.up.title)), 10 + tall * rows)


_DRAWERS: dict[type, Callable[[Any], _Body]] = {
    Grid: _draw_matrix,
    DotPlot: _draw_rows,
    Scatter: _draw_scatter,
    Strips: _draw_strips,
    Facets: _draw_facets,
}


def _dot(
    dot: Dot, place: Callable[[float], float], across: float, *, upright: bool = False, r: float = 5
) -> Iterator[str]:
    """Draw a dot and its interval at `across` on an axis."""
    if dot.interval is not None:
        ink = "bar bad" if dot.mark in ("cross", "diamond") else "bar"
        low, high = place(dot.interval.low), place(dot.interval.high)
        ends = (across, low, across, high) if upright else (low, across, high, across)
        yield _rule(*ends, ink)
    at = place(dot.value)
    yield _mark(dot, *((across, at) if upright else (at, across)), r)


def _mark(dot: Dot, x: float, y: float, r: float) -> str:
    if dot.mark == "cross":
        d = _px(2 * r)
        path, ink = f"M{_px(x - r)} {_px(y - r)}l{d} {d}m-{d} 0l{d}-{d}", "cross"
    elif dot.mark == "diamond":
        path, ink = f"M{_px(x)} {_px(y - 6)}l6 6l-6 6l-6-6z", "dot bad"
    else:
        ink = "ring" if dot.mark == "ring" else "dot"
        return f'<circle cx="{_px(x)}" cy="{_px(y)}" r="{_px(r)}"{_ink(ink)}/>'
    return f'<path d="{path}"{_ink(ink)}/>'


def _rule(x: float, y: float, x2: float, y2: float, ink: str) -> str:
    return f'<line x1="{_px(x)}" y1="{_px(y)}" x2="{_px(x2)}" y2="{_px(y2)}"{_ink(ink)}/>'


def _rect(at: tuple[float, float], size: tuple[float, float], ink: str, radius: int = 0) -> str:
    places = zip(("x", "y", "width", "height"), (*at, *size), strict=True)
    edges = "".join(f' {key}="{_px(value)}"' for key, value in places)
    corners = f' rx="{radius}"' * (radius > 0)
    return f"<rect{edges}{corners}{_ink(ink)}/>"


def _text(
    x: float,
    y: float,
    words: str,
    ink: str = "ink",
    anchor: str = "start",
    *,
    size: float = TEXT_SIZE,
    room: float | None = None,
    style: str = "",
) -> str:
    """Write a text with its middle at `y`, cut to its room."""
    words = clean(words)
    visible_text = words if room is None else _shorten(words, room, size)
    whole = f"<title>{_safe(words)}</title>" if visible_text != words else ""
    look = f' text-anchor="{anchor}"' * (anchor != "start")
    look += f' font-size="{_px(size)}"' * (size != TEXT_SIZE)
    place = f'x="{_px(x)}" y="{_px(y + 0.36 * size)}"'
    return f"<text {place}{look}{style}{_ink(ink)}>{whole}{_safe(visible_text)}</text>"


def _ink(name: str) -> str:
    colours = "".join(f' {key}="{value}"' for key, value in INKS[name].items())
    return f' class="{name}"{colours}'


def _safe(text: str) -> str:
    return escape(clean(text))


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _shorten(words: str, room: float, size: float) -> str:
    if _width(words, size) <= room:
        return words
    most = min(span(words), int(room / (LEAST_EMS * size)))
    cuts = (shorten(words, columns) for columns in range(most, 0, -1))
    return next((cut for cut in cuts if _width(cut, size) <= room), "…")


LEAST_EMS = 0.39
"""Width of the narrowest letters in ems."""


def _width(words: str, size: float = TEXT_SIZE) -> float:
    """Estimate a text's width in pixels, for the widest usual font."""
    return size * sum(map(_ems, words))


def _ems(char: str) -> float:
    if char in "fijlrtI.,:;|!'()[]{}/\\ -":
        return LEAST_EMS
    if char in "mwMW@%…—" or span(char) > 1:
        return 1.0
    return 0.72 if char.isupper() else 0.63 * span(char)


def _widest(texts: Iterable[str], size: float = TEXT_SIZE) -> float:
    return max((_width(clean(text), size) for text in texts), default=0.0)


KINDS = (".svg", ".png", ".html")
"""The kinds of file that a chart can be drawn to."""

ZOOM = 2
"""Pixels of a PNG file for one of the drawing, so that it stays sharp in print."""


def check_chart(path: str | os.PathLike[str]) -> str:
    """Return the kind of chart file that a name stands for.

    Raises
    ------
    InvalidParameter
        If it stands for none.
    """
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        expected = f"a name that ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise InvalidParameter("a chart file", os.fspath(path), expected)
    return kind


def save_chart(chart: Chart, path: str | os.PathLike[str]) -> Path:
    """Draw a chart to a file; return its path.

    Raises
    ------
    MissingExtra
        If PNG is asked for without the extra ``plot``.
    InvalidParameter
        If the file cannot be written, or no font can draw the text of a PNG.
    """
    kind, target = check_chart(path), Path(path)
    drawn = draw_chart(chart, with_frame=True)
    if kind == ".png":
        content = _rasterise(drawn, target)
    elif kind == ".html":
        head = (
            f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{escape(clean(chart.name))}"
        )
        content = f"{head}</title>\n<body>\n{drawn}</body></html>\n".encode()
    else:
        content = drawn.encode()
    _write(target, content)
    return target


def _rasterise(svg: str, target: Path) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise MissingExtra("drawing PNG files (.svg needs none)", "plot") from error
    probe = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" font-family="{FONTS}">'
    with_text, without = (svg_to_bytes(svg_string=f"{probe}{text}</svg>") for text in
                          ('<text y="9">M</text>', ""))  # fmt: skip
    if with_text == without:
        problem = "an .svg file: no font for a PNG is installed (one of fonts-dejavu will do)"
        raise InvalidParameter("a chart file", str(target), problem)
    png: bytes = svg_to_bytes(svg_string=svg, zoom=ZOOM)
    return png


def _write(target: Path, content: bytes) -> None:
    """Write beside the target, then rename, so that readers see whole files."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            part.write_bytes(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        expected = f"a file that can be written ({reason})"
        raise InvalidParameter("a chart file", str(target), expected) from error
