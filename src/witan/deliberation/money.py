"""Money and calls of a session: reservations, settlements and checks of bills."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import fsum, inf
from typing import NamedTuple, Self, TypeVar

import anyio

from witan.core.display import dollars
from witan.deliberation.ports import Call, Expense, Member, Price, Reply, Usage
from witan.errors import OverBudget, WitanError

ROUNDING_USD = 1e-9
"""Slack for amounts that binary floats cannot represent: 0.1 + 0.2 stays under a ceiling of 0.3."""

NO_USAGE = Usage(0, 0)
UNKNOWN_USAGE = Usage()


class Amount(NamedTuple):
    """US dollars and calls, spent or reserved."""

    usd: float
    calls: float

    def plus(self, other: "Amount") -> "Amount":
        """Add another amount."""
        return Amount(self.usd + other.usd, self.calls + other.calls)

    def at_least(self, other: "Amount") -> "Amount":
        """Return the larger of the dollars, and of the calls."""
        return Amount(max(self.usd, other.usd), max(self.calls, other.calls))


NOTHING = Amount(0.0, 0.0)


class Purse:
    """Spending of one session, reserved and settled under its ceiling.

    `max_usd`: never exceeded if no call costs more than its worst case; None for no ceiling.
    `spent_usd`: money spent before: a resumed session keeps its ceiling.
    `max_calls`: never exceeded; None for no ceiling.
    `n_calls`: calls made before.
    `disproved_prices`: names of members whose price their servers' bills contradict.
    """

    def __init__(
        self,
        max_usd: float | None,
        spent_usd: float = 0.0,
        disproved_prices: Iterable[str] = (),
        *,
        max_calls: int | None = None,
        n_calls: int = 0,
    ) -> None:
        self._max_calls = max_calls
        self._n_calls = n_calls
        self._disproved_prices = set(disproved_prices)
        self._max_usd = max_usd
        self._known_usd = spent_usd
        self._reserved_usd = 0.0

    def reserve(self, member: Member, call: Call) -> "Reservation":
        """Set aside the maximum cost of a call.

        Raises `OverBudget` if that could exceed a ceiling, or there is one of money and the price
        is unknown.
        """
        if self._max_calls is not None and self._n_calls >= self._max_calls:
            problem = f"the ceiling of {count_calls(self._max_calls)} is reached"
            raise OverBudget(member.name, problem)
        worst = None if member.name in self._disproved_prices else worst_usd(member, lambda: call)
        if self._max_usd is not None:
            self._check(member.name, worst, self._max_usd)
        self._n_calls += 1
        if worst is not None:
            self._reserved_usd += worst
        return Reservation(self, member, worst)

    def price(self, member: Member) -> Price | None:
        """Return a member's price unless its server's bills contradict it."""
        return None if member.name in self._disproved_prices else member.price

    def doubt_price(self, member: Member) -> None:
        """Count a member's price as unknown from now on."""
        self._disproved_prices.add(member.name)

    def _check(self, name: str, worst: float | None, ceiling: float) -> None:
        if worst is None:
            problem = f"without a known price the ceiling of {dollars(ceiling)} cannot be enforced"
            if name in self._disproved_prices:
                problem = f"its server's bills contradict its price: {problem}"
            raise OverBudget(name, problem)
        committed = self._known_usd + self._reserved_usd
        if not committed + worst <= ceiling + ROUNDING_USD:
            cost, most = f"it could cost {dollars(worst, up=True)}", dollars(ceiling)
            if not committed:
                raise OverBudget(name, f"{cost}, more than the ceiling of {most}")
            part = f"{dollars(committed, up=True)} of the ceiling of {most}"
            raise OverBudget(name, f"{cost}, and {part} is spent or set aside")

    def close_reservation(self, worst_usd: float | None, cost: float | None) -> None:
        """Close a reservation; an unknown cost stays reserved."""
        if cost is None:
            return
        self._known_usd += cost
        if worst_usd is not None:
            self._reserved_usd -= worst_usd


