"""Discovery of a council, and the first configuration of one."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from math import floor, inf, log10
from types import MappingProxyType

import anyio

from witan.deliberation.plan import TYPICAL, Lengths
from witan.deliberation.planner import make_plan
from witan.deliberation.ports import Price, Seat
from witan.deliberation.procedure import Procedure
from witan.errors import ConfigError, MissingExtra, ModelError, NoCouncil, Remedy, Way
from witan.models.connections import (
    Connections,
    ListedModel,
    LocalServer,
    find_local_servers,
    list_models,
    seems_to_chat,
)
from witan.models.providers import (
    LOCAL_SERVERS,
    PROVIDERS,
    Provider,
    Reach,
    find_key,
    is_loopback,
    list_price,
)
from witan.models.seats import (
    FREE,
    SeatSpec,
    base_url,
    key_variables,
    local_addresses,
    name_seats,
    price_of_seat,
    seat,
)
from witan.service.config.configuration import Config
from witan.service.text import count_noun, list_text
from witan.service.trust import separation_sentence, shared_votes

MAX_DISCOVERED_PRICE = Price(10.0, 30.0)
"""Highest price of a discovered model, in US dollars per million tokens read and written."""

MAKERS = (
    "anthropic", "openai", "google", "x-ai", "deepseek", "mistralai", "qwen", "moonshotai", "z-ai",
    "meta-llama", "cohere", "nvidia", "microsoft", "amazon", "minimax",
)  # fmt: skip
"""Makers whose models are seated first where a provider lists those of many."""

_MINOR = re.compile(
    r"preview|beta|alpha|exp|experimental|free|nano|tiny|lite|mini|small|micro|extended|latest|"
    r"instruct|base|guard|safety|online|auto|router|thinking|\d{3,4}b|\d{1,2}b"
)
"""Words in the ids of variants, which rank behind the maker's plain model."""

_DATED = re.compile(r"[-@]\d{4}(-\d{2}-\d{2}|\d{4})?$")
"""Suffix of a dated edition, whose model is also listed without it."""


@dataclass(slots=True)
class ProviderModels:
    """Models of one provider, best first, and the skipped ones."""

    models: list[tuple[str, Price | None]] = field(default_factory=list)
    unpriced_models: list[str] = field(default_factory=list)
    expensive_models: list[str] = field(default_factory=list)

    def notes(self, provider: str) -> list[str]:
        """Describe the skipped models and how to seat them."""
        parts = []
        if self.unpriced_models:
            parts.append(f"{count_noun(len(self.unpriced_models), 'model')} whose price is unknown")
        if self.expensive_models:
            price = MAX_DISCOVERED_PRICE
            bound = f"${price.input_usd:g} in or ${price.output_usd:g} out per million tokens"
            n_models = count_noun(len(self.expensive_models), "model")
            parts.append(f"{n_models} above {bound} ({list_text(self.expensive_models)})")
        if not parts:
            return []
        skipped_text = " and ".join(parts)
        return [f"{provider}: not seated automatically: {skipped_text}; name one to use it"]


def choose(provider: str, models: Sequence[ListedModel], *, free: bool = False) -> ProviderModels:
    """Order chat models: plain and new ones first, makers in turn.

    `free`: whether the provider is a server on this machine, whose models cost nothing.
    """
    provider_models = ProviderModels()
    makers: dict[str, list[ListedModel]] = {}
    prices: dict[str, Price | None] = {}
    for model in models:
        name = model.id.strip()
        if not model.chats or not name:
            continue
        price = model.price or list_price(provider, name)
        if price is None and not free:
            provider_models.unpriced_models.append(name)
        elif price is not None and _is_dear(price):
            provider_models.expensive_models.append(name)
        else:
            prices[name] = model.price
            makers.setdefault(name.rpartition("/")[0].partition("/")[0], []).append(model)
    for group in makers.values():
        group.sort(key=_rank)
    places = {maker: place for place, maker in enumerate(MAKERS)}
    in_order = sorted(
        makers, key=lambda maker: (places.get(maker, len(places)), _rank(makers[maker][0]))
    )
    for turn in zip_longest(*(makers[maker] for maker in in_order)):
        provider_models.models += [
            (m.id.strip(), prices[m.id.strip()]) for m in turn if m is not None
        ]
    return provider_models


