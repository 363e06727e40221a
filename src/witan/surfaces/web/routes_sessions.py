"""Pages of one session, whether running, finished or imported, and votes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import anyio
from fastapi import Header, Query, Request
from starlette.responses import Response

from witan.core.ballot import Groups
from witan.core.blind_vote import rank_by_pairs, read_ranking
from witan.core.blinding import Sheet
from witan.errors import HistoryConflict, InvalidBallot, InvalidParameter, UnknownName, WitanError
from witan.history.ballots import HumanVote, Paper
from witan.service.catalogue import redact
from witan.service.dispatch import ServedSessions, dispatch, keep_typed
from witan.service.operations.sessions import ForgetParameters, RecountParameters, recount
from witan.service.operations.sessions import forget as forget_session
from witan.service.operations.sessions import show as show_session
from witan.service.operations.voting import cast_vote, paper_for, reveal_paper
from witan.service.redaction import public_error
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession
from witan.service.sessions.spending import LOCAL
from witan.service.stored_sessions import SessionRequest, SessionStore
from witan.surfaces.http.endpoints import AFTER, ClientOf, ServiceOf, stream_response
from witan.surfaces.http.problems import status_of, word_error
from witan.surfaces.report.names import find_seat
from witan.surfaces.report.session import RecountView
from witan.surfaces.web.forms import read_form
from witan.surfaces.web.live import LIVE_SECONDS, LivePage, follow_live, last_patch
from witan.surfaces.web.rendering import (
    render,
    render_live,
    render_pair,
    render_reveal,
    render_session,
    render_vote,
)
from witan.surfaces.web.responses import UNKEPT, HtmlPage, page_router, redirect, site_of
from witan.surfaces.web.session_page import FollowUp, read_follow_ups

PLACE = "place-"
"""Prefix of a label in the name of its place field."""

MOST_CHOICES = 4096
"""Maximum number of choices in an address."""

OTHER_CHOICES = (
    "your choices were made on another voting paper with other labels and were "
    "discarded; please choose again"
)
"""Notice for choices between labels that may now mean other answers, as after an upgrade."""

OTHER_VOTE = (
    "your earlier vote has other ranks; cast this one to replace it, or view the earlier one below"
)
"""Notice for a vote from a form that was opened before another vote was cast."""

router = page_router()

Repeated = Annotated[Sequence[str], Query()]

MOST_WITHOUT = 64

MOST_CALLED = 400
"""Most characters shown of a mistyped name."""


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
    """Patch a page of a running session with server-sent events."""
    session_id = await service.registry.resolve_session(session)
    running_session = service.registry.get(session_id)
    page = partial(LivePage, show_names=reveal, site=replace(site_of(request), client=""))
    if running_session is None:
        # It ended long ago, or the server was restarted: the page shows the record.
        return stream_response(
            request, last_patch(page((await service.session(session_id)).events))
        )
    following = follow_live(
        running_session.stream,
        request.app.state.feeds.of(running_session.stream, page, show_names=reveal),
        after=running_session.stream.resume_point(last_event_id or after),
        heartbeat_seconds=min(LIVE_SECONDS, request.app.state.settings.heartbeat_seconds),
        problem=lambda: _running_problem(running_session),
    )
    return stream_response(request, following)


@router.get("/sessions/{session:path}/state")
async def state(
    session: str,
    service: ServiceOf,
    *,
    until: Literal["resumed", "answered", "closed"] = "resumed",
) -> Response:
    """Answer 204 until a session continues, then 205 to reload.

    A session continues when it is resumed, answered or closed, as `until` says.
    """
    try:
        session_id = await service.registry.resolve_session(session)
        waits = await _waits(service, session_id, until)
    except UnknownName:  # it was deleted; its page says so
        waits = False
    return Response(status_code=204 if waits else 205, headers=UNKEPT)


async def _waits(service: Service, session_id: str, until: str) -> bool:
    """Return true before a stage of a session, without reading events."""
    running_session, history = service.registry.get(session_id), service.history
    under_way = running_session is not None and running_session.under_way
    if until == "resumed" and under_way:
        return False
    if history is None:
        return not under_way and (await service.session(session_id)).status == "interrupted"
    try:
        about = await anyio.to_thread.run_sync(history.summary, session_id)
    except UnknownName:  # it may not have been stored
        return (await service.session(session_id)).status == "interrupted"
    if about.status not in ("interrupted", "running") or until != "answered":
        return about.status in ("interrupted", "running")
    return not await anyio.to_thread.run_sync(history.has_final_answers, session_id)


@router.post("/sessions/{session:path}/cancel")
async def cancel(request: Request, session: str, service: ServiceOf) -> Response:
    """Stop a session."""
    session_id = await service.registry.resolve_session(session)
    running_session = service.registry.get(session_id)
    if running_session is not None:
        running_session.cancel()
        with suppress(WitanError):  # its page says so
            await running_session.wait_for_session()
    return redirect(site_of(request), "sessions", session_id)


@router.post("/sessions/{session:path}/forget")
async def forget(request: Request, session: str, service: ServiceOf, client: ClientOf) -> Response:
    """Delete a session, and show the remaining ones."""
    form = await read_form(request)
    session_id = await service.registry.resolve_session(session)
    if (name := form.get("session")) != session_id:
        # Redirect, so that going back does not send the form again.
        reveal = {"reveal": "1"} if form.get("reveal") else {}
        entry = name[:MOST_CALLED] or "nothing"
        return redirect(site_of(request), "sessions", session_id, **reveal, misnamed=entry)
    parameters = ForgetParameters(session_id, with_children="with_children" in form.fields)
    await dispatch(forget_session, service, client, parameters, keep_typed)
    return redirect(site_of(request), "history")


@router.get("/sessions/{session:path}/vote")
async def paper(  # noqa: PLR0913 - parameters of an address
    request: Request,
    session: str,
    service: ServiceOf,
    client: ClientOf,
    *,
    person: Annotated[str, Query(alias="as", max_length=400)] = "",
    cast: bool = False,
    seen: Literal["", "1", "ballots"] = "",
    pair: Repeated = (),
    code: Annotated[str, Query(alias="paper")] = "",
    whole: Annotated[bool, Query(alias="all")] = False,
) -> Response:
    """Show a paper's next pair, its ranking, or, once `cast`, authors.

    Each `pair` is an earlier choice on the paper with that code; with `all`, all answers are ranked
    at once.
    """
    store, site, name = ServedSessions(service, client), site_of(request), person.strip()
    if not name:
        _ = store.history
        session_id = await service.registry.resolve_session(session)
        known = "" if request.app.state.clients.open else client.name
        return HtmlPage(render("voter.html", site=site, session=session_id, known=known, seen=seen))
    try:
        voting_paper = await anyio.to_thread.run_sync(paper_for, store, session, name)
    except HistoryConflict:
        running_session = service.registry.get(await service.registry.resolve_session(session))
        if running_session is None or not running_session.under_way:
            raise
        return HtmlPage(render("vote_waiting.html", site=site, session=running_session.session))
    if not cast or voting_paper.earlier is None:
        choices, problem = pair[:MOST_CHOICES], ""
        if choices and code != voting_paper.code:  # its labels may belong to other answers
            choices, problem = (), OTHER_CHOICES
        ranking = rank_by_pairs(voting_paper.sheet, choices)
        write = render_vote if whole or ranking.next_pair is None else render_pair
        html = write(voting_paper, ranking, problem=problem, choices=choices, seen=seen, site=site)
        return HtmlPage(html)
    groups = voting_paper.earlier.groups
    result = redact(await anyio.to_thread.run_sync(reveal_paper, store, voting_paper, groups))
    return HtmlPage(render_reveal(voting_paper.question, result, site=site))


@router.post("/sessions/{session:path}/vote")
async def post_vote(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Store the vote, then show the authors."""
    form = await read_form(request)
    store, person = ServedSessions(service, client), form.get("as")
    if not person:
        raise InvalidBallot("nobody", "cannot be cast: say who votes")
    prepared = await anyio.to_thread.run_sync(paper_for, store, session, person)
    site, fields = site_of(request), form.fields
    try:
        is_cast = await anyio.to_thread.run_sync(partial(_cast_vote, store, prepared, fields))
        problem, status = "" if is_cast else OTHER_VOTE, 409
    except InvalidBallot as error:
        problem, status = str(error), status_of(error)
    if problem:
        # Another tab may have cast a vote.
        prepared = await anyio.to_thread.run_sync(paper_for, store, session, person)
        seen = fields.get("seen", "")
        # Places from another paper may belong to other answers.
        values = fields if fields.get("paper") == prepared.code else {}
        html = render_vote(prepared, problem=problem, values=values, seen=seen, site=site)
        return HtmlPage(html, status)
    # Redirect, so that reloading does not vote again.
    voter = {"as": prepared.sheet.reviewer, "cast": "1"}
    return redirect(site, "sessions", prepared.session, "vote", **voter)


