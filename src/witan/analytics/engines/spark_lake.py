"""A lake read by Spark: on this machine, or on the cluster of a session that is handed over."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from witan.analytics.engines.engine import NONE, Params, Query
from witan.analytics.engines.lake_engine import LakeEngine
from witan.analytics.engines.lake_views import SPARK_VIEWS
from witan.analytics.engines.spark_session import local_session, running_session, spark_errors
from witan.analytics.lake.columns import TABLES
from witan.analytics.lake.reading import Lake
from witan.analytics.lake.statistics import constants
from witan.core.window import Window

__all__ = ["SparkLake", "local_session"]

_GLOB = re.compile(r"([*?\[\]{}])")
"""Signs in a path that Spark would read as a pattern."""


AT_ONCE = 4
"""Queries that Spark is asked at a time: while one is planned or gathered, others use the cores."""

FILTERED = {"simulated", "rejudged", "human"}
"""The columns that queries choose rows by; in most lakes they are the same throughout."""


class SparkLake(LakeEngine):
    """A folder of Parquet files, summed by Spark.

    Parameters
    ----------
    folder
        The lake, or its place; every executor has to see it under the same path.
    session
        A SparkSession, which stays the caller's. None: the one that runs in this process, which
        stays as it is as well; where none does, one of our own on this machine, until the lake is
        closed.

    Raises
    ------
    HistoryError
        If the folder is no lake, a file cannot be read, or there is no Java.
    MissingExtra
        Without pyspark or pyarrow.
    """

    def __init__(self, folder: str | Path | Lake, *, session: Any = None) -> None:
        super().__init__(folder, "Spark")
        running: Any = running_session() if session is None else session
        self._owned: Any = None
        if running is None:
            running = self._owned = local_session()
        # Views of two lakes in one Spark stay apart.
        self._session = running.newSession()
        self._clients = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="witan-spark")
        try:
            for table, paths in self.lake.files.items():
                files = [_GLOB.sub(r"\\\1", path.absolute().as_posix()) for path in paths]
                # With the columns given, Spark need not look into the files to learn them.
                read = self._session.read.schema(_columns_of(table)).parquet(*files)
                same = constants(paths, FILTERED & TABLES[table].keys())
                _replaced(read, table, same).createOrReplaceTempView(f"lake_{table}")
            for name, view in SPARK_VIEWS.items():
                self._session.sql(view).createOrReplaceTempView(name)
        except spark_errors() as error:
            self.close()
            raise self._said(error) from error

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        try:
            found = self._session.sql(sql, args=dict(params)).toArrow()
        except spark_errors() as error:
            raise self._said(error) from error
        return {
            name: column.to_numpy()
            for name, column in zip(found.column_names, found.columns, strict=True)
        }

    def several(self, queries: Iterable[Query]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run queries side by side: Spark shares its cores out among what it is asked at once."""
        asked = [self._clients.submit(self._inheriting(query)) for query in queries]
        try:
            for one in asked:
                yield one.result()
        finally:
            for one in asked:
                one.cancel()

    def _inheriting(self, query: Query) -> Callable[[], dict[str, NDArray[Any]]]:
        """What a thread runs, under the pool and the group of jobs that the caller has set."""
        from pyspark import inheritable_thread_target

        found: Callable[[], dict[str, NDArray[Any]]] = inheritable_thread_target(self._session)(
            partial(self.columns, *query)
        )
        return found

    def spans(self, window: Window) -> Sequence[Window]:
        """The window itself: Spark parts it on its own."""
        return (window,)

    def close(self) -> None:
        """Stop a Spark of our own; one that ran before goes on."""
        if self._owned is not None:
            self._owned.stop()
        self._clients.shutdown(wait=False, cancel_futures=True)


def _replaced(read: Any, table: str, same: Mapping[str, int]) -> Any:
    """The rows of a table, of which the columns that are the same throughout are not read."""
    if not same:
        return read
    from pyspark.sql.functions import lit

    return read.withColumns(
        {name: lit(value).cast(_TYPES[TABLES[table][name]]) for name, value in same.items()}
    )


_TYPES = {
    "int64": "BIGINT",
    "int32": "INT",
    "int16": "SMALLINT",
    "int8": "TINYINT",
    "float64": "DOUBLE",
    "string": "STRING",
}


def _columns_of(table: str) -> str:
    return ", ".join(f"{name} {_typed(kind)}" for name, kind in TABLES[table].items())


def _typed(kind: str) -> str:
    return f"ARRAY<{_typed(kind[1:-1])}>" if kind.startswith("[") else _TYPES[kind]