def _is_dear(price: Price) -> bool:
    return (
        price.input_usd > MAX_DISCOVERED_PRICE.input_usd
        or price.output_usd > MAX_DISCOVERED_PRICE.output_usd
    )


def _rank(model: ListedModel) -> tuple[bool, float]:
    """Sort plain models first, then the newest.

    Models without a date come last, in the order of the list.
    """
    words = re.split(r"[^a-z0-9]+", model.id.rpartition("/")[2].lower())
    minor = any(_MINOR.fullmatch(word) for word in words) or _DATED.search(model.id) is not None
    return minor, inf if model.created is None else -model.created


LOOK_SECONDS = 5.0
"""Seconds that a provider may take to list its models."""

MIN_SEATS, MAX_SEATS = 4, 5
"""Fewest seats, if there are models for them, and most.

Three reviewers of each other separate nothing.
"""


@dataclass(frozen=True, slots=True)
class DiscoveredCouncil:
    """The seats of a discovered council, with notes of a sentence each."""

    seats: tuple[SeatSpec, ...]
    notes: tuple[str, ...]


_Endpoint = tuple[str, str | None, str | None]

Source = tuple[SeatSpec, ...]
"""The models of one provider or server, best first."""


NOTHING_HERE = "no provider's key is set and no model server runs here"

NOT_MOVED: Mapping[str, Reach] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A provider to ask for its models, called like its seats.

    `listing`: URL of its list of models, or None if unknown.
    `key`: the variable of its key, and the key; None if it needs none.
    """

    provider: Provider
    seat: SeatSpec
    listing: str | None
    key: tuple[str, str] | None
    problem: str = "its models cannot be listed at its configured url"
    free: bool = False

    async def list_models(self, connections: Connections) -> Sequence[ListedModel]:
        """List its models, with its key."""
        return await list_models(
            self.provider.name,
            self.listing or "",
            None if self.key is None else self.key[1],
            connections,
            key_header=self.provider.key_header,
            folder=self.provider.models_folder,
        )


async def find_council(
    environment: Mapping[str, str],
    servers: Mapping[str, str] = LOCAL_SERVERS,
    providers: Mapping[str, Provider] = PROVIDERS,
    reaches: Mapping[str, Reach] = NOT_MOVED,
    jury_origin: str | None = None,
) -> DiscoveredCouncil:
    """Seat the models that are available, one of each source first.

    Sources are the providers whose key is in the environment, each with its chat models in the
    order of `choose`, without those of unknown price or above `MAX_DISCOVERED_PRICE`; then the
    servers on this machine, with their models as listed. Every source gets a seat, at most five;
    while there are fewer than four seats, each adds its next model. A single model gets all four. A
    provider with another address in `reaches` is called there, with that address's key. An error
    names `jury_origin`, the source of a jury without members.
    """
    sources, problems = await find_sources(environment, servers, providers, reaches)
    if not sources:
        raise _no_council(problems, reaches, jury_origin)
    seats = deal(sources)
    named_seats = name_seats(seats * MIN_SEATS if len(seats) == 1 else seats)
    note = (
        f"no council is configured; these were found: {list_text([s.source for s in named_seats])}"
    )
    return DiscoveredCouncil(named_seats, (note, *shared_votes(named_seats), *problems))


async def find_sources(
    environment: Mapping[str, str],
    servers: Mapping[str, str] = LOCAL_SERVERS,
    providers: Mapping[str, Provider] = PROVIDERS,
    reaches: Mapping[str, Reach] = NOT_MOVED,
) -> tuple[list[Source], list[str]]:
    """List models of all providers with keys and all local servers.

    Return the models of each, best first; and why others have none, a sentence each.
    """
    lookups = [
        a for p in providers.values() if (a := _make_request(p, environment, reaches)) is not None
    ]
    default_servers = {kind: url for kind, url in servers.items() if kind not in reaches}
    addresses = local_addresses(default_servers, environment)
    non_chat_models: list[str] = []
    passed: list[str] = []
    async with Connections() as connections:
        lists = {a.provider.name: _unseatable_reason(a, environment, connections) for a in lookups}
        async with anyio.create_task_group() as group:
            for each in (a for a in lookups if not lists[a.provider.name]):
                group.start_soon(_ask, each, connections, lists, non_chat_models, passed)
            local = await find_local_servers(addresses)
    sources = [models for models in lists.values() if isinstance(models, tuple) and models]
    sources += [
        models for server in local if (models := _local_seats(server, environment, non_chat_models))
    ]
    problems = [problem for problem in lists.values() if isinstance(problem, str)]
    problems += sorted(passed)
    if non_chat_models:
        problems.append(f"skipped, apparently no chat models: {list_text(sorted(non_chat_models))}")
    return sources, problems


async def price_by_lists(
    specs: Sequence[SeatSpec], environment: Mapping[str, str]
) -> tuple[SeatSpec, ...]:
    """Add prices from providers' lists to seats of unknown price.

    Each list is requested once. A price stays unknown if the provider has no key here, no list, or
    no price in it.
    """
    lookups: dict[_Endpoint, _Lookup] = {}
    for spec in filter(partial(lacks_price, environment=environment), specs):
        place = Reach(spec.url, spec.key_variable)
        lookup = _make_request(PROVIDERS[spec.provider], environment, {spec.provider: place})
        if lookup is not None and lookup.listing is not None:
            lookups[_endpoint(spec)] = lookup
    if not lookups:
        return tuple(specs)
    prices: dict[tuple[_Endpoint, str], Price] = {}
    async with Connections() as connections, anyio.create_task_group() as group:
        for endpoint, each in lookups.items():
            group.start_soon(_look_up, endpoint, each, connections, prices)
    return tuple(
        replace(spec, price=prices.get((_endpoint(spec), spec.model)))
        if lacks_price(spec, environment)
        else spec
        for spec in specs
    )


async def price_config(config: Config, environment: Mapping[str, str]) -> Config:
    """Add prices from providers' lists to configured seats."""
    specs = (*config.members, *config.jury, *config.chairmen)
    prices = await price_by_lists(specs, environment)
    n_members, n_seats = len(config.members), len(config.members) + len(config.jury)
    return replace(
        config,
        members=prices[:n_members],
        jury=prices[n_members:n_seats],
        chairmen=prices[n_seats:],
    )


