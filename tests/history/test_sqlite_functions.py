"""Functions that a build of SQLite may lack are lent to it, and only those."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from math import e, log, sqrt

import pytest

from witan.history import History
from witan.history.sqlite import add_missing_functions


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
