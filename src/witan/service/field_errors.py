"""What is wrong with a field of a request, in our words in place of those of a library."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

__all__ = ["fault_place", "fault_words"]

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bool_parsing": "is to be true or false",
        "bool_type": "is to be true or false",
        "dict_type": "is to be an object",
        "dataclass_type": "is to be an object",
        "extra_forbidden": "is not known here; leave it out",
        "finite_number": "is to be a finite number",
        "float_type": "is to be a number",
        "float_parsing": "is to be a number",
        "greater_than": "is to be greater than {gt}",
        "greater_than_equal": "is to be at least {ge}",
        "int_from_float": "is to be a whole number",
        "int_parsing": "is to be a whole number",
        "int_type": "is to be a whole number",
        "less_than": "is to be less than {lt}",
        "less_than_equal": "is to be at most {le}",
        "list_type": "is to be a list",
        "literal_error": "is to be {expected}",
        "mapping_type": "is to be an object",
        "missing": "is missing",
        "model_attributes_type": "is to be an object",
        "model_type": "is to be an object",
        "string_pattern_mismatch": "holds a NUL character, which cannot be kept; leave that out",
        "string_too_long": "is longer than {max_length:,} characters",
        "string_too_short": "is empty",
        "string_type": "is to be text",
        "too_long": "has more than {max_length:,} entries",
        "too_short": "is empty",
        "unexpected_keyword_argument": "is not known here; leave it out",
    }
)
"""Type of a fault to what is said; all that is text may hold any character but one."""


def fault_words(kind: str, message: str, context: Mapping[str, Any] | None = None) -> str:
    """What is wrong; where we have no words for it, the library's."""
    words = _WORDS.get(kind)
    if words is None:
        return message[:1].lower() + message[1:]
    return words.format(**(context or {}))


def fault_place(place: Sequence[str | int]) -> str:
    """Where it is: ``messages.0.role``; of names that are chosen freely, that it is one of those.

    ``files..[key]`` as a library has it is ``files (a name in it)``.
    """
    if len(place) > 2 and place[-1] == "[key]":
        return f"{'.'.join(map(str, place[:-2]))} (a name in it)"
    return ".".join(map(str, place))
