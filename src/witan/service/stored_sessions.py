"""Stored sessions for operations, and the parameters to name them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Protocol

from witan.errors import SessionFileError, UnknownName
from witan.service.parameters import MOMENT, NO_NUL, Constraint, Doc, Parameters

if TYPE_CHECKING:
    from witan.core.stats.leaderboard import Window
    from witan.deliberation.record import ImportRedactor
    from witan.deliberation.session import Session
    from witan.history import History
    from witan.service.operations.ask import StartRequest
    from witan.service.session_records import CouncilSession
    from witan.service.sessions.manager import Service
    from witan.service.sessions.running import RunningSession
    from witan.service.sessions.spending import Client

NUL_FREE = Constraint(pattern=NO_NUL)
"""Text that every store can hold."""

Name = Annotated[str, NUL_FREE, Constraint(min_length=1, max_length=400)]

Text = Annotated[str, NUL_FREE, Constraint(max_length=2_000_000)]

SessionName = Annotated[
    Name, Doc("Session name, an unambiguous prefix, or `last`.", metavar="ID", positional="one")
]


@dataclass(frozen=True, slots=True)
class SessionRequest(Parameters):
    """Name of a session."""

    session: SessionName


@dataclass(frozen=True, slots=True)
class WindowParameters(Parameters):
    """Sessions by the time they were asked, and by category."""

    since: Annotated[
        datetime | None,
        MOMENT,
        Doc(
            "Only sessions since this time: 30d, 12h or 2026-01-31.",
            "Which sessions",
            "TIME",
            brief="30d, 12h or 2026-01-31",
        ),
    ] = None
    until: Annotated[
        datetime | None,
        MOMENT,
        Doc("Only sessions before this time.", "Which sessions", "TIME", brief=""),
    ] = None
    category: Annotated[
        str | None, Doc("Only sessions of this category.", "Which sessions", "NAME", brief="")
    ] = None

    def __post_init__(self) -> None:
        """Refuse a window with its end before its start."""
        _ = self.window

    @property
    def window(self) -> "Window":
        """The window of these sessions."""
        from witan.core.stats.leaderboard import Window

        return Window(self.since, self.until, self.category)


@dataclass(frozen=True, slots=True)
class ClientService:
    """A service that acts for one of its clients.

    `hops`: the servers that the request came through.
    """

    service: "Service"
    client: "Client"
    hops: tuple[str, ...] = ()

    async def start(self, request: "StartRequest") -> "RunningSession":
        """Start a session as requested."""
        return await self.service.start(request, self.client, self.hops)


class SessionStore(Protocol):
    """A history's stored sessions, and the client."""

    @property
    def history(self) -> "History":
        """The history, or `HistoryConflict` if there is none."""
        ...

    @property
    def shared_history(self) -> "History | None":
        """History of other sessions, to learn from; None without one."""
        ...

    @property
    def show_import(self) -> "ImportRedactor":
        """The redaction of imported sessions for the client."""
        ...

    def record(self, session: str) -> "Session | None":
        """Return a session by its full name; None for imported ballots."""
        ...

    def describe(self, session: "Session") -> "CouncilSession":
        """Add facts beside a session's record."""
        ...

    def whole_name(self, name: str) -> str:
        """Complete the name of a session; ``last`` is the latest."""
        ...

    def voter(self, person: str | None) -> str:
        """Return the name for a person's vote."""
        ...

    def delete(self, sessions: Sequence[str]) -> str | None:
        """Delete sessions; return where their text remains, and how long."""
        ...


def describe_session(history: "History | None", session: "Session") -> "CouncilSession":
    """Add people's votes and later sessions from the history."""
    from witan.service.session_records import CouncilSession

    if history is None:
        return CouncilSession(session)
    try:
        ballots = history.ballots(session.id)
    except UnknownName:  # it runs here and is not recorded
        return CouncilSession(session)
    children = {
        child.session: child.relation or "followed"
        for child in reversed(history.find(parent=session.id))
    }
    votes = tuple(ballot for ballot in ballots if ballot.kind == "human")
    return CouncilSession(session, votes, children)


def check_continued(name: str, session: "Session") -> None:
    """Refuse to continue a session without a final answer."""
    if session.status == "interrupted" and session.synthesis is None:
        raise SessionFileError(name, "was interrupted before its final answer; resume it first")
    if session.text is None:
        raise SessionFileError(name, "has no final answer to continue from")
