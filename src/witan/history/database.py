"""A thin database: SQL with named parameters, transactions, and errors in our words.

Statements are written once, with parameters as ``:name``; each driver's form is made of them.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import RLock
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from witan.errors import HistoryError

Dialect = Literal["sqlite", "postgresql"]

Params = Mapping[str, Any]

NO_PARAMS: Params = MappingProxyType({})

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|:([A-Za-z_]\w*)|%")


class Database(ABC):
    """One connection, which threads may share: each statement or transaction has it to itself.

    Parameters
    ----------
    where
        What errors call it; it holds no password.
    """

    dialect: ClassVar[Dialect]
    locking: ClassVar[str] = ""
    """Ends a SELECT whose rows nobody else may change before the transaction ends."""
    sharing: ClassVar[str] = ""
    """Ends a SELECT whose rows nobody else may delete before the transaction ends."""

    read_only = False
    """Whether it was opened only to be read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = RLock()
        self._depth = 0
        self._closed = False

    @property
    @abstractmethod
    def journal(self) -> str:
        """How commits are made durable: ``wal``, ``truncate`` or ``postgresql``."""

    def close(self) -> None:
        """Close the connection; what was not committed is undone."""
        self._closed = True
        self._disconnect()

    @abstractmethod
    def _disconnect(self) -> None:
        """End the connection."""

    @abstractmethod
    def truncate_log(self, wait: float) -> bool:
        """Take what was deleted out of the log as well; whether nobody was in the way so long."""

    @abstractmethod
    def reopen(self, wait: float) -> "Database":
        """Open another connection to the same place, which waits so many seconds for others."""

    @abstractmethod
    def _run(self, sql: str, params: Params) -> Any:
        """Run one statement and return its cursor."""

    @abstractmethod
    def _run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run one statement with positional parameters (``?``) for each row."""

    @abstractmethod
    def _begin(self, *, write: bool, wait: float | None) -> None:
        """Begin a transaction; `wait`: seconds for what another process holds."""

    @abstractmethod
    def _end(self, *, commit: bool) -> None:
        """End the transaction."""

    @abstractmethod
    def _translating(self) -> AbstractContextManager[None]:
        """Raise the driver's errors as `HistoryError`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        """Run one statement; return how many rows it changed."""
        with self._lock, self._translating():
            self._require_open()
            return int(self._run(sql, params).rowcount)

    def rows(self, sql: str, params: Params = NO_PARAMS) -> list[tuple[Any, ...]]:
        """Run one query; return its rows."""
        with self._lock, self._translating():
            self._require_open()
            found: list[tuple[Any, ...]] = self._run(sql, params).fetchall()
            return found

    def columns(self, sql: str, params: Params = NO_PARAMS) -> dict[str, NDArray[Any]]:
        """Run one query; return its columns by name, NULL among numbers as NaN."""
        with self._lock, self._translating():
            self._require_open()
            cursor = self._run(sql, params)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        held = zip(*rows, strict=True) if rows else ((),) * len(names)
        return {name: _array(values) for name, values in zip(names, held, strict=True)}

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        ignore_existing: bool = False,
    ) -> int:
        """Insert rows, all or none; `keep`: where the key is there already, the old row stays."""
        if not rows:
            return 0
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608
        sql += " ON CONFLICT DO NOTHING" if ignore_existing else ""
        with self._within(write=True), self._translating():
            return self._run_many(sql, rows)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction or a snapshot is under way, which another would join."""
        with self._lock:
            return self._depth > 0

    @contextmanager
    def transaction(self, *, wait: float | None = None) -> Iterator[None]:
        """Write as one: all of the block is kept or nothing. One inside another joins it.

        Parameters
        ----------
        wait
            Seconds to wait for what another process holds; None: as statements do.
        """
        with self._within(write=True, wait=wait):
            yield

    def wait_until_writable(self, wait: float) -> None:
        """Wait so many seconds at most until it could be written."""
        if self.read_only:
            problem = "was opened only to be read, and cannot be written"
            raise HistoryError(self.where, problem, "open it to be written, or do without it")
        with self.transaction(wait=wait):
            pass

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read as of one moment, whatever others write."""
        with self._within(write=False):
            yield

    def _require_open(self) -> None:
        """Refuse a connection that was closed: it is not opened again by a statement."""
        if self._closed:
            raise HistoryError(self.where, "was closed", "open the history again")

    @contextmanager
    def _within(self, *, write: bool, wait: float | None = None) -> Iterator[None]:
        with self._lock:
            self._require_open()
            if self._depth:
                yield
                return
            with self._translating():
                self._begin(write=write, wait=wait)
            self._depth, whole = 1, False
            try:
                yield
                whole = True
            finally:
                self._depth = 0
                if not whole:
                    self._end(commit=False)
            with self._translating():
                self._end(commit=True)


def unstorable_error(where: str, error: Exception) -> HistoryError:
    """What to say of a value that no column holds."""
    words = " ".join(str(error).split())
    problem = f"cannot hold a text or a number that it was given ({words})"
    return HistoryError(where, problem, "look for odd characters and very large numbers")


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """A column as an array: whole numbers, numbers with NaN for NULL, or objects."""
    kinds = {type(value) for value in values}
    if not kinds - {int, bool}:
        return np.asarray(values, dtype=np.int64)
    if not kinds - {int, bool, float, type(None)}:
        return np.asarray(values, dtype=np.float64)
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return held


@lru_cache(maxsize=512)
def percent_style(sql: str) -> str:
    """SQL with ``%(name)s`` for ``:name``; texts and casts mean what they did."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        return f"%({name})s" if name is not None else found[0].replace("%", "%%")

    return _TOKEN.sub(put, sql)
