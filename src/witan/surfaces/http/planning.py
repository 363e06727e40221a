"""The native API: what would be called, and what it would cost at most; no call is made."""

from starlette.responses import Response

from witan.deliberation.plan import Plan
from witan.service.sessions import Client
from witan.surfaces.http import examples
from witan.surfaces.http.access import ClientOf, ServiceOf
from witan.surfaces.http.documents import SessionNamed, operations
from witan.surfaces.http.replies import reply
from witan.surfaces.http.schemas import (
    ALL_THAT_FAILED,
    AS_CONFIGURED,
    JudgingBody,
    QuestionBody,
    RetryBody,
)
from witan.surfaces.text.plan import plan_object

__all__ = ["router"]

router = operations("sessions")


@router.post(
    "/plan", summary="What a question would ask for, and cost at most", responses=examples.PLAN
)
async def plan(body: QuestionBody, service: ServiceOf, client: ClientOf) -> Response:
    """Say what would be called, and what it may cost; no call is made."""
    return _planned(await service.plan(body.asked()), client)


@router.post(
    "/sessions/{session:quoted}/retry/plan",
    summary="What a retry would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_retry(
    session: SessionNamed, service: ServiceOf, client: ClientOf, body: RetryBody = ALL_THAT_FAILED
) -> Response:
    """Say what asking the seats that failed once more may cost; no call is made."""
    return _planned(await service.plan_retry(session, body.seats), client)


@router.post(
    "/sessions/{session:quoted}/rejudge/plan",
    summary="What another jury would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_rejudge(
    session: SessionNamed, service: ServiceOf, client: ClientOf, body: JudgingBody = AS_CONFIGURED
) -> Response:
    """Say what putting the stored answers before another jury may cost; no call is made."""
    return _planned(await service.plan_rejudge(session, body.judging()), client)


def _planned(plan: Plan, client: Client) -> Response:
    return reply(plan_object(plan, client.max_cost_usd))
