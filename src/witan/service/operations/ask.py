"""Ask, judge, resume, retry and rejudge: requests and operations."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from witan.deliberation.ports import MOST_TEXTS, REFERENCE
from witan.errors import InvalidParameter
from witan.service.catalogue import operation
from witan.service.parameters import Constraint, Doc, OneOrSeveral, Parameters
from witan.service.settings import CouncilSettings, JudgingSettings, JurySettings
from witan.service.stored_sessions import NUL_FREE, ClientService, Name, SessionName, Text

if TYPE_CHECKING:
    from witan.service.sessions.running import RunningSession


QUESTION, SEATS, SESSION = "Question", "Seats", "Session"

Files = Annotated[
    Mapping[Name, Text],
    Doc(
        "Text files that come with the question, by name.",
        QUESTION,
        label="Text files",
        brief="Text files by name",
    ),
]
Category = Annotated[
    Name | None, Doc("Category of the question, for searching.", QUESTION, brief="For searching")
]
SETTINGS = Doc("Override configured settings.", brief="Settings")
Options = Annotated[CouncilSettings, SETTINGS]
MaxCost = Annotated[
    float | None,
    Constraint(ge=0),
    Doc(
        "Cost ceiling of the remaining calls in US dollars; none is made that could exceed it.",
        "Time and money",
        option="max-cost",
        brief="Ceiling for the remaining calls",
    ),
]
MaxCalls = Annotated[int | None, Constraint(ge=0), Doc("Maximum further calls.", "Time and money")]

Texts = Annotated[
    Mapping[Name, Text],
    Constraint(min_length=1, max_length=MOST_TEXTS),
    Doc("Texts to judge, by name.", QUESTION, label="Texts", brief="By name"),
]


@dataclass(frozen=True, slots=True)
class Turn(Parameters):
    """A message before the question."""

    role: Annotated[Literal["system", "user", "assistant"], Doc("Role of the speaker.")]
    content: Annotated[Text, Doc("The text.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class JuryRequest(Parameters):
    """Seats of a jury, and its settings."""

    members: ClassVar[tuple[str, ...]] = ()
    chairman: ClassVar[tuple[str, ...]] = ()

    profile: Annotated[
        str,
        Constraint(max_length=200),
        NUL_FREE,
        Doc(
            "Profile from the configuration to use.",
            SEATS,
            "NAME",
            label="Council",
            brief="Council that `profiles` lists",
        ),
    ] = ""
    jury: Annotated[
        tuple[Name, ...],
        Constraint(max_length=64),
        Doc(
            "Juror, who reviews instead of the members; at least two.",
            SEATS,
            "SEAT",
            brief="Review instead of the members",
        ),
    ] = ()
    seed: Annotated[
        int | None,
        Constraint(ge=0, lt=2**53),
        Doc("Random seed for sheets and labels.", "Deliberation", brief=""),
    ] = None
    options: Annotated[JudgingSettings, SETTINGS] = field(default_factory=JudgingSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilRequest(JuryRequest):
    """Seats of a council, and its settings."""

    members: Annotated[  # type: ignore[misc]
        tuple[Name, ...],
        Constraint(max_length=64),
        Doc(
            "Member, such as openai:gpt-5; at least two. A server accepts only its own names.",
            SEATS,
            "SEAT",
            option="member",
            brief="Such as openai:gpt-5",
        ),
    ] = ()
    chairman: Annotated[  # type: ignore[misc]
        tuple[Name, ...],
        Constraint(max_length=64),
        OneOrSeveral(),
        Doc(
            "Chairman, who writes the final answer; further ones are fallbacks.",
            SEATS,
            "SEAT",
            brief="Writes the final answer",
        ),
    ] = ()
    options: Annotated[JurySettings, SETTINGS] = field(default_factory=JurySettings)


@dataclass(frozen=True, slots=True)
class QuestionRequest(CouncilRequest):
    """A question, with its files and settings."""

    question: Annotated[Text, Doc("Question for the council.", QUESTION, brief="")]
    _: KW_ONLY
    conversation: Annotated[
        tuple[Turn, ...],
        Constraint(max_length=1_000),
        Doc(
            "Earlier messages, oldest first.",
            QUESTION,
            label="Earlier conversation",
            brief="Oldest first",
        ),
    ] = ()
    files: Files = field(default_factory=dict)
    category: Category = None
    parent: Annotated[
        Name | None,
        Doc(
            "Continue from the final answer of this session.",
            QUESTION,
            "ID|FILE.json",
            option="continue",
            label="Earlier session",
            brief="Session to continue from",
        ),
    ] = None
    options: Options = field(default_factory=CouncilSettings)

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise InvalidParameter("question", self.question, "something to ask")
        if self.parent is not None and self.conversation:
            expected = "none with a conversation, which already contains the earlier messages"
            raise InvalidParameter("parent", self.parent, expected)


@dataclass(frozen=True, slots=True)
class RejudgeRequest(CouncilRequest):
    """A session to judge again, and the jury."""

    session: SessionName


@dataclass(frozen=True, slots=True)
class JudgeRequest(JuryRequest):
    """Texts to judge, their question, and the standard."""

    texts: Texts
    _: KW_ONLY
    question: Annotated[
        Text | None,
        Doc(
            "Question the texts answer; without it they are judged on their own.", QUESTION, "TEXT"
        ),
    ] = None
    reference: Annotated[
        Text | None,
        Doc("Reference answer for the jury.", QUESTION, label="Reference answer", brief=""),
    ] = None
    files: Files = field(default_factory=dict)
    pass_mark: Annotated[
        float | None,
        Constraint(ge=1, le=10),
        Doc(
            "Lowest grade that passes, from 1 to 10.",
            QUESTION,
            label="Lowest passing grade",
            brief="From 1 to 10",
        ),
    ] = None
    expected: Annotated[
        Name | None, Doc("Text expected to win, or `tie`.", QUESTION, label="Expected best text")
    ] = None
    category: Category = None

    @property
    def sources(self) -> Mapping[str, str]:
        """The question's files, including the reference answer."""
        return self.files if self.reference is None else {**self.files, REFERENCE: self.reference}


