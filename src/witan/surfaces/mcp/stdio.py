"""The protocol over standard input and output, to whoever started this process."""

import os
import queue
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, cast

import anyio
from anyio.from_thread import run as run_in_loop
from anyio.from_thread import run_sync as run_sync_in_loop
from anyio.lowlevel import current_token
from mcp.server.stdio import stdio_server

from witan.service.sessions import Service
from witan.surfaces.mcp.server import create_server

AT_ONCE = 65_536
"""Bytes that are read at a time."""

ENDING = (signal.SIGINT, signal.SIGTERM) + ((signal.SIGHUP,) if sys.platform != "win32" else ())


async def serve_stdio(service: Service) -> None:
    """Serve until standard input ends, its reader is gone, or a signal says to stop.

    Sessions that are under way then are left to the service, which breaks them off.
    """
    server = create_server(service)
    with _wire() as (reading, writing):
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_heed, group.cancel_scope)
            lines, sheet = _Lines(reading), _Sheet(writing, group.cancel_scope)
            # It asks of files only what these two can do.
            given = cast("tuple[Any, Any]", (lines, sheet))
            async with stdio_server(*given) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _heed(scope: anyio.CancelScope) -> None:
    """Wait for a signal to stop."""
    with anyio.open_signal_receiver(*ENDING) as signals:
        async for _ in signals:
            scope.cancel()
            return


@contextmanager
def _wire() -> Generator[tuple[int, int], None, None]:
    """Take standard input and output for the protocol alone.

    Meanwhile there is nothing to read for anybody else, and what is printed is an error message.
    """
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nowhere, 0)
        os.dup2(2, 1)
        yield reading, writing
    finally:
        sys.stdout.flush()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(nowhere)


class _Lines:
    """The lines that come in, read by a thread that nobody waits for.

    A read cannot be interrupted, and the client may keep its end open when we are told to stop.
    """

    def __init__(self, descriptor: int) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](0)
        Thread(target=self._read, args=(descriptor, current_token()), daemon=True).start()

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _read(self, descriptor: int, token: Any) -> None:
        held = b""
        # The loop may be gone when a line comes in.
        with suppress(OSError, RuntimeError, anyio.BrokenResourceError):
            while piece := os.read(descriptor, AT_ONCE):
                *whole, held = (held + piece).split(b"\n")
                for line in whole:
                    run_in_loop(self._send.send, line.decode(errors="replace"), token=token)
        with suppress(RuntimeError):
            run_sync_in_loop(self._send.close, token=token)


class _Sheet:
    """Where messages go out, written by a thread that nobody waits for.

    A client that does not read any more must not hold up our end.

    Parameters
    ----------
    scope
        Cancelled when the reader is gone.
    """

    def __init__(self, descriptor: int, scope: anyio.CancelScope) -> None:
        self._waiting: queue.SimpleQueue[tuple[bytes, anyio.Event]] = queue.SimpleQueue()
        self._scope = scope
        Thread(target=self._write, args=(descriptor, current_token()), daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a message, and wait until it is taken."""
        written = anyio.Event()
        self._waiting.put((text.encode(), written))
        await written.wait()

    async def flush(self) -> None:
        """Nothing waits: a message is written when `write` returns."""

    def _write(self, descriptor: int, token: Any) -> None:
        with suppress(RuntimeError):  # the loop is gone
            while True:
                message, written = self._waiting.get()
                try:
                    while message:
                        message = message[os.write(descriptor, message) :]
                except OSError:
                    run_sync_in_loop(self._scope.cancel, token=token)
                    return
                run_sync_in_loop(written.set, token=token)
