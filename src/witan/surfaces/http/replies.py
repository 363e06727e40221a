"""Answers of the native API: an object as JSON, and work that comes to one."""

from collections.abc import Callable

import anyio
from fastapi import Request
from starlette.responses import Response

from witan.service.json_output import to_json
from witan.service.worker_pool import Of, run_counting
from witan.surfaces.http.staying import while_there

__all__ = ["reply", "reply_in_turn", "reply_once_read"]


def reply(value: object) -> Response:
    """An object, as our JSON has it: it knows what becomes of numbers that are none."""
    return Response(to_json(value), media_type="application/json")


async def reply_once_read(work: Callable[[], object]) -> Response:
    """What comes of reading, which the event loop does not wait for."""
    return await anyio.to_thread.run_sync(lambda: reply(work()))


async def reply_in_turn(request: Request, work: Callable[[], object], of: Of = "kept") -> Response:
    """What comes of counting that may take long, once it is its turn, for who waits for it."""
    return await while_there(request, lambda: run_counting(lambda: reply(work()), of))
