"""``witan leaderboard``: how models fare across sessions."""

import sys
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import Page, counted
from witan.surfaces.cli.history_options import window_of, window_options
from witan.surfaces.cli.options import chart_option, json_option, level_option
from witan.surfaces.cli.source_options import opened_source, source_options
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.core.leaderboard import Leaderboard, Terms

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan leaderboard --since 30d --category coding
  witan leaderboard votes.csv --min-sessions 3
  witan leaderboard --order-by rating --plot leaderboard.svg
  witan leaderboard --lake history.lake --engine duckdb --json
"""


@click.command(
    "leaderboard",
    cls=SectionedCommand,
    short_help="How models fare across sessions.",
    epilog=EXAMPLES,
)
@window_options
@section(
    "Standings",
    click.option(
        "--rule",
        metavar="NAME",
        default="borda",
        show_default=True,
        help="Average the scores of this rule over sessions.",
    ),
)
@section(
    "Standings",
    click.option(
        "--kind",
        type=click.Choice(["model", "human"]),
        default="model",
        show_default=True,
        help="By the ballots of models, or of people.",
    ),
)
@section(
    "Standings",
    click.option(
        "--order-by",
        type=click.Choice(["score", "rating", "elo"]),
        default="score",
        show_default=True,
        help="Mean score, Bradley-Terry rating, or Elo in the order of time.",
    ),
)
@section(
    "Standings", click.option("--elo", is_flag=True, help="Show Elo ratings beside the others.")
)
@section(
    "Standings",
    click.option(
        "--min-sessions",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        default=10,
        show_default=True,
        help="List models with fewer scored sessions apart.",
    ),
)
@section("Standings", level_option("Level of intervals and of what is told apart."))
@source_options
@json_option
@chart_option("--plot", "Draw the leaderboard to an .svg, .png, .pdf, .html or .json file.")
@chart_option("--matchups", "Draw to a file how surely one model is stronger than another.")
@chart_option("--costs", "Draw to a file the score beside what an answer costs.")
def command(as_json: bool, **options: Any) -> int:
    """Order models by how they fared across the sessions of a history.

    With FILE..., the sessions of these files stand for the history; an ID is one of its sessions.
    Every session counts once. Simulated sessions never count. Models with few sessions stand
    apart. With --since, changes are shown against the window of equal length before. Exit status:
    0 answered, 2 misuse, 3 no session to count, 7 not written to standard output.
    """
    from witan.analytics.reports.leaderboards import board_of
    from witan.analytics.reports.sources import check_rule
    from witan.deliberation.system_clock import SystemClock
    from witan.surfaces.charts.drawing import check_chart

    terms = _terms(options)
    check_rule(terms.rule)
    for option in ("plot", "matchups", "costs"):
        if options[option] is not None:
            check_chart(options[option])
    with opened_source(options) as (source, config):
        if n_counted := source.count_under(terms.rule):
            sessions = counted(n_counted, "session")
            echo(f"{sessions} counted under {terms.rule} for the first time", err=True)
        board = board_of(
            source,
            terms,
            with_elo=options["elo"],
            aliases=config.aliases,
            now=SystemClock().now(),
        )
        engine, where = source.name, source.where
    _print(board, as_json=as_json, engine=engine, where=where)
    _draw(board, options)
    return 0


def _terms(options: dict[str, Any]) -> "Terms":
    from witan.core.leaderboard import Terms

    return Terms(
        rule=options["rule"],
        kind=options["kind"],
        window=window_of(options),
        order_by=options["order_by"],
        min_sessions=options["min_sessions"],
        level=options["level"],
    )


def _print(board: "Leaderboard", *, as_json: bool, engine: str, where: str) -> None:
    if as_json:
        from witan.service.json_output import to_json
        from witan.service.reports_json import leaderboard_object

        echo(to_json(leaderboard_object(board, engine=engine, where=where)))
        return
    from witan.surfaces.text.leaderboard import leaderboard_text

    echo("\n".join(leaderboard_text(Page.of(sys.stdout), board)))


def _draw(board: "Leaderboard", options: dict[str, Any]) -> None:
    """Write the charts asked for."""
    asked = {name: options[name] for name in ("plot", "matchups", "costs") if options[name]}
    if not asked:
        return
    from witan.surfaces.charts import cost_chart, leaderboard_chart, strength_chart
    from witan.surfaces.charts.drawing import save_chart

    draw = {"plot": leaderboard_chart, "matchups": strength_chart, "costs": cost_chart}
    for name, path in asked.items():
        save_chart(draw[name](board), path)
