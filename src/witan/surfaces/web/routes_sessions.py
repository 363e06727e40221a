"""The pages of one session: under way, over, or imported as ballots."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import anyio
from fastapi import APIRouter, Header, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from witan.errors import HistoryConflict, NothingToCount, UnknownName, WitanError
from witan.service.dispatch import dispatch
from witan.service.operations import ask as operations
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.operations.recount import Recount, RecountParameters, recount
from witan.service.operations.sessions import imported_of
from witan.service.redaction import public_error
from witan.service.sessions import LOCAL, RunningSession, Service
from witan.surfaces.http.events import AFTER, streamed
from witan.surfaces.http.generated import ClientOf, Hops, ServiceOf
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.views.naming import seat_called
from witan.surfaces.web.asking import given_in, read_rejudging, read_resume, read_retry, refused
from witan.surfaces.web.beside import beside
from witan.surfaces.web.feed import LIVE_SECONDS, follow_live, last_patch
from witan.surfaces.web.forms import form_of
from witan.surfaces.web.live import LiveSession
from witan.surfaces.web.rendering import render_imported, render_live, render_session
from witan.surfaces.web.responses import Page, redirect, site_of
from witan.surfaces.web.routes_plans import AT_A_FIELD, chosen_seats, jury_page

__all__ = ["router"]

router = APIRouter()

Without = Annotated[Sequence[str], Query()]

MOST_WITHOUT = 64

MOST_CALLED = 400
"""Letters of what is written in place of the name of a session."""

UNKEPT = {"Cache-Control": "no-store"}
"""Whoever goes back to a session that was deleted does not see it again."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How the page of a session is asked for.

    Parameters
    ----------
    rule, without
        What to count it by, and without whose ballots; empty: as it counted itself.
    misnamed
        What was written in place of its name, to delete it.
    """

    rule: str = ""
    without: tuple[str, ...] = ()
    reveal: bool = False
    misnamed: str = ""


@router.get("/sessions/{session:path}/live")
async def live(
    request: Request,
    session: str,
    service: ServiceOf,
    *,
    after: Annotated[str, Query(pattern=AFTER)] = "0",
    reveal: bool = False,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Patch a page of a session under way, by server-sent events."""
    whole = await service.named(session)
    running = service.running(whole)
    page = partial(LiveSession, revealed=reveal, site=replace(site_of(request), client=""))
    if running is None:
        # It ended long ago, or the server was restarted: the page shows what is recorded.
        return streamed(request, last_patch(page((await service.session(whole)).events)))
    following = follow_live(
        running.stream,
        request.app.state.feeds.of(running.stream, page, revealed=reveal),
        after=running.stream.heard(last_event_id or after),
        heartbeat_seconds=min(LIVE_SECONDS, request.app.state.settings.heartbeat_seconds),
        problem=lambda: _problem(running),
    )
    return streamed(request, following)


@router.get("/sessions/{session:path}/state")
async def state(session: str, service: ServiceOf) -> Response:
    """Answer the page of an interrupted session: 204, or 205 once it is out of date."""
    try:
        waiting = await _is_interrupted(service, await service.named(session))
    except UnknownName:  # it was deleted, which its page says
        waiting = False
    return Response(status_code=204 if waiting else 205, headers=UNKEPT)


async def _is_interrupted(service: Service, whole: str) -> bool:
    """Whether a session waits to be resumed; a page asks often, so its events are not read."""
    running = service.running(whole)
    if running is not None and running.under_way:
        return False
    if service.history is not None:
        with suppress(UnknownName):  # it may never have been kept
            about = await anyio.to_thread.run_sync(service.history.summary, whole)
            return about.status in ("interrupted", "running")
    return (await service.session(whole)).status == "interrupted"


@router.post("/sessions/{session:path}/cancel")
async def cancel(request: Request, session: str, service: ServiceOf) -> Response:
    """Break a session off."""
    whole = await service.named(session)
    running = service.running(whole)
    if running is not None:
        running.cancel()
        with suppress(WitanError):  # its page says so
            await running.ended()
    return redirect(site_of(request), "sessions", whole)


@router.post("/sessions/{session:path}/resume")
async def resume(request: Request, session: str, service: ServiceOf, client: ClientOf) -> Response:
    """Take a session up again; show it as it is where that has happened meanwhile."""
    form = await form_of(request)
    whole = await service.named(session)
    try:
        await operations.resume.handler(
            operations.ClientService(service, client), read_resume(form, whole)
        )
    except (HistoryConflict, NothingToCount):
        running = service.running(whole)
        resumed = running is not None and running.under_way
        if not resumed and (await service.session(whole)).status == "interrupted":
            raise
    return redirect(site_of(request), "sessions", whole)


@router.post("/sessions/{session:path}/retry")
async def retry(request: Request, session: str, service: ServiceOf, client: ClientOf) -> Response:
    """Ask seats that failed once more."""
    form = await form_of(request)
    found = await service.session(session)
    asked = read_retry(form, found.id, chosen_seats(form, found))
    running = await operations.retry.handler(operations.ClientService(service, client), asked)
    return redirect(site_of(request), "sessions", running.id)


