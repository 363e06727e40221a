"""The native API: ballots that somebody brings along, counted and forgotten."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import Response as PlainResponse

from witan.errors import InvalidParameter
from witan.surfaces.http import examples
from witan.surfaces.http.documents import ANY_TIME, TOKEN
from witan.surfaces.http.parameters import known_parameters
from witan.surfaces.inquiries import posted
from witan.surfaces.inquiries.in_turn import in_turn
from witan.surfaces.inquiries.recounting import settings_given
from witan.surfaces.json_output import to_json

__all__ = ["router"]

router = APIRouter(
    prefix="/api",
    tags=["counting"],
    dependencies=[Depends(TOKEN), Depends(known_parameters)],
    responses=ANY_TIME,
)

BALLOTS = {
    "application/x-ndjson": {
        "schema": {"type": "string"},
        "example": '{"session": "q1", "reviewer": "ada", "ranking": ["b", "c"]}\n'
        '{"session": "q1", "reviewer": "bob", "ranking": ["c", "a"]}\n',
    },
    "text/csv": {
        "schema": {"type": "string"},
        "example": "session,reviewer,candidate,rank\nq1,ada,b,1\nq1,ada,c,2\n",
    },
}
"""Ballots as they can be sent; every format of a ballot file is recognised."""

COUNTING = ("ties", "level", "threshold", "tie_break", "recusal", "unranked", "kind", "rho")
"""Settings of counting that can stand in the address."""

NUMBERS = ("level", "threshold", "rho")

FILE = {
    "requestBody": {"required": True, "content": BALLOTS},
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {"type": "number" if name in NUMBERS else "string"},
            "description": "As the setting of counting.",
        }
        for name in COUNTING
    ],
}


async def _ballots(
    request: Request,
    format: Annotated[  # noqa: A002 - as the command line calls it
        str | None, Query(description="That of a ballot file; recognised unless given.")
    ] = None,
    column: Annotated[
        list[str] | None,
        Query(description="FIELD=HEADER: which column holds a field, such as reviewer=judge."),
    ] = None,
) -> posted.Posted:
    """The ballots that are sent.

    Raises
    ------
    InvalidParameter
        If a column is not written so.
    """
    columns = {}
    for written in column or ():
        field, equals, header = written.partition("=")
        if not (field.strip() and equals):
            raise InvalidParameter("column", written, "FIELD=HEADER, such as reviewer=judge")
        columns[field.strip()] = header.strip()
    return posted.Posted(await request.body(), format, columns or None)


BallotsOf = Annotated[posted.Posted, Depends(_ballots)]


async def _told_in_turn(work: Callable[[], object]) -> Response:
    """What comes of it, as JSON; it counts in a thread, once it is its turn."""
    return await in_turn(lambda: PlainResponse(to_json(work()), media_type="application/json"))


@router.post(
    "/tally",
    summary="Count ballots",
    openapi_extra=FILE,
    responses=examples.COUNTED,
)
async def tally(
    request: Request,
    *,
    ballots: BallotsOf,
    rule: Annotated[str | None, Query()] = None,
    session: Annotated[list[str] | None, Query(description="Only these sessions.")] = None,
) -> Response:
    """Count the ballots that are sent, in any format of a ballot file; nothing is kept."""
    settings = settings_given(rule, _settings(request))
    return await _told_in_turn(lambda: posted.tallied(ballots, settings, session or ()))


@router.post(
    "/compare",
    summary="Count under every rule",
    openapi_extra=FILE,
    responses=examples.COMPARED,
)
async def compare(
    request: Request,
    *,
    ballots: BallotsOf,
    rules: Annotated[str | None, Query(description="Rules, comma-separated.")] = None,
) -> Response:
    """Count the ballots that are sent under every rule, side by side."""
    settings = settings_given(None, _settings(request))
    names = [name.strip() for name in (rules or "").split(",") if name.strip()]
    return await _told_in_turn(lambda: posted.compared(ballots, settings, names))


@router.post(
    "/explain",
    summary="How it was counted",
    openapi_extra=FILE,
    responses=examples.EXPLAINED,
)
async def explain(
    request: Request,
    *,
    ballots: BallotsOf,
    rule: Annotated[str | None, Query()] = None,
    session: Annotated[
        str | None, Query(description="Needed where the ballots are of several sessions.")
    ] = None,
) -> Response:
    """Show step by step how the ballots of a session make its outcome."""
    settings = settings_given(rule, _settings(request))
    return await _told_in_turn(lambda: posted.explained(ballots, settings, session))


def _settings(request: Request) -> Mapping[str, Any]:
    """The settings of counting among the parameters of the address."""
    given: dict[str, Any] = {}
    for name in COUNTING:
        text = request.query_params.get(name)
        if text is not None:
            given[name] = _number(text) if name in NUMBERS else text
    return given


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
