"""Clients' spending across restarts."""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from clocks import SetClock
from witan.errors import HistoryError
from witan.service.sessions.spending import Client, ClientLimits, Ledger


@pytest.fixture
def calendar():
    return SetClock(datetime(2026, 11, 21, 12, tzinfo=UTC))


def test_a_reservation_counts_until_it_is_settled(calendar):
    """Then the actual cost counts instead."""
    ledger = Ledger(calendar)
    reserved = ledger.reserve("ci", 2.0)
    assert ledger.spent_usd("ci") == 2.0

    ledger.settle(reserved, 0.25)
    assert ledger.spent_usd("ci") == 0.25


def test_each_client_has_its_own_account(calendar):
    """A client's spending does not count against others."""
    ledger = Ledger(calendar)
    ledger.reserve("ci", 2.0)

    assert ledger.spent_usd("ines") == 0


def test_spending_expires_after_a_day(calendar):
    """After exactly 24 hours, not a second earlier."""
    ledger = Ledger(calendar)
    ledger.reserve("ci", 2.0)
    calendar.at += timedelta(hours=24, seconds=-1)
    assert ledger.spent_usd("ci") == 2.0

    calendar.at += timedelta(seconds=1)
    assert ledger.spent_usd("ci") == 0


def test_a_session_costs_the_same_however_many_the_day_has_seen(calendar):
    """A server that judges all day does not slow down towards the evening."""

    def seconds_after(n_earlier):
        ledger = Ledger(calendar)
        for _ in range(n_earlier):
            ledger.settle(ledger.reserve("ci", 2.0), 0.25)
        began = time.process_time()
        for _ in range(100):
            ledger.spent_usd("ci")
            ledger.settle(ledger.reserve("ci", 2.0), 0.25)
        return time.process_time() - began

    assert seconds_after(64_000) < 20 * seconds_after(500)


def test_a_line_of_a_clock_that_was_wrong_delays_no_other(calendar):
    """The amounts after it expire a day after their own time."""
    ledger = Ledger(calendar)
    right = calendar.at
    calendar.at += timedelta(days=10)
    ledger.reserve("ci", 2.0)
    calendar.at = right
    ledger.reserve("ci", 1.0)
    assert ledger.spent_usd("ci") == 3.0

    calendar.at += timedelta(hours=24)
    assert ledger.spent_usd("ci") == 2.0


def test_a_sum_has_no_rest_of_what_was_removed(calendar):
    """However large the sums before it."""
    ledger = Ledger(calendar)
    small = ledger.reserve("ci", 0.1)
    ledger.settle(ledger.reserve("ci", 1e15), 0.2)
    ledger.drop(small)

    assert ledger.spent_usd("ci") == 0.2


async def reserve_durably(ledger, *dollars, client="ci"):
    """Reserve these dollars, and wait until the reservations are on disk."""
    reserved = [ledger.reserve(client, usd) for usd in dollars]
    await ledger.flush()
    return reserved


