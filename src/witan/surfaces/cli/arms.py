"""Define the options, jury and results of arms."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.service.operations.ask import JudgeRequest
from witan.service.parameters import Parameters, parameters_of
from witan.service.text import list_text
from witan.surfaces.cli.commands import print_result, take_parameters
from witan.surfaces.cli.interruption import run_until_signal
from witan.surfaces.cli.options import Number, ParamType, open_record, section
from witan.surfaces.terminal import echo, say

if TYPE_CHECKING:
    from witan.core.arms import ArmMeasure
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.arms import ArmBatch
    from witan.service.batch import Batch, BatchOptions, BatchReport, Progress
    from witan.service.batch_rows import BatchRow, RowResult
    from witan.service.council import Council
    from witan.service.operations.ask import QuestionRequest

OF_ARMS = {"judges": "--judge", "best": "--best", "margin": "--margin", "measure": "--measure"}
"""Options for the comparison of arms."""


class ArmsType(ParamType):
    """Arms to compare, separated by commas."""

    name = "arms"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the list; refuse unknown arms."""
        from witan.core.arms import ARMS

        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",")))
        if "council" not in names or len(names) < 2 or not {*names} <= {*ARMS}:
            self.fail(f"{value!r}: write council and at least one of best, self", param, ctx)
        return names


arms_options = section(
    "Arms",
    click.option(
        "--arms",
        type=ArmsType(),
        metavar="LIST",
        help="Compare the council with its best member's single answer, and with repeated answers "
        "of that member: council,best,self.",
    ),
    click.option(
        "--judge",
        "judges",
        multiple=True,
        metavar="SEAT",
        help="Blind judge of the arms, without another seat; at least two.",
    ),
    click.option(
        "--measure",
        type=click.Choice(["jury", "references", "votes"]),
        help="Measure arms by the judges (default), or without judges by the references or votes "
        "in the rows.",
    ),
    click.option(
        "--best",
        metavar="NAME",
        help="Best member; by default the leader of earlier sessions, otherwise the best on half "
        "of the questions, which are then left out of the measurement.",
    ),
    click.option(
        "--margin",
        type=Number(min=0, min_open=True),
        metavar="NUMBER",
        help='Margin of equivalence: "no difference" if the whole interval is within it; by '
        "default half a grade point.",
    ),
)
"""Options of a comparison of arms."""


def wants_arms(options: Mapping[str, Any]) -> bool:
    """Check the options of arms; return whether any are compared."""
    if options["arms"] is None:
        for name, option in OF_ARMS.items():
            if options[name]:
                raise click.UsageError(f"{option} needs --arms")
        return False
    measure = options["measure"] or "jury"
    if measure != "jury":
        if options["judges"]:
            raise click.UsageError(f"--measure {measure} excludes --judge; leave one of them out")
        return True
    if len({*options["judges"]}) < 2:
        raise click.UsageError(
            "--arms needs a jury: name at least two seats with --judge, or use --measure "
            "references or votes"
        )
    return True


def fill(declaration: type[Parameters], values: Mapping[str, Any]) -> dict[str, Any]:
    """Set defaults for parameters that belong to a row or to the whole batch."""
    defaults = {each.name: each.default for each in parameters_of(declaration)}
    files: dict[str, Any] = {"files": {}} if "files" in defaults else {}
    whole = {"max_cost_usd": None, "max_calls": None, **files}
    return {**defaults, **{n: v for n, v in values.items() if n in defaults}, **whole}


