"""Reports of a tally (shorter with more sessions) and of an explanation."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from witan.core.display import Cell, Step
from witan.core.explanation import Explanation
from witan.core.outcome import Outcome
from witan.core.scale import Scale
from witan.service.ballots import Unread
from witan.service.operations.counting import OutcomeExplanation, Tally
from witan.service.text import UNKNOWN, count_noun, list_text, number
from witan.service.trust import p_best_text, trust_line
from witan.surfaces.report.document import (
    Block,
    Column,
    Facts,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)
from witan.surfaces.report.outcome import outcome_blocks, outcome_report


def explanation_report(explanation: Explanation | OutcomeExplanation) -> Report:
    """Write the report of an explanation, with unreadable lines."""
    outcome = explanation.outcome
    parts = (outcome.session, outcome.rule, outcome.why)
    about = tuple(part for part in parts if part)
    return Report("Explanation", about, outcome.interpretation, tuple(_blocks(explanation)))


def _blocks(explanation: Explanation | OutcomeExplanation) -> Iterator[Block]:
    outcome = explanation.outcome
    scales = {scale.sentence for scale in outcome.scales}
    for count, step in enumerate(explanation.steps, 1):
        yield Heading(f"{count}. {step.title}", f"step-{count}")
        for sentence in step.sentences:
            if sentence in scales:
                yield Note(sentence, "warning", option="scale")
            else:
                yield Sentence(sentence)
        if step.rows:
            yield _table(step)
    yield Heading("Result", "result")
    yield Facts(tuple(trust_line(outcome).split(" · ")))
    if isinstance(explanation, OutcomeExplanation):
        for sentence in explanation.without_effect:
            yield Note(sentence, "concern")
        for each in explanation.not_read:
            yield Note(f"line {each.line:,}: {each.problem}", "concern", "not read")


def _table(step: Step) -> Table:
    """Return the table of a step, a line above its mean."""
    columns = []
    for title, cells in zip(step.header, zip(*step.rows, strict=True), strict=True):
        words = any(isinstance(cell, str) for cell in cells)
        column = Column(title, "left" if words else "right", fit="middle" if words else "whole")
        columns.append((column, _cells(cells)))
    foot = {len(step.rows) - 1} if step.rows[-1][0] == "mean" else set()
    return table_of(step.title, columns, breaks=foot)


def _cells(column: Sequence[Cell]) -> list[str]:
    """Print integers if all are whole, otherwise three decimals each."""
    numbers = [cell for cell in column if cell is not None and not isinstance(cell, str)]
    whole = all(float(cell).is_integer() for cell in numbers)
    return [_cell(cell, 0 if whole else 3) for cell in column]


def _cell(cell: Cell, digits: int) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if 1e-9 < abs(cell) < 0.0005 and digits:
        return f"{cell:.1e}"
    return number(cell, digits)


IN_FULL = 10
"""Most sessions shown in full; more get a line each."""

SHOWN = 1000
"""Most sessions with a line, and most problems listed."""

CANDIDATES_SHOWN = 20
"""Most candidates listed with the number of sessions they lead."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The line of one outcome among many.

    `has_notes`: it has warnings other than those on its scales.
    """

    session: str
    rule: str
    n_ballots: int
    leaders: tuple[str, ...]
    clear: bool
    tied_with: tuple[str, ...]
    p_best: float | None
    flips: str
    has_notes: bool
    scales: tuple[Scale, ...] = ()

    @classmethod
    def of(cls, outcome: Outcome) -> "Digest":
        """Digest an outcome."""
        leaders = outcome.leaders
        return cls(
            session=outcome.session,
            rule=outcome.rule,
            n_ballots=outcome.n_ballots,
            leaders=leaders,
            clear=outcome.clear_leader is not None,
            tied_with=tuple(name for name in outcome.tied_for_best if name not in leaders),
            p_best=outcome[leaders[0]].p_best if leaders else None,
            flips=_flips(outcome),
            has_notes=len(outcome.warnings) > len(outcome.scales),
            scales=outcome.scales,
        )


def _flips(outcome: Outcome) -> str:
    """Return the ballots to flip as a cell; ``≤`` marks a bound."""
    if outcome.ballots_to_flip is None:
        return UNKNOWN
    return f"{'' if outcome.flip_is_exact else '≤'}{outcome.ballots_to_flip}"


def tally_report(tally: Tally) -> Report:
    """Write the report of a tally."""
    outcomes, problems = tally.sessions, [*_problems(tally)]
    if len(outcomes) > IN_FULL:
        digests = [Digest.of(outcome) for outcome in outcomes]
        return digests_report(digests, problems, most=SHOWN)
    return outcomes_report(outcomes, problems)


def _problems(tally: Tally) -> Iterator[Block]:
    missed = [each.problem for each in tally.not_counted]
    yield from problem_blocks("Not counted", "not-counted", missed)
    yield from unread_blocks(tally.not_read)
    yield from problem_blocks("Without effect", "without-effect", tally.without_effect)


def unread_blocks(unread: Sequence[Unread]) -> Iterator[Block]:
    """Write the section on unreadable lines, if any."""
    lines = [f"line {each.line:,}: {each.problem}" for each in unread]
    yield from problem_blocks("Not read", "not-read", lines)


def problem_blocks(title: str, key: str, lines: Sequence[str]) -> Iterator[Block]:
    """Write a section on problems; nothing without one."""
    if not lines:
        return
    yield Heading(title, key)
    yield from (Note(line, "concern") for line in lines[:SHOWN])
    if more := len(lines[SHOWN:]):
        yield Sentence(f"And {more:,} more.", quiet=True)


def outcomes_report(
    outcomes: Sequence[Outcome],
    problems: Sequence[Block] = (),
    simulated_sessions: Collection[str] = (),
) -> Report:
    """Write the problems, and the report of each session in full.

    Scripts cast the ballots of `simulated_sessions`.
    """
    if len(outcomes) == 1:
        one = outcome_report(outcomes[0], is_simulated=outcomes[0].session in simulated_sessions)
        return Report(one.title, one.about, one.finding, (*problems, *one.blocks))
    words = f"{count_noun(len(outcomes), 'session')} counted" if outcomes else "Nothing counted"
    return Report("Tally", (), f"{words}.", (*problems, *_sections(outcomes, simulated_sessions)))


def _sections(outcomes: Sequence[Outcome], simulated_sessions: Collection[str]) -> Iterator[Block]:
    for at, outcome in enumerate(outcomes, start=1):
        mark = "simulated · " if outcome.session in simulated_sessions else ""
        yield Heading(f"{mark}{outcome.session or 'Ranking'}", f"session-{at}")
        yield Sentence(outcome.interpretation)
        yield from outcome_blocks(outcome)


def digests_report(
    digests: Sequence[Digest], problems: Sequence[Block] = (), most: int | None = None
) -> Report:
    """Write the problems, and a line for each of `most` sessions."""
    return Report(
        "Tally",
        (),
        _total(digests),
        (
            *problems,
            Heading("Sessions", "sessions"),
            _lines(digests[:most]),
            *_remarks(digests, most),
            Heading("Leaders", "leaders"),
            *_leads(digests),
        ),
    )


def _lines(digests: Sequence[Digest]) -> Table:
    return table_of(
        "Sessions",
        [
            (Column("session", "left", fit="middle", heads=True), [one.session for one in digests]),
            (
                Column("leader", "left", fit="middle"),
                [" = ".join(one.leaders) or UNKNOWN for one in digests],
            ),
            (
                Column("tied with", "left", fit="middle", keep=60),
                [list_text(one.tied_with, most=3) for one in digests],
            ),
            (Column("p_best", keep=50), [p_best_text(one.p_best) for one in digests]),
            (Column("flips", keep=40), [one.flips for one in digests]),
            (Column("ballots", keep=30), [str(one.n_ballots) for one in digests]),
            (Column("rule", "left", keep=20), [one.rule for one in digests]),
        ],
    )


def _remarks(digests: Sequence[Digest], most: int | None) -> Iterator[Block]:
    if most is not None and len(digests) > most:
        yield Sentence(f"And {count_noun(len(digests) - most, 'more session')}.", quiet=True)
    for sentence in dict.fromkeys(scale.sentence for one in digests for scale in one.scales):
        yield Note(sentence, "warning", option="scale")
    if n_with_notes := sum(one.has_notes for one in digests):
        carry = "carries a note" if n_with_notes == 1 else "carry notes"
        yield Note(f"{count_noun(n_with_notes, 'session')} {carry}.", "warning")


def _total(digests: Sequence[Digest]) -> str:
    clear = sum(one.clear for one in digests)
    shared = sum(len(one.leaders) > 1 for one in digests)
    nobody = sum(not one.leaders for one in digests)
    parts = [
        f"{clear:,} with a clear leader",
        f"{len(digests) - clear - shared - nobody:,} with a leader that is not clear",
        f"{shared:,} in a dead heat",
    ]
    if nobody:
        parts.append(f"{nobody:,} without a vote")
    return f"{count_noun(len(digests), 'session')}: {list_text(parts)}."


def _leads(digests: Sequence[Digest]) -> Iterator[Block]:
    """Count each candidate's clear, sole and shared leads."""
    counts: dict[str, list[int]] = {}
    for one in digests:
        for leader in one.leaders:
            lead = counts.setdefault(leader, [0, 0, 0])
            lead[0] += len(one.leaders) == 1
            lead[1] += one.clear
            lead[2] += len(one.leaders) > 1
    order = sorted(counts, key=lambda name: (-counts[name][0], -counts[name][2], name))
    candidates = order[:CANDIDATES_SHOWN]
    titles = ("leads", "of these clearly", "shares the lead")
    yield table_of(
        "Leaders",
        [
            (Column("candidate", "left", fit="middle", heads=True), candidates),
            *(
                (Column(title), [f"{counts[name][column]:,}" for name in candidates])
                for column, title in enumerate(titles)
            ),
        ],
    )
    if more := len(order[CANDIDATES_SHOWN:]):
        yield Sentence(f"And {count_noun(more, 'more candidate')}.", quiet=True)
