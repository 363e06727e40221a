"""Tools made from the catalogue: a schema of the parameters, text and a typed object back."""

from collections.abc import Callable, Iterator
from typing import Any

from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.parameters import adapter_of
from witan.service.text import Page
from witan.surfaces.mcp.calls import Call, Reply, Tool
from witan.surfaces.report import report_of
from witan.surfaces.report.markdown import report_markdown

PAGE = Page()


def value_tool(
    operation: Operation[Any, Any],
    text: Callable[[Page, Any], Iterator[str]] | None = None,
    *,
    summary: Callable[[Any], Any] | None = None,
) -> Tool[Any]:
    """Make the tool of an operation that returns a value.

    Parameters
    ----------
    text
        Renders the result; None: as its report, in Markdown.
    summary
        Reduces a large result to a smaller type, which it is annotated with; None: it is told.
    """

    async def work(call: Call, given: Any) -> Reply:
        def render(result: Any) -> Reply:
            told = result if summary is None else summary(result)
            said = report_markdown(report_of(result)) if text is None else _joined(text, result)
            return Reply(said, told)

        return await dispatch(operation, call.service, call.client, given, render)

    return Tool(
        operation.name,
        operation.summary,
        " ".join(operation.description.partition("\n\n")[0].split()),
        operation.parameters,
        work,
        reads=not operation.changes,
        destroys=operation.destroys,
        repeatable=operation.method == "DELETE",
        returns=lean_result(
            operation.result if summary is None else summary.__annotations__["return"]
        ),
    )


def _joined(text: Callable[[Page, Any], Iterator[str]], result: object) -> str:
    return "\n".join(text(PAGE, result))


UNSAID = ("title", "description", "default", "required")
"""Keywords of the schema of a result that no agent needs to be told."""


def lean_result(result: object) -> Any:
    """Write the schema of a result in few words: an agent pays for each of them."""
    return _shortened(adapter_of(result).json_schema(mode="serialization"))


def _shortened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_shortened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shorter = {
        name: {each: _shortened(held) for each, held in value.items()}
        if name in ("properties", "$defs")
        else _shortened(value)
        for name, value in schema.items()
        if name not in UNSAID
    }
    match shorter.get("anyOf"):
        case [{"type": str(kind)} as first, {"type": "null"}]:
            del shorter["anyOf"]
            if "enum" in first:
                first = {**first, "enum": [*first["enum"], None]}
            return {**first, **shorter, "type": [kind, "null"]}
    return shorter
