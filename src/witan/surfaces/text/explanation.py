"""An explanation as text."""

from collections.abc import Iterator, Sequence

from witan.core.explanation import Explanation
from witan.core.steps import Cell, Step
from witan.service.operations.explain import Explained
from witan.service.text import Page, clean, number
from witan.service.trust import trust_line
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table
from witan.surfaces.text.outcomes import unread_text


def explanation_text(page: Page, explanation: Explanation | Explained) -> Iterator[str]:
    """The lines of an explanation, its steps numbered."""
    outcome = explanation.outcome
    parts = [outcome.session, outcome.rule, outcome.why]
    yield page.sentence(" · ".join(part for part in parts if part), "bold", hang=2)
    yield page.sentence(outcome.interpretation)
    option = page.option("scale")
    own = {scale.sentence: scale.sentence_with(option) for scale in outcome.scales}
    for count, step in enumerate(explanation.steps, 1):
        yield ""
        yield page.sentence(f"{count}. {step.title}", "bold")
        for sentence in step.sentences:
            yield page.sentence(own.get(sentence, sentence))
        if step.rows:
            yield from _step_table(page, step)
    yield ""
    yield page.sentence(trust_line(outcome), hang=2)


def explained_text(page: Page, result: Explained) -> Iterator[str]:
    """The lines of an explanation, and of what could not be read."""
    yield from explanation_text(page, result)
    yield from unread_text(result.not_read)


def _step_table(page: Page, step: Step) -> Iterator[str]:
    """The table of a step, a line above its mean."""
    columns, cells = [], []
    for title, held in zip(step.header, zip(*step.rows, strict=True), strict=True):
        words = any(isinstance(cell, str) for cell in held)
        columns.append(Column(clean(title), "left" if words else "right", elastic=words))
        cells.append(_cells(held))
    foot = {len(step.rows) - 1} if step.rows[-1][0] == "mean" else set()
    return table(page, columns, list(zip(*cells, strict=True)), breaks=foot)


def _cells(column: Sequence[Cell]) -> list[str]:
    """The cells of a column: whole numbers as such if all are, else three decimals each."""
    numbers = [cell for cell in column if cell is not None and not isinstance(cell, str)]
    whole = all(float(cell).is_integer() for cell in numbers)
    return [_cell(cell, 0 if whole else 3) for cell in column]


def _cell(cell: Cell, digits: int) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if 1e-9 < abs(cell) < 0.0005 and digits:
        return f"{cell:.1e}"
    return number(cell, digits)
