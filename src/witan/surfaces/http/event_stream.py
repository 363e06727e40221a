"""A session's events as server-sent events."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import anyio
from fastapi import Request
from starlette.responses import Response, StreamingResponse

from witan.errors import Busy
from witan.surfaces.chamber import Running, Told

__all__ = [
    "AFTER",
    "HEARTBEAT",
    "Streams",
    "admitted",
    "check_room",
    "event_frame",
    "frames",
    "streamed",
]

MEDIA_TYPE = "text/event-stream"

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Neither kept, nor gathered by a proxy."""

AFTER = "^[0-9]{1,18}(-[0-9a-f]{8})?$"
"""An event as a reader names it: by its number, with its mark or without."""

HEARTBEAT = b": still here\n\n"


def event_frame(told: Told) -> bytes:
    """One event: its number and mark, its kind, and itself as JSON."""
    kind = told.event.kind.encode()
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (told.id.encode(), kind, told.json)


def streamed(request: Request, told: AsyncGenerator[bytes, None]) -> Response:
    """A response that is told piece by piece, one of so many at a time.

    Raises
    ------
    Busy
        If as many are being read as the server bears.
    """
    check_room(request)
    return admitted(request, told)


def admitted(request: Request, told: AsyncGenerator[bytes, None]) -> Response:
    """The same for what `check_room` has let in, and cannot be refused any more."""
    counted = request.app.state.streams.counted(told)
    return StreamingResponse(counted, media_type=MEDIA_TYPE, headers=HEADERS)


def check_room(request: Request) -> None:
    """Refuse one stream more than the server bears.

    Raises
    ------
    Busy
        If as many are being read.
    """
    gauge, most = request.app.state.streams, request.app.state.settings.max_streams
    if gauge.open >= most:
        problem = f"{most:,} streams are being read, as many as the server bears"
        raise Busy(problem, "read again later, or raise serve.max_streams", 5.0)


class Streams:
    """How many streams are being read now."""

    def __init__(self) -> None:
        self.open = 0

    async def counted(self, told: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The same, counted from its first piece to its last, or until the reader is gone."""
        self.open += 1
        try:
            async with aclosing(told):
                async for piece in told:
                    yield piece
        finally:
            self.open -= 1


async def frames(
    running: Running,
    after: int,
    heartbeat_seconds: float,
    frame: Callable[[Told], bytes] = event_frame,
    ending: Callable[[Running], bytes] = lambda _: b"",
) -> AsyncGenerator[bytes, None]:
    """Yield what was told since `after`, what is told next, and what there is to say at the end.

    What is told at one moment goes out in one piece. Where nothing goes out for a while, a comment
    shows both sides that the other is there: a frame may be empty.
    """
    stream, due = running.stream, anyio.current_time() + heartbeat_seconds
    while True:
        piece = b""
        if told := stream.told_after(after):
            after = told[-1].seq
            piece = b"".join(map(frame, told))
        elif stream.ended:
            if last := ending(running):
                yield last
            return
        else:
            with anyio.CancelScope(deadline=due):
                await stream.changed()
        if not piece and anyio.current_time() >= due:
            piece = HEARTBEAT
        if piece:
            yield piece
            due = anyio.current_time() + heartbeat_seconds
