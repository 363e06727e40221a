"""Drawings of a report, laid out in percent: a page draws them at whatever width it has."""

from dataclasses import dataclass
from typing import TypeAlias

from witan.surfaces.report.scale import Dot


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
        What they are; empty: nothing is said.
    ranked
        They have ranks.
    """

    label: str
    bars: tuple[Bar, ...]
    ranked: bool = True


@dataclass(frozen=True, slots=True)
class Bars:
    """Dots with intervals, in bands.

    Parameters
    ----------
    low, high
        The numbers at the ends.
    marks
        What bars and boxes mean.
    """

    axis: str
    low: str
    high: str
    marks: str
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Square:
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
class Grid:
    """Everybody against everybody; `shown` of the first are drawn before all are asked for."""

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[Square | None, ...], ...]
    shown: int


@dataclass(frozen=True, slots=True)
class Point:
    """A numbered dot, in percent from the left and from the top, and the ends of its interval."""

    key: str
    x: float
    y: float
    low: float | None
    high: float | None
    spoken: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """Numbered dots; `low`, `high` and `most` are the numbers at its bottom, top and right end."""

    axis: str
    low: str
    high: str
    most: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A value at a time, in percent from the left and from the top, and its interval."""

    x: float
    y: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Strip:
    """One model over time; `steps` lead from mark to mark."""

    name: str
    spoken: str
    marks: tuple[Mark, ...]
    steps: tuple[tuple[Mark, Mark], ...]
    last: str


@dataclass(frozen=True, slots=True)
class Strips:
    """A strip for each model, all on one scale, the earliest part of the time left."""

    first: str
    last: str
    low: str
    high: str
    more: str
    strips: tuple[Strip, ...]


Drawing: TypeAlias = Bars | Grid | Scatter | Strips
