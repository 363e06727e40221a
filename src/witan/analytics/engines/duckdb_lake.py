"""A lake read by DuckDB, in this process."""

import re
import tempfile
import weakref
from collections.abc import Sequence
from glob import escape
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Params
from witan.analytics.engines.lake_engine import LakeEngine
from witan.analytics.engines.lake_views import DUCKDB_VIEWS
from witan.analytics.lake.reading import Lake
from witan.core.window import Window
from witan.errors import HistoryError, MissingExtra

__all__ = ["DuckLake"]

MEMORY = "320MB"
"""What DuckDB may hold before it goes on on disk; a sum over pairs needs half of it."""

_PARAMETER = re.compile(r":([a-z_]+)")


class DuckLake(LakeEngine):
    """A folder of Parquet files, summed by DuckDB.

    Parameters
    ----------
    folder
        The lake, or its place.
    memory
        What DuckDB may hold, as it writes it.
    threads
        None: as many as there are cores.

    Raises
    ------
    HistoryError
        If the folder is no lake or a file cannot be read.
    MissingExtra
        Without duckdb or pyarrow.
    """

    def __init__(
        self, folder: str | Path | Lake, *, memory: str = MEMORY, threads: int | None = None
    ) -> None:
        self._duckdb = _duckdb()
        super().__init__(folder, "DuckDB")
        self._lock = RLock()
        self._spill = tempfile.TemporaryDirectory(prefix="witan-lake-")
        self._connection = self._duckdb.connect(
            config={
                "memory_limit": memory,
                "temp_directory": self._spill.name,
                "preserve_insertion_order": False,
                # Nothing is ever fetched: Parquet is built in.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                **({} if threads is None else {"threads": threads}),
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
                asked = self._connection.execute(_PARAMETER.sub(r"$\1", sql), dict(params))
                found: dict[str, NDArray[Any]] = asked.fetchnumpy()
            except self._duckdb.Error as error:
                raise self._said(error) from error
        return found

    def spans(self, window: Window) -> Sequence[Window]:
        """The window cut into ones that memory holds."""
        return self.lake.spans(window)

    def close(self) -> None:
        """Let go of memory and of what was put on disk meanwhile."""
        self._closed()

    def _said(self, error: Exception) -> HistoryError:
        if isinstance(error, self._duckdb.OutOfMemoryException):
            problem = f"needs more memory: {str(error).splitlines()[0]}"
            remedy = "give it more, or a shorter window"
            return HistoryError(str(self.lake.folder), problem, remedy)
        return super()._said(error)


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("reading a lake with DuckDB", "lake") from None
    return duckdb


def _close(connection: Any, spill: tempfile.TemporaryDirectory[str]) -> None:
    connection.close()
    spill.cleanup()
