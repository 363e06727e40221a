"""Stored events of sessions: written once, in order, by one holder."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.record import event_from_json, event_to_json
from witan.deliberation.session import Session
from witan.errors import HistoryError, SessionFileError
from witan.history.database import Database
from witan.history.rows import COUNCIL, SessionRow, insert_sessions, lock_session, to_microseconds

PAGE_BYTES = 8_000_000
"""Most bytes of events that a check reads at once, unless a single event is longer."""

_COLUMNS = ("session", "seq", "kind", "at_us", "body")

EventRow = tuple[str, int, str, int, str]
"""A stored event, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The next events of one session from one writer.

    Parameters
    ----------
    holder
        The token of the writer.
    closing
        The whole session, if its last event is among these.
    """

    opened: SessionOpened
    holder: str
    events: tuple[Event, ...]
    closing: Session | None = None

    @property
    def session(self) -> str:
        """The session's name."""
        return self.opened.session


def read_events(database: Database, session: str) -> list[Event]:
    """Read the events of a session, in order."""
    return [_parse(database, session, seq, body) for seq, body in _bodies(database, session)]


def _parse(database: Database, session: str, seq: int, body: str) -> Event:
    name = f"event {seq} of the session {session}"
    try:
        return event_from_json(body, name)
    except SessionFileError as error:
        raise HistoryError(
            database.where,
            f"is damaged, or was written by a later Witan: {error}",
            "run witan doctor, which copies it aside and says how to go on",
        ) from error


def unreadable_events(database: Database) -> Iterator[str]:
    """Name the damaged events of a file, reading page by page."""
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


def admit_events(database: Database, batch: EventBatch) -> tuple[Event, ...] | HistoryError:
    """Return the events to store, or why their writer may not.

    An error is returned, not raised: other sessions of the transaction go on.
    """
    if _insert_opening(database, batch):
        return batch.events
    holder = lock_session(database, batch.session)
    if holder is None:
        return _refusal(database, batch, "was forgotten", "ask the question anew")
    new = _new_events(database, batch)
    if new != () and holder != batch.holder:
        problem = "was taken up by another process, or is closed"
        return _refusal(database, batch, problem, "let that process go on, or take it up again")
    if new is None:
        problem = "went on otherwise in the history: two runs of it are never merged"
        return _refusal(database, batch, problem, "take it up from the history")
    return new


def event_rows(session: str, events: Sequence[Event]) -> list[EventRow]:
    """Make the rows of a session's events."""
    return [(session, e.seq, e.kind, to_microseconds(e.at), event_to_json(e)) for e in events]


def insert_events(database: Database, rows: Sequence[EventRow]) -> None:
    """Insert admitted events of any number of sessions."""
    database.insert("events", _COLUMNS, rows)


def opening_row(batch: EventBatch) -> SessionRow:
    """Make the row of an opening session."""
    opened = batch.opened
    return SessionRow(
        session=opened.session,
        at=opened.at,
        category=opened.category,
        simulated=opened.simulated,
        source=COUNCIL,
        status="interrupted",
        question=opened.question,
        holder=batch.holder,
        parent=opened.parent,
        relation=opened.relation,
        judges_only=bool(opened.answers),
    )


def _insert_opening(database: Database, batch: EventBatch) -> bool:
    """Insert the row of an opening session; true if it is new."""
    begins = bool(batch.events) and isinstance(batch.events[0], SessionOpened)
    return begins and insert_sessions(database, [opening_row(batch)], ignore_existing=True) == 1


def _new_events(database: Database, batch: EventBatch) -> tuple[Event, ...] | None:
    """Return the events after the stored ones; None if those differ."""
    params = {"session": batch.session}
    [(last,)] = database.rows("SELECT MAX(seq) FROM events WHERE session = :session", params)
    if last is None or not batch.events or batch.events[0].seq > last:
        return batch.events
    stored = dict(_bodies(database, batch.session))
    for event in batch.events:
        if event.seq <= last and not _same(event, stored.get(event.seq)):
            return None
    return tuple(event for event in batch.events if event.seq > last)


def _same(event: Event, body: str | None) -> bool:
    # A record of an earlier Witan may lack fields; the values still agree.
    return body is not None and (event_to_json(event) == body or event_from_json(body) == event)


def _refusal(database: Database, batch: EventBatch, problem: str, remedy: str) -> HistoryError:
    return HistoryError(database.where, f"the session {batch.session} {problem}", remedy)


def _bodies(database: Database, session: str) -> list[tuple[int, str]]:
    sql = "SELECT seq, body FROM events WHERE session = :session ORDER BY seq"
    return [(seq, body) for seq, body in database.rows(sql, {"session": session})]
