"""Connections to model servers, kept alive between calls.

On asyncio they are those of `aiohttp`, which cost half of what `httpx2`'s own cost. On trio and
through a proxy they are `httpx2`'s own: as its pool looks at all of its connections whenever a call
begins or ends, no two calls in flight share a client.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx2
from anyio import CancelScope, to_thread
from anyio.lowlevel import RunVar

from witan.errors import ConfigError

CONNECT_SECONDS = 10.0
HEADERS = {
    "User-Agent": "witan",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}
"""Sent with every call; packing a text of a few kilobytes would cost more than it saves."""

_IDLE_CONNECTIONS = 128
"""Kept for one server."""

_IDLE_SECONDS = 30.0


class Connections:
    """Concurrent HTTP/1.1 clients, through the system's proxies.

    Nothing but the making of a connection has a time limit: deadlines are the caller's. Each event
    loop has connections of its own, which `aclose` on that loop closes.
    """

    def __init__(self) -> None:
        self._servers: RunVar[dict[str, _Shared | _Single]] = RunVar("witan.connections")

    @asynccontextmanager
    async def client(self, url: str) -> AsyncIterator[httpx2.AsyncClient]:
        """A client for one call to the server of this URL."""
        server = self._server(url)
        client = server.take()
        try:
            yield client
        finally:
            await server.give_back(client)

    @asynccontextmanager
    async def sent(self, url: str, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """Send to a URL's server; yield the response, closed with the block."""
        server = self._server(url)
        client = server.take()
        try:
            response = await server.send(client, request)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            await server.give_back(client)

    async def prepare(self, url: str) -> None:
        """Import libraries and make the client for a URL's server."""
        await to_thread.run_sync(_load, urlsplit(url).scheme, abandon_on_cancel=True)
        self._server(url)

    def _server(self, url: str) -> "_Shared | _Single":
        scheme, host, *_ = urlsplit(url)
        servers = self._servers.get(None)
        if servers is None:
            self._servers.set(servers := {})
        origin = f"{scheme}://{host}"
        if (server := servers.get(origin)) is None:
            trust = _system_certificates() if scheme == "https" else _no_certificates()
            direct = _runs_on_asyncio() and not _has_proxy(scheme)
            server = servers[origin] = _Shared(trust) if direct else _Single(trust)
        return server

    async def aclose(self) -> None:
        """Close this event loop's connections, calls in flight included."""
        servers = self._servers.get({})
        self._servers.set({})
        with CancelScope(shield=True):
            for server in servers.values():
                await server.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Shared:
    """One client for all calls to a server, on asyncio."""

    __slots__ = ("_client", "_transport")

    def __init__(self, trust: ssl.SSLContext) -> None:
        # Imported when called for, because that takes longer than a short command may.
        from witan.models.aiohttp_transport import AiohttpTransport

        self._transport = AiohttpTransport(
            trust,
            connect_seconds=CONNECT_SECONDS,
            idle_connections=_IDLE_CONNECTIONS,
            idle_seconds=_IDLE_SECONDS,
        )
        self._client = httpx2.AsyncClient(transport=self._transport, headers=HEADERS, timeout=None)

    def take(self) -> httpx2.AsyncClient:
        return self._client

    async def send(self, _: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Send past the client, without additions to a complete request."""
        return await self._transport.handle_async_request(request)

    async def give_back(self, client: httpx2.AsyncClient) -> None:
        pass

    async def aclose(self) -> None:
        await self._client.aclose()


class _Single:
    """A client per concurrent call, most recent first, to keep few connections."""

    __slots__ = ("_clients", "_idle", "_trust")

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._trust = trust
        self._clients: list[httpx2.AsyncClient] = []
        self._idle: list[httpx2.AsyncClient] = []

    def take(self) -> httpx2.AsyncClient:
        if self._idle:
            return self._idle.pop()
        self._clients.append(fresh := _client(self._trust))
        return fresh

    async def send(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        return await client.send(request, stream=True)

    async def give_back(self, client: httpx2.AsyncClient) -> None:
        if len(self._idle) < _IDLE_CONNECTIONS:
            self._idle.append(client)
        else:
            self._clients.remove(client)
            with CancelScope(shield=True):
                await client.aclose()

    async def aclose(self) -> None:
        for client in self._clients:
            await client.aclose()


def _client(trust: ssl.SSLContext) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            verify=trust,
            headers=HEADERS,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        problem = "names a proxy that cannot be used; expected http:// or https://"
        raise ConfigError("HTTP_PROXY, HTTPS_PROXY or ALL_PROXY", "", problem) from error


def _load(scheme: str) -> None:
    """Load the slow modules in a thread, without blocking other calls."""
    with suppress(ConfigError):  # of certificates: the call says so
        if scheme == "https":
            _system_certificates()
    if not _has_proxy(scheme):
        import witan.models.aiohttp_transport  # noqa: F401 - imported for those who use it


def _runs_on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _has_proxy(scheme: str) -> bool:
    """Check the system's settings for a proxy, as `httpx2` does."""
    named = getproxies()
    return bool(named.get(scheme) or named.get("all"))


@cache
def _system_certificates() -> ssl.SSLContext:
    """The system's certificates, cached since reading takes tens of milliseconds."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        problem = "names no certificates that can be read"
        raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR", "", problem) from error


@cache
def _no_certificates() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
