"""One session under way in a service."""

from typing import Protocol

import anyio

from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.recorder import Listener
from witan.deliberation.session import Session
from witan.errors import HistoryError, NothingToCount
from witan.service.redaction import public_error, redact_session
from witan.service.sessions.clients import Client
from witan.service.sessions.stream import Stream

__all__ = ["Observer", "RunningSession"]


class RunningSession:
    """A session, from when it is asked for until nobody asks for it any more.

    Parameters
    ----------
    client
        On whose behalf it is held.
    stream
        Its events.

    Attributes
    ----------
    scope
        What its task runs in.
    unkept
        Why its record is not in the history, and where it is; None: it is there.
    """

    def __init__(self, client: Client, stream: Stream) -> None:
        self.client = client
        self.stream = stream
        self.scope = anyio.CancelScope()
        self.unkept: HistoryError | None = None
        self._id: str | None = None
        self._session: Session | None = None
        self._shown: Session | None = None
        self._failure: Exception | None = None
        self._opened = anyio.Event()
        self._over = anyio.Event()

    @property
    def named(self) -> bool:
        """Whether it was opened."""
        return self._id is not None

    @property
    def failure(self) -> Exception | None:
        """What ended it badly; None: nothing did, yet."""
        return self._failure

    @property
    def id(self) -> str:
        """The name of the session."""
        assert self._id is not None  # noqa: S101 - handed out once it is opened
        return self._id

    @property
    def session(self) -> Session:
        """The session as far as it came, as clients see it."""
        if self._session is None:
            return Session.of(self.stream.kept)
        if self._shown is None:
            self._shown = redact_session(self._session)
        return self._shown

    @property
    def held(self) -> Session:
        """The same as it is recorded, with all that its seats are written by."""
        return self._session if self._session is not None else Session.of(self.stream.held)

    @property
    def problem(self) -> str | None:
        """What clients are told of a record that is not in the history; None: it is there."""
        return None if self.unkept is None else public_error(self.unkept)

    @property
    def under_way(self) -> bool:
        """Whether it goes on."""
        return not self._over.is_set()

    def cancel(self) -> None:
        """Stop: every call is cancelled, what came in is kept."""
        self.scope.cancel()

    async def opened(self) -> None:
        """Wait until it has a name.

        Raises
        ------
        WitanError
            If nothing came of it.
        """
        await self._opened.wait()
        if self._id is None and self._failure is not None:
            raise self._failure

    async def ended(self) -> Session:
        """Wait until nothing follows; return the session, which may have been interrupted.

        Raises
        ------
        WitanError
            What ended it badly.
        """
        await self._over.wait()
        if self._failure is not None:
            raise self._failure
        return self.session

    async def over(self) -> None:
        """Wait until nothing follows, however it ended."""
        await self._over.wait()

    def take(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, SessionOpened) and self._id is None:
            self._id = event.session
        self.stream.take(event)
        if not self._opened.is_set():
            self._opened.set()

    def close(self, session: Session | None = None, failure: Exception | None = None) -> None:
        """Nothing follows: `session` is all that came of it, or `failure` is why it ended."""
        self._session, self._failure = session, failure
        if session is None and failure is None and self._id is None:
            # Cancelled before anything was told.
            self._failure = NothingToCount("the session was interrupted before it was opened")
        self.stream.end(None if failure is None else public_error(failure))
        self._opened.set()
        self._over.set()


class Observer(Protocol):
    """Hears of every session: to count them, to write them down, to trace them."""

    def watch(self, running: RunningSession, /) -> Listener:
        """A listener for a session that is about to be held."""
        ...

    def over(self, running: RunningSession, /) -> None:
        """Hear that nothing follows in it, whether or not it was closed."""
        ...
