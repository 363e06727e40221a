"""What askers have spent, over restarts."""

from datetime import UTC, datetime, timedelta

import pytest

from witan.errors import HistoryError
from witan.surfaces.chamber import Ledger


class Calendar:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return self.at.timestamp()


@pytest.fixture
def calendar():
    return Calendar()


def test_what_is_reserved_counts_until_it_is_settled(calendar):
    """Then what it did cost counts in its place."""
    ledger = Ledger(calendar)
    reserved = ledger.reserve("ci", 2.0)
    assert ledger.spent("ci") == 2.0

    ledger.settle(reserved, 0.25)
    assert ledger.spent("ci") == 0.25


def test_each_asker_has_an_account_of_its_own(calendar):
    """Nobody pays for another."""
    ledger = Ledger(calendar)
    ledger.reserve("ci", 2.0)

    assert ledger.spent("ines") == 0


def test_what_is_a_day_old_counts_no_more(calendar):
    """Twenty-four hours after it was spent, and not a second before."""
    ledger = Ledger(calendar)
    ledger.reserve("ci", 2.0)
    calendar.at += timedelta(hours=24, seconds=-1)
    assert ledger.spent("ci") == 2.0

    calendar.at += timedelta(seconds=1)
    assert ledger.spent("ci") == 0


def test_a_server_that_was_killed_finds_what_it_had_reserved(calendar, tmp_path):
    """Nobody knows what those sessions cost, so they count in full."""
    path = tmp_path / "ledger.jsonl"
    before = Ledger(calendar, path)
    before.settle(before.reserve("ci", 2.0), 0.5)
    before.reserve("ci", 1.0)

    after = Ledger(calendar, path)
    after.reserve("ci", 0.25)

    assert after.spent("ci") == 1.75
    assert Ledger(calendar, path).spent("ci") == 1.75


def test_servers_that_share_a_file_do_not_write_over_each_other(calendar, tmp_path):
    """The next one to start knows what both had spent."""
    path = tmp_path / "ledger.jsonl"
    one, other = Ledger(calendar, path), Ledger(calendar, path)
    one.reserve("ci", 2.0)
    other.reserve("ci", 1.0)

    assert Ledger(calendar, path).spent("ci") == 3.0


def test_a_line_that_was_cut_off_costs_only_itself(calendar, tmp_path):
    """What is whole is read."""
    path = tmp_path / "ledger.jsonl"
    Ledger(calendar, path).reserve("ci", 2.0)
    with path.open("a") as file:
        file.write('{"number": 2, "asker": "ci", "at": "2026-')

    assert Ledger(calendar, path).spent("ci") == 2.0


def test_a_file_that_cannot_be_written_is_named(calendar, tmp_path):
    """So is what to do."""
    blocking = tmp_path / "file"
    blocking.touch()
    with pytest.raises(HistoryError, match="ledger"):
        Ledger(calendar, blocking / "ledger")
