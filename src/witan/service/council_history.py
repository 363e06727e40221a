"""A council's sessions as a history keeps them, used from Python."""

import logging
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

import anyio

from witan.core.stats.learning import Learned
from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.plan import TYPICAL, Lengths
from witan.deliberation.recorder import CallGuard, Listener
from witan.deliberation.session import Session
from witan.errors import HistoryError, UnknownName, WitanError
from witan.history import History, LockWait, Recording
from witan.history.history import FileGuard
from witan.history.learning import NO_ALIASES
from witan.service.history_access import forget_expired, is_there
from witan.service.rescue_files import set_aside

_log = logging.getLogger("witan.history")

MOST_HELD = 1_000
"""Sessions whose end nobody waited for, beyond which the oldest are let go of."""


class HistoryRecorder:
    """Records the sessions of a council; the event loop never waits for the disk.

    Parameters
    ----------
    history
        An open history, which stays open; or where one is, which is opened and closed with the
        council's block.
    aliases, keep_days
        Attributes of a history that is opened here; one that is handed over open has its own.
    """

    def __init__(
        self,
        history: History | str | Path,
        aliases: Mapping[str, str] = NO_ALIASES,
        keep_days: int | None = None,
    ) -> None:
        self._given = history
        self._aliases = aliases
        self.keep_days = keep_days
        self._history: History | None = None
        self._recordings: dict[str, Recording] = {}
        self._failure: Exception | None = None
        self._waited = False

    async def open(self) -> None:
        """Open the history, if that is not done, and see that it can be written.

        Raises
        ------
        HistoryError
            If it cannot be opened or written, or another process keeps it locked.
        """
        self._history = await anyio.to_thread.run_sync(self._opened)
        self._whereabouts = FileGuard(self._history)

    def _opened(self) -> History:
        given = self._given
        if isinstance(given, History):
            given.require_writable(self.lock_wait())
            return given
        history = History.open(given, lock_wait=self.lock_wait())
        history.aliases, history.keep_days = self._aliases, self.keep_days
        with ExitStack() as undo:
            undo.callback(history.close)
            history.require_writable(self.lock_wait())
            undo.pop_all()
        return history

    async def close(self) -> None:
        """Wait until everything told is durable.

        Raises
        ------
        HistoryError
            If some of it is not kept.
        """
        with anyio.CancelScope(shield=True):
            try:
                for session in [*self._recordings]:
                    await self.flush(session)
                if self._failure is not None:
                    raise self._failure
            finally:
                history, self._history = self._history, None
                if history is not None and history is not self._given:
                    await anyio.to_thread.run_sync(history.close)

    def learn(self, reviewers: Collection[str] = (), *, without: str | None = None) -> Learned:
        """Learn what the history teaches the council."""
        assert self._history is not None  # noqa: S101 - a council asks only when it is open
        return self._history.learn(reviewers, without=without)

    def lengths(self) -> Lengths:
        """Read how long earlier replies were; as published where there is no history to read."""
        place = self._given if self._history is None else self._history
        try:
            if isinstance(place, History):
                return place.lengths()
            if not is_there(str(place)):
                return TYPICAL
            with History.open(place, reading=True, lock_wait=self.lock_wait()) as history:
                return history.lengths()
        except (WitanError, ValueError):
            return TYPICAL  # a plan needs no history

    def listening(self, listener: Listener | None) -> Listener:
        """Return a journal of one session, which shows it to this listener."""
        assert self._history is not None  # noqa: S101 - a council asks only when it is open
        self._waited = False
        return _Journal(self, self._history.recording(), listener)

    def hold(self, session: str, recording: Recording) -> None:
        """Note which stream a session is told to."""
        self._recordings[session] = recording
        self._trim()

    def _trim(self) -> None:
        """Let go of the oldest streams, which nobody waits for; what failed is said at the end."""
        while len(self._recordings) > MOST_HELD:
            oldest = self._recordings.pop(next(iter(self._recordings)))
            if self._failure is None:
                self._failure = oldest.failure

    async def claim(self, session: str) -> None:
        """Take over what the history holds of a session that is to go on, if it holds any."""
        assert self._history is not None  # noqa: S101 - a council asks only when it is open
        try:
            await anyio.to_thread.run_sync(self._history.claim, session)
        except UnknownName:
            return

    async def settle(self, session: Session) -> Session:
        """Wait until a session is durable; one that is not is written to a file.

        Raises
        ------
        HistoryError
            If the history did not keep it; it names the file.
        """
        try:
            await self.flush(session.id)
            self._whereabouts.check()
        except HistoryError as error:
            try:
                path = await anyio.to_thread.run_sync(set_aside, session)
            except (WitanError, OSError) as failure:
                remedy = f"nor could its record be written: {failure}"
            else:
                remedy = f"the record of the session is in {path}"
            raise HistoryError(error.where, error.problem, remedy) from error
        await self._forget_expired()
        return session

    async def _forget_expired(self) -> None:
        assert self._history is not None  # noqa: S101 - a session is settled while it is open
        if self._history.keep_days is None:
            return
        try:
            await anyio.to_thread.run_sync(forget_expired, self._history, self.lock_wait())
        except HistoryError as error:  # the session is durable: the next one tries again
            _log.warning("older sessions could not be deleted: %s", error)

    async def flush(self, session: str) -> None:
        """Wait until what was told of a session is durable."""
        recording = self._recordings.pop(session, None)
        if recording is not None:
            await anyio.to_thread.run_sync(recording.flush, self.lock_wait())

    def lock_wait(self) -> LockWait:
        """Return a bounded wait for other processes, logged once a session."""
        return LockWait(self._wait)

    def _wait(self, said: str) -> None:
        if not self._waited:
            self._waited = True
            _log.warning("%s", said)


class _Journal:
    """Keeps one session in a history before whoever listens is shown it."""

    def __init__(
        self, recorder: HistoryRecorder, recording: Recording, listener: Listener | None
    ) -> None:
        self._kept, self._recording, self._listener = recorder, recording, listener
        self._meanwhile = recorder.lock_wait()

    def keep(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, SessionOpened):
            self._kept.hold(event.session, self._recording)
        self._recording.append(event)

    def flush(self) -> None:
        """Hold nothing back, as nothing is held back."""

    async def commit(self) -> int:
        """Wait until it is durable; what is not is said when the session ends."""
        return await self._recording.commit(self._meanwhile)

    def __call__(self, event: Event) -> None:
        """Show an event to whoever listens."""
        if self._listener is not None:
            self._listener(event)

    async def before_call(self, *, recorded: bool) -> None:
        """Let whoever guards the calls do so."""
        if isinstance(self._listener, CallGuard):
            await self._listener.before_call(recorded=recorded)
