"""Leaderboards and audits of a history, and its sessions, as objects for programs.

Models are called as clients see them, and nothing says where the history is.
"""

from typing import Any

from witan.history import History, SessionSummary
from witan.service.redaction import redact_summaries


def sessions(history: History, found: list[SessionSummary]) -> dict[str, Any]:
    """The object of ``witan sessions --json``; of the history it says what kind it is."""
    return {"history": history.database.dialect, "sessions": redact_summaries(found)}
