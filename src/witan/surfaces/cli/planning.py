"""Plans on the command line: what would be asked and cost, in place of asking it."""

import sys
from typing import TYPE_CHECKING

import click

from witan.service.text import Page, clean
from witan.surfaces.cli.session_options import Telling
from witan.surfaces.cli.stacking import section
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from witan.deliberation.plan import Plan

__all__ = ["check_planned", "plan_option", "print_plan", "say_aside"]

plan_option = section(
    "Time and money",
    click.option(
        "--plan", is_flag=True, help="Print the calls and the highest cost; make no call."
    ),
)


def check_planned(telling: Telling) -> None:
    """Refuse what is said of a session where none is held."""
    if telling.events or telling.save is not None:
        option = "--events" if telling.events else "--save"
        raise click.UsageError(f"{option} is of a session; with --plan there is none")


def print_plan(plan: "Plan", ceiling: float | None, *, as_json: bool) -> int:
    """Print a plan under a ceiling; the exit status."""
    from witan.service.operations.plan import summarize_plan
    from witan.surfaces.text.plan import plan_text

    summary = summarize_plan(plan, ceiling)
    if as_json:
        from witan.service.json_output import to_json

        echo(to_json(summary))
    else:
        echo("\n".join(plan_text(Page.of(sys.stdout), summary)))
    return 0


def say_aside(note: str) -> None:
    """Say something on standard error."""
    echo(clean(note), err=True)
