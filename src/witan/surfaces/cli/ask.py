"""Sessions of a council: ``witan ask``, ``plan``, ``rejudge``, ``retry``, ``resume``, ``demo``."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from witan.errors import HistoryConflict, SessionFileError, WitanError
from witan.service.catalogue import find_operation
from witan.service.operations.ask import (
    JudgeRequest,
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.text import count_noun
from witan.surfaces.cli.arms import (
    arms_options,
    batch_of_one,
    check_prices,
    compare_answer,
    council_prices,
    wants_arms,
)
from witan.surfaces.cli.commands import command, parameter_options, print_result, take_parameters
from witan.surfaces.cli.options import (
    ParamType,
    Status,
    config_option,
    history_option,
    json_option,
    open_record,
    record_options,
    recording_options,
    section,
    stack_options,
)
from witan.surfaces.cli.session import (
    STANDARD_INPUT,
    Say,
    SessionOutput,
    SessionStart,
    lock,
    read_earlier,
    read_files,
    read_question,
    read_turns,
    run_session,
)
from witan.surfaces.terminal import say

if TYPE_CHECKING:
    from witan.deliberation.ports import Seat
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.council import Council
    from witan.service.history_access import RecordingPlace
    from witan.service.operations.plan import PlanSummary
    from witan.service.sessions.councils import LocalCouncils
    from witan.surfaces.cli.live_session import LiveSession


class PriceType(ParamType):
    """A seat with its prices per million tokens: ``SEAT=IN,OUT``."""

    name = "price"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, float]]:
        """Parse it; the seat may contain an equals sign."""
        seat, _, rate = str(value).rpartition("=")
        try:
            input_usd, output_usd = (float(part) for part in rate.split(","))
        except ValueError:
            input_usd = output_usd = -1.0
        if not seat.strip() or not (0 <= input_usd < inf and 0 <= output_usd < inf):
            self.fail(
                f"{value!r} is not a price; write SEAT=IN,OUT such as critic=3,15", param, ctx
            )
        return seat.strip(), (input_usd, output_usd)


output_options = section(
    "Output",
    record_options,
    click.option(
        "--save",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        metavar="FILE.json",
        help="Save the session record to this file, even if interrupted.",
    ),
    click.option(
        "--legend",
        is_flag=True,
        help="Also print the legend and the trust line on standard output, below the text.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Hide progress, legend and trust line; show only what is missing.",
    ),
)

session_options = stack_options(
    recording_options,
    output_options,
    section(
        "Output",
        click.option(
            "--require-winner",
            is_flag=True,
            help="Exit 5 if the session has no single clear leader.",
        ),
    ),
)
"""Options of the output of a session, its record and its exit status."""


def _one_question(
    ctx: click.Context,
    param: click.Parameter,  # noqa: ARG001 - as every callback
    words: tuple[str, ...],
) -> str | None:
    """Return the single argument; refuse an unquoted question."""
    if len(words) > 1:
        question = shlex.quote(" ".join(words))
        raise click.UsageError(
            f"the question came as {len(words)} arguments; put it in quotes: {question}", ctx
        )
    return words[0] if words else None


file_option = click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Text file to attach to the question; - is standard input.",
)

_question_options = section(
    "Question",
    click.argument("question", nargs=-1, metavar="[QUESTION]", callback=_one_question),
    file_option,
    click.option(
        "--conversation",
        type=click.Path(allow_dash=True),
        metavar="FILE.json",
        help="Earlier messages, oldest first: a list of objects with role and content.",
    ),
)

seat_options = stack_options(
    section("Seats", config_option),
    section(
        "Time and money",
        click.option(
            "--price",
            "prices",
            multiple=True,
            type=PriceType(),
            metavar="SEAT=IN,OUT",
            help="Price of a seat, in US dollars per million tokens read and written.",
        ),
    ),
)

council_options = stack_options(
    _question_options,
    parameter_options(QuestionRequest, exclude=("question", "conversation", "files")),
    seat_options,
)
"""Options of the question, the seats, the settings and the limits."""


def say_separation(council: "Council", say: Say, place: "RecordingPlace | None") -> None:
    """Print the difference between answers that this council can detect.

    Print nothing if only scripts answer, which are free.
    """
    from witan.deliberation.learning import apply_lessons
    from witan.deliberation.planner import panel_separation
    from witan.service.trust import separation_sentence

    procedure = council.procedure
    if all(seat.simulated for seat in (*council.members, *council.jury)):
        return
    if place is not None and procedure.asks_grades and procedure.counting.prior == "learn":
        lessons = place.history.learn()
        counting = apply_lessons(procedure.counting, lessons, "grades")
        procedure = replace(procedure, counting=counting)
    separation = panel_separation(council.members, procedure, council.jury)
    if separation is not None:
        say(separation_sentence(separation))


STATUSES = "Exit status: as for witan ask."


@command(
    "ask",
    'ask "Is a hash map always faster than a sorted array?"',
    'git diff | witan ask "Is this change safe?" -f - --mode verdict',
    'ask "Which?" --member openai:gpt-5 --member ollama:qwen3 --save session.json',
    'ask "Why?" --arms council,best,self --judge openai:gpt-5 --judge anthropic:claude-opus-4',
    notes="""Without QUESTION, or with -, the question is read from standard input. Ctrl-C saves
