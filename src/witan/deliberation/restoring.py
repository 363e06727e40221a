"""Values of our types from plain JSON, exactly as they were written.

Types are read off the fields of the dataclasses, so that a record has no second definition. A
number stays the kind of number it was, whole or not: what is printed of a stored session is then
what was printed of the live one.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from witan.core.ballot import Ballot
from witan.core.scale_recognition import undeclared
from witan.errors import WitanError

__all__ = ["Misfit", "plain", "restorer"]

Restore = Callable[[object, str], Any]
"""Takes a plain value and where it stands, as the errors should say it."""

_SCALARS = {str: "text", bool: "true or false", NoneType: "null", int: "a whole number"}
_INFINITE = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class Misfit(Exception):
    """A plain value that its type does not admit; `where` says which.

    Whoever knows where the value comes from makes an error of the house of it.
    """

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(where, problem)


def plain(value: Any) -> Any:
    """A value as JSON has it; the infinities, which JSON has not, as text."""
    if isinstance(value, Ballot):
        value = undeclared(value)
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.init}
    if isinstance(value, Mapping):
        return {key: plain(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [plain(held) for held in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


@cache
def restorer(declared: Any) -> Restore:
    """How values of a type are made of plain ones; `Misfit` if they cannot be.

    Fields that a dataclass does not have are ignored: a later Witan may write more.
    """
    origin = get_origin(declared)
    if declared in (Any, object):
        return lambda value, _: value
    if origin in _MAKERS:
        return _MAKERS[origin](get_args(declared))
    if is_dataclass(declared):
        return _dataclass(declared)
    if declared in (float, datetime):
        return _number if declared is float else _moment
    return _scalar(declared)


def _scalar(declared: Any) -> Restore:
    def restore(value: object, where: str) -> Any:
        if type(value) is not declared:
            raise Misfit(where, f"is {_kind_of(value)}; expected {_SCALARS[declared]}")
        return value

    return restore


def _number(value: object, where: str) -> float:
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(where, f"is {_kind_of(value)}; expected a number")
    return value


def _moment(value: object, where: str) -> datetime:
    expected = "expected a time with its zone, such as 2026-01-31T09:30:00Z"
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise Misfit(where, f"is {_kind_of(value)}; {expected}") from None
    if moment.tzinfo is None:
        raise Misfit(where, f"has no time zone; {expected}")
    return moment


def _literal(choices: tuple[Any, ...]) -> Restore:
    expected = " or ".join(map(repr, choices))

    def restore(value: object, where: str) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise Misfit(where, f"is {_kind_of(value)}; expected {expected}")
        return value

    return restore


def _union(arms: tuple[Any, ...]) -> Restore:
    # Text first: the grade "inf" is text, and no number.
    tries = [restorer(arm) for arm in sorted(arms, key=lambda arm: arm is not str)]

    def restore(value: object, where: str) -> Any:
        misfits = []
        for attempt in tries:
            try:
                return attempt(value, where)
            except Misfit as misfit:
                misfits.append(misfit)
        raise max(misfits, key=lambda misfit: len(misfit.where))

    return restore


def _tuple(arms: tuple[Any, ...]) -> Restore:
    endless = arms[-1] is Ellipsis
    each = [restorer(arm) for arm in arms if arm is not Ellipsis]

    def restore(value: object, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Misfit(where, f"is {_kind_of(value)}; expected a list")
        if not endless and len(value) != len(each):
            raise Misfit(where, f"has {len(value)} items; expected {len(each)}")
        makers = each * len(value) if endless else each
        return tuple(
            make(held, f"{where}[{i}]")
            for i, (make, held) in enumerate(zip(makers, value, strict=True))
        )

    return restore


def _mapping(arms: tuple[Any, ...]) -> Restore:
    inner = restorer(arms[1])

    def restore(value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit(where, f"is {_kind_of(value)}; expected a map")
        return {key: inner(held, f"{where}.{key}") for key, held in value.items()}

    return restore


def _dataclass(declared: Any) -> Restore:
    hints = get_type_hints(declared)
    given = [field for field in fields(declared) if field.init]
    makers = {field.name: restorer(hints[field.name]) for field in given}
    needed = [f.name for f in given if f.default is MISSING and f.default_factory is MISSING]

    def restore(value: object, where: str) -> Any:
        if not isinstance(value, dict):
            raise Misfit(where, f"is {_kind_of(value)}; expected a map")
        for name in needed:
            if name not in value:
                raise Misfit(f"{where}.{name}", "is missing")
        held = {
            name: make(value[name], f"{where}.{name}")
            for name, make in makers.items()
            if name in value
        }
        try:
            return declared(**held)
        except WitanError as error:
            raise Misfit(where, f"cannot be: {error}") from error

    return restore


def _kind_of(value: object) -> str:
    """What a value is, in JSON's words."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"the number {value}"


_MAKERS: Mapping[Any, Callable[[tuple[Any, ...]], Restore]] = {
    Literal: _literal,
    Mapping: _mapping,
    Union: _union,
    UnionType: _union,
    tuple: _tuple,
}
