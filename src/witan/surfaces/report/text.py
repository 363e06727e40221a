"""Render reports as text and as Markdown.

To fit tables on the page, first names are shortened in the middle, then the least important columns
are dropped.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from shlex import quote

from witan.service.text import UNKNOWN, Folding, Page, clean, readable, shorten, span, uncapitalize
from witan.surfaces.report.document import (
    ALWAYS,
    NO_LABELS,
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Link,
    Note,
    Quote,
    Report,
    Row,
    Section,
    Sentence,
    Sides,
    Table,
    limit_notes,
)

GAP = "  "

NARROWEST = {"middle": 12, "end": 24, "fold": 36}
"""Least width of a shortened or folded cell before whole columns are dropped."""

MARK = "!"
"""Mark of notable values."""


def report_text(page: Page, report: Report) -> Iterator[str]:
    """Yield the lines of a report, without charts or chart-only sections."""
    yield page.sentence(
        " · ".join(filter(None, (uncapitalize(report.title), *report.about))), "bold", hang=2
    )
    if report.finding:
        yield page.sentence(report.finding)
    sections = [each for each in report.plain.sections if each.blocks]
    for section in sections:
        yield from _section(page, section, has_heading=len(sections) > 1)


def _section(page: Page, section: Section, *, has_heading: bool) -> Iterator[str]:
    before: Block | None = None
    if has_heading and section.heading is not None:
        yield ""
        yield page.sentence(section.heading.text, "bold")
        before = section.heading
    for block in limit_notes(section.blocks):
        legend = isinstance(before, Table) and isinstance(block, Sentence) and block.quiet
        if (_is_apart(before) and not legend) or (
            _is_apart(block) and not isinstance(before, Heading)
        ):
            yield ""
        yield from _block(page, block)
        before = block


def _is_apart(block: Block | None) -> bool:
    return isinstance(block, Table) or (isinstance(block, Quote) and not block.is_aside)


def _block(page: Page, block: Block) -> Iterator[str]:
    match block:
        case Sentence():
            command = _command(page, block.link)
            yield page.sentence(f"{block.text}{command}", "dim" if block.quiet else "plain")
        case Quote(is_aside=True):
            yield page.prose(block.text, "dim", indent="  ")
        case Quote():
            yield page.prose(block.text, indent="  " if block.is_indented else "")
        case Facts():
            yield page.sentence(" · ".join(block.parts), hang=2)
        case Sides():
            for title, sentences in block.lists:
                for sentence in sentences:
                    yield page.sentence(f"{title.lower()}: {sentence}", hang=2)
        case Note():
            yield _note(page, block)
        case Table():
            yield from _table(page, block)


REMEDIES = ("resume", "retry")
"""Operations that a link runs; other links only show something."""


def _command(page: Page, link: Link | None) -> str:
    """Return the command for a link, if the reader types commands."""
    if link is None or link.operation not in REMEDIES or not page.commands:
        return ""
    return f": witan {link.operation} {quote(link.parameters['session'])}"


def _note(page: Page, note: Note) -> str:
    # The option comes last, after any foreign text.
    parts = note.text.rsplit(f"{note.option}=", 1) if note.option else [note.text]
    text = page.option(note.option).join(parts)
    match note.kind:
        case "warning":
            return page.sentence(f"note: {text}", "warning", hang=2)
        case "concern":
            start = f"{note.subject}: " if note.subject else ""
            return page.sentence(f"{MARK} {start}{text}", "warning", hang=4)
        case "reason":
            return page.sentence(text, hang=2)
        case "hint":
            return page.sentence(text, "dim", hang=2)


def _table(page: Page, source: Table) -> Iterator[str]:
    rows = list(source.rows)
    if source.form == "measures" and page.width is not None and _natural(source) > page.width:
        yield from (_measure(page, row) for row in rows)
        return
    starts, at = {}, 0
    for group in source.groups:
        starts[at] = group.label
        at += len(group.rows)
    columns: list[tuple[Column, list[str]]] = []
    for place, column in enumerate(source.columns):
        cells = [row.cells[place] for row in rows]
        columns.append((column, list(map(_cell, cells))))
        if column.interval and any(cell.interval for cell in cells):
            intervals = [cell.interval or UNKNOWN for cell in cells]
            columns.append((Column("interval", "left", keep=column.interval), intervals))
    yield from table(
        page,
        [column for column, _ in columns],
        [[cells[at] for _, cells in columns] for at in range(len(rows))],
        breaks=starts.keys() - {0},
        labels={at: label for at, label in starts.items() if label},
        bold=[at for at, row in enumerate(rows) if row.strong],
    )
    if source.meanings:
        yield ""
    for title, meaning in source.meanings:
        yield page.sentence(f"{title}: {meaning}", "dim", hang=2)


def _natural(table: Table) -> int:
    """Measure the width of a table without shortening."""
    columns = zip(*(map(_cell, row.cells) for row in table.rows), strict=True)
    widths = [max(span(clean(cell)) for cell in cells) for cells in columns]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _measure(page: Page, row: Row) -> str:
    """Write a measure as a sentence with its basis."""
    name, value, interval, basis, meaning = map(_cell, row.cells)
    if value == UNKNOWN:
        return page.sentence(f"{name}: {basis}", hang=2)
    return page.sentence(f"{name} {value} ({interval}; {basis}): {meaning}", hang=2)


def _cell(cell: Cell) -> str:
    if cell.text is None:
        return f"({cell.short})" if cell.short else UNKNOWN
    return cell.text + MARK * cell.has_mark


def table(
    page: Page,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    breaks: Collection[int] = (),
    labels: Mapping[int, str] = NO_LABELS,
    bold: Collection[int] = (),
) -> Iterator[str]:
    """Yield the lines of a table.

    Rows in `breaks` have a line above, those in `labels` a label; those in `bold` are bold.
    """
    cells = [[clean(cell) for cell in row] for row in rows]
    titles = [clean(column.title) for column in columns]
    natural = [
        max([span(title), *(span(row[index]) for row in cells)])
        for index, title in enumerate(titles)
    ]
    visible = list(range(len(columns)))
    dropped_columns: list[int] = []
    while page.width is not None and _least_width(columns, natural, visible) > page.width:
        spare = [index for index in visible if columns[index].keep < ALWAYS]
        if not spare:
            break
        dropped_column = min(spare, key=lambda index: (columns[index].keep, -index))
        visible.remove(dropped_column)
        dropped_columns.append(dropped_column)
    widths = _widths(page, columns, natural, visible)
    if any(titles):
        yield from (page.paint(line, "dim") for line in _lines(columns, titles, visible, widths))
    length = sum(widths.values()) + len(GAP) * (len(visible) - 1)
    for number, row in enumerate(cells):
        if number in breaks:
            yield page.line(length)
        if number in labels:
            yield page.sentence(labels[number], "dim", hang=2)
        style = "bold" if number in bold else "plain"
        yield from (page.paint(line, style) for line in _lines(columns, row, visible, widths))
    if dropped_columns and any(titles):
        names = ", ".join(titles[index] for index in sorted(dropped_columns))
        yield page.sentence(f"(too narrow to show: {names})", "dim")


def _least_width(columns: Sequence[Column], natural: Sequence[int], visible: Sequence[int]) -> int:
    widths = (_narrowest(columns[index], natural[index]) for index in visible)
    return sum(widths) + len(GAP) * (len(visible) - 1)


def _narrowest(column: Column, natural: int) -> int:
    return min(natural, NARROWEST.get(column.fit, natural))


def _widths(
    page: Page, columns: Sequence[Column], natural: Sequence[int], visible: Sequence[int]
) -> dict[int, int]:
    """Compute widths of columns, narrowing the widest until lines fit."""
    widths = {index: natural[index] for index in visible}
    if page.width is None:
        return widths
    excess = sum(widths.values()) + len(GAP) * (len(visible) - 1) - page.width
    while excess > 0:
        wide = [k for k in visible if widths[k] > _narrowest(columns[k], natural[k])]
        if not wide:
            break
        widths[max(wide, key=lambda index: widths[index])] -= 1
        excess -= 1
    return widths


def _lines(
    columns: Sequence[Column], cells: Sequence[str], visible: Sequence[int], widths: dict[int, int]
) -> Iterator[str]:
    """Yield the lines of a row; several if cells are folded."""
    fitted_cells = [_fit(columns[index], cells[index], widths[index]) for index in visible]
    for parts in zip_longest(*fitted_cells, fillvalue=""):
        padded_cells = []
        for index, part in zip(visible, parts, strict=True):
            padding = " " * (widths[index] - span(part))
            padded_cells.append(
                part + padding if columns[index].align == "left" else padding + part
            )
        yield GAP.join(padded_cells).rstrip()


def _fit(column: Column, cell: str, width: int) -> list[str]:
    if column.fit != "fold":
        return [shorten(cell, width, middle=column.fit != "end")]
    folding = Folding(width)
    return (folding.take(cell) + folding.end()).split("\n")


_MARKUP = re.compile(
    r"[\\`*\[<|~$&]|(?<!\w)_|_(?!\w)|^\s*(?:[-+>]|#+|\d+[.)])(?=\s|$)|:(?=//)|(?<=www)\."
)
"""Markup, and beginnings of links, except ``_`` and ``-`` within a word."""


def to_markdown(text: str) -> str:
    """Escape markup, control and invisible characters in one line."""
    return _MARKUP.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", clean(text))


def report_markdown(report: Report) -> str:
    """Write a report as Markdown, without charts or chart-only sections."""
    return "\n".join(_markdown_lines(report))


def _markdown_lines(report: Report) -> Iterator[str]:
    yield f"**{' · '.join(map(to_markdown, filter(None, (report.title, *report.about))))}**"
    if report.finding:
        yield ""
        yield to_markdown(report.finding)
    sections = [each for each in report.plain.sections if each.blocks]
    for section in sections:
        if section.heading is not None and len(sections) > 1:
            yield ""
            yield f"### {to_markdown(section.heading.text)}"
        before: Block | None = None
        for block in limit_notes(section.blocks):
            if not (isinstance(before, Note) and isinstance(block, Note)):
                yield ""
            yield from _markdown_block(block)
            before = block


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Sentence():
            yield to_markdown(block.text)
        case Quote():
            # The fence is longer than any run of backticks in the text, so the text cannot close
            # it.
            text = readable(block.text)
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield from (fence, text, fence)
        case Facts():
            yield to_markdown(" · ".join(block.parts))
        case Sides():
            for title, sentences in block.lists:
                for sentence in sentences:
                    yield f"- {to_markdown(f'{title.lower()}: {sentence}')}"
        case Note():
            subject = f"{to_markdown(block.subject)}: " if block.subject else ""
            start = {"warning": "note: ", "concern": subject}
            yield f"- {start.get(block.kind, '')}{to_markdown(block.text)}"
        case Table():
            yield from _markdown_table(block)


def _markdown_table(table: Table) -> Iterator[str]:
    yield _markdown_row([to_markdown(column.title) for column in table.columns])
    yield _markdown_row(["---:" if column.align == "right" else "---" for column in table.columns])
    for group in table.groups:
        if group.label:
            blank = [""] * (len(table.columns) - 1)
            yield _markdown_row([f"*{to_markdown(group.label)}*", *blank])
        for row in group.rows:
            yield _markdown_row([_markdown_cell(cell) for cell in row.cells])
    if table.meanings:
        yield ""
    for title, meaning in table.meanings:
        yield f"- {to_markdown(title)}: {to_markdown(meaning)}"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    if cell.text is None:
        return to_markdown(cell.short or UNKNOWN)
    interval = f" ({cell.interval})" if cell.interval else ""
    return to_markdown(f"{cell.text}{'!' * cell.has_mark}{interval}")
