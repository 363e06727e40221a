"""Tools that say what something would cost; none of them makes a call."""

from functools import partial
from typing import Any

from witan.deliberation.plan import Plan
from witan.service.text import Page
from witan.surfaces.http.schemas import QuestionBody
from witan.surfaces.mcp.arguments import RejudgePlanArguments, RetryPlanArguments
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.text.plan import plan_object, plan_text

__all__ = ["PLANNING"]


async def plan(call: Call, body: QuestionBody) -> Reply:
    """Say what a question would cost."""
    return _planned(call, await call.service.plan(body.asked(call.hops)))


async def plan_retry(call: Call, body: RetryPlanArguments) -> Reply:
    """Say what asking failed seats again would cost."""
    return _planned(call, await call.service.plan_retry(body.session, body.seats))


async def plan_rejudge(call: Call, body: RejudgePlanArguments) -> Reply:
    """Say what another jury would cost."""
    return _planned(call, await call.service.plan_rejudge(body.session, body.judging(call.hops)))


def _planned(call: Call, planned: Plan) -> Reply:
    ceiling = call.client.max_cost_usd
    return Reply("\n".join(plan_text(Page(), planned, ceiling)), plan_object(planned, ceiling))


_reads = partial(Tool, reads=True)

PLANNING: tuple[Tool[Any], ...] = (
    _reads(
        "plan",
        "What a question would cost",
        "Say what a question would ask for, and what it would cost at most; no call is made.",
        QuestionBody,
        plan,
    ),
    _reads(
        "plan_retry",
        "What asking failed seats again would cost",
        "Say what `retry` would ask for, and what it would cost at most; no call is made.",
        RetryPlanArguments,
        plan_retry,
    ),
    _reads(
        "plan_rejudge",
        "What another jury would cost",
        "Say what `rejudge` would ask for, and what it would cost at most; no call is made.",
        RejudgePlanArguments,
        plan_rejudge,
    ),
)
