"""Whose Spark it is: one of our own ends with the lake, one that runs already goes on."""

import os
import shutil
import subprocess
import sys

import pytest

from witan.adapters.engines import SparkLake

OWN = """
import sys
from pyspark.sql import SparkSession
from witan.adapters.engines import SparkLake
with SparkLake(sys.argv[1]) as lake:
    [n] = lake.columns("SELECT COUNT(*) AS n FROM v_sessions")["n"]
try:
    SparkSession.active()
except RuntimeError as error:
    print(n, type(error).__name__)
"""


def test_a_spark_that_runs_already_goes_on(merged_lake, spark):
    """A notebook's own session is used, keeps its views and its settings, and is not stopped."""
    setting = "spark.sql.shuffle.partitions"
    spark.range(3).createOrReplaceTempView("mine")
    before = spark.conf.get(setting)

    with SparkLake(merged_lake) as lake:
        assert lake.columns("SELECT COUNT(*) AS n FROM v_sessions")["n"].tolist() == [90]

    assert spark.sql("SELECT COUNT(*) AS n FROM mine").collect()[0].n == 3
    assert spark.conf.get(setting) == before


def test_a_spark_of_our_own_is_stopped(merged_lake):
    """In a process where none ran, none is left running."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")

    run = subprocess.run(  # noqa: S603 - our own interpreter on our own line
        [sys.executable, "-c", OWN, str(merged_lake)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )

    assert run.stdout.split() == ["90", "PySparkRuntimeError"]