def _cast_vote(store: SessionStore, paper: Paper, fields: Mapping[str, str]) -> bool:
    """Store a vote; return false if it conflicts with an earlier vote."""
    if fields.get("paper") != paper.code:
        problem = "belongs to another voting paper; please rank the answers on this one"
        raise InvalidBallot(paper.sheet.reviewer, problem)
    groups = read_places(paper.sheet, fields)
    if paper.earlier is not None and "replace" not in fields:  # cast in another tab, or sent twice
        return [*map(set, groups)] == [*map(set, paper.earlier.groups)]
    cast_vote(store, paper, HumanVote(groups), seen=fields.get("seen", ""))
    return True


def read_places(sheet: Sheet, fields: Mapping[str, str]) -> Groups:
    """Read a ranking from the place of every label; 1 is best."""
    places: dict[int, list[str]] = {}
    for label in sheet.labels:
        place = fields.get(f"{PLACE}{label}", "").strip()
        if not place:
            raise InvalidBallot(sheet.reviewer, f"does not rank {label}; every answer needs a rank")
        if not (place.isascii() and place.isdigit() and 1 <= int(place[:6]) <= len(sheet.labels)):
            expected = f"a rank is a whole number from 1 to {len(sheet.labels)}"
            raise InvalidBallot(sheet.reviewer, f"gives {label} the rank {place!r}; {expected}")
        places.setdefault(int(place), []).append(label)
    return read_ranking(" > ".join(" = ".join(places[p]) for p in sorted(places)), sheet)


