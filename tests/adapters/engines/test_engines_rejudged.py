"""Answers that are judged twice count once, on each engine."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from generated_histories import merged
from test_engines_by_hand import ENTRIES

from postgres import database_of
from witan.adapters.engines import DuckLake, Reductions, SparkLake, SqlEngine
from witan.adapters.history.database import Database
from witan.adapters.history.opening import open_database
from witan.adapters.history.schema import bucket_of, code_of
from witan.adapters.history.sessions import SessionRow, insert_sessions
from witan.adapters.history.writing import Rows, microseconds
from witan.adapters.lake import write_lake
from witan.adapters.rollup import HistoryReductions, roll_up
from witan.adapters.system_clock import SystemClock
from witan.core.ballot import Ballot
from witan.core.entries import AnswerEntry

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FAMILY = (("q1", None, None), ("q2", "q1", "rejudged"), ("q3", "q2", "rejudged"))
APART = (("q4", "q1", "continued"),)


def store(database: Database) -> None:
    """One session, two juries on its answers, and one that goes on from it."""
    rows, sessions = Rows(), []
    answers = (AnswerEntry("a", "a", 50, 1.5, 0.25),)
    for name, parent, relation in (*FAMILY, *APART):
        held = replace(ENTRIES.session, session=name)
        cast = [Ballot(b.reviewer, session=name, abstained=True) for b in ENTRIES.ballots]
        rows.add(name, replace(ENTRIES, session=held, answers=answers), cast, {})
        rows.mark(name, microseconds(NOON))
        sessions.append(
            SessionRow(name, NOON, None, False, "test", "complete", "?", entry=held,
                       parent=parent, relation=relation)
        )  # fmt: skip
    with database.transaction():
        insert_sessions(database, sessions)
        rows.write(database)


@pytest.fixture(scope="module", params=["sqlite", "roll-up", "postgresql", "duckdb", "spark"])
def reductions(request, tmp_path_factory) -> Iterator[Reductions]:
    folder = tmp_path_factory.mktemp("rejudged")
    if request.param == "postgresql":
        for url in database_of():
            with open_database(url, SystemClock()) as database:
                store(database)
                yield Reductions(SqlEngine(database))
        return
    with open_database(folder / "h.sqlite", SystemClock()) as database:
        store(database)
        if request.param == "sqlite":
            yield Reductions(SqlEngine(database))
            return
        if request.param == "roll-up":
            roll_up(database)
            yield HistoryReductions(database)
            return
        pytest.importorskip("pyarrow", reason="a lake needs pyarrow")
        write_lake(SimpleNamespace(database=database), folder / "lake")
    if request.param == "duckdb":
        with DuckLake(folder / "lake") as duck:
            yield Reductions(duck)
    elif shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    else:
        with SparkLake(folder / "lake", session=request.getfixturevalue("spark")) as distributed:
            yield Reductions(distributed)


def test_what_is_said_of_answers_is_said_once(reductions):
    """Standings, matchups, matches and answers are of the two sessions that gave answers."""
    b = code_of("b")

    standings = merged(reductions.standings("borda"))
    answers = merged(reductions.answers())

    assert {bucket for bucket, _ in standings} == {bucket_of("q1"), bucket_of("q4")}
    assert standings[bucket_of("q1"), b]["sessions"] == 1
    assert reductions.coverage("borda") == 2
    assert reductions.matchups().ties.sum() == 4.0
    assert sum(match.ties for match in reductions.matches()) == 4.0
    assert answers[bucket_of("q1"), code_of("a")]["answers"] == 1


def test_every_jury_is_audited_in_the_group_of_the_first(reductions):
    """Ballots and agreement of all three juries stand under the bucket of the first session."""
    ballots = merged(reductions.ballots())
    panel = reductions.panel()

    assert ballots[bucket_of("q1"), code_of("a"), 0]["ballots"] == 3
    assert ballots[bucket_of("q4"), code_of("a"), 0]["ballots"] == 1
    sessions = dict(zip(panel.bucket.tolist(), panel.sessions.tolist(), strict=True))
    assert sessions == {bucket_of("q1"): 3, bucket_of("q4"): 1}
