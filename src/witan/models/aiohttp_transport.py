"""HTTP on asyncio: `aiohttp` as the transport of `httpx2`, with its errors."""

import asyncio
import io
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Collection, Coroutine, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError
from anyio.lowlevel import cancel_shielded_checkpoint
from multidict import CIMultiDict
from yarl import URL

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from witan.models.connections import Post, Target


_LONGEST_HEADER = 65_536
_LARGEST_AT_ONCE = 1_048_576
"""Longest body written in one piece: `aiohttp` warns about a longer one."""

_SENT_AS_GIVEN = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that `aiohttp` would add."""

_Headers = CIMultiDict[str]

_CLAUSE = re.compile(r"[:\n]")
_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t -~]*")
_TARGET = re.compile(r"[!-~]+")


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Connections of one event loop, over HTTP/1.1 and without a proxy.

    Requests are sent without additions and responses leave no state: no credentials of a
    ``.netrc``, no cookies. Redirects are responses; bodies arrive as sent.

    `trust`: TLS settings for servers called by HTTPS.
    `connect_seconds`: the only timeout: for making a connection, including name resolution and TLS.
    `idle_connections`, `idle_seconds`: the most idle connections kept open for later calls, and for
    how long.
    """

    def __init__(
        self,
        trust: ssl.SSLContext,
        *,
        connect_seconds: float,
        idle_connections: int,
        idle_seconds: float,
    ) -> None:
        self._connector = _Connector(trust, idle_connections, idle_seconds)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            response_class=_Response,
            timeout=aiohttp.ClientTimeout(connect=connect_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; return after the headers of its response."""
        target = bytes(request.extensions.get("target", request.url.raw_path))
        url = _address(request.url, target)
        headers = _check_headers(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
        )
        reply = await self._send(
            request.method, url, headers, await request.aread(), skip_auto_headers=_SENT_AS_GIVEN
        )
        return httpx2.Response(
            reply.status, headers=reply.raw_headers, stream=reply, request=request
        )

    def post(self, post: "Post") -> "Awaitable[_Body]":
        """Make a call with complete headers; return after its reply's headers."""
        url, headers = _prepare(post.target)
        if post.headers:
            headers = headers.copy()
            headers.extend(_check_headers(post.headers.items()))
        return self._send("POST", url, headers, post.body)

    async def _send(
        self,
        method: str,
        url: URL,
        headers: _Headers,
        body: bytes,
        skip_auto_headers: Collection[str] | None = None,
    ) -> "_Body":
        try:
            response = await self._session.request(
                method,
                url,
                headers=headers,
                data=body if len(body) <= _LARGEST_AT_ONCE else io.BytesIO(body),
                allow_redirects=False,
                skip_auto_headers=skip_auto_headers,
            )
        except asyncio.CancelledError:
            await cancel_shielded_checkpoint()  # asyncio closes a socket one turn later
            raise
        except (aiohttp.ClientError, ValueError) as error:
            raise _word_failure(error) from _system_error(error)
        assert isinstance(response, _Response)  # noqa: S101 - the only class returned
        reply = _Body(response, self._connector)
        if response.status < 200:
            await reply.aclose()
            raise _not_http(f"status {response.status}")
        return reply

    async def aclose(self) -> None:
        """Close every connection, also those of calls in flight."""
        await self._session.close()


class _Response(aiohttp.ClientResponse):
    """A response that keeps its connection when `aiohttp` takes it back."""

    protocol: "ResponseHandler | None" = None

    def start(self, connection: "Connection") -> Coroutine[Any, Any, aiohttp.ClientResponse]:
        self.protocol = connection.protocol
        return super().start(connection)


class _Body(httpx2.AsyncByteStream):
    """A response body in pieces; closing it early closes the connection."""

    def __init__(self, response: _Response, connector: "_Connector") -> None:
        self._response, self._connector, self._is_over = response, connector, False
        self.status, self.headers = response.status, response.headers

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers as sent."""
        return self._response.raw_headers

    @property
    def has_arrived(self) -> bool:
        """True if the next read does not wait."""
        return self._response.content.is_eof()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._response.content.readany()
        except (aiohttp.ClientError, HttpProcessingError) as error:
            raise _interrupted_error(error, self._response) from None
        if not piece:
            self._is_over = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        if not self._is_over:
            self._response.close()
            self._connector.close_idle(self._response.protocol)
            await cancel_shielded_checkpoint()  # asyncio closes a socket one turn later


class _Protocol(ResponseHandler):
    """A connection that also ends its body when it ends.

    `aiohttp` leaves a reader waiting forever if its body is malformed after the beginning, or its
    connection is closed with all others.
    """

    def resume_reading(self, resume_parser: bool = True) -> None:
        # Called for every piece that is read, though reading pauses only when much is unread.
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        body, problem = self._payload, self.exception()
        super().connection_lost(exc)
        _end(body, problem)

    def close(self) -> None:
        body = self._payload
        super().close()
        _end(body)

    def abort(self) -> None:
        body = self._payload
        super().abort()
        _end(body)


def _end(body: aiohttp.StreamReader | None, problem: BaseException | None = None) -> None:
    if body is not None and not body.is_eof() and body.exception() is None:
        body.set_exception(problem or aiohttp.ClientConnectionError("closed"))


class _Connector(aiohttp.TCPConnector):
    """Unlimited concurrent connections, a limited number of them kept alive."""

    def __init__(self, trust: ssl.SSLContext, idle_connections: int, idle_seconds: float) -> None:
        # A lookup shared by calls would be cancelled for all of them when the connector closes.
        super().__init__(
            ssl=trust,
            limit=0,
            keepalive_timeout=idle_seconds,
            use_dns_cache=False,
            resolver=aiohttp.ThreadedResolver(),
        )
        self._factory = partial(_Protocol, loop=self._loop)  # type: ignore[assignment]
        self._most_idle = idle_connections
        self._idle: set[ResponseHandler] = set()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - named as in the base class
    ) -> "Connection":
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        assert protocol is not None  # noqa: S101 - None only after its release
        self._idle.discard(protocol)
        connection.add_callback(lambda: self._take_back(protocol))
        return connection

    def close_idle(self, protocol: "ResponseHandler | None") -> None:
        """Close a connection unless another call has it."""
        if protocol in self._idle:
            protocol.close()

    def _take_back(self, protocol: "ResponseHandler") -> None:
        """Act before `aiohttp` reuses or closes a connection."""
        if len(self._idle) >= self._most_idle:
            self._idle = {each for each in self._idle if each.is_connected()}
        if len(self._idle) < self._most_idle:
            self._idle.add(protocol)
        else:
            protocol.force_close()


@lru_cache(maxsize=256)
def _prepare(target: "Target") -> tuple[URL, _Headers]:
    return _address(target.url, target.path), _check_headers(target.headers)


def _address(url: httpx2.URL, target: bytes) -> URL:
    text = target.decode("latin-1")
    if not _TARGET.fullmatch(text):
        raise httpx2.LocalProtocolError("the target contains characters that a request cannot")
    return URL(f"{url.scheme}://{url.netloc.decode()}{text}", encoded=True)


def _check_headers(headers: Iterable[tuple[str, str]]) -> _Headers:
    checked_headers = CIMultiDict(headers)
    for name, value in checked_headers.items():
        if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            raise httpx2.LocalProtocolError("a header contains characters that none can")
    return checked_headers


def _word_failure(error: Exception) -> httpx2.TransportError:
    """Describe a missing response as `httpx2` does, without the query."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return httpx2.ConnectTimeout("")
        case aiohttp.ClientConnectorError() | aiohttp.ClientConnectorCertificateError():
            return httpx2.ConnectError(str(_system_error(error) or ""))
        case aiohttp.ClientConnectionError():
            return httpx2.RemoteProtocolError("Server disconnected without sending a response.")
        case aiohttp.ClientResponseError():
            return _not_http(error.message)
    return httpx2.LocalProtocolError("the address or a header is not accepted")


def _interrupted_error(error: Exception, response: aiohttp.ClientResponse) -> Exception:
    if isinstance(error, HttpProcessingError):
        return _not_http(error.message)
    if not isinstance(error, aiohttp.ClientPayloadError):
        return httpx2.ReadError("")
    detail = " (incomplete chunked read)" if "Transfer-Encoding" in response.headers else ""
    return httpx2.RemoteProtocolError(
        f"peer closed connection without sending complete message body{detail}"
    )


def _not_http(problem: str) -> httpx2.RemoteProtocolError:
    """Describe a protocol error of the server, without what it sent."""
    clause = _CLAUSE.split(problem)[0]
    return httpx2.RemoteProtocolError(f"the server sent something that is not HTTP ({clause})")


def _system_error(error: Exception) -> Exception | None:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    return error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
