"""The list of sessions: what a council held first, then what came in as ballots.

An import whose file says no time would else stand before every question that was asked earlier.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from witan.adapters.history.database import Database
from witan.adapters.history.reading import Found, find
from witan.adapters.history.searching import Search

__all__ = ["Place", "listed", "page_of"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the list a page begins.

    Parameters
    ----------
    held
        Among the sessions that a council held; else among those that came in as ballots.
    after
        Below this time and name; None: at the first of them.
    """

    held: bool = True
    after: tuple[datetime, str] | None = None


BEGINNING = Place()


def listed(database: Database, search: Search, place: Place = BEGINNING) -> list[Found]:
    """Sessions with a record by the latest; then those that came in as ballots, likewise."""
    found: list[Found] = []
    with database.snapshot():
        for part in (True, False) if place.held else (False,):
            left = None if search.limit is None else search.limit - len(found)
            after = place.after if part == place.held else None
            if left != 0 and search.held in (None, part):
                found += find(database, replace(search, held=part, limit=left, after=after))
    return found


def page_of(
    database: Database, search: Search, size: int, place: Place
) -> tuple[list[Found], Place | None]:
    """So many sessions, and where the next page begins; None: there is none.

    Every session stands on one page, however many are of one time, and whatever comes in above
    while pages are turned.
    """
    found = listed(database, replace(search, limit=size + 1), place)
    if len(found) <= size:
        return found, None
    last = found[size - 1]
    return found[:size], Place(last.held, (last.at, last.session))
