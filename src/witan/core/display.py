"""Format numbers as text, and results as lines, reports and data frames."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import accumulate
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from witan.core.outcome import Interval

Library = Literal["pandas", "polars", "pyarrow"]

LONGEST = 48
"""Maximum number of characters quoted from a text in one line."""

UNKNOWN = "–"
"""Placeholder for an unknown number."""

SPARE_DIGITS = 7
"""Decimals considered beyond the printed ones; further ones differ between processors."""

LEAST_USD = 1e-6
"""Smaller positive amounts are not written out."""

MOST_USD = 1e15
"""Larger amounts are written with three digits."""

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
        """Yield rows as mappings from column name to value.

        The fields of a record under ``""`` become separate columns.
        """

    def frame(self, library: Library | None = None) -> Any:
        """Return its rows as a data frame.

        Parameters
        ----------
        library
            ``pandas``, ``polars`` or ``pyarrow``; None: the one already imported or, if there is
            none, the first of these that is installed.

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
    """A display of a running session or batch."""

    def show(self, news: Any) -> None:
        """Show a session's next event or a batch's progress."""

    async def refresh(self) -> None:
        """Redraw repeatedly until the view is closed."""

    def close(self) -> None:
        """Draw the final state."""


def open_live_view(work: Literal["session", "batch"]) -> LiveView | None:
    """Open a view in the running notebook; None without a notebook."""
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

    `html` and `markdown` return None for results that they do not render.
    """
    _renderers.update(html=html, markdown=markdown, frame=frame, live=live)


def number(value: float | None, digits: int = 2) -> str:
    """Format a number with `digits` decimals; `UNKNOWN` for None."""
    if value is None or not isfinite(value):
        return UNKNOWN
    # A sum may yield 8.25 ± 1e-15 for 8.25, depending on the processor's order of adding.
    digits_text = f"{round(value, digits + SPARE_DIGITS):.{digits}f}"
    # Drop the sign of a number that rounds to zero.
    return digits_text.removeprefix("-") if float(digits_text) == 0 else digits_text


def dollars(usd: float, *, up: bool = False) -> str:
    """Write US dollars: ``$0``, ``$1,204.50``, ``$0.041``, ``$0.0012``, ``$0.000031``.

    Only nothing is written as ``$0``. A sufficient amount is rounded up.
    """
    if usd == 0:
        return "$0"
    if usd < LEAST_USD:
        return f"{'' if up else 'under '}${LEAST_USD:f}"
    if usd >= MOST_USD:
        return f"${usd:.3g}"
    digits = 2 if usd >= 1 else 3 if usd >= 0.01 else max(4, 1 - floor(log10(usd)))
    # The rounding error of a sum, such as 0.1 + 0.2, is not rounded up.
    rounded = (
        ceil(usd * 10**digits - 1e-6) / 10**digits if up else round(usd, digits + SPARE_DIGITS)
    )
    return f"${rounded:,.{digits}f}"


def sufficient_usd(usd: float) -> str:
    """Write the value of an option that allows an amount: ``1204.51``."""
    return dollars(usd, up=True).removeprefix("$").replace(",", "")


def percent(share: float | None, digits: int = 0) -> str:
    """Write a share in percent: ``35%``; `UNKNOWN` for None."""
    return UNKNOWN if share is None else f"{number(100 * share, digits)}%"


def chance_percent(probability: float | None) -> str:
    """Write a probability in whole percent, never as 0% or 100%."""
    if probability is not None and probability < 0.005:
        return "<1%"
    return ">99%" if probability is not None and probability >= 0.995 else percent(probability)


def level_percent(level: float) -> str:
    """Write an interval's level with its decimals, never as 100%: ``99.9%``."""
    texts = (f"{100 * level:.{digits}g}" for digits in range(6, 18))
    return f"{next((text for text in texts if text != '100'), '100')}%"


def percent_range(interval: "Interval") -> str:
    """Write the ends of an interval of shares: ``64–77%``."""
    return f"{number(100 * interval.low, 0)}–{percent(interval.high)}"


def brief(text: str, longest: int = LONGEST) -> str:
    """Quote the beginning of a text on one line, control characters escaped."""
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= longest else f"{flat[: longest - 1]}…")


def list_names(names: Iterable[str], join: str = ", ", most: int = 4) -> str:
    """List the first few names on one line."""
    return join.join(list_some([brief(name)[1:-1] for name in names], most))


def list_some(parts: Sequence[str], most: int) -> list[str]:
    """Keep the first parts and state how many more there are."""
    return [*parts[:most], *([f"{len(parts) - most} more"] if len(parts) > most else [])]


MAX_LINE = 120
"""Maximum length of the line of fields that differ from their defaults."""


def changes_line(settings: Any) -> str:
    """List a dataclass's fields that differ from the defaults on one line.

    Fields of nested settings are listed flat, like the keywords of a council.
    """
    kind = type(settings)
    changes = [f"{name}={_brief_value(value)}" for name, value in _changes(settings, kind())]
    room = MAX_LINE - len(f"<{kind.__name__}: , 99 more>")
    n_fitting = sum(n <= room for n in accumulate(len(change) + 2 for change in changes))
    return f"<{kind.__name__}: {', '.join(list_some(changes, n_fitting)) or 'all defaults'}>"


def _changes(settings: Any, default: Any) -> Iterator[tuple[str, object]]:
    for each in fields(settings):
        value, usual = getattr(settings, each.name), getattr(default, each.name)
        if type(value) is type(usual) and is_dataclass(usual) and _has_defaults(usual):
            yield from _changes(value, usual)
        elif value != usual:
            yield each.name, value


def _has_defaults(value: Any) -> bool:
    return all((each.default, each.default_factory) != (MISSING, MISSING) for each in fields(value))


def _brief_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{brief(', '.join(f'{key}: {item}' for key, item in value.items()))[1:-1]}}}"
    if is_dataclass(value) and hasattr(value, "name"):
        return brief(value.name)
    return brief(value) if isinstance(value, str) else brief(str(value))[1:-1]


Cell = str | int | float | None
"""One cell of a table; None: empty."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an explanation: operation and numbers.

    Parameters
    ----------
    title, sentences
        Its heading and text.
    header, rows
        A table, with all rows as long as the header; may be empty.
    """

    title: str
    sentences: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
