"""The calls of one session, each seen through to a reply or to the reason why there is none."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import anyio
import numpy as np

from witan.deliberation.attempts import Attempt, Errand
from witan.deliberation.limits import Throttles
from witan.deliberation.money import NOTHING, Purse
from witan.deliberation.ports import Call, Clock, Hear, Member, Reply, Spent, Stage, deaf
from witan.deliberation.procedure import Limits
from witan.deliberation.thoughts import split_thoughts
from witan.errors import MissingExtra, MissingKey, ModelError, OverBudget, WitanError

__all__ = ["Caller", "Failed", "Made", "Notice"]

Notice = Callable[[str, Stage, int, str, float], None]
"""Told that an attempt came to nothing and another follows, or that it stalls and is made twice:
seat, stage, attempt, reason, seconds until the next."""

NO_MODEL_STATUSES = (401, 404, 405)
"""Statuses of a server that knows no such key, address or model; 403 may be a model's filter."""

BACKOFF_SECONDS = 0.5
"""The longest first wait: most hiccups of a provider are over within a second."""

LONGEST_BACKOFF_SECONDS = 20.0
"""The longest wait of all: a call of two minutes should get all of its attempts in."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call that brought a reply, and what it took.

    Parameters
    ----------
    text, reasoning
        What the model says, and the reasoning that stood in the same text.
    """

    reply: Reply
    spent: Spent
    text: str
    reasoning: str = ""

    @classmethod
    def of(cls, reply: Reply, spent: Spent) -> "Made":
        """Set the reasoning in a reply apart."""
        split = split_thoughts(reply.text)
        return cls(reply, spent, split.text, split.reasoning)


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that brought no reply, and what it took all the same."""

    error: WitanError
    spent: Spent

    @property
    def over_budget(self) -> bool:
        """Whether the ceiling on cost forbade the call."""
        return isinstance(self.error, OverBudget)

    @property
    def misconfigured(self) -> bool:
        """Whether the call reached no model, by its address, its name or its key."""
        if isinstance(self.error, ModelError):
            return not self.error.sent or self.error.status in NO_MODEL_STATUSES
        return isinstance(self.error, MissingKey | MissingExtra)

    @property
    def reason(self) -> str:
        """Why, in words that follow the name of the seat: "timed out after 120 s"."""
        match self.error:
            case ModelError(problem=problem):
                return problem
            case OverBudget(problem=problem):
                return f"not called: {problem}"
        return str(self.error)


class Caller:
    """Makes the calls of one session: in its providers' limits, in time, within the purse.

    Parameters
    ----------
    rng
        Drawn from once: how long a call waits between attempts then depends on its seat, its stage
        and the attempt alone, and not on which other call happens to fail first.
    withdraw
        Told of a seat, and a stage, whose text so far turns out to be reasoning.
    begun
        Awaited before every request, once its beginning was told; None: nothing is.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        throttles: Throttles,
        purse: Purse,
        clock: Clock,
        rng: np.random.Generator,
        notice: Notice,
        withdraw: Callable[[str, Stage], None],
        begun: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._limits = limits
        self._throttles = throttles
        self._purse = purse
        self._clock = clock
        self._seed = int(rng.integers(2**32))
        self._notice = notice
        self._begun = begun
        self._withdraw = withdraw
        self._errands: dict[str, list[Errand]] = {}

    async def call(self, member: Member, call: Call, hear: Hear = deaf) -> Made | Failed:
        """Make a call until it brings a reply or has used up its attempts, its time or its money.

        `hear` gets the text of every attempt from its beginning. Where an attempt was made twice it
        gets that of the request that spoke first, which need not be the one that finished first:
        the reply is what counts.
        """
        throttle = self._throttles[member.provider]
        model = " ".join((member.provider, member.source or member.name, member.url or ""))
        seconds = self._limits.call_seconds
        errand = Errand(
            member,
            call,
            hear,
            throttle,
            self._purse,
            self._clock,
            seconds,
            begun=self._begun,
            withdraw=partial(self._withdraw, member.name, call.stage),
            holds_back=self._throttles.closes_alone.get(model, member.may_reason),
        )
        self._errands.setdefault(member.name, []).append(errand)
        try:
            reply = await self._persist(errand)
        except WitanError as error:
            return Failed(error, errand.spent())
        if errand.closed_alone:
            self._throttles.closes_alone[model] = True
        elif call.schema is None:  # a ballot has a form, in which no model reasons
            self._throttles.closes_alone.setdefault(model, False)
        return Made.of(reply, errand.spent())

    def taken(self, seat: str) -> Spent:
        """What the calls of a seat took since this was last asked, ended or broken off."""
        errands = self._errands.pop(seat, [])
        nothing = Spent(NOTHING, cost_usd=0.0, calls=0)
        began = [errand.began for errand in errands if errand.began is not None]
        seconds = self._clock.seconds() - min(began) if began else 0.0
        spent = sum((errand.spent() for errand in errands), nothing)
        return Spent(spent.usage, spent.cost_usd, seconds, spent.calls)

    async def _persist(self, errand: Errand) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            tell = partial(self._notice, errand.member.name, errand.call.stage, attempt)
            try:
                return await Attempt(errand, self._limits.hedge_seconds, tell).reply()
            except ModelError as error:
                wait = self._wait(errand, attempt, error)
                reason = error.problem
            tell(reason, wait)
            await anyio.sleep(wait)
            errand.used += wait

    def _wait(self, errand: Errand, attempt: int, error: ModelError) -> float:
        """How long until the next attempt; the error, or what else is wrong, if there is none."""
        if not error.transient:
            raise error
        asked = 0.0 if error.retry_after is None else error.retry_after
        if asked > errand.left:
            problem = (
                f"{error.problem}; it asks to wait {asked:g} s, "
                f"longer than the {round(errand.left, 1):g} s left"
            )
            raise ModelError(
                error.model, problem, error.status, error.retry_after, transient=True
            ) from error
        if asked > 0:
            errand.throttle.pause(asked)
        wait = max(asked, self._backoff(errand, attempt))
        if attempt >= self._limits.attempts or wait >= errand.left:
            raise error
        return wait

    def _backoff(self, errand: Errand, attempt: int) -> float:
        """Draw a wait with full jitter: calls that fail together do not come back together."""
        doublings = min(attempt - 1, 10)  # what lies above the longest wait need not be computed
        longest = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**doublings)
        whose = f"{errand.call.stage} {errand.member.name}".encode()
        rng = np.random.default_rng([self._seed, attempt, *whose])
        return float(rng.uniform(0.0, longest))
