"""Views for the queries, and the engines to run them.

    v_sessions   a row per session
    v_standings  per session, kind, rule and model
    v_matchups   per session, kind and pair of models i, j
    v_ballots    per ballot with a vote or an abstention
    v_votes      per ballot and candidate
    v_pairs      per ballot and pair of its candidates
    v_grades     per ballot, criterion and candidate
    v_answers    per answer

Each has `session`, a name or a key, used only for comparison; `at_us`, `bucket`, `category`,
`simulated` and `rejudged`. `human` is 0 for models and 1 for people; `own`, `paired` … are 0 or 1.
`log_chars` is the natural logarithm of `chars`; `twins` counts candidates of a ballot preceded on
it by another one of the same model. Unknown values, also positions, are NULL.

In a history the views are prepended to a query, so that a reader needs no right to create them, and
lists are JSON text. Running sessions, which have a holder, are in no view; nor are superseded
sessions, nor ballots without a vote or an abstention. In a lake DuckDB and Spark create the views,
and lists are lists.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from witan.core.stats.leaderboard import EPOCH, Window
from witan.core.stats.sums import Names
from witan.history.database import Database, Dialect
from witan.history.schema import SUPERSEDED_SESSIONS

# Composed of our own text; values are parameters.
# ruff: noqa: S608


_SESSION = "s.session, s.at_us, s.bucket, s.category, s.simulated, s.rejudged"

_IS_CLOSED = f"s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})"

_PLAIN = {
    "v_sessions": f"SELECT {_SESSION}, s.kendall_w, s.agreement FROM sessions s WHERE {_IS_CLOSED}",
    "v_standings": f"""
        SELECT {_SESSION}, t.human, t.rule, t.model, t.score, t.z, t.votes, t.offered, t.wins
        FROM sessions s JOIN standings t ON t.session = s.session WHERE {_IS_CLOSED}""",
    "v_answers": f"""
        SELECT {_SESSION}, a.model, a.chars, a.seconds, a.cost_usd, a.failed
        FROM sessions s JOIN answers a ON a.session = s.session WHERE {_IS_CLOSED}""",
}

_BALLOT = f"{_SESSION}, b.ballot, b.human, b.reviewer"


def _ballots(twins: str) -> str:
    return f"""
        SELECT {_BALLOT}, b.abstained, b.repaired, b.flat, b.kept, b.compared, {twins} AS twins
        FROM sessions s JOIN ballots b ON b.session = s.session
        WHERE {_IS_CLOSED} AND (b.abstained = 1 OR b.models <> '[]')"""


def _item(column: str, index: str) -> str:
    return f"json_extract({column}, '$[' || {index} || ']')"


def _real(column: str, index: str) -> str:
    return f"CAST({_item(column, index)} AS REAL)"


_CANDIDATES = "list_rows(b.models, b.own, b.shares, b.chars)"


def _log(chars: str) -> str:
    return f"CASE WHEN {chars} > 0 THEN LN({chars}) END"


_SQLITE = {
    **_PLAIN,
    "v_ballots": _ballots("(SELECT COUNT(*) - COUNT(DISTINCT c.value) FROM json_each(b.models) c)"),
    # An item of a list is searched from the beginning, which is slow for thousands of pairs.
    "v_matchups": f"""
        SELECT {_SESSION}, m.human, {_item("p.value", "0")} AS i, {_item("p.value", "1")} AS j,
            {_real("p.value", "2")} AS wins, {_real("p.value", "3")} AS losses,
            {_real("p.value", "4")} AS ties, {_real("p.value", "5")} AS p_beats
        FROM sessions s JOIN matchups m ON m.session = s.session,
            json_each(list_pairs(m.models, m.wins, m.losses, m.ties, m.p_beats)) p
        WHERE {_IS_CLOSED}""",
    "v_votes": f"""
        SELECT {_BALLOT}, b.paired, b.flat, c.value AS model, {_item("b.own", "c.key")} AS own,
            {_real("b.shares", "c.key")} AS share, {_real("b.grades", "c.key")} AS grade,
            NULLIF({_item("b.positions", "c.key")}, 0) AS position,
            json_array_length(b.models) AS shown, {_item("b.chars", "c.key")} AS chars,
            {_log(_item("b.chars", "c.key"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session, json_each(b.models) c
        WHERE {_IS_CLOSED}""",
    "v_pairs": f"""
        SELECT {_BALLOT}, {_item("x.value", "0")} AS i, {_item("y.value", "0")} AS j,
            {_item("x.value", "1")} AS i_own, {_item("y.value", "1")} AS j_own,
            {_real("x.value", "2")} AS i_share, {_real("y.value", "2")} AS j_share,
            {_item("x.value", "3")} AS i_chars, {_item("y.value", "3")} AS j_chars
        FROM sessions s JOIN ballots b ON b.session = s.session,
            json_each({_CANDIDATES}) x, json_each({_CANDIDATES}) y
        WHERE {_IS_CLOSED} AND y.key > x.key""",
    "v_grades": f"""
        SELECT {_BALLOT}, k.value AS criterion, c.key AS place,
            {_item("b.models", "c.key")} AS model, {_item("b.own", "c.key")} AS own,
            CAST(c.value AS REAL) AS grade,
            NULLIF({_item("b.positions", "c.key")}, 0) AS position,
            json_array_length(b.models) AS shown, {_item("b.chars", "c.key")} AS chars,
            {_log(_item("b.chars", "c.key"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session,
            json_each(b.criteria) k, json_each(b.criterion_grades, '$[' || k.key || ']') c
        WHERE {_IS_CLOSED}""",
}


def _rows(alias: str, **lists: str) -> str:
    """Return PostgreSQL for parallel lists as rows, numbered from 1."""
    slots = ", ".join(
        f"jsonb_array_elements_text(CAST({text} AS JSONB))" for text in lists.values()
    )
    columns = ", ".join((*lists, "place"))
    return f"CROSS JOIN LATERAL ROWS FROM ({slots}) WITH ORDINALITY AS {alias}({columns})"


def _integer(text: str) -> str:
    return f"CAST({text} AS BIGINT)"


def _double(text: str) -> str:
    return f"CAST({text} AS DOUBLE PRECISION)"


# Of the pairs (0, 1), (0, 2), …, (1, 2), … of n, (a, b) is number a(2n − a − 1)/2 + b − a − 1.
_FIRST = "CAST(FLOOR((2 * l.n - 1 - SQRT((2 * l.n - 1) ^ 2 - 8 * (p.place - 1))) / 2) AS INTEGER)"
_SECOND = "CAST(p.place + f.a - f.a * (2 * l.n - f.a - 1) / 2 AS INTEGER)"

_VOTES = {"own": "b.own", "share": "b.shares", "chars": "b.chars"}

_POSTGRESQL = {
    **_PLAIN,
    "v_ballots": _ballots(
        "(SELECT COUNT(*) - COUNT(DISTINCT c) FROM"
        " jsonb_array_elements_text(CAST(b.models AS JSONB)) c)"
    ),
    "v_matchups": f"""
        SELECT {_SESSION}, m.human, {_integer("l.models ->> f.a")} AS i,
            {_integer(f"l.models ->> {_SECOND}")} AS j, {_double("p.wins")} AS wins,
            {_double("p.losses")} AS losses, {_double("p.ties")} AS ties,
            {_double("p.p_beats")} AS p_beats
        FROM sessions s JOIN matchups m ON m.session = s.session
            CROSS JOIN LATERAL (
                SELECT c.models, jsonb_array_length(c.models) AS n
                FROM (SELECT CAST(m.models AS JSONB) AS models OFFSET 0) c) l
            {_rows("p", wins="m.wins", losses="m.losses", ties="m.ties", p_beats="m.p_beats")}
            CROSS JOIN LATERAL (SELECT {_FIRST} AS a) f
        WHERE {_IS_CLOSED}""",
    "v_votes": f"""
        SELECT {_BALLOT}, b.paired, b.flat, {_integer("c.model")} AS model,
            {_integer("c.own")} AS own, {_double("c.share")} AS share,
            {_double("c.grade")} AS grade,
            NULLIF({_integer("c.position")}, 0) AS position,
            jsonb_array_length(CAST(b.models AS JSONB)) AS shown, {_integer("c.chars")} AS chars,
            {_log(_double("c.chars"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("c", model="b.models", **_VOTES, grade="b.grades", position="b.positions")}
        WHERE {_IS_CLOSED}""",
    "v_pairs": f"""
        SELECT {_BALLOT}, {_integer("x.model")} AS i, {_integer("y.model")} AS j,
            {_integer("x.own")} AS i_own, {_integer("y.own")} AS j_own,
            {_double("x.share")} AS i_share, {_double("y.share")} AS j_share,
            {_integer("x.chars")} AS i_chars, {_integer("y.chars")} AS j_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("x", model="b.models", **_VOTES)} {_rows("y", model="b.models", **_VOTES)}
        WHERE {_IS_CLOSED} AND y.place > x.place""",
    "v_grades": f"""
        SELECT {_BALLOT}, {_integer("k.criterion")} AS criterion, c.place,
            {_integer("c.model")} AS model,
            {_integer("c.own")} AS own,
            {_double(
                "(CAST(b.criterion_grades AS JSONB) -> CAST(k.place - 1 AS INTEGER)"
                " ->> CAST(c.place - 1 AS INTEGER))"
            )} AS grade,
            NULLIF({_integer("c.position")}, 0) AS position,
            jsonb_array_length(CAST(b.models AS JSONB)) AS shown, {_integer("c.chars")} AS chars,
            {_log(_double("c.chars"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("k", criterion="b.criteria")}
            {_rows("c", model="b.models", own="b.own", position="b.positions", chars="b.chars")}
        WHERE {_IS_CLOSED}""",
}  # fmt: skip

_VIEWS: Mapping[Dialect, Mapping[str, str]] = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


_READS_A_VIEW = re.compile(r" AS \((\s*SELECT(?:(?!\sFROM\s).)*\sFROM v_)", re.DOTALL)


@lru_cache(maxsize=256)
def with_views(sql: str, dialect: Dialect) -> str:
    """Prepend the views named by a query."""
    view_sql = _VIEWS[dialect]
    view_names = [name for name in view_sql if re.search(rf"\b{name}\b", sql)]
    if not view_names:
        return sql
    views = ",\n".join(f"{name} AS ({view_sql[name]})" for name in view_names)
    query = sql.lstrip()
    own_views = query.removeprefix("WITH ")
    if own_views == query:
        return f"WITH {views}\n{query}"
    if dialect == "sqlite":
        # Otherwise a query parses the text of a list wherever it uses an item, and a group
        # copies the text of each of its rows.
        own_views = _READS_A_VIEW.sub(r" AS MATERIALIZED (\1", own_views)
    return f"WITH {views},\n{own_views}"


_LAKE_SESSION = "session, at_us, bucket, category, simulated, rejudged"
_LAKE_BALLOT = f"{_LAKE_SESSION}, ballot, human, reviewer"

_LAKE_PLAIN: Mapping[str, str] = {
    "v_sessions": f"SELECT {_LAKE_SESSION}, kendall_w, agreement FROM lake_sessions",
    "v_standings": "SELECT * FROM lake_standings",
    "v_matchups": "SELECT * FROM lake_matchups",
    "v_answers": f"""
        SELECT {_LAKE_SESSION}, model, chars, seconds, cost_usd, failed FROM lake_answers""",
}

_OF_A_BALLOT = f"{_LAKE_BALLOT}, abstained, repaired, flat, kept, compared"

_LAKE_LOG = "CASE WHEN chars > 0 THEN LN(chars) END AS log_chars"

DUCKDB_VIEWS: Mapping[str, str] = {
    **_LAKE_PLAIN,
    "v_ballots": f"""
        SELECT {_OF_A_BALLOT},
            len(list_filter(models, lambda m, n: list_position(models, m) < n)) AS twins
        FROM lake_ballots""",
    "v_votes": f"""
        SELECT * REPLACE (NULLIF(position, 0) AS position), {_LAKE_LOG}
        FROM (
            SELECT {_LAKE_BALLOT}, paired, flat, len(models) AS shown, unnest(models) AS model,
                unnest(own) AS own, unnest(shares) AS share, unnest(grades) AS grade,
                unnest(positions) AS position, unnest(chars) AS chars
            FROM lake_ballots)""",
    "v_pairs": f"""
        SELECT {_LAKE_BALLOT}, models[a] AS i, models[b] AS j, own[a] AS i_own, own[b] AS j_own,
            shares[a] AS i_share, shares[b] AS j_share, chars[a] AS i_chars, chars[b] AS j_chars
        FROM (
            SELECT *, unnest(range(a + 1, len(models) + 1)) AS b
            FROM (
                SELECT {_LAKE_BALLOT}, models, own, shares, chars,
                    unnest(range(1, len(models))) AS a
                FROM lake_ballots))""",
    "v_grades": f"""
        SELECT * REPLACE (NULLIF(position, 0) AS position), {_LAKE_LOG}
        FROM (
            SELECT {_LAKE_BALLOT}, criterion, len(models) AS shown,
                unnest(range(len(models))) AS place, unnest(models) AS model, unnest(own) AS own,
                unnest(grades) AS grade, unnest(positions) AS position, unnest(chars) AS chars
            FROM (
                SELECT {_LAKE_BALLOT}, models, own, positions, chars, unnest(criteria) AS criterion,
                    unnest(criterion_grades) AS grades
                FROM lake_ballots
                WHERE len(criteria) > 0))""",
}

SPARK_VIEWS: Mapping[str, str] = {
    **_LAKE_PLAIN,
    "v_ballots": f"""
        SELECT {_OF_A_BALLOT}, size(models) - size(array_distinct(models)) AS twins
        FROM lake_ballots""",
    "v_votes": f"""
        SELECT {_LAKE_BALLOT}, paired, flat, size(models) AS shown, c.models AS model, c.own AS own,
            c.shares AS share, c.grades AS grade, NULLIF(c.positions, 0) AS position,
            c.chars AS chars, CASE WHEN c.chars > 0 THEN LN(c.chars) END AS log_chars
        FROM lake_ballots
            LATERAL VIEW explode(
                arrays_zip(models, own, shares, grades, positions, chars)) e AS c""",
    "v_pairs": f"""
        SELECT {_LAKE_BALLOT}, models[a] AS i, models[b] AS j, own[a] AS i_own, own[b] AS j_own,
            shares[a] AS i_share, shares[b] AS j_share, chars[a] AS i_chars, chars[b] AS j_chars
        FROM lake_ballots
            LATERAL VIEW posexplode(models) x AS a, i_model
            LATERAL VIEW posexplode(models) y AS b, j_model
        WHERE b > a""",
    "v_grades": f"""
        SELECT {_LAKE_BALLOT}, g.criteria AS criterion, size(models) AS shown, place,
            c.models AS model, c.own AS own, c.criterion_grades AS grade,
            NULLIF(c.positions, 0) AS position, c.chars AS chars,
            CASE WHEN c.chars > 0 THEN LN(c.chars) END AS log_chars
        FROM lake_ballots
            LATERAL VIEW explode(arrays_zip(criteria, criterion_grades)) k AS g
            LATERAL VIEW posexplode(
                arrays_zip(models, own, g.criterion_grades, positions, chars)) e AS place, c""",
}


Columns = Mapping[str, NDArray[Any]]

Params = Mapping[str, int | str]

NO_PARAMETERS: Params = MappingProxyType({})


class Query(NamedTuple):
    """An SQL text and its parameters."""

    sql: str
    params: Params = NO_PARAMETERS


class SumQuery(NamedTuple):
    """A query of sums by bucket and other keys, additive over windows.

    `sql`: ``{window}`` is replaced by the conditions on the sessions.
    `by_span`: whether it needs so much memory that a lake is summed span by span.
    """

    sql: str
    params: Params = NO_PARAMETERS
    by_span: bool = True

    def restrict(self, window: Window, shards: str = "") -> Query:
        """Return the query of one window; `shards` further restricts its sessions."""
        conditions, bounds = _conditions(window)
        return Query(self.sql.replace("{window}", conditions + shards), {**self.params, **bounds})


class Engine(Protocol):
    """SQL over the views, with named parameters ``:name``."""

    def columns(self, sql: str, params: Params = NO_PARAMETERS) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries over a window's sessions, in parallel if faster.

        Yield the number of a query and columns of its result. If a query yields repeatedly, its
        results add up.
        """

    def names(self) -> Names:
        """Return the name of every code."""

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans whose matches fit in memory."""


def _conditions(window: Window) -> tuple[str, dict[str, int | str]]:
    """Return the conditions on rows of counted sessions, and their parameters.

    An open end adds no condition, so that the column need not be read.
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


_ZEROS: Mapping[Any, str] = MappingProxyType(
    {NDArray[np.int64]: "CAST(0 AS BIGINT)", NDArray[np.float64]: "0.0"}
)


def columns_of(table: type[Any], **expressions: str) -> str:
    """Write all columns of a sums table as SQL, defaulting to zero.

    The results of a table's queries can then be concatenated. Integers are cast, because their sums
    are decimals on one engine and integers of 128 bits on another.
    """
    columns = {column.name: _ZEROS[column.type] for column in fields(table)}
    unknown = expressions.keys() - columns.keys()
    if unknown:
        raise TypeError(f"{table.__name__} has no column {min(unknown)!r}")
    return ",\n    ".join(f"{text} AS {name}" for name, text in {**columns, **expressions}.items())


SESSIONS_AT_ONCE = 10_000
"""Number of sessions in a span; their matches need 20 MB."""


class SqlEngine:
    """The database of a history.

    Inside ``with database.snapshot()`` several queries read one consistent state.

    `sessions_at_once`: number of sessions in each span.
    """

    def __init__(self, database: Database, *, sessions_at_once: int = SESSIONS_AT_ONCE) -> None:
        self._database = database
        self._sessions_at_once = sessions_at_once

    def columns(self, sql: str, params: Params = NO_PARAMETERS) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        return self._database.columns(with_views(sql, self._database.dialect), params)

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries in sequence; the database uses the disk if needed."""
        for number, query in enumerate(queries):
            yield number, self.columns(*query.restrict(window))

    def names(self) -> Names:
        """Return the name of every code."""
        return Names(dict(self._database.rows("SELECT code, name FROM names")))

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into windows of about `sessions_at_once` sessions."""
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
