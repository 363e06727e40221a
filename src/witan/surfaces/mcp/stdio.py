"""The protocol over standard input and output."""

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

READ_BYTES = 65_536
"""Bytes that are read at a time."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM) + (
    (signal.SIGHUP,) if sys.platform != "win32" else ()
)


async def serve_stdio(service: Service) -> None:
    """Serve until input ends, output has no reader, or a signal.

    Sessions under way are left to the service, which interrupts them.
    """
    server = create_server(service)
    with _protocol_streams() as (reading, writing):
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_wait_for_signal, group.cancel_scope)
            reader, writer = _LineReader(reading), _MessageWriter(writing, group.cancel_scope)
            # It asks of files only what these two can do.
            files = cast("tuple[Any, Any]", (reader, writer))
            async with stdio_server(*files) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _wait_for_signal(scope: anyio.CancelScope) -> None:
    """Cancel at a signal to stop."""
    with anyio.open_signal_receiver(*STOP_SIGNALS) as signals:
        async for _ in signals:
            scope.cancel()
            return


@contextmanager
def _protocol_streams() -> Generator[tuple[int, int], None, None]:
    """Reserve standard input and output for the protocol.

    Other readers find an empty input, and other output goes to standard error.
    """
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        os.dup2(2, 1)
        yield reading, writing
    finally:
        sys.stdout.flush()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(empty)


class _LineReader:
    """Lines of standard input, read by a daemon thread.

    A read cannot be interrupted, and the client may keep its end open when we have to stop.
    """

    def __init__(self, descriptor: int) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](0)
        Thread(target=self._read, args=(descriptor, current_token()), daemon=True).start()

    def __aiter__(self) -> "_LineReader":
        return self

    async def __anext__(self) -> str:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _read(self, descriptor: int, token: Any) -> None:
        rest = b""
        # The loop may be gone when a line comes in.
        with suppress(OSError, RuntimeError, anyio.BrokenResourceError):
            while piece := os.read(descriptor, READ_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    run_in_loop(self._send.send, line.decode(errors="replace"), token=token)
        with suppress(RuntimeError):
            run_sync_in_loop(self._send.close, token=token)


class _MessageWriter:
    """Messages to standard output, written by a daemon thread.

    A client that no longer reads does not delay our end.

    Parameters
    ----------
    scope
        Cancelled when the reader is gone.
    """

    def __init__(self, descriptor: int, scope: anyio.CancelScope) -> None:
        self._queue: queue.SimpleQueue[tuple[bytes, anyio.Event]] = queue.SimpleQueue()
        self._scope = scope
        Thread(target=self._write, args=(descriptor, current_token()), daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a message; return once it is written."""
        written = anyio.Event()
        self._queue.put((text.encode(), written))
        await written.wait()

    async def flush(self) -> None:
        """Do nothing: `write` returns once a message is written."""

    def _write(self, descriptor: int, token: Any) -> None:
        with suppress(RuntimeError):  # the loop is gone
            while True:
                message, written = self._queue.get()
                try:
                    while message:
                        message = message[os.write(descriptor, message) :]
                except OSError:
                    run_sync_in_loop(self._scope.cancel, token=token)
                    return
                run_sync_in_loop(written.set, token=token)
