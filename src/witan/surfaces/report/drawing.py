"""The drawing of a chart: one SVG for pages, notebooks and files.

A chart is drawn to a width. A page has it twice, for desktops and for phones, and shows one. Every
element has a class, which a page colours for light and dark, and its own colour, which a file
shows. Names come from ballots, so each text passes `safe`. Widths of texts are estimated.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape  # noqa: TID251 - the gate of charts
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from witan.core.escaping import clean
from witan.service.text import shorten, span
from witan.surfaces.report.chart import (
    Axis,
    Dot,
    DotLine,
    DotPlot,
    Facets,
    Grid,
    LogAxis,
    Scatter,
    Strips,
)
from witan.surfaces.report.document import Chart, Link

FONTS = (
    "system-ui, 'Helvetica Neue', Helvetica, Arial, 'Segoe UI', Roboto, 'Liberation Sans', "
    "'Noto Sans', 'DejaVu Sans', Ubuntu, Cantarell, 'Open Sans', sans-serif"
)

BLUE, VERMILION = "#0072b2", "#b84a00"
"""Hues that are distinct with every colour blindness."""

INKS = {
    "ink": {"fill": "#1a1a1a"},
    "quiet": {"fill": "#5f6368"},
    "bad": {"fill": "#a34700"},
    "box": {"fill": "#f4f6f9", "stroke": "#d5dae1"},
    "tick": {"stroke": "#dde1e7"},
    "edge": {"stroke": "#7a7f85", "stroke-dasharray": "3 3"},
    "join": {"stroke": "#c3c9d0"},
    "front": {"fill": "none", "stroke": "#5f6368", "stroke-width": "1.5"},
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
"""Colours on a light page, by class."""

TEXT_SIZE, NOTE_SIZE = 13, 11
"""Font size in pixels of a text, and of a note."""

LEAST_EMS = 0.39
"""Width of the narrowest letters in ems."""

WIDE, WIDER, NARROW = 760, 1120, 352
"""Width of a chart, of one with several axes, and of one on a phone."""

BROAD = 640
"""Least width, about, to which a page shrinks a wide chart."""

NAME, SHORT_NAME, PLOT, STRIP, SHORT_STRIP = 230, 124, 240, 148, 100
"""Width of a name, also on a phone; least width of an axis, and of one among several."""

GAP, PADDING = 14, 16
"""Space between items, and around the chart."""

ROW_HEIGHT = 26
"""Height of a row."""

DENSE_ROW_HEIGHT, DENSE_FROM = 21, 17
"""Height of a row in a long chart, and the number of rows from which a chart is long."""

STACKED_ROW_HEIGHT = 44
"""Height of a row with its name above the dot."""

HEADLINE = 6
"""Most lines of the headline of a file; the description has all of it."""

Scale: TypeAlias = Callable[[float], float]

LABEL, LABEL_SIZE = 17, 12
"""Pixels from one name of a scatter to the next below, and of its letters."""

_Rect: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom of an obstacle."""

SIDE, FACETS_ACROSS = 200, 3
"""Width and height of a facet, and how many stand side by side."""


def draw_rule(x: float, y: float, x2: float, y2: float, ink: str) -> str:
    """Draw a straight line."""
    return f'<line x1="{px(x)}" y1="{px(y)}" x2="{px(x2)}" y2="{px(y2)}"{colours(ink)}/>'


def draw_rect(at: tuple[float, float], size: tuple[float, float], ink: str, radius: int = 0) -> str:
    """Draw a box."""
    places = zip(("x", "y", "width", "height"), (*at, *size), strict=True)
    edges = "".join(f' {key}="{px(value)}"' for key, value in places)
    corners = f' rx="{radius}"' * (radius > 0)
    return f"<rect{edges}{corners}{colours(ink)}/>"


