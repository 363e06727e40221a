"""Serve tools, resources and prompts over MCP, through pipes or HTTP."""

import json
import logging
import os
import queue
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from inspect import Parameter, cleandoc, signature
from threading import Thread
from types import MappingProxyType
from typing import Annotated, Any, cast, get_type_hints
from urllib.parse import unquote

import anyio
import mcp_types as types
from anyio.from_thread import run as run_in_loop
from anyio.from_thread import run_sync as run_sync_in_loop
from anyio.lowlevel import current_token
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from witan.deliberation.call_headers import TRACE
from witan.errors import Busy, MissingParameter, UnknownName, WitanError
from witan.history import SessionSummary
from witan.service.catalogue import CATALOGUE, Operation, find_operation, redact
from witan.service.config.serve import ServeSettings
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.sessions import show
from witan.service.redaction import public_error
from witan.service.sessions.manager import Service
from witan.service.sessions.running import contain_errors
from witan.service.sessions.spending import LOCAL
from witan.service.stored_sessions import SessionRequest
from witan.surfaces.mcp.replies import address
from witan.surfaces.mcp.tools import TOOLS, ToolCall, ToolReply, describe_faults, list_tools
from witan.surfaces.report import session_to_html
from witan.surfaces.report.session import origin_text, question_beginning
from witan.surfaces.terminal import flush_output
from witan.version import __version__

JSON, HTML = "application/json", "text/html"

PAGE = "/export.html"
"""Ending of the address of a session's page; a slash of a name is quoted."""

LATEST = 20
"""Most sessions to list."""

QUESTION_LENGTH = 100
"""Most characters of a question in a title."""

SCHEME = "witan://"
SESSION = f"{SCHEME}sessions/"

REPORTS: Mapping[str, Operation[Any, Any]] = MappingProxyType(
    {
        f"{SCHEME}{name}": operation
        for name in CATALOGUE
        if (operation := find_operation(name)).method == "GET" and not operation.path_parameters
    }
)
"""Operations that are resources, without parameters."""

TEMPLATES = [
    types.ResourceTemplate(
        uri_template=f"{SESSION}{{session}}",
        name="session",
        title="A session",
        description="The whole record of a session: answers, ballots, outcome, every event; of "
        "one imported as ballots, what is known.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template=f"{SESSION}{{session}}{PAGE}",
        name="page",
        title="A session as one HTML file",
        description="A self-contained page without scripts; save it to a file to share the "
        "session.",
        mime_type=HTML,
    ),
]

Session = Annotated[str, "The session: its name, a prefix of it, or `last`."]

TRUST = (
    "Say how certain this is, from the trust line: who voted, what is tied, what is missing, and "
    "whether it is simulated. If leaders are tied, say so instead of naming one."
)

Prompt = Callable[..., str]

MOST_COMPLETIONS = 100

DESCRIPTION = (
    "Several models answer a question and review each other blind; the ballots show how certain "
    "the result is."
)

INSTRUCTIONS = (
    "A council of models: `ask` puts a question to several of them, has each review the others' "
    "answers blind, counts the ballots, and returns a final answer and how certain it is. Use it "
    "for questions where one model's answer is not enough; it takes minutes and costs money: "
    "`plan` true says how much beforehand. If your client limits call time, `ask` with a `wait` of "
    "0 and fetch the `result` later. "
    "Tell the user what the trust line says: ties, missing seats, and whether a session is "
    "simulated. `judge` has a jury judge texts that you have; `tally` and `compare` count ballots "
    "that you have, without calling a model."
)

Context = ServerRequestContext[Any, Any]

Page = types.PaginatedRequestParams | None

_log = logging.getLogger("witan.mcp")

