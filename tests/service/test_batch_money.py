"""The cost of a batch whose rows are run elsewhere too."""

import threading
import tracemalloc
from functools import partial
from pathlib import Path

import anyio
import pytest

from recorded import isolate
from witan.batches import Batch, BatchOptions, BatchRow
from witan.deliberation.ports import Price, Reply, Usage
from witan.errors import HistoryError
from witan.history import History
from witan.service.council import Council, Member
from witan.service.operations.imports import FileOptions, import_file

ROWS = [BatchRow(n, str(n), f"Why {n}?") for n in range(1, 4)]


class Writer:
    """A model that answers at a price, or never if silent."""

    def __init__(self, *, silent=False):
        self.silent = silent

    async def complete(self, call, hear, /):
        """Answer, and rank nothing."""
        if self.silent:
            await anyio.sleep_forever()
        hear(call.stage)
        return Reply(call.stage, Usage(1000, 1000))


def members(*, silent=False):
    """Two members at a price."""
    return [Member(n, Writer(silent=silent), price=Price(1, 1)) for n in ("ada", "bob")]


def run(place, rows, on_result=lambda _: None, *, silent=False):
    """Run a batch row by row; a silent council soon times out."""

    async def go():
        seats = members(silent=silent)
        with History.open(place) as history:
            async with Council(seats, mode="best") as council:
                batch = Batch(council, history, rows, BatchOptions(concurrency=1, max_calls=99))
                with anyio.move_on_after(0.5 if silent else 60):
                    return await batch.run(on_result)

    return anyio.run(go)


def test_a_row_finished_by_another_run_is_counted(tmp_path):
    """The report and the ceiling include its calls and dollars, as for an earlier run."""
    place = tmp_path / "history.sqlite"
    run(place, ROWS[2:], silent=True)
    costs = []

    def finish_last(result):
        costs.append(result.known_usd)
        if result.row == 1:
            other = threading.Thread(target=run, args=(place, ROWS[2:]))
            other.start()
            other.join()

    report = run(place, ROWS, finish_last)

    assert len(costs) == 3
    assert min(costs) > 0
    assert report.known_usd == pytest.approx(sum(costs))
    assert report.calls == run(place, ROWS).calls


class Counter:
    """A model that counts its calls and replies; each call takes a moment."""

    def __init__(self):
        self.calls = self.replies = 0

    async def complete(self, call, hear, /):
        """Answer at a price."""
        self.calls += 1
        await anyio.sleep(0.05)
        self.replies += 1
        hear(call.stage)
        return Reply(call.stage, Usage(1000, 1000))


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("shares_history", [True, False])
@pytest.mark.parametrize("begun", [True, False])
def test_two_batches_at_once_ask_no_row_twice(tmp_path, concurrency, shares_history, begun):
    """A row that the other batch runs, or continues, is an error, which says what to do."""
    model, options = Counter(), BatchOptions(concurrency=concurrency)
    if begun:
        run(tmp_path / "history.sqlite", ROWS, silent=True)
    seats = [Member(n, model, price=Price(1, 1)) for n in ("ada", "bob")]
    results = []

    async def run_one(history, on_result):
        async with Council(seats, mode="best") as council:
            return await Batch(council, history, ROWS, options).run(on_result)

    async def run_both():
        place = tmp_path / "history.sqlite"
        with History.open(place) as one, History.open(place) as other:
            async with anyio.create_task_group() as group:
                for history in (one, one if shares_history else other):
                    group.start_soon(run_one, history, results.append)
            return await run_one(one, lambda _: None)

    again = anyio.run(run_both)
    errors = [result.error for result in results if result.status == "error"]

    assert len(results) == 2 * len(ROWS)
    assert all("is running in this process; wait until it ends" in error for error in errors)
    assert errors
    assert (again.earlier, again.statuses) == (len(ROWS), {"complete": len(ROWS)})
    assert model.calls == 2 * len(ROWS)


def test_a_batch_that_is_run_twice_at_once_asks_no_row_twice(tmp_path):
    """The second run waits for the first, and has its results."""
    model = Counter()
    seats = [Member(n, model, price=Price(1, 1)) for n in ("ada", "bob")]
    reports = []

    async def go():
        with History.open(tmp_path / "history.sqlite") as history:
            async with Council(seats, mode="best") as council:
                batch = Batch(council, history, ROWS, BatchOptions())

                async def run_one():
                    reports.append(await batch.run(lambda _: None))

                async with anyio.create_task_group() as group:
                    group.start_soon(run_one)
                    group.start_soon(run_one)

    anyio.run(go)

    assert [report.earlier for report in reports] == [0, len(ROWS)]
    assert [report.statuses for report in reports] == [{"complete": len(ROWS)}] * 2
    assert model.calls == 2 * len(ROWS)


