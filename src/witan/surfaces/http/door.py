"""Checks of every request before it reaches a route."""

import hmac
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from time import monotonic
from urllib.parse import quote, urlsplit

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from witan.deliberation.call_headers import MOST_HOPS, TRACE, VIA_HEADER, read_hops, read_trace
from witan.service.config.serve import ServeSettings, token_digests
from witan.service.sessions.running import contain_errors
from witan.service.sessions.spending import LOCAL, Client
from witan.surfaces.http.addresses import matched_path
from witan.surfaces.http.problems import refusal

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

PUBLIC = ("/healthz", "/assets/", "/sign-in")
"""Paths that need no token."""

GONE = 499
"""The status logged for a client that disconnected before the answer."""

MISTAKE = "internal error; see the server log"

STRANGER_BYTES = 16 * 1024
"""Longest body of a request without a token, which can only sign in."""

REQUESTS_A_SESSION = 100
"""Requests allowed per session that a client may start."""

SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "frame-ancestors 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer", forms would be sent without the origin of their page.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


COOKIE = "witan"
"""The cookie of a browser that has signed in."""

MOST_SIGNED_IN = 10_000

FAILURES_PER_MINUTE = 20
"""Most wrong tokens from one address before it has to wait."""

MOST_GUESSERS = 10_000
"""Most addresses whose wrong tokens are counted."""

MINUTE_SECONDS = 60.0

_log = logging.getLogger("witan.server")


class Clients:
    """Clients by token, or by the cookie of a browser.

    Every sign-in draws a new cookie, which is valid until the server stops. Without tokens the
    server is `open`, and its client `local`.
    """

    def __init__(self, settings: ServeSettings, environment: Mapping[str, str]) -> None:
        self._digests = token_digests(settings, environment)
        self.open = not self._digests
        self.local = Client(LOCAL.name, per_minute=settings.per_minute)
        self._signed_in: dict[bytes, str] = {}
        self._guesses: dict[str, deque[float]] = {}
        self._clients = {
            name: Client(
                name,
                settings.per_minute if token.per_minute is None else token.per_minute,
                token.max_cost_usd,
                token.daily_usd,
                by_token=True,
            )
            for name, token in settings.tokens.items()
        }

    def by_token(self, token: str) -> Client | None:
        """Return the client with this token, in constant time."""
        digest = sha256(token.encode()).digest()
        owner = None
        for name, known_digest in self._digests.items():
            if hmac.compare_digest(digest, known_digest):
                owner = name
        return None if owner is None else self._clients[owner]

    def count_guess(self, address: str) -> bool:
        """Count a wrong token from an address; return true if too many."""
        now, network = monotonic(), _network(address)
        guesses = self._guesses.pop(network, None) or deque(maxlen=FAILURES_PER_MINUTE + 1)
        if len(self._guesses) >= MOST_GUESSERS:
            del self._guesses[next(iter(self._guesses))]
        self._guesses[network] = guesses
        guesses.append(now)
        return len(guesses) > FAILURES_PER_MINUTE and guesses[0] > now - MINUTE_SECONDS

    def by_cookie(self, cookie: str) -> Client | None:
        """Return the client that signed in with a cookie, if any."""
        name = self._signed_in.get(sha256(cookie.encode()).digest())
        return None if name is None else self._clients[name]

    def sign_in(self, client: Client) -> str:
        """Draw a cookie for a client whose token was right."""
        if len(self._signed_in) >= MOST_SIGNED_IN:
            del self._signed_in[next(iter(self._signed_in))]
        cookie = secrets.token_urlsafe(32)
        self._signed_in[sha256(cookie.encode()).digest()] = client.name
        return cookie

    def sign_out(self, cookie: str) -> None:
        """Invalidate a cookie."""
        self._signed_in.pop(sha256(cookie.encode()).digest(), None)


def _network(address: str) -> str:
    """Return the address, or for IPv6 the network of one subscriber."""
    try:
        if isinstance(ip_address(address), IPv6Address):
            return str(ip_network(f"{address.partition('%')[0]}/64", strict=False))
    except ValueError:
        pass
    return address


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """A finished request, for logs and metrics."""

    request: str
    method: str
    route: str
    path: str
    status: int
    seconds: float
    client: str | None


