"""Write the report of a verdict: decision, grades and intervals."""

from collections.abc import Iterator

from witan.core.display import level_percent
from witan.core.stats.priors import Severity
from witan.core.verdict import MeanGrade, Verdict
from witan.service.text import count_noun, list_text
from witan.service.trust import mean_grade_text, p_best_text, verdict_sentence
from witan.surfaces.report.document import (
    Block,
    Cell,
    Column,
    Heading,
    Report,
    Sentence,
    Table,
    table_of,
)
from witan.surfaces.report.names import BY_NAME, CandidateNames

UNGRADED = "–"

SIDE_BY_SIDE = 3
"""Texts whose grades stand in a column each."""


def verdict_blocks(verdict: Verdict, names: CandidateNames) -> Iterator[Block]:
    """Write the decision, and a table of grades by text."""
    yield Heading("Verdict", "verdict")
    yield Sentence(names.sentence(verdict_sentence(verdict)))
    yield from grade_blocks(verdict, names)


def grade_blocks(verdict: Verdict, names: CandidateNames) -> Iterator[Block]:
    """Write grades by text, and explain intervals; nothing without grades."""
    if all(text.overall is None and not text.criteria for text in verdict.texts):
        return
    yield _grades_table(verdict, names)
    level_text = level_percent(verdict.level)
    severity = "the unknown severity of reviewers counts as noise"
    if verdict.severity is not None:
        severity = "what is unknown of the reviewers' severity widens them"
        yield Sentence(_severity_sentence(verdict, verdict.severity, names))
    yield Sentence(
        f"Intervals cover the mean grade of such reviewers in {level_text} of cases; {severity}.",
        quiet=True,
    )


def _severity_sentence(verdict: Verdict, severity: Severity, names: CandidateNames) -> str:
    """Say by how much whose grades are corrected."""
    offset_by_reviewer = dict(zip(severity.reviewers, severity.offsets, strict=True))
    corrections = [
        f"{names.name(name)} {-offset_by_reviewer[name]:+z.1f}".replace("-", "−")
        for name in verdict.reviewers
        if name in offset_by_reviewer
    ]
    others = [names.name(name) for name in verdict.reviewers if name not in offset_by_reviewer]
    unknown = f"; the severity of {list_text(others)} is unknown" if others else ""
    sessions = count_noun(severity.n_sessions, "other session")
    return (
        f"Grades are corrected by the severity that {sessions} show: "
        f"{list_text(corrections)}{unknown}. With the prior none they stand as given."
    )


def verdict_report(verdict: Verdict) -> Report:
    """Write the report of a verdict."""
    _, *blocks = verdict_blocks(verdict, BY_NAME)
    return Report("Verdict", (), "", tuple(blocks))


def _grades_table(verdict: Verdict, names: CandidateNames) -> Table:
    """Tabulate grades, a column per text, or a row if many."""
    texts, criteria = verdict.texts, {name: None for t in verdict.texts for name in t.criteria}
    rows: list[tuple[str, list[str | Cell]]] = [("overall", [_grade(t.overall) for t in texts])]
    if verdict.pass_mark is not None:
        mark = f"P(≥ {verdict.pass_mark:g})"
        rows.append((mark, [p_best_text(t.p_pass) for t in texts]))
    rows += [(name, [_grade(t.criteria.get(name)) for t in texts]) for name in criteria]
    headings: list[str | Cell] = [names.name(t.text) for t in texts]
    columns: list[tuple[Column, list[str | Cell]]]
    if len(texts) > SIDE_BY_SIDE:
        columns = [(Column("text", "left", fit="middle", heads=True), headings)]
        columns += [(Column(name, "left", keep=40), cells) for name, cells in rows]
    else:
        columns = [(Column("grade", "left", heads=True), [name for name, _ in rows])]
        columns += [
            (Column(names.name(texts[n].text), "left"), [cells[n] for _, cells in rows])
            for n in range(len(texts))
        ]
    return table_of("Grades, from 1 to 10", columns)


def _grade(grade: MeanGrade | None) -> str:
    return UNGRADED if grade is None else mean_grade_text(grade)