@dataclass(frozen=True, slots=True)
class RetryRequest(Parameters):
    """A session with failed seats to retry."""

    session: SessionName
    _: KW_ONLY
    seats: Annotated[
        tuple[Name, ...],
        Constraint(max_length=64),
        Doc(
            "Seat to retry; by default every failed seat.", SESSION, "NAME", option="seat", brief=""
        ),
    ] = ()
    max_cost_usd: MaxCost = None
    max_calls: MaxCalls = None


@dataclass(frozen=True, slots=True)
class ResumeRequest(Parameters):
    """Session to resume."""

    session: SessionName
    _: KW_ONLY
    take_over: Annotated[
        bool,
        Doc(
            "Take it over from another process, which can then no longer write.",
            SESSION,
            label="Take over",
            brief="From another process",
        ),
    ] = False
    max_cost_usd: MaxCost = None
    max_calls: MaxCalls = None


NewSessionRequest: TypeAlias = QuestionRequest | JudgeRequest | RejudgeRequest | RetryRequest

StartRequest: TypeAlias = NewSessionRequest | ResumeRequest


@operation("POST /sessions", tag="sessions", kind="session", changes=True)
async def ask(service: ClientService, request: QuestionRequest) -> "RunningSession":
    """Ask several models, which then review each other's answers blind.

    The ballots are counted, and a chairman writes the final answer from the answers and their
    ranking. The result says how certain it is: who voted, what is tied, what is missing. A session
    takes from half a minute to several minutes and costs money. The profile `demo` plays scripts,
    needs no key and costs nothing.
    """
    return await service.start(request)


@operation("POST /judge", tag="sessions", kind="session", changes=True)
async def judge(service: ClientService, request: JudgeRequest) -> "RunningSession":
    """Have a jury judge given texts blind: one, or several together.

    Each text gets a grade for every criterion of the rubric, with its interval. The verdict is
    passed, failed or too close to call, with its probability: one text passes if reviewers like
    these would grade it at the pass mark or above; of several, one has to lead clearly.
    """
    return await service.start(request)


@operation("POST /sessions/{session}/resume", tag="sessions", kind="session", changes=True)
async def resume(service: ClientService, request: ResumeRequest) -> "RunningSession":
    """Resume an interrupted session without repeating finished calls.

    Seats, procedure and seed stay those of the session; keys are today's. Without a new answer,
    ballot or final answer the session stays interrupted, and its record notes the attempt.
    """
    return await service.start(request)


@operation("POST /sessions/{session}/retry", tag="sessions", kind="session", changes=True)
async def retry(service: ClientService, request: RetryRequest) -> "RunningSession":
    """Ask a session's failed seats again, in a new session.

    Without `seats`, every seat that failed or abstained. Whatever does not depend on them is
    reused: after a review, the count and the final answer are repeated; after an answer, also all
    reviews; after a chairman's failure, only the final answer. The new session names the other as
    its parent, which is unchanged; its cost covers only the new calls.
    """
    return await service.start(request)


@operation("POST /sessions/{session}/rejudge", tag="sessions", kind="session", changes=True)
async def rejudge(service: ClientService, request: RejudgeRequest) -> "RunningSession":
    """Review a session's stored answers again, with another jury.

    The jury does not answer. The new session names the other as its parent, which is unchanged.
    """
    return await service.start(request)
