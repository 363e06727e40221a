"""The reference page: every operation of the catalogue, its parameters and its result."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from witan.service.catalogue import CATALOGUE, Operation, find_operation
from witan.service.parameters import Parameter, adapter_of, parameters_of
from witan.surfaces.http.openapi import describe_fields
from witan.surfaces.mcp.tools import TOOLS

_HEAD = """\
# Reference of operations

Each operation is declared once. Its command, its HTTP route, its MCP tool and its form take the
parameters below, under these names; an option has dashes for underscores and `--` before it. This
page is made from the declarations."""

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


_FEWEST_SHARED = 4
"""Fewer parameters than these stand with each operation that takes them."""


def reference_page() -> str:
    """Write the page in Markdown."""
    operations = [find_operation(name) for name in CATALOGUE]
    groups = _shared_parameters(operations)
    types: dict[str, Any] = {}
    sections = [_section(each, groups, types) for each in operations]
    shared = [f"## {_heading(names)}\n\n{_rows(rows)}" for names, rows in groups.items()]
    described = ["## Types", *(_type(name, types[name]) for name in sorted(types))]
    return "\n\n".join([_HEAD, *sections, *shared, *described]) + "\n"


Row = tuple[str, ...]

TOOL_OF = {
    each.name: name for name, tool in TOOLS.items() for each in (tool.operation, *tool.others)
}


def _shared_parameters(
    operations: Iterable[Operation[Any, Any]],
) -> Mapping[tuple[str, ...], Sequence[Row]]:
    """Group the parameters that several operations take alike, by the operations' names."""
    takers: dict[Row, list[str]] = {}
    for operation in operations:
        for parameter in parameters_of(operation.parameters):
            takers.setdefault(_row(parameter), []).append(operation.name)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row, names in takers.items():
        if len(names) > 1:
            groups.setdefault(tuple(names), []).append(row)
    return {names: rows for names, rows in groups.items() if len(rows) >= _FEWEST_SHARED}


def _heading(names: Sequence[str]) -> str:
    return f"Parameters of {', '.join(names[:-1])} and {names[-1]}"


def _anchor(heading: str) -> str:
    return heading.lower().replace(",", "").replace(" ", "-")


def _rows(rows: Iterable[Row]) -> str:
    return _table(("parameter", "takes", "default", "meaning"), rows)


def _section(
    operation: Operation[Any, Any],
    groups: Mapping[tuple[str, ...], Sequence[Row]],
    types: dict[str, Any],
) -> str:
    row = CATALOGUE[operation.name]
    places = [] if row.command is None else [f"`witan {row.command or row.name}`"]
    places += [f"`{operation.method} /api{operation.path}`", f"MCP tool `{TOOL_OF[row.name]}`"]
    parts = [f"## {operation.name}", operation.description, " · ".join(places)]
    joined = [names for names in groups if operation.name in names]
    shared = {row for names in joined for row in groups[names]}
    rows = [_row(each) for each in parameters_of(operation.parameters)]
    if own := [row for row in rows if row not in shared]:
        parts.append(_rows(own))
    if joined:
        links = (f"[{(text := _heading(names)).lower()}](#{_anchor(text)})" for names in joined)
        parts.append(f"Takes the {' and the '.join(links)}.")
    parts.append(f"Result: {_result(operation, types)}.")
    return "\n\n".join(parts)


def _result(operation: Operation[Any, Any], types: dict[str, Any]) -> str:
    if operation.kind == "session":
        return "a session that is under way"
    schema = describe_fields(adapter_of(operation.result).json_schema(mode="serialization"))
    defined = schema.pop("$defs", {})
    types |= {name: defined[name] for name in _described(schema, defined)}
    name = schema.get("title", "")
    if "properties" in schema:
        types[name] = schema
    return f"[`{name}`](#{name.lower()})" if name else _kind(schema)


def _described(schema: Any, defined: Mapping[str, Any]) -> set[str]:
    """Name the types that a schema refers to, events and what only they have aside."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        text = json.dumps(waiting.pop())
        for name in {*re.findall(r'"#/\$defs/(\w+)"', text)} - found:
            if "const" not in defined[name].get("properties", {}).get("event", {}):
                found.add(name)
                waiting.append(defined[name])
    return found


def _row(parameter: Parameter) -> tuple[str, ...]:
    takes = ", ".join(f"`{each}`" for each in parameter.choices) or _value(parameter)
    bounds = [f"{_BOUNDS[name]} {bound:g}" for name, bound in parameter.bounds.items()]
    takes = " ".join([takes, " and ".join(bounds)]).strip()
    if parameter.many:
        takes = f"any number of {takes}" if parameter.many == "list" else f"name and {takes}"
    name = f"`{parameter.name}`"
    if parameter.option != f"--{parameter.name.replace('_', '-')}":
        name += f" (`{parameter.option}`)"
    return name, takes, _default(parameter), parameter.doc.text


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "required"
    return "" if parameter.many or parameter.default in (None, False) else f"`{parameter.default}`"


def _value(parameter: Parameter) -> str:
    if parameter.parser is not None:
        return parameter.parser.expected
    names: dict[type, str] = {bool: "true or false", int: "whole number", float: "number"}
    return names.get(parameter.kind, "text")


def _type(name: str, schema: Mapping[str, Any]) -> str:
    parts = [f"### {name}", schema.get("description", "")]
    if fields := schema.get("properties", {}):
        rows = (
            (f"`{each}`", _kind(held), held.get("description", "")) for each, held in fields.items()
        )
        parts.append(_table(("field", "is", "meaning"), rows))
    elif "enum" in schema:
        parts.append(" · ".join(f"`{each}`" for each in schema["enum"]))
    return "\n\n".join(part for part in parts if part)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    cells = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _kind(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 - a shape each
    """Name the type of a field; types of ours link to their table."""
    match schema:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[`{name}`](#{name.lower()})"
        case {"anyOf": [{"$ref": _}, {"$ref": _}, {"$ref": _}, *_]}:
            return "one of the events of a session"
        case {"anyOf": [*kinds]}:
            return " or ".join(_kind(each) for each in kinds)
        case {"enum": [*values]}:
            return ", ".join(f"`{each}`" for each in values)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": "array"}:
            return "list"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"name to {_kind(values)}"
        case {"format": "date-time"}:
            return "time"
        case _:
            return str(schema.get("type", "any"))
