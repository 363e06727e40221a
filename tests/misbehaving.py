"""A real HTTP server on loopback that speaks OpenAI's protocol, and misbehaves on demand.

    with MisbehavingServer() as server:
        server.fault("slowpoke", "hang", stage="review")
        server.fault("moody", "429", times=2, retry_after=0.1)
        ...                                     # call server.url with any model name
        assert server.open_connections() == 0

Without a fault every model behaves: see `good_replies`. `faults.FAULTS` names what can be
asked for, and a name of three digits is that status.
"""

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import responses
from types import TracebackType
from typing import Any, Self

from faults import FAULTS, Fault, Manner, Received, status
from good_replies import ChatRequest, good_reply

_TLS_HELLO = b"\x16"


@dataclass
class _Planned:
    """A fault that waits for its calls."""

    model: str | None
    stage: str | None
    makes: Fault
    given: Mapping[str, Any]
    left: float

    def meets(self, asked: ChatRequest) -> bool:
        due = self.left > 0 and self.model in (None, asked.model)
        return due and (self.stage is None or self.stage == asked.stage)


class MisbehavingServer:
    """Listens from ``with`` on, in a thread of its own.

    Parameters
    ----------
    worth
        Model to what its answers are worth, from 1 to 10: reviews rank by it.
    seconds
        How long every call takes.
    models
        What ``/v1/models`` lists.

    Attributes
    ----------
    received
        Every request so far.
    accepted
        How many connections there were.
    """

    def __init__(
        self,
        worth: Mapping[str, int] | None = None,
        seconds: float = 0.0,
        models: tuple[str, ...] = ("tiny",),
    ) -> None:
        self.worth, self.seconds, self.models = dict(worth or {}), seconds, models
        self.received: list[Received] = []
        self.accepted = 0
        self.port = 0
        self._news = threading.Condition()
        self._planned: list[_Planned] = []
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def fault(
        self,
        model: str | None,
        fault: str,
        *,
        stage: str | None = None,
        times: float = float("inf"),
        **given: Any,
    ) -> None:
        """Plan a fault for calls of one model (None: of all), of all stages or one, so often."""
        makes = status(int(fault)) if fault.isdigit() else FAULTS[fault]
        self._planned.append(_Planned(model, stage, makes, given, times))

    def behave(self) -> None:
        """Forget every planned fault and every request."""
        self._planned.clear()
        self.received.clear()

    def calls(self, model: str | None = None) -> list[ChatRequest]:
        """The calls so far, of all models or of one."""
        asked = [request.chat_request for request in self.received if request.method == "POST"]
        return [call for call in asked if model in (None, call.model)]

    def wait_for_requests(self, count: int, seconds: float = 60.0) -> None:
        """Return once so many requests have come; call it in a thread."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.received) >= count, seconds)

    def open_connections(self, at_most: int = 0, seconds: float = 30.0) -> int:
        """How many connections are open, as soon as they are few or after a while."""
        deadline = time.monotonic() + seconds
        while len(self._open) > at_most and time.monotonic() < deadline:
            time.sleep(0.005)
        return len(self._open)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        self._server.close()
        talking = list(self._open.values())
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*talking)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._open[writer] = asyncio.current_task()
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            del self._open[writer]

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection can serve another."""
        if (first := await reader.readexactly(1)) == _TLS_HELLO:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        request = await self._receive(first, reader)
        with self._news:
            self.received.append(request)
            self._news.notify_all()
        if request.method == "GET":
            listed = [{"id": model, "object": "model"} for model in self.models]
            whole = {"object": "list", "data": listed}
            return await _send(writer, reader, Manner(None, document=whole))
        return await _send(writer, reader, self._manner(request))

    async def _receive(self, first: bytes, reader: asyncio.StreamReader) -> Received:
        start = first + await reader.readuntil(b"\r\n\r\n")
        head = start.decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        return Received(
            method, path, headers, json.loads(content) if content else {}, time.monotonic()
        )

    def _manner(self, request: Received) -> Manner:
        asked = request.chat_request
        manner = Manner(
            good_reply(asked, self.worth),
            usage={"prompt_tokens": len(asked.prompt) // 4, "completion_tokens": 20},
            streamed=bool(asked.body.get("stream")),
            wait_seconds=self.seconds,
        )
        if manner.streamed and "stream_options" not in asked.body:
            manner = replace(manner, usage=None)
        for planned in self._planned:
            if planned.meets(asked):
                planned.left -= 1
                manner = planned.makes(manner, request, **planned.given)
        return manner


async def _send(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, manner: Manner) -> bool:
    """Answer in this manner; whether the connection can serve another request."""
    await _await_hang_up(reader, None if manner.hangs else manner.wait_seconds)
    while manner.until is not None and not manner.until.is_set():  # noqa: ASYNC110 - by a thread
        await asyncio.sleep(0.005)
    if manner.hangs or manner.drops_after == 0:
        return False
    streamed = manner.streamed and manner.status == 200
    kind = "text/event-stream" if streamed else "application/json"
    head = f"HTTP/1.1 {manner.status} {responses.get(manner.status, 'Strange')}\r\n"
    headers = {"Content-Type": kind, "Transfer-Encoding": "chunked", **manner.headers}
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode() + b"\r\n")
    pieces = manner.pieces() if streamed else _quarters(manner.completion())
    for sent, piece in enumerate(pieces, start=1):
        await _await_hang_up(reader, manner.pause_seconds)
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
        if sent == manner.drops_after:
            return False
    if manner.lingers:
        await _await_hang_up(reader, None)
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _quarters(whole: bytes) -> list[bytes]:
    size = -(-len(whole) // 4)
    return [whole[k : k + size] for k in range(0, len(whole), size)]


async def _await_hang_up(reader: asyncio.StreamReader, seconds: float | None) -> None:
    """Wait this long (None: for ever), or until the client hangs up."""
    if seconds != 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), seconds)
