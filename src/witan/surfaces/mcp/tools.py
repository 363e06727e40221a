"""Tools made from the catalogue: typed arguments in, typed results out."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache, partial
from math import inf
from types import MappingProxyType
from typing import Annotated, Any, Protocol, get_type_hints

import anyio
import mcp_types as types
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from witan.deliberation import events as e
from witan.service.ballots import BallotFormat
from witan.service.catalogue import CATALOGUE, Operation, find_operation
from witan.service.dispatch import dispatch
from witan.service.json_output import reduce_to
from witan.service.operations.sessions import ResultParameters, result, show
from witan.service.parameters import (
    Constraint,
    Doc,
    Parameters,
    adapter_of,
    copy_field,
    fault_place,
    fault_words,
    public_name,
    validate_parameters,
)
from witan.service.session_records import CouncilSession
from witan.service.sessions.manager import Service
from witan.service.sessions.running import RunningSession
from witan.service.sessions.spending import Client
from witan.service.settings import BallotSettings
from witan.service.stored_sessions import ClientService
from witan.surfaces.live_board import Board
from witan.surfaces.mcp import replies

OMITTED = {
    "title", "pattern", "minLength", "maxLength", "maxItems", "minimum", "maximum",
    "minProperties", "maxProperties",
    "exclusiveMinimum", "exclusiveMaximum", "propertyNames", "patternProperties", "format",
}  # fmt: skip
"""Schema keywords that agents do not need: a call that violates them is refused with a reason."""

READING = ("format", "columns", "scale")
"""Parameters for reading ballots, all detected by default."""

SETTINGS = (*READING, *(each.name for each in fields(BallotSettings)))
"""Parameters of a count in the argument `options`."""


def arguments_of(declaration: Any, **more: Any) -> Any:
    """Make the arguments of a tool from the parameters of its operation.

    `more` are further arguments by name: an annotated type and a default.
    """
    hints = get_type_hints(declaration, include_extras=True)
    members = [(each.name, hints[each.name], copy_field(each)) for each in fields(declaration)]
    settings = [each for each in members if each[0] in _settings(declaration)]
    own = [each for each in members if each not in settings]
    if settings:
        options = _dataclass(f"{declaration.__name__}Options", settings)
        own.append(("options", Annotated[options, OPTIONS], field(default_factory=options)))
    own += [(name, kind, field(default=default)) for name, (kind, default) in more.items()]
    return _dataclass(f"{declaration.__name__}Arguments", own)


OPTIONS = Doc("Settings.")


def _dataclass(name: str, members: list[Any]) -> Any:
    return make_dataclass(name, members, bases=(Parameters,), frozen=True, kw_only=True)


def _settings(declaration: Any) -> tuple[str, ...]:
    names = [each.name for each in fields(declaration)]
    counts = issubclass(declaration, BallotSettings | BallotFormat)
    return tuple(name for name in names if counts and name in SETTINGS)


def parameters_from(declaration: Any, arguments: Any) -> Any:
    """Make the parameters of an operation from the arguments of its tool."""
    settings = _settings(declaration)
    return declaration(
        **{
            each.name: getattr(arguments.options if each.name in settings else arguments, each.name)
            for each in fields(declaration)
        }
    )


def read_arguments(arguments: Any, values: Mapping[str, Any]) -> Any:
    """Validate arguments; lists and objects may come as JSON within a text."""
    shapes = _shapes_of(arguments)
    parsed_values = {name: _parse(value, shapes.get(name, {})) for name, value in values.items()}
    return validate_parameters(arguments, parsed_values)


@cache
def _shapes_of(arguments: Any) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = ArgumentSchemas().write("", arguments)["properties"]
    return properties


def _parse(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or schema.get("type") not in ("array", "object"):
        return value
    try:
        return json.loads(value) if value.lstrip()[:1] in ("[", "{") else value
    except (ValueError, RecursionError):
        return value


def describe_faults(tool: str, arguments: Any, error: ValidationError) -> str:
    """Explain in one sentence why arguments are refused."""
    faults = [
        f"{fault_place(each['loc']) or 'arguments'}: {_describe_fault(each, arguments)}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    return f"{tool} does not take these arguments: {'; '.join(faults)}"


def _describe_fault(fault: ErrorDetails, arguments: Any) -> str:
    if fault["type"] == "missing":
        return "it is needed"
    if fault["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return fault_words(fault["type"], fault["msg"], fault.get("ctx"))
    for name in fault["loc"][:-1]:
        arguments = get_type_hints(arguments).get(str(name), arguments)
    if not is_dataclass(arguments):
        return "there is no such argument"
    names = ", ".join(public_name(each.name) for each in fields(arguments))
    return f"there is no such argument, only {names}" if names else "it takes none"


class ArgumentSchemas:
    """Writer of the schemas of arguments, tool by tool.

    The members of an object are listed once; later tools refer to the first. A description is not
    repeated for an argument of the same name.
    """

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._descriptions: set[tuple[str, str]] = set()
        self._shapes: Mapping[str, Any] = {}
        self._tool = ""

    def write(self, tool: str, arguments: Any) -> dict[str, Any]:
        """Write a schema; each argument has its description for agents."""
        schema = adapter_of(arguments).json_schema()
        self._tool, self._shapes = tool, schema.get("$defs", {})
        required = {"required": schema["required"]} if "required" in schema else {}
        properties = {name: self._shorten(each) for name, each in schema["properties"].items()}
        for name, text in _descriptions(arguments):
            if text and (name, text) not in self._descriptions:
                self._descriptions.add((name, text))
                parts = [text, properties[name].get("description", "")]
                properties[name]["description"] = ": ".join(filter(None, parts))
        return {"type": "object", "properties": properties, **required}

    def _shorten(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._shorten(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._name_members(node)
        if "anyOf" in node:
            return self._shorten_union(node)
        if "patternProperties" in node:
            [value] = node["patternProperties"].values()
            node = {**node, "additionalProperties": value}
        return {
            name: self._shorten(value)
            for name, value in node.items()
            if name not in (*OMITTED, "default", "description") and value not in (None, "", [], {})
        }

    def _shorten_union(self, node: Mapping[str, Any]) -> Any:
        """Leave out null, and the only entry of a list."""
        kinds = [self._shorten(each) for each in node["anyOf"] if each != {"type": "null"}]
        kinds = [each for each in kinds if {"type": "array", "items": each} not in kinds]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}

    def _name_members(self, node: Mapping[str, Any]) -> Any:
        names = [*self._shapes[node["$ref"].rpartition("/")[2]]["properties"]]
        known = (tool for tool, listed in self._names.items() if listed.issuperset(names))
        tool = next(known, None)
        self._names.setdefault(self._tool, set()).update(names if tool is None else ())
        members = ", ".join(names) if tool is None else f"as of `{tool}`"
        return {"type": "object", "description": members}


def _descriptions(arguments: Any) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(arguments, include_extras=True)
    for each in fields(arguments):
        [doc] = [note for note in hints[each.name].__metadata__ if isinstance(note, Doc)]
        yield public_name(each.name), doc.agent_text


def result_schema(*results: type) -> dict[str, Any]:
    """Write the schema of a result: names and types alone.

    With several result types, it has the fields of all.
    """
    properties: dict[str, Any] = {}
    for each in results:
        schema = adapter_of(each).json_schema(mode="serialization")
        properties |= _lean_result(schema, schema.get("$defs", {}))["properties"]
    return {"type": "object", "properties": properties}


def _lean_result(node: Any, shapes: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_lean_result(each, shapes) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _lean_result(shapes[node["$ref"].rpartition("/")[2]], shapes)
    lean = {
        name: _lean_result(value, shapes)
        for name, value in node.items()
        if name not in (*OMITTED, "description", "default", "required", "$defs", "properties")
    }
    if "properties" in node:
        members = node["properties"].items()
        lean["properties"] = {name: _lean_result(each, shapes) for name, each in members}
    match lean.get("anyOf"):
        case [{"type": str(kind)} as first, {"type": "null"}]:
            del lean["anyOf"]
            values = {"enum": [*first["enum"], None]} if "enum" in first else {}
            return {**first, **lean, **values, "type": [kind, "null"]}
    return lean


Text = Callable[[Any], str]

Wait = Annotated[
    float | None,
    Constraint(ge=0, le=600),
    Doc("Seconds to wait for its end; null waits until it ends."),
]

Full = Annotated[bool, Doc("Everything, not only the final answer.")]

Plan = Annotated[bool, Doc("Only estimate the cost.")]

WAIT_SECONDS = 45
"""Default wait in seconds, below the minute after which some clients abort a call."""


class ProgressReport(Protocol):
    """Reports a call's progress to its client."""

    async def __call__(self, n_done: float, total: float, message: str, /) -> None:
        """Report progress; `n_done` grows from one report to the next."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, and the servers that forwarded it."""

    service: Service
    client: Client
    hops: tuple[str, ...]
    report: ProgressReport


