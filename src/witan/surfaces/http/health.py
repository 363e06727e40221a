"""How the server does: for load balancers, and for Prometheus."""

from typing import Any

from fastapi import APIRouter, Request, Response

from witan.surfaces.http import examples
from witan.surfaces.http.access import ServiceOf
from witan.surfaces.http.metrics import MEDIA_TYPE
from witan.version import __version__

__all__ = ["router"]

router = APIRouter(tags=["server"])


@router.get("/healthz", summary="Whether the server takes questions", responses=examples.HEALTH)
async def healthz(service: ServiceOf, response: Response) -> dict[str, Any]:
    """Answer 200 while questions are taken, 503 once the server is about to stop."""
    if service.draining:
        response.status_code = 503
    return {
        "status": "stopping" if service.draining else "ok",
        "witan": __version__,
        "under_way": len(service.under_way),
    }


@router.get(
    "/metrics",
    summary="What the server has counted",
    response_class=Response,
    responses=examples.METRICS,
)
async def metrics(request: Request, service: ServiceOf) -> Response:
    """Give every counter in the text format of Prometheus."""
    state = request.app.state
    text = state.metrics.text(len(service.under_way), state.streams.open)
    return Response(text, media_type=MEDIA_TYPE)
