"""Profiles: councils under names of their own, each the configured one but for what it sets."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from witan.errors import ConfigError, UnknownName
from witan.service.config.layers import Setting, dotted
from witan.service.config.schema import PROFILES, TOKENS

__all__ = ["ProfileSettings", "check_name", "profile_settings", "taken_up"]

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*)")

_TAKEN: Mapping[str, str] = MappingProxyType({"best": "is a mode", "demo": "is built in"})


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """What is otherwise under one name.

    Parameters
    ----------
    about
        A sentence for whoever chooses among profiles; empty: there is none.
    settings
        What it sets, under the keys that this is set by without a profile.
    """

    name: str
    about: str
    settings: tuple[Setting, ...]


def profile_settings(settings: Iterable[Setting]) -> Mapping[str, ProfileSettings]:
    """The profiles that these settings hold, by name, in the order of their names."""
    held: dict[str, list[Setting]] = {}
    for setting in settings:
        if setting.key[0] == PROFILES:
            held.setdefault(setting.key[1], []).append(setting)
    return {name: _profile(name, held[name]) for name in sorted(held)}


def _profile(name: str, settings: Iterable[Setting]) -> ProfileSettings:
    given = [setting.under(name) for setting in settings]
    about = next((setting.value for setting in given if setting.key == ("about",)), "")
    return ProfileSettings(name, about, tuple(s for s in given if s.key != ("about",)))


def taken_up(settings: Iterable[Setting], name: str) -> tuple[Setting, ...]:
    """What the profile of that name sets; the empty name is of none.

    Raises
    ------
    UnknownName
        If there is no such profile; it names the nearest one.
    """
    if not name:
        return ()
    known = profile_settings(settings)
    if name not in known:
        raise UnknownName("profile", name, known)
    return known[name].settings


def check_name(setting: Setting) -> None:
    """Refuse a name for a profile or a token that could not be written wherever it is used.

    Raises
    ------
    ConfigError
        If it holds other characters than these, or means something else already.
    """
    stem = 1 if setting.key[0] == PROFILES else 2
    if stem == 2 and setting.key[:2] != TOKENS:
        return
    kind, name = setting.key[stem - 1].removesuffix("s"), setting.key[stem]
    key = dotted(setting.key[: stem + 1])
    if not _NAME.fullmatch(name):
        said = "letters, digits, - _ and ., and begins with a letter or a digit"
        raise ConfigError(setting.where, key, f"is no name of a {kind}, which has only {said}")
    if kind == "profile" and name in _TAKEN:
        raise ConfigError(setting.where, key, f"cannot be called {name}, which {_TAKEN[name]}")
