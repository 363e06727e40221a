"""Engines: SQL over a history's views, by SQLite, PostgreSQL, DuckDB or Spark.

    v_sessions   a row per session
    v_standings  per session, kind, rule and model
    v_matchups   per session, kind and pair of models i, j
    v_ballots    per ballot that votes or abstains
    v_votes      per ballot and candidate
    v_pairs      per ballot and pair of its candidates
    v_grades     per ballot, criterion and candidate
    v_answers    per answer

Each carries `session`, a name or a key that only compares; `at_us`, `bucket`, `category`,
`simulated` and `rejudged`. `human` is 0 for models and 1 for people; `own`, `paired` … are 0 or 1.
`log_chars` is the natural logarithm of `chars`; `twins` counts candidates of a ballot whose model
has another one before them on it. What is unknown is NULL, a position too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from witan.analytics.views import with_views
from witan.core.stats.sums import Names
from witan.core.window import EPOCH, Window
from witan.history.database import Database

Columns = Mapping[str, NDArray[Any]]

Params = Mapping[str, int | str]

NONE: Params = MappingProxyType({})


class Query(NamedTuple):
    """An SQL text and its parameters."""

    sql: str
    params: Params = NONE


class SumQuery(NamedTuple):
    """A query of sums by bucket and other keys, additive over windows.

    Parameters
    ----------
    sql
        ``{window}`` stands in it for the conditions on the sessions.
    by_span
        Whether it holds so much in memory that a lake is summed span by span.
    """

    sql: str
    params: Params = NONE
    by_span: bool = True

    def within(self, window: Window, shards: str = "") -> Query:
        """Return the query of one window; `shards` further restricts its sessions."""
        conditions, bounds = _conditions(window)
        return Query(self.sql.replace("{window}", conditions + shards), {**self.params, **bounds})


class Engine(Protocol):
    """SQL over the views, with named parameters ``:name``."""

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries over a window's sessions, in parallel if faster.

        Yield the number of a query and columns of its result. A query may yield several times, and
        its columns then add up.
        """

    def names(self) -> Names:
        """Return the name of every code."""

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans fitting memory session by session."""


def _conditions(window: Window) -> tuple[str, dict[str, int | str]]:
    """Conditions on the rows of counted sessions, and the parameters in them.

    An end that is open asks for nothing, so that the column need not be read.
    """
    conditions, bounds = ["simulated = 0"], dict[str, int | str]()
    if window.since is not None:
        conditions.append("at_us >= :since_us")
        bounds["since_us"] = window.since_us
    if window.until is not None:
        conditions.append("at_us < :until_us")
        bounds["until_us"] = window.until_us
    if window.category is not None:
        conditions.append("category = :category")
        bounds["category"] = window.category
    return " AND ".join(conditions), bounds


_NOUGHTS: Mapping[Any, str] = MappingProxyType(
    {NDArray[np.int64]: "CAST(0 AS BIGINT)", NDArray[np.float64]: "0.0"}
)


def columns_of(table: type[Any], **expressions: str) -> str:
    """Write all columns of a sums table as SQL, defaulting to zero.

    Queries of one table can then be put one under the other. Whole numbers are cast, since sums of
    them are decimals on one engine and integers of 128 bits on another.

    Raises
    ------
    TypeError
        If there is no such column.
    """
    columns = {column.name: _NOUGHTS[column.type] for column in fields(table)}
    strange = expressions.keys() - columns.keys()
    if strange:
        raise TypeError(f"{table.__name__} has no column {min(strange)!r}")
    return ",\n    ".join(f"{text} AS {name}" for name, text in {**columns, **expressions}.items())


SESSIONS_AT_ONCE = 10_000
"""Sessions of a span; their matches take 20 MB."""


class SqlEngine:
    """The database of a history.

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
        """Run queries in sequence: a database sums on disk if memory is short."""
        for number, query in enumerate(queries):
            yield number, self.columns(*query.within(window))

    def names(self) -> Names:
        """Return the name of every code."""
        return Names(dict(self._database.rows("SELECT code, name FROM names")))

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into ones of about `sessions_at_once` sessions."""
        sql = """
            SELECT at_us FROM (
                SELECT at_us, ROW_NUMBER() OVER (ORDER BY at_us) AS place FROM sessions
                WHERE at_us > :since_us AND at_us < :until_us
            ) placed
            WHERE place % :size = 0 ORDER BY at_us"""
        windows = {
            "since_us": window.since_us,
            "until_us": window.until_us,
            "size": self._sessions_at_once,
        }
        cuts = dict.fromkeys(
            EPOCH + timedelta(microseconds=at_us) for (at_us,) in self._database.rows(sql, windows)
        )
        ends = [window.since, *cuts, window.until]
        return [Window(since, until, window.category) for since, until in pairwise(ends)]
