"""The configuration: files, variables and overrides, in order of precedence.

From weak to strong: the user's file, the project's file, variables that begin with ``WITAN_``, the
chosen profile, and overrides. A project's file is ``witan.toml`` in the directory or the nearest
one above it. It may have come with a foreign repository, so it may choose members and procedure,
but it must not run programs, direct keys, set prices, move or delete sessions, or admit clients.
Those settings need a named file, the user's own file, a variable or an option. It cannot raise the
user's own ceilings either.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import platformdirs

from witan.deliberation.ports import Options, Price
from witan.errors import ConfigError, UnknownName
from witan.models.providers import PROVIDERS, Reach
from witan.models.seats import (
    SeatSpec,
    check_url,
    find_price,
    name_seats,
    names_of,
    parse_seat,
    unknown_seat_problem,
)
from witan.service.config.layers import (
    COMMAND_LINE,
    CONFIG_VARIABLE,
    Setting,
    as_option,
    named_keys,
    read_environment,
    read_file,
    read_overrides,
)
from witan.service.config.serve import (
    HistorySettings,
    ServeSettings,
    anchored_place,
    forbidden_to_found_files,
    history_settings,
    serve_settings,
)
from witan.service.settings import (
    OPEN_TABLES,
    PROFILES,
    SEATS,
    TOKENS,
    Key,
    dotted_key,
    strip_profile,
)

if TYPE_CHECKING:
    from witan.service.config.tables import MemberTable

NOBODY: Mapping[str, SeatSpec] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ConfiguredSeats:
    """The named seats of a configuration.

    `empty_seats`: names of chairmen who were members until a stronger source replaced the members.
    """

    members: tuple[SeatSpec, ...]
    jury: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    empty_seats: tuple[str, ...]


def read_seats(
    settings: Mapping[Key, Setting], *, has_new_members: bool = False
) -> ConfiguredSeats:
    """Read members, jurors and chairmen.

    A chairman may be its own seat, or the name of another.

    `has_new_members`: whether the members come from a stronger source than the chairmen.

    Raises `ConfigError` if one is not written like a seat, two share a name, or a juror has a
    member's name.
    """
    members = name_seats(list(_read_specs(settings, ("members",))))
    _check_apart(settings, members, "members")
    names = [member.name for member in members]
    jury = name_seats(list(_read_specs(settings, ("jury",))), names=names)
    _check_apart(settings, jury, "jury")
    for number, juror in enumerate(jury, start=1):
        if juror.name in names:
            problem = f"has the name of a member, {juror.name!r}: jurors only review"
            raise _error_at(settings, "jury", number, problem)
    members_and_jury = (*members, *jury)
    seat_by_name = {seat.name: seat for seat in members_and_jury}
    unused_settings: tuple[str, ...] = ()
    if has_new_members and ("chairmen",) in settings:
        configured_seats = [entry.seat for entry in settings[("chairmen",)].value]
        unused_settings = tuple(
            name for name in configured_seats if ":" not in name and name not in seat_by_name
        )
    chairmen = list(_read_specs(settings, ("chairmen",), seat_by_name, unused_settings))
    extra_chairmen = iter(
        name_seats([c for c in chairmen if c not in members_and_jury], names=[*seat_by_name])
    )
    chairmen_with_names = tuple(
        c if c in members_and_jury else next(extra_chairmen) for c in chairmen
    )
    _check_apart(settings, chairmen_with_names, "chairmen", members_and_jury)
    return ConfiguredSeats(members, jury, chairmen_with_names, unused_settings)


def _check_apart(
    settings: Mapping[Key, Setting],
    seats: Sequence[SeatSpec],
    of: str,
    others: Sequence[SeatSpec] = (),
) -> None:
    """Refuse duplicate names of seats.

    A chairman may be another seat.
    """
    for number, seat in enumerate(seats, start=1):
        other_seats = (*others, *seats[: number - 1])
        if any(o.name == seat.name and (of != "chairmen" or o != seat) for o in other_seats):
            problem = f"has the name of another seat, {seat.name!r}"
            raise _error_at(settings, of, number, problem)


def _error_at(settings: Mapping[Key, Setting], of: str, number: int, problem: str) -> ConfigError:
    setting = settings[(of,)]
    return ConfigError(setting.source, f"{setting.stated_key}[{number}]", problem)


def _read_specs(
    settings: Mapping[Key, Setting],
    of: Key,
    seats: Mapping[str, SeatSpec] = NOBODY,
    empty_seats: Collection[str] = (),
) -> Iterator[SeatSpec]:
    """Yield the seats of one list; names refer to members."""
    setting = settings.get(of)
    entries: tuple[MemberTable, ...] = () if setting is None else setting.value
    for number, entry in enumerate(entries, start=1):
        assert setting is not None  # noqa: S101 - it has an entry
        key = f"{setting.stated_key}[{number}]"
        if entry.seat in seats:
            yield seats[entry.seat]
            continue
        if entry.seat in empty_seats:
            continue
        if seats and ":" not in entry.seat:
            raise ConfigError(setting.source, key, unknown_seat_problem(entry.seat, seats))
        spec = _reach_of(_spec(entry, setting, key), entry, settings, (setting.source, key))
        twins = (m for m in seats.values() if replace(m, name=spec.name) == spec)
        yield next((m for m in twins if spec.name in ("", m.name)), spec)


def _spec(entry: "MemberTable", setting: Setting, key: str) -> SeatSpec:
    spec = parse_seat(entry.seat, origin=setting.source, key=key, base=setting.base)
    return replace(
        spec,
        name=entry.name or spec.name,
        options=Options(
            temperature=entry.temperature,
            max_tokens=entry.max_tokens,
            reasoning_effort=entry.reasoning_effort,
            system=entry.system,
        ),
        price=None if entry.price is None else Price(*entry.price),
    )


def _reach_of(
    spec: SeatSpec, entry: "MemberTable", settings: Mapping[Key, Setting], place: tuple[str, str]
) -> SeatSpec:
    """Return the seat with its own address and key, or its provider's."""
    source, key = place
    if spec.provider in ("script", "cmd"):
        for field, setting in (("url", entry.url), ("key", entry.key)):
            if setting is not None:
                raise ConfigError(source, f"{key}.{field}", "is for a model on a server")
        return spec
    if entry.url is not None and (problem := check_url(entry.url)):
        raise ConfigError(source, f"{key}.url", problem)
    urls, keys = (settings.get(("providers", spec.provider, field)) for field in ("url", "key"))
    url = entry.url if urls is None or entry.url is not None else urls.value
    variable = entry.key if keys is None or entry.key is not None else keys.value
    return replace(spec, url=spec.url if url is None else url.rstrip("/"), key_variable=variable)


