"""Spark on this machine: how it is started, and what of its talk is passed on."""

import logging
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from threading import Thread
from types import MappingProxyType
from typing import Any

from witan.errors import HistoryError, MissingExtra

__all__ = ["heard", "local_session", "running_session", "spark_errors"]

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
