"""The report of the rubrics: a line for each, or everything of one."""

from collections.abc import Iterator, Sequence

from witan.service.operations.rules import RubricEntry, RubricList
from witan.surfaces.report.document import (
    Block,
    Column,
    Heading,
    Report,
    Sentence,
    Table,
    table_of,
)


def rubrics_report(rubrics: RubricList) -> Report:
    """Write the report of all rubrics, or of one with weights, anchors and ceilings."""
    if len(rubrics.rubrics) == 1:
        [rubric] = rubrics.rubrics
        return Report("Rubric", (rubric.name,), "", tuple(_criteria(rubric)))
    return Report("Rubrics", (), "", (_list(rubrics.rubrics),))


def _list(rubrics: Sequence[RubricEntry]) -> Table:
    return table_of(
        "Rubrics",
        [
            (Column("rubric", "left", heads=True), [rubric.name for rubric in rubrics]),
            (
                Column("criteria and their weights", "left", fit="fold"),
                [
                    ", ".join(f"{each.name} {each.weight:.2f}" for each in rubric.criteria)
                    for rubric in rubrics
                ],
            ),
        ],
    )


def _criteria(rubric: RubricEntry) -> Iterator[Block]:
    for criterion in rubric.criteria:
        yield Heading(f"{criterion.name}, weight {criterion.weight:.2f}", criterion.name)
        yield Sentence(criterion.description)
        grades = [f"{anchor.low}–{anchor.high}" for anchor in criterion.anchors]
        yield table_of(
            criterion.name,
            [
                (Column("", "left", heads=True), grades),
                (Column("", "left", fit="fold"), [each.text for each in criterion.anchors]),
            ],
        )
    if rubric.ceilings:
        yield Heading("Ceilings", "ceilings")
    for ceiling in rubric.ceilings:
        yield Sentence(
            f"With {ceiling.criterion} under {ceiling.below:g}, "
            f"the overall grade is at most {ceiling.at_most:g}."
        )
