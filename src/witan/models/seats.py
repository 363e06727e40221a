"""The notation of seats, and their members."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from witan.deliberation.ports import Member, Model, Options, Price, Seat, free_name
from witan.errors import ConfigError, MissingKey, NoCouncil, UnknownName
from witan.models.providers import (
    PROVIDERS,
    Provider,
    find_key,
    is_loopback,
    list_price,
    ollama_url,
)

if TYPE_CHECKING:
    from witan.models.connections import Connections
    from witan.models.pydantic_ai_model import Providers


HOW = (
    "a seat is written provider:model, http://host/v1#model, script:FILE or cmd:PROGRAM, "
    "with name= before it if you like"
)

FREE = Price(0.0, 0.0)

CLOUD_SUFFIXES = ("-cloud", ":cloud")
"""Suffixes of models that Ollama forwards to its own cloud, which bills them."""

REASONING_NAMES = re.compile(
    r"(?:^|[^a-z])(?:r1|qwq|qvq|think(?:ing|er)?|reason(?:er|ing)?|deepseek-r\d|magistral|openthinker"
    r"|exaone-deep|nemotron|glm-z1|marco-o1|sky-t1|skywork-or1|deepcoder|deephermes|smallthinker"
    r"|qwen3(?!.*(?:instruct|coder|embed))|smollm3|gpt-oss|seed-oss|ernie-x1|phi-4-mini-flash)"
    r"(?:$|[^a-z])",
    re.IGNORECASE,
)
"""Models whose chat template may open the reasoning, so that their text only closes it."""

_VERSION = re.compile(r"/v\d+$")
"""End of an address that contains a version."""

Rate = tuple[float, float]
"""US dollars per million tokens read and written."""

_NAMED_SEAT = re.compile(r"\s*([^=:/#\s](?:[^=:/#]*[^=:/#\s])?)\s*=(.*)", re.DOTALL)
"""A name before a seat: the text before the first ``=``, unless the seat begins before it."""


@dataclass(frozen=True, slots=True)
class SeatSpec:
    """A parsed seat.

    `source`: the seat without its name: enough to seat it again.
    `provider`: a name in `PROVIDERS`, ``script``, ``cmd``, or scheme, host and port of a server,
    which does not look like a name: naming a host decides neither whose key it gets nor what runs.
    `model`: the model's id there; the path of a script; the words of a command.
    `name`: name as written, or else by `name_seats`; empty until then.
    `url`: the base of the server to call instead of the provider's own.
    `key_variable`: the variable that holds the key instead of the provider's own.
    `price`: price as configured; None to look it up.
    """

    source: str
    provider: str
    model: str
    name: str = ""
    url: str | None = None
    key_variable: str | None = None
    options: Options = field(default_factory=Options)
    price: Price | None = None

    @property
    def own_name(self) -> str:
        """Default name of the seat."""
        if self.provider == "script":
            return Path(self.model).stem
        return Path(shlex.split(self.model)[0]).name if self.provider == "cmd" else self.model


def parse_seat(
    text: str, *, origin: str = "the council", key: str = "a seat", base: Path | None = None
) -> SeatSpec:
    """Parse a seat.

    `origin`, `key`: file and key that errors name.
    """
    match = _NAMED_SEAT.fullmatch(text)
    name, source = (match[1], match[2].strip()) if match else ("", text.strip())
    kind, colon, rest = source.partition(":")
    if not source:
        raise ConfigError(origin, key, f"is empty; {HOW}")
    try:
        if kind in ("http", "https"):
            spec = _parse_url_seat(source)
        elif not colon:
            raise _InvalidSeat(f"{source!r} names no provider")
        elif kind in ("script", "cmd"):
            spec = _parse_local(kind, rest.strip(), base)
        else:
            spec = _parse_provider_seat(source, kind, rest.strip())
    except _InvalidSeat as flaw:
        hint = "" if str(flaw).endswith("?") else f"; {HOW}"
        raise ConfigError(origin, key, f"is not a seat: {flaw}{hint}") from None
    return replace(spec, name=name)


class _InvalidSeat(Exception):
    """Explain why a text is not a seat."""


def check_url(url: str) -> str | None:
    """Explain an invalid base URL without repeating possible secrets."""
    try:
        parts = urlsplit(url)
        fine = bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not url.startswith(("http://", "https://")):
        return "is not a base URL: it must begin with http:// or https://"
    if not fine or any(character.isspace() for character in url):
        return "is not a base URL: expected http://host/v1 or http://host:8000/v1"
    if parts.username is not None or parts.query:
        return (
            "is not a base URL: it contains a user, a password or a query; "
            "name the variable of a key with key"
        )
    return None


def _parse_url_seat(source: str) -> SeatSpec:
    url, _, model = source.partition("#")
    if problem := check_url(url):
        address = repr(url) if "@" not in url and "?" not in url else "the address"
        raise _InvalidSeat(f"{address} {problem}")
    if not model.strip():
        raise _InvalidSeat(f"{url!r} lacks a model: name it after a #")
    parts = urlsplit(url)
    provider = f"{parts.scheme}://{parts.netloc.lower()}"
    return SeatSpec(source, provider, model.strip(), url=url.rstrip("/"))


def _parse_local(kind: str, rest: str, base: Path | None) -> SeatSpec:
    """Parse a script or program; paths are relative to the text's folder."""
    if kind == "script":
        if not rest:
            raise _InvalidSeat("it names no script")
        path = str(Path(rest) if base is None else base / Path(rest).expanduser())
        return SeatSpec(f"script:{path}", kind, path)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise _InvalidSeat(f"the command cannot be read: {error}".lower()) from None
    if not words:
        raise _InvalidSeat("it names no program")
    if base is not None and "/" in words[0]:
        words[0] = str(base / Path(words[0]).expanduser())
    command = shlex.join(words)
    return SeatSpec(f"cmd:{command}", kind, command)


