"""The native API: what would be called, and what it would cost at most; no call is made."""

from starlette.responses import Response

from witan.deliberation.plan import Plan
from witan.service.sessions import Asker
from witan.surfaces.http import examples
from witan.surfaces.http.access import AskerOf, ChamberOf
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
async def plan(body: QuestionBody, chamber: ChamberOf, asker: AskerOf) -> Response:
    """Say what would be called, and what it may cost; no call is made."""
    return _planned(await chamber.plan(body.asked()), asker)


@router.post(
    "/sessions/{session:quoted}/retry/plan",
    summary="What a retry would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_retry(
    session: SessionNamed, chamber: ChamberOf, asker: AskerOf, body: RetryBody = ALL_THAT_FAILED
) -> Response:
    """Say what asking the seats that failed once more may cost; no call is made."""
    return _planned(await chamber.plan_retry(session, body.seats), asker)


@router.post(
    "/sessions/{session:quoted}/rejudge/plan",
    summary="What another jury would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_rejudge(
    session: SessionNamed, chamber: ChamberOf, asker: AskerOf, body: JudgingBody = AS_CONFIGURED
) -> Response:
    """Say what putting the stored answers before another jury may cost; no call is made."""
    return _planned(await chamber.plan_rejudge(session, body.judging()), asker)


def _planned(plan: Plan, asker: Asker) -> Response:
    return reply(plan_object(plan, asker.max_cost_usd))
