"""Count ballots: ``witan tally``, ``compare``, ``explain`` and ``recount``."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from witan.service.ballots import SECTION, BallotParameters
from witan.service.catalogue import Operation
from witan.service.operations.tally import TallyParameters, count_sessions, tally
from witan.service.settings import COUNTING
from witan.service.text import Page, clean, counted
from witan.surfaces.cli.ballot_files import Body
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.generated import (
    named_options,
    parameter_options,
    render_report,
    take_parameters,
    value_command,
    with_options,
)
from witan.surfaces.cli.options import (
    Decorator,
    SectionedCommand,
    chart_option,
    config_option,
    history_option,
    json_option,
    limit_option,
    section,
    stacked,
    strict_option,
)
from witan.surfaces.cli.stored_sessions import open_named_sessions
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.outcome import Outcome
    from witan.errors import UnsuitableBallots
    from witan.service.operations.compare import CompareParameters
    from witan.service.operations.explain import ExplainParameters


P = TypeVar("P", bound=BallotParameters)

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
        help="Read reviewers' weights from a JSON object.",
    ),
)


def ballot_command(
    operation: Operation[P, Any],
    count: Callable[[P, Body, Mapping[str, Any]], int],
    *,
    options: Sequence[Decorator[Any]],
    examples: str,
) -> click.Command:
    """Make the command of an operation that counts ballots: of files, and of stored sessions.

    Parameters
    ----------
    count
        Counts and prints; returns the exit status.
    options
        Options of this command alone, which `count` reads.
    """

    def run(**given: Any) -> int:
        body = Body.of({**given, "files": given["ballots"]})
        with named_options(operation.parameters):
            parameters = take_settings(operation.parameters, {**given, "ballots": body})
            return count(parameters, body, given)

    decorated = stacked(
        click.argument(
            "ballots",
            nargs=-1,
            required=True,
            metavar="FILE|ID...",
            type=click.Path(allow_dash=True),
        ),
        parameter_options(operation.parameters, without=["ballots"]),
        section(SECTION, strict_option),
        weights_option,
        config_option,
        history_option,
        json_option,
        *options,
    )(run)
    return click.command(
        operation.name,
        cls=SectionedCommand,
        short_help=operation.summary,
        help=f"{with_options(operation.description, operation.parameters)}\n\n{NOTES}",
        epilog=examples,
    )(decorated)


def take_settings(declared: type[Any], options: dict[str, Any]) -> Any:
    """Make parameters of which some weights may stand in a file."""
    if path := options.pop("weights_file"):
        options["weights"] = {**_weights_in(path), **(options["weights"] or {})}
    return take_parameters(declared, options)


def _weights_in(path: str) -> dict[str, float]:
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(
            f"{path} is no JSON file: {error}", param_hint="--weights"
        ) from None
    if not isinstance(read, dict) or not all(
        isinstance(weight, int | float) and not isinstance(weight, bool) for weight in read.values()
    ):
        raise click.BadParameter(
            f'{path} must hold one object such as {{"reviewer": 2}}', param_hint="--weights"
        )
    return {name: float(weight) for name, weight in read.items()}


TALLY_EXAMPLES = """\b
Examples:
  witan tally ballots.jsonl
  witan tally votes.csv --column reviewer=judge --rule schulze
  cat ballots.jsonl | witan tally - --json
  witan tally last --rule schulze
