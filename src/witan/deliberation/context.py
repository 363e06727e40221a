"""The shared context of a running session's stages."""

from collections.abc import Iterable
from dataclasses import dataclass

from witan.core.gate import SafetyCheck
from witan.deliberation.calls import Caller
from witan.deliberation.events import Event, FruitlessResume, SessionOpened
from witan.deliberation.jury import Authorship
from witan.deliberation.masking import list_names
from witan.deliberation.ports import Call, Clock, Member, Message, Stage
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.recorder import Recorder

(
    ANSWER_FENCES,
    DEBATE_SHEETS,
    REVIEW_SHEETS,
    MIRRORED_SHEETS,
    SYNTHESIS_LABELS,
    RETRY_WAITS,
) = range(6)
"""Numbers of a session's random draws; each is seeded by the session's seed and its number."""


def drop_fruitless_resumes(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop the events of failed resumes."""
    standing: list[Event] = []
    for event in events:
        if isinstance(event, FruitlessResume):
            standing = [before for before in standing if before.seq <= event.since]
        standing.append(event)
    return tuple(standing)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """State of one session, shared by all stages.

    Parameters
    ----------
    members
        Members to be called for answers; none where answers are stored.
    reviewers
        Members or jurors to be called for ballots.
    earlier
        Events of the interrupted session that is resumed.
    deadline
        End of the session's time, in the clock's seconds.
    reserve
        Events of the parent that are restored if every retried seat fails again.
    final
        The number of the last event that stands as it was there; a failure among those is final.
    """

    opened: SessionOpened
    members: tuple[Member, ...]
    reviewers: tuple[Member, ...]
    chairmen: tuple[Member, ...]
    authorship: Authorship
    recorder: Recorder
    caller: Caller
    check: SafetyCheck
    clock: Clock
    deadline: float
    earlier: tuple[Event, ...] = ()
    reserve: tuple[Event, ...] = ()
    final: int = 0

    @property
    def procedure(self) -> Procedure:
        """The procedure of the council."""
        return self.opened.procedure

    @property
    def limits(self) -> Limits:
        """Time, attempts and money."""
        return self.procedure.limits

    @property
    def names(self) -> tuple[str, ...]:
        """Names of seats and models, to be masked in answers."""
        return list_names((*self.opened.seats, *self.reviewers))

    @property
    def retries(self) -> bool:
        """True if this session retries another: then every seat is awaited."""
        return self.opened.relation == "retried"

    def seconds_left(self) -> float:
        """Seconds for a stage beginning now."""
        return max(0.0, min(self.limits.stage_seconds, self.deadline - self.clock.seconds()))

    def out_of_time(self) -> str:
        """Reason of a stage ended by its deadline."""
        if self.clock.seconds() >= self.deadline:
            return f"the session's {self.limits.session_seconds:g} s were up"
        return f"did not finish within the stage's {self.limits.stage_seconds:g} s"

    def call(self, stage: Stage, member: Member, messages: tuple[Message, ...]) -> Call:
        """A call of one member in its own options."""
        own = member.options.max_tokens
        most = self.limits.max_tokens if own is None else own
        return Call(stage, messages, most, member.options)
