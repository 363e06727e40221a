"""Without an engine's package, or without Java, the error says what to install."""

import os

import pytest

from processes import run_python

OPEN = """
import sys
for name in {absent!r}:
    sys.modules[name] = None
from witan.analytics.sources import DuckLake
from witan.analytics.sources import SparkLake
try:
    {engine}({lake!r})
except Exception as error:
    print(type(error).__name__, error)
"""


def error_without_packages(engine: str, lake: object, *absent: str, **environment: str) -> str:
    code = OPEN.format(absent=absent, engine=engine, lake=str(lake))
    run = run_python(code, check=True, env={**os.environ, **environment})
    return run.stdout


@pytest.mark.parametrize(
    ("engine", "absent", "extra"),
    [
        (
            "DuckLake",
            "duckdb",
            "reading a lake with DuckDB needs an extra: in a clone of Witan, '.[lake]'",
        ),
        (
            "DuckLake",
            "pyarrow",
            "a lake of Parquet files needs an extra: in a clone of Witan, '.[lake]'",
        ),
        ("SparkLake", "pyspark", "Spark needs an extra: in a clone of Witan, '.[spark]'"),
    ],
)
def test_a_missing_package_names_its_extra(lake, engine, absent, extra):
    """The error names the extra to install."""
    error = error_without_packages(engine, lake, absent).replace("pip install ", "")

    assert error == f"MissingExtra {extra}\n"


@pytest.mark.slow
def test_missing_java_is_reported_before_start(lake, tmp_path):
    """Spark without Java fails with a sentence that names Java."""
    pytest.importorskip("pyspark", reason="Spark is not installed")

    error = error_without_packages("SparkLake", lake, PATH=str(tmp_path), JAVA_HOME="")

    assert error.startswith("HistoryError Spark: needs Java")


def test_importing_engines_does_not_load_their_packages():
    """Neither DuckDB nor Spark nor Arrow is imported."""
    code = (
        "import sys, witan.analytics.sources;"
        "print([m for m in ('duckdb', 'pyspark', 'pyarrow', 'psycopg') if m in sys.modules])"
    )

    run = run_python(code, check=True)

    assert run.stdout.strip() == "[]"
