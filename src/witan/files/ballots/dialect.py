"""How a CSV file is written: what separates its cells, and its decimals."""

import csv
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from witan.files.ballots.columns import ALIASES, CRITERIA, CRITERION_PREFIX, Header, folded

__all__ = ["Dialect", "cut", "with_points"]

_MARKS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SEPARATOR_LINE = re.compile(r"sep=(.)$", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*(?:%|/\s*\d+(?:,\d+)?)?\s*")
_KNOWN = frozenset((*(name for names in ALIASES.values() for name in names), *CRITERIA))
_TEXTS = (
    *("session", "reviewer", "candidate", "first", "second", "outcome", "author", "kind"),
    *("reason", "candidates", "category", "at", "question", "notes"),
)
"""Fields that hold text, in which a comma between digits is no decimal mark."""

_SHOWN = 1 << 16
"""Of a first line no more than this is looked at, well below what the csv module takes."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What separates cells, and whether blanks follow it.

    Parameters
    ----------
    separator_line
        The first line only names the separator, as Excel writes it: ``sep=;``.
    """

    delimiter: str
    spaced: bool = False
    separator_line: bool = False

    @classmethod
    def of(cls, first: str, columns: Mapping[str, str]) -> "Dialect":
        """The dialect of a file by its first line: the one under which most columns are known."""
        if named := _SEPARATOR_LINE.match(first):
            return cls(named[1], separator_line=True)
        bare = _QUOTED.sub("", first)
        present = [mark for mark in _MARKS if mark in bare]
        given = {part.strip() for name in columns.values() for part in name.split("+")}
        known = _KNOWN | {folded(name) for name in given}

        def fit(mark: str) -> tuple[int, int]:
            cells = cut(first, mark)
            prefixed = (cell.casefold().startswith(CRITERION_PREFIX) for cell in cells)
            return sum(folded(cell) in known for cell in cells) + sum(prefixed), bare.count(mark)

        delimiter = max(present, key=fit) if len(present) > 1 else next(iter(present), ",")
        return cls(delimiter, spaced=f"{delimiter} " in bare)

    def rows(self, lines: Sequence[str], width: int) -> list[list[str]]:
        """Cells of a few lines; what breaks off, or is not as wide as the header, is left out."""
        marked = (f"{line}\n" for line in lines)
        reader = csv.reader(marked, delimiter=self.delimiter, skipinitialspace=self.spaced)
        found: list[list[str]] = []
        with suppress(csv.Error):  # it is told when it is read
            found.extend([c.strip() for c in row[:width]] for row in reader if len(row) >= width)
        return found

    def numeric(self, names: Sequence[str], columns: Mapping[str, str], path: str) -> list[int]:
        """Columns in which a comma between digits is a decimal mark; none where it separates."""
        if self.delimiter == ",":
            return []
        texts = Header(names, columns, path, absent=True).places(_TEXTS)
        return [place for place in range(len(names)) if place not in texts]


def cut(line: str, delimiter: str) -> list[str]:
    """The cells of one line, also of one that a carriage return makes no CSV."""
    try:
        cells = next(csv.reader([line[:_SHOWN]], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        cells = line[:_SHOWN].split(delimiter)
    return [cell.strip() for cell in cells]


def with_points(row: list[str], places: Sequence[int]) -> list[str]:
    """The row with decimal points for decimal commas."""
    if not any("," in row[place] for place in places):
        return row
    changed = list(row)
    for place in places:
        if _DECIMAL_COMMA.fullmatch(row[place]):
            changed[place] = row[place].replace(",", ".")
    return changed