the session so far and prints how to resume. Exit status: 0 answered, 1 not approved
(--mode verdict), 2 misuse, 3 no quorum, 4 over budget, 5 tied under --require-winner, 6 not
recorded in the history, 7 not written to standard output, 130 interrupted, 141 standard output
closed by its reader.""",
)
@council_options
@arms_options
@session_options
def ask_command(**options: Any) -> int:
    """Ask a question, with live output."""
    output = SessionOutput.of(options)
    has_arms = wants_arms(options)
    question_reader = _question_reader(options)
    sessions_to_compare: list[tuple[LiveSession, QuestionRequest]] = []

    def prepare(live: "LiveSession") -> SessionStart:
        request, before = question_reader()
        councils = live.councils(options["config"], council_prices(options))
        council = councils.council(request)
        if has_arms:  # refuse impossible comparisons before any call
            history = None if live.place is None else live.place.history
            check_prices(batch_of_one(request, council, options, history))
            sessions_to_compare.append((live, request))
        if not output.quiet:
            say_separation(council, live.say, live.place)
        return SessionStart(find_operation("ask"), request, councils, before)

    status = run_session(output, partial(open_record, options), prepare)
    for live, request in sessions_to_compare:
        if live.session is not None and not compare_answer(live.session, request, options):
            return Status.INTERRUPTED
    return status


def _question_reader(
    options: Mapping[str, Any],
) -> "Callable[[], tuple[QuestionRequest, tuple[Session, ...]]]":
    """Read question, files and conversation; return a function that makes the request."""
    inputs = (*options["files"], options["parent"], options["conversation"])
    question = read_question(options["question"], inputs)
    files, turns = read_files(options["files"]), read_turns(options)

    def read() -> "tuple[QuestionRequest, tuple[Session, ...]]":
        before = read_earlier(options["parent"], options["config"], options["history"])
        parent = None if before is None else before.id
        fields = {"question": question, "conversation": turns, "files": files, "parent": parent}
        request = take_parameters(QuestionRequest, {**options, **fields})
        return request, () if before is None else (before,)

    return read


@command(
    "plan",
    'plan "Is this contract fair?" -f contract.txt',
    'plan "Which?" --member openai:gpt-5 --member anthropic:claude-opus-4 --json',
    notes="No key is needed.",
)
@council_options
@history_option
@json_option
def plan_command(as_json: bool, **options: Any) -> None:
    """Plan a question."""
    read = _question_reader(options)
    from witan.service.history_access import load_history_config
    from witan.surfaces.cli.stored_sessions import open_history_if_any

    request, before = read()
    with open_history_if_any(load_history_config(options["config"], options["history"])) as history:
        councils = _planned_councils(options, history)
        councils.council(request)
        _print_plan(request, councils, before, as_json=as_json)


plan_option = section(
    "Time and money",
    click.option(
        "--plan", is_flag=True, help="Print the calls and the highest cost; make no call."
    ),
)


def _planned_councils(
    options: Mapping[str, Any], history: "History | None" = None
) -> "LocalCouncils":
    """Make councils for planning, without keys."""
    from witan.service.sessions.councils import LocalCouncils

    return LocalCouncils(
        options["config"],
        dict(options.get("prices", ())),
        history=history,
        say=say,
        for_plan=True,
    )


def _print_plan(
    request: QuestionRequest | RetryRequest | RejudgeRequest | JudgeRequest,
    councils: "LocalCouncils",
    sessions: "Sequence[Session]",
    *,
    as_json: bool,
) -> None:
    """Plan a request, and print the plan."""
    import anyio

    from witan.service.operations.plan import Planner
    from witan.service.sessions.manager import Service
    from witan.service.sessions.spending import LOCAL

    async def plan() -> "PlanSummary":
        async with Service.open(councils, local=True, sessions=sessions) as service:
            return await Planner(service, LOCAL).plan(request)

    print_result(anyio.run(plan), as_json=as_json)


@command(
    "rejudge",
    "rejudge last --member openai:gpt-5 --member anthropic:claude-opus-4",
    "rejudge session.json --rubric coding --mirrored --save again.json",
    "rejudge last --rubric coding --plan",
    notes=f"These seats are the jury; no juror sees its own model's answer. {STATUSES}",
)
@click.argument("session", metavar="ID|FILE")
@parameter_options(RejudgeRequest, exclude=("session",))
@seat_options
@plan_option
@session_options
def rejudge_command(**options: Any) -> int:
    """Judge stored answers again."""
    if options["members"] and options["jury"]:
        raise click.UsageError("--member and --jury name the same here; use one of them")
    request = take_parameters(RejudgeRequest, {**options})

    def seat(councils: "LocalCouncils", _: "Session") -> None:
        councils.council_of_jurors(request)

    return _run_again("rejudge", request, options, seat, ": its answers are not from a council")


@command(
    "judge",
    'judge answer.md --question "Why is the sky blue?" --pass-mark 7',
    "judge new.md old.md --expected new.md",
    "judge - --reference right.txt --json < reply.txt",
    notes="""Each FILE is one text, named after the file; - is standard input. Exit
