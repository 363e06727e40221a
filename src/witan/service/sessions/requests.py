"""What is asked of a service, and by whom: foreign, and therefore checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any

from witan.deliberation.ports import Message
from witan.errors import InvalidParameter, TooLarge, UnknownName, UnknownOption

__all__ = ["LOCAL", "OPTIONS", "Client", "CouncilRequest", "QuestionRequest"]

OPTIONS = (
    "mode", "rule", "rule_parameters", "rubric", "rubric_weights", "rubric_scoring", "holistic",
    "synthesis", "self_review", "mirrored", "review_rounds", "debate_rounds", "stop_when_decided",
    "safety", "safety_cap", "enough", "quorum",
    "recusal", "unranked", "ties", "level", "threshold", "tie_break", "rho", "prior", "flips",
    "weights", "reliability",
    "call_seconds", "stage_seconds", "session_seconds", "grace_seconds", "attempts",
    "hedge_seconds", "max_tokens", "max_cost_usd",
)  # fmt: skip
"""The settings that whoever asks may choose: how the council deliberates, not who is called how."""

DAY_SECONDS = 86_400

MOST: Mapping[str, float] = {
    "call_seconds": DAY_SECONDS,
    "stage_seconds": DAY_SECONDS,
    "session_seconds": DAY_SECONDS,
    "grace_seconds": DAY_SECONDS,
    "hedge_seconds": DAY_SECONDS,
    "attempts": 100,
    "max_tokens": 10_000_000,
    "max_cost_usd": 1_000_000,
}
"""The most that whoever asks may choose: a session holds a place until it ends."""

MOST_CHARACTERS = 50_000
"""Of all options together, as JSON: they are kept for the next who asks so."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks, and how much of it is allowed.

    Parameters
    ----------
    name
        Of its token, or ``local``.
    per_minute
        Sessions it may begin in a minute; None: as many as it likes.
    max_cost_usd
        The ceiling of each of its sessions; None: that of the configuration.
    daily_usd
        What its sessions may cost in any 24 hours; None: as much as they like.
    by_token
        It is known by a token; else nobody knows who it is, and it is taken at its word.
    """

    name: str
    per_minute: float | None = None
    max_cost_usd: float | None = None
    daily_usd: float | None = None
    by_token: bool = False


LOCAL = Client("local")
"""Whoever reaches a server that listens on this machine alone, and has no tokens."""


BESIDE = ("profile", "members", "jury", "chairman", "seed", "category", "files")
"""What of a request stands beside its options."""


class _Misplaced(UnknownName):
    """A field of the request among its options."""

    def __str__(self) -> str:
        return f"{self.name!r} is no option; it stands beside options, not in them"


@dataclass(frozen=True, slots=True)
class CouncilRequest:
    """Who sits, and how they deliberate: everything of a session but its question.

    Parameters
    ----------
    profile
        The configured profile; empty: the configuration itself.
    members, jury, chairman
        Names of configured seats, in place of those of the profile. A request seats nobody else:
        a seat can be a program, or an address within the network of the server.
    options
        Settings as the configuration calls them; see `OPTIONS`.
    via
        The servers that the question came through, so that a council in a circle is found out.

    Raises
    ------
    UnknownName
        If an option is none that whoever asks may choose.
    InvalidParameter
        If the rubric is a file, or a number is beyond `MOST`.
    TooLarge
        If the options are longer than all that they could say.
    """

    profile: str = ""
    members: tuple[str, ...] = ()
    chairman: str | None = None
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    hops: tuple[str, ...] = ()
    jury: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.options:
            if name in BESIDE:
                raise _Misplaced("option", name, OPTIONS)
            if name not in OPTIONS:
                raise UnknownOption(name, OPTIONS)
        for name, most in MOST.items():
            value = self.options.get(name)
            if (number := _number(value)) is not None and number > most:
                raise InvalidParameter(name, value, f"at most {most:,}")
        length = len(json.dumps(dict(self.options), default=str))
        if length > MOST_CHARACTERS:
            raise TooLarge("characters of options", length, MOST_CHARACTERS)
        rubric = self.options.get("rubric")
        if rubric is not None and (not isinstance(rubric, str) or not _is_name(rubric)):
            raise InvalidParameter("rubric", rubric, "the name of a rubric")


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A question, and all that comes with it.

    Parameters
    ----------
    files
        Name to text of the files that come with it.
    category
        What kind of question it is.
    parent
        The session whose final answer it goes on from: what was said there is the conversation.
    """

    question: str
    conversation: tuple[Message, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    category: str | None = None
    parent: str | None = None
    judging: CouncilRequest = field(default_factory=CouncilRequest)

    def __post_init__(self) -> None:
        if self.parent is not None and self.conversation:
            expected = "none beside a conversation, which is what was said before"
            raise InvalidParameter("parent", self.parent, expected)


def _number(value: object) -> float | None:
    """A number, which may be written as text, as in a variable; None: it is none."""
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return inf


def _is_name(rubric: str) -> bool:
    return not rubric.endswith(".toml") and not {"/", "\\"} & {*rubric}
