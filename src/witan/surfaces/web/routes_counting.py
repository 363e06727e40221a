"""Pages that count submitted ballots, which are not stored."""

from collections.abc import Awaitable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import Request
from starlette.responses import Response

from witan.errors import InvalidParameter, WitanError
from witan.service.ballots import SentBallots
from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.operations.compare import compare
from witan.service.operations.explain import explain
from witan.service.operations.tally import tally
from witan.service.request_texts import read_texts
from witan.service.text import clean
from witan.surfaces.http.endpoints import ClientOf, ServiceOf, while_connected
from witan.surfaces.http.problems import status_of, word_error
from witan.surfaces.report import report_of
from witan.surfaces.web.forms import form_fields, read_form
from witan.surfaces.web.rendering import render
from witan.surfaces.web.responses import HtmlPage, page_router, site_of

router = page_router()

NOTHING: Mapping[str, str] = MappingProxyType({})


def add_counting_page(operation: Operation[Any, Any], title: str, button: str) -> None:
    """Add the page of an operation on ballots."""

    def write(request: Request, values: Mapping[str, str] = NOTHING, **shown: Any) -> str:
        fields = sorted(
            form_fields(operation.parameters, values, without=["ballots"]),
            key=lambda each: each.name not in ("rule", "rules"),
        )
        changed = any(values.get(each.name, "").strip() for each in fields[1:])
        return render(
            "counting.html",
            site=site_of(request),
            page=operation.name,
            title=title,
            button=button,
            text=values.get("ballots", ""),
            rule=fields[0],
            fields=fields[1:],
            changed=changed,
            **{"view": None, "problem": "", **shown},
        )

    async def show_form(request: Request) -> Response:
        return HtmlPage(write(request))

    async def count(request: Request, service: ServiceOf, client: ClientOf) -> Response:
        values = NOTHING
        try:
            form = await read_form(request)
            values = form.fields
            ballots = _ballots(values.get("ballots", ""), form.contents.values())
            parameters = read_texts(operation.parameters, form.texts, {"ballots": ballots})

            def work() -> Awaitable[str]:
                return dispatch(
                    operation,
                    service,
                    client,
                    parameters,
                    lambda result: write(request, values, view=report_of(result)),
                )

            return HtmlPage(await while_connected(request, work))
        except WitanError as error:
            problem = clean(word_error(request, error))
            return HtmlPage(write(request, values, problem=problem), status_of(error))

    path = f"/{operation.name}"
    router.add_api_route(path, show_form, methods=["GET"])
    router.add_api_route(path, count, methods=["POST"])


def _ballots(text: str, files: Iterable[bytes]) -> SentBallots:
    """Take the ballots as they were written, or from a file.

    Raises
    ------
    InvalidParameter
        If they came both ways.
    """
    contents = [*files, *([text.encode()] if text.strip() else [])]
    if len(contents) > 1:
        raise InvalidParameter("ballots", "more than one text", "one: written here, or in a file")
    return SentBallots(contents[0] if contents else text.encode())


add_counting_page(tally, "Count ballots that you have", "Count them")
add_counting_page(compare, "Compare the rules on ballots that you have", "Compare the rules")
add_counting_page(explain, "Explain an outcome step by step", "Explain it")
