"""``witan forget``: delete sessions from the history, wholly."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witan.service.operations.forget import delete_sessions, descendants, forget
from witan.service.parameters import MOMENT
from witan.service.text import clean, counted
from witan.surfaces.cli.commands import command, parameter_options, print_result
from witan.surfaces.cli.options import ParsedType, config_option, history_option, json_option
from witan.surfaces.cli.stored_sessions import LocalSessions, open_sessions
from witan.surfaces.terminal import confirm, echo

if TYPE_CHECKING:
    from witan.history import History


SHOWN = 10
"""More sessions than this are only counted before the user is asked."""


@command(
    "forget",
    "forget 20261121-1932",
    "forget --before 90d --yes",
    notes="""An ID is the name of a session, or a beginning of it that no other has; `last` is the
latest. On a terminal it asks first; elsewhere nothing is deleted without --yes.""",
)
@click.argument("sessions", metavar="[ID]...", nargs=-1)
@click.option(
    "--before",
    type=ParsedType(MOMENT),
    metavar="TIME",
    help="Every session asked before then: 90d, 12h and 2w are ago, 2026-01-31 is a day.",
)
@click.option("--all", "everything", is_flag=True, help="Every session there is.")
@parameter_options(forget.parameters, without=["session"])
@click.option("--yes", is_flag=True, help="Do not ask first.")
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
    """Delete sessions, many in one go."""
    if (bool(sessions) + (before is not None) + everything) != 1:
        raise click.UsageError("say what to forget: an ID, --before TIME or --all, one of them")
    with open_sessions(config, history) as store:
        place = store.history
        if sessions:
            chosen = [*dict.fromkeys(store.whole_name(name) for name in sessions)]
        else:
            chosen = [found.session for found in place.find(until=before)]
        if with_children:
            chosen += descendants(place, chosen)
        if chosen and not yes:
            _ask(chosen, place)
        by_age = before is not None and not with_children
        deleting = store if before is None else _SessionsBefore(place, before)
        done = delete_sessions(deleting if by_age else store, chosen, with_children=False)
    print_result(done, as_json=as_json)


class _SessionsBefore(LocalSessions):
    """The sessions before a time: they are deleted a few at a time."""

    def __init__(self, history: "History", at: datetime) -> None:
        super().__init__(history)
        self.at = at

    def delete(self, sessions: Sequence[str]) -> str | None:  # noqa: ARG002 - all before the time
        """Delete every session before the time."""
        return self.history.forget_before(self.at).note


def _ask(chosen: Sequence[str], place: "History") -> None:
    """Have the user confirm; without a terminal, refuse."""
    n = counted(len(chosen), "session")
    if not sys.stdin.isatty():
        which = f" ({clean(chosen[0])})" if len(chosen) == 1 else ""
        raise click.UsageError(f"{n}{which} would be deleted for good; add --yes to delete")
    for name in chosen[:SHOWN]:
        question = clean(" ".join(place.summary(name).question.split()))
        beginning = question if len(question) <= SHOWN * 6 else f"{question[: SHOWN * 6]}…"
        echo(f"  {clean(name)}  {beginning}", err=True)
    if len(chosen) > SHOWN:
        echo(f"  … and {len(chosen) - SHOWN:,} more", err=True)
    confirm(f"Delete {n} from {place.database.where} for good?", abort=True)
