"""The server: one service, and every door to it."""

import time
from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from witan.errors import WitanError
from witan.service.config.serve import ServeSettings
from witan.service.sessions import Service
from witan.surfaces.http import counting, health, reports, sessions
from witan.surfaces.http.door import Door, Passed
from witan.surfaces.http.event_stream import Streams
from witan.surfaces.http.logs import passed
from witan.surfaces.http.metrics import Metrics
from witan.surfaces.http.model_context import lifespan, mount
from witan.surfaces.http.problems import tell_error, tell_invalid, tell_refused
from witan.surfaces.http.tokens import Clients
from witan.surfaces.openai import chat, models
from witan.surfaces.web import routes
from witan.surfaces.web.feed import Feeds
from witan.version import __version__

__all__ = ["create_app"]

ABOUT = "Several models answer a question and review each other blind; the ballots say how sure."

NOTHING: Mapping[str, str] = {}


def create_app(
    service: Service,
    settings: ServeSettings,
    environment: Mapping[str, str] = NOTHING,
    metrics: Metrics | None = None,
) -> FastAPI:
    """The application that serves an open service.

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
    app = FastAPI(
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
    app.include_router(health.router)
    app.include_router(sessions.router)
    app.include_router(reports.router)
    app.include_router(counting.router)
    app.include_router(chat.router)
    app.include_router(models.router)
    mount(app, service, settings)
    app.include_router(routes.router)
    app.add_exception_handler(WitanError, tell_error)
    app.add_exception_handler(RequestValidationError, tell_invalid)
    app.add_exception_handler(HTTPException, tell_refused)

    def heard(request: Passed) -> None:
        app.state.metrics.passed(request)
        passed(request)

    app.add_middleware(Door, settings=settings, clients=clients, name=service.name, heard=heard)
    return app
