"""List the sessions of a history."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from witan.errors import InvalidParameter
from witan.history import PageCursor, Search, SessionSummary
from witan.service.catalogue import operation, redacts
from witan.service.parameters import Constraint, Doc
from witan.service.redaction import redact_summaries
from witan.service.stored_sessions import SessionStore, WindowParameters


@dataclass(frozen=True, slots=True)
class SessionsParameters(WindowParameters):
    """Sessions to list."""

    text: Annotated[
        str | None,
        Doc(
            "Only sessions whose question or final answer has these words.",
            positional="words",
            label="Words",
        ),
    ] = None
    status: Annotated[
        Literal["complete", "degraded", "failed", "interrupted"] | None,
        Doc("Only sessions that ended so, or did not end.", "Which sessions"),
    ] = None
    simulated: Annotated[
        bool | None,
        Doc(
            "Only simulated sessions, or only the others.",
            "Which sessions",
            label="Simulated sessions",
        ),
    ] = None
    parent: Annotated[
        str | None,
        Doc(
            "Only sessions that came of this one.", "Which sessions", "ID", label="Came of session"
        ),
    ] = None
    limit: Annotated[
        int,
        Constraint(ge=1, le=10_000),
        Doc("List at most this many.", "Which sessions", label="Sessions per page"),
    ] = 20
    after: Annotated[
        str | None,
        Doc("Continue a list: the `next` of the page before.", "Which sessions", "PLACE"),
    ] = None

    def __post_init__(self) -> None:
        """Refuse what no list can be of, before anything is opened."""
        WindowParameters.__post_init__(self)
        _ = self.search, self.cursor

    @property
    def search(self) -> Search:
        """The sessions that are meant."""
        return Search(
            self.text,
            self.since,
            self.until,
            self.category,
            self.status,
            simulated=self.simulated,
            parent=self.parent,
        )

    @property
    def cursor(self) -> PageCursor | None:
        """The last session of the page before."""
        if self.after is None:
            return None
        at, _, name = self.after.partition(" ")
        try:
            moment = datetime.fromisoformat(at)
        except ValueError:
            moment = None
        if moment is None or moment.utcoffset() is None or not name:
            raise InvalidParameter("after", self.after, "the `next` of a list of sessions")
        return moment, name


@dataclass(frozen=True, slots=True)
class SessionList:
    """Sessions, the latest first.

    Parameters
    ----------
    history
        Where they are stored; for clients of a server, the kind of database.
    sessions
        A line for each.
    short
        Name of a session to its shortest unambiguous beginning.
    next
        Where the next page begins, for `after`; null: this is the last page.
    """

    history: str
    sessions: tuple[SessionSummary, ...]
    short: Mapping[str, str]
    next: str | None


@redacts(SessionList)
def _redact(listing: SessionList) -> SessionList:
    return replace(
        listing,
        history=listing.history.partition(":")[0],
        sessions=tuple(redact_summaries(listing.sessions)),
    )


@operation("sessions", get="/sessions", tag="sessions")
def sessions(store: SessionStore, parameters: SessionsParameters) -> SessionList:
    """List sessions, the latest first; with `text` those that have its words.

    An imported session stands by its own time, or where its file says none by that of the import.
    Simulated sessions are marked.
    """
    history = store.history
    found, cursor = history.page(parameters.search, parameters.limit, parameters.cursor)
    parents = (line.parent for line in found if line.parent is not None)
    return SessionList(
        history.url,
        tuple(found),
        history.short_names([*(line.session for line in found), *parents]) if found else {},
        None if cursor is None else f"{cursor[0].isoformat()} {cursor[1]}",
    )
