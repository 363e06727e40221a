"""The sessions that a service has at hand: those under way, and those that ended lately."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio

from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, UnknownName
from witan.history import History
from witan.service.sessions.running import RunningSession

__all__ = ["SessionRegistry"]

LATELY, LATELY_ALONE = 64, 256
"""Sessions at hand after they have ended, with a history to find the others in, and without."""

LATELY_BYTES, LATELY_ALONE_BYTES = 16 * 1024 * 1024, 64 * 1024 * 1024
"""How long their records may be together; the latest is at hand however long it is."""


class SessionRegistry:
    """Sessions by name, and by a beginning of it.

    Any thread may read; only that of the event loop changes what is at hand, by putting a new
    mapping in place of the old, so that whoever goes through the old one goes on undisturbed.

    Parameters
    ----------
    history
        Where the others are; None: there are no others.
    """

    def __init__(self, history: History | None) -> None:
        self._history = history
        self._known: Mapping[str, RunningSession] = {}
        self._over: dict[RunningSession, int] = {}
        self._taken: set[str] = set()

    @property
    def under_way(self) -> tuple[RunningSession, ...]:
        """The sessions that go on now, the earliest first."""
        return tuple(running for running in self._known.values() if running.under_way)

    @property
    def all(self) -> tuple[RunningSession, ...]:
        """The sessions that go on now, or ended lately, the earliest first."""
        return tuple(self._known.values())

    def get(self, session: str) -> RunningSession | None:
        """A session by its whole name."""
        return self._known.get(session)

    def opened(self, running: RunningSession) -> None:
        """Keep a session at hand, in place of what it was before it was taken up again."""
        before = self._known.get(running.id)
        if before is not running:
            if before is not None:
                self._over.pop(before, None)
            self._known = {**self._known, running.id: running}

    def over(self, running: RunningSession) -> None:
        """Let go of the sessions that ended first, beyond those that are held at hand."""
        if not running.named or self._known.get(running.id) is not running:
            return
        self._over[running] = running.stream.n_bytes
        alone = self._history is None
        most = LATELY_ALONE if alone else LATELY
        most_bytes = LATELY_ALONE_BYTES if alone else LATELY_BYTES
        while len(self._over) > most or (
            sum(self._over.values()) > most_bytes and len(self._over) > 1
        ):
            self.drop(next(iter(self._over)).id)

    def drop(self, session: str) -> None:
        """Have a session at hand no longer."""
        running = self._known.get(session)
        if running is not None:
            self._over.pop(running, None)
            self._known = {name: known for name, known in self._known.items() if name != session}

    def check_at_rest(self, session: str) -> None:
        """Refuse a session that is under way.

        Raises
        ------
        HistoryConflict
            If it is, or is about to be.
        """
        running = self._known.get(session)
        if session in self._taken or (running is not None and running.under_way):
            problem = f"the session {session} is under way"
            raise HistoryConflict("the server", problem, "let it end, or cancel it, first")

    @contextmanager
    def alone(self, session: str) -> Iterator[None]:
        """Let nobody else take up, or delete, a session at the same time.

        Raises
        ------
        HistoryConflict
            As of `check_at_rest`.
        """
        self.check_at_rest(session)
        self._taken.add(session)
        try:
            yield
        finally:
            self._taken.discard(session)

    async def session(self, name: str) -> Session:
        """A session as it is recorded, whole or as far as it came; errors as of `named`."""
        whole = await self.named(name)
        running = self._known.get(whole)
        if running is not None and not (self._history and running.stream.interrupted):
            return running.held
        assert self._history is not None  # noqa: S101 - what is not at hand is in it
        try:
            found = await anyio.to_thread.run_sync(self._history.session, whole)
        except HistoryError:
            if running is None:
                raise
            return running.held  # it could not be recorded
        if running is None or running.held.events[-1].seq >= found.events[-1].seq:
            return found if running is None else running.held
        self.drop(whole)  # another process took it up
        return found

    async def named(self, name: str) -> str:
        """The whole name of a session; ``last`` is the latest.

        Raises
        ------
        UnknownName
            If there is none.
        HistoryConflict
            If several begin so.
        """
        known = self._known
        if name in known:
            return name
        if self._history is not None:
            return await anyio.to_thread.run_sync(self._history.resolve_name, name)
        if name == "last" and known:
            return next(reversed([*known]))
        found = [whole for whole in known if name and whole.startswith(name)]
        if len(found) != 1:
            raise UnknownName("session", name, [*known])
        return found[0]
