"""Mean scores over time: a strip for each model, all on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from witan.core.rules import RULES
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.core.window import Window
from witan.service.text import UNKNOWN, clean, counted, number
from witan.surfaces.text.tables import Column
from witan.surfaces.views.numbers import Numbers, numbers
from witan.surfaces.views.scale import Scale

__all__ = ["Trend", "trend"]

SHOWN = 12
"""Models that have a strip; the numbers are of all."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One part of the time, in percent from the left and from the top, and the interval."""

    x: float
    y: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Strip:
    """One model.

    Parameters
    ----------
    steps
        From one mark to the next: two places each.
    """

    name: str
    spoken: str
    marks: tuple[Mark, ...]
    steps: tuple[tuple[Mark, Mark], ...]
    last: str


@dataclass(frozen=True, slots=True)
class Trend:
    """The strips, the earliest part left.

    Parameters
    ----------
    low, high
        What the bottom and the top of every strip stand for.
    """

    strips: tuple[Strip, ...]
    first: str
    last: str
    low: str
    high: str
    more: str
    numbers: Numbers


def trend(board: Leaderboard, parts: Sequence[tuple[Window, Leaderboard | None]]) -> Trend | None:
    """The trend; None: there are no two parts of time with scores."""
    known = [part for _, part in parts if part is not None]
    if len(known) < 2:
        return None
    models = [line.model for line in (*board.lines, *board.provisional)]
    lines = {model: [_of(part, model) for _, part in parts] for model in models}
    turned = RULES[board.terms.rule].lower_is_better
    held = [line for each in lines.values() for line in each if line is not None]
    scale = Scale.over(((line.score, line.interval) for line in held), turned=turned)
    low, high = (number(end, 2).replace("-", "−") for end in scale.ends)
    return Trend(
        strips=tuple(_strip(model, lines[model], scale) for model in models[:SHOWN]),
        first=_day(parts[0][0], first=True),
        last=_day(parts[-1][0], first=False),
        low=low,
        high=high,
        more="" if len(models) <= SHOWN else f"{counted(len(models) - SHOWN, 'more model')}.",
        numbers=_numbers(models, parts, lines),
    )


def _of(part: Leaderboard | None, model: str) -> LeaderboardLine | None:
    line = None if part is None else part.by_model.get(model)
    return line if line is not None and line.score is not None else None


def _strip(model: str, lines: Sequence[LeaderboardLine | None], scale: Scale) -> Strip:
    marks = []
    for at, line in enumerate(lines):
        if line is None or line.score is None:
            continue
        ends = line.interval
        marks.append(
            Mark(
                round(100 * (at + 0.5) / len(lines), 2),
                scale.down(line.score),
                None if ends is None else scale.down(ends.low),
                None if ends is None else scale.down(ends.high),
            )
        )
    scores = [line.score for line in lines if line is not None]
    said = ", ".join(number(score, 2) for score in scores).replace("-", "−")
    last = number(scores[-1], 2).replace("-", "−") if scores else UNKNOWN
    steps = tuple(pairwise(marks))
    return Strip(clean(model), f"{clean(model)}: {said or 'no score'}", tuple(marks), steps, last)


def _numbers(
    models: Sequence[str],
    parts: Sequence[tuple[Window, Leaderboard | None]],
    lines: dict[str, list[LeaderboardLine | None]],
) -> Numbers:
    columns = [(Column("model", "left"), [*models])]
    for at, (window, _) in enumerate(parts):
        title = f"from {_day(window, first=True)}"
        columns.append((Column(title), [_cell(lines[model][at]) for model in models]))
    return numbers(columns, "model")


def _cell(line: LeaderboardLine | None) -> str:
    if line is None:
        return UNKNOWN
    error = "" if line.std_error is None else f" ± {number(line.std_error, 2)}"
    return f"{number(line.score, 2)}{error} ({line.sessions:,})"


def _day(window: Window, *, first: bool) -> str:
    at = window.since if first else window.until
    return "" if at is None else f"{at:%Y-%m-%d}"
