"""``witan forget``: delete sessions from the history, wholly."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witan.surfaces.commands.council_options import config_option
from witan.surfaces.commands.history_options import Moment, history_option
from witan.surfaces.commands.options import json_option
from witan.surfaces.text import clean, counted

if TYPE_CHECKING:
    from witan.adapters.history import Found, History

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan forget 20261121-1932
  witan forget --before 90d --yes
"""

SHOWN = 10
"""More sessions than this are only counted before the user is asked."""


@click.command("forget", short_help="Delete sessions from the history.", epilog=EXAMPLES)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option(
    "--before",
    type=Moment(),
    metavar="TIME",
    help="Every session asked before then: 90d, 12h and 2w are ago, 2026-01-31 is a day.",
)
@click.option("--all", "everything", is_flag=True, help="Every session there is.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@config_option
@history_option
@json_option
def command(
    sessions: tuple[str, ...],
    before: datetime | None,
    config: Path | None,
    history: str | None,
    *,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete sessions with their answers, ballots and numbers; nothing of them is left.

    An ID is the name of a session, or a beginning of it that no other has; `last` is the latest. On
    a terminal it asks first; elsewhere nothing is deleted without --yes.
    """
    if (bool(sessions) + (before is not None) + everything) != 1:
        raise click.UsageError("say what to forget: an ID, --before TIME or --all, one of them")
    from witan.surfaces.histories import configured, open_history, whole_name

    with open_history(configured(config, history), reading=True) as place:
        if sessions:
            names = dict.fromkeys(whole_name(place, name) for name in sessions)
            chosen = [place.about(name) for name in names]
        else:
            chosen = place.find(until=before)
        if chosen and not yes:
            _ask(chosen, place)
        if before is not None:
            forgotten = place.forget_before(before)
        else:
            forgotten = place.forget(*(found.session for found in chosen))
        where = place.url
    if as_json:
        from witan.surfaces.json_output import to_json

        n, note = forgotten.n_sessions, forgotten.note
        click.echo(to_json({"history": where, "forgotten": n, "note": note}))
        return
    click.echo(f"{counted(forgotten.n_sessions, 'session')} forgotten")
    if forgotten.note is not None:
        click.echo(forgotten.note, err=True)


def _ask(chosen: "list[Found]", place: "History") -> None:
    """Have the user confirm; without a terminal, refuse."""
    n = counted(len(chosen), "session")
    if not sys.stdin.isatty():
        raise click.UsageError(f"{n} would be deleted for good; to have that done, add --yes")
    for found in chosen[:SHOWN]:
        question = clean(" ".join(found.question.split()))
        beginning = question if len(question) <= SHOWN * 6 else f"{question[: SHOWN * 6]}…"
        click.echo(f"  {clean(found.session)}  {beginning}", err=True)
    if len(chosen) > SHOWN:
        click.echo(f"  … and {len(chosen) - SHOWN:,} more", err=True)
    click.confirm(f"Delete {n} from {clean(place.database.where)} for good?", abort=True, err=True)
