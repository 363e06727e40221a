"""The rubrics as text: a line for each, or everything of one."""

from collections.abc import Iterator, Sequence

from witan.service.operations.rubrics import RubricEntry, RubricList
from witan.service.text import Page


def rubrics_text(page: Page, found: RubricList) -> Iterator[str]:
    """List rubrics; of a single one its criteria, weights and anchors."""
    if len(found.rubrics) == 1:
        yield from _one(page, found.rubrics[0])
    else:
        yield from _list(page, found.rubrics)


def _list(page: Page, rubrics: Sequence[RubricEntry]) -> Iterator[str]:
    width = max(len(rubric.name) for rubric in rubrics) + 2
    for rubric in rubrics:
        weights = ", ".join(f"{c.name} {c.weight:.2f}" for c in rubric.criteria)
        yield page.sentence(f"{rubric.name:{width}}{weights}", hang=width)


def _one(page: Page, rubric: RubricEntry) -> Iterator[str]:
    yield page.sentence(rubric.name, "bold")
    for criterion in rubric.criteria:
        yield ""
        yield page.sentence(f"{criterion.name}, weight {criterion.weight:.2f}", "bold")
        yield page.sentence(criterion.description)
        for anchor in criterion.anchors:
            yield page.sentence(f"  {f'{anchor.low}–{anchor.high}':5} {anchor.text}", hang=8)
    if rubric.ceilings:
        yield ""
    for ceiling in rubric.ceilings:
        yield page.sentence(
            f"With {ceiling.criterion} under {ceiling.below:g}, "
            f"the overall grade is at most {ceiling.at_most:g}."
        )
