"""Read many event streams at once; count their events and how late they are."""

import argparse
import json
import re
import statistics
import time
from collections.abc import Sequence
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


async def read_all(url: str, seconds: float, paths: Sequence[str]) -> None:
    """Read for so many seconds once all have had time to connect."""
    count = Count()
    async with anyio.create_task_group() as group:
        for path in paths:
            group.start_soon(read, url, path, count)
        await anyio.sleep(3)
        count.open, start = True, time.perf_counter()
        await anyio.sleep(seconds)
        count.open = False
        taken = time.perf_counter() - start
        group.cancel_scope.cancel()
    late = statistics.median(count.late) * 1000 if count.late else 0.0
    print(json.dumps({"events": count.events, "seconds": taken, "late_ms": late}))


def main() -> None:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="address of the server, http://HOST:PORT")
    parser.add_argument("seconds", type=float, help="how long to count")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="path of an event stream")
    given = parser.parse_args()
    anyio.run(read_all, given.url, given.seconds, given.paths)


if __name__ == "__main__":
    main()