def draw_text(
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
    """Write a text vertically centred at `y`, cut to its width."""
    words = clean(words)
    visible_text = words if room is None else cut(words, room, size)
    whole = f"<title>{safe(words)}</title>" if visible_text != words else ""
    look = f' text-anchor="{anchor}"' * (anchor != "start")
    look += f' font-size="{px(size)}"' * (size != TEXT_SIZE)
    place = f'x="{px(x)}" y="{px(y + 0.36 * size)}"'
    return f"<text {place}{look}{style}{colours(ink)}>{whole}{safe(visible_text)}</text>"


def colours(name: str) -> str:
    """Write a class, and the colours that it has in a file."""
    values = "".join(f' {key}="{value}"' for key, value in INKS[name].items())
    return f' class="{name}"{values}'


def safe(text: str) -> str:
    """Escape a text for an element or an attribute."""
    return escape(clean(text))


def px(value: float) -> str:
    """Print a length in pixels."""
    return f"{value:.1f}".removesuffix(".0")


def cut(words: str, room: float, size: float = TEXT_SIZE) -> str:
    """Shorten a text in the middle until it fits."""
    if text_width(words, size) <= room:
        return words
    most = min(span(words), int(room / (LEAST_EMS * size)))
    cuts = (shorten(words, columns) for columns in range(most, 0, -1))
    return next((cut for cut in cuts if text_width(cut, size) <= room), "…")


def text_width(words: str, size: float = TEXT_SIZE) -> float:
    """Estimate a text's width in pixels, for the widest usual font."""
    return size * sum(map(_ems, words))


def _ems(char: str) -> float:
    if char in "fijlrtI.,:;|!'()[]{}/\\ -":
        return LEAST_EMS
    if char in "mwMW@%…—" or span(char) > 1:
        return 1.0
    return 0.72 if char.isupper() else 0.63 * span(char)


def widest(texts: Iterable[str], size: float = TEXT_SIZE) -> float:
    """Estimate the width of the widest of some texts."""
    return max((text_width(clean(text), size) for text in texts), default=0.0)


class _Body(NamedTuple):
    parts: Iterable[str]
    width: float
    height: float


class _View(NamedTuple):
    """The width to draw to, and the addresses of links."""

    room: float
    address: Callable[[Link], str] | None

    @property
    def is_narrow(self) -> bool:
        return self.room < 2 * PLOT

    @property
    def most_name(self) -> float:
        return SHORT_NAME if self.is_narrow else NAME


def draw_chart(
    chart: Chart,
    *,
    with_frame: bool = False,
    narrow: bool = False,
    address: Callable[[Link], str] | None = None,
) -> str:
    """Draw a chart as SVG.

    A frame has headline and background, as in a file. `address` makes the address of a link to a
    report; None: no links.
    """
    view = _View(NARROW if narrow else WIDE, address)
    body: _Body = _DRAWERS[type(chart.drawing)](chart.drawing, view)
    about = " · ".join(filter(None, (*chart.about, chart.caption)))
    if with_frame:
        body = _frame(body, chart.finding or chart.name, about)
    width, height = px(body.width), px(body.height)
    description = " ".join(filter(None, (chart.finding, about)))
    look = "narrow" if narrow else "wide broad" if body.width > BROAD else "wide"
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="group" class="{look}" {size} '
        f'font-family="{FONTS}" font-size="{TEXT_SIZE}">'
        f"<title>{safe(chart.name)}</title><desc>{safe(description)}</desc>"
        f"{''.join(body.parts)}</svg>\n"
    )


def _frame(body: _Body, headline: str, about: str) -> _Body:
    """Draw the headline and the subject above the chart."""
    width, top, parts = max(body.width, 440), PADDING + 8.0, []
    for words, ink, size, most in ((headline, "ink", 16, HEADLINE), (about, "quiet", 12, 8)):
        for line in _wrap(words, int(width / (0.61 * size)), most):
            weight = ' font-weight="bold"' * (ink == "ink")
            line_text = line.strip(" ·") if words is about else line
            parts.append(draw_text(PADDING, top, line_text, ink, size=size, style=weight))
            top += 1.35 * size
    full = width + 2 * PADDING, top + body.height + PADDING
    ground = f'<rect width="{px(full[0])}" height="{px(full[1])}" fill="#ffffff"/>'
    group_tag = f'<g transform="translate({PADDING} {px(top)})">'
    return _Body([ground, *parts, group_tag, *body.parts, "</g>"], *full)