def test_a_batch_that_was_cancelled_can_be_run_again(tmp_path):
    """Also with the same history, which stays open."""

    async def go():
        with History.open(tmp_path / "history.sqlite") as history:
            for silent in (True, False):
                async with Council(members(silent=silent), mode="best") as council:
                    batch = Batch(council, history, ROWS, BatchOptions())
                    with anyio.move_on_after(0.5 if silent else 60):
                        report = await batch.run(lambda _: None)
        return report

    assert anyio.run(go).statuses == {"complete": len(ROWS)}


def test_a_batch_that_was_cancelled_beside_another_process_can_be_run_again(tmp_path):
    """While it waited to store the opening of a row; also with the same history and council."""
    locked, stored = threading.Event(), threading.Event()

    def lock(history):
        with history.database.transaction():
            locked.set()
            stored.wait()

    async def go():
        place = tmp_path / "history.sqlite"
        with History.open(place) as history, History.open(place) as other:

            def lock_by_other(_):
                if not locked.is_set():
                    threading.Thread(target=lock, args=(other,)).start()
                    locked.wait()

            async with Council(members(), mode="best") as council:
                batch = Batch(council, history, ROWS, BatchOptions(concurrency=1))
                async with anyio.create_task_group() as group:
                    group.start_soon(batch.run, lock_by_other)
                    await anyio.to_thread.run_sync(locked.wait)
                    await anyio.sleep(0.2)  # until the last row waits for the lock
                    group.cancel_scope.cancel()
                    stored.set()
                return await batch.run(lambda _: None)

    assert anyio.run(go).statuses == {"complete": len(ROWS)}


def test_a_batch_that_failed_can_be_run_again(tmp_path):
    """Its second report has every row once, and no failure of the first."""

    def refuse(result):
        raise OSError(28, "No space left on device")

    async def go():
        with History.open(tmp_path / "history.sqlite") as history:
            async with Council(members(), mode="best") as council:
                batch = Batch(council, history, ROWS, BatchOptions(concurrency=1))
                with pytest.raises(OSError, match="No space left"):
                    await batch.run(refuse)
                return await batch.run(lambda _: None)

    report = anyio.run(go)

    assert report.statuses == {"complete": report.rows} == {"complete": 3}


def test_a_bill_keeps_no_session_of_an_earlier_run(tmp_path):
    """Its memory stays far below the size of these sessions."""
    place, size = tmp_path / "history.sqlite", 100_000
    rows = [BatchRow(n, None, f"Why {n}? ".ljust(size, "x")) for n in range(40)]
    spent = run(place, rows).known_usd

    with History.open(place) as history:
        batch = Batch(Council(members(), mode="best"), history, rows, BatchOptions())
        batch.bill()  # imports what it needs
        tracemalloc.start()
        try:
            bill = batch.bill()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert (bill.earlier, bill.calls, bill.known_usd) == (40, 0, pytest.approx(spent))
    assert peak < len(rows) * size / 2


def test_replies_that_a_failing_history_does_not_store_are_in_files(tmp_path, monkeypatch):
    """The error names them, and after their import no stored reply is asked for again."""
    isolate(tmp_path, monkeypatch)
    place = tmp_path / "history.sqlite"
    rows = [BatchRow(n, str(n), f"Why {n}?") for n in range(1, 7)]
    model = Counter()
    when = "BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'disk is full'); END"

    def change(sql, _=None):
        with History.open(place) as history:
            history.database.execute(sql)

    async def go(on_result):
        seats = [Member(n, model, price=Price(1, 1)) for n in ("ada", "bob")]
        with History.open(place) as history:
            async with Council(seats, mode="best") as council:
                batch = Batch(council, history, rows, BatchOptions(concurrency=3))
                return await batch.run(on_result)

    with pytest.raises(HistoryError, match="with calls went to files instead; once it") as caught:
        anyio.run(go, partial(change, f"CREATE TRIGGER IF NOT EXISTS full {when}"))
    change("DROP TRIGGER full")
    folder = caught.value.remedy.partition("run witan import ")[2].partition(" --history")[0]
    with History.open(place) as history:
        for file in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else folder.split():
            import_file(history, file, FileOptions())
        n_stored = sum(len(session.answers) for session in history.sessions())
    model.replies = 0
    report = anyio.run(go, lambda _: None)

    assert report.statuses == {"complete": len(rows)}
    assert n_stored > 0
    assert model.replies == 2 * len(rows) - n_stored
