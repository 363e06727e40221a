"""The OpenAPI document: shared responses, streams, and simpler schemas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import TypeAdapter

from witan.deliberation.events import SeatEvent
from witan.deliberation.session import State
from witan.service.json_output import field_docs
from witan.service.parameters import Doc
from witan.service.session_records import StreamedEvent
from witan.surfaces.http.problems import TITLES, OpenAIError, Problem, error_object
from witan.surfaces.openai.replies import CompletionChunk
from witan.surfaces.openai.responses import ResponseEvent

Responses: TypeAlias = dict[int | str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The data of the last message of an event stream."""

    session: Annotated[str, Doc("Name of the session.")]
    status: Annotated[State, Doc("How it ended.")]
    failure: Annotated[str | None, Doc("The error that ended it; null: none did.")]


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """State of a server."""

    status: Annotated[
        Literal["ok", "stopping"], Doc("``ok``, or ``stopping`` once it takes no more questions.")
    ]
    witan: Annotated[str, Doc("Its version.")]
    under_way: Annotated[int, Doc("How many sessions are under way.")]


COMPONENTS: Mapping[str, Any] = {
    "Problem": Problem,
    "OpenAIError": OpenAIError,
    "StreamedEvent": StreamedEvent,
    "SessionEnd": SessionEnd,
    "CompletionChunk": CompletionChunk,
    "ResponseEvent": ResponseEvent,
}
"""Types without a route as their model: those of problems and streams."""


def _any_of(*shapes: dict[str, Any]) -> dict[str, Any]:
    cells = [{"type": kind} for kind in ("string", "number", "boolean", "null")]
    return {"anyOf": [*cells, *shapes]}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def reference(name: str) -> dict[str, str]:
    """Refer to the schema of a component."""
    return {"$ref": f"#/components/schemas/{name}"}


# Client generators cannot read recursive types; rules nest no deeper than this.
RULE_DETAILS: Mapping[str, Any] = {
    "DetailCells": {
        "description": "Numbers of a rule by name, such as votes by candidate.",
        "type": "object",
        "additionalProperties": _any_of(),
    },
    "DetailRow": {
        "description": "Numbers of a rule by name, such as one round of an elimination.",
        "type": "object",
        "additionalProperties": _any_of(_list_of(_any_of()), reference("DetailCells")),
    },
    "Detail": {
        "description": "A rule's own number, or several; see the page of the rule.",
        **_any_of(
            _list_of(_any_of(_list_of(_any_of()), reference("DetailRow"))), reference("DetailRow")
        ),
    },
}
"""Types of fields that may have any name."""

DETAILS: Mapping[int, str] = {
    400: "There was an error parsing the body",
    401: "a token is needed; send one: Authorization: Bearer TOKEN",
    402: "the calls that this needs could cost $0.31, more than the $0.25 that are left",
    403: "requests from pages of https://elsewhere.example are not allowed",
    404: "unknown session 'nope'; none are known",
    409: "the session 20261122-043640-acfc3ee97f is under way; let it end, or cancel it, first",
    413: "the request is longer than 4,194,304 bytes; send less, or raise serve.body_bytes",
    422: "question: Field required",
    429: "ada may start 60 sessions per minute; ask again in 12 s",
    501: "the server needs an extra: in a clone of Witan, pip install '.[serve]'",
    502: "the session produced no text: ada: the call failed",
    503: "the server is about to stop; ask again when it is back",
    508: "this council would be a member of itself: a → b → a; seat another model",
}


def event_stream(*data: str, example: Mapping[str, str]) -> dict[str, Any]:
    """Describe a stream of events whose data are one of these components."""
    shapes = [reference(name) for name in data]
    content = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    data_field = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": content,
    }
    fields = {name: {"type": "string"} for name in example} | {"data": data_field}
    shape = {"type": "object", "required": ["data"], "properties": fields}
    return {"text/event-stream": {"itemSchema": shape, "example": dict(example)}}


