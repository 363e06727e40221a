"""Standings as dots with intervals, tiers boxed."""

from collections.abc import Sequence
from itertools import groupby

from witan.core.outcome import Outcome, Standing
from witan.core.rules import RULES
from witan.service.text import UNKNOWN, clean, number
from witan.surfaces.charts.grammar import (
    CHARACTER,
    MUTED,
    NAME_LIMIT,
    REMARK,
    Spec,
    circumstances,
    frame,
    name_pixels,
    two_states,
)
from witan.surfaces.charts.rows import boxed, cells, dots, headed
from witan.surfaces.report.scale import SCORES

__all__ = ["standings_chart"]

PLOT_WIDTH = 400

TABLE_WIDTH = 160
"""Room for score, P(best) and votes right of the plot."""

CROSS = "M-1-.6L-.6-1L0-.4L.6-1L1-.6L.4 0L1 .6L.6 1L0 .4L-.6 1L-1 .6L-.4 0Z"
"""The mark of a candidate that the safety gate failed, in the unit square."""


def standings_chart(outcome: Outcome) -> Spec:
    """Draw each candidate's score with its interval, best on top, tiers boxed."""
    lines, boxes, depth = _laid_out(outcome.standings)
    scores = [line["score"] for line in lines if line["score"] is not None]
    x: Spec = {"type": "quantitative", **_score_axis(outcome.fell_back_to or outcome.rule, lines)}
    # Zero means something only where scores fall on both sides of it; words keep clear of it.
    centred = bool(scores) and min(scores) < 0 < max(scores)
    low, high = x["scale"]["domain"] if centred else (0.0, 1.0)
    edge = "right" if centred and -low < 0.3 * (high - low) else "left"
    y: Spec = {
        "type": "quantitative",
        "scale": {"domain": [0, depth], "nice": False, "reverse": True},
        "axis": None,
    }
    names = name_pixels(line["name"] for line in lines)
    remarks = CHARACTER * max((len(line["remark"]) for line in lines), default=0)
    return frame(
        title=outcome.interpretation,
        notes=_notes(outcome),
        description=f"{len(lines)} candidates, best first. {outcome.interpretation}",
        size=(PLOT_WIDTH, round((26 if depth <= 16 else 21) * depth)),
        beside=names + 38 + TABLE_WIDTH + remarks,
        datasets={"lines": lines, "tiers": boxes, "zero": [{"zero": 0}] * centred},
        layers=[*_boxes(x, y), *_dots(x, y), *_words(y, edge), *_columns(y)],
    )


def _score_axis(rule: str, lines: Sequence[Spec]) -> Spec:
    """Run from worse to better, over all scores and interval ends with a margin of 4 %."""
    low_is_better = RULES[rule].lower_is_better
    held = [line[key] for line in lines for key in ("low", "score", "high")]
    known = [value for value in held if value is not None]
    if not known:
        return {"axis": None}
    low, high = min(known), max(known)
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0) or 1.0
    margin = 0.04 * (high - low)
    better = "lower" if low_is_better else "higher"
    return {
        "scale": {
            "domain": [low - margin, high + margin],
            "nice": False,
            "reverse": low_is_better,
        },
        "axis": {
            "tickCount": 6,
            "grid": False,
            "title": f"{SCORES.get(rule, f'Score ({rule})')} · {better} is better →",
        },
    }


def _laid_out(standings: Sequence[Standing]) -> tuple[list[Spec], list[Spec], float]:
    """Lines with their places, the boxes round their tiers, and the height in lines."""
    lines: list[Spec] = []
    boxes: list[Spec] = []
    depth = 0.0
    for (in_play, _), tier in groupby(standings, key=lambda s: (_in_play(s), s.tier)):
        members = list(tier)
        top = depth
        if several := in_play and len(members) > 1:
            depth += 0.7
        for member in members:
            lines.append({"y": depth + 0.5, **_line(member)})
            depth += 1
        if in_play:
            label = "too close to call" if several else ""
            boxes.append({"top": top, "bottom": depth, "middle": top + 0.42, "label": label})
        depth += 0.2
    return lines, boxes, round(depth, 6)


