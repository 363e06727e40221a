"""Connections of the server: their limit, and deadlines for their clients.

Each connection uses a file descriptor, and a client that sends half a request, or does not read its
response, would keep it open forever. Every client therefore has a deadline while the server waits
for it, and must read at a minimum rate. At the limit, the server drops a client behind that rate,
otherwise the one that has been silent longest; a few surplus connections may only check the
server's health.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, Literal

import anyio
import httptools
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from witan.service.config.serve import ServeSettings
from witan.surfaces.http.problems import refusal

Reason = Literal[
    "header_timeout",
    "body_timeout",
    "idle_timeout",
    "send_timeout",
    "header_size",
    "invalid",
    "dropped",
    "refused",
    "out_of_files",
]
"""Reason for closing a connection; `dropped` made room, `refused` found none."""

HEALTH = "/healthz"

MOST_HEADER_BYTES = 64 * 1024
"""Most bytes of request line and headers, and of trailers, as common servers allow."""

MOST_PIPELINED = 16
"""Most requests that a client may send before the first response."""

MOST_SURPLUS = 16
"""Connections beyond the limit, which may only check the server's health."""

SURPLUS_SECONDS = 2.0
"""Deadline for the headers of a surplus connection."""

LINGER_SECONDS = 2.0
"""Seconds for reading the rest of a refused request."""

SETTLED_SECONDS = 1.0
"""Silence after which a connection may be dropped to make room."""

MOST_LOOKED_AT = 64
"""Silent connections to examine when looking for one to drop."""

SWEEP_SECONDS = 0.25

LEAST_RATE = 1024
"""Least bytes per second that a client must read."""

BEHIND_SECONDS = 5.0
"""Seconds by which a droppable client lags behind that rate."""

REPORT_SECONDS = 10.0
"""Seconds between two log messages about closed connections."""

_QUIET: tuple[Reason, ...] = ("idle_timeout",)
"""Reasons that are counted but not logged."""

_REPLIES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
}

_log = logging.getLogger("witan.server")


@dataclass(slots=True)
class _Spare:
    """A spare open file, released when a connection finds no other."""

    open: Callable[[], Any]
    file: Any = None

    def acquire(self) -> None:
        if self.file is None:
            try:
                self.file = self.open()
            except OSError:
                self.file = None

    def release(self) -> bool:
        """Close the file; return False if it was not open."""
        if self.file is None:
            return False
        self.file.close()
        self.file = None
        return True


class ServerConnections:
    """The open connections of one server.

    `most`: maximum number, without surplus ones.
    `count`: called with the reason whenever the server closes a connection.
    `open_spare`: opens a spare file, to be released when the limit of open files is reached.
    """

    def __init__(
        self,
        settings: ServeSettings,
        most: int,
        count: Callable[[Reason], None],
        open_spare: Callable[[], Any],
    ) -> None:
        self.settings = settings
        self.most = most
        self._count = count
        self._spare = _Spare(open_spare)
        self._open: dict[Connection, None] = {}
        self._surplus: dict[Connection, None] = {}
        self._silent: dict[Connection, None] = {}
        self._behind: dict[Connection, None] = {}
        self._closed: Counter[Reason] = Counter()
        self._report_time = -inf

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "Connection") -> bool:
        """Register a new connection; return False if it is surplus."""
        self._open[connection] = None
        self._silent[connection] = None
        if len(self._open) - len(self._surplus) <= self.most and self._spare.file is not None:
            return True
        if self._spare.file is not None and self.make_room(but=connection):
            return True
        self._surplus[connection] = None
        if len(self._surplus) > MOST_SURPLUS:
            oldest = next((c for c in self._silent if c in self._surplus), connection)
            self.close(oldest, "refused")
        return False

    def remove(self, connection: "Connection") -> None:
        """Forget a closed connection."""
        for group in (self._open, self._surplus, self._silent, self._behind):
            group.pop(connection, None)

    def await_client(self, connection: "Connection") -> None:
        """Note that the server now waits for this client."""
        self._silent.pop(connection, None)
        if connection in self._open:
            self._silent[connection] = None

    def await_server(self, connection: "Connection") -> None:
        """Note that this client waits for the server."""
        self._silent.pop(connection, None)

    def mark_behind(self, connection: "Connection", behind: bool) -> None:
        """Note whether this client reads below the least rate."""
        if not behind:
            self._behind.pop(connection, None)
        elif connection in self._open:
            self._behind.setdefault(connection)

    def make_room(self, but: "Connection | None" = None) -> bool:
        """Drop a slow client, or the longest silent one; return success."""
        for slowest in self._behind:
            self.close(slowest, "dropped")
            return True
        for longest in islice(self._silent, MOST_LOOKED_AT):
            if longest is but or longest.silent_seconds < SETTLED_SECONDS:
                return False
            if not longest.n_unsent:
                self.close(longest, "dropped")
                return True
        return False

    def find_file(self) -> None:
        """Free a file for the next connection."""
        self.note("out_of_files")
        if not self.make_room():
            self._spare.release()

    def close(self, connection: "Connection", reason: Reason) -> None:
        """End a connection at once."""
        self.note(reason)
        connection.abort()
        self.remove(connection)

    def note(self, reason: Reason) -> None:
        """Count a connection that is closed, or could not be opened."""
        self._count(reason)
        if reason not in _QUIET:
            self._closed[reason] += 1

    async def watch(self) -> None:
        """Enforce every connection's deadline, at intervals."""
        try:
            while True:
                self._spare.acquire()
                await anyio.sleep(SWEEP_SECONDS)
                now = anyio.current_time()
                for connection in [*self._open]:
                    connection.check(now)
                self._report(now)
        finally:
            self._spare.release()

    def _report(self, now: float) -> None:
        """Log why connections were closed since the last report."""
        if not self._closed or now - self._report_time < REPORT_SECONDS:
            return
        fields: dict[str, object] = dict(sorted(self._closed.items()))
        fields |= {"open": len(self), "limit": self.most}
        _log.warning("connections closed or refused", extra={"fields": fields})
        self._closed.clear()
        self._report_time = now


