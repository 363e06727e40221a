"""What came of a session, without all that it was made of."""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from witan.core.outcome import Interval, Outcome
from witan.deliberation.session import Session
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.trust import session_trust

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StandingSummary:
    """A line of an outcome in short.

    Parameters
    ----------
    candidate
        Its name.
    rank
        1 is best; equal lines share it.
    score, interval
        The rule's number, and its interval; null: it has none.
    p_best
        Probability that other reviewers would place it best; null: unknown.
    tier
        Number of the group that ties cannot separate, 1 the best.
    failed
        Flags of the safety gate.
    """

    candidate: str
    rank: int
    score: float | None
    interval: Interval | None
    p_best: float | None
    tier: int
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutcomeSummary:
    """An outcome in short.

    Parameters
    ----------
    rule, interpretation
        The rule that counted, and what the standings say.
    leaders, tied_for_best
        Who shares the first rank, and whoever is too close to it to call.
    clear_leader
        The leader that stands alone; null: there is none.
    disputed_by
        Whom the fit places above the first line beyond noise.
    n_ballots, n_abstentions
        Ballots that count, and seats without one.
    effective_votes
        How many independent reviewers these are worth; null: unknown.
    ballots_to_flip
        The fewest ballots that could end the lead; null: no leader, or not searched.
    warnings
        What was changed or doubtful.
    standings
        Best first.
    """

    rule: str
    interpretation: str
    leaders: tuple[str, ...]
    tied_for_best: tuple[str, ...]
    clear_leader: str | None
    disputed_by: tuple[str, ...]
    n_ballots: int
    n_abstentions: int
    effective_votes: float | None
    ballots_to_flip: int | None
    warnings: tuple[str, ...]
    standings: tuple[StandingSummary, ...]


def summarize_outcome(outcome: Outcome) -> OutcomeSummary:
    """Reduce an outcome to what a reader needs first."""
    lines = tuple(_pick(StandingSummary, line) for line in outcome.standings)
    return _pick(OutcomeSummary, outcome, standings=lines)


def _pick(kind: type[T], whole: object, **own: Any) -> T:
    names = [each.name for each in fields(kind) if each.name not in own]  # type: ignore[arg-type]
    return kind(**{name: getattr(whole, name) for name in names}, **own)


def verdict_object(session: Session, record_problem: str | None = None) -> dict[str, Any]:
    """The final answer, who leads how surely, what is missing, and what it cost."""
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
        told["outcome"] = summarize_outcome(session.outcome)
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
        "outcome": None if outcome is None else summarize_outcome(outcome),
        "source": found.about.source,
        "not_counted": found.not_counted,
    }
