"""Routes made from the catalogue, and streams of a session's events."""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from dataclasses import MISSING, Field, fields, make_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_type_hints

import anyio
from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from witan.errors import Busy
from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.ask import QuestionRequest
from witan.service.parameters import Parameter as Declared
from witan.service.parameters import (
    Parameters,
    adapter_of,
    copy_field,
    parameters_of,
    public_name,
    read_texts,
)
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession, StreamMessage
from witan.service.sessions.spending import Client
from witan.service.stored_sessions import ClientService
from witan.surfaces.http.addresses import check_parameters
from witan.surfaces.http.openapi import Responses, problem_responses

T = TypeVar("T")

TOKEN = HTTPBearer(
    scheme_name="token",
    description="A token, if the server has tokens; also accepted as `X-Api-Key`.",
    auto_error=False,
)
"""The token that identifies a client; `Door` checks it."""


# Coroutines, because FastAPI runs a plain function as a dependency in a thread.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _client(request: Request) -> Client:
    client: Client = request.scope["witan.client"]
    return client


async def _hops(request: Request) -> tuple[str, ...]:
    hops: tuple[str, ...] = request.scope["witan.hops"]
    return hops


ServiceOf = Annotated[Service, Depends(_service)]
ClientOf = Annotated[Client, Depends(_client)]
Hops = Annotated[tuple[str, ...], Depends(_hops)]
"""Councils that forwarded the request."""


def reply(value: object, headers: Mapping[str, str] | None = None) -> Response:
    """Reply with a value as JSON."""
    return Response(to_json(value), headers=headers, media_type="application/json")


