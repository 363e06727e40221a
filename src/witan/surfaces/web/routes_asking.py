"""The first page: a question is put to a council, or the demonstration is watched."""

from collections.abc import Mapping, Sequence

import anyio
from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.adapters.history import Place, Search
from witan.deliberation.ports import Seat
from witan.errors import InvalidParameter, WitanError
from witan.surfaces.chamber import DEMO, Asked, Chamber, Judging
from witan.surfaces.demonstration import demonstration
from witan.surfaces.http.access import AskerOf, ChamberOf, Via
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.plan_text import plan_sentences
from witan.surfaces.text import listed
from witan.surfaces.views.sessions import SessionRow, latest_rows
from witan.surfaces.web.forms import Form, form_of
from witan.surfaces.web.rendering import Choice, render_ask
from witan.surfaces.web.responses import Page, redirect, site_of

__all__ = ["router"]

router = APIRouter()


LATEST = 8
"""Sessions that the first page shows."""

SIMULATED = Choice(DEMO, "the demonstration: scripts answer, whatever is asked")


@router.get("/")
async def first(
    request: Request, chamber: ChamberOf, parent: str = "", profile: str = ""
) -> Response:
    """Ask for a question."""
    return await _form(request, chamber, {"parent": parent, "profile": profile})


@router.post("/plan")
async def plan(request: Request, chamber: ChamberOf, asker: AskerOf) -> Response:
    """Say what the question would cost at most, above the form as it was given."""
    given: Mapping[str, str] = {}
    try:
        form = await form_of(request)
        given = form.fields
        planned = await chamber.plan(_asked(form))
    except WitanError as error:
        return await _form(request, chamber, given, error)
    said = [*plan_sentences(planned, asker.max_cost_usd)]
    if form.files:
        said.append("The files were counted; choose them again to ask with them.")
    return await _form(request, chamber, given, planned=said)


@router.post("/sessions")
async def ask(
    request: Request,
    chamber: ChamberOf,
    asker: AskerOf,
    via: Via,
) -> Response:
    """Put the question to the council, and go to watch it."""
    given: Mapping[str, str] = {}
    try:
        form = await form_of(request)
        given = form.fields
        running = await chamber.ask(_asked(form, via), asker)
    except WitanError as error:
        return await _form(request, chamber, given, error)
    return redirect(site_of(request), "sessions", running.id)


def _asked(form: Form, via: tuple[str, ...] = ()) -> Asked:
    question, profile = form.get("question"), form.get("profile")
    if not question:
        raise InvalidParameter("question", "", "something to ask")
    shown = demonstration(fast=True)
    seed = shown.seed if profile == DEMO and question == shown.question else None
    options = {"mode": form.get("mode")} if form.get("mode") else {}
    return Asked(
        question,
        files=form.files,
        category=form.get("category") or None,
        parent=form.get("parent") or None,
        judging=Judging(profile, seed=seed, options=options, via=via),
    )


async def _form(
    request: Request,
    chamber: Chamber,
    given: Mapping[str, str],
    error: WitanError | None = None,
    planned: Sequence[str] = (),
) -> Response:
    councils = _councils(chamber)
    if given.get("profile") == DEMO and (given.get("parent") or error is not None):
        councils.append(SIMULATED)
    html = render_ask(
        councils,
        demo_question=demonstration(fast=True).question,
        parent=given.get("parent", ""),
        problem="" if error is None else said_of(request, error),
        planned=planned,
        given=given,
        latest=await anyio.to_thread.run_sync(_latest, chamber),
        site=site_of(request),
    )
    return Page(html, 200 if error is None else status_of(error))


def _councils(chamber: Chamber) -> list[Choice]:
    """The configured councils, by whom sits in them or what they are for."""
    found = []
    for name, profile in chamber.profiles.items():
        seats = listed([_seated(seat) for seat in profile.seats])
        about = profile.about or seats
        words = ": ".join(filter(None, [name, about])) or "the configured council"
        if name != DEMO:
            found.append(Choice(name, words, profile.problem or ""))
    return found


def _seated(seat: Seat) -> str:
    """A model as it is written, but a script by its name: it has only a file."""
    return seat.name if seat.simulated else seat.source or seat.name


def _latest(chamber: Chamber) -> tuple[SessionRow, ...]:
    if chamber.history is None:
        return latest_rows([], chamber.at_hand, most=LATEST)
    held, _ = chamber.history.page(Search(held=True), LATEST, Place())
    return latest_rows(held, chamber.under_way, most=LATEST)
