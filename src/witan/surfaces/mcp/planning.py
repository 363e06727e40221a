"""Tools that say what something would cost; none of them makes a call."""

from typing import Any

from witan.service.operations.plan import plan, plan_rejudge, plan_retry
from witan.surfaces.mcp.calls import Tool
from witan.surfaces.mcp.generated import value_tool
from witan.surfaces.text.plan import plan_text

PLANNING: tuple[Tool[Any], ...] = tuple(
    value_tool(each, plan_text) for each in (plan, plan_retry, plan_rejudge)
)
