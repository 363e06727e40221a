"""What is read off a history or a lake: the leaderboard and the audit."""

from witan.analytics.reports.audits import AuditReport, CriterionReport, audit
from witan.analytics.reports.leaderboards import leaderboard
from witan.analytics.reports.sources import (
    FilesSource,
    HistorySource,
    LakeSource,
    Source,
    open_lake,
    open_source,
)

__all__ = [
    "AuditReport",
    "CriterionReport",
    "FilesSource",
    "HistorySource",
    "LakeSource",
    "Source",
    "audit",
    "leaderboard",
    "open_lake",
    "open_source",
]
