"""The HTTP server: accepts connections, within the limits of the machine, and serves an app."""

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import anyio
import uvicorn

from witan.service.config.serve import ServeSettings
from witan.surfaces.http.connections import MOST_SURPLUS, Connection, Connections
from witan.surfaces.http.metrics import Metrics

__all__ = ["BACKLOG", "Server", "connection_room"]

BACKLOG = 2048

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

NOT_SENT_BYTES = 16 * 1024
"""What the kernel holds of a connection beyond what is under way to its client."""

RETRY_SECONDS = 0.02
"""When to accept again, after there was no file for it."""

FILES_A_SESSION = 8
"""Files for a session under way: its calls, and its part of the history."""

FILES_BESIDE = 64
"""Files for everything else: the history, logs, programs."""


class Server(uvicorn.Server):
    """A server whose connections have deadlines, and whose end the caller decides.

    Parameters
    ----------
    metrics
        Counts its connections.
    """

    def __init__(self, app: Any, settings: ServeSettings, metrics: Metrics) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            # Connections see to it themselves; this is a second net.
            timeout_keep_alive=ceil(settings.idle_seconds) + 60,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(_is_not_of_a_client)
        most = connection_room(settings)
        spare = partial(Path(os.devnull).open, "rb")
        self.open_connections = Connections(settings, most, metrics.connection_closed, spare)
        metrics.connections = self.open_connections.__len__
        self._sockets: list[socket.socket] = []

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the sockets to accept from."""
        self._sockets = sockets or []
        self.servers = []
        self.started = True

    async def main_loop(self) -> None:
        """Accept connections until the server is to stop."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.open_connections.watch)
            for listening in self._sockets:
                group.start_soon(self._accept, listening)
            await super().main_loop()
            group.cancel_scope.cancel()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in OUT_OF_FILES:
                    self.open_connections.find_file()
                await anyio.sleep(RETRY_SECONDS)
                continue
            _hold_little(accepted)
            try:
                await loop.connect_accepted_socket(self._connection, accepted)
            except OSError:  # it was closed meanwhile
                accepted.close()

    def _connection(self) -> Connection:
        return Connection(
            self.open_connections, config=self.config, server_state=self.server_state, app_state={}
        )


def _hold_little(accepted: socket.socket) -> None:
    """Have the kernel hold little unsent, so that what a client takes is seen as it takes it."""
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        with suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, option, NOT_SENT_BYTES)


def _is_not_of_a_client(record: logging.LogRecord) -> bool:
    """Drop what uvicorn says of each bad request: connections count them, and log them together."""
    return record.levelno != logging.WARNING


def connection_room(settings: ServeSettings) -> int:
    """Give the number of connections that the limit of open files allows, as far as is wanted.

    The soft limit is raised as far as it has to be and may be. Sessions keep files for their calls.
    """
    if sys.platform == "win32":
        return settings.max_connections
    import resource

    beside = FILES_BESIDE + FILES_A_SESSION * settings.max_sessions
    wanted = settings.max_connections + MOST_SURPLUS + beside
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        except (OSError, ValueError):
            allowed = soft
        soft = max(soft, allowed)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return settings.max_connections
    # Where there are few, half of them are for sessions.
    room = soft - MOST_SURPLUS - min(beside, soft // 2)
    return max(1, min(settings.max_connections, room))
