"""Schemas of tools in few words, and arguments read by them."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from witan.service.parameters import Doc, Parameters, adapter_of, validate_parameters
from witan.service.request_texts import fault_place, fault_words
from witan.service.settings import BallotSettings

OMITTED = {
    "title", "pattern", "minLength", "maxLength", "maxItems", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "propertyNames", "patternProperties", "format",
}  # fmt: skip
"""Keywords that no agent needs: a call that breaks them is refused with a reason."""

READING = ("format", "columns", "scale")
"""Parameters on how ballots are read; they are recognised unless given."""

SETTINGS = (*READING, *(each.name for each in fields(BallotSettings)))
"""Parameters of a count that stand together in one argument, `options`."""


def arguments_of(declared: Any, **more: Any) -> Any:
    """Make the arguments of a tool from the parameters of its operation.

    Parameters
    ----------
    more
        Further arguments by name: an annotated type and a default.
    """
    hints = get_type_hints(declared, include_extras=True)
    members = [(each.name, hints[each.name], _copy(each)) for each in fields(declared)]
    settings = [each for each in members if each[0] in _settings(declared)]
    own = [each for each in members if each not in settings]
    if settings:
        options = _dataclass(f"{declared.__name__}Options", settings)
        own.append(("options", Annotated[options, OPTIONS], field(default_factory=options)))
    own += [(name, kind, field(default=default)) for name, (kind, default) in more.items()]
    return _dataclass(f"{declared.__name__}Arguments", own)


OPTIONS = Doc("Settings of the count.")


def _dataclass(name: str, members: list[Any]) -> Any:
    return make_dataclass(name, members, bases=(Parameters,), frozen=True, kw_only=True)


def _settings(declared: Any) -> tuple[str, ...]:
    """Names of the parameters that stand in `options`."""
    names = [each.name for each in fields(declared)]
    counts = issubclass(declared, BallotSettings)
    return tuple(name for name in names if counts and name in SETTINGS)


def _copy(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return field(default_factory=each.default_factory)
    return field() if each.default is MISSING else field(default=each.default)


def parameters_from(declared: Any, arguments: Any) -> Any:
    """Make the parameters of an operation from the arguments of its tool."""
    settings = _settings(declared)
    return declared(
        **{
            each.name: getattr(arguments.options if each.name in settings else arguments, each.name)
            for each in fields(declared)
        }
    )


def read_arguments(arguments: Any, values: Mapping[str, Any]) -> Any:
    """Validate arguments; lists and objects may come as JSON within a text.

    Raises
    ------
    ValidationError
        If they are not what the tool takes.
    """
    shapes = _shapes_of(arguments)
    read = {name: _parse(value, shapes.get(name, {})) for name, value in values.items()}
    return validate_parameters(arguments, read)


@cache
def _shapes_of(arguments: Any) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = ArgumentSchemas().write("", arguments)["properties"]
    return properties


def _parse(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or schema.get("type") not in ("array", "object"):
        return value
    try:
        return json.loads(value) if value.lstrip()[:1] in ("[", "{") else value
    except (ValueError, RecursionError):
        return value


def describe_faults(tool: str, arguments: Any, error: ValidationError) -> str:
    """Explain in a sentence why arguments are refused."""
    faults = [
        f"{fault_place(each['loc']) or 'arguments'}: {_describe_fault(each, arguments)}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    return f"{tool} does not take these arguments: {'; '.join(faults)}"


def _describe_fault(fault: ErrorDetails, arguments: Any) -> str:
    if fault["type"] == "missing":
        return "it is needed"
    if fault["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return fault_words(fault["type"], fault["msg"], fault.get("ctx"))
    for name in fault["loc"][:-1]:
        arguments = get_type_hints(arguments).get(str(name), arguments)
    if not is_dataclass(arguments):
        return "there is no such argument"
    return f"there is no such argument, only {', '.join(each.name for each in fields(arguments))}"


class ArgumentSchemas:
    """Writer of the schemas of arguments, tool by tool.

    The members of an object are named once; a later tool refers to the one that names them.
    """

    def __init__(self) -> None:
        self._named: dict[str, set[str]] = {}
        self._shapes: Mapping[str, Any] = {}
        self._tool = ""

    def write(self, tool: str, arguments: Any) -> dict[str, Any]:
        """Write a schema; each argument has its sentence's first clause."""
        schema = adapter_of(arguments).json_schema()
        self._tool, self._shapes = tool, schema.get("$defs", {})
        required = {"required": schema["required"]} if "required" in schema else {}
        properties = self._shorten(schema)["properties"]
        return {"type": "object", "properties": properties, **required}

    def _shorten(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._shorten(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._name_members(node)
        if "anyOf" in node:
            return self._shorten_union(node)
        if "patternProperties" in node:
            [value] = node["patternProperties"].values()
            node = {**node, "additionalProperties": value}
        lean = {
            name: self._shorten(value)
            for name, value in node.items()
            if name not in (*OMITTED, "default", "properties") and value not in (None, "", [], {})
        }
        if "description" in lean:
            lean["description"] = _first_clause(lean["description"])
        if "properties" in node:
            members = node["properties"].items()
            lean["properties"] = {name: self._shorten(each) for name, each in members}
        return lean

    def _shorten_union(self, node: Mapping[str, Any]) -> Any:
        """Leave out null, and the only entry of a list."""
        kinds = [self._shorten(each) for each in node["anyOf"] if each != {"type": "null"}]
        kinds = [each for each in kinds if {"type": "array", "items": each} not in kinds]
        union = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        if "description" not in node:
            return union
        return {**union, "description": _first_clause(node["description"])}

    def _name_members(self, node: Mapping[str, Any]) -> Any:
        names = [*self._shapes[node["$ref"].rpartition("/")[2]]["properties"]]
        known = (tool for tool, listed in self._named.items() if listed.issuperset(names))
        tool = next(known, None)
        self._named.setdefault(self._tool, set()).update(names if tool is None else ())
        members = ", ".join(names) if tool is None else f"as of `{tool}`"
        words = node.get("description")
        about = f"{_first_clause(words)}: {members}" if words else members
        return {"type": "object", "description": about}


def _first_clause(sentence: str) -> str:
    return sentence.partition(";")[0].rstrip(".")


def result_schema(*results: type) -> dict[str, Any]:
    """Write the schema of a result: names and types alone.

    Of several results, it has the members of all.
    """
    properties: dict[str, Any] = {}
    for each in results:
        schema = adapter_of(each).json_schema(mode="serialization")
        properties |= _lean_result(schema, schema.get("$defs", {}))["properties"]
    return {"type": "object", "properties": properties}


def _lean_result(node: Any, shapes: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_lean_result(each, shapes) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _lean_result(shapes[node["$ref"].rpartition("/")[2]], shapes)
    lean = {
        name: _lean_result(value, shapes)
        for name, value in node.items()
        if name not in (*OMITTED, "description", "default", "required", "$defs", "properties")
    }
    if "properties" in node:
        members = node["properties"].items()
        lean["properties"] = {name: _lean_result(each, shapes) for name, each in members}
    match lean.get("anyOf"):
        case [{"type": str(kind)} as first, {"type": "null"}]:
            del lean["anyOf"]
            return {**first, **lean, "type": [kind, "null"]}
    return lean
