"""Events of a session in the history: written once, in order, and by their holder alone."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.record import event_from_json, event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryError, SessionFileError
from witan.history.database import Database
from witan.history.rows import COUNCIL, SessionRow, insert_sessions, to_microseconds

PAGE_BYTES = 8_000_000
"""Bytes of events that a check of a whole file holds at once; a longer event alone may be more."""

_COLUMNS = ("session", "seq", "kind", "at_us", "body")

EventRow = tuple[str, int, str, int, str]
"""An event as it is stored, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The next events of one session, as one writer brings them.

    Parameters
    ----------
    token
        What the writer holds the session by.
    closing
        The session, where its last event is among these.
    """

    opened: SessionOpened
    token: str
    events: tuple[Event, ...]
    closing: Session | None = None

    @property
    def session(self) -> str:
        """The session's name."""
        return self.opened.session


def read_events(database: Database, session: str) -> list[Event]:
    """The events of a session, in order."""
    return [_read(database, session, seq, body) for seq, body in _bodies(database, session)]


def _read(database: Database, session: str, seq: int, body: str) -> Event:
    what = f"event {seq} of the session {session}"
    try:
        return event_from_json(body, what)
    except SessionFileError as error:
        raise HistoryError(
            database.where,
            f"is damaged, or was written by a later Witan: {error}",
            "run witan doctor, which copies it aside and says how to go on",
        ) from error


def unreadable_events(database: Database) -> Iterator[str]:
    """Name the events of a file that are no JSON any more, a page of them in memory at a time."""
    session, seq = "", 0
    sizes = (
        "SELECT session, seq, LENGTH(CAST(body AS BLOB)) FROM events"
        " WHERE (session, seq) > (:session, :seq) ORDER BY session, seq LIMIT 5000"
    )
    bodies = (
        "SELECT session, seq, body FROM events"
        " WHERE (session, seq) > (:session, :seq) ORDER BY session, seq LIMIT :most"
    )
    while rows := database.rows(sizes, {"session": session, "seq": seq}):
        ends = accumulate(size for _, _, size in rows)
        most = max(1, sum(end <= PAGE_BYTES for end in ends))
        page = {"session": session, "seq": seq, "most": most}
        for session, seq, body in database.rows(bodies, page):
            try:
                json.loads(body)
            except ValueError:
                yield f"event {seq} of the session {session} is no JSON"


def admit_events(database: Database, piece: EventBatch) -> tuple[Event, ...] | HistoryError:
    """The events that are not in the history yet; or why their writer may not add them.

    A refusal is handed back: the other sessions of the transaction are none of its business.
    """
    if _begin(database, piece):
        return piece.events
    sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
    held = database.rows(sql, {"session": piece.session})
    if not held:
        return _refused(database, piece, "was forgotten", "ask the question anew")
    fresh = _fresh(database, piece)
    if fresh != () and held[0][0] != piece.token:
        problem = "was taken up by another process, or is closed"
        return _refused(database, piece, problem, "let that process go on, or take it up again")
    if fresh is None:
        problem = "went on otherwise in the history: two runs of it are never merged"
        return _refused(database, piece, problem, "take it up from the history")
    return fresh


def event_rows(session: str, events: Sequence[Event]) -> list[EventRow]:
    """The events of a session as rows, one each."""
    return [(session, e.seq, e.kind, to_microseconds(e.at), event_to_json(e)) for e in events]


def insert_events(database: Database, rows: Sequence[EventRow]) -> None:
    """Add events that were admitted, of any number of sessions."""
    database.insert("events", _COLUMNS, rows)


def opened_row(piece: EventBatch) -> SessionRow:
    """The row of a session that was just opened."""
    opened = piece.opened
    return SessionRow(
        session=opened.session,
        at=opened.at,
        category=opened.category,
        simulated=opened.simulated,
        source=COUNCIL,
        status="interrupted",
        question=opened.question,
        holder=piece.token,
        parent=opened.parent,
        relation=opened.relation,
        judges_only=bool(opened.answers),
    )


def _begin(database: Database, piece: EventBatch) -> bool:
    """Write the row of a session that begins here; whether it is new."""
    begins = bool(piece.events) and isinstance(piece.events[0], SessionOpened)
    return begins and insert_sessions(database, [opened_row(piece)], ignore_existing=True) == 1


def _fresh(database: Database, piece: EventBatch) -> tuple[Event, ...] | None:
    """Which events are new, and come after all that is there; None: other events are there."""
    given = {"session": piece.session}
    [(last,)] = database.rows("SELECT MAX(seq) FROM events WHERE session = :session", given)
    if last is None or not piece.events or piece.events[0].seq > last:
        return piece.events
    there = dict(_bodies(database, piece.session))
    for event in piece.events:
        if event.seq <= last and not _same(event, there.get(event.seq)):
            return None
    return tuple(event for event in piece.events if event.seq > last)


def _same(event: Event, body: str | None) -> bool:
    # A record may lack fields that a later Witan writes: then the values still agree.
    return body is not None and (event_to_json(event) == body or event_from_json(body) == event)


def _refused(database: Database, piece: EventBatch, problem: str, remedy: str) -> HistoryError:
    return HistoryError(database.where, f"the session {piece.session} {problem}", remedy)


def _bodies(database: Database, session: str) -> list[tuple[int, str]]:
    sql = "SELECT seq, body FROM events WHERE session = :session ORDER BY seq"
    return [(seq, body) for seq, body in database.rows(sql, {"session": session})]
