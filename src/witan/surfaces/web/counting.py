"""How the page has ballots read and counted: the fields of its form, and what they say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from witan.core.rubric import RUBRICS, find_rubric
from witan.core.settings import AUTO, Settings
from witan.errors import InvalidParameter
from witan.files.ballots import FORMATS
from witan.service.operations.recount import settings_given
from witan.service.option_types import scalar_of

__all__ = ["FIELDS", "Field", "changed", "columns_of", "sessions_of", "settings_of"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form.

    Parameters
    ----------
    name
        That of the setting.
    options
        Value and words of each choice, the first of which holds by itself. Empty: it is written.
    hint
        How it is written.
    many
        It takes a line each.
    """

    name: str
    words: str
    options: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    many: bool = False


FIELDS = (
    Field("format", "Format", (("", "recognised"), *((name, name) for name in FORMATS))),
    Field("columns", "Columns called otherwise", hint="reviewer=judge, one a line", many=True),
    Field("scale", "Grades are on the scale", hint="0-1, 1-5 or pass-fail; recognised if empty"),
    Field("sessions", "Only these sessions", hint="one a line", many=True),
    Field(
        "kind",
        "Ballots of",
        (("all", "everybody"), ("model", "models alone"), ("human", "people alone")),
    ),
    Field(
        "recusal",
        "A reviewer’s own candidate",
        (
            ("before", "leaves before places are counted"),
            ("after", "leaves after places are counted"),
            ("off", "stays"),
        ),
    ),
    Field(
        "unranked",
        "Candidates that a ballot leaves out",
        (("skip", "get no vote of it"), ("last", "get the places left")),
    ),
    Field(
        "rubric",
        "Criteria weighed by",
        (("general", "general"), *((name, name) for name in sorted(RUBRICS) if name != "general")),
    ),
    Field("weights", "Weights of reviewers", hint="ada=2, one a line", many=True),
    Field("parameters", "Parameters of the rule", hint="variant=roster, one a line", many=True),
    Field(
        "ties",
        "Told apart by",
        (("contrast", "the fitted contrast"), ("intervals", "intervals that do not overlap")),
    ),
    Field("level", "Level of intervals", hint="0.95"),
    Field("threshold", "Standard errors on each side", hint="1.96, with intervals"),
    Field(
        "tie_break",
        "Equal scores are parted",
        (
            ("", "in the rule’s own way"),
            ("none", "by nothing"),
            ("wins", "by wins"),
            ("borda", "by Borda"),
        ),
    ),
    Field("rho", "Error that reviewers share", hint="learn, none or 0.3"),
    Field(
        "prior",
        "Strength is",
        (("", "that of each session alone"), ("learn", "borrowed from the others")),
    ),
)
"""What can be said beside the rule, as on the command line."""

READING = ("format", "columns", "scale", "sessions")
"""What is no setting of a count."""


def changed(given: Mapping[str, str]) -> bool:
    """Whether something is other than it is by itself."""
    usual = {each.name: each.options[0][0] for each in FIELDS if each.options}
    return any(text != usual.get(name) for name, text in _said(given).items())


def settings_of(rule: str, given: Mapping[str, str]) -> Settings:
    """The settings of a count.

    Raises
    ------
    UnknownName, InvalidParameter
        If there is no such rule or rubric, or a field is not accepted.
    """
    said = {name: text for name, text in _said(given).items() if name not in READING}
    if "parameters" in said and rule in ("", AUTO):
        raise InvalidParameter("parameters", said["parameters"], "none without a rule: choose one")
    return settings_given(
        rule or None, {name: _READERS.get(name, str)(text) for name, text in said.items()}
    )


def columns_of(given: Mapping[str, str]) -> Mapping[str, str] | None:
    """Which column holds which field; None: they are called so.

    Raises
    ------
    InvalidParameter
        If that is not how it is written.
    """
    return _pairs("columns", _said(given).get("columns", "")) or None


def sessions_of(given: Mapping[str, str]) -> tuple[str, ...]:
    """The sessions that are to be counted; empty: all."""
    return tuple(_lines(_said(given).get("sessions", "")))


def _said(given: Mapping[str, str]) -> dict[str, str]:
    """What was filled in, in the order of the form."""
    said = ((each.name, given.get(each.name, "").strip()) for each in FIELDS)
    return {name: text for name, text in said if text}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _pairs(name: str, text: str, *, last: bool = False) -> dict[str, str]:
    """``name=value`` on each line; `last`: names may hold the sign itself."""
    found = {}
    for line in _lines(text):
        key, equals, value = line.rpartition("=") if last else line.partition("=")
        if not (key.strip() and equals):
            raise InvalidParameter(name, line, "of the form name=value")
        found[key.strip()] = value.strip()
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(name, text, "a number") from None


def _rho(text: str) -> float | str | None:
    if text == "learn":
        return text
    return None if text == "none" else _number("rho", text)


def _weights(text: str) -> dict[str, float]:
    pairs = _pairs("weights", text, last=True)
    return {name: _number(f"the weight of {name}", given) for name, given in pairs.items()}


def _parameters(text: str) -> dict[str, object]:
    return {name: scalar_of(given) for name, given in _pairs("parameters", text).items()}


_READERS: Mapping[str, Callable[[str], Any]] = {
    "level": partial(_number, "level"),
    "threshold": partial(_number, "threshold"),
    "rho": _rho,
    "rubric": find_rubric,
    "weights": _weights,
    "parameters": _parameters,
}
"""How a setting is read; any other is a word."""
