"""Results at a prompt and in a notebook: one line, or the whole report."""

from collections.abc import Callable, Iterable

LONGEST = 48
"""Characters of a text that a line quotes."""

Renderer = Callable[[object], str | None]

_renderers: dict[str, Renderer] = {}


class Displayed:
    """A result displayed as its report in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return _renderers["html"](self) if _renderers else None

    def _repr_markdown_(self) -> str | None:
        return _renderers["markdown"](self) if _renderers else None


def render_by(*, html: Renderer, markdown: Renderer) -> None:
    """Register what renders results; either returns None for what the other renders."""
    _renderers.update(html=html, markdown=markdown)


def brief(text: str) -> str:
    """Quote the beginning of a text on one line, control characters escaped."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…")


def list_names(names: Iterable[str], join: str = ", ", most: int = 4) -> str:
    """List names on one line, at most the first few."""
    quotes = [brief(name)[1:-1] for name in names]
    more = [f"{len(quotes) - most} more"] if len(quotes) > most else []
    return join.join([*quotes[:most], *more])
