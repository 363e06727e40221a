"""Pages as responses: compressed, with their security policy."""

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from witan.service.catalogue import redact
from witan.service.sessions.manager import Service
from witan.surfaces.http.addresses import known_parameters
from witan.surfaces.web.rendering import PAGE_POLICY, Site

PROGRAMS = ("/api", "/v1", "/mcp", "/metrics", "/healthz", "/openapi.json", "/assets")
"""Paths that programs or pages request."""

UNKEPT = {"Cache-Control": "no-store"}
"""Header that keeps browsers from showing a page again, such as a deleted session's."""

FRESH = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "private, no-cache"}


def page_router() -> APIRouter:
    """Make a router of pages that refuses unknown parameters."""
    return APIRouter(include_in_schema=False, dependencies=[Depends(known_parameters)])


class CompressedResponse(Response):
    """A response that is compressed if the client accepts it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await GZipMiddleware(super().__call__, minimum_size=1000)(scope, receive, send)


class HtmlPage(CompressedResponse, HTMLResponse):
    """A page that browsers revalidate every time."""

    def __init__(self, html: str, status: int = 200, headers: Mapping[str, str] | None = None):
        super().__init__(html, status, {**FRESH, **(headers or {})})


def site_of(request: Request) -> Site:
    """Return the site of a request."""
    public = request.app.state.settings.public_url
    client = request.scope.get("witan.client")
    has_clients = not request.app.state.clients.open
    base = "" if public is None else urlsplit(public).path.rstrip("/")
    service: Service = request.app.state.service
    keeps = service.history is not None
    profiles = service.profiles.values()
    councils = tuple(redact(each) for each in profiles if each.jury or not each.problem)
    name = client.name if client is not None and has_clients else ""
    return Site(base, keeps=keeps, client=name, councils=councils)


def wants_page(scope: Scope) -> bool:
    """Return true if a browser requests a page."""
    path: str = scope["path"]
    if any(path == each or path.startswith(f"{each}/") for each in PROGRAMS):
        return False
    return any(
        name == b"accept" and b"text/html" in value for name, value in scope.get("headers", ())
    )


def redirect(site: Site, *parts: str, **query: str) -> Response:
    """Redirect the browser to a page, so that reloading sends nothing again."""
    query_text = f"?{urlencode(query)}" if query else ""
    return RedirectResponse(f"{site.at(*parts)}{query_text}", 303)
