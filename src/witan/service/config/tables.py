"""The schema of settings: tables of a file, their types and bounds.

Imported only if a source sets something, because importing pydantic takes longer than most
commands. Values such as names of rules are checked where they are used, so that reading a
configuration does not import the counting.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from witan.deliberation.ports import Effort
from witan.errors import ConfigError, UnknownName
from witan.service.parameters import Parameter, Parameters, parameters_of
from witan.service.settings import (
    NAME_TABLES,
    OPEN_TABLES,
    PLAIN_TABLES,
    PROFILES,
    TOKENS,
    CouncilSettings,
    CountingSettings,
    Key,
    LimitSettings,
    dotted_key,
    strip_profile,
)

_VARIABLE = re.compile(r"(?!(?=.*[0-9])[A-Z0-9]{16,}$)[A-Z_][A-Z0-9_]*")
"""A name in capitals; sixteen or more of them with digits and no underscore are rather a key."""

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+")
"""A name, an IPv4 address, or an IPv6 address without brackets."""


def _variable_of(name: str, example: str) -> Any:
    """Check the name of a variable, without repeating an invalid one."""

    def check(value: object) -> object:
        if isinstance(value, str) and _VARIABLE.fullmatch(value):
            return value
        raise PydanticCustomError(
            "key",
            f"must name the variable that holds the {name}, in capitals such as {example}; "
            f"a {name} itself does not belong here",
        )

    return BeforeValidator(check)


def _digest(value: object) -> object:
    """Check a digest; never repeat an invalid one, maybe the token."""
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


def _lists_to_tuples(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _seat(value: object) -> object:
    return {"seat": value} if isinstance(value, str) else value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


KeyVariable = Annotated[str, _variable_of("key", "OPENAI_API_KEY")]

TokenVariable = Annotated[str, _variable_of("token", "TEAM_TOKEN")]

Digest = Annotated[str, BeforeValidator(_digest)]

Host = Annotated[str, AfterValidator(_host)]

Network = Annotated[str, AfterValidator(_network)]

NonNegative = Annotated[float, Field(ge=0)]

Rate = Annotated[tuple[NonNegative, NonNegative], BeforeValidator(_lists_to_tuples)]
"""US dollars per million tokens read and written."""

Positive = Annotated[float, Field(gt=0)]

Number = Annotated[int, Field(ge=1)]

MOST_DAYS = 365_000
"""A thousand years; a longer age would precede the first date."""


class MemberTable(_Table):
    """A seat with options; a bare string is its `seat`."""

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
    """Address, key and rate limits of a provider."""

    concurrency: int | None = None
    per_minute: float | None = None
    key: KeyVariable | None = None
    url: str | None = None


def _field(setting: Parameter) -> Any:
    if setting.many:
        bounds: Any = setting.bounds
        entry = Annotated[setting.kind, Field(**bounds)] if bounds else setting.kind
        return dict[str, entry], {}  # type: ignore[valid-type]
    kind = Annotated[float | str, Field(union_mode="left_to_right")]
    return (setting.kind if setting.parser is None else kind) | None, None


def _fields(declaration: type[Parameters]) -> dict[str, Any]:
    return {each.name: _field(each) for each in parameters_of(declaration)}


_COUNTING = _fields(CountingSettings)

_LIMITS = _fields(LimitSettings) | {"grace_seconds": _fields(CouncilSettings)["grace_seconds"]}

LimitsTable = create_model(
    "LimitsTable", __base__=_Table, __doc__="Time, attempts and money.", **_LIMITS
)

CountingTable = create_model(
    "CountingTable", __base__=_Table, __doc__="Weights and ties of the count.", **_COUNTING
)


class HistoryTable(_Table):
    """Place of the history, and days to keep sessions."""

    url: str | None = None
    keep_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    enabled: bool | None = None


class TokenTable(_Table):
    """A token of the server, with its limits."""

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
    """Settings of the server."""

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
    narration: bool | None = None
    allowed_hosts: Annotated[tuple[Host, ...], BeforeValidator(_lists_to_tuples)] | None = None
    public_url: str | None = None
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_lists_to_tuples)] | None = None
    log: Literal["text", "json"] | None = None
    tokens: dict[str, TokenTable] = {}


Seat = Annotated[MemberTable, BeforeValidator(_seat)]

Seats = Annotated[tuple[Seat, ...], BeforeValidator(_lists_to_tuples)]


class SeatsTable(_Table):
    """The seats of a council."""

    members: Seats = ()
    jury: Seats = ()
    chairman: Seat | None = None
    chairmen: Seats = ()


if TYPE_CHECKING:
    CouncilTable = SeatsTable
else:
    CouncilTable = create_model(
        "CouncilTable",
        __base__=SeatsTable,
        __doc__="The seats and settings of a council.",
        **{
            name: field
            for name, field in _fields(CouncilSettings).items()
            if name not in (*_LIMITS, *_COUNTING)
        },
        limits=(LimitsTable, LimitsTable()),
        counting=(CountingTable, CountingTable()),
    )


class ProfileTable(CouncilTable):
    """A named council: its differences from the configured one."""

    about: str | None = None

    @model_validator(mode="after")
    def _check_filled(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("empty", "sets nothing; give at least a description")
        return self


class Document(CouncilTable, _Table):
    """The settings of a file, each optional."""

    history: HistoryTable = HistoryTable()
    serve: ServeTable = ServeTable()
    profiles: dict[str, ProfileTable] = {}
    providers: dict[str, ProviderTable] = {}
    aliases: dict[str, str] = {}
    families: dict[str, Annotated[tuple[str, ...], BeforeValidator(_lists_to_tuples)]] = {}
    price: dict[str, Rate] = {}


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
"""Model of each setting that is not a plain value."""


def fixed_keys() -> tuple[Key, ...]:
    """List settings of fixed names: none of providers, models, tokens, profiles."""
    result: list[Key] = []
    for name in Document.model_fields:
        if name in PLAIN_TABLES:
            result += [(name, inner) for inner in TABLES[name].model_fields]
        elif name not in ("providers", PROFILES, *(table for (table,) in NAME_TABLES)):
            result.append((name,))
    return tuple(key for key in result if key not in (*OPEN_TABLES, TOKENS))


_EXPECTED = {
    "bool": "true or false",
    "dict": "a table",
    "float": "a number",
    "int": "a whole number",
    "model": "a table",
    "string": "text",
    "tuple": "a list",
}
"""Beginning of a type of pydantic's errors to the expected value."""


