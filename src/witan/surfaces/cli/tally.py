"""Count ballots of files and stored sessions, session by session: ``witan tally``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from witan.service.operations.counting import TallyParameters, count_sessions
from witan.service.text import count_noun
from witan.surfaces.cli.ballots import NOTES, Body, ballot_options, take_ballots, weights_option
from witan.surfaces.cli.commands import command, named_options, parameter_options, save_charts
from witan.surfaces.cli.options import (
    PROBLEMS_SHOWN,
    Status,
    chart_option,
    json_option,
    limit_option,
    section,
)
from witan.surfaces.terminal import echo, measure_page, say

if TYPE_CHECKING:
    from witan.core.outcome import Outcome
    from witan.core.tally import OutcomeColumn
    from witan.errors import UnsuitableBallots


@command(
    "tally",
    "tally ballots.jsonl",
    "tally votes.csv --column reviewer=judge --rule schulze",
    "cat ballots.jsonl | witan tally - --json",
    "tally last --rule schulze",
    notes=NOTES,
)
@parameter_options(TallyParameters, exclude=["ballots"])
@ballot_options(required=True)
@weights_option
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
    """Outcomes one after another, and totals over them."""

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
        paths = [self.options[option] for option in ("plot", "matchups")]
        if any(paths) and self.first is not None:
            from witan.surfaces.report.standings import matchup_chart, standings_chart

            draws = zip(paths, (standings_chart, matchup_chart), strict=True)
            save_charts(self.first, {path: draw for path, draw in draws if path})

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
        """Refuse to draw several sessions in one chart, before anything is printed."""
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
        report = outcomes_report(outcomes, simulated_sessions=count.body.simulated)
        echo("\n".join(report_text(page, report)))
