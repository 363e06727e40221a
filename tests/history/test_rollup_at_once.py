"""Processes that roll up, write and are killed."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

from crowd import ended, fork
from rolled import START, add, assert_same, child, human, imported, marks

from witan.analytics.reports import HistorySource, audit
from witan.analytics.rollup import roll_up
from witan.core.window import ALWAYS
from witan.history import History
from witan.history.database import NO_PARAMS
from witan.history.schema import bucket_of


class Late:
    """A history's database, on which something happens before its second transaction begins."""

    def __init__(self, database, happens):
        self._database = database
        self._happens = [None, happens]

    def __getattr__(self, name):
        return getattr(self._database, name)

    def transaction(self, **options):
        happens = self._happens.pop(0) if self._happens else None
        if happens is not None:
            happens()
        return self._database.transaction(**options)


class Interrupted:
    """A history's database, on which something happens before the first statement of a kind."""

    def __init__(self, database, statement, happens):
        self._database = database
        self._statement = statement
        self._happens = [happens]

    def __getattr__(self, name):
        return getattr(self._database, name)

    def execute(self, sql, params=NO_PARAMS):
        if self._happens and sql.startswith(self._statement):
            self._happens.pop()()
        return self._database.execute(sql, params)


class TestAtOnce:
    """Processes that roll up, write and are killed."""

    def test_two_roll_up_while_a_third_writes(self, place):
        """No change is lost, whoever comes first."""
        with History.open(place) as history:
            names = add(history, Random(20), 30, days=40)  # noqa: S311

        def rolls():
            with History.open(place) as history:
                while True:
                    roll_up(history.database)

        def writes():
            draw = Random(21)  # noqa: S311
            with History.open(place) as history:
                for _ in range(25):
                    add(history, draw, 3, days=40, prefix="w")
                    session = draw.choice(names)
                    history.vote(session, [human(history, draw, session)])

        with child(rolls), child(rolls):
            assert ended(fork(writes)) == 0
            with History.open(place) as history, history.database.snapshot():
                assert_same(history)
        with History.open(place) as history:
            assert_same(history)
            assert roll_up(history.database)
            assert marks(history) == 0
            assert_same(history)

    def test_sums_that_another_has_kept_meanwhile_are_not_overwritten(self, place):
        """Who has summed a cell before a session came, and keeps it after, leaves it as it is."""
        draw = Random(23)  # noqa: S311
        shard = bucket_of("s") % 16
        [name] = [n for n in map(str, range(99)) if bucket_of(n) % 16 == shard][:1]
        with History.open(place) as history:
            history.add([imported(draw, "s", START)], "f", "d1")

            def another():
                with History.open(place) as other:
                    other.add([imported(draw, name, START)], "f", "d2")
                    assert roll_up(other.database)

            assert roll_up(Late(history.database, another))

            assert marks(history) == 0
            assert_same(history)

    def test_a_session_that_is_forgotten_while_it_is_summed_is_not_written_back(self, place):
        """Sums of before are not kept where they would tell of it."""
        with History.open(place) as history, History.open(place) as other:
            [name] = add(history, Random(24), 1)  # noqa: S311

            assert roll_up(Late(history.database, lambda: other.forget(name)))

            assert history.database.rows("SELECT COUNT(*) FROM rollups") == [(0,)]
            assert roll_up(history.database)
            assert marks(history) == 0
            assert_same(history)

    def test_forgetting_waits_for_a_roll_up_that_is_keeping_sums(self, postgresql_url):
        """On a server neither waits for the other in a ring."""
        with (
            ThreadPoolExecutor(1) as others,
            History.open(postgresql_url) as history,
            History.open(postgresql_url) as other,
            History.open(postgresql_url) as watching,
        ):
            names = add(history, Random(25), 20, days=1)  # noqa: S311
            audit(history)
            add(history, Random(26), 20, days=1, prefix="more")  # noqa: S311
            forgetting = []

            def forgets():
                forgetting.append(others.submit(other.forget, names[0]))
                waits = "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
                waits += " WHERE NOT l.granted AND a.datname = current_database()"
                while not watching.database.rows(waits):
                    assert not forgetting[0].done()

            assert roll_up(Interrupted(history.database, "DELETE FROM rollups", forgets))
            assert forgetting[0].result(timeout=30).n_sessions == 1
            assert_same(history)

    def test_killed_in_the_middle(self, place):
        """A roll-up that is killed at any moment leaves sums that are right."""
        draw = Random(22)  # noqa: S311
        with History.open(place) as history:
            add(history, draw, 60, days=90)

            def rolls():
                with History.open(place) as mine:
                    while True:
                        roll_up(mine.database)
                        everything = "SELECT DISTINCT day, bucket % 16 FROM sessions"
                        marked = [
                            (os.urandom(8).hex(), *row) for row in mine.database.rows(everything)
                        ]
                        mine.database.insert("changes", ("token", "day", "shard"), marked)

            for _ in range(8):
                with child(rolls):
                    time.sleep(draw.uniform(0.05, 0.4))
                add(history, draw, 2, days=90)
                assert_same(history)
            assert roll_up(history.database)
            assert_same(history)


def test_what_is_counted_apart_holds_up_nobody(place):
    """While one moment of it is counted, the same history is read and written by others."""
    with History.open(place) as history, ThreadPoolExecutor(1) as others:
        add(history, Random(21), 3)  # noqa: S311
        with HistorySource.apart(history) as source, source.moment():
            counted = source.reductions(ALWAYS).coverage("borda")
            read = others.submit(history.find, simulated=None).result(timeout=10)
            others.submit(add, history, Random(22), 9).result(timeout=10)  # noqa: S311
            still = source.reductions(ALWAYS).coverage("borda")
        with HistorySource.apart(history) as source, source.moment():
            after = source.reductions(ALWAYS).coverage("borda")

    assert len(read) == 3
    assert counted == still
    assert after > counted
