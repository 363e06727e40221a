"""Results as lines at a prompt, notebook reports and data frames."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

Library = Literal["pandas", "polars", "pyarrow"]

LONGEST = 48
"""Characters of a text that a line quotes."""

Renderer = Callable[[object], str | None]

_renderers: dict[str, Any] = {}


class NotebookDisplay:
    """A result displayed as its report in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        html: str | None = _renderers["html"](self) if _renderers else None
        return html

    def _repr_markdown_(self) -> str | None:
        markdown: str | None = _renderers["markdown"](self) if _renderers else None
        return markdown


class FrameSource(ABC):
    """A result with rows, convertible to a data frame."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield rows by column name.

        Fields of a record under ``""`` become columns themselves.
        """

    def frame(self, library: Library | None = None) -> Any:
        """Return its rows as a data frame.

        Parameters
        ----------
        library
            ``pandas``, ``polars`` or ``pyarrow``; None: the one that is imported already, else the
            first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table

        Raises
        ------
        InvalidParameter
            If there is no such library, or it is not installed.
        """
        return _renderers["frame"](self, library)


class LiveView(Protocol):
    """A display of a session or a batch under way."""

    def show(self, news: Any) -> None:
        """Take a session's next event or a batch's progress."""

    async def refresh(self) -> None:
        """Draw again and again, until the view is closed."""

    def close(self) -> None:
        """Draw the last state for good."""


def open_live_view(work: Literal["session", "batch"]) -> LiveView | None:
    """Open a view in the running notebook; None: there is no notebook."""
    view: LiveView | None = None
    if _renderers:
        view = _renderers["live"](work)
    return view


def render_by(
    *,
    html: Renderer,
    markdown: Renderer,
    frame: Callable[[Any, Any], object],
    live: Callable[[str], LiveView | None],
) -> None:
    """Register the renderers of results.

    The first two return None for results of the other's kind.
    """
    _renderers.update(html=html, markdown=markdown, frame=frame, live=live)


def brief(text: str) -> str:
    """Quote the beginning of a text on one line, control characters escaped."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…")


def list_names(names: Iterable[str], join: str = ", ", most: int = 4) -> str:
    """List names on one line, at most the first few."""
    quotes = [brief(name)[1:-1] for name in names]
    more = [f"{len(quotes) - most} more"] if len(quotes) > most else []
    return join.join([*quotes[:most], *more])
