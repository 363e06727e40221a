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
# Reference

Each operation is declared once. Its command, HTTP route, MCP tool and form take the parameters
below under these names; an option of a command has dashes for underscores. Without a default, the
[configuration](configuration.md#settings) or the rule sets the value. Unless said otherwise, the
page has an operation at the address of its route without `/api`.

`?` marks what may be null (unknown, or none), `[]` a list (an option that may be repeated), `{}`
an object from names to such values (`NAME=VALUE` in an option)."""

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}

_TITLES = {
    "session": "One session",
    "ballots": "Ballots that are sent",
    "format": "How ballots are read",
    "recusal": "How ballots count",
    "parameters": "Rule and rubric of a count",
    "since": "A window",
    "profile": "A council and its procedure",
    "conversation": "A question",
    "texts": "Texts to be judged",
    "chairman": "Who answers",
}
"""Headings of shared parameters, by one of each group."""

_PYTHON = {
    "tally": "`tally`, `tally_sessions`",
    "compare": "`compare_rules`",
    "calibrate": "`stats.check_calibration`",
    "estimate": "`stats.estimate`",
    "show": "`History.session`, `History.export`",
    "result": "`Council.deliberate`",
    "cancel": "cancelling its task",
    "recount": "`Session.recount`",
    "paper": "`History.vote`",
    "vote": "`History.vote`",
    "votes": "`History.votes_of`",
    "forget": "`History.forget`",
    "ask": "`ask`, `Council.ask`",
    "plan": "`Council.plan`",
    "judge": "`judge`, `Council.judge`",
    "plan_judge": "`Council.plan_judge`",
    "resume": "`Council.resume`",
    "retry": "`Council.retry`",
    "plan_retry": "`Council.plan_retry`",
    "rejudge": "`Council.rejudge`",
    "plan_rejudge": "`Council.plan_rejudge`",
    "sessions": "`History.find`",
    "profiles": "`Council.from_config`",
    "rules": "`RULES`",
    "rubrics": "`RUBRICS`, `files.rubric_to_toml`",
}
"""What does the same in Python; for others the function of their name."""

_PAGE = {
    "result": "`GET /sessions/{session}/live`, `GET /sessions/{session}/state`",
    "recount": "`GET /sessions/{session}`",
    "paper": "`GET /sessions/{session}/vote`",
    "vote": "`POST /sessions/{session}/vote`",
    "forget": "`POST /sessions/{session}/forget`",
    "sessions": "`GET /history`",
    "profiles": "`GET /`",
    "rules": "`GET /tally`",
    "rubrics": "`GET /`",
}
"""Where the page does it, unless at the address of its route without `/api`."""

_FEWEST_SHARED = 9
"""Rows times the operations that take them. Fewer stand with the first."""


_EXPLAINED = {
    "ReviewerAudit": "audit.md#one-reviewer",
    "GradingAudit": "audit.md#criterion-by-criterion",
    "PanelAudit": "audit.md#the-panel",
    "CriterionAudit": "audit.md#the-panel",
    "LengthAudit": "audit.md#one-reviewer",
    "BallotObject": "ballot-files.md#json-lines",
}
"""Types whose fields another page explains."""

_FEWEST_LINES = 2
"""Lines that two types share, from which on the smaller refers to the larger."""

_FEWEST_EVENTS = 10
"""A choice of so many types is one of events."""


def reference_page() -> str:
    """Write the page in Markdown."""
    operations = [find_operation(name) for name in CATALOGUE]
    groups = _shared_parameters(operations)
    types: dict[str, Any] = {}
    takers: dict[tuple[Row, ...], str] = {}
    first: dict[Row, str] = {}
    sections = [_section(each, groups, types, takers, first) for each in operations]
    shared = [f"## {_heading(rows)}\n\n{_rows(rows)}" for rows in groups.values()]
    lines = {
        name: [*_fields(schema["properties"])]
        for name, schema in types.items()
        if "properties" in schema
    }
    described = ["## Types", *(_type(name, types[name], lines) for name in sorted(types))]
    return "\n\n".join([_HEAD, *sections, *shared, *described]) + "\n"


Row = tuple[str, ...]

TOOL_OF = {
    each.name: name
    for name, tool in TOOLS.items()
    for each in (tool.operation, *tool.other_operations)
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
    return {
        names: rows for names, rows in groups.items() if len(rows) * len(names) >= _FEWEST_SHARED
    }


def _heading(rows: Sequence[Row]) -> str:
    [title] = [title for name, title in _TITLES.items() if any(_name(row) == name for row in rows)]
    return title


def _name(row: Row) -> str:
    return row[0].split("`")[1]


def _rows(rows: Iterable[Row]) -> str:
    return "\n".join(f"- {name} ({takes}): {meaning}" for name, takes, meaning in rows)


def _section(
    operation: Operation[Any, Any],
    groups: Mapping[tuple[str, ...], Sequence[Row]],
    types: dict[str, Any],
    takers: dict[tuple[Row, ...], str],
    first: dict[Row, str],
) -> str:
    row = CATALOGUE[operation.name]
    places = [] if row.command is None else [f"`witan {row.command or row.name}`"]
    places.append(f"`{operation.method} /api{operation.path}`")
    places.append(f"MCP tool `{TOOL_OF[row.name]}`" if row.tool else "no MCP tool")
    places.append(f"Python {_PYTHON.get(row.name, f'`{row.name}`')}")
    if row.name in _PAGE:
        places.append(f"page {_PAGE[row.name]}")
    summary = operation.description.partition("\n\n")[0]
    parts = [f"## {operation.name}", summary, " · ".join(places)]
    rows = tuple(_row(each) for each in parameters_of(operation.parameters))
    if (alike := takers.setdefault(rows, operation.name)) != operation.name and len(rows) > 1:
        parts.append(f"Parameters: those of [{alike}](#{alike}).")
    else:
        joined = [groups[names] for names in groups if operation.name in names]
        parts += _parameters(operation.name, rows, joined, first)
    parts.append(f"Result: {_result(operation, types)}.")
    return "\n\n".join(parts)


def _parameters(
    operation: str, rows: Sequence[Row], joined: Sequence[Sequence[Row]], first: dict[Row, str]
) -> Iterable[str]:
    """Link to the lists that it shares, and give its own."""
    if joined:
        titles = [_heading(shared) for shared in joined]
        links = [f"[{title.lower()}](#{title.lower().replace(' ', '-')})" for title in titles]
        yield f"Parameters of {', '.join(links)}."
    shared = {row for group in joined for row in group}
    own = [row for row in rows if row not in shared]
    alike: dict[str, list[str]] = {}
    for row in own:
        if (earlier := first.setdefault(row, operation)) != operation:
            alike.setdefault(earlier, []).append(row[0])
    if alike:
        named = [f"{', '.join(names)} of [{name}](#{name})" for name, names in alike.items()]
        yield f"Also {'; '.join(named)}."
    if new := [row for row in own if first[row] == operation]:
        yield _rows(new)


def _result(operation: Operation[Any, Any], types: dict[str, Any]) -> str:
    if operation.kind == "session":
        return "a session that is under way"
    schema = describe_fields(adapter_of(operation.result).json_schema(mode="serialization"))
    defined = schema.pop("$defs", {})
    types |= {name: defined[name] for name in _described(schema, defined)}
    name = schema.get("title", "")
    if "properties" in schema:
        types[name] = schema
    return _link(name) if name else _kind(schema)


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
    limits = {name: f"{bound:g}" for name, bound in parameter.bounds.items() if name in _BOUNDS}
    bounds = [f"{_BOUNDS[name]} {bound}" for name, bound in limits.items()]
    if {*limits} == {"ge", "le"}:
        bounds = [f"{limits['ge']}–{limits['le']}"]
    if parameter.many:
        takes = f"{takes}[]" if parameter.many == "list" else f"{{{takes}}}"
    takes = " ".join([takes, " and ".join(bounds)]).strip()
    if parameter.option != f"--{parameter.name.replace('_', '-')}":
        takes = f"`{parameter.option}`: {takes}"
    return f"`{parameter.name}`", takes + _default(parameter), parameter.doc.text


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "; required"
    if parameter.many or parameter.default in (None, False, ""):
        return ""
    return f"; default `{parameter.default}`"


def _value(parameter: Parameter) -> str:
    if parameter.parser is not None:
        return parameter.parser.expected
    names: dict[type, str] = {bool: "boolean", int: "integer", float: "number"}
    return names.get(parameter.kind, "string")


def _type(name: str, schema: Mapping[str, Any], lines: Mapping[str, Sequence[str]]) -> str:
    parts = [f"### {_title(name)}", schema.get("description", "")]
    if name in _EXPLAINED:
        names = ", ".join(f"`{each}`" for each in schema["properties"])
        parts.append(f"Fields, as [explained]({_EXPLAINED[name]}): {names}.")
    elif name in lines:
        parts += _lines_of_type(name, lines)
    elif "enum" in schema:
        parts.append(" · ".join(f"`{each}`" for each in schema["enum"]))
    return "\n\n".join(part for part in parts if part)


def _lines_of_type(name: str, lines: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """Refer to the larger type that has the same lines, and give the type's own."""
    larger = [each for each in lines if (len(lines[each]), each) > (len(lines[name]), name)]
    owner = max(larger, key=lambda each: len({*lines[each]} & {*lines[name]}), default=name)
    shared = [line for line in lines[name] if line in lines[owner] and owner != name]
    if len(shared) < _FEWEST_LINES:
        shared = []
    else:
        names = ", ".join(line.removeprefix("- ").partition(" (")[0] for line in shared)
        yield f"Also {names} of {_link(owner)}."
    yield "\n".join(line for line in lines[name] if line not in shared)


def _title(name: str) -> str:
    """Name a type otherwise than an operation, whose anchor would be the same."""
    return f"{name} (type)" if name.lower() in CATALOGUE else name


def _link(name: str) -> str:
    return f"[{name}](#{re.sub(r'[()]', '', _title(name)).lower().replace(' ', '-')})"


def _fields(fields: Mapping[str, Any]) -> Iterable[str]:
    """Give a line to each field; fields of one meaning share theirs."""
    groups: dict[str, dict[str, Any]] = {}
    for name, schema in fields.items():
        groups.setdefault(schema.get("description", name), {})[name] = schema
    for meaning, group in groups.items():
        kinds = ", ".join(dict.fromkeys(_kind(schema) for schema in group.values()))
        names = ", ".join(f"`{name}`" for name in group)
        described = "" if meaning in group else f": {meaning.replace('``', '`')}"
        yield f"- {names} ({kinds}){described}"


def _kind(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 - a shape each
    """Write the type of a field; types of ours link to their section."""
    match schema:
        case {"$ref": str(ref)}:
            return _link(ref.rpartition("/")[2])
        case {"anyOf": [*kinds]}:
            return _either(kinds)
        case {"enum": [*values]}:
            return "|".join(f"`{each}`" for each in values)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "array", "items": items}:
            return f"{_kind(items)}[]"
        case {"type": "array"}:
            return "list"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"{{{_kind(values)}}}"
        case {"format": "date-time"}:
            return "time"
        case _:
            return str(schema.get("type", "any"))


def _either(kinds: Sequence[Mapping[str, Any]]) -> str:
    names = [_kind(each) for each in kinds if each != {"type": "null"}]
    either = "event" if len(names) >= _FEWEST_EVENTS else "|".join(names)
    return either if len(names) == len(kinds) else f"{either}?"
