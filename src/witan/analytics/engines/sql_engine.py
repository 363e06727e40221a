"""A history's own database as an engine: SQLite or PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Params, Query
from witan.analytics.engines.sql_views import with_views
from witan.core.sums import Names
from witan.core.window import Window
from witan.history.database import Database

__all__ = ["SqlEngine"]


class SqlEngine:
    """The database that holds a history.

    Several queries are of one moment inside ``with database.snapshot()``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        return self._database.columns(with_views(sql, self._database.dialect), params)

    def several(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries one after another, over the one connection."""
        return (self.columns(*query) for query in queries)

    def names(self) -> Names:
        """Every code and its name."""
        return Names(dict(self._database.rows("SELECT code, name FROM names")))

    def spans(self, window: Window) -> Sequence[Window]:
        """The window itself: a database sums on disk where memory does not do."""
        return (window,)