def _wrap(words: str, columns: int, most: int) -> list[str]:
    return textwrap.wrap(
        clean(words), columns, max_lines=most, placeholder=" …", break_on_hyphens=False
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Horizontal positions of names, axes and printed numbers.

    If stacked, names are above the dots, as on a phone.
    """

    name: float
    room: float
    plots: Sequence[float]
    plot: float
    cells: Sequence[float]
    width: float
    is_stacked: bool = False

    @classmethod
    def of(cls, rows: DotPlot, view: _View) -> "_Columns":
        lines = [line for band in rows.bands for line in band.lines]
        ranks = widest(line.rank for line in lines)
        name = GAP + (ranks + GAP if ranks else 0)
        wide = [
            max(widest(line.cells[at] for line in lines), text_width(head, NOTE_SIZE)) + 1.5 * GAP
            for at, head in enumerate(rows.heads)
        ]
        if view.is_narrow and len(rows.axes) == 1:
            right, longest = view.room - GAP, widest(line.name for line in lines)
            while len(wide) > 1 and right - sum(wide) - name < longest:
                wide.pop()
            cells = [right - sum(wide[at + 1 :]) for at in range(len(wide))]
            room, plot = right - sum(wide) - name, right - GAP
            return cls(name, room, [GAP], plot, cells, view.room, is_stacked=True)
        below = [*(band.label for band in rows.bands), *(line.remark for line in lines)]
        names = _short_names([line.name for line in lines], view)
        room = min(max(widest(names), widest(below, NOTE_SIZE)), view.most_name)
        left = name + room + GAP
        if len(rows.axes) == 1:
            plot = max(PLOT, view.room - left - sum(wide) - GAP)
            cells = [left + plot + sum(wide[: at + 1]) for at in range(len(wide))]
            return cls(name, room, [left], plot, cells, left + plot + sum(wide) + GAP)
        full, strip = (view.room, SHORT_STRIP) if view.is_narrow else (WIDER, STRIP)
        most = max(1, int((full - left) // strip))
        n_panels = -(-len(rows.axes) // most)
        across = -(-len(rows.axes) // n_panels)
        step = min((full - left) / across, 1.8 * STRIP)
        plots = [left + at * step for at in range(across)]
        return cls(name, room, plots, step - 1.6 * GAP, [], left + step * across)

    def row_height(self, rows: DotPlot) -> float:
        """Height of a row without a remark."""
        if self.is_stacked:
            return STACKED_ROW_HEIGHT
        n_rows = sum(len(band.lines) for band in rows.bands)
        return DENSE_ROW_HEIGHT if n_rows >= DENSE_FROM else ROW_HEIGHT


def _draw_rows(rows: DotPlot, view: _View) -> _Body:
    """Draw bands of lines with rank, name, dots and numbers; axes wrap."""
    columns = _Columns.of(rows, view)
    ground: list[str] = []
    parts = [
        draw_text(x, 9, head, "quiet", "end", size=NOTE_SIZE)
        for x, head in zip(columns.cells, rows.heads, strict=False)
    ]
    names = [line.name for band in rows.bands for line in band.lines]
    short = dict(zip(names, _short_names(names, view), strict=True))
    canvas = _Rows(rows, columns, view, short, ground, parts)
    if len(rows.axes) == 1:
        bottom = _draw_bands(canvas, 0, 20.0)
        title = rows.axes[0].title
        parts += _paragraph(title, columns.plots[0], bottom + 32, columns.width)
        ends = 0 if view.is_narrow else columns.plots[0] + text_width(title, NOTE_SIZE)
        lines = len(_split(title, columns.width - columns.plots[0])) if view.is_narrow else 1
        return _Body([*ground, *parts], max(columns.width, ends), bottom + 28 + 14 * lines)
    top, across = 20.0, len(columns.plots)
    for first in range(0, len(rows.axes), across):
        for axis, x in zip(rows.axes[first : first + across], columns.plots, strict=False):
            middle = x + columns.plot / 2
            parts.append(draw_text(middle, top - 11, axis.title, "ink", "middle", size=12))
        top = 52 + _draw_bands(canvas, first, top)
    return _Body([*ground, *parts], columns.width, top - 32)


def _split(words: str, room: float) -> list[str]:
    return _wrap(words, max(12, int(room / (0.61 * NOTE_SIZE))), 4)


def _paragraph(words: str, x: float, y: float, width: float) -> Iterator[str]:
    """Write an axis title, wrapped if a phone is too narrow."""
    lines = _split(words, width - x) if width <= NARROW else [words]
    for at, line in enumerate(lines):
        yield draw_text(x, y + 14 * at, line, "quiet", size=NOTE_SIZE)


class _Rows(NamedTuple):
    """Rows of a chart so far: the part below and above."""

    plot: DotPlot
    columns: _Columns
    view: _View
    names: Mapping[str, str]
    ground: list[str]
    parts: list[str]


def _draw_bands(canvas: _Rows, first: int, top: float) -> float:
    """Draw all bands with the axes from `first`; return where they end."""
    rows, columns, ground, parts = canvas.plot, canvas.columns, canvas.ground, canvas.parts
    axes = rows.axes[first : first + len(columns.plots)]
    height, start = columns.row_height(rows), top
    for band in rows.bands:
        began, top = top, top + 16 * bool(band.label)
        if band.label:
            parts.append(draw_text(columns.name, began + 9, band.label, "quiet", size=NOTE_SIZE))
        for line in band.lines:
            dots = line.dots[first : first + len(axes)]
            if canvas.view.is_narrow and len(rows.axes) > 1 and not any(dots):
                continue
            parts += _draw_line(
                canvas, line, zip(axes, columns.plots[: len(axes)], dots, strict=True), top
            )
            top += height + 13 * bool(line.remark)
        if band.has_box:
            ground.append(draw_rect((0.5, began), (columns.width - 1, top - began), "box", 6))
        top += 5
    bottom = top - 5
    above = columns.row_height(rows) == DENSE_ROW_HEIGHT and len(rows.axes) == 1
    for x, axis in zip(columns.plots, axes, strict=False):
        ground += _axis(axis, x, columns.plot, start, bottom, above=above)
    return bottom


def _draw_line(
    canvas: _Rows, line: DotLine, dots: Iterable[tuple[Axis, float, Dot | None]], top: float
) -> Iterator[str]:
    """Draw a row; `dots` are those of its axes, with places."""
    columns, view = canvas.columns, canvas.view
    height = columns.row_height(canvas.plot)
    y = top + (13 if columns.is_stacked else height / 2)
    visible_name = line.name if columns.is_stacked else canvas.names.get(line.name, line.name)
    name = draw_text(columns.name, y, visible_name, room=columns.room)
    href = line.link if isinstance(line.link, str) else view.address and view.address(line.link)
    yield f'<a href="{safe(href)}">{name}</a>' if href else name
    yield f'<g role="img"><title>{safe(line.alt_text)}</title>' if line.alt_text else "<g>"
    if line.rank:
        yield draw_text(columns.name - GAP, y, line.rank, anchor="end")
    if line.remark:
        ink = "bad" if any(dot and dot.mark == "cross" for dot in line.dots) else "quiet"
        room = columns.width - columns.name - GAP
        below = top + height + 4 if columns.is_stacked else y + 16
        yield draw_text(columns.name, below, line.remark, ink, size=NOTE_SIZE, room=room)
    for x, cell in zip(columns.cells, line.cells, strict=False):
        yield draw_text(x, y, cell, anchor="end")
    if columns.is_stacked:
        y = top + 31
    for axis, x, dot in dots:
        if dot is not None:
            yield from _mark_dot(dot, _scale_axis(axis, x, columns.plot), y)
    yield "</g>"


def _scale_axis(axis: Axis | LogAxis, start: float, length: float) -> Scale:
    """Map values to places on an axis, from its worse end."""
    return lambda value: start + length * min(max(0.0, axis.share(value)), 1.0)


def _axis(
    axis: Axis | LogAxis, x: float, width: float, top: float, bottom: float, *, above: bool = False
) -> Iterator[str]:
    """Draw grid lines at round values, numbered below or above."""
    place = _scale_axis(axis, x, width)
    for value, words in _ticks(axis, place, lambda words: text_width(words, NOTE_SIZE) + 8):
        yield draw_rule(place(value), top, place(value), bottom, "tick")
        for y in (bottom + 11, top - 11) if above else (bottom + 11,):
            yield draw_text(place(value), y, words, "quiet", "middle", size=NOTE_SIZE)
    if axis.line is not None:
        yield draw_rule(place(axis.line), top, place(axis.line), bottom, "edge")


def _ticks(
    axis: Axis | LogAxis, place: Scale, room: Callable[[str], float]
) -> list[tuple[float, str]]:
    """Choose as many round values as have room for their numbers."""
    for most in (6, 5, 4, 3, 2, 1):
        ticks = axis.ticks(most)
        gaps = [abs(place(b) - place(a)) for (a, _), (b, _) in pairwise(ticks)]
        if gaps and min(gaps) >= max(room(words) for _, words in ticks):
            return ticks
    apart: list[tuple[float, str]] = []
    for value, words in reversed(axis.ticks(4)):
        if not apart or abs(place(apart[-1][0]) - place(value)) >= room(words):
            apart.append((value, words))
    return apart


def _short_names(names: Sequence[str], view: _View) -> Sequence[str]:
    """Leave out providers on a phone if the names differ without them."""
    short = [re.split(r"[:/]", name)[-1] or name for name in names]
    return short if view.is_narrow and len({*short}) == len({*names}) else names


def _draw_matrix(matrix: Grid, view: _View) -> _Body:
    """Draw printed cells; titles too wide slant, or become numbers."""
    known = [square for row in matrix.squares for square in row if square is not None]
    has_numbers = view.is_narrow and matrix.rows == matrix.columns and len(matrix.rows) > 1
    rows, columns = matrix.rows, matrix.columns
    if has_numbers:
        columns = tuple(str(at) for at, _ in enumerate(rows, 1))
        rows = tuple(f"{at} {name}" for at, name in enumerate(_short_names(rows, view), 1))
    side = max(28.0 if view.is_narrow else 30.0, widest(square.text for square in known) + 10)
    tall = max(side, 36.0) if any(square.note for square in known) else 28.0
    room = min(widest(rows), view.most_name)
    left, heads = room + GAP / 2, min(widest(columns), 0.7 * NAME)
    level = heads <= side - 6
    top = 20.0 if level else 0.71 * heads + 16
    parts = []
    for at, name in enumerate(columns):
        x = left + side * (at + 0.5)
        if level:
            parts.append(draw_text(x, top - 9, name, anchor="middle", size=12))
        else:
            turn = f' transform="rotate(-45 {px(x)} {px(top - 6)})"'
            parts.append(draw_text(x, top - 10, name, size=12, room=0.7 * NAME, style=turn))
    for at, (name, row) in enumerate(zip(rows, matrix.squares, strict=True)):
        y = top + tall * at
        parts.append(draw_text(room, y + tall / 2, name, anchor="end", room=room))
        for across, square in enumerate(row):
            parts += _square(square, left + side * across, y, (side, tall))
    width = left + side * len(columns) + (0 if level else 0.71 * heads)
    return _Body(parts, width, top + tall * len(rows))


def _square(square: Any, x: float, y: float, size: tuple[float, float]) -> Iterator[str]:
    width, height = size
    ink = "own" if square is None else _shade(square.share)
    rect = draw_rect((x, y), (width - 1.5, height - 1.5), ink)
    if square is None:
        yield rect
        return
    yield f'<g role="img"><title>{safe(square.alt_text)}</title>{rect}'
    y += height / 2 - (6 if square.note else 1)
    yield draw_text(x + width / 2 - 0.75, y, square.text, anchor="middle", size=12)
    if square.note:
        yield draw_text(x + width / 2 - 0.75, y + 13, square.note, anchor="middle", size=10)
    yield "</g>"


def _shade(share: float | None) -> str:
    """Choose a cell's colour class, from −1 (behind) to 1 (ahead)."""
    if not share:
        return "s0"
    depth = min(max(int(abs(share) * 3.999), 1), 3)
    return f"{'b' if share < 0 else 's'}{depth}"


def _draw_scatter(scatter: Scatter, view: _View) -> _Body:
    """Draw dots with names next to them, or in a column if there are many."""
    tall = max(300.0 if view.is_narrow else 340.0, LABEL * len(scatter.points))
    rise = _scale_axis(scatter.up, 24 + tall, -tall)
    ticks = _ticks(scatter.up, rise, lambda _: 24)
    left = widest((words for _, words in ticks), NOTE_SIZE) + GAP
    names = _short_names([point.name for point in scatter.points], view)
    column = min(widest(names, LABEL_SIZE), 120 if view.is_narrow else NAME)
    for wide in (view.room - left - GAP, view.room - left - 2 * GAP - column):
        run = _scale_axis(scatter.across, left, wide)
        places = [(run(point.x), rise(point.dot.value)) for point in scatter.points]
        obstacles = [*_bars(scatter, run, rise), *_steps(scatter, run, rise, left + wide)]
        labels = _place_names(names, places, obstacles, (left, 24, view.room, 24 + tall))
        if labels is not None:
            break
    parts = [*_paragraph(scatter.up.title, 0, 9, WIDE)]
    parts += _axis(scatter.across, left, wide, 24, 24 + tall)
    for value, words in ticks:
        parts.append(draw_rule(left, rise(value), left + wide, rise(value), "tick"))
        parts.append(draw_text(left - 6, rise(value), words, "quiet", "end", size=NOTE_SIZE))
    parts += [_front(front, run, rise, left + wide) for front in scatter.fronts]
    if labels is None:
        labels = _column_of_names(scatter, rise, left + wide + 2 * GAP, tall)
    for (x, y), label in zip(places, labels, strict=True):
        if label.has_line:
            parts.append(draw_rule(x, y, label.x - 4 * label.side, label.y, "join"))
    for point, visible_name, (x, _), label in zip(
        scatter.points, names, places, labels, strict=True
    ):
        parts.append(f'<g role="img"><title>{safe(point.alt_text)}</title>')
        parts += _draw_dot(point.dot, rise, x, upright=True)
        anchor = "start" if label.side > 0 else "end"
        room = max(24.0, view.room - label.x) if label.side > 0 else None
        name = draw_text(label.x, label.y, visible_name, "ink", anchor, size=LABEL_SIZE, room=room)
        parts.append(f"{name}</g>")
    parts += _paragraph(scatter.across.title, left, tall + 54, view.room)
    return _Body(
        parts,
        max(view.room, text_width(scatter.up.title, NOTE_SIZE)),
        tall + 62 + 14 * (len(_split(scatter.across.title, view.room - left)) - 1) * view.is_narrow,
    )


def _front(front: Sequence[tuple[float, float]], run: Scale, rise: Scale, right: float) -> str:
    """Draw the stepped line of the best at each price."""
    x, y = front[0]
    steps = [f"M{px(run(x))} {px(rise(y))}"]
    steps += [f"H{px(run(across))}V{px(rise(up))}" for across, up in front[1:]]
    return f'<path d="{"".join(steps)}H{px(right)}"{colours("front")}/>'


class _Label(NamedTuple):
    """Place of a name; `side`: 1 right of its dot, −1 left."""

    x: float
    y: float
    side: int
    has_line: bool


def _bars(scatter: Scatter, run: Scale, rise: Scale) -> Iterator[_Rect]:
    for point in scatter.points:
        if (interval := point.dot.interval) is not None:
            ends = rise(interval.high), rise(interval.low)
            yield run(point.x) - 2, min(ends), run(point.x) + 2, max(ends)


def _steps(scatter: Scatter, run: Scale, rise: Scale, right: float) -> Iterator[_Rect]:
    for front in scatter.fronts:
        corners = [(run(x), rise(y)) for x, y in front]
        for (x, y), (x2, y2) in pairwise([*corners, (right, corners[-1][1])]):
            yield x, y - 1, x2, y + 1
            yield x2 - 1, min(y, y2), x2 + 1, max(y, y2)


def _place_names(
    names: Sequence[str],
    places: Sequence[tuple[float, float]],
    lines: Sequence[_Rect],
    box: _Rect,
) -> list[_Label] | None:
    """Find a free place for each dot's name; None: none is free.

    A name covers no dot and no other name, and if possible none of the `lines`.
    """
    left, top, right, bottom = box
    obstacles = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    labels: dict[int, _Label] = {}
    for at in sorted(range(len(places)), key=lambda at: places[at][1]):
        x, y = places[at]
        wide = text_width(clean(names[at]), LABEL_SIZE)
        options: list[tuple[int, int, _Label, _Rect]] = []
        for rank, (down, out, side) in enumerate(_OFFSETS):
            start = x + side * out
            ends = (start, start + wide) if side > 0 else (start - wide, start)
            rect = (ends[0], y + down - 8, ends[1], y + down + 8)
            inside = left <= rect[0] and rect[2] <= right and top <= rect[1] and rect[3] <= bottom
            others = (each for other, each in enumerate(obstacles) if other != at)
            if inside and not any(_overlap(rect, each) for each in others):
                crossed = sum(_overlap(rect, line) for line in lines)
                label = _Label(start, y + down, side, abs(down) > 12)
                options.append((6 * crossed + rank, rank, label, rect))
        if not options:
            return None
        _, _, labels[at], rect = min(options, key=lambda each: each[:2])
        obstacles.append(rect)
    return [labels[at] for at in range(len(places))]


_OFFSETS = [
    (down, 9 if abs(down) <= 12 else 16, side)
    for down in (0, -11, 11, -22, 22, -33, 33, -46, 46)
    for side in (1, -1)
]
"""Positions of a name relative to its dot: offsets and sides, best first."""


def _overlap(one: _Rect, other: _Rect) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _column_of_names(scatter: Scatter, rise: Scale, x: float, tall: float) -> list[_Label]:
    """Draw all names in a column next to the plot."""
    heights = [rise(point.dot.value) for point in scatter.points]
    order = sorted(range(len(heights)), key=lambda at: (heights[at], scatter.points[at].name))
    spread = _spread([heights[at] for at in order], 24 + LABEL / 2, 24 + tall)
    place = dict(zip(order, spread, strict=True))
    return [_Label(x, place[at], 1, has_line=True) for at in range(len(heights))]


def _spread(positions: Sequence[float], least: float, most: float) -> list[float]:
    """Move places apart for names, in order and minimally."""
    places: list[float] = []
    for place in positions:
        places.append(max(place, places[-1] + LABEL if places else least))
    room = most - LABEL / 2
    for at in reversed(range(len(places))):
        places[at], room = min(places[at], room), min(places[at], room) - LABEL
    return places


def _draw_strips(strips: Strips, view: _View) -> _Body:
    """Draw a strip per series, joining dots; on phones below its name."""
    is_stacked = view.is_narrow
    room = view.room if is_stacked else min(widest(each.name for each in strips.series), NAME)
    ticks = _ticks(strips.axis, _scale_axis(strips.axis, 0, 36), lambda _: 13)
    left = (
        (0 if is_stacked else room + GAP) + GAP + widest((words for _, words in ticks), NOTE_SIZE)
    )
    last = GAP + widest(["last", *(each.last for each in strips.series)])
    plot = view.room - left - last
    right = view.room
    parts = [
        draw_text(left, 9, strips.first, "quiet", size=NOTE_SIZE),
        draw_text(left + plot, 9, strips.last, "quiet", "end", size=NOTE_SIZE),
        draw_text(right, 9, "last", "quiet", "end", size=NOTE_SIZE),
    ]
    step, above = (66, 18) if is_stacked else (48, 0)
    for at, each in enumerate(strips.series):
        top = 20 + step * at
        parts.append(draw_text(0, top + (10 if is_stacked else 22), each.name, room=room))
        top += above
        rise = _scale_axis(strips.axis, top + 40, -36)
        for value, words in ticks:
            parts.append(draw_rule(left, rise(value), left + plot, rise(value), "tick"))
            parts.append(draw_text(left - 5, rise(value), words, "quiet", "end", size=9))
        marks = [
            (left + plot * (part + 0.5) / len(each.dots), dot)
            for part, dot in enumerate(each.dots)
            if dot is not None
        ]
        places = [(x, rise(dot.value)) for x, dot in marks]
        parts += [draw_rule(*one, *following, "join") for one, following in pairwise(places)]
        for x, dot in marks:
            parts += _mark_dot(dot, rise, x, upright=True, r=3.5)
        parts.append(draw_text(right, top + 22, each.last, anchor="end"))
    return _Body(parts, right, 24 + step * len(strips.series))


def _draw_facets(drawing: Facets, view: _View) -> _Body:
    """Draw diagrams with diagonals, three in a row, one on phones."""
    across = min(len(drawing.facets), 1 if view.is_narrow else FACETS_ACROSS)
    ticks = _ticks(drawing.up, _scale_axis(drawing.up, SIDE, -SIDE), lambda _: 20)
    margin = widest((words for _, words in ticks), NOTE_SIZE) + GAP
    parts = [draw_text(0, 9, drawing.up.title, "quiet", size=NOTE_SIZE)]
    side = min(view.room / across - margin - GAP, 1.6 * SIDE)
    wide, tall = margin + side + GAP, side + 84.0
    for at, facet in enumerate(drawing.facets):
        left, top = margin + wide * (at % across), 46 + tall * (at // across)
        run, rise = (
            _scale_axis(drawing.across, left, side),
            _scale_axis(drawing.up, top + side, -side),
        )
        parts.append(draw_text(left, top - 14, facet.title))
        parts += _axis(drawing.across, left, side, top, top + side)
        for value, words in ticks:
            parts.append(draw_rule(left, rise(value), left + side, rise(value), "tick"))
            parts.append(draw_text(left - 6, rise(value), words, "quiet", "end", size=NOTE_SIZE))
        low = max(drawing.across.low, drawing.up.low)
        parts.append(draw_rule(run(low), rise(low), run(1.0), rise(1.0), "join"))
        places = [(run(x), rise(y)) for x, y in facet.dashes]
        parts += [draw_rule(*one, *following, "edge") for one, following in pairwise(places)]
        for x, dot in facet.dots:
            parts += _mark_dot(dot, rise, run(x), upright=True)
        title = drawing.across.title
        parts.append(draw_text(left + side, top + side + 32, title, "quiet", "end", size=NOTE_SIZE))
    rows = -(-len(drawing.facets) // across)
    width = max(wide * across, text_width(drawing.up.title, NOTE_SIZE))
    return _Body(parts, width, 10 + tall * rows)


_DRAWERS: dict[type, Callable[[Any, _View], _Body]] = {
    Grid: _draw_matrix,
    DotPlot: _draw_rows,
    Scatter: _draw_scatter,
    Strips: _draw_strips,
    Facets: _draw_facets,
}


def _mark_dot(
    dot: Dot, place: Scale, across: float, *, upright: bool = False, r: float = 5
) -> Iterator[str]:
    """Draw a dot, with its words if it has any."""
    if dot.alt_text:
        yield f'<g role="img"><title>{safe(dot.alt_text)}</title>'
    yield from _draw_dot(dot, place, across, upright=upright, r=r)
    if dot.alt_text:
        yield "</g>"


def _draw_dot(
    dot: Dot, place: Scale, across: float, *, upright: bool, r: float = 5
) -> Iterator[str]:
    """Draw a dot and its interval at `across` on an axis."""
    if dot.interval is not None:
        ink = "bar bad" if dot.mark in ("cross", "diamond") else "bar"
        low, high = place(dot.interval.low), place(dot.interval.high)
        ends = (across, low, across, high) if upright else (low, across, high, across)
        yield draw_rule(*ends, ink)
    at = place(dot.value)
    yield _mark(dot, *((across, at) if upright else (at, across)), r)


def _mark(dot: Dot, x: float, y: float, r: float) -> str:
    if dot.mark == "cross":
        d = px(2 * r)
        path, ink = f"M{px(x - r)} {px(y - r)}l{d} {d}m-{d} 0l{d}-{d}", "cross"
    elif dot.mark == "diamond":
        path, ink = f"M{px(x)} {px(y - 6)}l6 6l-6 6l-6-6z", "dot bad"
    else:
        ink = "ring" if dot.mark == "ring" else "dot"
        return f'<circle cx="{px(x)}" cy="{px(y)}" r="{px(r)}"{colours(ink)}/>'
    return f'<path d="{path}"{colours(ink)}/>'