"""


PROBLEMS_SHOWN = 20
"""Sessions that a rule cannot count beyond this many are only counted."""


def _tally(parameters: TallyParameters, body: Body, options: Mapping[str, Any]) -> Status:
    count = _Count(body, parameters, options)
    if options["as_json"]:
        from witan.service.json_output import sessions_json

        problems: dict[str, Sequence[object]] = {
            "not_counted": count.not_counted,
            "not_read": body.not_read,
            "without_effect": parameters.without_effect([parameters.rule]),
        }
        for line in sessions_json(count, problems):
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
        outcomes = count_sessions(self.given, self._note)
        self._check_charts()
        for outcome in outcomes:
            self.first = self.first or outcome
            self.n_shown += 1
            self.n_counted += bool(outcome.leaders)
            self.n_tied += outcome.clear_leader is None
            yield outcome
        self._close()

    def draw(self) -> None:
        """Write the charts of the options."""
        for option in ("plot", "matchups"):
            if self.options[option] and self.first is not None:
                from witan.surfaces.charts import matchup_chart, standings_chart
                from witan.surfaces.charts.drawing import save_chart

                draw = standings_chart if option == "plot" else matchup_chart
                save_chart(draw(self.first), self.options[option])

    def status(self) -> Status:
        """Return the exit status for all sessions together."""
        if not self.n_shown:
            return Status.MISUSED
        if not self.n_counted:
            return Status.NO_QUORUM
        if self.n_tied and self.options["require_winner"]:
            return Status.TIED
        return Status.ANSWERED

    def _note(self, problem: "UnsuitableBallots") -> None:
        self.not_counted.append({"session": problem.session, "problem": str(problem)})
        if len(self.not_counted) <= PROBLEMS_SHOWN:
            echo(clean(str(problem)), err=True)

    def _check_charts(self) -> None:
        """Refuse to draw several sessions as one, before anything is printed."""
        n_sessions = len(self.given.sessions or self.body.sessions)
        if n_sessions > 1 and (self.options["plot"] or self.options["matchups"]):
            raise click.UsageError(
                f"A chart shows one session and there are {n_sessions:,}: choose with --session."
            )

    def _close(self) -> None:
        """Report options without effect, and sessions that could not be counted."""
        for sentence in self.given.without_effect([self.given.rule]):
            echo(sentence, err=True)
        lent = self.first.prior if self.first else None
        if self.given.prior == "learn" and self.first and (not lent or lent.source == "public"):
            echo("no prior was learned: that takes fifty sessions at least", err=True)
        if self.not_counted:
            echo(
                f"{counted(len(self.not_counted), 'session')} could not be counted; "
                f"{self.n_shown:,} counted",
                err=True,
            )


def _show(count: _Count, limit: int) -> None:
    """Print each in full, or one line each if there are more than `limit`."""
    from witan.surfaces.report.tally import Digest, digests_report, outcomes_report
    from witan.surfaces.report.text import report_text

    page = Page.of(sys.stdout)
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
            "\n".join(report_text(page, outcomes_report(outcomes, simulated=count.body.simulated)))
        )


tally_command = ballot_command(
    tally,
    _tally,
    options=[
        chart_option("--plot", "Draw the standings to an .svg or .png file."),
        chart_option("--matchups", "Draw who beats whom to an .svg or .png file."),
        section(
            "Output",
            click.option(
                "--require-winner",
                is_flag=True,
                help="Exit 5 if a session has no single clear leader.",
            ),
        ),
        limit_option(10, "Show up to this many sessions in full, more of them as one line each."),
    ],
    examples=TALLY_EXAMPLES,
)


COMPARE_EXAMPLES = """\b
Examples:
  witan compare ballots.jsonl
  witan compare last
  witan compare ballots.jsonl --rules borda,schulze,calibrated --session q1
"""


def _compare(parameters: "CompareParameters", _: Body, options: Mapping[str, Any]) -> Status:
    from witan.service.operations.compare import compare

    result = compare.handler(None, parameters)
    if options["plot"]:
        from witan.surfaces.charts import comparison_chart
        from witan.surfaces.charts.drawing import save_chart

        save_chart(comparison_chart(result.comparison), options["plot"])
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json(result))
    else:
        from witan.surfaces.report.comparison import comparison_report
        from witan.surfaces.report.text import report_text

        most = len(parameters.sessions) or options["limit"]
        echo("\n".join(report_text(Page.of(sys.stdout), comparison_report(result, most))))
    if not result.rules:
        return Status.MISUSED
    outcomes = [one for each in result.sessions for one in each.outcomes.values()]
    return Status.ANSWERED if any(one.leaders for one in outcomes) else Status.NO_QUORUM


def compare_command() -> click.Command:
    """Make the command ``witan compare``."""
    from witan.service.operations.compare import compare

    return ballot_command(
        compare,
        _compare,
        options=[
            chart_option("--plot", "Draw the ranks under every rule to an .svg or .png file."),
            limit_option(3, "Show the tables of single sessions if there are no more than this."),
        ],
        examples=COMPARE_EXAMPLES,
    )


EXPLAIN_EXAMPLES = """\b
Examples:
  witan explain last
  witan explain ballots.jsonl --session q1
  witan explain ballots.jsonl --session q1 --rule schulze
"""


def _explain(parameters: "ExplainParameters", _: Body, options: Mapping[str, Any]) -> Status:
    from witan.service.operations.explain import explain

    result = explain.handler(None, parameters)
    if options["as_json"]:
        from witan.service.json_output import to_json

        echo(to_json(result))
    else:
        echo("\n".join(render_report(Page.of(sys.stdout), result)))
    return Status.ANSWERED if result.outcome.leaders else Status.NO_QUORUM


def explain_command() -> click.Command:
    """Make the command ``witan explain``."""
    from witan.service.operations.explain import explain

    return ballot_command(explain, _explain, options=[], examples=EXPLAIN_EXAMPLES)


RECOUNT_EXAMPLES = """\b
Examples:
  witan recount last --rule schulze
  witan recount session.json --without gpt-5
"""


def recount_command() -> click.Command:
    """Make the command ``witan recount``."""
    from witan.service.operations.recount import recount

    return value_command(
        recount,
        open_named_sessions,
        options=[
            click.argument("session", metavar="ID|FILE"),
            weights_option,
            section("History", config_option, history_option),
        ],
        without=["session"],
        take=take_settings,
        status=lambda result: Status.ANSWERED if result.outcome.leaders else Status.NO_QUORUM,
        examples=RECOUNT_EXAMPLES,
        notes="An ID is the name of a session in the history, or a beginning of it that no other "
        "has; `last` is the latest. A FILE exists, ends in .json or has a path.",
    )
