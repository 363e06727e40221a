"""Reads many event streams at once and counts what they tell: ``URL SECONDS PATH...``."""

import json
import re
import statistics
import sys
import time
from datetime import datetime

import anyio

AT = re.compile(rb'"at": "([^"]+)"')


class Count:
    """What was told within the window, and how late some of it was."""

    def __init__(self) -> None:
        self.open = False
        self.events = 0
        self.late: list[float] = []

    def take(self, piece: bytes) -> None:
        """Count the events of a piece."""
        if not self.open:
            return
        self.events += piece.count(b"\nevent: ")
        if self.events % 50 == 0 and (found := AT.search(piece)) is not None:
            at = datetime.fromisoformat(found[1].decode())
            self.late.append(time.time() - at.timestamp())


async def read(url: str, path: str, count: Count) -> None:
    """Read a stream until cancelled."""
    host, port = url.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        async for piece in stream:
            count.take(piece)


async def main() -> None:
    """Read for so many seconds once all have had time to connect."""
    url, seconds, *paths = sys.argv[1:]
    count = Count()
    async with anyio.create_task_group() as group:
        for path in paths:
            group.start_soon(read, url, path, count)
        await anyio.sleep(3)
        count.open, start = True, time.perf_counter()
        await anyio.sleep(float(seconds))
        count.open = False
        taken = time.perf_counter() - start
        group.cancel_scope.cancel()
    late = statistics.median(count.late) * 1000 if count.late else 0.0
    print(json.dumps({"events": count.events, "seconds": taken, "late_ms": late}))


if __name__ == "__main__":
    anyio.run(main)
