"""Tools made from the catalogue: a schema of the parameters, text and a typed object back."""

from collections.abc import Callable, Iterator
from typing import Any

from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.parameters import adapter_of
from witan.service.text import Page
from witan.surfaces.mcp.calls import Call, Reply, Tool

PAGE = Page()


def value_tool(
    operation: Operation[Any, Any],
    text: Callable[[Page, Any], Iterator[str]],
    *,
    summary: Callable[[Any], Any] | None = None,
) -> Tool[Any]:
    """Make the tool of an operation that returns a value.

    Parameters
    ----------
    summary
        Reduces a large result to a smaller type, which it is annotated with; None: it is told.
    """

    async def work(call: Call, given: Any) -> Reply:
        def render(result: Any) -> Reply:
            told = result if summary is None else summary(result)
            return Reply("\n".join(text(PAGE, result)), told)

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
        returns=output_schema(
            operation.result if summary is None else summary.__annotations__["return"]
        ),
    )


def output_schema(result: object) -> Any:
    """The schema of a result, without the titles and descriptions that an agent pays for."""
    return lean(adapter_of(result).json_schema(mode="serialization"))


def lean(schema: Any) -> Any:
    """A schema without titles and descriptions."""
    if isinstance(schema, dict):
        return {
            name: lean(value)
            for name, value in schema.items()
            if name not in ("title", "description") or not isinstance(value, str)
        }
    return [lean(each) for each in schema] if isinstance(schema, list) else schema
