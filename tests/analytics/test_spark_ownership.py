"""Ownership of Spark: our own session ends with the lake, a foreign one continues."""

import os
import shutil

import pytest

from processes import run_python
from witan.analytics.sources import SparkLake, filter_output

pytestmark = pytest.mark.slow

OWN = """
import sys
from pyspark.sql import SparkSession
from witan.analytics.sources import SparkLake
with SparkLake(sys.argv[1]) as lake:
    [n] = lake.columns("SELECT COUNT(*) AS n FROM v_sessions")["n"]
try:
    SparkSession.active()
except RuntimeError as error:
    print(n, type(error).__name__)
"""


def test_a_foreign_spark_session_is_not_stopped(merged_lake, spark):
    """A notebook's session is used, keeps its views and its settings, and continues."""
    setting = "spark.sql.shuffle.partitions"
    spark.range(3).createOrReplaceTempView("mine")
    before = spark.conf.get(setting)

    with SparkLake(merged_lake) as lake:
        assert lake.columns("SELECT COUNT(*) AS n FROM v_sessions")["n"].tolist() == [90]

    assert spark.sql("SELECT COUNT(*) AS n FROM mine").collect()[0].n == 3
    assert spark.conf.get(setting) == before


@pytest.mark.slow
def test_our_own_spark_session_is_stopped(merged_lake):
    """A process without Spark has no Spark session afterwards."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")

    run = run_python(OWN, merged_lake, check=True, env={**os.environ})

    assert run.stdout.split() == ["90", "PySparkRuntimeError"]
    assert run.stderr == ""


def test_only_errors_of_spark_are_printed():
    """Routine messages of Java and Spark at startup are suppressed."""
    talk = [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties\n",
        "26/11/22 03:22:10 WARN Utils: Your hostname resolves to a loopback address\n",
        'Setting default log level to "WARN".\n',
    ]
    errors = [
        "26/11/22 03:22:11 ERROR Executor: Exception in task 0.0 in stage 1.0\n",
        "java.lang.OutOfMemoryError: Java heap space\n",
        "\tat org.apache.spark.util.Utils.tryWithSafeFinally\n",
    ]

    assert [*filter_output([*talk, *errors, *talk])] == errors
