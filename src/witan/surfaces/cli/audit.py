"""``witan audit``: how reviewers judge."""

import sys
from typing import TYPE_CHECKING, Any

import click

from witan.service.text import Page
from witan.surfaces.cli.history_options import window_of, window_options
from witan.surfaces.cli.options import chart_option, json_option, level_option
from witan.surfaces.cli.source_options import opened_source, source_options
from witan.surfaces.cli.stacking import SectionedCommand, section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.analytics.reports import AuditReport

__all__ = ["command"]

EXAMPLES = """\b
Examples:
  witan audit --since 90d
  witan audit --reviewer openai:gpt-5
  witan audit --criterion clarity
  witan audit votes.csv --column reviewer=who
  witan audit --lake history.lake --json
"""


@click.command(
    "audit",
    cls=SectionedCommand,
    short_help="How reviewers judge: bias, agreement, worth.",
    epilog=EXAMPLES,
)
@section(
    "Which figures",
    click.option("--reviewer", metavar="NAME", help="Tell everything of one, a model or a person."),
)
@section(
    "Which figures",
    click.option("--criterion", metavar="NAME", help="Tell how each grades on this one alone."),
)
@window_options
@section("Which figures", level_option("Level of intervals, and of what stands out."))
@source_options
@json_option
@chart_option("--plot", "Draw the reviewers to an .svg, .png, .pdf, .html or .json file.")
def command(as_json: bool, **options: Any) -> int:
    """Say how reviewers judge: whom they prefer, how far they agree, what they are worth.

    Reads the history, or instead of it FILE..., as `witan import` would, and sessions by ID.
    What stands out is marked; a measure without enough data says so. Simulated sessions never
    count. Families of models, and old names of models, come from the configuration. Exit status:
    0 answered, 2 misuse, 3 no session to count, 7 not written to standard output.
    """
    from witan.analytics.reports.audits import audit_of
    from witan.surfaces.charts.drawing import check_chart

    if options["plot"] is not None:
        check_chart(options["plot"])
    window = window_of(options)
    with opened_source(options) as (source, config):
        report = audit_of(
            source,
            window,
            aliases=config.aliases,
            families=config.families,
            level=options["level"],
        )
        engine, where = source.name, source.where
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(_object(report, options, engine, where)))
    else:
        echo("\n".join(_lines(report, options)))
    if options["plot"] is not None:
        from witan.surfaces.charts import audit_chart
        from witan.surfaces.charts.drawing import save_chart

        chart = audit_chart(report, options["reviewer"], options["criterion"])
        save_chart(chart, options["plot"])
    return 0


def _object(
    report: "AuditReport", options: dict[str, Any], engine: str, where: str
) -> dict[str, Any]:
    from witan.service.reports_json import audit_object, criterion_object, reviewer_object

    reviewer, criterion = options["reviewer"], options["criterion"]
    if criterion is not None:
        found = report.on(criterion, reviewer)
        return criterion_object(report, found, engine=engine, where=where)
    if reviewer is not None:
        return reviewer_object(report, report[reviewer], engine=engine, where=where)
    return audit_object(report, engine=engine, where=where)


def _lines(report: "AuditReport", options: dict[str, Any]) -> "list[str]":
    from witan.surfaces.text.audit import audit_text, reviewer_text
    from witan.surfaces.text.criterion import criterion_text

    page, reviewer, criterion = Page.of(sys.stdout), options["reviewer"], options["criterion"]
    if criterion is not None:
        found = report.on(criterion, reviewer)
        return list(criterion_text(page, report, found, alone=reviewer is not None))
    if reviewer is not None:
        return list(reviewer_text(page, report, report[reviewer]))
    return list(audit_text(page, report))
