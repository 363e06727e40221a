"""An audit as text: a line per reviewer, what stands out, the panel, and its reliability."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from witan.core.stats.audit import CHECKS, PEOPLE, CriterionAudit, PanelAudit, concern_of
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
from witan.service.text import UNKNOWN, Page, counted, number
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table

if TYPE_CHECKING:
    from witan.analytics.audits import AuditReport, CriterionReport, Grader

MARK = "!"

SIGNED = ("difference of shares", "difference of correlations", "grade points")

OVERVIEW = {
    "self_preference": 95,
    "family_preference": 60,
    "position_effect": 85,
    "first_shown": 55,
    "length.longer_wins": 50,
    "length.longer_wins_beyond_people": 45,
    "severity": 75,
    "discrimination": 40,
    "agreement": 65,
    "agreement_with_people": 90,
    "order_consistency": 80,
    "abstention_rate": 35,
    "repair_rate": 20,
    "flat_rate": 30,
}
"""The measures of the table of all reviewers, and how long each stays where there is no room."""

CHECKED = {check.measure: check for check in CHECKS}


def audit_text(page: Page, report: "AuditReport") -> Iterator[str]:
    """Render an audit: of all reviewers, of one, or on one criterion."""
    if report.criterion is not None:
        yield from _criterion(page, report, report.criterion)
    elif report.panel is None or report.calibration is None:
        yield from _reviewer(page, report, report.lines[0])
    else:
        yield from _whole(page, report, report.panel, report.calibration)


def _whole(
    page: Page, report: "AuditReport", panel: PanelAudit, calibration: Calibration
) -> Iterator[str]:
    yield from _header(page, report)
    yield ""
    yield from _overview(page, report)
    yield ""
    yield from _standing_out(page, report)
    yield ""
    yield page.sentence("The panel", "bold")
    yield from measure_lines(page, [(word, word.of(panel)) for word in PANEL_WORDS])
    if any(line.criterion is not None for line in panel.criteria):
        yield ""
        yield page.sentence("Criteria", "bold")
        yield from criterion_lines(page, panel.criteria)
    yield ""
    yield from _reliability(page, calibration)


def _reviewer(page: Page, report: "AuditReport", line: ReviewerAudit) -> Iterator[str]:
    """Everything that is known of one reviewer: a sentence each, then criterion by criterion."""
    yield from _header(page, report)
    yield ""
    cast = f"{counted(line.ballots, 'ballot')}, {counted(line.abstentions, 'abstention')}"
    yield page.sentence(f"{line.reviewer} · {who_text(line)} · {cast}", "bold", hang=2)
    for concern in report.concerns.get(line.reviewer, ()):
        yield page.sentence(f"{MARK} It {concern.sentence}.", "warning", hang=2)
    yield ""
    for word in REVIEWER_WORDS:
        yield page.sentence(_sentence(word, word.of(line)), hang=4)
    for found in line.criteria:
        yield ""
        yield page.sentence(f"Criterion: {found.criterion}", "bold")
        measures = [(word, word.of(found)) for word in GRADING_WORDS]
        yield from measure_lines(page, measures, marked=True)


def _criterion(page: Page, report: "AuditReport", found: "CriterionReport") -> Iterator[str]:
    """All reviewers on one criterion, or everything of one."""
    n = counted(report.sessions, "session")
    header = f"audit · criterion {found.criterion} · {n} · {report.window}"
    yield page.sentence(header, "bold", hang=2)
    yield ""
    if report.only is not None:
        [grader] = found.graders
        yield page.sentence(f"{grader.reviewer} · {who_text(grader)}", "bold", hang=2)
        measures = [(word, word.of(grader.grading)) for word in GRADING_WORDS]
        yield from measure_lines(page, measures, marked=True)
        return
    yield from _graders(page, found)
    if found.panel is not None:
        yield ""
        yield page.sentence("The panel", "bold")
        yield from criterion_lines(page, [found.panel])
        for word in CRITERION_WORDS:
            if word.of(found.panel).n:
                yield page.sentence(f"{word.title}: {word.meaning}", "dim", hang=2)


def _graders(page: Page, found: "CriterionReport") -> Iterator[str]:
    """The table of reviewers, and what its columns mean."""
    names = [grader.reviewer for grader in found.graders]
    gradings = [grader.grading for grader in found.graders]
    shown = [(Column("reviewer", "left", elastic=True), names)]
    words = [word for word in GRADING_WORDS if any(word.of(each).n for each in gradings)]
    for keep, word in zip(range(90, 0, -5), words, strict=False):
        cells = [cell_text(word, word.of(each)) for each in gradings]
        shown.append((Column(word.title, keep=keep), cells))
    rows = [[cells[index] for _, cells in shown] for index in range(len(names))]
    n_models = sum(not grader.human for grader in found.graders)
    breaks = {n_models} if 0 < n_models < len(names) else set[int]()
    yield from table(page, [column for column, _ in shown], rows, breaks=breaks)
    yield ""
    for word in words:
        yield page.sentence(f"{word.title}: {word.meaning}", "dim", hang=2)
    yield from few_text(page, rows)


def who_text(line: "ReviewerAudit | Grader") -> str:
    """Say whether a line is a model's, a person's, or everybody's."""
    if not line.human:
        return "a model"
    return "everybody who voted" if line.reviewer == PEOPLE else "a person"


