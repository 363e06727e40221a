"""The council at the door: what the server adds to a session, bears in streams, and holds.

The members are scripts, so what is timed is ours: the same council is asked in this process and
through a server of its own, in turns. Streams are read by a third process, which only counts.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio
import httpx2
from anyio.abc import SocketStream
from harness import Row, show
from startup import write_ballots

from witan import Council

READER = Path(__file__).with_name("serve_reader.py")
REPEATS = 40
SESSIONS, READERS = 25, 20
SECONDS = 15.0
HELD = 300
"""Sessions of one load, after which memory is measured."""
STORED, BESIDE, CLIENTS, REQUESTS = 20_000, 20, 4, 25
"""Sessions of a history; sessions at once beside clients that ask so often for its leaderboard."""
PAUSE = 0.25
"""Seconds between a client's requests of the floor, which would be thousands a second."""


def write_scripts(folder: Path, answer: dict[str, object]) -> list[str]:
    """Three members that answer so, prefer the first, and close with a sentence."""
    seats = []
    for name in ("ada", "bob", "cyd"):
        lines = ["[[answer]]", *(f"{key} = {json.dumps(value)}" for key, value in answer.items())]
        lines += ["[[review]]", 'prefers = ["Ada says"]', "[[synthesis]]", 'text = "All told: so."']
        path = folder / f"{name}.toml"
        path.write_text("\n".join(lines).replace("NAME", name.title()), encoding="utf-8")
        seats.append(f"script:{path}")
    return seats


@contextmanager
def server(folder: Path, seats: list[str], *, recorded: bool = False) -> Iterator[tuple[str, int]]:
    """Start ``witan serve`` with these seats; yield where it is, and its process."""
    file = folder / "council.toml"
    bounds = "[serve]\nmax_sessions = 200\n"
    council = f"members = {json.dumps(seats)}\nchairman = {json.dumps(seats[0])}\n"
    file.write_text(council + bounds, encoding="utf-8")
    command = [sys.executable, "-m", "witan", "serve", "--port", "0"]
    command += ["--history", str(folder / "history.sqlite")] if recorded else ["--no-history"]
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [*command, "--config", str(file)], stderr=said
        )
        try:
            while not (found := re.search(r"page (\S+?)/ ", (folder / "said").read_text())):
                time.sleep(0.05)
            yield found[1], process.pid
        finally:
            process.kill()
            process.wait()


def cpu_seconds_of(pid: int) -> float:
    """CPU seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def posted(client: SocketStream, path: str, body: bytes) -> bytes:
    """Post JSON on a connection that is kept; return what is answered."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    await client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += await client.receive()
    told, _, content = answer.partition(b"\r\n\r\n")
    [length] = re.findall(rb"content-length: (\d+)", told.lower())
    while len(content) < int(length):
        content += await client.receive()
    return content


async def added(folder: Path) -> list[Row]:
    """What a session takes through the server more than in this process."""
    seats = write_scripts(folder, {"text": "NAME says so.", "seconds": 0.05})
    question = "Which would you take, and why?"
    here: list[float] = []
    there: list[float] = []
    body = json.dumps({"question": question}).encode()
    with server(folder, seats) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        # A client of a few lines: what a heavier one takes is not the server's.
        async with (
            Council(seats, chairman=seats[0]) as council,
            await anyio.connect_tcp(host, int(port)) as client,
        ):
            for turn in range(REPEATS + 3):
                start = time.perf_counter()
                await council.ask(question)
                middle = time.perf_counter()
                await posted(client, "/api/sessions?wait=30", body)
                if turn >= 3:
                    here.append(middle - start)
                    there.append(time.perf_counter() - middle)
    more = (statistics.median(there) - statistics.median(here)) * 1000
    ratio = statistics.median(there) / statistics.median(here)
    return [
        Row("a session through the server", f"{more:+.1f} ms ({ratio:.2f} x)", "<= 5 ms", more <= 5)
    ]


async def first_bytes(folder: Path) -> list[Row]:
    """How long after a member's first piece the first byte of it is read."""
    seats = write_scripts(
        folder, {"text": "NAME says so, at length.", "seconds": 0.2, "tokens_per_second": 200}
    )
    late: list[float] = []
    with server(folder, seats) as (url, _):
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            for _ in range(REPEATS):
                opened = await client.post("/api/sessions", json={"question": "Which?"})
                path = opened.json()["links"]["events"]
                async with client.stream("GET", path) as response:
                    async for line in response.aiter_lines():
                        if line.startswith('data: {"event": "answer_delta"'):
                            at = datetime.fromisoformat(json.loads(line[6:])["at"])
                            late.append(time.time() - at.timestamp())
                            break
    worst = sorted(late)[int(0.95 * len(late))] * 1000
    middle = statistics.median(late) * 1000
    return [
        Row("first byte after the first piece", f"{middle:.1f} ms", "<= 15 ms", middle <= 15),
        Row("  the slowest of twenty", f"{worst:.1f} ms", "", None),
    ]


async def streams(folder: Path) -> list[Row]:
    """Five hundred readers of sessions that tell ten events a second."""
    # Three members, each of which says a piece of a few tokens every .3 seconds.
    text = "NAME says so. " + "word " * 400
    seats = write_scripts(folder, {"text": text, "tokens_per_second": 12})
    with server(folder, seats) as (url, pid):
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            paths = []
            for _ in range(SESSIONS):
                opened = await client.post("/api/sessions", json={"question": "Which?"})
                paths += [opened.json()["links"]["events"]] * READERS
        command = [sys.executable, str(READER), url, str(SECONDS), *paths]
        before, start = cpu_seconds_of(pid), time.perf_counter()
        told = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603, ASYNC221
        )
        taken = time.perf_counter() - start
        load = (cpu_seconds_of(pid) - before) / taken
    rate = told["events"] / told["seconds"]
    n_streams = SESSIONS * READERS
    each = rate / n_streams
    return [
        Row(f"{n_streams} streams, events a second each", f"{each:.1f}", ">= 9.5", each >= 9.5),
        Row("  of one core", f"{load:.0%}", "<= 100%", load <= 1),
        Row("  from telling to reading, median", f"{told['late_ms']:.0f} ms", "", None),
    ]


