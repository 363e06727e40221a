"""``witan show``: a stored session."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witan.service.text import Page
from witan.surfaces.cli.council_options import record_options
from witan.surfaces.cli.history_options import config_option, history_option
from witan.surfaces.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from witan.deliberation.session import Session
    from witan.history import History

__all__ = ["command"]


EXAMPLES = """\b
Examples:
  witan show last
  witan show 20261121-1932
  witan show session.json --events
  witan show last --html session.html
"""


@click.command("show", short_help="Show a stored session.", epilog=EXAMPLES)
@click.argument("session", metavar="ID|FILE")
@config_option
@history_option
@record_options
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the session as a page that stands alone.",
)
def command(
    session: str,
    config: Path | None,
    history: str | None,
    *,
    as_json: bool,
    events: bool,
    html: Path | None,
) -> None:
    """Show a session: question, answers, ballots, standings, final answer.

    An ID is the name of a session in the history, or a beginning of it that no other has; `last`
    is the latest. A FILE exists, ends in .json or has a path; - is standard input. With --events,
    everything that happened in it, in order. With --html, nothing is printed: the session goes
    into a FILE that any browser opens, with its own styles, no script, and nothing to fetch.
    """
    if as_json + events + (html is not None) > 1:
        raise click.UsageError("choose one of --json, --events and --html")
    from witan.surfaces.cli.stored_sessions import session_called

    with session_called(session, config, history) as (found, place):
        if isinstance(found, str):
            assert place is not None  # noqa: S101 - only a history has ballots alone
            _show_imported(place, found, html, as_json=as_json, events=events)
        elif html is not None:
            _write_page(found, place, html)
        else:
            stored = _as_it_stands(found, place)
            _show(stored, place, as_json=as_json, events=events)
            if stored.status == "interrupted" and not (as_json or events or session == "-"):
                name, options = (session, {}) if place is None else (found.id, {"history": history})
                _say_how_to_go_on(name, {**options, "config": config})


def _as_it_stands(session: "Session", history: "History | None") -> "Session":
    """The session with its status now: its record alone does not say that a process is at it."""
    if history is None or session.status != "interrupted":
        return session
    running = history.summary(session.id).status == "running"
    return replace(session, status="running") if running else session


def _show(session: "Session", history: "History | None", *, as_json: bool, events: bool) -> None:
    from witan.deliberation.record import event_to_json
    from witan.files.exports import record_with_votes

    ballots = [] if history is None or events else history.ballots(session.id)
    votes = [ballot for ballot in ballots if ballot.kind == "human"]
    if as_json:
        echo(record_with_votes(session, votes))
    elif events:
        for event in session.events:
            echo(event_to_json(event, simulated=session.simulated))
    else:
        from witan.surfaces.text.session import session_text

        children = [] if history is None else history.find(parent=session.id)
        came_of_it = [
            f"{child.relation or 'followed'} as {child.session}" for child in reversed(children)
        ]
        echo("\n".join(session_text(Page.of(sys.stdout), session, came_of_it, votes)))


def _say_how_to_go_on(name: str, options: "Mapping[str, object]") -> None:
    import shlex

    given = [f"--{option} {shlex.quote(str(value))}" for option, value in options.items() if value]
    again = " ".join(["witan resume", shlex.quote(name), *given])
    echo(Page.of(sys.stdout).sentence(f"to take it up: {again}", "dim"))


def _write_page(session: "Session", history: "History | None", path: Path) -> None:
    """Write the page of a session, with what the history knows of it, to a file."""
    from witan.files.session_files import write_whole
    from witan.surfaces.session_pages import session_to_html

    ballots = [] if history is None else history.ballots(session.id)
    children = [] if history is None else history.find(parent=session.id)
    page = session_to_html(
        session,
        children=[(child.session, child.relation or "followed") for child in reversed(children)],
        votes=[ballot for ballot in ballots if ballot.kind == "human"],
    )
    write_whole(page.encode(), path)


def _show_imported(
    history: "History", session: str, html: Path | None, *, as_json: bool, events: bool
) -> None:
    from witan.service.operations.imported_sessions import imported_session, record_object

    if events:
        raise click.UsageError("a session that came in as ballots has no events; show it without")
    found = imported_session(history, session)
    if html is not None:
        from witan.files.session_files import write_whole
        from witan.surfaces.session_pages import imported_to_html

        write_whole(imported_to_html(found).encode(), html)
    elif as_json:
        from witan.service.json_output import to_json

        echo(to_json(record_object(found)))
    else:
        from witan.surfaces.text.imported_session import imported_text

        echo("\n".join(imported_text(Page.of(sys.stdout), found)))
