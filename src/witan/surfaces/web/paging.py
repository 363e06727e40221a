"""The list of sessions a page at a time: those that a council held, then those imported."""

from dataclasses import dataclass, replace
from datetime import datetime

from witan.adapters.history import Found
from witan.adapters.history.database import Database
from witan.adapters.history.reading import Search, find

__all__ = ["Place", "page_of"]

PAGE = 30
"""Sessions on a page."""

MOST_AT_ONCE = 1000
"""Sessions of one moment, as a file brings them, that stand on one page."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the list a page begins.

    Parameters
    ----------
    before
        Its sessions were asked before this time; None: it begins with the latest.
    imported
        It is among those that came in as ballots.
    """

    before: datetime | None = None
    imported: bool = False


def page_of(database: Database, search: Search, place: Place) -> tuple[list[Found], Place | None]:
    """The sessions of a page, and where the next one begins; None: there is none."""
    found, more = _part(database, search, place, PAGE)
    if more:
        return found, Place(found[-1].at, place.imported)
    if place.imported:
        return found, None
    room, rest = PAGE - len(found), Place(imported=True)
    if not room:
        left = find(database, replace(search, held=False, limit=1))
        return found, rest if left else None
    others, more = _part(database, search, rest, room)
    return [*found, *others], Place(others[-1].at, imported=True) if more else None


def _part(database: Database, search: Search, place: Place, size: int) -> tuple[list[Found], bool]:
    """Sessions of one part, and whether it has older ones.

    A moment is never parted: the next page begins before the last one that is shown.
    """
    until = min((at for at in (search.until, place.before) if at is not None), default=None)
    search = replace(search, until=until, held=not place.imported)
    found = find(database, replace(search, limit=size + 1))
    if len(found) <= size:
        return found, False
    if found[0].at != found[-1].at:
        return [each for each in found if each.at != found[-1].at], True
    # A file brings many sessions of one time.
    at = found[0].at
    same = find(database, replace(search, limit=MOST_AT_ONCE))
    older = at != search.since and find(database, replace(search, until=at, limit=1))
    return same, bool(older)
