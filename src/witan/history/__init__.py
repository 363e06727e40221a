"""The history: every session, kept in SQLite or PostgreSQL."""

from witan.deliberation.imported_session import Added, Imported
from witan.history.database import Database
from witan.history.describing import Described
from witan.history.history import History
from witan.history.keeping import Forgotten
from witan.history.listing import Place
from witan.history.patience import Patience
from witan.history.places import default_place, place_of
from witan.history.reading import Found
from witan.history.recording import Recording
from witan.history.searching import Search

__all__ = [
    "Added",
    "Database",
    "Described",
    "Forgotten",
    "Found",
    "History",
    "Imported",
    "Patience",
    "Place",
    "Recording",
    "Search",
    "default_place",
    "place_of",
]
