"""A record of a session that the history has less of: the rest is added, and nothing is merged."""

from witan.deliberation.session import Session
from witan.errors import HistoryConflict
from witan.history.counting import leave
from witan.history.database import Database
from witan.history.holders import another_alive
from witan.history.sessions import complete
from witan.history.stored_events import event_rows, insert_events, read_events
from witan.history.superseding import RETRIED, mark_family
from witan.history.writing import Rows

__all__ = ["completed"]


def completed(database: Database, record: Session, rows: Rows) -> bool:
    """Add what a record has beyond the history; False: the history has another run of the session.

    Whatever an earlier writer still brings is refused from then on. `rows` take what it leaves.

    Raises
    ------
    HistoryConflict
        If another process is still at the session.
    """
    there = read_events(database, record.id)
    if not there or list(record.events[: len(there)]) != there:
        return False
    sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
    [(holder,)] = database.rows(sql, {"session": record.id})
    if (process := another_alive(holder)) is not None:
        problem = f"the session {record.id} is under way in process {process}"
        raise HistoryConflict(database.where, problem, "let that end, then import the file again")
    insert_events(database, event_rows(record.id, record.events[len(there) :]))
    left = leave(record)
    complete(database, left.row.settled())
    left.add_to(rows)
    if record.opened.relation == RETRIED:
        mark_family(database, rows, record.id)
    return True
