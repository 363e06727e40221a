"""Results in notebooks and as data frames, and live views of running work."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from html import escape  # noqa: TID251 - the gate of notebooks
from importlib import import_module
from importlib.util import find_spec
from time import monotonic
from typing import Any, get_args, get_origin, get_type_hints
from uuid import uuid4

import anyio
from rich.console import RenderableType
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from witan.analytics.audits import AuditReport
from witan.core.arms import ArmComparison
from witan.core.display import Library
from witan.core.estimation import Estimates
from witan.core.outcome import Outcome
from witan.core.stats.leaderboard import Leaderboard
from witan.core.verdict import Verdict
from witan.deliberation.events import Event
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, MissingExtra
from witan.service.batch import BatchReport, Progress
from witan.surfaces.cli.panel import Panel
from witan.surfaces.live_board import Board
from witan.surfaces.report import report_of
from witan.surfaces.report.batch import progress_text
from witan.surfaces.report.text import report_markdown
from witan.surfaces.terminal import console, style_line

LIBRARIES: tuple[str, ...] = get_args(Library)

REFRESH_SECONDS = 0.25
"""Seconds between two updates of the display."""

_PAGES = (
    Outcome, Verdict, Leaderboard, AuditReport, Estimates, ArmComparison, BatchReport,
)  # fmt: skip
"""Results that a notebook shows as pages of their own."""

SIZE = (100, 10_000)
"""Columns and lines of a picture; notebooks do not report their width."""


def make_frame(rows: Iterable[Mapping[str, Any]], library: Library | None = None) -> Any:
    """Make a data frame of rows; library and errors as in `FrameSource.frame`."""
    if library is not None and library not in LIBRARIES:
        raise InvalidParameter("library", library, " or ".join(LIBRARIES))
    name = library or _find_library()
    try:
        module = import_module(name)
    except ImportError as error:
        raise InvalidParameter("library", name, f"installed: pip install {name}") from error
    columns = _columns([flatten(row) for row in rows])
    if name == "pyarrow":
        return module.table(columns)
    return module.DataFrame(columns)


def _find_library() -> str:
    imported_libraries = [name for name in LIBRARIES if name in sys.modules]
    installed = (name for name in LIBRARIES if find_spec(name) is not None)
    return next(iter(imported_libraries), None) or next(installed, LIBRARIES[0])


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flatten(row: object, prefix: str = "") -> dict[str, Any]:
    """Flatten nested fields into columns ``outer_inner``, and names into text.

    Levels of intervals, and tuples of anything but names, are left out. A class represents a
    missing record, with columns of None, so that columns do not depend on the data.
    """
    flat: dict[str, Any] = {}
    for name, value in _members(row):
        column = f"{prefix}{name}"
        if isinstance(value, tuple | list):
            if all(isinstance(each, str) for each in value):
                flat[column] = ", ".join(value)
        elif isinstance(value, Mapping) or is_dataclass(value):
            flat |= flatten(value, f"{column}_" if name else prefix)
        elif name != "level":
            flat[column] = value
    return flat


def _members(row: object) -> Iterator[tuple[str, Any]]:
    if isinstance(row, Mapping):
        yield from row.items()
    elif isinstance(row, type):
        yield from _empty_record(row).items()
    elif is_dataclass(row):
        kind: Any = type(row)
        empty = _empty_record(kind)
        for each in fields(row):
            value = getattr(row, each.name)
            yield each.name, empty.get(each.name) if value is None else value


@cache
def _empty_record(kind: type) -> dict[str, Any]:
    """Return the columns of a missing record, nested ones by class."""
    columns = {}
    for name, hint in get_type_hints(kind).items():
        kinds = (get_origin(hint), hint, *get_args(hint))
        if hint == tuple[str, ...] or kinds[0] not in (tuple, Mapping):
            columns[name] = next((each for each in kinds if is_dataclass(each)), None)
    return columns


def result_markdown(result: object) -> str:
    """Render the report of a result as Markdown."""
    return report_markdown(report_of(result))


def result_html(result: object) -> str | None:
    """Render a session, or the report of a result, as a page.

    Its styles do not leak, and it has no scripts. None if Markdown is enough, or if the library
    that writes pages is missing.
    """
    from witan.surfaces.report import report_to_html, session_to_html

    try:
        if isinstance(result, Session):
            return _frame(session_to_html(result), "40em")
        if isinstance(result, _PAGES):
            return _frame(report_to_html(report_of(result)), "30em")
    except MissingExtra:
        pass
    return None


def _frame(page: str, height: str) -> str:
    attributes = f'sandbox="allow-popups" style="width: 100%; height: {height}; border: 0"'
    return f'<iframe {attributes} srcdoc="{escape(page)}"></iframe>'


def open_view(work: str) -> "_SessionView | _BatchView | None":
    """Open a live view in the running notebook cell, or return None."""
    shell = sys.modules["IPython"].get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    publish = import_module("IPython.display").display
    return _SessionView(publish) if work == "session" else _BatchView(publish)


class _LiveOutput(ABC):
    """One output of a cell, redrawn until the work has ended."""

    def __init__(self, publish: Callable[..., object]) -> None:
        self._publish, self._id = publish, uuid4().hex
        self._is_begun = self._is_closed = False

    @abstractmethod
    def picture(self) -> RenderableType:
        """Return the text to draw."""

    def draw(self) -> None:
        """Draw the picture over the previous one."""
        bundle = draw_picture(self.picture())
        with suppress(Exception):  # a failed drawing must not end the session
            self._publish(bundle, raw=True, display_id=self._id, update=self._is_begun)
        self._is_begun = True

    async def refresh(self) -> None:
        while not self._is_closed:
            self.draw()
            await anyio.sleep(REFRESH_SECONDS)

    def close(self) -> None:
        """Draw the last picture, which stays."""
        self._is_closed = True
        self.draw()


class _SessionView(_LiveOutput):
    def __init__(self, publish: Callable[..., object]) -> None:
        super().__init__(publish)
        self._panel, self._board = Panel(console(SIZE)), Board()

    def show(self, event: Event) -> None:
        self._board = self._board.apply_event(event)

    def picture(self) -> Panel:
        """Return the panel; once closed, it has no pending seats."""
        self._panel.show(self._board.settle() if self._is_closed else self._board)
        return self._panel


class _BatchView(_LiveOutput):
    _line = ""
    _next = 0.0

    def show(self, progress: Progress) -> None:
        """Store the batch progress, and draw it at a limited rate."""
        self._line = progress_text(progress)
        if monotonic() >= self._next or progress.n_done == progress.rows:
            self._next = monotonic() + REFRESH_SECONDS
            self.draw()

    def picture(self) -> RenderableType:
        return style_line(self._line)


def draw_picture(picture: RenderableType) -> dict[str, Any]:
    """Draw a picture as plain text, and as HTML where possible."""
    segments = [*console(SIZE).render(picture)]
    bundle = {"text/plain": "".join(segment.text for segment in segments)}
    with suppress(ImportError):
        from witan.surfaces.web.escaping import to_html

        parts = []
        for text, style, _ in segments:
            css = style.get_html_style(DEFAULT_TERMINAL_THEME) if style else ""
            parts.append(f'<span style="{css}">{to_html(text)}</span>' if css else to_html(text))
        font = "var(--jp-code-font-family, monospace)"
        look = f"font-family: {font}; line-height: 1.3; white-space: pre; overflow-x: auto"
        bundle["text/html"] = f'<pre style="{look}">{"".join(parts)}</pre>'
    return bundle
