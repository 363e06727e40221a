"""A person's blind vote on the page: who votes, the paper, and what is behind it."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from witan.errors import InvalidBallot, InvalidParameter
from witan.history.votes import Paper, Vote, check_code
from witan.service.catalogue import redact
from witan.service.dispatch import ServedSessions
from witan.service.operations.voting import cast_vote, check_unvoted, paper_for, reveal_paper
from witan.service.stored_sessions import SessionStore
from witan.surfaces.http.generated import ClientOf, ServiceOf
from witan.surfaces.http.problems import status_of
from witan.surfaces.web.forms import form_of
from witan.surfaces.web.rendering import render, render_reveal, render_vote
from witan.surfaces.web.responses import Page, redirect, site_of
from witan.surfaces.web.voting import ranking_of

router = APIRouter()


@router.get("/sessions/{session:path}/vote")
async def paper(
    request: Request,
    session: str,
    service: ServiceOf,
    client: ClientOf,
    *,
    person: Annotated[str, Query(alias="as", max_length=400)] = "",
    cast: bool = False,
    seen: bool = False,
) -> Response:
    """Give a person's paper; once it is `cast`, what is behind it."""
    store, site, name = ServedSessions(service, client), site_of(request), person.strip()
    if not name:
        _ = store.history
        whole = await service.named(session)
        known = "" if request.app.state.clients.open else client.name
        return Page(render("voter.html", site=site, session=whole, known=known, seen=seen))
    prepared = await anyio.to_thread.run_sync(paper_for, store, session, name)
    if not cast or prepared.earlier is None:
        return Page(render_vote(prepared, seen=seen, site=site))
    groups = prepared.earlier.groups
    result = redact(await anyio.to_thread.run_sync(reveal_paper, store, prepared, groups))
    return Page(render_reveal(prepared.question, result, site=site))


@router.post("/sessions/{session:path}/vote")
async def post_vote(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Store the vote, then show who wrote what."""
    form = await form_of(request)
    store, person = ServedSessions(service, client), form.get("as")
    if not person:
        raise InvalidBallot("nobody", "cannot be cast: say who votes")
    prepared = await anyio.to_thread.run_sync(paper_for, store, session, person)
    site = site_of(request)
    try:
        await anyio.to_thread.run_sync(partial(_cast, store, prepared, form.fields))
    except InvalidBallot as error:
        seen = "seen" in form.fields
        html = render_vote(prepared, problem=str(error), given=form.fields, seen=seen, site=site)
        return Page(html, status_of(error))
    # Looked at by an address of its own: loading it again casts nothing again.
    voter = {"as": prepared.sheet.reviewer, "cast": "1"}
    return redirect(site, "sessions", prepared.session, "vote", **voter)


def _cast(store: SessionStore, paper: Paper, fields: Mapping[str, str]) -> None:
    check_unvoted(store.history, paper, replacing="replace" in fields)
    groups = ranking_of(paper.sheet, fields)
    try:
        check_code(paper, fields.get("paper"))
    except InvalidParameter:
        problem = "answers another paper; this one is yours, so please rank it anew"
        raise InvalidBallot(paper.sheet.reviewer, problem) from None
    cast_vote(store, paper, Vote(groups), seen="seen" in fields)
