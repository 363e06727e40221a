"""A session while it runs: what every stage works with."""

from collections.abc import Mapping
from dataclasses import dataclass

from witan.core.gate import SafetyCheck
from witan.deliberation.calls import Caller
from witan.deliberation.events import Event
from witan.deliberation.ports import Call, Clock, Member, Message, Stage
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.recorder import Recorder

__all__ = ["Sitting"]


@dataclass(frozen=True, slots=True)
class Sitting:
    """One question before one council.

    Parameters
    ----------
    earlier
        What an interrupted session had come to before this one takes it up.
    deadline
        When, on the clock's seconds, the session's time is up.
    """

    session: str
    question: str
    conversation: tuple[Message, ...]
    files: Mapping[str, str]
    members: tuple[Member, ...]
    chairmen: tuple[Member, ...]
    procedure: Procedure
    seed: int
    recorder: Recorder
    caller: Caller
    check: SafetyCheck
    clock: Clock
    deadline: float
    earlier: tuple[Event, ...] = ()

    @property
    def limits(self) -> Limits:
        """Time, attempts and money."""
        return self.procedure.limits

    @property
    def names(self) -> tuple[str, ...]:
        """What an answer may not be recognised by: the names of seats and of their models."""
        models = [_model_in(member.source) for member in self.members if not member.simulated]
        return tuple(dict.fromkeys(n for n in (*models, *(m.name for m in self.members)) if n))

    def seconds_left(self) -> float:
        """How long a stage that begins now may take."""
        return max(0.0, min(self.limits.stage_seconds, self.deadline - self.clock.seconds()))

    def out_of_time(self) -> str:
        """Why a stage that ends now did not wait any longer."""
        if self.clock.seconds() >= self.deadline:
            return f"the session's {self.limits.session_seconds:g} s were up"
        return f"did not finish within the stage's {self.limits.stage_seconds:g} s"

    def call(self, stage: Stage, member: Member, messages: tuple[Message, ...]) -> Call:
        """A call of one member in its own options."""
        own = member.options.max_tokens
        most = self.limits.max_tokens if own is None else own
        return Call(stage, messages, most, member.options)


def _model_in(source: str) -> str:
    """What a seat calls its model: behind the ``#`` of a server, or behind its provider."""
    server, _, model = source.rpartition("#")
    if "://" in server:
        return model
    provider, _, model = source.partition(":")
    return "" if provider in ("cmd", "script") else model
