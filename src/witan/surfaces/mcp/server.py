"""The server of the protocol: it reads requests, calls tools, and tells what came of them."""

import json
import logging
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from witan.errors import UnknownName, WitanError
from witan.service.error_boundary import contain_errors, refusal
from witan.service.json_output import to_json
from witan.service.sessions import LOCAL, Service
from witan.surfaces.mcp import resources, tools
from witan.surfaces.mcp.calls import Call, Reply, faults
from witan.version import __version__

__all__ = ["create_server"]

ABOUT = "Several models answer a question and review each other blind; the ballots say how sure."

INSTRUCTIONS = (
    "A council of models: `ask` puts a question to several of them, has each review the others' "
    "answers blind, counts the ballots, and returns a final answer with how sure it is. Take it "
    "for questions where one model's answer is not enough; it takes minutes and costs money, which "
    "`plan` says beforehand. Where calls are cut short, `ask` with a `wait` of 0 and fetch the "
    "`result` later. "
    "Tell the user what the line of trust says: ties, missing seats, and that a session is "
    "simulated. `tally`, `compare` and `explain` count ballots that you have, without any model."
)

Context = ServerRequestContext[Any, Any]

_log = logging.getLogger("witan.mcp")


def create_server(service: Service) -> Server[Any]:
    """The server that gives an open service to clients of the protocol."""
    told = _Telling(service)
    return Server(
        "witan",
        title="Witan",
        version=__version__,
        description=ABOUT,
        instructions=INSTRUCTIONS,
        on_list_tools=told.list_tools,
        on_call_tool=told.call_tool,
        on_list_resources=told.list_resources,
        on_list_resource_templates=told.list_templates,
        on_read_resource=told.read_resource,
    )


class _Telling:
    """Answers requests about one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tools = tools.listed()

    async def list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Name the tools."""
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; what cannot be done is told in a sentence, as its result."""
        tool = tools.TOOLS.get(params.name)
        if tool is None:
            unknown = UnknownName("tool", params.name, tools.TOOLS)
            raise MCPError(code=types.INVALID_PARAMS, message=str(unknown))
        mistake = f"a mistake within Witan: {tool.name} failed; the server's log has more"
        result = _failed(mistake)
        passing = (ValidationError, WitanError, MCPError)
        try:
            with contain_errors(_log, "the tool %s failed within", tool.name, passing=passing):
                result = _result(await tool.run(self._call(context), params.arguments or {}))
        except ValidationError as error:
            return _failed(faults(tool.name, error))
        except WitanError as error:
            return _failed(_said_of(error))
        return result

    async def list_resources(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Name what can be read."""
        return types.ListResourcesResult(resources=await resources.listed(self._service))

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Name what can be read by a name."""
        return types.ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Read something."""
        uri = str(params.uri)
        try:
            text, kind = await resources.read(self._service, uri)
        except WitanError as error:
            unknown = isinstance(error, UnknownName)
            code = types.INVALID_PARAMS if unknown else types.INTERNAL_ERROR
            raise MCPError(code=code, message=_said_of(error), data={"uri": uri}) from None
        held = types.TextResourceContents(uri=params.uri, text=text, mime_type=kind)
        return types.ReadResourceResult(contents=[held])

    def _call(self, context: Context) -> Call:
        # Over HTTP the door has written into the scope who asks; else it is whoever started us.
        request = context.request
        scope = {} if request is None else request.scope
        report = context.session.report_progress
        return Call(
            self._service, scope.get("witan.client", LOCAL), scope.get("witan.hops", ()), report
        )


def _result(reply: Reply) -> types.CallToolResult:
    # Through our own JSON: it knows what becomes of numbers that are none.
    return types.CallToolResult(
        content=[types.TextContent(text=reply.text)],
        structured_content=json.loads(to_json(reply.told)),
        is_error=reply.failed,
    )


def _said_of(error: WitanError) -> str:
    """An error in the words for who asked; the log has it where these do not say all of it."""
    words = refusal(error)
    if words != str(error):
        _log.info("refused", extra={"fields": {"problem": str(error)}})
    return words


def _failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)
