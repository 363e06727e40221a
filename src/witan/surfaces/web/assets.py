"""What the page is made of beside its HTML: found in the package, named by content."""

import hashlib
from base64 import b64encode
from functools import lru_cache
from importlib.resources import files

from witan.errors import UnknownName

__all__ = ["ASSETS", "STYLES", "asset", "asset_href", "style_source", "styles"]

STYLES = ("base.css", "session.css", "figures.css", "reports.css")
"""In the order in which they are read."""

ASSETS = {
    "base.css": "text/css; charset=utf-8",
    "session.css": "text/css; charset=utf-8",
    "figures.css": "text/css; charset=utf-8",
    "reports.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "hx-sse.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Every file that a browser may ask for, and its media type."""


@lru_cache(maxsize=32)
def asset(name: str) -> bytes:
    """The bytes of an asset.

    Raises
    ------
    UnknownName
        If there is none of this name.
    """
    if name not in ASSETS:
        raise UnknownName("asset", name, sorted(ASSETS))
    return files(__package__).joinpath("assets", name).read_bytes()


@lru_cache(maxsize=32)
def asset_href(name: str, base: str = "") -> str:
    """Where an asset is asked for; what it holds is part of its address, so it may be kept."""
    return f"{base}/assets/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


@lru_cache(maxsize=1)
def styles() -> str:
    """All styles as one text, for a page that stands alone."""
    return "\n".join(asset(name).decode() for name in STYLES)


def style_source(text: str) -> str:
    """How a content security policy names exactly this style."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