def text_response(description: str, media_type: str, example: str) -> dict[str, Any]:
    """Describe a response that is text."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {"description": description, "content": content}


def problem_responses(*statuses: int) -> Responses:
    """Describe responses that are problems, by status."""
    return {
        status: _refusal(
            status,
            "application/problem+json",
            "Problem",
            {"title": TITLES[status], "status": status, "detail": DETAILS[status]},
        )
        for status in statuses
    }


def openai_error_responses(*statuses: int) -> Responses:
    """Describe responses that are errors of OpenAI's protocol, by status."""
    return {
        status: _refusal(
            status, "application/json", "OpenAIError", error_object(status, DETAILS[status])
        )
        for status in statuses
    }


def _refusal(status: int, media_type: str, component: str, example: object) -> dict[str, Any]:
    content = {media_type: {"schema": reference(component), "example": example}}
    return {"description": TITLES[status], "content": content}


def complete_document(document: dict[str, Any]) -> dict[str, Any]:
    """Complete the document of the routes with components and descriptions."""
    components = document["components"]["schemas"]
    for name, kind in COMPONENTS.items():
        schema = TypeAdapter(kind).json_schema(
            mode="serialization", ref_template="#/components/schemas/{model}"
        )
        for inner, shape in schema.pop("$defs", {}).items():
            components.setdefault(inner, shape)
        components.setdefault(name, schema)
    components |= RULE_DETAILS
    document["components"]["responses"] = _share_refusals(document["paths"])
    document_with_fields: dict[str, Any] = describe_fields(document)
    _simplify(document_with_fields)
    return document_with_fields


def describe_fields(schema: Any) -> Any:
    """Describe the properties of schemas by the docstrings of their classes."""
    if isinstance(schema, list):
        return [describe_fields(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: describe_fields(value) for name, value in schema.items()}
    text = result.get("description")
    if isinstance(text, str) and isinstance(result.get("properties"), dict):
        about, own_texts = field_docs(text)
        result["description"] = " ".join(about.split()).replace("None", "null")
        shared_texts = _OF_EVENTS if "seq" in result["properties"] else {}
        for names, words in (*own_texts.items(), *shared_texts.items()):
            for name in names.split(", "):
                if isinstance(field := result["properties"].get(name), dict):
                    field.setdefault("description", words.replace("None", "null"))
    return result


_, _OF_EVENTS = field_docs(SeatEvent.__doc__ or "")
"""Descriptions of the fields that several kinds of events have."""


def _simplify(schema: Any) -> None:
    """Simplify schemas that client generators misread.

    Fields with arbitrary names are rules' numbers. Patterns of names are separated from the types
    of values. A field that also takes text does not have an empty list as its default.
    """
    if isinstance(schema, list):
        for each in schema:
            _simplify(each)
    elif isinstance(schema, dict):
        if schema.get("additionalProperties") is True:
            schema["additionalProperties"] = reference("Detail")
        if "patternProperties" in schema:
            [(pattern, value)] = schema.pop("patternProperties").items()
            schema["additionalProperties"] = value
            schema["propertyNames"] = {**schema.get("propertyNames", {}), "pattern": pattern}
        if schema.get("default") in ([], {}):
            del schema["default"]
        for each in schema.values():
            _simplify(each)


def _share_refusals(paths: Mapping[str, Any]) -> dict[str, Any]:
    """Replace refusals of operations by references; return the refusals by name."""
    shared: dict[str, Any] = {}
    for operation in (each for methods in paths.values() for each in methods.values()):
        for status, response in operation["responses"].items():
            [media] = response["content"].values() if status >= "4" else [{}]
            kind = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if kind in ("Problem", "OpenAIError"):
                shared[f"{kind}{status}"] = response
                reference = {"$ref": f"#/components/responses/{kind}{status}"}
                operation["responses"][status] = reference
    return shared
