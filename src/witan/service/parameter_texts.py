"""Parameters written as text: in an address, or in the fields of a form."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from witan.errors import InvalidParameter
from witan.service.field_errors import fault_words
from witan.service.option_types import scalar_of
from witan.service.parameters import Parameter, Parameters, Scalar, adapter_of, parameters_of

P = TypeVar("P", bound=Parameters)


def read_texts(
    declared: type[P], texts: Mapping[str, Sequence[str]], values: Mapping[str, Any] | None = None
) -> P:
    """Read parameters from texts; an empty text gives nothing.

    Parameters
    ----------
    texts
        Name to texts: several, or several lines, where a parameter takes many values; of a
        mapping each is ``NAME=VALUE``. Names of no parameter are passed over.
    values
        Parameters that are read already.

    Raises
    ------
    InvalidParameter
        If one of them is not what it takes.
    """
    known = {each.name: each for each in parameters_of(declared)}
    given = {name: [text for text in texts.get(name, ()) if text.strip()] for name in known}
    read = {name: _read(known[name], written) for name, written in given.items() if written}
    try:
        return adapter_of(declared).validate_python({**read, **(values or {})})  # type: ignore[no-any-return]
    except ValidationError as error:
        [fault, *_] = error.errors(include_url=False)
        name = str(fault["loc"][0])
        words = fault_words(fault["type"], fault["msg"], fault.get("ctx"))
        shown = ", ".join(given.get(name, ()))
        raise InvalidParameter(name, shown, words.removeprefix("is to be ")) from None


def _read(parameter: Parameter, texts: Sequence[str]) -> Any:
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
