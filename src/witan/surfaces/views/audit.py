"""An audit as its page shows it: a row per reviewer, then everything of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from witan.core.stats.audit import PanelAudit
from witan.core.stats.audit_gradings import GradingAudit
from witan.core.stats.audit_reviewers import ReviewerAudit
from witan.core.stats.calibration import Calibration
from witan.core.stats.measures import Measure
from witan.service.audit_words import (
    CRITERION_WORDS,
    GRADING_WORDS,
    PANEL_WORDS,
    REVIEWER_WORDS,
    Word,
)
from witan.service.text import UNKNOWN, clean, counted
from witan.surfaces.text.audit import (
    OVERVIEW,
    calm_text,
    interval_text,
    reliability_rows,
    rests_on,
    stands_out,
    value_text,
    who_text,
)

if TYPE_CHECKING:
    from witan.analytics.audits import AuditReport, CriterionReport, Grader

PREFERENCES = frozenset(
    {
        *("self_preference", "family_preference", "position_effect", "first_shown"),
        *("length.longer_wins", "length.longer_wins_beyond_people"),
    }
)
"""Measures of what sways a reviewer; the others are of how it grades, and of its ballots."""


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
class Compared:
    """Reviewers side by side on some measures.

    Parameters
    ----------
    title
        What the measures are about.
    words
        Title and meaning of each column.
    rows
        Reviewers of whom at least one of them has a value.
    few
        The others, who have too little data for any.
    """

    title: str
    words: tuple[tuple[str, str], ...]
    rows: tuple[ReviewerRow, ...]
    few: tuple[ReviewerRow, ...]


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
    concerns
        Reviewer, and what stands out of it.
    calm
        What is said where nothing does.
    criteria
        Each as it is shown, and as it is asked for, which the grade as a whole cannot be.
    reliability
        The panel's confidence, pairs, how often it matched people, the interval.
    """

    about: str
    level: str
    tables: tuple[Compared, ...]
    concerns: tuple[tuple[str, str], ...]
    calm: str
    panel: tuple[Said, ...]
    criteria: tuple[tuple[str, str, tuple[Cell, ...]], ...]
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


@dataclass(frozen=True, slots=True)
class CriterionView:
    """How reviewers grade on one criterion.

    Parameters
    ----------
    table
        All of them side by side; None: it is told of one.
    measures
        Those of the panel, or of the one.
    """

    name: str
    about: str
    level: str
    table: Compared | None
    measures: tuple[Said, ...]


def audit_view(report: "AuditReport") -> AuditView | ReviewerView | CriterionView:
    """View an audit: of all reviewers, of one, or on one criterion."""
    if report.criterion is not None:
        return _criterion(report, report.criterion)
    if report.panel is None or report.calibration is None:
        return _reviewer(report, report.lines[0])
    return _whole(report, report.panel, report.calibration)


def _whole(report: "AuditReport", panel: PanelAudit, calibration: Calibration) -> AuditView:
    criteria = panel.criteria
    if all(line.criterion is None for line in criteria):
        criteria = ()
    return AuditView(
        about=f"{counted(report.sessions, 'session')} · {report.window}",
        level=f"{report.level * 100:g}%",
        tables=tuple(_tables(report)),
        concerns=tuple(
            (clean(name), "; ".join(each.sentence for each in held))
            for name, held in report.concerns.items()
        ),
        calm=calm_text(report),
        panel=said_views(PANEL_WORDS, [word.of(panel) for word in PANEL_WORDS]),
        criteria=tuple(
            (
                "overall" if line.criterion is None else clean(line.criterion),
                line.criterion or "",
                tuple(cell_view(word, word.of(line)) for word in CRITERION_WORDS),
            )
            for line in criteria
        ),
        criterion_words=tuple(word.title for word in CRITERION_WORDS),
        reliability=reliability_rows(calibration),
        unknown="" if calibration.known else str(calibration.reliability(0.5).why),
    )


