"""What ``witan doctor`` finds out about the server and the profiles, without starting anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from witan.errors import ConfigError, WitanError
from witan.service.config.configuration import Config, dotted, profile_config
from witan.service.config.layers import Setting
from witan.service.config.schema import PROFILES, SEATS, TOKENS, Key, within
from witan.service.config.serve import ServeSettings, token_digests
from witan.service.procedure_options import procedure_of

__all__ = [
    "ProfileFinding",
    "ServeFinding",
    "TokenFinding",
    "diagnose_profiles",
    "diagnose_serve",
    "own_keys",
    "serve_shown",
    "shown_value",
]


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
    found = []
    for profile in config.profiles.values():
        try:
            taken = profile_config(config, profile.name)
            procedure_of(taken)
        except WitanError as error:
            found.append(ProfileFinding(profile.name, profile.about, problem=str(error)))
        else:
            names = tuple(member.name for member in taken.members)
            jury = tuple(juror.name for juror in taken.jury)
            found.append(ProfileFinding(profile.name, profile.about, names, jury=jury))
    return tuple(found)


def serve_shown(config: Config) -> Mapping[str, Any]:
    """The settings of the server by their keys, defaults included; no token and no digest."""
    try:
        serve = config.serve
    except ConfigError:
        serve = ServeSettings()
    named = [field.name for field in fields(serve) if field.name != "tokens"]
    return {dotted(("serve", name)): getattr(serve, name) for name in named}


def shown_value(setting: Setting) -> Any:
    """The value of a setting as it may be shown: seats by name, no digest of a token."""
    if within(setting.key) in SEATS:
        return [entry.name or entry.seat for entry in setting.value]
    if setting.key[: len(TOKENS)] == TOKENS and setting.key[-1] == "sha256":
        return "given"
    return setting.value


def own_keys(keys: Iterable[Key]) -> list[Key]:
    """Those of tokens and profiles, whose names are the user's own."""
    return [key for key in keys if key[0] == PROFILES or key[: len(TOKENS)] == TOKENS]
