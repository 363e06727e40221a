"""Ports of the deliberation: models, messages, prices, a clock and a teacher."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from witan.core.bounds import LARGEST, Amount, Count, VisibleText
from witan.errors import InvalidParameter, ModelError

if TYPE_CHECKING:
    from witan.core.stats.learning import Lessons
import time
from datetime import UTC

Role = Literal["system", "user", "assistant"]
Effort = Literal["minimal", "low", "medium", "high"]
Stage = Literal["answer", "review", "repair", "synthesis"]

Hear = Callable[[str], None]
"""A callback for every piece of text as it arrives.

If it has an attribute `hear_reasoning`, that is called without arguments when reasoning arrives
separately.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Parameters
    ----------
    role
        Who speaks: the user, the assistant or the system.
    text
        The text.
    """

    role: Role
    text: str


MESSAGE_TOKENS = 16
"""Tokens that a provider's template adds to one message: role, begin and end."""

CALL_TOKENS = 64
"""Tokens that a provider's template adds to a conversation, its own short system text included."""

SCHEMA_TOKENS = 640
"""Tokens that a provider adds to a schema; several hundred for forced tools."""


def most_input_tokens(messages: Iterable[Message], schema: Mapping[str, Any] | None = None) -> int:
    """Bound the tokens of a call by its bytes and its template.

    No token is smaller than a byte, so this is a bound and not an estimate; prose takes a quarter
    of it.
    """
    tokens = CALL_TOKENS + sum(_bytes(message.text) + MESSAGE_TOKENS for message in messages)
    if schema is not None:
        tokens += _bytes(json.dumps(schema, ensure_ascii=False)) + SCHEMA_TOKENS
    return tokens


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a member's calls; None leaves one to the provider.

    Parameters
    ----------
    temperature
        From 0 to 2.
    max_tokens
        The most tokens of one reply; None for the limit of the procedure.
    reasoning_effort
        Effort of a reasoning model.
    system
        System prompt, sent to the member before everything else.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Effort | None = None
    system: str | None = None

    def __post_init__(self) -> None:
        temperature, most, system = self.temperature, self.max_tokens, self.system
        if temperature is not None and not (
            _is(temperature, int | float) and 0 <= temperature <= 2
        ):
            raise InvalidParameter("temperature", temperature, "a number from 0 to 2, or None")
        if most is not None and not (_is(most, int) and most >= 1):
            raise InvalidParameter("max_tokens", most, "a whole number, 1 or more, or None")
        if self.reasoning_effort not in (*get_args(Effort), None):
            expected = "'minimal', 'low', 'medium', 'high' or None"
            raise InvalidParameter("reasoning_effort", self.reasoning_effort, expected)
        if system is not None and not _is(system, str):
            raise InvalidParameter("system", system, "text or None")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Parameters
    ----------
    input_usd
        Price of a million tokens sent.
    output_usd
        Price of a million tokens received.
    """

    input_usd: Amount
    output_usd: Amount

    def __post_init__(self) -> None:
        for name in ("input_usd", "output_usd"):
            usd: object = getattr(self, name)
            if not (_is(usd, int | float) and 0 <= usd <= LARGEST):  # type: ignore[operator]
                raise InvalidParameter(name, usd, "dollars, 0 or more")

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of one call in US dollars."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1e6


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as counted by the provider, if known.

    Parameters
    ----------
    input_tokens
        Tokens sent.
    output_tokens
        Tokens received.
    """

    input_tokens: Count | None = None
    output_tokens: Count | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Call:
    """A request to a model; every attempt uses the same object.

    Parameters
    ----------
    stage
        Purpose of the call; the text alone decides what the reply should be.
    max_tokens
        The most tokens of the reply.
    schema
        JSON Schema that the reply should satisfy; None for free text.
    """

    stage: Stage
    messages: tuple[Message, ...]
    max_tokens: int
    options: Options = field(default_factory=Options)
    schema: Mapping[str, Any] | None = None
    _most_input_tokens: int | None = field(default=None, init=False, repr=False, compare=False)

    def most_input_tokens(self) -> int:
        """Bound its input tokens, measured once: several ceilings need the bound."""
        if self._most_input_tokens is None:
            tokens = most_input_tokens(self.messages, self.schema)
            object.__setattr__(self, "_most_input_tokens", tokens)
            return tokens
        return self._most_input_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply to one call.

    Parameters
    ----------
    cost_usd
        Cost as billed by the provider, if stated.
    bill_ignored
        True if the provider billed an impossible amount: the cost is unknown, whatever the price.
    cut
        True if the reply ended at its token limit.
    notes
        Options that the call dropped, a sentence each.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    cut: bool = False
    notes: tuple[str, ...] = ()
    bill_ignored: bool = False

    def __post_init__(self) -> None:
        # Replies come from foreign models, and their numbers are added up.
        cost: object = self.cost_usd
        if cost is not None and not (_is(cost, int | float) and 0 <= cost < inf):  # type: ignore[operator]
            raise InvalidParameter("cost_usd", cost, "dollars, 0 or more, or None")
        for name in ("input_tokens", "output_tokens"):
            tokens: object = getattr(self.usage, name)
            if not (tokens is None or (_is(tokens, int) and tokens >= 0)):  # type: ignore[operator]
                raise InvalidParameter(name, tokens, "a whole number, 0 or more, or None")


