"""Results as JSON: numbers unrounded, unknown as null, one session a line."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import (
    Any,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from witan.core.escaping import escape_json
from witan.core.outcome import Outcome
from witan.service.outcome_records import outcome_fields
from witan.version import __version__

T = TypeVar("T")


@runtime_checkable
class JsonWriter(Protocol):
    """A result that writes its JSON by itself, as it is stored so."""

    def to_json(self) -> str:
        """One line of JSON."""
        ...


def reduce_to(kind: type[T], whole: object, **own: Any) -> T:
    """Make a smaller result of the fields that two types share."""
    hints = get_type_hints(kind)
    picked = {name: _reduce(hints[name], getattr(whole, name)) for name in hints.keys() - own}
    return kind(**picked, **own)


def _reduce(hint: Any, value: Any) -> Any:
    [entry, *_] = get_args(hint) or (None,)
    if get_origin(hint) is tuple and isinstance(entry, type) and is_dataclass(entry):
        return tuple(reduce_to(entry, each) for each in value)
    return value


def to_json(value: object) -> str:
    """One line of JSON; ASCII alone where standard output could not carry more."""
    if isinstance(value, JsonWriter):
        return value.to_json()
    encoding = (sys.stdout.encoding or "ascii").lower()
    encode = json.JSONEncoder(
        ensure_ascii="utf" not in encoding, allow_nan=False, default=_known_to_json
    ).encode
    try:
        return escape_json(encode(value))
    except ValueError:
        # Rare enough not to look for NaN in every number of every session.
        return escape_json(encode(_without_nan(value)))


def sessions_json(
    outcomes: Iterable[Outcome], problems: Mapping[str, Sequence[object]]
) -> Iterator[str]:
    """Yield the object of ``tally --json``, a line per session, never held as a whole.

    `problems`, the other fields of a `Tally`, are read at the end, when they are known.
    """
    opened = False
    for outcome in outcomes:
        yield (",\n" if opened else _opening()) + to_json(outcome)
        opened = True
    ending = "\n]" if opened else f"{_opening()}]"
    yield f"{ending}, {to_json(problems)[1:]}\n"


def _opening() -> str:
    return f'{{"witan": {to_json(__version__)}, "sessions": [\n'


def _known_to_json(value: Any) -> Any:
    """Our mappings and dataclasses, and numpy's numbers, as what json knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Outcome):
        return outcome_fields(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Iterable):
        return list(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else str(value)


def _without_nan(value: Any) -> Any:
    """Return the same with null for what is no number."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [_without_nan(held) for held in value]
    return _without_nan(_known_to_json(value))