def _header(page: Page, report: "AuditReport") -> Iterator[str]:
    n = counted(report.sessions, "session")
    yield page.sentence(f"audit · {n} · {report.window}", "bold", hang=2)


def _overview(page: Page, report: "AuditReport") -> Iterator[str]:
    """The table of reviewers, with people below: those who stand out, and all as one line."""
    lines = report.overview
    shown = [
        (Column("reviewer", "left", elastic=True), [line.reviewer for line in lines]),
        (Column("ballots", keep=70), [f"{line.ballots:,}" for line in lines]),
    ]
    for word in REVIEWER_WORDS:
        keep = OVERVIEW.get(word.measure)
        measures = [word.of(line) for line in lines]
        if keep is not None and any(measure.n for measure in measures):
            cells = [cell_text(word, measure) for measure in measures]
            shown.append((Column(word.title, keep=keep), cells))
    rows = [[cells[index] for _, cells in shown] for index in range(len(lines))]
    n_models = len(report.reviewers)
    breaks = {n_models} if 0 < n_models < len(lines) else set()
    yield from table(page, [column for column, _ in shown], rows, breaks=breaks)
    yield ""
    titles = {column.title for column, _ in shown}
    words = [word for word in REVIEWER_WORDS if word.measure in OVERVIEW and word.title in titles]
    for word in words:
        yield page.sentence(f"{word.title}: {word.meaning}", "dim", hang=2)
    yield from few_text(page, rows)


def cell_text(word: Word, measure: Measure) -> str:
    """A value, marked where it stands out; how far it is from one where data are few."""
    if measure.value is None:
        return f"({measure.n:,}/{measure.needed})" if 0 < measure.n < measure.needed else UNKNOWN
    return value_text(measure) + MARK * stands_out(word, measure)


