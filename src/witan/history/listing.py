"""Pages of the list of sessions."""

from dataclasses import replace
from datetime import datetime

from witan.history.database import Database
from witan.history.reading import SessionSummary, find
from witan.history.searching import Search

__all__ = ["Place", "page_of"]

Place = tuple[datetime, str]
"""Time and name of the last session of the page before."""


def page_of(
    database: Database, search: Search, size: int, after: Place | None = None
) -> tuple[list[SessionSummary], Place | None]:
    """So many sessions, and what the next page comes after; None: there is none.

    Every session stands on one page, however many are of one time, and whatever comes in above
    while pages are turned.
    """
    found = find(database, replace(search, limit=size + 1, after=after))
    if len(found) <= size:
        return found, None
    last = found[size - 1]
    return found[:size], (last.at, last.session)
