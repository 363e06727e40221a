"""``witan forget``: delete sessions from the history, wholly."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witan.service.text import clean, counted
from witan.surfaces.cli.history_options import Moment, config_option, history_option
from witan.surfaces.cli.options import json_option
from witan.surfaces.terminal import confirm, echo

if TYPE_CHECKING:
    from witan.history import History, SessionSummary

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan forget 20261121-1932
  witan forget --before 90d --yes
"""

SHOWN = 10
"""More sessions than this are only counted before the user is asked."""


MANY = 100
"""Of more sessions than this, what came of them is not looked up one by one."""


@click.command("forget", short_help="Delete sessions from the history.", epilog=EXAMPLES)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option(
    "--before",
    type=Moment(),
    metavar="TIME",
    help="Every session asked before then: 90d, 12h and 2w are ago, 2026-01-31 is a day.",
)
@click.option("--all", "everything", is_flag=True, help="Every session there is.")
@click.option(
    "--with-children",
    is_flag=True,
    help="Also the sessions that came of them: judged again, continued, retried.",
)
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
    with_children: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete sessions with their answers, ballots and numbers from the history.

    Records of them that were set aside when they were interrupted are deleted, too. What is left
    is what lies elsewhere: files of --save, exports, lakes, backups of the history, and copies of a
    damaged one. A session that came of another, judged again or continued, holds that one's text
    and stays; it is named, and goes too by --with-children.

    An ID is the name of a session, or a beginning of it that no other has; `last` is the latest. On
    a terminal it asks first; elsewhere nothing is deleted without --yes.
    """
    if (bool(sessions) + (before is not None) + everything) != 1:
        raise click.UsageError("say what to forget: an ID, --before TIME or --all, one of them")
    from witan.service.history_access import configured
    from witan.service.rescue_files import forget_aside
    from witan.surfaces.cli.stored_sessions import open_history, whole_name

    with open_history(configured(config, history), reading=True) as place:
        if sessions:
            names = dict.fromkeys(whole_name(place, name) for name in sessions)
            chosen = [place.summary(name) for name in names]
        else:
            chosen = place.find(until=before)
        children = [] if everything else _children(place, chosen)
        if with_children:
            chosen, children = [*chosen, *children], []
        if chosen and not yes:
            _ask(chosen, place)
        if before is not None and not with_children:
            forgotten = place.forget_before(before)
        else:
            forgotten = place.forget(*(found.session for found in chosen))
        set_aside = forget_aside(found.session for found in chosen)
        where = place.url
    if as_json:
        from witan.service.json_output import to_json

        told = {"forgotten": forgotten.n_sessions, "set_aside": set_aside, "note": forgotten.note}
        left = [child.session for child in children]
        echo(to_json({"history": where, **told, "children": left}))
        return
    echo(f"{counted(forgotten.n_sessions, 'session')} forgotten")
    for note in filter(None, (forgotten.note, _left(children))):
        echo(note, err=True)


def _children(place: "History", chosen: "Sequence[SessionSummary]") -> "list[SessionSummary]":
    """The sessions that came of these, and of those in turn, and are not among them."""
    seen = {found.session for found in chosen}
    everything = place.find() if len(chosen) > MANY else ()
    known: dict[str | None, list[SessionSummary]] = {}
    for found in everything:
        known.setdefault(found.parent, []).append(found)
    children: list[SessionSummary] = []
    waiting = [found.session for found in chosen]
    while waiting:
        parent = waiting.pop()
        for child in known.get(parent, ()) if known else place.find(parent=parent):
            if child.session not in seen:
                seen.add(child.session)
                children.append(child)
                waiting.append(child.session)
    return children


def _left(children: "Sequence[SessionSummary]") -> str | None:
    """Name the sessions that still hold text of a deleted one."""
    if not children:
        return None
    named = [f"{clean(c.session)} ({c.relation or 'came of it'})" for c in children[:SHOWN]]
    more = f" and {len(children) - SHOWN:,} more" if len(children) > SHOWN else ""
    hold = "holds" if len(children) == 1 else "hold"
    return (
        f"{', '.join(named)}{more} still {hold} text of what was forgotten:"
        " forget them as well (--with-children does)"
    )


def _ask(chosen: "list[SessionSummary]", place: "History") -> None:
    """Have the user confirm; without a terminal, refuse."""
    n = counted(len(chosen), "session")
    if not sys.stdin.isatty():
        which = f" ({clean(chosen[0].session)})" if len(chosen) == 1 else ""
        raise click.UsageError(f"{n}{which} would be deleted for good; add --yes to delete")
    for found in chosen[:SHOWN]:
        question = clean(" ".join(found.question.split()))
        beginning = question if len(question) <= SHOWN * 6 else f"{question[: SHOWN * 6]}…"
        echo(f"  {clean(found.session)}  {beginning}", err=True)
    if len(chosen) > SHOWN:
        echo(f"  … and {len(chosen) - SHOWN:,} more", err=True)
    confirm(f"Delete {n} from {place.database.where} for good?", abort=True)