def resident_mb(pid: int) -> float:
    """Megabytes of memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def held(folder: Path) -> list[Row]:
    """Memory after three loads of the same size, each session with its page."""
    seats = write_scripts(folder, {"text": "NAME says so. " + "and so on " * 500})
    after: list[float] = []
    with server(folder, seats, recorded=True) as (url, pid):
        async with httpx2.AsyncClient(base_url=url, timeout=120) as client:
            slots = anyio.CapacityLimiter(8)

            async def one() -> None:
                async with slots:
                    body = {"question": "Which would you take, and why?"}
                    opened = await client.post("/api/sessions?wait=60", json=body)
                    name = opened.json()["session"]
                    await client.get(f"/sessions/{name}", headers={"Accept": "text/html"})

            await one()
            before = resident_mb(pid)
            for _ in range(3):
                async with anyio.create_task_group() as group:
                    for _ in range(HELD):
                        group.start_soon(one)
                after.append(resident_mb(pid))
    shown = " → ".join(f"{mb:.0f}" for mb in (before, *after))
    more = after[2] - after[1]
    return [
        Row(f"memory before and after {HELD} sessions, three times", f"{shown} MB", "", None),
        Row("  what the third load adds", f"{more:+.1f} MB", "<= 10 MB", more <= 10),
    ]


class Load:
    """Sessions that follow one another, so many at once, and what each took."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client
        self.seconds: list[float] = []

    async def ask(self) -> None:
        """Ask one session after another until cancelled."""
        while True:
            start = time.perf_counter()
            body = {"question": "Which would you take, and why?"}
            answer = await self._client.post("/api/sessions?wait=60", json=body)
            answer.raise_for_status()
            self.seconds.append(time.perf_counter() - start)

    async def beside(self, path: str | None, pause: float = 0.0) -> tuple[list[float], float]:
        """Time requests beside the sessions, in order, and the median session meanwhile."""
        waited: list[float] = []
        self.seconds.clear()

        async def read() -> None:
            for _ in range(REQUESTS):
                start = time.perf_counter()
                (await self._client.get(path or "")).raise_for_status()
                waited.append(time.perf_counter() - start)
                await anyio.sleep(pause)

        if path is None:
            await anyio.sleep(SECONDS)
        else:
            async with anyio.create_task_group() as readers:
                for _ in range(CLIENTS):
                    readers.start_soon(read)
        return sorted(waited), statistics.median(self.seconds) if self.seconds else float("nan")


async def leaderboards(folder: Path, days: int) -> list[Row]:
    """Wait for leaderboards of a history of so many days while sessions are written to it."""
    seats = write_scripts(folder, {"text": "NAME says so. " * 20, "tokens_per_second": 60})
    ballots = folder / "ballots.jsonl"
    write_ballots(ballots, STORED, days)
    imported = [sys.executable, "-m", "witan", "import", str(ballots)]
    subprocess.run(  # noqa: S603, ASYNC221 - our own interpreter
        [*imported, "--history", str(folder / "history.sqlite")], check=True, capture_output=True
    )
    with server(folder, seats, recorded=True) as (url, pid):
        async with httpx2.AsyncClient(base_url=url, timeout=120) as client:
            load = Load(client)
            (await client.get("/api/leaderboard")).raise_for_status()
            async with anyio.create_task_group() as sessions:
                for _ in range(BESIDE):
                    sessions.start_soon(load.ask)
                await anyio.sleep(3)
                _, alone = await load.beside(None)
                floor, beside_floor = await load.beside("/api/rules", PAUSE)
                before, start = cpu_seconds_of(pid), time.perf_counter()
                waited, beside = await load.beside("/api/leaderboard")
                busy = (cpu_seconds_of(pid) - before) / (time.perf_counter() - start)
                sessions.cancel_scope.cancel()
    least, worst = (times[int(0.95 * len(times))] for times in (floor, waited))
    stored = f"{STORED:,} sessions of " + ("a year" if days else "one day")
    named = f"leaderboard of {stored}, beside {BESIDE} sessions, {CLIENTS} clients, p95"
    return [
        Row(named, f"{worst:.2f} s, {worst / least:.1f} x floor", "<= 1 s", worst <= 1),
        Row("  median", f"{statistics.median(waited):.2f} s", "", None),
        Row("  floor: the list of rules instead, p95", f"{least:.2f} s", "", None),
        Row("  CPU of the server, of one core", f"{busy:.0%}", "", None),
        Row("a session meanwhile, median", f"{beside:.2f} s", "", None),
        Row("  beside the floor", f"{beside_floor:.2f} s", "", None),
        Row("  beside no request", f"{alone:.2f} s", "", None),
    ]


async def main() -> None:
    """Measure, and print."""
    rows = []
    of_a_year, of_a_day = (partial(leaderboards, days=days) for days in (365, 0))
    for measure in (added, first_bytes, streams, held, of_a_year, of_a_day):
        with tempfile.TemporaryDirectory() as folder:
            rows += await measure(Path(folder))
    show("the council at the door", rows)


if __name__ == "__main__":
    anyio.run(main)
