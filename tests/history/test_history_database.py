"""SQL, numbers and functions are the same on both databases."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import e, log, sqrt

import numpy as np
import pytest

from elections import ballot
from histories import ASKED, record_sessions
from witan.errors import HistoryError
from witan.history import History, SessionImport
from witan.history.database import percent_style
from witan.history.engines import add_missing_functions
from witan.history.rows import to_microseconds
from witan.history.schema import bucket_of, code_of


class TestRows:
    """What stands in the tables."""

    def test_codes_buckets_and_times_are_integers_of_fixed_meaning(self, history):
        """A name's code is 53 bits of its hash; buckets and days follow from name and time."""
        record_sessions(history, "s1")

        [row] = history.database.rows("SELECT at_us, day, bucket, simulated FROM sessions")
        names = dict(history.database.rows("SELECT name, code FROM names"))

        assert row == (to_microseconds(ASKED), 20778, bucket_of("s1"), 0)
        assert names["test:ada"] == code_of("test:ada") < 2**53

    def test_two_names_of_one_code_are_refused(self, history):
        """A code that stands for another name already keeps the session out of the sums."""
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

    def test_many_rows_come_back_as_inserted(self, history):
        """However many rows there are, tabs, backslashes, nulls and numbers stay what they are."""
        database = history.database
        database.execute("CREATE TABLE t (a INTEGER, b DOUBLE PRECISION, c TEXT)")
        texts = ("", "\\N", "\\.", "a\tb\nc\rd", "é\"'\\\\", None)
        rows = [(a, None if a % 2 else a / 3, texts[a % len(texts)]) for a in range(1000)]

        assert database.insert("t", ("a", "b", "c"), rows) == len(rows)
        assert database.rows("SELECT a, b, c FROM t ORDER BY a") == rows

    def test_one_row_that_is_refused_keeps_out_all(self, history):
        """Of many rows, one of which is there already, none remains."""
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

    def test_nothing_found_is_empty_columns(self, history):
        """Names are there, values are not."""
        found = history.database.columns("SELECT session, at_us FROM sessions")

        assert {name: len(values) for name, values in found.items()} == {"session": 0, "at_us": 0}

    def test_a_transaction_is_all_or_nothing(self, history):
        """What fails in the middle leaves nothing, and one inside another joins it."""
        database = history.database

        def fail():
            with database.transaction():
                with database.transaction():
                    database.insert("names", ("code", "name"), [(1, "x")])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

        assert database.rows("SELECT * FROM names") == []

    def test_a_statement_that_is_wrong_is_our_error(self, history):
        """The driver's words are kept, in an error of ours."""
        with pytest.raises(HistoryError, match="nowhere"):
            history.database.rows("SELECT 1 FROM nowhere")

    def test_the_percent_style_spares_texts_and_casts(self):
        """Parameters are rewritten; quoted text, casts and percent signs mean what they did."""
        sql = "SELECT ':x', \"a:b\", y::text, 5 % 2 FROM t WHERE a = :a1 AND b LIKE 'x%'"

        assert percent_style(sql) == (
            "SELECT ':x', \"a:b\", y::text, 5 %% 2 FROM t WHERE a = %(a1)s AND b LIKE 'x%%'"
        )


class TestNumbers:
    """Lengths beyond what a column holds."""

    def test_a_length_of_more_than_32_bits_is_kept(self, history):
        """Every whole number that SQLite holds, PostgreSQL holds."""
        one = SessionImport("s1", ballots=(ballot("a: b > c"),), lengths={"b": 2**31})
        history.add([one], "f", "d")

        assert history.database.rows("SELECT chars FROM answers WHERE seat = 'b'") == [(2**31,)]

    def test_a_length_that_no_column_holds_is_refused(self, history):
        """A sentence, and nothing of the file stays."""
        one = SessionImport("s1", ballots=(ballot("a: b > c"),), lengths={"b": 10**20})

        with pytest.raises(HistoryError):
            history.add([one], "f", "d")
        assert history.find() == []


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        yield opened


def test_a_history_has_what_an_audit_asks_for(tmp_path):
    """Logarithm and root are there, whatever the library brings."""
    with History.open(tmp_path / "h.sqlite") as history:
        [found] = history.database.rows("SELECT LN(2.0), SQRT(2.0), LN(NULL), LN(0), SQRT(-1)")

    assert found[:2] == pytest.approx((log(2), sqrt(2)), rel=1e-15)
    assert found[2:] == (None, None, None)


def test_what_is_missing_is_lent(connection):
    """A function of no build is there afterwards: NULL of NULL, and where it is not defined."""
    add_missing_functions(connection, {"natural_log": log})

    sql = "SELECT natural_log(?), natural_log(NULL), natural_log(0), natural_log('a')"
    assert connection.execute(sql, (e,)).fetchall() == [(1.0, None, None, None)]


def test_what_is_there_stays(connection):
    """The library's own function is not replaced."""
    add_missing_functions(connection, {"ABS": lambda _: 42.0})

    assert connection.execute("SELECT ABS(-1)").fetchall() == [(1,)]


def test_a_lent_function_may_stand_in_an_index(connection):
    """It is known to give the same for the same."""
    add_missing_functions(connection, {"natural_log": log})
    connection.execute("CREATE TABLE t (x REAL)")

    connection.execute("CREATE INDEX by_log ON t (natural_log(x))")
