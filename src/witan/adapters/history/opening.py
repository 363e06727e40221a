"""Opening a history: its place, a lock while it is made or migrated, and what is refused.

Migrations are numbered and only go forward; each is one transaction, and the history itself keeps
which it has had. A history of a later version is left as it is.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from platformdirs import user_data_path

from witan.adapters.history.database import Database
from witan.adapters.history.locking import locked
from witan.adapters.history.postgresql import PostgresDatabase, without_password
from witan.adapters.history.schema import MIGRATIONS
from witan.adapters.history.sqlite import (
    BUSY_SECONDS,
    SqliteDatabase,
    copied_aside,
    is_damage,
)
from witan.deliberation.ports import Clock
from witan.errors import HistoryError
from witan.version import __version__

__all__ = ["default_place", "open_database", "place_of", "version_of"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ADVISORY_KEY = 0x77_69_74_61_6E
"""The key of the advisory lock that openers of a PostgreSQL history take: "witan" in ASCII."""

_TABLE = """
CREATE TABLE migrations (version INTEGER PRIMARY KEY, at_us BIGINT NOT NULL, witan TEXT NOT NULL)
"""


def default_place() -> Path:
    """Where this platform keeps a user's data: ``…/witan/history.sqlite``."""
    return user_data_path("witan", appauthor=False) / "history.sqlite"


def place_of(url: str | Path) -> Path | str:
    """The file that a URL or path names, or the URL of a PostgreSQL database.

    ``sqlite:///history.sqlite`` is relative, ``sqlite:////srv/history.sqlite`` absolute.
    """
    scheme = None if isinstance(url, Path) else _SCHEME.match(url)
    if scheme is None:
        if str(url) in ("", "."):
            raise HistoryError("the history", "has no place", "name a file, or a postgresql:// URL")
        return _expanded(Path(url))
    kind, rest = scheme[1].casefold(), str(url)[scheme.end() :]
    if kind in ("postgresql", "postgres"):
        return f"postgresql://{rest}"
    if kind == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return _expanded(Path(unquote(rest[1:])))
    expected = "write a path, sqlite:///path, or postgresql://user@host/database"
    where = without_password(str(url)).replace("postgresql:", f"{kind}:", 1)
    raise HistoryError(where, "is no place for a history", expected)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise HistoryError(str(path), f"is no place: {error}", "name another place") from error


def open_database(url: str | Path, clock: Clock) -> Database:
    """Open the history at a place, and make or migrate it where that is needed."""
    place = place_of(url)
    if isinstance(place, str):
        return _open_postgresql(place, clock)
    try:
        return _open_sqlite(place, clock)
    except (OSError, ValueError) as error:  # a name that is too long, or that no file can have
        raise _no_place(place, error) from error
    except HistoryError as error:
        if not is_damage(error):
            raise
        raise damaged(place, error.problem, clock.now()) from error


def damaged(path: Path, problem: str, at: datetime) -> HistoryError:
    """What to say of a damaged file, which is copied aside and left where it is."""
    found = problem if problem.startswith("is damaged") else f"is damaged: {problem}"
    try:
        copy = copied_aside(path, at)
    except (OSError, ValueError) as error:
        return HistoryError(
            str(path), f"{found}; no copy could be made ({error})", "copy it, and move it away"
        )
    return HistoryError(
        str(path),
        f"{found}; it is left as it is, and copied to {copy}",
        "put a backup in its place, or move it away to begin a new history",
    )


def _open_sqlite(path: Path, clock: Clock) -> SqliteDatabase:
    if path.is_dir():
        raise HistoryError(str(path), "is a folder", "name a file in it")
    if path.exists() and path.stat().st_size:
        with ExitStack() as stack:
            database = stack.enter_context(closing(SqliteDatabase(path, str(path))))
            if version_of(database) == len(MIGRATIONS):
                _look_into(database)
                database.choose_journal()
                stack.pop_all()
                return database
    _make_place(path)
    with _alone(path), ExitStack() as stack:
        database = stack.enter_context(closing(SqliteDatabase(path, str(path))))
        # Several openers may have waited for the lock: the first one made it.
        if version_of(database) < len(MIGRATIONS):
            database.choose_journal()
            _migrate(database, clock)
        _look_into(database)
        stack.pop_all()
        return database


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    try:
        with locked(path.with_name(f"{path.name}.lock"), BUSY_SECONDS) as held:
            if not held:
                problem = f"another process has been opening it for {BUSY_SECONDS:g} s"
                raise HistoryError(str(path), problem, "let that finish, then try again")
            path.touch(mode=0o600)
            yield
    except OSError as error:
        raise _no_place(path, error) from error


def _make_place(path: Path) -> None:
    """The folder, for its owner alone where it is made here."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _no_place(path, error) from error


def _no_place(path: Path, error: Exception) -> HistoryError:
    problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return HistoryError(str(path), problem, "name a file in a folder that you may write")


def _open_postgresql(url: str, clock: Clock) -> PostgresDatabase:
    with ExitStack() as stack:
        database = stack.enter_context(closing(PostgresDatabase(url)))
        if version_of(database) < len(MIGRATIONS):
            with database.transaction():
                # Held to the end of the transaction, and so by one opener at a time.
                database.rows("SELECT pg_advisory_xact_lock(:key)", {"key": _ADVISORY_KEY})
                _migrate(database, clock)
        stack.pop_all()
    return database


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


def _migrate(database: Database, clock: Clock) -> None:
    """Take the history to this version, each step as one."""
    kinds = {"{bytes}": "BLOB" if database.dialect == "sqlite" else "BYTEA"}
    for version in range(version_of(database) + 1, len(MIGRATIONS) + 1):
        with database.transaction():
            if version == 1:
                database.execute(_TABLE)
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


def _look_into(database: Database) -> None:
    """Read a little of every table, so that a file that is damaged is found damaged now."""
    for table in _TABLES:
        database.rows(f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT 1) AS held")  # noqa: S608


_TABLES = tuple(
    found[1]
    for step in MIGRATIONS
    for statement in step
    if (found := re.match(r"\s*CREATE TABLE (\w+)", statement))
)
