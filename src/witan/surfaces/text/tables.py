"""Tables that fit: names give up their middle first, then columns go, the least needed first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from witan.service.text import Page, clean, shorten, span

__all__ = ["Column", "table"]

GAP = "  "

NARROWEST = 12
"""Columns to which a name may be shortened before whole columns are given up."""

ALWAYS = 100
"""The `keep` of a column that is never given up."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    keep
        How long it stays when there is not room for all; the smallest goes first, 100 never.
    elastic
        Its cells may be shortened in the middle.
    """

    title: str
    align: Literal["left", "right"] = "right"
    keep: int = ALWAYS
    elastic: bool = False


def table(
    page: Page,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    breaks: Collection[int] = (),
    bold: Collection[int] = (),
) -> Iterator[str]:
    """The lines of a table.

    Parameters
    ----------
    breaks
        Rows that a line is drawn above.
    bold
        Rows that stand out.
    """
    cells = [[clean(cell) for cell in row] for row in rows]
    titles = [clean(column.title) for column in columns]
    natural = [
        max([span(title), *(span(row[index]) for row in cells)])
        for index, title in enumerate(titles)
    ]
    kept = list(range(len(columns)))
    dropped: list[int] = []
    while page.width is not None and _least(columns, natural, kept) > page.width:
        spare = [index for index in kept if columns[index].keep < ALWAYS]
        if not spare:
            break
        goes = min(spare, key=lambda index: (columns[index].keep, -index))
        kept.remove(goes)
        dropped.append(goes)
    widths = _widths(page, columns, natural, kept)
    yield page.paint(_line(columns, titles, kept, widths), "dim")
    length = sum(widths.values()) + len(GAP) * (len(kept) - 1)
    for number, row in enumerate(cells):
        if number in breaks:
            yield page.line(length)
        yield page.paint(_line(columns, row, kept, widths), "bold" if number in bold else "plain")
    if dropped:
        names = ", ".join(titles[index] for index in sorted(dropped))
        yield page.sentence(f"(too narrow to show: {names})", "dim")


def _least(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int]) -> int:
    """The narrowest these columns can be."""
    widths = (
        min(natural[index], NARROWEST) if columns[index].elastic else natural[index]
        for index in kept
    )
    return sum(widths) + len(GAP) * (len(kept) - 1)


def _widths(
    page: Page, columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int]
) -> dict[int, int]:
    """Width per column kept; the widest elastic ones give way until the line fits."""
    widths = {index: natural[index] for index in kept}
    if page.width is None:
        return widths
    excess = sum(widths.values()) + len(GAP) * (len(kept) - 1) - page.width
    elastic = [index for index in kept if columns[index].elastic]
    while excess > 0 and elastic:
        widest = max(elastic, key=lambda index: widths[index])
        if widths[widest] <= min(natural[widest], NARROWEST):
            break
        widths[widest] -= 1
        excess -= 1
    return widths


def _line(
    columns: Sequence[Column], cells: Sequence[str], kept: Sequence[int], widths: dict[int, int]
) -> str:
    shown = []
    for index in kept:
        cell = shorten(cells[index], widths[index])
        padding = " " * (widths[index] - span(cell))
        shown.append(cell + padding if columns[index].align == "left" else padding + cell)
    return GAP.join(shown).rstrip()
