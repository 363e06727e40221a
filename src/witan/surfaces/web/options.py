"""The options of the forms that ask, made from what requests and configurations take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from witan.core.rubrics import RUBRICS
from witan.core.rules import RULES
from witan.core.settings import AUTO
from witan.errors import InvalidParameter
from witan.service.config.schema import TABLES
from witan.service.option_types import scalar_of
from witan.service.sessions import OPTIONS
from witan.surfaces.http.schemas import JudgingBody
from witan.surfaces.web.option_words import CHOICES, GROUPS, MORE, Words

__all__ = ["Group", "Option", "judging_of", "lines_of", "offered"]

APART = ("profile", "options")
"""What a form asks for beside the options, and what holds them in a request."""

SWITCH = (("true", "yes"), ("false", "no"))


@dataclass(frozen=True, slots=True)
class Option:
    """One field of the form.

    Parameters
    ----------
    kinds
        The types that its value may have.
    words, about, hint
        What it is called, a line on what it does, and how it is written.
    choices
        Value and words of each choice, the first of which leaves it as configured. Empty: it is
        written.
    boxes
        Under whom, and value and words, of what can be ticked. Empty: it is no list of boxes.
    """

    name: str
    kinds: frozenset[Any]
    words: str
    about: str = ""
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    boxes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @property
    def many(self) -> bool:
        """Whether it takes a line each."""
        return bool({dict, list} & self.kinds)

    @property
    def mode(self) -> str:
        """The keyboard that a telephone shows for it."""
        if str in self.kinds or self.many:
            return "text"
        return "decimal" if float in self.kinds else "numeric"

    def read(self, text: str) -> Any:
        """What a text stands for.

        Raises
        ------
        InvalidParameter
            If it is not written so.
        """
        if list in self.kinds:
            return lines_of(text)
        if dict in self.kinds:
            return dict(self._pair(line) for line in lines_of(text))
        if bool in self.kinds:
            return {"true": True, "false": False}.get(text, text)
        if self.kinds == {str}:
            return text
        return scalar_of(text) if str in self.kinds else self._number(text, text)

    def _pair(self, line: str) -> tuple[str, Any]:
        # The names of seats may hold the sign itself; those of parameters, and values, may not.
        name, equals, text = (each.strip() for each in line.rpartition("="))
        if not (name and equals and text):
            raise InvalidParameter(self.name, line, "lines of the form name=value")
        return name, scalar_of(text) if str in self.kinds else self._number(text, line)

    def _number(self, text: str, shown: str) -> float:
        try:
            return float(text) if float in self.kinds else int(text)
        except ValueError:
            expected = "a number" if float in self.kinds else "a whole number"
            raise InvalidParameter(self.name, shown, expected) from None


@dataclass(frozen=True, slots=True)
class Group:
    """Options that stand together."""

    words: str
    options: tuple[Option, ...]


def offered(
    members: Sequence[tuple[str, tuple[tuple[str, str], ...]]] = (),
    chairmen: Iterable[tuple[str, str]] = (),
    without: Sequence[str] = (),
) -> tuple[Group, ...]:
    """Every option that a request takes.

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
    writers = tuple(chairmen)
    chosen = {
        **{name: replace(_options()[name], boxes=tuple(members)) for name in ("members", "jury")},
        "chairman": replace(_options()["chairman"], choices=_choices(writers)),
    }
    known = {n: each for n, each in {**_options(), **chosen}.items() if n not in without}
    named = [(words, [*names]) for words, names in GROUPS]
    others = known.keys() - {name for _, names in named for name in names}
    named.append((MORE, [name for name in known if name in others]))
    groups = (Group(words, tuple(known[n] for n in names if n in known)) for words, names in named)
    return tuple(group for group in groups if group.options)


def judging_of(given: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a request that say who sits and how they deliberate, as a form gives them.

    Raises
    ------
    InvalidParameter
        If one is not written as it has to be.
    """
    found: dict[str, Any] = {"profile": given.get("profile", "").strip(), "options": {}}
    for name, option in _options().items():
        if text := given.get(name, "").strip():
            holder = found if name in JudgingBody.model_fields else found["options"]
            holder[name] = option.read(text)
    return found


def lines_of(text: str) -> list[str]:
    """What stands on each line that is not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


@cache
def _options() -> Mapping[str, Option]:
    """Each by its name, in the order of the definitions."""
    judging = {n: f.annotation for n, f in JudgingBody.model_fields.items() if n not in APART}
    tables = (TABLES[name] for name in ("profiles", "limits", "counting"))
    settings = {n: f.annotation for table in tables for n, f in table.model_fields.items()}
    return {
        name: _option(name, hint)
        for name, hint in {**judging, **{n: settings[n] for n in OPTIONS}}.items()
    }


def _option(name: str, hint: Any) -> Option:
    kinds = frozenset(_kinds(hint)) - {type(None)}
    words = {n: each for _, names in GROUPS for n, each in names.items()}
    said = words.get(name, Words(name.replace("_", " ").capitalize()))
    choices = SWITCH if kinds == {bool} else CHOICES.get(name, ())
    if name == "rule":
        choices = ((AUTO, "auto, whatever suits the ballots"), *((each, each) for each in RULES))
    if name == "rubric":
        choices = tuple((each, each) for each in RUBRICS)
    return Option(name, kinds, said.words, said.about, said.hint, _choices(choices))


def _choices(choices: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return (("", "as configured"), *choices) if choices else ()


def _kinds(hint: Any) -> set[Any]:
    """The plain types in a hint; of a table, its own and those of its values."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kinds(inner[0])
    if origin in (Union, UnionType):
        return {kind for each in inner for kind in _kinds(each)}
    if origin is dict:
        return {dict, *_kinds(inner[1])}
    return {origin or hint}