def _parse_provider_seat(source: str, kind: str, model: str) -> SeatSpec:
    if kind not in PROVIDERS:
        raise _InvalidSeat(str(UnknownName("provider", kind, [*PROVIDERS, "script", "cmd"])))
    if not model:
        raise _InvalidSeat(f"{source!r} lacks a model: name it after the colon")
    return SeatSpec(f"{kind}:{model}", kind, model)


def name_seats(specs: Sequence[SeatSpec], names: Collection[str] = ()) -> tuple[SeatSpec, ...]:
    """Give every seat a unique name.

    A stated name stays. Otherwise a seat is named after its model; if models of several providers
    share a name, the provider is added in front; then they are numbered.
    """
    own_names = [spec.name for spec in specs if spec.name]
    providers: dict[str, list[str]] = {}
    for spec in specs:
        if not spec.name:
            providers.setdefault(spec.own_name, []).append(spec.provider)
    name_counts = Counter([*names, *own_names])
    result = []
    for spec in specs:
        name = spec.name
        if not name:
            is_shared = len(set(providers[spec.own_name])) > 1
            place = spec.provider.rpartition("://")[2]
            wanted_name = f"{place}/{spec.own_name}" if is_shared else spec.own_name
            name = free_name(wanted_name, name_counts)
            name_counts[name] += 1
        result.append(replace(spec, name=name))
    return tuple(result)


def names_of(spec: SeatSpec) -> tuple[str, ...]:
    """Return names of a seat in the prices: name, notation, both."""
    return (spec.name, spec.source, f"{spec.name}={spec.source}")


def find_price(spec: SeatSpec, rates: Mapping[str, Rate]) -> Price | None:
    """Return the price set under one of a seat's names, if any."""
    return next((Price(*rates[name]) for name in names_of(spec) if name in rates), None)


def unknown_seat_problem(name: str, seats: Iterable[str]) -> str:
    """Describe an unknown chairman, given by name."""
    return f"is neither a seat nor a name: {UnknownName('member', name, seats)}"


def key_variables(spec: SeatSpec) -> tuple[str, ...]:
    """Return the variables searched for a seat's key, if it needs one."""
    if spec.key_variable is not None:
        return (spec.key_variable,)
    provider = PROVIDERS.get(spec.provider)
    return () if provider is None else provider.variables


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a seat, and its origin.

    `url`: address; None if left to the client library, or without one.
    `variable`: variable that sets the address; None if from seat, configuration or default.
    """

    url: str | None
    variable: str | None = None


def address(spec: SeatSpec, environment: Mapping[str, str]) -> Address:
    """Resolve a seat's address: its own, the provider's variable, the default."""
    if spec.url is not None:
        return Address(spec.url)
    provider = PROVIDERS.get(spec.provider)
    if provider is None:
        return Address(None)
    for variable in provider.url_variables:
        if value := environment.get(variable, "").strip():
            return Address(_moved_address(provider, variable, value), variable)
    if provider.name == "ollama" and (host := environment.get("OLLAMA_HOST", "").strip()):
        return Address(ollama_url(host), "OLLAMA_HOST")
    return Address(provider.url)


def _moved_address(provider: Provider, variable: str, value: str) -> str:
    """Return the address in a provider's variable, plus its library's version suffix."""
    if problem := check_url(value):
        raise ConfigError(variable, "", problem)
    url = value.rstrip("/")
    if provider.local:
        return url + provider.path if not urlsplit(url).path else url
    return url if _VERSION.search(url) else url + provider.path


def base_url(spec: SeatSpec, environment: Mapping[str, str]) -> str | None:
    """Return the URL of a seat, unless left to its library."""
    return address(spec, environment).url


def local_addresses(
    servers: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Return addresses of local servers, overridden by variables."""
    addresses = {kind: address(SeatSpec("", kind, ""), environment) for kind in servers}
    return {
        kind: url if (place := addresses[kind]).variable is None or place.url is None else place.url
        for kind, url in servers.items()
    }


