"""Sums that are kept beside the sessions: who may change them, and which forgetting deletes."""

from collections.abc import Iterable

from witan.history.database import Database

__all__ = ["forget_sums", "hold_sums"]

_ADVISORY_KEY = 0x77_69_74_61_6F
"""Of the lock that whoever changes sums in a PostgreSQL history takes for the moment of writing."""


def hold_sums(database: Database) -> None:
    """Let nobody else change sums until the caller's transaction ends; it is waited for.

    Who holds them locks no session or name after that, so that two never wait for each other.
    Statements after it see what others have kept, marked and forgotten until now.
    """
    if database.dialect == "postgresql":
        database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _ADVISORY_KEY})


def forget_sums(database: Database, cells: Iterable[tuple[int, int]]) -> None:
    """Delete the sums that may tell of a single session of these days and shards.

    Their marks are written before, within the caller's transaction: so whoever keeps sums later
    sees that what was summed of them holds no more.
    """
    forgotten = sorted(set(cells))
    if not forgotten:
        return
    hold_sums(database)
    for day, shard in forgotten:
        database.execute(
            "DELETE FROM rollups WHERE shard = :shard AND day <= :day AND day + span > :day",
            {"day": day, "shard": shard},
        )
    database.execute("DELETE FROM wholes WHERE asked <> ''")