READ_BYTES = 65_536
"""Bytes to read at a time."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM) + (
    (signal.SIGHUP,) if sys.platform != "win32" else ()
)


def _latest(service: Service) -> list[types.Resource]:
    if service.history is None:
        return []
    return [
        types.Resource(
            uri=address(summary.session),
            name=summary.session,
            title=question_beginning(summary.question, QUESTION_LENGTH) or summary.session,
            description=_describe(summary),
            mime_type=JSON,
        )
        for summary in map(redact, service.history.find(limit=LATEST))
    ]


def _describe(summary: SessionSummary) -> str:
    simulated, decision = "simulated" if summary.simulated else "", summary.decision or ""
    parts = (simulated, summary.status, decision, origin_text(summary))
    return ", ".join([*filter(None, parts), f"{summary.at:%Y-%m-%d %H:%M} UTC"])


def ask_council(
    question: Annotated[str, "The question."],
    profile: Annotated[str, "The council to ask; by default the configured one."] = "",
) -> str:
    """Have several models answer a question and review each other's answers."""
    council = f" with the profile `{profile}`" if profile else ""
    return (
        f"Put the question below to the council, by the tool `ask`{council}. Call it with `plan` "
        "true first, and tell me what it may cost before you go on.\n\n"
        f"<question>\n{question}\n</question>\n\n"
        "Give me the final answer, then where the members disagreed (`result` with `full` true). "
        f"{TRUST}"
    )


def check_draft(
    draft: Annotated[str, "The text to check."],
    purpose: Annotated[str, "What it is to achieve, or must satisfy."] = "",
) -> str:
    """Have the council approve or reject a text before it is used."""
    aim = purpose or "to be correct, complete and safe to use"
    return (
        "Have the council judge the draft below: call `ask` with the draft in `files` as draft.md, "
        'with `options` {"mode": "verdict"}, and with the question whether the draft should be '
        f"approved. It is meant {aim}.\n\n"
        f"<draft>\n{draft}\n</draft>\n\n"
        f"Tell me whether it is approved, and every objection that members raised. {TRUST}"
    )


def count_ballots(
    ballots: Annotated[str, "Ballots in any format, such as CSV or JSON Lines."],
) -> str:
    """Count ballots, and say in plain words who leads and how clearly."""
    return (
        "Count the ballots below with `tally`, then with `compare`; no model is called.\n\n"
        f"<ballots>\n{ballots}\n</ballots>\n\n"
        "Tell me who leads, which differences are real and which are too close to call, whether "
        "the rules agree, and how few ballots could end the lead. "
        "Name the lines that could not be read."
    )


def review_leaderboard(
    since: Annotated[str, "Only sessions since this time: 30d, 12h or 2026-01-31."] = "",
    category: Annotated[str, "Only sessions of this category."] = "",
) -> str:
    """Explain how models fare, and how far to trust their reviewers."""
    filters = {"since": since, "category": category}
    filter_text = " and ".join(f"`{name}` {value}" for name, value in filters.items() if value)
    return (
        f"Call `leaderboard` and `audit`{f' with {filter_text}' if filter_text else ''}. Tell "
        "me which models are ahead, and which of the differences exceed their intervals; "
        "which models have too few "
        "sessions to say; and which reviewers prefer their own family, are harsh, or disagree with "
        "the others. Recommend changes to the council only where the intervals support them."
    )


def vote_blind(session: Session = "last") -> str:
    """Rank the answers of a session before you see their authors."""
    return (
        f"Call `paper` for the session {session} and show me the question and every answer under "
        "its label, word for word. Do not rank, summarize or comment on them: the vote is mine. "
        "Ask me for my ranking, best first, then call `vote` with the code of the paper, and tell "
        "me who wrote what, and where I and the panel differ."
    )


PROMPTS: Mapping[str, Prompt] = {
    prompt.__name__: prompt
    for prompt in (ask_council, check_draft, count_ballots, review_leaderboard, vote_blind)
}
"""Every prompt by name."""


def _prompt(prompt: Prompt) -> types.Prompt:
    hints = get_type_hints(prompt, include_extras=True)
    return types.Prompt(
        name=prompt.__name__,
        title=prompt.__name__.replace("_", " ").capitalize(),
        description=cleandoc(prompt.__doc__ or ""),
        arguments=[
            types.PromptArgument(
                name=name,
                description=hints[name].__metadata__[0],
                required=each.default is Parameter.empty,
            )
            for name, each in signature(prompt).parameters.items()
        ],
    )


# At lower levels it logs session ids, which give access to connections.
logging.getLogger("mcp").setLevel(logging.WARNING)


