"""What can be configured, as data: the same model for files, variables and overrides.

Types are checked here. What a value means, such as whether a rule exists, is checked where it is
used, so that reading a configuration does not wait for the parts that count ballots.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from witan.deliberation.ports import Effort

__all__ = [
    "NAME_TABLES",
    "OPEN_TABLES",
    "PLAIN_TABLES",
    "PROFILES",
    "SEATS",
    "TABLES",
    "TOKENS",
    "Document",
    "Key",
    "MemberTable",
    "ProfileTable",
    "ProviderTable",
    "ServeTable",
    "TokenTable",
    "fixed_keys",
    "within",
]

Key = tuple[str, ...]
"""Where a value stands: ``("limits", "call_seconds")``."""

_VARIABLE = re.compile(r"(?!(?=.*[0-9])[A-Z0-9]{16,}$)[A-Z_][A-Z0-9_]*")
"""A name in capitals; sixteen or more of them with digits and no underscore are rather a key."""

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+")
"""A name, an IPv4 address, or an IPv6 address without brackets."""


def _variable(value: object) -> object:
    """Refuse what does not look like the name of a variable, without repeating it."""
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    raise PydanticCustomError(
        "key",
        "must name the variable that holds the key, in capitals such as OPENAI_API_KEY; "
        "a key itself does not belong here",
    )


def _token_variable(value: object) -> object:
    """Refuse what does not look like the name of a variable, without repeating it."""
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    raise PydanticCustomError(
        "key",
        "must name the variable that holds the token, in capitals such as TEAM_TOKEN; "
        "a token itself does not belong here",
    )


def _digest(value: object) -> object:
    """Refuse what is no digest, without repeating it: it may be the token."""
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value.lower()
    raise PydanticCustomError(
        "key", "must be the SHA-256 of the token: 64 hexadecimal digits, and not the token itself"
    )


def _host(value: str) -> str:
    if _HOST.fullmatch(value):
        return value.lower()
    raise PydanticCustomError(
        "host", "should be the name or address of a host, without scheme, port or path"
    )


def _network(value: str) -> str:
    try:
        ip_network(value, strict=False)
    except ValueError:
        problem = "should be an address or a network, such as 10.0.0.0/8"
        raise PydanticCustomError("network", problem) from None
    return value


def _several(value: object) -> object:
    """Take a list, as TOML and JSON write it, for a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _seat(value: object) -> object:
    return {"seat": value} if isinstance(value, str) else value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


KeyVariable = Annotated[str, BeforeValidator(_variable)]

TokenVariable = Annotated[str, BeforeValidator(_token_variable)]

Digest = Annotated[str, BeforeValidator(_digest)]

Host = Annotated[str, AfterValidator(_host)]

Network = Annotated[str, AfterValidator(_network)]

NonNegative = Annotated[float, Field(ge=0)]

Rate = Annotated[tuple[NonNegative, NonNegative], BeforeValidator(_several)]
"""US dollars per million tokens read and written."""

Positive = Annotated[float, Field(gt=0)]

Number = Annotated[int, Field(ge=1)]

MOST_DAYS = 365_000
"""A thousand years: longer, and there is no date to count back to."""


class MemberTable(_Table):
    """A seat with options of its own; a bare string is its `seat`."""

    seat: str
    name: str = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Effort | None = None
    system: str | None = None
    price: Rate | None = None
    key: KeyVariable | None = None
    url: str | None = None


class ProviderTable(_Table):
    """How one provider is reached, and how often."""

    concurrency: int | None = None
    per_minute: float | None = None
    key: KeyVariable | None = None
    url: str | None = None


class LimitsTable(_Table):
    """Time, attempts and money."""

    call_seconds: float | None = None
    stage_seconds: float | None = None
    session_seconds: float | None = None
    grace_seconds: float | None = None
    attempts: int | None = None
    hedge_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


class CountingTable(_Table):
    """How ballots are counted."""

    recusal: str | None = None
    unranked: str | None = None
    ties: str | None = None
    level: float | None = None
    threshold: float | None = None
    tie_break: str | None = None
    rho: Annotated[float | str, Field(union_mode="left_to_right")] | None = None
    prior: str | None = None
    flips: bool | None = None
    weights: dict[str, NonNegative] = {}
    reliability: dict[str, NonNegative] = {}


class HistoryTable(_Table):
    """Where sessions are kept, and how long."""

    url: str | None = None
    keep_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    enabled: bool | None = None


