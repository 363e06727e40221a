"""The native API: what would be called, and what it would cost at most; no call is made."""

from starlette.responses import Response

from witan.deliberation.plan import Plan
from witan.surfaces.http import examples
from witan.surfaces.http.access import ChamberOf
from witan.surfaces.http.documents import SessionNamed, operations
from witan.surfaces.http.replies import reply
from witan.surfaces.http.schemas import JudgingBody, QuestionBody, RetryBody

__all__ = ["router"]

router = operations("sessions")

ALL_THAT_FAILED, AS_CONFIGURED = RetryBody(), JudgingBody()


@router.post(
    "/plan", summary="What a question would ask for, and cost at most", responses=examples.PLAN
)
async def plan(body: QuestionBody, chamber: ChamberOf) -> Response:
    """Say what would be called, and what it may cost; no call is made."""
    return _planned(await chamber.plan(body.asked()))


@router.post(
    "/sessions/{session:quoted}/retry/plan",
    summary="What a retry would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_retry(
    session: SessionNamed, chamber: ChamberOf, body: RetryBody = ALL_THAT_FAILED
) -> Response:
    """Say what asking the seats that failed once more may cost; no call is made."""
    return _planned(await chamber.plan_retry(session, body.seats))


@router.post(
    "/sessions/{session:quoted}/rejudge/plan",
    summary="What another jury would ask for, and cost at most",
    responses=examples.PLAN,
)
async def plan_rejudge(
    session: SessionNamed, chamber: ChamberOf, body: JudgingBody = AS_CONFIGURED
) -> Response:
    """Say what putting the stored answers before another jury may cost; no call is made."""
    return _planned(await chamber.plan_rejudge(session, body.judging()))


def _planned(plan: Plan) -> Response:
    return reply(
        {
            "calls": plan.calls,
            "repairs": plan.repairs,
            "input_tokens": plan.input_tokens,
            "output_tokens": plan.output_tokens,
            "worst_usd": plan.worst_usd,
            "unpriced": plan.unpriced,
            "lines": plan.lines,
        }
    )