def check_providers(settings: Mapping[Key, Setting], seats: Sequence[SeatSpec]) -> None:
    """Refuse an unknown provider and an invalid URL."""
    provider_names = dict.fromkeys(
        [*PROVIDERS, "script", "cmd", *(spec.provider for spec in seats)]
    )
    for key, setting in settings.items():
        if key[0] != "providers":
            continue
        if key[1] not in provider_names:
            unknown = UnknownName("provider", key[1], provider_names)
            raise ConfigError(setting.source, dotted_key(key[:2]), f"is of an {unknown}")
        if key[2] == "url" and (problem := check_url(setting.value)):
            raise ConfigError(setting.source, dotted_key(key), problem)


CEILINGS: tuple[Key, ...] = (("limits", "max_cost_usd"), ("limits", "max_calls"))

UNSET_VALUES: Mapping[Key, str] = MappingProxyType({("rule",): "auto", ("rubric",): "general"})
"""The rule or rubric of weaker sources that name none."""

_RELATED_KEYS: Mapping[Key, Key] = MappingProxyType(
    {("rule",): ("rule_parameters",), ("rubric",): ("rubric_weights",)}
)
"""Settings that belong to the rule or rubric of their own source."""

_SECRETS: Mapping[str, str] = MappingProxyType({"key": "sha256", "sha256": "key"})
"""The two ways to configure a token."""


