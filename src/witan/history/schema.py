"""A history's tables and migrations, equal in SQLite and PostgreSQL.

    sessions ─┬─ events      the record of the session
              ├─ ballots     every ballot as cast, and as lists that an engine can sum
              ├─ answers     time, cost, length and text of each answer
              ├─ standings   a row per kind, rule and model, written when the session is counted
              ├─ matchups    a row per kind: wins, losses and ties between its models
              └─ counted     rules it was counted under later, even without standings
    names                    code → model, reviewer or criterion
    imports ─── imported     digests of imported files, and the sessions of each
    cached_sums              results of sums by span of days and shard, see witan.analytics.cache

Times are UTC microseconds in an integer. Models and reviewers are stored as codes: 53 bits of a
hash of their name, the same in every history. Lists are JSON text. `searched` is question and
final answer, case-folded by our own code, so that every server searches alike.

Migrations are numbered and only go forward; each is one transaction, and the table `migrations`
lists those applied. A history of a later version is left unchanged.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from zlib import crc32

from witan.core.entries import BUCKETS
from witan.deliberation.ports import Clock
from witan.errors import HistoryError
from witan.history.database import Database
from witan.version import __version__

MICROSECONDS_A_DAY = 86_400_000_000

_MIGRATIONS_TABLE = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at_us BIGINT NOT NULL, witan TEXT NOT NULL)
"""

CACHE_DAYS = 8
"""Days of sessions whose sums are cached together."""

CACHE_SHARDS = 16
"""Parts of such a span: the bucket of a session, modulo this."""

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
        # It covers the states by which cached sums are compared.
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
)
"""Statements per version, from 1. A version is never edited, only followed by another.

``{bytes}`` stands for BLOB or BYTEA.
"""


def migrate(database: Database, clock: Clock) -> None:
    """Apply the missing migrations, each in one transaction."""
    kinds = {"{bytes}": "BLOB" if database.dialect == "sqlite" else "BYTEA"}
    for version in range(read_version(database) + 1, len(MIGRATIONS) + 1):
        with database.transaction():
            if version == 1:
                database.execute(_MIGRATIONS_TABLE)
            for statement in MIGRATIONS[version - 1]:
                written = statement
                for mark, kind in kinds.items():
                    written = written.replace(mark, kind)
                database.execute(written)
            at_us = round(clock.now().timestamp() * 1_000_000)
            database.execute(
                "INSERT INTO migrations (version, at_us, witan) VALUES (:version, :at_us, :witan)",
                {"version": version, "at_us": at_us, "witan": __version__},
            )


def code_of(name: str) -> int:
    """Return a name's code of 53 bits, exact in a float.

    Two of a million names share a code once in 20,000 histories; a history refuses the second.
    """
    return int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=8).digest()) >> 11


def bucket_of(session: str) -> int:
    """Return a session's bucket for clustered errors: crc32 modulo 256.

    A session that judges the answers of another shares its group.
    """
    return crc32(session.encode(errors="replace")) % BUCKETS


def read_version(database: Database) -> int:
    """Return the number of a history's migrations; 0 in an empty database.

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
    """Tell a history's table `migrations` from another's."""
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


def probe_tables(database: Database) -> None:
    """Read a row of every table, to expose damage now."""
    for table in _TABLES:
        database.rows(f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS probe")  # noqa: S608


def _tables_after(steps: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the tables after these migrations."""
    tables: dict[str, None] = {}
    for statement in chain.from_iterable(steps):
        if created := re.match(r"\s*CREATE TABLE (\w+)", statement):
            tables[created[1]] = None
        elif dropped := re.match(r"DROP TABLE (\w+)", statement):
            del tables[dropped[1]]
    return tuple(tables)


_TABLES = _tables_after(MIGRATIONS)
