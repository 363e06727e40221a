"""``witan sessions``: what is in the history."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from witan.service.text import Page
from witan.surfaces.cli.history_options import (
    config_option,
    history_option,
    window_of,
    window_options,
)
from witan.surfaces.cli.options import json_option
from witan.surfaces.terminal import echo

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan sessions
  witan sessions hash map --since 30d
  witan sessions --status interrupted --json
"""

STATUSES = ("complete", "degraded", "failed", "interrupted")


@click.command("sessions", short_help="List the sessions in the history.", epilog=EXAMPLES)
@click.argument("text", nargs=-1)
@window_options
@click.option(
    "--status", type=click.Choice(STATUSES), help="Sessions that ended so, or did not end."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="List so many at most.",
)
@click.option("--simulated", "simulated", is_flag=True, help="Sessions in which scripts sat.")
@click.option("--all", "everything", is_flag=True, help="Those in which scripts sat, too.")
@config_option
@history_option
@json_option
def command(text: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """List sessions, the latest first; with TEXT, those whose question or closing text has it.

    An imported session stands by its own time; where its file says none, by that of the import.
    The first column is a name that other commands take. Sessions in which scripts sat are left out
    unless they are asked for.
    """
    from witan.service.history_access import configured
    from witan.surfaces.cli.stored_sessions import open_history

    if options["simulated"] and options["everything"]:
        raise click.UsageError("choose --simulated or --all, not both")
    simulated = None if options["everything"] else options["simulated"]
    with open_history(configured(config, options["history"]), reading=True) as history:
        window = window_of(options)
        chosen = {
            "since": window.since,
            "until": window.until,
            "category": window.category,
            "status": options["status"],
        }
        words = " ".join(text) or None
        # One more than is shown, to know whether there are more.
        found = history.find(words, **chosen, limit=options["limit"] + 1, simulated=simulated)
        shown = found[: options["limit"]]
        if options["as_json"]:
            from witan.service.json_output import to_json

            echo(to_json({"history": history.url, "sessions": shown}))
            return
        from witan.surfaces.text.sessions import sessions_text

        for line in sessions_text(Page.of(sys.stdout), history, shown):
            echo(line)
        unseen = simulated is False and history.find(words, **chosen, limit=1, simulated=True)
        asked = words is not None or any(value is not None for value in chosen.values())
        for note in _notes(len(found), options["limit"], asked=asked, unseen=bool(unseen)):
            echo(Page.of(sys.stderr).sentence(note, "dim", hang=2), err=True)


def _notes(n_found: int, limit: int, *, asked: bool, unseen: bool) -> Iterator[str]:
    """What is there beside what is listed."""
    if n_found > limit:
        yield f"there are more than these {limit:,}; a higher --limit lists more"
    if not n_found:
        kind = "session of models" if unseen else "session"
        yield f"no {kind} is like that" if asked else f"there is no {kind} yet"
    if unseen:
        yield "sessions in which scripts sat are not listed; --all lists them, too"
