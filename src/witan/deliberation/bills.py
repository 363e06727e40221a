"""What a server says a call took, as far as it is possible."""

from dataclasses import replace
from math import inf

from witan.deliberation.money import is_free, most_input_tokens
from witan.deliberation.ports import Call, Member, Reply, Usage

__all__ = ["check_bill", "read_cost", "read_tokens"]

HIDDEN_TOKENS = 1_000_000
"""What a server may read or write of its own accord: its instructions, its reasoning, a search."""

DEAREST_USD = 1_000.0
"""What a million tokens cost at most where their price is unknown; no provider asks as much."""

SURCHARGE = 10.0
"""How many times its price a call may cost: prices change, and some tokens cost more."""

FEES_USD = 1.0
"""What a call may cost besides its tokens: a search, an image, a minute of a machine."""


def read_cost(cost: object) -> tuple[float | None, tuple[str, ...]]:
    """Read the US dollars that a server bills; None, and why, where they are no amount."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None, ()
    try:
        usd = float(cost)
    except OverflowError:
        usd = inf
    if 0 <= usd < inf:
        return usd, ()
    return None, (f"its server billed {usd:g} dollars, which is no amount; the bill is ignored",)


def read_tokens(count: object, what: str) -> tuple[int | None, tuple[str, ...]]:
    """Read a number of tokens that a server counts; None, and why, where it is below 0."""
    if type(count) is not int:
        return None, ()
    if count >= 0:
        return count, ()
    return None, (f"its server counted fewer than 0 tokens {what}; the count is ignored",)


def check_bill(member: Member, call: Call, reply: Reply) -> Reply:
    """Mark tokens and dollars that this call cannot have taken as unknown, and note that."""
    most_read = most_input_tokens(call.messages, call.schema) + HIDDEN_TOKENS
    most_written = (
        max(call.max_tokens, len((reply.text or "").encode(errors="replace"))) + HIDDEN_TOKENS
    )
    read, notes = _bounded(reply.usage.input_tokens, most_read, "read")
    written, more = _bounded(reply.usage.output_tokens, most_written, "written")
    cost, ignored = reply.cost_usd, reply.bill_ignored
    most_usd = _most_usd(member, call, read, written)
    if cost is not None and cost > most_usd:
        problem = f"its server billed ${cost:.4g}, and this call cannot cost ${most_usd:,.2f}"
        cost, ignored, more = None, True, (*more, f"{problem}; the bill is ignored")
    elif cost and is_free(member.price):
        more = (*more, "its server bills calls that were to cost nothing; its price is unknown")
    if not (notes or more):
        return reply
    notes = (*reply.notes, *notes, *more)
    usage = Usage(read, written)
    return replace(reply, usage=usage, cost_usd=cost, bill_ignored=ignored, notes=notes)


def _bounded(count: int | None, most: int, what: str) -> tuple[int | None, tuple[str, ...]]:
    if count is None or count <= most:
        return count, ()
    shown = f"{count:,}" if count < 10**15 else "10**15 or more"
    problem = f"its server counted {shown} tokens {what}, more than this call can have"
    return None, (f"{problem}; the count is ignored",)


def _most_usd(member: Member, call: Call, read: int | None, written: int | None) -> float:
    """The most that a call may cost, at a price that is known or at the dearest there is.

    That a seat is free is mostly a guess from its address, so it bounds no bill.
    """
    most_read = max(most_input_tokens(call.messages, call.schema), read or 0)
    most_written = max(call.max_tokens, written or 0)
    if member.price is None or is_free(member.price):
        return FEES_USD + (most_read + most_written) * DEAREST_USD / 1e6
    return FEES_USD + SURCHARGE * member.price.of(most_read, most_written)
