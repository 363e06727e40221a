"""A history that another process keeps locked is waited for, a bounded time, and not in silence."""

import sqlite3
import time
from threading import Thread

import pytest

from witan.adapters.history import History, Patience
from witan.adapters.history.locking import locked
from witan.errors import HistoryError

HOLDS = """
import sys
from witan.adapters.history.sqlite import SqliteDatabase
from pathlib import Path
database = SqliteDatabase(Path(sys.argv[1]), sys.argv[1])
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("BEGIN EXCLUSIVE")
database.rows("SELECT * FROM sessions")
database.execute("INSERT INTO names VALUES (1, 'x')")
print("held", flush=True)
sys.stdin.read()
"""

WRITES = HOLDS.replace('database.execute("PRAGMA locking_mode = EXCLUSIVE")', "").replace(
    "EXCLUSIVE", "IMMEDIATE"
)


@pytest.fixture
def made(file):
    """An empty history in a file."""
    with History.open(file):
        pass
    return file


def test_a_locked_file_is_given_up_once_the_time_is_over(made, running):
    """All waits of an opening together are as long as is said, and told of once."""
    running(HOLDS, made)
    told, began = [], time.monotonic()

    with pytest.raises(HistoryError) as refused:
        History.open(made, patience=Patience(told.append, seconds=3))

    assert 2.5 < time.monotonic() - began < 6
    assert "is locked: another process has kept it for 3 s" in str(refused.value)
    assert len(told) == 1
    assert str(made) in told[0]


def test_whoever_will_write_waits_for_who_writes(made, running):
    """A reader comes in beside a writer; who is to record waits as long as an opening."""
    running(WRITES, made)
    told = []
    patience = Patience(told.append, seconds=2.5)

    said = r"is locked: another process has kept it for 2\.5 s"
    with History.open(made, patience=patience) as history, pytest.raises(HistoryError, match=said):
        history.require_writable(patience)

    assert len(told) == 1


def test_a_lock_that_is_let_go_of_in_time_is_no_matter(made):
    """What is free again within the time opens, and a short wait is not spoken of."""
    told = []
    holder = sqlite3.connect(made, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    free = Thread(target=lambda: (time.sleep(0.4), holder.execute("COMMIT"), holder.close()))
    free.start()

    with History.open(made) as history:
        history.require_writable(Patience(told.append))
    free.join()

    assert told == []


def test_another_opener_is_waited_for_no_longer(file):
    """The lock of whoever makes a history is waited for as long, and named."""
    told = []
    lock = locked(file.with_name(f"{file.name}.lock"), 1)
    with lock, pytest.raises(HistoryError, match="is locked"):
        History.open(file, patience=Patience(told.append, seconds=2.2))

    assert len(told) == 1
