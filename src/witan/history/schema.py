"""A history's tables, migrations and superseded sessions, equal in SQLite and PostgreSQL.

    sessions ─┬─ events      the record of the session
              ├─ ballots     every ballot as cast, and as lists that an engine can sum
              ├─ answers     time, cost, length and text of each answer
              ├─ standings   a row per kind, rule and model, written when the session is counted
              ├─ matchups    a row per kind: wins, losses and ties between its models
              ├─ counted     rules it was counted under later, even without standings
              └─ waiting_votes  people's ballots on an open session, counted when it is closed
    heartbeats               process that records → time of its last heartbeat, in PostgreSQL
    names                    code → model, reviewer or criterion
    imports ─── imported     digests of imported files, and the sessions of each
    cached_sums              results of sums by span of days, see witan.analytics.sums

Times are integers: microseconds since 1970, UTC. Models and reviewers are stored as codes: 53 bits
of a hash of their name, the same in every history. Lists are JSON text. `searched` is the question
and the final answer, case-folded by Witan, so that every server finds the same sessions.

Migrations are numbered and only go forward; each is one transaction, and the table `migrations`
lists those applied. A history of a later version is left unchanged.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any
from zlib import crc32

from witan.core.session_ballots import BUCKETS
from witan.deliberation.ports import Clock
from witan.errors import HistoryError
from witan.history.database import (
    LOCK_SECONDS,
    Database,
    LockWait,
    Params,
    is_busy,
    lock_file,
    lock_schema,
)
from witan.history.engines import (
    SIDE_FILES,
    WRITE_PROTECTED,
    PostgresDatabase,
    SqliteDatabase,
    back_up_damaged_file,
    check_library,
    is_damage,
    is_disk_full_error,
    library_version,
)
from witan.history.location import parse_location
from witan.version import __version__

MICROSECONDS_A_DAY = 86_400_000_000

_MIGRATIONS_TABLE = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at_us BIGINT NOT NULL, witan TEXT NOT NULL)
"""

