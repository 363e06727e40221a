"""Record the sessions of a council: in its history, else in files."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from operator import gt
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from witan.core.stats.learning import Lessons
from witan.deliberation.events import (
    AnswerDone,
    BallotCast,
    Event,
    FruitlessResume,
    Listener,
    SessionClosed,
    SessionOpened,
    SynthesisDone,
    SynthesisStarted,
)
from witan.deliberation.plan import TYPICAL, Lengths
from witan.deliberation.record import event_to_json
from witan.deliberation.recorder import GATHER_SECONDS, UNSEEN_GATHER_SECONDS, find_guard
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, UnknownName, WitanError
from witan.files.session_files import write_session
from witan.history.database import LockWait
from witan.service.history_access import forget_expired, rescue_session
from witan.service.text import clean

if TYPE_CHECKING:
    from witan.history import History, Recording

_log = logging.getLogger("witan.history")

MOST_HELD = 1_000
"""Ended sessions to keep until someone waits for them; beyond that the oldest are dropped."""

NO_ALIASES: Mapping[str, str] = MappingProxyType({})


class ResumedSession:
    """The events of a resumed session, held back until it progresses.

    A closed session cannot be resumed again, even if the missing members failed once more. So
    events are held back until there is a new answer, ballot or final answer, or until a paid call
    begins.

    `earlier_session`: the session before it was resumed.
    `n_recorded`: number of its events already recorded.
    `last_seq`: the number of its last event.
    """

    def __init__(self, earlier_session: Session, n_recorded: int = 0) -> None:
        self.earlier_session = earlier_session
        self.last_seq = earlier_session.events[-1].seq
        self._events: list[Event] = []
        self._n_released = n_recorded
        self._has_progress = False

    def take(self, event: Event) -> Sequence[Event]:
        """Add an event; return the events to store from now on."""
        self._events.append(event)
        self._has_progress = self._has_progress or self._is_progress(event)
        return self.release() if self._has_progress else ()

    def release(self) -> Sequence[Event]:
        """Return the events held back until now."""
        first_released, self._n_released = self._n_released, len(self._events)
        return self._events[first_released:]

    def leave_open(self) -> tuple[Session, Sequence[Event]] | None:
        """Return the session without fruitless events, and its events to keep.

        The session before the resume, plus the highest cost of its calls; None after progress.
        """
        if self._has_progress:
            return None
        ending = next(event for event in self._events if self._ends(event))
        earlier_events = [event for event in self._events if event.seq < ending.seq]
        earlier_events.append(FruitlessResume(seq=ending.seq, at=ending.at, since=self.last_seq))
        session = Session.of(earlier_events)
        if session.cost == self.earlier_session.cost and self._n_released <= len(
            self.earlier_session.events
        ):
            return self.earlier_session, ()
        return session, earlier_events[self._n_released :]

    def _ends(self, event: Event) -> bool:
        """True if an event belongs to the end of the session."""
        by_nobody = isinstance(event, SynthesisStarted) and event.chairman is None
        return event.seq > self.last_seq and (by_nobody or isinstance(event, SessionClosed))

    def _is_progress(self, event: Event) -> bool:
        if event.seq <= self.last_seq:
            return False
        if isinstance(event, SessionClosed):
            return _is_further(self.earlier_session, Session.of(self._events))
        by_nobody = isinstance(event, SynthesisDone) and event.chairman is None
        return isinstance(event, AnswerDone | BallotCast | SynthesisDone) and not by_nobody


def first_difference(one: Session, other: Session) -> int | None:
    """Return the number of the first event that differs in two records.

    None if one is the beginning of the other.
    """
    for event, other_event in zip(one.events, other.events, strict=False):
        # An event read from a file may lack fields, or have rounded numbers.
        if event != other_event and event_to_json(event) != event_to_json(other_event):
            return event.seq
    return None


def _require_continuation(location: str, session: Session, stored: Session) -> None:
    """Refuse to resume a session that has continued in the history."""
    if stored.status != "interrupted":
        problem = "has ended in the history"
    elif first_difference(stored, session) is not None:
        problem = "has continued differently in the history; two runs are never merged"
    elif len(stored.events) > len(session.events):
        problem = "has more events in the history"
    else:
        return
    remedy = "go on from the history's record of it"
    raise HistoryConflict(location, f"the session {session.id} {problem}", remedy)


def _is_further(before: Session, after: Session) -> bool:
    """True if there are more answers, ballots or final answers than before."""
    had, has = (
        (len(s.answers), sum(not ballot.abstained for ballot in s.ballots), _has_ended(s))
        for s in (before, after)
    )
    return after.status == "complete" or any(map(gt, has, had))


def _has_ended(session: Session) -> bool:
    """True with a final answer or an outcome."""
    procedure = session.opening.procedure
    if procedure.mode == "best" or not procedure.synthesis:
        return session.outcome is not None
    return session.synthesis is not None and session.synthesis.chairman is not None


@dataclass(frozen=True, slots=True)
class SessionRemains:
    """The events of an interrupted session, and their place.

    `problem`: why the history does not have them; None if it does, or without a history.
    `in_history`: the history has them.
    `file`: the file that has them; None if none was needed or written, with the reason in
    `failure`.
    """

    session: Session
    problem: str | None
    in_history: bool
    file: Path | None
    failure: str | None


class SessionRecorder:
    """Records a council's sessions without blocking the event loop.

    `history`: an open history, which stays open; or its location, to be opened and closed with the
    council's block. None: files only.
    `aliases`, `keep_days`: attributes for a history opened here; one that is already open has its
    own.
    `file`: file for a session that the history did not store; a resumed session is also written
    there before any call. None: a rescue file.
    `say`: called with a sentence when the end waits for another process; by default logged.
    `problem`: why the history did not store the last session, or None.
    `is_conflict`: whether the history has different events of that session, so cannot store these
    later either.
    `rescue_result`: the file that has that session, or why none could be written.
    `teaches`: whether a council learns from the history.
    `left_open`: a session that was resumed without progress, and stays interrupted.
    `rescued`: the files of all sessions with calls that the history could not store, and could
    import.
    """

    def __init__(
        self,
        history: "History | str | Path | None",
        aliases: Mapping[str, str] = NO_ALIASES,
        keep_days: int | None = None,
        *,
        file: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._destination = history
        self._aliases, self.keep_days = aliases, keep_days
        self._file, self._say = file, say
        self._history: History | None = None
        self._recordings: dict[str, Recording | None] = {}
        self._open_recordings: dict[str, Recording] = {}
        self._resumed_sessions: dict[str, ResumedSession] = {}
        self._journal: _Journal | None = None
        self._resuming: dict[str, _Journal] = {}
        self._failure: Exception | None = None
        self._has_waited = self._is_writable = False
        self.teaches = history is not None
        self.problem: str | None = None
        self.is_conflict = False
        self.rescue_result: Path | WitanError | OSError | None = None
        self.left_open: Session | None = None
        self.rescued: list[Path] = []

    @property
    def events(self) -> Sequence[Event]:
        """The events of the last session, without pieces of texts."""
        return () if self._journal is None else self._journal.events

    async def open(self) -> None:
        """Open the history, and check that it is writable."""
        if self._destination is not None:
            self._history = await anyio.to_thread.run_sync(self._open_history, self._destination)
            self._is_writable = self._history.database.exists

    async def create_history(self) -> None:
        """Create the history, if it was missing, before the first call of a session."""
        if self._history is not None and not self._is_writable:
            create = partial(self._history.require_writable, self.lock_wait(), creating=True)
            await anyio.to_thread.run_sync(create)
            await anyio.lowlevel.checkpoint()  # it may have been cancelled meanwhile
            self._is_writable = True

    def check_file(self) -> None:
        """Check that the history's file is still there."""
        if self._history is not None:
            self._history.database.check_file()

    def _open_history(self, history_or_url: "History | str | Path") -> "History":
        from witan.history import History

        if isinstance(history_or_url, History):
            history_or_url.require_writable(self.lock_wait())
            return history_or_url
        history = History.open(history_or_url, lock_wait=self.lock_wait())
        history.aliases, history.keep_days = self._aliases, self.keep_days
        with ExitStack() as undo:
            undo.callback(history.close)
            history.require_writable(self.lock_wait())
            undo.pop_all()
        return history

    async def close(self) -> None:
        """Wait until every event is durable, or in a file."""
        with anyio.CancelScope(shield=True):
            try:
                for session in [*self._recordings]:
                    await self._flush_or_rescue(session)
                if self._failure is not None:
                    raise self._failure
            finally:
                if self._journal is not None:
                    self._journal.end()
                history, self._history = self._history, None
                if history is not None and history is not self._destination:
                    await anyio.to_thread.run_sync(history.close)

    async def _flush_or_rescue(self, session: str) -> None:
        """Make the events of an unfinished session durable, or write them to a file."""
        recording = self._recordings[session]
        events = () if recording is None else recording.events
        try:
            await self.flush(session)
        except HistoryError as error:
            self._failure = self._failure or error
            record = Session.of(events)
            if record.cost.calls:
                with suppress(WitanError, OSError):
                    file = await anyio.to_thread.run_sync(self.write, record)
                    if not isinstance(error, HistoryConflict):
                        self.rescued.append(file)

    def learn(
        self,
        reviewers: Collection[str] = (),
        *,
        exclude: str | None = None,
        judges: Collection[str] = (),
    ) -> Lessons:
        """Return the history's lessons for the council."""
        assert self._history is not None  # noqa: S101 - a council learns only while it is open
        return self._history.learn(reviewers, exclude=exclude, judges=judges)

    def lengths(self) -> Lengths:
        """Read lengths of earlier replies, or the published ones without a history."""
        from witan.history import History

        place = self._destination if self._history is None else self._history
        try:
            if isinstance(place, History):
                return place.lengths()
            if place is None:
                return TYPICAL
            with History.open(place, reading=True, lock_wait=self.lock_wait()) as history:
                return history.lengths()
        except (WitanError, ValueError):
            return TYPICAL  # a plan works without a history

    def open_journal(self, session: str, listener: Listener | None) -> Listener:
        """Create the journal of a session, with its listener."""
        recording = self._open_recordings.pop(session, None)
        if recording is None and self._history is not None:
            recording = self._history.recording()
        self._has_waited = False
        resumed = self._resumed_sessions.pop(session, None)
        journal = self._journal = _Journal(self, recording, listener, resumed, self._file)
        if resumed is not None:
            self._resuming[session] = journal
        return journal

    def attach_recording(self, session: str, recording: "Recording | None") -> None:
        """Note the recording of a session."""
        self._recordings[session] = recording
        # The oldest finished ones are dropped; `close` raises their failures.
        while len(self._recordings) > MOST_HELD:
            oldest_recording = self._recordings.pop(next(iter(self._recordings)))
            if self._failure is None and oldest_recording is not None:
                self._failure = oldest_recording.failure

    async def begin(self, opening: SessionOpened) -> None:
        """Store the opening of a session; resuming it continues the recording.

        Raises `HistoryError` if it is not stored, or a session has this name.
        """
        if self._history is not None:
            recording = self._history.recording()
            recording.append(opening)
            with ExitStack() as undo:
                undo.callback(recording.end_session)
                if not await recording.commit(self.commit_wait()):
                    await anyio.to_thread.run_sync(recording.flush, self.lock_wait())
                undo.pop_all()
            self._open_recordings[opening.session] = recording
            self.attach_recording(opening.session, recording)

    async def claim(self, session: Session) -> None:
        """Take over the stored record of an interrupted session.

        Raises `HistoryConflict` if the stored record has ended, has more events, or differs.
        """
        begun = session.id in self._open_recordings
        if self._history is not None and not begun:
            location = self._history.database.location
            check = partial(_require_continuation, location, session)
            with suppress(UnknownName):
                await anyio.to_thread.run_sync(
                    partial(self._history.claim, session.id, check=check, is_running=True)
                )
        self._resumed_sessions[session.id] = ResumedSession(session, n_recorded=int(begun))

    async def settle(self, session: Session) -> Session:
        """Wait until a session is durable, or write it to a file.

        Return the session; without progress, still interrupted.
        """
        journal = self._resuming.pop(session.id, None)
        left_open = self.left_open = None if journal is None else journal.leave_open()
        try:
            await self.flush(session.id)
            self.check_file()
        except HistoryError as error:
            self.problem, self.is_conflict = clean(str(error)), isinstance(error, HistoryConflict)
            try:
                self.rescue_result = await anyio.to_thread.run_sync(self.write, session)
            except (WitanError, OSError) as failure:
                self.rescue_result = failure
                remedy = f"and its record could not be written either: {failure}"
            else:
                if not self.is_conflict:
                    self.rescued.append(self.rescue_result)
                remedy = f"the record of the session is in {self.rescue_result}"
            raise HistoryError(error.location, error.problem, remedy) from error
        await self._forget_expired()
        return session if left_open is None else left_open

    async def _forget_expired(self) -> None:
        if self._history is None or self._history.keep_days is None:
            return
        say = self._say or _log_warning
        try:
            result = await anyio.to_thread.run_sync(forget_expired, self._history, self.lock_wait())
        except HistoryError as error:  # the session is durable: the next one tries again
            say(f"older sessions could not be deleted: {clean(str(error))}")
        else:
            if result.note is not None and self._say is not None:
                say(f"older sessions are deleted; {result.note}")

    def end_session(self, session: str) -> None:
        """Let others continue a session whose run has ended or failed."""
        if (recording := self._recordings.get(session)) is not None:
            recording.end_session()
        if self._history is not None:
            self._history.end_claim(session)

    async def flush(self, session: str) -> None:
        """Wait until every event of a session is durable."""
        recording = self._recordings.pop(session, None)
        if recording is not None and recording.is_durable:
            recording.flush()
        elif recording is not None:
            await anyio.to_thread.run_sync(recording.flush, self.lock_wait())

    def interrupt(self) -> SessionRemains | None:
        """Store the running session so far; None without an opening.

        It blocks the event loop until it is done.
        """
        journal = self._journal
        if journal is None or not journal.events:
            return None
        journal.stop()
        if self._history is not None and not self._is_writable:
            self._recordings.clear()
            return None  # it is not recorded, and no model was called
        session, problem = Session.of(journal.events), None
        try:
            journal.flush_now(self.lock_wait())
            self.check_file()
        except HistoryError as error:
            problem = clean(str(error))
        in_history = self._destination is not None and problem is None
        file = failure = None
        try:
            with journal.filing:
                if not in_history:
                    file = self.write(session)
                elif self._file is not None:
                    write_session(session, self._file)
        except (WitanError, OSError) as error:
            failure = clean(str(error))
        return SessionRemains(session, problem, in_history, file, failure)

    def write(self, session: Session) -> Path:
        """Write the requested file, or a rescue file on failure."""
        if self._file is not None:
            with suppress(WitanError, OSError):
                write_session(session, self._file)
                return self._file
        return rescue_session(session)

    def lock_wait(self) -> LockWait:
        """Limit a wait for another process, announced once per session."""
        return LockWait(self._wait)

    def commit_wait(self) -> LockWait:
        """Limit the waits of a session's commits.

        On a terminal only their end is announced.
        """
        return self.lock_wait() if self._say is None else LockWait()

    def _wait(self, sentence: str) -> None:
        if not self._has_waited:
            self._has_waited = True
            (self._say or _log_warning)(sentence)


