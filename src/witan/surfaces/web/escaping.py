"""Escaping: the only way for text into a page."""

import re
from typing import Any

from markupsafe import Markup, escape  # noqa: TID251 - the gate of pages

from witan.core.escaping import STEERING
from witan.service.text import readable

_STEERING = re.compile(f"[{STEERING}]")


def to_html(text: str) -> Markup:
    """Escape a text for reading: markup, and characters that steer or hide."""
    return escape(readable(text))


def exact_html(value: object) -> Markup:
    """Escape the value of a field, which the form sends back unchanged."""
    escaped = str(escape(value))
    return Markup(_STEERING.sub(lambda match: f"&#x{ord(match[0]):x};", escaped))  # noqa: S704


def trusted_html(html: str) -> Markup:
    """Mark HTML as safe that we wrote or made of escaped text."""
    return Markup(html)  # noqa: S704 - the caller's word


def finalize(value: Any) -> Any:
    """Make the value of a template's expression readable before escaping."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
