"""Councils over HTTP: time against the critical path, CPU against bare calls, and many at once.

Five members, eleven calls (five answers and a final answer streamed, five reviews), against a
server of ours that takes 100 ms for each. `bare` makes the same eleven calls over one shared
connection pool of httpx2 and reads them as JSON. The figure asked for is 20 ms where those bare
calls take 3.4 ms, so it is printed as a ratio too.

The same council also records its sessions in a history of SQLite, in turn with the one that keeps
none: what a durable session costs is the difference within one run.
"""

import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
from harness import Row, show

from witan import Council, Event, Session
from witan.core.blinding import label_map
from witan.core.rubric import RUBRICS
from witan.deliberation.prompts import review_schema

CRITICAL_SECONDS = 0.3
QUESTION = "Which of these designs would you take, and why? " * 4
REPEATS = 20
ROUNDS = 3


@contextmanager
def server() -> Iterator[str]:
    """Start the server in its own process; yield its address."""
    script = Path(__file__).with_name("council_server.py")
    process = subprocess.Popen(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as said:
        try:
            yield f"http://127.0.0.1:{said.readline().strip()}/v1"
        finally:
            process.terminate()
            process.wait()


def council(url: str, history: Path | None = None) -> Council:
    """Five seats of one server, and the first as chairman."""
    seats = [f"m{seat}={url}#model-{seat}" for seat in range(5)]
    return Council(seats, chairman="m0", history=history)


class Bare:
    """The same calls with nothing around them."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/chat/completions"
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self.client = httpx2.AsyncClient(limits=limits, timeout=60)
        sheet = label_map("bare", ["a", "b", "c", "d"], (1,))
        schema = review_schema(sheet, RUBRICS["general"], holistic=False)
        self.format = {"type": "json_schema", "json_schema": {"name": "review", "schema": schema}}

    def body(self, **more: object) -> dict[str, object]:
        """What is posted."""
        message = {"role": "user", "content": QUESTION}
        return {"model": "model", "messages": [message], **more}

    async def streamed(self) -> None:
        """One call of which every piece is read."""
        async with self.client.stream("POST", self.url, json=self.body(stream=True)) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    json.loads(line[6:])

    async def whole(self) -> None:
        """One review, not streamed."""
        reply = await self.client.post(self.url, json=self.body(response_format=self.format))
        json.loads(reply.json()["choices"][0]["message"]["content"])

    async def ask(self, _: str) -> None:
        """Five calls at once, five more, and a last one."""
        for calls in ([self.streamed] * 5, [self.whole] * 5, [self.streamed]):
            async with anyio.create_task_group() as group:
                for call in calls:
                    group.start_soon(call)


async def one_by_one(ask: Callable[[str], Awaitable[object]]) -> tuple[float, float]:
    """Median wall seconds, and CPU seconds on average, of one session after another."""
    for _ in range(3):
        await ask(QUESTION)
    walls = []
    gc.collect()
    before = time.process_time()
    for _ in range(REPEATS):
        start = time.perf_counter()
        await ask(QUESTION)
        walls.append(time.perf_counter() - start)
    return statistics.median(walls), (time.process_time() - before) / REPEATS


async def at_once(
    ask: Callable[[str], Awaitable[object]], number: int
) -> tuple[float, list[object]]:
    """Wall seconds for so many sessions at once, and what came of them."""
    done: list[object] = []

    async def put() -> None:
        done.append(await ask(QUESTION))

    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(put)
    return time.perf_counter() - start, done


async def first_event(held: Council) -> float:
    """Median seconds from asking to the first event."""
    waits = []
    for _ in range(REPEATS):
        heard: list[float] = []

        def hear(_: Event, heard: list[float] = heard) -> None:
            heard.append(time.perf_counter())

        start = time.perf_counter()
        await held.ask(QUESTION, listener=hear)
        waits.append(heard[0] - start)
    return statistics.median(waits)


def complete(done: Sequence[object]) -> int:
    """Count the complete sessions in which all five members reviewed."""
    return sum(
        isinstance(each, Session) and each.status == "complete" and len(each.ballots) == 5
        for each in done
    )


async def recorded(url: str, folder: Path) -> list[Row]:
    """Compare a council without a history with one that records, in turn within one run."""
    figures: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    async with council(url) as bare, council(url, folder / "history.sqlite") as recording:
        for _ in range(ROUNDS):
            for held in (bare, recording):
                wall, cpu = await one_by_one(held.ask)
                figures[held is recording].append((wall, cpu, await first_event(held)))
    unrecorded, durable = (
        [statistics.median(each) for each in zip(*figures[records], strict=True)]
        for records in (False, True)
    )
    words = ("wall", "CPU", "first event")
    return [
        Row(
            f"recorded, {word}",
            f"{after * 1e3:.1f} ms, unrecorded {before * 1e3:.1f} ms",
            "–",
            None,
        )
        for word, before, after in zip(words, unrecorded, durable, strict=True)
    ]


async def measure(url: str) -> list[Row]:
    """Run everything against one server."""
    bare = Bare(url)
    bare_wall, bare_cpu = await one_by_one(bare.ask)
    async with council(url) as held:
        wall, cpu = await one_by_one(held.ask)
        first = await first_event(held)
        fifty, done_fifty = await at_once(held.ask, 50)
        bare_fifty, _ = await at_once(bare.ask, 50)
        await at_once(held.ask, 200)
        many, done_many = await at_once(held.ask, 200)
    await bare.client.aclose()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    path = wall / CRITICAL_SECONDS
    rate, bare_rate = 50 / fifty, 50 / bare_fifty
    return [
        Row("one council, wall", f"{path:.3f} × path, bare {bare_wall / CRITICAL_SECONDS:.3f}",
            "≤ 1.1 ×", path <= 1.1),
        Row("one council, CPU", f"{cpu * 1e3:.1f} ms", "≤ 20 ms", cpu <= 0.020),
        Row("the same, ratio", f"{cpu / bare_cpu:.2f} × bare ({bare_cpu * 1e3:.1f} ms)",
            "≤ 5.9 × bare", cpu <= 5.9 * bare_cpu),
        Row("first event", f"{first * 1e3:.1f} ms", "≤ 20 ms", first <= 0.020),
        Row("50 at once", f"{rate:.1f}/s, bare {bare_rate:.1f}/s", "≥ 35/s",
            rate >= 35 and complete(done_fifty) == 50),
        Row("200 at once", f"{200 / many:.1f}/s, {complete(done_many)} complete", "all",
            complete(done_many) == 200),
        Row("memory, all of this", f"{peak:.0f} MB", "≤ 200 MB", peak <= 200),
    ]  # fmt: skip


def main() -> None:
    """Print one table."""
    with server() as url, tempfile.TemporaryDirectory() as folder:
        rows = anyio.run(measure, url)
        rows += anyio.run(recorded, url, Path(folder))
    show("Five members, eleven calls of 100 ms, over HTTP", rows)


if __name__ == "__main__":
    main()