async def run_while_connected(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """Run work for a client; cancel it if the client disconnects.

    Read the body of the request first.
    """
    result: list[T] = []
    try:
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(leave)
            result.append(await work())
            group.cancel_scope.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # raise the error of the work, not the group
    if not result:
        raise ClientDisconnect
    return result[0]


def add_value_route(router: APIRouter, operation: Operation[Any, Any]) -> None:
    """Add the route of an operation that returns a value.

    Parameters in the path come from it; a POST takes the others from a JSON body, other methods
    from the query. A POST that accepts a file also takes the file as its body.
    """

    async def endpoint(
        request: Request, service: ServiceOf, client: ClientOf, **values: Any
    ) -> Response:
        parameters = _parameters(operation, values)
        return await run_while_connected(
            request, lambda: dispatch(operation, service, client, parameters, reply)
        )

    # A path, or the session that a question continues, may name something missing.
    may_miss = operation.path_parameters or issubclass(operation.parameters, QuestionRequest)
    file = next((each for each in parameters_of(operation.parameters) if each.content), None)
    _add_route(
        router,
        operation,
        endpoint,
        responses={
            200: {"model": operation.result},
            **problem_responses(*([404] if may_miss else []), 409),
        },
        route_class_override=_file_route(operation, file) if file else None,
        openapi_extra=_file_document(operation.parameters) if file else None,
    )


def add_session_route(
    router: APIRouter,
    operation: Operation[Any, Any],
    answer: Callable[[Any, float], Awaitable[Response]],
    responses: Responses,
) -> None:
    """Add the route of an operation that starts a session.

    `answer` makes the response of a running session, after waiting some seconds for its end.
    """

    async def endpoint(
        service: ServiceOf, client: ClientOf, hops: Hops, wait: Wait = 0, **values: Any
    ) -> Response:
        subject = ClientService(service, client, hops)
        return await answer(await operation.handler(subject, _parameters(operation, values)), wait)

    _add_route(router, operation, endpoint, status_code=202, responses=responses)


def _add_route(
    router: APIRouter, operation: Operation[Any, Any], endpoint: Any, **more: Any
) -> None:
    endpoint.__signature__ = _signature(operation, endpoint)
    router.add_api_route(
        operation.path.replace("}", ":quoted}"),
        endpoint,
        methods=[operation.method],
        tags=[operation.tag],
        summary=operation.summary,
        description=operation.description,
        operation_id=operation.name,
        **more,
    )


def _parameters(operation: Operation[Any, Any], values: dict[str, Any]) -> Any:
    if (body := values.pop(BODY, None)) is not None:
        values |= {each.name: getattr(body, each.name) for each in fields(body)}
    return operation.parameters(**values)


Wait = Annotated[float, Query(ge=0, le=600, description="Seconds to wait for the session to end.")]


def _file_route(operation: Operation[Any, Any], file: Declared) -> type[APIRoute]:
    """Make a route whose body may also be a file."""
    parameters_type = operation.parameters
    others = [each for each in parameters_of(parameters_type) if each is not file]

    async def take_file(request: Request) -> Response:
        repeatable_names = [each.name for each in others if each.many]
        check_parameters(request, [each.name for each in others], repeatable_names)
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        content: Any = file.content
        parameters = read_texts(parameters_type, query, {file.name: content(await request.body())})
        service, client = request.app.state.service, request.scope["witan.client"]
        return await run_while_connected(
            request, lambda: dispatch(operation, service, client, parameters, reply)
        )

    class FileRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            take_json = super().get_route_handler()

            async def take(request: Request) -> Response:
                kind = request.headers.get("content-type", "").partition(";")[0].strip()
                return await (take_json if kind == "application/json" else take_file)(request)

            return take

    return FileRoute


FILES = {
    "application/x-ndjson": '{"session": "q1", "reviewer": "ada", "ranking": ["b", "c"]}\n',
    "text/csv": "session,reviewer,candidate,rank\nq1,ada,b,1\nq1,ada,c,2\n",
}


def _file_document(declaration: type[Parameters]) -> dict[str, Any]:
    """Document a file as body, with its query parameters.

    Defaults are left out, because clients would also send them with a JSON body.
    """
    shapes = adapter_of(declaration).json_schema()["properties"]
    written = {"type": "array", "items": {"type": "string"}}
    return {
        "requestBody": {
            "content": {
                kind: {"schema": {"type": "string"}, "example": text}
                for kind, text in FILES.items()
            }
        },
        "parameters": [
            {
                "name": each.name,
                "in": "query",
                "required": False,
                "description": each.doc.text,
                "schema": written
                if each.many or "$ref" in str(shapes[each.name])
                else {
                    key: value
                    for key, value in shapes[each.name].items()
                    if key not in ("default", "description")
                },
            }
            for each in parameters_of(declaration)
            if each.content is None
        ],
    }


BODY = "body"
"""The argument of an endpoint that takes the JSON body."""


def _signature(operation: Operation[Any, Any], endpoint: Callable[..., Any]) -> Signature:
    type_hints = get_type_hints(endpoint, include_extras=True)
    own_parameters = [
        each.replace(kind=Parameter.KEYWORD_ONLY, annotation=type_hints[each.name])
        for each in Signature.from_callable(endpoint).parameters.values()
        if each.kind is not Parameter.VAR_KEYWORD
    ]
    declared = operation.parameters
    hints = get_type_hints(declared, include_extras=True)
    in_path = [each for each in fields(declared) if each.name in operation.path_parameters]
    others = [each for each in fields(declared) if each not in in_path]
    names = [_argument(declared, each, Path, hints[each.name]) for each in in_path]
    if operation.method != "POST":
        names += [_argument(declared, each, Query, hints[each.name]) for each in others]
    elif others:
        names.append(_body_argument(operation, others, hints))
    return Signature([*own_parameters, *names], return_annotation=Response)


def _argument(
    declaration: type, each: Field[Any], place: Callable[..., Any], hint: Any
) -> Parameter:
    docs = {parameter.field: parameter.doc.text for parameter in parameters_of(declaration)}
    info = place(description=docs[each.name], alias=public_name(each.name))
    return Parameter(
        each.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if place is Path else _default(each),
        annotation=Annotated[hint, info],
    )


def _default(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return Parameter.empty if each.default is MISSING else each.default


def _body_argument(
    operation: Operation[Any, Any], others: list[Field[Any]], hints: dict[str, Any]
) -> Parameter:
    """Declare the JSON body: a dataclass of parameters outside the path."""
    body: Any = make_dataclass(
        f"{operation.name.title().replace('_', '')}Body",
        [(each.name, hints[each.name], copy_field(each)) for each in others],
        bases=(Parameters,),
        frozen=True,
        kw_only=True,
        namespace={"__doc__": operation.parameters.__doc__},
    )
    is_required = any(_default(each) is Parameter.empty for each in others)
    return Parameter(
        BODY,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if is_required else body(),
        annotation=Annotated[body, Body()],
    )


MEDIA_TYPE = "text/event-stream"

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Keep streams out of caches and the buffers of proxies."""

AFTER = "^[0-9]{1,18}(-[0-9a-f]{8})?$"
"""The name of an event: its number, with or without its mark."""

PIECE_BYTES = 64 * 1024
"""Bytes to collect before sending them to a reader."""

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
    """Stream a response that `check_room` has admitted."""
    counted_stream = request.app.state.streams.count_stream(pieces)
    return StreamingResponse(counted_stream, media_type=MEDIA_TYPE, headers=HEADERS)


def check_room(request: Request) -> None:
    """Refuse a stream beyond the server's limit."""
    gauge, most = request.app.state.streams, request.app.state.settings.max_streams
    if gauge.open >= most:
        problem = f"the limit of {most:,} open streams is reached"
        raise Busy(problem, "read again later, or raise serve.max_streams", 5.0)


class Streams:
    """Number of streams being read."""

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
    """Yield the messages after `after`, later ones, and the ending.

    Simultaneous messages are sent together, in pieces that each wait for a slow reader. After a
    silence, a comment shows both sides that the connection is alive; a frame may be empty.
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
    """Join frames into pieces of about `PIECE_BYTES`."""
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
