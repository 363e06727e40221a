"""Leaderboards and audits as JSON: numbers unrounded, unknown as null, every field explained."""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from witan.core.leaderboard import Leaderboard, LeaderboardLine
from witan.core.leaderboard_wording import conclusion
from witan.core.window import Window
from witan.service.audit_words import DEFINITIONS as AUDIT_DEFINITIONS
from witan.version import __version__

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport, CriterionReport
    from witan.core.audit_reviewers import ReviewerAudit

__all__ = ["audit_object", "criterion_object", "leaderboard_object", "reviewer_object"]

DEFINITIONS = {
    "rank": "1 is best, among the models of its group that are not provisional; equal ones share "
    "it",
    "rank_low": "the best rank that noise leaves, in the number that orders",
    "rank_high": "the worst rank that noise leaves, in the number that orders",
    "tied_with_next": "noise explains the difference to the line below, in its group",
    "provisional": "listed apart: too few scored sessions, nothing to be ordered by, or nobody "
    "it was compared with",
    "group": "number of the models that chains of comparisons join it with; ranks, scores and "
    "ratings can be compared within one only",
    "score": "mean over sessions of the session's score under the rule",
    "std_error": "of the score, clustered by session",
    "interval": "of the score, Student's t, cut where scores of the rule end",
    "sessions": "sessions that gave a score",
    "appearances": "sessions in which the model stood",
    "votes": "ballots that say something of the model",
    "offered": "seats that could have",
    "wins": "first places on ballots, k tied for first 1/k each",
    "coverage": "votes / offered",
    "confidence": "high from a coverage of 0.8 on, medium from 0.5 on, else low",
    "z": "mean over sessions of its mean standardised grade",
    "rating": "Bradley–Terry strength in logits",
    "rating_error": "clustered by groups of sessions",
    "rating_interval": "of the rating",
    "elo": "Elo rating after the last session; its matches decided by majority",
    "change.score": "the score less that in the window before",
    "change.rank": "ranks gained",
    "change.beyond_error": "the change of score is larger than noise explains, by Welch's t",
    "effort.answers": "answers asked for",
    "effort.failure_rate": "share of them that never came",
    "effort.cost_usd": "mean cost of an answer, over `costed` whose cost is known",
    "effort.seconds": "mean time of an answer, over `timed` whose time is known",
    "contenders": "models below the first rank of their group that cannot be told apart from it",
    "p_beats": "confidence that the model of row i is stronger than that of row j, by the "
    "ratings; rows are lines, then provisional",
    "n_comparisons": "weight of the comparisons behind the ratings",
    "compared_to": "the window that changes refer to",
}


def leaderboard_object(board: Leaderboard, *, engine: str, where: str) -> dict[str, Any]:
    """A leaderboard as one object."""
    terms = board.terms
    return {
        "witan": __version__,
        "engine": engine,
        "where": where,
        "window": _window(terms.window),
        "rule": terms.rule,
        "kind": terms.kind,
        "order_by": terms.order_by,
        "min_sessions": terms.min_sessions,
        "level": terms.level,
        "ghost_wins": terms.ghost_wins,
        "interpretation": conclusion(board),
        "lines": [_line(line) for line in board.lines],
        "provisional": [_line(line) for line in board.provisional],
        "contenders": board.contenders,
        "p_beats": board.p_beats,
        "n_comparisons": board.n_comparisons,
        "compared_to": None if board.compared_to is None else _window(board.compared_to),
        "warnings": board.warnings,
        "definitions": DEFINITIONS,
    }


def _line(line: LeaderboardLine) -> dict[str, Any]:
    return {name: getattr(line, name) for name in LeaderboardLine.__slots__}


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
