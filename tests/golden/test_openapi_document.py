"""The OpenAPI document, in which every field has a type."""

import json
from pathlib import Path

import httpx2
import pytest

from served import served
from services import councils, write_config

GOLDEN = Path(__file__).parent / "outputs" / "openapi.json"

TYPING = {"type", "$ref", "anyOf", "oneOf", "allOf", "const", "enum"}


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """The document as served, without its version."""
    folder = tmp_path_factory.mktemp("served")
    with served(councils(write_config(folder))) as server, httpx2.Client(timeout=60) as client:
        found = client.get(f"{server.url}/openapi.json").json()
    del found["info"]["version"]
    return found


def test_the_document_is_unchanged(document, write_golden):
    """After a change of a route or a result: `pytest tests/golden --write-golden`."""
    if write_golden:
        GOLDEN.write_text(f"{json.dumps(document, indent=1, ensure_ascii=False)}\n", "utf-8")

    assert document == json.loads(GOLDEN.read_text("utf-8"))


def test_every_request_and_response_has_a_schema(document):
    """A stream describes its events."""
    lacking = [
        f"{method} {path}: {media_type}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for holder in (
            operation.get("requestBody", {}),
            *operation["responses"].values(),
            *document["components"]["responses"].values(),
        )
        for media_type, media in holder.get("content", {}).items()
        if not TYPING & {*media.get("schema", media.get("itemSchema", {}))}
    ]
    assert lacking == []


def test_every_field_has_a_type(document):
    """There is no empty schema, bare object or untyped list."""
    assert list(untyped(document["components"]["schemas"], "")) == []
    for path, methods in document["paths"].items():
        assert list(untyped(methods, path)) == []


def untyped(schema, where):
    """Paths of schemas without a type in a part of the document."""
    if isinstance(schema, list):
        for place, each in enumerate(schema):
            yield from untyped(each, f"{where}/{place}")
    if not isinstance(schema, dict):
        return
    inner = [*schema.get("properties", {}).items()]
    inner += [(name, schema[name]) for name in ("items", "additionalProperties") if name in schema]
    for name, shape in inner:
        if shape is True or (isinstance(shape, dict) and not TYPING & shape.keys()):
            yield f"{where}/{name}"
    if schema.get("type") == "object" and not {"properties", "additionalProperties"} & {*schema}:
        yield where
    if schema.get("type") == "array" and not {"items", "prefixItems"} & {*schema}:
        yield where
    for name, each in schema.items():
        if name not in ("example", "examples", "default"):
            yield from untyped(each, f"{where}/{name}")
