"""No surface lacks an operation; a page has the other features, and why some are missing."""

import json
import re
from importlib import import_module
from pkgutil import iter_modules

import click
from fastapi import APIRouter
from fastapi.routing import APIRoute

import witan
from pages import ROOT
from witan.service.catalogue import CATALOGUE, find_operation
from witan.surfaces import web
from witan.surfaces.cli.app import cli
from witan.surfaces.mcp.server import TEMPLATES
from witan.surfaces.mcp.tools import TOOLS

PAGE = (ROOT / "docs/surfaces.md").read_text(encoding="utf-8")

REFERENCE = (ROOT / "docs/reference.md").read_text(encoding="utf-8")

DOCUMENT = ROOT / "tests/golden/outputs/openapi.json"

OPERATIONS = [find_operation(name) for name in CATALOGUE]

ASIDE = {"GET /assets/{name}", "GET /sessions/"}
"""What pages are made of, and an address that is another's with a slash."""


def features():
    """The rows of the page's table by their first cell, as cells by their heading."""
    head, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in re.findall(r"^\|.*$", PAGE, flags=re.MULTILINE)
    )
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def operations():
    """What the reference names in Python and on the page, by operation."""
    found = re.findall(r"^## (\w+)\n\n(?:.+\n)+\n.* · Python (.*)$", REFERENCE, flags=re.MULTILINE)
    places = ((name, line.partition(" · page ")) for name, line in found)
    return {name: {"Python": python, "page": page} for name, (python, _, page) in places}


IN_PYTHON, ELSEWHERE = operations(), features()


def named(surface, *rows):
    """What rows of the tables name for a surface."""
    rows = rows or ELSEWHERE.values()
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row[surface])} - {"demo"}


def addresses(routers):
    """Every method and address of some routers; a name of a session stands for itself."""
    return {
        f"{method} {route.path.replace(':path}', '}')}"
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }


def test_what_is_missing_has_a_reason():
    """And every reason is one for something."""
    reasons = set(re.findall(r"^- (\w)\. ", PAGE, flags=re.MULTILINE))
    cells = [cell for row in ELSEWHERE.values() for cell in row.values()]
    lacks = [cell for cell in cells if "—" in cell]

    assert all(cells)
    assert all(re.fullmatch(r"— \w", cell) for cell in lacks)
    assert {cell[-1] for cell in lacks} == reasons


def test_every_command_is_an_operation_or_named():
    """And every operation is a command, but those about a server's own sessions."""
    commands = set(cli.list_commands(click.Context(cli)))
    operations = {row.command or row.name for row in CATALOGUE.values() if row.command is not None}

    assert operations <= commands
    assert {f"witan {name}" for name in commands - operations} <= named("command line")
    assert named("command line") <= {f"witan {name}" for name in commands}


def test_every_operation_is_in_python():
    """What is named is public: a name of the package, or a method of one."""
    assert IN_PYTHON.keys() == CATALOGUE.keys()
    for name in named("Python") | named("Python", *IN_PYTHON.values()):
        found = witan
        for part in name.split("."):
            found = getattr(found, part)


def test_every_route_is_an_operation_or_named():
    """By its method and address, as the OpenAPI document has them."""
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    routes = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    operations = {f"{each.method} /api{each.path}" for each in OPERATIONS}

    assert operations <= routes
    assert named("HTTP") == routes - operations


def test_every_tool_does_an_operation():
    """And all but those with a reason have one; resources beside lists and reports are named."""
    templates = {each.uri_template for each in TEMPLATES}
    sections = dict(part.split("\n", 1) for part in REFERENCE.split("\n## ")[1:])

    done = [
        each.name for tool in TOOLS.values() for each in (tool.operation, *tool.other_operations)
    ]

    assert sorted(done) == sorted(name for name, row in CATALOGUE.items() if row.tool)
    for name, row in CATALOGUE.items():
        assert row.tool != ("no MCP tool" in sections[name])
    assert named("MCP") - TOOLS.keys() == templates


def test_every_operation_is_on_the_page():
    """At the address of its route, with an empty form there, or where the page says.

    No address of the page is left over.
    """
    pages = addresses(
        router
        for module in iter_modules(web.__path__, f"{web.__name__}.")
        for router in vars(import_module(module.name)).values()
        if isinstance(router, APIRouter) and not router.prefix
    )
    same = {each.name: f"{each.method} {each.path}" for each in OPERATIONS}
    lacking = [
        name
        for name, page in same.items()
        if page not in pages and not named("page", IN_PYTHON[name])
    ]

    forms = {f"GET {each.path}" for each in OPERATIONS if each.method == "POST"}
    assert lacking == []
    own = forms | set(same.values())
    assert pages - own - ASIDE == (named("page") | named("page", *IN_PYTHON.values())) - own


def test_every_tool_has_its_place_on_the_page_about_tools():
    """With what it does."""
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")

    assert [name for name in TOOLS if f"`{name}`" not in page] == []
