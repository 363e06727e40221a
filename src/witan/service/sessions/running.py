"""Running and recently ended sessions: tasks, observers, registry."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from logging import Logger
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import anyio

from witan.deliberation.events import Event, Listener, SessionOpened
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, NothingToCount, UnknownName
from witan.service.catalogue import redact
from witan.service.redaction import public_error
from witan.service.sessions.spending import Client
from witan.service.sessions.stream import Stream

if TYPE_CHECKING:
    from witan.history import History


NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(slots=True)
class ContainedError:
    """The error of a guarded block, or None."""

    failure: Exception | None = None


@contextmanager
def contain_errors(
    log: Logger,
    words: str,
    *arguments: object,
    fields: Mapping[str, object] = NO_FIELDS,
    reraise: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[ContainedError]:
    """Log unexpected errors of this block, and continue after it.

    Parameters
    ----------
    words, arguments, fields
        Message of the log.
    reraise
        What is raised on.
    """
    mishap = ContainedError()
    try:
        yield mishap
    except reraise:
        raise
    except Exception as error:  # rules, models and providers are others' work
        log.exception(words, *arguments, extra={"fields": dict(fields)} if fields else None)
        mishap.failure = error


class RunningSession:
    """A session in the registry, from its request until its removal.

    Parameters
    ----------
    client
        Its client.
    stream
        Its events.
    store
        Whether it can be found once it has ended.

    Attributes
    ----------
    scope
        What its task runs in.
    unkept
        Why its record is not in the history, and its place; None if it is.
    """

    def __init__(self, client: Client, stream: Stream, *, store: bool = True) -> None:
        self.client = client
        self.stream = stream
        self.store = store
        self.scope = anyio.CancelScope()
        self.record_failure: HistoryError | None = None
        self._id: str | None = None
        self._session: Session | None = None
        self._public_session: Session | None = None
        self._failure: Exception | None = None
        self._opening_event = anyio.Event()
        self._end_event = anyio.Event()

    @property
    def has_name(self) -> bool:
        """True once it was opened."""
        return self._id is not None

    @property
    def failure(self) -> Exception | None:
        """The error that ended it, if any."""
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
            return Session.of(self.stream.public_events)
        if self._public_session is None:
            self._public_session = redact(self._session)
        return self._public_session

    @property
    def record(self) -> Session:
        """The session as recorded, with the private words of its seats."""
        return self._session if self._session is not None else Session.of(self.stream.events)

    @property
    def problem(self) -> str | None:
        """Problem of the record, for clients, or None."""
        return None if self.record_failure is None else public_error(self.record_failure)

    @property
    def under_way(self) -> bool:
        """True while it runs."""
        return not self._end_event.is_set()

    def cancel(self) -> None:
        """Cancel every call; keep all replies so far."""
        self.scope.cancel()

    async def wait_for_name(self) -> None:
        """Wait until it has a name."""
        await self._opening_event.wait()
        if self._id is None and self._failure is not None:
            raise self._failure

    async def wait_for_session(self) -> Session:
        """Wait for the end; return the session, which may be interrupted."""
        await self._end_event.wait()
        if self._failure is not None:
            raise self._failure
        return self.session

    async def wait_for_end(self) -> None:
        """Wait until nothing follows, however it ended."""
        await self._end_event.wait()

    def take(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, SessionOpened) and self._id is None:
            self._id = event.session
        self.stream.take(event)
        if not self._opening_event.is_set():
            self._opening_event.set()

    def close(self, session: Session | None = None, failure: Exception | None = None) -> None:
        """End with a session or a failure."""
        self._session, self._failure = session, failure
        if session is None and failure is None and self._id is None:
            # Cancelled before any event was published.
            self._failure = NothingToCount("the session was interrupted before it was opened")
        self.stream.end(None if failure is None else public_error(failure))
        self._opening_event.set()
        self._end_event.set()


class Observer(Protocol):
    """Observes every session: for metrics, logs and traces."""

    def watch(self, running_session: RunningSession, /) -> Listener:
        """Return a listener for a new session."""
        ...

    def end_session(self, running_session: RunningSession, /) -> None:
        """Note the end of a session, closed or not."""
        ...


_log = logging.getLogger("witan.service")


def watch_session(observer: Observer, running_session: RunningSession) -> Listener:
    """Create an observer's listener; after a failure the session continues without it."""
    hearing: list[Listener] = []
    with _contain(observer):
        hearing.append(observer.watch(running_session))

    def hear(event: Event) -> None:
        if not hearing:
            return
        listener = hearing.pop()
        with _contain(observer):
            listener(event)
            hearing.append(listener)

    return hear


def notify_over(observers: Iterable[Observer], running_session: RunningSession) -> None:
    """Notify every observer of the end of a session."""
    for observer in observers:
        with _contain(observer):
            observer.end_session(running_session)


