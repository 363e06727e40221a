"""Families of sessions: a session, its retries and their retries.

They share answers and ballots, so only one closed session of a family counts, and the others are
superseded. The one with the most ballots counts; among equals that with the most answers, then the
latest; a failed one only if all failed. A session whose retry failed therefore still counts. The
choice depends only on the stored rows: if the session that counts is deleted, the next one counts.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from witan.history.database import Database

RETRY = "retried"
"""Relation of a session to the one it retries."""

_IS_RETRY = f"r.parent IS NOT NULL AND r.relation = '{RETRY}'"

# The order matters: SQLite looks up rows by the table on the left of CROSS JOIN.
_KIN_SQL = f"""
WITH RECURSIVE kin(session, family) AS (
    SELECT r.parent, r.parent FROM sessions r
    WHERE {_IS_RETRY} AND r.parent NOT IN (SELECT r.session FROM sessions r WHERE {_IS_RETRY})
    UNION
    SELECT r.session, kin.family FROM kin CROSS JOIN sessions r
    WHERE r.parent = kin.session AND {_IS_RETRY}
)
"""  # noqa: S608 - texts of our own

SUPERSEDED_SESSIONS = f"""
{_KIN_SQL}
SELECT placed.session FROM (
    SELECT closed.session, ROW_NUMBER() OVER (
        PARTITION BY closed.family
        ORDER BY closed.in_vain, closed.n_ballots DESC, closed.n_answers DESC, closed.at_us DESC,
            closed.session DESC
    ) AS place
    FROM (
        SELECT kin.family, m.session, m.at_us,
            CASE m.status WHEN 'failed' THEN 1 ELSE 0 END AS in_vain,
            (SELECT COUNT(*) FROM ballots b WHERE b.session = m.session AND b.human = 0
                AND b.abstained = 0) AS n_ballots,
            (SELECT COUNT(*) FROM answers a WHERE a.session = m.session
                AND a.failed = 0) AS n_answers
        FROM kin CROSS JOIN sessions m
        WHERE m.session = kin.session AND m.holder = ''
    ) closed
) placed
WHERE placed.place > 1
"""  # noqa: S608 - texts of our own
"""Query of sessions superseded by another of their family."""

_FAMILIES_SQL = f"""
{_KIN_SQL}
SELECT kin.family, m.session, m.at_us, m.relation, m.parent FROM kin CROSS JOIN sessions m
WHERE m.session = kin.session
ORDER BY kin.family, m.at_us, m.session
"""  # noqa: S608 - texts of our own


def reparent_families(database: Database, sessions: Iterable[str]) -> None:
    """Link the remaining sessions of a family before some are deleted."""
    deleted_sessions = set(sessions)
    sql = "UPDATE sessions SET parent = :parent WHERE session = :session"
    for family in _families(database, deleted_sessions):
        parent: str | None = None
        for one in family:
            if one.session in deleted_sessions:
                continue
            if one.relation == RETRY and one.parent in deleted_sessions:
                database.execute(sql, {"session": one.session, "parent": parent})
            parent = one.session


class _Relative(NamedTuple):
    """A session of a family."""

    family: str
    session: str
    at_us: int
    relation: str | None
    parent: str | None


def _families(database: Database, sessions: Collection[str]) -> Iterator[list[_Relative]]:
    """Read the families of these sessions, each in chronological order."""
    rows = (_Relative(*row) for row in database.rows(_FAMILIES_SQL))
    for _, family in groupby(rows, key=attrgetter("family")):
        members = list(family)
        if any(one.session in sessions for one in members):
            yield members
