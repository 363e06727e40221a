"""Names, numbers and sentences as text, for terminals and pipes."""

import os
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from witan.core.display import UNKNOWN as UNKNOWN
from witan.core.display import number as number
from witan.core.escaping import clean as clean
from witan.core.escaping import readable as readable

if TYPE_CHECKING:
    from witan.core.outcome import Interval

MANY_NAMES = 5
"""More names than this in one sentence are counted instead of listed."""

TAB = 8
"""Columns from one tab stop to the next."""

STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "warning": "\x1b[33m", "plain": ""}
RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Page:
    """A page to print on.

    `width`: maximum width in columns, or None.
    `has_rules`: lines are drawn with box characters, as on a terminal.
    `has_colour`: whether to use bold, dim and colour; they never carry meaning alone.
    `commands`: whether the reader types commands, so that a remedy is ``--scale 0-1``, not
    ``scale=0-1``.
    """

    width: int | None = None
    has_rules: bool = False
    has_colour: bool = False
    commands: bool = False

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str] | None = None) -> "Page":
        """Return the page of a stream: a terminal, or plain text."""
        if not stream.isatty():
            return cls(commands=True)
        known = os.environ if environment is None else environment
        plain = bool(known.get("NO_COLOR")) or known.get("TERM") == "dumb"
        columns = shutil.get_terminal_size().columns
        return cls(width=columns, has_rules=True, has_colour=not plain, commands=True)

    def option(self, name: str) -> str:
        """Return an option before its value, in this page's notation."""
        return f"--{name} " if self.commands else f"{name}="

    def paint(self, text: str, style: str) -> str:
        """Style a text by `STYLES`, if the page has styles."""
        if not self.has_colour or style == "plain" or not text:
            return text
        return f"{STYLES[style]}{text}{RESET}"

    def sentence(self, text: str, style: str = "plain", *, hang: int = 0) -> str:
        """Return one printable sentence, folded to the width.

        Later lines are indented by `hang` columns.
        """
        lines = [clean(text)]
        if self.width is not None and span(lines[0]) > self.width:
            folded_lines = textwrap.wrap(
                lines[0], max(self.width, 20), subsequent_indent=" " * hang, break_on_hyphens=False
            )
            lines = folded_lines or lines
        return "\n".join(self.paint(line, style) for line in lines)

    def prose(self, text: str, style: str = "plain", *, indent: str = "") -> str:
        """Fold a text of several lines at its words, safe to print."""
        folding = Folding(None if self.width is None else self.width - span(indent))
        folded = folding.take(readable(text)) + folding.end()
        return "\n".join(indent + self.paint(line, style) for line in folded.split("\n"))

    def line(self, length: int) -> str:
        """Return a horizontal line."""
        return self.paint(("─" if self.has_rules else "-") * length, "dim")


class Folding:
    """Folds a streamed text at its words; buffers the last one.

    Text without a place to break, such as an address, stays whole even if it is too wide.

    `width`: maximum width in columns; None neither folds nor buffers.
    """

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._column = 0
        self._has_word = False
        self._gap = self._word = ""

    def take(self, text: str) -> str:
        """Add text; return the part that can be printed now."""
        if self._width is None:
            return text
        return "".join(map(self._take_character, text))

    def end(self) -> str:
        """Return the rest of the text."""
        return self._place_cells()

    def _take_character(self, char: str) -> str:
        if char == "\n":
            out = self._place_cells() + char
            self._gap, self._column, self._has_word = "", 0, False
            return out
        if char in " \t":
            out = self._place_cells()
            self._gap += char
            return out
        # Scripts without spaces may break before each wide character.
        wide = span(char) > 1 and not self._word.endswith("\u200d")
        out = self._place_cells() if wide else ""
        self._word += char
        return out

    def _place_cells(self) -> str:
        if not self._word or self._width is None:
            return ""
        start = self._column_after(self._gap)
        if self._has_word and start + span(self._word) > self._width:
            gap, self._column = "\n", span(self._word)
        else:
            gap, self._column = self._gap, start + span(self._word)
        word, self._gap, self._word, self._has_word = self._word, "", "", True
        return gap + word

    def _column_after(self, gap: str) -> int:
        column = self._column
        for char in gap:
            column += TAB - column % TAB if char == "\t" else 1
        return column


def span(text: str) -> int:
    """Return a text's columns on a terminal: wide characters count twice."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, width: int, *, middle: bool = True) -> str:
    """Shorten a text to `width` columns, in the middle or the end."""
    if span(text) <= width:
        return text
    if width < 3:
        return "…"[:width]
    head, tail = (width // 2, (width - 1) // 2) if middle else (width - 1, 0)
    return f"{_fitting_prefix(text, head)}…{_fitting_prefix(text[::-1], tail)[::-1]}"


def _fitting_prefix(text: str, width: int) -> str:
    columns_used = 0
    for index, char in enumerate(text):
        columns_used += _columns(char)
        if columns_used > width:
            return text[:index]
    return text


def uncapitalize(text: str) -> str:
    """Begin a text with a lower-case letter."""
    return text[:1].lower() + text[1:]


def interval_text(interval: "Interval | None", digits: int = 2) -> str:
    """``0.12 to 0.75``, or `UNKNOWN` without an interval."""
    if interval is None:
        return UNKNOWN
    return f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def decimals(values: Iterable[float | None]) -> int:
    """Choose the decimals of a column: fewer for larger numbers."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if largest < 10:
        return 3
    return 2 if largest < 100 else 1


def count_noun(amount: int, noun: str) -> str:
    """``1 ballot``, ``1,204 ballots``."""
    return f"{amount:,} {noun if amount == 1 else noun + 's'}"


def full_sentence(text: str) -> str:
    """Capitalize a text's first letter, and end it with a full stop."""
    return end_sentence(f"{text[:1].upper()}{text[1:]}")


def end_sentence(text: str) -> str:
    """End a text with a full stop, unless it has an end."""
    return text if text.rstrip("'\"”’").endswith((".", "?", "!", "…")) else f"{text}."


def list_text(names: Sequence[str], *, most: int = MANY_NAMES) -> str:
    """List names as ``a``, ``a and b`` or ``a, b and c``.

    Beyond `most`: ``a, b, c, d and 7 more``.
    """
    if len(names) < 2:
        return "".join(names)
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
