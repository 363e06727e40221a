"""The first page: a question is put to a council, or the demonstration is watched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import anyio
from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from witan.deliberation.ports import Seat
from witan.errors import WitanError
from witan.history import Search
from witan.service.demonstration import demonstration
from witan.service.error_boundary import as_form
from witan.service.operations.plan import ServedPlanner
from witan.service.requests import QuestionRequest
from witan.service.sessions import DEMO, Service
from witan.service.text import clean, listed
from witan.surfaces.http.generated import ClientOf, Hops, ServiceOf
from witan.surfaces.text.plan import plan_sentences
from witan.surfaces.views.sessions import SessionRow, latest_rows
from witan.surfaces.web.asking import given_in, read_question, refused
from witan.surfaces.web.filled import Filled
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
    request: Request, service: ServiceOf, parent: str = "", profile: str = ""
) -> Response:
    """Ask for a question."""
    return await _form(request, service, Filled({"parent": parent, "profile": profile}))


@router.post("/plan")
async def plan(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """Say what the question would cost at most, above the form as it was given."""
    given: Mapping[str, str] = {}
    try:
        form = await form_of(request)
        given = given_in(form)
        planned = await ServedPlanner(service, client).plan(_asked(form))
    except (WitanError, ValidationError) as error:
        return await _form(request, service, refused(request, given, error))
    said = [*plan_sentences(planned)]
    if form.files:
        said.append("The files were counted; choose them again to ask with them.")
    return await _form(request, service, Filled(given), planned=said)


@router.post("/sessions")
async def ask(
    request: Request,
    service: ServiceOf,
    client: ClientOf,
    hops: Hops,
) -> Response:
    """Put the question to the council, and go to watch it."""
    given: Mapping[str, str] = {}
    try:
        form = await form_of(request)
        given = given_in(form)
        running = await service.ask(_asked(form), client, hops)
    except (WitanError, ValidationError) as error:
        return await _form(request, service, refused(request, given, error))
    return redirect(site_of(request), "sessions", running.id)


def _asked(form: Form) -> QuestionRequest:
    asked = read_question(form)
    shown = demonstration(fast=True)
    if asked.profile != DEMO or asked.question != shown.question or asked.seed is not None:
        return asked
    return replace(asked, seed=shown.seed)


async def _form(
    request: Request, service: Service, filled: Filled, planned: Sequence[str] = ()
) -> Response:
    councils = _councils(service)
    if filled.said("profile") == DEMO and (filled.said("parent") or filled.problem):
        councils.append(SIMULATED)
    html = render_ask(
        councils,
        demo_question=demonstration(fast=True).question,
        filled=filled,
        planned=planned,
        latest=await anyio.to_thread.run_sync(_latest, service),
        site=site_of(request),
    )
    return Page(html, filled.status)


def _councils(service: Service) -> list[Choice]:
    """The configured councils, by whom sits in them or what they are for."""
    found = []
    for name, profile in service.profiles.items():
        seats = listed([_seated(seat) for seat in profile.seats])
        if profile.jury:
            seats += f", judged by {listed([_seated(seat) for seat in profile.jury])}"
        about = profile.about or seats
        words = ": ".join(filter(None, [name, about])) or "the configured council"
        if name != DEMO:
            who, writers = _named((*profile.seats, *profile.jury)), _named(profile.chairmen)
            found.append(Choice(name, words, as_form(profile.problem or ""), who, writers))
    return found


def _named(seats: Iterable[Seat]) -> tuple[tuple[str, str], ...]:
    """Each seat by its name, and the model beside it where that says more."""
    called = ((seat.name, clean(_seated(seat))) for seat in seats)
    return tuple(
        (name, clean(name) if model == clean(name) else f"{clean(name)} ({model})")
        for name, model in called
    )


def _seated(seat: Seat) -> str:
    """A model as it is written, but a script by its name: it has only a file."""
    return seat.name if seat.simulated else seat.source or seat.name


def _latest(service: Service) -> tuple[SessionRow, ...]:
    if service.history is None:
        return latest_rows([], service.at_hand, most=LATEST)
    held, _ = service.history.page(Search(has_events=True), LATEST)
    return latest_rows(held, service.under_way, most=LATEST)