CACHE_DAYS = 8
"""Number of days whose sums are cached together."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE sessions (
            session TEXT PRIMARY KEY,
            at_us BIGINT NOT NULL,
            day INTEGER NOT NULL,
            bucket INTEGER NOT NULL,
            category TEXT,
            simulated INTEGER NOT NULL,
            rejudged INTEGER NOT NULL DEFAULT 0,
            source TEXT NOT NULL,
            status TEXT NOT NULL,
            holder TEXT NOT NULL,
            added_us BIGINT NOT NULL,
            revision INTEGER NOT NULL,
            question TEXT NOT NULL,
            closing TEXT,
            searched TEXT NOT NULL,
            rule TEXT,
            parent TEXT,
            relation TEXT,
            cost_usd DOUBLE PRECISION,
            seconds DOUBLE PRECISION,
            kendall_w DOUBLE PRECISION,
            agreement DOUBLE PRECISION,
            noise_unit TEXT,
            noise_variance DOUBLE PRECISION,
            noise_df DOUBLE PRECISION,
            effect_variance DOUBLE PRECISION
        )
        """,
        "CREATE INDEX sessions_by_time ON sessions (at_us)",
        "CREATE INDEX sessions_by_entry ON sessions (added_us)",
        "CREATE INDEX sessions_by_day ON sessions (day, bucket)",
        "CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL",
        """
        CREATE TABLE events (
            session TEXT NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL,
            at_us BIGINT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        )
        """,
        """
        CREATE TABLE ballots (
            session TEXT NOT NULL,
            ballot INTEGER NOT NULL,
            reviewer BIGINT NOT NULL,
            human INTEGER NOT NULL,
            paired INTEGER NOT NULL,
            abstained INTEGER NOT NULL,
            repaired INTEGER NOT NULL,
            flat INTEGER NOT NULL,
            kept INTEGER NOT NULL,
            compared INTEGER NOT NULL,
            weight DOUBLE PRECISION NOT NULL,
            models TEXT NOT NULL,
            own TEXT NOT NULL,
            shares TEXT NOT NULL,
            grades TEXT NOT NULL,
            positions TEXT NOT NULL,
            chars TEXT NOT NULL,
            criteria TEXT NOT NULL,
            criterion_grades TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (session, ballot)
        )
        """,
        """
        CREATE TABLE answers (
            session TEXT NOT NULL,
            seat TEXT NOT NULL,
            model BIGINT NOT NULL,
            chars BIGINT,
            seconds DOUBLE PRECISION,
            cost_usd DOUBLE PRECISION,
            output_tokens BIGINT,
            failed INTEGER NOT NULL,
            body TEXT,
            PRIMARY KEY (session, seat)
        )
        """,
        """
        CREATE TABLE standings (
            session TEXT NOT NULL,
            human INTEGER NOT NULL,
            rule TEXT NOT NULL,
            model BIGINT NOT NULL,
            score DOUBLE PRECISION,
            z DOUBLE PRECISION,
            votes INTEGER NOT NULL,
            offered INTEGER NOT NULL,
            wins DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (session, human, rule, model)
        )
        """,
        """
        CREATE TABLE matchups (
            session TEXT NOT NULL,
            human INTEGER NOT NULL,
            models TEXT NOT NULL,
            wins TEXT NOT NULL,
            losses TEXT NOT NULL,
            ties TEXT NOT NULL,
            p_beats TEXT NOT NULL,
            PRIMARY KEY (session, human)
        )
        """,
        """
        CREATE TABLE counted (
            session TEXT NOT NULL,
            rule TEXT NOT NULL,
            PRIMARY KEY (session, rule)
        )
        """,
        "CREATE TABLE names (code BIGINT PRIMARY KEY, name TEXT NOT NULL)",
        """
        CREATE TABLE imports (
            digest TEXT PRIMARY KEY,
            path TEXT NOT NULL,
            at_us BIGINT NOT NULL,
            n_sessions INTEGER NOT NULL
        )
        """,
        """
        CREATE TABLE imported (
            digest TEXT NOT NULL,
            session TEXT NOT NULL,
            PRIMARY KEY (digest, session)
        )
        """,
        "CREATE INDEX imported_by_session ON imported (session)",
        """
        CREATE TABLE changes (
            token TEXT PRIMARY KEY,
            day INTEGER NOT NULL,
            shard INTEGER NOT NULL
        )
        """,
        """
        CREATE TABLE rollups (
            span INTEGER NOT NULL,
            day INTEGER NOT NULL,
            shard INTEGER NOT NULL,
            version INTEGER NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (span, day, shard)
        )
        """,
        "CREATE INDEX rollups_by_version ON rollups (version)",
    ),
    (
        "CREATE INDEX matchups_of_people ON matchups (session) WHERE human = 1",
        "CREATE INDEX sessions_by_noise ON sessions (noise_unit, at_us)"
        " WHERE noise_unit IS NOT NULL",
    ),
    (
        """
        CREATE TABLE wholes (
            asked TEXT PRIMARY KEY,
            generation TEXT NOT NULL,
            version INTEGER NOT NULL,
            body {bytes} NOT NULL
        )
        """,
    ),
    (
        "DROP TABLE changes",
        "DROP TABLE rollups",
        "DROP TABLE wholes",
        "DROP INDEX sessions_by_day",
        # It covers the columns that decide whether cached sums are current.
        "CREATE INDEX sessions_by_day ON sessions (day, bucket, holder, revision, added_us)",
        """
        CREATE TABLE cached_sums (
            span INTEGER NOT NULL,
            shard INTEGER NOT NULL,
            query TEXT NOT NULL,
            state TEXT NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (span, shard, query)
        )
        """,
        "CREATE INDEX cached_sums_by_query ON cached_sums (query, span)",
    ),
    (
        """
        CREATE TABLE waiting_votes (
            session TEXT NOT NULL,
            reviewer TEXT NOT NULL,
            number INTEGER NOT NULL,
            body TEXT NOT NULL,
            why TEXT,
            PRIMARY KEY (session, reviewer, number)
        )
        """,
    ),
    ("CREATE TABLE heartbeats (process TEXT PRIMARY KEY, at_us BIGINT NOT NULL)",),
    (
        "DROP TABLE cached_sums",
        """
        CREATE TABLE cached_sums (
            span INTEGER NOT NULL,
            query TEXT NOT NULL,
            state TEXT NOT NULL,
            body {bytes} NOT NULL,
            PRIMARY KEY (query, span)
        )
        """,
        "CREATE INDEX cached_sums_by_span ON cached_sums (span)",
    ),
    (
        # In the order of lists, because all sessions of an import may have one time.
        "DROP INDEX sessions_by_time",
        "CREATE INDEX sessions_by_time ON sessions (at_us DESC, session)",
        "CREATE INDEX ballots_of_people ON ballots (reviewer) WHERE human = 1",
    ),
    ("ALTER TABLE sessions ADD COLUMN decision TEXT",),
)
"""Statements per version, from 1. Released versions are never edited.

``{bytes}`` stands for BLOB or BYTEA.
"""

