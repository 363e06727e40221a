"""Commands of operations that return a value: their subjects, charts and examples."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from witan.service.ballots import find_ballots
from witan.service.catalogue import Operation, find_operation
from witan.service.history_access import load_history_config
from witan.service.parameters import parameters_of
from witan.service.stored_sessions import SessionStore
from witan.service.text import Page
from witan.surfaces.cli.ballots import NOTES as BALLOT_NOTES
from witan.surfaces.cli.ballots import ballot_options, take_ballots, weights_option
from witan.surfaces.cli.commands import Open, format_options, value_command
from witan.surfaces.cli.options import (
    Decorator,
    Status,
    config_option,
    history_option,
    limit_option,
    section,
    stack_options,
)
from witan.surfaces.cli.stored_sessions import open_named_sessions, open_sessions
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.analytics.sources import Source
    from witan.service.config.configuration import Config
    from witan.service.operations.counting import CompareParameters, RuleComparison
    from witan.service.operations.rules import RubricList
    from witan.service.sessions.councils import CouncilProfile


lake_option = click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Read this folder of Parquet files instead of a history.",
)

engine_option = click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    help="Engine for reading a lake; DuckDB by default.",
)


source_options = stack_options(
    click.argument("files", nargs=-1, metavar="[FILE|ID]...", type=click.Path(allow_dash=True)),
    format_options,
    section("History", history_option, lake_option, engine_option, config_option),
)
"""Options of a source of sessions: a history, files, or a lake and its engine."""


@contextmanager
def open_source(options: Mapping[str, Any]) -> "Iterator[tuple[Source, Config]]":
    """Open the source of `source_options` for the block."""
    lake, engine = options["lake"], options["engine"]
    if lake is not None and options["history"] is not None:
        raise click.UsageError("choose --history or --lake, not both")
    if options["files"] and lake is not None:
        raise click.UsageError("choose files or --lake, not both")
    if not options["files"]:
        for option in ("format", "columns", "scale", "strict"):
            if options[option]:
                name = option.removesuffix("s")
                raise click.UsageError(f"--{name} is for files: name one")
    if engine is not None and lake is None:
        raise click.UsageError("--engine sums a lake: name its folder with --lake")
    from witan.analytics.sources import HistorySource, open_lake
    from witan.surfaces.cli.stored_sessions import open_history

    config = load_history_config(options["config"], options["history"])
    if options["files"]:
        with _of_files(options, config) as source:
            yield source, config
        return
    if lake is not None:
        with open_lake(lake, "duckdb" if engine is None else engine) as source:
            yield source, config
        return
    with open_history(config, reading=True) as history:
        yield HistorySource(history), config


@contextmanager
def _of_files(options: Mapping[str, Any], config: "Config") -> "Iterator[Source]":
    """Open a temporary history of files and sessions for the block."""
    from tempfile import TemporaryDirectory

    from witan.analytics.sources import HistorySource
    from witan.history import History
    from witan.surfaces.cli.ballots import Body

    body = Body(options)
    with (
        TemporaryDirectory(prefix="witan-") as folder,
        History.open(Path(folder) / "history.sqlite") as history,
    ):
        history.aliases = config.aliases
        history.add(body.read_imports(), body.name, "files")
        yield HistorySource(history, body.name)


@dataclass(frozen=True, slots=True)
class _Reports:
    """The service of a command that aggregates sessions."""

    history_source: "Source"
    config: "Config"

    @contextmanager
    def source(self) -> "Iterator[Source]":
        yield self.history_source

    @property
    def families(self) -> "Mapping[str, Collection[str]]":
        return self.config.families

    def aliases(self, _: "Source") -> Mapping[str, str]:
        """Return the configured aliases: the user of a command line may see every name."""
        return self.config.aliases

    def note(self, text: str) -> None:
        echo(text, err=True)


@contextmanager
def _open_reports(options: Mapping[str, Any]) -> Iterator[_Reports]:
    with open_source(options) as (source, config):
        yield _Reports(source, config)


@dataclass(frozen=True, slots=True)
class _LocalProfiles:
    """The councils of a configuration, for its owner."""

    profiles: "Mapping[str, CouncilProfile]"


@contextmanager
def _open_profiles(options: Mapping[str, Any]) -> Iterator[_LocalProfiles]:
    import anyio

    from witan.service.sessions.councils import Councils

    councils = Councils(load_history_config(options["config"], None), None)

    async def seat() -> None:
        async with AsyncExitStack() as stack:
            await councils.open(stack)

    anyio.run(seat)
    profiles = {
        name: each if each.failure is None else replace(each, problem=str(each.failure))
        for name, each in councils.profiles.items()
    }
    yield _LocalProfiles(profiles)


SUBJECTS: Mapping[str, tuple[Sequence[Decorator[Any]], Open]] = MappingProxyType(
    {
        "object": ((), lambda _: nullcontext()),
        "ReportService": ([source_options], _open_reports),
        "SessionStore": ([config_option, history_option], open_sessions),
        "ProfileService": ([config_option], _open_profiles),
    }
)
"""Options for the subject of an operation and the function that opens it, by its type."""

session_options = stack_options(
    click.argument("session", metavar="ID|FILE"),
    section("History", config_option, history_option),
)
"""Options of one session, in the history or in a file."""


def _subject(operation: Operation[Any, Any]) -> tuple[Sequence[Decorator[Any]], Open]:
    """Return the options for an operation's subject, and the function that opens it.

    They depend on its parameters: ballots are files and sessions, a session may be a file.
    """
    options, open_subject = SUBJECTS[operation.needs.__name__]
    if (ballots := find_ballots(operation.parameters)) is not None:
        options = [ballot_options(required=ballots.required)]
    elif operation.path_parameters:
        options = [session_options]
    else:
        return options, open_subject
    return options, open_named_sessions if operation.needs is SessionStore else open_subject


def _toml(rubrics: "RubricList") -> str:
    if len(rubrics.rubrics) != 1:
        raise click.UsageError("--toml prints one rubric: name it.")
    from witan.core.rubric import find_rubric
    from witan.files.rubric_toml import rubric_to_toml

    return rubric_to_toml(find_rubric(rubrics.rubrics[0].name)).removesuffix("\n")


def _leaderboard() -> Mapping[str, Any]:
    from witan.surfaces.report.leaderboard import cost_chart, leaderboard_chart, strength_chart

    return {
        "status": lambda board: Status.FAILED if board.n_damaged else Status.ANSWERED,
        "charts": {
            "--plot": ("Draw the leaderboard to an .svg, .png or .html file.", leaderboard_chart),
            "--matchups": (
                "Chart the probability that one model is stronger than another.",
                strength_chart,
            ),
            "--costs": ("Chart the score against the cost per answer.", cost_chart),
        },
    }


def _audit() -> Mapping[str, Any]:
    from witan.surfaces.report.audit import audit_chart

    words = "Draw the reviewers to an .svg, .png or .html file."
    return {"charts": {"--plot": (words, audit_chart)}}


def _calibrate() -> Mapping[str, Any]:
    from witan.surfaces.report.calibration import calibration_chart

    words = "Plot stated against observed probabilities, to an .svg, .png or .html file."
    return {"charts": {"--plot": (words, calibration_chart)}}


def _compare() -> Mapping[str, Any]:
    from witan.surfaces.report.comparison import comparison_chart

    words = "Draw the ranks under every rule to an .svg, .png or .html file."
    limit = "Show the tables of single sessions if there are no more than this."
    return {
        "options": [limit_option(3, limit)],
        "status": _comparison_status,
        "charts": {"--plot": (words, lambda result: comparison_chart(result.comparison))},
        "write": _write_comparison,
    }


def _write_comparison(
    page: Page,
    result: "RuleComparison",
    parameters: "CompareParameters",
    options: Mapping[str, Any],
) -> Iterator[str]:
    from witan.surfaces.report.comparison import comparison_report
    from witan.surfaces.report.text import report_text

    most = len(parameters.sessions) or options["limit"]
    return report_text(page, comparison_report(result, most))


def _comparison_status(result: "RuleComparison") -> Status:
    if not result.rules:
        return Status.MISUSED
    outcomes = (one for each in result.sessions for one in each.outcomes.values())
    return Status.ANSWERED if any(one.leaders for one in outcomes) else Status.NO_QUORUM


def _status(result: Any) -> Status:
    """Return the status "no quorum" if a result has an outcome without a leader."""
    outcome = getattr(result, "outcome", None)
    return Status.ANSWERED if outcome is None or outcome.leaders else Status.NO_QUORUM


SPECIAL: Mapping[str, Callable[[], Mapping[str, Any]]] = MappingProxyType(
    {
        "leaderboard": _leaderboard,
        "audit": _audit,
        "calibrate": _calibrate,
        "compare": _compare,
        "rubrics": lambda: {"formats": {"--toml": ("Print NAME as TOML, as a template.", _toml)}},
    }
)
"""Extra arguments of `value_command` by operation."""

EXAMPLES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "leaderboard": [
            "leaderboard --since 30d --category coding",
            "leaderboard votes.csv --min-sessions 3",
            "leaderboard --order-by rating --plot leaderboard.svg",
            "leaderboard --lake history.lake --engine duckdb --json",
        ],
        "audit": [
            "audit --since 90d",
            "audit --reviewer openai:gpt-5",
            "audit --criterion clarity",
            "audit votes.csv --column reviewer=who",
            "audit --lake history.lake --json",
        ],
        "sessions": [
            "sessions",
            "sessions hash map --since 30d",
            "sessions --status interrupted --json",
        ],
        "votes": ["votes", "votes --as ines --since 90d", "votes --as ines --json"],
        "profiles": ["profiles", "profiles --config council.toml --json"],
        "rules": ["rules", "rules schulze"],
        "rubrics": ["rubrics", "rubrics coding", "rubrics general --toml > mine.toml"],
        "compare": [
            "compare ballots.jsonl",
            "compare last",
            "compare ballots.jsonl --rules borda,schulze,calibrated --session q1",
        ],
        "calibrate": [
            "calibrate",
            "calibrate ballots.jsonl --reviewers 3,5",
            "calibrate votes.csv --against people --plot calibration.svg",
        ],
        "estimate": ["estimate ballots.jsonl", "estimate grades.csv people.csv --pass-mark 7"],
        "explain": [
            "explain last",
            "explain ballots.jsonl --session q1",
            "explain ballots.jsonl --session q1 --rule schulze",
        ],
        "recount": ["recount last --rule schulze", "recount session.json --without gpt-5"],
    }
)

SOURCE_NOTES = """With FILE..., count the sessions of these files instead of the history; an ID
is a session of the history. Exit status: 0 answered, 2 misuse, 3 no session to count, 7 output not
written.
"""

NOTES: Mapping[str, str] = MappingProxyType(
    {
        "leaderboard": SOURCE_NOTES.replace("answered", "answered, 1 a session is damaged"),
        "audit": SOURCE_NOTES,
        "calibrate": "Without FILE..., the newest 2,000 sessions of the history count.",
        "recount": "An ID is the name of a session in the history, or a unique prefix of it; "
        "`last` is the latest. A FILE is a name that exists, ends in .json or has a path.",
        "sessions": "The first column is a name that other commands take.",
        "votes": "Without --as, the votes are those under your login name. Exit status: 0 "
        "answered, 2 misuse, 3 no vote.",
        "profiles": "No model is called. A missing key makes a profile unavailable; see `witan "
        "doctor`.",
    }
)


def operation_command(name: str) -> click.Command:
    """Make the command of an operation that returns a value."""
    operation = find_operation(name)
    own_options, open_subject = _subject(operation)
    has_ballots = find_ballots(operation.parameters) is not None
    names = [each.name for each in parameters_of(operation.parameters)]
    special = {**SPECIAL.get(name, dict)()}
    weights = [weights_option] if "weights" in names else []
    notes = [NOTES.get(name, ""), BALLOT_NOTES if has_ballots else ""]
    return value_command(
        operation,
        open_subject,
        options=[*own_options, *weights, *special.pop("options", ())],
        exclude=["ballots", *operation.path_parameters],
        take=take_ballots,
        examples=EXAMPLES.get(name, [f"{name} ballots.jsonl" if has_ballots else name]),
        notes=" ".join(filter(None, notes)),
        **{"status": _status, **special},
    )
