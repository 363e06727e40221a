"""Related sessions (retried, rejudged, continued), in the history and on each engine."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from test_engines_by_hand import ENTRIES

from postgres import database_of
from witan.analytics.lake import write_lake
from witan.analytics.sources import DuckLake, SparkLake
from witan.analytics.sums import CachedEngine, WindowSums
from witan.analytics.views import SqlEngine
from witan.core.ballot import Ballot
from witan.core.session_ballots import AnswerEntry
from witan.history import History
from witan.history.database import Database
from witan.history.rows import Rows, SessionRow, insert_sessions

SPARK = pytest.param("spark", marks=pytest.mark.slow)

ENGINES = ["sqlite", "cache", "postgresql", "duckdb", SPARK]

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def insert_family(
    database: Database, family: Sequence[tuple[str, str | None, str | None]], holder: str = ""
) -> None:
    """Insert sessions by name, parent and relation, with equal content, a minute apart.

    Those that somebody holds have left nothing yet.
    """
    rows, sessions = Rows(), []
    answers = (AnswerEntry("a", "a", 50, 1.5, 0.25),)
    for number, (name, parent, relation) in enumerate(family):
        entry = replace(ENTRIES.session, session=name)
        ballots = [Ballot(b.reviewer, session=name, abstained=True) for b in ENTRIES.ballots]
        row = SessionRow(
            name, NOON + timedelta(minutes=number), None, False, "test", "complete", "?",
            holder=holder, entry=entry, parent=parent, relation=relation,
        )  # fmt: skip
        sessions.append(row)
        if holder:
            continue
        rows.add(name, replace(ENTRIES, session=entry, answers=answers), ballots, {})
    with database.transaction():
        insert_sessions(database, sessions)
        rows.write(database)


def sums_of(
    request: pytest.FixtureRequest, folder: Path, store: Callable[[Database], None]
) -> Iterator[WindowSums]:
    """The sums of a stored history, on each of the engines."""
    if request.param == "postgresql":
        for url in database_of():
            with History.open(url) as history:
                store(history.database)
                yield WindowSums(SqlEngine(history.database))
        return
    with History.open(folder / "h.sqlite") as history:
        database = history.database
        store(database)
        if request.param == "sqlite":
            yield WindowSums(SqlEngine(database))
            return
        if request.param == "cache":
            yield WindowSums(CachedEngine(database))
            return
        pytest.importorskip("pyarrow", reason="a lake needs pyarrow")
        write_lake(history, folder / "lake")
    if request.param == "duckdb":
        with DuckLake(folder / "lake") as duck:
            yield WindowSums(duck)
    elif shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    else:
        with SparkLake(folder / "lake", session=request.getfixturevalue("spark")) as distributed:
            yield WindowSums(distributed)
