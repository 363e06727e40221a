"""What a question would ask for and cost, as text."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from witan.service.text import UNKNOWN, Page, counted, listed
from witan.service.trust import separation_sentence
from witan.surfaces.report.document import Column
from witan.surfaces.report.text import table

if TYPE_CHECKING:
    from witan.deliberation.plan import PlanLine
    from witan.service.operations.plan import PlanSummary


def plan_text(page: Page, plan: "PlanSummary") -> Iterator[str]:
    """A line per seat and stage with their sum, what may be needed besides, and the sum of all."""
    columns = [
        Column("seat", "left", elastic=True),
        Column("stage", "left"),
        Column("calls"),
        Column("tokens in, at most", keep=40),
        Column("tokens out, at most", keep=50),
        Column("expected cost"),
        Column("worst cost"),
    ]
    usual = [line for line in plan.lines if not line.if_needed]
    spare = [line for line in plan.lines if line.if_needed]
    rows = [_row(line.seat, line.stage, [line]) for line in usual]
    rows.append(_row("when nothing fails" if spare else "all", "", usual))
    sums = {len(usual)}
    if spare:
        rows += [_row(line.seat, f"{line.stage}, if needed", [line]) for line in spare]
        rows.append(_row("at most", "", plan.lines))
        sums.add(len(rows) - 1)
    breaks = sums | {len(usual) + 1} if spare else sums
    yield from table(page, columns, rows, breaks=breaks, bold=sums)
    yield ""
    for sentence in _notes(plan):
        yield page.sentence(sentence)


def plan_sentences(plan: "PlanSummary") -> Iterator[str]:
    """The sum of it in a sentence, and what else there is to know."""
    calls = counted(plan.calls, "call")
    tokens = f"{plan.input_tokens:,} tokens in and {plan.output_tokens:,} out"
    cost = "" if plan.worst_usd is None else f", for {_dollars(plan.worst_usd)} at the very most"
    yield f"At most {calls}, with {tokens}{cost}."
    yield from _notes(plan)


def _row(seat: str, stage: str, lines: "Sequence[PlanLine]") -> list[str]:
    """What these lines come to."""
    costs = [line.worst_usd for line in lines if line.worst_usd is not None]
    spare = any(line.if_needed for line in lines)
    likely = [line.expected_usd for line in lines if line.expected_usd is not None]
    return [
        seat,
        stage,
        f"{sum(line.calls for line in lines):,}",
        f"{sum(line.input_tokens for line in lines):,}",
        f"{sum(line.output_tokens for line in lines):,}",
        UNKNOWN if spare else _dollars(fsum(likely) if len(likely) == len(lines) else None),
        _dollars(fsum(costs) if len(costs) == len(lines) else None),
    ]


def _notes(plan: "PlanSummary") -> Iterator[str]:
    if plan.expected_usd is not None and plan.worst_usd:
        earlier = counted(plan.expected_from, "earlier session")
        basis = f"the lengths of {earlier}" if plan.expected_from else "published lengths"
        yield f"Expected when nothing fails: {_dollars(plan.expected_usd)}, by {basis}."
    if plan.separation is not None:
        yield separation_sentence(plan.separation)
    yield "Retries, and second calls where one is slow, are not included."
    if plan.unpriced:
        unknown = f"The price of {listed(plan.unpriced)} is unknown, and with it the cost"
        yield (
            f"{unknown}; give it as --price {plan.unpriced[0]}=IN,OUT (US dollars per million "
            "tokens), or in your own configuration."
        )
    ceiling = plan.max_cost_usd
    if ceiling is None:
        return
    if plan.unpriced:
        yield f"Under the ceiling of {_dollars(ceiling)} what has no price is not called."
    if plan.refusal is not None:
        yield f"It would be refused: {plan.refusal}."
        return
    if plan.worst_usd is not None and plan.worst_usd > ceiling:
        yield (
            f"The ceiling of {_dollars(ceiling)} is below the worst cost: "
            "a call that could cross it is not made."
        )


def _dollars(usd: float | None) -> str:
    return UNKNOWN if usd is None else f"${usd:,.4f}"