status: 0 passed or nothing to decide, 1 failed, 5 too close to call; others as for witan
ask.""",
)
@click.argument(
    "texts", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE..."
)
@section(
    "Question",
    click.option(
        "--reference",
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="Reference answer for the jury.",
    ),
    file_option,
)
@parameter_options(JudgeRequest, exclude=("texts", "reference", "files"))
@seat_options
@plan_option
@stack_options(recording_options, output_options)
def judge_command(texts: tuple[str, ...], **options: Any) -> int:
    """Judge texts, with live output."""
    output = SessionOutput.of(options)
    request = _take_texts(texts, options)
    if options["plan"]:
        councils = _planned_councils(options)
        councils.council_of_jurors(request)
        _print_plan(request, councils, (), as_json=output.as_json)
        return 0

    def prepare(live: "LiveSession") -> SessionStart:
        councils = live.councils(options["config"], dict(options["prices"]))
        councils.council_of_jurors(request)
        return SessionStart(find_operation("judge"), request, councils)

    return run_session(output, partial(open_record, options), prepare)


def _take_texts(paths: tuple[str, ...], options: Mapping[str, Any]) -> JudgeRequest:
    reference = options["reference"]
    inputs = (*paths, *options["files"], *(() if reference is None else (reference,)))
    if inputs.count("-") > 1:
        raise click.UsageError("standard input, -, can be read only once")
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise click.UsageError(f"{twice} is given twice; the texts need different names")
    texts = read_files(paths, "FILE")
    parameters: dict[str, Any] = {"texts": texts, "files": read_files(options["files"])}
    if reference is not None:
        [parameters["reference"]] = read_files((reference,), "--reference").values()
    if options["expected"] == "-" and STANDARD_INPUT in texts:
        parameters["expected"] = STANDARD_INPUT
    return take_parameters(JudgeRequest, {**options, **parameters})


trust_options = section(
    "Session",
    config_option,
    click.option(
        "--trust",
        is_flag=True,
        help="Trust the record: run its programs and use its keys and addresses.",
    ),
)


@command(
    "retry",
    "retry last",
    "retry session.json --seat ada --save again.json",
    "retry last --plan",
    notes=STATUSES,
)
@click.argument("session", metavar="ID|FILE")
@parameter_options(RetryRequest, exclude=("session",))
@trust_options
@plan_option
@session_options
def retry_command(**options: Any) -> int:
    """Ask failed seats again."""
    request = take_parameters(RetryRequest, {**options})

    def seat(councils: "LocalCouncils", parent: "Session") -> None:
        if not options["plan"]:
            councils.council_of(
                parent, max_cost_usd=request.max_cost_usd, max_calls=request.max_calls
            )

    return _run_again("retry", request, options, seat, ": it cannot be retried")


def _run_again(
    name: str,
    request: RejudgeRequest | RetryRequest,
    options: dict[str, Any],
    seat: "Callable[[LocalCouncils, Session], None]",
    lacks: str,
) -> int:
    """Run, or plan, the operation with that name on a stored session.

    `lacks` is what a session without a record is missing, for the error.
    """
    output = SessionOutput.of(options)
    config, history = options["config"], options["history"]

    from witan.surfaces.cli.stored_sessions import council_session, is_own_session

    if options["plan"]:
        if output.events or output.save is not None:
            option = "--events" if output.events else "--save"
            raise click.UsageError(f"{option} cannot be combined with --plan")
        parent = council_session(request.session, config, history, lacks)
        councils = _planned_councils(options)
        seat(councils, parent)
        request_for_parent = replace(request, session=parent.id)
        _print_plan(request_for_parent, councils, [parent], as_json=output.as_json)
        return 0

    def prepare(live: "LiveSession") -> SessionStart:
        parent = council_session(request.session, config, history, lacks)
        if not (options.get("trust", True) or is_own_session(parent, config, history)):
            refuse_untrusted(parent.opening.callable_seats)
        councils = live.councils(config, dict(options.get("prices", ())))
        seat(councils, parent)
        request_for_parent = replace(request, session=parent.id)
        return SessionStart(find_operation(name), request_for_parent, councils, (parent,))

    return run_session(output, partial(open_record, options), prepare)


def refuse_untrusted(seats: "Iterable[Seat]") -> None:
    """Refuse a record that would run programs or send keys."""
    from witan.models.seats import describe_risk

    for seat in seats:
        if (deed := describe_risk(seat)) is not None:
            raise click.UsageError(f"the record would {deed}; allow it with --trust")


@command(
    "resume",
    "resume last",
    "resume session.json",
    notes=f"""An ID is the name of a session in the history, or a unique prefix of it; `last` is
