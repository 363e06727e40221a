"""Charts of an outcome: its standings, and head-to-head results."""

from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from math import isfinite

from witan.core.display import level_percent
from witan.core.outcome import MIN_VOTES, Outcome, Standing
from witan.core.rules import RULES
from witan.service.text import UNKNOWN, count_noun, decimals, list_text, number
from witan.service.trust import ignores_chance, p_best_text
from witan.surfaces.report.chart import (
    SCORES,
    Axis,
    Band,
    Dot,
    DotLine,
    DotPlot,
    Grid,
    Square,
    ends,
    signed_number,
)
from witan.surfaces.report.document import Chart
from witan.surfaces.report.names import BY_NAME, MOST_PAIRED, CandidateNames, first_of

BOXES = (
    "A box groups candidates with pairs too close to call; the boxes themselves are "
    "separated. P(best): probability of being the best."
)


def standings_chart(
    outcome: Outcome, names: CandidateNames = BY_NAME, before: Outcome | None = None
) -> Chart:
    """Chart candidates' scores with intervals, best on top, tiers boxed.

    `before` is the count to compare it with, if any.
    """
    rule = RULES[outcome.fell_back_to or outcome.rule]
    numbers = [(line.score, line.interval) for line in outcome.standings if _has_score(line)]
    scores = [score for score, _ in numbers if score is not None]
    better = "lower" if rule.lower_is_better else "higher"
    axis = Axis.of_numbers(
        f"{SCORES.get(rule.name, f'Score ({rule.name})')} · {better} is better →",
        numbers,
        is_reversed=rule.lower_is_better,
        # Draw zero only if there are scores on both sides.
        line=0.0 if scores and min(scores) < 0 < max(scores) else None,
    )
    levels = [line.interval.level for line in outcome.standings if line.interval is not None]
    bars = f"Bars: {level_percent(levels[0])} intervals." if levels else "There are no intervals."
    return Chart(
        DotPlot((axis,), ("score", "P(best)", "votes"), tuple(_tiers(outcome, names, before))),
        f"Ranking by {outcome.rule}",
        bars if ignores_chance(outcome) else f"{bars} {BOXES}",
        names.sentence(outcome.interpretation),
        tuple(_circumstances(outcome)),
    )


def _circumstances(outcome: Outcome) -> Iterator[str]:
    """Describe what any chart of one outcome depends on."""
    if outcome.session:
        yield f"session {outcome.session}"
    abstention_text = f" ({count_noun(outcome.n_abstentions, 'abstention')})" * (
        outcome.n_abstentions > 0
    )
    yield f"rule {outcome.rule}"
    yield f"{count_noun(outcome.n_ballots, 'ballot')}{abstention_text}"
    if outcome.effective_votes is not None:
        worth = number(outcome.effective_votes, 1).removesuffix(".0")
        yield f"worth {worth} independent reviewers"


def _tiers(outcome: Outcome, names: CandidateNames, before: Outcome | None) -> Iterator[Band]:
    """Box the tiers, best first, without candidates excluded from tiers."""
    ranks = {} if before is None else {line.candidate: line.rank for line in before.standings}
    several = sum(line.votes > 0 for line in outcome.standings) > 1
    # A candidate without rivals does not lead.
    leader = outcome.clear_leader if several else None
    digits = decimals([line.score for line in outcome.standings])
    has_boxes = not ignores_chance(outcome)
    rivals = sum(line.votes >= MIN_VOTES for line in outcome.standings) > 1
    least = MIN_VOTES if rivals else 1

    def place(line: Standing) -> tuple[bool, int]:
        return line.votes >= least and not line.failed, line.tier

    for (in_play, _), tier in groupby(outcome.standings, key=place):
        members = list(tier)
        label = _box_label(outcome, members) if has_boxes and in_play else ""
        lines = []
        for each in members:
            was = ranks.get(each.candidate, each.rank)
            remarks = [
                *["leads clearly"] * (each.candidate == leader),
                *[f"was {was}"] * (was != each.rank and each.votes > 0),
                *[f"fails the safety gate: {', '.join(each.failed)}"] * bool(each.failed),
                *["no votes" if each.votes == 0 else "no score"] * (not _has_score(each)),
                *["not enough votes"] * (0 < each.votes < least),
            ]
            lines.append(_line(each, names, digits, "; ".join(remarks)))
        yield Band(tuple(lines), label, has_boxes and in_play)


def _box_label(outcome: Outcome, members: Sequence[Standing]) -> str:
    """State whether all or some pairs of a tier are close."""
    unresolved = {*map(frozenset, outcome.unresolved)}
    pairs = combinations([each.candidate for each in members], 2)
    close = [frozenset(pair) in unresolved for pair in pairs]
    if not any(close):
        return ""
    return "too close to call" if all(close) else "some pairs too close to call"


def _has_score(standing: Standing) -> bool:
    return standing.votes > 0 and standing.score is not None and isfinite(standing.score)


def _line(line: Standing, names: CandidateNames, digits: int, remark: str) -> DotLine:
    name = names.name(line.candidate)
    score, interval = (line.score, line.interval) if _has_score(line) else (None, None)
    level = f"{level_percent(interval.level)} interval" if interval else "interval"
    score_text = signed_number(score, digits)
    return DotLine(
        name,
        f"{name}: score {score_text}, {level} {ends(interval, digits)}"
        f"{f', {remark}' * bool(remark)}",
        (None if score is None else Dot(score, interval, "cross" if line.failed else "circle"),),
        str(line.rank) if line.votes else UNKNOWN,
        (score_text, p_best_text(line.p_best), str(line.votes)),
        remark,
        names.anchor(line.candidate) if names.places else "",
    )


def matchup_chart(outcome: Outcome) -> Chart:
    """Chart head-to-head ballots: row over column, minus the reverse."""
    n_candidates = len(outcome.standings)
    names = tuple(line.candidate for line in outcome.standings[:MOST_PAIRED])
    margins = [row[:MOST_PAIRED] for row in outcome.margins[:MOST_PAIRED]]
    most = max((abs(margin) for row in margins for margin in row), default=0.0) or 1.0
    weighs = any(ballot.weight != 1 for ballot in outcome.ballots)
    ballots = "weight of the ballots" if weighs else "ballots"
    squares = tuple(
        tuple(
            None if i == j else Square(_plus(m), f"{name} over {names[j]}: {_plus(m)}", m / most)
            for j, m in enumerate(margins[i])
        )
        for i, name in enumerate(names)
    )
    return Chart(
        Grid(names, names, squares),
        "Head to head",
        f"Number: {ballots} that place the row above the column, minus the reverse"
        f"{first_of(n_candidates)}.",
        _head_to_head(outcome),
        tuple(_circumstances(outcome)),
    )


def _plus(value: float) -> str:
    """``+3``, ``−1.5`` or ``0``."""
    return "0" if value == 0 else f"{value:+.4g}".replace("-", "−")


def _head_to_head(outcome: Outcome) -> str:
    if len(outcome.standings) < 2:
        return "There are no two candidates to compare."
    if outcome.condorcet_winner is not None:
        return f"{outcome.condorcet_winner} beats every rival head to head."
    if outcome.cycles:
        rings = "; ".join(list_text(ring) for ring in outcome.cycles)
        return f"No candidate beats every rival: the majorities form a cycle among {rings}."
    return "No candidate beats every rival head to head."
