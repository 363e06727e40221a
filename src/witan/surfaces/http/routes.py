"""Serve the native API: operations, event streams, health and metrics."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from witan.deliberation.session import Session
from witan.service.catalogue import CATALOGUE, find_operation
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.sessions import show
from witan.service.parameters import Doc
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.sessions.running import RunningSession, StreamMessage, resume_point
from witan.service.sessions.spending import LOCAL
from witan.service.stored_sessions import SessionRequest
from witan.surfaces.http.addresses import known_parameters
from witan.surfaces.http.endpoints import (
    AFTER,
    TOKEN,
    ServiceOf,
    add_session_route,
    add_value_route,
    event_frame,
    frames,
    reply,
    stream_response,
)
from witan.surfaces.http.observers import MEDIA_TYPE
from witan.surfaces.http.openapi import (
    Responses,
    ServerHealth,
    SessionEnd,
    event_stream,
    problem_responses,
    text_response,
)
from witan.surfaces.web.rendering import export_html, style_source, styles
from witan.surfaces.web.responses import CompressedResponse
from witan.version import __version__

router = APIRouter(
    prefix="/api",
    dependencies=[Depends(TOKEN), Depends(known_parameters)],
    responses=problem_responses(400, 401, 403, 413, 422, 429, 503, 508),
)
server_router = APIRouter(tags=["server"])

SessionNamed = Annotated[
    str,
    Path(
        description="Session name, an unambiguous prefix, or `last`.",
        openapi_examples={"the latest": {"value": "last"}},
    ),
]


@dataclass(frozen=True, slots=True)
class SessionLinks:
    """Addresses to read, follow, stop and show a session."""

    self: Annotated[str, Doc("Its record.")]
    events: Annotated[str, Doc("Its events, as they happen.")]
    cancel: Annotated[str, Doc("Stops it.")]
    page: Annotated[str, Doc("Its page, for people.")]


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A running session."""

    session: Annotated[str, Doc("Its name.")]
    under_way: Annotated[
        bool, Doc("Always true; a session that ended within `wait` is answered with its record.")
    ]
    links: Annotated[SessionLinks, Doc("Addresses to read, follow, stop and show it.")]


STARTED: Responses = {
    200: {"model": CouncilSession},
    202: {"model": StartedSession, "headers": {"Location": {"schema": {"type": "string"}}}},
    **problem_responses(402, 404, 409),
}

EVENTS: Responses = {
    200: {
        "description": "Every event, then the end of the session.",
        "content": event_stream(
            "StreamedEvent",
            "SessionEnd",
            example={
                "id": "1-9f31ab02",
                "event": "session_opened",
                "data": '{"event": "session_opened", "seq": 1, "question": "Is it so?"}',
            },
        ),
    },
    **problem_responses(404, 409),
}

HEALTH: Responses = {
    200: {"model": ServerHealth},
    503: {"model": ServerHealth, "description": "The server is stopping."},
    **problem_responses(403, 413, 508),
}

METRICS: Responses = {
    200: text_response(
        "Every counter.",
        "text/plain",
        "# HELP witan_streams Readers of events.\n# TYPE witan_streams gauge\nwitan_streams 12.0\n",
    ),
    **problem_responses(401, 403, 413, 429, 508),
}

HTML: Responses = {
    200: text_response("The page.", "text/html", "<!doctype html>…"),
    **problem_responses(404, 409),
}

After = Annotated[
    str,
    Query(
        pattern=AFTER,
        description="Only events after this one, by `id` or number.",
        openapi_examples={"an id": {"value": "17-9f31ab02"}, "a number": {"value": "17"}},
    ),
]


