"""``witan profiles``."""

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio

from witan.service.history_access import configured
from witan.service.operations.profiles import profiles
from witan.service.session_service import councils_of
from witan.service.sessions import Profile
from witan.surfaces.cli.generated import value_command
from witan.surfaces.cli.history_options import config_option
from witan.surfaces.text.profiles import profiles_text

EXAMPLES = """\b
Examples:
  witan profiles
  witan profiles --config council.toml --json
"""


@dataclass(frozen=True, slots=True)
class _LocalProfiles:
    """The councils of a configuration, for whoever wrote it."""

    profiles: Mapping[str, Profile]


@contextmanager
def _open(options: Mapping[str, Any]) -> Iterator[_LocalProfiles]:
    councils = councils_of(configured(options["config"], None), None)

    async def seat() -> None:
        async with AsyncExitStack() as stack:
            await councils.open(stack)

    anyio.run(seat)
    yield _LocalProfiles({name: _whole(each) for name, each in councils.profiles.items()})


def _whole(profile: Profile) -> Profile:
    """The profile with all of why it cannot be asked."""
    return profile if profile.failure is None else replace(profile, problem=str(profile.failure))


command = value_command(
    profiles,
    _open,
    text=profiles_text,
    options=[config_option],
    examples=EXAMPLES,
    notes="Nobody is called. A key that is missing is a reason; `witan doctor` says more.",
)
