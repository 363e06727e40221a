"""The native API: what is kept, counted again and summed up, and what there is to choose from."""

from typing import Annotated, Literal

from fastapi import Depends, Query, Response

from witan.core.window import Window
from witan.service.dates import moment
from witan.service.operations import reports
from witan.service.operations.audit import audit
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.recount import recount
from witan.service.operations.rubrics import rubrics
from witan.service.operations.rules import rules
from witan.service.operations.sessions import history_of
from witan.service.operations.sessions import profiles as catalogue_of
from witan.service.operations.voting import paper, vote
from witan.surfaces.http import examples
from witan.surfaces.http.access import ServiceOf
from witan.surfaces.http.documents import operations
from witan.surfaces.http.generated import add_value_route
from witan.surfaces.http.replies import reply, reply_once_read

router = operations()

Level = Annotated[float, Query(gt=0, lt=1, description="Level of intervals.")]
Status = Literal["complete", "degraded", "failed", "interrupted"]


async def _window(
    since: Annotated[str | None, Query(description="From then on: 30d, 12h, 2026-01-31 …")] = None,
    until: Annotated[str | None, Query(description="Before then, written likewise.")] = None,
    category: Annotated[str | None, Query(description="Sessions of this category.")] = None,
) -> Window:
    """Which sessions are meant.

    Raises
    ------
    InvalidParameter
        If a time is none.
    """
    return Window(moment("since", since), moment("until", until), category)


WindowOf = Annotated[Window, Depends(_window)]


@router.get(
    "/sessions", tags=["sessions"], summary="The sessions that are kept", responses=examples.FOUND
)
async def sessions(
    service: ServiceOf,
    *,
    text: Annotated[str | None, Query(description="Words of the question or closing text.")] = None,
    window: WindowOf,
    status: Status | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    simulated: Annotated[bool | None, Query(description="Those of scripts; unset: all.")] = None,
    parent: Annotated[str | None, Query(description="Those that came of this one.")] = None,
) -> Response:
    """List sessions, the latest first."""
    history = history_of(service)

    def find() -> object:
        found = history.find(
            text,
            since=window.since,
            until=window.until,
            category=window.category,
            status=status,
            limit=limit,
            simulated=simulated,
            parent=parent,
        )
        return reports.sessions(history, found)

    return await reply_once_read(find)


add_value_route(router, recount)
add_value_route(router, paper)
add_value_route(router, vote)
add_value_route(router, leaderboard)


add_value_route(router, audit)
add_value_route(router, rules)
add_value_route(router, rubrics)


@router.get(
    "/profiles",
    tags=["sessions"],
    summary="The councils that can be asked",
    responses=examples.PROFILES,
)
async def profiles(service: ServiceOf) -> Response:
    """Say who sits in each, how it deliberates, and why one cannot be asked."""
    return reply(catalogue_of(service))
