"""The page that counts ballots somebody brings along; nothing of them is stored."""

from collections.abc import Mapping
from types import MappingProxyType

from fastapi import APIRouter, Request
from starlette.responses import Response

from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter, WitanError
from witan.files.ballots import FORMATS
from witan.service.ballots import SentBallots
from witan.service.dispatch import dispatch
from witan.service.error_boundary import as_form
from witan.service.operations.tally import Tally, TallyParameters, tally
from witan.service.request_texts import read_texts
from witan.service.text import clean
from witan.surfaces.http.generated import ClientOf, ServiceOf, while_connected
from witan.surfaces.http.problems import said_of, status_of
from witan.surfaces.views.tally import TallyView, tally_view
from witan.surfaces.web.forms import sent_of
from witan.surfaces.web.generated import form_fields
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import Page, site_of

router = APIRouter()

CHOICES = {"rule": (AUTO, *RULES), "format": tuple(FORMATS)}


@router.get("/tally")
async def form(request: Request) -> Response:
    """Ask for ballots."""
    return Page(_page(request))


@router.post("/tally")
async def count(request: Request, service: ServiceOf, client: ClientOf) -> Response:
    """Count the ballots that are sent."""
    texts: Mapping[str, str] = {}
    try:
        sent = await sent_of(request)
        texts = {name: sent.text(name) for name in sent.many}
        ballots = _ballots(texts.get("ballots", ""), [*sent.contents.values()])
        given = read_texts(TallyParameters, sent.many, {"ballots": ballots})

        def show(result: Tally) -> str:
            return _page(request, texts, view=tally_view(result))

        html = await while_connected(request, lambda: dispatch(tally, service, client, given, show))
    except WitanError as error:
        return Page(
            _page(request, texts, problem=as_form(said_of(request, error))), status_of(error)
        )
    return Page(html)


def _ballots(text: str, files: list[bytes]) -> SentBallots:
    """Take the ballots as they were written, or from a file.

    Raises
    ------
    InvalidParameter
        If they came both ways.
    """
    if len(files) + bool(text.strip()) > 1:
        raise InvalidParameter("ballots", "more than one text", "one: written here, or in a file")
    return SentBallots(files[0] if files else text.encode())


def _page(
    request: Request,
    texts: Mapping[str, str] = MappingProxyType({}),
    *,
    view: TallyView | None = None,
    problem: str = "",
) -> str:
    [rule, *fields] = sorted(
        form_fields(tally, texts, CHOICES, without=["ballots"]),
        key=lambda each: each.name != "rule",
    )
    return render(
        "tally.html",
        site=site_of(request),
        text=texts.get("ballots", ""),
        rule=rule,
        fields=fields,
        changed=any(texts.get(each.name, "").strip() for each in fields),
        view=view,
        problem=clean(problem),
    )
