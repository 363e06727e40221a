"""What came of a session, without all that it was made of."""

from typing import Any

from witan.core.outcome import Outcome
from witan.deliberation.session import Session
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.outcomes import outcome_fields
from witan.service.trust import session_trust

__all__ = ["import_object", "verdict_object"]

SUMMARY = (
    "rule", "interpretation", "leaders", "tied_for_best", "clear_leader", "disputed_by",
    "n_ballots", "n_abstentions", "effective_votes", "ballots_to_flip", "warnings",
)  # fmt: skip
"""What of the outcome is told: the session has all of it."""

STANDING = ("candidate", "rank", "score", "interval", "p_best", "tier", "failed")


def verdict_object(session: Session, record_problem: str | None = None) -> dict[str, Any]:
    """The closing text, who leads how surely, what is missing, and what it cost."""
    told: dict[str, Any] = {
        "session": session.id,
        "status": session.status,
        "simulated": session.simulated,
        "missing": session.missing,
        "text": session.text,
        "trust": session_trust(session),
        "leaders": () if session.outcome is None else session.outcome.leaders,
        "outcome": None,
        "chairman": None,
        "labels": {},
        "approved": None,
        "unanswered": session.unanswered,
        "cost_usd": session.cost.total_usd,
        "known_usd": session.cost.known_usd,
        "seconds": session.seconds,
        "record_problem": record_problem,
    }
    if session.outcome is not None:
        told["outcome"] = _in_short(session.outcome)
    if session.rankings:
        told["rankings"] = session.rankings
    if (held := session.synthesis) is not None:
        told |= {"chairman": held.chairman, "labels": held.labels, "approved": held.approved}
    return told


def import_object(found: ImportedSession) -> dict[str, Any]:
    """The same of a session that came in as ballots, as far as it is known."""
    outcome = found.outcome
    return {
        "session": found.about.session,
        "status": found.about.status,
        "simulated": found.held.simulated,
        "missing": (),
        "text": found.held.closing,
        "trust": found.trust,
        "leaders": () if outcome is None else outcome.leaders,
        "outcome": None if outcome is None else _in_short(outcome),
        "source": found.about.source,
        "not_counted": found.not_counted,
    }


def _in_short(outcome: Outcome) -> dict[str, Any]:
    told = outcome_fields(outcome)
    lines = [{name: line[name] for name in STANDING} for line in told["standings"]]
    return {name: told[name] for name in SUMMARY} | {"standings": lines}
