"""How long replies are expected to be: as earlier ones were, else as published ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from witan.deliberation.ports import Stage

__all__ = ["TYPICAL", "TYPICAL_TOKENS", "Lengths"]

TYPICAL_TOKENS: Mapping[Stage, int] = MappingProxyType(
    {"answer": 1_000, "review": 300, "repair": 300, "synthesis": 1_000}
)
"""Tokens of a reply, a review's for each answer that it judges; sources in docs/deliberation.md."""

BYTES_A_TOKEN = 4
"""Of prose and code alike, in English; other languages have fewer."""

NOTHING: Mapping[tuple[str, Stage], float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of earlier replies.

    Parameters
    ----------
    means
        Model, as its seat is written, and stage → mean tokens of a reply; the model ``""`` stands
        for all models together.
    sessions
        How many sessions they are read from.
    """

    means: Mapping[tuple[str, Stage], float] = field(default_factory=lambda: NOTHING)
    sessions: int = 0

    def tokens(self, model: str, stage: Stage, judged: int) -> float:
        """Tokens of one reply: of this model, else of all models, else as published.

        Parameters
        ----------
        judged
            How many answers a review judges.
        """
        for name in (model, ""):
            if (name, stage) in self.means:
                return self.means[name, stage]
        per_answer = judged if stage in ("review", "repair") else 1
        return float(TYPICAL_TOKENS[stage] * max(per_answer, 1))


TYPICAL = Lengths()
