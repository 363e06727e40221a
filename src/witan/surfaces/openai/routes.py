"""Councils as models of OpenAI's protocol: models, chat completions and responses."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict

from witan.deliberation.session import Session
from witan.errors import UnknownName
from witan.service.catalogue import redact
from witan.service.config.configuration import DEMO
from witan.service.parameters import Doc
from witan.service.sessions.councils import NAME, CouncilModel, CouncilProfile, name_councils
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession
from witan.service.stored_sessions import check_continued
from witan.surfaces.http.endpoints import (
    TOKEN,
    ClientOf,
    Hops,
    ServiceOf,
    check_room,
    frames,
    reply,
    run_while_connected,
    stream_admitted,
)
from witan.surfaces.http.openapi import Responses, event_stream, openai_error_responses
from witan.surfaces.http.problems import openai_problem
from witan.surfaces.openai.replies import (
    ChatFrames,
    Completion,
    ReplyForm,
    completion,
    refusal,
    trust_headers,
)
from witan.surfaces.openai.requests import (
    MESSAGE_ID,
    RESPONSE_ID,
    ChatBody,
    CouncilCallBody,
    ResponseBody,
)
from witan.surfaces.openai.responses import (
    ResponseDeletion,
    ResponseFrames,
    ResponseObject,
    response_of,
)
from witan.surfaces.report.session import ReplyFooter

router = APIRouter(prefix="/v1", tags=["OpenAI"], dependencies=[Depends(TOKEN)])

ModelNamed = Annotated[str, Path(openapi_examples={"the demonstration": {"value": "witan/demo"}})]


class ModelCouncil(TypedDict):
    """The council behind a model.

    Parameters
    ----------
    about
        Its purpose in one sentence.
    mode
        Its way to a final answer; null: unknown.
    members, jury, chairmen
        Who answers, who reviews instead of them, and who writes the final answer.
    simulated
        Whether scripts play seats.
    """

    about: str
    mode: str | None
    members: list[str]
    jury: list[str]
    chairmen: list[str]
    simulated: bool


class ModelObject(TypedDict):
    """A council as a model."""

    id: Annotated[str, Doc("What `model` takes.")]
    object: Literal["model"]
    created: Annotated[int, Doc("When the server started, in seconds since 1970.")]
    owned_by: str
    witan: Annotated[ModelCouncil, Doc("The council behind it.")]


class ModelList(TypedDict):
    """The councils that can be asked."""

    object: Literal["list"]
    data: Annotated[
        list[ModelObject], Doc("What is configured apart from any profile comes first.")
    ]


ERRORS = openai_error_responses(400, 401, 403, 413, 429, 503, 508)
"""Errors of every route."""

COMPLETION: Responses = {
    200: {
        "model": Completion,
        "description": "The final answer, whole; or, with `stream`, what happens as it happens.",
        "content": event_stream(
            "CompletionChunk",
            example={
                "data": '{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": '
                '[{"index": 0, "delta": {"content": "No: not where"}, "finish_reason": null}]}'
            },
        ),
    },
    **ERRORS,
    **openai_error_responses(402, 404, 409, 422, 502),
}


@router.post(
    "/chat/completions",
    operation_id="complete",
    summary="Ask the council as OpenAI clients ask a model",
    responses=COMPLETION,
)
async def complete(
    request: Request, body: ChatBody, service: ServiceOf, client: ClientOf, hops: Hops
) -> Response:
    """Ask the council the last message of the user.

    A stream has the council's work as `reasoning_content`, then the final answer as it is written.
    A client that disconnects early interrupts the session.
    """
    question = body.question_for(find_model(service, body.model), service.profiles)
    if body.stream:
        check_room(request)
    store = body.store is not False
    running_session = await service.start(question, client, hops, store=store)
    form = _form(request, body, store=store)
    if body.stream:
        options = body.stream_options
        usage = options is not None and options.include_usage is True
        chunks = ChatFrames(running_session, body.model, form, usage=usage)
        return _stream(request, running_session, chunks)
    return await _reply_whole(
        request, running_session, lambda: completion(running_session, body.model, form)
    )


RESPONSE: Responses = {
    200: {
        "model": ResponseObject,
        "description": "The final answer, whole; or, with `stream`, what happens as it happens.",
        "content": event_stream(
            "ResponseEvent",
            example={
                "event": "response.output_text.delta",
                "data": '{"type": "response.output_text.delta", "sequence_number": 31, '
                '"item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "No: ", '
                '"logprobs": []}',
            },
        ),
    },
    **ERRORS,
    **openai_error_responses(402, 404, 409, 422, 502),
}

ONE_RESPONSE: Responses = {
    200: {"model": ResponseObject},
    **ERRORS,
    **openai_error_responses(404, 422),
}

ResponseName = Annotated[
    str, Path(openapi_examples={"a response": {"value": "resp_20261122-043640-acfc3ee97f"}})
]


@router.post(
    "/responses",
    operation_id="respond",
    summary="Ask the council as OpenAI clients ask for a response",
    responses=RESPONSE,
)
async def respond(
    request: Request, body: ResponseBody, service: ServiceOf, client: ClientOf, hops: Hops
) -> Response:
    """Ask the council the last message of the input.

    A stream has the council's work as the summary of a reasoning item, then the final answer as it
    is written. A client that disconnects early interrupts the session.
    """
    model = find_model(service, body.model)
    for message in body.input:
        if message.item_id is not None:
            message.content = (await _load_answer(service, message.item_id, MESSAGE_ID)).text or ""
    question = body.question_for(model, service.profiles)
    parent = None
    if body.previous_response_id is not None:
        parent_session = await _load_answer(service, body.previous_response_id, RESPONSE_ID)
        parent = parent_session.id
        question = body.continue_conversation(parent_session.conversation, question)
    if body.stream:
        check_room(request)
    store = body.store is not False
    running_session = await service.start(question, client, hops, parent=parent, store=store)
    form = _form(request, body, store=store)
    if body.stream:
        return _stream(request, running_session, ResponseFrames(running_session, body.model, form))

    def write() -> ResponseObject:
        return response_of(running_session.session, body.model, form, running_session)

    return await _reply_whole(request, running_session, write)


@router.get(
    "/responses/{response_id}",
    operation_id="response",
    summary="A stored response, or a running one so far",
    responses=ONE_RESPONSE,
)
async def response(
    request: Request,
    response_id: ResponseName,
    service: ServiceOf,
    stream: Annotated[Literal["false"], Query(description="Returned complete.")] = "false",  # noqa: ARG001 - refused where it is true
) -> Response:
    """Show a session as a response.

    Its name is that of the response without ``resp_``.
    """
    name = await _find_session(service, response_id)
    record, running_session = await service.registry.session(name), service.registry.get(name)
    return reply(_past_response(request, record, running_session))


@router.get("/responses/{response_id}/input_items", include_in_schema=False)
async def input_items(response_id: ResponseName) -> Response:  # noqa: ARG001 - for any
    """Refuse the items of an input.

    A session has its question and conversation instead.
    """
    words = "input items are not listed; GET /api/sessions/ID has question and conversation"
    return openai_problem(400, words, code="not_supported")


@router.post(
    "/responses/{response_id}/cancel",
    operation_id="cancel_response",
    summary="Cancel a response that is under way",
    responses=ONE_RESPONSE,
)
async def cancel_response(
    request: Request, response_id: ResponseName, service: ServiceOf
) -> Response:
    """Cancel all calls of its session; an ended session stays unchanged."""
    name = await _find_session(service, response_id)
    running_session = service.registry.get(name)
    if running_session is None:
        return reply(_past_response(request, await service.registry.session(name), None))
    running_session.cancel()
    await running_session.wait_for_end()
    return reply(_past_response(request, running_session.record, running_session))


@router.delete(
    "/responses/{response_id}",
    operation_id="delete_response",
    summary="Delete a response",
    responses={
        200: {"model": ResponseDeletion},
        **ERRORS,
        **openai_error_responses(404, 409, 422),
    },
)
async def delete_response(response_id: ResponseName, service: ServiceOf) -> Response:
    """Delete its session completely; sessions that continue it stay."""
    await service.forget(await _find_session(service, response_id))
    return reply(ResponseDeletion(id=response_id, object="response", deleted=True))


async def _find_session(service: Service, public_id: str, prefix: str = RESPONSE_ID) -> str:
    """Find the session of a response or item by full name."""
    name = public_id.removeprefix(prefix)
    with suppress(UnknownName):
        if name != public_id and await service.registry.resolve_session(name) == name:
            return name
    raise UnknownName("response" if prefix == RESPONSE_ID else "item", public_id, ())


async def _load_answer(service: Service, public_id: str, prefix: str) -> Session:
    """Load a finished session with a final answer; refuse others."""
    session = await service.record_at_rest(await _find_session(service, public_id, prefix))
    check_continued(public_id, session)
    return session


def _past_response(
    request: Request, record: Session, running_session: RunningSession | None
) -> ResponseObject:
    narration = request.app.state.settings.narration is True
    store = running_session is None or running_session.store
    model = _name_model(request.app.state.service, record)
    form = ReplyForm(ReplyFooter(), narration, store=store)
    return response_of(redact(record), model, form, running_session)


def _name_model(service: Service, session: Session) -> str:
    """Name the model of a session's seats, or the first model."""
    opened = session.opening
    seats = [(seat.name, seat.source) for seat in opened.seats]
    for model in _askable(service):
        profile = service.profiles[model.profile]
        mode = None if profile.procedure is None else profile.procedure.mode
        matching_profiles = [(seat.name, seat.source) for seat in profile.seats] == seats
        if matching_profiles and model.options.get("mode", mode) == opened.procedure.mode:
            return model.name
    return NAME


