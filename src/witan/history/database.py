"""A database connection: SQL with named parameters, transactions, and translated errors.

Statements are written once, with parameters as ``:name``, and converted for each driver.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import RLock
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.errors import HistoryError

Dialect = Literal["sqlite", "postgresql"]

Params = Mapping[str, Any]
T = TypeVar("T")

NO_PARAMS: Params = MappingProxyType({})

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|:([A-Za-z_]\w*)|%")


class Database(ABC):
    """A connection shared by threads, one statement or transaction at a time.

    Parameters
    ----------
    where
        The place in error messages, without a password.
    """

    dialect: ClassVar[Dialect]
    locking: ClassVar[str] = ""
    """Clause that locks the rows of a SELECT against changes until the transaction ends."""
    sharing: ClassVar[str] = ""
    """Clause that locks the rows of a SELECT against deletion until the transaction ends."""

    read_only = False
    """Opened for reading only."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = RLock()
        self._depth = 0
        self._closed = False

    @property
    @abstractmethod
    def journal(self) -> str:
        """The journal mode: ``wal``, ``truncate`` or ``postgresql``."""

    def close(self) -> None:
        """Close the connection; roll back an open transaction."""
        self._closed = True
        self._disconnect()

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the driver's connection."""

    @abstractmethod
    def truncate_log(self, wait: float) -> bool:
        """Remove deleted rows from the log; false if a reader blocked it."""

    @abstractmethod
    def reopen(self, wait: float) -> "Database":
        """Open another connection with `wait` seconds of patience for locks."""

    @abstractmethod
    def _run(self, sql: str, params: Params) -> Any:
        """Run one statement and return its cursor."""

    @abstractmethod
    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run one statement with positional parameters (``?``) for each row."""

    @abstractmethod
    def _begin(self, *, write: bool, wait: float | None) -> None:
        """Begin a transaction, waiting `wait` seconds for locks."""

    @abstractmethod
    def _end(self, *, commit: bool) -> None:
        """End the transaction."""

    @abstractmethod
    def _translating(self) -> AbstractContextManager[None]:
        """Translate the driver's errors to `HistoryError`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        """Run one statement; return the number of rows it changed."""
        with self._lock, self._translating():
            self._require_open()
            return int(self._run(sql, params).rowcount)

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        """Run one query; return its rows."""
        with self._lock, self._translating():
            self._require_open()
            rows: list[tuple[Any, ...]] = self._run(sql, params).fetchall()
            return rows

    def columns(self, sql: str, params: Params = NO_PARAMS) -> dict[str, NDArray[Any]]:
        """Run one query; return its columns by name, NULL numbers as NaN."""
        with self._lock, self._translating():
            self._require_open()
            cursor = self._run(sql, params)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return {name: _array(values) for name, values in zip(names, columns, strict=True)}

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        ignore_existing: bool = False,
    ) -> int:
        """Insert rows, all or none; return the number inserted."""
        if not rows:
            return 0
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608
        sql += " ON CONFLICT DO NOTHING" if ignore_existing else ""
        with self._block(write=True), self._translating():
            return self._run_many(sql, rows)

    @property
    def in_transaction(self) -> bool:
        """A transaction or a snapshot is open; another would join it."""
        with self._lock:
            return self._depth > 0

    @contextmanager
    def transaction(self, *, wait: float | None = None) -> Iterator[None]:
        """Commit all writes of the block, or none; join an outer transaction.

        Parameters
        ----------
        wait
            Seconds to wait for locks; None: as long as single statements do.
        """
        with self._block(write=True, wait=wait):
            yield

    def wait_until_writable(self, wait: float) -> None:
        """Wait up to `wait` seconds for the write lock, then release it."""
        if self.read_only:
            problem = "was opened only to be read, and cannot be written"
            raise HistoryError(self.where, problem, "open it to be written, or do without it")
        with self.transaction(wait=wait):
            pass

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one consistent state, whatever others write."""
        with self._block(write=False):
            yield

    def _require_open(self) -> None:
        if self._closed:
            raise HistoryError(self.where, "was closed", "open the history again")

    @contextmanager
    def _block(self, *, write: bool, wait: float | None = None) -> Iterator[None]:
        with self._lock:
            self._require_open()
            if self._depth:
                yield
                return
            with self._translating():
                self._begin(write=write, wait=wait)
            self._depth, completed = 1, False
            try:
                yield
                completed = True
            finally:
                self._depth = 0
                if not completed:
                    self._end(commit=False)
            with self._translating():
                self._end(commit=True)


def in_list(values: Iterable[Any], prefix: str = "s") -> tuple[str, dict[str, Any]]:
    """Return the right-hand side of SQL's ``IN``, and its parameters."""
    params = {f"{prefix}{k}": value for k, value in enumerate(values)}
    return f"({', '.join(f':{name}' for name in params)})", params


def blocks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Cut a sequence into blocks of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))


def unstorable_error(where: str, error: Exception) -> HistoryError:
    """Make the error for an unstorable value."""
    words = " ".join(str(error).split())
    problem = f"cannot hold a text or a number that it was given ({words})"
    return HistoryError(where, problem, "look for odd characters and very large numbers")


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Make an array of integers, floats (NaN for NULL) or objects."""
    kinds = {type(value) for value in values}
    if not kinds - {int, bool}:
        return np.asarray(values, dtype=np.int64)
    if not kinds - {int, bool, float, type(None)}:
        return np.asarray(values, dtype=np.float64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@lru_cache(maxsize=512)
def percent_style(sql: str) -> str:
    """Convert ``:name`` to ``%(name)s``, outside literals and casts."""

    def convert(token: re.Match[str]) -> str:
        name = token[1]
        return f"%({name})s" if name is not None else token[0].replace("%", "%%")

    return _TOKEN.sub(convert, sql)
