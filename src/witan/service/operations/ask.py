"""Start sessions: ask, judge, resume, retry and rejudge."""

from typing import TYPE_CHECKING

from witan.service.catalogue import operation
from witan.service.requests import (
    JudgeRequest,
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
)
from witan.service.stored_sessions import ClientService

# Loading these takes longer than a command has until its view is drawn.
if TYPE_CHECKING:
    from witan.service.sessions.running import RunningSession


@operation("ask", post="/sessions", tag="sessions", kind="session", changes=True)
async def ask(service: ClientService, request: QuestionRequest) -> "RunningSession":
    """Ask several models, which then review each other's answers blind.

    The ballots are counted, and a chairman writes the final answer from the answers that stood up.
    The result says how sure it is: who voted, what is tied, what is missing. It takes from half a
    minute to several minutes and costs money. The profile `demo` plays scripts, needs no key and
    costs nothing.
    """
    return await service.start(request)


@operation("judge", post="/judge", tag="sessions", kind="session", changes=True)
async def judge(service: ClientService, request: JudgeRequest) -> "RunningSession":
    """Have a jury judge given texts blind: one, or several together.

    Each text gets a grade for every criterion of the rubric, with its interval. The verdict is
    passed, failed or too close to call, with its probability: one text passes if reviewers like
    these would grade it at the pass mark or above; of several, one has to lead clearly.
    """
    return await service.start(request)


@operation(
    "resume", post="/sessions/{session}/resume", tag="sessions", kind="session", changes=True
)
async def resume(service: ClientService, request: ResumeRequest) -> "RunningSession":
    """Resume an interrupted session without repeating finished calls.

    The seats, the procedure and the seed are those of the session; keys are those of today. Where
    no answer, ballot or final answer is added, the session stays interrupted, and its record says
    that it was tried.
    """
    return await service.start(request)


@operation("retry", post="/sessions/{session}/retry", tag="sessions", kind="session", changes=True)
async def retry(service: ClientService, request: RetryRequest) -> "RunningSession":
    """Ask a session's failed seats again, in a new session.

    Without `seats`, every seat that failed or abstained. Everything independent of them is reused:
    after a review the ballots are counted and the final answer is written again; after an answer
    all reviews are made again as well; after a chairman's failure only the final answer. The new
    session names the other as its parent, which stays as it was; its cost is that of the new calls
    alone.
    """
    return await service.start(request)


@operation(
    "rejudge", post="/sessions/{session}/rejudge", tag="sessions", kind="session", changes=True
)
async def rejudge(service: ClientService, request: RejudgeRequest) -> "RunningSession":
    """Put a session's stored answers before another jury, in a new session.

    The jury answers nothing itself. The new session names the other as its parent, which stays as
    it was.
    """
    return await service.start(request)
