"""Tables of numbers, as they stand beside a chart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from witan.service.text import clean
from witan.surfaces.report.document import Column

__all__ = ["Heading", "Numbers", "numbers"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: what it is called, which side it stands on, and whether it names the row."""

    title: str
    right: bool
    heads: bool


@dataclass(frozen=True, slots=True)
class Numbers:
    """A table in groups of rows."""

    columns: tuple[Heading, ...]
    groups: tuple[tuple[tuple[str, ...], ...], ...]


def numbers(
    columns: Sequence[tuple[Column, Sequence[str]]], heads: str, breaks: Iterable[int] = ()
) -> Numbers:
    """Columns with their cells as a table.

    Parameters
    ----------
    heads
        The title of the column that names its rows.
    breaks
        Rows before which another group begins.
    """
    headings = [Heading(c.title, c.align == "right", c.title == heads) for c, _ in columns]
    rows = list(zip(*(map(_printed, cells) for _, cells in columns), strict=True))
    groups, at = [], 0
    for end in [*sorted({*breaks} - {0}), len(rows)]:
        groups.append(tuple(rows[at:end]))
        at = end
    return Numbers(tuple(headings), tuple(group for group in groups if group))


def _printed(cell: str) -> str:
    """A cell with the minus sign of print, where it is a number."""
    return clean(f"−{cell[1:]}" if cell[:1] == "-" and cell[1:2].isdigit() else cell)
