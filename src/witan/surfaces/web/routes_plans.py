"""What it would cost to ask again, or to have others judge, before it is done."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.deliberation.plan import Plan
from witan.deliberation.session import Session
from witan.errors import NothingToCount
from witan.surfaces.chamber import Judging
from witan.surfaces.http.access import AskerOf, ChamberOf
from witan.surfaces.plan_text import plan_sentences
from witan.surfaces.text import clean
from witan.surfaces.views.naming import seat_called
from witan.surfaces.web.forms import Form, form_of
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import Page, site_of

__all__ = ["chosen_seats", "router"]

router = APIRouter()

Given = Sequence[tuple[str, str]]


@router.post("/sessions/{session:path}/retry/plan")
async def plan_retry(
    request: Request, session: str, chamber: ChamberOf, asker: AskerOf
) -> Response:
    """Say what asking seats that failed once more would cost at most."""
    form = await form_of(request)
    found = await chamber.session(session)
    plan = await chamber.plan_retry(found.id, chosen_seats(form, found))
    given = [("seat", each) for each in form.many.get("seat", ())]
    return _page(request, (found.id, "retry"), plan, asker.max_cost_usd, given)


@router.post("/sessions/{session:path}/rejudge/plan")
async def plan_rejudge(
    request: Request, session: str, chamber: ChamberOf, asker: AskerOf
) -> Response:
    """Say what another jury would cost at most."""
    form = await form_of(request)
    whole, profile = await chamber.named(session), form.get("profile")
    plan = await chamber.plan_rejudge(whole, Judging(profile))
    return _page(request, (whole, "rejudge"), plan, asker.max_cost_usd, [("profile", profile)])


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


def _page(
    request: Request, way: tuple[str, str], plan: Plan, ceiling: float | None, given: Given
) -> Response:
    """What is planned of a session, and a button that does it."""
    session, deed = way
    html = render(
        "plan.html",
        site=site_of(request),
        session=session,
        deed=deed,
        planned=[clean(each) for each in plan_sentences(plan, ceiling)],
        given=given,
    )
    return Page(html)
