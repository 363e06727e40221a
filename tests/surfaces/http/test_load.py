"""Load on loopback: sessions, idle readers, slow readers and disconnects."""

import os
import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import httpx2
import pytest

from served import serving_process
from services import write_config

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc to read"),
]

QUESTION = {"question": "Is it so?", "options": {"synthesis": False}}

SERVE = "[serve]\nmax_sessions = 320\nmax_streams = 2500\nheartbeat_seconds = 2\n"


@pytest.fixture
def anyio_backend():
    """The event loop that the readers share."""
    return "asyncio"


def resident_bytes(pid):
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(pid):
    """Files and sockets that a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def open_stream(url, path, headers=""):
    """Open a connection and request a stream."""
    host, port = url.removeprefix("http://").split(":")
    stream = await anyio.connect_tcp(host, int(port))
    await stream.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    return stream


async def streams_open(client):
    text = (await client.get("/metrics")).text
    [line] = [line for line in text.splitlines() if line.startswith("witan_streams ")]
    return int(float(line.split()[1]))


async def until(check, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < deadline, what
        await anyio.sleep(0.2)


async def ask(client):
    response = await client.post("/api/sessions", params={"wait": 120}, json=QUESTION)
    return response.json()["status"]


async def test_three_hundred_concurrent_sessions_complete(tmp_path):
    """Their memory and files are released afterwards."""
    file = write_config(tmp_path, SERVE, answer=[{"text": "Ada says so.", "seconds": 2}])
    with serving_process("--config", file, "--no-history", cwd=tmp_path) as (url, process):
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx2.AsyncClient(base_url=url, timeout=180, limits=limits) as client:
            await ask(client)
            before = resident_bytes(process.pid)
            statuses = []

            async def one():
                statuses.append(await ask(client))

            for _ in range(2):
                async with anyio.create_task_group() as group:
                    for _ in range(300):
                        group.start_soon(one)
            health = (await client.get("/healthz")).json()
        after = resident_bytes(process.pid)

    assert statuses == ["complete"] * 600
    assert health["under_way"] == 0
    assert after - before < 150e6


async def test_a_second_equal_load_does_not_need_more_memory(tmp_path):
    """Finished sessions have a limit in memory, which the first load reaches.

    Storing the prompts of every session would take 50 MB more.
    """
    answer = [{"text": "Ada says so. " + "and so on " * 2500}]
    file = write_config(tmp_path, SERVE, answer=answer)
    options = ("--config", file, "--history", tmp_path / "history.sqlite")
    with serving_process(*options, cwd=tmp_path) as (url, process):
        async with httpx2.AsyncClient(base_url=url, timeout=180) as client:
            slots = anyio.CapacityLimiter(8)

            async def one():
                async with slots:
                    body = {"question": "Is it so?"}
                    response = await client.post("/api/sessions?wait=120", json=body)
                    name = response.json()["session"]
                    page = await client.get(f"/sessions/{name}", headers={"Accept": "text/html"})
                    assert (response.json()["status"], page.status_code) == ("complete", 200)

            async def load():
                async with anyio.create_task_group() as group:
                    for _ in range(100):
                        group.start_soon(one)
                return resident_bytes(process.pid)

            await load()
            first = await load()
            second = await load()

    assert second - first < 15e6


async def test_two_thousand_idle_readers_are_cheap(tmp_path):
    """A session continues beside them; when they disconnect, nothing remains."""
    slow = [{"prefers": ["Ada says"], "seconds": 60}]
    file = write_config(tmp_path, SERVE, review=slow)
    with serving_process("--config", file, "--no-history", cwd=tmp_path) as (url, process):
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            idle = (await client.post("/api/sessions", json=QUESTION)).json()["session"]
            before, held = resident_bytes(process.pid), open_files(process.pid)
            async with AsyncExitStack() as stack:
                readers = []
                for _ in range(2000):
                    reader = await open_stream(url, f"/api/sessions/{idle}/events")
                    stack.push_async_callback(reader.aclose)
                    readers.append(reader)

                async def all_open():
                    return await streams_open(client) == 2000

                await until(all_open, "not all readers are there")
                during = resident_bytes(process.pid)
                told = [await reader.receive(65536) for reader in readers[::100]]
                started = time.perf_counter()
                body = {**QUESTION, "profile": "demo"}
                response = await client.post("/api/plan", json=body)
                taken = time.perf_counter() - started

            async def all_streams_closed():
                return await streams_open(client) == 0 and open_files(process.pid) <= held + 5

            await until(all_streams_closed, "readers are left over")
        after = resident_bytes(process.pid)

    assert all(b"session_opened" in each for each in told)
    assert response.status_code == 200
    assert taken < 10
    assert during - before < 2000 * 60e3
    assert after - before < 2000 * 60e3


async def test_a_stalled_reader_does_not_block_others(tmp_path):
    """Others receive everything, and the server does not buffer without limit."""
    answer = [{"text": "Ada says so. " * 2000, "tokens_per_second": 4000}]
    file = write_config(tmp_path, SERVE, answer=answer)
    with serving_process("--config", file, "--no-history", cwd=tmp_path) as (url, process):
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            await ask(client)
            before = resident_bytes(process.pid)
            async with AsyncExitStack() as stack:
                for _ in range(5):
                    session = (await client.post("/api/sessions", json=QUESTION)).json()["session"]
                    for _ in range(20):
                        reader = await open_stream(url, f"/api/sessions/{session}/events")
                        stack.push_async_callback(reader.aclose)
                    text = (await client.get(f"/api/sessions/{session}/events")).text
                    assert text.count("event: end") == 1
                after = resident_bytes(process.pid)

    assert after - before < 100e6