class _CountingTransport:
    """A transport that counts the bytes written to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.n_written = 0

    def write(self, data: bytes) -> None:
        self.n_written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """A connection, closed when its client keeps the server waiting too long."""

    def __init__(self, connections: ServerConnections, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._all = connections
        self._limits = connections.settings
        self._surplus = False
        self._reading: Literal["header", "body"] | None = "header"
        self._has_refused = False
        self._heard_at = self._checked_at = self.loop.time()
        self._deadline = inf
        self._header_bytes = 0
        self._trailer_bytes = 0
        self._n_taken = 0
        self._behind_seconds = 0.0

    @property
    def silent_seconds(self) -> float:
        """Time since the client last sent something."""
        return self.loop.time() - self._heard_at

    @property
    def n_unsent(self) -> int:
        """Bytes that the client has not yet read."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._counting = _CountingTransport(transport)
        super().connection_made(self._counting)  # type: ignore[arg-type]
        seconds = self._limits.header_seconds
        self._surplus = not self._all.add(self)
        if self._surplus:
            seconds = min(seconds, SURPLUS_SECONDS)
            self.app = _surplus(self.app, self._all)
        self._deadline = self.loop.time() + seconds

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a closed connection."""
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; discard everything after a refusal."""
        if self._has_refused:
            return
        self._heard_at = self.loop.time()
        if self._reading is None and self._is_answered:
            self._await("header", self._limits.header_seconds)
        elif self._reading is not None:
            self._all.await_client(self)
        if self._reading == "header":
            self._header_bytes += len(data)
        elif self._reading == "body":
            self._trailer_bytes += len(data)  # `on_body` corrects this if it is part of the body
        super().data_received(data)
        if self._reading == "header" and self._header_bytes > MOST_HEADER_BYTES:
            self._refuse(431, "header_size", f"headers are longer than {MOST_HEADER_BYTES:,} bytes")
        elif self._reading == "body" and self._trailer_bytes > MOST_HEADER_BYTES:
            detail = f"trailers are longer than {MOST_HEADER_BYTES:,} bytes"
            self._refuse(431, "header_size", detail)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        if self._reading is None:
            self._await("header", self._limits.header_seconds)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; drop a trailer, because nothing reads it."""
        if self._reading != "body":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Continue with the body."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MOST_HEADER_BYTES:
            self._refuse(431, "header_size", f"headers are longer than {MOST_HEADER_BYTES:,} bytes")
        if self._has_refused or len(self.pipeline) >= MOST_PIPELINED:
            raise httptools.HttpParserError
        super().on_headers_complete()
        self.cycle.keep_alive = self.cycle.keep_alive and not self._surplus
        self._await("body", self._limits.body_seconds)

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body, which is not a trailer."""
        self._trailer_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the client's deadline while the server works."""
        super().on_message_complete()
        self._reading, self._deadline = None, inf
        self._header_bytes = self._trailer_bytes = 0
        self._all.await_server(self)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._deadline = inf  # sending the rest has its own deadline
        elif self._reading == "body":
            self._deadline = min(self._deadline, self.loop.time() + LINGER_SECONDS)
        elif self._reading is None and self._is_answered:
            self._deadline = self.loop.time() + self._limits.idle_seconds
            self._heard_at = self.loop.time()
            self._all.await_client(self)

    def send_400_response(self, msg: str) -> None:
        """Reply that this is not a request."""
        self._refuse(400, "invalid", msg)

    def abort(self) -> None:
        """Close it at once, even during a request."""
        self._leave()
        self.transport.abort()

    def check(self, now: float) -> None:
        """Close it if its client has kept the server waiting too long."""
        if self._is_too_slow(now):
            self._all.close(self, "send_timeout")
        elif self.flow.read_paused:
            self._deadline = max(self._deadline, now + self._limits.body_seconds)
        elif now >= self._deadline:
            self._expire()

    def _is_too_slow(self, now: float) -> bool:
        """Return true if the client lags behind the least rate too far.

        It falls behind while bytes are unsent, and catches up by reading; an occasional byte is not
        enough.
        """
        n_unsent = self.n_unsent
        n_taken = self._counting.n_written - n_unsent
        seconds_lost = (now - self._checked_at) - (n_taken - self._n_taken) / LEAST_RATE
        self._behind_seconds = max(0.0, self._behind_seconds + seconds_lost) if n_unsent else 0.0
        self._checked_at, self._n_taken = now, n_taken
        self._all.mark_behind(self, self._behind_seconds >= BEHIND_SECONDS)
        return self._behind_seconds >= self._limits.send_seconds

    @property
    def _is_answered(self) -> bool:
        return self._last_cycle is None or (
            self._last_cycle.response_complete and not self.pipeline
        )

    def _await(self, part: Literal["header", "body"], seconds: float) -> None:
        self._reading, self._deadline = part, self.loop.time() + seconds
        self._all.await_client(self)

    def _expire(self) -> None:
        if self._has_refused:
            self.abort()
        elif self._reading == "header" and self._header_bytes:
            seconds = self._limits.header_seconds
            self._refuse(408, "header_timeout", f"headers were not complete within {seconds:g} s")
        elif self._reading == "body":
            seconds = self._limits.body_seconds
            self._refuse(408, "body_timeout", f"the body was not complete within {seconds:g} s")
        else:
            self._all.note("idle_timeout")
            self._deadline = inf
            self._all.await_server(self)
            self.transport.close()

    def _refuse(self, status: int, reason: Reason, detail: str) -> None:
        """Answer a malformed request, and discard the rest of it."""
        if self._has_refused:
            return
        self._all.note(reason)
        self._all.await_server(self)
        replies = self._is_answered if self._reading == "header" else self._unanswered_alone
        self._leave()
        self._has_refused, self._deadline = True, self.loop.time() + LINGER_SECONDS
        if not replies:
            self.transport.abort()
            return
        self.transport.write(_reply(status, detail, self.server_state.default_headers))
        if self.transport.can_write_eof():
            self.transport.write_eof()

    @property
    def _unanswered_alone(self) -> bool:
        """Return true if only the last request is unanswered."""
        has_begun = self._last_cycle is None or self._last_cycle.response_started
        return not has_begun and not self.pipeline

    @property
    def _last_cycle(self) -> RequestResponseCycle | None:
        return self.cycle

    def _leave(self) -> None:
        if self._last_cycle is not None and not self._last_cycle.response_complete:
            self._last_cycle.disconnected = True
            self._last_cycle.message_event.set()
            self.flow.resume_writing()


def _reply(status: int, detail: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Write a problem as a whole response to a malformed request."""
    title = _REPLIES[status]
    body = json.dumps({"title": title, "status": status, "detail": detail}).encode()
    lines = [b"HTTP/1.1 %d %s" % (status, title.encode())]
    lines += [b"%s: %s" % pair for pair in headers]
    lines += [b"content-type: application/problem+json", b"content-length: %d" % len(body)]
    return b"\r\n".join([*lines, b"connection: close", b"", body])


def _surplus(app: ASGIApp, connections: ServerConnections) -> ASGIApp:
    """Return the application for surplus connections: health checks and refusals."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == HEALTH:
            await app(scope, receive, send)
            return
        connections.note("refused")
        detail = (
            f"all {connections.most:,} connections of the server are open; try again later, or "
            "raise serve.max_connections"
        )
        await refusal(scope, 503, detail, {"Retry-After": "5"})(scope, receive, send)

    return answer
