"""The pages: assets, signing in, and the routers of all others."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from witan.surfaces.http.door import COOKIE, Clients
from witan.surfaces.web import routes_asking, routes_reports, routes_sessions
from witan.surfaces.web.forms import read_form
from witan.surfaces.web.rendering import ASSETS, asset, render
from witan.surfaces.web.responses import (
    CompressedResponse,
    HtmlPage,
    page_router,
    redirect,
    site_of,
)

FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
"""Headers of an asset with a digest in its address."""

router = page_router()


@router.get("/assets/{name}")
async def send_asset(name: str, digest: Annotated[str | None, Query(alias="v")] = None) -> Response:
    """Send an asset of the pages."""
    content = asset(name)
    # Without a digest in the address, the content may change.
    headers = FOR_GOOD if digest is not None else {"Cache-Control": "no-cache"}
    return CompressedResponse(content, headers=headers, media_type=ASSETS[name])


@router.get("/sign-in")
async def sign_in_form(request: Request, to: str = "") -> Response:
    """Ask for a token if one is needed."""
    site = site_of(request)
    if request.app.state.clients.open:
        return redirect(site)
    return HtmlPage(render("sign_in.html", site=site, problem="", to=_own_path(to)))


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Set a cookie for a token."""
    site, clients = site_of(request), _clients(request)
    form = await read_form(request)
    to = _own_path(form.get("to"))
    client = clients.by_token(form.get("token"))
    if client is None:
        waits = clients.count_guess(request.client.host if request.client else "")
        problem = "too many wrong tokens; wait a minute" if waits else "unknown token"
        html = render("sign_in.html", site=site, problem=problem, to=to)
        return HtmlPage(html, 429 if waits else 401, {"Retry-After": "60"} if waits else None)
    response = RedirectResponse(to or site.at(), 303)
    response.set_cookie(
        COOKIE,
        clients.sign_in(client),
        path=site.at(),
        httponly=True,
        samesite="strict",
        secure=_secure(request),
    )
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Invalidate and delete the cookie."""
    site = site_of(request)
    if (cookie := request.cookies.get(COOKIE)) is not None:
        _clients(request).sign_out(cookie)
    response = redirect(site, "sign-in")
    response.delete_cookie(COOKIE, path=site.at(), httponly=True, samesite="strict")
    return response


def _clients(request: Request) -> Clients:
    clients: Clients = request.app.state.clients
    return clients


def _secure(request: Request) -> bool:
    public = request.app.state.settings.public_url or ""
    return request.url.scheme == "https" or public.startswith("https:")


def _own_path(to: str) -> str:
    """Return a path if it is one of our pages, otherwise an empty string."""
    target_is_local = to.startswith("/") and to[1:2] not in ("/", "\\")
    return to if target_is_local and to.isascii() and to.isprintable() else ""


router.routes += [
    *routes_asking.router.routes,
    *routes_reports.report_router.routes,
    *routes_reports.router.routes,
    *routes_sessions.router.routes,  # last, because a session's name may contain anything
]
