"""The configuration: files, variables and overrides, the stronger over the weaker.

From weak to strong: the user's file, the project's file, variables that begin with ``WITAN_``,
the profile that is taken, and what is given by hand. A project's file is ``witan.toml`` in the
directory or the nearest one above it. It may have come with somebody's repository, so it may choose
who is asked and how, but not run programs, nor say which key is sent where or what a member costs,
nor send sessions elsewhere or have them deleted, nor say who is served: that takes a file that is
named, the user's own, a variable, or an option. Nor may it raise the ceiling of the user's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from witan.errors import ConfigError, UnknownName
from witan.models.providers import Reach
from witan.models.seats import SeatSpec, names_of, rate_of
from witan.service.config.history import HistorySettings, history_settings
from witan.service.config.layers import (
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
from witan.service.config.merging import anchored, in_order, merged
from witan.service.config.profiles import (
    ProfileSettings,
    check_name,
    profile_settings,
    taken_up,
)
from witan.service.config.schema import OPEN_TABLES, PROFILES, SEATS
from witan.service.config.seats import check_providers, read_seats
from witan.service.config.serve import ServeSettings, serve_settings
from witan.service.config.trust import refuse_untrusted

__all__ = [
    "FILE_NAME",
    "SEATS",
    "Config",
    "Setting",
    "dotted",
    "load_config",
    "profile_config",
    "user_file",
]

FILE_NAME = "witan.toml"

_KEPT_APART = ("history", "aliases", "families", "price", "serve", PROFILES)
"""What is not about how this council deliberates."""

REACHING: Mapping[str, str] = MappingProxyType({"url": "url", "key": "key_variable"})
"""What of a provider's table says how it is reached, and what `Reach` calls it."""