def lacks_price(spec: SeatSpec, environment: Mapping[str, str]) -> bool:
    """Check for a paid provider's seat without a known price."""
    provider = PROVIDERS.get(spec.provider)
    if provider is None or provider.local:
        return False
    try:
        return price_of_seat(spec, environment) is None
    except ConfigError:
        return False  # an invalid address: seating it raises the error


def _endpoint(spec: SeatSpec) -> _Endpoint:
    return spec.provider, spec.url, spec.key_variable


async def _look_up(
    endpoint: _Endpoint,
    lookup: _Lookup,
    connections: Connections,
    prices: dict[tuple[_Endpoint, str], Price],
) -> None:
    """Store the prices of a provider's list, if it comes in time."""
    with anyio.move_on_after(LOOK_SECONDS), suppress(ModelError):
        for model in await lookup.list_models(connections):
            if model.price is not None:
                prices[endpoint, model.id.strip()] = model.price


def deal(sources: Sequence[Source]) -> list[SeatSpec]:
    """Take one seat per source, then more in turn until enough."""
    seats = [source[0] for source in sources[:MAX_SEATS]]
    for turn in range(1, max(map(len, sources))):
        for source in sources:
            if len(seats) < MIN_SEATS and len(source) > turn:
                seats.append(source[turn])
    return seats


