"""A person's blind vote on the page: who votes, the paper, and what is behind it."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from witan.errors import InvalidBallot, InvalidParameter
from witan.history import History
from witan.history.votes import Paper, Vote, check_code, prepare_paper
from witan.service.operations.sessions import history_of
from witan.service.operations.voting import behind, check_unvoted, vote, voter
from witan.surfaces.http.access import ClientOf, ServiceOf
from witan.surfaces.http.problems import status_of
from witan.surfaces.web.forms import form_of
from witan.surfaces.web.rendering import render, render_reveal, render_vote
from witan.surfaces.web.responses import Page, redirect, site_of
from witan.surfaces.web.voting import ranking_of

__all__ = ["router"]

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
    history, whole = history_of(service), await service.named(session)
    site, name = site_of(request), person.strip()
    if not name:
        known = "" if request.app.state.clients.open else client.name
        return Page(render("voter.html", site=site, session=whole, known=known, seen=seen))
    found = await anyio.to_thread.run_sync(prepare_paper, history, whole, voter(client, name))
    if not cast or found.earlier is None:
        return Page(render_vote(found, seen=seen, site=site))
    shown = await anyio.to_thread.run_sync(behind, history, found, found.earlier.groups)
    return Page(render_reveal(found, shown, site=site))


@router.post("/sessions/{session:path}/vote")
async def cast_vote(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Keep the vote, then show who wrote what."""
    form = await form_of(request)
    history, whole = history_of(service), await service.named(session)
    person = form.get("as")
    if not person:
        raise InvalidBallot("nobody", "cannot be cast: say who votes")
    person = voter(client, person)
    found = await anyio.to_thread.run_sync(prepare_paper, history, whole, person)
    site = site_of(request)
    try:
        await anyio.to_thread.run_sync(partial(_keep, history, found, form.fields))
    except InvalidBallot as error:
        seen = "seen" in form.fields
        html = render_vote(found, problem=str(error), given=form.fields, seen=seen, site=site)
        return Page(html, status_of(error))
    # Looked at by an address of its own: loading it again casts nothing again.
    return redirect(site, "sessions", whole, "vote", **{"as": person, "cast": "1"})


def _keep(history: History, paper: Paper, fields: Mapping[str, str]) -> None:
    check_unvoted(history, paper, replacing="replace" in fields)
    groups = ranking_of(paper.sheet, fields)
    try:
        check_code(paper, fields.get("paper"))
    except InvalidParameter:
        problem = "answers another paper; this one is yours, so please rank it anew"
        raise InvalidBallot(paper.sheet.reviewer, problem) from None
    vote(history, paper, Vote(groups), seen="seen" in fields)
