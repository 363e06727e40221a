"""Sessions that councils held, as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Union

from witan.core.ballot import Ballot
from witan.deliberation.events import EVENTS, AnswerDelta, Event, SynthesisDelta
from witan.deliberation.record import dump_record, record_fields
from witan.deliberation.session import Cost, Session, State, Synthesis
from witan.files.exports import ballot_fields
from witan.service.ballots import BallotObject
from witan.service.catalogue import redact, redacts
from witan.service.json_output import OutcomeJson, Safety, outcome_fields
from witan.service.parameters import adapter_of
from witan.service.trust import session_trust

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler


DELTAS = (AnswerDelta, SynthesisDelta)

KINDS = {name: kind for name, kind in EVENTS.items() if not issubclass(kind, DELTAS)}
"""Events that a record has: the event that ends a text holds all of it."""


@dataclass(frozen=True, slots=True)
class _EventSchema:
    """The schema of events: one of these kinds, which the field ``event`` names."""

    kinds: Mapping[str, type[Event]]

    def __get_pydantic_core_schema__(self, _: Any, handler: "GetCoreSchemaHandler") -> Any:
        return handler.generate_schema(Union[tuple(self.kinds.values())])  # noqa: UP007

    def __get_pydantic_json_schema__(self, schema: Any, handler: "GetJsonSchemaHandler") -> Any:
        result = handler(schema)
        for ref, kind in zip(result["anyOf"], self.kinds, strict=True):
            shape = handler.resolve_ref_schema(ref)
            properties = shape["properties"]
            properties.pop("provisional", None)
            words = {"event": "What happened.", "seq": "Its number.", "at": "When, in UTC."}
            properties["event"] = {"const": kind, "type": "string"}
            for name, said in words.items():
                properties[name] = {**properties[name], "description": said}
            shape["required"] = ["event", *shape["required"]]
        return result


StreamedEvent = Annotated[Event, _EventSchema(EVENTS)]
"""Any event, as a stream tells it."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session that a council held, whole or as far as it came.

    Parameters
    ----------
    witan_session
        The version of the record.
    witan
        The version of Witan that opened the session.
    session
        Its name.
    simulated
        Some seat plays a script.
    question
        What was asked.
    status
        Its status; null: under way.
    missing
        A sentence for each missing thing.
    notes
        How the council was seated, and what was odd about replies.
    text
        The final answer; null: there is none.
    answers
        Seat to its answer.
    unanswered
        Seat to why it has no answer.
    safety
        What the safety gate concluded.
    ballots
        One for each reviewer, abstentions included.
    outcome
        What the ballots come to; null: fewer than the quorum.
    synthesis
        Who wrote the final answer; null: there is none.
    cost
        What it cost.
    seconds
        How long it took.
    events
        Everything that happened, in order.
    rankings
        The ranking before, and now, of a session that another jury judged.
    votes
        What people voted on it.
    children
        Sessions that came of it, and how.
    under_way
        It goes on.
    trust
        Who voted, what is tied, what it cost and what is missing; null: it is under way.
    record_problem
        Why it is not in the history; null: it is.
    """

    witan_session: int
    witan: str
    session: str
    simulated: bool
    question: str
    status: State | None
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    text: str | None
    answers: Mapping[str, str]
    unanswered: Mapping[str, str]
    safety: Safety
    ballots: tuple[BallotObject, ...]
    outcome: OutcomeJson | None
    synthesis: Synthesis | None
    cost: Cost
    seconds: float
    events: tuple[Annotated[Event, _EventSchema(KINDS)], ...]
    under_way: bool
    trust: str | None
    record_problem: str | None
    rankings: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    votes: tuple[BallotObject, ...] = ()
    children: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CouncilSession:
    """A session that a council held, with what is known beside its events.

    As JSON it has the fields of `SessionRecord`.

    Parameters
    ----------
    votes
        Ballots of people.
    children
        Sessions that came of it, and how.
    under_way
        It goes on.
    record_problem
        Why it is not in the history; None: it is.
    """

    session: Session
    votes: tuple[Ballot, ...] = ()
    children: Mapping[str, str] = field(default_factory=dict)
    under_way: bool = False
    record_problem: str | None = None

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        # Made once: routes that return a session would each derive the whole of it anew.
        return adapter_of(SessionRecord).core_schema

    def to_json(self) -> str:
        """Write its record, as files have it, and what is known beside it."""
        session, outcome = self.session, self.session.outcome
        record = record_fields(session)
        record["outcome"] = None if outcome is None else outcome_fields(outcome)
        if self.votes:
            record["votes"] = [ballot_fields(ballot) for ballot in self.votes]
        if self.children:
            record["children"] = self.children
        if self.under_way:  # what is broken off looks the same in a record; this is not
            record |= {"status": None, "missing": ()}
        beside = {
            "under_way": self.under_way,
            "trust": None if self.under_way else session_trust(session),
            "record_problem": self.record_problem,
        }
        return dump_record({**record, **beside})


@redacts(CouncilSession)
def redact_council_session(result: CouncilSession) -> CouncilSession:
    """Redact the session by what its seats hide."""
    return replace(result, session=redact(result.session))
