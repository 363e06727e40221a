"""A session as one HTML file, for whoever asks by a program or from a page."""

from typing import Annotated, Any

import anyio
from fastapi import Query
from starlette.responses import Response

from witan.service.operations.sessions import imported_of
from witan.surfaces.http.access import ServiceOf
from witan.surfaces.http.documents import SessionNamed, operations, refused
from witan.surfaces.web.assets import style_source, styles
from witan.surfaces.web.beside import beside
from witan.surfaces.web.rendering import export_html, export_imported_html
from witan.surfaces.web.responses import Compressed

__all__ = ["router"]

router = operations()

HTML: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The page.",
        "content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>…"}},
    },
    **refused(404, 409),
}


@router.get(
    "/sessions/{session:quoted}/export.html",
    tags=["sessions"],
    summary="A session as one HTML file",
    responses=HTML,
    response_class=Response,
)
async def export(
    session: SessionNamed,
    service: ServiceOf,
    reveal: Annotated[bool, Query(description="Say who wrote what.")] = True,
) -> Response:
    """Give a session as a page that stands alone: its own styles, no script, nothing fetched."""
    imported = await imported_of(service, session)
    if imported is not None:
        html = await anyio.to_thread.run_sync(export_imported_html, imported)
        return _file(html, imported.about.session)
    found = await service.session(session)
    known = await beside(service, found.id)

    def write() -> str:
        return export_html(found, revealed=reveal, children=known.children, votes=known.votes)

    return _file(await anyio.to_thread.run_sync(write), found.id)


def _file(html: str, session: str) -> Response:
    name = "".join(c if (c.isascii() and c.isalnum()) or c in "-_" else "-" for c in session)
    policy = f"sandbox; default-src 'none'; style-src {style_source(styles())}"
    headers = {
        "Content-Disposition": f'attachment; filename="witan-{name}.html"',
        "Content-Security-Policy": policy,
        "Cache-Control": "private, no-cache",
    }
    return Compressed(html, headers=headers, media_type="text/html")
