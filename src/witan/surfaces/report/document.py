"""The report document: headings, sentences, tables, charts and notes.

Texts are plain, without markup. Names and answers by others are not escaped here; each renderer
escapes every text for its destination.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from witan.service.text import UNKNOWN, list_text, uncapitalize

if TYPE_CHECKING:
    from witan.core.outcome import Interval
    from witan.core.stats.measures import Measure
    from witan.surfaces.report.chart import Drawing

ALWAYS = 100
"""The `keep` of a column that is never dropped."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The beginning of a section, and its anchor on a page."""

    text: str
    key: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another report, for surfaces with links."""

    operation: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on its own line; `quiet`: an explanation, shown dimmed."""

    text: str
    quiet: bool = False
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted text of a model or person; `is_aside` for secondary text.

    With `is_indented`, none of its lines can look like a line of the report.
    """

    text: str
    is_aside: bool = False
    is_indented: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts on one line."""

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
        ``warning``: the reader must know it; ``concern``: a notable finding about `subject`;
        ``reason``: why something is missing; ``hint``: what to do.
    subject
        Its subject, if the text does not name it.
    option
        The option in its text, such as ``scale=0-1``; a command line writes ``--scale 0-1``.
    """

    text: str
    kind: Literal["warning", "concern", "reason", "hint"]
    subject: str = ""
    option: str = ""


Fit = Literal["whole", "middle", "end", "fold"]
"""Part of a column's cells to cut on a narrow terminal; ``fold``: wrap instead."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    keep
        Priority on a narrow terminal: columns with the smallest are dropped first, those with 100
        never.
    fit
        How its cells shrink on a terminal before columns are dropped.
    heads
        Whether its cells name their rows.
    meaning
        Meaning of its numbers, if the title does not explain it.
    hint
        The same, for pages only.
    interval
        `keep` of the column that a terminal adds for the intervals of its cells; 0: none.
    """

    title: str
    align: Literal["left", "right"] = "right"
    keep: int = ALWAYS
    fit: Fit = "whole"
    heads: bool = False
    meaning: str = ""
    hint: str = ""
    interval: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        The value as printed; None: unknown.
    interval
        Its interval as printed, if the table has no column for it.
    basis, short
        The basis of the value, or why it is unknown, in full and in short.
    has_mark
        Whether the value stands out.
    state
        Its mark on a page, for a seat: ``idle``, ``busy``, ``done``, or ``bad``.
    shade
        Its strength on a heat map, from 1 to `SHADES`; 0: none.
    """

    text: str | None
    interval: str = ""
    basis: str = ""
    short: str = ""
    has_mark: bool = False
    link: Link | None = None
    state: str = ""
    shade: int = 0


def bracket(interval: "Interval | None", write: Callable[[float], str]) -> str:
    """Write an interval in brackets, or an empty string."""
    return "" if interval is None else f"[{write(interval.low)}, {write(interval.high)}]"


def measure_cell(measure: "Measure", few: str, write: Callable[[float], str]) -> Cell:
    """Make the cell of a measure: its interval, or what is missing."""
    if measure.value is None:
        return Cell(None, basis=measure.why or "", short=few)
    return Cell(write(measure.value), interval=bracket(measure.interval, write))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; `strong` for leaders."""

    cells: tuple[Cell, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under an optional label, separated from the next group.

    `fold` is the title of its fold on a page; empty: not folded.
    """

    rows: tuple[Row, ...]
    label: str = ""
    fold: str = ""


Form = Literal["numbers", "measured", "measures", "heat"]

SHADES = 5
"""Shades of a heat map."""

MANY_COLUMNS = 9
"""Number of columns from which a heat map is dense on a page, and omitted in text."""

UPRIGHT_CHARS = 3
"""Longer titles of many columns are vertical on a page."""

