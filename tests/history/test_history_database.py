"""SQL, numbers and functions are the same on both databases."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from math import e, log, sqrt
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from elections import ballot
from histories import ASKED, record_sessions
from witan.errors import HistoryError, InvalidParameter
from witan.history import History, SessionImport
from witan.history.database import percent_style
from witan.history.engines import add_missing_functions
from witan.history.rows import to_datetime, to_microseconds
from witan.history.schema import bucket_of, code_of


class TestRows:
    """The contents of the tables."""

    def test_codes_buckets_and_times_are_stable_integers(self, history):
        """A name's code is 53 bits of its hash; buckets and days follow from name and time."""
        record_sessions(history, "s1")

        [row] = history.database.rows("SELECT at_us, day, bucket, simulated FROM sessions")
        names = dict(history.database.rows("SELECT name, code FROM names"))

        assert row == (to_microseconds(ASKED), 20778, bucket_of("s1"), 0)
        assert names["test:ada"] == code_of("test:ada") < 2**53

    @pytest.mark.parametrize("month", [1, 7])
    def test_times_of_a_zone_with_summer_time_are_exact(self, month):
        """Noon in Berlin is 11 o'clock UTC in winter, and 10 in summer."""
        noon = datetime(2026, month, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))

        assert to_datetime(to_microseconds(noon)) == noon.astimezone(UTC)

    def test_a_time_without_a_zone_is_refused(self, history):
        """Which one was meant depends on the machine; nothing is stored."""
        session = SessionImport("s1", at=datetime(2026, 1, 1), ballots=[ballot("x: a > b")])

        with pytest.raises(InvalidParameter, match="a time with its zone"):
            history.add([session], source="s1.json", digest="1")

        assert not list(history.sessions())

    def test_two_names_with_one_code_are_refused(self, history):
        """The second name's session stays out of the sums."""
        row = (code_of("test:ada"), "somebody else")
        history.database.insert("names", ("code", "name"), [row])

        with pytest.raises(HistoryError, match="share a code"):
            record_sessions(history, "s1")


class TestDatabase:
    """SQL, the same on both."""

    def test_columns_are_arrays_by_name(self, history):
        """Whole numbers, numbers with NaN for NULL, and texts."""
        database = history.database
        database.execute("CREATE TABLE t (a INTEGER, b DOUBLE PRECISION, c TEXT)")
        database.insert("t", ("a", "b", "c"), [(1, 0.5, "x"), (2, None, "y")])

        found = database.columns("SELECT a, b, c FROM t WHERE a < :most ORDER BY a", {"most": 9})

        assert found["a"].dtype == np.int64
        assert found["b"].dtype == np.float64
        assert found["a"].tolist() == [1, 2]
        assert found["b"][0] == 0.5
        assert np.isnan(found["b"][1])
        assert found["c"].tolist() == ["x", "y"]

    def test_many_rows_are_read_as_inserted(self, history):
        """Tabs, backslashes, nulls and numbers are unchanged, however many rows there are."""
        database = history.database
        database.execute("CREATE TABLE t (a INTEGER, b DOUBLE PRECISION, c TEXT)")
        texts = ("", "\\N", "\\.", "a\tb\nc\rd", "é\"'\\\\", None)
        rows = [(a, None if a % 2 else a / 3, texts[a % len(texts)]) for a in range(1000)]

        assert database.insert("t", ("a", "b", "c"), rows) == len(rows)
        assert database.rows("SELECT a, b, c FROM t ORDER BY a") == rows

    def test_duplicate_row_rejects_the_whole_insert(self, history):
        """Of many rows with one duplicate, none is stored."""
        database = history.database
        database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")

        with pytest.raises(HistoryError):
            database.insert("t", ("a",), [*((a,) for a in range(1000)), (0,)])

        assert database.rows("SELECT a FROM t") == []

    def test_sums_are_numbers(self, history):
        """A sum of wide integers is a number on each database, not a decimal of the driver's."""
        database = history.database
        database.execute("CREATE TABLE t (a BIGINT)")
        database.insert("t", ("a",), [(2**40,), (1,)])

        assert database.columns("SELECT SUM(a) AS total FROM t")["total"].tolist() == [2**40 + 1]

    def test_empty_result_has_empty_columns(self, history):
        """The names are there without values."""
        found = history.database.columns("SELECT session, at_us FROM sessions")

        assert {name: len(values) for name, values in found.items()} == {"session": 0, "at_us": 0}

    def test_transaction_is_all_or_nothing(self, history):
        """A failure in the middle stores nothing; a nested transaction joins the outer one."""
        database = history.database

        def fail():
            with database.transaction():
                with database.transaction():
                    database.insert("names", ("code", "name"), [(1, "x")])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

        assert database.rows("SELECT * FROM names") == []

    def test_invalid_statement_is_our_error(self, history):
        """The error has the driver's words."""
        with pytest.raises(HistoryError, match="nowhere"):
            history.database.rows("SELECT 1 FROM nowhere")

    def test_percent_style_spares_texts_and_casts(self):
        """Parameters are rewritten; quoted text, casts and percent signs are not."""
        sql = "SELECT ':x', \"a:b\", y::text, 5 % 2 FROM t WHERE a = :a1 AND b LIKE 'x%'"

        assert percent_style(sql) == (
            "SELECT ':x', \"a:b\", y::text, 5 %% 2 FROM t WHERE a = %(a1)s AND b LIKE 'x%%'"
        )


class TestNumbers:
    """Lengths beyond the range of a column."""

    def test_length_of_more_than_32_bits_is_stored(self, history):
        """PostgreSQL stores every whole number that SQLite stores."""
        one = SessionImport("s1", ballots=(ballot("a: b > c"),), lengths={"b": 2**31})
        history.add([one], "f", "d")

        assert history.database.rows("SELECT chars FROM answers WHERE seat = 'b'") == [(2**31,)]

    def test_length_beyond_64_bits_is_refused(self, history):
        """The error is a sentence, and nothing of the file is stored."""
        one = SessionImport("s1", ballots=(ballot("a: b > c"),), lengths={"b": 10**20})

        with pytest.raises(HistoryError):
            history.add([one], "f", "d")
        assert history.find() == []


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        yield opened


def test_history_has_the_functions_of_an_audit(tmp_path):
    """Logarithm and root exist, whatever the library includes."""
    with History.open(tmp_path / "h.sqlite") as history:
        [found] = history.database.rows("SELECT LN(2.0), SQRT(2.0), LN(NULL), LN(0), SQRT(-1)")

    assert found[:2] == pytest.approx((log(2), sqrt(2)), rel=1e-15)
    assert found[2:] == (None, None, None)


def test_missing_function_is_added(connection):
    """It gives NULL for NULL, and where it is not defined."""
    add_missing_functions(connection, {"natural_log": log})

    sql = "SELECT natural_log(?), natural_log(NULL), natural_log(0), natural_log('a')"
    assert connection.execute(sql, (e,)).fetchall() == [(1.0, None, None, None)]


def test_existing_function_is_not_replaced(connection):
    """The library's own function stays."""
    add_missing_functions(connection, {"ABS": lambda _: 42.0})

    assert connection.execute("SELECT ABS(-1)").fetchall() == [(1,)]


def test_added_function_may_be_in_an_index(connection):
    """It is declared as deterministic."""
    add_missing_functions(connection, {"natural_log": log})
    connection.execute("CREATE TABLE t (x REAL)")

    connection.execute("CREATE INDEX by_log ON t (natural_log(x))")