def _form(request: Request, body: CouncilCallBody, *, store: bool) -> ReplyForm:
    footer = ReplyFooter(body.witan.mark, body.witan.legend)
    narration = body.narrates(request.app.state.settings.narration)
    return ReplyForm(footer, narration, body.stops, body.ignored_parameters, store)


async def _reply_whole(
    request: Request, running_session: RunningSession, write: Callable[[], object]
) -> Response:
    """Reply when a session ends; cancel it if the client disconnects."""
    try:
        await run_while_connected(request, running_session.wait_for_end)
    except ClientDisconnect:
        running_session.cancel()
        raise
    reason = refusal(running_session.session, running_session.failure)
    if reason is not None:
        return openai_problem(reason.status, reason.message, code=reason.code)
    return reply(write(), headers=trust_headers(running_session.session))


def _stream(
    request: Request, running_session: RunningSession, chunks: ChatFrames | ResponseFrames
) -> Response:
    stream = stream_admitted(request, _chunks(request, running_session, chunks))
    return _StreamResponse(stream, running_session)


async def _chunks(
    request: Request, running_session: RunningSession, chunks: ChatFrames | ResponseFrames
) -> AsyncGenerator[bytes, None]:
    yield chunks.opening()
    heartbeat: float = request.app.state.settings.heartbeat_seconds
    async with aclosing(
        frames(running_session, 0, heartbeat, chunks.frame, chunks.ending)
    ) as pieces:
        async for piece in pieces:
            yield piece


