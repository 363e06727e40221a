"""The application: one service with every route to it."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from witan.errors import MissingExtra, WitanError
from witan.service.config.serve import ServeSettings
from witan.service.sessions import Service
from witan.surfaces.http import routes
from witan.surfaces.http.door import Clients, Door, FinishedRequest
from witan.surfaces.http.events import Streams
from witan.surfaces.http.logs import log_request
from witan.surfaces.http.metrics import Metrics
from witan.surfaces.http.openapi import complete_document
from witan.surfaces.http.problems import respond_to_error, respond_to_invalid, respond_to_refused
from witan.surfaces.openai import routes as openai_routes
from witan.surfaces.web import routes as page_routes
from witan.surfaces.web.live import Feeds
from witan.version import __version__

ABOUT = "Several models answer a question and review each other blind; the ballots say how sure."

MCP_PATH = "/mcp"

NOTHING: Mapping[str, str] = {}


class Application(FastAPI):
    """The application of FastAPI, with a document whose every field is typed."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        if self.openapi_schema is None:
            self.openapi_schema = complete_document(super().openapi())
        return self.openapi_schema


def create_app(
    service: Service,
    settings: ServeSettings,
    environment: Mapping[str, str] = NOTHING,
    metrics: Metrics | None = None,
) -> FastAPI:
    """Make the application that serves an open service.

    Parameters
    ----------
    environment
        Where the tokens are that the settings name.
    metrics
        What the service is observed by, too.

    Raises
    ------
    ConfigError
        If a token is not there, is too short, or is another's, too.
    """
    app = Application(
        title="Witan",
        summary=ABOUT,
        version=__version__,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    clients = Clients(settings, environment)
    app.state.service = service
    app.state.settings = settings
    app.state.clients = clients
    app.state.streams = Streams()
    app.state.feeds = Feeds()
    app.state.created = int(time.time())
    app.state.metrics = Metrics() if metrics is None else metrics
    # An included router would describe each of its routes anew for every application.
    app.router.routes += routes.server_router.routes + routes.router.routes
    app.router.routes += openai_routes.router.routes
    mount(app, service, settings)
    app.router.routes += page_routes.router.routes
    app.add_exception_handler(WitanError, respond_to_error)
    app.add_exception_handler(RequestValidationError, respond_to_invalid)
    app.add_exception_handler(HTTPException, respond_to_refused)

    def on_finished(request: FinishedRequest) -> None:
        app.state.metrics.count_request(request)
        log_request(request)

    app.add_middleware(
        Door, settings=settings, clients=clients, name=service.name, on_finished=on_finished
    )
    return app


def mount(app: FastAPI, service: Service, settings: ServeSettings) -> None:
    """Serve the Model Context Protocol at its path, if it is installed."""
    app.state.model_context = None
    if find_spec("mcp") is None:
        app.router.routes.append(Route(MCP_PATH, _missing, methods=["GET", "POST", "DELETE"]))
        return
    from witan.surfaces.mcp.server import Mounted

    app.state.model_context = mounted = Mounted(MCP_PATH, service, settings)
    app.router.routes.append(mounted.route)


async def _missing(request: Request) -> Response:  # noqa: ARG001 - as every route
    raise MissingExtra("the Model Context Protocol", "mcp")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Run the Model Context Protocol while the application is served."""
    mounted = app.state.model_context
    if mounted is None:
        yield
        return
    async with mounted.run():
        yield
