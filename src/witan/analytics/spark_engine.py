"""A lake read by Spark: on this machine, or on the cluster of a session that is handed over."""

import logging
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from witan.analytics.engine import NONE, Params, Query
from witan.analytics.lake_engine import LakeEngine
from witan.analytics.lake_files import TABLES, Lake, constants
from witan.analytics.views import SPARK_VIEWS
from witan.core.window import Window
from witan.errors import HistoryError, MissingExtra

_log = logging.getLogger("witan.spark")

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # What is shuffled are sums, a few thousand rows: to plan it again while it runs takes longer.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
}
"""How Spark runs on one machine: heard by nobody else, and in few parts."""

_TALK = re.compile(
    r"WARNING: Using incubator modules|Using Spark's default log4j profile"
    r"|Setting (default|Spark) log level|To adjust logging level"
    r"|\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|INFO) "
)
"""How lines begin that Java and Spark say while they start, and that nobody can do anything about.

The level of the log is only obeyed once Spark runs.
"""

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark and the way to it raise."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def running_session() -> Any:
    """The Spark that runs in this process; None: none does."""
    pyspark = _pyspark()
    try:
        return pyspark.sql.SparkSession.active()
    except pyspark.errors.PySparkException:
        return None


def local_session(cores: int | None = None, settings: Mapping[str, str] = NO_SETTINGS) -> Any:
    """Start Spark on this machine, on all of its cores where none are given, or have what runs.

    `settings` are Spark's own, and stand over those of ours. Errors that it logs are passed on to
    standard error, and nothing else of what it says.

    Raises
    ------
    HistoryError
        If there is no Java, or Spark does not start.
    MissingExtra
        Without pyspark.
    """
    pyspark = _pyspark()
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        remedy = "install a Java runtime of version 17 or later, or set JAVA_HOME to one"
        raise HistoryError("Spark", "needs Java, and none is found", remedy)
    conf = pyspark.SparkConf().setMaster(f"local[{'*' if cores is None else cores}]")
    conf.setAppName("witan").setAll([*{**LOCAL, **settings}.items()])
    try:
        with warnings.catch_warnings():
            # It warns of versions of pandas, which is not used here.
            warnings.simplefilter("ignore", FutureWarning)
            _start(pyspark, conf)
            return pyspark.sql.SparkSession.builder.config(conf=conf).getOrCreate()
    except spark_errors() as error:
        problem = f"does not start: {str(error).splitlines()[0]}"
        remedy = "see that Java 17 or later runs: java -version"
        raise HistoryError("Spark", problem, remedy) from error


def _pyspark() -> Any:
    try:
        import pyspark.errors
        import pyspark.sql
    except ImportError:
        raise MissingExtra("reading a lake with Spark", "spark") from None
    return pyspark


def _start(pyspark: Any, conf: Any) -> None:
    """Start Java, and listen to what it says; one that runs, or is started elsewhere, is let be."""
    # Nothing public tells whether one runs, and a second one would be of no use.
    if pyspark.SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
        return
    from pyspark.java_gateway import launch_gateway

    reading, writing = os.pipe()
    # A daemon: Java ends with this process, and so does what it says.
    Thread(target=_pass_on, args=(reading,), name="spark-talk", daemon=True).start()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    pyspark.SparkContext(conf=conf, gateway=gateway)


def _pass_on(reading: int) -> None:
    with open(reading, encoding="utf-8", errors="replace") as said:
        for line in heard(said):
            _log.warning("%s", line.rstrip())


def heard(said: Iterable[str]) -> Iterator[str]:
    """The lines that are worth passing on: all but those known to be mere talk."""
    return (line for line in said if not _TALK.match(line))


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