def describe_risk(record: Seat) -> str | None:
    """Describe a recorded seat's risks beyond its own key, if any."""
    if not record.source:
        return None
    # The parsed notation counts, since other claims of a record are unverified.
    spec = parse_seat(record.source, origin="the record", key=record.name)
    if spec.provider == "cmd":
        return f"run {record.source.strip()}"
    url = record.url or spec.url
    if url is None and record.key_variable is None:
        return None
    variables = (record.key_variable,) if record.key_variable else key_variables(spec)
    key = f"the key in {' or '.join(variables)}" if variables else "no key"
    return f"call {url or record.source} with {key}"


def price_of_seat(spec: SeatSpec, environment: Mapping[str, str]) -> Price | None:
    """Look up the price of a seat, if it is known.

    The price as configured, or as listed, even if the provider is called at another address. A
    local server, or one written as an address on this machine, costs nothing; a paid provider
    behind a local gateway still costs its price.
    """
    url = base_url(spec, environment)
    if spec.price is not None:
        return spec.price
    if spec.provider == "script":
        return FREE
    provider = PROVIDERS.get(spec.provider)
    if provider is not None and not provider.local:
        # A gateway passes the provider's charges on, wherever it runs.
        return list_price(provider.name, spec.model)
    is_local = url is not None and is_loopback(url) and not spec.model.endswith(CLOUD_SUFFIXES)
    return FREE if is_local else None


def seat(
    spec: SeatSpec,
    environment: Mapping[str, str],
    connections: "Connections",
    providers: "Providers | None" = None,
) -> Member:
    """Make the member of a named seat.

    `connections`, `providers`: shared with other seats, and closed by their owner.

    Raises `MissingKey` if it needs a key that no variable contains; `ConfigError` if its script
    cannot be read; `NoCouncil` if it is a program that runs this council.
    """
    return Member(
        name=spec.name,
        model=_model(spec, environment, connections, providers),
        source=spec.source,
        provider=spec.provider,
        options=spec.options,
        price=price_of_seat(spec, environment),
        simulated=spec.provider == "script",
        url=spec.url,
        key_variable=spec.key_variable,
        may_reason=_may_reason(spec),
    )


def _may_reason(spec: SeatSpec) -> bool:
    """Guess by name whether a model may write reasoning into its text."""
    provider = PROVIDERS.get(spec.provider)
    is_server = spec.url is not None or (provider is not None and provider.local)
    return is_server and REASONING_NAMES.search(spec.model) is not None


def _model(
    spec: SeatSpec,
    environment: Mapping[str, str],
    connections: "Connections",
    providers: "Providers | None",
) -> Model:
    if spec.provider == "script":
        from witan.models.scripted import ScriptedModel

        return ScriptedModel.load(spec.model, spec.name)
    if spec.provider == "cmd":
        from witan.models.program import Program

        program = Program(spec.name, spec.model)
        if (circle := program.circle()) is not None:
            # Before any call, since other members would cost money in a council within itself.
            raise NoCouncil(
                f"{spec.name} cannot be seated: {circle}", "it must not ask this council"
            )
        return program
    variable, key = _key(spec, environment)
    provider = PROVIDERS.get(spec.provider, Provider(spec.provider, url=spec.url))
    url = base_url(spec, environment)
    if provider.url is None:
        from witan.models.pydantic_ai_model import PydanticAIModel

        return PydanticAIModel(spec.name, spec.source, key, variable, url, providers=providers)
    from witan.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(
        name=spec.name,
        url=url or provider.url,
        model=spec.model,
        key=key,
        key_variable=variable,
        connections=connections,
        max_tokens_field=provider.max_tokens_field,
    )


def _key(spec: SeatSpec, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    variables = key_variables(spec)
    if not variables:
        return None, None
    match = find_key(variables, environment)
    if match is None:
        raise MissingKey(spec.name, " or ".join(variables))
    return match
