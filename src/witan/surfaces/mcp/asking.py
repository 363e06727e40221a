"""Tools that hold sessions: asked, followed, interrupted, taken up."""

from dataclasses import dataclass, field, make_dataclass
from math import inf
from typing import Annotated, Any

import anyio
from annotated_types import Ge, Le

from witan.deliberation.session import Session
from witan.service.catalogue import Operation
from witan.service.operations.ask import ClientService, ask, rejudge, resume, retry
from witan.service.operations.sessions import imported_of
from witan.service.parameters import Doc
from witan.service.requests import SessionRequest
from witan.service.sessions import RunningSession
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.mcp.telling import follow, imported, standing, verdict, whole

Wait = Annotated[
    float | None,
    Ge(0),
    Le(600),
    Doc("Seconds to wait for its end, less than your own limit on a call; null: until it ends."),
]


@dataclass(frozen=True, slots=True)
class ResultRequest(SessionRequest):
    """Which session, and how much of it."""

    wait: Annotated[
        float,
        Ge(0),
        Le(600),
        Doc("Seconds to wait for its end; less than your own limit on a call."),
    ] = 45
    full: Annotated[
        bool, Doc("All of it: answers, ballots, standings, not the final answer alone.")
    ] = False


VERDICT = {
    "type": "object",
    "properties": {
        "session": {"type": "string", "description": "Its name, for other tools."},
        "under_way": {"type": "boolean", "description": "It goes on: ask for its `result` later."},
        "status": {
            "type": ["string", "null"],
            "description": "complete, degraded, failed or interrupted; null: it goes on.",
        },
        "simulated": {"type": "boolean", "description": "Scripts sat in it."},
        "text": {"type": ["string", "null"], "description": "The final answer."},
        "trust": {
            "type": ["string", "null"],
            "description": "Who voted, what is tied, what it cost, what is missing.",
        },
    },
    "required": ["session", "under_way", "status", "simulated"],
}


async def status(call: Call, body: SessionRequest) -> Reply:
    """Say how far a session has come."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found)
    return standing(*await _found(call, body.session))


async def result(call: Call, body: ResultRequest) -> Reply:
    """Wait for the end of a session, for so long."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found, full=body.full)
    session, running = await _found(call, body.session)
    if running is not None:
        if not await _over(call, running, body.wait):
            return standing(running.session, running)
        session = await running.ended()
    return (whole if body.full else verdict)(session, running)


async def cancel(call: Call, body: SessionRequest) -> Reply:
    """Break a session off."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found)
    session, running = await _found(call, body.session)
    if running is not None:
        running.cancel()
        session = await running.ended()
    return standing(session, running)


async def hold(call: Call, running: RunningSession, wait: float) -> Reply:
    """The verdict of a session that this call began, or how far it came in this time.

    A caller who gives up the call gives up the session; what came in is kept.
    """
    try:
        over = await _over(call, running, wait)
    except anyio.get_cancelled_exc_class():
        running.cancel()
        raise
    if not over:
        return standing(running.session, running)
    return verdict(await running.ended(), running)


async def _over(call: Call, running: RunningSession, wait: float) -> bool:
    """Report what happens in a session for so long; say whether it is over."""
    with anyio.move_on_after(wait if running.under_way else 0):
        await follow(running, call.report)
        await running.ended()
    return not running.under_way


async def _found(call: Call, name: str) -> tuple[Session, RunningSession | None]:
    """A session as far as it came, and the task that holds it, if one does.

    Raises
    ------
    WitanError
        If there is none, or it ended badly.
    """
    session = await call.service.session(name)
    running = call.service.running(session.id)
    if running is not None and not running.under_way:
        session = await running.ended()
    return session, running


def session_tool(operation: Operation[Any, Any], *, wait_seconds: float | None = 45) -> Tool[Any]:
    """Make the tool of an operation that starts a session.

    Parameters
    ----------
    wait_seconds
        How long it waits for the end of the session unless told; None: as long as it lasts.
    """
    arguments: Any = make_dataclass(
        f"{operation.name.capitalize()}Arguments",
        [("wait", Wait, field(default=wait_seconds))],
        bases=(operation.parameters,),
        frozen=True,
        kw_only=True,
        namespace={"__doc__": operation.parameters.__doc__},
    )

    async def work(call: Call, given: Any) -> Reply:
        service = ClientService(call.service, call.client, call.hops)
        running = await operation.handler(service, given)
        return await hold(call, running, inf if given.wait is None else given.wait)

    return Tool(
        operation.name,
        operation.summary,
        operation.description,
        arguments,
        work,
        asks=True,
        returns=VERDICT,
    )


ASKING: tuple[Tool[Any], ...] = (
    session_tool(ask, wait_seconds=None),
    Tool(
        "status",
        "How far a session is",
        "Say how far a session has come: who has answered, how many ballots are in, who leads.",
        SessionRequest,
        status,
        reads=True,
        returns=VERDICT,
    ),
    Tool(
        "result",
        "What came of a session",
        "The final answer of a session and how sure it is. Waits for its end for at most `wait` "
        "seconds; if it is still under way then, says how far it is: call it again.",
        ResultRequest,
        result,
        reads=True,
        returns=VERDICT,
    ),
    Tool(
        "cancel",
        "Break a session off",
        "Cancel every call of a session under way. What came in is kept; `resume` takes it up.",
        SessionRequest,
        cancel,
        repeatable=True,
        returns=VERDICT,
    ),
    session_tool(resume),
    session_tool(retry),
    session_tool(rejudge),
)
