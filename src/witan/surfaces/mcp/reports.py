"""Tools over stored sessions, and of what there is to choose from."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from witan.analytics.audits import AuditReport
from witan.core.outcome import Interval
from witan.core.stats.leaderboard import Leaderboard
from witan.service.operations.audit import audit
from witan.service.operations.forget import Deletion, forget
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.profiles import ProfileList, profiles
from witan.service.operations.rubrics import RubricList, rubrics
from witan.service.operations.rules import RuleList, rules
from witan.service.operations.session_list import SessionList, sessions
from witan.service.operations.voting import VotingPaper, paper, vote
from witan.service.text import Page, clean, listed
from witan.surfaces.mcp.calls import Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.audit import audit_text
from witan.surfaces.text.profiles import profiles_text
from witan.surfaces.text.rubrics import rubrics_text
from witan.surfaces.text.rules import rules_text
from witan.surfaces.text.sessions import sessions_remarks, sessions_text
from witan.surfaces.text.vote import paper_text, vote_text


def _list_text(page: Page, found: SessionList) -> Iterator[str]:
    yield from sessions_text(page, found)
    yield from sessions_remarks(found)


def _paper_text(page: Page, given: VotingPaper) -> Iterator[str]:
    yield from paper_text(page, given)
    yield ""
    yield (
        f"To vote, name the paper {given.paper} and rank every label, best first: "
        "> between better and worse, = between equals."
    )


def _deletion_text(_: Page, done: Deletion) -> Iterator[str]:
    yield f"deleted: {clean(listed(done.sessions))}"
    if done.children:
        yield f"these still hold text of it: {clean(listed([*done.children]))}"
    if done.note is not None:
        yield done.note


@dataclass(frozen=True, slots=True)
class _SessionBrief:
    session: str
    at: datetime
    status: str
    simulated: bool
    question: str
    leader: str | None


@dataclass(frozen=True, slots=True)
class _SessionsBrief:
    sessions: tuple[_SessionBrief, ...]
    next: str | None


def _brief_sessions(found: SessionList) -> _SessionsBrief:
    lines = (
        _SessionBrief(
            line.session, line.at, line.status, line.simulated, line.question, line.leader
        )
        for line in found.sessions
    )
    return _SessionsBrief(tuple(lines), found.next)


@dataclass(frozen=True, slots=True)
class _ModelBrief:
    model: str
    rank: int | None
    score: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class _LeaderboardBrief:
    interpretation: str
    models: tuple[_ModelBrief, ...]


def _brief_leaderboard(found: Leaderboard) -> _LeaderboardBrief:
    lines = (
        _ModelBrief(line.model, line.rank, line.score, line.interval)
        for line in (*found.lines, *found.provisional)
    )
    return _LeaderboardBrief(found.interpretation, tuple(lines))


@dataclass(frozen=True, slots=True)
class _AuditBrief:
    sessions: int
    reviewers: tuple[str, ...]
    concerns: dict[str, tuple[str, ...]]


def _brief_audit(found: AuditReport) -> _AuditBrief:
    graders = () if found.criterion is None else found.criterion.graders
    names = (*(line.reviewer for line in found.lines), *(each.reviewer for each in graders))
    concerns = {name: tuple(c.sentence for c in held) for name, held in found.concerns.items()}
    return _AuditBrief(found.sessions, names, concerns)


@dataclass(frozen=True, slots=True)
class _Names:
    names: tuple[str, ...]


def _rule_names(found: RuleList) -> _Names:
    return _Names(tuple(rule.name for rule in found.rules))


def _rubric_names(found: RubricList) -> _Names:
    return _Names(tuple(rubric.name for rubric in found.rubrics))


@dataclass(frozen=True, slots=True)
class _ProfileBrief:
    name: str
    seats: tuple[str, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class _ProfilesBrief:
    profiles: tuple[_ProfileBrief, ...]


def _brief_profiles(found: ProfileList) -> _ProfilesBrief:
    return _ProfilesBrief(
        tuple(
            _ProfileBrief(each.name, tuple(seat.source for seat in each.seats), each.problem)
            for each in found.profiles
        )
    )


REPORTS: tuple[Tool[Any], ...] = (
    value_tool(sessions, _list_text, summary=_brief_sessions),
    value_tool(leaderboard, summary=_brief_leaderboard),
    value_tool(audit, audit_text, summary=_brief_audit),
    value_tool(paper, _paper_text),
    value_tool(vote, vote_text),
    value_tool(forget, _deletion_text),
    value_tool(rules, rules_text, summary=_rule_names),
    value_tool(rubrics, rubrics_text, summary=_rubric_names),
    value_tool(profiles, profiles_text, summary=_brief_profiles),
)