CELL_CHARS, PHONE_CHARS = 4, 24
"""Characters that fit in any cell, and in all columns together on a phone."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in groups of rows.

    Parameters
    ----------
    title
        Its accessible name.
    chart
        Function that makes the chart before it, on surfaces with charts; or None.
    form
        On a page: plain ``numbers``; ``measured`` cells, each with interval and basis; a list
        of ``measures``, whose columns are name, value, interval, basis and meaning; or a ``heat``
        map of shaded cells.
    """

    title: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    chart: "Callable[[], Chart] | None" = None
    form: Form = "numbers"

    @property
    def rows(self) -> Iterator[Row]:
        """List the rows, group by group."""
        return (row for group in self.groups for row in group.rows)

    def in_sight(self) -> "Table":
        """Return the table without collapsed groups."""
        return replace(self, groups=tuple(group for group in self.groups if not group.fold))

    @property
    def folds(self) -> "tuple[tuple[str, Table], ...]":
        """Heading and table of each collapsed group."""
        return tuple(
            (
                group.fold,
                replace(
                    self,
                    title=f"{self.title}, {group.fold}",
                    groups=(replace(group, label=""),),
                ),
            )
            for group in self.groups
            if group.fold
        )

    @property
    def density(self) -> str:
        """``many`` columns, ``upright`` titles, the latter perhaps ``-on-phones``, or nothing."""
        return _density([column.title for column in self.columns[1:]])

    @property
    def meanings(self) -> tuple[tuple[str, str], ...]:
        """Title and meaning of the columns that need one."""
        return tuple((each.title, each.meaning) for each in self.columns if each.meaning)

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """Title, and meaning or hint, of the columns that a page explains."""
        words = ((each.title, each.meaning or each.hint) for each in self.columns)
        return tuple(pair for pair in words if pair[1])


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing for graphical surfaces, with its numbers in a table.

    Parameters
    ----------
    name
        Its accessible name.
    caption
        Explanation of its marks.
    finding, about
        The conclusion and its subject; a file shows them above the chart.
    numbers
        The table of its numbers; None if the report has one.
    fold
        Title of its fold; empty: not folded.
    """

    drawing: "Drawing"
    name: str
    caption: str = ""
    finding: str = ""
    about: tuple[str, ...] = ()
    numbers: Table | None = None
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A key figure with name, value and sentence; None: unknown."""

    name: str
    value: str | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict: a few words, a sentence, key figures and facts."""

    headline: str
    detail: str
    chips: tuple[Chip, ...] = ()
    facts: tuple[str, ...] = ()

    def plain(self) -> "Iterator[Block]":
        """Write the banner as sentences."""
        yield Sentence(f"{self.headline} {self.detail}".rstrip())
        for chip in self.chips:
            value = "" if chip.value is None else f" {chip.value}"
            yield Sentence(f"{chip.name}{value}: {uncapitalize(chip.meaning)}", quiet=True)
        if self.facts:
            yield Facts(self.facts)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The gaps of an incomplete session in one line, with their remedy.

    Parameters
    ----------
    reasons
        A sentence for each missing part.
    remedy, link
        The remedy in words and as an operation, or None.
    is_fatal
        Whether it prevents an outcome.
    """

    status: str
    text: str
    reasons: tuple[str, ...] = ()
    remedy: str = ""
    link: Link | None = None
    is_fatal: bool = False

    def plain(self) -> "Iterator[Block]":
        """Write it as notes."""
        yield Note(f"{self.status}: {self.text}", "warning")
        yield from (Note(each, "reason") for each in self.reasons)
        if self.link is not None:
            yield Sentence(self.remedy, link=self.link)


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The text of a candidate, or the reason why there is none.

    Parameters
    ----------
    key
        Its anchor on a page.
    label
        Its blind name on a page, or empty.
    author, source
        Its member, empty while names are hidden, and the model if named differently.
    facts
        Rank, length, seconds and other facts.
    """

    key: str
    text: str
    label: str = ""
    author: str = ""
    source: str = ""
    simulated: bool = False
    facts: tuple[str, ...] = ()
    reason: str = ""

    def plain(self) -> "Iterator[Block]":
        """Write it without a card."""
        if self.reason:
            yield Heading(f"{self.author} did not answer", self.key)
            yield Sentence(self.reason)
            return
        name = f"{self.author} ({self.source})" if self.source else self.author
        mark = ["simulated"] if self.simulated else []
        yield Heading(" · ".join((*mark, name, *self.facts)), self.key)
        yield Quote(self.text.strip("\n"))


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The text that the council closes with.

    Parameters
    ----------
    author
        Its author, in a few words.
    citations
        Label, anchor and author of each answer that it may cite; authors may be hidden.
    unresolved_labels
        Labels in it without an answer.
    """

    text: str
    author: str
    citations: tuple[tuple[str, str, str], ...] = ()
    unresolved_labels: tuple[str, ...] = ()

    @property
    def legend(self) -> str:
        """The author behind each label; empty if the text has no label."""
        strange = [f"[{label}] no answer" for label in self.unresolved_labels]
        labels = {label for label, _, _ in self.citations}
        if labels.isdisjoint(re.findall(r"\w+", self.text)):
            return ", ".join(strange)
        return ", ".join([*(f"[{label}] {name}" for label, _, name in self.citations), *strange])

    def plain(self) -> "Iterator[Block]":
        """Write it without links."""
        yield Sentence(self.author, quiet=True)
        yield Quote(self.text.strip("\n"))
        if self.legend:
            yield Sentence(self.legend, quiet=True)


