"""Reports as Markdown, for notebooks and agents."""

import re
from collections.abc import Iterator

from witan.service.text import UNKNOWN, clean, readable
from witan.surfaces.report.document import (
    Block,
    Cell,
    Facts,
    Note,
    Quote,
    Report,
    Sentence,
    Sides,
    Table,
    limit_notes,
)

_MARKUP = re.compile(
    r"[\\`*\[<|~$&]|(?<!\w)_|_(?!\w)|^\s*(?:[-+>]|#+|\d+[.)])(?=\s|$)|:(?=//)|(?<=www)\."
)
"""Markup, and beginnings of links; ``_`` and ``-`` within a word are neither."""


def to_markdown(text: str) -> str:
    """Escape markup, control and invisible characters in one line."""
    return _MARKUP.sub(_escape, clean(text))


def _escape(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}\\{match[0][-1]}"


def report_markdown(report: Report) -> str:
    """Write a report as Markdown, without charts or chart-only sections."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
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
            yield from _block(block)
            before = block


def _block(block: Block) -> Iterator[str]:
    match block:
        case Sentence():
            yield to_markdown(block.text)
        case Quote():
            # A fence longer than any run of backticks in the text cannot be ended by it.
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
            start = {"warning": "note: ", "concern": _subject(block)}
            yield f"- {start.get(block.kind, '')}{to_markdown(block.text)}"
        case Table():
            yield from _table(block)


def _subject(note: Note) -> str:
    return f"{to_markdown(note.subject)}: " if note.subject else ""


def _table(table: Table) -> Iterator[str]:
    yield _row([to_markdown(column.title) for column in table.columns])
    yield _row(["---:" if column.align == "right" else "---" for column in table.columns])
    for group in table.groups:
        if group.label:
            blank = [""] * (len(table.columns) - 1)
            yield _row([f"*{to_markdown(group.label)}*", *blank])
        for row in group.rows:
            yield _row([_cell(cell) for cell in row.cells])
    if table.meanings:
        yield ""
    for title, meaning in table.meanings:
        yield f"- {to_markdown(title)}: {to_markdown(meaning)}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    if cell.text is None:
        return to_markdown(cell.short or UNKNOWN)
    interval = f" ({cell.interval})" if cell.interval else ""
    return to_markdown(f"{cell.text}{'!' * cell.has_mark}{interval}")
