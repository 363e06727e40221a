"""The report document: headings, sentences, tables, charts and notes.

Texts are plain: names and answers that others wrote stand in them as they are, and each renderer
passes every text through the gate of its destination. Nothing in a text is markup.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from witan.surfaces.report.drawings import Drawing

ALWAYS = 100
"""The `keep` of a column that is never dropped."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The beginning of a section.

    Parameters
    ----------
    key
        Its anchor on a page.
    """

    text: str
    key: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of its own line; `quiet`: an explanation, shown dimmed."""

    text: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """A text of several lines that a model or a person wrote; `aside`: beside what counts."""

    text: str
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Short statements in one line."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """Titled lists of sentences, side by side where there is room."""

    lists: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark.

    Parameters
    ----------
    kind
        ``warning``: what the reader must know; ``concern``: what stands out of `subject`;
        ``reason``: why something is missing; ``hint``: what can be done.
    subject
        Whom it is about, where it does not say so.
    option
        The option that its text names, as in ``scale=0-1``; a command line has ``--scale 0-1``.
    """

    text: str
    kind: Literal["warning", "concern", "reason", "hint"]
    subject: str = ""
    option: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """The report of an operation with other parameters, where a surface has links."""

    operation: str
    parameters: Mapping[str, str]


Fit = Literal["whole", "middle", "end", "fold"]
"""What the cells of a column give up on a narrow terminal: nothing, middle, end, or one line."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    keep
        Priority on a narrow terminal: the column with the smallest is dropped first, 100 never.
    fit
        What its cells give up on a terminal before columns are dropped.
    heads
        Its cells name their rows.
    meaning
        What its numbers are, where the title does not say it.
    interval
        `keep` of a column that a terminal adds with the intervals of its cells; 0: it adds none.
    """

    title: str
    align: Literal["left", "right"] = "right"
    keep: int = ALWAYS
    fit: Fit = "whole"
    heads: bool = False
    meaning: str = ""
    interval: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        The value as printed; None: it is unknown.
    interval
        Its interval as printed, where the table has no column for it.
    basis, short
        What the value rests on, or why it is unknown, in full and in short.
    marked
        The value stands out.
    """

    text: str | None
    interval: str = ""
    basis: str = ""
    short: str = ""
    marked: bool = False
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; `strong`: it leads."""

    cells: tuple[Cell, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, under a label or none; a line parts them from the next."""

    rows: tuple[Row, ...]
    label: str = ""


Form = Literal["numbers", "measured", "measures"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table in groups of rows.

    Parameters
    ----------
    title
        Its accessible name.
    draw
        Makes the drawing that stands in its place on surfaces that draw; None: the table itself.
    form
        On a page: plain ``numbers``; ``measured`` cells, each with interval and basis; or a list
        of ``measures``, whose columns are name, value, interval, basis and meaning.
    """

    title: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    draw: "Callable[[], Drawing] | None" = None
    form: Form = "numbers"

    @property
    def rows(self) -> Iterator[Row]:
        """List the rows, group by group."""
        return (row for group in self.groups for row in group.rows)

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """Title and meaning of the columns that need one."""
        return tuple((each.title, each.meaning) for each in self.columns if each.meaning)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, for surfaces that draw; its numbers are also in a table.

    Parameters
    ----------
    numbers
        The table that belongs to it; None: one of the report has them already.
    beside
        The table stands beside it; else a reader opens it.
    """

    drawing: "Drawing"
    caption: str = ""
    numbers: Table | None = None
    beside: bool = False


Block: TypeAlias = Heading | Sentence | Quote | Facts | Sides | Table | Chart | Note


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks under it; None: they stand before the first heading."""

    heading: Heading | None
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a result says.

    Parameters
    ----------
    title
        What it is a report of; it stands on a page before anything is counted.
    about
        What it is of, in short parts: rule, ballots, window.
    finding
        The conclusion, in a sentence; empty: there is no single one.
    """

    title: str
    about: tuple[str, ...]
    finding: str
    blocks: tuple[Block, ...]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The blocks by their headings."""
        starts = [at for at, block in enumerate(self.blocks) if isinstance(block, Heading)]
        result = []
        for start, end in pairwise([*starts, len(self.blocks)]):
            heading = self.blocks[start]
            assert isinstance(heading, Heading)  # noqa: S101 - chosen above
            result.append(Section(heading, self.blocks[start + 1 : end]))
        before = self.blocks[: starts[0] if starts else None]
        return (*([Section(None, before)] if before else []), *result)


NO_LABELS: Mapping[int, str] = MappingProxyType({})


def table_of(
    title: str,
    columns: Sequence[tuple[Column, Sequence[str | Cell]]],
    *,
    breaks: Collection[int] = (),
    labels: Mapping[int, str] = NO_LABELS,
    strong: Collection[int] = (),
    draw: "Callable[[], Drawing] | None" = None,
    form: Form = "numbers",
) -> Table:
    """Make a table of columns with their cells.

    Parameters
    ----------
    breaks, labels
        Rows with which a group begins, and the labels of groups by their first row.
    strong
        Rows that lead.
    """
    n_rows = len(columns[0][1])
    rows = [
        Row(
            tuple(
                cell if isinstance(cell, Cell) else Cell(cell)
                for cell in (cells[at] for _, cells in columns)
            ),
            at in strong,
        )
        for at in range(n_rows)
    ]
    starts = sorted({0, n_rows, *breaks, *labels} & set(range(n_rows + 1)))
    groups = (
        Group(tuple(rows[start:end]), labels.get(start, "")) for start, end in pairwise(starts)
    )
    return Table(title, tuple(column for column, _ in columns), tuple(groups), draw, form)


NOTES_SHOWN = 10


def limit_notes(blocks: Sequence[Block], most: int = NOTES_SHOWN) -> Iterator[Block]:
    """Yield blocks, counting notes of one kind in a row beyond `most`; concerns all stay."""

    def look(block: Block) -> str:
        return block.kind if isinstance(block, Note) and block.kind != "concern" else ""

    for kind, run in groupby(blocks, key=look):
        members = list(run)
        if not kind or len(members) <= most:
            yield from members
            continue
        yield from members[:most]
        last = members[most - 1]
        assert isinstance(last, Note)  # noqa: S101 - chosen above
        yield replace(last, text=f"… and {len(members) - most:,} more", subject="", option="")
