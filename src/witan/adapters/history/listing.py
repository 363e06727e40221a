"""Sessions as a list begins with them: what a council held first, then what came in as ballots."""

from dataclasses import replace

from witan.adapters.history.database import Database
from witan.adapters.history.reading import Found, Search, find

__all__ = ["listed"]


def listed(database: Database, search: Search) -> list[Found]:
    """Sessions with a record by the latest; then those that came in as ballots, likewise.

    An import whose file says no time would else stand before every question that was asked earlier.
    """
    with database.snapshot():
        found = find(database, replace(search, held=True))
        left = None if search.limit is None else search.limit - len(found)
        if left == 0:
            return found
        return [*found, *find(database, replace(search, held=False, limit=left))]
