"""Every surface has every operation with all of its parameters."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import witan
from witan.service.catalogue import CATALOGUE, find_operation, operation, redact
from witan.service.operations.rules import RuleList
from witan.service.parameters import Parameters, adapter_of, parameters_of
from witan.surfaces.cli.app import cli
from witan.surfaces.cli.commands import with_options
from witan.surfaces.http.openapi import describe_fields
from witan.surfaces.mcp.tools import TOOLS, list_tools

OPERATIONS = sorted(CATALOGUE)

SOURCE = Path(witan.__file__).parent


LISTED = {tool.name: tool for tool in list_tools()}

TOOL_OF = {
    operation.name: name
    for name, tool in TOOLS.items()
    for operation in (tool.operation, *tool.other_operations)
}

VALUES = [name for name in OPERATIONS if find_operation(name).kind == "value"]


BY_HAND = ("question", "texts", "reference", "files", "conversation")
"""Parameters that the command line reads from files or arguments of its own."""


def names(declared):
    return {each.name for each in parameters_of(declared.parameters)}


def members(declared):
    """Names of a request's fields; a group of parameters is one of them."""
    waiting = {"wait"} if declared.kind == "session" else set()
    return {each.group or each.name for each in parameters_of(declared.parameters)} | waiting


@pytest.fixture(scope="module")
def document():
    """The OpenAPI document of a server."""
    from fastapi import FastAPI

    from witan.surfaces.http import routes

    app = FastAPI()
    app.include_router(routes.router)
    return app.openapi()


@pytest.mark.parametrize(
    "name", [name for name in OPERATIONS if CATALOGUE[name].command is not None]
)
def test_every_parameter_is_an_option(name):
    """An option or argument has the name of its parameter; an option also has its description."""
    declared, row = find_operation(name), CATALOGUE[name]
    command = cli.get_command(click.Context(cli), row.command or name)
    params = {each.name: each for each in command.params}

    assert names(declared) - {*declared.path_parameters} <= params.keys()
    for each in parameters_of(declared.parameters):
        words = with_options(each.doc.text, declared.parameters)
        by_hand = each.doc.positional or each.name in BY_HAND
        assert by_hand or params[each.name].help.startswith(words)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_is_accepted_over_http(name, document):
    """In path, query or body; the reply is typed."""
    declared = find_operation(name)
    held = document["paths"][f"/api{declared.path}"][declared.method.lower()]
    given = {each["name"] for each in held.get("parameters", ())}
    if "requestBody" in held:
        content = held["requestBody"]["content"]["application/json"]
        shape = content["schema"]["$ref"].rpartition("/")[2]
        given |= document["components"]["schemas"][shape]["properties"].keys()

    answer = held["responses"]["202" if declared.kind == "session" else "200"]
    assert given == members(declared)
    assert "$ref" in str(answer["content"]["application/json"]["schema"])


@pytest.mark.parametrize("name", [name for name in OPERATIONS if CATALOGUE[name].tool])
def test_every_parameter_is_an_argument_of_the_tool(name):
    """The schema names each, some of them in `options`; the result has a type."""
    tool, known = LISTED[TOOL_OF[name]], names(find_operation(name))
    own = tool.input_schema["properties"].keys()

    assert known <= own | tool_options(tool)
    assert own <= known | {"options", "wait", "plan", "full"}
    assert tool.output_schema["properties"]


def tool_options(tool):
    """Names of the settings of a count, or of the tool that a description refers to."""
    options = tool.input_schema["properties"].get("options", {"description": ""})
    names = options["description"].rpartition(": ")[2]
    if names.startswith("as of"):
        return tool_options(LISTED[names.split("`")[1]])
    return {*names.split(", ")} - {""}


@pytest.mark.parametrize("name", VALUES)
def test_every_field_of_a_result_is_described(name):
    """By a docstring, which the schema contains."""
    schema = describe_fields(
        adapter_of(find_operation(name).result).json_schema(mode="serialization")
    )
    shapes = [schema, *schema.get("$defs", {}).values()]

    lacking = [
        f"{shape['title']}.{field}"
        for shape in shapes
        for field, held in shape.get("properties", {}).items()
        if "description" not in held and "$ref" not in held
    ]
    assert lacking == []


def test_a_result_of_an_undeclared_type_is_refused():
    """A type that is neither redacted nor declared public reaches no client."""

    @dataclass(frozen=True)
    class Secrets(Parameters):
        key: str = "k"

    def reveal(_: object, given: Secrets) -> Secrets:
        return given

    with pytest.raises(TypeError, match="neither redacted nor public"):
        redact(Secrets())
    with pytest.raises(TypeError, match="neither redacted nor public"):
        operation("GET /secrets", tag="reports")(reveal)


def test_a_result_of_a_derived_type_is_refused():
    """A declaration about a type does not apply to its subclasses."""

    class Longer(RuleList):
        pass

    with pytest.raises(TypeError, match="neither redacted nor public"):
        redact(Longer(()))


REDACTION = SOURCE / "service" / "redaction.py"

ERRORS = {"public_error", "redact_refusal"}
"""Functions that word errors."""

APART_FROM_RESULTS = {
    "service/dispatch.py:ServedSessions": "names of an imported session, as its client writes them",
    "service/operations/reports.py:HistoryReports": "names of models, as its client writes them",
    "service/sessions/councils.py:_missing_seats": "seats in an error",
    "service/sessions/running.py:Stream": "events of a stream, each as it happens",
}


def test_only_redaction_rules_redact_results():
    """Other code calls `redact`, which applies the rule of a type."""
    by_hand = {
        f"{path.relative_to(SOURCE)}:{getattr(block, 'name', 'module')}"
        for path in SOURCE.rglob("*.py")
        if path != REDACTION
        if "witan.service.redaction" in (text := path.read_text(encoding="utf-8"))
        for block in redacting_blocks(ast.parse(text))
    }

    assert by_hand == {*APART_FROM_RESULTS}


def redacting_blocks(tree: ast.Module) -> Iterator[ast.stmt]:
    """The functions and classes of a module that redact without being a rule."""
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "witan.service.redaction"
        for alias in node.names
    } - ERRORS
    for block in tree.body:
        rules = [ast.unparse(each) for each in getattr(block, "decorator_list", ())]
        used = {each.id for each in ast.walk(block) if isinstance(each, ast.Name)}
        if used & names and not any(rule.startswith("redacts(") for rule in rules):
            yield block
