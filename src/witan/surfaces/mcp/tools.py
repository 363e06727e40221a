"""Tools made from the catalogue: typed arguments in, typed results out."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import anyio
import mcp_types as types

from witan.deliberation import events as e
from witan.service.catalogue import CATALOGUE, Operation, find_operation
from witan.service.dispatch import dispatch
from witan.service.json_output import reduce_to
from witan.service.operations.ask import ClientService
from witan.service.operations.results import ResultParameters, result
from witan.service.operations.show import show
from witan.service.parameters import Constraint, Doc, Parameters
from witan.service.session_records import CouncilSession
from witan.service.sessions import Client, RunningSession, Service
from witan.surfaces.live_board import Board
from witan.surfaces.mcp import replies
from witan.surfaces.mcp.schemas import (
    ArgumentSchemas,
    arguments_of,
    parameters_from,
    read_arguments,
    result_schema,
)

Text = Callable[[Any], str]

Wait = Annotated[
    float | None, Constraint(ge=0, le=600), Doc("Seconds to wait for its end; null: until it ends.")
]

Full = Annotated[bool, Doc("Everything, not the final answer alone.")]

Plan = Annotated[bool, Doc("Only say what it would cost.")]

WAIT_SECONDS = 45
"""Shorter than the minute after which some clients cut a call."""


class ProgressReport(Protocol):
    """Tells a client how far its call has come."""

    async def __call__(self, done: float, total: float, message: str, /) -> None:
        """Report progress; `done` grows from one report to the next."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Parameters
    ----------
    hops
        The servers that it came through.
    """

    service: Service
    client: Client
    hops: tuple[str, ...]
    report: ProgressReport


@dataclass(frozen=True, slots=True)
class ToolReply:
    """Reply of a tool: text to read, and a result for programs.

    Parameters
    ----------
    failed
        The call did not achieve what it was made for.
    """

    text: str
    result: object
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation as a tool.

    Parameters
    ----------
    arguments
        Its arguments, a dataclass.
    returns
        The types of its results.
    others
        Operations that an argument makes it do instead.
    """

    operation: Operation[Any, Any]
    arguments: type[Parameters]
    work: Callable[[ToolCall, Any], Awaitable[ToolReply]]
    returns: tuple[Any, ...]
    others: tuple[Operation[Any, Any], ...] = ()

    async def run(self, call: ToolCall, values: Mapping[str, Any]) -> ToolReply:
        """Run the operation with arguments as a client sent them.

        Raises
        ------
        ValidationError
            If the arguments are not what it takes.
        WitanError
            If it cannot be done.
        """
        return await self.work(call, read_arguments(self.arguments, values))


@cache
def list_tools() -> tuple[types.Tool, ...]:
    """Describe the tools as the protocol lists them."""
    schemas = ArgumentSchemas()
    return tuple(
        _describe(tool, schemas.write(name, tool.arguments)) for name, tool in TOOLS.items()
    )


def _describe(tool: Tool, arguments: dict[str, Any]) -> types.Tool:
    operation = tool.operation
    reads, starts = not operation.changes, operation.kind == "session"
    return types.Tool(
        name=operation.name,
        description=operation.summary,
        input_schema=arguments,
        output_schema=result_schema(*tool.returns),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=operation.destroys,
            idempotent_hint=reads or operation.method == "DELETE",
            open_world_hint=starts,
        ),
    )


Brief = type | Callable[[Any], Any]
"""The small type that a result is reduced to, or a function annotated with it."""


def value_tool(
    operation: Operation[Any, Any], brief: Brief, text: Text = replies.report_text
) -> Tool:
    """Make the tool of an operation that returns a value; `text`: it is no report alone."""

    async def work(call: ToolCall, given: Any) -> ToolReply:
        parameters = parameters_from(operation.parameters, given)
        render = _renderer(brief, text)
        return await dispatch(operation, call.service, call.client, parameters, render)

    returns = brief if isinstance(brief, type) else brief.__annotations__["return"]
    return Tool(operation, arguments_of(operation.parameters), work, (returns,))


def _renderer(brief: Brief, text: Text = replies.report_text) -> Callable[[Any], ToolReply]:
    reduce = partial(reduce_to, brief) if isinstance(brief, type) else brief
    return lambda result: ToolReply(text(result), reduce(result))