def _contain(observer: Observer) -> AbstractContextManager[ContainedError]:
    words = "%s failed; the session continues without it"
    return contain_errors(_log, words, type(observer).__name__)


LATELY, LATELY_ALONE = 64, 256
"""Ended sessions to keep in memory, with a history for the others, and without one."""

LATELY_BYTES, LATELY_ALONE_BYTES = 16 * 1024 * 1024, 64 * 1024 * 1024
"""Bytes that their records may have together; the latest always stays."""


class SessionRegistry:
    """Sessions by name, or by an unambiguous prefix.

    Any thread may read. Only the thread of the event loop writes, by replacing the mapping, so
    that iteration over the old one is undisturbed.

    Parameters
    ----------
    history
        History of other sessions, or None.
    """

    def __init__(self, history: "History | None", sessions: Iterable[Session] = ()) -> None:
        self._history = history
        self._of_files = {session.id: session for session in sessions}
        self._by_id: Mapping[str, RunningSession] = {}
        self._bytes_by_ended_session: dict[RunningSession, int] = {}
        self._sessions_taken: set[str] = set()

    @property
    def under_way(self) -> tuple[RunningSession, ...]:
        """Running sessions, earliest first."""
        return tuple(
            running_session for running_session in self._by_id.values() if running_session.under_way
        )

    @property
    def sessions(self) -> tuple[RunningSession, ...]:
        """Running and recently ended sessions, earliest first."""
        return tuple(self._by_id.values())

    def get(self, session: str) -> RunningSession | None:
        """Return a session by its whole name."""
        return self._by_id.get(session)

    def keep_session(self, running_session: RunningSession) -> None:
        """Add a session, in place of its earlier run."""
        earlier_run = self._by_id.get(running_session.id)
        if earlier_run is not running_session:
            if earlier_run is not None:
                self._bytes_by_ended_session.pop(earlier_run, None)
            self._by_id = {**self._by_id, running_session.id: running_session}

    def retire_session(self, running_session: RunningSession) -> None:
        """Drop the sessions that ended first, beyond the limits."""
        if (
            not running_session.has_name
            or self._by_id.get(running_session.id) is not running_session
        ):
            return
        self._bytes_by_ended_session[running_session] = running_session.stream.n_bytes
        has_no_history = self._history is None
        most = LATELY_ALONE if has_no_history else LATELY
        most_bytes = LATELY_ALONE_BYTES if has_no_history else LATELY_BYTES
        while len(self._bytes_by_ended_session) > most or (
            sum(self._bytes_by_ended_session.values()) > most_bytes
            and len(self._bytes_by_ended_session) > 1
        ):
            self.drop(next(iter(self._bytes_by_ended_session)).id)

    def drop(self, session: str) -> None:
        """Remove a session from memory."""
        running_session = self._by_id.get(session)
        if running_session is not None:
            self._bytes_by_ended_session.pop(running_session, None)
            self._by_id = {name: run for name, run in self._by_id.items() if name != session}

    def check_at_rest(self, session: str) -> None:
        """Refuse a running session."""
        running_session = self._by_id.get(session)
        if session in self._sessions_taken or (
            running_session is not None and running_session.under_way
        ):
            problem = f"the session {session} is under way"
            raise HistoryConflict("the server", problem, "let it end, or cancel it, first")

    @contextmanager
    def claim_session(self, session: str) -> Iterator[None]:
        """Prevent others from resuming or deleting a session meanwhile."""
        self.check_at_rest(session)
        self._sessions_taken.add(session)
        try:
            yield
        finally:
            self._sessions_taken.discard(session)

    async def session(self, name: str) -> Session:
        """Return a session as recorded, complete or partial."""
        session_name = await self.resolve_session(name)
        running_session = self._by_id.get(session_name)
        if running_session is not None and not (
            self._history and running_session.stream.is_interrupted
        ):
            return running_session.record
        if session_name in self._of_files:
            return self._of_files[session_name]
        assert self._history is not None  # noqa: S101 - what is not at hand is in it
        try:
            record = await anyio.to_thread.run_sync(self._history.session, session_name)
        except HistoryError:
            if running_session is None:
                raise
            return running_session.record  # it could not be recorded
        if (
            running_session is None
            or running_session.record.events[-1].seq >= record.events[-1].seq
        ):
            return record if running_session is None else running_session.record
        self.drop(session_name)  # another process took it up
        return record

    async def resolve_session(self, name: str) -> str:
        """Return the whole name of a session; ``last`` is the latest."""
        running_by_id = self._by_id
        if name in running_by_id or name in self._of_files:
            return name
        if self._history is not None:
            return await anyio.to_thread.run_sync(self._history.resolve_name, name)
        if name == "last" and running_by_id:
            return next(reversed([*running_by_id]))
        result = [whole for whole in running_by_id if name and whole.startswith(name)]
        if len(result) != 1:
            raise UnknownName("session", name, [*running_by_id])
        return result[0]