@dataclass(frozen=True, slots=True)
class BallotCell:
    """One reviewer's rank and grade of one candidate.

    Parameters
    ----------
    rank
        Rank on the ballot after recusal; empty: not ranked.
    equal
        Whether it shares that rank.
    grade, place
        The grade, and the place on the sheet; empty: unknown.
    own
        Whether the reviewer wrote it.
    shade
        From 1, its best, to 5, its worst; 0: not ranked.
    """

    rank: str = ""
    equal: bool = False
    grade: str = ""
    place: str = ""
    own: bool = False
    shade: int = 0

    @property
    def alt_text(self) -> str:
        """The text of the cell for screen readers."""
        if self.own:
            return "its own answer"
        if not (self.rank or self.grade):
            return "not ranked"
        ranked = f"rank {self.rank}{', shared' if self.equal else ''}" if self.rank else ""
        grade = f"grade {self.grade}" if self.grade else ""
        place = f"place {self.place} on its sheet" if self.place else ""
        return ", ".join(part for part in (ranked, grade, place) if part)

    @property
    def rest(self) -> str:
        """Place and grade."""
        place = f"place {self.place}" if self.place else ""
        grade = f"grade {self.grade}" if self.grade else ""
        return ", ".join(part for part in (place, grade) if part)


ReviewState = Literal["cast", "abstained", "out", "pending"]


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One reviewer's ballot, with its circumstances.

    Parameters
    ----------
    state
        ``out``: the session was interrupted before it; ``pending``: it may still arrive.
    reason
        Why there is no ballot.
    groups
        Candidates, best group first.
    weight
        Its weight, unless 1.
    is_left_out
        Whether this count excludes it.
    remarks, facts
        Sentences on notable findings, and on its parsing and agreement.
    notes
        The reviewer's text in addition to its ranking.
    grades
        Its grades, a row per candidate and a column per criterion; None without grades.
    sheets
        Its sheets, one or two: label and author of each answer.
    replies
        Title and text of each reply.
    """

    reviewer: str
    state: ReviewState
    reason: str
    cells: tuple[BallotCell, ...]
    groups: tuple[tuple[str, ...], ...]
    weight: str
    is_left_out: bool
    remarks: tuple[str, ...]
    facts: tuple[str, ...]
    notes: str
    grades: Table | None
    sheets: tuple[tuple[tuple[str, str], ...], ...]
    replies: tuple[tuple[str, str], ...]

    @property
    def order(self) -> str:
        """The ranking in one line."""
        return " > ".join(" = ".join(group) for group in self.groups)

    @property
    def keys(self) -> Iterator[str]:
        """The candidates behind labels of its sheets, if its notes use labels."""
        for sheet in dict.fromkeys(self.sheets):
            labels = "|".join(re.escape(label) for label, _ in sheet)
            if re.search(rf"\b({labels})\b", self.notes):
                pairs = ", ".join(f"[{label}] {name}" for label, name in sheet)
                yield f"labels of its sheet: {pairs}"


@dataclass(frozen=True, slots=True)
class BallotMatrix:
    """Ballots: one row per reviewer, one column per candidate, the best first."""

    candidates: tuple[tuple[str, str], ...]
    reviews: tuple[ReviewRow, ...]

    @property
    def density(self) -> str:
        """``many`` columns, ``upright`` titles, the latter perhaps ``-on-phones``, or nothing."""
        return _density([name for name, _ in self.candidates])

    @property
    def has_ranks(self) -> bool:
        """True unless there is only one candidate, which has only grades."""
        return len(self.candidates) != 1

    @property
    def has_own(self) -> bool:
        """True if some reviewer wrote a candidate."""
        return any(cell.own for review in self.reviews for cell in review.cells)

    @property
    def n_cast(self) -> int:
        """Number of ballots."""
        return sum(review.state == "cast" for review in self.reviews)

    @property
    def has_begun(self) -> bool:
        """True once a reviewer has finished."""
        return any(review.state in ("cast", "abstained") for review in self.reviews)

    def plain(self) -> "Iterator[Block]":
        """Write each ballot in a line, with the remarks on it."""
        if any(cell.place for review in self.reviews for cell in review.cells):
            yield Sentence("In brackets: the place on the reviewer's sheet, and the grade.", True)
        for review in self.reviews:
            if review.state != "cast":
                abstained = " abstained" if review.state == "abstained" else ""
                yield Sentence(f"{review.reviewer}{abstained}: {review.reason}")
                continue
            yield Sentence(f"{review.reviewer}: {self._line(review)}")
            aside = [*quote_notes(review.notes), *review.keys, *review.remarks]
            if aside:
                yield Quote("\n".join(aside), is_aside=True)

    def _line(self, review: ReviewRow) -> str:
        cells = zip(self.candidates, review.cells, strict=True)
        names = {name: f"{name} [{cell.rest}]" if cell.rest else name for (name, _), cell in cells}
        groups = [[names.get(name, name) for name in group] for group in review.groups]
        ranking = " > ".join(map(" = ".join, groups))
        graded = [named for name, named in names.items() if named != name]
        return ranking or f"grades alone, of {list_text(graded, most=20)}"


def quote_notes(notes: str | None) -> Iterator[str]:
    """Yield the lines of a reviewer's notes."""
    lines = [line for line in (notes or "").splitlines() if line.strip()]
    yield from (f"said: {lines[0]}", *lines[1:]) if lines else ()


