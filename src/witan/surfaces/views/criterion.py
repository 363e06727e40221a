"""One criterion of an audit as its page shows it: a row per reviewer, or everything of one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from witan.service.audit_words import CRITERION_WORDS, GRADING_WORDS
from witan.service.text import clean, counted
from witan.surfaces.text.audit import who_text
from witan.surfaces.views.audit import Compared, Said, compared, said_views

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport

__all__ = ["CriterionView", "criterion_view"]


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


def criterion_view(report: "AuditReport", criterion: str, reviewer: str | None) -> CriterionView:
    """The page of one criterion.

    Raises
    ------
    UnknownName
        If there is no such criterion or reviewer.
    NothingToCount
        If that reviewer gave no grade on it.
    """
    found = report.on(criterion, reviewer)
    name, level = clean(criterion), f"{report.audit.level * 100:g}%"
    if reviewer is not None:
        [(line, graded)] = found.gradings
        measures = said_views(GRADING_WORDS, [word.of(graded) for word in GRADING_WORDS])
        about = f"{who_text(report, line)} · {report.window}"
        return CriterionView(name, about, level, None, measures)
    about = f"{counted(report.sessions, 'session')} · {report.window}"
    table = compared("Reviewers", GRADING_WORDS, found.gradings, report)
    panel = tuple[Said, ...]()
    if found.panel is not None:
        panel = said_views(CRITERION_WORDS, [word.of(found.panel) for word in CRITERION_WORDS])
    return CriterionView(name, about, level, table, panel)
