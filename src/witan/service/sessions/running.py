"""Running and recently ended sessions: streams of events, tasks, observers, registry."""

import logging
import secrets
from array import array
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2s
from logging import Logger
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio

from witan.deliberation import events as e
from witan.deliberation.events import Event, Listener
from witan.deliberation.record import event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, NothingToCount, UnknownName
from witan.service.catalogue import redact
from witan.service.redaction import SessionRedactor, public_error
from witan.service.sessions.spending import Client

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
    """Log unexpected errors of this block, and continue after it."""
    mishap = ContainedError()
    try:
        yield mishap
    except reraise:
        raise
    except Exception as error:  # rules, models and providers may be foreign code
        log.exception(words, *arguments, extra={"fields": dict(fields)} if fields else None)
        mishap.failure = error


MARK_BYTES = 4

MOST_DIGITS = 18

Piece: TypeAlias = e.AnswerDelta | e.SynthesisDelta


class StreamMessage:
    """An event as readers receive it.

    `is_simulated`: whether any seat of the session plays a script.
    `mark`: mark of a piece of text; None: the mark is a hash of the event.
    """

    __slots__ = ("_is_simulated", "_json", "_mark", "event")

    def __init__(self, event: e.Event, *, is_simulated: bool, mark: str | None = None) -> None:
        self.event = event
        self._is_simulated = is_simulated
        self._mark = mark
        self._json: bytes | None = None

    @property
    def seq(self) -> int:
        """Number of the event; the last one's for merged pieces."""
        return self.event.seq

    @property
    def json(self) -> bytes:
        """The event as one line of JSON, encoded once for all readers."""
        if self._json is None:
            self._json = event_to_json(self.event, is_simulated=self._is_simulated).encode()
        return self._json

    @property
    def n_bytes(self) -> int:
        """Length of its JSON, which is not stored for that."""
        if self._json is not None:
            return len(self._json)
        return len(event_to_json(self.event, is_simulated=self._is_simulated))

    @property
    def mark(self) -> str:
        """A mark to distinguish events with the same number."""
        if self._mark is None:
            payload = self.json
            if self.event.provisional:  # storing an event does not change its mark
                event = replace(self.event, provisional=False)
                payload = event_to_json(event, is_simulated=self._is_simulated).encode()
            self._mark = blake2s(payload, digest_size=MARK_BYTES).hexdigest()
        return self._mark

    @property
    def id(self) -> str:
        """Number and mark, by which a reader names its last event."""
        return f"{self.seq}-{self.mark}"

    def part_after(self, after: int) -> "StreamMessage":
        """Return the part after a lower number."""
        del after
        return self


class TextRun(StreamMessage):
    """Old pieces of a text, merged into one.

    It has its own mark: a reader that received it may still lack pieces of other texts between its
    own, which are sent after it.

    `seqs`, `ends`: the number of each piece, and where it ended, for readers that received only
    some.
    """

    __slots__ = ("_piece", "ends", "seqs")

    def __init__(self, messages: Sequence[StreamMessage], *, is_simulated: bool) -> None:
        self.seqs, self.ends = array("q"), array("q")
        pieces = [each.event for each in messages if isinstance(each.event, Piece)]
        length = 0
        for each, piece in zip(messages, pieces, strict=True):
            if isinstance(each, TextRun):
                self.seqs.extend(each.seqs)
                self.ends.extend(array("q", (length + end for end in each.ends)))
            else:
                self.seqs.append(piece.seq)
                self.ends.append(length + len(piece.text))
            length += len(piece.text)
        self._piece: Piece = replace(pieces[-1], text="".join(piece.text for piece in pieces))
        mark = secrets.token_hex(MARK_BYTES)
        super().__init__(self._piece, is_simulated=is_simulated, mark=mark)

    def part_after(self, after: int) -> StreamMessage:
        """Return the rest of the text after the piece of this number."""
        n_heard = bisect_right(self.seqs, after)
        if not n_heard:
            return self
        rest = replace(self._piece, text=self._piece.text[self.ends[n_heard - 1] :])
        return StreamMessage(rest, is_simulated=self._is_simulated, mark=self._mark)


def resume_point(messages: Sequence[StreamMessage], last: str, mark: str | None = None) -> int:
    """Return the number of a reader's last event; 0 if unsure.

    `messages`: the messages so far, in order.
    `last`: the `StreamMessage.id` that the reader received last, or its number alone.
    `mark`: mark of the pieces of text in this stream.
    """
    number, dash, mark_text = last.partition("-")
    if not (number.isascii() and number.isdecimal()):
        return 0
    seq = int(number[:MOST_DIGITS])
    if not dash or mark_text == mark:
        return seq
    at = bisect_right(messages, seq, key=lambda each: each.seq)
    if not at or isinstance(messages[at - 1], TextRun):
        return 0
    return seq if messages[at - 1].seq == seq and messages[at - 1].mark == mark_text else 0


