"""What is rolled up is what reading every row gives, whatever was written in between."""

import time
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from rolled import (
    A_DAY,
    MODELS,
    START,
    add,
    assert_same,
    human,
    imported,
    marks,
    standings,
    windows,
)

from witan.analytics.reports import leaderboard
from witan.analytics.rollup import HistoryReductions, roll_up
from witan.analytics.rollup.packing import pack, unpack
from witan.analytics.rollup.tables import Sums, kinds
from witan.core.window import ALWAYS, Window
from witan.history import History


class TestSameSums:
    """The roll-up beside the direct reduction."""

    @pytest.mark.parametrize("seed", range(4))
    def test_whatever_is_written_and_whenever_it_is_rolled_up(self, history, seed):
        """Adding, voting, forgetting and counting again, in any order, never part the two."""
        draw = Random(seed)  # noqa: S311 - a test draws what happens
        names = add(history, draw, 25)
        for _ in range(25):
            step = draw.random()
            if step < 0.3:
                names += add(history, draw, draw.randint(1, 5))
            elif step < 0.5:
                session = draw.choice(names)
                history.vote(session, [human(history, draw, session)])
            elif step < 0.65:
                history.forget(names.pop(draw.randrange(len(names))))
            elif step < 0.75:
                history.recount("mean_rank")
            else:
                assert roll_up(history.database)
                assert marks(history) == 0
            assert_same(history, *windows(draw, 2))
        assert_same(history)

    def test_windows_at_whole_days_and_between_them(self, history):
        """Spans, days and parts of days make up a window to the microsecond."""
        draw = Random(11)  # noqa: S311
        add(history, draw, 150)
        history.recount("mean_rank")
        roll_up(history.database)

        noon = START + timedelta(days=33, hours=12)
        moment = timedelta(microseconds=1)
        history.add([imported(draw, "at noon", noon)], "f", "d")
        roll_up(history.database)
        with_it, without = Window(noon, noon + A_DAY), Window(noon + moment, noon + A_DAY)

        assert len(standings(history, with_it)) > len(standings(history, without))
        assert_same(history, with_it, without, Window(None, noon), Window(None, noon + moment))
        assert_same(history, Window(noon, noon + timedelta(minutes=1)), *windows(draw, 40))

    def test_a_clock_that_goes_backward(self, history):
        """Sessions that come later and were asked earlier, before 1970 too, are in their day."""
        draw = Random(3)  # noqa: S311
        for number, day in enumerate((0, -1, -400, -30_000, -30_001, 5)):
            at = START + timedelta(days=day, seconds=-1)
            history.add([imported(draw, f"s{number}", at)], "f", f"d{number}")
            roll_up(history.database)

            assert_same(history, ALWAYS, Window(at, at + A_DAY), Window(None, START - A_DAY))

    def test_an_empty_history(self, history):
        """There is nothing to roll up, and nothing comes of it."""
        assert roll_up(history.database)
        assert_same(history, ALWAYS, Window(START, START + A_DAY))


class TestReading:
    """What is read, and what is not."""

    def test_what_has_not_changed_is_not_read_again(self, history):
        """With its rows gone a session that was rolled up still counts; in a changed cell not."""
        draw = Random(5)  # noqa: S311
        add(history, draw, 30, days=3)
        roll_up(history.database)
        before = standings(history)
        history.database.execute("DELETE FROM standings")

        assert standings(history) == before

        history.add([imported(draw, "s", START)], "f", "d")
        changed = standings(history)
        roll_up(history.database)

        assert standings(history) == changed
        rest = {key for key in before if key[0] % 16 != history_bucket(history, "s") % 16}
        assert rest
        assert {key: changed[key] for key in rest} == {key: before[key] for key in rest}

    def test_what_was_never_rolled_up_is_summed_as_it_is(self, history):
        """Before any roll-up, and with part of it, sums are right."""
        draw = Random(6)  # noqa: S311
        add(history, draw, 40)
        assert_same(history, *windows(draw, 4))
        roll_up(history.database)
        add(history, draw, 40)
        assert marks(history)
        assert_same(history, ALWAYS, *windows(draw, 8))

    def test_what_was_never_counted_under_a_rule(self, history):
        """It is known how many sessions there are to count, those a rule leaves out aside."""
        draw = Random(15)  # noqa: S311

        def missing(rule):
            return HistoryReductions(history.database).missing(rule)

        add(history, draw, 20)
        assert missing("borda") == 0
        assert missing("mean_rank") == history.recount("mean_rank") > 0
        assert missing("mean_rank") == 0
        roll_up(history.database)
        names = add(history, draw, 7)
        history.vote(names[0], [human(history, draw, names[0])])
        assert 0 < missing("mean_rank") < missing("range")
        # A rule that wants grades leaves no standing, and is not asked again.
        assert missing("range") == history.recount("range")
        assert missing("range") == 0
        assert roll_up(history.database)
        assert missing("range") == 0

    def test_a_leaderboard_rolls_up(self, history):
        """Asking for a leaderboard leaves nothing marked."""
        add(history, Random(7), 20)  # noqa: S311
        board = leaderboard(history)

        assert marks(history) == 0
        assert {line.model for line in (*board.lines, *board.provisional)} == set(MODELS)
        assert leaderboard(history) == board


def history_bucket(history, session):
    sql = "SELECT bucket FROM sessions WHERE session = :session"
    return history.database.rows(sql, {"session": session})[0][0]


READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET default_transaction_read_only = on",
}


class TestInTheWay:
    """What keeps a roll-up from being written."""

    def test_a_history_that_may_only_be_read(self, place):
        """It is summed directly, without a word, and nothing is changed."""
        draw = Random(8)  # noqa: S311
        with History.open(place) as history:
            add(history, draw, 20)
            roll_up(history.database)
            add(history, draw, 20)
            left = marks(history)
            history.database.execute(READ_ONLY[history.database.dialect])

            assert not roll_up(history.database)
            assert marks(history) == left > 0
            assert_same(history, ALWAYS, *windows(draw, 5))
            assert leaderboard(history).lines

    def test_a_history_that_somebody_keeps_locked(self, file):
        """A leaderboard does not wait for an import to end."""
        with History.open(file) as history, History.open(file) as other:
            add(history, Random(9), 10)  # noqa: S311
            with other.database.transaction():
                other.database.execute("UPDATE sessions SET question = 'Why?'")
                began = time.monotonic()
                assert not roll_up(history.database)
                assert time.monotonic() - began < 20
                if history.journal == "wal":
                    assert_same(history)
            assert roll_up(history.database)

    def test_sums_of_another_version_are_made_again(self, history):
        """What another Witan packed otherwise is not read, and replaced."""
        draw = Random(10)  # noqa: S311
        add(history, draw, 30)
        roll_up(history.database)
        body = b"from the future"
        some = "UPDATE rollups SET version = 99, body = :body WHERE day % 2 = 0"
        history.database.execute(some, {"body": body})

        assert_same(history, ALWAYS, *windows(draw, 4))
        assert roll_up(history.database)
        assert history.database.rows("SELECT DISTINCT version FROM rollups") == [(1,)]
        assert_same(history, ALWAYS, *windows(draw, 4))

    @pytest.mark.parametrize("span", [1, 32, 1024])
    def test_sums_that_are_damaged_are_made_again(self, history, span):
        """Bytes that hold no sums are no error and no number: the rows say what is true."""
        draw = Random(12)  # noqa: S311
        add(history, draw, 30)
        roll_up(history.database)
        spoil(history, span)

        assert_same(history, ALWAYS, *windows(draw, 4))

    def test_a_leaderboard_mends_what_it_could_not_read(self, history):
        """The board is the one that it was, and afterwards the sums that it needs are sound."""
        add(history, Random(12), 30)  # noqa: S311
        board = leaderboard(history)
        spoil(history, 1024)

        assert leaderboard(history) == board
        assert damaged(history) == []
        assert marks(history) == 0
        assert_same(history)

    def test_a_span_is_summed_of_damaged_days(self, history):
        """What is rolled up above a day that cannot be read is true all the same."""
        draw = Random(13)  # noqa: S311
        add(history, draw, 30, days=40)
        roll_up(history.database)
        spoil(history, 1)
        add(history, draw, 10, days=40, prefix="t")

        assert roll_up(history.database)
        assert_same(history, ALWAYS, *windows(draw, 4))


def spoil(history, span):
    """Put other bytes in the place of the sums of spans of one length."""
    sql = "UPDATE rollups SET body = :body WHERE span = :span"
    history.database.execute(sql, {"body": b"WSUM nothing", "span": span})


def damaged(history):
    return history.database.rows(
        "SELECT span FROM rollups WHERE body = :body", {"body": b"WSUM nothing"}
    )


class TestForgetting:
    """What is rolled up of a forgotten session."""

    def test_its_sums_go_with_it(self, history):
        """No kept sum that it was in is left, of its day or of a longer span."""
        draw = Random(14)  # noqa: S311
        history.add([imported(draw, "s1", START)], "f", "d")
        add(history, draw, 5)
        roll_up(history.database)
        shard = history_bucket(history, "s1") % 16
        day = (START - datetime(1970, 1, 1, tzinfo=UTC)).days
        sql = (
            "SELECT COUNT(*) FROM rollups"
            " WHERE shard = :shard AND day <= :day AND day + span > :day"
        )
        given = {"shard": shard, "day": day}
        assert history.database.rows(sql, given) == [(3,)]

        history.forget("s1")

        assert history.database.rows(sql, given) == [(0,)]
        assert_same(history)


class TestPacking:
    """Sums as bytes."""

    def test_they_come_back_as_they_were(self):
        """Every number to the last bit, negative and tiny ones too; empty tables stay empty."""
        rng = np.random.default_rng(1)
        tables = {}
        for n, (table, kind) in enumerate(kinds.items()):
            rows = np.empty(5 * n, kind)
            for name in kind.names:
                values = rng.standard_normal(len(rows)) * 1e-300
                rows[name] = (
                    values if kind[name].kind == "f" else rng.integers(-9, 2**53, len(rows))
                )
            tables[table] = rows

        found = unpack(pack(Sums(**tables)))

        for table, rows in tables.items():
            np.testing.assert_array_equal(getattr(found, table), rows)

    @pytest.mark.parametrize("body", [b"", b"WSUM", b"WSUMx", b"XSUM" + b"\0" * 40])
    def test_other_bytes_are_refused(self, body):
        """Nothing is made of bytes that hold no sums."""
        with pytest.raises(ValueError):  # noqa: PT011 - in whatever words
            unpack(body)