def session_tool(
    operation: Operation[Any, Any],
    planning: Operation[Any, Any] | None = None,
    *,
    wait_seconds: float | None = WAIT_SECONDS,
) -> Tool:
    """Make the tool of an operation that starts a session.

    A client that cancels the call cancels the session; what came in is kept.

    Parameters
    ----------
    planning
        The operation that plans it.
    wait_seconds
        How long it waits for the end of the session unless told; None: as long as it lasts.
    """

    async def work(call: ToolCall, given: Any) -> ToolReply:
        parameters = parameters_from(operation.parameters, given)
        if planning is not None and given.plan:
            render = _renderer(replies.PlanBrief)
            return await dispatch(planning, call.service, call.client, parameters, render)
        subject = ClientService(call.service, call.client, call.hops)
        running = await operation.handler(subject, parameters)
        try:
            return await _wait_for_result(call, running.id, given.wait)
        except anyio.get_cancelled_exc_class():
            running.cancel()
            raise

    more: dict[str, Any] = {"wait": (Wait, wait_seconds)}
    if planning is not None:
        more["plan"] = (Plan, False)
    returns = (replies.SessionBrief, *([] if planning is None else [replies.PlanBrief]))
    others = () if planning is None else (planning,)
    return Tool(operation, arguments_of(operation.parameters, **more), work, returns, others)


def _result_tool() -> Tool:
    """Make the tool that shows a session, in short or in full."""

    async def work(call: ToolCall, given: Any) -> ToolReply:
        return await _wait_for_result(call, given.session, given.wait, full=given.full)

    arguments = arguments_of(result.parameters, full=(Full, False))
    return Tool(result, arguments, work, (replies.SessionBrief,), (show,))


async def _wait_for_result(
    call: ToolCall, session: str, wait: float | None, *, full: bool = False
) -> ToolReply:
    """Report progress while a session runs; then show its result."""
    whole = await call.service.named(session)
    running = call.service.running(whole)
    if running is not None:
        with anyio.move_on_after(inf if wait is None else wait):
            await _report_progress(running, call.report)
            await running.over()
    write = replies.whole_text if full else replies.result_text

    def render(found: replies.Found) -> ToolReply:
        brief = replies.brief_session(found)
        over = isinstance(found, CouncilSession) and not found.under_way
        return ToolReply(write(found), brief, over and not full and brief.text is None)

    return await dispatch(
        result, call.service, call.client, ResultParameters(whole, wait=0), render
    )


STEPS = e.AnswerDone | e.AnswerFailed | e.BallotCast | e.BallotAbstained | e.SynthesisDone
"""Events that complete a step of a session."""


class Steps:
    """Counter of steps: answers, ballots, the final answer, the end.

    Attributes
    ----------
    done, total
        Completed steps, and all of them if none is saved.
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


async def _report_progress(running: RunningSession, report: ProgressReport) -> None:
    """Report what happens in a session until it ends.

    The number grows with each report, by a whole one where a step was completed, else by less.
    """
    steps, board, done = Steps(), Board(), 0.0
    async with aclosing(running.stream.follow()) as stream:
        async for each in stream:
            steps.take(each.event)
            board = board.after(each.event)
            if board.line:
                done = steps.done if steps.done > done else done + (steps.done + 1 - done) / 2
                await report(done, steps.total, board.line)
    if running.stream.closed:
        await report(steps.total, steps.total, "the session is closed")


PLANS: Mapping[str, str] = MappingProxyType(
    {"ask": "plan", "retry": "plan_retry", "rejudge": "plan_rejudge"}
)
"""Operation that starts a session to the one that plans it, which is the same tool."""


def _tool(name: str) -> Tool:
    if name == "result":
        return _result_tool()
    operation = find_operation(name)
    if operation.kind == "value":
        return value_tool(
            operation, replies.BRIEFS[name], replies.TEXTS.get(name, replies.report_text)
        )
    planning = find_operation(PLANS[name]) if name in PLANS else None
    return session_tool(operation, planning, wait_seconds=None if name == "ask" else WAIT_SECONDS)


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {name: _tool(name) for name in CATALOGUE if name not in ("show", *PLANS.values())}
)
"""Every tool by name; `result` shows sessions."""