def _log_warning(sentence: str) -> None:
    _log.warning("%s", sentence)


class _Journal:
    """Records one session before its events are shown to the listener."""

    def __init__(
        self,
        recorder: SessionRecorder,
        recording: "Recording | None",
        listener: Listener | None,
        resumed: ResumedSession | None,
        file: Path | None,
    ) -> None:
        self._recording, self._listener = recording, listener
        self._guard = find_guard(listener)
        self.gather_seconds = UNSEEN_GATHER_SECONDS if listener is None else GATHER_SECONDS
        self._recorder: SessionRecorder | None = recorder
        self._resumed_session, self._file = resumed, file
        self._commit_wait = recorder.commit_wait()
        self._file_is_due = self._is_stopped = False
        self._n_filed = 0
        self.filing = Lock()
        self.events: list[Event] = []

    def keep(self, event: Event) -> None:
        """Accept an event as it happens."""
        if self._is_stopped:
            return
        if isinstance(event, SessionOpened) and self._recorder is not None:
            self._recorder.attach_recording(event.session, self._recording)
        self.events.append(event)
        if self._resumed_session is not None:
            self._record(self._resumed_session.take(event))
        elif self._recording is not None:
            self._recording.append(event)

    def _record(self, events: Iterable[Event]) -> None:
        if self._recording is not None:
            for event in events:
                self._recording.append(event)

    def flush(self) -> None:
        """Commit all events before a paid call."""
        if self._resumed_session is not None and not self._is_stopped:
            self._record(self._resumed_session.release())
            self._file_is_due = True

    async def commit(self) -> int | None:
        """Wait until the events are durable; a failure is reported when the session ends.

        Return the number of the last durable event; None without a history.
        """
        events, durable = tuple(self.events), None
        if self._recording is not None:
            durable = await self._recording.commit(self._commit_wait)
        if self._file is not None and self._file_is_due:
            await anyio.to_thread.run_sync(self._write, events)
        if durable is None or self._resumed_session is None:
            return durable
        return max(durable, self._resumed_session.last_seq)

    def _write(self, events: Sequence[Event]) -> None:
        """Write the file, unless it already has more events.

        A failure is reported when the session ends.
        """
        with self.filing, suppress(WitanError, OSError):
            if self._file is not None and len(events) > self._n_filed:
                write_session(Session.of(events), self._file)
                self._n_filed = len(events)

    def leave_open(self) -> Session | None:
        """Record a fruitless resume; None after progress."""
        if (
            self._resumed_session is None
            or (interrupted := self._resumed_session.leave_open()) is None
        ):
            return None
        session, events = interrupted
        self._record(events)
        return session

    def end(self) -> None:
        """Stop committing, and release the recorder, which refers to this journal."""
        self._recorder, self._commit_wait = None, LockWait()

    def stop(self) -> None:
        """Record and show nothing from now on."""
        if self._resumed_session is not None:
            self._record(self._resumed_session.release())
        self._is_stopped = True

    def flush_now(self, lock_wait: LockWait) -> None:
        """Wait until the events are durable.

        A failure is reported when the session ends.
        """
        self._n_filed = len(self.events)
        if self._recording is not None:
            self._recording.flush(lock_wait)

    def __call__(self, event: Event) -> None:
        """Pass an event to the listeners."""
        if self._listener is not None and not self._is_stopped:
            self._listener(event)

    async def before_call(self, *, is_recorded: bool) -> None:
        """Refuse a call whose session another process continues; ask the guard.

        The session then ends without further calls, and its record is written to a file.
        """
        failure = None if self._recording is None else self._recording.failure
        if isinstance(failure, HistoryConflict):
            raise HistoryConflict(failure.location, failure.problem, failure.remedy)
        if self._guard is not None:
            await self._guard.before_call(is_recorded=is_recorded)
