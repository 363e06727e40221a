"""The history: every session, kept in SQLite or PostgreSQL."""

from witan.adapters.history.database import Database
from witan.adapters.history.describing import Described
from witan.adapters.history.history import History
from witan.adapters.history.importing import Added, Imported
from witan.adapters.history.keeping import Forgotten
from witan.adapters.history.listing import Place
from witan.adapters.history.patience import Patience
from witan.adapters.history.reading import Found
from witan.adapters.history.recording import Recording
from witan.adapters.history.searching import Search
from witan.adapters.history_places import default_place, place_of

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