@pytest.mark.anyio
class TestFile:
    """A flushed ledger survives the process."""

    async def test_reservations_survive_a_kill(self, calendar, tmp_path):
        """The cost of those sessions is unknown, so they count in full."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as before:
            [first, _] = await reserve_durably(before, 2.0, 1.0)
            before.settle(first, 0.5)
            await before.flush()
        with Ledger(calendar, path) as after:
            await reserve_durably(after, 0.25)

            assert after.spent_usd("ci") == 1.75
        with Ledger(calendar, path) as last:
            assert last.spent_usd("ci") == 1.75

    async def test_only_one_server_opens_a_file(self, calendar, tmp_path):
        """Two would let each client spend its limit twice; the error says what to do."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path):
            with pytest.raises(HistoryError, match="stop that server") as caught:
                Ledger(calendar, path)
            assert str(path) in str(caught.value)
        Ledger(calendar, path).close()

    async def test_a_slow_disk_does_not_block_the_event_loop(self, calendar, tmp_path):
        """Other clients do not wait for the line being written."""
        pipe = tmp_path / "ledger.jsonl"
        with Ledger(calendar, pipe) as ledger:
            [there] = await reserve_durably(ledger, 1.0)
            pipe.unlink()
            os.mkfifo(pipe)  # opening it for writing waits for a reader
            over = anyio.Event()

            async def write():
                with pytest.raises(HistoryError):  # a pipe cannot be synchronized
                    await reserve_durably(ledger, 2.0)
                over.set()

            async with anyio.create_task_group() as group:
                group.start_soon(write)
                await anyio.sleep(0.05)
                with anyio.move_on_after(5) as waiting:
                    await ledger.flush(there)
                assert not over.is_set()
                os.close(await anyio.to_thread.run_sync(os.open, pipe, os.O_RDONLY))
            assert not waiting.cancelled_caught

    async def test_concurrent_flushes_share_a_write(self, calendar, tmp_path):
        """The first caller writes for all that arrive meanwhile."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            async with anyio.create_task_group() as group:
                for _ in range(50):
                    group.start_soon(reserve_durably, ledger, 1.0)

            assert len(path.read_text().splitlines()) == 50
            assert ledger.spent_usd("ci") == 50

    async def test_a_failed_write_is_repeated_with_the_next_line(self, calendar, tmp_path):
        """After any fragment left by the failed write."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            path.unlink()
            path.mkdir()
            with pytest.raises(HistoryError, match="cannot be recorded"):
                await reserve_durably(ledger, 2.0)
            path.rmdir()
            path.write_text('{"number": "torn')
            await reserve_durably(ledger, 1.0)
        with Ledger(calendar, path) as after:
            assert after.spent_usd("ci") == 3.0

    async def test_a_dropped_reservation_is_not_written(self, calendar, tmp_path):
        """A session that did not start costs nothing."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            ledger.drop(ledger.reserve("ci", 2.0))
            await reserve_durably(ledger, 1.0)
        with Ledger(calendar, path) as after:
            assert after.spent_usd("ci") == 1.0

    async def test_a_grown_file_is_rewritten(self, calendar, tmp_path):
        """A server that runs for years stores one day."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            await reserve_durably(ledger, *[0.001] * 1_500)
            calendar.at += timedelta(hours=25)
            await reserve_durably(ledger, 2.0)

            assert len(path.read_text().splitlines()) == 1
            await reserve_durably(ledger, 1.0)
        with Ledger(calendar, path) as after:
            assert after.spent_usd("ci") == 3.0

    async def test_only_the_owner_can_read_the_file(self, calendar, tmp_path):
        """Also after it was rewritten."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            await reserve_durably(ledger, 2.0)

        assert path.stat().st_mode & 0o077 == 0

    async def test_an_incomplete_last_line_is_ignored(self, calendar, tmp_path):
        """Complete lines are read."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            await reserve_durably(ledger, 2.0)
        with path.open("a") as file:
            file.write('{"number": 2, "asker": "ci", "at": "2026-')
        with Ledger(calendar, path) as after:
            assert after.spent_usd("ci") == 2.0

    @pytest.mark.parametrize(
        ("at", "usd"), [("2026-11-21T12:00:00", "1"), ("{at}", "NaN"), ("{at}", "Infinity")]
    )
    async def test_an_invalid_line_is_ignored(self, calendar, tmp_path, at, usd):
        """Such as a time without a zone, or an amount that is not a number."""
        path = tmp_path / "ledger.jsonl"
        with Ledger(calendar, path) as ledger:
            await reserve_durably(ledger, 2.0)
        with path.open("a") as file:
            at = at.format(at=calendar.at.isoformat())
            file.write(f'{{"number": "b", "asker": "ci", "at": "{at}", "usd": {usd}}}\n')
        with Ledger(calendar, path) as after:
            assert after.spent_usd("ci") == 2.0


def test_an_unwritable_file_is_named(calendar, tmp_path):
    """The error also says what to do."""
    blocking = tmp_path / "file"
    blocking.touch()
    with pytest.raises(HistoryError, match="ledger"):
        Ledger(calendar, blocking / "ledger")


def test_a_cancelled_request_releases_its_reservation(tmp_path, calendar):
    """Even if asyncio itself cancels the task, which ignores anyio's shields."""

    async def cancelled(ledger):
        asking = ClientLimits(ledger, calendar).hold_back(Client("ci", daily_usd=5.0), 2.0)
        task = asyncio.create_task(asking)
        await asyncio.sleep(0)
        held = ledger.spent_usd("ci")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return held

    with Ledger(calendar, tmp_path / "spent.jsonl") as ledger:
        held = asyncio.run(cancelled(ledger))
        left = ledger.spent_usd("ci")

    assert (held, left) == (2.0, 0.0)
