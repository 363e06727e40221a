"""What there is to say of a history as a whole."""

from dataclasses import dataclass
from datetime import datetime

from witan.history.database import Database
from witan.history.reading import moment_of
from witan.history.sqlite import SqliteDatabase

__all__ = ["Described", "describe"]


@dataclass(frozen=True, slots=True)
class Described:
    """A history as a whole.

    Parameters
    ----------
    where
        The file, or the URL without a password.
    version
        How many migrations it has had; the last one at `migrated_at`, by the Witan `migrated_by`.
    n_bytes
        What the file, or the database, takes up.
    """

    where: str
    kind: str
    journal: str
    version: int
    migrated_at: datetime
    migrated_by: str
    n_sessions: int
    n_simulated: int
    n_interrupted: int
    n_bytes: int


def describe(database: Database) -> Described:
    """Count what a history holds."""
    with database.snapshot():
        [(n_sessions, n_simulated, n_interrupted)] = database.rows(
            "SELECT COUNT(*), COALESCE(SUM(simulated), 0),"
            " COALESCE(SUM(CASE WHEN status = 'interrupted' THEN 1 ELSE 0 END), 0) FROM sessions"
        )
        [(version, at_us, by)] = database.rows(
            "SELECT version, at_us, witan FROM migrations ORDER BY version DESC LIMIT 1"
        )
    return Described(
        where=database.where,
        kind="SQLite" if database.dialect == "sqlite" else "PostgreSQL",
        journal=database.journal,
        version=int(version),
        migrated_at=moment_of(at_us),
        migrated_by=by,
        n_sessions=int(n_sessions),
        n_simulated=int(n_simulated),
        n_interrupted=int(n_interrupted),
        n_bytes=_size(database),
    )


def _size(database: Database) -> int:
    if isinstance(database, SqliteDatabase):
        beside = database.path.with_name(f"{database.path.name}-wal")
        return sum(path.stat().st_size for path in (database.path, beside) if path.exists())
    [(size,)] = database.rows("SELECT pg_database_size(current_database())")
    return int(size)
