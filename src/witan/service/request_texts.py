"""Parsing of parameters from texts and requests, with error messages."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from witan.errors import InvalidParameter
from witan.service.parameters import (
    Parameter,
    Parameters,
    Scalar,
    adapter_of,
    parameters_of,
    scalar_of,
)

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "dict_type": "must be an object",
        "dataclass_type": "must be an object",
        "extra_forbidden": "is not known here; leave it out",
        "finite_number": "must be a finite number",
        "float_type": "must be a number",
        "float_parsing": "must be a number",
        "greater_than": "must be greater than {gt}",
        "greater_than_equal": "must be at least {ge}",
        "int_from_float": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_type": "must be a whole number",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be at most {le}",
        "list_type": "must be a list",
        "literal_error": "must be {expected}",
        "mapping_type": "must be an object",
        "missing": "is missing",
        "model_attributes_type": "must be an object",
        "model_type": "must be an object",
        "string_pattern_mismatch": "contains a NUL character, which cannot be stored; remove it",
        "string_too_long": "is longer than {max_length:,} characters",
        "string_too_short": "is empty",
        "string_type": "must be text",
        "too_long": "has more than {max_length:,} entries",
        "too_short": "is empty",
        "unexpected_keyword_argument": "is not known here; leave it out",
    }
)
"""Message by type of fault; every text may contain any character except NUL."""


def fault_words(kind: str, message: str, context: Mapping[str, Any] | None = None) -> str:
    """Describe a fault, by default in the library's words."""
    words = _WORDS.get(kind)
    if words is None:
        return message[:1].lower() + message[1:]
    return words.format(**(context or {}))


def fault_place(place: Sequence[str | int]) -> str:
    """Write the place of a fault, such as ``messages.0.role``.

    ``files..[key]`` as a library has it is ``files (a name in it)``.
    """
    if len(place) > 2 and place[-1] == "[key]":
        return f"{'.'.join(map(str, place[:-2]))} (a name in it)"
    return ".".join(map(str, place))


P = TypeVar("P", bound=Parameters)


def read_texts(
    declaration: type[P],
    texts: Mapping[str, Sequence[str]],
    values: Mapping[str, Any] | None = None,
) -> P:
    """Read parameters from texts; an empty text gives nothing.

    Parameters
    ----------
    texts
        Name to texts: several, or several lines, where a parameter takes many values; of a
        mapping each is ``NAME=VALUE``. Unknown names are ignored.
    values
        Parameters that are read already.
    """
    parsed_values = parse_texts(declaration, texts)
    try:
        return adapter_of(declaration).validate_python({**parsed_values, **(values or {})})  # type: ignore[no-any-return]
    except ValidationError as error:
        [fault, *_] = error.errors(include_url=False)
        name = str(fault["loc"][0])
        words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
        text_list = ", ".join(text for text in texts.get(name, ()) if text.strip())
        raise InvalidParameter(name, text_list, words.removeprefix("must be ")) from None


def parse_texts(
    declaration: type[Parameters], texts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Parse the texts of parameters, each group into its own table."""
    result: dict[str, Any] = {}
    for each in parameters_of(declaration):
        if texts_given := [text for text in texts.get(each.name, ()) if text.strip()]:
            holder = result.setdefault(each.group, {}) if each.group else result
            holder[each.name] = _read_texts(each, texts_given)
    return result


def _read_texts(parameter: Parameter, texts: Sequence[str]) -> Any:
    if not parameter.many:
        return texts[-1] if parameter.content else texts[-1].strip()
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    return lines if parameter.many == "list" else dict(_pair(parameter, line) for line in lines)


def _pair(parameter: Parameter, line: str) -> tuple[str, Any]:
    split = str.rpartition if parameter.kind in (int, float) else str.partition
    name, equals, value = (part.strip() for part in split(line, "="))
    if not (name and equals and value):
        written = parameter.doc.metavar or "NAME=VALUE"
        raise InvalidParameter(parameter.name, line, f"the form {written}")
    return name, scalar_of(value) if parameter.kind == Scalar else value
