"""One generated history, stored in four engines."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from generated_histories import history, merge, store

from postgres import database_of
from witan.analytics.lake import write_lake
from witan.analytics.sources import DuckLake, SparkLake
from witan.analytics.views import Engine, SqlEngine
from witan.core.session_ballots import Entries
from witan.deliberation.ports import SystemClock
from witan.history.database import Database, LockWait
from witan.history.schema import open_database

ENGINES = ("sqlite", "postgresql", "duckdb", pytest.param("spark", marks=pytest.mark.slow))


@pytest.fixture(scope="session")
def entries() -> list[Entries]:
    return history(seed=20260301, n_sessions=90)


@pytest.fixture(scope="session")
def sqlite_history(entries, tmp_path_factory) -> Iterator[Database]:
    with open_database(
        tmp_path_factory.mktemp("history") / "h.sqlite", SystemClock(), LockWait()
    ) as database:
        store(database, entries)
        yield database


@pytest.fixture(scope="session")
def postgresql_history(entries) -> Iterator[Database]:
    for url in database_of():
        with open_database(url, SystemClock(), LockWait()) as database:
            store(database, entries)
            yield database


@pytest.fixture(scope="session")
def lake(sqlite_history, tmp_path_factory) -> Path:
    pytest.importorskip("pyarrow", reason="a lake needs pyarrow")
    folder = tmp_path_factory.mktemp("lake")
    write_lake(SimpleNamespace(database=sqlite_history), folder)
    return folder


@pytest.fixture(scope="session")
def merged_lake(lake, tmp_path_factory) -> Path:
    """The lake with one file per table."""
    folder = tmp_path_factory.mktemp("merged")
    merge(lake, folder)
    return folder


@pytest.fixture(scope="session", params=ENGINES)
def engine(request) -> Iterator[Engine]:
    """Each engine over the same history; Spark reads the lake as one file per table."""
    if request.param in ("sqlite", "postgresql"):
        yield SqlEngine(request.getfixturevalue(f"{request.param}_history"))
    elif request.param == "duckdb":
        with DuckLake(request.getfixturevalue("lake")) as duck:
            yield duck
    else:
        session = request.getfixturevalue("spark")
        with SparkLake(request.getfixturevalue("merged_lake"), session=session) as distributed:
            yield distributed