@router.get(
    "/sessions/{session:quoted}/events",
    operation_id="events",
    tags=["sessions"],
    summary="A session's events, as they happen",
    response_class=Response,
    responses=EVENTS,
)
async def follow(
    request: Request,
    session: SessionNamed,
    service: ServiceOf,
    after: After = "0",
    last_event_id: Annotated[
        str | None, Header(description="Same, as browsers send it; takes precedence over `after`.")
    ] = None,
) -> Response:
    """Stream server-sent events: past events, then new ones.

    Each has its number and a mark as `id`, its kind as `event`, and itself as JSON in `data`. The
    last one, `end`, says how the session ended. To continue a broken stream, send the last `id` as
    `Last-Event-ID`. If the session no longer has that event, because it was resumed from an earlier
    one, the stream starts again from the beginning.
    """
    last = last_event_id or after
    session_name = await service.registry.resolve_session(session)
    running_session = service.registry.get(session_name)
    if running_session is None:
        return stream_response(request, _stored_events(await service.session(session_name), last))
    heartbeat: float = request.app.state.settings.heartbeat_seconds
    start = running_session.stream.resume_point(last)

    def ending(running_session: RunningSession) -> bytes:
        return _end(running_session.session, running_session.stream.failure)

    return stream_response(request, frames(running_session, start, heartbeat, make_ending=ending))


async def _respond_to_start(running_session: RunningSession, wait: float) -> Response:
    """Reply with the record if the session ends soon, otherwise with its links."""
    with anyio.move_on_after(wait):
        session, problem = await running_session.wait_for_session(), running_session.problem
        return reply(
            CouncilSession(session, under_way=running_session.under_way, record_problem=problem)
        )
    page = f"/sessions/{quote(running_session.id, safe='')}"
    address = f"/api{page}"
    links = SessionLinks(address, f"{address}/events", f"{address}/cancel", page)
    started_session = StartedSession(running_session.id, under_way=True, links=links)
    return Response(to_json(started_session), 202, {"Location": address}, "application/json")


async def _stored_events(session: Session, last: str) -> AsyncGenerator[bytes, None]:
    messages = [StreamMessage(event, is_simulated=session.is_simulated) for event in session.events]
    after = resume_point(messages, last)
    for each in messages:
        if each.seq > after:
            yield event_frame(each)
    yield _end(session, None)


def _end(session: Session, failure: str | None) -> bytes:
    end = SessionEnd(session.id, session.status, failure)
    return f"event: end\ndata: {to_json(end)}\n\n".encode()


@router.get(
    "/sessions/{session:quoted}/export.html",
    operation_id="export",
    tags=["sessions"],
    summary="A session as one HTML file",
    responses=HTML,
    response_class=Response,
)
async def export(
    session: SessionNamed,
    service: ServiceOf,
    reveal: Annotated[bool, Query(description="Say who wrote what.")] = True,
) -> Response:
    """Return a session as a self-contained page without scripts."""

    def write(result: CouncilSession | ImportedSession) -> Response:
        name = result.about.session if isinstance(result, ImportedSession) else result.session.id
        return _file(export_html(result, show_names=reveal), name)

    return await dispatch(show, service, LOCAL, SessionRequest(session), write)


def _file(html: str, session: str) -> Response:
    name = "".join(c if (c.isascii() and c.isalnum()) or c in "-_" else "-" for c in session)
    policy = f"sandbox; default-src 'none'; style-src {style_source(styles())}"
    headers = {
        "Content-Disposition": f'attachment; filename="witan-{name}.html"',
        "Content-Security-Policy": policy,
        "Cache-Control": "private, no-cache",
    }
    return CompressedResponse(html, headers=headers, media_type="text/html")


@server_router.get(
    "/healthz",
    operation_id="health",
    summary="Readiness of the server",
    response_class=Response,
    responses=HEALTH,
)
async def health(service: ServiceOf) -> Response:
    """Answer 200 while questions are accepted, 503 while the server stops."""
    status: Any = "stopping" if service.is_draining else "ok"
    answer = reply(ServerHealth(status, __version__, len(service.registry.under_way)))
    answer.status_code = 503 if service.is_draining else 200
    return answer


@server_router.get(
    "/metrics",
    operation_id="metrics",
    summary="Metrics of the server",
    response_class=Response,
    responses=METRICS,
)
async def metrics(request: Request, service: ServiceOf) -> Response:
    """Return every counter in the text format of Prometheus."""
    state = request.app.state
    text = state.metrics.text(len(service.registry.under_way), state.streams.open)
    return Response(text, media_type=MEDIA_TYPE)


for operation in map(find_operation, CATALOGUE):
    if operation.kind == "session":
        add_session_route(router, operation, _respond_to_start, STARTED)
    else:
        add_value_route(router, operation)
