"""The server of the protocol within the one over HTTP: behind its door, for as long as it runs."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route

from witan.errors import Busy
from witan.service.config.serve import ServeSettings
from witan.service.sessions import Service
from witan.surfaces.mcp.server import create_server

__all__ = ["Mounted"]

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

# It would write down names of connections, which open them.
logging.getLogger("mcp").setLevel(logging.WARNING)


class Mounted:
    """An application for one path; the door has seen to hosts, origins, tokens, rates and lengths.

    Parameters
    ----------
    settings
        How long a request may be, and how many connections there may be.

    Attributes
    ----------
    route
        By which requests for the path come here.
    """

    def __init__(self, path: str, service: Service, settings: ServeSettings) -> None:
        self.route = Route(path, self)
        self._manager = StreamableHTTPSessionManager(
            create_server(service),
            max_request_body_size=settings.body_bytes,
            max_sessions=settings.max_streams,
        )
        self._runs = False

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Take requests while the block lasts; at its end every connection is closed."""
        async with self._manager.run():
            self._runs = True
            try:
                yield
            finally:
                self._runs = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request.

        Raises
        ------
        Busy
            If the server does not run any more.
        """
        if not self._runs:
            raise Busy("the server is about to stop", "ask again when it is back", 5.0)
        # Whoever has opened a connection is the only one who may go on with it.
        name = scope["witan.client"].name
        scope["route"] = self.route
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        await self._manager.handle_request(scope, receive, send)
