"""Diagnose a configuration: seats, keys, servers, history, server and profiles."""

import platform
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import anyio

from witan.core.interpretation import Counting
from witan.deliberation.plan import TYPICAL, check_priced
from witan.deliberation.planner import panel_separation
from witan.deliberation.ports import Price, Seat
from witan.deliberation.procedure import Procedure
from witan.errors import ConfigError, HistoryError, ModelError, NoCouncil, UnknownName, WitanError
from witan.history import HistorySummary, LockWait, parse_location
from witan.history.engines import SqliteDatabase, is_full
from witan.history.location import redact_password
from witan.history.schema import has_log
from witan.models.connections import Connections, list_models
from witan.models.providers import (
    LOCAL_SERVERS,
    PROVIDERS,
    LocalServer,
    Provider,
    Reach,
    find_key,
    find_local_servers,
)
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
from witan.service.config.history import on_server
from witan.service.config.layers import Setting, dotted
from witan.service.config.schema import (
    NAME_TABLES,
    OPEN_TABLES,
    PROFILES,
    SEATS,
    TOKENS,
    Key,
    fixed_keys,
    within,
)
from witan.service.config.serve import ServeSettings, token_digests
from witan.service.council import Council
from witan.service.council_discovery import (
    DiscoveredCouncil,
    find_council,
    lacks_price,
    searched,
)
from witan.service.history_access import history_place, is_there, open_history
from witan.service.procedure_options import locate_error, procedure_of
from witan.service.trust import separation_sentence, shared_votes

UNWRITABLE = (
    "can be read and not written, so that no session can be recorded there; name another place"
)
FULL = "can be read and not written, as the disk is full; free some space, or name another place"


@dataclass(frozen=True, slots=True)
class HistoryFinding:
    """The history, as far as it could be looked into.

    Parameters
    ----------
    found
        None: it is not there yet, was not asked, or cannot be opened.
    problem
        Why it cannot be opened, or written.
    note
        What else there is to know.
    """

    place: str
    enabled: bool
    found: HistorySummary | None = None
    problem: str | None = None
    note: str | None = None

    @property
    def hindrances(self) -> list[str]:
        """Reasons that sessions cannot be recorded."""
        return [self.problem] if self.problem is not None and self.enabled else []


def settings_shown(config: Config) -> Mapping[str, Any]:
    """Return the settings of the history as they may be shown: without a password."""
    settings = config.history
    return {
        "url": _write_place(config),
        "keep_days": settings.keep_days,
        "enabled": settings.enabled,
    }


def diagnose_history(config: Config, *, offline: bool = False) -> HistoryFinding:
    """Look through the whole configured history, which is not made where it is not there."""
    place, enabled = _write_place(config), config.history.enabled
    whole = history_place(config)
    if on_server(whole) and offline:
        return HistoryFinding(place, enabled, note="it is on a server, and was not asked")
    try:
        if not is_there(whole):
            note = "it is not there yet; the first session makes it"
            return HistoryFinding(place, enabled, note=note)
        if _is_empty(whole):
            note = "the file is empty; the first session makes a history of it"
            return HistoryFinding(place, enabled, note=note)
        with open_history(config, LockWait(None), reading=True) as history:
            history.check()
            database = history.database
            full = isinstance(database, SqliteDatabase) and is_full(database.path)
            why = FULL if full else UNWRITABLE
            problem = f"{place}: {why}" if history.read_only else None
            return HistoryFinding(place, enabled, history.describe(), problem)
    except HistoryError as error:
        return HistoryFinding(place, enabled, problem=str(error))
    except WitanError as error:
        return HistoryFinding(place, enabled, problem=f"{place}: {error}")


def _is_empty(place: str) -> bool:
    """Check for an empty file without a log beside it."""
    file = parse_location(place)
    return isinstance(file, Path) and file.is_file() and not (file.stat().st_size or has_log(file))


def _write_place(config: Config) -> str:
    place = history_place(config)
    return redact_password(place) if on_server(place) else place