def _in_play(standing: Standing) -> bool:
    """Return true if it has votes, and the safety gate passed it."""
    return standing.votes > 0 and not standing.failed


def _line(standing: Standing) -> Spec:
    """One standing as data: numbers to place, words to print."""
    drawn = standing.votes > 0 and standing.score is not None
    interval = standing.interval if drawn else None
    flags = ", ".join(standing.failed)
    return {
        "name": clean(standing.candidate),
        "rank": str(standing.rank) if standing.votes > 0 else UNKNOWN,
        "score": standing.score if drawn else None,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "state": "failed" if standing.failed else "passed",
        "absent": "" if drawn else "no votes" if standing.votes == 0 else "no score",
        "printed": number(standing.score if drawn else None).replace("-", "−"),
        "p_best": _probability(standing.p_best),
        "votes": str(standing.votes),
        "remark": clean(f"failed the safety gate: {flags}") if flags else "",
    }


def _probability(p: float | None) -> str:
    if p is None:
        return UNKNOWN
    return "<0.01" if p < 0.01 else ">0.99" if p > 0.99 else f"{p:.2f}"


def _boxes(x: Spec, y: Spec) -> list[Spec]:
    """Put a light box behind each tier, and a line at zero where zero is in sight."""
    return [
        boxed("tiers", y, PLOT_WIDTH),
        {
            "data": {"name": "zero"},
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
            "encoding": {"x": {"field": "zero", **x}},
        },
    ]


def _dots(x: Spec, y: Spec) -> list[Spec]:
    """Draw intervals and dots, a cross where the safety gate failed."""
    colour, shape = two_states(["passed", "failed"], ["circle", CROSS])
    return dots(
        x,
        y,
        mark={"filled": True},
        interval={"color": colour},
        dot={"x": {"field": "score", **x}, "color": colour, "shape": shape},
        told=("name", "rank", "score", "low", "high", "votes"),
    )


def _words(y: Spec, edge: str) -> list[Spec]:
    """Say what is to be said of a tier, and of a line without a score, at one edge of the plot."""
    where: Spec = {"x": {"value": 6 if edge == "left" else PLOT_WIDTH - 6}}
    mark: Spec = {"type": "text", "align": edge, "color": MUTED}
    return [
        {
            "data": {"name": "tiers"},
            "mark": {**mark, "fontSize": 10},
            "encoding": {"y": {"field": "middle", **y}, **where, "text": {"field": "label"}},
        },
        {
            "data": {"name": "lines"},
            "mark": {**mark, "fontStyle": "italic"},
            "encoding": {"y": {"field": "y", **y}, **where, "text": {"field": "absent"}},
        },
    ]


def _columns(y: Spec) -> list[Spec]:
    """Write names and ranks left of the plot; score, P(best), votes and remarks right of it."""
    names: Spec = {"align": "right", "limit": NAME_LIMIT}
    remarks: Spec = {"align": "left", "color": REMARK, "fontSize": 11}
    return [
        cells("name", -38, y, names),
        *headed("rank", "rank", -12, y),
        *headed("printed", "score", PLOT_WIDTH + 54, y),
        *headed("p_best", "P(best)", PLOT_WIDTH + 106, y),
        *headed("votes", "votes", PLOT_WIDTH + 146, y),
        cells("remark", PLOT_WIDTH + TABLE_WIDTH, y, remarks),
    ]


def _notes(outcome: Outcome) -> list[str]:
    """Say what the standings depend on, and what their intervals mean."""
    levels = [line.interval.level for line in outcome.standings if line.interval is not None]
    worth = outcome.effective_votes
    return [
        *circumstances(outcome),
        *([] if worth is None else [f"worth {number(worth, 1)} independent ones"]),
        f"bars: {100 * levels[0]:.4g} % intervals" if levels else "no intervals",
    ]
