"""Elements of an SVG: lines, boxes and texts, whose widths are estimated.

Every element has a class, by which a page colours it for light and dark, and the colour of a light
page itself, which a file shows. Names come from ballots: each text passes `safe`.
"""

from collections.abc import Iterable
from html import escape

from witan.core.escaping import clean
from witan.service.text import shorten, span

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
"""Class to the colours of a light page."""

TEXT_SIZE, NOTE_SIZE = 13, 11
"""Pixels of a text, and of a note beside it."""


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
    """Write a text with its middle at `y`, cut to its room."""
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
    """Cut a text in its middle until it fits."""
    if text_width(words, size) <= room:
        return words
    most = min(span(words), int(room / (LEAST_EMS * size)))
    cuts = (shorten(words, columns) for columns in range(most, 0, -1))
    return next((cut for cut in cuts if text_width(cut, size) <= room), "…")


LEAST_EMS = 0.39
"""Width of the narrowest letters in ems."""


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
