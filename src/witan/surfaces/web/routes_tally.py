"""The page that counts ballots somebody brings along; nothing of them is kept."""

from collections.abc import Mapping
from types import MappingProxyType

from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter, WitanError
from witan.service.error_wording import as_form
from witan.service.operations.ballots import BallotUpload, tally_of
from witan.service.text import clean
from witan.service.worker_pool import run_counting
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.http.staying import while_there
from witan.surfaces.views.tally import TallyView, tally_view
from witan.surfaces.web.counting import FIELDS, changed, columns_of, sessions_of, settings_of
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
    given: Mapping[str, str] = {}
    try:
        sent = await sent_of(request)
        given = {name: sent.text(name) for name in sent.many}
        content = _content(sent.text("ballots"), [*sent.contents.values()])
        scale = given.get("scale", "").strip() or None
        posted = BallotUpload(content, given.get("format") or None, columns_of(given), scale)
        settings, sessions = settings_of(sent.text("rule"), given), sessions_of(given)

        def tell() -> str:
            view = tally_view(posted, tally_of(posted, settings, sessions))
            return _page(request, given, view=view)

        html = await while_there(request, lambda: run_counting(tell, "brought"))
    except WitanError as error:
        return Page(
            _page(request, given, problem=as_form(said_of(request, error))), status_of(error)
        )
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
    given: Mapping[str, str] = MappingProxyType({}),
    *,
    view: TallyView | None = None,
    problem: str = "",
) -> str:
    return render(
        "tally.html",
        site=site_of(request),
        text=given.get("ballots", ""),
        rule=given.get("rule") or AUTO,
        fields=FIELDS,
        given=given,
        changed=changed(given),
        rules=[(AUTO, "auto, whatever suits the ballots"), *((name, name) for name in RULES)],
        view=view,
        problem=clean(problem),
    )
