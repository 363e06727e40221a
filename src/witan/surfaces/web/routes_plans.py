"""What it would cost to ask again, or to have others judge, before it is done."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from witan.deliberation.session import Session
from witan.errors import ConfigError, InvalidParameter, NothingToCount, TooLarge, UnknownName
from witan.service.operations.plan import PlanSummary, ServedPlanner
from witan.service.requests import RejudgeRequest
from witan.service.sessions import DEMO
from witan.service.text import clean
from witan.surfaces.http.generated import ClientOf, ServiceOf
from witan.surfaces.text.plan import plan_sentences
from witan.surfaces.views.naming import seat_called
from witan.surfaces.web.asking import given_in, read_rejudging, read_retry, refused
from witan.surfaces.web.filled import Filled
from witan.surfaces.web.forms import Form, form_of
from witan.surfaces.web.options import offered
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import Page, site_of

__all__ = ["AT_A_FIELD", "chosen_seats", "jury_page", "router"]

router = APIRouter()

Given = Sequence[tuple[str, str]]

AT_A_FIELD = (ConfigError, InvalidParameter, TooLarge, UnknownName)
"""Errors of what is filled in: the form is shown again."""


@router.post("/sessions/{session:path}/retry/plan")
async def plan_retry(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Say what asking seats that failed once more would cost at most."""
    form = await form_of(request)
    found = await service.session(session)
    asked = read_retry(form, found.id, chosen_seats(form, found))
    plan = await ServedPlanner(service, client).plan_retry(asked)
    given = [("seat", each) for each in form.many.get("seat", ())]
    given.append(("max_cost_usd", form.get("max_cost_usd")))
    return _page(request, found.id, plan, given)


@router.post("/sessions/{session:path}/rejudge/plan")
async def plan_rejudge(
    request: Request, session: str, service: ServiceOf, client: ClientOf
) -> Response:
    """Say what another jury would cost at most."""
    form = await form_of(request)
    whole, given = await service.named(session), given_in(form)
    try:
        plan = await ServedPlanner(service, client).plan_rejudge(read_rejudging(form, whole))
    except (*AT_A_FIELD, ValidationError) as error:
        return jury_page(request, whole, refused(request, given, error))
    return jury_page(request, whole, Filled(given), [*plan_sentences(plan)])


def jury_page(
    request: Request, session: str, filled: Filled, planned: Sequence[str] = ()
) -> Response:
    """The form that has another jury judge a session."""
    site = site_of(request)
    html = render(
        "rejudge.html",
        site=site,
        session=session,
        juries=[name for name in site.juries if name != DEMO or filled.said("profile") == DEMO],
        groups=offered(RejudgeRequest, without=("session", "profile")),
        filled=filled,
        planned=[clean(each) for each in planned],
    )
    return Page(html, filled.status)


def chosen_seats(form: Form, session: Session) -> tuple[str, ...]:
    """The seats that are ticked in a form.

    Raises
    ------
    NothingToCount
        If none is.
    """
    seats = tuple(seat_called(session, each) for each in form.many.get("seat", ()))
    if not seats:
        raise NothingToCount("no seat is chosen: tick at least one of those that failed")
    return seats


def _page(request: Request, session: str, plan: PlanSummary, given: Given) -> Response:
    """What is planned of a session, and a button that does it."""
    html = render(
        "plan.html",
        site=site_of(request),
        session=session,
        planned=[clean(each) for each in plan_sentences(plan)],
        given=given,
    )
    return Page(html)