RETRY = "retried"
"""Relation of a session to the one it retries."""

_IS_RETRY = f"r.parent IS NOT NULL AND r.relation = '{RETRY}'"

# The order matters: SQLite looks up rows by the table on the left of CROSS JOIN.
KIN_SQL = f"""
WITH RECURSIVE kin(session, family) AS (
    SELECT r.parent, r.parent FROM sessions r
    WHERE {_IS_RETRY} AND r.parent NOT IN (SELECT r.session FROM sessions r WHERE {_IS_RETRY})
    UNION
    SELECT r.session, kin.family FROM kin CROSS JOIN sessions r
    WHERE r.parent = kin.session AND {_IS_RETRY}
)
"""  # noqa: S608 - texts of our own
"""Query prefix that names the family of each session and retry by its first session."""

SUPERSEDED_SESSIONS = f"""
{KIN_SQL}
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
"""Query of sessions superseded by another of their family.

A family, a session with its retries and their retries, shares answers and ballots, so only one
closed session of it counts: the one with the most ballots; among equals that with the most answers,
then the latest; a failed one only if all failed. A session whose retry failed therefore still
counts. The choice depends only on the stored rows: if the session that counts is deleted, the next
one counts.
"""


def migrate(database: Database, clock: Clock) -> None:
    """Apply the missing migrations, each in one transaction."""
    kinds = {"{bytes}": "BLOB" if database.dialect == "sqlite" else "BYTEA"}
    for version in range(read_version(database) + 1, len(MIGRATIONS) + 1):
        with database.transaction():
            if version == 1:
                database.execute(_MIGRATIONS_TABLE)
            for statement in MIGRATIONS[version - 1]:
                sql = statement
                for mark, kind in kinds.items():
                    sql = sql.replace(mark, kind)
                database.execute(sql)
            at_us = round(clock.now().timestamp() * 1_000_000)
            database.execute(
                "INSERT INTO migrations (version, at_us, witan) VALUES (:version, :at_us, :witan)",
                {"version": version, "at_us": at_us, "witan": __version__},
            )


def code_of(name: str) -> int:
    """Return a name's code of 53 bits, exact in a float.

    Among a million names, two share a code in one of 20,000 histories; the second is refused.
    """
    return int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=8).digest()) >> 11


def bucket_of(session: str) -> int:
    """Return a session's bucket for clustered errors: crc32 modulo 256.

    A session that judges the answers of another has its bucket.
    """
    return crc32(session.encode(errors="replace")) % BUCKETS


def read_version(database: Database) -> int:
    """Return the number of a history's migrations; 0 in an empty database."""
    tables = _tables(database)
    if "migrations" not in tables:
        # A server's database may contain other tables; a file contains one history or none.
        if tables & {*_TABLES} or (tables and database.dialect == "sqlite"):
            raise _foreign_error(database)
        return 0
    if not _is_ours(database):
        raise _foreign_error(database)
    [(version, by)] = database.rows(
        "SELECT version, witan FROM migrations ORDER BY version DESC LIMIT 1"
    ) or [(0, __version__)]
    if version > len(MIGRATIONS):
        raise HistoryError(
            database.location,
            f"has version {version}, written by Witan {by}; this Witan, {__version__}, supports "
            f"versions up to {len(MIGRATIONS)}; nothing was changed",
            "update Witan, or choose another history",
        )
    return int(version)


