"""Every tool, by its name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import mcp_types as types

from witan.surfaces.mcp.asking import ASKING
from witan.surfaces.mcp.calls import Tool
from witan.surfaces.mcp.counting import COUNTING
from witan.surfaces.mcp.planning import PLANNING
from witan.surfaces.mcp.reports import REPORTS

TOOLS: Mapping[str, Tool[Any]] = MappingProxyType(
    {tool.name: tool for tool in (*ASKING, *PLANNING, *COUNTING, *REPORTS)}
)


def listed() -> list[types.Tool]:
    """The tools as the protocol lists them."""
    return [_listed(tool) for tool in TOOLS.values()]


def _listed(tool: Tool[Any]) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=tool.input_schema,
        output_schema=dict(tool.returns),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.repeatable,
            open_world_hint=tool.asks,
        ),
    )
