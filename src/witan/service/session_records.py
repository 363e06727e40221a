"""Sessions as JSON: of a council, or imported as ballots."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Union

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.core.verdict import Verdict
from witan.deliberation.costs import Cost
from witan.deliberation.events import DELTAS, EVENTS, Event
from witan.deliberation.learning import apply_lessons
from witan.deliberation.record import dump_record, record_fields
from witan.deliberation.session import Session, State, Synthesis
from witan.errors import HistoryError, UnknownName, WitanError
from witan.service.ballots import BallotObject
from witan.service.catalogue import redact, redacts
from witan.service.json_output import OutcomeJson, Safety, outcome_fields, record_type, to_json
from witan.service.parameters import Doc, adapter_of
from witan.service.trust import session_trust, trust_line

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from witan.deliberation.record import ImportRedactor, SessionImport
    from witan.history import History, SessionSummary


AS_WRITTEN: Mapping[str, str] = MappingProxyType({})


def leave_unredacted(session_import: "SessionImport") -> "tuple[SessionImport, Mapping[str, str]]":
    """Return an import unredacted, for the operator of the history."""
    return session_import, AS_WRITTEN


@cache
def _import_record() -> Any:
    """The fields of an imported session in JSON."""
    from witan.deliberation.record import SessionImport
    from witan.deliberation.session import State

    optional = ("at", "category", "lengths", "closing", "models", "kept", "repaired", "took")
    own: dict[str, Any] = {
        "session": Annotated[str, Doc("Its name.")],
        "witan_imported": Annotated[int, Doc("The version of the record.")],
        "source": Annotated[str, Doc("File that it was read from.")],
        "status": Annotated[State, Doc("Its status.")],
        "text": Annotated[str | None, Doc("The final answer.")],
        "ballots": Annotated[tuple[BallotObject, ...], Doc("Ballots that count.")],
        "votes": Annotated[tuple[BallotObject, ...], Doc("People's ballots, if not counted.")],
        "outcome": Annotated[OutcomeJson | None, Doc("Outcome of the ballots.")],
        "not_counted": Annotated[str | None, Doc("Why the ballots do not count; null: they do.")],
        "under_way": Annotated[bool, Doc("Always false.")],
        "trust": Annotated[str | None, Doc("Trust line: voters, ties and what is missing.")],
        "record_problem": Annotated[str | None, Doc("Always null.")],
        "repaired": tuple[str, ...],
    }
    order = ("session", "simulated", "question", "answers", *own, *optional)
    return record_type("ImportRecord", SessionImport, dict.fromkeys(order), optional, **own)


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """A session imported as ballots; it has no record.

    Parameters
    ----------
    about
        Its line in a list of sessions.
    session_import
        The imported ballots and texts, and people's later votes.
    outcome
        Outcome of its ballots, or None.
    not_counted
        Why the ballots are not counted; None if they are.
    """

    about: "SessionSummary"
    session_import: "SessionImport"
    outcome: Outcome | None
    not_counted: str | None

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> Any:
        return handler.generate_schema(_import_record())

    def to_json(self) -> str:
        """Write the session as `witan export` does, with its outcome.

        Field names are those of a council's record. People's votes are separate if they are not
        counted.
        """
        from witan.files.exports import ballot_fields, imported_object

        session_import, about = self.session_import, self.about
        votes = votes_beside(session_import.ballots)
        counted_ballots = tuple(b for b in session_import.ballots if not votes or b.kind == "model")
        context = {
            "simulated": session_import.simulated,
            "source": about.source,
            "question": session_import.question,
            "status": about.status,
            "text": session_import.closing,
            "answers": dict(session_import.answers),
            "votes": [ballot_fields(ballot) for ballot in votes],
            "outcome": self.outcome,
            "not_counted": self.not_counted,
            "under_way": False,
            "trust": self.trust,
            "record_problem": None,
        }
        return to_json(
            {**imported_object(replace(session_import, ballots=counted_ballots)), **context}
        )

    @property
    def trust(self) -> str | None:
        """Trust line of the outcome, or None without one."""
        return None if self.outcome is None else trust_line(self.outcome)


def votes_beside(ballots: Sequence[Ballot]) -> list[Ballot]:
    """Return people's ballots, which do not count beside models' ballots."""
    if not any(ballot.kind == "model" and not ballot.abstained for ballot in ballots):
        return []
    return [ballot for ballot in ballots if ballot.kind == "human"]


def imported_outcomes(
    history: "History",
    session_import: "SessionImport",
    settings: Settings,
    *,
    without: Sequence[str] = (),
    explicit: Collection[str] = (),
    names: Mapping[str, str] = AS_WRITTEN,
) -> list[Outcome]:
    """Count one session's ballots; return at most one outcome.

    Noise, shared error and, if the rule needs it, the reliability of reviewers are learned from the
    other sessions. Unless `kind` is among the requested settings, people's ballots count only if no
    model voted, as in every session.

    `names`: name in the history to its name in the session, where they differ.
    """
    all_ballots = session_import.ballots
    reviewers = list(dict.fromkeys(ballot.reviewer for ballot in all_ballots))
    for name in without:
        if name not in reviewers:
            raise UnknownName("reviewer", name, reviewers)
    if "kind" not in explicit and votes_beside(all_ballots):
        settings = replace(settings, kind="model")
    ballots = [
        ballot
        for ballot in all_ballots
        if settings.kind in ("all", ballot.kind) and ballot.reviewer not in without
    ]
    needs_reliability = settings.rule == "weighted_borda" and settings.reliability is None
    if needs_reliability or "learn" in (settings.prior, settings.rho):
        name_by_label = {shown: name for name, shown in names.items()}
        models = [name_by_label.get(name, name) for name in reviewers] if needs_reliability else ()
        lessons = history.learn(models, exclude=session_import.session)
        graded = any(ballot.grades for ballot in ballots)
        settings = apply_lessons(settings, lessons, "grades" if graded else "ranks")
        reliability = {names.get(name, name): w for name, w in lessons.reliability.items()}
        settings = replace(settings, reliability=reliability or settings.reliability)
    return [
        replace(outcome, details={**outcome.details, "simulated": session_import.simulated})
        for outcome in tally_sessions(ballots, settings)
    ]


def imported_session(
    history: "History", session: str, redactor: "ImportRedactor" = leave_unredacted
) -> ImportedSession:
    """Read an imported session, even with ballots that cannot be counted."""
    about, (imported, names) = history.summary(session), redactor(history.export(session))
    try:
        outcomes = imported_outcomes(history, imported, Settings(), names=names)
    except HistoryError:
        raise
    except WitanError as error:
        return ImportedSession(about, imported, None, str(error))
    if not outcomes:
        return ImportedSession(about, imported, None, "no ballot ranks or grades anything")
    return ImportedSession(about, imported, outcomes[0], None)


KINDS = {name: kind for name, kind in EVENTS.items() if not issubclass(kind, DELTAS)}
"""Events that a record has: the event that ends a text holds all of it."""


@dataclass(frozen=True, slots=True)
class _EventSchema:
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
            for name, word in words.items():
                properties[name] = {**properties[name], "description": word}
            shape["required"] = ["event", *shape["required"]]
        return result


StreamedEvent = Annotated[Event, _EventSchema(EVENTS)]
"""Any event, as a stream publishes it."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A council's session, complete or partial."""

    witan_session: Annotated[int, Doc("The version of the record.")]
    witan: Annotated[str, Doc("Version of Witan that opened the session.")]
    session: Annotated[str, Doc("Its name.")]
    simulated: Annotated[bool, Doc("Whether a seat plays a script.")]
    question: Annotated[str, Doc("The question.")]
    status: Annotated[State | None, Doc("Its status; null: running.")]
    missing: Annotated[tuple[str, ...], Doc("A sentence for each missing thing.")]
    notes: Annotated[
        tuple[str, ...], Doc("Notes on how the council was seated, and on odd replies.")
    ]
    text: Annotated[str | None, Doc("The final answer.")]
    answers: Annotated[Mapping[str, str], Doc("Answer by seat.")]
    unanswered: Annotated[Mapping[str, str], Doc("Reason for a missing answer, by seat.")]
    safety: Annotated[Safety, Doc("The conclusion of the safety gate.")]
    ballots: Annotated[tuple[BallotObject, ...], Doc("One per reviewer, abstentions included.")]
    outcome: Annotated[
        OutcomeJson | None, Doc("Outcome of the ballots; null: fewer than the quorum.")
    ]
    synthesis: Annotated[Synthesis | None, Doc("The final answer and its author.")]
    cost: Annotated[Cost, Doc("Its cost.")]
    seconds: Annotated[float, Doc("Its duration in seconds.")]
    events: Annotated[
        tuple[Annotated[Event, _EventSchema(KINDS)], ...],
        Doc("All events, in order."),
    ]
    under_way: Annotated[bool, Doc("Whether it is running.")]
    trust: Annotated[
        str | None, Doc("Trust line: voters, ties, cost and what is missing; null: running.")
    ]
    record_problem: Annotated[str | None, Doc("Why the history does not have it; null: it does.")]
    verdict: Annotated[
        Verdict | None,
        Doc("The jury's decision on given texts; null: no texts, or too few ballots."),
    ] = None
    rankings: Annotated[
        Mapping[str, tuple[tuple[str, ...], ...]],
        Doc("Rankings before and now, if another jury judged a session's answers."),
    ] = field(default_factory=dict)
    votes: Annotated[tuple[BallotObject, ...], Doc("People's votes on it.")] = ()
    children: Annotated[Mapping[str, str], Doc("Sessions derived from it, and how.")] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class CouncilSession:
    """A council's session, with facts beside its events.

    As JSON it has the fields of `SessionRecord`.

    Parameters
    ----------
    votes
        Ballots of people.
    children
        Sessions derived from it, and how.
    under_way
        Whether it is running.
    record_problem
        Why it is not in the history; None if it is.
    """

    session: Session
    votes: tuple[Ballot, ...] = ()
    children: Mapping[str, str] = field(default_factory=dict)
    under_way: bool = False
    record_problem: str | None = None

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        # Cached: otherwise every route that returns a session would derive it again.
        return adapter_of(SessionRecord).core_schema

    def to_json(self) -> str:
        """Write the record as in files, with further facts."""
        session, outcome = self.session, self.session.outcome
        record = record_fields(session)
        record["outcome"] = None if outcome is None else outcome_fields(outcome)
        if self.votes:
            from witan.files.exports import ballot_fields

            record["votes"] = [ballot_fields(ballot) for ballot in self.votes]
        if self.children:
            record["children"] = self.children
        if self.under_way:  # in a record, a running session looks like an interrupted one
            record |= {"status": None, "missing": ()}
        ballots_of_people = {
            "under_way": self.under_way,
            "trust": None if self.under_way else session_trust(session),
            "record_problem": self.record_problem,
        }
        return dump_record({**record, **ballots_of_people})


@redacts(CouncilSession)
def redact_council_session(result: CouncilSession) -> CouncilSession:
    """Redact the session by its seats."""
    return replace(result, session=redact(result.session))
