"""The options of the forms that ask: a field for each parameter that a request declares."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from witan.core.rubric import RUBRICS
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter
from witan.service.parameters import Parameter, Parameters, Scalar, parameters_of, scalar_of

SWITCH = ("true", "false")

OPEN_CHOICES: Mapping[str, tuple[str, ...]] = {
    "rule": (AUTO, *RULES),
    "rubric": (*RUBRICS,),
}
"""Names to choose from where the declaration leaves them open."""


@dataclass(frozen=True, slots=True)
class Option:
    """One field of the form.

    Parameters
    ----------
    words, about, hint
        What it is called, the sentence that says what it does, and how it is written.
    choices
        Value and words of each choice, the first of which leaves it as configured. Empty: it is
        written.
    many
        It takes a line each.
    mode
        The keyboard that a telephone shows for it.
    boxes
        Under whom, and value and words, of what can be ticked. Empty: it is no list of boxes.
    """

    name: str
    words: str
    about: str = ""
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    many: bool = False
    mode: str = "text"
    boxes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Options that stand together."""

    words: str
    options: tuple[Option, ...]


def offered(
    declared: type[Parameters],
    members: Sequence[tuple[str, tuple[tuple[str, str], ...]]] = (),
    chairmen: Iterable[tuple[str, str]] = (),
    without: Sequence[str] = (),
) -> tuple[Group, ...]:
    """Every option of a request, by section.

    Parameters
    ----------
    members
        Council, and name and words of each seat that can be chosen to answer or to judge; empty:
        names are written.
    chairmen
        Name and words of each seat that can write the final answer; likewise.
    without
        What the form asks for elsewhere.
    """
    sections: dict[str, list[Option]] = {}
    for parameter in parameters_of(declared):
        if parameter.name in without:
            continue
        option = _option(parameter)
        if parameter.name in ("members", "jury"):
            option = replace(option, boxes=tuple(members))
        if parameter.name == "chairman":
            option = replace(option, choices=_choices(chairmen))
        sections.setdefault(parameter.doc.section, []).append(option)
    return tuple(Group(words, tuple(options)) for words, options in sections.items())


def read_options(declared: type[Parameters], given: Mapping[str, str]) -> dict[str, Any]:
    """Read the values of a request as a form gives them, a group's in a table of their own.

    Raises
    ------
    InvalidParameter
        If one is not written as it has to be.
    """
    found: dict[str, Any] = {}
    for parameter in parameters_of(declared):
        if text := given.get(parameter.name, "").strip():
            holder = found.setdefault(parameter.group, {}) if parameter.group else found
            holder[parameter.name] = _read(parameter, text)
    return found


def lines_of(text: str) -> list[str]:
    """What stands on each line that is not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _option(parameter: Parameter) -> Option:
    choices = parameter.choices or OPEN_CHOICES.get(parameter.name, ())
    if parameter.kind is bool:
        choices = SWITCH
    words = parameter.name.removesuffix("_usd").replace("_", " ").capitalize()
    return Option(
        parameter.name,
        f"{words}, in US dollars" if parameter.name.endswith("_usd") else words,
        parameter.doc.text.replace("`", ""),
        _hint(parameter),
        _choices((each, {"true": "yes", "false": "no"}.get(each, each)) for each in choices),
        bool(parameter.many),
        {int: "numeric", float: "decimal"}.get(parameter.kind, "text"),
    )


def _hint(parameter: Parameter) -> str:
    if not parameter.many:
        return ""
    return f"{parameter.doc.metavar or 'NAME'}, one a line"


def _choices(choices: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found = tuple(choices)
    return (("", "as configured"), *found) if found else ()


def _read(parameter: Parameter, text: str) -> Any:
    if parameter.many == "list":
        return lines_of(text)
    if parameter.many == "mapping":
        return dict(_pair(parameter, line) for line in lines_of(text))
    return text


def _pair(parameter: Parameter, line: str) -> tuple[str, Any]:
    # The names of seats may hold the sign itself; those of parameters, and values, may not.
    name, equals, text = (each.strip() for each in line.rpartition("="))
    if not (name and equals and text):
        raise InvalidParameter(parameter.name, line, "lines of the form name=value")
    return name, scalar_of(text) if parameter.kind == Scalar else text
