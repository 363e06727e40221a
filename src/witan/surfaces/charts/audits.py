"""An audit: a row per reviewer, a strip per measure, dots with intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from witan.core.stats.audit_gradings import GradingAudit
from witan.core.stats.audit_reviewers import ReviewerAudit
from witan.errors import NothingToCount
from witan.service.text import clean, counted, listed, number
from witan.surfaces.charts.grammar import (
    BOX,
    MUTED,
    NAME_LIMIT,
    Spec,
    frame,
    name_pixels,
    two_states,
)
from witan.surfaces.report.measures import GRADING_WORDS, REVIEWER_WORDS, Word

if TYPE_CHECKING:
    from witan.analytics.audits import AuditReport

STRIP, GAP, LINE = 108, 22, 26

Drawn = Sequence[tuple[str, ReviewerAudit | GradingAudit]]
"""Reviewers, and what is drawn of each."""


def audit_chart(report: "AuditReport") -> Spec:
    """Draw the measures of every reviewer, or of one, each on a scale of its own.

    A report on a criterion draws how they grade on it, in place of how they judge as a whole.

    Raises
    ------
    NothingToCount
        If no measure of them has a value.
    """
    if (on := report.criterion) is not None:
        result = [(grader.reviewer, grader.grading) for grader in on.graders]
        title = f"How {report.only or 'reviewers'} graded {on.criterion}"
        return _chart(report, result, GRADING_WORDS, title)
    drawn = [(line.reviewer, line) for line in report.overview]
    return _chart(report, drawn, REVIEWER_WORDS, _title(report, report.overview))


def _chart(report: "AuditReport", lines: Drawn, known: Sequence[Word], title: str) -> Spec:
    words = [
        word
        for word in known
        if word.strip and any(word.of(line).value is not None for _, line in lines)
    ]
    if not words:
        raise NothingToCount("no measure of these reviewers has enough data to be drawn")
    names: list[Spec] = [
        {"y": row + 0.5, "name": clean(name)} for row, (name, _) in enumerate(lines)
    ]
    width = len(words) * (STRIP + GAP) - GAP
    return frame(
        title=title,
        notes=[
            counted(report.sessions, "session"),
            str(report.window),
            f"bars: {100 * report.level:.4g} % intervals",
            "vermilion diamonds stand out; each strip has its own scale",
        ],
        description=f"{counted(len(lines), 'reviewer')}, {counted(len(words), 'measure')}. {title}",
        size=(width, LINE * len(lines)),
        beside=name_pixels(line["name"] for line in names) + 20,
        datasets={
            "dots": _dots(lines, words),
            "strips": _strips(lines, words),
            "names": names,
        },
        layers=_layers(width, len(lines)),
    )


def _title(report: "AuditReport", lines: Sequence[ReviewerAudit]) -> str:
    standing_out = [line.reviewer for line in lines if line.reviewer in report.concerns]
    if not standing_out:
        return "Nothing stands out beyond noise"
    if len(standing_out) == len(lines) == 1:
        [concern, *more] = report.concerns[standing_out[0]]
        also = f", and {counted(len(more), 'more concern')}" if more else ""
        return f"{standing_out[0]} {concern.sentence}{also}"
    return f"Something stands out in {listed(standing_out)}"


def _range(lines: Drawn, word: Word) -> tuple[float, float]:
    """From the least to the most of a strip, its line included, with a margin."""
    held = [word.line]
    for measure in (word.of(line) for _, line in lines):
        if measure.value is not None:
            held.append(measure.value)
            if measure.interval is not None:
                held += [measure.interval.low, measure.interval.high]
    low, high = min(held), max(held)
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin


def _placed(value: float, strip: int, ends: tuple[float, float]) -> float:
    return strip * (STRIP + GAP) + STRIP * (value - ends[0]) / (ends[1] - ends[0])


def _dots(lines: Drawn, words: Sequence[Word]) -> list[Spec]:
    result: list[Spec] = []
    for strip, word in enumerate(words):
        ends = _range(lines, word)
        for row, (name, line) in enumerate(lines):
            measure = word.of(line)
            if measure.value is not None:
                dot = _dot(word, line, strip, ends)
                result.append({"y": row + 0.5, **dot, "name": clean(name)})
    return result


def _dot(
    word: Word, line: ReviewerAudit | GradingAudit, strip: int, ends: tuple[float, float]
) -> Spec:
    measure = word.of(line)
    assert measure.value is not None  # noqa: S101 - asked before
    interval = measure.interval
    return {
        "x": _placed(measure.value, strip, ends),
        "from": None if interval is None else _placed(interval.low, strip, ends),
        "to": None if interval is None else _placed(interval.high, strip, ends),
        "state": "stands out" if word.stands_out(line) else "as it may be",
        "measure": word.meaning,
        "value": measure.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "n": measure.n,
    }


def _strips(lines: Drawn, words: Sequence[Word]) -> list[Spec]:
    result: list[Spec] = []
    for strip, word in enumerate(words):
        ends = _range(lines, word)
        left = strip * (STRIP + GAP)
        result.append(
            {
                "left": left,
                "right": left + STRIP,
                "middle": left + STRIP / 2,
                "line": _placed(word.line, strip, ends),
                "title": word.strip,
                "least": number(ends[0]).replace("-", "−"),
                "most": number(ends[1]).replace("-", "−"),
                "at": f"{word.line:g}",
            }
        )
    return result


def _layers(width: int, n_lines: int) -> list[Spec]:
    scale = {"domain": [0, width], "nice": False, "zero": False}
    x: Spec = {"type": "quantitative", "scale": scale, "axis": None}
    rows = {"domain": [0, n_lines], "nice": False, "reverse": True}
    y: Spec = {"type": "quantitative", "scale": rows, "axis": None}
    return [*_ground(x, LINE * n_lines), *_marks(x, y)]


def _ground(x: Spec, height: float) -> list[Spec]:
    """Strips with their titles, lines and ends."""
    tall: Spec = {"y": {"value": 0}, "y2": {"value": height}}
    rect: Spec = {"type": "rect", "color": BOX, "cornerRadius": 3, "aria": False}
    rule: Spec = {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False}
    sides: Spec = {"x": {"field": "left", **x}, "x2": {"field": "right"}}

    def word(field: str, at: str, y: float, **style: object) -> Spec:
        mark = {"type": "text", "color": MUTED, "fontSize": 10, **style}
        encoding = {"x": {"field": at, **x}, "y": {"value": y}, "text": {"field": field}}
        return {"data": {"name": "strips"}, "mark": mark, "encoding": encoding}

    return [
        {"data": {"name": "strips"}, "mark": rect, "encoding": {**sides, **tall}},
        {
            "data": {"name": "strips"},
            "mark": rule,
            "encoding": {"x": {"field": "line", **x}, **tall},
        },
        word("title", "middle", -10, fontSize=11),
        word("least", "left", height + 12, align="left"),
        word("most", "right", height + 12, align="right"),
    ]


def _marks(x: Spec, y: Spec) -> list[Spec]:
    """Dots with their intervals, diamonds where one stands out, and the names of the rows."""
    colour, shape = two_states(["as it may be", "stands out"], ["circle", "diamond"])
    place: Spec = {"y": {"field": "y", **y}, "color": colour}
    tooltip = [{"field": name} for name in ("name", "measure", "value", "low", "high", "n")]
    return [
        {
            "data": {"name": "dots"},
            "mark": {"type": "rule", "strokeWidth": 2, "aria": False},
            "encoding": {"x": {"field": "from", **x}, "x2": {"field": "to"}, **place},
        },
        {
            "data": {"name": "dots"},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": {"field": "x", **x}, **place, "shape": shape, "tooltip": tooltip},
        },
        {
            "data": {"name": "names"},
            "mark": {"type": "text", "align": "right", "limit": NAME_LIMIT},
            "encoding": {"x": {"value": -12}, "y": place["y"], "text": {"field": "name"}},
        },
    ]
