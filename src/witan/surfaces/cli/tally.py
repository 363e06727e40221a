"""``witan tally``: count ballots."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from witan.service.operations.tally import TallyParameters, count_sessions, tally
from witan.service.text import Page, clean, counted
from witan.surfaces.cli.counting import ballot_command
from witan.surfaces.cli.exit_statuses import Status
from witan.surfaces.cli.options import chart_option, limit_option
from witan.surfaces.cli.reading import Body
from witan.surfaces.cli.stacking import section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.outcome import Outcome
    from witan.errors import UnsuitableBallots

PROBLEMS_SHOWN = 20
"""Sessions that a rule cannot count beyond this many are only counted."""


EXAMPLES = """\b
Examples:
  witan tally ballots.jsonl
  witan tally votes.csv --column reviewer=judge --rule schulze
  cat ballots.jsonl | witan tally - --json
  witan tally last --rule schulze
"""


def _run(given: TallyParameters, body: Body, options: Mapping[str, Any]) -> Status:
    count = _Count(body, given, options)
    if options["as_json"]:
        from witan.service.json_output import sessions_json

        for line in sessions_json(count, count.not_counted):
            echo(line, nl=False)
    else:
        _show(count, options["limit"])
    count.draw()
    return count.status()


class _Count:
    """Outcomes one after the other, and the totals over them."""

    def __init__(self, body: Body, given: TallyParameters, options: Mapping[str, Any]) -> None:
        self.body, self.given, self.options = body, given, options
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
        """The exit status for all sessions together."""
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
        if self.given.prior == "learn" and self.first and self.first.prior is None:
            echo(
                "no strength was borrowed: a prior is learned from fifty sessions at least",
                err=True,
            )
        if self.not_counted:
            echo(
                f"{counted(len(self.not_counted), 'session')} could not be counted; "
                f"{self.n_shown:,} counted",
                err=True,
            )


def _show(count: _Count, limit: int) -> None:
    """Print each in full, or one line each if there are more than `limit`."""
    from witan.surfaces.text.outcome import outcome_text
    from witan.surfaces.text.outcomes import Digest, summary_text

    page = Page.of(sys.stdout)
    held: list[Outcome] = []
    digests: list[Digest] = []
    for outcome in count:
        digests.append(Digest.of(outcome))
        if len(held) <= limit:
            held.append(outcome)
    if len(digests) > limit:
        echo("\n".join(summary_text(page, digests)))
        return
    for number, outcome in enumerate(held):
        if number:
            echo()
        simulated = outcome.session in count.body.simulated
        echo("\n".join(outcome_text(page, outcome, simulated=simulated)))


command = ballot_command(
    tally,
    _run,
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
    examples=EXAMPLES,
)
