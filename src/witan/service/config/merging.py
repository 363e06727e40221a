"""Which of several sources wins, setting by setting."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from witan.service.config.history import anchored_place
from witan.service.config.layers import Setting
from witan.service.config.schema import (
    NAME_TABLES,
    OPEN_TABLES,
    PROFILES,
    TOKENS,
    Key,
    fixed_keys,
    within,
)

__all__ = ["anchored", "in_order", "merged"]

CEILING: Key = ("limits", "max_cost_usd")

UNSAID: Mapping[Key, str] = MappingProxyType({("rule",): "auto", ("rubric",): "general"})
"""Which rule or rubric weaker sources are about where they name none."""

_OTHERS: Mapping[Key, Key] = MappingProxyType(
    {("rule",): ("rule_parameters",), ("rubric",): ("rubric_weights",)}
)
"""What is about another rule or rubric once a stronger source names one."""

_SECRETS: Mapping[str, str] = MappingProxyType({"key": "sha256", "sha256": "key"})
"""The two ways to say what a token is."""


def merged(layers: Iterable[Sequence[Setting]]) -> dict[Key, Setting]:
    """Each key with its strongest value; the weaker layers come first."""
    held: dict[Key, Setting] = {}
    for layer in layers:
        for setting in layer:
            gone = _set_aside(held, setting)
            if gone:
                held = {key: value for key, value in held.items() if key[: len(gone)] != gone}
        before = dict(held)
        held.update((setting.key, _afforded(before, setting)) for setting in layer)
    return held


def anchored(setting: Setting) -> Setting:
    """The path of a rubric, or of a history, starts from the file it is written in."""
    if setting.key == ("history", "url"):
        return replace(setting, value=anchored_place(setting))
    if within(setting.key) == ("rubric",) and setting.value.endswith(".toml"):
        return replace(setting, value=str(setting.base / Path(setting.value).expanduser()))
    return setting


def in_order(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """The settings as they are listed: in the order of the schema, names of one's own sorted."""
    return tuple(sorted(settings, key=lambda setting: _place(setting.key)))


def _set_aside(held: Mapping[Key, Setting], setting: Setting) -> Key:
    """What of weaker sources is about something else once this one is set; empty: nothing."""
    key = setting.key
    if key[:2] == TOKENS:
        return (*key[:-1], _SECRETS[key[-1]]) if key[-1] in _SECRETS else ()
    plain = within(key)
    if plain not in _OTHERS:
        return ()
    weaker = held[key].value if key in held else UNSAID[plain]
    return () if setting.value == weaker else (*key[: len(key) - len(plain)], *_OTHERS[plain])


def _afforded(held: Mapping[Key, Setting], setting: Setting) -> Setting:
    """The setting, with the user's own value where a found file allows itself more money."""
    if setting.trusted or within(setting.key) != CEILING:
        return setting
    ceilings = [held[key] for key in (CEILING, setting.key) if key in held and held[key].trusted]
    lowest = min(ceilings, key=lambda own: own.value, default=setting)
    if setting.value <= lowest.value:
        return setting
    return replace(setting, value=lowest.value, where=lowest.where)


def _place(key: Key) -> tuple[int, int, Key]:
    """Where a setting is listed."""
    stems = [*fixed_keys(), *OPEN_TABLES, *NAME_TABLES]
    plain = within(key)
    after = {TOKENS: 1, (PROFILES,): 2}
    group = next((after[stem] for stem in after if key[: len(stem)] == stem), 0)
    for length in range(len(plain), 0, -1):
        if plain[:length] in stems:
            return group, stems.index(plain[:length]), key
    return group, len(stems), key
