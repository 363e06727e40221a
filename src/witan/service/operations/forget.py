"""Delete stored sessions."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from witan.errors import HistoryConflict
from witan.history import History, SessionSummary
from witan.service.catalogue import operation, public
from witan.service.parameters import Doc, Parameters
from witan.service.rescue_files import forget_aside
from witan.service.stored_sessions import SessionName, SessionStore

MANY = 100
"""Descendants of more sessions than this are found in the whole list, not one by one."""


@dataclass(frozen=True, slots=True)
class ForgetParameters(Parameters):
    """The session to delete."""

    session: SessionName
    with_children: Annotated[
        bool,
        Doc(
            "Also the sessions that came of it: judged again, continued, retried.",
            label="With sessions that came of it",
        ),
    ] = False


@public
@dataclass(frozen=True, slots=True)
class Deletion:
    """Deleted sessions, and files that still hold their text.

    Parameters
    ----------
    sessions
        The sessions that were deleted.
    children
        Sessions derived from them, which still hold their text, and how.
    set_aside
        Records of interrupted sessions that were deleted with them.
    note
        Where their text can still be read, and until when; null: nowhere.
    """

    sessions: tuple[str, ...]
    children: Mapping[str, str]
    set_aside: int
    note: str | None


@operation("forget", delete="/sessions/{session}", tag="sessions", changes=True, destroys=True)
def forget(store: SessionStore, parameters: ForgetParameters) -> Deletion:
    """Delete a session with its answers, ballots and numbers. It cannot be undone.

    Records of it that were set aside when it was interrupted are deleted, too. What is left is
    what lies elsewhere: saved files, exports, lakes, backups and damaged copies of the history. A
    session that came of it, judged again or continued, holds its text and stays; it is named, and
    goes too with `with_children`.
    """
    return delete_sessions(
        store, [store.whole_name(parameters.session)], with_children=parameters.with_children
    )


def delete_sessions(
    store: SessionStore, sessions: Iterable[str], *, with_children: bool
) -> Deletion:
    """Delete sessions by their whole names."""
    chosen, children = [*sessions], dict[str, str]()
    with suppress(HistoryConflict):  # a server may keep no history
        children = descendants(store.history, chosen)
    if with_children:
        chosen, children = [*chosen, *children], {}
    note = store.delete(chosen)
    return Deletion(tuple(chosen), children, forget_aside(chosen), note)


def descendants(history: History, sessions: Iterable[str]) -> dict[str, str]:
    """Find the sessions that came of these, or of those, and how; none of these is among them."""
    chosen = [*sessions]
    known: dict[str | None, list[SessionSummary]] = {}
    for summary in history.find() if len(chosen) > MANY else ():
        known.setdefault(summary.parent, []).append(summary)
    seen, relations, waiting = {*chosen}, dict[str, str](), [*chosen]
    while waiting:
        parent = waiting.pop()
        for child in known.get(parent, ()) if known else history.find(parent=parent):
            if child.session not in seen:
                seen.add(child.session)
                relations[child.session] = child.relation or "came of it"
                waiting.append(child.session)
    return relations
