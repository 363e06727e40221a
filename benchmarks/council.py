"""Councils over HTTP beside a bare `aiohttp` pool: CPU, the critical path, a crowd and its memory.

Run `python benchmarks/council.py`, and `python benchmarks/council.py gateway` for the councils a
second behind one gateway. A server that takes 100 ms for every call runs in a process of its own;
the critical path of three stages is therefore 300 ms. The bare pool makes the calls of a council
again, with the same bodies, and reads the replies as JSON. Who is compared runs in turn within one
process; of its rounds the cheapest counts, as other load only adds to one.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import anyio
from harness import Row, show

from witan import Council, Event, Limits, Procedure, Session
from witan.deliberation.procedure import ThrottlePolicy

CRITICAL_SECONDS = 0.3
QUESTION = "Which of these designs would you take, and why? " * 4
REPEATS = 8
ROUNDS = 5
CROWD = 200

Ask = Callable[[str], Awaitable[object]]


@contextmanager
def server(seconds: float = 0.1) -> Iterator[str]:
    """Start the server in its own process, with calls of so long; yield its address."""
    script = Path(__file__).with_name("council_server.py")
    process = subprocess.Popen(  # noqa: S603 - our own interpreter on our own file
        [sys.executable, str(script), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as said:
        try:
            yield f"http://127.0.0.1:{said.readline().strip()}/v1"
        finally:
            process.terminate()
            process.wait()


def council(
    url: str,
    history: Path | None = None,
    members: int = 5,
    concurrency: int | None = None,
    usd: float = 0.0,
) -> Council:
    """Seats of one server, and the first as chairman, at so many dollars a million tokens."""
    price = {f"m{seat}": (usd, usd) for seat in range(members)}
    seats = [f"m{seat}={url}#model-{seat}" for seat in range(members)]
    provider = url.removesuffix("/v1")
    limits = Limits(session_seconds=3_600, stage_seconds=3_600)
    limits = replace(limits, providers={provider: ThrottlePolicy(concurrency=concurrency)})
    procedure = Procedure(limits=limits)
    return Council(seats, chairman="m0", history=history, price=price, procedure=procedure)


class Bare:
    """The calls of a council with nothing around them."""

    def __init__(self, client: aiohttp.ClientSession, url: str, bodies: Sequence[Any]) -> None:
        self.client, self.url = client, f"{url}/chat/completions"
        half = len(bodies) // 2
        self.stages = bodies[:half], bodies[half:-1], bodies[-1:]

    async def call(self, body: Any) -> None:
        """Make one call; read its text."""
        async with self.client.post(self.url, json=body) as response:
            if body.get("stream"):
                text = "".join([piece async for piece in self.pieces(response)])
            else:
                text = json.loads(await response.read())["choices"][0]["message"]["content"]
                json.loads(text)
        assert text

    async def pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[str]:
        """Read every piece of a stream."""
        async for line in response.content:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])["choices"][0]["delta"].get("content", "")

    async def ask(self, _: str) -> None:
        """Make the calls of each stage at once."""
        for bodies in self.stages:
            async with anyio.create_task_group() as group:
                for body in bodies:
                    group.start_soon(self.call, body)


@asynccontextmanager
async def bare_pool(url: str, members: int) -> AsyncIterator[Bare]:
    """A pool with the calls that a council of so many members has made."""
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        council(url, members=members) as model,
        aiohttp.ClientSession(connector=connector) as client,
    ):
        await model.ask(QUESTION)
        async with client.get(f"{url}/bodies") as response:
            bodies = (await response.json())[-(2 * members + 1) :]
        yield Bare(client, url, bodies)


async def one_by_one(ask: Ask) -> tuple[float, float]:
    """Median wall seconds, and mean CPU seconds, of one session after another."""
    await ask(QUESTION)
    walls = []
    gc.collect()
    before = time.process_time()
    for _ in range(REPEATS):
        start = time.perf_counter()
        await ask(QUESTION)
        walls.append(time.perf_counter() - start)
    return statistics.median(walls), (time.process_time() - before) / REPEATS


async def at_once(ask: Ask, number: int) -> tuple[float, float, list[object]]:
    """Wall and CPU seconds for so many sessions at once, and what came of them."""
    done: list[object] = []

    async def put() -> None:
        done.append(await ask(QUESTION))

    gc.collect()
    start, before = time.perf_counter(), time.process_time()
    async with anyio.create_task_group() as group:
        for _ in range(number):
            group.start_soon(put)
    return time.perf_counter() - start, time.process_time() - before, done


async def first_event(open_council: Council) -> float:
    """Median seconds from asking to the first event."""
    waits = []
    for _ in range(REPEATS):
        heard: list[float] = []

        def hear(_: Event, heard: list[float] = heard) -> None:
            heard.append(time.perf_counter())

        start = time.perf_counter()
        await open_council.ask(QUESTION, listener=hear)
        waits.append(heard[0] - start)
    return statistics.median(waits)


def complete(done: Sequence[object]) -> int:
    """Count the complete sessions in which all five members reviewed."""
    return sum(
        isinstance(each, Session) and each.status == "complete" and len(each.ballots) == 5
        for each in done
    )


async def in_turn(asks: dict[str, Ask]) -> dict[str, tuple[float, float]]:
    """Smallest wall and CPU seconds of each, of rounds in which all take their turn."""
    rounds = [{name: await one_by_one(ask) for name, ask in asks.items()} for _ in range(ROUNDS)]
    return {
        name: (min(each[name][0] for each in rounds), min(each[name][1] for each in rounds))
        for name in asks
    }


async def measure(url: str, folder: Path) -> list[Row]:
    """Measure the bare pool and councils with and without a history in turn."""
    async with AsyncExitStack() as stack:
        asks: dict[str, Ask] = {}
        for members in (5, 20):
            bare = await stack.enter_async_context(bare_pool(url, members))
            plain = await stack.enter_async_context(council(url, members=members))
            history = folder / f"{members}.sqlite"
            recording = await stack.enter_async_context(council(url, history, members))
            names = (f"bare {members}", f"plain {members}", f"history {members}")
            asks |= zip(names, (bare.ask, plain.ask, recording.ask), strict=True)
            if members == 5:
                first = {
                    name: await first_event(c)
                    for name, c in zip(names[1:], (plain, recording), strict=True)
                }
        figures = await in_turn(asks)
        crowds = {
            name: await at_once(asks[name], 50) for name in ("bare 5", "plain 5", "history 5")
        }
    cpu = {name: seconds * 1e3 for name, (_, seconds) in figures.items()}
    wall = {name: seconds / CRITICAL_SECONDS for name, (seconds, _) in figures.items()}
    rows = []
    for members in (5, 20):
        floor, calls = cpu[f"bare {members}"], 2 * members + 1
        for name, most in (("plain", 2.4), ("history", 3.0)):
            spent = cpu[f"{name} {members}"]
            rows.append(
                Row(f"CPU, {members} members, {name}",
                    f"{spent / floor:.2f} × bare; {spent:.1f} ms, {spent / calls:.2f} a call",
                    f"≤ {most} × bare", spent <= most * floor)
            )  # fmt: skip
        rows.append(
            Row(
                f"CPU, {members} members, bare",
                f"{floor:.1f} ms, {floor / calls:.2f} a call",
                "–",
                None,
            )
        )
    for name in ("plain", "history"):
        flat = (cpu[f"{name} 20"] / 41) / (cpu[f"{name} 5"] / 11)
        rows.append(
            Row(f"CPU a call, 20 over 5 members, {name}", f"{flat:.2f} ×", "≤ 1.2 ×", flat <= 1.2)
        )
    path = wall["plain 5"]
    rows += [
        Row(
            "one council, wall",
            f"{path:.3f} × path, bare {wall['bare 5']:.3f}",
            "≤ 1.1 ×",
            path <= 1.1,
        ),
        Row("the same, with a history", f"{wall['history 5']:.3f} × path", "–", None),
        *(
            Row(
                f"first event, {name.split()[0]}",
                f"{seconds * 1e3:.1f} ms",
                "≤ 20 ms",
                seconds <= 0.02,
            )
            for name, seconds in first.items()
        ),
    ]
    floor = crowds["bare 5"][1]
    for name, (seconds, spent, done) in crowds.items():
        all_complete = None if name.startswith("bare") else complete(done) == 50
        rows.append(
            Row(f"50 at once, {name.split()[0]}",
                f"{50 / seconds:.1f}/s, CPU {spent / floor:.2f} × bare, {spent / 50 * 1e3:.1f} ms",
                "–" if all_complete is None else "all complete", all_complete)
        )  # fmt: skip
    return rows


def memory_mb(what: str) -> float:
    """Megabytes of this process, by a line of Linux; `resource` starts at the parent's peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


