"""Write each result as one report for all surfaces, and as a page of its own."""

from importlib import import_module
from typing import TYPE_CHECKING

from witan.errors import MissingExtra
from witan.surfaces.report.document import Report

if TYPE_CHECKING:
    from witan.deliberation.session import Session
    from witan.service.session_records import CouncilSession, ImportedSession


__all__ = ["Report", "report_of", "report_to_html", "session_to_html"]

_WRITERS = {
    "ArmBatchReport": "batch.batch_report",
    "ArmBill": "batch.bill_report",
    "ArmComparison": "batch.arms_report",
    "AuditReport": "audit.audit_report",
    "BatchBill": "batch.bill_report",
    "BatchReport": "batch.batch_report",
    "CalibrationCheck": "calibration.calibration_report",
    "CalibrationResult": "calibration.calibration_report",
    "Comparison": "comparison.comparison_report",
    "CouncilSession": "session.session_report",
    "Deletion": "session.deletion_report",
    "EstimateResult": "calibration.estimates_report",
    "Estimates": "calibration.estimates_report",
    "Explanation": "tally.explanation_report",
    "ImportedSession": "session.imported_report",
    "Leaderboard": "leaderboard.leaderboard_report",
    "Outcome": "outcome.outcome_report",
    "OutcomeExplanation": "tally.explanation_report",
    "PersonalRecord": "vote.votes_report",
    "Plan": "plan.plan_report",
    "PlanSummary": "plan.plan_report",
    "Profiles": "choices.profiles_report",
    "RecountResult": "outcome.outcome_report",
    "RubricList": "choices.rubrics_report",
    "RuleComparison": "comparison.comparison_report",
    "RuleList": "choices.rules_report",
    "Session": "session.session_report",
    "SessionList": "session.sessions_report",
    "Tally": "tally.tally_report",
    "Verdict": "outcome.verdict_report",
    "VoteResult": "vote.vote_report",
    "VotingPaper": "vote.paper_report",
}
"""Function here that writes a report, by type of the result."""


def report_of(result: object) -> Report:
    """Write the report of a result."""
    module, name = _WRITERS[type(result).__name__].split(".")
    report: Report = getattr(import_module(f"{__name__}.{module}"), name)(result)
    return report


def session_to_html(session: "Session | CouncilSession | ImportedSession") -> str:
    """Write a self-contained page without scripts or requests.

    Raises
    ------
    MissingExtra
        If the library that writes pages is not installed.
    """
    try:
        from witan.surfaces.web.rendering import export_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a session", "serve") from error
    from witan.deliberation.session import Session
    from witan.service.session_records import CouncilSession

    return export_html(CouncilSession(session) if isinstance(session, Session) else session)


def report_to_html(report: Report) -> str:
    """Write a report as a self-contained page; raise as `session_to_html` does."""
    try:
        from witan.surfaces.web.rendering import export_report_html
    except ModuleNotFoundError as error:
        raise MissingExtra("a page of a report", "serve") from error
    return export_report_html(report)