def create_server(service: Service) -> Server[Any]:
    """Make the MCP server of an open service."""
    handlers = _Handlers(service)
    return Server(
        "witan",
        title="Witan",
        version=__version__,
        description=DESCRIPTION,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


class _Handlers:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def list_tools(self, _: Context, __: Page) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*list_tools()])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; a refusal becomes its result, as a sentence."""
        name, tool = params.name, TOOLS.get(params.name)
        if tool is None:
            raise _invalid(UnknownName("tool", name, TOOLS))
        result = _failure(f"internal error: {name} failed; see the server log")
        expected_errors = (ValidationError, WitanError, MCPError)
        try:
            with contain_errors(_log, "the tool %s failed within", name, reraise=expected_errors):
                result = _result(await tool.run(self._call(context), params.arguments or {}))
        except ValidationError as error:
            return _failure(describe_faults(name, tool.arguments, error))
        except WitanError as error:
            return _failure(_refusal(error))
        return result

    async def list_prompts(self, _: Context, __: Page) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_prompt(prompt) for prompt in PROMPTS.values()])

    async def get_prompt(
        self, _: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Write a prompt with its arguments, as a message of the user."""
        name, values = params.name, params.arguments or {}
        if name not in PROMPTS:
            raise _invalid(UnknownName("prompt", name, PROMPTS))
        about = _prompt(PROMPTS[name])
        arguments = {each.name: each for each in about.arguments or ()}
        for unknown in values.keys() - arguments.keys():
            raise _invalid(UnknownName(f"argument of {name}", unknown, arguments))
        for each in arguments.values():
            if each.required and not values.get(each.name, "").strip():
                raise _invalid(MissingParameter(each.name, None, "a text"))
        text = PROMPTS[name](**{key: value for key, value in values.items() if value.strip()})
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=about.description, messages=[message])

    async def complete(
        self, _: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Complete the beginning of a session's or a profile's name."""
        argument, names = params.argument, list[str]()
        history = self._service.history
        if argument.name == "profile":
            names = [each for each in self._service.profiles if each]
        elif argument.name == "session" and history is not None:
            find = partial(history.find, limit=MOST_COMPLETIONS, simulated=None)
            names = [summary.session for summary in await anyio.to_thread.run_sync(find)]
        values = [each for each in names if each.startswith(argument.value)]
        return types.CompleteResult(completion=types.Completion(values=values))

    async def list_resources(self, _: Context, __: Page) -> types.ListResourcesResult:
        reports = [
            types.Resource(uri=uri, name=each.name, description=each.summary, mime_type=JSON)
            for uri, each in REPORTS.items()
        ]
        sessions = await anyio.to_thread.run_sync(_latest, self._service)
        return types.ListResourcesResult(resources=[*reports, *sessions])

    async def list_templates(self, _: Context, __: Page) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, kind = await self._read(uri)
        except WitanError as error:
            unknown = isinstance(error, UnknownName)
            code = types.INVALID_PARAMS if unknown else types.INTERNAL_ERROR
            raise MCPError(code=code, message=_refusal(error), data={"uri": uri}) from None
        contents = types.TextResourceContents(uri=params.uri, text=text, mime_type=kind)
        return types.ReadResourceResult(contents=[contents])

    async def _read(self, uri: str) -> tuple[str, str]:
        operation: Operation[Any, Any] | None = REPORTS.get(uri)
        write: Callable[[Any], str] = to_json
        parameters, kind = None, JSON
        if uri.startswith(SESSION) and uri != SESSION:
            name = unquote(uri.removeprefix(SESSION).removesuffix(PAGE))
            operation, parameters = show, SessionRequest(name)
            if uri.endswith(PAGE):
                write, kind = session_to_html, HTML
        if operation is None:
            known = [*REPORTS, *(each.uri_template for each in TEMPLATES)]
            # Addresses are taken out of errors; these without their scheme are none.
            names = [each.removeprefix(SCHEME) for each in known]
            raise UnknownName("resource", uri.removeprefix(SCHEME), names)
        parameters = parameters or operation.parameters()
        return await dispatch(operation, self._service, LOCAL, parameters, write), kind

    def _call(self, context: Context) -> ToolCall:
        # Over HTTP the client is in the scope; otherwise it is our parent process.
        request = context.request
        scope = {} if request is None else request.scope
        TRACE.set(scope.get("witan.trace", TRACE.get()))  # the task is shared by many requests
        report = context.session.report_progress
        return ToolCall(
            self._service, scope.get("witan.client", LOCAL), scope.get("witan.hops", ()), report
        )


def _result(reply: ToolReply) -> types.CallToolResult:
    # Our own JSON writes null for NaN and infinity.
    return types.CallToolResult(
        content=[types.TextContent(text=reply.text)],
        structured_content=json.loads(to_json(reply.result)),
        is_error=reply.is_failure,
    )


def _refusal(error: WitanError) -> str:
    """Describe an error for the client; log the omitted details."""
    words = public_error(error)
    if words != str(error):
        _log.info("refused", extra={"fields": {"problem": str(error)}})
    return words


def _failure(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def _invalid(error: WitanError) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=_refusal(error))


class MountedApp:
    """Application for one path, behind the checks of the HTTP server.

    `Door` has checked hosts, origins, tokens, rates and lengths. `route` leads to it.
    """

    def __init__(self, path: str, service: Service, settings: ServeSettings) -> None:
        self.route = Route(path, self)
        self._manager = StreamableHTTPSessionManager(
            create_server(service),
            max_request_body_size=settings.body_bytes,
            max_sessions=settings.max_streams,
        )
        self._runs = False

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Accept requests within the block; close every connection at its end."""
        async with self._manager.run():
            self._runs = True
            try:
                yield
            finally:
                self._runs = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request."""
        if not self._runs:
            raise Busy("the server is about to stop", "ask again when it is back", 5.0)
        # Only the client that opened a connection may use it.
        name = scope["witan.client"].name
        scope["route"] = self.route
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        await self._manager.handle_request(scope, receive, send)


async def serve_stdio(service: Service) -> None:
    """Serve until the input ends, the output has no reader, or a signal arrives.

    The service interrupts running sessions.
    """
    server = create_server(service)
    with _protocol_streams() as (reading, writing):
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_wait_for_signal, group.cancel_scope)
            reader, writer = _LineReader(reading), _MessageWriter(writing, group.cancel_scope)
            # `stdio_server` uses only the methods of these two classes.
            files = cast("tuple[Any, Any]", (reader, writer))
            async with stdio_server(*files) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _wait_for_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(*STOP_SIGNALS) as signals:
        async for _ in signals:
            scope.cancel()
            return


@contextmanager
def _protocol_streams() -> Generator[tuple[int, int], None, None]:
    """Reserve standard input and output for the protocol.

    Other readers get an empty input, and other output goes to standard error.
    """
    flush_output()
    reading, writing = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        os.dup2(2, 1)
        yield reading, writing
    finally:
        flush_output()
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(empty)


class _LineReader:
    """Lines of standard input, read by a daemon thread.

    A read cannot be interrupted, and the client may keep its end open after the server stops.
    """

    def __init__(self, descriptor: int) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](0)
        Thread(target=self._read_lines, args=(descriptor, current_token()), daemon=True).start()

    def __aiter__(self) -> "_LineReader":
        return self

    async def __anext__(self) -> str:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _read_lines(self, descriptor: int, token: Any) -> None:
        rest = b""
        # The loop may be closed when a line arrives.
        with suppress(OSError, RuntimeError, anyio.BrokenResourceError):
            while piece := os.read(descriptor, READ_BYTES):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    run_in_loop(self._send.send, line.decode(errors="replace"), token=token)
        with suppress(RuntimeError):
            run_sync_in_loop(self._send.close, token=token)


class _MessageWriter:
    """Messages to standard output, written by a daemon thread.

    A client that no longer reads does not delay the server's end, and cancels the scope.
    """

    def __init__(self, descriptor: int, scope: anyio.CancelScope) -> None:
        self._queue: queue.SimpleQueue[tuple[bytes, anyio.Event]] = queue.SimpleQueue()
        self._scope = scope
        Thread(target=self._write, args=(descriptor, current_token()), daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a message; return once it is written."""
        written = anyio.Event()
        self._queue.put((text.encode(), written))
        await written.wait()

    async def flush(self) -> None:
        """Do nothing: `write` returns once a message is written."""

    def _write(self, descriptor: int, token: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                message, written = self._queue.get()
                try:
                    while message:
                        message = message[os.write(descriptor, message) :]  # noqa: TID251 - JSON of the protocol
                except OSError:
                    run_sync_in_loop(self._scope.cancel, token=token)
                    return
                run_sync_in_loop(written.set, token=token)
