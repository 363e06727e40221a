"""Stored sessions: ``witan show`` and ``forget``."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witan.deliberation.record import event_to_json
from witan.files.session_files import write_whole
from witan.service.operations.sessions import delete_sessions, descendants, forget
from witan.service.operations.sessions import show as operation
from witan.service.parameters import MOMENT
from witan.service.session_records import CouncilSession, ImportedSession
from witan.service.stored_sessions import SessionRequest
from witan.service.text import clean, count_noun
from witan.surfaces.cli.commands import command, parameter_options, print_result
from witan.surfaces.cli.options import (
    ParsedType,
    Status,
    config_option,
    history_option,
    json_option,
    record_options,
)
from witan.surfaces.cli.stored_sessions import LocalSessions, open_named_sessions, open_sessions
from witan.surfaces.report.session import question_beginning
from witan.surfaces.terminal import confirm, echo, measure_page, say

if TYPE_CHECKING:
    from witan.history import History


@command(
    "show",
    "show last",
    "show 20261121-1932",
    "show session.json --events",
    "show last --html session.html",
    notes="""An ID is the name of a session in the history, or a unique prefix of it; `last` is
the latest. A FILE is a name that exists, ends in .json or has a path; - is standard input.
--events prints every event in order. --html prints nothing, but writes the session to a
self-contained FILE for any browser, without scripts or external resources.""",
)
@click.argument("session", metavar="ID|FILE")
@config_option
@history_option
@record_options
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the session as a standalone HTML file.",
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
        result = operation.handler(store, SessionRequest(session))
        if html is not None:
            from witan.surfaces.report import session_to_html

            write_whole(session_to_html(result).encode(), html)
        elif events:
            _print_events(result)
        else:
            print_result(result, as_json=as_json)
            if as_json:
                return
            if isinstance(result, CouncilSession) and result.session.status == "interrupted":
                is_kept = store.shared_history is not None
                name, session_options = (result.session.id, options) if is_kept else (session, {})
                if session != "-":
                    _say_how_to_go_on(name, {**session_options, "config": config})


def _print_events(result: CouncilSession | ImportedSession) -> None:
    if isinstance(result, ImportedSession):
        raise click.UsageError("a session imported as ballots has no events; leave out --events")
    for event in result.session.events:
        echo(event_to_json(event, is_simulated=result.session.is_simulated))


def _say_how_to_go_on(name: str, options: Mapping[str, object]) -> None:
    arguments = [
        f"--{option} {shlex.quote(str(value))}" for option, value in options.items() if value
    ]
    resume_command = " ".join(["witan resume", shlex.quote(name), *arguments])
    echo(measure_page().sentence(f"to resume: {resume_command}", "dim"))


SHOWN = 10
"""Most sessions listed before the confirmation."""

QUESTION_CHARS = 60


@command(
    "forget",
    "forget 20261121-1932",
    "forget --before 90d --yes",
    notes="""An ID is the name of a session, or a unique prefix of it; `last` is the latest. On
a terminal it asks first; elsewhere nothing is deleted without --yes.""",
)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option(
    "--before",
    type=ParsedType(MOMENT),
    metavar="TIME",
    help="Sessions asked before this time: an age (90d, 12h, 2w) or a day (2026-01-31).",
)
@click.option("--all", "everything", is_flag=True, help="All sessions.")
@parameter_options(forget.parameters, exclude=["session"])
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@config_option
@history_option
@json_option
def forget_command(
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
    """Delete sessions, many at once."""
    if (bool(sessions) + (before is not None) + everything) != 1:
        raise click.UsageError("name the sessions in one way: IDs, --before TIME or --all")
    with open_sessions({"config": config, "history": history}) as store:
        place = store.history
        if sessions:
            session_names = [*dict.fromkeys(store.whole_name(name) for name in sessions)]
        else:
            session_names = [summary.session for summary in place.find(until=before)]
        if with_children:
            session_names += descendants(place, session_names)
        if session_names and not yes:
            _confirm(session_names, place)
        by_age = None if with_children else before
        deleting = store if by_age is None else _SessionsBefore(place, by_age)
        deletion = delete_sessions(deleting, session_names, with_children=False)
    print_result(deletion, as_json=as_json)


class _SessionsBefore(LocalSessions):
    """Sessions before a time, to be deleted in small batches."""

    def __init__(self, history: "History", at: datetime) -> None:
        super().__init__(history)
        self.at = at

    def delete(self, sessions: Sequence[str]) -> str | None:  # noqa: ARG002 - all before the time
        return self.history.forget_before(self.at).note


def _confirm(sessions: Sequence[str], place: "History") -> None:
    n = count_noun(len(sessions), "session")
    if not sys.stdin.isatty():
        name_text = f" ({clean(sessions[0])})" if len(sessions) == 1 else ""
        raise click.UsageError(f"{n}{name_text} would be deleted permanently; add --yes to delete")
    for name in sessions[:SHOWN]:
        question = question_beginning(place.summary(name).question, QUESTION_CHARS)
        say(f"  {name}  {question}")
    if len(sessions) > SHOWN:
        echo(f"  … and {len(sessions) - SHOWN:,} more", err=True)
    if not confirm(f"Delete {n} from {place.database.location} permanently?"):
        echo("nothing was deleted", err=True)
        raise click.exceptions.Exit(Status.FAILED)
