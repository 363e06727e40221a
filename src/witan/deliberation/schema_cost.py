"""The work of checking a JSON value against a JSON Schema, counted beforehand.

A client of a server may have sent the schema. A short one can apply itself exponentially often: by
references that fan out, or by nested ``unevaluatedProperties``.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

MOST_CHECKS = 200_000
"""Most schemas applied to a value and its parts; checking them takes well below a second."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_BY_KEY = ("dependentSchemas", "dependencies")
_OF_ITEMS = ("items", "additionalItems", "contains", "unevaluatedItems")
_OF_FIELDS = ("additionalProperties", "unevaluatedProperties")
_REPEATING = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords that apply their neighbours again, at most twice each."""

_META_SCHEMA = {"allOf": [True] * 1_000}
"""In place of a schema that `jsonschema-rs` brings along."""

_PATTERN = 20
"""Checks counted for a pattern, which may backtrack."""


class UncheckableSchema(Exception):
    """A schema that cannot be checked safely; the message says what is expected."""


class SchemaCost:
    """Counter of the checks of a valid schema.

    Raises `UncheckableSchema` for dynamic references, and for an identifier that is used twice.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._targets: dict[str, Any] = {"": schema}
        self._base: dict[int, str] = {}
        self._id = "id" if "draft-04" in str(schema.get("$schema")) else "$id"
        self._index(schema, "")

    def count(self, value: object) -> int:
        """Count the schemas that are applied to a value and its parts.

        Raises `UncheckableSchema` above `MOST_CHECKS`.
        """
        try:
            return self._count(self._root, value, {})
        except RecursionError:
            raise _too_many_checks() from None

    def _index(self, node: object, base: str) -> None:
        """Note where identifiers and anchors point, and what references are relative to."""
        if isinstance(node, dict):
            if isinstance(own := node.get(self._id), str):
                self._note_target(urljoin(base, own).removesuffix("#"), node)
                base = urldefrag(urljoin(base, own))[0]
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(anchor := node.get(keyword), str):
                    self._note_target(f"{base}#{anchor}", node)
            for keyword in ("$dynamicRef", "$recursiveRef"):
                if isinstance(node.get(keyword), str):
                    raise UncheckableSchema(f"a JSON Schema without {keyword}; use $ref")
            self._base[id(node)] = base
        for each in _values(node):
            self._index(each, base)

    def _note_target(self, address: str, node: object) -> None:
        if self._targets.setdefault(address, node) is not node:
            raise UncheckableSchema(f"a JSON Schema with the identifier {address!r} once")

    def _count(self, schema: object, value: object, known: dict[tuple[int, int], int]) -> int:
        if not isinstance(schema, dict):
            return 1
        key = (id(schema), id(value))
        if key not in known:
            known[key] = MOST_CHECKS  # in a circle of references
            total = _PATTERN if "pattern" in schema else 1
            repetitions = 1 + 2 * sum(keyword in schema for keyword in _REPEATING)
            in_place = ((each, value) for each in self._same(schema))
            for each, part in chain(in_place, _parts(schema, value)):
                total += repetitions * self._count(each, part, known)
                if max(total, len(known)) > MOST_CHECKS:
                    raise _too_many_checks()
            known[key] = total
        return known[key]

    def _same(self, schema: Mapping[str, Any]) -> Iterator[object]:
        """Iterate over the schemas that apply to the same value."""
        for keyword in (*_LISTS, *_BY_KEY):
            yield from _values(schema.get(keyword))
        for keyword in _SINGLE:
            yield schema.get(keyword)
        if isinstance(reference := schema.get("$ref"), str):
            base = self._base[id(schema)]
            in_document = reference.startswith("#")
            yield self._resolve(base + reference if in_document else urljoin(base, reference))

    def _resolve(self, address: str) -> object:
        """Find the target of a reference; the validator has checked that it exists."""
        address = address.removesuffix("#")
        document, fragment = urldefrag(address)
        if address in self._targets or document not in self._targets:
            return self._targets.get(address, _META_SCHEMA)
        target: Any = self._targets[document]
        for step in unquote(fragment).removeprefix("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            target = target[int(name)] if isinstance(target, list) else target[name]
        return target


def _too_many_checks() -> UncheckableSchema:
    return UncheckableSchema(f"a JSON Schema that takes at most {MOST_CHECKS:,} checks")


def _values(node: object) -> Iterator[object]:
    yield from node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _parts(schema: Mapping[str, Any], value: object) -> Iterator[tuple[object, object]]:
    """Pair the parts of a value with the schemas that may apply to each."""
    if isinstance(value, list):
        lists = [
            schema[key] for key in ("items", "prefixItems") if isinstance(schema.get(key), list)
        ]
        for place, part in enumerate(value):
            yield from ((each[place], part) for each in lists if place < len(each))
            yield from _of_all(schema, _OF_ITEMS, part)
    elif isinstance(value, dict):
        fields, patterns = schema.get("properties"), [*_values(schema.get("patternProperties"))]
        for name, part in value.items():
            if isinstance(fields, dict) and name in fields:
                yield fields[name], part
            yield from ((each, part) for each in patterns)
            yield from _of_all(schema, _OF_FIELDS, part)
            yield schema.get("propertyNames"), name


def _of_all(
    schema: Mapping[str, Any], keywords: tuple[str, ...], part: object
) -> Iterator[tuple[object, object]]:
    yield from ((schema[key], part) for key in keywords if isinstance(schema.get(key), dict))