class Allowance:
    """Money and calls of a batch: a session begins once affordable."""

    def __init__(self, max_usd: float | None, max_calls: int | None = None) -> None:
        self.name = ""
        """Under which processes on other machines share it."""
        self._max_usd = inf if max_usd is None else max_usd
        self._max_calls = inf if max_calls is None else max_calls
        self.spent, self.calls = NOTHING
        self.costs: dict[str, Amount] = {}
        """The cost of each session so far, earlier runs included."""
        self._reserved: dict[str, Amount] = {}
        self._changed = anyio.Event()

    async def reserve(self, session: str, most: Amount, least_calls: int) -> float | None:
        """Wait until a session is affordable; return its calls.

        None if it never is.

        The last session gets the remaining calls, if they are at least `least_calls`.
        """
        while True:
            reserved = [*self._reserved.values()]
            usd = self.spent + fsum(each.usd for each in reserved) + most.usd
            left = self._max_calls - self.calls - sum(each.calls for each in reserved)
            calls = most.calls
            if not reserved and left < calls:
                calls = max(left, least_calls)
            if usd <= self._max_usd and calls <= left:
                self._reserved[session] = Amount(most.usd, calls)
                return calls
            if not reserved:
                return None
            await self._changed.wait()

    async def settle(self, session: str, cost: Amount) -> None:
        """Replace a session's reserve by its cost so far.

        A session counts once, however often it is settled.
        """
        self._reserved.pop(session, None)
        before = self.costs.get(session, NOTHING)
        self.costs[session] = after = before.at_least(cost)
        self.spent += after.usd - before.usd
        self.calls += after.calls - before.calls
        self._changed.set()
        self._changed = anyio.Event()


class Reservation:
    """Money reserved for one call; forfeited unless settled.

    `worst_usd`: how much; None if the price is unknown.
    """

    __slots__ = ("_cost_usd", "_has_ended", "_member", "_purse", "_usage", "_worst_usd")

    def __init__(self, purse: Purse, member: Member, worst_usd: float | None) -> None:
        self._purse = purse
        self._member = member
        self._worst_usd = worst_usd
        self._has_ended = False
        self._usage = UNKNOWN_USAGE
        self._cost_usd: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if not self._has_ended:
            self.forfeit()

    def expense(self, seconds: float = 0.0) -> Expense:
        """Return the call's tokens and money, unknown until its end, and time."""
        return Expense(self._usage, self._cost_usd, seconds)

    def settle(self, reply: Reply) -> float | None:
        """Settle at the billed cost, else at the price; return the cost.

        A bill for a call expected to be free, or one that is ignored, contradicts the price.
        """
        cost = reply.cost_usd
        if reply.bill_ignored or (cost and self._worst_usd == 0.0):
            self._purse.doubt_price(self._member)
        price = self._purse.price(self._member)
        input_tokens, output_tokens = reply.usage.input_tokens, reply.usage.output_tokens
        if (
            cost is None
            and price is not None
            and input_tokens is not None
            and output_tokens is not None
        ):
            cost = price.of(input_tokens, output_tokens)
        self._end(reply.usage, self._cost_if_free if cost is None else cost)
        return self._cost_usd

    def release(self) -> None:
        """Release the money: the provider refused the call before working."""
        self._end(NO_USAGE, 0.0)

    def forfeit(self) -> None:
        """Count the cost as unknown: an aborted call may be billed."""
        self._end(UNKNOWN_USAGE, self._cost_if_free)

    @property
    def _cost_if_free(self) -> float | None:
        is_free = self._worst_usd == 0.0 and self._purse.price(self._member) is not None
        return 0.0 if is_free else None

    def _end(self, usage: Usage, cost: float | None) -> None:
        assert not self._has_ended  # noqa: S101 - a call ends once
        self._has_ended, self._usage, self._cost_usd = True, usage, cost
        self._purse.close_reservation(self._worst_usd, cost)


def count_calls(n: int) -> str:
    """Write a number of calls."""
    return f"{n:,} call" if n == 1 else f"{n:,} calls"


def is_free(price: Price | None) -> bool:
    """True if tokens cost nothing; an unknown price is not free."""
    return price is not None and price.input_usd == price.output_usd == 0


def worst_usd(member: Member, write: Callable[[], Call]) -> float | None:
    """Return the maximum cost of one attempt, if its price is known.

    The call is written only if its length matters, and then dropped, since it may wait long for a
    slot. A call that cannot be written is not made.
    """
    if member.price is None:
        return None
    if is_free(member.price):
        return 0.0
    try:
        call = write()
    except WitanError:  # the seat fails with the same error, with or without a price
        return 0.0
    return member.price.of(call.most_input_tokens(), call.max_tokens)