def merge(layers: Iterable[Sequence[Setting]]) -> dict[Key, Setting]:
    """Return each key with its strongest value; pass the weakest layer first."""
    settings: dict[Key, Setting] = {}
    for layer in layers:
        for setting in layer:
            voided_settings = _find_voided(settings, setting)
            if voided_settings:
                settings = {
                    key: value
                    for key, value in settings.items()
                    if key[: len(voided_settings)] != voided_settings
                }
        old_settings = dict(settings)
        settings.update((setting.key, _limit_ceiling(old_settings, setting)) for setting in layer)
    return settings


def anchor(setting: Setting) -> Setting:
    """Resolve the path of a rubric or history from its file."""
    if setting.key == ("history", "url"):
        return replace(setting, value=anchored_place(setting))
    if strip_profile(setting.key) == ("rubric",) and setting.value.endswith(".toml"):
        return replace(setting, value=str(setting.base / Path(setting.value).expanduser()))
    return setting


def _find_voided(settings: Mapping[Key, Setting], setting: Setting) -> Key:
    """Find weaker settings that a setting overrides; empty if none."""
    key = setting.key
    if key[:2] == TOKENS:
        return (*key[:-1], _SECRETS[key[-1]]) if key[-1] in _SECRETS else ()
    plain = strip_profile(key)
    if plain not in _RELATED_KEYS:
        return ()
    weaker = settings[key].value if key in settings else UNSET_VALUES[plain]
    return () if setting.value == weaker else (*key[: len(key) - len(plain)], *_RELATED_KEYS[plain])


def _limit_ceiling(settings: Mapping[Key, Setting], setting: Setting) -> Setting:
    """Cap a discovered file's ceiling at the user's own."""
    ceiling = strip_profile(setting.key)
    if setting.is_trusted or ceiling not in CEILINGS:
        return setting
    ceilings = [
        settings[key]
        for key in (ceiling, setting.key)
        if key in settings and settings[key].is_trusted
    ]
    lowest = min(ceilings, key=lambda own: own.value, default=setting)
    if setting.value <= lowest.value:
        return setting
    return replace(setting, value=lowest.value, source=lowest.source)


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*)")

DEMO = "demo"
"""The profile of the demonstration."""

_RESERVED_NAMES: Mapping[str, str] = MappingProxyType({"best": "is a mode", DEMO: "is built in"})


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """Settings of one profile.

    `about`: one sentence for choosing among profiles; may be empty.
    `settings`: its settings, under the same keys as without a profile.
    """

    name: str
    about: str
    settings: tuple[Setting, ...]


def profile_settings(settings: Iterable[Setting]) -> Mapping[str, ProfileSettings]:
    """Return the profiles of these settings, in order of names."""
    values: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting.key[0] == PROFILES:
            values.setdefault(setting.key[1], []).append(setting)
    return {name: _profile(name, values[name]) for name in sorted(values)}


def _profile(name: str, settings: Iterable[Setting]) -> ProfileSettings:
    activated_settings = [
        replace(setting, key=strip_profile(setting.key), above=(PROFILES, name))
        for setting in settings
    ]
    about = next((setting.value for setting in activated_settings if setting.key == ("about",)), "")
    return ProfileSettings(name, about, tuple(s for s in activated_settings if s.key != ("about",)))


def settings_of(settings: Iterable[Setting], name: str) -> tuple[Setting, ...]:
    """Return the settings of a profile; of the empty name, none.

    Raises `UnknownName` if there is no such profile; it names the nearest one.
    """
    if not name:
        return ()
    if name == DEMO:
        return _demonstration()
    settings_by_profile = profile_settings(settings)
    if name not in settings_by_profile:
        raise UnknownName("profile", name, [*settings_by_profile, DEMO])
    return settings_by_profile[name].settings


