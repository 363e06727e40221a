"""A session's events as server-sent events."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing

import anyio
from fastapi import Request
from starlette.responses import Response, StreamingResponse

from witan.errors import Busy
from witan.service.sessions.running import RunningSession
from witan.service.sessions.stream import StreamMessage

MEDIA_TYPE = "text/event-stream"

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Keep streams out of caches, and proxies from gathering them."""

AFTER = "^[0-9]{1,18}(-[0-9a-f]{8})?$"
"""The name of an event: its number, with or without its mark."""

PIECE_BYTES = 64 * 1024
"""Bytes gathered for a reader at a time."""

HEARTBEAT = b": still here\n\n"


def event_frame(message: StreamMessage) -> bytes:
    """Write an event as a frame: id, kind, and itself as JSON."""
    kind = message.event.kind.encode()
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (message.id.encode(), kind, message.json)


def stream_response(request: Request, pieces: AsyncGenerator[bytes, None]) -> Response:
    """Stream a response, one of a limited number at a time."""
    check_room(request)
    return stream_admitted(request, pieces)


def stream_admitted(request: Request, pieces: AsyncGenerator[bytes, None]) -> Response:
    """Stream a response for which `check_room` found room."""
    counted_stream = request.app.state.streams.count_stream(pieces)
    return StreamingResponse(counted_stream, media_type=MEDIA_TYPE, headers=HEADERS)


def check_room(request: Request) -> None:
    """Refuse one stream more than the server bears."""
    gauge, most = request.app.state.streams, request.app.state.settings.max_streams
    if gauge.open >= most:
        problem = f"the limit of {most:,} open streams is reached"
        raise Busy(problem, "read again later, or raise serve.max_streams", 5.0)


class Streams:
    """Count of the streams that are being read."""

    def __init__(self) -> None:
        self.open = 0

    async def count_stream(
        self, pieces: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Count a stream while it is read."""
        self.open += 1
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    for start in range(0, len(piece), PIECE_BYTES):
                        yield piece[start : start + PIECE_BYTES]
        finally:
            self.open -= 1


async def frames(
    running_session: RunningSession,
    after: int,
    heartbeat_seconds: float,
    frame: Callable[[StreamMessage], bytes] = event_frame,
    make_ending: Callable[[RunningSession], bytes] = lambda _: b"",
) -> AsyncGenerator[bytes, None]:
    """Yield the messages since `after`, those that follow, and the ending.

    What is told at one moment goes out together, in pieces that wait for a slow reader one by one.
    Where nothing goes out for a while, a comment shows both sides that the other is there: a frame
    may be empty.
    """
    stream, due = running_session.stream, anyio.current_time() + heartbeat_seconds
    while True:
        piece = b""
        if messages := stream.messages_after(after):
            after = messages[-1].seq
            for piece in _join(map(frame, messages)):
                yield piece
            if piece:
                due = anyio.current_time() + heartbeat_seconds
            continue
        if stream.has_ended:
            if last_frame := make_ending(running_session):
                yield last_frame
            return
        with anyio.CancelScope(deadline=due):
            await stream.wait_for_change()
        if anyio.current_time() >= due:
            yield HEARTBEAT
            due = anyio.current_time() + heartbeat_seconds


def _join(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Join frames to pieces of about `PIECE_BYTES`."""
    gathered: list[bytes] = []
    size = 0
    for frame in frames:
        gathered.append(frame)
        size += len(frame)
        if size >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if size:
        yield b"".join(gathered)
