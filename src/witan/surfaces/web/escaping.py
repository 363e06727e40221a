"""Escape text for pages; all text passes through here."""

import re
from typing import Any

from markupsafe import Markup, escape  # noqa: TID251 - the gate of pages

from witan.core.escaping import STEERING
from witan.service.text import readable

_STEERING = re.compile(f"[{STEERING}]")


def to_html(text: str) -> Markup:
    """Escape a text for reading: markup, control characters and invisible ones."""
    return escape(readable(text))


def exact_html(value: object) -> Markup:
    """Escape the value of a field, so that the form sends it back unchanged."""
    escaped = str(escape(value))
    return Markup(_STEERING.sub(lambda match: f"&#x{ord(match[0]):x};", escaped))  # noqa: S704


def trusted_html(html: str) -> Markup:
    """Mark HTML as safe if it is ours or made of escaped text."""
    return Markup(html)  # noqa: S704 - the caller's word


def finalize(value: Any) -> Any:
    """Convert the value of a template's expression to readable text before escaping."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