def _demonstration() -> tuple[Setting, ...]:
    from witan.models.scripted import CHAIRMAN, MEMBERS, SCRIPTS

    members, [chairman] = (
        [{"seat": f"script:{SCRIPTS / name}.toml", "price": [0, 0]} for name in names]
        for names in (MEMBERS, [CHAIRMAN])
    )
    seats = {"members": members, "jury": [], "chairmen": [chairman]}
    return tuple(read_overrides(seats, SCRIPTS, f"the profile {DEMO}"))


def check_name(setting: Setting) -> None:
    """Refuse an unsafe or reserved name of a profile or token."""
    stem = 1 if setting.key[0] == PROFILES else 2
    if stem == 2 and setting.key[:2] != TOKENS:
        return
    kind, name = setting.key[stem - 1].removesuffix("s"), setting.key[stem]
    key = dotted_key(setting.key[: stem + 1])
    if not _NAME.fullmatch(name):
        words = "letters, digits, - _ and ., and begins with a letter or a digit"
        raise ConfigError(
            setting.source, key, f"is not the name of a {kind}, which has only {words}"
        )
    if kind == "profile" and name in _RESERVED_NAMES:
        raise ConfigError(
            setting.source, key, f"cannot be named {name}, which {_RESERVED_NAMES[name]}"
        )


def refuse_untrusted(setting: Setting) -> None:
    """Refuse settings that a discovered file may not contain.

    Raises `ConfigError` if it runs a program, or sets destinations of keys or sessions, prices, or
    clients.
    """
    if setting.key[0] == "providers" and setting.key[2] in ("key", "url"):
        raise _distrust_error(
            setting, setting.stated_key, f"sets the {setting.key[2]} of a provider"
        )
    if setting.key[0] == "price":
        raise _distrust_error(setting, setting.stated_key, "sets the price of a seat")
    if setting.key[0] == "serve":
        raise _distrust_error(setting, setting.stated_key, "says who may reach the server")
    if (deed := forbidden_to_found_files(setting)) is not None:
        raise _distrust_error(setting, setting.stated_key, deed)
    entries: tuple[MemberTable, ...] = setting.value if strip_profile(setting.key) in SEATS else ()
    for number, entry in enumerate(entries, start=1):
        key = f"{setting.stated_key}[{number}]"
        for field in ("key", "url", "price"):
            if getattr(entry, field) is not None:
                raise _distrust_error(setting, f"{key}.{field}", f"sets the {field} of a seat")
        if _runs(entry.seat):
            raise _distrust_error(setting, key, "runs a program")


def _runs(text: str) -> bool:
    try:
        return parse_seat(text).provider == "cmd"
    except ConfigError:
        return False  # the name of a member, or no seat


def _distrust_error(setting: Setting, key: str, problem: str) -> ConfigError:
    return ConfigError(
        setting.source,
        key,
        f"{problem}, which is not allowed in a discovered file; "
        f"if you trust it, pass --config {setting.source}",
    )


FILE_NAME = "witan.toml"

_KEPT_APART = ("history", "aliases", "families", "price", "serve", PROFILES)
"""Tables that do not concern how this council deliberates."""

REACHING: Mapping[str, str] = MappingProxyType({"url": "url", "key": "key_variable"})
"""Key in a provider's table to the field of `Reach`."""

NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration, with the source of each value.

    `members`, `jury`, `chairmen`: the seats, named; a chairman that is also a member or juror is
    the same seat.
    `files`: the files read, weakest first.
    `profile`: the active profile; empty for none.
    `standing`, `overrides`: settings of files and variables, and overrides: a profile is weaker
    than overrides only.
    `empty_seats`: chairmen who were members until a stronger source replaced the members.
    """

    members: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    settings: tuple[Setting, ...]
    files: tuple[str, ...]
    profile: str = ""
    standing: tuple[Setting, ...] = ()
    overrides: tuple[Setting, ...] = ()
    empty_seats: tuple[str, ...] = ()
    jury: tuple[SeatSpec, ...] = ()

    @property
    def origins(self) -> Mapping[str, str]:
        """Source of each key: file, variable or override.

        A key that is missing here has its default.
        """
        return {dotted_key(setting.key): setting.origin for setting in self.settings}

    @property
    def deliberative(self) -> tuple[Setting, ...]:
        """Settings of seats and deliberation."""
        return tuple(s for s in self.settings if s.key[0] not in _KEPT_APART)

    @property
    def reach_by_provider(self) -> Mapping[str, Reach]:
        """Providers with a configured address or key."""
        settings = [s for s in self.settings if s.key[0] == "providers" and s.key[2] in REACHING]
        reaches = dict.fromkeys((setting.key[1] for setting in settings), Reach())
        for setting in settings:
            text = setting.value.rstrip("/") if setting.key[2] == "url" else setting.value
            reach = reaches[setting.key[1]]
            reaches[setting.key[1]] = replace(reach, **{REACHING[setting.key[2]]: text})
        return reaches

    @property
    def options(self) -> Mapping[str, Any]:
        """Deliberation settings as `build_procedure` accepts them."""
        result: dict[str, Any] = {}
        for key, value in ((setting.key, setting.value) for setting in self.deliberative):
            if key[:-1] in OPEN_TABLES:
                result.setdefault(key[-2], {})[key[-1]] = value
            elif key[0] == "providers":
                if key[2] in ("concurrency", "per_minute"):
                    throttling = result.setdefault("providers", {}).setdefault(key[1], {})
                    throttling[key[2]] = value
            elif key not in SEATS:
                result[key[-1]] = value
        return result

    @property
    def history(self) -> HistorySettings:
        """Place of the history, and days to keep sessions."""
        return history_settings(self.settings)

    @property
    def serve(self) -> ServeSettings:
        """Settings of the server.

        Raises `ConfigError` if it is unclear who may ask.
        """
        return serve_settings(self.settings)

    @property
    def profiles(self) -> Mapping[str, ProfileSettings]:
        """Available profiles, by name."""
        return profile_settings(self.settings)

    @property
    def aliases(self) -> Mapping[str, str]:
        """Old or foreign name of a model to its name."""
        return {s.key[1]: s.value for s in self.settings if s.key[0] == "aliases"}

    def price_seats(
        self, seats: Sequence[SeatSpec], *, is_found: bool = False
    ) -> tuple[SeatSpec, ...]:
        """Set configured prices on seats.

        An override wins over a seat's own price.

        With `is_found`, seats have the provider's list price, which has the lowest precedence.
        """
        by_hand = {s.key[1]: s.value for s in self.overrides if s.key[0] == "price"}
        price_by_seat = {s.key[1]: s.value for s in self.settings if s.key[0] == "price"}
        return tuple(
            replace(
                seat,
                price=find_price(seat, by_hand)
                or (None if is_found else seat.price)
                or find_price(seat, price_by_seat)
                or seat.price,
            )
            for seat in seats
        )

    def check_prices(self, seats: Sequence[SeatSpec]) -> None:
        """Refuse an overriding price for an unknown seat."""
        for setting in self.overrides:
            name = setting.key[-1]
            if setting.key[0] == "price" and not any(name in names_of(seat) for seat in seats):
                seat_names = dict.fromkeys(seat.name for seat in seats)
                problem = f"is of an {UnknownName('seat', name, seat_names)}"
                raise as_option(ConfigError(setting.source, "price", problem))

    @property
    def jury_origin(self) -> str | None:
        """Source of the jury; None without one."""
        return self.origins["jury"] if self.jury else None

    def without_answers(self) -> "Config":
        """Seat a jury without members as the members: judging calls nobody else."""
        if self.members or len(self.jury) < 2:
            return self
        return replace(self, members=self.jury, jury=())

    @property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Models of each family."""
        return {s.key[1]: s.value for s in self.settings if s.key[0] == "families"}


