"""The sources of settings: files, variables and overrides.

Sources are read one by one, so that every value and every error can name its source.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from witan.deliberation.call_headers import VIA_VARIABLE
from witan.errors import ConfigError, UnknownName, UnknownOption
from witan.models.providers import PROVIDERS
from witan.service.parameters import parameters_of, scalar_of
from witan.service.settings import (
    OPEN_TABLES,
    SEATS,
    TOKENS,
    Key,
    dotted_key,
    strip_profile,
)

PREFIX = "WITAN_"

COMMAND_LINE = "the command line"
"""The source of overrides by the user of a command."""

CONFIG_VARIABLE = "WITAN_CONFIG"
"""Names a file to read in place of the one found by searching."""

TOKEN_VARIABLE = "WITAN_TOKEN"  # noqa: S105 - the name of a variable
"""Variable with a token that no setting has to name."""

_NO_SETTINGS = (CONFIG_VARIABLE, VIA_VARIABLE)

TOKEN: Key = (*TOKENS, "default", "key")
"""The setting of `TOKEN_VARIABLE`."""

_LISTS = tuple(
    PREFIX + name
    for name in ("MEMBERS", "JURY", "CHAIRMEN", "SERVE_ALLOWED_HOSTS", "SERVE_TRUSTED_PROXIES")
)
"""Variables with lists, comma-separated or as JSON."""

_TABLE = re.compile(r"(limits|counting|serve)\.")
"""Tables whose names options leave out."""

_SHORT: Mapping[Key, str] = MappingProxyType({("history", "url"): "WITAN_HISTORY"})
"""Variables whose names differ from their settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and its source.

    `source`: the file, the variable, or who overrode it.
    `base`: the directory that relative paths in it start from.
    `is_trusted`: whether the user named the source; False for a discovered file.
    `above`: its table, if it is a profile's.
    """

    key: Key
    value: Any
    source: str
    base: Path
    is_trusted: bool = True
    above: Key = ()

    @property
    def stated_key(self) -> str:
        """Its key as written in the source."""
        return dotted_key((*self.above, *self.key))

    @property
    def origin(self) -> str:
        """The file or variable, and the profile if it is in one."""
        return f"{self.source}: {dotted_key(self.above)}" if self.above else self.source


def as_option(error: ConfigError) -> ConfigError:
    """Restate the error by the command option that was used."""
    if error.source != COMMAND_LINE or error.key.startswith("--"):
        return error
    from witan.service.settings import CouncilSettings

    name = re.split(r"[.\[]", _TABLE.sub("", error.key))[0]
    seats = {"members": "--member", "chairmen": "--chairman"}
    options = seats | {each.name: each.option for each in parameters_of(CouncilSettings)}
    option = options.get(name, f"--{name.replace('_', '-')}")
    return ConfigError(COMMAND_LINE, option, error.problem)


def read_file(path: Path, *, is_trusted: bool) -> tuple[Setting, ...]:
    """Return the settings of a TOML file."""
    from witan.service.config.tables import read_tables

    location = str(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(location, "", f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(location, "", f"is not UTF-8 text (at byte {error.start})") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(location, "", f"is not TOML: {error}") from error
    base = path.parent.resolve()
    return tuple(
        Setting(key, value, location, base, is_trusted)
        for key, value in read_tables(data, location, strict=True)
    )


def read_environment(
    environment: Mapping[str, str], directory: Path, keys: Collection[str] = ()
) -> tuple[Setting, ...]:
    """Read settings from ``WITAN_…`` variables; empty ones set nothing.

    `keys`: variables that hold a key, whatever their prefix; those named by other variables are
    added.
    """
    variables = [
        name
        for name in sorted(environment.keys() - keys)
        if name.startswith(PREFIX) and name not in _NO_SETTINGS and environment[name].strip()
    ]
    if not variables:
        return ()
    from witan.service.config.tables import read_tables

    key_by_variable = _variables()
    result: list[Setting] = []
    strange: dict[str, ConfigError] = {}
    for variable in variables:
        try:
            key = _key_of(variable, key_by_variable)
        except ConfigError as error:
            strange[variable] = error
            continue
        text = environment[variable].strip()
        data = _nest(key, TOKEN_VARIABLE if key == TOKEN else _value(variable, text))
        result += [
            Setting(key, value, variable, directory)
            for key, value in read_tables(data, variable, strict=False)
        ]
    for variable in sorted(strange.keys() - named_keys(result)):
        raise strange[variable]
    return tuple(result)


def named_keys(settings: Iterable[Setting]) -> frozenset[str]:
    """List the variables these settings name for keys."""
    result = set[str]()
    for setting in settings:
        if setting.key[0] in ("providers", "serve") and setting.key[-1] == "key":
            result.add(setting.value)
        elif strip_profile(setting.key) in SEATS:
            result.update(entry.key for entry in setting.value if entry.key is not None)
    return frozenset(result)


def read_overrides(
    overrides: Mapping[str, object], directory: Path, source: str
) -> tuple[Setting, ...]:
    """Read overrides by full key or last part; None sets nothing."""
    if not overrides:
        return ()
    from witan.service.config.tables import fixed_keys, read_tables

    keys = (*fixed_keys(), *OPEN_TABLES, ("providers",), ("price",))
    # The last parts of these two tables' keys are ambiguous.
    key_by_last_part = {key[-1]: key for key in keys if key[0] not in ("history", "serve")}
    key_by_name = {**key_by_last_part, **{dotted_key(key): key for key in keys}}
    result = []
    for name, value in overrides.items():
        if name not in key_by_name:
            raise UnknownOption(name, key_by_name)
        if value is None:
            continue
        plain = list(value) if isinstance(value, tuple) else value
        result += [
            Setting(key, setting, source, directory)
            for key, setting in read_tables(_nest(key_by_name[name], plain), source, strict=False)
        ]
    return tuple(result)


def _variables() -> dict[str, Key]:
    from witan.service.config.tables import ProviderTable, fixed_keys

    keys = [*fixed_keys()]
    keys += [
        ("providers", name, inner) for name in PROVIDERS for inner in ProviderTable.model_fields
    ]
    return {**{_variable(key): key for key in keys}, TOKEN_VARIABLE: TOKEN}


def _variable(key: Key) -> str:
    return _SHORT[key] if key in _SHORT else PREFIX + "_".join(key).upper().replace("-", "_")


def _key_of(variable: str, keys: Mapping[str, Key]) -> Key:
    if variable in keys:
        return keys[variable]
    for table in OPEN_TABLES:
        stem = f"{_variable(table)}_"
        if variable.startswith(stem) and len(variable) > len(stem):
            return (*table, variable.removeprefix(stem).lower())
    open_names = [f"{_variable(table)}_NAME" for table in OPEN_TABLES]
    nearest = UnknownName("variable", variable, [*keys, CONFIG_VARIABLE, *open_names]).nearest
    hint = (
        f"did you mean {nearest}?"
        if nearest
        else "names beginning with WITAN_ are reserved for settings"
    )
    raise ConfigError(variable, "", f"is not a setting of Witan; {hint}")


def _value(variable: str, text: str) -> object:
    """Read a variable: JSON or comma-separated lists, JSON for rule parameters."""
    if variable in _LISTS:
        if not text.startswith("["):
            return [each.strip() for each in text.split(",") if each.strip()]
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(variable, "", f"is not JSON: {error}") from None
    if variable.startswith(f"{PREFIX}RULE_PARAMETERS_"):
        return scalar_of(text)
    return text


def _nest(key: Key, value: object) -> dict[str, object]:
    for name in reversed(key):
        value = {name: value}
    assert isinstance(value, dict)  # noqa: S101 - a key has at least one part
    return value
