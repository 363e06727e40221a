"""Write the report of a plan: calls and cost."""

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from witan.core.display import dollars
from witan.deliberation.plan import Plan, PlanLine
from witan.service.text import UNKNOWN, count_noun, list_text
from witan.service.trust import separation_sentence
from witan.surfaces.report.document import Block, Column, Note, Report, Sentence, Table, table_of

if TYPE_CHECKING:
    from witan.service.operations.plan import PlanSummary


def plan_report(result: "Plan | PlanSummary") -> Report:
    """Write the report of a plan."""
    plan = _summarize(result) if isinstance(result, Plan) else result
    most = "at most " if any(line.probability < 1 for line in plan.lines) else ""
    calls = f"{most}{count_noun(plan.calls, 'call')} if nothing fails"
    cost = "" if plan.worst_usd is None else f"; {dollars(plan.worst_usd, up=True)} at worst"
    return Report(
        "Plan",
        (f"ceiling {list_text(ceilings)}",) if (ceilings := [*ceiling_texts(plan)]) else (),
        f"{calls}{cost}.",
        (*_remarks(plan), _table(plan)),
    )


def estimate_text(plan: "PlanSummary") -> str:
    """State a plan's calls and cost in one line."""
    parts = [count_noun(plan.calls, "call")]
    if plan.worst_usd is None:
        parts.append("unknown cost")
    elif plan.expected_usd is None or not plan.worst_usd:
        parts.append(f"at most {dollars(plan.worst_usd, up=True)}")
    else:
        parts.append(
            f"about {dollars(plan.expected_usd)}, at most {dollars(plan.worst_usd, up=True)}"
        )
    if plan.refusal is not None:
        parts.append(plan.refusal)
    elif ceilings := [*ceiling_texts(plan)]:
        parts.append(f"never above {list_text(ceilings)}")
    return " · ".join(parts)


def ceiling_texts(plan: "PlanSummary") -> Iterator[str]:
    """Write the ceilings of a plan."""
    if plan.max_cost_usd is not None:
        yield dollars(plan.max_cost_usd)
    if plan.max_calls is not None:
        yield count_noun(plan.max_calls, "call")


def _summarize(plan: Plan) -> "PlanSummary":
    from witan.deliberation.procedure import Limits
    from witan.service.operations.plan import summarize_plan

    return summarize_plan(plan, Limits())


def _remarks(plan: "PlanSummary") -> Iterator[Block]:
    if plan.expected_usd is not None and plan.worst_usd:
        earlier = count_noun(plan.expected_from, "earlier session")
        basis = f"the lengths of {earlier}" if plan.expected_from else "published lengths"
        yield Sentence(
            f"Expected if nothing fails: {dollars(plan.expected_usd)}, based on {basis}."
        )
    reviews = [line for line in plan.lines if line.stage == "review" and not line.if_needed]
    if any(line.probability < 1 for line in reviews):
        likely = fsum(line.probability * line.calls for line in reviews)
        n_reviews = sum(line.calls for line in reviews)
        yield Sentence(
            f"About {likely:.1f} of {n_reviews} reviews are expected: reviewers are asked one by "
            "one while the result is too close to call."
        )
    if plan.separation is not None and plan.separation.candidates > 1:
        yield Sentence(separation_sentence(plan.separation))
    yield Sentence("Retries and second calls for slow replies are not included.", quiet=True)
    yield from (Note(text, "warning") for text in _warnings(plan))


def _warnings(plan: "PlanSummary") -> Iterator[str]:
    if plan.unpriced:
        unknown = f"the price of {list_text(plan.unpriced)} is unknown, so the cost is unknown"
        yield (
            f"{unknown}; state it in your own configuration, or on the command line as "
            f"--price {plan.unpriced[0]}=IN,OUT (US dollars per million tokens)"
        )
    ceiling = plan.max_cost_usd
    if ceiling is not None and plan.unpriced:
        yield f"seats without a price are not called under the ceiling of {dollars(ceiling)}"
    if plan.refusal is not None:
        yield f"the session would be refused: {plan.refusal}"
    elif ceiling is not None and plan.worst_usd is not None and plan.worst_usd > ceiling:
        yield (
            f"the ceiling of {dollars(ceiling)} is below the worst-case cost: calls that could "
            "exceed it are not made"
        )


def _table(plan: "PlanSummary") -> Table:
    """Write a line per seat and stage, then the sums."""
    usual = [line for line in plan.lines if not line.if_needed]
    spare = [line for line in plan.lines if line.if_needed]
    rows = [
        *(_row(line.seat, line.stage, [line]) for line in usual),
        _row("if nothing fails" if spare else "all", "", usual),
    ]
    sums = {len(usual)}
    if spare:
        rows += [_row(line.seat, f"{line.stage}, if needed", [line]) for line in spare]
        rows.append(_row("at most", "", plan.lines))
        sums.add(len(rows) - 1)
    columns = (
        Column("seat", "left", fit="fold", heads=True),
        Column("stage", "left"),
        Column("calls"),
        Column("expected cost"),
        Column("worst cost"),
        Column("tokens in, at most", keep=40),
        Column("tokens out, at most", keep=50),
    )
    return table_of(
        "Calls of each seat in each stage",
        [(column, [row[at] for row in rows]) for at, column in enumerate(columns)],
        breaks=sums | ({len(usual) + 1} if spare else set()),
        strong=sums,
    )


def _row(seat: str, stage: str, lines: Sequence[PlanLine]) -> list[str]:
    costs = [line.worst_usd for line in lines if line.worst_usd is not None]
    spare = any(line.if_needed for line in lines)
    likely = [
        line.probability * line.expected_usd for line in lines if line.expected_usd is not None
    ]
    return [
        seat,
        stage,
        f"{sum(line.calls for line in lines):,}",
        UNKNOWN if spare else _amount(fsum(likely) if len(likely) == len(lines) else None),
        _amount(fsum(costs) if len(costs) == len(lines) else None, up=True),
        f"{sum(line.input_tokens for line in lines):,}",
        f"{sum(line.output_tokens for line in lines):,}",
    ]


def _amount(usd: float | None, *, up: bool = False) -> str:
    return UNKNOWN if usd is None else dollars(usd, up=up)
