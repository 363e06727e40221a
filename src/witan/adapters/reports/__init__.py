"""What is read off a history or a lake: the leaderboard and the audit."""

from witan.adapters.reports.audits import AuditReport, audit
from witan.adapters.reports.criteria import CriterionReport
from witan.adapters.reports.leaderboards import leaderboard
from witan.adapters.reports.sources import (
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
