"""The councils of a service as models of OpenAI's protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from witan.errors import UnknownName
from witan.service.json_output import to_json
from witan.service.sessions import DEMO, Profile, Service
from witan.surfaces.http.access import ServiceOf
from witan.surfaces.http.documents import TOKEN
from witan.surfaces.openai import documents

__all__ = ["BEST", "Offered", "offered", "router"]

NAME = "witan"

BEST = f"{NAME}/best"
"""The configured council, whose best answer stands for the final answer."""

router = APIRouter(prefix="/v1", tags=["OpenAI"], dependencies=[Depends(TOKEN)])

ModelNamed = Annotated[str, Path(openapi_examples={"the demonstration": {"value": "witan/demo"}})]


@dataclass(frozen=True, slots=True)
class Offered:
    """A council under the name of a model.

    Parameters
    ----------
    options
        What the name says of how it deliberates.
    """

    name: str
    profile: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def offered(service: Service, name: str) -> Offered:
    """The council that goes by this name.

    Raises
    ------
    UnknownName
        If there is none; one that cannot be asked is there, and says why when it is.
    """
    known = {each.name: each for each in _all(service)}
    if name not in known:
        raise UnknownName("model", name, [each.name for each in _askable(service)])
    return known[name]


@router.get(
    "/models",
    summary="The councils that can be asked, as models",
    responses=documents.MODELS,
)
async def models(request: Request, service: ServiceOf) -> Response:
    """List the configured council, its profiles and the demonstration."""
    shown = [_model(request, service, each) for each in _askable(service)]
    return _json({"object": "list", "data": shown})


@router.get("/models/{model:path}", summary="One of them", responses=documents.MODEL)
async def model(request: Request, model: ModelNamed, service: ServiceOf) -> Response:
    """Show one council that can be asked."""
    found = {each.name: each for each in _askable(service)}
    if model not in found:
        raise UnknownName("model", model, found)
    return _json(_model(request, service, found[model]))


def _all(service: Service) -> list[Offered]:
    profiles = [Offered(f"{NAME}/{name}", name) for name in service.profiles if name]
    return [Offered(NAME, ""), Offered(BEST, "", MappingProxyType({"mode": "best"})), *profiles]


def _askable(service: Service) -> list[Offered]:
    return [each for each in _all(service) if service.profiles[each.profile].problem is None]


def _model(request: Request, service: Service, offered: Offered) -> dict[str, Any]:
    profile = service.profiles[offered.profile]
    return {
        "id": offered.name,
        "object": "model",
        "created": request.app.state.created,
        "owned_by": NAME,
        "witan": _council(profile, offered),
    }


def _council(profile: Profile, offered: Offered) -> dict[str, Any]:
    about = profile.about or f"the profile {profile.name}"
    if not profile.name:
        about = "the council as it is configured"
    mode = None if profile.procedure is None else profile.procedure.mode
    return {
        "about": "a demonstration: scripts answer" if profile.name == DEMO else about,
        "mode": offered.options.get("mode", mode),
        "members": [seat.name for seat in profile.seats],
        "jury": [seat.name for seat in profile.jury],
        "chairmen": [seat.name for seat in profile.chairmen],
        "simulated": profile.simulated,
    }


def _json(value: object) -> Response:
    return Response(to_json(value), media_type="application/json")
