"""The configuration: files, variables and overrides, the stronger over the weaker.

From weak to strong: the user's file, the project's file, variables that begin with ``WITAN_``,
and what is given by hand. A project's file is ``witan.toml`` in the directory or the nearest one
above it. It may have come with somebody's repository, so it may choose who is asked and how, but
not run programs, nor say which key is sent where or what a member costs, nor send sessions
elsewhere or have them deleted: that takes a file that is named, the user's own, a variable, or an
option. Nor may it raise the ceiling of the user's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from witan.deliberation.ports import Options, Price
from witan.errors import ConfigError, UnknownName
from witan.surfaces.config_history import (
    HistorySettings,
    anchored_place,
    forbidden_to_found_files,
    history_settings,
)
from witan.surfaces.config_layers import (
    COMMAND_LINE,
    CONFIG_VARIABLE,
    Setting,
    as_option,
    dotted,
    named_keys,
    read_environment,
    read_file,
    read_overrides,
)
from witan.surfaces.config_schema import NAME_TABLES, OPEN_TABLES, Key, MemberTable, fixed_keys
from witan.surfaces.providers import PROVIDERS, Reach
from witan.surfaces.seating import SeatSpec, check_url, name_seats, no_such_seat, parse_seat

__all__ = ["FILE_NAME", "Config", "Setting", "dotted", "load_config", "user_file"]

FILE_NAME = "witan.toml"

SEATS: tuple[Key, ...] = (("members",), ("chairmen",))

SET_ASIDE: Mapping[Key, Key] = MappingProxyType(
    {("rule",): ("rule_parameters",), ("rubric",): ("rubric_weights",)}
)
"""What is about another rule or rubric once a stronger source names one."""

UNSAID: Mapping[Key, str] = MappingProxyType({("rule",): "auto", ("rubric",): "general"})
"""Which rule or rubric weaker sources are about where they name none."""

_KEPT_APART = ("history", "aliases", "families")
"""What is about the history, and not about how a council deliberates."""

CEILING: Key = ("limits", "max_cost_usd")

REACHING: Mapping[str, str] = MappingProxyType({"url": "url", "key": "key_variable"})
"""What of a provider's table says how it is reached, and what `Reach` calls it."""

NOBODY: Mapping[str, SeatSpec] = MappingProxyType({})

NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Config:
    """What is configured, and where each value comes from.

    Parameters
    ----------
    members, chairmen
        The seats, named; a chairman that is also a member is the same seat.
    settings
        Every value that some source gave, in the order of the documentation.
    files
        The files read, the weaker first.
    """

    members: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    settings: tuple[Setting, ...]
    files: tuple[str, ...]

    @property
    def origins(self) -> Mapping[str, str]:
        """Key to the file, variable or override of its value; what is not here is a default."""
        return {dotted(setting.key): setting.where for setting in self.settings}

    @property
    def reached(self) -> Mapping[str, Reach]:
        """The providers whose address or key is configured."""
        given = [s for s in self.settings if s.key[0] == "providers" and s.key[2] in REACHING]
        found = dict.fromkeys((setting.key[1] for setting in given), Reach())
        for setting in given:
            text = setting.value.rstrip("/") if setting.key[2] == "url" else setting.value
            held = found[setting.key[1]]
            found[setting.key[1]] = replace(held, **{REACHING[setting.key[2]]: text})
        return found

    @property
    def options(self) -> Mapping[str, Any]:
        """The values that say how a council deliberates, as `arrange` takes them."""
        found: dict[str, Any] = {}
        for key, value in ((setting.key, setting.value) for setting in self.settings):
            if key[:-1] in OPEN_TABLES:
                found.setdefault(key[-2], {})[key[-1]] = value
            elif key[0] == "providers":
                if key[2] in ("concurrency", "per_minute"):
                    throttling = found.setdefault("providers", {}).setdefault(key[1], {})
                    throttling[key[2]] = value
            elif key not in SEATS and key[0] not in _KEPT_APART:
                found[key[-1]] = value
        return found

    @property
    def history(self) -> HistorySettings:
        """Where sessions are kept, and how long."""
        return history_settings(self.settings)

    @property
    def aliases(self) -> Mapping[str, str]:
        """What a model is called elsewhere, to what it is called."""
        return {s.key[1]: s.value for s in self.settings if s.key[0] == "aliases"}

    @property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """Family to the models that belong to it."""
        return {s.key[1]: s.value for s in self.settings if s.key[0] == "families"}


