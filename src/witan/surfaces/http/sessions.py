"""The native API: sessions, from the question to what is kept of them."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import anyio
from fastapi import Header, Query, Request, Response

from witan.deliberation.session import Session
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.ask import ask, rejudge, resume, retry
from witan.service.operations.forget import forget
from witan.service.operations.plan import plan, plan_rejudge, plan_retry
from witan.service.operations.show import ShowParameters, show
from witan.service.session_records import CouncilSession
from witan.service.sessions import RunningSession, StreamMessage, heard
from witan.surfaces.http import examples
from witan.surfaces.http.access import ClientOf, ServiceOf
from witan.surfaces.http.documents import Responses, SessionNamed, operations, refused
from witan.surfaces.http.event_stream import AFTER, event_frame, frames, streamed
from witan.surfaces.http.generated import add_session_route, add_value_route
from witan.surfaces.http.replies import reply

router = operations("sessions")


@dataclass(frozen=True, slots=True)
class SessionLinks:
    """Where a session is read, followed, stopped and shown.

    Parameters
    ----------
    self
        Its record.
    events
        Its events, as they happen.
    cancel
        Stops it.
    page
        Its page, for people.
    """

    self: str
    events: str
    cancel: str
    page: str


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A session that is under way.

    Parameters
    ----------
    session
        Its name.
    under_way
        Always true; a session that ended within `wait` is answered with its record.
    links
        Where it is read, followed, stopped and shown.
    """

    session: str
    under_way: bool
    links: SessionLinks


STARTED: Responses = {
    **examples.STARTED,
    202: {"model": StartedSession, "headers": {"Location": {"schema": {"type": "string"}}}},
}

After = Annotated[
    str,
    Query(
        pattern=AFTER,
        description="Tell only of events after this one: its `id`, or its number.",
        openapi_examples={"an id": {"value": "17-9f31ab02"}, "a number": {"value": "17"}},
    ),
]


add_value_route(router, show)


@router.get(
    "/sessions/{session:quoted}/events",
    summary="A session's events, as they happen",
    response_class=Response,
    responses=examples.EVENTS,
)
async def follow(
    request: Request,
    session: SessionNamed,
    service: ServiceOf,
    after: After = "0",
    last_event_id: Annotated[
        str | None, Header(description="Likewise, by a browser; stronger than `after`.")
    ] = None,
) -> Response:
    """Stream server-sent events: what has happened, then what happens.

    Of each, `id` is its number in the session and a mark, `event` its kind, and `data` itself as
    JSON. The last one is `end`, and says how the session ended. A stream that breaks off is taken
    up with the last `id` in `Last-Event-ID`. Where that event is not in the session any more, as
    it was resumed from before it, everything is told from the beginning.
    """
    last = last_event_id or after
    whole = await service.named(session)
    running = service.running(whole)
    if running is None:
        return streamed(request, _kept(await service.session(whole), last))
    heartbeat: float = request.app.state.settings.heartbeat_seconds
    begun = running.stream.heard(last)
    return streamed(request, frames(running, begun, heartbeat, ending=_ending))


@router.post(
    "/sessions/{session:quoted}/cancel",
    summary="Break a session off",
    responses={200: {"model": show.result}, **refused(404, 409)},
)
async def cancel(session: SessionNamed, service: ServiceOf, client: ClientOf) -> Response:
    """Cancel every call of a session; what came in is kept, and it can be resumed.

    A session that is over stays as it is, and its record is the answer.
    """
    whole = await service.named(session)
    running = service.running(whole)
    if running is None:
        return await dispatch(show, service, client, ShowParameters(whole), reply)
    running.cancel()
    return _record(await running.ended(), running)


async def _started(running: RunningSession, wait: float) -> Response:
    """Where a session is; or all of it, if it ends soon."""
    with anyio.move_on_after(wait):
        return _record(await running.ended(), running)
    page = f"/sessions/{quote(running.id, safe='')}"
    here = f"/api{page}"
    links = SessionLinks(here, f"{here}/events", f"{here}/cancel", page)
    started = StartedSession(running.id, under_way=True, links=links)
    return Response(to_json(started), 202, {"Location": here}, "application/json")


for session_operation in (ask, resume, retry, rejudge):
    add_session_route(router, session_operation, _started, STARTED)
for value_operation in (plan, plan_retry, plan_rejudge, forget):
    add_value_route(router, value_operation)


def _record(session: Session, running: RunningSession) -> Response:
    """Reply with a session as far as it came."""
    problem = running.problem
    return reply(CouncilSession(session, under_way=running.under_way, record_problem=problem))


async def _kept(session: Session, last: str) -> AsyncGenerator[bytes, None]:
    """The events of a session that is over, after what was heard last."""
    told = [StreamMessage(event, simulated=session.simulated) for event in session.events]
    after = heard(told, last)
    for each in told:
        if each.seq > after:
            yield event_frame(each)
    yield _end(session, None)


def _ending(running: RunningSession) -> bytes:
    return _end(running.session, running.stream.failure)


def _end(session: Session, failure: str | None) -> bytes:
    said = {"session": session.id, "status": session.status, "failure": failure}
    return f"event: end\ndata: {to_json(said)}\n\n".encode()
