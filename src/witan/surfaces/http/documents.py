"""What the OpenAPI document says of answers: an example of each, and the shape that it shows."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Path
from fastapi.security import HTTPBearer

from witan.surfaces.http.parameters import known_parameters
from witan.surfaces.http.problems import TITLES

Responses: TypeAlias = dict[int | str, dict[str, Any]]

TOKEN = HTTPBearer(
    scheme_name="token",
    description="Where the server has tokens: one of them. `X-Api-Key` takes it, too.",
    auto_error=False,
)
"""How who asks is told; the door has seen to it before."""

SessionNamed = Annotated[
    str,
    Path(
        description="Its name, an unambiguous beginning of it, or `last`.",
        openapi_examples={"the latest": {"value": "last"}},
    ),
]

TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}

PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "faults": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["where", "problem"],
                "properties": {"where": {"type": "string"}, "problem": {"type": "string"}},
            },
        },
    },
}
"""A problem (RFC 9457)."""

DETAILS: Mapping[int, str] = {
    400: "There was an error parsing the body",
    401: "a token is needed; send one: Authorization: Bearer TOKEN",
    402: "the calls that this needs could cost $0.31, more than the $0.25 that are left",
    403: "a page of https://elsewhere.example may not ask this",
    404: "unknown session 'nope'; none are known",
    409: "the session 20261122-043640-acfc3ee97f is under way; let it end, or cancel it, first",
    413: "the request is longer than 4,194,304 bytes; send less, or raise serve.body_bytes",
    422: "question: Field required",
    429: "ada may begin 60 sessions in a minute; ask again in 12 s",
    501: "the server needs an extra: pip install 'witan[serve]'",
    502: "the session came to no text: ada: the call failed",
    503: "the server is about to stop; ask again when it is back",
    508: "this council would be a member of itself: a → b → a; seat another model",
}


def told(words: str, example: Mapping[str, Any], *, nullable: Collection[str] = ()) -> Any:
    """An answer in JSON: it has the fields of the example, of the same types; some may be null."""
    fields = {
        name: {} if value is None or name in nullable else {"type": TYPES[type(value)]}
        for name, value in example.items()
    }
    shape = {"type": "object", "required": [*example], "properties": fields}
    return {
        "description": words,
        "content": {"application/json": {"schema": shape, "example": example}},
    }


def streamed_events(words: str, example: Mapping[str, str]) -> Any:
    """An answer of server-sent events; each has the fields of the example."""
    fields = {name: {"type": "string"} for name in ("id", *example)}
    shape = {"type": "object", "required": ["event", "data"], "properties": fields}
    return {
        "description": words,
        "content": {"text/event-stream": {"schema": shape, "example": example}},
    }


def refused(*statuses: int) -> Responses:
    """Answers that say why there is no other."""
    return {
        status: {
            "description": TITLES[status],
            "content": {
                "application/problem+json": {
                    "schema": PROBLEM,
                    "example": {
                        "title": TITLES[status],
                        "status": status,
                        "detail": DETAILS[status],
                    },
                }
            },
        }
        for status in statuses
    }


ANY_TIME = refused(400, 401, 403, 413, 422, 429, 503, 508)
"""What may come of every request: the door refuses it, or what is asked is not accepted."""


def operations(*tags: str) -> APIRouter:
    """Where operations of the native API are declared; these hold of each of them."""
    return APIRouter(
        prefix="/api",
        tags=[*tags],
        dependencies=[Depends(TOKEN), Depends(known_parameters)],
        responses=ANY_TIME,
    )
