"""A lake read by Spark: on this machine, or on the cluster of a session that is handed over."""

import os
import re
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from witan.adapters.engines.engine import NONE, Params
from witan.adapters.engines.lake_engine import LakeEngine
from witan.adapters.engines.lake_views import SPARK_VIEWS
from witan.adapters.lake.columns import TABLES
from witan.adapters.lake.reading import Lake
from witan.core.window import Window
from witan.errors import HistoryError, MissingExtra

__all__ = ["SparkLake", "local_session"]

_GLOB = re.compile(r"([*?\[\]{}])")
"""Signs in a path that Spark would read as a pattern."""

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "2g",
}
"""How Spark runs on one machine: heard by nobody else, and in few parts."""


NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


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
        running: Any = _running() if session is None else session
        self._owned: Any = None
        if running is None:
            running = self._owned = local_session()
        # Views of two lakes in one Spark stay apart.
        self._session = running.newSession()
        try:
            for table, paths in self.lake.files.items():
                files = [_GLOB.sub(r"\\\1", path.absolute().as_posix()) for path in paths]
                # With the columns given, Spark need not look into the files to learn them.
                read = self._session.read.schema(_columns_of(table))
                read.parquet(*files).createOrReplaceTempView(f"lake_{table}")
            for name, view in SPARK_VIEWS.items():
                self._session.sql(view).createOrReplaceTempView(name)
        except _errors() as error:
            self.close()
            raise self._said(error) from error

    def columns(self, sql: str, params: Params = NONE) -> dict[str, NDArray[Any]]:
        """Run one query over the views."""
        try:
            found = self._session.sql(sql, args=dict(params)).toArrow()
        except _errors() as error:
            raise self._said(error) from error
        return {
            name: column.to_numpy()
            for name, column in zip(found.column_names, found.columns, strict=True)
        }

    def spans(self, window: Window) -> Sequence[Window]:
        """The window itself: Spark parts it on its own."""
        return (window,)

    def close(self) -> None:
        """Stop a Spark of our own; one that ran before goes on."""
        if self._owned is not None:
            self._owned.stop()


def _errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


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


def _running() -> Any:
    """The Spark that runs in this process; None: none does."""
    pyspark = _pyspark()
    try:
        return pyspark.sql.SparkSession.active()
    except pyspark.errors.PySparkException:
        return None


def _pyspark() -> Any:
    try:
        import pyspark.errors
        import pyspark.sql
    except ImportError:
        raise MissingExtra("reading a lake with Spark", "spark") from None
    return pyspark


def local_session(cores: int | None = None, settings: Mapping[str, str] = NO_SETTINGS) -> Any:
    """Start Spark on this machine, on all of its cores where none are given, or have what runs.

    `settings` are Spark's own, and stand over those of ours.
    """
    pyspark = _pyspark()
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        remedy = "install a Java runtime of version 17 or later, or set JAVA_HOME to one"
        raise HistoryError("Spark", "needs Java, and none is found", remedy)
    builder = pyspark.sql.SparkSession.builder.master(f"local[{'*' if cores is None else cores}]")
    for name, value in {**LOCAL, **settings}.items():
        builder = builder.config(name, value)
    try:
        with warnings.catch_warnings():
            # It warns of versions of pandas, which is not used here.
            warnings.simplefilter("ignore", FutureWarning)
            return builder.appName("witan").getOrCreate()
    except pyspark.errors.PySparkException as error:
        problem = f"does not start: {str(error).splitlines()[0]}"
        remedy = "see that Java 17 or later runs: java -version"
        raise HistoryError("Spark", problem, remedy) from error
