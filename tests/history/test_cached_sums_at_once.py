"""Processes that cache sums and write at the same time, and are killed."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from crowd import exit_status, fork
from drawn import KINDS, add, assert_same, cached_sums, child, human, stored_sums

from witan.analytics.audits import audit
from witan.analytics.sources import HistorySource
from witan.core.stats.leaderboard import ALWAYS
from witan.history import History
from witan.history.database import lock_cached_sums


def sum_repeatedly(place):
    """Sum everything again and again."""
    with History.open(place) as history:
        while True:
            cached_sums(history).tables(*KINDS)
            history.database.execute("DELETE FROM cached_sums WHERE span % 3 = 0")


class TestConcurrency:
    """Processes that cache sums and write at the same time, and are killed."""

    @pytest.mark.parametrize(
        "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
    )
    def test_two_readers_and_a_writer_lose_no_change(self, place):
        """The sums are right in whatever order they finish."""
        with History.open(place) as history:
            names = add(history, Random(20), 30, days=40)  # noqa: S311

        def writes():
            draw = Random(21)  # noqa: S311
            with History.open(place) as history:
                for _ in range(25):
                    add(history, draw, 3, days=40, prefix="w")
                    session = draw.choice(names)
                    history.vote(session, [human(history, draw, session)])

        with child(lambda: sum_repeatedly(place)), child(lambda: sum_repeatedly(place)):
            assert exit_status(fork(writes)) == 0
            with History.open(place) as history, history.database.snapshot():
                assert_same(history)
        with History.open(place) as history:
            assert_same(history)

    def test_forgetting_and_storing_sums_do_not_deadlock(self, postgresql_url):
        """On a server neither waits for the other in a circle."""
        with (
            ThreadPoolExecutor(1) as others,
            History.open(postgresql_url) as history,
            History.open(postgresql_url) as other,
            History.open(postgresql_url) as watching,
        ):
            names = add(history, Random(25), 20, days=1)  # noqa: S311
            audit(history)
            waits = "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
            waits += " WHERE NOT l.granted AND a.datname = current_database()"
            with history.database.transaction():
                lock_cached_sums(history.database)
                forgetting = others.submit(other.forget, names[0])
                while not watching.database.rows(waits):
                    assert not forgetting.done()
                history.database.execute("UPDATE cached_sums SET state = 'as it was'")
            assert forgetting.result(timeout=30).n_sessions == 1
            assert_same(history)

    @pytest.mark.parametrize(
        "place", [pytest.param("sqlite", marks=pytest.mark.slow), "postgresql"], indirect=True
    )
    def test_killed_reader_leaves_correct_sums(self, place):
        """The reader is killed at any moment."""
        draw = Random(22)  # noqa: S311
        with History.open(place) as history:
            add(history, draw, 60, days=90)
            for _ in range(6):
                with child(lambda: sum_repeatedly(place)):
                    time.sleep(draw.uniform(0.05, 0.4))
                add(history, draw, 2, days=90)
                assert_same(history)
            assert stored_sums(history)


def test_separate_counting_blocks_nobody(place):
    """While one moment is counted, others read and write the same history."""
    with History.open(place) as history, ThreadPoolExecutor(1) as others:
        add(history, Random(21), 3)  # noqa: S311
        with HistorySource.on_own_connection(history) as source, source.moment():
            counted = source.sums(ALWAYS).coverage("borda")
            read = others.submit(history.find, simulated=None).result(timeout=10)
            others.submit(add, history, Random(22), 9).result(timeout=10)  # noqa: S311
            still = source.sums(ALWAYS).coverage("borda")
        with HistorySource.on_own_connection(history) as source, source.moment():
            after = source.sums(ALWAYS).coverage("borda")

    assert len(read) == 3
    assert counted == still
    assert after > counted
