"""Forgetting: sessions deleted from every table, and from the file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from witan.history.counting import reparent_families
from witan.history.database import Database, blocks, in_list
from witan.history.listing import require_datetime
from witan.history.locks import lock_cached_sums
from witan.history.reading import require_session, require_text
from witan.history.rows import ENTRY_TABLES, to_microseconds
from witan.history.schema import CACHE_DAYS, CACHE_SHARDS

AT_ONCE = 200
"""Sessions deleted in one transaction."""

SWEEP_SECONDS = 1.0
"""How long to wait for readers of the log after a deletion."""

_TABLES = ("sessions", *ENTRY_TABLES, "counted", "events", "imported")


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The deleted sessions.

    Parameters
    ----------
    note
        Where deleted text may remain, and how long; None: nowhere.
    """

    sessions: tuple[str, ...]
    note: str | None = None

    @property
    def n_sessions(self) -> int:
        """The number of deleted sessions."""
        return len(self.sessions)


def forget(database: Database, sessions: Sequence[str]) -> ForgetResult:
    """Delete sessions wholly, all of them or none."""
    for session in sessions:
        require_text(session)
    names = sorted(set(sessions))
    with database.transaction():
        for name in names:
            require_session(database, name)
        cells = [cell for block in blocks(names, AT_ONCE) for cell in _delete(database, block)]
        _delete_cached_sums(database, cells)
    return _clean_log(database, names)


def forget_before(database: Database, at: datetime) -> ForgetResult:
    """Delete every session asked before a time."""
    return _forget_older(database, "at_us", at)


def forget_added_before(database: Database, at: datetime) -> ForgetResult:
    """Delete sessions added to the history before a time."""
    return _forget_older(database, "added_us", at)


def _forget_older(database: Database, column: str, at: datetime) -> ForgetResult:
    """Delete older sessions, a few per transaction."""
    require_datetime("the time", at)
    sql = (
        f"SELECT session FROM sessions WHERE {column} < :before"  # noqa: S608
        f" ORDER BY {column}, session LIMIT :n"
    )
    params = {"before": to_microseconds(at), "n": AT_ONCE}
    forgotten: list[str] = []
    while True:
        with database.transaction():
            sessions = [name for (name,) in database.rows(sql, params)]
            cells = _delete(database, sessions)
            _delete_cached_sums(database, cells)
        forgotten += sessions
        if len(sessions) < AT_ONCE:
            return _clean_log(database, forgotten)


def _delete(database: Database, sessions: Sequence[str]) -> list[tuple[int, int]]:
    """Delete sessions; return day and bucket of each existing one.

    Their rows are locked in the order of their names, as by every writer, and are deleted first: a
    writer that waits for one finds it gone, and adds nothing.
    """
    if not sessions:
        return []
    among, params = in_list(sessions)
    sql = f"SELECT session, day, bucket FROM sessions WHERE session IN {among} ORDER BY session"  # noqa: S608
    cells = [(day, bucket) for _, day, bucket in database.rows(sql + database.locking, params)]
    people = [
        code
        for (code,) in database.rows(
            f"SELECT DISTINCT reviewer FROM ballots WHERE human = 1 AND session IN {among}",  # noqa: S608
            params,
        )
    ]
    digests = [
        digest
        for (digest,) in database.rows(
            f"SELECT DISTINCT digest FROM imported WHERE session IN {among}",  # noqa: S608
            params,
        )
    ]
    reparent_families(database, sessions)
    for table in _TABLES:
        database.execute(f"DELETE FROM {table} WHERE session IN {among}", params)  # noqa: S608
    database.execute(f"UPDATE sessions SET parent = NULL WHERE parent IN {among}", params)  # noqa: S608
    _delete_imports(database, digests)
    _delete_names(database, people)
    return cells


def _delete_imports(database: Database, digests: Sequence[str]) -> None:
    """Delete the digests of files without sessions, to allow another import."""
    for digest in sorted(digests):
        # The lock lets the second of two processes see what the first deleted.
        sql = "SELECT digest FROM imports WHERE digest = :digest" + database.locking  # noqa: S608
        database.rows(sql, {"digest": digest})
        database.execute(
            "DELETE FROM imports WHERE digest = :digest"
            " AND NOT EXISTS (SELECT 1 FROM imported WHERE digest = :digest)",
            {"digest": digest},
        )


def _delete_names(database: Database, people: Sequence[int]) -> None:
    """Delete the names of people without any other vote."""
    for code in people:
        database.execute(
            "DELETE FROM names WHERE code = :code"
            " AND NOT EXISTS (SELECT 1 FROM ballots WHERE reviewer = :code)"
            " AND NOT EXISTS (SELECT 1 FROM standings WHERE model = :code)"
            " AND NOT EXISTS (SELECT 1 FROM answers WHERE model = :code)",
            {"code": code},
        )


def _clean_log(database: Database, forgotten: Iterable[str]) -> ForgetResult:
    sessions = tuple(forgotten)
    if not sessions or database.truncate_log(SWEEP_SECONDS):
        return ForgetResult(sessions)
    note = (
        "the log of the history may still hold them until the programs that use it are closed:"
        " another process is reading it"
    )
    return ForgetResult(sessions, note)


def _delete_cached_sums(database: Database, cells: Iterable[tuple[int, int]]) -> None:
    """Delete the cached sums of these days and buckets.

    They may be those of a single session.
    """
    deleted = sorted({(day // CACHE_DAYS, bucket % CACHE_SHARDS) for day, bucket in cells})
    if not deleted:
        return
    lock_cached_sums(database)
    sql = "DELETE FROM cached_sums WHERE span = :span AND shard = :shard"
    for span, shard in deleted:
        database.execute(sql, {"span": span, "shard": shard})
