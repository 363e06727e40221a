"""``witan batch``: a data set through a council, row by row."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from witan.core.escaping import is_blank
from witan.errors import BallotFileError, Remedy, WitanError
from witan.service.operations.ask import JudgeRequest, QuestionRequest
from witan.service.parameters import parameters_of
from witan.service.text import count_noun, list_text
from witan.surfaces.cli.arms import (
    arms_options,
    check_prices,
    council_prices,
    fill,
    make_arm_batch,
    run_batch,
    wants_arms,
)
from witan.surfaces.cli.ask import seat_options
from witan.surfaces.cli.commands import (
    command,
    parameter_options,
    print_result,
    take_parameters,
    word_problem,
)
from witan.surfaces.cli.options import (
    Number,
    ParamType,
    Status,
    WholeNumber,
    history_option,
    section,
)
from witan.surfaces.cli.session import lock
from witan.surfaces.report.batch import ceiling_text, progress_text
from witan.surfaces.terminal import console, echo, is_terminal, say, style_line

if TYPE_CHECKING:
    from witan.history import History
    from witan.service.arms import ArmBatch
    from witan.service.batch import Batch, Progress
    from witan.service.batch_rows import BatchRow, RowResult
    from witan.service.council import Council
    from witan.service.sessions.councils import LocalCouncils

OF_A_ROW = (
    "question",
    "conversation",
    "files",
    "parent",
    "category",
    "seed",
    "max_cost_usd",
    "max_calls",
)
"""Parameters of a question that belong to a row or to the whole batch."""

OF_TEXTS = ("pass_mark", "expected")
"""Parameters of a judgment that hold for every row."""

NOT_OF_TEXTS = {each.name for each in parameters_of(JudgeRequest)} - {*OF_TEXTS}

INTERRUPTED_EARLY = "interrupted before the first row; no model was called"

SECONDS_BETWEEN = 30.0
"""Seconds between two lines of progress without a terminal."""


class ColumnType(ParamType):
    """A field of a row and its column: ``NAME=COLUMN``."""

    name = "column"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Parse it."""
        from witan.service.batch_rows import COLUMNS

        name, _, column = str(value).partition("=")
        if name not in COLUMNS or not column:
            self.fail(f"{value!r}: write NAME=COLUMN, NAME one of {', '.join(COLUMNS)}", param, ctx)
        return name, column


class MasterType(ParamType):
    """A master as Spark writes it; empty: Spark's own configuration names it."""

    name = "master"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse anything but a master, such as the file of the rows."""
        if not re.fullmatch(r"|local(-cluster)?(\[.+\])?|yarn|(spark|k8s|mesos)://.+", str(value)):
            self.fail(
                f"{value!r} is not a Spark master, such as local[4], spark://HOST:7077, yarn or"
                " k8s://HOST; without one, write --spark last",
                param,
                ctx,
            )
        return str(value)


@command(
    "batch",
    "batch questions.jsonl -o answers.jsonl --max-cost 5",
    "batch replies.csv --column text=reply --pass-mark 7 --dry-run",
    "batch pairs.parquet --text new --text old --expected new -o verdicts.jsonl",
    "batch questions.csv --arms council,best,self --judge openai:gpt-5 --judge ollama:qwen3",
    "batch questions.parquet -o answers.jsonl --history postgresql://ada@db/witan --spark yarn",
    notes="""FILE is JSON Lines, a JSON list, CSV or Parquet, plain or compressed. A row with a