def _tables(database: Database) -> set[str]:
    if database.dialect == "sqlite":
        sql = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    else:
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema"
    return {name for (name,) in database.rows(sql)}


def _is_ours(database: Database) -> bool:
    """True if the table `migrations` belongs to a history."""
    if database.dialect == "sqlite":
        sql = "SELECT name FROM pragma_table_info('migrations')"
    else:
        sql = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema AND table_name = 'migrations'"
        )
    return {"version", "at_us", "witan"} <= {name for (name,) in database.rows(sql)}


def _foreign_error(database: Database) -> HistoryError:
    problem = "contains tables of another program and no history"
    return HistoryError(database.location, problem, "choose another location")


def probe_tables(database: Database) -> None:
    """Read a row of every table, to detect damage early."""
    for table in _TABLES:
        database.rows(f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS probe")  # noqa: S608


def _list_tables() -> tuple[str, ...]:
    """List the tables after all migrations."""
    tables: dict[str, None] = {}
    for statement in chain.from_iterable(MIGRATIONS):
        if created := re.match(r"\s*CREATE TABLE (\w+)", statement):
            tables[created[1]] = None
        elif dropped := re.match(r"DROP TABLE (\w+)", statement):
            del tables[dropped[1]]
    return tuple(tables)


_TABLES = _list_tables()


class _FailedCheckError(Exception):
    """Damage in a file that can still be read."""


def open_database(
    url: str | Path, clock: Clock, lock_wait: LockWait, *, reading: bool = False
) -> Database:
    """Open the history at a location; migrate it if needed.

    `reading`: open for reading only: nothing is created, and a protected file is not written to.
    """
    place = parse_location(url)
    if isinstance(place, str):
        return _open_postgresql(place, clock)
    try:
        return _open_sqlite(place, clock, lock_wait, reading=reading)
    except (OSError, ValueError) as error:  # a name that is too long, or has an invalid character
        raise _unwritable(place, error) from error
    except HistoryError as error:
        if not is_damage(error, place):
            raise
        damage = "is damaged: its beginning is lost"
        problem = damage if "not a SQLite file" in error.problem else error.problem
        is_readable = isinstance(error.__cause__, _FailedCheckError)
        raise damage_error(place, problem, clock.now(), is_readable=is_readable) from error


def damage_error(
    path: Path, problem: str, at: datetime, *, is_readable: bool = True
) -> HistoryError:
    """Copy a damaged file, and return the error about it.

    `is_readable`: true if the file can still be opened and its sessions exported.
    """
    damage = problem if problem.startswith("is damaged") else f"is damaged: {problem}"
    try:
        copy = back_up_damaged_file(path, at)
    except (OSError, ValueError) as error:
        return HistoryError(
            str(path), f"{damage}; no copy could be made ({error})", "copy it, then move it away"
        )
    problem = f"{damage}; it is unchanged, with a copy at {copy}"
    if not is_readable:
        remedy = (
            "none of its tables can be read: restore a backup; or move it away to start a new "
            "history, and import what you saved or exported before: witan import FILE"
        )
        return HistoryError(str(path), problem, remedy)
    path_text, rescue_file = quote(str(path)), quote(f"{path}.jsonl")
    return HistoryError(
        str(path),
        problem,
        f"restore a backup; or save what can be read: witan export --history {path_text} "
        f"-o {rescue_file}, move it away to start a new history, then: witan import {rescue_file}",
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _is_truncated(path: Path, lock_wait: LockWait) -> bool:
    """True if a file is empty but its log is not."""

    def check(wait: float) -> bool:
        with _lock_for_making(path, wait):
            return _size(path) == 0 and has_log(path)

    if _size(path) or not has_log(path):
        return False
    # While another process creates the file, its first pages are only in the log.
    return not may_write(path) or lock_wait.run(str(path), check)


class _NewDatabase(SqliteDatabase):
    """An empty history in memory until its file exists, which the first write creates."""

    def __init__(self, path: Path, clock: Clock, *, busy_seconds: float = LOCK_SECONDS) -> None:
        super().__init__(path, str(path), busy_seconds=busy_seconds, mode="memory")
        self._clock = clock
        migrate(self, clock)
        self._pragma("query_only = ON")
        self.exists = self.read_only = False

    def reopen(self, wait: float) -> SqliteDatabase:
        if self.exists:
            return super().reopen(wait)
        self._require_open()
        return _NewDatabase(self.path, self._clock, busy_seconds=wait)

    def _run(self, sql: str, params: Params) -> Any:
        if not self._depth:
            reads = sql.lstrip().startswith(("SELECT", "WITH", "PRAGMA"))
            self._open_file(write=not reads, wait=None)
        return super()._run(sql, params)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        self._open_file(write=write, wait=wait)
        super()._begin(write=write, wait=wait)

    def _open_file(self, *, write: bool, wait: float | None) -> None:
        """Open the file once it exists; create it to write."""
        if self.exists or not (write or os.access(self.path, os.F_OK)):
            return
        make = partial(_make_or_migrate, self.path, self._clock)
        _make_folder(self.path)
        if wait is None:
            made = LockWait(self.on_wait, self.lock_seconds).run(self.location, make)
        else:
            made = make(wait)
        with made:
            self._connection.close()
            self._mode, self._is_wal = "rw", None
            self._connect()
            self._timeout_seconds = self._busy_seconds
        self.exists = True


def _open_sqlite(path: Path, clock: Clock, lock_wait: LockWait, *, reading: bool) -> SqliteDatabase:
    _require_file(path)
    check_library(str(path), library_version())
    if _is_truncated(path, lock_wait):
        problem = "is damaged: the file is empty but its log is not"
        raise damage_error(path, problem, clock.now())
    size = _size(path)
    if reading and size == 0:
        problem = "there is no history yet" if not path.exists() else "is empty: no history yet"
        raise HistoryError(str(path), problem, "ask a question, or choose another location")
    if reading and not may_write(path):
        return lock_wait.run(str(path), lambda wait: open_read_only(path, wait))
    if size and not may_write(path):
        remedy = "make the file and its folder writable, or name another place"
        raise HistoryError(str(path), WRITE_PROTECTED, remedy)
    if size:
        try:
            database = lock_wait.run(
                str(path), lambda wait: _open_current(path, wait, reading=reading)
            )
        except HistoryError as error:
            # A process that has it open would have created the files that readers share.
            if not (reading and is_disk_full_error(error.__cause__, path) and has_no_log(path)):
                raise
            return lock_wait.run(str(path), partial(open_read_only, path, is_full=True))
        if database is not None:
            return database
    if not path.exists() and _may_create(path):
        return _NewDatabase(path, clock)
    _make_folder(path)
    return lock_wait.run(str(path), lambda wait: _make_or_migrate(path, clock, wait))


def _require_file(path: Path) -> None:
    """Refuse a folder, device or pipe before the first write."""
    if path.is_dir():
        raise HistoryError(str(path), "is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        problem = "is a device or a pipe, which stores nothing"
        raise HistoryError(str(path), problem, "give a file, or use no history")


def _open_current(path: Path, wait: float, *, reading: bool) -> SqliteDatabase | None:
    """Open a file of this version; None if it is older."""
    with ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        if read_version(database) < len(MIGRATIONS):
            return None
        probe_tables(database)
        if not reading and (damage := database.quick_check()) is not None:
            raise HistoryError(str(path), f"is damaged: {damage}", "") from _FailedCheckError(
                "malformed"
            )
        database.choose_journal()
        database.restore_busy_timeout()
        stack.pop_all()
    return database


def _make_or_migrate(path: Path, clock: Clock, wait: float) -> SqliteDatabase:
    with _lock_for_making(path, wait), ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path), busy_seconds=wait)))
        # If several processes waited for the lock, the first one has created it.
        if read_version(database) < len(MIGRATIONS):
            database.choose_journal()
            migrate(database, clock)
        probe_tables(database)
        database.restore_busy_timeout()
        stack.pop_all()
    return database