the latest. A FILE is updated in place unless --save names another. If the history has more
events of its session, the session resumes from there; if it has ended there, or the two differ,
no model is called. A session that was not interrupted is only shown. {STATUSES}""",
)
@click.argument("session", metavar="ID|FILE")
@trust_options
@parameter_options(ResumeRequest, exclude=("session",))
@session_options
def resume_command(**options: Any) -> int:
    """Resume a session, with live output."""
    from witan.surfaces.cli.stored_sessions import is_file

    request, config = take_parameters(ResumeRequest, {**options}), options["config"]
    is_file_name = is_file(request.session, config, options["history"])
    file = Path(request.session) if is_file_name else None
    if request.session == "-":
        raise click.UsageError("resume cannot read a session from standard input; give a FILE")
    if file is None and options["no_history"]:
        raise click.UsageError(
            "resuming a stored session needs the history; without it, give a FILE"
        )
    output = SessionOutput.of(options, save=file)

    def open_place(say: Say) -> "RecordingPlace | None":
        place = open_record(options, say)
        if place is None and file is None:
            raise click.UsageError("history.enabled is false; name the history with --history")
        return place

    def prepare(live: "LiveSession") -> "SessionStart | Session":
        record, trusted = _find_session(request, file, live, options)
        if record.status != "interrupted":
            return record
        if not (options["trust"] or trusted):
            refuse_untrusted(record.opening.callable_seats)
        councils = live.councils(config)
        councils.council_of(record, max_cost_usd=request.max_cost_usd, max_calls=request.max_calls)
        request_for_record = replace(request, session=record.id)
        return SessionStart(find_operation("resume"), request_for_record, councils, (record,), file)

    with nullcontext() if file is None or sys.platform == "win32" else lock_session(file):
        status = run_session(output, open_place, prepare)
        _clear_away(file, config, options)
    return status


@contextmanager
def lock_session(file: Path) -> Iterator[None]:
    """Refuse a file that another process is resuming.

    The lock is a separate file, because the session's own is replaced when events are recorded.
    """
    target = file.resolve()
    beside = target.with_name(f".{target.name}.lock")
    with ExitStack() as stack:
        with suppress(OSError):  # nothing can be recorded in a read-only folder
            stream = stack.enter_context(beside.open("w"))
            # A process that has just ended may have deleted the file, and another created it anew.
            if not lock(stream) or not _is_at(beside, stream):
                problem = "is being resumed by another process; wait until it has ended"
                raise SessionFileError(str(file), problem)
            stack.callback(beside.unlink, missing_ok=True)
        yield


def _is_at(path: Path, stream: IO[str]) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    return False


def _clear_away(file: Path | None, config: Path | None, options: Mapping[str, Any]) -> None:
    """Delete a rescue file already imported in full."""
    from witan.files.session_files import read_session
    from witan.service.history_access import is_rescued, load_history_config
    from witan.surfaces.cli.stored_sessions import open_history

    if file is None or options["no_history"] or not is_rescued(file):
        return
    # Keep the file if the two cannot be compared.
    with suppress(WitanError, OSError):
        record = read_session(file)
        with open_history(load_history_config(config, options["history"]), reading=True) as history:
            stored = history.session(record.id)
        if stored == record and stored.status != "interrupted":
            file.unlink()


def _find_session(
    request: ResumeRequest, file: Path | None, live: "LiveSession", options: Mapping[str, Any]
) -> "tuple[Session, bool]":
    """Find a session; check that the user's configuration seated it.

    If the history has more events than a file, it is resumed from the history.
    """
    from witan.surfaces.cli.stored_sessions import whole_name

    place, record = live.place, None
    if file is not None:
        from witan.files.session_files import read_session

        if place is not None and not file.exists():
            _suggest_interrupted(file, place)
        record = read_session(file)
        if (
            place is None
            or record.status != "interrupted"
            or not place.history.has_record(record.id)
        ):
            return record, False
        name = record.id
        _check_file(record, file, place, options)
    else:
        assert place is not None  # noqa: S101 - refused before
        name = whole_name(place.history, request.session, or_file=True)
    own = place.is_own and not place.history.summary(name).imported
    # Report another process that has the session before seating members.
    stored = place.history.claim(name, force=request.take_over)
    if record is None:
        return stored, own
    n_more = len(stored.events) - len(record.events)
    if n_more < 0:
        return record, own  # its seats are those in the history
    if n_more:
        more = count_noun(n_more, "more event")
        live.say(f"the history has {more} of this session than {file}; resuming it from there")
    return stored, own


def _suggest_interrupted(file: Path, place: "RecordingPlace") -> None:
    """Suggest the latest interrupted session instead of a missing file."""
    for latest in place.history.find(status="interrupted", limit=1):
        resume = f"witan resume {shlex.quote(latest.session)}{place.option}"
        problem = "does not exist; the history has an interrupted session"
        raise SessionFileError(str(file), f"{problem}: try {resume}")


def _check_file(
    record: "Session", file: Path, place: "RecordingPlace", options: Mapping[str, Any]
) -> None:
    """Refuse a file whose session has ended or differs in the history."""
    from witan.service.session_recording import first_difference

    stored, name = place.history.session(record.id), shlex.quote(record.id)
    seq, verb = first_difference(record, stored), "resume"
    if stored.status != "interrupted":
        verb = "show"
        problem = f"has ended since {file} was written"
    elif seq is not None:
        if not options["trust"]:  # its seats may differ from those in the history
            refuse_untrusted(record.opening.callable_seats)
        problem = f"and {file} differ from event {seq} on; two runs are never merged"
    else:
        return
    trust = " --trust" if options["trust"] else ""
    remedy = (
        f"{verb} what the history has: witan {verb} {name}{place.option}; or resume the file alone:"
        f" witan resume {shlex.quote(str(file))} --no-history{trust}"
    )
    location = place.history.database.location
    raise HistoryConflict(location, f"the session {record.id} {problem}", remedy)


@command("demo", "demo", "demo --degraded", "witan demo --save demo.json && witan show demo.json")
@click.option("--fast", is_flag=True, help="Skip the pauses of the demonstration.")
@click.option(
    "--degraded",
    is_flag=True,
    help="Add a reviewer that never casts a ballot, to show a degraded session.",
)
@output_options
@recording_options
def demo_command(fast: bool, degraded: bool, **options: Any) -> int:
    """Watch a council of scripts deliberate; no key is needed.

    Everything else is real: the sheets, the ballots, the repair of an unreadable ballot, and the
    counting. No model is called, and every line says so. With --degraded one ballot never arrives,
    and the session says what is missing. The history stores the session, marked as simulated.
    """
    output = SessionOutput.of(options, mark="simulated | ")

    def prepare(live: "LiveSession") -> SessionStart:
        from witan.models.scripted import demonstration

        shown = demonstration(fast=fast, degraded=degraded)
        request = QuestionRequest(question=shown.question, seed=shown.seed)
        return SessionStart(find_operation("ask"), request, live.councils(None, demo=shown))

    return run_session(output, partial(open_record, options), prepare)