@dataclass(frozen=True, slots=True)
class TokenFinding:
    """One who may ask: where the token is, and why it could not be used, if it could not.

    Parameters
    ----------
    variable
        None: only its digest is configured.
    """

    name: str
    variable: str | None
    state: Literal["present", "unusable"]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ServeFinding:
    """The server as it would be started.

    Parameters
    ----------
    url
        None: what is configured of it cannot be used.
    problems
        What keeps it from starting, a sentence each.
    """

    url: str | None
    tokens: tuple[TokenFinding, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileFinding:
    """One profile: who would sit, and what is wrong with it, if anything is.

    Parameters
    ----------
    members
        Names of seats; empty: whoever is found.
    jury
        Names of seats; empty: the members review each other.
    """

    name: str
    about: str
    members: tuple[str, ...] = ()
    problem: str | None = None
    jury: tuple[str, ...] = ()


def diagnose_serve(config: Config, environment: Mapping[str, str]) -> ServeFinding:
    """Look at what is configured of the server, and whether its tokens are there."""
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


def diagnose_profiles(config: Config) -> tuple[ProfileFinding, ...]:
    """Look at every profile as if it were taken; no endpoint is asked."""
    result = []
    for profile in config.profiles.values():
        try:
            taken = profile_config(config, profile.name)
            procedure_of(taken)
        except WitanError as error:
            result.append(ProfileFinding(profile.name, profile.about, problem=str(error)))
        else:
            names = tuple(member.name for member in taken.members)
            jury = tuple(juror.name for juror in taken.jury)
            result.append(ProfileFinding(profile.name, profile.about, names, jury=jury))
    return tuple(result)


def serve_shown(config: Config) -> Mapping[str, Any]:
    """List settings of the server, defaults included, without tokens and digests."""
    try:
        serve = config.serve
    except ConfigError:
        serve = ServeSettings()
    named = [field.name for field in fields(serve) if field.name != "tokens"]
    return {dotted(("serve", name)): getattr(serve, name) for name in named}


def shown_value(setting: Setting) -> Any:
    """Return the value of a setting as it may be shown: seats by name, no digest of a token."""
    if within(setting.key) in SEATS:
        return [entry.name or entry.seat for entry in setting.value]
    if setting.key[: len(TOKENS)] == TOKENS and setting.key[-1] == "sha256":
        return "given"
    return setting.value


def own_keys(keys: Iterable[Key]) -> list[Key]:
    """Return those of tokens and profiles, whose names are the user's own."""
    return [key for key in keys if key[0] == PROFILES or key[: len(TOKENS)] == TOKENS]


ANSWER_SECONDS = 3.0
"""Seconds that an endpoint may take to list its models."""

DEFAULT = "default"

PACKAGES = ("numpy", "scipy", "pydantic", "httpx2", "anyio", "pydantic-ai-slim")

State = Literal["ready", "unchecked", "unable"]
"""The state of a seat; ``unchecked``: nothing shows that it could be taken, nor that it could not.

A server may chat that lists no models, or not the one that is asked for.
"""

_SHUT = (None, 401, 403)
"""Statuses of an endpoint that no call gets past: no reply, or a refused key."""


@dataclass(frozen=True, slots=True)
class SettingFinding:
    """One setting: its value, and the file or variable it comes from, or ``default``."""

    key: str
    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class SeatFinding:
    """One seat, and whether it could be taken.

    Parameters
    ----------
    variable
        Where its key is, or is looked for; None: it needs none.
    has_key
        None: it needs none.
    price
        None: unknown.
    finding
        What was found out about its endpoint, script or program.
    url
        Where it is called; None: nowhere, or where its client library decides.
    url_from
        The seat, setting or variable that the address comes from, or ``default``; None: it has
        none that is known.
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
class Diagnosis:
    """Everything found out.

    Parameters
    ----------
    problems
        What keeps the council from sitting, a sentence each; empty: it could.
    notes
        What else there is to know.
    """

    files: tuple[str, ...]
    settings: tuple[SettingFinding, ...]
    members: tuple[SeatFinding, ...]
    jury: tuple[SeatFinding, ...]
    chairmen: tuple[SeatFinding, ...]
    servers: tuple[LocalServer, ...]
    versions: Mapping[str, str]
    history: HistoryFinding
    serve: ServeFinding
    profiles: tuple[ProfileFinding, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def can_sit(self) -> bool:
        """True if a council could sit."""
        return not self.problems


async def diagnose(
    config: Config,
    environment: Mapping[str, str],
    *,
    offline: bool = False,
    servers: Mapping[str, str] = LOCAL_SERVERS,
) -> Diagnosis:
    """Look at everything a council needs; ask every endpoint at once, or none when `offline`."""
    problems, notes = list[str](), list[str]()
    procedure = Procedure()
    try:
        procedure = procedure_of(config)
    except ConfigError as error:
        problems.append(str(error))
    members = config.members
    if not members:
        try:
            found = await _find_council(config, environment, servers, offline=offline)
            members = found.seats
            notes += found.notes
        except (ConfigError, NoCouncil) as error:
            problems.append(str(error))
            if not offline:
                notes.append(searched(servers, config.reached))
    else:
        notes += shared_votes(config.jury or members)
    async with Connections() as connections:
        examining = _Seats(config, environment, connections, offline=offline)
        seats = await examining.look([*members, *config.jury, *config.chairmen])
    local, astray = await _servers(environment, {} if offline else servers)
    notes += astray
    n_members, n_seats = len(members), len(members) + len(config.jury)
    separable = None
    if n_members >= 2:
        separable = panel_separation(
            [Seat(spec.name, spec.source, spec.provider) for spec in members],
            procedure,
            [Seat(spec.name, spec.source, spec.provider) for spec in config.jury],
        )
    if separable is not None:
        notes.append(separation_sentence(separable).rstrip("."))
    problems += _unable(seats[:n_members], seats[n_members:])
    members = _priced(members, seats)
    config = replace(
        config,
        jury=_priced(config.jury, seats[n_members:]),
        chairmen=_priced(config.chairmen, seats[n_seats:]),
    )
    if not problems:
        problems += _refused(config, members, procedure, environment)
    history = diagnose_history(config, offline=offline)
    problems += history.hindrances
    return Diagnosis(
        files=config.files,
        settings=tuple(_settings(config, procedure)),
        members=tuple(seats[:n_members]),
        jury=tuple(seats[n_members:n_seats]),
        chairmen=tuple(seats[n_seats:]),
        servers=tuple(local),
        versions=_versions(),
        history=history,
        serve=diagnose_serve(config, environment),
        profiles=diagnose_profiles(config),
        problems=tuple(problems),
        notes=tuple(notes),
    )


async def _servers(
    environment: Mapping[str, str], servers: Mapping[str, str]
) -> tuple[Sequence[LocalServer], list[str]]:
    """Return the servers of this machine, and what kept them from being looked for."""
    try:
        places = local_addresses(servers, environment)
        return (await find_local_servers(places) if places else ()), []
    except ConfigError as error:
        return (), [str(error)]


async def _find_council(
    config: Config,
    environment: Mapping[str, str],
    servers: Mapping[str, str],
    *,
    offline: bool,
) -> DiscoveredCouncil:
    if offline:
        raise NoCouncil(
            "no council is configured", "without --offline, one is looked for in keys and servers"
        )
    return await find_council(environment, servers, reached=config.reached)


def _priced(specs: Sequence[SeatSpec], seats: Sequence[SeatFinding]) -> tuple[SeatSpec, ...]:
    """Return the seats at the prices that were found out, in the same order."""
    pairs = zip(specs, seats, strict=False)
    return tuple(replace(spec, price=finding.price) for spec, finding in pairs)


def _refused(
    config: Config,
    members: Sequence[SeatSpec],
    procedure: Procedure,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the error that `witan ask` would print for a council of these members; empty: none."""
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


def _unable(members: Sequence[SeatFinding], others: Sequence[SeatFinding]) -> list[str]:
    """Return the problems that keep the seats from being a council."""
    seats = {finding.name: finding for finding in (*members, *others)}
    keyless = [
        f"{s.name} needs a key: set {s.variable}" for s in seats.values() if s.has_key is False
    ]
    able = [finding for finding in members if finding.state != "unable"]
    if members and len(able) < 2:
        silent = [
            f"{s.name}: {s.finding}"
            for s in members
            if s.state == "unable" and s.has_key is not False
        ]
        count = "one member" if len(able) == 1 else "no member"
        return [*keyless, f"a council needs two members and {count} could sit", *silent]
    return keyless


def _versions() -> Mapping[str, str]:
    result = {"witan": version("witan"), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed"
    return result


def _settings(config: Config, procedure: Procedure) -> list[SettingFinding]:
    """Return every setting with the value that holds, and whose it is."""
    held = {
        **{f.name: getattr(procedure, f.name) for f in fields(procedure)},
        **{f.name: getattr(procedure.limits, f.name) for f in fields(procedure.limits)},
        **{f.name: getattr(procedure.counting, f.name) for f in fields(procedure.counting)},
        **{f.name: getattr(procedure.counting.counting, f.name) for f in fields(Counting)},
        "rubric": procedure.rubric.name,
        **settings_shown(config),
    }
    served = serve_shown(config)
    settings = {setting.key: setting for setting in config.settings}
    own = [
        key for key in settings if key[:-1] in (*OPEN_TABLES, *NAME_TABLES) or key[0] == "providers"
    ] + own_keys(settings)
    result = [
        SettingFinding(dotted(key), [each.name for each in seats], settings[key].origin)
        for key, seats in zip(SEATS, (config.members, config.jury, config.chairmen), strict=True)
        if key in settings
    ]
    for key in (*(key for key in fixed_keys() if key not in (*SEATS, ("chairman",))), *own):
        otherwise = served.get(dotted(key), held.get(key[-1]))
        value = shown_value(settings[key]) if key in settings else otherwise
        value = held["url"] if key == ("history", "url") else value
        where = settings[key].origin if key in settings else DEFAULT
        result.append(SettingFinding(dotted(key), value, where))
    return result


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """The address of a list of models, the variable of the key, and the key's header."""

    url: str
    variable: str | None
    key_header: str


@dataclass(frozen=True, slots=True)
class _Listing:
    """The reply of an endpoint: its models, with their prices, or else the problem."""

    state: State
    problem: str
    models: Mapping[str, Price | None] = field(default_factory=dict)


class _Seats:
    """Looks at seats, each endpoint asked once however many seats it has."""

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        connections: Connections,
        *,
        offline: bool,
    ) -> None:
        self._config = config
        self._environment, self._connections = environment, connections
        self._offline = offline
        self._lists: dict[_Endpoint, _Listing] = {}

    async def look(self, specs: Sequence[SeatSpec]) -> list[SeatFinding]:
        """Examine each seat, in order."""
        places = [self._endpoint(spec) for spec in specs]
        async with anyio.create_task_group() as group:
            for place in dict.fromkeys(places):
                if isinstance(place, _Endpoint) and not self._offline:
                    group.start_soon(self._ask, place)
        return [self._finding(spec, place) for spec, place in zip(specs, places, strict=True)]

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
        return _Endpoint(listing, None if key is None else key[0], provider.key_header)

    async def _ask(self, place: _Endpoint) -> None:
        key = None if place.variable is None else self._environment[place.variable].strip()
        self._lists[place] = _Listing("unable", f"did not answer within {ANSWER_SECONDS:g} s")
        with anyio.move_on_after(ANSWER_SECONDS):
            try:
                models = await list_models(
                    "the endpoint", place.url, key, self._connections, key_header=place.key_header
                )
            except ModelError as error:
                state: State = "unable" if error.status in _SHUT else "unchecked"
                self._lists[place] = _Listing(state, error.problem)
            else:
                self._lists[place] = _Listing("ready", "", {m.id.strip(): m.price for m in models})

    def _finding(self, spec: SeatSpec, place: "_Endpoint | ConfigError | None") -> SeatFinding:
        variables = key_variables(spec)
        key = find_key(variables, self._environment)
        astray = isinstance(place, ConfigError)
        state, finding = self._state(spec, place)
        return SeatFinding(
            name=spec.name,
            seat=spec.source,
            provider=spec.provider,
            variable=key[0] if key else " or ".join(variables) or None,
            has_key=key is not None if variables else None,
            price=self._price(spec, place),
            state=state,
            finding=finding,
            **({} if astray else self._address(spec)),
        )

    def _price(self, spec: SeatSpec, place: "_Endpoint | ConfigError | None") -> Price | None:
        """Return the price of a seat, from its provider's list where only that states one."""
        if isinstance(place, ConfigError):
            return spec.price
        if place in self._lists and lacks_price(spec, self._environment):
            return self._lists[place].models.get(spec.model)
        return price_of_seat(spec, self._environment)

    def _address(self, spec: SeatSpec) -> dict[str, str]:
        """Return the address at which a seat is called, and its origin."""
        found = address(spec, self._environment)
        provider = PROVIDERS.get(spec.provider)
        url = found.url or (None if provider is None else provider.address)
        if url is None:
            return {}
        origin = found.variable or DEFAULT
        if spec.url is not None:
            reach = self._config.reached.get(spec.provider, Reach())
            key = dotted(("providers", spec.provider, "url"))
            origin = self._config.origins[key] if reach.url == spec.url else "the seat"
        return {"url": url, "url_from": origin}

    def _state(self, spec: SeatSpec, place: "_Endpoint | ConfigError | None") -> tuple[State, str]:
        if spec.provider in ("script", "cmd"):
            return _here(spec)
        if key_variables(spec) and find_key(key_variables(spec), self._environment) is None:
            return "unable", "it lacks its key"
        if isinstance(place, ConfigError):
            return "unable", str(place)
        if place is None or self._offline:
            return "unchecked", "not asked"
        return _model_state(spec.model, self._lists[place])


def _here(spec: SeatSpec) -> tuple[State, str]:
    """Check that a script can be read, or a program started."""
    if spec.provider == "cmd":
        there = shutil.which(shlex.split(spec.model)[0]) is not None
        return ("ready", "its program is there") if there else ("unable", "no such program")
    try:
        read_script(spec.model)
    except ConfigError as error:
        return "unable", str(error)
    return "ready", "its script can be read"


def _model_state(model: str, listing: _Listing) -> tuple[State, str]:
    """Look for a model in an endpoint's list."""
    if listing.state != "ready":
        return listing.state, listing.problem
    if model in listing.models:
        return "ready", "answers, knows the model"
    nearest = UnknownName("model", model, listing.models).nearest
    hint = "" if nearest is None else f"; did you mean {nearest}?"
    return "unchecked", f"answers, does not list {model}{hint}"
