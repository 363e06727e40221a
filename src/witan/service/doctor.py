"""Diagnose a configuration: seats, keys, servers, history, server and profiles."""

import platform
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import anyio

from witan.deliberation.plan import TYPICAL, check_priced
from witan.deliberation.planner import panel_separation
from witan.deliberation.ports import Price, Seat
from witan.deliberation.procedure import Procedure
from witan.errors import ConfigError, HistoryError, ModelError, NoCouncil, UnknownName, WitanError
from witan.history import HistorySummary, LockWait, parse_location
from witan.history.engines import SqliteDatabase, is_full
from witan.history.location import redact_password
from witan.history.schema import has_log
from witan.models.connections import Connections, LocalServer, find_local_servers, list_models
from witan.models.providers import LOCAL_SERVERS, PROVIDERS, Provider, Reach, find_key
from witan.models.scripted import read_script
from witan.models.seats import (
    SeatSpec,
    address,
    base_url,
    key_variables,
    local_addresses,
    price_of_seat,
)
from witan.service.config.configuration import Config, profile_config
from witan.service.config.layers import Setting
from witan.service.config.serve import on_server, token_digests
from witan.service.council import Council
from witan.service.council_discovery import describe_search, find_council, lacks_price
from witan.service.history_access import history_exists, history_place, open_history
from witan.service.procedure_options import locate_error, procedure_of
from witan.service.settings import SEATS, TOKENS, dotted_key, strip_profile
from witan.service.trust import separation_sentence, shared_votes

ANSWER_SECONDS = 3.0
"""Seconds that an endpoint may take to list its models."""

DEFAULT = "default"

PACKAGES = ("numpy", "scipy", "pydantic", "httpx2", "anyio", "pydantic-ai-slim")

State = Literal["ready", "unchecked", "unable"]
"""The state of a seat; ``unchecked``: unknown.

A server may also offer models that it does not list.
"""

_SHUT = (None, 401, 403)
"""Statuses of an endpoint at which every call fails: no reply, or a refused key."""

UNWRITABLE = "can be read but not written, so no session can be recorded there; name another place"
FULL = "can be read but not written, as the disk is full; free some space, or name another place"


