"""The views over a history's tables, for SQLite and for PostgreSQL; lists stand there as JSON text.

They are put before a query as common table expressions, so that a reader needs no right to create
anything. A session that somebody still writes to has a holder, and is in none of them; nor is one
in whose place another stands, nor a ballot that neither votes nor abstains.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

import re
from collections.abc import Mapping

from witan.history.counting import SUPERSEDED_SESSIONS
from witan.history.database import Dialect

__all__ = ["with_views"]

_S = "s.session, s.at_us, s.bucket, s.category, s.simulated, s.rejudged"

_CLOSED = f"s.holder = '' AND s.session NOT IN ({SUPERSEDED_SESSIONS})"

_PLAIN = {
    "v_sessions": f"SELECT {_S}, s.kendall_w, s.agreement FROM sessions s WHERE {_CLOSED}",
    "v_standings": f"""
        SELECT {_S}, t.human, t.rule, t.model, t.score, t.z, t.votes, t.offered, t.wins
        FROM sessions s JOIN standings t ON t.session = s.session WHERE {_CLOSED}""",
    "v_answers": f"""
        SELECT {_S}, a.model, a.chars, a.seconds, a.cost_usd, a.failed
        FROM sessions s JOIN answers a ON a.session = s.session WHERE {_CLOSED}""",
}

_B = f"{_S}, b.ballot, b.human, b.reviewer"


def _ballots(twins: str) -> str:
    return f"""
        SELECT {_B}, b.abstained, b.repaired, b.flat, b.kept, b.compared, {twins} AS twins
        FROM sessions s JOIN ballots b ON b.session = s.session
        WHERE {_CLOSED} AND (b.abstained = 1 OR b.models <> '[]')"""


def _at(column: str, index: str) -> str:
    """SQLite: one item of a list."""
    return f"json_extract({column}, '$[' || {index} || ']')"


def _real(column: str, index: str) -> str:
    return f"CAST({_at(column, index)} AS REAL)"


def _log(chars: str) -> str:
    return f"CASE WHEN {chars} > 0 THEN LN({chars}) END"


# Of the pairs (0, 1), (0, 2), …, (1, 2), … of n, (a, b) is number a(2n − a − 1)/2 + b − a − 1.
_PAIR = "(x.key * (2 * json_array_length(m.models) - x.key - 1) / 2 + y.key - x.key - 1)"

_SQLITE = {
    **_PLAIN,
    "v_ballots": _ballots("(SELECT COUNT(*) - COUNT(DISTINCT c.value) FROM json_each(b.models) c)"),
    "v_matchups": f"""
        SELECT {_S}, m.human, x.value AS i, y.value AS j, {_real("m.wins", _PAIR)} AS wins,
            {_real("m.losses", _PAIR)} AS losses, {_real("m.ties", _PAIR)} AS ties,
            {_real("m.p_beats", _PAIR)} AS p_beats
        FROM sessions s JOIN matchups m ON m.session = s.session,
            json_each(m.models) x, json_each(m.models) y
        WHERE {_CLOSED} AND y.key > x.key""",
    "v_votes": f"""
        SELECT {_B}, b.paired, c.value AS model, {_at("b.own", "c.key")} AS own,
            {_real("b.shares", "c.key")} AS share, {_real("b.grades", "c.key")} AS grade,
            NULLIF({_at("b.positions", "c.key")}, 0) AS position,
            json_array_length(b.models) AS shown, {_at("b.chars", "c.key")} AS chars,
            {_log(_at("b.chars", "c.key"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session, json_each(b.models) c
        WHERE {_CLOSED}""",
    "v_pairs": f"""
        SELECT {_B}, x.value AS i, y.value AS j,
            {_at("b.own", "x.key")} AS i_own, {_at("b.own", "y.key")} AS j_own,
            {_real("b.shares", "x.key")} AS i_share, {_real("b.shares", "y.key")} AS j_share,
            {_at("b.chars", "x.key")} AS i_chars, {_at("b.chars", "y.key")} AS j_chars
        FROM sessions s JOIN ballots b ON b.session = s.session,
            json_each(b.models) x, json_each(b.models) y
        WHERE {_CLOSED} AND y.key > x.key""",
    "v_grades": f"""
        SELECT {_B}, k.value AS criterion, c.key AS place, {_at("b.models", "c.key")} AS model,
            {_at("b.own", "c.key")} AS own, CAST(c.value AS REAL) AS grade,
            NULLIF({_at("b.positions", "c.key")}, 0) AS position,
            json_array_length(b.models) AS shown, {_at("b.chars", "c.key")} AS chars,
            {_log(_at("b.chars", "c.key"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session,
            json_each(b.criteria) k, json_each(b.criterion_grades, '$[' || k.key || ']') c
        WHERE {_CLOSED}""",
}


def _rows(alias: str, **lists: str) -> str:
    """PostgreSQL: lists side by side as rows, which are numbered from 1."""
    taken = ", ".join(
        f"jsonb_array_elements_text(CAST({text} AS JSONB))" for text in lists.values()
    )
    columns = ", ".join((*lists, "place"))
    return f"CROSS JOIN LATERAL ROWS FROM ({taken}) WITH ORDINALITY AS {alias}({columns})"


def _whole(text: str) -> str:
    return f"CAST({text} AS BIGINT)"


def _double(text: str) -> str:
    return f"CAST({text} AS DOUBLE PRECISION)"


def _pair(column: str) -> str:
    n, a, b = "jsonb_array_length(CAST(m.models AS JSONB))", "(x.place - 1)", "(y.place - 1)"
    number = f"CAST({a} * (2 * {n} - {a} - 1) / 2 + {b} - {a} - 1 AS INTEGER)"
    return _double(f"(CAST(m.{column} AS JSONB) ->> {number})") + f" AS {column}"


_VOTES = {"own": "b.own", "share": "b.shares", "chars": "b.chars"}

_POSTGRESQL = {
    **_PLAIN,
    "v_ballots": _ballots(
        "(SELECT COUNT(*) - COUNT(DISTINCT c) FROM"
        " jsonb_array_elements_text(CAST(b.models AS JSONB)) c)"
    ),
    "v_matchups": f"""
        SELECT {_S}, m.human, {_whole("x.model")} AS i, {_whole("y.model")} AS j,
            {_pair("wins")}, {_pair("losses")}, {_pair("ties")}, {_pair("p_beats")}
        FROM sessions s JOIN matchups m ON m.session = s.session
            {_rows("x", model="m.models")} {_rows("y", model="m.models")}
        WHERE {_CLOSED} AND y.place > x.place""",
    "v_votes": f"""
        SELECT {_B}, b.paired, {_whole("c.model")} AS model, {_whole("c.own")} AS own,
            {_double("c.share")} AS share, {_double("c.grade")} AS grade,
            NULLIF({_whole("c.position")}, 0) AS position,
            jsonb_array_length(CAST(b.models AS JSONB)) AS shown, {_whole("c.chars")} AS chars,
            {_log(_double("c.chars"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("c", model="b.models", **_VOTES, grade="b.grades", position="b.positions")}
        WHERE {_CLOSED}""",
    "v_pairs": f"""
        SELECT {_B}, {_whole("x.model")} AS i, {_whole("y.model")} AS j,
            {_whole("x.own")} AS i_own, {_whole("y.own")} AS j_own,
            {_double("x.share")} AS i_share, {_double("y.share")} AS j_share,
            {_whole("x.chars")} AS i_chars, {_whole("y.chars")} AS j_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("x", model="b.models", **_VOTES)} {_rows("y", model="b.models", **_VOTES)}
        WHERE {_CLOSED} AND y.place > x.place""",
    "v_grades": f"""
        SELECT {_B}, {_whole("k.criterion")} AS criterion, c.place, {_whole("c.model")} AS model,
            {_whole("c.own")} AS own,
            {_double(
                "(CAST(b.criterion_grades AS JSONB) -> CAST(k.place - 1 AS INTEGER)"
                " ->> CAST(c.place - 1 AS INTEGER))"
            )} AS grade,
            NULLIF({_whole("c.position")}, 0) AS position,
            jsonb_array_length(CAST(b.models AS JSONB)) AS shown, {_whole("c.chars")} AS chars,
            {_log(_double("c.chars"))} AS log_chars
        FROM sessions s JOIN ballots b ON b.session = s.session
            {_rows("k", criterion="b.criteria")}
            {_rows("c", model="b.models", own="b.own", position="b.positions", chars="b.chars")}
        WHERE {_CLOSED}""",
}  # fmt: skip

_VIEWS: Mapping[Dialect, Mapping[str, str]] = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def with_views(sql: str, dialect: Dialect) -> str:
    """The query with the views that it names put before it."""
    known = _VIEWS[dialect]
    named = [name for name in known if re.search(rf"\b{name}\b", sql)]
    if not named:
        return sql
    views = ",\n".join(f"{name} AS ({known[name]})" for name in named)
    rest = sql.lstrip()
    own = rest.removeprefix("WITH ")
    if own == rest:
        return f"WITH {views}\n{rest}"
    if dialect == "sqlite":
        # Else every item of a list is taken out of its text anew wherever a query names it.
        own = own.replace(" AS (", " AS MATERIALIZED (", 1)
    return f"WITH {views},\n{own}"