text, in the columns text or texts or those of --text, is judged; any other row is a question.
Each row becomes a session of the history; run the command again to ask only for what is
missing. Exit status: 0 all rows are complete, 3 some are not, 4 the ceiling was reached, 130
interrupted by Ctrl-C, SIGTERM or a closed terminal.""",
)
@click.argument("file", metavar="FILE")
@section(
    "Rows",
    click.option(
        "--column",
        "columns",
        multiple=True,
        type=ColumnType(),
        metavar="NAME=COLUMN",
        help="Column for a field: question, text, texts, reference, expected, category, id, or "
        "votes (by people).",
    ),
    click.option(
        "--text",
        "texts",
        multiple=True,
        metavar="COLUMN",
        help="Column with a text to judge; its heading is the text's name.",
    ),
    parameter_options(JudgeRequest, exclude=NOT_OF_TEXTS),
)
@section(
    "Time and money",
    click.option(
        "--max-cost",
        "max_cost_usd",
        type=Number(min=0),
        metavar="NUMBER",
        help="US dollars to spend on all rows together, earlier runs included.",
    ),
    click.option(
        "--max-calls",
        type=WholeNumber(min=0),
        metavar="NUMBER",
        help="Calls to make for all rows together, earlier runs included.",
    ),
    click.option(
        "--concurrency",
        type=WholeNumber(min=1),
        default=8,
        show_default=True,
        metavar="NUMBER",
        help="Maximum concurrent sessions; with --spark, of each Spark task.",
    ),
    click.option(
        "--spark",
        "spark_master",
        is_flag=False,
        flag_value="",
        type=MasterType(),
        metavar="[MASTER]",
        help="Run the rows on a Spark cluster, by default the one in Spark's configuration; "
        "needs a history in PostgreSQL.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Print the work and its cost without calling a model."
    ),
)
@parameter_options(QuestionRequest, exclude=OF_A_ROW)
@arms_options
@seat_options
@history_option
@section(
    "Output",
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE.jsonl",
        help="Write one JSON line per finished row to this file; by default to standard output, "
        "and the report to standard error.",
    ),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the report as one JSON object, numbers unrounded.",
    ),
)
def batch_command(file: str, output: str | None, as_json: bool, **options: Any) -> int:
    """Run a data set through a council, row by row."""
    with ExitStack() as stack:
        try:
            tasks = _read_tasks(file, options)
            batch = _make_batch(_open_history(stack, options), tasks, options, say)
            if options["dry_run"]:
                print_result(batch.bill(), as_json=as_json)
                return 0
            check_prices(batch)
            stream = None if output in (None, "-") else _open_results(stack, output, file)
        except KeyboardInterrupt:
            echo(INTERRUPTED_EARLY, err=True)
            return Status.INTERRUPTED
        return _run(batch, stream, as_json=as_json)


def _read_tasks(file: str, options: Mapping[str, Any]) -> "list[BatchRow]":
    from witan.files.ballots.formats import NO_ROWS, read_rows
    from witan.service.batch_rows import read_batch_rows

    columns, texts = dict(options["columns"]), options["texts"]
    tasks = read_batch_rows(read_rows(file), file, columns, texts, say)
    if not tasks:
        raise BallotFileError(file, NO_ROWS)
    times_by_id = Counter(task.id for task in tasks if task.id is not None)
    if repeated := [name for name, times in times_by_id.items() if times > 1]:
        say(
            f"several rows have the id {list_text(repeated)}; use `row` to tell their results apart"
        )
    return tasks


def _open_history(stack: ExitStack, options: Mapping[str, Any]) -> "History":
    from witan.service.history_access import load_history_config, open_recording

    config = load_history_config(options["config"], options["history"])
    place = open_recording(config, options["config"], say)
    if place is None:
        problem = "a batch needs a history, and history.enabled is false; name one with --history"
        raise click.UsageError(problem)
    stack.callback(place.history.close)
    return place.history


def _open_results(stack: ExitStack, output: str, file: str) -> TextIO:
    """Open the file of results, locked and empty."""
    stream = stack.enter_context(_open(output, file))
    if stream.readable():
        if not lock(stream):
            problem = f"another run of witan is writing {output}; wait, or choose another -o"
            raise click.UsageError(problem)
        _check_results(stream)
        stream.truncate(0)
    return stream


def _open(path: str, file: str) -> TextIO:
    if Path(path).exists() and Path(file).exists() and Path(path).samefile(file):
        raise click.BadParameter(f"{path} is the data set itself", param_hint="--output")
    try:
        if Path(path).exists() and not Path(path).is_file():  # a pipe or a device
            return Path(path).open("w", encoding="utf-8")
        return Path(path).open("a+", encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from None


def _check_results(stream: TextIO) -> None:
    """Refuse to overwrite a file with a line that is not from a batch."""
    stream.seek(0)
    try:
        for number, line in enumerate(stream, start=1):
            if not _is_result(line):
                problem = f"{stream.name}:{number} is not a result of a batch"
                raise click.UsageError(f"{problem}; name another file with -o, or delete this one")
    except UnicodeDecodeError:
        problem = f"{stream.name} contains no results of a batch"
        raise click.UsageError(f"{problem}; name another file with -o, or delete it") from None


def _is_result(line: str) -> bool:
    """Check that a batch wrote this line, perhaps only in part."""
    if not line.endswith("\n"):
        return line.startswith('{"row":')
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"row", "session", "status"} <= row.keys()


def _unwritable(path: str, error: OSError) -> click.BadParameter:
    problem = f"{path} cannot be written: {error.strerror or error}"
    return click.BadParameter(problem, param_hint="--output")


def _seat(
    councils: "LocalCouncils", tasks: "list[BatchRow]", options: Mapping[str, Any]
) -> "Council":
    first = tasks[0]
    if not first.texts:
        for name in OF_TEXTS:
            if options[name] is not None:
                option = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{option} is for texts, and these rows are questions")
        questions = (task.question for task in tasks if not is_blank(task.question or ""))
        fields = {**options, "question": next(questions, first.question)}
        return councils.council(take_parameters(QuestionRequest, fill(QuestionRequest, fields)))
    if options["expected"] is not None and all(len(task.texts) == 1 for task in tasks):
        problem = "--expected is for several texts per row, and each row has one"
        raise click.UsageError(f"{problem}; use a column expected with passed or failed")
    own = {each.name for each in parameters_of(JudgeRequest)}
    for each in parameters_of(QuestionRequest):
        if each.name not in own and options.get(each.name) not in (None, ()):
            raise click.UsageError(f"{each.option} is for questions, and these rows are texts")
    fields = {**options, "texts": first.texts, "question": first.question}
    return councils.council_of_jurors(take_parameters(JudgeRequest, fill(JudgeRequest, fields)))


def _make_batch(
    history: "History",
    tasks: "list[BatchRow]",
    options: Mapping[str, Any],
    say: Callable[[str], None],
) -> "Batch | ArmBatch":
    """Seat the council, and with arms their jury; make the batch."""
    from witan.service.batch import Batch, BatchOptions
    from witan.service.sessions.councils import LocalCouncils

    has_arms = wants_arms(options)
    if has_arms and tasks[0].texts:
        raise click.UsageError("--arms is for questions, and these rows are texts")
    master = options["spark_master"]
    prices = council_prices(options)
    planning = options["dry_run"]
    councils = LocalCouncils(options["config"], prices, history=history, say=say, for_plan=planning)
    council = _seat(councils, tasks, options)
    if council.procedure.pairs is not None:
        _check_pairs(tasks, options)
    names = ("concurrency", "max_cost_usd", "max_calls", *OF_TEXTS)
    batch_options = BatchOptions(
        **{name: options[name] for name in names}, write_error=_word_row_problem
    )
    make_batch: Callable[..., Batch] = Batch
    if master is not None and not planning:
        from witan.service.spark_batch import SparkBatch

        make_batch = partial(SparkBatch, master=master or None)
    if has_arms:
        return make_arm_batch(
            council, history, tasks, batch_options, options, say, make_batch=make_batch
        )
    return make_batch(council, history, tasks, batch_options)


def _word_row_problem(problem: WitanError) -> str:
    """Explain why a row has no session.

    A ceiling of one row comes from the configuration; the options limit all rows together.
    """
    remedy = getattr(problem, "remedy", None)
    ways = remedy.ways if isinstance(remedy, Remedy) else ()
    named = {name for way in ways for name in way.arguments}
    return str(problem) if named & {"max_cost_usd", "max_calls"} else word_problem(problem)


def _check_pairs(tasks: "list[BatchRow]", options: Mapping[str, Any]) -> None:
    """Refuse pairs of texts that cannot be compared, before the first call."""
    single = next((task for task in tasks if len(task.texts) == 1), None)
    if single is not None:
        problem = f"row {single.number} has a single text, so there is no pair to compare"
        raise click.UsageError(f"{problem}; leave --pairs out, or judge several texts per row")
    if options["pass_mark"] is not None:
        problem = "--pass-mark needs grades, and pairs are not graded"
        raise click.UsageError(f"{problem}; leave --pairs or --pass-mark out")


def _write_row(stream: TextIO | None, result: "RowResult") -> None:
    from witan.service.json_output import to_json

    if stream is None:
        echo(to_json(result))
    elif not stream.closed:  # rows may still end after a write failed
        try:
            stream.write(f"{to_json(result)}\n")
            stream.flush()
        except OSError as error:
            with suppress(OSError):  # the buffer cannot be written either
                stream.close()
            raise OSError(error.errno, error.strerror, stream.name) from error


def _run(batch: "Batch | ArmBatch", stream: TextIO | None, *, as_json: bool) -> int:
    """Run the batch; write rows as they end, and the report.

    Without a stream, rows go to standard output and the report to standard error.
    """
    with _ProgressView(len(batch.tasks)) as view:
        try:
            report = run_batch(batch, partial(_write_row, stream), view.show)
        except OSError as error:
            if stream is None or error.filename != stream.name:
                raise
            raise _unwritable(stream.name, error) from None
        except KeyboardInterrupt:
            with suppress(OSError):  # the terminal may be gone
                echo(view.describe_interrupt(), err=True)
            return Status.INTERRUPTED
    print_result(report, as_json=as_json, err=stream is None)
    if report.unaffordable or getattr(report, "unfinished", 0):
        if not as_json:
            echo(ceiling_text(batch.bill()), err=True)
        return Status.OVER_BUDGET
    is_whole = report.statuses == {"complete": report.rows}
    if is_whole and not (report.people and report.people.damaged):
        return Status.ANSWERED
    return Status.NO_QUORUM


class _ProgressView:
    """Progress as one moving line, or occasional lines without a terminal."""

    def __init__(self, rows: int) -> None:
        self._start = f"0 of {rows:,} rows"
        self._progress: Progress | None = None
        self._next = time.monotonic() + SECONDS_BETWEEN
        self._stack = ExitStack()
        self._moves = is_terminal(err=True)

    def __enter__(self) -> "_ProgressView":
        if self._moves:
            from rich.live import Live

            screen = console()
            view = Live(
                console=screen,
                get_renderable=lambda: style_line(self._text(screen.width), one_line=True),
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._stack.enter_context(view)
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def show(self, progress: "Progress") -> None:
        self._progress = progress
        if not self._moves and time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS_BETWEEN
            echo(self._text(), err=True)

    def describe_interrupt(self) -> str:
        if (progress := self._progress) is None:  # rows of earlier runs are not all found yet
            return INTERRUPTED_EARLY
        stage = f" ({progress.stage})" if progress.stage else ""
        rows = f"{progress.n_done:,} of {count_noun(progress.rows, 'row')}"
        return f"interrupted{stage}; {rows} done; run the same command to continue"

    def _text(self, width: int | None = None) -> str:
        return self._start if self._progress is None else progress_text(self._progress, width)
