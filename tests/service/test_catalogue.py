"""Every operation is on every surface, with every parameter that it declares."""

import click
import pytest

from witan.service.catalogue import CATALOGUE, find_operation
from witan.service.parameters import adapter_of, parameters_of
from witan.service.schemas import describe
from witan.surfaces.cli.app import cli
from witan.surfaces.cli.generated import with_options
from witan.surfaces.mcp.tools import TOOLS

OPERATIONS = sorted(CATALOGUE)


def names(operation):
    return {each.name for each in parameters_of(operation.parameters)}


@pytest.fixture(scope="module")
def document():
    """The OpenAPI document of a server."""
    from fastapi import FastAPI

    from witan.surfaces.http import reports

    app = FastAPI()
    app.include_router(reports.router)
    return app.openapi()


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_is_an_option(name):
    """An option bears the name of its parameter, with dashes, and its sentence."""
    operation = find_operation(name)
    command = cli.get_command(click.Context(cli), name)
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}

    assert names(operation) <= options.keys()
    for each in parameters_of(operation.parameters):
        assert options[each.name].help == with_options(each.doc.text, operation.parameters)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_is_taken_over_http(name, document):
    """The route has each parameter, and a typed answer."""
    operation = find_operation(name)
    [held] = document["paths"][f"/api{operation.path}"].values()

    assert {each["name"] for each in held["parameters"]} == names(operation)
    assert "$ref" in held["responses"]["200"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_is_an_argument_of_the_tool(name):
    """The schema of the tool has each, and says what it replies."""
    tool = TOOLS[name]

    assert tool.input_schema["properties"].keys() == names(find_operation(name))
    assert tool.returns["properties"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_field_of_a_result_is_described(name):
    """A docstring says what each field is; it stands in the schema."""
    schema = describe(adapter_of(find_operation(name).result).json_schema(mode="serialization"))
    shapes = [schema, *schema.get("$defs", {}).values()]

    lacking = [
        f"{shape['title']}.{field}"
        for shape in shapes
        for field, held in shape.get("properties", {}).items()
        if "description" not in held and "$ref" not in held
    ]
    assert lacking == []
