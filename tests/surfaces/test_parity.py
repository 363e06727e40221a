"""No surface has a feature that another lacks, or the page of surfaces says why."""

import re
from importlib import import_module
from pkgutil import iter_modules

import click
import httpx2
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

import witan
from pages import ROOT
from served import served
from services import councils, write_config
from witan.surfaces import web
from witan.surfaces.cli.app import cli
from witan.surfaces.mcp import resources
from witan.surfaces.mcp.tools import TOOLS

PAGE = (ROOT / "docs/surfaces.md").read_text(encoding="utf-8")

SURFACES = ("command line", "Python", "HTTP", "MCP", "page")

ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ")
]

ASIDE = {"demo", "GET /assets/{name}"}
"""Names that are no features: a profile; what pages are made of."""


def column(surface):
    """The cells of a surface, by feature."""
    head, _, *rows = ROWS
    return {row[0]: row[head.index(surface)] for row in rows}


def named(surface):
    """What the table names for a surface."""
    return set(re.findall(r"`([^`]+)`", " ".join(column(surface).values()))) - ASIDE


def test_every_feature_is_named_on_every_surface_or_its_lack_has_a_reason():
    """And every reason is one for something."""
    reasons = set(re.findall(r"^- (\w)\. ", PAGE, flags=re.MULTILINE))
    cells = [cell for surface in SURFACES for cell in column(surface).values()]
    lacks = [cell for cell in cells if "—" in cell]

    assert {len(row) for row in ROWS} == {1 + len(SURFACES)}
    assert all(cells)
    assert all(re.fullmatch(r"— \w", cell) for cell in lacks)
    assert {cell[-1] for cell in lacks} == reasons


def test_every_command_is_there():
    """By its name."""
    commands = {f"witan {name}" for name in cli.list_commands(click.Context(cli))}

    assert named("command line") == commands


def test_what_is_named_of_python_is_public():
    """As a name of the package, or a method of one."""
    for name in named("Python"):
        held = witan
        for part in name.split("."):
            held = getattr(held, part)


def test_every_operation_of_the_api_is_there(tmp_path):
    """By its method and address, as the OpenAPI document has them."""
    with served(councils(write_config(tmp_path))) as server, httpx2.Client() as client:
        paths = client.get(f"{server.url}/openapi.json").json()["paths"]

    assert named("HTTP") == {
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    }


def test_every_tool_and_resource_is_there():
    """By its name or address."""
    addresses = {*resources.REPORTS, *(each.uri_template for each in resources.TEMPLATES)}

    assert named("MCP") == {*TOOLS, *addresses}


def test_every_address_of_the_page_is_there():
    """By its method; names of sessions stand for themselves."""
    found = set()
    for module in iter_modules(web.__path__, f"{web.__name__}."):
        for router in vars(import_module(module.name)).values():
            if not isinstance(router, APIRouter) or router.prefix:
                continue
            for route in router.routes:
                if isinstance(route, APIRoute):
                    path = route.path.replace(":path}", "}")
                    found |= {f"{method} {path}" for method in route.methods}

    assert named("page") == found - ASIDE


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_is_told_of_on_its_page(name):
    """With what it does."""
    assert f"`{name}`" in (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
