"""A tool, a call of it, and what it replies."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from witan.service.parameters import adapter_of, validate_parameters
from witan.service.request_texts import fault_place, fault_words
from witan.service.sessions import Client, Service

__all__ = ["OBJECT", "Call", "Reply", "Report", "Tool", "faults"]

A = TypeVar("A")

OBJECT: Mapping[str, Any] = MappingProxyType({"type": "object"})
"""The schema of an object about which no more is promised."""


class Report(Protocol):
    """Tells the caller how far its call has come."""

    async def __call__(self, done: float, total: float, message: str, /) -> None:
        """Say so; the first number grows from one time to the next."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Parameters
    ----------
    client
        Whose it is.
    via
        The councils that it came through.
    """

    service: Service
    client: Client
    hops: tuple[str, ...]
    report: Report


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool says: to a reader, and to a program.

    Parameters
    ----------
    told
        An object as JSON has it, or what becomes one.
    failed
        What was asked for did not come about.
    """

    text: str
    told: object
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """Something that a client can call.

    Parameters
    ----------
    about
        What a model reads to know when to call it.
    arguments
        What it takes: foreign text becomes data there.
    reads
        It changes nothing and costs nothing.
    destroys
        It may take away what was there.
    repeatable
        To call it again with the same arguments changes nothing more.
    asks
        It calls models, which are elsewhere.
    returns
        The schema of what it replies.
    """

    name: str
    title: str
    about: str
    arguments: type[A]
    work: Callable[[Call, A], Awaitable[Reply]]
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False
    asks: bool = False
    returns: Mapping[str, Any] = field(default_factory=lambda: OBJECT)

    async def run(self, call: Call, given: Mapping[str, Any]) -> Reply:
        """Do it.

        Raises
        ------
        ValidationError
            If the arguments are not what it takes.
        WitanError
            If it cannot be done.
        """
        return await self.work(call, validate_parameters(self.arguments, self._unpacked(given)))

    @property
    def _adapter(self) -> TypeAdapter[A]:
        return adapter_of(self.arguments)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the arguments."""
        return lean_arguments(self._adapter.json_schema())

    def _unpacked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, of which some clients send lists and objects as JSON within a text."""
        types = self.input_schema.get("properties", {})
        return {
            name: _unpacked(value, types.get(name, {})) if isinstance(value, str) else value
            for name, value in given.items()
        }


MOST_MEMBERS = 8
"""Members of an object that are described one by one; of a larger one, agents read the names."""


UNSAID = (
    "title", "pattern", "minLength", "maxLength", "maxItems", "propertyNames", "patternProperties",
    "exclusiveMaximum",
)  # fmt: skip
"""Keywords of a schema that no agent needs to be told: a call that breaks them is refused."""


def lean_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten a schema of arguments: an agent pays for every word of every tool."""
    own = {name: value for name, value in schema.items() if name not in ("$defs", "description")}
    short: dict[str, Any] = _shortened(own, schema.get("$defs", {}))
    return short


def _shortened(node: Any, shapes: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_shortened(each, shapes) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _shape(node, shapes)
    several = [each for each in (node.get("anyOf") or ()) if each != {"type": "null"}]
    if len(several) == 1:
        return _shortened({**node, **several[0], "anyOf": None}, shapes)
    if "patternProperties" in node:
        [value] = node["patternProperties"].values()
        node = {**node, "additionalProperties": value}
    found = {
        name: _shortened(value, shapes)
        for name, value in node.items()
        if name not in (*UNSAID, "properties") and value not in (None, "", [], {})
    }
    if "properties" in node:
        members = node["properties"].items()
        found["properties"] = {name: _shortened(each, shapes) for name, each in members}
    return found


def _shape(node: Mapping[str, Any], shapes: Mapping[str, Any]) -> Any:
    """Describe an object member by member, or of a large one its members' names."""
    shape = shapes[node["$ref"].rpartition("/")[2]]
    if len(shape["properties"]) <= MOST_MEMBERS:
        return _shortened(shape, shapes)
    words = node.get("description", shape.get("description", "")).rstrip(".")
    return {"type": "object", "description": f"{words}: {', '.join(shape['properties'])}."}


def _unpacked(text: str, schema: Mapping[str, Any]) -> object:
    if schema.get("type") not in ("array", "object") or text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def faults(tool: str, error: ValidationError) -> str:
    """What is wrong with the arguments of a call, in a sentence."""
    said = [
        f"{fault_place(each['loc']) or 'arguments'}: {_fault(each)}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    return f"{tool} does not take these arguments: {'; '.join(said)}"


def _fault(fault: ErrorDetails) -> str:
    if fault["type"] == "missing":
        return "it is needed"
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return "there is no such argument"
    return fault_words(fault["type"], fault["msg"], fault.get("ctx"))
