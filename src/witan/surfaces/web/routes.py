"""The pages: one router, of no account to programs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from witan.errors import UnknownName
from witan.surfaces.http.addresses import known_parameters
from witan.surfaces.web import (
    routes_asking,
    routes_plans,
    routes_reports,
    routes_sessions,
    routes_tally,
    routes_votes,
    signing_in,
)
from witan.surfaces.web.assets import ASSETS, asset
from witan.surfaces.web.responses import Compressed

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
"""What an asset holds is part of its address."""

router = APIRouter(include_in_schema=False, dependencies=[Depends(known_parameters)])


@router.get("/assets/{name}")
async def asset_named(
    name: str, digest: Annotated[str | None, Query(alias="v")] = None
) -> Response:
    """Give a file that pages are made of."""
    if name not in ASSETS:
        raise UnknownName("asset", name, sorted(ASSETS))
    # Without the digest of what it holds the address says nothing of what it will hold.
    headers = FOR_GOOD if digest is not None else {"Cache-Control": "no-cache"}
    return Compressed(asset(name), headers=headers, media_type=ASSETS[name])


router.include_router(signing_in.router)
router.include_router(routes_asking.router)
router.include_router(routes_reports.router)
router.include_router(routes_tally.router)
# Last, as names of sessions may hold anything.
router.include_router(routes_votes.router)
router.include_router(routes_plans.router)
router.include_router(routes_sessions.router)
