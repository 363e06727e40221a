"""A page and its live patches over real HTTP, without the rest of the server."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from witan.deliberation import events as e
from witan.service.sessions.running import Stream
from witan.surfaces.web.live import Feed, LivePage, follow_live
from witan.surfaces.web.rendering import ASSETS, PAGE_POLICY, asset, render_live


class LiveServer:
    """Serves one session as it is told by the test.

    Attributes
    ----------
    connections
        What was asked of the live patches: ``Last-Event-ID``, or the number in the address.
    """

    def __init__(self) -> None:
        self.stream = Stream(time.monotonic)
        self.connections: list[tuple[str | None, str]] = []
        self.cut = threading.Event()
        self.url = ""
        self.loop: Any = None

    def tell(self, *events: e.Event) -> None:
        """Tell of events, from the test's own thread."""
        for event in events:
            self._call(self.stream.take, event)

    def end(self) -> None:
        """Nothing follows."""
        self._call(self.stream.end)

    def _call(self, what: Callable[..., None], *args: object) -> None:
        done = threading.Event()

        def run() -> None:
            what(*args)
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(60)

    async def page(self, request: Request) -> Response:
        told = self.stream.messages_after(0)
        live = LivePage(
            (each.event for each in told),
            show_names="reveal" in request.query_params,
            mark=self.stream.mark,
        )
        return HTMLResponse(render_live(live), headers={"Content-Security-Policy": PAGE_POLICY})

    async def live(self, request: Request) -> Response:
        last = request.headers.get("last-event-id")
        after = self.stream.resume_point(last or request.query_params["after"])
        self.connections.append((last, request.query_params["after"]))
        self.cut.clear()
        feed = Feed(partial(LivePage, show_names="reveal" in request.query_params))

        async def body():
            async with aclosing(follow_live(self.stream, feed, after=after)) as pieces:
                async for piece in pieces:
                    yield piece
                    if self.cut.is_set():
                        return

        return StreamingResponse(body(), media_type="text/event-stream")

    async def assets(self, request: Request) -> Response:
        name = request.path_params["name"]
        return Response(asset(name), media_type=ASSETS[name])

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/sessions/{name}", self.page),
                Route("/sessions/{name}/live", self.live),
                Route("/assets/{name}", self.assets),
            ]
        )


@contextmanager
def serving() -> Iterator[LiveServer]:
    """A server on loopback, for as long as the block lasts."""
    held = LiveServer()
    listener = socket.create_server(("127.0.0.1", 0))
    held.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(held.app(), log_level="warning", timeout_graceful_shutdown=1)
    )

    async def main() -> None:
        import asyncio

        held.loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as group:
            group.start_soon(held.stream.pace)
            await server.serve([listener])
            group.cancel_scope.cancel()

    thread = threading.Thread(target=lambda: anyio.run(main), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield held
    finally:
        server.should_exit = True
        thread.join(10)