def _make_request(
    provider: Provider, environment: Mapping[str, str], reaches: Mapping[str, Reach]
) -> _Lookup | None:
    """Return the request for a provider's list; None without key or list."""
    place = reaches.get(provider.name, Reach())
    if provider.local and provider.name not in reaches:
        return None  # these are searched at their default address
    spec = SeatSpec("", provider.name, "", url=place.url, key_variable=place.key_variable)
    variables = key_variables(spec)
    key = find_key(variables, environment)
    if (key is None and variables) or not (provider.local or variables):
        return None
    try:
        moved_url = base_url(spec, environment)
    except ConfigError as error:
        return _Lookup(provider, spec, None, key, str(error))
    listing = provider.listing(moved_url if moved_url != provider.url else None)
    if listing is None and place.url is None:
        return None
    free = provider.local and moved_url is not None and is_loopback(moved_url)
    return _Lookup(provider, spec, listing, key, free=free)


def _unseatable_reason(
    lookup: _Lookup, environment: Mapping[str, str], connections: Connections
) -> Source | str:
    """Return why no model of a provider can be seated.

    None means that its models are not known yet.
    """
    name = lookup.provider.name
    if lookup.listing is None:
        return f"{name} was skipped: {lookup.problem}"
    try:
        [spec] = _seats(lookup.seat, ["any"])
        seat(replace(spec, name=name), environment, connections)
    except (ConfigError, MissingExtra) as error:
        return f"{name} was skipped: {error}"
    return ()


async def _ask(
    lookup: _Lookup,
    connections: Connections,
    lists: dict[str, Source | str],
    silent: list[str],
    skips: list[str],
) -> None:
    """Store a provider's chat models, best first, or why there are none."""
    name = lookup.provider.name
    lists[name] = f"{name} did not list its models within {LOOK_SECONDS:g} s"
    with anyio.move_on_after(LOOK_SECONDS):
        try:
            models = await lookup.list_models(connections)
        except ModelError as error:
            origin = "" if lookup.key is None else f" (key from {lookup.key[0]})"
            lists[name] = f"{error}{origin}"
            return
        silent += [f"{name}:{model.id}" for model in models if not model.chats]
        chosen_models = choose(name, models, free=lookup.free)
        skips += chosen_models.notes(name)
        lists[name] = tuple(
            replace(seat, price=price)
            for model, price in chosen_models.models
            for seat in _seats(lookup.seat, [model])
        )


def _seats(template: SeatSpec, models: Sequence[str]) -> Source:
    """Return the seats of these models, without blank ids."""
    model_names = (model.strip() for model in models)
    return tuple(
        replace(template, source=f"{template.provider}:{model}", model=model)
        for model in model_names
        if model
    )


def _local_seats(server: LocalServer, environment: Mapping[str, str], silent: list[str]) -> Source:
    """Return the chat models of a local server; note the others."""
    silent += [f"{server.kind}:{name}" for name in server.models if not seems_to_chat(name)]
    return tuple(
        spec if base_url(spec, environment) == server.url else replace(spec, url=server.url)
        for spec in _seats(
            SeatSpec("", server.kind, ""), [name for name in server.models if seems_to_chat(name)]
        )
    )


def describe_search(reaches: Mapping[str, Reach] = NOT_MOVED) -> str:
    """Describe where `find_council` looks for keys and servers."""
    specs = [
        SeatSpec("", p.name, "", key_variable=reaches.get(p.name, Reach()).key_variable)
        for p in PROVIDERS.values()
        if p.listing(None)
    ]
    variables = dict.fromkeys(v for spec in specs for v in key_variables(spec))
    keys = list_text([*variables], most=len(variables))
    servers = list_text([*LOCAL_SERVERS], most=len(LOCAL_SERVERS))
    return f"looked for keys in {keys}, and for {servers} here"


_OTHER_WAYS = (Way("run ", operation="init", command=True), "ask the profile demo")


def _no_council(
    problems: Sequence[str], reaches: Mapping[str, Reach], jury_origin: str | None
) -> NoCouncil:
    if jury_origin is not None:
        reason = "; ".join(problems) or NOTHING_HERE
        return NoCouncil(
            f"{jury_origin} names a jury but no members to answer, and none was found: {reason}",
            "add members there, or have the jury judge texts",
        )
    if not problems:
        key_names = [reach.key_variable for reach in reaches.values() if reach.key_variable]
        key = key_names[0] if key_names else "OPENAI_API_KEY"
        return NoCouncil(
            f"no model to ask: {NOTHING_HERE}", Remedy(f"export a key such as {key}", *_OTHER_WAYS)
        )
    return NoCouncil(
        f"no model to ask: {'; '.join(problems)}",
        Remedy("export another provider's key", *_OTHER_WAYS),
    )


