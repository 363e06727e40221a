"""A history's own database as an engine: SQLite or PostgreSQL."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Columns, Params, SumQuery
from witan.analytics.engines.sql_views import with_views
from witan.core.stats.sums import Names
from witan.core.window import EPOCH, Window
from witan.history.database import Database

SESSIONS_AT_ONCE = 10_000
"""Sessions of a span; their matches take 20 MB."""


class SqlEngine:
    """The database that holds a history.

    Several queries are of one moment inside ``with database.snapshot()``.

    Parameters
    ----------
    sessions_at_once
        How many `spans` have each.
    """

    def __init__(self, database: Database, *, sessions_at_once: int = SESSIONS_AT_ONCE) -> None:
        self._database = database
        self._sessions_at_once = sessions_at_once

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        return self._database.columns(with_views(sql, self._database.dialect), params)

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries one after another: a database sums on disk where memory does not do."""
        for number, query in enumerate(queries):
            yield number, self.columns(*query.within(window))

    def names(self) -> Names:
        """Every code and its name."""
        return Names(dict(self._database.rows("SELECT code, name FROM names")))

    def spans(self, window: Window) -> Sequence[Window]:
        """Windows of about so many sessions each as are read at once."""
        sql = """
            SELECT at_us FROM (
                SELECT at_us, ROW_NUMBER() OVER (ORDER BY at_us) AS place FROM sessions
                WHERE at_us > :since_us AND at_us < :until_us
            ) placed
            WHERE place % :size = 0 ORDER BY at_us"""
        given = {
            "since_us": window.since_us,
            "until_us": window.until_us,
            "size": self._sessions_at_once,
        }
        cuts = dict.fromkeys(
            EPOCH + timedelta(microseconds=at_us) for (at_us,) in self._database.rows(sql, given)
        )
        ends = [window.since, *cuts, window.until]
        return [Window(since, until, window.category) for since, until in pairwise(ends)]