@dataclass(frozen=True, slots=True)
class SettingFinding:
    """A changed setting and its source: a file or a variable."""

    key: str
    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class SeatFinding:
    """A seat, and whether it can be used.

    Parameters
    ----------
    variable, has_key
        Where its key is or should be, and whether it is set; None if it needs none.
    finding
        The result of a check of its endpoint, script or program.
    url, url_from
        Its address, and the seat, setting or variable with it, or ``default``; None: none, or the
        client library decides.
    """

    name: str
    seat: str
    provider: str
    variable: str | None
    has_key: bool | None
    price: Price | None
    state: State
    finding: str
    url: str | None = None
    url_from: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """The result of a check of the history.

    Parameters
    ----------
    found
        A summary; None: it does not exist yet, was not checked, or cannot be opened.
    problem
        Why it cannot be opened or written.
    note
        What else there is to know.
    """

    place: str
    enabled: bool
    found: HistorySummary | None = None
    problem: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TokenFinding:
    """A client's token: its variable, and its problem, if any."""

    name: str
    variable: str | None
    state: Literal["present", "unusable"]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ServeFinding:
    """The configured server, and obstacles to its start."""

    url: str | None
    tokens: tuple[TokenFinding, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileFinding:
    """A profile: names of its seats, or why it is unavailable."""

    name: str
    about: str
    members: tuple[str, ...] = ()
    problem: str | None = None
    jury: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings about a configuration.

    Parameters
    ----------
    can_sit
        Whether the council can run.
    problems
        What prevents it, a sentence each.
    notes
        What else there is to know.
    """

    can_sit: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[str, ...]
    settings: tuple[SettingFinding, ...]
    members: tuple[SeatFinding, ...]
    jury: tuple[SeatFinding, ...]
    chairmen: tuple[SeatFinding, ...]
    servers: tuple[LocalServer, ...]
    history: HistoryFinding
    serve: ServeFinding
    profiles: tuple[ProfileFinding, ...]
    versions: Mapping[str, str]


async def diagnose(
    config: Config,
    environment: Mapping[str, str],
    history: HistoryFinding,
    *,
    offline: bool = False,
) -> Diagnosis:
    """Check everything a council needs.

    Every endpoint is called at once, or none with `offline`. The history was checked before, as
    that may take long and waits for nothing.
    """
    problems, notes = list[str](), list[str]()
    procedure, members = Procedure(), config.members
    try:
        procedure = procedure_of(config)
    except ConfigError as error:
        problems.append(str(error))
    try:
        if members:
            notes += shared_votes(config.jury or members)
        elif offline:
            remedy = "run without --offline to look for keys and local servers"
            raise NoCouncil("no council is configured", remedy)
        else:
            discovery = await find_council(
                environment, reaches=config.reach_by_provider, jury_origin=config.jury_origin
            )
            members = discovery.seats
            notes += discovery.notes
    except (ConfigError, NoCouncil) as error:
        problems.append(str(error))
        notes += [] if offline else [describe_search(config.reach_by_provider)]
    async with Connections() as connections:
        seats = _Seats(config, environment, connections, offline=offline)
        sitting, jury, chairmen = [
            await seats.examine(each) for each in (members, config.jury, config.chairmen)
        ]
    local: Sequence[LocalServer] = ()
    try:
        places = local_addresses({} if offline else LOCAL_SERVERS, environment)
        local = await find_local_servers(places) if places else ()
    except ConfigError as error:
        notes.append(str(error))
    if len(members) >= 2:
        voters, judges = (
            [Seat(s.name, s.source, s.provider) for s in each] for each in (members, config.jury)
        )
        if (separable := panel_separation(voters, procedure, judges)) is not None:
            notes.append(separation_sentence(separable).rstrip("."))
    problems += _absences(sitting, (*jury, *chairmen))
    if not problems:
        priced = replace(
            config,
            jury=_price_seats(config.jury, jury),
            chairmen=_price_seats(config.chairmen, chairmen),
        )
        problems += _refusals(priced, _price_seats(members, sitting), procedure, environment)
    problems += [history.problem] if history.problem and history.enabled else []
    return Diagnosis(
        can_sit=not problems,
        problems=tuple(problems),
        notes=tuple(notes),
        files=config.files,
        settings=tuple(_show_value(setting, config) for setting in config.settings),
        members=sitting,
        jury=jury,
        chairmen=chairmen,
        servers=tuple(local),
        history=history,
        serve=diagnose_serve(config, environment),
        profiles=tuple(
            _profile(config, name, each.about) for name, each in config.profiles.items()
        ),
        versions={"witan": version("witan"), "python": platform.python_version()}
        | {package: _version(package) for package in PACKAGES},
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _show_value(setting: Setting, config: Config) -> SettingFinding:
    """Show a setting: seats by name, without passwords or token digests."""
    value, key = setting.value, setting.key
    if key in SEATS:
        value = [each.name for each in getattr(config, key[0])]
    elif strip_profile(key) in SEATS:
        value = [entry.name or entry.seat for entry in value]
    elif key[: len(TOKENS)] == TOKENS and key[-1] == "sha256":
        value = "given"
    elif key == ("history", "url"):
        value = _write_place(config)
    return SettingFinding(dotted_key(key), value, setting.origin)


def _price_seats(specs: Sequence[SeatSpec], seats: Sequence[SeatFinding]) -> tuple[SeatSpec, ...]:
    pairs = zip(specs, seats, strict=True)
    return tuple(replace(spec, price=finding.price) for spec, finding in pairs)


def _refusals(
    config: Config,
    members: Sequence[SeatSpec],
    procedure: Procedure,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the error of `witan ask` for these members; empty if none."""
    try:
        with locate_error(config):
            council = Council(
                members,
                config.chairmen,
                jury=config.jury,
                environment=environment,
                procedure=procedure,
            )
            check_priced(council.plan("?", lengths=TYPICAL), procedure.limits.max_cost_usd)
    except WitanError as error:
        return [str(error)]
    return []


def _absences(members: Sequence[SeatFinding], others: Sequence[SeatFinding]) -> list[str]:
    """Describe why the seats do not form a council."""
    seats = {finding.name: finding for finding in (*members, *others)}
    keyless = [
        f"{s.name} needs a key: set {s.variable}" for s in seats.values() if s.has_key is False
    ]
    unusable_seats = [finding for finding in members if finding.state == "unable"]
    if not members or len(members) - len(unusable_seats) >= 2:
        return keyless
    count = "one member" if len(members) > len(unusable_seats) else "no member"
    silent_seats = [f"{s.name}: {s.finding}" for s in unusable_seats if s.has_key is not False]
    return [*keyless, f"a council needs two members, and {count} can be called", *silent_seats]


def diagnose_history(
    config: Config, *, offline: bool = False, on_session: Callable[[int], None] | None = None
) -> HistoryFinding:
    """Check the whole configured history, without creating it.

    `on_session`: called before each session of the history is read, with the number of earlier
    ones.
    """
    whole, place = history_place(config), _write_place(config)
    finding = HistoryFinding(place, config.history.enabled)
    if on_server(whole) and offline:
        return replace(finding, note="it is on a server, and was not checked")
    try:
        if not history_exists(whole):
            return replace(finding, note="it does not exist yet; the first session creates it")
        file = parse_location(whole)
        if isinstance(file, Path) and file.is_file() and not (file.stat().st_size or has_log(file)):
            note = "the file is empty; the first session makes a history of it"
            return replace(finding, note=note)
        with open_history(config, LockWait(None), reading=True) as history:
            history.check(on_session)
            database = history.database
            full = isinstance(database, SqliteDatabase) and is_full(database.path)
            problem = f"{place}: {FULL if full else UNWRITABLE}" if history.read_only else None
            return replace(finding, found=history.describe(), problem=problem)
    except HistoryError as error:
        return replace(finding, problem=str(error))
    except WitanError as error:
        return replace(finding, problem=f"{place}: {error}")


def _write_place(config: Config) -> str:
    place = history_place(config)
    return redact_password(place) if on_server(place) else place


def diagnose_serve(config: Config, environment: Mapping[str, str]) -> ServeFinding:
    """Check the configured server, and whether its tokens are set."""
    try:
        serve = config.serve
    except ConfigError as error:
        return ServeFinding(None, problems=(str(error),))
    problems = [serve.refusal] if serve.refusal is not None else []
    tokens = []
    for token in serve.tokens.values():
        problem = token.problem(environment)
        state: Literal["present", "unusable"] = "present" if problem is None else "unusable"
        tokens.append(TokenFinding(token.name, token.key, state, problem))
    try:
        token_digests(serve, environment)
    except ConfigError as error:
        problems.append(str(error))
    return ServeFinding(serve.url, tuple(tokens), tuple(problems))


def _profile(config: Config, name: str, about: str) -> ProfileFinding:
    try:
        configuration = profile_config(config, name)
        procedure_of(configuration)
    except WitanError as error:
        return ProfileFinding(name, about, problem=str(error))
    members, jury = (
        tuple(seat.name for seat in each) for each in (configuration.members, configuration.jury)
    )
    return ProfileFinding(name, about, members, jury=jury)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An endpoint's list: address, key variable and owner."""

    url: str
    variable: str | None
    provider: Provider


@dataclass(frozen=True, slots=True)
class _Listing:
    """An endpoint's reply: models with prices, or the problem."""

    state: State
    problem: str
    models: Mapping[str, Price | None] = field(default_factory=dict)


class _Seats:
    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        connections: Connections,
        *,
        offline: bool,
    ) -> None:
        self._config, self._offline = config, offline
        self._environment, self._connections = environment, connections
        self._lists: dict[_Endpoint, _Listing] = {}

    async def examine(self, specs: Sequence[SeatSpec]) -> tuple[SeatFinding, ...]:
        """Examine each seat, in order."""
        places = [self._endpoint(spec) for spec in specs]
        async with anyio.create_task_group() as group:
            for place in dict.fromkeys(places):
                if isinstance(place, _Endpoint) and not (self._offline or place in self._lists):
                    group.start_soon(self._ask, place)
        return tuple(self._finding(spec, place) for spec, place in zip(specs, places, strict=True))

    def _endpoint(self, spec: SeatSpec) -> "_Endpoint | ConfigError | None":
        """Return the models endpoint of a seat; None without list or key."""
        variables = key_variables(spec)
        key = find_key(variables, self._environment)
        provider = PROVIDERS.get(spec.provider, Provider(spec.provider, url=spec.url))
        try:
            url = base_url(spec, self._environment)
        except ConfigError as error:
            return error
        listing = provider.listing(url if url != provider.url or spec.url else None)
        if listing is None or (variables and key is None):
            return None
        return _Endpoint(listing, None if key is None else key[0], provider)

    async def _ask(self, place: _Endpoint) -> None:
        key = None if place.variable is None else self._environment[place.variable].strip()
        self._lists[place] = _Listing("unable", f"did not answer within {ANSWER_SECONDS:g} s")
        with anyio.move_on_after(ANSWER_SECONDS):
            try:
                models = await list_models(
                    "the endpoint",
                    place.url,
                    key,
                    self._connections,
                    key_header=place.provider.key_header,
                    folder=place.provider.models_folder,
                )
            except ModelError as error:
                state: State = "unable" if error.status in _SHUT else "unchecked"
                self._lists[place] = _Listing(state, error.problem)
            else:
                self._lists[place] = _Listing("ready", "", {m.id.strip(): m.price for m in models})

    def _finding(self, spec: SeatSpec, place: "_Endpoint | ConfigError | None") -> SeatFinding:
        variables = key_variables(spec)
        key = find_key(variables, self._environment)
        listing = self._lists.get(place) if isinstance(place, _Endpoint) else None
        if isinstance(place, ConfigError):
            price = spec.price
        elif listing is not None and lacks_price(spec, self._environment):
            price = listing.models.get(spec.model)
        else:
            price = price_of_seat(spec, self._environment)
        if spec.provider in ("script", "cmd"):
            state, finding = _examine_program(spec)
        elif variables and key is None:
            state, finding = "unable", "it lacks its key"
        elif isinstance(place, ConfigError):
            state, finding = "unable", str(place)
        else:
            state, finding = _find_model(spec.model, listing)
        return SeatFinding(
            name=spec.name,
            seat=spec.source,
            provider=spec.provider,
            variable=key[0] if key else " or ".join(variables) or None,
            has_key=key is not None if variables else None,
            price=price,
            state=state,
            finding=finding,
            **({} if isinstance(place, ConfigError) else self._address(spec)),
        )

    def _address(self, spec: SeatSpec) -> dict[str, str]:
        place = address(spec, self._environment)
        provider = PROVIDERS.get(spec.provider)
        url = place.url or (None if provider is None else provider.address)
        if url is None:
            return {}
        origin = place.variable or DEFAULT
        if spec.url is not None:
            reach = self._config.reach_by_provider.get(spec.provider, Reach())
            key = dotted_key(("providers", spec.provider, "url"))
            origin = self._config.origins[key] if reach.url == spec.url else "the seat"
        return {"url": url, "url_from": origin}


def _examine_program(spec: SeatSpec) -> tuple[State, str]:
    """Check for a readable script, or a program that can start."""
    if spec.provider == "cmd":
        has_program = shutil.which(shlex.split(spec.model)[0]) is not None
        return ("ready", "program found") if has_program else ("unable", "no such program")
    try:
        read_script(spec.model)
    except ConfigError as error:
        return "unable", str(error)
    return "ready", "its script can be read"


def _find_model(model: str, listing: _Listing | None) -> tuple[State, str]:
    """Find a model in an endpoint's list; None without a call."""
    if listing is None:
        return "unchecked", "not asked"
    if listing.state != "ready":
        return listing.state, listing.problem
    if model in listing.models:
        return "ready", "answers, knows the model"
    nearest = UnknownName("model", model, listing.models).nearest
    hint = "" if nearest is None else f"; did you mean {nearest}?"
    return "unchecked", f"answers, does not list {model}{hint}"
