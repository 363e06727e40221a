"""What a batch on Spark takes from its PostgreSQL: tokens, reservations, and its rows.

Run `python benchmarks/spark_batch.py postgresql://user@host/database` with an empty database. As
many connections as workers take tokens of one provider, and reserve and settle under one ceiling.
Then the same judgements, of three jurors whose calls take 100 ms, run as a local batch and on Spark
in processes of this machine, at equally many sessions at a time.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf

import anyio
from batch import JURORS, SECONDS, rows
from council import server
from harness import Row, show

from witan import Council, History
from witan.analytics.sources import start_session
from witan.batches import Batch, BatchOptions, SparkBatch
from witan.deliberation.money import Amount
from witan.history.shared_limits import BatchCeiling, TokenBucket, require_server
from witan.service.spark_batch import SETTINGS

WORKERS, TIMES, CORES = 8, 200, 2


def per_second(url: str, prepare: Callable[[History], Callable[[str], object]]) -> float:
    """Calls a second by all workers, each with a connection of its own."""

    def work(number: int) -> None:
        with History.open(url) as history:
            call = prepare(history)
            for each in range(TIMES):
                call(f"session {number} {each}")

    began = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        [*pool.map(work, range(WORKERS))]
    return WORKERS * TIMES / (time.perf_counter() - began)


def tokens(history: History) -> Callable[[str], object]:
    """Take a token of one provider."""
    bucket = TokenBucket(require_server(history))

    async def take() -> None:
        await bucket.take("a provider", 1e-6)

    return lambda _: anyio.run(take)


def reservations(history: History) -> Callable[[str], object]:
    """Reserve for a session, and settle it."""
    ceiling = BatchCeiling(history, "a batch")

    def reserve(session: str) -> None:
        ceiling.reserve(session, Amount(0.01, 3), 1)
        ceiling.settle(session, Amount(0.01, 3))

    return reserve


async def judge(url: str, address: str, number: int, question: str, *, on_spark: bool) -> float:
    """Wall seconds of a batch, without the start of Spark."""
    seats = [f"m{seat}={address}#model-{seat}" for seat in range(JURORS)]
    options = BatchOptions(concurrency=8 if on_spark else 8 * CORES, pass_mark=6)
    tasks = [replace(each, question=question) for each in rows(number)]
    with History.open(url) as history:
        make = SparkBatch if on_spark else Batch
        batch = make(Council(seats), history, tasks, options)
        began = time.perf_counter()
        async with batch.council:
            report = await batch.run(lambda _: None)
    assert report.statuses == {"complete": number}, report
    return time.perf_counter() - began


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="an empty PostgreSQL database")
    parser.add_argument("number", nargs="?", type=int, default=1_000, help="judgements of a batch")
    given = parser.parse_args()
    url, number = given.url, given.number
    with History.open(url) as history:
        BatchCeiling(history, "a batch").open(Amount(inf, inf), {})
    took = per_second(url, tokens)
    reserved = per_second(url, reservations)
    session = start_session(f"local[{CORES}]", SETTINGS)
    with server(SECONDS) as address:
        local = anyio.run(lambda: judge(url, address, number, "Which?", on_spark=False))
        spark = anyio.run(lambda: judge(url, address, number, "Which one?", on_spark=True))
    session.stop()
    show(
        f"{WORKERS} connections, then {number:,} judgements by {JURORS} jurors",
        [
            Row("statements for tokens a second", f"{took:,.0f}", "-", None),
            Row("sessions reserved and settled a second", f"{reserved:,.0f}", "-", None),
            Row("judgements a second, local batch", f"{number / local:.1f}", "-", None),
            Row(f"judgements a second, Spark local[{CORES}]", f"{number / spark:.1f}", "-", None),
        ],
    )


if __name__ == "__main__":
    main()
