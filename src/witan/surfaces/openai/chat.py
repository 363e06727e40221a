"""The council as a model of OpenAI's protocol: ``/v1/chat/completions``."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import anyio
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from witan.service.json_output import to_json
from witan.service.sessions import RunningSession
from witan.surfaces.http.access import ClientOf, Hops, ServiceOf
from witan.surfaces.http.documents import TOKEN
from witan.surfaces.http.event_stream import admitted, check_room, frames
from witan.surfaces.openai import documents
from witan.surfaces.openai.errors import openai_problem
from witan.surfaces.openai.frames import Frames
from witan.surfaces.openai.models import offered
from witan.surfaces.openai.replies import Ending, completion, refusal
from witan.surfaces.openai.schemas import ChatBody
from witan.surfaces.text.progress import told_in_short

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["OpenAI"], dependencies=[Depends(TOKEN)])


@router.post(
    "/chat/completions",
    summary="Ask the council as OpenAI clients ask a model",
    responses=documents.COMPLETION,
)
async def complete(
    request: Request, body: ChatBody, service: ServiceOf, client: ClientOf, hops: Hops
) -> Response:
    """Put the last message of the user to the council, after the conversation before it.

    Streamed, what the council does comes as `reasoning_content`, then the final answer as it is
    written. Who goes away before the end breaks the session off.
    """
    asked = body.asked(offered(service, body.model))
    if body.stream:
        check_room(request)
    running = await service.ask(asked, client, hops)
    if body.stream:
        return _Followed(admitted(request, _chunks(request, running, body)), running)
    await _ended(request, running)
    refused = refusal(running)
    if refused is not None:
        return openai_problem(refused.status, refused.message, code=refused.code)
    reasoning = told_in_short(running.session.events)
    ending = Ending(body.witan.mark, body.witan.legend)
    told = completion(running, body.model, reasoning, ending=ending, ignored=body.ignored)
    return Response(to_json(told), media_type="application/json")


async def _ended(request: Request, running: RunningSession) -> None:
    """Wait for the end of a session, and break it off if whoever asked goes away."""
    async with anyio.create_task_group() as group:

        async def attend() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            running.cancel()

        group.start_soon(attend)
        with suppress(Exception):  # it is told as the refusal that it is
            await running.ended()
        group.cancel_scope.cancel()


async def _chunks(
    request: Request, running: RunningSession, body: ChatBody
) -> AsyncGenerator[bytes, None]:
    options = body.stream_options
    made = Frames(
        running,
        body.model,
        usage=options is not None and options.include_usage is True,
        ending=Ending(body.witan.mark, body.witan.legend),
        ignored=body.ignored,
    )
    yield made.opening()
    heartbeat: float = request.app.state.settings.heartbeat_seconds
    async with aclosing(frames(running, 0, heartbeat, made.frame, made.ending)) as told:
        async for piece in told:
            yield piece


class _Followed(Response):
    """A stream whose session is interrupted once its reader is gone."""

    def __init__(self, stream: Response, running: RunningSession) -> None:
        super().__init__()
        self._stream, self._running = stream, running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            if self._running.under_way:
                self._running.cancel()