async def crowd(url: str, history: Path, usd: float) -> None:
    """Ask many councils at once in this process; print how many completed, and its memory."""
    async with council(url, history, usd=usd) as recording:
        await recording.ask(QUESTION)
        before = memory_mb("VmRSS")
        seconds, _, done = await at_once(recording.ask, CROWD)
    print(json.dumps([complete(done), CROWD / seconds, before, memory_mb("VmHWM")]))


def measure_crowd(url: str, history: Path, usd: float) -> Row:
    """Measure the memory of many councils in a process of their own."""
    command = [sys.executable, __file__, "--crowd", url, str(history), str(usd)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    n_complete, rate, before, peak = json.loads(result.stdout)
    figure = f"{peak:.0f} MB, {before:.0f} before; {n_complete} complete, {rate:.1f}/s"
    name = f"{CROWD} at once, history{', priced' if usd else ''}"
    return Row(name, figure, "≤ 120 MB, all", peak <= 120 and n_complete == CROWD)


async def rate_behind(url: str, number: int, concurrency: int | None) -> float:
    """Complete councils a second, of so many at once that ask one gateway."""
    async with council(url, concurrency=concurrency) as crowded:
        seconds, _, done = await at_once(crowded.ask, number)
    assert complete(done) == number
    return number / seconds


def measure_gateway() -> list[Row]:
    """Measure councils a second under 64 calls at once, and under as many as are taken."""
    rows = []
    for seconds, fixed, adaptive in ((0.1, 200, 200), (10.0, 30, 300)):
        with server(seconds) as url:
            before = anyio.run(rate_behind, url, fixed, 64)
            after = anyio.run(rate_behind, url, adaptive, None)
        figure = f"{before:.2f}/s with 64 calls at once, {after:.2f}/s with as many as are taken"
        rows.append(Row(f"calls of {seconds:g} s", figure, "–", None))
    return rows


def main() -> None:
    """Print one table, or that of councils behind one gateway, which takes three minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=["gateway"])
    parser.add_argument("--crowd", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.crowd is not None:
        url, history, usd = given.crowd
        anyio.run(crowd, url, Path(history), float(usd))
        return
    if given.table == "gateway":
        show("Councils behind one gateway", measure_gateway())
        return
    with server() as url, tempfile.TemporaryDirectory() as folder:
        rows = anyio.run(measure, url, Path(folder))
        rows += [measure_crowd(url, Path(folder) / f"crowd{usd}.sqlite", usd) for usd in (0, 1)]
    show("Calls of 100 ms over HTTP", rows)


if __name__ == "__main__":
    main()
