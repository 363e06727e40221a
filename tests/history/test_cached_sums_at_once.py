"""Processes that cache sums, write and are killed."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from crowd import ended, fork
from drawn import KINDS, add, assert_same, cached, child, human, stored

from witan.analytics.audits import audit
from witan.analytics.sources import HistorySource
from witan.core.window import ALWAYS
from witan.history import History
from witan.history.database import lock_cached_sums


def reads(place):
    """Sum everything again and again."""
    with History.open(place) as history:
        while True:
            cached(history).tables(*KINDS)
            history.database.execute("DELETE FROM cached_sums WHERE shard % 3 = 0")


class TestAtOnce:
    """Processes that cache sums, write and are killed."""

    @pytest.mark.parametrize(
        "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
    )
    def test_two_read_while_a_third_writes(self, place):
        """No change is lost, whoever comes first."""
        with History.open(place) as history:
            names = add(history, Random(20), 30, days=40)  # noqa: S311

        def writes():
            draw = Random(21)  # noqa: S311
            with History.open(place) as history:
                for _ in range(25):
                    add(history, draw, 3, days=40, prefix="w")
                    session = draw.choice(names)
                    history.vote(session, [human(history, draw, session)])

        with child(lambda: reads(place)), child(lambda: reads(place)):
            assert ended(fork(writes)) == 0
            with History.open(place) as history, history.database.snapshot():
                assert_same(history)
        with History.open(place) as history:
            assert_same(history)

    def test_forgetting_waits_for_whoever_stores_sums(self, postgresql_url):
        """On a server neither waits for the other in a ring."""
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
    def test_killed_in_the_middle(self, place):
        """A reader that is killed at any moment leaves sums that are right."""
        draw = Random(22)  # noqa: S311
        with History.open(place) as history:
            add(history, draw, 60, days=90)
            for _ in range(6):
                with child(lambda: reads(place)):
                    time.sleep(draw.uniform(0.05, 0.4))
                add(history, draw, 2, days=90)
                assert_same(history)
            assert stored(history)


def test_what_is_counted_apart_holds_up_nobody(place):
    """While one moment of it is counted, the same history is read and written by others."""
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
