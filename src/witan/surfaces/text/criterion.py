"""One criterion of an audit as text: a line per reviewer, or everything of one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from witan.service.audit_words import CRITERION_WORDS, GRADING_WORDS
from witan.service.text import Page, counted
from witan.surfaces.text.audit import (
    cell_text,
    criterion_lines,
    few_text,
    measure_lines,
    who_text,
)
from witan.surfaces.text.tables import Column, table

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport, CriterionReport

__all__ = ["criterion_text"]


def criterion_text(
    page: Page, report: "AuditReport", found: "CriterionReport", *, alone: bool
) -> Iterator[str]:
    """The lines of one criterion.

    Parameters
    ----------
    alone
        It is told of one reviewer.
    """
    of = f"criterion {found.criterion}"
    n = counted(report.sessions, "session")
    yield page.sentence(f"audit · {of} · {n} · {report.window}", "bold", hang=2)
    yield ""
    if alone:
        [(line, graded)] = found.gradings
        yield page.sentence(f"{line.reviewer} · {who_text(report, line)}", "bold", hang=2)
        measures = [(word, word.of(graded)) for word in GRADING_WORDS]
        yield from measure_lines(page, measures, marked=True)
        return
    yield from _reviewers(page, found)
    if found.panel is not None:
        yield ""
        yield page.sentence("The panel", "bold")
        yield from criterion_lines(page, [found.panel])
        for word in CRITERION_WORDS:
            if word.of(found.panel).n:
                yield page.sentence(f"{word.title}: {word.meaning}", "dim", hang=2)


def _reviewers(page: Page, found: "CriterionReport") -> Iterator[str]:
    """The table of reviewers, and what its columns mean."""
    names = [line.reviewer for line, _ in found.gradings]
    shown = [(Column("reviewer", "left", elastic=True), names)]
    told = [word for word in GRADING_WORDS if any(word.of(each).n for _, each in found.gradings)]
    for keep, word in zip(range(90, 0, -5), told, strict=False):
        cells = [cell_text(word, word.of(each)) for _, each in found.gradings]
        shown.append((Column(word.title, keep=keep), cells))
    rows = [[cells[index] for _, cells in shown] for index in range(len(names))]
    persons = sum(not line.human for line, _ in found.gradings)
    breaks = {persons} if 0 < persons < len(names) else set[int]()
    yield from table(page, [column for column, _ in shown], rows, breaks=breaks)
    yield ""
    for word in told:
        yield page.sentence(f"{word.title}: {word.meaning}", "dim", hang=2)
    yield from few_text(page, rows)
