"""Plan the calls and highest cost of a session."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from witan.core.stats.separation import Separation
from witan.deliberation.money import least_known
from witan.deliberation.plan import Plan, PlanLine, check_affordable, check_calls, check_priced
from witan.deliberation.procedure import Limits
from witan.errors import OverBudget
from witan.service.catalogue import operation, public
from witan.service.json_output import reduce_to
from witan.service.operations.ask import JudgeRequest, QuestionRequest, RejudgeRequest, RetryRequest

if TYPE_CHECKING:
    from witan.service.operations.ask import NewSessionRequest
    from witan.service.sessions.manager import Service
    from witan.service.sessions.spending import Client


@public
@dataclass(frozen=True, slots=True)
class PlanSummary:
    """Calls, tokens and cost of a session before it is started.

    Parameters
    ----------
    calls
        Calls when nothing fails.
    input_tokens, output_tokens
        Most tokens read and written when nothing fails.
    repairs
        Further calls if every review is repaired; `worst_usd` includes them.
    expected_usd
        Expected cost when nothing fails.
    expected_from
        Number of sessions behind the expected lengths; 0: published lengths.
    worst_usd
        Highest cost.
    least_usd
        The most that the smallest complete session reserves at once.
    max_cost_usd, max_calls
        The ceilings.
    refusal
        Why a ceiling would refuse the session, or None.
    unpriced
        Seats without a known price.
    separation
        Smallest difference of answers that can be detected; None: no grades.
    lines
        The calls of each seat in each stage.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    repairs: int
    expected_usd: float | None
    expected_from: int
    worst_usd: float | None
    least_usd: float | None
    max_cost_usd: float | None
    max_calls: int | None
    refusal: str | None
    unpriced: tuple[str, ...]
    separation: Separation | None
    lines: tuple[PlanLine, ...]


def summarize_plan(plan: Plan, limits: Limits) -> PlanSummary:
    """Sum a plan up under the ceilings of cost and calls."""
    least = plan.least_usd()
    return reduce_to(
        PlanSummary,
        plan,
        unpriced=plan.unpriced_seats,
        least_usd=None if plan.unpriced_seats or least is None else least[1],
        max_cost_usd=limits.max_cost_usd,
        max_calls=limits.max_calls,
        refusal=_refusal(plan, limits),
    )


def _refusal(plan: Plan, limits: Limits) -> str | None:
    try:
        check_calls(plan, limits.max_calls)
        check_priced(plan, limits.max_cost_usd)
        check_affordable(plan, limits.max_cost_usd)
    except OverBudget as error:
        return error.problem
    return None


@dataclass(frozen=True, slots=True)
class Planner:
    """The councils and sessions of a service, for one of its clients."""

    service: "Service"
    client: "Client"

    async def plan(self, request: "NewSessionRequest") -> PlanSummary:
        """Plan a request, under its own ceilings and the client's."""
        plan, limits = await self.service.plan(request)
        ceiling = least_known((limits.max_cost_usd, self.client.max_cost_usd))
        return summarize_plan(plan, replace(limits, max_cost_usd=ceiling))


@operation("POST /plan", tag="sessions")
async def plan(planner: Planner, request: QuestionRequest) -> PlanSummary:
    """Plan the calls and highest cost of a question, without a call.

    Tokens are upper bounds, with every answer at its limit. The expected cost uses the lengths of
    earlier sessions, otherwise published ones. The worst cost includes repairs of reviews and
    further chairmen, but no retries or hedges.
    """
    return await planner.plan(request)


@operation("POST /judge/plan", tag="sessions")
async def plan_judge(planner: Planner, request: JudgeRequest) -> PlanSummary:
    """Plan the calls and highest cost of `judge`, without a call."""
    return await planner.plan(request)


@operation("POST /sessions/{session}/retry/plan", tag="sessions")
async def plan_retry(planner: Planner, request: RetryRequest) -> PlanSummary:
    """Plan the calls and highest cost of `retry`, without a call."""
    return await planner.plan(request)


@operation("POST /sessions/{session}/rejudge/plan", tag="sessions")
async def plan_rejudge(planner: Planner, request: RejudgeRequest) -> PlanSummary:
    """Plan the calls and highest cost of `rejudge`, without a call."""
    return await planner.plan(request)
