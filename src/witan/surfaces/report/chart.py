"""Charts as data: values with intervals, axes and words; `drawing` draws them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Literal, TypeAlias

from witan.core.outcome import Interval
from witan.service.text import interval_text, number
from witan.surfaces.report.document import Link

SCORES = {
    "borda": "Borda score: share of rivals beaten",
    "weighted_borda": "Weighted Borda score: share of rivals beaten",
    "mean_rank": "Mean rank",
    "hybrid": "Hybrid of Borda score and mean grade",
    "range": "Mean grade",
    "normalized_scores": "Mean standardised grade, z",
    "calibrated": "Calibrated grade, in points from the mean",
    "tournament": "Share of matchups won",
    "schulze": "Share of rivals that do not beat it (Schulze)",
    "ranked_pairs": "Share of rivals that do not beat it (ranked pairs)",
    "kemeny": "Minus the mean place (Kemeny)",
    "irv": "Place in the order of elimination",
    "bradley_terry": "Bradley–Terry strength, log-odds",
    "plackett_luce": "Plackett–Luce worth, log-odds",
    "elo": "Elo rating",
}
"""Axis titles for rules' scores; for other rules, their name."""

ENDLESS = 1e300
"""Larger numbers are drawn as infinity, because their differences overflow."""

MARGIN = 0.04
"""Share of an axis left free at both ends, so that no dot is cut."""


def signed_number(value: float | None, digits: int = 2) -> str:
    """Print a number with a typographic minus sign."""
    return number(value, digits).replace("-", "−")


def ends(interval: Interval | None, digits: int) -> str:
    """Print the ends of an interval with a typographic minus sign."""
    return interval_text(interval, digits).replace("-", "−")


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from worse to better.

    If it is reversed, lower is better. `line` is a value at which to draw a line.
    """

    title: str
    low: float
    high: float
    is_reversed: bool = False
    line: float | None = None

    @classmethod
    def of_numbers(
        cls,
        title: str,
        numbers: Iterable[tuple[float | None, Interval | None]],
        *,
        is_reversed: bool = False,
        line: float | None = None,
    ) -> "Axis":
        """Return the axis covering all finite numbers and intervals, and its line."""
        values = [] if line is None else [line]
        for value, interval in numbers:
            values += [] if value is None else [value]
            values += [] if interval is None else [interval.low, interval.high]
        values = [value for value in values if abs(value) < ENDLESS]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1.0):
            low, high = low - 0.5, high + 0.5
        margin = MARGIN * (high - low)
        return cls(title, low - margin, high + margin, is_reversed, line)

    def share(self, value: float) -> float:
        """Map a value to between 0, the worse end, and 1."""
        share = (value - self.low) / (self.high - self.low)
        return 1 - share if self.is_reversed else share

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """List about `most` round values within the axis, and print them."""
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= 0.999 * rough)
        digits = max(0, -floor(log10(step * 1.001)))
        steps = range(ceil(self.low / step), floor(self.high / step) + 1)
        return [(each * step, signed_number(each * step, digits)) for each in steps]


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis of amounts, with a place for zero before it.

    `zero` is its name; empty: no amount is zero.
    """

    title: str
    low: float
    high: float
    zero: str = ""
    line: None = None

    @classmethod
    def of_amounts(cls, title: str, amounts: Iterable[float], *, zero: str) -> "LogAxis":
        """Return an axis of positive amounts, at least a decade long."""
        values = [*amounts]
        positive = [value for value in values if value > 0]
        low, high = log10(min(positive)), log10(max(positive))
        margin = max((1 - (high - low)) / 2, 2 * MARGIN * (high - low))
        name = zero if len(positive) < len(values) else ""
        return cls(title, 10 ** (low - margin), 10 ** (high + margin), name)

    def share(self, value: float) -> float:
        """Map an amount to between 0 and 1."""
        if value <= 0:
            return MARGIN
        start = 3 * MARGIN if self.zero else 0.0
        return start + (1 - start) * log10(value / self.low) / log10(self.high / self.low)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Print round amounts, about as many as `most`."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        zero = [(0.0, self.zero)] if self.zero else []
        for digits in ((1, 2, 5), (1, 3), (1,)):
            amounts = [(digit, power) for power in powers for digit in digits
                       if self.low <= digit * 10.0**power <= self.high]  # fmt: skip
            if len(amounts) <= most:
                break
        step = ceil(len(amounts) / most)
        return zero + [
            (digit * 10.0**power, f"{digit * 10.0**power:.{max(0, -power)}f}")
            for digit, power in amounts[::step]
        ]


@dataclass(frozen=True, slots=True)
class Dot:
    """A value on an axis, and its interval.

    A cross failed, a diamond stands out, a ring has no rank. `alt_text` says the value and interval
    in words, unless the line does.
    """

    value: float
    interval: Interval | None = None
    mark: Literal["circle", "cross", "diamond", "ring"] = "circle"
    alt_text: str = ""


@dataclass(frozen=True, slots=True)
class DotLine:
    """One row: a name, a dot on each axis, and printed numbers.

    Parameters
    ----------
    alt_text
        The line and its intervals in words; empty if the dots have them.
    remark
        Text below the name.
    link
        Link of its name on a page: a report, or a place on the same page; may be empty.
    """

    name: str
    alt_text: str
    dots: tuple[Dot | None, ...]
    rank: str = ""
    cells: tuple[str, ...] = ()
    remark: str = ""
    link: Link | str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """Lines that belong together, in a box if `has_box`."""

    lines: tuple[DotLine, ...]
    label: str = ""
    has_box: bool = True


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Dots with intervals in rows; `heads` title the printed numbers."""

    axes: tuple[Axis, ...]
    heads: tuple[str, ...]
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Square:
    """A printed cell of a matrix, with a smaller number below.

    `share` is its shade from −1, far behind, through 0 to 1; None: unknown.
    """

    text: str
    alt_text: str
    share: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Squares in named rows and columns; None on the diagonal."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    squares: tuple[tuple[Square | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A named dot of a scatter plot; `x` is on the horizontal axis."""

    name: str
    alt_text: str
    x: float
    dot: Dot


@dataclass(frozen=True, slots=True)
class Scatter:
    """Named dots with intervals over two axes.

    `fronts` are Pareto-optimal points, cheapest first; a stepped line joins them.
    """

    across: Axis | LogAxis
    up: Axis
    points: tuple[Point, ...]
    fronts: tuple[tuple[tuple[float, float], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One line over time, with a dot or None per period."""

    name: str
    dots: tuple[Dot | None, ...]
    last: str


@dataclass(frozen=True, slots=True)
class Strips:
    """One strip per series on a common axis and time span."""

    axis: Axis
    first: str
    last: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """One diagram of several: dots by horizontal position, and a dashed line."""

    title: str
    dots: tuple[tuple[float, Dot], ...]
    dashes: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Facets:
    """Diagrams side by side, each with its diagonal and dashed line."""

    across: Axis
    up: Axis
    facets: tuple[Facet, ...]


Drawing: TypeAlias = Grid | DotPlot | Scatter | Strips | Facets
