"""Windows: the sessions inside, the previous window, invalid input."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from witan.core.stats.leaderboard import ALWAYS, EARLIEST_US, LATEST_US, Window
from witan.errors import InvalidParameter

MAY, JUNE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def test_ends_are_whole_microseconds_since_1970():
    """Half a second before 1970 and a time in another zone come out exactly."""
    early = datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    elsewhere = datetime(1970, 1, 1, 2, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))

    window = Window(early, elsewhere)

    assert (window.since_us, window.until_us) == (-500_000, 1)


def test_open_ends_hold_every_time_there_can_be():
    """An open window begins before year 1 and ends after year 9999, within 64 bits."""
    widest = Window(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

    assert -(2**63) < EARLIEST_US == ALWAYS.since_us < widest.since_us
    assert widest.until_us < ALWAYS.until_us == LATEST_US < 2**63


def test_the_previous_window_is_as_long_and_adjacent():
    """May is followed by June without a gap, and the category is the same."""
    before = Window(MAY, JUNE, "coding").previous()

    assert before == Window(MAY - timedelta(days=31), MAY, "coding")


@pytest.mark.parametrize("window", [ALWAYS, Window(since=MAY), Window(until=MAY)], ids=str)
def test_an_open_window_has_no_previous_one(window):
    """Without two ends there is no length."""
    assert window.previous() is None


def test_the_previous_window_stops_at_the_first_date():
    """A window as long as history has a shorter previous one, or none."""
    dawn = datetime.min.replace(tzinfo=UTC)

    assert Window(dawn + timedelta(days=1), MAY).previous() == Window(
        dawn, dawn + timedelta(days=1)
    )
    assert Window(dawn, MAY).previous() is None


def test_a_time_without_a_zone_is_refused():
    """A naive time is ambiguous."""
    with pytest.raises(InvalidParameter, match=r"since cannot be '2026-05-01.*with its zone"):
        Window(since=datetime(2026, 5, 1))


@pytest.mark.parametrize("given", ["30d", date(2026, 5, 1), 7])
def test_an_invalid_time_is_refused(given):
    """A span of time, a day and a number are not read as moments."""
    with pytest.raises(InvalidParameter, match=r"until cannot be.*with its zone"):
        Window(until=given)


@pytest.mark.parametrize("until", [MAY, MAY - timedelta(microseconds=1)])
def test_an_empty_window_is_refused(until):
    """The start must be before the end."""
    with pytest.raises(InvalidParameter, match="a time before `until`, 2026-0"):
        Window(MAY, until)


def test_a_window_reads_as_part_of_a_sentence():
    """Times are in UTC; open ends are left out."""
    assert all(
        fact in str(Window(MAY, JUNE, "coding"))
        for fact in ("from 2026-05-01 00:00 UTC", "until 2026-06-01 00:00 UTC", "'coding'")
    )
    assert str(Window(until=JUNE)) == "before 2026-06-01 00:00 UTC"
    assert str(Window(category="law")) == "in the category 'law'"
    assert str(ALWAYS) == "since the first session"