NO_OVERRIDES: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Config:
    """What is configured, and where each value comes from.

    Parameters
    ----------
    members, jury, chairmen
        The seats, named; a chairman that is also a member or juror is the same seat.
    settings
        Every value that some source gave, in the order of the documentation.
    files
        The files read, the weaker first.
    profile
        The profile that is taken; empty: none.
    standing, given
        The settings of files and variables, and those given by hand: a profile stands between.
    unseated
        Chairmen who were named as members of a council that a stronger source replaced.
    """

    members: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    settings: tuple[Setting, ...]
    files: tuple[str, ...]
    profile: str = ""
    standing: tuple[Setting, ...] = ()
    given: tuple[Setting, ...] = ()
    unseated: tuple[str, ...] = ()
    jury: tuple[SeatSpec, ...] = ()

    @property
    def origins(self) -> Mapping[str, str]:
        """Key to the file, variable or override of its value; what is not here is a default."""
        return {dotted(setting.key): setting.origin for setting in self.settings}

    @property
    def deliberative(self) -> tuple[Setting, ...]:
        """What says who sits and how they deliberate."""
        return tuple(s for s in self.settings if s.key[0] not in _KEPT_APART)

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
        """The values that say how a council deliberates, as `build_procedure` takes them."""
        found: dict[str, Any] = {}
        for key, value in ((setting.key, setting.value) for setting in self.deliberative):
            if key[:-1] in OPEN_TABLES:
                found.setdefault(key[-2], {})[key[-1]] = value
            elif key[0] == "providers":
                if key[2] in ("concurrency", "per_minute"):
                    throttling = found.setdefault("providers", {}).setdefault(key[1], {})
                    throttling[key[2]] = value
            elif key not in SEATS:
                found[key[-1]] = value
        return found

    @property
    def history(self) -> HistorySettings:
        """Where sessions are kept, and how long."""
        return history_settings(self.settings)

    @property
    def serve(self) -> ServeSettings:
        """How the council is served, and to whom.

        Raises
        ------
        ConfigError
            If it is not settled who may ask.
        """
        return serve_settings(self.settings)

    @property
    def profiles(self) -> Mapping[str, ProfileSettings]:
        """The profiles that may be taken, by name."""
        return profile_settings(self.settings)

    @property
    def aliases(self) -> Mapping[str, str]:
        """What a model is called elsewhere, to what it is called."""
        return {s.key[1]: s.value for s in self.settings if s.key[0] == "aliases"}

    def priced(self, seats: Sequence[SeatSpec], *, found: bool = False) -> tuple[SeatSpec, ...]:
        """Give seats their configured prices; a price given by hand wins over a seat's own.

        Of seats that were `found`, what they hold is the provider's list price, which comes last.
        """
        by_hand = {s.key[1]: s.value for s in self.given if s.key[0] == "price"}
        listed = {s.key[1]: s.value for s in self.settings if s.key[0] == "price"}
        return tuple(
            replace(
                seat,
                price=rate_of(seat, by_hand)
                or (None if found else seat.price)
                or rate_of(seat, listed)
                or seat.price,
            )
            for seat in seats
        )

    def check_prices(self, seats: Sequence[SeatSpec]) -> None:
        """Refuse a price given by hand that is of none of these seats.

        Raises
        ------
        ConfigError
            If there is one; it names the seats.
        """
        for setting in self.given:
            name = setting.key[-1]
            if setting.key[0] == "price" and not any(name in names_of(seat) for seat in seats):
                known = dict.fromkeys(seat.name for seat in seats)
                problem = f"is of an {UnknownName('seat', name, known)}"
                raise as_option(ConfigError(setting.where, "price", problem))

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
    profile: str = "",
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
    profile
        The profile to take; empty: none.

    Raises
    ------
    ConfigError
        If a value is not accepted; it names its file or variable, and the key.
    UnknownName
        If an override is of no setting, or there is no such profile.
    """
    files = list(_files(environment, directory, path))
    try:
        layers = [read_file(file, trusted=trusted) for file, trusted in files]
        given = read_overrides(overrides, directory, overriding)
        keys = named_keys(setting for layer in (*layers, given) for setting in layer)
        layers.append(read_environment(environment, directory, keys))
        for setting in (setting for layer in layers for setting in layer):
            check_name(setting)
            if not setting.trusted:
                refuse_untrusted(setting)
        standing = merged([[anchored(setting) for setting in layer] for layer in layers])
        return _settled(
            tuple(standing.values()),
            profile,
            tuple(map(anchored, given)),
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
    overriding: str = COMMAND_LINE,
) -> Config:
    """The configuration under another profile, or under none where `name` is empty.

    Parameters
    ----------
    overrides
        Key to value, stronger than everything else; what was given by hand before still holds
        where it is not among them.
    directory
        What relative paths among them start from; None: the current directory.
    overriding
        Who overrides, for origins and errors.

    Raises
    ------
    ConfigError
        If a value is not accepted; it names its file or variable, and the key.
    UnknownName
        If there is no such profile, or an override is of no setting.
    """
    start = Path.cwd() if directory is None else directory
    try:
        more = [anchored(each) for each in read_overrides(overrides, start, overriding)]
        given = merged([config.given, more])
        return _settled(config.standing, name, tuple(given.values()), config.files)
    except ConfigError as error:
        raise as_option(error) from None


def _settled(
    standing: tuple[Setting, ...], profile: str, given: tuple[Setting, ...], files: tuple[str, ...]
) -> Config:
    """The configuration of these settings, the profile's among them."""
    layers = [standing, taken_up(standing, profile), given]
    settings = merged(layers)
    seats = read_seats(settings, replaced=_replaced(layers))
    check_providers(settings, (*seats.members, *seats.jury, *seats.chairmen))
    listed = in_order(settings.values())
    config = Config((), (), listed, files, profile, standing, given, seats.unseated)
    return replace(
        config,
        members=config.priced(seats.members),
        jury=config.priced(seats.jury),
        chairmen=config.priced(seats.chairmen),
    )


def _replaced(layers: Sequence[Sequence[Setting]]) -> bool:
    """Whether the members are named by something stronger than whatever names the chairmen."""
    last = {setting.key: place for place, layer in enumerate(layers) for setting in layer}
    return last.get(("members",), 0) > last.get(("chairmen",), 0)


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
