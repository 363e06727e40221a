"""Connections to model servers, and lists of their models.

On asyncio, connections are `aiohttp`'s, at half the cost of `httpx2`'s. On trio and through a proxy
they are `httpx2`'s: as its pool checks all of its connections whenever a call begins or ends, no
two calls in flight share a client.
"""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from math import inf
from typing import Any, Protocol, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

import anyio
import httpx2
from anyio import CancelScope, to_thread
from anyio.lowlevel import RunVar

from witan.deliberation.ports import Price
from witan.errors import ConfigError, ModelError
from witan.models.providers import LOCAL_SERVERS, Redaction

CONNECT_SECONDS = 10.0
HEADERS = {
    "User-Agent": "witan",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}
"""Headers of every call; compressing a text of a few kilobytes would cost more than it saves."""

_IDLE_CONNECTIONS = 512
"""Connections kept for one server, as many as its concurrent calls."""

_IDLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Address and headers of all calls to one endpoint.

    `url`: URL for logs: without user and query.
    `headers`: headers of every call, without the length of its body.
    """

    url: httpx2.URL
    path: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Post:
    """One call over HTTP.

    `headers`: headers of this call, in addition to those of its target.
    """

    target: Target
    body: bytes
    headers: Mapping[str, str]

    def request(self) -> httpx2.Request:
        """Return the call as a request of `httpx2`."""
        length = ("Content-Length", str(len(self.body)))
        headers = [*self.target.headers, *self.headers.items(), length]
        stream = httpx2.ByteStream(self.body)  # `content` would be inspected to set headers
        extensions = {"target": self.target.path}
        return httpx2.Request(
            "POST", self.target.url, headers=headers, stream=stream, extensions=extensions
        )


class HttpReply(Protocol):
    """A reply's status and headers, and its body in pieces."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by names in any case."""
        ...

    @property
    def has_arrived(self) -> bool:
        """True if the next read certainly does not wait."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Stop reading; close the connection unless the body has ended."""
        ...