def sum_known(costs: Sequence[float | None]) -> float | None:
    """Sum the costs; return None if one is unknown."""
    known_costs = [cost for cost in costs if cost is not None]
    return fsum(known_costs) if len(known_costs) == len(costs) else None


_Number = TypeVar("_Number", int, float)


def least_known(bounds: Iterable[_Number | None]) -> _Number | None:
    """Return the lowest bound; None if there is none."""
    return min((each for each in bounds if each is not None), default=None)


HIDDEN_TOKENS = 1_000_000
"""Tokens that a server may add by itself: instructions, reasoning, a search."""

DEAREST_USD = 1_000.0
"""US dollars per million tokens if the price is unknown; no provider charges as much."""

SURCHARGE = 10.0
"""Factor by which a call may exceed its price: prices change, and some tokens cost more."""

FEES_USD = 1.0
"""US dollars that a call may cost besides its tokens: a search, an image, a machine's minute."""


def read_cost(cost: object) -> tuple[float | None, tuple[str, ...]]:
    """Read a server's bill in dollars, with a reason if impossible."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None, ()
    try:
        usd = float(cost)
    except OverflowError:
        usd = inf
    if 0 <= usd < inf:
        return usd, ()
    return None, (f"its server billed an invalid amount ({usd:g} dollars); the bill is ignored",)


def read_tokens(count: object, direction: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a server's token count, with a reason if below 0."""
    if type(count) is not int:
        return None, ()
    if count >= 0:
        return count, ()
    return None, (f"its server reported fewer than 0 tokens {direction}; the count is ignored",)


def check_bill(member: Member, call: Call, reply: Reply) -> Reply:
    """Mark impossible tokens and dollars of a reply as unknown."""
    usage, cost = reply.usage, reply.cost_usd
    if not cost and max(usage.input_tokens or 0, usage.output_tokens or 0) <= HIDDEN_TOKENS:
        return reply  # nearly always
    input_tokens, notes = _check_count(reply.usage.input_tokens, call.most_input_tokens, "read")
    output_tokens, more = _check_count(
        reply.usage.output_tokens,
        lambda: max(call.max_tokens, len((reply.text or "").encode(errors="replace"))),
        "written",
    )
    cost, bill_is_ignored = reply.cost_usd, reply.bill_ignored
    if cost and cost > (most_usd := _most_usd(member, call, input_tokens, output_tokens)):
        billed, most = dollars(cost), dollars(most_usd)
        problem = f"its server billed {billed}, although this call cannot cost {most}"
        cost, bill_is_ignored, more = None, True, (*more, f"{problem}; the bill is ignored")
    elif cost and is_free(member.price):
        more = (*more, "its server charges for calls listed as free; its price is unknown")
    if not (notes or more):
        return reply
    notes = (*reply.notes, *notes, *more)
    usage = Usage(input_tokens, output_tokens)
    return replace(reply, usage=usage, cost_usd=cost, bill_ignored=bill_is_ignored, notes=notes)


def _check_count(
    count: int | None, limit: Callable[[], int], direction: str
) -> tuple[int | None, tuple[str, ...]]:
    # The exact bound needs an encoding of all texts, and few counts come near to it.
    if count is None or count <= HIDDEN_TOKENS or count <= limit() + HIDDEN_TOKENS:
        return count, ()
    number = f"{count:,}" if count < 10**15 else "10**15 or more"
    problem = f"its server reported {number} tokens {direction}, more than the call allows"
    return None, (f"{problem}; the count is ignored",)


def _most_usd(
    member: Member, call: Call, input_tokens: int | None, output_tokens: int | None
) -> float:
    """Return a call's maximum cost, at the highest price if unknown.

    A seat usually counts as free by its address, which does not limit the bill.
    """
    most_read = max(call.most_input_tokens(), input_tokens or 0)
    most_written = max(call.max_tokens, output_tokens or 0)
    if member.price is None or is_free(member.price):
        return FEES_USD + (most_read + most_written) * DEAREST_USD / 1e6
    return FEES_USD + SURCHARGE * member.price.of(most_read, most_written)
