"""The history of sessions, in SQLite or PostgreSQL; names imported lazily."""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.deliberation.record import ImportCounts as ImportCounts
    from witan.deliberation.record import SessionImport as SessionImport
    from witan.history.database import Database as Database
    from witan.history.database import LockWait as LockWait
    from witan.history.history import ForgetResult as ForgetResult
    from witan.history.history import History as History
    from witan.history.location import default_location as default_location
    from witan.history.location import parse_location as parse_location
    from witan.history.reading import HistorySummary as HistorySummary
    from witan.history.reading import PageCursor as PageCursor
    from witan.history.reading import Search as Search
    from witan.history.reading import SessionSummary as SessionSummary
    from witan.history.writer import Recording as Recording

_HOMES = {
    "witan.deliberation.record": ("ImportCounts", "SessionImport"),
    "witan.history.database": ("Database", "LockWait"),
    "witan.history.location": ("default_location", "parse_location"),
    "witan.history.history": ("ForgetResult", "History"),
    "witan.history.reading": ("HistorySummary", "PageCursor", "Search", "SessionSummary"),
    "witan.history.writer": ("Recording",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
