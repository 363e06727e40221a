"""Count ballots of files and stored sessions: ``witan tally``, ``compare`` and others."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witan.errors import NothingToCount, UnknownName
from witan.service.ballots import SECTION, Unread
from witan.service.operations.counting import TallyParameters, count_sessions
from witan.service.settings import COUNTING
from witan.service.text import Page, clean, count_noun, list_text
from witan.surfaces.cli.commands import (
    command,
    named_options,
    parameter_options,
    take_parameters,
    value_command,
    word_problem,
)
from witan.surfaces.cli.options import (
    PROBLEMS_SHOWN,
    Status,
    chart_option,
    config_option,
    history_option,
    json_option,
    limit_option,
    section,
    stack_options,
    strict_option,
)
from witan.surfaces.cli.stored_sessions import open_named_sessions
from witan.surfaces.terminal import console, echo, is_terminal, measure_page, say, style_line

if TYPE_CHECKING:
    from witan.core.ballot import Ballot, BallotTable
    from witan.core.outcome import Outcome
    from witan.core.rubric import Rubric
    from witan.core.scale import Scale
    from witan.core.settings import Settings
    from witan.core.tally import OutcomeColumn
    from witan.deliberation.record import SessionImport
    from witan.errors import UnsuitableBallots
    from witan.files.ballots import LineProblem
    from witan.service.operations.counting import (
        CompareParameters,
        OutcomeExplanation,
        RuleComparison,
    )
    from witan.service.operations.sessions import RecountResult


PATIENCE_SECONDS = 1.0
"""Reading that is over within this time shows no progress."""

BETWEEN_LOOKS = 512
"""Ballots read between two looks at the clock."""


class Body:
    """Ballots from files and stored sessions, readable once.

    A name is that of a file where one is called so, else of a session. It keeps count of what it
    saw.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        if list(options["files"]).count("-") > 1:
            raise click.UsageError("Standard input, -, can be read only once.")
        if options["config"] is not None:
            from witan.service.history_access import load_history_config

            load_history_config(options["config"])  # a broken file is said though nothing needs it
        self.files: Sequence[str] = options["files"]
        self.format: str | None = options["format"]
        self.columns: Mapping[str, str] | None = options["columns"] or None
        self.scale: Scale | None = options["scale"]
        self.strict, self.history, self.config = (
            options[name] for name in ("strict", "history", "config")
        )
        self.rubric: Rubric | None = None
        self.scales: dict[Scale, None] = {}
        self.n_ballots = 0
        self.problems: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.sessions: dict[str, None] = {}
        self.reviewers: dict[str, None] = {}
        self.simulated: set[str] = set()
        self.unread_lines: list[Unread] = []

    def read(self, parameters: object, settings: "Settings") -> Sequence["Ballot"]:  # noqa: ARG002
        """Read the ballots; report settings without effect."""
        from witan.core.ballot import Ballot

        self.rubric = settings.counting.rubric
        parts = list(self._read_files())
        self.match(settings)
        if len(parts) == 1 and not isinstance(parts[0], Ballot):
            return parts[0]
        ballots: Iterator[Ballot] = chain.from_iterable(
            (part,) if isinstance(part, Ballot) else part for part in parts
        )
        if len(self.files) == 1:
            return list(ballots)
        from witan.files.evaluations import merge_graded

        # Logs of evaluations come a file per candidate: what one reviewer says is one ballot.
        merged = merge_graded(ballots)
        left = {ballot.scale for ballot in merged}
        for scale in (each for each in self.scales if each not in left):
            say(f"note: {scale.sentence_with('--scale ')}")
        return merged

    def check_wanted(self) -> None:
        """Go on; who waits no more interrupts the process."""

    def _read_files(self) -> Iterator["Ballot | BallotTable"]:
        from witan.core.ballot import Ballot, is_simulated

        with ExitStack() as stack:
            watch = _Watch(stack)
            for path in self.files:
                watch.file = path
                for part in self._read_file(path):
                    if isinstance(part, Ballot):
                        self.n_ballots += 1
                        self.sessions[part.session] = None
                        self.reviewers[part.reviewer] = None
                        if part.notes is not None and is_simulated(part):
                            self.simulated.add(part.session)
                        if self.n_ballots % BETWEEN_LOOKS == 0:
                            watch.look(self.n_ballots)
                    else:
                        self.n_ballots += len(part)
                        self.sessions |= dict.fromkeys(part.sessions)
                        self.reviewers |= dict.fromkeys(part.reviewers)
                    self._note_scale(part)
                    yield part
        self._close()

    def read_imports(self) -> Iterator["SessionImport"]:
        """Return the sessions in place of their ballots, each one whole."""
        from witan.files.evaluations import join_ballots
        from witan.files.imports import collect_sessions

        whole = collect_sessions(self._gather_imports())
        return whole if len(self.files) == 1 else map(join_ballots, whole)

    def _gather_imports(self) -> Iterator["SessionImport"]:
        with ExitStack() as stack:
            watch = _Watch(stack)
            for path in self.files:
                watch.file = path
                for one in self._sessions(path):
                    self.n_ballots += len(one.ballots)
                    for ballot in one.ballots:
                        self._note_scale(ballot)
                    watch.look(self.n_ballots)
                    yield one
        self._close()
        for scale in self.scales:
            say(f"note: {scale.sentence_with('--scale ')}")

    def _sessions(self, path: str) -> Iterable["SessionImport"]:
        if not self._is_file(path):
            return [self._read_stored(path)]
        from witan.files.imports import read_imports

        return read_imports(
            path,
            format=self.format,
            columns=self.columns,
            scale=self.scale,
            on_problem=self._note,
            on_note=say,
        )

    def _note_scale(self, ballot: "Ballot | BallotTable") -> None:
        if ballot.scale is not None and not ballot.scale.is_plain:
            self.scales[ballot.scale] = None

    @property
    def name(self) -> str:
        """Name the files."""
        return list_text(["standard input" if path == "-" else path for path in self.files])

    def match(self, settings: "Settings") -> None:
        """Report weights and answers with unknown, perhaps misspelt, names."""
        for kind, names, known in (
            ("reviewer", settings.weights, self.reviewers),
            ("session", settings.gates, self.sessions),
        ):
            option = "--weight" if kind == "reviewer" else "--answers"
            for name in names:
                if name not in known:
                    message = clean(str(UnknownName(kind, name, known)))
                    echo(f"{option} has no effect: {message}", err=True)

    def _read_file(self, path: str) -> Iterable["Ballot | BallotTable"]:
        if not self._is_file(path):
            from witan.core.ballot import mark_simulated
            from witan.core.scale_recognition import rescale

            one = self._read_stored(path)
            ballots = [replace(b, question=b.question or one.question or None) for b in one.ballots]
            cast = ballots if self.scale is None else rescale(ballots, self.scale)
            return map(mark_simulated, cast) if one.simulated else cast
        from witan.files.ballots import ProblemReport, read_parts

        return read_parts(
            path,
            (self.format, self.columns or {}),
            partial(ProblemReport, on_problem=self._note, reports_doubts=True, on_note=say),
            (self.scale, None if self.rubric is None else self.rubric.scale),
        )

    def _is_file(self, name: str) -> bool:
        # The configuration is slow to load: only those who name a session wait for it.
        if name == "-" or Path(name).exists():
            return True
        from witan.surfaces.cli.stored_sessions import is_file

        return is_file(name, self.config, self.history)

    def _read_stored(self, name: str) -> "SessionImport":
        """Read a session of the history; say that people's ballots count here."""
        from witan.service.session_records import votes_beside
        from witan.surfaces.cli.stored_sessions import stored_session

        one = stored_session(name, self.config, self.history)
        if votes := votes_beside(one.ballots):
            votes_by_people = count_noun(len(votes), "ballot") + " by people"
            echo(
                f"{clean(one.session)}: {votes_by_people} counted as well; "
                "its own outcome is that of the models",
                err=True,
            )
        return one

    def _note(self, problem: "LineProblem") -> None:
        if (self.problems + self.odd).total() < PROBLEMS_SHOWN:
            say(word_problem(problem))
        if not problem.is_read:
            self.unread_lines.append(Unread(problem.line, word_problem(problem)))
        (self.odd if problem.is_read else self.problems)[problem.path] += 1

    def _close(self) -> None:
        """Report unreadable lines; stop without ballots, or under --strict."""
        unread, odd = (
            list_text([f"{count_noun(n, 'line')} of {clean(path)}" for path, n in problems.items()])
            for problems in (self.problems, self.odd)
        )
        if unread and self.strict:
            echo(f"{unread} could not be read; nothing is counted under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if unread:
            echo(
                f"{unread} could not be read; {count_noun(self.n_ballots, 'ballot')} counted",
                err=True,
            )
        if odd and self.strict:
            names = list_text([clean(path) for path in self.odd])
            echo(f"{names}: nothing is counted under --strict", err=True)
            raise click.exceptions.Exit(Status.FAILED)
        if (self.problems + self.odd).total() > PROBLEMS_SHOWN and odd:
            echo(f"{odd} came with values that were ignored", err=True)
        if not self.n_ballots:
            names = self.name
            raise NothingToCount(f"there is no ballot to count in {names}")


class _Watch:
    """Shows that a long read is under way, on a terminal only."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.file = ""
        self.wanted = is_terminal(err=True)
        self.start = time.monotonic()
        self.status: Any = None

    def look(self, n_ballots: int) -> None:
        """Update the line, or open it once patience is over."""
        if not self.wanted or time.monotonic() - self.start < PATIENCE_SECONDS:
            return
        if self.status is None:
            self.status = self.stack.enter_context(console().status("reading"))
        self.status.update(style_line(f"reading {self.file}: {count_noun(n_ballots, 'ballot')}"))


NOTES = """Several files are one body of ballots; - is standard input. All that `witan import` reads
is recognised by its content, packed or not. An ID is a session of the history, as `witan show`
takes it; `last` is the latest.
"""

weights_option = section(
    COUNTING,
    click.option(
        "--weights",
        "weights_file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE.json",
        help="Read reviewers' weights from a JSON object, or from `witan calibrate --json`.",
    ),
)


ballot_options = stack_options(
    click.argument(
        "ballots", nargs=-1, required=True, metavar="FILE|ID...", type=click.Path(allow_dash=True)
    ),
    section(SECTION, strict_option),
    weights_option,
    config_option,
    history_option,
)
"""Options of ballots from files and of stored sessions."""


own_ballot_options = stack_options(
    click.argument("ballots", nargs=-1, metavar="[FILE|ID]...", type=click.Path(allow_dash=True)),
    section(SECTION, strict_option),
    config_option,
    history_option,
)
"""The same without weights; without a file, those of the history."""


def take_own_ballots(declaration: type[Any], options: dict[str, Any]) -> Any:
    """Make ballot parameters from files and sessions, or the whole history."""
    files = options["ballots"]
    options["ballots"] = Body({**options, "files": files}) if files else None
    return take_parameters(declaration, options)


def take_ballots(declaration: type[Any], options: dict[str, Any]) -> Any:
    """Make parameters whose ballots are files and stored sessions."""
    options["ballots"] = Body({**options, "files": options["ballots"]})
    return take_settings(declaration, options)


def take_settings(declaration: type[Any], options: dict[str, Any]) -> Any:
    """Make parameters of which some weights may stand in a file."""
    if path := options.pop("weights_file"):
        options["weights"] = {**_weights_in(path), **(options["weights"] or {})}
    return take_parameters(declaration, options)


def _weights_in(path: str) -> dict[str, float]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(
            f"{path} is no JSON file: {error}", param_hint="--weights"
        ) from None
    if isinstance(document, dict) and isinstance(document.get("weights"), dict):
        document = document["weights"]
        if not document:
            raise click.BadParameter(
                f"{path} has no weights: calibrate against people who decided 50 pairs or more",
                param_hint="--weights",
            )
    if not isinstance(document, dict) or not all(
        isinstance(weight, int | float) and not isinstance(weight, bool)
        for weight in document.values()
    ):
        raise click.BadParameter(
            f'{path} must hold one object such as {{"reviewer": 2}}', param_hint="--weights"
        )
    return {name: float(weight) for name, weight in document.items()}


@command(
    "tally",
    "tally ballots.jsonl",
    "tally votes.csv --column reviewer=judge --rule schulze",
    "cat ballots.jsonl | witan tally - --json",
    "tally last --rule schulze",
    notes=NOTES,
)
@parameter_options(TallyParameters, exclude=["ballots"])
@ballot_options
@json_option
@chart_option("--plot", "Draw the standings to an .svg, .png or .html file.")
@chart_option("--matchups", "Draw who beats whom to an .svg, .png or .html file.")
@section(
    "Output",
    click.option(
        "--require-winner", is_flag=True, help="Exit 5 if a session has no single clear leader."
    ),
)
@limit_option(10, "Show up to this many sessions in full, more of them as one line each.")
def tally_command(**options: Any) -> int:
    """Count session by session, without holding all results in memory."""
    with named_options(TallyParameters):
        parameters = take_ballots(TallyParameters, options)
        count = _Count(parameters.ballots, parameters, options)
        if options["as_json"]:
            from witan.service.json_output import sessions_json

            problems: dict[str, Sequence[object]] = {
                "not_counted": count.not_counted,
                "not_read": count.body.unread_lines,
                "without_effect": parameters.without_effect([parameters.rule]),
            }
            for line in sessions_json(count.columns(), problems):
                echo(line, nl=False)
        else:
            _show(count, options["limit"])
    count.draw()
    return count.status()


class _Count:
    """Outcomes one after the other, and the totals over them."""

    def __init__(self, body: Body, parameters: TallyParameters, options: Mapping[str, Any]) -> None:
        self.body, self.given, self.options = body, parameters, options
        self.not_counted: list[dict[str, str | None]] = []
        self.n_counted = self.n_tied = self.n_shown = 0
        self.first: Outcome | None = None

    def __iter__(self) -> Iterator["Outcome"]:
        return (batch[column] for batch, column in self.columns())

    def columns(self) -> Iterator["OutcomeColumn"]:
        """Yield each session as a batch and its column there."""
        columns = count_sessions(self.given, self._note)
        self._check_charts()
        for batch, column in columns:
            self.first = self.first or batch[column]
            self.n_shown += 1
            self.n_counted += bool(batch.leaders[column])
            self.n_tied += batch.clear_leaders[column] is None
            yield batch, column
        self._close()

    def draw(self) -> None:
        """Write the charts of the options."""
        for option in ("plot", "matchups"):
            if self.options[option] and self.first is not None:
                from witan.surfaces.report.chart_files import save_chart
                from witan.surfaces.report.standings import matchup_chart, standings_chart

                draw = standings_chart if option == "plot" else matchup_chart
                save_chart(draw(self.first), self.options[option])

    def status(self) -> Status:
        """Return the exit status for all sessions together."""
        if not self.n_shown:
            return Status.MISUSED
        if not self.n_counted:
            return Status.NO_QUORUM
        if self.n_tied and self.options["require_winner"]:
            echo(f"no clear winner in {count_noun(self.n_tied, 'session')}", err=True)
            return Status.TIED
        return Status.ANSWERED

    def _note(self, problem: "UnsuitableBallots") -> None:
        self.not_counted.append({"session": problem.session, "problem": str(problem)})
        if len(self.not_counted) <= PROBLEMS_SHOWN:
            say(str(problem))

    def _check_charts(self) -> None:
        """Refuse to draw several sessions as one, before anything is printed."""
        n_sessions = len(self.given.sessions or self.body.sessions)
        if n_sessions > 1 and (self.options["plot"] or self.options["matchups"]):
            raise click.UsageError(
                f"a chart shows one session and there are {n_sessions:,}; choose one with --session"
            )

    def _close(self) -> None:
        """Report options without effect, and sessions that could not be counted."""
        for sentence in self.given.without_effect([self.given.rule]):
            echo(sentence, err=True)
        lent = self.first.prior if self.first else None
        if self.given.prior == "learn" and self.first and (not lent or lent.source == "public"):
            echo("no prior was learned: at least fifty sessions are needed", err=True)
        if self.not_counted:
            echo(
                f"{count_noun(len(self.not_counted), 'session')} could not be counted; "
                f"{self.n_shown:,} counted",
                err=True,
            )


def _show(count: _Count, limit: int) -> None:
    """Print each session in full, or as lines beyond `limit`."""
    from witan.surfaces.report.tally import Digest, digests_report, outcomes_report
    from witan.surfaces.report.text import report_text

    page = measure_page()
    outcomes: list[Outcome] = []
    digests: list[Digest] = []
    for outcome in count:
        digests.append(Digest.of(outcome))
        if len(outcomes) <= limit:
            outcomes.append(outcome)
    if len(digests) > limit:
        echo("\n".join(report_text(page, digests_report(digests))))
        echo(page.sentence("One session in full: --session NAME. All of them: --json.", "dim"))
    elif outcomes:
        echo(
            "\n".join(
                report_text(
                    page, outcomes_report(outcomes, simulated_sessions=count.body.simulated)
                )
            )
        )


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


def _outcome_status(result: "OutcomeExplanation | RecountResult") -> Status:
    return Status.ANSWERED if result.outcome.leaders else Status.NO_QUORUM


def compare_command() -> click.Command:
    """Make the command ``witan compare``."""
    from witan.service.operations.counting import compare
    from witan.surfaces.report.comparison import comparison_chart

    words = "Draw the ranks under every rule to an .svg, .png or .html file."
    limit = "Show the tables of single sessions if there are no more than this."
    return value_command(
        compare,
        options=[ballot_options, limit_option(3, limit)],
        exclude=["ballots"],
        take=take_ballots,
        status=_comparison_status,
        charts={"--plot": (words, lambda result: comparison_chart(result.comparison))},
        write=_write_comparison,
        examples=[
            "compare ballots.jsonl",
            "compare last",
            "compare ballots.jsonl --rules borda,schulze,calibrated --session q1",
        ],
        notes=NOTES,
    )


def calibrate_command() -> click.Command:
    """Make the command ``witan calibrate``."""
    from witan.service.operations.calibration import calibrate
    from witan.surfaces.report.calibration import calibration_chart

    words = "Chart stated against observed probabilities, to an .svg, .png or .html file."
    return value_command(
        calibrate,
        open_named_sessions,
        options=[own_ballot_options],
        exclude=["ballots"],
        take=take_own_ballots,
        charts={"--plot": (words, calibration_chart)},
        examples=[
            "calibrate",
            "calibrate ballots.jsonl --reviewers 3,5",
            "calibrate votes.csv --against people --plot calibration.svg",
        ],
        notes=f"Without FILE..., the newest 2,000 sessions of the history count. {NOTES}",
    )


def estimate_command() -> click.Command:
    """Make the command ``witan estimate``."""
    from witan.service.operations.calibration import estimate

    return value_command(
        estimate,
        options=[ballot_options],
        exclude=["ballots"],
        take=take_ballots,
        examples=[
            "estimate ballots.jsonl",
            "estimate grades.csv people.csv --pass-mark 7",
        ],
        notes=NOTES,
    )


def explain_command() -> click.Command:
    """Make the command ``witan explain``."""
    from witan.service.operations.counting import explain

    return value_command(
        explain,
        options=[ballot_options],
        exclude=["ballots"],
        take=take_ballots,
        status=_outcome_status,
        examples=[
            "explain last",
            "explain ballots.jsonl --session q1",
            "explain ballots.jsonl --session q1 --rule schulze",
        ],
        notes=NOTES,
    )


def recount_command() -> click.Command:
    """Make the command ``witan recount``."""
    from witan.service.operations.sessions import recount

    return value_command(
        recount,
        open_named_sessions,
        options=[
            click.argument("session", metavar="ID|FILE"),
            weights_option,
            section("History", config_option, history_option),
        ],
        exclude=["session"],
        take=take_settings,
        status=_outcome_status,
        examples=["recount last --rule schulze", "recount session.json --without gpt-5"],
        notes="An ID is the name of a session in the history, or a beginning of it that no other "
        "has; `last` is the latest. A FILE exists, ends in .json or has a path.",
    )
