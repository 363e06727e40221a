"""Models that play scripts and the table they are called from, for tests of calls."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import anyio

from witan.deliberation.calls import Caller, CallFailure, CallResult
from witan.deliberation.money import Purse
from witan.deliberation.ports import Call, Expense, Hear, Member, Message, Price, Reply, Usage
from witan.deliberation.procedure import Limits, ThrottlePolicy
from witan.deliberation.throttle import Throttle, Throttles
from witan.errors import ModelError

CALL = Call("answer", (Message("user", "why?"),), max_tokens=100)
PRICE = Price(input_usd=1.0, output_usd=1.0)

Step = Callable[[Hear], Awaitable[Reply]]


class LoopClock:
    """The event loop's own time, which a test may let jump."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def seconds(self) -> float:
        return anyio.current_time()


class Script:
    """A model that plays a step for each request, the last one for ever."""

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.requests = 0
        self.running = self.most_running = 0

    async def complete(self, call: Call, hear: Hear) -> Reply:
        assert call == CALL
        step = self.steps[min(self.requests, len(self.steps) - 1)]
        self.requests += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            return await step(hear)
        finally:
            self.running -= 1


def says(*pieces: str, after: float = 0.0, every: float = 0.0) -> Step:
    async def step(hear: Hear) -> Reply:
        await anyio.sleep(after)
        for piece in pieces:
            hear(piece)
            await anyio.sleep(every)
        return Reply("".join(pieces), Usage(10, 5))

    return step


def mute(text: str, after: float = 0.0) -> Step:
    """A reply that is not streamed."""

    async def step(hear: Hear) -> Reply:
        await anyio.sleep(after)
        return Reply(text, Usage(10, 5))

    return step


def fails(error: BaseException, *pieces: str, after: float = 0.0) -> Step:
    async def step(hear: Hear) -> Reply:
        await anyio.sleep(after)
        for piece in pieces:
            hear(piece)
        raise error

    return step


def returns(thing: object) -> Step:
    async def step(hear: Hear) -> Reply:
        return thing  # type: ignore[return-value]

    return step


def busy(status: int | None = 503, retry_after: float | None = None) -> ModelError:
    return ModelError("m", f"is busy ({status})", status, retry_after, transient=True)


HANGS = says("never", after=1e6)


class Table:
    """A caller with everything it works with, what it told and what was heard."""

    def __init__(
        self, *, throttling: ThrottlePolicy | None = None, max_usd: float | None = None, **limits
    ) -> None:
        self.notices: list[tuple[str, str, int, str, float]] = []
        self.withdrawn: list[tuple[str, str]] = []
        self.throttles = Throttles({"p": throttling or ThrottlePolicy()}, LoopClock())
        self.purse = Purse(max_usd)
        self.caller = Caller(
            limits=Limits(**limits),
            throttles=self.throttles,
            purse=self.purse,
            clock=LoopClock(),
            seed=(7,),
            on_retry=lambda *told: self.notices.append(told),
            on_withdraw=lambda *whose: self.withdrawn.append(whose),
        )
        self.heard: list[str] = []
        self.spent = Expense()

    async def ask(
        self, script: Script, name: str = "a", price: Price | None = PRICE
    ) -> CallResult | CallFailure:
        member = Member(name, script, provider="p", price=price)
        result = await self.caller.call(member, CALL, self.heard.append)
        self.spent = self.caller.collect_spent(name)
        return result

    async def is_free(self, places: int) -> bool:
        """Whether so many slots of the provider can be held at once, right now."""
        return await is_free(self.throttles["p"], places)


async def is_free(throttle: Throttle, places: int) -> bool:
    """Whether so many calls can be in flight at once, right now."""
    held = 0

    async def stay():
        nonlocal held
        async with throttle.slot():
            held += 1
            await anyio.sleep(60)

    async with anyio.create_task_group() as group:
        for _ in range(places + 1):
            group.start_soon(stay)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    return held == places
