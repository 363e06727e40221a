"""What can be configured, as data: the same model for files, variables and overrides.

Types are checked here. What a value means, such as whether a rule exists, is checked where it is
used, so that reading a configuration does not wait for the parts that count ballots.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from witan.deliberation.ports import Effort

__all__ = [
    "NAME_TABLES",
    "OPEN_TABLES",
    "TABLES",
    "Document",
    "Key",
    "MemberTable",
    "ProviderTable",
    "fixed_keys",
]

Key = tuple[str, ...]
"""Where a value stands: ``("limits", "call_seconds")``."""

_VARIABLE = re.compile(r"(?!(?=.*[0-9])[A-Z0-9]{16,}$)[A-Z_][A-Z0-9_]*")
"""A name in capitals; sixteen or more of them with digits and no underscore are rather a key."""


def _variable(value: object) -> object:
    """Refuse what does not look like the name of a variable, without repeating it."""
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    raise PydanticCustomError(
        "key",
        "must name the variable that holds the key, in capitals such as OPENAI_API_KEY; "
        "a key itself does not belong here",
    )


def _several(value: object) -> object:
    """Take a list, as TOML and JSON write it, for a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _seat(value: object) -> object:
    return {"seat": value} if isinstance(value, str) else value


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


KeyVariable = Annotated[str, BeforeValidator(_variable)]

NonNegative = Annotated[float, Field(ge=0)]


class MemberTable(_Table):
    """A seat with options of its own; a bare string is its `seat`."""

    seat: str
    name: str = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Effort | None = None
    system: str | None = None
    price: Annotated[tuple[NonNegative, NonNegative], BeforeValidator(_several)] | None = None
    key: KeyVariable | None = None
    url: str | None = None


class ProviderTable(_Table):
    """How one provider is reached, and how often."""

    concurrency: int | None = None
    per_minute: float | None = None
    key: KeyVariable | None = None
    url: str | None = None


class LimitsTable(_Table):
    """Time, attempts and money."""

    call_seconds: float | None = None
    stage_seconds: float | None = None
    session_seconds: float | None = None
    grace_seconds: float | None = None
    attempts: int | None = None
    hedge_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


class CountingTable(_Table):
    """How ballots are counted."""

    recusal: str | None = None
    unranked: str | None = None
    ties: str | None = None
    level: float | None = None
    threshold: float | None = None
    tie_break: str | None = None
    rho: Annotated[float | str, Field(union_mode="left_to_right")] | None = None
    prior: str | None = None
    flips: bool | None = None
    weights: dict[str, NonNegative] = {}
    reliability: dict[str, NonNegative] = {}


class HistoryTable(_Table):
    """Where sessions are kept, and how long."""

    url: str | None = None
    keep_days: Annotated[int, Field(ge=1)] | None = None
    enabled: bool | None = None


Seat = Annotated[MemberTable, BeforeValidator(_seat)]

Seats = Annotated[tuple[Seat, ...], BeforeValidator(_several)]


class Document(_Table):
    """Everything that can be set, all of it optional."""

    members: Seats = ()
    chairman: Seat | None = None
    chairmen: Seats = ()
    mode: str | None = None
    rule: str | None = None
    rule_parameters: dict[str, bool | int | float | str] = {}
    rubric: str | None = None
    rubric_weights: dict[str, NonNegative] = {}
    rubric_scoring: bool | None = None
    holistic: bool | None = None
    synthesis: bool | None = None
    self_review: bool | None = None
    mirrored: bool | None = None
    review_rounds: int | None = None
    debate_rounds: int | None = None
    stop_when_decided: bool | None = None
    safety: bool | None = None
    safety_cap: float | None = None
    enough: int | None = None
    quorum: int | None = None
    limits: LimitsTable = LimitsTable()
    counting: CountingTable = CountingTable()
    history: HistoryTable = HistoryTable()
    providers: dict[str, ProviderTable] = {}
    aliases: dict[str, str] = {}
    families: dict[str, Annotated[tuple[str, ...], BeforeValidator(_several)]] = {}


OPEN_TABLES: tuple[Key, ...] = (
    ("rule_parameters",),
    ("rubric_weights",),
    ("counting", "weights"),
    ("counting", "reliability"),
)
"""Tables whose keys are names of one's own: parameters of a rule, criteria, reviewers."""

NAME_TABLES: tuple[Key, ...] = (("aliases",), ("families",))
"""Tables whose keys are models, or families of them: too long for the name of a variable."""

TABLES: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "members": MemberTable,
        "chairman": MemberTable,
        "chairmen": MemberTable,
        "limits": LimitsTable,
        "counting": CountingTable,
        "history": HistoryTable,
        "providers": ProviderTable,
    }
)
"""What stands in a setting that is not a plain value."""


def fixed_keys() -> tuple[Key, ...]:
    """Every setting whose name is fixed, in order, apart from those of providers and models."""
    found: list[Key] = []
    for name in Document.model_fields:
        if name in ("limits", "counting", "history"):
            found += [(name, inner) for inner in TABLES[name].model_fields]
        elif name not in ("providers", "aliases", "families"):
            found.append((name,))
    return tuple(key for key in found if key not in OPEN_TABLES)
