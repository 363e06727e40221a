"""Tools for what is kept: sessions, people's votes, leaderboards, audits; and who can be asked."""

from collections.abc import Iterator
from typing import Any

import anyio

from witan.service.operations import reports
from witan.service.operations.audit import audit
from witan.service.operations.forget import Deletion, forget
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.sessions import history_of
from witan.service.operations.sessions import profiles as profiles_object
from witan.service.operations.voting import VotingPaper, paper, vote
from witan.service.redaction import redact_summaries
from witan.service.sessions import Profile
from witan.service.text import Page, clean, listed
from witan.surfaces.mcp.arguments import (
    NoArguments,
    SessionsArguments,
)
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.audit import audit_text
from witan.surfaces.text.leaderboard import leaderboard_text
from witan.surfaces.text.sessions import sessions_text
from witan.surfaces.text.vote import paper_text, vote_text

PAGE = Page()


async def sessions(call: Call, body: SessionsArguments) -> Reply:
    """List sessions."""
    history, window = history_of(call.service), body.window()

    def find() -> Reply:
        listed = history.find(
            body.text,
            since=window.since,
            until=window.until,
            category=window.category,
            status=body.status,
            limit=body.limit,
            simulated=body.simulated,
            parent=body.parent,
        )
        found = redact_summaries(listed)
        text = "\n".join(sessions_text(PAGE, history, found)) or "no session is like that"
        return Reply(text, reports.sessions(history, found))

    return await anyio.to_thread.run_sync(find)


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


async def profiles(call: Call, body: NoArguments) -> Reply:  # noqa: ARG001 - as every tool
    """Say who can be asked."""
    known = call.service.profiles.values()
    return Reply("\n".join(map(_profile_text, known)), profiles_object(call.service))


def _profile_text(profile: Profile) -> str:
    name = profile.name or "(no profile named)"
    about = f": {profile.about}" if profile.about else ""
    if profile.problem is not None:
        return clean(f"{name}{about} — it cannot be asked: {profile.problem}")
    seats = ", ".join(seat.source or seat.name for seat in profile.seats)
    if profile.jury:
        seats += f", judged by {', '.join(seat.source or seat.name for seat in profile.jury)}"
    return clean(f"{name}{about} — {seats}{' (simulated)' if profile.simulated else ''}")


KEEPING: tuple[Tool[Any], ...] = (
    Tool(
        "sessions",
        "The sessions that are kept",
        "List sessions of the history, the latest first; or those whose question or closing text "
        "has some words.",
        SessionsArguments,
        sessions,
        reads=True,
    ),
    value_tool(leaderboard, leaderboard_text),
    value_tool(audit, audit_text),
    value_tool(paper, _paper_text),
    value_tool(vote, vote_text),
    value_tool(forget, _deletion_text),
    Tool(
        "profiles",
        "The councils that can be asked",
        "Say which councils can be asked, who sits in each, and why one cannot be asked.",
        NoArguments,
        profiles,
        reads=True,
    ),
)
