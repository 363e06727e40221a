"""Leaderboards and audits as JSON: numbers unrounded, unknown as null, every field explained."""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from witan.core.window import Window
from witan.service.audit_words import DEFINITIONS as AUDIT_DEFINITIONS
from witan.version import __version__

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport, CriterionReport
    from witan.core.audit_reviewers import ReviewerAudit

__all__ = ["audit_object", "criterion_object", "reviewer_object"]


def _window(window: Window) -> dict[str, str | None]:
    return {
        "since": _time(window.since),
        "until": _time(window.until),
        "category": window.category,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def audit_object(report: "AuditReport", *, engine: str, where: str) -> dict[str, Any]:
    """An audit as one object."""
    found = report.audit
    told = partial(_reviewer, report)
    return {
        **_audited(report, engine, where),
        "reviewers": [told(line) for line in found.reviewers],
        "persons": [told(line) for line in found.persons],
        "people": None if found.people is None else told(found.people),
        "panel": found.panel,
        "calibration": {
            "pairs": report.calibration.pairs,
            "known": report.calibration.known,
            "bands": report.calibration.bands,
            "blocks": report.calibration.blocks,
        },
        "definitions": AUDIT_DEFINITIONS,
    }


def reviewer_object(
    report: "AuditReport", line: "ReviewerAudit", *, engine: str, where: str
) -> dict[str, Any]:
    """One reviewer of an audit as one object."""
    told = _reviewer(report, line)
    return {
        **_audited(report, engine, where),
        "reviewers": [] if line.human else [told],
        "persons": [told] if line.human else [],
        "definitions": AUDIT_DEFINITIONS,
    }


def criterion_object(
    report: "AuditReport", found: "CriterionReport", *, engine: str, where: str
) -> dict[str, Any]:
    """One criterion of an audit as one object: the fields of the whole that are about it."""
    models, persons, people = list[Any](), list[Any](), None
    for line, graded in found.gradings:
        told = {"reviewer": line.reviewer, "human": line.human, "criteria": [graded]}
        if line is report.audit.people:
            people = told
        else:
            (persons if line.human else models).append(told)
    criteria = [] if found.panel is None else [found.panel]
    about = ("criteria.", "panel.criteria.")
    return {
        **_audited(report, engine, where),
        "criterion": found.criterion,
        "reviewers": models,
        "persons": persons,
        "people": people,
        "panel": {"criteria": criteria},
        "definitions": {
            name: said for name, said in AUDIT_DEFINITIONS.items() if name.startswith(about)
        },
    }


def _audited(report: "AuditReport", engine: str, where: str) -> dict[str, Any]:
    return {
        "witan": __version__,
        "engine": engine,
        "where": where,
        "window": _window(report.window),
        "sessions": report.sessions,
        "level": report.audit.level,
    }


def _reviewer(report: "AuditReport", line: "ReviewerAudit") -> dict[str, Any]:
    fields = {name: getattr(line, name) for name in type(line).__slots__}
    return {**fields, "concerns": report.concerns.get(line.reviewer, ())}
