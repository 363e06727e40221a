"""One criterion of an audit: how each reviewer grades on it."""

from dataclasses import dataclass

from witan.core.audit import Audit
from witan.core.audit_gradings import GradingAudit
from witan.core.audit_panel import CriterionAudit
from witan.core.audit_reviewers import ReviewerAudit
from witan.core.window import Window
from witan.core.wording import listed
from witan.errors import NothingToCount, UnknownName

__all__ = ["CriterionReport", "criteria_of", "on_criterion"]

OVERALL = "overall"
"""What a ballot calls the grade that is of no criterion."""

NAMED = 8
"""Reviewers that are named at most."""


@dataclass(frozen=True, slots=True)
class CriterionReport:
    """How reviewers grade on one criterion.

    Parameters
    ----------
    criterion
        Its name.
    panel
        The models together; None where it is told of one reviewer, or no model grades on it.
    gradings
        Reviewers in the order of the audit, each with how it grades; at least one.
    """

    criterion: str
    panel: CriterionAudit | None
    gradings: tuple[tuple[ReviewerAudit, GradingAudit], ...]


class _UnknownCriterion(UnknownName):
    """A criterion that nobody graded on; those that there are, are named."""

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        if self.name == OVERALL:
            told = "which an audit without a criterion tells of"
            return f"{OVERALL!r} is the grade as a whole, {told}; criteria: {known}"
        return f"unknown criterion {self.name!r}{self.suggestion} (known: {known})"


def criteria_of(audit: Audit) -> tuple[str, ...]:
    """Every criterion that somebody graded on, by name."""
    return tuple(sorted({found.criterion for line in audit.lines for found in line.criteria}))


def on_criterion(
    audit: Audit, window: Window, criterion: str, reviewer: str | None
) -> CriterionReport:
    """One criterion of an audit, of all reviewers or of one that the audit has.

    Raises
    ------
    UnknownName
        If there is no such criterion.
    NothingToCount
        If that reviewer gave no grade on it.
    """
    known = criteria_of(audit)
    if criterion not in known:
        raise _UnknownCriterion("criterion", criterion, known)
    graded = tuple(
        (line, found)
        for line in audit.lines
        for found in line.criteria
        if found.criterion == criterion
    )
    if reviewer is None:
        panel = {line.criterion: line for line in audit.panel.criteria}
        return CriterionReport(criterion, panel.get(criterion), graded)
    chosen = tuple(pair for pair in graded if pair[0] is audit[reviewer])
    if not chosen:
        names = [line.reviewer for line, _ in graded]
        more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
        did = f"{listed([*names[:NAMED], *more])} did"
        raise NothingToCount(f"{reviewer} gave no grade on {criterion} {window}; {did}")
    return CriterionReport(criterion, None, chosen)
