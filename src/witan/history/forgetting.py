"""Forgetting: a session leaves every table, and the file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from witan.history.counting import reparent_families
from witan.history.database import Database
from witan.history.listing import require_datetime
from witan.history.locks import lock_cached_sums
from witan.history.reading import require_session, require_text
from witan.history.rows import ENTRY_TABLES, to_microseconds
from witan.history.schema import CACHE_DAYS, CACHE_SHARDS

AT_ONCE = 200
"""Sessions that are forgotten in one transaction."""

SWEEP_SECONDS = 1.0
"""How long a reader of the log is waited for, once the sessions are gone."""

_TABLES = ("sessions", *ENTRY_TABLES, "counted", "events", "imported")


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What was forgotten.

    Parameters
    ----------
    note
        What may still be read of it, and until when; None: nothing.
    """

    n_sessions: int
    note: str | None = None


def forget(database: Database, sessions: Sequence[str]) -> ForgetResult:
    """Delete sessions wholly, all of them or none.

    Raises
    ------
    UnknownName
        If there is no such session.
    """
    for session in sessions:
        require_text(session)
    names = sorted(set(sessions))
    with database.transaction():
        for name in names:
            require_session(database, name)
        cells = [cell for block in _blocks(names) for cell in _delete(database, block)]
        _forget_cached_sums(database, cells)
    return _swept(database, len(cells))


def forget_before(database: Database, at: datetime) -> ForgetResult:
    """Delete every session asked before a time."""
    return _forget_older(database, "at_us", at)


def forget_added_before(database: Database, at: datetime) -> ForgetResult:
    """Delete every session that came in before a time, whenever it was asked."""
    return _forget_older(database, "added_us", at)


def _forget_older(database: Database, column: str, at: datetime) -> ForgetResult:
    """Delete what is older, a few at a time: nobody waits for all of it."""
    require_datetime("the time", at)
    sql = (
        f"SELECT session FROM sessions WHERE {column} < :before"  # noqa: S608
        f" ORDER BY {column}, session LIMIT :n"
    )
    given = {"before": to_microseconds(at), "n": AT_ONCE}
    forgotten = 0
    while True:
        with database.transaction():
            sessions = [name for (name,) in database.rows(sql, given)]
            cells = _delete(database, sessions)
            _forget_cached_sums(database, cells)
        forgotten += len(cells)
        if len(sessions) < AT_ONCE:
            return _swept(database, forgotten)


def _blocks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE))


def _delete(database: Database, sessions: Sequence[str]) -> list[tuple[int, int]]:
    """Delete sessions; return the day and the bucket of each that was there.

    Their rows are locked in the order of their names, as every writer locks them, and go before all
    that depends on them: whoever waits for one finds it gone, and adds nothing.
    """
    if not sessions:
        return []
    given = {f"s{k}": session for k, session in enumerate(sessions)}
    among = f"IN ({', '.join(':' + name for name in given)})"
    sql = f"SELECT session, day, bucket FROM sessions WHERE session {among} ORDER BY session"  # noqa: S608
    cells = [(day, bucket) for _, day, bucket in database.rows(sql + database.locking, given)]
    people = [
        code
        for (code,) in database.rows(
            f"SELECT DISTINCT reviewer FROM ballots WHERE human = 1 AND session {among}",  # noqa: S608
            given,
        )
    ]
    digests = [
        digest
        for (digest,) in database.rows(
            f"SELECT DISTINCT digest FROM imported WHERE session {among}",  # noqa: S608
            given,
        )
    ]
    reparent_families(database, sessions)
    for table in _TABLES:
        database.execute(f"DELETE FROM {table} WHERE session {among}", given)  # noqa: S608
    database.execute(f"UPDATE sessions SET parent = NULL WHERE parent {among}", given)  # noqa: S608
    _forget_imports(database, digests)
    _forget_names(database, people)
    return cells


def _forget_imports(database: Database, digests: Sequence[str]) -> None:
    """A file of which nothing is left may come in again."""
    for digest in sorted(digests):
        # Of two that forget the last sessions of a file, the second sees what the first deleted.
        sql = "SELECT digest FROM imports WHERE digest = :digest" + database.locking  # noqa: S608
        database.rows(sql, {"digest": digest})
        database.execute(
            "DELETE FROM imports WHERE digest = :digest"
            " AND NOT EXISTS (SELECT 1 FROM imported WHERE digest = :digest)",
            {"digest": digest},
        )


def _forget_names(database: Database, people: Sequence[int]) -> None:
    """A person who voted in no other session is named no more."""
    for code in people:
        database.execute(
            "DELETE FROM names WHERE code = :code"
            " AND NOT EXISTS (SELECT 1 FROM ballots WHERE reviewer = :code)"
            " AND NOT EXISTS (SELECT 1 FROM standings WHERE model = :code)"
            " AND NOT EXISTS (SELECT 1 FROM answers WHERE model = :code)",
            {"code": code},
        )


def _swept(database: Database, forgotten: int) -> ForgetResult:
    if not forgotten or database.truncate_log(SWEEP_SECONDS):
        return ForgetResult(forgotten)
    note = (
        "the log of the history may still hold them until the programs that use it are closed:"
        " another process is reading it"
    )
    return ForgetResult(forgotten, note)


def _forget_cached_sums(database: Database, cells: Iterable[tuple[int, int]]) -> None:
    """Delete the cached sums of these days and buckets, which may be those of a single session."""
    forgotten = sorted({(day // CACHE_DAYS, bucket % CACHE_SHARDS) for day, bucket in cells})
    if not forgotten:
        return
    lock_cached_sums(database)
    sql = "DELETE FROM cached_sums WHERE span = :span AND shard = :shard"
    for span, shard in forgotten:
        database.execute(sql, {"span": span, "shard": shard})
