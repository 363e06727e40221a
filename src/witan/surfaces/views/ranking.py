"""The ranking: a line per candidate with its dot and interval, in the boxes of their tiers."""

from dataclasses import dataclass, replace
from itertools import groupby

from witan.core.outcome import Outcome, Standing
from witan.core.rules import RULES
from witan.service.text import UNKNOWN, decimals, number
from witan.service.trust import p_best_text
from witan.surfaces.charts.standings import SCORES
from witan.surfaces.report.scale import Dot, Scale
from witan.surfaces.views.naming import Naming

__all__ = ["Box", "Line", "Ranking", "ranking"]


@dataclass(frozen=True, slots=True)
class Line:
    """One candidate.

    Parameters
    ----------
    key
        The same candidate at any time has the same; of no meaning else.
    dot
        None: it has no score.
    was
        Its rank before the recount, where that differs.
    failed
        What the safety gate found in it; empty: nothing.
    """

    key: str
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
    answer: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Box:
    """A tier: lines that are too close to call, or one that stands alone.

    Parameters
    ----------
    label
        What is said of it; empty where there is nothing to say.
    """

    label: str
    lines: tuple[Line, ...]
    in_play: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Standings as they are drawn.

    Parameters
    ----------
    bars
        What the bars stand for; empty where the rule has none.
    zero
        Where the score 0 lies, in percent, if it is in sight.
    low, high
        What the ends of the plot stand for, in print.
    """

    rule: str
    why: str
    said: str
    axis: str
    level: str
    bars: str
    low: str
    high: str
    zero: float | None
    boxes: tuple[Box, ...]
    ballots: int
    warnings: tuple[str, ...]
    graded: bool


def ranking(outcome: Outcome, naming: Naming, before: Outcome | None = None) -> Ranking:
    """The standings of an outcome; `before` is the count that it is compared with."""
    outcome = naming.in_order(outcome)
    rule = RULES[outcome.fell_back_to or outcome.rule]
    scale = Scale.over(
        ((line.score, line.interval) for line in outcome.standings), turned=rule.lower_is_better
    )
    better = "lower is better" if rule.lower_is_better else "higher is better"
    low, high = (number(end, 2).replace("-", "−") for end in scale.ends)
    return Ranking(
        rule=outcome.rule,
        why=naming.said(outcome.why),
        said=naming.said(outcome.interpretation),
        axis=f"{SCORES.get(rule.name, f'Score ({rule.name})')}; {better}",
        level=f"{outcome.level * 100:g}%",
        bars=_bars(outcome),
        low=low,
        high=high,
        zero=scale.percent(0.0) if scale.low < 0 < scale.high else None,
        boxes=tuple(_boxes(outcome, naming, scale, before)),
        ballots=outcome.n_ballots,
        warnings=tuple(map(naming.said, outcome.warnings)),
        graded=any(line.mean_grade is not None for line in outcome.standings),
    )


def _bars(outcome: Outcome) -> str:
    """What the bars stand for; empty where the rule has no intervals."""
    held = any(line.interval is not None for line in outcome.standings)
    return f"Bars: {outcome.level * 100:g}% intervals; " if held else ""


def _boxes(outcome: Outcome, naming: Naming, scale: Scale, before: Outcome | None) -> list[Box]:
    """The tiers, best first; whoever no tier may hold stands without a box."""
    digits = decimals([line.score for line in outcome.standings])
    ranks = {} if before is None else {line.candidate: line.rank for line in before.standings}
    boxes = []
    for (in_play, _), held in groupby(outcome.standings, key=lambda s: (_in_play(s), s.tier)):
        tier = list(held)
        label = "too close to call" if in_play and len(tier) > 1 else ""
        lines = [_line(each, outcome, naming, _dot(scale, each), digits) for each in tier]
        shifted = [_shifted(line, each, ranks) for line, each in zip(lines, tier, strict=True)]
        boxes.append(Box(label, tuple(shifted), in_play))
    return boxes


def _dot(scale: Scale, line: Standing) -> Dot | None:
    return scale.dot(line.score, line.interval) if line.votes else None


def _in_play(standing: Standing) -> bool:
    """Whether a tier may hold it: it has votes, and the safety gate passed it."""
    return standing.votes > 0 and not standing.failed


def _line(line: Standing, outcome: Outcome, naming: Naming, dot: Dot | None, digits: int) -> Line:
    ends = line.interval
    interval = UNKNOWN
    if ends is not None and dot is not None:
        interval = f"{number(ends.low, digits)} to {number(ends.high, digits)}".replace("-", "−")
    grade = UNKNOWN
    if line.mean_grade is not None:
        grade = f"{number(line.mean_grade, 1)} {line.band or ''}".rstrip()
    return Line(
        key=str(naming.places.get(line.candidate, f"other-{line.rank}")),
        name=naming.name(line.candidate),
        rank=str(line.rank) if line.votes else UNKNOWN,
        score=number(line.score if dot else None, digits).replace("-", "−"),
        interval=interval,
        dot=dot,
        p_best=p_best_text(line.p_best),
        votes=str(line.votes),
        grade=grade,
        was="",
        failed=", ".join(line.failed),
        answer=naming.answer_at(line.candidate),
        # Whom nobody is compared with leads nobody.
        leads=line.candidate == outcome.clear_leader
        and sum(each.votes > 0 for each in outcome.standings) > 1,
    )


def _shifted(line: Line, standing: Standing, ranks: dict[str, int]) -> Line:
    """The line, with the rank it had before if it had another."""
    was = ranks.get(standing.candidate)
    return line if was is None or str(was) == line.rank else replace(line, was=str(was))
