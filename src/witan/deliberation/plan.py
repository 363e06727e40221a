"""What a session will ask for, and what it may cost, before any call is made."""

from dataclasses import dataclass

from witan.deliberation.ports import Stage

__all__ = ["Plan", "PlanLine"]


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
    """

    lines: tuple[PlanLine, ...]
    repairs: int
    worst_usd: float | None

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
