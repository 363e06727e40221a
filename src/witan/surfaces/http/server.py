"""A running server: its application, its socket, accepted connections, and its end."""

import asyncio
import ctypes
import errno
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from witan.errors import ConfigError, MissingExtra, WitanError
from witan.service.config.serve import ServeSettings
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession
from witan.service.text import count_noun
from witan.service.worker_pool import cancel_counting
from witan.surfaces.http import routes
from witan.surfaces.http.connections import MOST_SURPLUS, Connection, ServerConnections
from witan.surfaces.http.door import Clients, Door, FinishedRequest
from witan.surfaces.http.endpoints import Streams
from witan.surfaces.http.observers import Metrics, log_request
from witan.surfaces.http.openapi import complete_document
from witan.surfaces.http.problems import respond_to_error, respond_to_invalid, respond_to_refused
from witan.surfaces.openai import routes as openai_routes
from witan.surfaces.web import routes as page_routes
from witan.surfaces.web.live import Feeds
from witan.version import __version__

ABOUT = (
    "Several models answer a question and review each other blind; the ballots show how certain "
    "the result is."
)

MCP_PATH = "/mcp"

NOTHING: Mapping[str, str] = {}


class Application(FastAPI):
    """The FastAPI application; its OpenAPI document types every field."""

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

    `environment` has the tokens that the settings name; `metrics` also observes the service.
    """
    app = Application(
        title="Witan",
        summary=ABOUT,
        version=__version__,
        # Those pages load scripts from other hosts.
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
    # `include_router` would describe every route again for each application.
    app.router.routes += routes.server_router.routes + routes.router.routes
    app.router.routes += openai_routes.router.routes
    mount(app, service, settings)
    app.router.routes += page_routes.router.routes
    app.add_exception_handler(WitanError, respond_to_error)
    app.add_exception_handler(RequestValidationError, respond_to_invalid)
    app.add_exception_handler(HTTPException, respond_to_refused)

    def on_finish(request: FinishedRequest) -> None:
        app.state.metrics.count_request(request)
        log_request(request)

    app.add_middleware(
        Door, settings=settings, clients=clients, name=service.name, on_finish=on_finish
    )
    return app


def mount(app: FastAPI, service: Service, settings: ServeSettings) -> None:
    """Serve the Model Context Protocol at its path, if it is installed."""
    app.state.model_context = None
    if find_spec("mcp") is None:
        app.router.routes.append(Route(MCP_PATH, _refuse_mcp, methods=["GET", "POST", "DELETE"]))
        return
    from witan.surfaces.mcp.server import MountedApp

    app.state.model_context = mounted = MountedApp(MCP_PATH, service, settings)
    app.router.routes.append(mounted.route)


async def _refuse_mcp(request: Request) -> Response:  # noqa: ARG001 - as every route
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


M_ARENA_MAX, MOST_ARENAS = -8, 2
"""An option of glibc's `mallopt`, and its value."""

MOST_NAMED = 10
"""Most interrupted sessions to name."""

COUNTING_SECONDS = 5.0
"""Seconds that a stopping server waits for counts."""

Say = Callable[[str], None]

BACKLOG = 2048

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

NOT_SENT_BYTES = 16 * 1024
"""Unsent bytes that the kernel buffers for a connection."""

RETRY_SECONDS = 0.02
"""Seconds until the next attempt to accept, when files run out."""

FILES_A_SESSION = 8
"""Files for a running session: its calls, and its history."""

SWITCH_SECONDS = 0.0005
"""Longest time that a thread keeps the interpreter while others wait.

A query acquires it for every row. With Python's default of 5 ms it would wait that long each time
while sessions are busy, and a session would wait as long during a count.
"""

FILES_BESIDE = 64
"""Files for everything else: the history, logs, programs."""


class Server(uvicorn.Server):
    """A server with deadlines for connections, stopped by its caller."""

    def __init__(self, app: Any, settings: ServeSettings, metrics: Metrics) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            # Connections have their own deadlines; this is a fallback.
            timeout_keep_alive=ceil(settings.idle_seconds) + 60,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(
            lambda record: record.levelno != logging.WARNING  # warnings are about clients
        )
        most = connection_room(settings)
        spare = partial(Path(os.devnull).open, "rb")
        self.open_connections = ServerConnections(settings, most, metrics.connection_closed, spare)
        metrics.connections = self.open_connections.__len__
        self._sockets: list[socket.socket] = []

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Do not handle signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Register the sockets to accept connections from."""
        self._sockets = sockets or []
        self.servers = []
        self.started = True

    async def main_loop(self) -> None:
        """Accept connections until the server should stop."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.open_connections.watch)
            for listening in self._sockets:
                group.start_soon(self._accept, listening)
            await super().main_loop()
            group.cancel_scope.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listener.setblocking(False)
        uvicorn_state = {"config": self.config, "server_state": self.server_state, "app_state": {}}
        connect = partial(Connection, self.open_connections, **uvicorn_state)
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in OUT_OF_FILES:
                    self.open_connections.find_file()
                await anyio.sleep(RETRY_SECONDS)
                continue
            _hold_little(accepted)
            try:
                await loop.connect_accepted_socket(connect, accepted)
            except OSError:  # the client has closed it
                accepted.close()


