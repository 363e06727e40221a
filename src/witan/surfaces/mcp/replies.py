"""Replies of tools: text to read, and small typed results."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from witan.analytics.audits import AuditReport
from witan.core.outcome import Outcome, Standing
from witan.core.stats.leaderboard import Leaderboard, LeaderboardLine
from witan.deliberation.session import Session
from witan.history import SessionSummary
from witan.history.ballots import RevealedAnswer, VoteResult
from witan.service.json_output import record_type, reduce_to
from witan.service.operations.counting import RuleComparison, Tally
from witan.service.operations.plan import PlanSummary
from witan.service.operations.profiles import Profiles
from witan.service.operations.rules import RubricEntry, RuleEntry
from witan.service.operations.sessions import Deletion, SessionList
from witan.service.operations.voting import VotingPaper
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.sessions.councils import CouncilProfile
from witan.service.text import clean, count_noun, readable
from witan.service.trust import leaders_text, missing_text, session_trust, verdict_sentence
from witan.surfaces.live_board import progress_lines
from witan.surfaces.report import report_of
from witan.surfaces.report.outcome import outcome_report
from witan.surfaces.report.session import judgment_report, legend_text
from witan.surfaces.report.text import report_markdown

Found = CouncilSession | ImportedSession


def report_text(result: object) -> str:
    """Write the report of a result, in Markdown."""
    return report_markdown(report_of(result))


@dataclass(frozen=True, slots=True)
class SessionBrief:
    """A session: its status, its leaders and its final answer."""

    session: str
    status: str
    simulated: bool
    leaders: tuple[str, ...]
    text: str | None
    trust: str | None


def brief_session(result: Found) -> SessionBrief:
    """Reduce a session; one in progress has the status running."""
    if isinstance(result, ImportedSession):
        name, outcome, trust = result.about.session, result.outcome, result.trust
        status, simulated, text = (
            result.about.status,
            result.session_import.simulated,
            result.session_import.closing,
        )
    else:
        session = result.session
        name, outcome, simulated, text = (
            session.id,
            session.outcome,
            session.is_simulated,
            session.text if session.verdict is None else verdict_sentence(session.verdict),
        )
        status = "running" if result.under_way else session.status
        trust = None if result.under_way else session_trust(session)
    leaders = () if outcome is None else outcome.leaders
    return SessionBrief(name, status, simulated, leaders, text, trust)


CANCELLED: Any = record_type("CancelledBrief", SessionBrief, ("session", "status"))
"""A cancelled session; `result` shows it."""


def address(session: str) -> str:
    """Write the address of a session's record."""
    return f"witan://sessions/{quote(session, safe='')}"


def result_text(result: Found) -> str:
    """Write the final answer with the trust line, or the progress."""
    if isinstance(result, ImportedSession):
        return _imported_text(result)
    if result.under_way:
        return progress_text(result)
    return "\n\n".join(filter(None, _final_answer(result)))


def _final_answer(result: CouncilSession) -> Iterator[str]:
    session = result.session
    yield _warning(session)
    if session.text is not None:
        yield readable(session.text.strip("\n"))
    elif session.verdict is not None:
        yield report_markdown(judgment_report(session))
    else:
        yield "There is no final answer."
        if session.status == "interrupted":  # otherwise `missing` has the reason
            yield from (clean(f"{seat}: {why}") for seat, why in session.unanswered.items())
        if session.outcome is not None:
            report = outcome_report(session.outcome, is_simulated=session.is_simulated)
            yield report_markdown(report)
    yield legend_text(session)
    yield session_trust(session)
    if result.record_problem is not None:
        yield f"It is not in the history: {result.record_problem}"
    yield f"session {session.id} · the whole record: {address(session.id)}"


def _warning(session: Session) -> str:
    """Warn about a session that is simulated, incomplete or interrupted."""
    parts = ["simulated"] if session.is_simulated else []
    if missing := missing_text(session):
        parts.append(missing)
    if session.status == "interrupted":
        parts.append("it can be resumed")
    return clean(" · ".join(parts))


def progress_text(result: Found) -> str:
    """Write a session's progress line by line, and its leaders."""
    if isinstance(result, ImportedSession):
        return _imported_text(result)
    session, under_way = result.session, result.under_way
    opened, outcome = session.opening, session.outcome
    n_ballots = sum(not ballot.abstained for ballot in session.reviewer_ballots.values())
    parts = [
        *(["simulated"] if session.is_simulated else []),
        f"session {session.id} is {'under way' if under_way else session.status}",
        f"{len(session.answers)} of {count_noun(len(opened.seats), 'answer')}",
        f"{n_ballots} of {count_noun(len(opened.reviewers), 'ballot')}",
    ]
    if outcome is not None and outcome.can_be_won:
        parts.append(f"{clean(leaders_text(outcome.leaders))}{' so far' if under_way else ''}")
    next_step = "`result` waits for its end." if under_way else _next_step(session)
    return "\n".join([" · ".join(parts), "", progress_lines(session.events), next_step])


def _next_step(session: Session) -> str:
    if session.text is not None:
        return "`result` has its final answer."
    if session.verdict is not None:
        return "`result` has its verdict."
    if session.status == "interrupted":
        return "It has no final answer; `resume` continues it."
    return "It has no final answer; `result` explains why."


def whole_text(result: Found) -> str:
    """Write all parts of a session."""
    return _imported_text(result) if isinstance(result, ImportedSession) else report_text(result)


def _imported_text(session: ImportedSession) -> str:
    return f"{report_text(session)}\n\nthe whole record: {address(session.about.session)}"