class TokenTable(_Table):
    """Who may ask the server, how often and for how much."""

    key: TokenVariable | None = None
    sha256: Digest | None = None
    per_minute: Number | None = None
    max_cost_usd: NonNegative | None = None
    daily_usd: NonNegative | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.key is not None and self.sha256 is not None:
            raise PydanticCustomError("both", "has both key and sha256; keep one of them")
        if not self.model_fields_set:
            raise PydanticCustomError("empty", "has neither key nor sha256")
        return self


class ServeTable(_Table):
    """How the council is served."""

    host: Host | None = None
    port: Annotated[int, Field(ge=0, le=65535)] | None = None
    max_sessions: Number | None = None
    max_streams: Number | None = None
    max_connections: Number | None = None
    header_seconds: Positive | None = None
    body_seconds: Positive | None = None
    idle_seconds: Positive | None = None
    send_seconds: Positive | None = None
    body_bytes: Number | None = None
    per_minute: Number | None = None
    heartbeat_seconds: Positive | None = None
    grace_seconds: NonNegative | None = None
    allowed_hosts: Annotated[tuple[Host, ...], BeforeValidator(_several)] | None = None
    public_url: str | None = None
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_several)] | None = None
    log: Literal["text", "json"] | None = None
    tokens: dict[str, TokenTable] = {}


Seat = Annotated[MemberTable, BeforeValidator(_seat)]

Seats = Annotated[tuple[Seat, ...], BeforeValidator(_several)]


class CouncilTable(_Table):
    """Who sits, and how they deliberate."""

    members: Seats = ()
    jury: Seats = ()
    chairman: Seat | None = None
    chairmen: Seats = ()
    mode: str | None = None
    rule: str | None = None
    rule_parameters: dict[str, bool | int | float | str] = {}
    rubric: str | None = None
    rubric_weights: dict[str, NonNegative] = {}
    rubric_scoring: bool | None = None
    holistic: bool | None = None
    synthesis: bool | None = None
    self_review: bool | None = None
    mirrored: bool | None = None
    review_rounds: int | None = None
    debate_rounds: int | None = None
    stop_when_decided: bool | None = None
    safety: bool | None = None
    safety_cap: float | None = None
    enough: int | None = None
    quorum: int | None = None
    limits: LimitsTable = LimitsTable()
    counting: CountingTable = CountingTable()


class ProfileTable(CouncilTable):
    """What of a council is otherwise under this name."""

    about: str | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("empty", "sets nothing; say at least what it is about")
        return self


class Document(CouncilTable):
    """Everything that can be set, all of it optional."""

    history: HistoryTable = HistoryTable()
    serve: ServeTable = ServeTable()
    profiles: dict[str, ProfileTable] = {}
    providers: dict[str, ProviderTable] = {}
    aliases: dict[str, str] = {}
    families: dict[str, Annotated[tuple[str, ...], BeforeValidator(_several)]] = {}
    price: dict[str, Rate] = {}


OPEN_TABLES: tuple[Key, ...] = (
    ("rule_parameters",),
    ("rubric_weights",),
    ("counting", "weights"),
    ("counting", "reliability"),
)
"""Tables whose keys are names of one's own: parameters of a rule, criteria, reviewers."""

NAME_TABLES: tuple[Key, ...] = (("aliases",), ("families",), ("price",))
"""Tables whose keys are models, families or seats: too long for the name of a variable."""

SEATS: tuple[Key, ...] = (("members",), ("jury",), ("chairmen",))
"""Settings that are lists of seats."""

PROFILES = "profiles"

TOKENS: Key = ("serve", "tokens")

PLAIN_TABLES = ("limits", "counting", "history", "serve")
"""Tables of plain values."""

TABLES: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "members": MemberTable,
        "jury": MemberTable,
        "chairman": MemberTable,
        "chairmen": MemberTable,
        "limits": LimitsTable,
        "counting": CountingTable,
        "history": HistoryTable,
        "serve": ServeTable,
        "tokens": TokenTable,
        "profiles": ProfileTable,
        "providers": ProviderTable,
    }
)
"""What stands in a setting that is not a plain value."""


def within(key: Key) -> Key:
    """A key without the profile that it stands in: what it sets there."""
    return key[2:] if key[0] == PROFILES else key


def fixed_keys() -> tuple[Key, ...]:
    """Every setting whose name is fixed, in order: none of providers, models, tokens, profiles."""
    found: list[Key] = []
    for name in Document.model_fields:
        if name in PLAIN_TABLES:
            found += [(name, inner) for inner in TABLES[name].model_fields]
        elif name not in ("providers", PROFILES, *(table for (table,) in NAME_TABLES)):
            found.append((name,))
    return tuple(key for key in found if key not in (*OPEN_TABLES, TOKENS))
