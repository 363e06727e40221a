"""Which version a history is of; refused is one of a later Witan, and what is no history."""

import re

from witan.errors import HistoryError
from witan.history.database import Database
from witan.history.schema import MIGRATIONS
from witan.version import __version__

__all__ = ["look_into", "version_of"]


def version_of(database: Database) -> int:
    """How many migrations a history has had; refuse one of a later Witan, and what is no history.

    Raises
    ------
    HistoryError
        If it is of a later version, or tables of another program are there.
    """
    tables = _tables(database)
    if "migrations" not in tables:
        # A server's database may hold more than a history; a file is one, or none.
        if tables & {*_TABLES} or (tables and database.dialect == "sqlite"):
            raise _foreign(database)
        return 0
    if not _is_ours(database):
        raise _foreign(database)
    [(version, by)] = database.rows(
        "SELECT version, witan FROM migrations ORDER BY version DESC LIMIT 1"
    ) or [(0, __version__)]
    if version > len(MIGRATIONS):
        raise HistoryError(
            database.where,
            f"is of version {version}, written by Witan {by}; this Witan, {__version__}, knows "
            f"versions up to {len(MIGRATIONS)}, and leaves it as it is",
            "update Witan, or name another history",
        )
    return int(version)


def _tables(database: Database) -> set[str]:
    if database.dialect == "sqlite":
        sql = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    else:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema"
    return {name for (name,) in database.rows(sql)}


def _is_ours(database: Database) -> bool:
    """Whether the migrations are those of a history."""
    if database.dialect == "sqlite":
        sql = "SELECT name FROM pragma_table_info('migrations')"
    else:
        sql = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema AND table_name = 'migrations'"
        )
    return {"version", "at_us", "witan"} <= {name for (name,) in database.rows(sql)}


def _foreign(database: Database) -> HistoryError:
    problem = "holds tables of another program, and no history"
    return HistoryError(database.where, problem, "name another place")


def look_into(database: Database) -> None:
    """Read a little of every table, so that a file that is damaged is found damaged now."""
    for table in _TABLES:
        database.rows(f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS held")  # noqa: S608


_TABLES = tuple(
    found[1]
    for step in MIGRATIONS
    for statement in step
    if (found := re.match(r"\s*CREATE TABLE (\w+)", statement))
)
