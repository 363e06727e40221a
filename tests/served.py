"""The server on loopback, in a thread of this process or in a process of its own."""

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from witan.service.config.serve import ServeSettings
from witan.service.sessions.councils import Councils
from witan.service.sessions.manager import Service
from witan.surfaces.http.observers import Metrics
from witan.surfaces.http.server import Server, bind_socket, create_app


@dataclass(frozen=True, slots=True)
class Served:
    """A server under test.

    Parameters
    ----------
    portal
        Calls in the event loop of the server: ``served.portal.call(service.start, asked)``.
    """

    url: str
    service: Service
    portal: BlockingPortal


@contextmanager
def served(
    councils: Councils,
    settings: ServeSettings | None = None,
    environment: Mapping[str, str] | None = None,
    metrics: Metrics | None = None,
    port: int = 0,
    **more: Any,
) -> Iterator[Served]:
    """Serve these councils at a port of this machine; `more` goes to the service."""
    settings = replace(settings or ServeSettings(), port=port)
    with bind_socket(settings) as listening, start_blocking_portal() as portal:
        ready: Any = portal.start_task(
            _serve, councils, settings, listening, (environment or {}, metrics, more)
        )
        future, (service, server) = ready
        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", service, portal)
        finally:
            server.should_exit = server.force_exit = True
            future.result(60)


async def _serve(councils, settings, listening, given, *, task_status) -> None:
    environment, metrics, more = given
    async with Service.open(councils, most=settings.max_sessions, **more) as service:
        app = create_app(service, settings, environment, metrics)
        server = Server(app, settings, app.state.metrics)
        async with app.router.lifespan_context(app), anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            while not server.started:  # noqa: ASYNC110 - it says so by a flag alone
                await anyio.sleep(0.01)
            task_status.started((service, server))


def free_port() -> int:
    """A port that nobody listens at, for a server whose address others know before it runs.

    It is below those that systems give to whoever does not ask for one.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_000)
        with socket.socket() as asking, suppress(OSError):
            asking.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving_process(
    *arguments: object,
    cwd: Path,
    environment: dict[str, str] | None = None,
    heard: list[str] | None = None,
    open_files: int | None = None,
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``witan serve`` at a free port; give where it is, and the process.

    `heard` gets every line that it writes to standard error; all of them once the block is left.
    `open_files` is the limit of files that it may have open, which it cannot raise.
    """
    lines = [] if heard is None else heard
    command: Sequence[str] = [sys.executable, "-m", "witan", "serve", "--port", "0"]
    if open_files is not None:
        command = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *command]
    process = subprocess.Popen(  # noqa: S603 - this Python, and arguments of tests
        [*command, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stderr=subprocess.PIPE,
        text=True,
    )
    draining: Thread | None = None
    try:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "serves at" in line:
                break
        else:
            raise AssertionError("the server did not start")
        page = process.stderr.readline()
        lines.append(page)
        [url] = re.findall(r"page (\S+?)/ ", page)
        # What it goes on to say would fill the pipe, and hold it up.
        draining = Thread(target=lines.extend, args=(process.stderr,), daemon=True)
        draining.start()
        yield url, process
    finally:
        process.kill()
        process.wait()
        if draining is not None:
            draining.join()
        if process.stderr is not None:
            process.stderr.close()
