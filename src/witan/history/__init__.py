"""The history: every session, in SQLite or PostgreSQL; its names are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from witan.deliberation.imported_session import Added, Imported
    from witan.history.database import Database
    from witan.history.forgetting import Forgotten
    from witan.history.history import History
    from witan.history.listing import Described, Place, Search, SessionSummary
    from witan.history.location import default_place, place_of
    from witan.history.locks import LockWait
    from witan.history.writer import Recording

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
    "Described": "witan.history.listing",
    "Forgotten": "witan.history.forgetting",
    "History": "witan.history.history",
    "Imported": "witan.deliberation.imported_session",
    "LockWait": "witan.history.locks",
    "Place": "witan.history.listing",
    "Recording": "witan.history.writer",
    "Search": "witan.history.listing",
    "SessionSummary": "witan.history.listing",
    "default_place": "witan.history.location",
    "place_of": "witan.history.location",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'witan.history' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
