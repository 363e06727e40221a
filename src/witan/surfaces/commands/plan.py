"""``witan plan``: what a question would cost, before it is asked."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.surfaces.asking import read_earlier, read_files, read_question
from witan.surfaces.commands.council_options import council_options, overrides
from witan.surfaces.commands.history_options import history_option
from witan.surfaces.commands.options import json_option
from witan.surfaces.text import UNKNOWN, Page, clean, listed

if TYPE_CHECKING:
    from witan.deliberation.plan import Plan, PlanLine
    from witan.deliberation.ports import Seat
    from witan.surfaces.seating import SeatSpec

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan plan "Is this contract fair?" -f contract.txt
  witan plan "Which?" --member openai:gpt-5 --member anthropic:claude-opus-4 --json
"""


@click.command(
    "plan", short_help="Say what a question would cost, without a call.", epilog=EXAMPLES
)
@council_options
@history_option
@json_option
def command(as_json: bool, **options: Any) -> None:
    """Say what QUESTION would ask for and cost at most; no call is made, and no key is needed.

    Tokens are upper bounds: what is read is counted as if every answer filled its limit. Repairs of
    reviews and the chairmen that stand in are in the cost at most; retries and hedges are not.
    """
    earlier = options["earlier"]
    question = read_question(options["question"], (*options["files"], earlier))
    files = read_files(options["files"])
    if earlier is None and options["history"] is not None:
        raise click.UsageError("--history says where --continue looks; a plan needs no other")
    before = read_earlier(earlier, options["config"], options["history"])
    import os

    from witan.deliberation.planning import make_plan
    from witan.surfaces.arranging import procedure_of
    from witan.surfaces.config import load_config
    from witan.surfaces.council import who_sits

    given, profile = overrides(options), options["profile"]
    config = load_config(os.environ, Path.cwd(), options["config"], given, profile=profile)
    found = who_sits(config, os.environ)
    procedure = procedure_of(config)
    plan = make_plan(
        [_seat(spec) for spec in found.seats],
        [_seat(spec) for spec in _apart(config.chairmen, found.seats)],
        procedure,
        question,
        conversation=() if before is None else before.conversation,
        files=files,
    )
    for note in (*found.notes, *_missing_keys((*found.seats, *config.chairmen))):
        click.echo(clean(note), err=True)
    ceiling = procedure.limits.max_cost_usd
    if as_json:
        from witan.surfaces.json_output import to_json

        click.echo(to_json(_object(plan, ceiling)))
    else:
        click.echo("\n".join(_text(Page.of(sys.stdout), plan, ceiling)))


def _seat(spec: "SeatSpec") -> "Seat":
    """A seat as far as a plan needs it: nobody is called, so there is no model and no key."""
    import os

    from witan.deliberation.ports import Seat
    from witan.surfaces.seating import price_of_seat

    price = price_of_seat(spec, os.environ)
    return Seat(spec.name, spec.source, spec.provider, spec.options, price)


def _apart(chairmen: "Sequence[SeatSpec]", members: "Sequence[SeatSpec]") -> "list[SeatSpec]":
    """The chairmen, of whom one that sits as a member is that member."""
    seated = {replace(member, name=""): member for member in reversed(members)}
    return [seated.get(replace(chairman, name=""), chairman) for chairman in chairmen]


def _missing_keys(specs: "Sequence[SeatSpec]") -> Iterator[str]:
    """What has to be set before the question can be asked."""
    import os

    from witan.surfaces.providers import key_of
    from witan.surfaces.seating import key_variables

    missing: dict[str, None] = {}
    for variables in map(key_variables, specs):
        if variables and key_of(variables, os.environ) is None:
            missing[" or ".join(variables)] = None
    if missing:
        yield f"no key is needed for the plan; to ask, set {listed([*missing], most=len(missing))}"


def _text(page: Page, plan: "Plan", ceiling: float | None) -> Iterator[str]:
    """A line per seat and stage with their sum, what may be needed besides, and the sum of all."""
    from witan.surfaces.tables import Column, table

    columns = [
        Column("seat", "left", elastic=True),
        Column("stage", "left"),
        Column("calls"),
        Column("tokens in, at most", keep=40),
        Column("tokens out, at most", keep=50),
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
    for sentence in _notes(plan, ceiling):
        yield page.sentence(sentence)


def _row(seat: str, stage: str, lines: "Sequence[PlanLine]") -> list[str]:
    """What these lines come to."""
    costs = [line.worst_usd for line in lines if line.worst_usd is not None]
    return [
        seat,
        stage,
        f"{sum(line.calls for line in lines):,}",
        f"{sum(line.input_tokens for line in lines):,}",
        f"{sum(line.output_tokens for line in lines):,}",
        _dollars(fsum(costs) if len(costs) == len(lines) else None),
    ]


def _notes(plan: "Plan", ceiling: float | None) -> Iterator[str]:
    yield "Retries, and second calls where one is slow, are not included."
    if plan.unpriced:
        unknown = f"The price of {listed(plan.unpriced)} is unknown, and with it the cost"
        yield f"{unknown}; set it as price in witan.toml."
    if ceiling is None:
        return
    if plan.unpriced:
        yield f"Under the ceiling of {_dollars(ceiling)} what has no price is not called."
    elif plan.worst_usd is not None and plan.worst_usd > ceiling:
        yield (
            f"The ceiling of {_dollars(ceiling)} is below the worst cost: "
            "a call that could cross it is not made."
        )


def _dollars(usd: float | None) -> str:
    return UNKNOWN if usd is None else f"${usd:,.4f}"


def _object(plan: "Plan", ceiling: float | None) -> dict[str, Any]:
    return {
        "calls": plan.calls,
        "input_tokens": plan.input_tokens,
        "output_tokens": plan.output_tokens,
        "repairs": plan.repairs,
        "worst_usd": plan.worst_usd,
        "max_cost_usd": ceiling,
        "unpriced": plan.unpriced,
        "lines": plan.lines,
    }