@router.post("/sessions/{session:path}/rejudge")
async def rejudge(
    request: Request,
    session: str,
    service: ServiceOf,
    client: ClientOf,
    hops: Hops,
) -> Response:
    """Have another jury judge the answers."""
    form = await form_of(request)
    whole = await service.named(session)
    try:
        judging = read_rejudging(form, whole)
        running = await service.rejudge(whole, judging, client=client, hops=hops)
    except (*AT_A_FIELD, ValidationError) as error:
        return jury_page(request, whole, refused(request, given_in(form), error))
    return redirect(site_of(request), "sessions", running.id)


@router.post("/sessions/{session:path}/forget")
async def forget(request: Request, session: str, service: ServiceOf) -> Response:
    """Delete a session wholly, and show those that are left."""
    form = await form_of(request)
    whole = await service.named(session)
    if (given := form.get("session")) != whole:
        # An address of its own: whoever goes back to it later is asked to send nothing again.
        shown = {"reveal": "1"} if form.get("reveal") else {}
        called = given[:MOST_CALLED] or "nothing"
        return redirect(site_of(request), "sessions", whole, **shown, misnamed=called)
    await service.forget(whole)
    return redirect(site_of(request), "history")


@router.get("/sessions")
@router.get("/sessions/")
async def show_all(request: Request) -> Response:
    """Lead to the list of sessions; without a history the first page has those at hand."""
    site = site_of(request)
    return redirect(site, "history") if site.keeps else redirect(site)


@router.get("/sessions/{session:path}")
async def show(
    request: Request,
    session: str,
    service: ServiceOf,
    *,
    rule: str = "",
    without: Without = (),
    reveal: bool = False,
    misnamed: Annotated[str, Query(max_length=MOST_CALLED)] = "",
) -> Response:
    """Show a session: as far as it came, as it ended, or as its ballots came in."""
    here = Shown(rule, tuple(without[:MOST_WITHOUT]), reveal=reveal, misnamed=misnamed)
    return await _shown(request, service, await service.named(session), here)


async def _shown(request: Request, service: ServiceOf, whole: str, here: Shown) -> Response:
    """The page of a session, which no browser keeps: it may be deleted."""
    site, running = site_of(request), service.running(whole)
    if running is not None and running.under_way:
        told = (each.event for each in running.stream.told_after(0))
        live = LiveSession(told, revealed=here.reveal, site=site, mark=running.stream.mark)
        return Page(render_live(live, site=site), headers=UNKEPT)
    imported, refused = await _imported(service, whole, here)
    if imported is not None:
        return await _import(request, imported, here, refused)
    found = await service.session(whole)
    running = service.running(whole)  # no longer where another process took the session up
    seats = tuple(seat_called(found, each) for each in here.without)
    recounted, refused = None, None
    try:
        if here.rule or seats:
            given = RecountParameters(session=whole, rule=here.rule or None, without=seats)
            recounted = (await dispatch(recount, service, LOCAL, given, _same)).outcome
    except WitanError as error:
        refused, seats = error, ()
    known = await beside(service, whole)
    write = partial(
        render_session,
        found,
        revealed=here.reveal,
        recounted=recounted,
        without=seats,
        children=known.children,
        votes=known.votes,
        site=site,
        problem=_refused(request, refused) or _problem(running),
        misnamed=here.misnamed,
    )
    html = await anyio.to_thread.run_sync(write)
    return Page(html, 200 if refused is None else status_of(refused), UNKEPT)


def _same(result: Recount) -> Recount:
    return result


async def _imported(
    service: Service, whole: str, here: Shown
) -> tuple[ImportedSession | None, WitanError | None]:
    """A session of which there are only ballots, and why it is not counted as it is asked for."""
    try:
        return await imported_of(service, whole, here.rule or None, without=here.without), None
    except WitanError as error:
        return await imported_of(service, whole), error


async def _import(
    request: Request, found: ImportedSession, here: Shown, refused: WitanError | None
) -> Response:
    """The page of a session of which there are only ballots."""
    write = partial(
        render_imported,
        found,
        recounted=refused is None and bool(here.rule or here.without),
        without=here.without if refused is None else (),
        site=site_of(request),
        problem=_refused(request, refused),
        misnamed=here.misnamed,
    )
    html = await anyio.to_thread.run_sync(write)
    return Page(html, 200 if refused is None else status_of(refused), UNKEPT)


def _refused(request: Request, error: WitanError | None) -> str:
    """Why a session is not counted as it is asked for; empty: it is."""
    return "" if error is None else f"It is not counted so: {said_of(request, error)}"


def _problem(running: RunningSession | None) -> str:
    """What became of a session beside what its record says."""
    if running is None:
        return ""
    if running.problem is not None:
        return running.problem
    return "" if running.failure is None else f"It was interrupted: {public_error(running.failure)}"