def load_config(
    environment: Mapping[str, str],
    directory: Path,
    path: Path | str | None = None,
    overrides: Mapping[str, object] = NO_OVERRIDES,
    *,
    overriding: str = COMMAND_LINE,
) -> Config:
    """Read the configuration that holds in a directory.

    Parameters
    ----------
    path
        A file to read in place of the project's; naming it is trusting it.
    overrides
        Key to value, stronger than everything else; None is not given.
    overriding
        Who overrides, for origins and errors.

    Raises
    ------
    ConfigError
        If a value is not accepted; it names its file or variable, and the key.
    UnknownName
        If an override is of no setting.
    """
    try:
        return _loaded(
            list(_files(environment, directory, path)),
            environment,
            directory,
            (overrides, overriding),
        )
    except ConfigError as error:
        raise as_option(error) from None


def _loaded(
    files: Sequence[tuple[Path, bool]],
    environment: Mapping[str, str],
    directory: Path,
    by_hand: tuple[Mapping[str, object], str],
) -> Config:
    """The files, the variables in the environment, and what was given by hand and by whom."""
    layers = [read_file(file, trusted=trusted) for file, trusted in files]
    given = read_overrides(by_hand[0], directory, by_hand[1])
    keys = named_keys(setting for layer in (*layers, given) for setting in layer)
    layers += [read_environment(environment, directory, keys), given]
    for setting in (setting for layer in layers for setting in layer if not setting.trusted):
        _refuse_untrusted(setting)
    settings = _merged(layers)
    members, chairmen = _seats(settings)
    _check_providers(settings, (*members, *chairmen))
    return Config(
        members,
        chairmen,
        tuple(sorted(settings.values(), key=lambda setting: _place(setting.key))),
        tuple(str(file) for file, _ in files),
    )


def user_file(environment: Mapping[str, str]) -> Path:
    """Where the user's own configuration would stand."""
    if home := environment.get("XDG_CONFIG_HOME", "").strip():
        return Path(home) / "witan" / FILE_NAME
    return platformdirs.user_config_path("witan", appauthor=False) / FILE_NAME


def _files(
    environment: Mapping[str, str], directory: Path, path: Path | str | None
) -> Iterator[tuple[Path, bool]]:
    """The files to read, the weaker first, and whether each is trusted."""
    own = user_file(environment)
    if own.is_file():
        yield own, True
    named = str(path) if path is not None else environment.get(CONFIG_VARIABLE, "").strip()
    if named:
        yield directory / Path(named).expanduser(), True
        return
    start = directory.resolve()
    for place in (start, *start.parents):
        found = place / FILE_NAME
        if found.is_file():
            if not (own.is_file() and found.samefile(own)):
                yield found, False
            return


def _refuse_untrusted(setting: Setting) -> None:
    """Refuse what a file that was only found may not decide."""
    if setting.key[0] == "providers" and setting.key[2] in ("key", "url"):
        raise _untrusted(setting, dotted(setting.key), f"sets the {setting.key[2]} of a provider")
    if (deed := forbidden_to_found_files(setting)) is not None:
        raise _untrusted(setting, dotted(setting.key), deed)
    entries: tuple[MemberTable, ...] = setting.value if setting.key in SEATS else ()
    for number, entry in enumerate(entries, start=1):
        key = f"{setting.key[0]}[{number}]"
        for what in ("key", "url", "price"):
            if getattr(entry, what) is not None:
                raise _untrusted(setting, f"{key}.{what}", f"sets the {what} of a seat")
        if _runs(entry.seat):
            raise _untrusted(setting, key, "runs a program")


def _runs(text: str) -> bool:
    """Whether a seat starts a program; judged by what it is read as, since that is what is run."""
    try:
        return parse_seat(text).provider == "cmd"
    except ConfigError:
        return False  # a member's name, or no seat at all


def _untrusted(setting: Setting, key: str, what: str) -> ConfigError:
    return ConfigError(
        setting.where,
        key,
        f"{what}, which a file that was found by searching may not; "
        f"once you have read it, name it: --config {setting.where}",
    )


def _merged(layers: list[tuple[Setting, ...]]) -> dict[Key, Setting]:
    """Each key with its strongest value."""
    held: dict[Key, Setting] = {}
    for layer in layers:
        given = [_anchored(setting) for setting in layer]
        for setting in given:
            gone = SET_ASIDE.get(setting.key)
            if gone is not None and setting.value != _named(held, setting.key):
                held = {key: value for key, value in held.items() if key[: len(gone)] != gone}
        held.update((setting.key, setting) for setting in given if not _raises(held, setting))
    return held


def _named(held: Mapping[Key, Setting], key: Key) -> object:
    """The rule or rubric that weaker sources are about."""
    return held[key].value if key in held else UNSAID[key]


def _raises(held: Mapping[Key, Setting], setting: Setting) -> bool:
    """Whether a file that was only found allows itself more of the user's money than the user."""
    if setting.trusted or setting.key != CEILING or CEILING not in held:
        return False
    return bool(setting.value > held[CEILING].value)