def _reviewer(report: "AuditReport", line: ReviewerAudit) -> ReviewerView:
    cast = f"{counted(line.ballots, 'ballot')}, {counted(line.abstentions, 'abstention')}"
    measures = [(word, word.of(line)) for word in REVIEWER_WORDS]
    return ReviewerView(
        name=clean(line.reviewer),
        about=f"{who_text(line)} · {cast} · {report.window}",
        concerns=tuple(each.sentence for each in report.concerns.get(line.reviewer, ())),
        measures=tuple(
            Said(word.name, cell_view(word, measure), word.meaning) for word, measure in measures
        ),
        criteria=tuple(
            (
                clean(found.criterion),
                said_views(GRADING_WORDS, [word.of(found) for word in GRADING_WORDS]),
            )
            for found in line.criteria
        ),
    )


def _criterion(report: "AuditReport", found: "CriterionReport") -> CriterionView:
    name, level = clean(found.criterion), f"{report.level * 100:g}%"
    if report.only is not None:
        [grader] = found.graders
        measures = said_views(GRADING_WORDS, [word.of(grader.grading) for word in GRADING_WORDS])
        about = f"{who_text(grader)} · {report.window}"
        return CriterionView(name, about, level, None, measures)
    about = f"{counted(report.sessions, 'session')} · {report.window}"
    graders = [(grader, grader.grading) for grader in found.graders]
    table = compared("Reviewers", GRADING_WORDS, graders)
    panel = tuple[Said, ...]()
    if found.panel is not None:
        panel = said_views(CRITERION_WORDS, [word.of(found.panel) for word in CRITERION_WORDS])
    return CriterionView(name, about, level, table, panel)


def _tables(report: "AuditReport") -> Iterator[Compared]:
    """The measures of all reviewers by what they are about; what has no data is left out."""
    lines = [(line, line) for line in report.overview]
    for title, wanted in (("What they prefer", True), ("How they grade and agree", False)):
        words = [
            word
            for word in REVIEWER_WORDS
            if word.measure in OVERVIEW and (word.measure in PREFERENCES) == wanted
        ]
        table = compared(title, words, lines)
        if table.rows or table.few:
            yield table


def compared(
    title: str,
    words: Sequence[Word],
    lines: Sequence[tuple["ReviewerAudit | Grader", ReviewerAudit | GradingAudit]],
) -> Compared:
    """Reviewers side by side; with each, what its measures are read off."""
    told = [word for word in words if any(word.of(of).n for _, of in lines)]
    rows = [_row(line, of, told) for line, of in lines]
    return Compared(
        title,
        tuple((word.title, word.meaning) for word in told),
        tuple(row for row in rows if any(cell.value for cell in row.cells)),
        tuple(row for row in rows if not any(cell.value for cell in row.cells)),
    )


def _row(
    line: "ReviewerAudit | Grader", of: ReviewerAudit | GradingAudit, words: Sequence[Word]
) -> ReviewerRow:
    cells = tuple(cell_view(word, word.of(of)) for word in words)
    who = who_text(line) if line.human else ""
    return ReviewerRow(line.reviewer, who, f"{line.ballots:,}", cells)


def cell_view(word: Word, measure: Measure) -> Cell:
    """One measure in print."""
    if measure.value is None:
        if not measure.n:
            return Cell("", "", "")
        if measure.n < measure.needed:
            rests = f"not enough data: {measure.n:,} of {measure.needed:,}"
            return Cell("", "", rests, f"{measure.n:,}/{measure.needed:,}")
        rests = rests_on(measure)
        return Cell("", "", rests, rests.partition(":")[0])
    interval = interval_text(measure)
    return Cell(
        _printed(value_text(measure)),
        "no interval" if interval == UNKNOWN else _printed(interval),
        f"{measure.n:,} {measure.of}",
        f"n {measure.n:,}",
        stands_out(word, measure),
    )


def _printed(number: str) -> str:
    return number.replace("-", "−")


def said_views(words: Sequence[Word], measures: Sequence[Measure]) -> tuple[Said, ...]:
    """Measures in full, those without any data left out."""
    return tuple(
        Said(word.title, cell_view(word, measure), word.meaning)
        for word, measure in zip(words, measures, strict=True)
        if measure.n or measure.value is not None
    )