def few_text(page: Page, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a cell of a table says where data are few, if one does."""
    if any(cell.startswith("(") and "/" in cell for row in rows for cell in row[1:]):
        yield page.sentence("(7/20): not enough data, 7 of the 20 that are needed", "dim", hang=2)


def stands_out(word: Word, measure: Measure) -> bool:
    """Whether a measure is beyond noise of what one would wish."""
    check = CHECKED.get(word.measure)
    return check is not None and concern_of(check, measure) is not None


def value_text(measure: Measure) -> str:
    """A value as its unit is written, with a sign where 0 is in the middle."""
    return _as(measure, measure.value)


def _as(measure: Measure, value: float | None) -> str:
    shown = number(value, 1 if measure.unit == "votes" else 2)
    if measure.unit not in SIGNED or value is None or value < 0 or float(shown) == 0:
        return shown
    return f"+{shown}"


def interval_text(measure: Measure) -> str:
    """``0.10 to 0.16``, or that it is unknown."""
    if measure.interval is None:
        return UNKNOWN
    return f"{_as(measure, measure.interval.low)} to {_as(measure, measure.interval.high)}"


def _standing_out(page: Page, report: "AuditReport") -> Iterator[str]:
    """What is beyond noise, reviewer by reviewer."""
    if calm := calm_text(report):
        yield page.sentence(calm)
        return
    level = f"{report.level * 100:g}%"
    yield page.sentence(f"{MARK} stands out: its {level} interval says that the reviewer …")
    for reviewer, held in report.concerns.items():
        said = "; ".join(concern.sentence for concern in held)
        yield page.sentence(f"{MARK} {reviewer}: {said}", "warning", hang=4)


def calm_text(report: "AuditReport") -> str:
    """What is said where nothing stands out; nothing, where something does."""
    if report.concerns:
        return ""
    lines = report.lines
    if any(word.of(line).interval is not None for line in lines for word in REVIEWER_WORDS):
        level = f"{report.level * 100:g}%"
        return f"Nothing stands out at {level}, which is no proof that nothing is there."
    return "No measure of a reviewer has enough data for an interval yet."


def measure_lines(
    page: Page, measures: Sequence[tuple[Word, Measure]], *, marked: bool = False
) -> Iterator[str]:
    """Measures, one a row, those without any data left out."""
    rows = [
        [
            word.title,
            value_text(measure) + MARK * (marked and stands_out(word, measure)),
            interval_text(measure),
            rests_on(measure),
            word.meaning,
        ]
        for word, measure in measures
        if measure.n or measure.value is not None
    ]
    columns = [
        Column("measure", "left"),
        Column("value"),
        Column("interval", "left", keep=80),
        Column("rests on", "left", keep=70),
        Column("is", "left", keep=60),
    ]
    return table(page, columns, rows)


def rests_on(measure: Measure) -> str:
    """How much it is read off, or why there is none."""
    if measure.value is None and measure.why is not None:
        return measure.why
    return f"{measure.n:,} {measure.of}"


def criterion_lines(page: Page, lines: Sequence[CriterionAudit]) -> Iterator[str]:
    """The criteria, the overall grade first."""
    shown = [
        (
            Column("criterion", "left", elastic=True),
            ["overall" if line.criterion is None else line.criterion for line in lines],
        )
    ]
    for word in CRITERION_WORDS:
        measures = [word.of(line) for line in lines]
        cells = [cell_text(word, measure) for measure in measures]
        shown.append((Column(word.title, keep=80), cells))
        cells = [interval_text(measure) for measure in measures]
        if any(cell != UNKNOWN for cell in cells):
            shown.append((Column("interval", "left", keep=40), cells))
    rows = [[cells[index] for _, cells in shown] for index in range(len(lines))]
    yield from table(page, [column for column, _ in shown], rows)


def _reliability(page: Page, found: Calibration) -> Iterator[str]:
    """Agreement into reliability: how often a panel this sure matched people."""
    yield page.sentence("Reliability", "bold")
    if not found.known:
        unknown = found.reliability(0.5)
        yield page.sentence(f"How often a panel this sure is right is unknown: {unknown.why}.")
        return
    rows = [list(row) for row in reliability_rows(found)]
    columns = [
        Column("panel's confidence", "left"),
        Column("pairs"),
        Column("matched people"),
        Column("interval", "left"),
    ]
    yield from table(page, columns, rows)
    yield page.sentence(
        f"Of {counted(found.pairs, 'pair')} that people decided: how often a panel this sure of a "
        "pair sided with them.",
        "dim",
    )


def reliability_rows(found: Calibration) -> tuple[tuple[str, str, str, str], ...]:
    """The panel's confidence, pairs, how often it matched people, and the interval."""
    return tuple(
        (
            f"{number(block.low)} to {number(block.high)}",
            f"{block.pairs:,}",
            value_text(block.reliability) if block.reliability.value is not None else "unknown",
            interval_text(block.reliability),
        )
        for block in found.blocks
        if found.known
    )


def _sentence(word: Word, measure: Measure) -> str:
    """One measure in full."""
    start = f"{MARK if stands_out(word, measure) else ' '} {word.name}"
    if measure.value is None:
        return f"{start}: {measure.why}."
    within = measure.why or "interval unknown"
    if measure.interval is not None:
        within = f"{interval_text(measure)} at {measure.interval.level * 100:g}%"
    rests = f"{within}; {rests_on(measure)}"
    return f"{start} {value_text(measure)} ({rests}): {word.meaning}."
