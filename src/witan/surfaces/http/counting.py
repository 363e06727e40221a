"""The native API: ballots that somebody brings along, counted and forgotten."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response

from witan.service.operations import ballots as posted
from witan.service.operations.recount import settings_given
from witan.surfaces.http import examples
from witan.surfaces.http.documents import operations
from witan.surfaces.http.replies import reply_in_turn

__all__ = ["router"]

router = operations("counting")

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

SCALE = "LOW-HIGH: the scale of grades, such as 0-1 or pass-fail; recognised unless given."

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
    scale: Annotated[str | None, Query(description=SCALE)] = None,
) -> posted.BallotUpload:
    """The ballots that are sent.

    Raises
    ------
    InvalidParameter
        If a column is not written so.
    """
    return posted.BallotUpload(
        await request.body(), format, posted.columns_given(column or ()), scale
    )


async def _settings(request: Request) -> Mapping[str, Any]:
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


BallotsOf = Annotated[posted.BallotUpload, Depends(_ballots)]
SettingsOf = Annotated[Mapping[str, Any], Depends(_settings)]
Rule = Annotated[str | None, Query(description="One of `GET /api/rules`; unless given, `auto`.")]


@router.post(
    "/tally",
    summary="Count ballots",
    openapi_extra=FILE,
    responses=examples.COUNTED,
)
async def tally(
    request: Request,
    ballots: BallotsOf,
    given: SettingsOf,
    rule: Rule = None,
    session: Annotated[list[str] | None, Query(description="Only these sessions.")] = None,
) -> Response:
    """Count the ballots that are sent, in any format of a ballot file; nothing is kept."""
    settings = settings_given(rule, given)
    return await reply_in_turn(
        request, lambda: posted.tallied(ballots, settings, session or ()), "brought"
    )


@router.post(
    "/compare",
    summary="Count under every rule",
    openapi_extra=FILE,
    responses=examples.COMPARED,
)
async def compare(
    request: Request,
    ballots: BallotsOf,
    given: SettingsOf,
    rules: Annotated[str | None, Query(description="Rules, comma-separated.")] = None,
    session: Annotated[list[str] | None, Query(description="Only these sessions.")] = None,
) -> Response:
    """Count the ballots that are sent under every rule, side by side."""
    settings = settings_given(None, given)
    names = [name.strip() for name in (rules or "").split(",") if name.strip()]

    def count() -> dict[str, Any]:
        comparison = posted.comparison_of(ballots, settings, names, session or ())
        return posted.comparison_reply(ballots, comparison)

    return await reply_in_turn(request, count, "brought")


@router.post(
    "/explain",
    summary="How it was counted",
    openapi_extra=FILE,
    responses=examples.EXPLAINED,
)
async def explain(
    request: Request,
    ballots: BallotsOf,
    given: SettingsOf,
    rule: Rule = None,
    session: Annotated[
        str | None, Query(description="Needed where the ballots are of several sessions.")
    ] = None,
) -> Response:
    """Show step by step how the ballots of a session make its outcome."""
    settings = settings_given(rule, given)
    return await reply_in_turn(
        request, lambda: posted.explained(ballots, settings, session), "brought"
    )
