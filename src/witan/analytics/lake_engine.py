"""Engines over a lake: their common base, and DuckDB in this process."""

import re
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Set
from glob import escape
from pathlib import Path
from threading import RLock
from types import ModuleType, TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from witan.analytics.engine import NONE, Columns, Params, Query, SumQuery
from witan.analytics.lake_files import Lake
from witan.analytics.views import DUCKDB_VIEWS
from witan.core.stats.sums import Names
from witan.core.window import Window
from witan.errors import HistoryError, MissingExtra

_CODES = {"model", "reviewer", "other", "criterion"}
"""Columns of codes. Pairs of models have those of their standings."""

_OVERALL = -1
"""Stands where a criterion would, for the grade as a whole."""


class LakeEngine(ABC):
    """A lake open in an engine until the block ends.

    Parameters
    ----------
    folder
        The lake, or its place.
    engine
        The name of the engine in messages.
    """

    def __init__(self, folder: str | Path | Lake, engine: str) -> None:
        self.lake = folder if isinstance(folder, Lake) else Lake(folder)
        self._engine = engine

    def names(self) -> Names:
        """Return the name of every code."""
        return self.lake.names()

    @abstractmethod
    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""

    def sums(self, queries: Sequence[SumQuery], window: Window) -> Iterator[tuple[int, Columns]]:
        """Run queries; memory-hungry ones span by span."""
        runs = [
            (number, query.within(span))
            for number, query in enumerate(queries)
            for span in (self.spans(window) if query.by_span else (window,))
        ]
        known = {_OVERALL, *self.names().of}
        results = self.several(query for _, query in runs)
        for (number, _), columns in zip(runs, results, strict=True):
            self._check_codes(columns, known)
            yield number, columns

    @abstractmethod
    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans fitting memory."""

    def several(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries one after another: each takes all cores."""
        return (self.columns(*query) for query in queries)

    @abstractmethod
    def close(self) -> None:
        """Close the engine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_codes(self, columns: Columns, known: Set[int]) -> None:
        """Refuse codes without a name: a file of names was taken away."""
        for name in _CODES & columns.keys():
            strange = set(np.unique(columns[name]).tolist()) - known
            if strange:
                problem = f"has no name of the {name} with the code {min(strange)}"
                remedy = "export every history in it again"
                raise HistoryError(str(self.lake.folder), problem, remedy)

    def _translate(self, error: Exception) -> HistoryError:
        """Name a damaged file, else quote the engine."""
        damaged = self.lake.find_damage()
        if damaged is not None:
            return damaged
        problem = f"cannot be summed: {self._engine} says: {str(error).splitlines()[0]}"
        return HistoryError(str(self.lake.folder), problem, "see what it says, and try again")


MEMORY = "320MB"
"""Memory of DuckDB, beyond which it uses the disk; a sum over pairs needs half of it."""

_PARAMETER = re.compile(r":([a-z_]+)")


class DuckLake(LakeEngine):
    """A folder of Parquet files, summed by DuckDB.

    Parameters
    ----------
    folder
        The lake, or its place.

    Raises
    ------
    HistoryError
        If the folder is no lake or a file cannot be read.
    MissingExtra
        Without duckdb or pyarrow.
    """

    def __init__(self, folder: str | Path | Lake) -> None:
        self._duckdb = _duckdb()
        super().__init__(folder, "DuckDB")
        self._lock = RLock()
        self._spill = tempfile.TemporaryDirectory(prefix="witan-lake-")
        self._connection = self._duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "temp_directory": self._spill.name,
                "preserve_insertion_order": False,
                # Nothing is ever fetched: Parquet is built in.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        self._closed = weakref.finalize(self, _close, self._connection, self._spill)
        with self._lock:
            self._connection.execute("SET parquet_metadata_cache = true")
            for table, paths in self.lake.files.items():
                # A path is a pattern to DuckDB.
                named = (escape(str(path)).replace("'", "''") for path in paths)
                files = ", ".join(f"'{path}'" for path in named)
                source = f"read_parquet([{files}], hive_partitioning = false)"
                self._connection.execute(f"CREATE VIEW lake_{table} AS FROM {source}")
            for name, view in DUCKDB_VIEWS.items():
                self._connection.execute(f"CREATE VIEW {name} AS {view}")

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        with self._lock:
            try:
                cursor = self._connection.execute(_PARAMETER.sub(r"$\1", sql), dict(params))
                columns: dict[str, NDArray[Any]] = cursor.fetchnumpy()
            except self._duckdb.Error as error:
                raise self._translate(error) from error
        return columns

    def spans(self, window: Window) -> Sequence[Window]:
        """Cut a window into spans fitting memory."""
        return self.lake.spans(window)

    def close(self) -> None:
        """Close DuckDB and delete what it wrote to disk."""
        self._closed()

    def _translate(self, error: Exception) -> HistoryError:
        if isinstance(error, self._duckdb.OutOfMemoryException):
            problem = f"needs more memory: {str(error).splitlines()[0]}"
            remedy = "give it more, or a shorter window"
            return HistoryError(str(self.lake.folder), problem, remedy)
        return super()._translate(error)


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("reading a lake with DuckDB", "lake") from None
    return duckdb


def _close(connection: Any, spill: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    spill.cleanup()
