"""Where the Model Context Protocol is spoken: one path, if what speaks it is installed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from witan.errors import MissingExtra
from witan.service.config.serve import ServeSettings
from witan.service.sessions import Service

__all__ = ["lifespan", "mount"]

PATH = "/mcp"


def mount(app: FastAPI, service: Service, settings: ServeSettings) -> None:
    """Have the protocol spoken at its path, for the lifespan of the application."""
    app.state.model_context = None
    if find_spec("mcp") is None:
        app.router.routes.append(Route(PATH, _missing, methods=["GET", "POST", "DELETE"]))
        return
    from witan.surfaces.mcp.mounting import Mounted

    app.state.model_context = mounted = Mounted(PATH, service, settings)
    app.router.routes.append(mounted.route)


async def _missing(request: Request) -> Response:  # noqa: ARG001 - as every route
    raise MissingExtra("the Model Context Protocol", "mcp")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Keep what the protocol needs while the application is served."""
    mounted = app.state.model_context
    if mounted is None:
        yield
        return
    async with mounted.run():
        yield
