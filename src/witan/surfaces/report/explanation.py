"""The report of an explanation: its steps, numbered."""

from collections.abc import Iterator, Sequence

from witan.core.explanation import Explanation
from witan.core.steps import Cell, Step
from witan.service.operations.counting import OutcomeExplanation
from witan.service.text import number
from witan.service.trust import trust_line
from witan.surfaces.report.document import (
    Block,
    Column,
    Facts,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)


def explanation_report(explanation: Explanation | OutcomeExplanation) -> Report:
    """Write the report of an explanation, with unreadable lines."""
    outcome = explanation.outcome
    parts = (outcome.session, outcome.rule, outcome.why)
    about = tuple(part for part in parts if part)
    return Report("Explanation", about, outcome.interpretation, tuple(_blocks(explanation)))


def _blocks(explanation: Explanation | OutcomeExplanation) -> Iterator[Block]:
    outcome = explanation.outcome
    scales = {scale.sentence for scale in outcome.scales}
    for count, step in enumerate(explanation.steps, 1):
        yield Heading(f"{count}. {step.title}", f"step-{count}")
        for sentence in step.sentences:
            if sentence in scales:
                yield Note(sentence, "warning", option="scale")
            else:
                yield Sentence(sentence)
        if step.rows:
            yield _table(step)
    yield Heading("Result", "result")
    yield Facts(tuple(trust_line(outcome).split(" · ")))
    if isinstance(explanation, OutcomeExplanation):
        for sentence in explanation.without_effect:
            yield Note(sentence, "concern")
        for each in explanation.not_read:
            yield Note(f"line {each.line:,}: {each.problem}", "concern", "not read")


def _table(step: Step) -> Table:
    """Return the table of a step, a line above its mean."""
    columns = []
    for title, cells in zip(step.header, zip(*step.rows, strict=True), strict=True):
        words = any(isinstance(cell, str) for cell in cells)
        column = Column(title, "left" if words else "right", fit="middle" if words else "whole")
        columns.append((column, _cells(cells)))
    foot = {len(step.rows) - 1} if step.rows[-1][0] == "mean" else set()
    return table_of(step.title, columns, breaks=foot)


def _cells(column: Sequence[Cell]) -> list[str]:
    """Print whole numbers as such if all are, else three decimals each."""
    numbers = [cell for cell in column if cell is not None and not isinstance(cell, str)]
    whole = all(float(cell).is_integer() for cell in numbers)
    return [_cell(cell, 0 if whole else 3) for cell in column]


def _cell(cell: Cell, digits: int) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if 1e-9 < abs(cell) < 0.0005 and digits:
        return f"{cell:.1e}"
    return number(cell, digits)
