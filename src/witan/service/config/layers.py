"""The schema of settings, and their sources: files, variables and overrides.

Reading sources one by one is what lets every value, and every error, name its source. Types are
checked here. What a value means, such as whether a rule exists, is checked where it is used, so
that reading a configuration does not wait for the parts that count ballots.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
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
from witan.errors import ConfigError, UnknownName, UnknownOption
from witan.models.loop_guard import VARIABLE as VIA_VARIABLE
from witan.models.providers import PROVIDERS
from witan.service.council_settings import CouncilSettings, LimitSettings
from witan.service.parameters import Parameter, Parameters, parameters_of, scalar_of
from witan.service.settings import CountingSettings

Key = tuple[str, ...]
"""The place of a value: ``("limits", "call_seconds")``."""

_VARIABLE = re.compile(r"(?!(?=.*[0-9])[A-Z0-9]{16,}$)[A-Z_][A-Z0-9_]*")
"""A name in capitals; sixteen or more of them with digits and no underscore are rather a key."""

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+")
"""A name, an IPv4 address, or an IPv6 address without brackets."""


def _variable_of(what: str, example: str) -> Any:
    """The name of a variable; what does not look like one is refused without repeating it."""

    def check(value: object) -> object:
        if isinstance(value, str) and _VARIABLE.fullmatch(value):
            return value
        raise PydanticCustomError(
            "key",
            f"must name the variable that holds the {what}, in capitals such as {example}; "
            f"a {what} itself does not belong here",
        )

    return BeforeValidator(check)


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
    """Address, key and rate limits of a provider."""

    concurrency: int | None = None
    per_minute: float | None = None
    key: KeyVariable | None = None
    url: str | None = None


def _field(setting: Parameter) -> Any:
    """Type and default of a setting in a table; bounds and choices are checked where it is used."""
    if setting.many:
        bounds: Any = setting.bounds
        entry = Annotated[setting.kind, Field(**bounds)] if bounds else setting.kind
        return dict[str, entry], {}  # type: ignore[valid-type]
    kind = Annotated[float | str, Field(union_mode="left_to_right")]
    return (setting.kind if setting.parser is None else kind) | None, None


def _fields(declared: type[Parameters]) -> dict[str, Any]:
    return {each.name: _field(each) for each in parameters_of(declared)}


_COUNTING = _fields(CountingSettings)

_LIMITS = _fields(LimitSettings) | {"grace_seconds": _fields(CouncilSettings)["grace_seconds"]}

LimitsTable = create_model(
    "LimitsTable", __base__=_Table, __doc__="Time, attempts and money.", **_LIMITS
)

CountingTable = create_model(
    "CountingTable", __base__=_Table, __doc__="Weights and ties of the count.", **_COUNTING
)


class HistoryTable(_Table):
    """Place of the history, and how long it stores sessions."""

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
    allowed_hosts: Annotated[tuple[Host, ...], BeforeValidator(_several)] | None = None
    public_url: str | None = None
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_several)] | None = None
    log: Literal["text", "json"] | None = None
    tokens: dict[str, TokenTable] = {}


Seat = Annotated[MemberTable, BeforeValidator(_seat)]

Seats = Annotated[tuple[Seat, ...], BeforeValidator(_several)]


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
    """A council under a name of its own: what differs from the configured one."""

    about: str | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("empty", "sets nothing; say at least what it is about")
        return self


class Document(CouncilTable, _Table):
    """The settings of a file, each optional."""

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
"""Model of each setting that is not a plain value."""


def within(key: Key) -> Key:
    """Return a key without the profile that it stands in: what it sets there."""
    return key[2:] if key[0] == PROFILES else key


def fixed_keys() -> tuple[Key, ...]:
    """List settings of fixed names: none of providers, models, tokens, profiles."""
    result: list[Key] = []
    for name in Document.model_fields:
        if name in PLAIN_TABLES:
            result += [(name, inner) for inner in TABLES[name].model_fields]
        elif name not in ("providers", PROFILES, *(table for (table,) in NAME_TABLES)):
            result.append((name,))
    return tuple(key for key in result if key not in (*OPEN_TABLES, TOKENS))


PREFIX = "WITAN_"

COMMAND_LINE = "the command line"
"""The source of overrides by the user of a command."""

CONFIG_VARIABLE = "WITAN_CONFIG"
"""Names a file to read in place of the one found by searching."""

TOKEN_VARIABLE = "WITAN_TOKEN"  # noqa: S105 - the name of a variable
"""Holds a token by itself, without a setting that names it."""

_NO_SETTINGS = (CONFIG_VARIABLE, VIA_VARIABLE)

TOKEN: Key = (*TOKENS, "default", "key")
"""The setting that `TOKEN_VARIABLE` stands for."""

_LISTS = tuple(
    PREFIX + name
    for name in ("MEMBERS", "JURY", "CHAIRMEN", "SERVE_ALLOWED_HOSTS", "SERVE_TRUSTED_PROXIES")
)
"""Variables that hold several things, with commas between or as JSON."""

_TABLE = re.compile(r"(limits|counting|serve)\.")
"""Tables that options do not name."""

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


_SHORT: Mapping[Key, str] = MappingProxyType({("history", "url"): "WITAN_HISTORY"})
"""Variables that are not called as their settings are."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it comes from.

    Parameters
    ----------
    where
        The file, the variable, or who overrode it.
    base
        The directory that relative paths in it start from.
    trusted
        Whoever runs the council said so; False: in a file that was found by searching.
    above
        The table that it stands in, where that is a profile's.
    """

    key: Key
    value: Any
    where: str
    base: Path
    trusted: bool = True
    above: Key = ()

    @property
    def written(self) -> str:
        """Its key as it stands there."""
        return dotted((*self.above, *self.key))

    @property
    def origin(self) -> str:
        """The file or variable, and the profile if it is in one."""
        return f"{self.where}: {dotted(self.above)}" if self.above else self.where

    def under(self, profile: str) -> "Setting":
        """Turn a setting of a profile into the one that it sets once the profile is chosen."""
        return replace(self, key=within(self.key), above=(PROFILES, profile))


def dotted(key: Key) -> str:
    """Return a key as it is written: ``limits.call_seconds``."""
    return ".".join(key)


def as_option(error: ConfigError) -> ConfigError:
    """Return the error as the user of a command knows it: by the option that was written."""
    if error.where != COMMAND_LINE or error.key.startswith("--"):
        return error
    name = re.split(r"[.\[]", _TABLE.sub("", error.key))[0]
    seats = {"members": "--member", "chairmen": "--chairman"}
    options = seats | {each.name: each.option for each in parameters_of(CouncilSettings)}
    option = options.get(name, f"--{name.replace('_', '-')}")
    return ConfigError(COMMAND_LINE, option, error.problem)


def read_file(path: Path, *, trusted: bool) -> tuple[Setting, ...]:
    """Return the settings of a TOML file."""
    where = str(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(where, "", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(where, "", f"is not UTF-8 text (at byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(where, "", f"is not TOML: {error}") from error
    base = path.parent.resolve()
    return tuple(
        Setting(key, value, where, base, trusted) for key, value in _read(data, where, strict=True)
    )


def read_environment(
    environment: Mapping[str, str], directory: Path, keys: Collection[str] = ()
) -> tuple[Setting, ...]:
    """Return the settings in variables that begin with ``WITAN_``; an empty one sets nothing.

    Parameters
    ----------
    keys
        Variables that hold a key, however they begin; what variables name so is added.
    """
    known = _variables()
    result: list[Setting] = []
    strange: dict[str, ConfigError] = {}
    for variable in sorted(environment.keys() - keys):
        text = environment[variable].strip()
        if not variable.startswith(PREFIX) or variable in _NO_SETTINGS or not text:
            continue
        try:
            key = _key_of(variable, known)
        except ConfigError as error:
            strange[variable] = error
            continue
        data = _nest(key, TOKEN_VARIABLE if key == TOKEN else _value(variable, text))
        result += [
            Setting(key, value, variable, directory)
            for key, value in _read(data, variable, strict=False)
        ]
    for variable in sorted(strange.keys() - named_keys(result)):
        raise strange[variable]
    return tuple(result)


def named_keys(settings: Iterable[Setting]) -> frozenset[str]:
    """Return the variables that these settings name as holding a key."""
    result = set[str]()
    for setting in settings:
        if setting.key[0] in ("providers", "serve") and setting.key[-1] == "key":
            result.add(setting.value)
        elif within(setting.key) in SEATS:
            result.update(entry.key for entry in setting.value if entry.key is not None)
    return frozenset(result)


def read_overrides(
    overrides: Mapping[str, object], directory: Path, where: str
) -> tuple[Setting, ...]:
    """Settings given by hand, under their key or the last word of it; None gives nothing."""
    keys = (*fixed_keys(), *OPEN_TABLES, ("providers",), ("price",))
    # By their last word alone, these would not say what they are about.
    last = {key[-1]: key for key in keys if key[0] not in ("history", "serve")}
    known = {**last, **{dotted(key): key for key in keys}}
    result = []
    for name, value in overrides.items():
        if name not in known:
            raise UnknownOption(name, known)
        if value is None:
            continue
        plain = list(value) if isinstance(value, tuple) else value
        result += [
            Setting(key, given, where, directory)
            for key, given in _read(_nest(known[name], plain), where, strict=False)
        ]
    return tuple(result)


def _variables() -> dict[str, Key]:
    """Return every variable with a fixed name."""
    keys = [*fixed_keys()]
    keys += [
        ("providers", name, inner) for name in PROVIDERS for inner in ProviderTable.model_fields
    ]
    return {**{_variable(key): key for key in keys}, TOKEN_VARIABLE: TOKEN}


def _variable(key: Key) -> str:
    return _SHORT[key] if key in _SHORT else PREFIX + "_".join(key).upper().replace("-", "_")


def _key_of(variable: str, known: Mapping[str, Key]) -> Key:
    """Return the key that a variable sets."""
    if variable in known:
        return known[variable]
    for table in OPEN_TABLES:
        stem = f"{_variable(table)}_"
        if variable.startswith(stem) and len(variable) > len(stem):
            return (*table, variable.removeprefix(stem).lower())
    open_names = [f"{_variable(table)}_NAME" for table in OPEN_TABLES]
    nearest = UnknownName("variable", variable, [*known, CONFIG_VARIABLE, *open_names]).nearest
    hint = (
        f"did you mean {nearest}?" if nearest else "its name begins with WITAN_ and no other's do"
    )
    raise ConfigError(variable, "", f"is no setting of Witan's; {hint}")


def _value(variable: str, text: str) -> object:
    """Read a variable: lists as JSON or with commas between, a rule's parameters as JSON."""
    if variable in _LISTS:
        if not text.startswith("["):
            return [each.strip() for each in text.split(",") if each.strip()]
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(variable, "", f"is not JSON: {error}") from None
    if variable.startswith(f"{PREFIX}RULE_PARAMETERS_"):
        return scalar_of(text)
    return text


