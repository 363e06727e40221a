"""A batch of 1,000 judgements over HTTP beside bare loops of the same calls.

Run `python benchmarks/batch.py`. A server that takes 100 ms for every call runs in a process of its
own. Three jurors judge each text, eight texts at a time: the critical path is that many rounds of
100 ms. The bare loops send bodies of the same texts, as many at a time, and read the replies as
JSON: one by `aiohttp`, one by the package `openai`, with which such a loop is usually written. All
run with the garbage collector as the command `witan` sets it.
"""

import argparse
import gc
import json
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
from council import server
from harness import Row, show

from witan import Council, History
from witan.batches import Batch, BatchOptions, BatchReport, BatchRow

SECONDS, JURORS = 0.1, 3
GC_THRESHOLD = 100_000


def rows(number: int) -> list[BatchRow]:
    """Texts that the server's models can judge."""
    return [
        BatchRow(n, None, "Which design?", {"text": f"Design {n}, of worth {n % 8 + 1}. " * 20})
        for n in range(number)
    ]


async def batch(url: str, number: int, at_once: int, folder: Path) -> tuple[float, float, Any]:
    """Wall and CPU seconds of a batch with a history."""
    seats = [f"m{seat}={url}#model-{seat}" for seat in range(JURORS)]
    with History.open(folder / "history.sqlite") as history:
        options = BatchOptions(concurrency=at_once, pass_mark=6)
        whole = Batch(Council(seats), history, rows(number), options)
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        async with whole.council:
            report: BatchReport = await whole.run(lambda _: None)
    took = time.perf_counter() - wall, time.process_time() - cpu
    assert report.statuses == {"complete": number}, report
    return *took, report


Call = Callable[[Any], Awaitable[str]]


@asynccontextmanager
async def by_aiohttp(url: str) -> AsyncIterator[Call]:
    """Calls over `aiohttp`."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def call(body: Any) -> str:
            async with client.post(f"{url}/chat/completions", json=body) as response:
                reply = json.loads(await response.read())
            return str(reply["choices"][0]["message"]["content"])

        yield call


@asynccontextmanager
async def by_openai(url: str) -> AsyncIterator[Call]:
    """Calls by the package `openai`, imported here to stay out of the batch's memory."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none") as client:

        async def call(body: Any) -> str:
            completion = await client.chat.completions.create(**body)
            return str(completion.choices[0].message.content)

        yield call


async def bare(
    calls: Callable[[str], AbstractAsyncContextManager[Call]], url: str, number: int, at_once: int
) -> tuple[float, float]:
    """Wall and CPU seconds of the calls alone."""
    async with aiohttp.ClientSession() as client, client.get(f"{url}/bodies") as response:
        bodies = (await response.json())[-JURORS:]
    limit = anyio.CapacityLimiter(at_once)

    async def grade(call: Call, body: Any) -> None:
        assert json.loads(await call(body))

    async def judge(call: Call) -> None:
        async with limit, anyio.create_task_group() as jurors:
            for body in bodies:
                jurors.start_soon(grade, call, body)

    async with calls(url) as call:
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        async with anyio.create_task_group() as group:
            for _ in range(number):
                group.start_soon(judge, call)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int, nargs="?", default=1_000, help="Texts to judge")
    parser.add_argument("at_once", type=int, nargs="?", default=8, help="Texts judged at a time")
    arguments = parser.parse_args()
    number, at_once = arguments.number, arguments.at_once
    gc.set_threshold(GC_THRESHOLD)
    with server(SECONDS) as url, tempfile.TemporaryDirectory() as folder:
        wall, cpu, _ = anyio.run(batch, url, number, at_once, Path(folder))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        bare_wall, bare_cpu = anyio.run(bare, by_aiohttp, url, number, at_once)
        _, openai_cpu = anyio.run(bare, by_openai, url, number, at_once)
    critical = -(-number // at_once) * SECONDS
    show(
        f"{number:,} judgements by {JURORS} jurors, {at_once} at a time, with a history",
        [
            Row(
                "to the critical path",
                f"{wall / critical:.2f} ×",
                "≤ 1.2 ×",
                wall <= 1.2 * critical,
            ),
            Row("to the critical path, bare", f"{bare_wall / critical:.2f} ×", "-", None),
            Row("CPU to aiohttp's loop", f"{cpu / bare_cpu:.2f} ×", "≤ 3 ×", cpu <= 3 * bare_cpu),
            Row("CPU to openai's loop", f"{cpu / openai_cpu:.2f} ×", "≤ 1 ×", cpu <= openai_cpu),
            Row("CPU a judgement", f"{1000 * cpu / number:.1f} ms", "-", None),
            Row("memory", f"{memory:.0f} MB", "≤ 250 MB", memory <= 250),
        ],
    )


if __name__ == "__main__":
    main()
