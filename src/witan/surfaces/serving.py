"""A running server: its service, its socket, and how it comes to an end."""

import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence

import anyio

from witan.errors import ConfigError, InvalidParameter
from witan.service.config.serve import ServeSettings
from witan.service.sessions import RunningSession, Service
from witan.service.text import counted
from witan.service.worker_pool import cancel_counting
from witan.surfaces.http.app import create_app
from witan.surfaces.http.listening import BACKLOG, Server
from witan.surfaces.http.metrics import Metrics

__all__ = ["Say", "bound", "serve"]

M_ARENA_MAX, MOST_ARENAS = -8, 2
"""The option of glibc's `mallopt`, and its value."""

MOST_NAMED = 10
"""Sessions that are said by name to have been interrupted."""

COUNTING_SECONDS = 5.0
"""What is counted still is told to stop, and given so long to hear it."""

Say = Callable[[str], None]


def bound(settings: ServeSettings) -> socket.socket:
    """The socket that the server listens on.

    Raises
    ------
    ConfigError
        If it would listen beyond this machine without a token.
    InvalidParameter
        If it cannot listen there.
    """
    if settings.refusal is not None:
        raise ConfigError("the configuration", "serve.host", settings.refusal)
    where = f"{settings.host}:{settings.port}"
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Named, or asyncio leaves small answers waiting for the acknowledgement of the one before.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)  # who comes before the server is up, waits
    except OSError as error:
        expected = f"an address that is free ({error.strerror or error}); see --host and --port"
        raise InvalidParameter("where to listen", where, expected) from None
    return listening


async def serve(
    service: Service,
    settings: ServeSettings,
    listening: socket.socket,
    metrics: Metrics,
    say: Say,
    *,
    option: str = "",
) -> None:
    """Serve until a signal says to stop; then let sessions end, and break off what lasts longer.

    A second signal stops everything at once. What was interrupted is said, and how to go on.

    Parameters
    ----------
    option
        What a command has to be given to find the history of the service.
    """
    app = create_app(service, settings, os.environ, metrics)
    server = Server(app, settings, metrics)
    _say_room(server, settings, say)
    # What was loaded stays for as long as it serves: looking through it again and again is in vain.
    gc.collect()
    gc.freeze()
    # Sessions leave no circles behind; what else does is looked for often enough to stay small.
    gc.set_threshold(20_000, 5, 4)
    _limit_arenas()

    async def stop() -> None:
        under_way = await _heed(service, settings.grace_seconds, say)
        for line in _broken_off(under_way, option if service.history is not None else None):
            say(line)
        await cancel_counting(COUNTING_SECONDS)
        server.should_exit = True

    async with app.router.lifespan_context(app), anyio.create_task_group() as group:
        if sys.platform != "win32":
            group.start_soon(stop)
        await server.serve([listening])
        group.cancel_scope.cancel()


def _limit_arenas() -> None:
    """Have glibc share few arenas among threads: each keeps what was freed in it to itself."""
    if sys.platform == "linux" and hasattr(allocator := ctypes.CDLL(None), "mallopt"):
        allocator.mallopt(M_ARENA_MAX, MOST_ARENAS)


def _say_room(server: Server, settings: ServeSettings, say: Say) -> None:
    """Say that fewer connections are taken than is configured, and why."""
    most = server.open_connections.most
    if most < settings.max_connections:
        say(
            f"  takes {most:,} connections at a time, not {settings.max_connections:,}: "
            "the limit of open files allows no more (ulimit -n)"
        )


async def _heed(service: Service, grace_seconds: float, say: Say) -> Sequence[RunningSession]:
    """Wait for a signal to stop, then bring everything to its end; give what was under way."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            break
        under_way = service.under_way
        if under_way:
            say(
                f"stopping: {len(under_way)} under way, given {grace_seconds:g} s to end; "
                "once more to break off"
            )
        async with anyio.create_task_group() as group:

            async def at_once() -> None:
                async for _ in signals:
                    break
                group.cancel_scope.cancel()

            group.start_soon(at_once)
            await service.drain(grace_seconds)
            group.cancel_scope.cancel()
        await service.drain(0)
        return under_way


def _broken_off(under_way: Sequence[RunningSession], option: str | None) -> Iterator[str]:
    """What is said of sessions that did not end; None: they are kept nowhere."""
    left = [running.id for running in under_way if running.stream.interrupted]
    if option is None and left:
        yield f"interrupted, and kept nowhere: {counted(len(left), 'session')}"
        return
    for session in left[:MOST_NAMED]:
        yield f"interrupted; resume with: witan resume {session}{option}"
    more = len(left) - MOST_NAMED
    if more > 0:
        listing = f"witan sessions --status interrupted{option}"
        yield f"interrupted: {more} more; list them with: {listing}"
