"""The context that every stage of a running session works with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from witan.core.gate import SafetyCheck
from witan.deliberation.calls import Caller
from witan.deliberation.events import Event, SessionOpened, SittingInVain
from witan.deliberation.jury import Authorship
from witan.deliberation.masking import list_names
from witan.deliberation.ports import Call, Clock, Member, Message, Stage
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.recorder import Recorder


def drop_fruitless_resumes(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop the events of resumes that came to nothing."""
    standing: list[Event] = []
    for event in events:
        if isinstance(event, SittingInVain):
            standing = [before for before in standing if before.seq <= event.since]
        standing.append(event)
    return tuple(standing)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The state of one session that all stages share.

    Parameters
    ----------
    members
        Who is asked for an answer; nobody where the answers are there.
    reviewers
        Who is asked for a ballot: the members, or a jury.
    earlier
        What an interrupted session had come to before this one takes it up.
    deadline
        When, on the clock's seconds, the session's time is up.
    reserve
        Of the session that is retried, what stands again if nobody who is asked anew is heard.
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
    def session(self) -> str:
        """Name of the session."""
        return self.opened.session

    @property
    def question(self) -> str:
        """The question of the session."""
        return self.opened.question

    @property
    def conversation(self) -> tuple[Message, ...]:
        """Messages before the question, oldest first."""
        return self.opened.conversation

    @property
    def files(self) -> Mapping[str, str]:
        """Name to text of what came with the question."""
        return self.opened.files

    @property
    def procedure(self) -> Procedure:
        """The procedure of the council."""
        return self.opened.procedure

    @property
    def seed(self) -> int:
        """The seed of everything that is drawn."""
        return self.opened.seed

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
        """Seconds that a stage beginning now may take."""
        return max(0.0, min(self.limits.stage_seconds, self.deadline - self.clock.seconds()))

    def out_of_time(self) -> str:
        """Reason of a stage that ends at its deadline."""
        if self.clock.seconds() >= self.deadline:
            return f"the session's {self.limits.session_seconds:g} s were up"
        return f"did not finish within the stage's {self.limits.stage_seconds:g} s"

    def call(self, stage: Stage, member: Member, messages: tuple[Message, ...]) -> Call:
        """A call of one member in its own options."""
        own = member.options.max_tokens
        most = self.limits.max_tokens if own is None else own
        return Call(stage, messages, most, member.options)
