"""Sessions in whose place another stands: who failed there was asked again, and all else was kept.

A session that was retried, those that retry it, and those that retry these are one family. The same
answers and ballots stand in all of them, so only one that is closed counts: that with the most
ballots, of those that with the most answers, of those the latest; one that failed only where all
did. So a session that was retried in vain keeps its place. Which one it is follows from the rows of
the sessions alone: where it is forgotten, the next counts.
"""

# Put together from texts of our own; values are parameters.
# ruff: noqa: S608

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from witan.history.database import Database
from witan.history.writing import Rows

__all__ = ["RETRIED", "SUPERSEDED", "leave_to_heirs", "mark_family"]

RETRIED = "retried"
"""The relation of a session to the one that it retries."""

_OF = f"r.parent IS NOT NULL AND r.relation = '{RETRIED}'"

# In this order, because SQLite looks rows up by what stands on the left of CROSS JOIN.
_KIN = f"""
WITH RECURSIVE kin(session, family) AS (
    SELECT r.parent, r.parent FROM sessions r
    WHERE {_OF} AND r.parent NOT IN (SELECT r.session FROM sessions r WHERE {_OF})
    UNION
    SELECT r.session, kin.family FROM kin CROSS JOIN sessions r
    WHERE r.parent = kin.session AND {_OF}
)
"""

SUPERSEDED = f"""
{_KIN}
SELECT placed.session FROM (
    SELECT held.session, ROW_NUMBER() OVER (
        PARTITION BY held.family
        ORDER BY held.in_vain, held.n_ballots DESC, held.n_answers DESC, held.at_us DESC,
            held.session DESC
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
    ) held
) placed
WHERE placed.place > 1
"""
"""The sessions that count no more; few, however many sessions there are."""

_FAMILIES = f"""
{_KIN}
SELECT kin.family, m.session, m.at_us, m.relation, m.parent FROM kin CROSS JOIN sessions m
WHERE m.session = kin.session
ORDER BY kin.family, m.at_us, m.session
"""


def mark_family(database: Database, rows: Rows, session: str) -> None:
    """Note that what is rolled up of the family of a session is not true, now that it is closed."""
    for family in _families(database, {session}):
        for one in family:
            rows.mark(one.session, one.at_us)


def leave_to_heirs(database: Database, rows: Rows, sessions: Iterable[str]) -> None:
    """Keep a family together of which some are about to be deleted: the rest follow each other."""
    gone = set(sessions)
    sql = "UPDATE sessions SET parent = :parent WHERE session = :session"
    for family in _families(database, gone):
        before: str | None = None
        for one in family:
            if one.session in gone:
                continue
            rows.mark(one.session, one.at_us)
            if one.relation == RETRIED and one.parent in gone:
                database.execute(sql, {"session": one.session, "parent": before})
            before = one.session


class _Kin(NamedTuple):
    """One of a family."""

    family: str
    session: str
    at_us: int
    relation: str | None
    parent: str | None


def _families(database: Database, sessions: Collection[str]) -> Iterator[list[_Kin]]:
    """The families that some of these are of, each in the order of time."""
    kin = (_Kin(*row) for row in database.rows(_FAMILIES))
    for _, family in groupby(kin, key=attrgetter("family")):
        held = list(family)
        if any(one.session in sessions for one in held):
            yield held
