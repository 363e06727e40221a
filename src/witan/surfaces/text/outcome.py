"""One outcome as text: header, sentence, table, what may be trusted, notes."""

from collections.abc import Iterator, Sequence

from witan.core.outcome import Outcome, Standing
from witan.core.rules import RULES
from witan.service.text import UNKNOWN, Page, counted, decimals, listed, number
from witan.service.trust import p_best_text, trust_line
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table

__all__ = ["flips", "outcome_text"]

NOTES_SHOWN = 10
"""Abstentions, and warnings, beyond this many are only counted."""


def outcome_text(page: Page, outcome: Outcome, *, simulated: bool = False) -> Iterator[str]:
    """The lines of one outcome; marked, where scripts cast its ballots."""
    mark = "simulated" if simulated else ""
    parts = [mark, outcome.session, outcome.rule, outcome.why]
    yield page.sentence(" · ".join(part for part in parts if part), "bold", hang=2)
    yield page.sentence(outcome.interpretation)
    yield ""
    yield from standings_table(page, outcome)
    yield ""
    trust = " · ".join(part for part in (mark, trust_line(outcome)) if part)
    yield page.sentence(trust, hang=2)
    for note in _notes(outcome):
        yield page.sentence(note, hang=2)
    own = {scale.sentence: scale.sentence_with(page.option("scale")) for scale in outcome.scales}
    notes = [f"note: {own.get(text, text)}" for text in outcome.warnings]
    for warning in _few(notes, "note"):
        yield page.sentence(warning, "warning", hang=2)


def standings_table(page: Page, outcome: Outcome) -> Iterator[str]:
    """The standings, a line drawn between tiers."""
    lines = outcome.standings
    score = decimals([line.score for line in lines])
    shown = _columns(outcome, score)
    rows = [[cells[index] for _, cells in shown] for index in range(len(lines))]
    breaks = {index for index in range(1, len(lines)) if lines[index].tier != lines[index - 1].tier}
    first = [index for index, line in enumerate(lines) if line.tier == 1 and line.votes]
    return table(page, [column for column, _ in shown], rows, breaks=breaks, bold=first)


def _columns(outcome: Outcome, digits: int) -> list[tuple[Column, list[str]]]:
    """Every column that has something to say, with its cells."""
    lines = outcome.standings
    title = "score (low is best)" if RULES[outcome.rule].lower_is_better else "score"
    percent = f"{outcome.level * 100:g}% interval"
    shown = [
        (Column("rank"), [str(line.rank) for line in lines]),
        (Column("candidate", "left", elastic=True), [line.candidate for line in lines]),
        (Column(title), [number(line.score, digits) for line in lines]),
    ]
    if any(line.std_error is not None for line in lines):
        errors = [number(line.std_error, digits) for line in lines]
        shown.append((Column("± error", keep=70), errors))
    if any(line.interval is not None for line in lines):
        shown.append((Column(percent, keep=10), [_interval(line, digits) for line in lines]))
    shown += [
        (Column("votes", keep=60), [str(line.votes) for line in lines]),
        (Column("wins", keep=30), _wins(lines)),
    ]
    if any(line.mean_grade is not None for line in lines):
        shown.append((Column("mean grade", "left", keep=20), [_grade(line) for line in lines]))
    shown += [
        (Column("coverage", "left", keep=40), [line.confidence for line in lines]),
        (Column("p_best", keep=80), [p_best_text(line.p_best) for line in lines]),
        (Column("tier", keep=50), [str(line.tier) for line in lines]),
    ]
    if any(line.failed for line in lines):
        marks = [f"failed: {', '.join(line.failed)}" if line.failed else "" for line in lines]
        shown.append((Column("safety", "left", keep=90), marks))
    return shown


def _interval(line: Standing, digits: int) -> str:
    if line.interval is None:
        return UNKNOWN
    return f"{number(line.interval.low, digits)} to {number(line.interval.high, digits)}"


def _wins(lines: Sequence[Standing]) -> list[str]:
    """Whole numbers unless some first place was shared."""
    whole = all(float(line.wins).is_integer() for line in lines)
    return [number(line.wins, 0 if whole else 2) for line in lines]


def _grade(line: Standing) -> str:
    if line.mean_grade is None:
        return UNKNOWN
    return f"{number(line.mean_grade, 1)} {line.band or ''}".rstrip()


def flips(outcome: Outcome) -> str:
    """The number of ballots to flip as a cell, ``≤`` where a smaller one may do."""
    if outcome.ballots_to_flip is None:
        return UNKNOWN
    return f"{'' if outcome.flip_is_exact else '≤'}{outcome.ballots_to_flip}"


def _notes(outcome: Outcome) -> Iterator[str]:
    """Further remarks on the ballots."""
    winner = outcome.condorcet_winner
    if winner is not None:
        though = "" if winner in outcome.leaders else f", yet does not lead under {outcome.rule}"
        yield f"{winner} beats every rival head to head{though}."
    for ring in outcome.cycles:
        yield f"{listed(ring)} form a preference cycle: no order agrees with every majority."
    if outcome.kendall_w is not None:
        yield f"Kendall's W of the ballots is {number(outcome.kendall_w)} (0 no agreement, 1 full)."
    if outcome.tie_broken_by is not None:
        yield f"Equal scores were separated by {outcome.tie_broken_by}."
    if outcome.order_kept:
        kept = [f"{name} {alike} of {twice}" for name, (alike, twice) in outcome.order_kept.items()]
        yield f"Pairs judged alike in both orders, a flip being a tie: {listed(kept)}."
    yield from _few(
        [f"{reviewer} abstained{_because(why)}" for reviewer, why in outcome.abstentions.items()],
        "abstention",
    )


def _because(why: str) -> str:
    return "" if why == "abstained" else f": {why}"


def _few(sentences: Sequence[str], noun: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= NOTES_SHOWN:
        return list(sentences)
    more = counted(len(sentences) - NOTES_SHOWN, f"more {noun}")
    return [*sentences[:NOTES_SHOWN], f"… and {more}; --json has them all"]