PACE_SECONDS = 0.04
"""Seconds for which pieces of a text are gathered into one message."""

MAX_RECENT_PIECES = 128
"""Least pieces of a growing text to keep separate; twice as many at most."""

_Text = tuple[str, str | None, int]
"""The text that a piece belongs to: answer or synthesis, seat, round."""


@dataclass(slots=True)
class _PendingText:
    """A growing text: its unsent piece, and its number of separate pieces."""

    told_at: float = 0.0
    pending: Piece | None = None
    n_single: int = 0


class Stream:
    """The shared log of one session.

    `mark`: mark of its pieces, unique to this stream.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.mark = secrets.token_hex(MARK_BYTES)
        self._log: list[StreamMessage] = []
        self._kept_events: list[e.Event] = []
        self._veil: SessionRedactor | None = None
        self._texts: dict[_Text, _PendingText] = {}
        self._is_waiting = False
        self._gather_event = anyio.Event()
        self._wake = anyio.Event()
        self._is_simulated = False
        self.has_ended = False
        self.failure: str | None = None

    def take(self, event: e.Event) -> None:
        """Publish an event; buffer pieces of texts briefly."""
        if isinstance(event, Piece):
            self._buffer_piece(event)
            return
        if isinstance(event, e.SessionOpened):
            self._is_simulated, self._veil = event.is_simulated, SessionRedactor(event)
        self._kept_events.append(event)
        self.flush()
        self._forget_pieces(event)
        self._publish(event)

    def end(self, failure: str | None = None) -> None:
        """End the stream of a closed, interrupted or failed session."""
        if self.has_ended:
            return
        self.flush()
        self.has_ended, self.failure = True, failure
        self._gather_event.set()
        self._wake_readers()

    @property
    def is_closed(self) -> bool:
        """True once the session was closed."""
        return bool(self._log) and isinstance(self._log[-1].event, e.SessionClosed)

    @property
    def is_interrupted(self) -> bool:
        """True if it ended before the session was closed."""
        return self.has_ended and not self.is_closed

    @property
    def public_events(self) -> list[e.Event]:
        """The messages so far, without pieces of texts."""
        return [entry.event for entry in self._log if not isinstance(entry.event, Piece)]

    @property
    def events(self) -> tuple[e.Event, ...]:
        """The events as they happened, with private words of seats."""
        return tuple(self._kept_events)

    @property
    def n_bytes(self) -> int:
        """Length of all published events, as JSON."""
        return sum(entry.n_bytes for entry in self._log)

    def __len__(self) -> int:
        return len(self._log)

    async def follow(self, after: int = 0) -> AsyncGenerator[StreamMessage, None]:
        """Yield published messages after number `after`, then new ones, until the end.

        Messages may be published between two of them; a text completed meanwhile is sent whole.
        """
        while True:
            for entry in self.messages_after(after):
                after = entry.seq
                yield entry
            if self._log and self._log[-1].seq > after:
                continue
            if self.has_ended:
                return
            await self.wait_for_change()

    def resume_point(self, last: str) -> int:
        """Return the number for a reader to continue after."""
        return resume_point(self._log, last, self.mark)

    async def wait_for_change(self) -> None:
        """Wait for a published message or the end of the stream."""
        await self._wake.wait()

    def messages_after(self, after: int) -> tuple[StreamMessage, ...]:
        """Return the messages so far with a number above `after`."""
        # Sliced, as the log may change between two readings.
        rest = self._log[bisect_right(self._log, after, key=lambda entry: entry.seq) :]
        return tuple(entry.part_after(after) for entry in rest)

    async def pace(self) -> None:
        """Publish buffered pieces at intervals, until the end."""
        while not self.has_ended:
            await self._gather_event.wait()
            if not self.has_ended:
                await anyio.sleep(PACE_SECONDS)
            self.flush()

    def flush(self) -> None:
        """Publish buffered pieces now."""
        if not self._is_waiting:
            return
        self._is_waiting, self._gather_event = False, anyio.Event()
        now = self._seconds()
        pending = [(text.pending, text) for text in self._texts.values() if text.pending]
        for piece, text in sorted(pending, key=lambda pair: pair[0].seq):
            self._publish_piece(text, piece)
            text.told_at, text.pending = now, None

    def _buffer_piece(self, piece: Piece) -> None:
        text = _text_of(piece)
        gathering = self._texts.get(text)
        if gathering is None or (
            not self._is_waiting and self._seconds() - gathering.told_at >= PACE_SECONDS
        ):
            # Readers wait for the first piece of a text.
            self.flush()
            if gathering is None:
                gathering = self._texts[text] = _PendingText()
            gathering.told_at = self._seconds()
            self._publish_piece(gathering, piece)
            return
        pending_piece = gathering.pending
        gathering.pending = (
            piece if pending_piece is None else replace(piece, text=pending_piece.text + piece.text)
        )
        if not self._is_waiting:
            self._is_waiting = True
            self._gather_event.set()

    def _publish_piece(self, text_state: _PendingText, piece: Piece) -> None:
        """Publish a piece; merge old pieces of long texts."""
        self._publish(piece)
        text_state.n_single += 1
        if text_state.n_single < 2 * MAX_RECENT_PIECES:
            return
        text = _text_of(piece)
        own = [each for each in self._log if _belongs_to(each.event, text)]
        passage = TextRun(own[:-MAX_RECENT_PIECES], is_simulated=self._is_simulated)
        last, recent = own[-MAX_RECENT_PIECES - 1], {id(each) for each in own[-MAX_RECENT_PIECES:]}
        self._log = [
            passage if each is last else each
            for each in self._log
            if each is last or id(each) in recent or not _belongs_to(each.event, text)
        ]
        text_state.n_single = MAX_RECENT_PIECES

    def _forget_pieces(self, event: e.Event) -> None:
        """Drop the pieces of a complete or void text."""
        ended_part = _ended_by(event)
        if ended_part is None:
            return
        stage, seat = ended_part
        for text in [t for t in self._texts if t[0] == stage and t[1] == seat]:
            del self._texts[text]
        self._log = [
            entry
            for entry in self._log
            if not isinstance(entry.event, Piece) or _text_of(entry.event)[:2] != ended_part
        ]

    def _publish(self, event: e.Event) -> None:
        event = event if self._veil is None else self._veil(event)
        mark = self.mark if isinstance(event, Piece) else None
        self._log.append(StreamMessage(event, is_simulated=self._is_simulated, mark=mark))
        self._wake_readers()

    def _wake_readers(self) -> None:
        waking, self._wake = self._wake, anyio.Event()
        waking.set()


def _belongs_to(event: e.Event, text: _Text) -> bool:
    return isinstance(event, Piece) and _text_of(event) == text


def _text_of(piece: Piece) -> _Text:
    if isinstance(piece, e.AnswerDelta):
        return "answer", piece.seat, piece.round
    return "synthesis", piece.chairman, 1


def _ended_by(event: e.Event) -> tuple[str, str | None] | None:
    """Return the stage and seat of a text that this event ends."""
    match event:
        case e.AnswerDone() | e.AnswerFailed():
            return "answer", event.seat
        case e.SynthesisDone() | e.SynthesisFailedOver():
            return "synthesis", event.chairman
        case e.CallRetried(stage="answer" | "synthesis") | e.TextWithdrawn():
            return event.stage, event.seat
        case _:
            return None


class RunningSession:
    """A session in the registry, from its request until its removal.

    `store`: whether it stays available after its end.
    `failure`: the error that ended it, if any.
    `record_failure`: why its record is not in the history, and where it is; None if it is.
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
        self.failure: Exception | None = None
        self._opening_event = anyio.Event()
        self._end_event = anyio.Event()

    @property
    def has_name(self) -> bool:
        """True once it is opened."""
        return self._id is not None

    @property
    def id(self) -> str:
        """The name of the session."""
        assert self._id is not None  # noqa: S101 - callers get it after its opening
        return self._id

    @property
    def session(self) -> Session:
        """The session so far, as clients see it."""
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
        if self._id is None and self.failure is not None:
            raise self.failure

    async def wait_for_session(self) -> Session:
        """Wait for the end; return the session, which may be interrupted."""
        await self._end_event.wait()
        if self.failure is not None:
            raise self.failure
        return self.session

    async def wait_for_end(self) -> None:
        """Wait until the session has ended in any way."""
        await self._end_event.wait()

    def take(self, event: Event) -> None:
        """Note an event."""
        if isinstance(event, e.SessionOpened) and self._id is None:
            self._id = event.session
        self.stream.take(event)
        self._opening_event.set()

    def close(self, session: Session | None = None, failure: Exception | None = None) -> None:
        """End with a session or a failure."""
        self._session, self.failure = session, failure
        if session is None and failure is None and self._id is None:
            # Cancelled before any event was published.
            self.failure = NothingToCount("the session was interrupted before it was opened")
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
    listeners: list[Listener] = []
    with _contain(observer):
        listeners.append(observer.watch(running_session))

    def hear(event: Event) -> None:
        if not listeners:
            return
        listener = listeners.pop()
        with _contain(observer):
            listener(event)
            listeners.append(listener)

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
"""Most bytes of their records together; the latest always stays."""


class SessionRegistry:
    """Sessions by name, or by an unambiguous prefix.

    Any thread may read. Only the event loop's thread writes, by replacing the mapping, so that
    iteration over the old one is safe.

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
        assert self._history is not None  # noqa: S101 - a session not in memory is stored
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
        self.drop(session_name)  # another process has resumed it
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