def _anchored(setting: Setting) -> Setting:
    """The path of a rubric, or of a history, starts from the file it is written in."""
    if setting.key == ("history", "url"):
        return replace(setting, value=anchored_place(setting))
    if setting.key == ("rubric",) and setting.value.endswith(".toml"):
        return replace(setting, value=str(setting.base / Path(setting.value).expanduser()))
    return setting


def _place(key: Key) -> tuple[int, Key]:
    """Where a setting is listed: in the order of the schema, names of one's own as they come."""
    stems = [*fixed_keys(), *OPEN_TABLES, *NAME_TABLES]
    for length in range(len(key), 0, -1):
        if key[:length] in stems:
            return stems.index(key[:length]), key
    return len(stems), key


def _seats(settings: Mapping[Key, Setting]) -> tuple[tuple[SeatSpec, ...], tuple[SeatSpec, ...]]:
    """Members and chairmen; a chairman may be a member's name, or be written as a member is."""
    members = name_seats(list(_specs(settings, ("members",))))
    names = [member.name for member in members]
    for number, name in enumerate(names, start=1):
        if name in names[: number - 1]:
            where, key = settings[("members",)].where, f"members[{number}]"
            raise ConfigError(where, key, f"has the name of another seat, {name!r}")
    seated = {member.name: member for member in members}
    chairmen = list(_specs(settings, ("chairmen",), seated))
    apart = iter(name_seats([c for c in chairmen if c not in members], taken=names))
    named = tuple(c if c in members else next(apart) for c in chairmen)
    for number, chairman in enumerate(named, start=1):
        others = (*members, *named[: number - 1])
        if any(o.name == chairman.name and o != chairman for o in others):
            where, key = settings[("chairmen",)].where, f"chairmen[{number}]"
            raise ConfigError(where, key, f"has the name of another seat, {chairman.name!r}")
    return members, named


def _specs(
    settings: Mapping[Key, Setting], of: Key, seated: Mapping[str, SeatSpec] = NOBODY
) -> Iterator[SeatSpec]:
    """The seats of one list, as they are written; those of members as these are named."""
    setting = settings.get(of)
    entries: tuple[MemberTable, ...] = () if setting is None else setting.value
    for number, entry in enumerate(entries, start=1):
        assert setting is not None  # noqa: S101 - it has an entry
        key = f"{of[0]}[{number}]"
        if entry.seat in seated:
            yield seated[entry.seat]
            continue
        if seated and ":" not in entry.seat:
            raise ConfigError(setting.where, key, no_such_seat(entry.seat, seated))
        spec = _reached(_spec(entry, setting, key), entry, settings, (setting.where, key))
        twins = (m for m in seated.values() if replace(m, name=spec.name) == spec)
        yield next((m for m in twins if spec.name in ("", m.name)), spec)


def _spec(entry: MemberTable, setting: Setting, key: str) -> SeatSpec:
    spec = parse_seat(entry.seat, where=setting.where, key=key, base=setting.base)
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


def _reached(
    spec: SeatSpec, entry: MemberTable, settings: Mapping[Key, Setting], place: tuple[str, str]
) -> SeatSpec:
    """The seat with its address and key: its own, or else as its provider is configured."""
    where, key = place
    if spec.provider in ("script", "cmd"):
        for field, given in (("url", entry.url), ("key", entry.key)):
            if given is not None:
                raise ConfigError(where, f"{key}.{field}", "is for a model on a server")
        return spec
    if entry.url is not None and (problem := check_url(entry.url)):
        raise ConfigError(where, f"{key}.url", problem)
    urls, keys = (settings.get(("providers", spec.provider, field)) for field in ("url", "key"))
    url = entry.url if urls is None or entry.url is not None else urls.value
    variable = entry.key if keys is None or entry.key is not None else keys.value
    return replace(
        spec,
        url=spec.url if url is None else url.rstrip("/"),
        key_variable=variable,
    )


def _check_providers(settings: Mapping[Key, Setting], seats: Sequence[SeatSpec]) -> None:
    """Refuse a provider that does not exist, and a URL that is none."""
    known = dict.fromkeys([*PROVIDERS, "script", "cmd", *(spec.provider for spec in seats)])
    for key, setting in settings.items():
        if key[0] != "providers":
            continue
        if key[1] not in known:
            unknown = UnknownName("provider", key[1], known)
            raise ConfigError(setting.where, dotted(key[:2]), f"is of an {unknown}")
        if key[2] == "url" and (problem := check_url(setting.value)):
            raise ConfigError(setting.where, dotted(key), problem)