def read_tables(data: Mapping[str, Any], source: str, *, strict: bool) -> Iterator[tuple[Key, Any]]:
    """Check the values of one source, and take them apart."""
    try:
        document = Document.model_validate(data, strict=strict)
    except ValidationError as error:
        raise _refusal(error, source) from None
    profiles = [((PROFILES, name), profile) for name, profile in document.profiles.items()]
    for above, table in (((), document), *profiles):
        if table.chairman is not None and "chairmen" in table.model_fields_set:
            key = dotted_key((*above, "chairman"))
            raise ConfigError(source, key, "and chairmen are both set; name all in chairmen")
    for place, value in _flatten(document):
        if strip_profile(place) == ("chairman",):
            yield (*place[:-1], "chairmen"), (value,)
        else:
            yield place, value


def _flatten(table: BaseModel, above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield the set values of a table, seats as a whole."""
    for name in type(table).model_fields:
        value = getattr(table, name)
        if name not in table.model_fields_set or value is None:
            continue
        inner = value if isinstance(value, dict) else {}
        for each, values in inner.items():
            if isinstance(values, BaseModel):
                yield from _flatten(values, (*above, name, each))
            else:
                yield (*above, name, each), values
        if isinstance(value, BaseModel) and not isinstance(value, MemberTable):
            yield from _flatten(value, (*above, name))
        elif not isinstance(value, dict):
            yield (*above, name), value


def _refusal(error: ValidationError, source: str) -> ConfigError:
    """Describe the first fault with its key, without repeating the whole value."""
    first = error.errors(include_url=False)[0]
    place, kind, value = first["loc"], first["type"], first["input"]
    key = _write_key(place)
    if kind == "extra_forbidden":
        return ConfigError(source, key, f"is not a setting{_suggestion(place)}")
    if kind == "missing":
        return ConfigError(source, key, "is missing")
    expected = _EXPECTED.get(kind.partition("_")[0])
    problem = f"should be {expected}" if expected else first["msg"].removeprefix("Input ")
    plain = isinstance(value, bool | int | float) or (
        isinstance(value, str)
        and len(value) < 40
        and place[-1] not in ("key", "url", "seat", "sha256")
    )
    note = f", not {value!r}" if plain and kind != "key" else ""
    return ConfigError(source, key, f"{problem[0].lower()}{problem[1:]}{note}")


def _write_key(place: tuple[int | str, ...]) -> str:
    """Return a key as text, list entries counted from 1."""
    path_text = ""
    for part in place:
        if isinstance(part, int):
            path_text += f"[{part + 1}]"
        elif path_text.startswith("counting.rho"):
            break  # the rest names the type that was tried
        else:
            path_text += f".{part}" if path_text else part
    return path_text


def _suggestion(place: tuple[int | str, ...]) -> str:
    """Suggest a setting for an unknown name."""
    name = str(place[-1])
    above = place[:2] if place[0] == PROFILES else ()
    stands = place[len(above) :]
    table = TABLES[PROFILES] if above else Document
    if len(stands) > 1:
        table = TABLES[str(stands[1] if stands[:2] == TOKENS else stands[0])]
    for other in PLAIN_TABLES if len(stands) == 1 else ():
        if other in table.model_fields and name in TABLES[other].model_fields:
            return f" here; it is in the table [{dotted_key((*map(str, above), other))}]"
    nearest = UnknownName("setting", name, table.model_fields).nearest
    if nearest is None:
        return f"; known: {', '.join(table.model_fields)}"
    return f"; did you mean {nearest}?"
