"""Tools that hold sessions: asked, followed, interrupted, taken up."""

from functools import partial
from math import inf
from typing import Any

import anyio

from witan.deliberation.session import Session
from witan.service.operations.sessions import imported_of
from witan.service.sessions import RunningSession
from witan.surfaces.http.schemas import QuestionBody
from witan.surfaces.mcp.arguments import (
    RejudgeArguments,
    ResultArguments,
    ResumeArguments,
    RetryArguments,
    SessionArguments,
)
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.mcp.telling import follow, imported, standing, verdict, whole

__all__ = ["ASKING"]

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


async def ask(call: Call, body: QuestionBody) -> Reply:
    """Put a question, and wait for the end."""
    return await _held(call, await call.service.ask(body.asked(call.hops), call.client), inf)


async def start(call: Call, body: QuestionBody) -> Reply:
    """Put a question, and go on."""
    running = await call.service.ask(body.asked(call.hops), call.client)
    return standing(running.session, running)


async def status(call: Call, body: SessionArguments) -> Reply:
    """Say how far a session has come."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found)
    return standing(*await _found(call, body.session))


async def result(call: Call, body: ResultArguments) -> Reply:
    """Wait for the end of a session, for so long."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found, full=body.full)
    session, running = await _found(call, body.session)
    if running is not None:
        if not await _over(call, running, body.wait):
            return standing(running.session, running)
        session = await running.ended()
    return (whole if body.full else verdict)(session, running)


async def cancel(call: Call, body: SessionArguments) -> Reply:
    """Break a session off."""
    if (found := await imported_of(call.service, body.session)) is not None:
        return imported(found)
    session, running = await _found(call, body.session)
    if running is not None:
        running.cancel()
        session = await running.ended()
    return standing(session, running)


async def resume(call: Call, body: ResumeArguments) -> Reply:
    """Take a session up."""
    running = await call.service.resume(body.session, take_over=body.take_over, client=call.client)
    return await _held(call, running, body.wait)


async def retry(call: Call, body: RetryArguments) -> Reply:
    """Ask the seats that failed once more."""
    running = await call.service.retry(body.session, body.seats, client=call.client)
    return await _held(call, running, body.wait)


async def rejudge(call: Call, body: RejudgeArguments) -> Reply:
    """Have other reviewers judge the answers of a session."""
    judging = body.judging(call.hops)
    running = await call.service.rejudge(body.session, judging, client=call.client)
    return await _held(call, running, body.wait)


async def _held(call: Call, running: RunningSession, wait: float) -> Reply:
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


_asks = partial(Tool, asks=True, returns=VERDICT)

ASKING: tuple[Tool[Any], ...] = (
    _asks(
        "ask",
        "Ask the council",
        "Put a question to several models at once: each answers, each reviews the others' answers "
        "blind, the ballots are counted, and a chairman writes the final answer from the answers "
        "that stood up. Returns the text with how sure it is: who voted, what is tied, what is "
        "missing. It takes from half a minute to several minutes and costs money; it reports its "
        "progress. If your calls are cut at 60 seconds, use `start` and `result` instead. The "
        "profile `demo` plays scripts, needs no key and costs nothing.",
        QuestionBody,
        ask,
    ),
    _asks(
        "start",
        "Start a session",
        "Put a question to the council without waiting: returns the name of the session, which "
        "goes on by itself. Then call `result` until it is over; `status` says how far it is.",
        QuestionBody,
        start,
    ),
    Tool(
        "status",
        "How far a session is",
        "Say how far a session has come: who has answered, how many ballots are in, who leads.",
        SessionArguments,
        status,
        reads=True,
        returns=VERDICT,
    ),
    Tool(
        "result",
        "What came of a session",
        "The final answer of a session and how sure it is. Waits for its end for at most `wait` "
        "seconds; if it is still under way then, says how far it is: call it again.",
        ResultArguments,
        result,
        reads=True,
        returns=VERDICT,
    ),
    Tool(
        "cancel",
        "Break a session off",
        "Cancel every call of a session under way. What came in is kept; `resume` takes it up.",
        SessionArguments,
        cancel,
        repeatable=True,
        returns=VERDICT,
    ),
    _asks(
        "resume",
        "Take a session up",
        "Go on with an interrupted session at its last finished seat; what is paid is not asked "
        "again.",
        ResumeArguments,
        resume,
    ),
    _asks(
        "retry",
        "Ask failed seats again",
        "Ask the seats of a session that failed once more, in a session of its own.",
        RetryArguments,
        retry,
    ),
    _asks(
        "rejudge",
        "Have another jury judge",
        "Put the stored answers of a session before other reviewers, in a session of its own.",
        RejudgeArguments,
        rejudge,
    ),
)
