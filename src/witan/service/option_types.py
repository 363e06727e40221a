"""Values of options: what a text says, and whether a value is of the type that a hint names."""

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from witan.errors import InvalidParameter

__all__ = ["check_type", "scalar_of"]

_WORDS: Mapping[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    str: "text",
}


def check_type(name: str, value: object, hint: Any) -> None:
    """Refuse a value of another type than a hint names; which values are fine is not asked.

    Raises
    ------
    InvalidParameter
        If the value is of another type; it names the types that are accepted.
    """
    if not _fits(value, hint):
        raise InvalidParameter(name, value, _words(hint))


def scalar_of(text: str) -> object:
    """A number, true or false as such; anything else as text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float) else text


def _fits(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(held, inner[1]) for key, held in value.items()
        )
    if origin is Literal:
        return any(type(value) is type(each) for each in inner)
    if origin in (int, float):
        kinds = int if origin is int else int | float
        return isinstance(value, kinds) and not isinstance(value, bool)
    return origin is Any or isinstance(value, origin)


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is Mapping:
        return "a table" if inner[1] is Any else f"a table from name to {_words(inner[1])}"
    if origin is Literal:
        return " or ".join(map(repr, inner))
    return _WORDS.get(origin, f"a {origin.__name__}")
