"""The history: every session, in SQLite or PostgreSQL; its names are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from witan.deliberation.imported_session import Added, Imported
    from witan.history.database import Database
    from witan.history.describing import Described
    from witan.history.history import History
    from witan.history.keeping import Forgotten
    from witan.history.listing import Place
    from witan.history.lock_wait import LockWait
    from witan.history.places import default_place, place_of
    from witan.history.reading import SessionSummary
    from witan.history.recording import Recording
    from witan.history.searching import Search

__all__ = [
    "Added",
    "Database",
    "Described",
    "Forgotten",
    "History",
    "Imported",
    "LockWait",
    "Place",
    "Recording",
    "Search",
    "SessionSummary",
    "default_place",
    "place_of",
]

_HOMES = {
    "Added": "witan.deliberation.imported_session",
    "Database": "witan.history.database",
    "Described": "witan.history.describing",
    "Forgotten": "witan.history.keeping",
    "History": "witan.history.history",
    "Imported": "witan.deliberation.imported_session",
    "LockWait": "witan.history.lock_wait",
    "Place": "witan.history.listing",
    "Recording": "witan.history.recording",
    "Search": "witan.history.searching",
    "SessionSummary": "witan.history.reading",
    "default_place": "witan.history.places",
    "place_of": "witan.history.places",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'witan.history' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
