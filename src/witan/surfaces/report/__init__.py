"""Reports: what a result says, written once; each surface renders it in its own form."""

from importlib import import_module

from witan.surfaces.report.document import Report

__all__ = ["Report", "has_report", "report_of"]

_WRITERS = {
    "AuditReport": "audit",
    "Comparison": "comparison",
    "CouncilSession": "session",
    "Deletion": "deletion",
    "Explained": "explanation",
    "Explanation": "explanation",
    "ImportedSession": "imported",
    "Leaderboard": "leaderboard",
    "Outcome": "outcome",
    "Plan": "plan",
    "PlanSummary": "plan",
    "Profiles": "profiles",
    "RecountResult": "outcome",
    "RubricList": "rubrics",
    "RuleComparison": "comparison",
    "RuleList": "rules",
    "Session": "session",
    "SessionList": "sessions",
    "Tally": "tally",
    "VoteResult": "vote",
    "VotingPaper": "paper",
}
"""Type of a result to the module here whose function ``…_report`` writes its report."""


def report_of(result: object) -> Report:
    """Write the report of a result.

    Raises
    ------
    TypeError
        If its type has none.
    """
    kind = type(result).__name__
    if kind not in _WRITERS:
        raise TypeError(f"no report is written of {kind}; name its writer in {__name__}")
    name = _WRITERS[kind]
    report: Report = getattr(import_module(f"{__name__}.{name}"), f"{name}_report")(result)
    return report


def has_report(kind: type) -> bool:
    """Tell whether a report can be written of results of a type."""
    return kind.__name__ in _WRITERS