PLAN: Any = record_type(
    "PlanBrief", PlanSummary, ("expected_usd", "worst_usd", "max_cost_usd", "refusal")
)
"""Cost of a session before it is started."""

STANDING: Any = record_type("StandingBrief", Standing, ("candidate", "rank", "score", "interval"))

OUTCOME: Any = record_type(
    "OutcomeBrief",
    Outcome,
    ("session", "rule", "leaders", "tied_for_best", "ballots_to_flip", "standings"),
    standings=tuple[STANDING, ...],
)
"""The outcome of a session."""

TALLY: Any = record_type(
    "TallyBrief", Tally, ("sessions", "not_counted", "not_read"), sessions=tuple[OUTCOME, ...]
)


@dataclass(frozen=True, slots=True)
class ComparisonBrief:
    """Leaders by session and rule."""

    leaders: Mapping[str, Mapping[str, tuple[str, ...]]]
    skipped: Mapping[str, str]
    stability: Mapping[str, float | None]


def brief_comparison(comparison: RuleComparison) -> ComparisonBrief:
    """Reduce a comparison to its leaders."""
    leaders = {
        each.session: {rule: outcome.leaders for rule, outcome in each.outcomes.items()}
        for each in comparison.sessions
    }
    return reduce_to(ComparisonBrief, comparison, leaders=leaders)


LISTED: Any = record_type(
    "ListedSession", SessionSummary, ("session", "at", "status", "question", "leader", "decision")
)

SESSIONS: Any = record_type(
    "SessionsBrief", SessionList, ("sessions", "next"), sessions=tuple[LISTED, ...]
)
"""Sessions, the latest first."""


RANKED: Any = record_type("RankedModel", LeaderboardLine, ("model", "rank", "score", "interval"))


@dataclass(frozen=True, slots=True)
class LeaderboardBrief:
    """Models, best first."""

    models: tuple[RANKED, ...]


def brief_leaderboard(board: Leaderboard) -> LeaderboardBrief:
    """Reduce a leaderboard; models with few sessions come last."""
    lines = (*board.lines, *board.provisional)
    return LeaderboardBrief(tuple(reduce_to(RANKED, line) for line in lines))


@dataclass(frozen=True, slots=True)
class AuditBrief:
    """Reviewers, and their notable findings."""

    sessions: int
    reviewers: tuple[str, ...]
    concerns: Mapping[str, tuple[str, ...]]


def brief_audit(report: AuditReport) -> AuditBrief:
    """Reduce an audit."""
    graders = () if report.criterion is None else report.criterion.graders
    names = (*(line.reviewer for line in report.lines), *(each.reviewer for each in graders))
    concerns = {name: tuple(c.sentence for c in all_) for name, all_ in report.concerns.items()}
    return AuditBrief(report.sessions, names, concerns)


PAPER: Any = record_type("PaperBrief", VotingPaper, ("paper", "question", "answers", "voted"))
"""A voting paper: its code, and the answers by label."""


def paper_text(paper: VotingPaper) -> str:
    """Write a voting paper, and how to vote."""
    return (
        f"{report_text(paper)}\n\n"
        f"To vote, name the paper {paper.paper} and rank every label, best first: "
        "> between better and worse, = between equals."
    )


REVEALED: Any = record_type(
    "RevealedBrief", RevealedAnswer, ("label", "candidate", "model", "rank", "panel_rank")
)

VOTE: Any = record_type(
    "VoteBrief", VoteResult, ("reviewer", "replaced", "answers"), answers=tuple[REVEALED, ...]
)
"""A stored vote with authors revealed."""

DELETION: Any = record_type("DeletionBrief", Deletion, ("sessions", "note"))
"""The deleted sessions, and what may still be readable of them."""


@dataclass(frozen=True, slots=True)
class NameChoices:
    """Names to choose from."""

    names: tuple[str, ...]


def _names(choices: Iterable[RuleEntry | RubricEntry]) -> tuple[str, ...]:
    return tuple(each.name for each in choices)


PROFILE: Any = record_type(
    "ProfileBrief", CouncilProfile, ("name", "seats", "problem"), seats=tuple[str, ...]
)


@dataclass(frozen=True, slots=True)
class ProfilesBrief:
    """The councils that can be asked."""

    profiles: tuple[PROFILE, ...]


def brief_profiles(profiles: Profiles) -> ProfilesBrief:
    """Reduce a list of councils."""
    return ProfilesBrief(
        tuple(
            reduce_to(PROFILE, each, seats=tuple(seat.source for seat in each.seats))
            for each in profiles.profiles
        )
    )


BRIEFS: Mapping[str, tuple[Any, Callable[[Any], Any] | None]] = MappingProxyType(
    {
        "cancel": (CANCELLED, lambda result: reduce_to(CANCELLED, brief_session(result))),
        "sessions": (SESSIONS, None),
        "recount": (OUTCOME, lambda result: reduce_to(OUTCOME, result.outcome)),
        "paper": (PAPER, None),
        "vote": (VOTE, None),
        "forget": (DELETION, None),
        "leaderboard": (LeaderboardBrief, brief_leaderboard),
        "audit": (AuditBrief, brief_audit),
        "tally": (TALLY, None),
        "compare": (ComparisonBrief, brief_comparison),
        "rules": (NameChoices, lambda result: NameChoices(_names(result.rules))),
        "rubrics": (NameChoices, lambda result: NameChoices(_names(result.rubrics))),
        "profiles": (ProfilesBrief, brief_profiles),
    }
)
"""Small type of a result by operation, and the function that reduces to it; None: by field names.

For other operations the whole result is the reply.
"""

TEXTS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {"cancel": progress_text, "paper": paper_text}
)
"""Text of a result by operation, if it is more than a report."""