class _TooLarge(Exception):
    """The body is longer than it declared, or than the limit."""


class Door:
    """Pass requests on to the application, or refuse them.

    `name` is the server's in calls to members; `on_finish` takes every finished request.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        clients: Clients,
        name: str,
        on_finish: Callable[[FinishedRequest], None],
    ) -> None:
        self._app = app
        self._settings = settings
        self._clients = clients
        self._name = name
        self._on_finish = on_finish
        self._rates = MovingWindowRateLimiter(MemoryStorage())
        hosts = {host.lower() for host in settings.hosts}
        # Other addresses require a token, which a foreign page does not have.
        self._hosts = LOOPBACK | hosts if settings.loopback or hosts else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        scope["request"] = secrets.token_hex(6)
        status: int | None = None

        async def forward(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = GONE if scope.get("gone") else message["status"]
                headers = MutableHeaders(scope=message)
                headers["Witan-Request"] = scope["request"]
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            is_head = scope["method"] == "HEAD"
            await self._pass(scope, receive, _headers_alone(forward) if is_head else forward)
            status = status or GONE
        finally:
            client = scope.get("witan.client")
            route = getattr(scope.get("route"), "path_format", "")
            self._on_finish(
                FinishedRequest(
                    scope["request"],
                    scope["method"],
                    route,
                    scope["path"],
                    500 if status is None else status,
                    time.monotonic() - started,
                    client.name if client is not None else None,
                )
            )

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        scope["witan.trace"] = read_trace(
            headers.getlist("traceparent"), headers.getlist("tracestate")
        )
        TRACE.set(scope["witan.trace"])
        refusal_response = self._refuse(scope, headers)
        if refusal_response is not None:
            await refusal_response(scope, receive, send)
            return
        started_body = exceeded = False
        left = self._most_bytes(scope)

        async def receive_within_limit() -> Message:
            nonlocal left, exceeded
            message = await receive()
            if message["type"] == "http.disconnect":
                scope["gone"] = True
            left -= len(message.get("body", b""))
            if left < 0:
                exceeded = True
                raise _TooLarge
            return message

        async def forward(message: Message) -> None:
            nonlocal started_body
            if started_body or not exceeded:  # otherwise the response reports the truncated body
                started_body = True
                await send(message)

        # The HTTP server logs the path from its scope, so change a copy.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        within = {**scope, "path": matched_path(scope), "method": method}
        replacement: Response | None = None
        fields = {"request": scope["request"], "path": scope["path"]}
        try:
            with contain_errors(_log, "a request failed within", fields=fields) as mishap:
                with suppress(_TooLarge, ClientDisconnect):
                    await self._app(within, receive_within_limit, forward)
                replacement = self._too_large(scope) if exceeded else None
        finally:
            scope["route"] = within.get("route")
        if mishap.failure is not None:
            replacement = refusal(scope, 500, MISTAKE)
            if started_body:
                raise mishap.failure
        if replacement is not None and not started_body:
            await replacement(scope, receive, send)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a request, or note its client in the scope."""
        return (
            self._strange_host(scope, headers)
            or self._strange_origin(scope, headers)
            or self._in_a_circle(scope, headers)
            or self._refuse_stranger(scope, headers)
            or self._refuse_length(scope, headers)
            or self._refuse_rate(scope)
        )

    def _strange_host(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse unknown host names, which a foreign page could point here."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 and (hosts or scope["http_version"] == "1.1"):
            return refusal(scope, 400, f"a request has one Host header; this one has {len(hosts)}")
        host = _host("".join(hosts))
        if self._hosts is None or host in self._hosts:
            return None
        detail = f"unknown host name {host!r}; add it to serve.allowed_hosts"
        return refusal(scope, 403, detail)

    def _strange_origin(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse changes that pages of other servers request."""
        origin = headers.get("origin")
        if scope["method"] in SAFE or origin is None:
            return None
        own_hosts = {headers.get("host", "").lower()}
        if self._settings.public_url is not None:
            own_hosts.add(urlsplit(self._settings.public_url).netloc.lower())
        if urlsplit(origin).netloc.lower() in own_hosts:
            return None
        return refusal(scope, 403, f"requests from pages of {origin} are not allowed")

    def _refuse_length(self, scope: Scope, headers: Headers) -> Response | None:
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._most_bytes(scope):
            return self._too_large(scope)
        return None

    def _most_bytes(self, scope: Scope) -> int:
        most = self._settings.body_bytes
        return most if scope.get("witan.client") is not None else min(most, STRANGER_BYTES)

    def _too_large(self, scope: Scope) -> Response:
        most = self._most_bytes(scope)
        detail = f"the request is longer than {most:,} bytes; send less, or raise serve.body_bytes"
        return refusal(scope, 413, detail)

    def _in_a_circle(self, scope: Scope, headers: Headers) -> Response | None:
        hops = read_hops(",".join(headers.getlist(VIA_HEADER)))
        scope["witan.hops"] = hops
        if self._name in hops or len(hops) > MOST_HOPS:
            hop_text = " → ".join((*hops[:MOST_HOPS], self._name))
            detail = f"this council would be a member of itself: {hop_text}; seat another model"
            return refusal(scope, 508, detail)
        return None

    def _refuse_stranger(self, scope: Scope, headers: Headers) -> Response | None:
        if self._clients.open:
            scope["witan.client"] = self._clients.local
            return None
        client = self._identify_client(headers)
        if client is not None:
            scope["witan.client"] = client
            return None
        if any(scope["path"].startswith(path) for path in PUBLIC):
            return None
        has_token = (headers.get("authorization") or headers.get("x-api-key")) is not None
        if has_token:
            address = (scope.get("client") or ("",))[0]
            if self._clients.count_guess(address):
                return refusal(scope, 429, "too many wrong tokens; wait", {"Retry-After": "60"})
        elif _wants_sign_in(scope, headers):
            return RedirectResponse(self._sign_in(scope), 303)
        challenge = {"WWW-Authenticate": 'Bearer realm="witan"'}
        detail = "the token is not one of this server's" if has_token else "a token is needed"
        return refusal(scope, 401, f"{detail}; send one: Authorization: Bearer TOKEN", challenge)

    def _sign_in(self, scope: Scope) -> str:
        """Return the address of the sign-in page, with the page to return to."""
        base = urlsplit(self._settings.public_url or "").path.rstrip("/")
        query = scope["query_string"].decode("latin-1")
        to = quote(f"{base}{quote(scope['path'])}{'?' if query else ''}{query}", safe="")
        return f"{base}/sign-in?to={to}"

    def _identify_client(self, headers: Headers) -> Client | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return self._clients.by_token(token.strip())
        if (key := headers.get("x-api-key")) is not None:
            return self._clients.by_token(key.strip())
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return None
        return None if cookie is None else self._clients.by_cookie(cookie.value)

    def _refuse_rate(self, scope: Scope) -> Response | None:
        client: Client | None = scope.get("witan.client")
        if client is None or client.per_minute is None or scope["path"].startswith(PUBLIC):
            return None
        limit = RateLimitItemPerMinute(REQUESTS_A_SESSION * ceil(client.per_minute))
        if self._rates.hit(limit, "asked", client.name):
            return None
        reset = self._rates.get_window_stats(limit, "asked", client.name).reset_time
        wait = str(max(1, ceil(reset - time.time())))
        most = f"{limit.amount:,} requests in a minute"
        detail = f"{client.name} may make {most}; ask again in {wait} s"
        return refusal(scope, 429, detail, {"Retry-After": wait})


def _wants_sign_in(scope: Scope, headers: Headers) -> bool:
    """Return true if a browser loads a page, not a stream."""
    accept = headers.get("accept", "")
    page = "text/html" in accept and "text/event-stream" not in accept
    return page and scope["method"] in SAFE


def _headers_alone(send: Send) -> Send:
    answered = False

    async def forward(message: Message) -> None:
        nonlocal answered
        if not answered:
            answered = True
            await send(message)
            await send({"type": "http.response.body"})

    return forward


def _host(header: str) -> str:
    host = header.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
