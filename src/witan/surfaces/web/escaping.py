"""The only way into a page: text becomes HTML that can neither run nor hide anything."""

import re
from typing import Any

from markupsafe import Markup, escape

from witan.core.escaping import STEERING
from witan.service.text import readable

__all__ = ["exact_html", "finalize", "to_html", "trusted_html"]

_STEERING = re.compile(f"[{STEERING}]")


def to_html(text: str) -> Markup:
    """Escape a text to be read: its markup, and the characters that steer or hide."""
    return escape(readable(text))


def exact_html(value: object) -> Markup:
    """Escape a text that a form sends back: what steers or hides is a reference (``&#x1b;``)."""
    escaped = str(escape(value))
    return Markup(_STEERING.sub(lambda found: f"&#x{ord(found[0]):x};", escaped))  # noqa: S704


def trusted_html(html: str) -> Markup:
    """Take as it is what we made of escaped text, or wrote ourselves."""
    return Markup(html)  # noqa: S704 - the caller's word


def finalize(value: Any) -> Any:
    """Make the value of an expression in a template readable, before it is escaped."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
