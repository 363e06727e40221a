"""What a client can read by an address of its own: sessions, leaderboard, audit, catalogues."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import anyio
import mcp_types as types

from witan.errors import UnknownName
from witan.history import SessionSummary
from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.audit import audit
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.profiles import profiles
from witan.service.operations.rubrics import rubrics
from witan.service.operations.rules import rules
from witan.service.operations.session_list import sessions
from witan.service.operations.sessions import imported_of
from witan.service.operations.show import ShowParameters, show
from witan.service.sessions import LOCAL, Service
from witan.surfaces.mcp.telling import address
from witan.surfaces.session_pages import imported_to_html, session_to_html
from witan.surfaces.text.sessions import origin_text
from witan.surfaces.web.beside import beside

JSON, HTML = "application/json", "text/html"

PAGE = "/export.html"
"""What follows the name of a session where its page is meant; a slash of a name is quoted."""

LATEST = 20
"""Sessions that are listed one by one."""

BEGINNING = 100
"""How much of a question names its session."""

SESSION = "witan://sessions/"

FIXED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "witan://sessions": ("sessions", "The latest sessions of the history."),
        "witan://leaderboard": ("leaderboard", "How models fared across sessions."),
        "witan://audit": ("audit", "How reviewers judged across sessions."),
        "witan://rules": ("rules", "The rules to count by, and when to take which."),
        "witan://rubrics": ("rubrics", "The rubrics to grade by, with their criteria."),
        "witan://profiles": ("profiles", "The councils that can be asked, and who sits in each."),
    }
)


async def listed(service: Service) -> list[types.Resource]:
    """What can be read: the reports, then the latest sessions."""
    fixed = [
        types.Resource(uri=uri, name=name, description=about, mime_type=JSON)
        for uri, (name, about) in FIXED.items()
    ]
    return [*fixed, *await anyio.to_thread.run_sync(_latest, service)]


def _latest(service: Service) -> list[types.Resource]:
    if service.history is None:
        return []
    return [
        types.Resource(
            uri=address(found.session),
            name=found.session,
            title=_beginning(found.question) or found.session,
            description=_about(found),
            mime_type=JSON,
        )
        for found in service.history.find(limit=LATEST)
    ]


def _about(found: SessionSummary) -> str:
    told = ("simulated" if found.simulated else "", found.status, origin_text(found))
    return ", ".join([*filter(None, told), f"{found.at:%Y-%m-%d %H:%M} UTC"])


def _beginning(question: str) -> str:
    plain = " ".join(question.split())
    return plain if len(plain) <= BEGINNING else f"{plain[: BEGINNING - 1]}…"


def templates() -> list[types.ResourceTemplate]:
    """What can be read by a name."""
    return [
        types.ResourceTemplate(
            uri_template=f"{SESSION}{{session}}",
            name="session",
            title="A session",
            description="The whole record of a session: answers, ballots, outcome, every event; of "
            "one that came in as ballots, what is known.",
            mime_type=JSON,
        ),
        types.ResourceTemplate(
            uri_template=f"{SESSION}{{session}}{PAGE}",
            name="page",
            title="A session as one HTML file",
            description="A page that stands alone, with styles of its own and no script: save it "
            "to a file for whoever shall read the session.",
            mime_type=HTML,
        ),
    ]


async def read(service: Service, uri: str) -> tuple[str, str]:
    """A resource, and its media type.

    Raises
    ------
    UnknownName
        If there is none at this address.
    WitanError
        If there is nothing to tell of it.
    """
    if uri.startswith(SESSION) and uri != SESSION:
        name = unquote(uri.removeprefix(SESSION).removesuffix(PAGE))
        if uri.endswith(PAGE):
            return await _page(service, name), HTML
        return await _record(service, name), JSON
    operation = REPORTS.get(uri)
    if operation is None:
        named = [template.uri_template for template in templates()]
        raise UnknownName("resource", uri, [*FIXED, *named])
    return await dispatch(operation, service, LOCAL, operation.parameters(), to_json), JSON


async def _record(service: Service, name: str) -> str:
    return await dispatch(show, service, LOCAL, ShowParameters(name), to_json)


async def _page(service: Service, name: str) -> str:
    found = await imported_of(service, name)
    if found is not None:
        return await anyio.to_thread.run_sync(imported_to_html, found)
    session = await service.session(name)
    known = await beside(service, session.id)
    return await anyio.to_thread.run_sync(
        lambda: session_to_html(session, children=known.children, votes=known.votes)
    )


REPORTS: Mapping[str, Operation[Any, Any]] = MappingProxyType(
    {
        "witan://sessions": sessions,
        "witan://leaderboard": leaderboard,
        "witan://audit": audit,
        "witan://profiles": profiles,
        "witan://rules": rules,
        "witan://rubrics": rubrics,
    }
)
"""Operations that can be read as they are without any parameter given."""