def council_prices(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prices of all seats except the judges of the arms."""
    names = _judge_names(options["judges"])
    return {name: price for name, price in options["prices"] if name not in names}


def _judge_names(judges: Sequence[str]) -> set[str]:
    from witan.models.seats import names_of, parse_seat

    specs = [parse_seat(judge, key="--judge", base=Path.cwd()) for judge in judges]
    return {name for spec in specs for name in names_of(spec)}


def make_arm_batch(  # noqa: PLR0917 - the last by name
    council: "Council",
    history: Any,
    tasks: "Sequence[BatchRow]",
    chosen: "BatchOptions",
    options: Mapping[str, Any],
    say: Callable[[str], None] = lambda _: None,
    *,
    sessions: Sequence[str] | None = None,
    **more: Any,
) -> "ArmBatch":
    """Seat the jury of the arms, and make their batch."""
    from witan.service.arms import ArmBatch, ArmOptions

    measure: ArmMeasure = options["measure"] or "jury"
    jury = _seat_jury(history, options, say) if measure == "jury" else None
    arms = ArmOptions(options["arms"], options["best"], options["margin"], measure)
    return ArmBatch(council, jury, history, tasks, chosen, arms=arms, sessions=sessions, **more)


def _seat_jury(history: Any, options: Mapping[str, Any], say: Callable[[str], None]) -> "Council":
    from witan.service.sessions.councils import LocalCouncils

    names = _judge_names(options["judges"])
    prices = {name: price for name, price in options["prices"] if name in names}
    councils = LocalCouncils(
        options["config"], prices, history=history, say=say, for_plan=options.get("dry_run", False)
    )
    jury_options = {"jury": options["judges"], "texts": {"council": "?"}, "question": None}
    judge_request = fill(JudgeRequest, {**options, **jury_options})
    return councils.council_of_jurors(take_parameters(JudgeRequest, judge_request))


def check_prices(batch: "Batch | ArmBatch") -> None:
    """Refuse a ceiling on unpriced seats if calls remain."""
    if batch.options.max_cost_usd is None:
        return
    jury = getattr(batch, "jury", None)
    judging = [batch.council] if batch.tasks[0].texts else []
    texts = {"a": "?", "b": "?"}  # a single text may need a pass mark, or have no pairs
    plans = [council.plan_judge(texts) for council in (*judging, *filter(None, [jury]))]
    plans += [] if judging else [batch.council.plan("?")]
    seats = list(dict.fromkeys(seat for plan in plans for seat in plan.unpriced_seats))
    if not seats or not batch.bill().calls:
        return
    options = " ".join(f"--price {shlex.quote(seat)}=IN,OUT" for seat in seats)
    raise click.UsageError(
        f"the price of {list_text(seats)} is unknown, so --max-cost cannot be enforced; set it "
        f"with {options} (US dollars per million tokens)"
    )


def run_batch(
    batch: "Batch | ArmBatch",
    on_result: "Callable[[RowResult], None]",
    on_progress: "Callable[[Progress], None]" = lambda _: None,
) -> "BatchReport":
    """Run a batch with its council and any jury open.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, SIGTERM or a closed terminal, once every call is cancelled.
    """

    async def run() -> "BatchReport":
        async with AsyncExitStack() as stack:
            for council in (batch.council, getattr(batch, "jury", None)):
                if council is not None:
                    await stack.enter_async_context(council)
            return await batch.run(on_result, on_progress)

    return run_until_signal(run)


def batch_of_one(
    request: "QuestionRequest",
    council: "Council",
    options: Mapping[str, Any],
    history: "History | None",
    session: str = "",
) -> "ArmBatch":
    """Make the arms of one question, answered in the named session."""
    from witan.service.batch import BatchOptions
    from witan.service.batch_rows import BatchRow

    if (measure := options["measure"]) in ("references", "votes"):
        raise click.UsageError(f"--measure {measure} is for witan batch, whose rows have {measure}")
    if request.parent is not None or request.conversation:
        raise click.UsageError("--arms does not support a conversation")
    if history is None:
        raise click.UsageError("--arms needs a history; name one with --history")
    task = BatchRow(1, None, request.question, category=request.category, sources=request.files)
    batch_options = BatchOptions(
        max_cost_usd=options["max_cost_usd"], max_calls=options["max_calls"]
    )
    return make_arm_batch(council, history, [task], batch_options, options, sessions=[session])


def compare_answer(
    session: "Session", request: "QuestionRequest", options: Mapping[str, Any]
) -> bool:
    """Compare a session's answer with its controls; False if interrupted."""
    if session.text is None or session.status == "interrupted":
        echo("there is no final answer to compare with others", err=True)
        return True
    from witan.service.sessions.councils import LocalCouncils

    with ExitStack() as stack:
        place = open_record(options, lambda _: None)
        history = None if place is None else stack.enter_context(place.history)
        councils = LocalCouncils(options["config"], council_prices(options), history=history)
        batch = batch_of_one(request, councils.council(request), options, history, session.id)
        if not options["quiet"]:
            echo(f"comparing arms: {batch.bill().calls:,} calls if nothing fails", err=True)
        problems: list[str] = []
        try:
            report = run_batch(batch, lambda row: problems.extend(filter(None, [row.error])))
        except KeyboardInterrupt:
            echo("interrupted; the answer is complete, but its arms are not compared", err=True)
            return False
    if report.unaffordable or getattr(report, "unfinished", 0):
        problems.append(
            "the ceiling is too low for the other arms; raise --max-cost or --max-calls"
        )
    for problem in problems:
        say(problem)
    comparison = getattr(report, "comparison", None)
    if comparison is None:
        echo("fewer than two arms are judged, so there is nothing to compare", err=True)
    else:
        print_result(comparison, as_json=options["as_json"], err=True)
    return True
