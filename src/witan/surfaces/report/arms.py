"""Write the report of a comparison of arms."""

from collections.abc import Iterator, Sequence

from witan.core.arms import ArmComparison, measure_of
from witan.core.display import level_percent
from witan.core.stats.measures import Measure
from witan.core.stats.prediction_powered import MIN_CLUSTERS
from witan.service.text import count_noun, full_sentence, list_text, number
from witan.service.trust import cost_sum_text
from witan.surfaces.report.document import (
    Block,
    Cell,
    Column,
    Heading,
    Note,
    Report,
    Sentence,
    Table,
    table_of,
)

CHOICES = {
    "name": "{names}, by name.",
    "other questions": "{names}, the best on {others}, which measure nothing.",
    "history": "{names}, which leads the leaderboard of all sessions before.",
    "these questions": "{names}, by the reviews of these very questions, which flatters it.",
}
"""Words for the choice of the best member."""


MEASURES = {
    "references": "Held to right answers: an answer is right if it contains the reference, word "
    "for word, whatever else it says.",
    "votes": "Held to people's votes alone.",
}
"""Words for the measure of arms without a jury."""


def arms_report(comparison: ArmComparison) -> Report:
    """Write the report of a comparison by itself."""
    return Report("Was the council worth it?", (), "", tuple(comparison_blocks(comparison)))


def comparison_blocks(comparison: ArmComparison) -> Iterator[Block]:
    """Write the conclusions, the numbers behind them, and what they rest on."""
    yield Heading("Was the council worth it?", "arms")
    for each in comparison.differences:
        if each.category is None or each.conclusion in ("ahead", "behind", "no difference"):
            yield Sentence(full_sentence(each.sentence))
    yield _differences(comparison)
    yield _prices(comparison)
    yield from _basis(comparison)


def _differences(comparison: ArmComparison) -> Table:
    lines = comparison.differences
    means = [measure_of(each.mean) for each in lines]
    columns: list[tuple[Column, Sequence[str | Cell]]] = [
        (
            Column("first minus second", "left", fit="middle", heads=True),
            [f"{each.first} - {each.second}" for each in lines],
        ),
        (Column("questions", "left", keep=70), [each.category or "all" for each in lines]),
        (Column("difference", interval=90), [_cell(each) for each in means]),
        (Column("n", keep=80), [f"{each.questions:,}" for each in lines]),
    ]
    if comparison.people_questions >= MIN_CLUSTERS:
        columns += [
            (Column("jury alone", interval=60), [_cell(each.mean.jury) for each in lines]),
            (Column("people alone", interval=50), [_cell(each.mean.people) for each in lines]),
        ]
    columns.append((Column("conclusion", "left", keep=85), [each.conclusion for each in lines]))
    return table_of(f"Differences in {comparison.unit}", columns)


def _cell(measure: Measure) -> Cell:
    if measure.value is None:
        return Cell(None, basis=measure.why or "", short="few questions")
    if measure.interval is None:
        return Cell(number(measure.value, 2))
    low, high = (number(end, 2) for end in (measure.interval.low, measure.interval.high))
    return Cell(number(measure.value, 2), interval=f"[{low}, {high}]")


def _prices(comparison: ArmComparison) -> Table:
    lines = comparison.arms
    costs = [None if each.cost_usd is None else each.cost_usd / each.priced for each in lines]
    return table_of(
        "Price of a question",
        [
            (Column("arm", "left", heads=True), [each.arm for each in lines]),
            (Column("questions"), [f"{each.questions:,}" for each in lines]),
            (Column("calls"), [number(each.calls / each.questions, 1) for each in lines]),
            (Column("cost"), [cost_sum_text(cost) for cost in costs]),
        ],
    )


def _basis(comparison: ArmComparison) -> Iterator[Block]:
    several = len(comparison.best) > 1
    names = list_text(
        [f"{name} ({n:,})" if several else name for name, n in comparison.best.items()]
    )
    if names:
        others = count_noun(comparison.choosing, "other question")
        choice = CHOICES[comparison.choice].format(names=names, others=others)
        yield Sentence(f"Best member: {choice}", quiet=True)
    level = level_percent(comparison.level)
    if comparison.basis == "reviewers":
        yield Sentence(
            f"Intervals are of reviewers like these, on this one question, at {level} each.",
            quiet=True,
        )
    else:
        together = (
            ""
            if comparison.category_level is None
            else f"; those of categories at {level} together"
        )
        yield Sentence(
            f"Intervals are of questions like these, paired, at {level} for each pair{together}. "
            f"Arms within ±{comparison.margin:g} do not differ.",
            quiet=True,
        )
    if comparison.measure != "jury":
        yield Sentence(MEASURES[comparison.measure], quiet=True)
        return
    people = count_noun(comparison.people_questions, "question")
    if comparison.people_questions >= MIN_CLUSTERS:
        yield Sentence(
            f"Corrected by people's votes on {people}, which holds if these are drawn at random.",
            quiet=True,
        )
    elif comparison.people_questions:
        yield Note(
            f"people's votes on {people} are too few to correct the jury; {MIN_CLUSTERS} would do",
            "hint",
        )
    else:
        yield Note(
            "the jury may prefer a style, such as long answers; have people vote on some of the "
            "judgments, drawn at random, and run this again",
            "hint",
        )
