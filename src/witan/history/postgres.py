"""A history in PostgreSQL through psycopg, imported on first use."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from witan.errors import HistoryError, MissingExtra
from witan.history.database import NO_PARAMS, Database, Params, percent_style, unstorable_error
from witan.history.location import redact_password

RECONNECT_SECONDS = 5.0
"""How long to try to reconnect; a server that restarts is back soon."""

_PAUSE_SECONDS = 0.1

_GONE = ("57P01", "57P02", "57P03")
"""Codes of a server that is stopping, has crashed, or is starting up."""

CONNECT_SECONDS = 10
"""How long a server may take to answer, unless the URL has a ``connect_timeout``."""


class PostgresDatabase(Database):
    """A connection to PostgreSQL with automatic reconnection."""

    dialect = "postgresql"
    locking = " FOR UPDATE"
    sharing = " FOR KEY SHARE"

    def __init__(self, url: str) -> None:
        super().__init__(redact_password(url))
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("a history in PostgreSQL", "postgres") from None
        self._psycopg = psycopg
        self._url = url
        self._connection = self._wait_for_server(CONNECT_SECONDS, reconnecting=False)

    @property
    def journal(self) -> str:
        """The journal mode: ``postgresql``."""
        return "postgresql"

    def _disconnect(self) -> None:
        self._connection.close()

    def reopen(self, wait: float) -> "PostgresDatabase":  # noqa: ARG002 - each transaction sets it
        """Open another connection."""
        return PostgresDatabase(self._url)

    def truncate_log(self, wait: float) -> bool:  # noqa: ARG002 - nobody blocks it
        """Leave deleted rows to the server's vacuum."""
        return True

    def encoding(self) -> str:
        """Return the encoding of this database."""
        [(encoding,)] = self.rows(
            "SELECT pg_encoding_to_char(encoding) FROM pg_database"
            " WHERE datname = current_database()"
        )
        return str(encoding)

    def _wait_for_server(self, seconds: float, *, reconnecting: bool) -> Any:
        """Connect, waiting for a server to start or return."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._connect()
            except self._psycopg.Error as error:
                starts = error.sqlstate in _GONE or "is starting up" in str(error)
                refusal = self._refusal(error)
                passes = isinstance(error, self._psycopg.OperationalError) and (
                    starts or (reconnecting and "no connection" in refusal.problem)
                )
                if not passes or time.monotonic() >= deadline:
                    raise refusal from (ConnectionError() if passes else None)
            time.sleep(_PAUSE_SECONDS)

    def _connect(self) -> Any:
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.types.numeric import FloatLoader

        options = conninfo_to_dict(self._url)
        options.setdefault("connect_timeout", CONNECT_SECONDS)
        options.setdefault("application_name", "witan")
        # A statement outside a transaction commits at once, and leaves none open.
        connection = self._psycopg.connect(autocommit=True, **options)  # type: ignore[arg-type]
        connection.adapters.register_loader("numeric", FloatLoader)
        return connection

    def _refusal(self, error: Exception) -> HistoryError:
        words = self._redact(str(error))
        if "password" in words and "authentication" in words:
            return HistoryError(
                self.where,
                "the server refuses the user or the password",
                "put the right ones into the URL, or the password into PGPASSWORD or ~/.pgpass",
            )
        if isinstance(error, self._psycopg.OperationalError):
            return HistoryError(
                self.where,
                f"no connection: {words}",
                "see that the server runs and that the database exists",
            )
        expected = "write it as postgresql://user@host:5432/database"
        return HistoryError(self.where, "is no address of a PostgreSQL database", expected)

    def _redact(self, words: str) -> str:
        text = " ".join(words.split())
        with suppress(ValueError):
            secret = urlsplit(self._url).password
            for form in filter(None, (secret, secret and unquote(secret))):
                text = text.replace(form, "***")
        return text

    def _ensure_connection(self) -> Any:
        if self._depth == 0 and self._connection.closed:
            self._connection = self._wait_for_server(RECONNECT_SECONDS, reconnecting=True)
        return self._connection

    def _run_with_reconnect(self, sql: str, params: Params) -> Any:
        """Run a read-only statement; reconnect and repeat if the connection is lost."""
        try:
            return self._ensure_connection().execute(sql, params)
        except self._psycopg.OperationalError:
            if self._depth or not self._connection.closed:
                raise
            return self._ensure_connection().execute(sql, params)

    def _run(self, sql: str, params: Params) -> Any:
        statement, values = percent_style(sql), dict(params)
        if sql.lstrip().startswith("SELECT"):
            return self._run_with_reconnect(statement, values)
        return self._ensure_connection().execute(statement, values)

    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        with self._ensure_connection().cursor() as cursor:
            cursor.executemany(percent_style(sql).replace("?", "%s"), rows)
            return int(cursor.rowcount)

    def _begin(self, *, write: bool, wait: float | None) -> None:
        how = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        begin = f"BEGIN ISOLATION LEVEL {how}"
        if wait is not None:
            begin += f"; SET LOCAL lock_timeout = {max(1, round(1000 * wait))}"
        self._run_with_reconnect(begin, NO_PARAMS)

    def _end(self, *, commit: bool) -> None:
        if commit:
            self._connection.execute("COMMIT")
            return
        with suppress(self._psycopg.Error):
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _translating(self) -> Iterator[None]:
        errors = self._psycopg
        try:
            yield
        except errors.errors.DiskFull as error:
            problem = "the server's disk is full; nothing of what was being written is kept"
            raise HistoryError(self.where, problem, "free some space there, and try again") from (
                error
            )
        except errors.errors.LockNotAvailable as error:
            problem = "is locked: another connection keeps what is to be written"
            raise HistoryError(self.where, problem, "let that finish, then try again") from error
        except errors.OperationalError as error:
            lost = self._connection.closed or error.sqlstate in _GONE
            raise HistoryError(
                self.where,
                f"the connection failed: {self._redact(str(error))}",
                "see that the server runs, then try again",
            ) from (ConnectionError() if lost else error)
        except (UnicodeEncodeError, errors.DataError) as error:
            raise unstorable_error(self.where, error) from error
        except errors.Error as error:
            problem = f"PostgreSQL says: {self._redact(str(error))}"
            raise HistoryError(self.where, problem, "see what it says, and try again") from error
