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
    """Probability that the model of a row is stronger than a column's.

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


@dataclass(frozen=True, slots=True)
class StandingLine:
    """One candidate of an outcome.

    Parameters
    ----------
    anchor, link
        Of its line and of its answer on the page; empty: none.
    dot
        None: it has no score.
    was
        Its rank before the recount, where that differs.
    failed
        Flags of the safety gate; empty: none.
    """

    anchor: str
    link: str
    name: str
    rank: str
    score: str
    interval: str
    dot: Dot | None
    p_best: str
    votes: str
    grade: str
    was: str
    failed: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Tier:
    """Lines that are too close to call, or one that stands alone; `label`: what is said of it."""

    label: str
    lines: tuple[StandingLine, ...]
    in_play: bool


@dataclass(frozen=True, slots=True)
class Standings:
    """Candidates with dots and intervals, tiers boxed.

    Parameters
    ----------
    zero
        Place of the score 0, in percent, if it is in sight.
    low, high
        The numbers at the ends.
    marks
        What dots, bars and boxes mean.
    """

    title: str
    level: str
    low: str
    high: str
    zero: float | None
    tiers: tuple[Tier, ...]
    marks: str
    graded: bool


Drawing: TypeAlias = Bars | Grid | Scatter | Standings | Strips
