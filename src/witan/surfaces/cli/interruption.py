"""Interruption of a command: Ctrl-C, SIGTERM or a closed terminal."""

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from witan.errors import WitanError

T = TypeVar("T")


async def wait_for_signal() -> None:
    """Wait for a signal that ends the command; the next ends it at once."""
    if sys.platform == "win32":
        await anyio.sleep_forever()  # Windows raises KeyboardInterrupt instead
    # A signal that is ignored, as under nohup, must not end the command.
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded_signals = [n for n in ending if signal.getsignal(n) is not signal.SIG_IGN]
    with anyio.open_signal_receiver(*heeded_signals) as signals:
        async for _ in signals:
            break
    for number in heeded_signals:
        signal.signal(number, signal.SIG_DFL)


def run_until_signal(work: Callable[[], Awaitable[T]]) -> T:
    """Run some work in an event loop; a signal that ends the command cancels it.

    Raises `KeyboardInterrupt` if the work was cancelled.
    """
    results: list[T] = []
    failures: list[WitanError | OSError] = []

    async def run() -> None:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await wait_for_signal()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            try:
                results.append(await work())
            except (WitanError, OSError) as error:  # an exception group would wrap it
                failures.append(error)
            group.cancel_scope.cancel()

    anyio.run(run)
    if failures:
        raise failures[0]
    if not results:
        raise KeyboardInterrupt
    return results[0]
