"""Councils under the names of models: the configured one, and each profile."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from witan.errors import UnknownName

if TYPE_CHECKING:
    from witan.service.council import Council
    from witan.service.procedure_options import CouncilOptions

NAME = "witan"

BEST = f"{NAME}/best"
"""The configured council, with its best answer as the final answer."""


@dataclass(frozen=True, slots=True)
class CouncilModel:
    """A council under the name of a model.

    Parameters
    ----------
    options
        Settings implied by the name.
    """

    name: str
    profile: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def name_councils(profiles: Iterable[str]) -> list[CouncilModel]:
    """Name the configured council, its mode ``best``, and the profiles."""
    return [
        CouncilModel(NAME, ""),
        CouncilModel(BEST, "", MappingProxyType({"mode": "best"})),
        *(CouncilModel(f"{NAME}/{name}", name) for name in profiles if name),
    ]


def council_names() -> list[str]:
    """List councils for `seat_by_name`: ``witan``, ``witan/best``, ``witan/PROFILE``.

    Raises
    ------
    ConfigError
        If the configuration cannot be read.
    """
    return [each.name for each in _read_councils()]


def seat_by_name(name: str, **options: Unpack["CouncilOptions"]) -> "Council":
    """Seat the council of a name.

    Parameters
    ----------
    name
        One of `council_names`.
    **options
        As of `Council.from_config`; they override those of the name.

    Raises
    ------
    UnknownName
        If there is no council of this name.
    """
    councils = {each.name: each for each in _read_councils()}
    if name not in councils:
        raise UnknownName("council", name, councils)
    from witan.service.council import Council

    settings: dict[str, Any] = {**councils[name].options, **options}
    return Council.from_config(**{"profile": councils[name].profile, **settings})


def _read_councils() -> list[CouncilModel]:
    from witan.service.config.configuration import DEMO, load_config

    return name_councils([*load_config(os.environ, Path.cwd()).profiles, DEMO])