class _ClientReply:
    """A reply read, and decompressed if needed, by `httpx2`."""

    has_arrived = False

    def __init__(
        self, response: httpx2.Response, on_close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._response, self._on_close = response, on_close
        self.status, self.headers = response.status_code, response.headers
        packed = "content-encoding" in response.headers
        self._pieces = response.aiter_bytes() if packed else response.aiter_raw()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
            # `httpx2` reads through a chain of generators; closing the outermost one would leave
            # the others to the garbage collector.
            with suppress(httpx2.HTTPError, httpx2.StreamError):
                async for _ in self._pieces:
                    pass
        finally:
            if self._on_close is not None:
                await self._on_close()


class Connections:
    """Concurrent HTTP/1.1 clients, through the system's proxies.

    Only making a connection has a timeout: deadlines are the caller's. Each event loop has separate
    connections, which `aclose` on that loop closes.
    """

    def __init__(self) -> None:
        self._servers: RunVar[dict[str, _SharedClient | _Single]] = RunVar("witan.connections")

    @asynccontextmanager
    async def client(self, url: str) -> AsyncIterator[httpx2.AsyncClient]:
        """A client for one call to the server of this URL."""
        server = self._server(url)
        client = server.take()
        try:
            yield client
        finally:
            await server.give_back(client)

    def post(self, url: str, post: Post) -> Awaitable[HttpReply]:
        """Call a URL's server; return the reply, which the caller closes."""
        return self._server(url).post(post)

    async def prepare(self, url: str) -> None:
        """Import libraries and make the client for a URL's server."""
        await to_thread.run_sync(_load, urlsplit(url).scheme, abandon_on_cancel=True)
        self._server(url)

    def _server(self, url: str) -> "_SharedClient | _Single":
        servers = self._servers.get(None)
        if servers is None:
            self._servers.set(servers := {})
        if (server := servers.get(url)) is None:
            scheme, host, *_ = urlsplit(url)
            server = servers.get(f"{scheme}://{host}") or _new_server(scheme)
            servers[url] = servers[f"{scheme}://{host}"] = server
        return server

    async def aclose(self) -> None:
        """Close this event loop's connections, calls in flight included."""
        servers = self._servers.get({})
        self._servers.set({})
        with CancelScope(shield=True):
            for server in dict.fromkeys(servers.values()):
                await server.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()


def _new_server(scheme: str) -> "_SharedClient | _Single":
    trust = _system_certificates() if scheme == "https" else _no_certificates()
    direct = _runs_on_asyncio() and not _has_proxy(scheme)
    return _SharedClient(trust) if direct else _Single(trust)


class _SharedClient:
    """One client for all calls to a server, on asyncio."""

    __slots__ = ("_client", "_transport")

    def __init__(self, trust: ssl.SSLContext) -> None:
        # Imported when needed, because that takes longer than a short command may.
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

    async def post(self, post: Post) -> HttpReply:
        """Call without the client, which would parse the complete reply."""
        reply = await self._transport.post(post)
        if "Content-Encoding" not in reply.headers:
            return reply
        return _ClientReply(httpx2.Response(reply.status, headers=reply.headers, stream=reply))

    async def give_back(self, client: httpx2.AsyncClient) -> None:
        pass

    async def aclose(self) -> None:
        await self._client.aclose()


class _Single:
    """One client per concurrent call, most recent first, to keep few connections."""

    __slots__ = ("_clients", "_idle", "_trust")

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._trust = trust
        self._clients: list[httpx2.AsyncClient] = []
        self._idle: list[httpx2.AsyncClient] = []

    def take(self) -> httpx2.AsyncClient:
        if self._idle:
            return self._idle.pop()
        self._clients.append(new_client := _client(self._trust))
        return new_client

    async def post(self, post: Post) -> HttpReply:
        client, response = self.take(), None
        try:
            response = await client.send(post.request(), stream=True)
        finally:
            if response is None:
                await self.give_back(client)
        return _ClientReply(response, partial(self.give_back, client))

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
    with suppress(ConfigError):  # about certificates: the call reports it
        if scheme == "https":
            _system_certificates()
    if not _has_proxy(scheme):
        import witan.models.aiohttp_transport  # noqa: F401 - imported for its users


def _runs_on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _has_proxy(scheme: str) -> bool:
    """Check the system's settings for a proxy, as `httpx2` does."""
    proxies = getproxies()
    return bool(proxies.get(scheme) or proxies.get("all"))


@cache
def _system_certificates() -> ssl.SSLContext:
    """Return the system's certificates, cached since reading takes tens of milliseconds."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        problem = "names no readable certificates"
        raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR", "", problem) from error


@cache
def _no_certificates() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


LARGEST_LIST_BYTES = 8_000_000
"""Most bytes of a list of models; hundreds with descriptions take half."""

BEARER = "Authorization"
"""Header in which most providers expect a key."""

_NOT_CHAT = re.compile(
    r"audio|bge|clip|codex|dall|e5|flux|gte|guard|image|imagen|minilm|moderation|ocr|paraphrase|"
    r"realtime|rerank|reranker|research|safeguard|search|sora|speech|transcribe|tts|veo|video|"
    r"whisper|.*embed.*"
)
"""Words in the ids of models for other uses; most lists contain nothing but the id."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model of a list.

    `created`: time of its release in seconds since 1970, if listed.
    `chats`: true if it answers text with text, according to the list.
    """

    id: str
    created: float | None
    chats: bool
    price: Price | None = None


async def list_models(
    name: str,
    url: str,
    key: str | None,
    connections: Connections,
    *,
    key_header: str = BEARER,
    folder: str = "",
) -> tuple[ListedModel, ...]:
    """Request the list of models, in its own order.

    `folder`: prefix of listed ids that calls omit.
    """
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ModelError(name, "has a key with invalid characters")
    short = Redaction([] if key is None else [key])
    try:
        async with connections.client(url) as client:
            status, body = await _get(client, url, _headers(key, key_header))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        problem = f"cannot be reached at {url}: {short(str(error)) or type(error).__name__}"
        raise ModelError(name, problem, transient=True) from None
    if status in (401, 403):
        raise ModelError(name, f"rejected the key ({status})", status)
    if status != 200:
        raise ModelError(name, f"lists no models at {url} (status {status})", status)
    try:
        return _parse_list(body, folder)
    except _NO_LIST:
        problem = f"sent something other than a list of models from {url}"
        raise ModelError(name, problem, status) from None


def _headers(key: str | None, key_header: str) -> Mapping[str, str]:
    if key is None:
        return {}
    if key_header == BEARER:
        return {BEARER: f"Bearer {key}"}
    # Anthropic's interface requires a version in every request.
    return {key_header: key, "anthropic-version": "2023-06-01"}


async def _get(
    client: httpx2.AsyncClient, url: str, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    body = bytearray()
    async with client.stream("GET", url, headers=headers) as response:
        async for chunk in response.aiter_bytes():
            body += chunk[: LARGEST_LIST_BYTES + 1 - len(body)]
    if len(body) > LARGEST_LIST_BYTES:
        raise httpx2.DecodingError("more bytes than a list of models may have")
    return response.status_code, bytes(body)


_NO_LIST = (ValueError, TypeError, KeyError, RecursionError)


def _parse_list(body: bytes, folder: str = "") -> tuple[ListedModel, ...]:
    model_list = json.loads(body)
    entries = model_list["data"] if isinstance(model_list, dict) else model_list
    return tuple(_parse_entry(entry, folder) for entry in entries)


def _parse_entry(entry: dict[str, Any], folder: str) -> ListedModel:
    name = entry["id"]
    if not isinstance(name, str):
        raise TypeError
    return ListedModel(
        name.removeprefix(folder), _parse_created(entry), _chats(name, entry), _price(entry)
    )


def _parse_created(entry: dict[str, Any]) -> float | None:
    number, text = entry.get("created"), entry.get("created_at")
    if isinstance(number, int | float) and not isinstance(number, bool) and number > 0:
        return float(number)
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None


def _price(entry: dict[str, Any]) -> Price | None:
    """Return a model's price: OpenRouter's per token, or Together's per million."""
    pricing = entry.get("pricing")
    if not isinstance(pricing, dict):
        return None
    for names, scale in ((("prompt", "completion"), 1e6), (("input", "output"), 1.0)):
        try:
            input_usd, output_usd = (float(pricing[name]) * scale for name in names)
        except (KeyError, TypeError, ValueError):
            continue
        # A negative price means "it depends"; beyond the bound it is not a price.
        if 0 <= input_usd < inf and 0 <= output_usd < inf:
            return Price(round(input_usd, 9), round(output_usd, 9))
    return None


def _chats(name: str, entry: dict[str, Any]) -> bool:
    """Recognise a chat model by the list's fields, else by its id."""
    kind = entry.get("type")
    capable = entry.get("capabilities")
    shape = entry.get("architecture")
    if isinstance(capable, dict) and isinstance(capable.get("completion_chat"), bool):
        return bool(capable["completion_chat"])
    if isinstance(shape, dict) and isinstance(shape.get("output_modalities"), list):
        return bool(shape["output_modalities"] == ["text"])
    if isinstance(kind, str) and kind != "model":
        return kind == "chat"
    return seems_to_chat(name)


def seems_to_chat(name: str) -> bool:
    """Recognise a chat model by its id, without words for other uses."""
    # Digits separate words, as in Qwen3Guard, except in e5.
    return not any(_NOT_CHAT.fullmatch(word) for word in re.findall(r"e5|[a-z]+", name.lower()))


LOOK_SECONDS = 0.3
"""Timeout in seconds for servers on this machine to list their models."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A responding server.

    Parameters
    ----------
    url
        Its base URL, for a member written as ``url#model``.
    models
        Its listed models.
    """

    kind: str
    url: str
    models: tuple[str, ...]


async def find_local_servers(places: Mapping[str, str] = LOCAL_SERVERS) -> list[LocalServer]:
    """List the models at all ports concurrently, within 0.3 s."""
    servers: dict[str, LocalServer] = {}

    async def ask(client: httpx2.AsyncClient, kind: str, url: str) -> None:
        try:
            status, body = await _get(client, f"{url}/models", {})
            models = [one.id for one in _parse_list(body)]
        except (httpx2.HTTPError, httpx2.InvalidURL, *_NO_LIST):
            return  # the port belongs to another kind of server
        if status == 200 and body.lstrip().startswith(b"{"):
            servers[kind] = LocalServer(kind, url, tuple(models))

    encrypted = any(url.startswith("https:") for url in places.values())
    # A proxy cannot reach this machine, and reading certificates takes a tenth of the time.
    async with httpx2.AsyncClient(trust_env=False, verify=encrypted, timeout=None) as client:
        with anyio.move_on_after(LOOK_SECONDS):
            async with anyio.create_task_group() as group:
                for kind, url in places.items():
                    group.start_soon(ask, client, kind, url)
    return [servers[kind] for kind in places if kind in servers]
