"""Resources: sessions, reports and catalogues, each at its own address."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import anyio
import mcp_types as types

from witan.errors import UnknownName
from witan.history import SessionSummary
from witan.service.catalogue import CATALOGUE, Operation, find_operation, redact
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.operations.show import ShowParameters, show
from witan.service.session_records import CouncilSession
from witan.service.sessions import LOCAL, Service
from witan.surfaces.mcp.replies import address
from witan.surfaces.report.sessions import origin_text
from witan.surfaces.session_pages import imported_to_html, session_to_html

JSON, HTML = "application/json", "text/html"

PAGE = "/export.html"
"""Ending of the address of a session's page; a slash of a name is quoted."""

LATEST = 20
"""Sessions that are listed one by one."""

QUESTION_LENGTH = 100
"""Letters of a question that title its session."""

SESSION = "witan://sessions/"

REPORTS: Mapping[str, Operation[Any, Any]] = MappingProxyType(
    {
        f"witan://{name}": operation
        for name in CATALOGUE
        if (operation := find_operation(name)).method == "GET" and not operation.path_parameters
    }
)
"""Operations that are read without parameters."""

TEMPLATES = [
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


async def list_resources(service: Service) -> list[types.Resource]:
    """List the reports, then the latest sessions."""
    reports = [
        types.Resource(uri=uri, name=each.name, description=each.summary, mime_type=JSON)
        for uri, each in REPORTS.items()
    ]
    return [*reports, *await anyio.to_thread.run_sync(_latest, service)]


def _latest(service: Service) -> list[types.Resource]:
    if service.history is None:
        return []
    return [
        types.Resource(
            uri=address(found.session),
            name=found.session,
            title=_title(found.question) or found.session,
            description=_describe(found),
            mime_type=JSON,
        )
        for found in map(redact, service.history.find(limit=LATEST))
    ]


def _describe(summary: SessionSummary) -> str:
    parts = ("simulated" if summary.simulated else "", summary.status, origin_text(summary))
    return ", ".join([*filter(None, parts), f"{summary.at:%Y-%m-%d %H:%M} UTC"])


def _title(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= QUESTION_LENGTH else f"{words[: QUESTION_LENGTH - 1]}…"


async def read_resource(service: Service, uri: str) -> tuple[str, str]:
    """Read a resource; return its text and media type.

    Raises
    ------
    UnknownName
        If there is none at this address.
    WitanError
        If it cannot be read.
    """
    if uri.startswith(SESSION) and uri != SESSION:
        name = unquote(uri.removeprefix(SESSION).removesuffix(PAGE))
        if uri.endswith(PAGE):
            return await _page(service, name), HTML
        return await dispatch(show, service, LOCAL, ShowParameters(name), to_json), JSON
    operation = REPORTS.get(uri)
    if operation is None:
        raise UnknownName("resource", uri, [*REPORTS, *(each.uri_template for each in TEMPLATES)])
    return await dispatch(operation, service, LOCAL, operation.parameters(), to_json), JSON


async def _page(service: Service, name: str) -> str:
    def write(result: CouncilSession | ImportedSession) -> str:
        if isinstance(result, ImportedSession):
            return imported_to_html(result)
        return session_to_html(result.session, children=result.children, votes=result.votes)

    return await dispatch(show, service, LOCAL, ShowParameters(name), write)
