"""Forms made from the catalogue: a field for each parameter, and their values out of an address."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import Signature
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

from fastapi import Query

from witan.service.catalogue import Operation
from witan.service.parameters import Parameter, parameters_of
from witan.service.request_texts import read_texts

NO_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Parameters
    ----------
    kind
        ``text``, ``lines``, ``number``, ``choice`` or ``tick``.
    label, hint
        What it is called, and the sentence that says what it does.
    value
        As it is written in the address; empty: nothing is.
    choices
        Of a ``choice``.
    placeholder
        How it is written, or what holds without it.
    """

    name: str
    kind: str
    label: str
    hint: str
    value: str
    choices: tuple[tuple[str, str], ...] = ()
    placeholder: str = ""


def form_fields(
    operation: Operation[Any, Any],
    query: Mapping[str, str],
    choices: Mapping[str, tuple[str, ...]] = NO_CHOICES,
    without: Collection[str] = (),
) -> tuple[Field, ...]:
    """Make the fields of an operation's form, filled in as an address has them.

    Parameters
    ----------
    choices
        Names to choose from where the declaration leaves them open, such as rules.
    without
        Parameters that the page asks for by hand.
    """
    return tuple(
        _field(each, query.get(each.name, ""), _choices(each) or choices.get(each.name, ()))
        for each in parameters_of(operation.parameters)
        if each.name not in without
    )


def _choices(parameter: Parameter) -> tuple[str, ...]:
    return ("yes", "no") if parameter.kind is bool and parameter.nullable else parameter.choices


def _field(parameter: Parameter, value: str, choices: tuple[str, ...]) -> Field:
    if choices:
        kind = "choice"
    elif parameter.kind is bool:
        kind = "tick"
    elif parameter.many or _is_long(parameter):
        kind = "lines"
    else:
        kind = "number" if parameter.kind in (int, float) and _is_number(value) else "text"
    default = "" if parameter.default is None or kind in ("tick", "lines") else parameter.default
    label = parameter.name.replace("_", " ").capitalize()
    return Field(
        parameter.name,
        kind,
        label,
        parameter.doc.text,
        value or str(default),
        (*((("", _unchosen(parameter)),) * parameter.nullable), *((e, e) for e in choices)),
        _hint(parameter),
    )


def _unchosen(parameter: Parameter) -> str:
    """Say what holds where none is chosen."""
    return "any" if parameter.usual is None else f"as usual: {parameter.usual}"


def _is_long(parameter: Parameter) -> bool:
    """Tell whether a value may have many lines."""
    return parameter.parser is not None and parameter.parser.load is not None


def _hint(parameter: Parameter) -> str:
    """Show how a value is written, or what holds without one."""
    if parameter.many:
        written = parameter.doc.metavar or "one"
        return f"{written}, one a line" if parameter.many == "mapping" else "one a line"
    if parameter.usual is not None:
        return f"{parameter.usual} unless given"
    return "" if parameter.parser is None else parameter.parser.expected


def _is_number(text: str) -> bool:
    """Tell whether a number field can show the text; browsers empty it otherwise."""
    try:
        return isfinite(float(text or 0))
    except ValueError:
        return False


def read_query(operation: Operation[Any, Any], query: Mapping[str, str]) -> Any:
    """Read the parameters of an operation out of an address; an empty field gives nothing.

    Raises
    ------
    InvalidParameter
        If one of them is not what it takes.
    """
    return read_texts(operation.parameters, {name: [text] for name, text in query.items()})


def takes_query(
    operation: Operation[Any, Any],
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Let a page take the parameters of an operation as text, beside its own."""

    def declare(page: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        hints = get_type_hints(page, include_extras=True)
        own = [
            each.replace(annotation=hints[each.name], kind=Argument.KEYWORD_ONLY)
            for each in Signature.from_callable(page).parameters.values()
            if each.kind is not Argument.VAR_KEYWORD
        ]
        queried = [
            Argument(
                each.name, Argument.KEYWORD_ONLY, default="", annotation=Annotated[str, Query()]
            )
            for each in parameters_of(operation.parameters)
        ]
        page.__signature__ = Signature([*own, *queried])  # type: ignore[attr-defined]
        return page

    return declare