@dataclass(frozen=True, slots=True)
class ToolReply:
    """Reply of a tool: text to read, and a result for programs."""

    text: str
    result: object
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation as a tool.

    `other_operations`: other operations that an argument selects.
    """

    operation: Operation[Any, Any]
    arguments: type[Parameters]
    work: Callable[[ToolCall, Any], Awaitable[ToolReply]]
    returns: tuple[Any, ...]
    other_operations: tuple[Operation[Any, Any], ...] = ()

    async def run(self, call: ToolCall, values: Mapping[str, Any]) -> ToolReply:
        """Run the operation with the arguments of a client."""
        return await self.work(call, read_arguments(self.arguments, values))


@cache
def list_tools() -> tuple[types.Tool, ...]:
    """Describe the tools as the protocol lists them."""
    schemas = ArgumentSchemas()
    return tuple(
        _describe(tool, schemas.write(name, tool.arguments)) for name, tool in TOOLS.items()
    )


def _describe(tool: Tool, arguments: dict[str, Any]) -> types.Tool:
    """Describe a tool, with the hints that agents use."""
    operation = tool.operation
    reads = not operation.changes
    return types.Tool(
        name=operation.name,
        description=operation.summary,
        input_schema=arguments,
        output_schema=result_schema(*tool.returns),
        annotations=types.ToolAnnotations(
            read_only_hint=reads or None,
            destructive_hint=None if reads or operation.destroys else False,
            idempotent_hint=None if reads or operation.method != "DELETE" else True,
        ),
    )


def value_tool(operation: Operation[Any, Any]) -> Tool:
    """Make the tool of an operation that returns a value."""
    kind, reduce = replies.BRIEFS.get(operation.name, (operation.result, None))
    render = _renderer(kind, reduce, replies.TEXTS.get(operation.name, replies.report_text))

    async def work(call: ToolCall, arguments: Any) -> ToolReply:
        parameters = parameters_from(operation.parameters, arguments)
        return await dispatch(operation, call.service, call.client, parameters, render)

    return Tool(operation, arguments_of(operation.parameters), work, (kind,))


def _renderer(
    kind: Any, reduce: Callable[[Any], Any] | None = None, text: Text = replies.report_text
) -> Callable[[Any], ToolReply]:
    reduce_result = partial(reduce_to, kind) if reduce is None else reduce
    return lambda result: ToolReply(text(result), reduce_result(result))


def session_tool(
    operation: Operation[Any, Any],
    plan_operation: Operation[Any, Any] | None = None,
    *,
    wait_seconds: float | None = WAIT_SECONDS,
) -> Tool:
    """Make the tool of an operation that starts a session.

    Cancelling the call cancels the session; replies so far are stored. `plan_operation` plans it;
    `wait_seconds` is the default wait for its end, None without a limit.
    """

    async def work(call: ToolCall, arguments: Any) -> ToolReply:
        parameters = parameters_from(operation.parameters, arguments)
        if plan_operation is not None and arguments.plan:
            render = _renderer(replies.PLAN)
            return await dispatch(plan_operation, call.service, call.client, parameters, render)
        subject = ClientService(call.service, call.client, call.hops)
        running_session = await operation.handler(subject, parameters)
        try:
            return await _wait_for_result(call, running_session.id, arguments.wait)
        except anyio.get_cancelled_exc_class():
            running_session.cancel()
            raise

    more: dict[str, Any] = {"wait": (Wait, wait_seconds)}
    if plan_operation is not None:
        more["plan"] = (Plan, False)
    returns = (replies.SessionBrief, *([] if plan_operation is None else [replies.PLAN]))
    others = () if plan_operation is None else (plan_operation,)
    return Tool(operation, arguments_of(operation.parameters, **more), work, returns, others)


def _result_tool() -> Tool:
    """Make the tool that shows a session, in short or in full."""

    async def work(call: ToolCall, arguments: Any) -> ToolReply:
        return await _wait_for_result(call, arguments.session, arguments.wait, full=arguments.full)

    arguments = arguments_of(result.parameters, full=(Full, False))
    return Tool(result, arguments, work, (replies.SessionBrief,), (show,))


async def _wait_for_result(
    call: ToolCall, session: str, wait: float | None, *, full: bool = False
) -> ToolReply:
    """Report progress while a session runs; then show its result."""
    session_name = await call.service.registry.resolve_session(session)
    running_session = call.service.registry.get(session_name)
    if running_session is not None:
        with anyio.move_on_after(inf if wait is None else wait):
            await _report_progress(running_session, call.report)
            await running_session.wait_for_end()
    write = replies.whole_text if full else replies.result_text

    def render(result: replies.Found) -> ToolReply:
        brief = replies.brief_session(result)
        has_ended = isinstance(result, CouncilSession) and not result.under_way
        return ToolReply(write(result), brief, has_ended and not full and brief.text is None)

    return await dispatch(
        result, call.service, call.client, ResultParameters(session_name, wait=0), render
    )


STEPS = e.AnswerDone | e.AnswerFailed | e.BallotCast | e.BallotAbstained | e.SynthesisDone
"""Events that complete a step of a session."""


class Steps:
    """Counter of steps: answers, ballots, the final answer, the end.

    `total` assumes that none is skipped.
    """

    def __init__(self) -> None:
        self.done, self.total = 0, 1

    def take(self, event: e.Event) -> None:
        """Count an event."""
        if isinstance(event, e.SessionOpened):
            procedure = event.procedure
            answers = 0 if event.answers else len(event.seats) * (1 + procedure.debate_rounds)
            reviews = len(event.reviewers) * procedure.review_rounds
            self.total = answers + reviews + 2
        elif isinstance(event, STEPS):
            self.done += 1
            self.total = max(self.total, self.done + 1)
        elif isinstance(event, e.SessionClosed):
            self.done = self.total


async def _report_progress(running_session: RunningSession, report: ProgressReport) -> None:
    """Report the events of a session until it ends.

    The number grows with each report: by 1 for a completed step, otherwise less.
    """
    steps, board, done = Steps(), Board(), 0.0
    async with aclosing(running_session.stream.follow()) as stream:
        async for each in stream:
            steps.take(each.event)
            board = board.apply_event(each.event)
            if board.line:
                done = steps.done if steps.done > done else done + (steps.done + 1 - done) / 2
                await report(done, steps.total, board.line)
    if running_session.stream.is_closed:
        await report(steps.total, steps.total, "the session is closed")


PLANS: Mapping[str, str] = MappingProxyType(
    {"ask": "plan", "judge": "plan_judge", "retry": "plan_retry", "rejudge": "plan_rejudge"}
)
"""Operation that starts a session → the one that plans it, in the same tool."""


def _tool(name: str) -> Tool:
    if name == "result":
        return _result_tool()
    operation = find_operation(name)
    if operation.kind == "value":
        return value_tool(operation)
    planning = find_operation(PLANS[name]) if name in PLANS else None
    return session_tool(operation, planning, wait_seconds=None if name == "ask" else WAIT_SECONDS)


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        name: _tool(name)
        for name, row in CATALOGUE.items()
        if row.tool and name not in ("show", *PLANS.values())
    }
)
"""Every tool by name; `result` shows sessions."""
