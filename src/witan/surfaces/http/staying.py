"""Counting for who waits for it: it ends when they go."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from fastapi import Request
from starlette.requests import ClientDisconnect

__all__ = ["while_there"]

T = TypeVar("T")


async def while_there(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """What comes of some work, which is cancelled when whoever asked for it goes.

    The body of the request is read before.

    Raises
    ------
    ClientDisconnect
        If they went.
    """
    found: list[T] = []
    try:
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(leave)
            found.append(await work())
            group.cancel_scope.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # what the work raises, without its group
    if not found:
        raise ClientDisconnect
    return found[0]