class _StreamResponse(Response):
    """A stream that cancels its session when the reader disconnects."""

    def __init__(self, stream: Response, running_session: RunningSession) -> None:
        super().__init__()
        self._stream, self._running = stream, running_session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            if self._running.under_way:
                self._running.cancel()


def find_model(service: Service, name: str) -> CouncilModel:
    """Find the council with this name."""
    models = {each.name: each for each in name_councils(service.profiles)}
    if name not in models:
        raise UnknownName("model", name, [each.name for each in _askable(service)])
    return models[name]


@router.get(
    "/models",
    operation_id="models",
    summary="The councils that can be asked, as models",
    responses={200: {"model": ModelList}, **ERRORS},
)
async def models(request: Request, service: ServiceOf) -> Response:
    """List the configured council, its profiles and the demonstration."""
    listing = [_model(request, service, each) for each in _askable(service)]
    return reply(ModelList(object="list", data=listing))


@router.get(
    "/models/{model:path}",
    operation_id="model",
    summary="One council, as a model",
    responses={200: {"model": ModelObject}, **ERRORS, **openai_error_responses(404, 422)},
)
async def model(request: Request, model: ModelNamed, service: ServiceOf) -> Response:
    """Show one council that can be asked."""
    models = {each.name: each for each in _askable(service)}
    if model not in models:
        raise UnknownName("model", model, models)
    return reply(_model(request, service, models[model]))


def _askable(service: Service) -> list[CouncilModel]:
    councils = name_councils(service.profiles)
    return [each for each in councils if service.profiles[each.profile].problem is None]


def _model(request: Request, service: Service, model: CouncilModel) -> ModelObject:
    profile = service.profiles[model.profile]
    return {
        "id": model.name,
        "object": "model",
        "created": request.app.state.created,
        "owned_by": NAME,
        "witan": _council(profile, model),
    }


def _council(profile: CouncilProfile, model: CouncilModel) -> ModelCouncil:
    about = profile.about or f"the profile {profile.name}"
    if not profile.name:
        about = "the council as it is configured"
    mode = None if profile.procedure is None else profile.procedure.mode
    return {
        "about": "a demonstration: scripts answer" if profile.name == DEMO else about,
        "mode": model.options.get("mode", mode),
        "members": [seat.name for seat in profile.seats],
        "jury": [seat.name for seat in profile.jury],
        "chairmen": [seat.name for seat in profile.chairmen],
        "simulated": profile.simulated,
    }