class BilledFailure(ModelError):
    """A call without text, billed all the same.

    `bill`: a reply without text, with its tokens and cost.
    `error`: arguments of `ModelError`.
    """

    def __init__(self, bill: Reply, *error: Any) -> None:
        super().__init__(*error)
        self.bill = bill
        self.args = (bill, *self.args)


class Model(Protocol):
    """Anything that answers a call, without state of a session.

    A model whose attribute `never_cancels` is true never raises a cancellation of its own, so its
    calls need no task of their own.
    """

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        """Answer one call, handing each piece of text to `hear`.

        One attempt: deadlines, retries and limits are the caller's. A call without a reply raises
        `ModelError`, or `BilledFailure` if it is billed; cancelling it closes its connections.
        """
        ...


@runtime_checkable
class Preparable(Protocol):
    """A model with work before its first call, such as an import."""

    async def prepare(self) -> None:
        """Get ready to be called, once per event loop and untimed."""
        ...


class Teacher(Protocol):
    """A council's source of earlier sessions to learn from."""

    def learn(
        self,
        reviewers: Collection[str] = (),
        *,
        exclude: str | None = None,
        judges: Collection[str] = (),
    ) -> "Lessons":
        """Learn from all sessions without the answers of `exclude`.

        Reliability is learned for the models in `reviewers`, severity for those in `judges`.
        The method may block for a moment, and is called in a thread.
        """
        ...


class Clock(Protocol):
    """Source of the times that are recorded."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def seconds(self) -> float:
        """Seconds on a monotonic clock from an arbitrary start."""
        ...


@dataclass(frozen=True, slots=True)
class Member:
    """A model with a seat.

    Parameters
    ----------
    name
        Name of the seat; unique in a council.
    source
        The seat as written, such as ``openai:gpt-5``: enough to seat it again.
    provider
        Calls to one provider share its limits.
    price
        Its price; None if unknown, which is not free.
    simulated
        True if it plays a script instead of a model.
    url, key_variable
        The server it calls, and the variable that holds its key, instead of its provider's own.
    may_reason
        True if its text may begin with reasoning that only a closing tag ends; text is then
        held back until that is certain.
    """

    name: str
    model: Model
    source: str = ""
    provider: str = ""
    options: Options = field(default_factory=Options)
    price: Price | None = None
    simulated: bool = False
    url: str | None = None
    key_variable: str | None = None
    may_reason: bool = False


@dataclass(frozen=True, slots=True)
class Seat:
    """A member as recorded: without its model.

    Parameters
    ----------
    name
        Its name in the session.
    source
        The seat as written.
    provider
        Who serves its model.
    price
        Its price; None if unknown.
    simulated
        True if it plays a script.
    url
        The address of its server; None for the provider's.
    key_variable
        The variable with its key; None if it needs none.
    """

    name: str
    source: str
    provider: str
    options: Options = field(default_factory=Options)
    price: Price | None = None
    simulated: bool = False
    url: str | None = None
    key_variable: str | None = None


REFERENCE = "reference answer"
"""Name of the file with the reference answer."""

NO_QUESTION = (
    "Nobody asked a question: where a criterion speaks of one, take the text's own subject."
)
"""Sentence after the question on texts without one; only reviewers need it."""

MOST_TEXTS = 26
"""Most texts on one sheet, one per letter for its label."""

TEXT = "text"
"""Provider of the seat of a text to judge, which no model wrote here."""


@dataclass(frozen=True, slots=True)
class Expense:
    """Tokens, money and time of the calls behind one event.

    Parameters
    ----------
    cost_usd
        Cost; None if unknown, like every sum that includes it.
    seconds
        From the first attempt to the last word.
    calls
        Attempts made.
    """

    usage: Usage = field(default_factory=Usage)
    cost_usd: Amount | None = None
    seconds: Amount = 0.0
    calls: Count = 1

    def __add__(self, other: "Expense") -> "Expense":
        """Add another expense; a value unknown in either is unknown."""
        return Expense(
            Usage(
                _sum(self.usage.input_tokens, other.usage.input_tokens),
                _sum(self.usage.output_tokens, other.usage.output_tokens),
            ),
            _sum(self.cost_usd, other.cost_usd),
            self.seconds + other.seconds,
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An earlier session's answer, to be judged again.

    Parameters
    ----------
    seat
        The seat.
    text
        Its answer.
    cut
        True if it ended at its token limit.
    spent
        Tokens, money and time of the earlier session; none is spent again.
    flags
        Flags of the safety gate then; None if it did not run.
    """

    seat: str
    text: VisibleText
    cut: bool = False
    spent: Expense = field(default_factory=Expense)
    flags: tuple[str, ...] | None = None


def _is(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def ignore_text(text: str) -> None:
    """Ignore text, for calls without streaming."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def seconds(self) -> float:
        """Seconds on a monotonic clock from an arbitrary start."""
        return time.monotonic()


def free_name(base: str, names: Collection[str]) -> str:
    """Return the name, or the first free ``name (2)``, ``name (3)`` …."""
    name, number = base, 2
    while name in names:
        name, number = f"{base} ({number})", number + 1
    return name