@contextmanager
def _lock_for_making(path: Path, wait: float) -> Iterator[None]:
    try:
        with lock_file(path.with_name(f"{path.name}.lock"), wait) as locked:
            if not locked:
                problem = f"is being opened by another process (waited {wait:g} s)"
                error = HistoryError(str(path), problem, "wait until it finishes, then try again")
                raise error from BlockingIOError()
            path.touch(mode=0o600)
            yield
    except OSError as error:
        raise _unwritable(path, error) from error


def _make_folder(path: Path) -> None:
    """Create the folder, accessible only to its owner, unless it exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _may_create(path: Path) -> bool:
    """True if a missing file, and its folder, can be created."""
    from tempfile import TemporaryFile

    above = next(each for each in path.absolute().parents if each.exists())
    try:
        TemporaryFile(dir=above).close()
    except OSError:
        return False
    return True


def _unwritable(path: Path, error: Exception) -> HistoryError:
    problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return HistoryError(str(path), problem, "choose a file in a writable folder")


def _open_postgresql(url: str, clock: Clock) -> PostgresDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(closing(PostgresDatabase(url)))
        if (encoding := database.encoding()) != "UTF8":
            problem = f"is a database in the encoding {encoding}, which cannot store every text"
            remedy = "make another: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            raise HistoryError(database.location, problem, remedy)
        if read_version(database) < len(MIGRATIONS):
            with database.transaction():
                lock_schema(database)
                migrate(database, clock)
        stack.pop_all()
    return database


def may_write(path: Path) -> bool:
    """True if a file and its folder are writable."""
    return all(os.access(folder, os.W_OK) for folder in (path, path.absolute().parent))


def has_log(path: Path) -> bool:
    """True if a write-ahead log contains part of a file's data."""
    try:
        return Path(f"{path}-wal").stat().st_size > 0
    except OSError:
        return False


