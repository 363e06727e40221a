"""Assets of the page, in the package, named by their content."""

import hashlib
from base64 import b64encode
from functools import lru_cache
from importlib.resources import files

from witan.errors import UnknownName

STYLES = (
    "base.css",
    "text.css",
    "session.css",
    "figures.css",
    "charts.css",
    "reports.css",
    "composer.css",
)
"""In the order in which they are read."""

SCRIPTS = (
    "page.js",
    "session.js",
    "charts.js",
    "text.js",
    "composer.js",
    "htmx.min.js",
    "hx-sse.min.js",
)

ASSETS = {
    **dict.fromkeys(STYLES, "text/css; charset=utf-8"),
    **dict.fromkeys(SCRIPTS, "text/javascript; charset=utf-8"),
    "icon.svg": "image/svg+xml",
}
"""Every file that a browser may ask for, and its media type."""


@lru_cache(maxsize=32)
def asset(name: str) -> bytes:
    """Return the bytes of an asset."""
    if name not in ASSETS:
        raise UnknownName("asset", name, sorted(ASSETS))
    return files(__package__).joinpath("assets", name).read_bytes()


@lru_cache(maxsize=32)
def asset_href(name: str, base: str = "") -> str:
    """Return the address of an asset, which names its content."""
    return f"{base}/assets/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


@lru_cache(maxsize=1)
def styles() -> str:
    """Join all styles, for a page that stands alone."""
    return "\n".join(asset(name).decode() for name in STYLES)


def style_source(text: str) -> str:
    """Return the source of this style for a content security policy."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