def _hold_little(connection: socket.socket) -> None:
    """Make the kernel buffer little, so that slow clients are detected."""
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, option, NOT_SENT_BYTES)


def connection_room(settings: ServeSettings) -> int:
    """Return how many connections the limit of open files allows.

    The soft limit is raised as far as necessary and allowed. Some files are reserved for calls of
    sessions.
    """
    if sys.platform == "win32":
        return settings.max_connections
    import resource

    beside = FILES_BESIDE + FILES_A_SESSION * settings.max_sessions
    n_files_wanted = settings.max_connections + MOST_SURPLUS + beside
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < n_files_wanted:
        n_files_allowed = (
            n_files_wanted if hard == resource.RLIM_INFINITY else min(n_files_wanted, hard)
        )
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n_files_allowed), hard))
        except (OSError, ValueError):
            n_files_allowed = soft
        soft = max(soft, n_files_allowed)
    if soft == resource.RLIM_INFINITY or soft >= n_files_wanted:
        return settings.max_connections
    # If there are few files, half of them are for sessions.
    room = soft - MOST_SURPLUS - min(beside, soft // 2)
    return max(1, min(settings.max_connections, room))


def bind_socket(settings: ServeSettings) -> socket.socket:
    """Bind the socket that the server listens on."""
    if settings.refusal is not None:
        problem = f"is {settings.host}: {settings.refusal}"
        raise ConfigError("the configuration", "serve.host", problem)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # IPPROTO_TCP is named so that asyncio sets TCP_NODELAY.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)  # clients may queue before the server is up
        except OSError:
            listening.close()
            raise
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        problem = f"the server cannot listen here: {error.strerror or error}"
        raise ConfigError(where, "", f"{problem}; choose another --host or --port") from None
    return listening


async def serve(
    service: Service,
    settings: ServeSettings,
    listener: socket.socket,
    metrics: Metrics,
    say: Say,
    *,
    welcome: Callable[[], None],
    option: str = "",
) -> None:
    """Serve until a signal; then wait for sessions, or interrupt them.

    A second signal stops everything at once. Interrupted sessions are reported with the command to
    resume them, whose `option` selects the history. `welcome` announces the server once signals
    are handled.
    """
    app = create_app(service, settings, os.environ, metrics)
    server = Server(app, settings, metrics)
    # Loaded objects stay, so the garbage collector does not need to scan them again.
    gc.collect()
    gc.freeze()
    # Sessions leave no reference cycles, and other garbage stays small between rare collections.
    gc.set_threshold(20_000, 5, 4)
    # Each arena of glibc keeps freed memory.
    if sys.platform == "linux" and hasattr(allocator := ctypes.CDLL(None), "mallopt"):
        allocator.mallopt(M_ARENA_MAX, MOST_ARENAS)
    sys.setswitchinterval(SWITCH_SECONDS)

    def announce() -> None:
        welcome()
        most = server.open_connections.most
        if most < settings.max_connections:
            say(
                f"  accepts {most:,} connections instead of {settings.max_connections:,}, "
                "because of the limit of open files (ulimit -n)"
            )

    async def stop() -> None:
        under_way = await _serve_until_signal(service, settings.grace_seconds, say, announce)
        for line in _describe_interrupted(
            under_way, option if service.history is not None else None
        ):
            say(line)
        await cancel_counting(COUNTING_SECONDS)
        server.should_exit = True

    async with app.router.lifespan_context(app), anyio.create_task_group() as group:
        if sys.platform != "win32":
            group.start_soon(stop)
        else:
            announce()
        await server.serve([listener])
        group.cancel_scope.cancel()


async def _serve_until_signal(
    service: Service, grace_seconds: float, say: Say, announce: Callable[[], None]
) -> Sequence[RunningSession]:
    """Serve until a signal; end every session and return the unfinished."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        announce()
        async for _ in signals:
            break
        under_way = service.registry.under_way
        if under_way:
            say(
                f"stopping: {len(under_way)} running, with {grace_seconds:g} s to finish; "
                "press Ctrl-C again to cancel"
            )
        async with anyio.create_task_group() as group:

            async def at_once() -> None:
                async for _ in signals:
                    break
                group.cancel_scope.cancel()

            group.start_soon(at_once)
            await service.drain(grace_seconds)
            group.cancel_scope.cancel()
        await service.drain(0)
        return under_way


def _describe_interrupted(under_way: Sequence[RunningSession], option: str | None) -> Iterator[str]:
    lost_sessions = [
        running_session.id for running_session in under_way if running_session.stream.is_interrupted
    ]
    if option is None and lost_sessions:
        yield f"interrupted and not recorded: {count_noun(len(lost_sessions), 'session')}"
        return
    for session in lost_sessions[:MOST_NAMED]:
        yield f"interrupted; resume with: witan resume {session}{option}"
    more = len(lost_sessions) - MOST_NAMED
    if more > 0:
        listing = f"witan sessions --status interrupted{option}"
        yield f"interrupted: {more} more; list them with: {listing}"
