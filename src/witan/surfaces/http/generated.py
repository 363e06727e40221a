"""Routes made from the catalogue: typed parameters in, the typed result out."""

from collections.abc import Awaitable, Callable
from dataclasses import fields
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Query, Request, Response

from witan.service.catalogue import Operation
from witan.service.dispatch import dispatch
from witan.service.parameters import parameters_of
from witan.surfaces.http.access import ClientOf, ServiceOf
from witan.surfaces.http.documents import refused
from witan.surfaces.http.replies import reply
from witan.surfaces.http.staying import while_there


def add_value_route(router: APIRouter, operation: Operation[Any, Any]) -> None:
    """Add the route of an operation that returns a value and takes its parameters as a query."""

    async def endpoint(
        request: Request, service: ServiceOf, client: ClientOf, **given: Any
    ) -> Response:
        parameters = operation.parameters(**given)
        return await while_there(
            request, lambda: dispatch(operation, service, client, parameters, reply)
        )

    endpoint.__signature__ = _signature(operation.parameters, endpoint)  # type: ignore[attr-defined]
    router.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        tags=[operation.tag],
        summary=operation.summary,
        description=operation.description,
        operation_id=operation.name,
        responses={200: {"model": operation.result}, **refused(409)},
    )


def _signature(declared: type, endpoint: Callable[..., Awaitable[Response]]) -> Signature:
    """The signature of an endpoint whose parameters are the fields of a dataclass."""
    hints = get_type_hints(declared, include_extras=True)
    ours = get_type_hints(endpoint, include_extras=True)
    fixed = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=ours[name])
        for name in ("request", "service", "client")
    ]
    docs = {each.name: each.doc.text for each in parameters_of(declared)}
    queried = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[hints[field.name], Query(description=docs[field.name])],
        )
        for field in fields(declared)
    ]
    return Signature([*fixed, *queried], return_annotation=Response)
