"""``witan show``: a stored session."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from witan.deliberation.record import event_to_json
from witan.files.session_files import write_whole
from witan.service.operations.imported_sessions import ImportedSession
from witan.service.operations.show import ShowParameters
from witan.service.operations.show import show as operation
from witan.service.session_records import CouncilSession
from witan.service.text import Page
from witan.surfaces.cli.commands import command, print_result
from witan.surfaces.cli.council_options import record_options
from witan.surfaces.cli.options import config_option, history_option
from witan.surfaces.cli.stored_sessions import open_named_sessions
from witan.surfaces.session_pages import imported_to_html, session_to_html
from witan.surfaces.terminal import echo


@command(
    "show",
    "show last",
    "show 20261121-1932",
    "show session.json --events",
    "show last --html session.html",
    notes="""An ID is the name of a session in the history, or a beginning of it that no other has;
`last` is the latest. A FILE exists, ends in .json or has a path; - is standard input. With
--events, everything that happened in it, in order. With --html, nothing is printed: the session
goes into a FILE that any browser opens, with its own styles, no script, and nothing to fetch.""",
)
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
def show_command(
    session: str,
    config: Path | None,
    history: str | None,
    *,
    as_json: bool,
    events: bool,
    html: Path | None,
) -> None:
    """Print a session, or write its page."""
    if as_json + events + (html is not None) > 1:
        raise click.UsageError("choose one of --json, --events and --html")
    options = {"config": config, "history": history}
    with open_named_sessions(options) as store:
        result = operation.handler(store, ShowParameters(session))
        if html is not None:
            write_whole(_page(result).encode(), html)
        elif events:
            _print_events(result)
        else:
            print_result(result, as_json=as_json)
            if as_json:
                return
            if isinstance(result, CouncilSession) and result.session.status == "interrupted":
                is_kept = store.shared_history is not None
                name, given = (result.session.id, options) if is_kept else (session, {})
                if session != "-":
                    _say_how_to_go_on(name, {**given, "config": config})


def _print_events(result: CouncilSession | ImportedSession) -> None:
    if isinstance(result, ImportedSession):
        raise click.UsageError("a session that came in as ballots has no events; show it without")
    for event in result.session.events:
        echo(event_to_json(event, simulated=result.session.simulated))


def _say_how_to_go_on(name: str, options: Mapping[str, object]) -> None:
    given = [f"--{option} {shlex.quote(str(value))}" for option, value in options.items() if value]
    again = " ".join(["witan resume", shlex.quote(name), *given])
    echo(Page.of(sys.stdout).sentence(f"to take it up: {again}", "dim"))


def _page(result: CouncilSession | ImportedSession) -> str:
    if isinstance(result, ImportedSession):
        return imported_to_html(result)
    return session_to_html(result.session, children=result.children, votes=result.votes)