def _nest(key: Key, value: object) -> dict[str, object]:
    for name in reversed(key):
        value = {name: value}
    assert isinstance(value, dict)  # noqa: S101 - a key has at least one part
    return value


def _read(data: Mapping[str, Any], where: str, *, strict: bool) -> Iterator[tuple[Key, Any]]:
    """Check the values of one source, and take them apart."""
    try:
        document = Document.model_validate(data, strict=strict)
    except ValidationError as error:
        raise _refusal(error, where) from None
    profiles = [((PROFILES, name), profile) for name, profile in document.profiles.items()]
    for above, table in (((), document), *profiles):
        if table.chairman is not None and "chairmen" in table.model_fields_set:
            key = dotted((*above, "chairman"))
            raise ConfigError(where, key, "and chairmen are both set; name all in chairmen")
    for place, value in _flatten(document):
        if within(place) == ("chairman",):
            yield (*place[:-1], "chairmen"), (value,)
        else:
            yield place, value


def _flatten(table: BaseModel, above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield the values of a table that were set, seats whole."""
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


def _refusal(error: ValidationError, where: str) -> ConfigError:
    """Word the first fault with its key, without repeating the whole value."""
    first = error.errors(include_url=False)[0]
    place, kind, given = first["loc"], first["type"], first["input"]
    key = _write_key(place)
    if kind == "extra_forbidden":
        return ConfigError(where, key, f"is no setting{_suggestion(place)}")
    if kind == "missing":
        return ConfigError(where, key, "is missing")
    expected = _EXPECTED.get(kind.partition("_")[0])
    problem = f"should be {expected}" if expected else first["msg"].removeprefix("Input ")
    plain = isinstance(given, bool | int | float) or (
        isinstance(given, str)
        and len(given) < 40
        and place[-1] not in ("key", "url", "seat", "sha256")
    )
    note = f", not {given!r}" if plain and kind != "key" else ""
    return ConfigError(where, key, f"{problem[0].lower()}{problem[1:]}{note}")


def _write_key(place: tuple[int | str, ...]) -> str:
    """Return a key as it is written, entries of a list counted from 1."""
    shown = ""
    for part in place:
        if isinstance(part, int):
            shown += f"[{part + 1}]"
        elif shown.startswith("counting.rho"):
            break  # which of the kinds it may be was tried last
        else:
            shown += f".{part}" if shown else part
    return shown


def _suggestion(place: tuple[int | str, ...]) -> str:
    """Suggest the setting that an unknown name may mean."""
    name = str(place[-1])
    above = place[:2] if place[0] == PROFILES else ()
    stands = place[len(above) :]
    table = TABLES[PROFILES] if above else Document
    if len(stands) > 1:
        table = TABLES[str(stands[1] if stands[:2] == TOKENS else stands[0])]
    for other in PLAIN_TABLES if len(stands) == 1 else ():
        if other in table.model_fields and name in TABLES[other].model_fields:
            return f" here; it stands in the table [{dotted((*map(str, above), other))}]"
    nearest = UnknownName("setting", name, table.model_fields).nearest
    if nearest is None:
        return f"; known: {', '.join(table.model_fields)}"
    return f"; did you mean {nearest}?"