@router.get("/sessions")
@router.get("/sessions/")
async def show_all(request: Request) -> Response:
    """Redirect to the list of sessions."""
    site = site_of(request)
    return redirect(site, "history") if site.keeps else redirect(site)


@router.get("/sessions/{session:path}")
async def show(  # noqa: PLR0913 - parameters of an address
    request: Request,
    session: str,
    service: ServiceOf,
    *,
    rule: str = "",
    without: Repeated = (),
    reviewer: Repeated = (),
    weight: Repeated = (),
    reveal: bool = False,
    misnamed: Annotated[str, Query(max_length=MOST_CALLED)] = "",
) -> Response:
    """Show a session, running, finished or imported, without caching.

    The `weight` values belong to the `reviewer` values in order; `misnamed` is the wrong name that
    was typed to delete it.
    """
    session_id = await service.registry.resolve_session(session)
    site, running_session = site_of(request), service.registry.get(session_id)
    if running_session is not None and running_session.under_way:
        events = (each.event for each in running_session.stream.messages_after(0))
        live = LivePage(events, show_names=reveal, site=site, mark=running_session.stream.mark)
        return HtmlPage(render_live(live, site=site), headers=UNKEPT)
    result = await dispatch(show_session, service, LOCAL, SessionRequest(session_id), keep_typed)
    recount_view, failure, problem = None, None, ""
    try:
        recount_view = await _recount(
            service,
            session_id,
            result,
            rule=rule,
            without=tuple(without[:MOST_WITHOUT]),
            weight_texts=tuple(zip(reviewer, weight, strict=False))[:MOST_WITHOUT],
        )
    except WitanError as error:
        failure, problem = error, f"The recount failed: {word_error(request, error)}"
    if not isinstance(result, ImportedSession):
        # It no longer runs here if another process has resumed it.
        running_session = service.registry.get(session_id)
    follow_ups: Sequence[FollowUp] = ()
    if isinstance(result, CouncilSession):
        children = result.children
        follow_ups = await read_follow_ups(service, children, show_names=reveal)
    write = partial(
        render_session,
        result,
        show_names=reveal,
        recount=recount_view,
        site=site,
        problem=problem or _running_problem(running_session),
        misnamed=misnamed,
        follow_ups=follow_ups,
    )
    html = await anyio.to_thread.run_sync(write)
    return HtmlPage(html, 200 if failure is None else status_of(failure), UNKEPT)


async def _recount(
    service: Service,
    session_id: str,
    result: CouncilSession | ImportedSession,
    *,
    rule: str,
    without: tuple[str, ...],
    weight_texts: Sequence[tuple[str, str]],
) -> RecountView | None:
    """Count a session by the parameters in its address; None: the session's own count."""
    weights = {name: _read_weight(text) for name, text in weight_texts}
    own_weights: Mapping[str, float] = {}
    if not isinstance(result, ImportedSession):
        session = result.session
        without = tuple(find_seat(session, each) for each in without)
        weights = {find_seat(session, name): weight for name, weight in weights.items()}
        own_weights = session.settings.weights
    weights = {seat: each for seat, each in weights.items() if each != own_weights.get(seat, 1.0)}
    if not (rule or without or weights):
        return None
    parameters = RecountParameters(
        session=session_id,
        rule=rule or None,
        without=without,
        weights={**own_weights, **weights} if weights else None,
    )
    recounted = await dispatch(recount, service, LOCAL, parameters, keep_typed)
    return RecountView(recounted.outcome, without, weights)


def _read_weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("the reviewer's weight", text, "a number ≥ 0") from None


def _running_problem(running_session: RunningSession | None) -> str:
    if running_session is None:
        return ""
    if running_session.problem is not None:
        return running_session.problem
    return (
        ""
        if running_session.failure is None
        else f"It was interrupted: {public_error(running_session.failure)}"
    )
