"""Procedures of councils, put together from options by name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from os import PathLike
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from witan.core.interpretation import Counting
from witan.core.outcome import Prior
from witan.core.rubric import RUBRICS, Rubric, find_rubric
from witan.core.rules import RULES
from witan.core.settings import AUTO, CountOptions, Settings
from witan.deliberation.procedure import Limits, Mode, Procedure, Spend, ThrottlePolicy
from witan.errors import ConfigError, InvalidParameter, InvalidRubric, UnknownName, UnknownOption

if TYPE_CHECKING:
    from witan.service.config.configuration import Config

_SETTINGS = {f.name for f in (*fields(Settings), *fields(Counting))}
_LIMITS = {f.name for f in fields(Limits)} - {"providers"}
_PROCEDURE = {f.name for f in fields(Procedure)} - {"counting", "limits"}
_TABLE_OF = {"criterion": "rubric_weights", "parameter": "rule_parameters"}
_SETTING_OF = {"the rule": "rule"}
"""Name in an error to the name of the setting."""


class CouncilOptions(CountOptions, total=False):
    """Keywords of a council: deliberation, limits and count."""

    mode: Mode
    rule: str
    rule_parameters: Mapping[str, Any]
    rubric: str | PathLike[str] | Rubric
    rubric_weights: Mapping[str, float]
    rubric_scoring: bool
    holistic: bool
    synthesis: bool
    json_schema: str | None
    self_review: bool
    mirrored: bool
    pairs: int | None
    review_rounds: int
    debate_rounds: int
    spend: Spend
    safety: bool
    safety_cap: float
    enough: int | None
    quorum: int
    rho: float | Literal["learn", "public", "none"] | None
    prior: Prior | Literal["learn", "public", "none"] | None
    call_seconds: float
    stage_seconds: float
    session_seconds: float
    grace_seconds: float
    attempts: int
    hedge_seconds: float | None
    max_tokens: int
    max_cost_usd: float | None
    max_calls: int | None
    providers: Mapping[str, ThrottlePolicy | Mapping[str, Any]]


def build_procedure(options: Mapping[str, Any]) -> Procedure:
    """Assemble a procedure.

    `options`: as `CouncilOptions`, and the parameters of the rule.
    """
    check_type("rule", options.get("rule", AUTO), str)
    rule = options.get("rule", AUTO)
    parameters = dict(RULES[rule].parameters) if rule != AUTO else {}
    types = _types() if options else {}  # listing the rules of other packages is slow
    for name in options:
        if name not in types.keys() | parameters.keys():
            raise UnknownOption(name, sorted(types.keys() | parameters.keys()))
        if name in types:
            check_type(name, options[name], types[name])
    counting = {name: options[name] for name in options if name in _SETTINGS - {"rubric"}}
    values = {name: options[name] for name in options if name in parameters}
    values |= options.get("rule_parameters", {})
    for name in values:
        if name not in parameters:
            raise UnknownName(f"parameter of {rule}", name, sorted(parameters))
    # A council learns by default; a pure count does not.
    counting.setdefault("prior", "learn")
    throttling = {name: _make_throttle(each) for name, each in options.get("providers", {}).items()}
    return Procedure(
        counting=Settings.of(**counting, **values, rubric=_rubric(options)),
        limits=Limits(**_of(options, _LIMITS), providers=throttling),
        **_of(options, _PROCEDURE),
    )


@cache
def _types() -> Mapping[str, Any]:
    of_rules = {name for rule in RULES.values() for name in rule.parameters} - _SETTINGS
    hints = get_type_hints(CouncilOptions)
    return {name: hint for name, hint in hints.items() if name not in of_rules}


def _make_throttle(fields: ThrottlePolicy | Mapping[str, Any]) -> ThrottlePolicy:
    """Return the limits of one provider, from its fields by name."""
    if isinstance(fields, ThrottlePolicy):
        return fields
    types = get_type_hints(ThrottlePolicy)
    for name, value in fields.items():
        if name not in types:
            raise UnknownName("setting of a provider", name, types)
        check_type(name, value, types[name])
    return ThrottlePolicy(**fields)


def _of(options: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name in names}


def _rubric(options: Mapping[str, Any]) -> Rubric:
    rubric_option: Any = options.get("rubric", RUBRICS["general"])
    if isinstance(rubric_option, Rubric):
        rubric = rubric_option
    elif isinstance(rubric_option, str) and not rubric_option.endswith(".toml"):
        rubric = find_rubric(rubric_option)
    else:
        from witan.files.rubric_toml import load_rubric

        rubric = load_rubric(rubric_option)
    weights = options.get("rubric_weights", {})
    return rubric.replace_weights(weights) if weights else rubric


def procedure_of(config: "Config") -> Procedure:
    """Build the configured procedure; errors name the source of a value."""
    try:
        with locate_error(config):
            return build_procedure(config.options)
    except UnknownName as error:
        table = _TABLE_OF.get(error.kind.partition(" ")[0], error.kind)
        raise _at(config, table, f"names an {error}") from None
    except InvalidParameter as error:
        raise ConfigError("the configuration", error.name, _problem(error)) from None
    except InvalidRubric as error:
        if "rubric_weights" in config.options and error.rubric != config.options.get("rubric"):
            raise _at(config, "rubric_weights", error.problem) from None
        raise _at(config, "rubric", f"cannot be used: {error}") from None


@contextmanager
def locate_error(config: "Config") -> Iterator[None]:
    """Add the configuration source to an error."""
    try:
        yield
    except InvalidParameter as error:
        name = _SETTING_OF.get(error.name, error.name)
        if not any(name in setting.key for setting in config.deliberative):
            raise
        raise _at(config, name, _problem(error), error.value) from None


def _problem(error: InvalidParameter) -> str:
    return f"cannot be {error.value!r}; expected {error.expected}"


def _at(config: "Config", name: str, problem: str, value: object = None) -> ConfigError:
    settings_with_name = [s for s in config.deliberative if name in s.key]
    result = [s for s in settings_with_name if s.value == value] or settings_with_name
    if not result:
        return ConfigError("the configuration", name, problem)
    from witan.service.config.layers import as_option
    from witan.service.settings import dotted_key

    common_key = result[0].key[: result[0].key.index(name) + 1]
    sources = ", ".join(dict.fromkeys(s.source for s in result))
    return as_option(ConfigError(sources, dotted_key((*result[0].above, *common_key)), problem))


_WORDS: Mapping[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    str: "text",
}


def check_type(name: str, value: object, hint: Any) -> None:
    """Check a value against its type hint."""
    if not _fits(value, hint):
        raise InvalidParameter(name, value, _words(hint))


def _fits(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
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