QUESTION = "x" * 2_000
"""A question of one page, for estimating the first ceiling."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A configuration before it is written.

    `ceiling`: ceiling of one question in US dollars; None if nothing costs anything.
    `expected`: expected cost of a question of one page; None if unknown.
    """

    text: str
    ceiling: float | None
    expected: float | None
    notes: tuple[str, ...]


def draft(
    seats: Sequence[SeatSpec],
    environment: Mapping[str, str],
    *,
    ceiling: float | None = None,
    is_trusted: bool = False,
    lengths: Lengths = TYPICAL,
) -> Draft:
    """Write the configuration of these members.

    `ceiling`: ceiling in US dollars; None: the highest cost when nothing fails.
    `is_trusted`: whether the file may have prices, as the user's own may.
    """
    prices = {spec.name: spec.price or price_of_seat(spec, environment) for spec in seats}
    plan = make_plan(
        [Seat(s.name, s.source, s.provider, s.options, prices[s.name]) for s in seats],
        (),
        Procedure(),
        QUESTION,
        lengths=lengths,
    )
    if ceiling is None and plan.usual_usd:
        ceiling = _round_up(plan.usual_usd)
    seats_with_price = {s.name: s for s in seats if _is_stated_alone(s, environment)}
    lines = ["# Written by witan init. Keys stay in the environment.", "members = ["]
    lines += [f"    {_quote(_write_seat(s))},  # {format_price(s, environment)}" for s in seats]
    lines += ["]"]
    if ceiling is not None:
        lines += ["", "[limits]", f"max_cost_usd = {ceiling!r}  # of one question, in US dollars"]
    notes = [] if plan.separation is None else [separation_sentence(plan.separation)]
    rates = {name: price for name in seats_with_price if (price := prices[name]) is not None}
    if rates and is_trusted:
        lines += ["", "[price]  # US dollars per million tokens read and written, as listed"]
        lines += [
            f"{_quote(_write_seat(seats_with_price[name]))} = [{p.input_usd!r}, {p.output_usd!r}]"
            for name, p in rates.items()
        ]
    if ceiling is not None and (unpriced := plan.unpriced_seats):
        notes.append(
            f"the price of {list_text(unpriced)} is unknown, so under the ceiling they are not "
            f"called: ask with --price {unpriced[0]}=IN,OUT (US dollars per million tokens)"
        )
    return Draft("\n".join([*lines, ""]), ceiling, plan.expected_usd, tuple(notes))


def _is_stated_alone(spec: SeatSpec, environment: Mapping[str, str]) -> bool:
    """Check that only its own list states the seat's price."""
    listed_price = price_of_seat(replace(spec, price=None), environment)
    return listed_price is None or (listed_price == FREE and spec.price not in (None, FREE))


def sort_by_known_price(sources: Sequence[Source]) -> list[Source]:
    """Sort models first by whether their price is known without the list."""
    return [
        tuple(sorted(source, key=lambda spec: price_of_seat(replace(spec, price=None), {}) is None))
        for source in sources
    ]


def format_price(spec: SeatSpec, environment: Mapping[str, str]) -> str:
    """Return the price of a seat in US dollars per million tokens."""
    price: Price | None = spec.price or price_of_seat(spec, environment)
    if price is None:
        return "price unknown"
    if price.input_usd == price.output_usd == 0:
        return "free"
    return f"${price.input_usd:g} / ${price.output_usd:g}"


def _write_seat(spec: SeatSpec) -> str:
    return f"{spec.url}#{spec.model}" if spec.url and "#" not in spec.source else spec.source


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _round_up(usd: float) -> float:
    """To two digits, never down."""
    step = 10.0 ** (floor(log10(usd)) - 1)
    digits = max(0, 1 - floor(log10(usd)))
    return round(step * (int(usd / step) + 1), digits)