def has_no_log(path: Path) -> bool:
    """True if neither log nor journal contains part of a file's data."""
    return not any(
        side_file.exists() and side_file.stat().st_size
        for side_file in (Path(f"{path}{suffix}") for suffix in SIDE_FILES)
    )


def open_read_only(path: Path, wait: float, *, is_full: bool = False) -> SqliteDatabase:
    """Open a write-protected file without any change.

    `is_full`: true if the file is writable and needs no log, but its disk is full.
    """
    try:
        return _open_in_mode(path, wait, "ro&immutable=1" if is_full else _mode(path))
    except HistoryError as error:
        if not has_log(path) or is_busy(error):
            raise
        problem = "cannot be read here: applying its write-ahead log needs write access"
        remedy = "copy it and its log to a writable folder"
        raise HistoryError(str(path), problem, remedy) from error


def _open_in_mode(path: Path, wait: float, mode: str) -> SqliteDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(
            closing(SqliteDatabase(path, str(path), busy_seconds=wait, mode=mode))
        )
        version = read_version(database)
        if version < len(MIGRATIONS):
            problem = (
                f"has version {version}, this Witan reads version {len(MIGRATIONS)}, and a"
                " write-protected file cannot be migrated"
            )
            raise HistoryError(str(path), problem, "copy it to a writable folder")
        probe_tables(database)
        database.restore_busy_timeout()
        stack.pop_all()
    return database


def _mode(path: Path) -> str:
    """Return the mode to open a file: immutable if write-protected.

    Only in this mode SQLite creates no files next to it.
    """
    if has_log(path):
        return "ro"
    folder_is_closed = not os.access(path.absolute().parent, os.W_OK)
    is_protected = not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    return "ro&immutable=1" if folder_is_closed or is_protected else "ro"
