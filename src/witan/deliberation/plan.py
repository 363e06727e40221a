"""What a session will ask for, and what it may cost, before any call is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from witan.core.separation import Separation
from witan.deliberation.ports import Price, Stage

__all__ = ["Plan", "PlanLine", "Written", "least_call_usd"]

Written: TypeAlias = Literal["none", "some", "all"]
"""How many of the answers are there that will be judged."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """The calls of one seat in one stage.

    Parameters
    ----------
    input_tokens
        At most, of all these calls together: estimated from the text, and from the token limits of
        the answers that it will hold.
    output_tokens
        At most, of all these calls together.
    worst_usd
        At most; None: the member's price is unknown.
    if_needed
        Made only when another call fails: the repair of a review, the next chairman.
    """

    seat: str
    stage: Stage
    calls: int
    input_tokens: int
    output_tokens: int
    worst_usd: float | None
    if_needed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session asks for when nothing fails.

    Parameters
    ----------
    repairs
        Further calls, should every review have to be asked for again; within `worst_usd`.
    worst_usd
        What everything costs at most, repairs and every chairman that may be asked included,
        retries not; None: some price is unknown.
    separation
        How far apart answers must be for these reviews to separate them; None: nothing is graded.
    """

    lines: tuple[PlanLine, ...]
    repairs: int
    worst_usd: float | None
    separation: Separation | None = None

    @property
    def calls(self) -> int:
        """Calls when nothing fails."""
        return sum(line.calls for line in self.lines if not line.if_needed)

    @property
    def input_tokens(self) -> int:
        """Tokens read, at most, when nothing fails."""
        return sum(line.input_tokens for line in self.lines if not line.if_needed)

    @property
    def output_tokens(self) -> int:
        """Tokens written, at most, when nothing fails."""
        return sum(line.output_tokens for line in self.lines if not line.if_needed)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The seats whose price is unknown."""
        return tuple(dict.fromkeys(line.seat for line in self.lines if line.worst_usd is None))


def least_call_usd(
    plan: Plan, prices: Mapping[str, Price | None], written: Written
) -> float | None:
    """What the least of the calls that can be made first may cost.

    Less, where its prompt is not known yet: then it is that of the reply alone.

    Parameters
    ----------
    prices
        Of seats by name.

    Returns
    -------
    US dollars. None: nothing is called, or what is has no price.
    """
    found = []
    for line in plan.lines:
        price = prices.get(line.seat)
        if line.if_needed or price is None or line.worst_usd is None:
            continue
        if line.stage == "answer" or written != "none":
            known = line.calls == 1 and (written == "all" or line.stage == "answer")
            alone = price.of(0, line.output_tokens // line.calls)
            found.append(line.worst_usd if known else alone)
    return min(found, default=None)
