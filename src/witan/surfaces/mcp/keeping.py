"""Tools for what is kept: sessions, people's votes, leaderboards, audits; and who can be asked."""

from collections.abc import Iterator
from typing import Any

from witan.service.operations.audit import audit
from witan.service.operations.forget import Deletion, forget
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.profiles import profiles
from witan.service.operations.session_list import SessionList, sessions
from witan.service.operations.voting import VotingPaper, paper, vote
from witan.service.text import Page, clean, listed
from witan.surfaces.mcp.calls import Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.audit import audit_text
from witan.surfaces.text.leaderboard import leaderboard_text
from witan.surfaces.text.profiles import profiles_text
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


KEEPING: tuple[Tool[Any], ...] = (
    value_tool(sessions, _list_text),
    value_tool(leaderboard, leaderboard_text),
    value_tool(audit, audit_text),
    value_tool(paper, _paper_text),
    value_tool(vote, vote_text),
    value_tool(forget, _deletion_text),
    value_tool(profiles, profiles_text),
)