def _density(titles: Sequence[str]) -> str:
    """Describe whether columns are many, and their titles wider than cells."""
    has_names = max(map(len, titles), default=0) > UPRIGHT_CHARS
    if len(titles) < MANY_COLUMNS:
        is_wide = (
            has_names and sum(1 + max(CELL_CHARS, len(title)) for title in titles) > PHONE_CHARS
        )
        return "upright-on-phones" if is_wide else ""
    return "many upright" if has_names else "many"


Block: TypeAlias = (
    Heading
    | Sentence
    | Quote
    | Facts
    | Sides
    | Table
    | Chart
    | Note
    | Banner
    | Shortfall
    | AnswerText
    | FinalAnswer
    | BallotMatrix
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its blocks; None before the first heading."""

    heading: Heading | None
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything to be shown of a result.

    Parameters
    ----------
    title
        Its title, which a page shows before counting.
    about
        Its subject in short parts: rule, ballots, window.
    finding
        The conclusion in a sentence; may be empty.
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

    def section(self, key: str) -> Section | None:
        """Return the section under a heading, or the blocks before any."""
        matches = (
            each for each in self.sections if (each.heading.key if each.heading else "") == key
        )
        return next(matches, None)

    @property
    def plain(self) -> "Report":
        """The report in headings, sentences and tables, for surfaces that draw nothing."""
        blocks: list[Block] = []
        for block in self.blocks:
            match block:
                case Banner() | Shortfall() | AnswerText() | FinalAnswer() | BallotMatrix():
                    blocks += block.plain()
                case Chart():
                    pass
                case Table(form="heat") if len(block.columns) > MANY_COLUMNS:
                    pass
                case _:
                    blocks.append(block)
        return replace(self, blocks=tuple(blocks))


NO_LABELS: Mapping[int, str] = MappingProxyType({})


def table_of(
    title: str,
    columns: Sequence[tuple[Column, Sequence[str | Cell]]],
    *,
    breaks: Collection[int] = (),
    labels: Mapping[int, str] = NO_LABELS,
    strong: Collection[int] = (),
    folds: Mapping[int, str] = NO_LABELS,
    chart: "Callable[[], Chart] | None" = None,
    form: Form = "numbers",
) -> Table:
    """Make a table of columns with their cells.

    Parameters
    ----------
    breaks, labels
        First rows of groups, and labels by first row.
    strong
        Leading rows.
    folds
        Titles of folds on a page, by first row of a group.
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
    starts = sorted({0, n_rows, *breaks, *labels, *folds} & set(range(n_rows + 1)))
    groups = (
        Group(tuple(rows[start:end]), labels.get(start, ""), folds.get(start, ""))
        for start, end in pairwise(starts)
    )
    return Table(title, tuple(column for column, _ in columns), tuple(groups), chart, form)


def columns_with_values(*columns: tuple[Column, list[str]]) -> list[tuple[Column, list[str]]]:
    """Leave out columns without a single value."""
    return [each for each in columns if not {*each[1]} <= {"", UNKNOWN}]


NOTES_SHOWN = 10


def limit_notes(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks, summarizing notes of one kind beyond `NOTES_SHOWN`, except concerns."""

    def look(block: Block) -> str:
        return block.kind if isinstance(block, Note) and block.kind != "concern" else ""

    for kind, run in groupby(blocks, key=look):
        members = list(run)
        n_more, last = len(members) - NOTES_SHOWN, members[-1]
        if n_more <= 0 or not (kind and isinstance(last, Note)):
            yield from members
            continue
        yield from members[:NOTES_SHOWN]
        yield replace(last, text=f"… and {n_more:,} more", subject="", option="")
