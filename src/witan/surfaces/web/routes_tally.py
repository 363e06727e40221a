"""The page that counts ballots somebody brings along; nothing of them is kept."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter, WitanError
from witan.surfaces.discretion import outward
from witan.surfaces.http.problems import status_of
from witan.surfaces.inquiries.in_turn import in_turn
from witan.surfaces.inquiries.posted import Posted, tally_of
from witan.surfaces.inquiries.recounting import settings_given
from witan.surfaces.text import clean
from witan.surfaces.views.tally import TallyView, tally_view
from witan.surfaces.web.forms import sent_of
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import Page, site_of

__all__ = ["router"]

router = APIRouter()


@router.get("/tally")
async def form(request: Request) -> Response:
    """Ask for ballots."""
    return Page(_page(request))


@router.post("/tally")
async def count(request: Request) -> Response:
    """Count the ballots that are sent."""
    text, rule = "", ""
    try:
        sent = await sent_of(request)
        text, rule = sent.text("ballots"), sent.text("rule")
        posted = Posted(_content(text, [*sent.contents.values()]))
        settings = settings_given(rule or None, {})
        html = await in_turn(
            lambda: _page(request, text, rule, view=tally_view(posted, tally_of(posted, settings)))
        )
    except WitanError as error:
        return Page(_page(request, text, rule, problem=outward(error)), status_of(error))
    return Page(html)


def _content(text: str, files: list[bytes]) -> bytes:
    """The ballots, as they were written or in a file.

    Raises
    ------
    InvalidParameter
        If they came both ways.
    """
    if len(files) + bool(text.strip()) > 1:
        raise InvalidParameter("ballots", "more than one text", "one: written here, or in a file")
    return files[0] if files else text.encode()


def _page(
    request: Request,
    text: str = "",
    rule: str = "",
    *,
    view: TallyView | None = None,
    problem: str = "",
) -> str:
    return render(
        "tally.html",
        site=site_of(request),
        text=text,
        rule=rule or AUTO,
        rules=[(AUTO, "auto, whatever suits the ballots"), *((name, name) for name in RULES)],
        view=view,
        problem=clean(problem),
    )