def load_config(
    environment: Mapping[str, str],
    directory: Path,
    path: Path | str | None = None,
    overrides: Mapping[str, object] = NO_OVERRIDES,
    *,
    origin: str = COMMAND_LINE,
    profile: str = "",
    history: str | None = None,
) -> Config:
    """Read the configuration for a directory.

    `path`: a file to read instead of the project's; a named file is trusted.
    `overrides`: key to value, stronger than everything else; None sets nothing.
    `origin`: who overrides, for origins and errors.
    `profile`: the profile to use; empty for none.
    `history`: place of the history, stronger than every source. None uses the configured one.

    Raises `ConfigError` if a value is not accepted; it names its file or variable, and the key;
    `UnknownName` if there is no such setting or profile.
    """
    files = list(_files(environment, directory, path))
    try:
        layers = [read_file(file, is_trusted=trusted) for file, trusted in files]
        settings = read_overrides(overrides, directory, origin)
        if history is not None:
            settings += (Setting(("history", "url"), history, origin, directory),)
        keys = named_keys(setting for layer in (*layers, settings) for setting in layer)
        layers.append(read_environment(environment, directory, keys))
        for setting in (setting for layer in layers for setting in layer):
            check_name(setting)
            if not setting.is_trusted:
                refuse_untrusted(setting)
        standing = merge([[anchor(setting) for setting in layer] for layer in layers])
        return _make_config(
            tuple(standing.values()),
            profile,
            tuple(map(anchor, settings)),
            tuple(str(file) for file, _ in files),
        )
    except ConfigError as error:
        raise as_option(error) from None


def profile_config(
    config: Config,
    name: str,
    overrides: Mapping[str, object] = NO_OVERRIDES,
    *,
    directory: Path | None = None,
    origin: str = COMMAND_LINE,
) -> Config:
    """Return the configuration under another profile, or without one.

    `overrides`: key to value, stronger than everything else; earlier overrides still hold.
    `directory`: base of relative paths among them, by default the current directory.
    `origin`: who overrides, for origins and errors.

    Raises `ConfigError` if a value is not accepted; it names its file or variable, and the key;
    `UnknownName` if there is no such profile or setting.
    """
    start = Path.cwd() if directory is None else directory
    try:
        more = [anchor(each) for each in read_overrides(overrides, start, origin)]
        all_overrides = merge([config.overrides, more])
        return _make_config(config.standing, name, tuple(all_overrides.values()), config.files)
    except ConfigError as error:
        raise as_option(error) from None


def _make_config(
    standing: tuple[Setting, ...],
    profile: str,
    overrides: tuple[Setting, ...],
    files: tuple[str, ...],
) -> Config:
    """Return the configuration of these settings, the profile's among them."""
    layers = [standing, settings_of(standing, profile), overrides]
    settings = merge(layers)
    seats = read_seats(settings, has_new_members=_replaces_members(layers))
    check_providers(settings, (*seats.members, *seats.jury, *seats.chairmen))
    config = Config(
        (), (), tuple(settings.values()), files, profile, standing, overrides, seats.empty_seats
    )
    return replace(
        config,
        members=config.price_seats(seats.members),
        jury=config.price_seats(seats.jury),
        chairmen=config.price_seats(seats.chairmen),
    )


def _replaces_members(layers: Sequence[Sequence[Setting]]) -> bool:
    """Check whether members come from a stronger source than chairmen."""
    layer_by_key = {setting.key: place for place, layer in enumerate(layers) for setting in layer}
    return layer_by_key.get(("members",), 0) > layer_by_key.get(("chairmen",), 0)


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's own configuration."""
    if home := environment.get("XDG_CONFIG_HOME", "").strip():
        return Path(home) / "witan" / FILE_NAME
    return platformdirs.user_config_path("witan", appauthor=False) / FILE_NAME


def _files(
    environment: Mapping[str, str], directory: Path, path: Path | str | None
) -> Iterator[tuple[Path, bool]]:
    """Yield files to read, weakest first, and whether each is trusted."""
    own = user_file(environment)
    if own.is_file():
        yield own, True
    config_path = str(path) if path is not None else environment.get(CONFIG_VARIABLE, "").strip()
    if config_path:
        yield directory / Path(config_path).expanduser(), True
        return
    start = directory.resolve()
    for place in (start, *start.parents):
        file = place / FILE_NAME
        if file.is_file():
            if not (own.is_file() and file.samefile(own)):
                yield file, False
            return
