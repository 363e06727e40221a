"""The history of sessions, in SQLite or PostgreSQL; names imported lazily."""

from typing import TYPE_CHECKING

from witan.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    from witan.deliberation.imported_session import ImportCounts as ImportCounts
    from witan.deliberation.imported_session import Imported as Imported
    from witan.history.database import Database as Database
    from witan.history.forgetting import ForgetResult as ForgetResult
    from witan.history.history import History as History
    from witan.history.listing import HistorySummary as HistorySummary
    from witan.history.listing import PageCursor as PageCursor
    from witan.history.listing import Search as Search
    from witan.history.listing import SessionSummary as SessionSummary
    from witan.history.location import default_location as default_location
    from witan.history.location import parse_location as parse_location
    from witan.history.locks import LockWait as LockWait
    from witan.history.writer import Recording as Recording

_HOMES = {
    "witan.deliberation.imported_session": ("ImportCounts", "Imported"),
    "witan.history.database": ("Database",),
    "witan.history.listing": ("HistorySummary", "PageCursor", "Search", "SessionSummary"),
    "witan.history.forgetting": ("ForgetResult",),
    "witan.history.history": ("History",),
    "witan.history.locks": ("LockWait",),
    "witan.history.writer": ("Recording",),
    "witan.history.location": ("default_location", "parse_location"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)

__getattr__ = _lazy_names(__name__, _HOMES)
