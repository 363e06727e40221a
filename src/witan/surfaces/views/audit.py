"""An audit as its page shows it: a row per reviewer, then everything of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from witan.core.audit_reviewers import ReviewerAudit
from witan.core.measure import Measure
from witan.surfaces.audit_text import (
    OVERVIEW,
    calm_text,
    interval_text,
    reliability_rows,
    rests_on,
    stands_out,
    value_text,
    who_text,
)
from witan.surfaces.audit_words import (
    CRITERION_WORDS,
    GRADING_WORDS,
    PANEL_WORDS,
    REVIEWER_WORDS,
    Word,
)
from witan.surfaces.text import UNKNOWN, clean, counted

if TYPE_CHECKING:
    from witan.adapters.reports import AuditReport

__all__ = ["AuditView", "ReviewerView", "audit_view", "reviewer_view"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure.

    Parameters
    ----------
    value, interval, rests
        In print; without a value, `rests` says how much there is of what is needed.
    short
        What it rests on, where there is little room.
    stands_out
        It is beyond noise of what one would wish.
    """

    value: str
    interval: str
    rests: str
    short: str = ""
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class ReviewerRow:
    """One reviewer, with a cell for each column."""

    name: str
    who: str
    ballots: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """One measure in full: what it is called, itself, and what its number says."""

    title: str
    cell: Cell
    meaning: str


@dataclass(frozen=True, slots=True)
class AuditView:
    """Everything on the page of an audit.

    Parameters
    ----------
    words
        Title and meaning of each column.
    concerns
        Reviewer, and what stands out of it.
    calm
        What is said where nothing does.
    reliability
        The panel's confidence, pairs, how often it matched people, the interval.
    """

    about: str
    level: str
    words: tuple[tuple[str, str], ...]
    rows: tuple[ReviewerRow, ...]
    concerns: tuple[tuple[str, str], ...]
    calm: str
    panel: tuple[Said, ...]
    criteria: tuple[tuple[str, tuple[Cell, ...]], ...]
    criterion_words: tuple[str, ...]
    reliability: tuple[tuple[str, str, str, str], ...]
    unknown: str


@dataclass(frozen=True, slots=True)
class ReviewerView:
    """Everything of one reviewer; `criteria` by name, each with its measures."""

    name: str
    about: str
    concerns: tuple[str, ...]
    measures: tuple[Said, ...]
    criteria: tuple[tuple[str, tuple[Said, ...]], ...]


def audit_view(report: "AuditReport") -> AuditView:
    """The page of an audit."""
    lines = report.overview
    words = [
        word
        for word in REVIEWER_WORDS
        if word.measure in OVERVIEW and any(word.of(line).n for line in lines)
    ]
    criteria = report.audit.panel.criteria
    if all(line.criterion is None for line in criteria):
        criteria = ()
    return AuditView(
        about=f"{counted(report.sessions, 'session')} · {report.window}",
        level=f"{report.audit.level * 100:g}%",
        words=tuple((word.title, word.meaning) for word in words),
        rows=tuple(_row(line, words, report) for line in lines),
        concerns=tuple(
            (clean(name), "; ".join(each.sentence for each in held))
            for name, held in report.concerns.items()
        ),
        calm=calm_text(report),
        panel=_said(PANEL_WORDS, [word.of(report.audit.panel) for word in PANEL_WORDS]),
        criteria=tuple(
            (
                "overall" if line.criterion is None else clean(line.criterion),
                tuple(_cell(word, word.of(line)) for word in CRITERION_WORDS),
            )
            for line in criteria
        ),
        criterion_words=tuple(word.title for word in CRITERION_WORDS),
        reliability=reliability_rows(report),
        unknown="" if report.calibration.known else str(report.calibration.reliability(0.5).why),
    )


def reviewer_view(report: "AuditReport", reviewer: str) -> ReviewerView:
    """The page of one reviewer.

    Raises
    ------
    UnknownName
        If there is no such reviewer.
    """
    line = report[reviewer]
    cast = f"{counted(line.ballots, 'ballot')}, {counted(line.abstentions, 'abstention')}"
    measures = [(word, word.of(line)) for word in REVIEWER_WORDS]
    return ReviewerView(
        name=clean(line.reviewer),
        about=f"{who_text(report, line)} · {cast} · {report.window}",
        concerns=tuple(each.sentence for each in report.concerns.get(line.reviewer, ())),
        measures=tuple(
            Said(word.name, _cell(word, measure), word.meaning) for word, measure in measures
        ),
        criteria=tuple(
            (
                clean(found.criterion),
                _said(GRADING_WORDS, [word.of(found) for word in GRADING_WORDS]),
            )
            for found in line.criteria
        ),
    )


def _row(line: ReviewerAudit, words: Sequence[Word], report: "AuditReport") -> ReviewerRow:
    cells = tuple(_cell(word, word.of(line)) for word in words)
    who = who_text(report, line) if line.human else ""
    return ReviewerRow(line.reviewer, who, f"{line.ballots:,}", cells)


def _cell(word: Word, measure: Measure) -> Cell:
    if measure.value is None:
        if not measure.n:
            return Cell(UNKNOWN, "", "")
        if measure.n < measure.needed:
            return Cell("", "", f"not enough data: {measure.n:,} of {measure.needed:,}")
        return Cell("", "", rests_on(measure))
    interval = interval_text(measure)
    return Cell(
        _printed(value_text(measure)),
        "interval unknown" if interval == UNKNOWN else _printed(interval),
        f"{measure.n:,} {measure.of}",
        f"n {measure.n:,}",
        stands_out(word, measure),
    )


def _printed(number: str) -> str:
    return number.replace("-", "−")


def _said(words: Sequence[Word], measures: Sequence[Measure]) -> tuple[Said, ...]:
    return tuple(
        Said(word.title, _cell(word, measure), word.meaning)
        for word, measure in zip(words, measures, strict=True)
        if measure.n or measure.value is not None
    )
