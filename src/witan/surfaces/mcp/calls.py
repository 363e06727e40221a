"""A tool, a call of it, and what it replies."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from witan.service.field_errors import fault_place, fault_words
from witan.service.parameters import adapter_of
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
        return await self.work(call, self._adapter.validate_python(self._unpacked(given)))

    @property
    def _adapter(self) -> TypeAdapter[A]:
        return adapter_of(self.arguments)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the arguments."""
        return self._adapter.json_schema()

    def _unpacked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, of which some clients send lists and objects as JSON within a text."""
        types = self.input_schema.get("properties", {})
        return {
            name: _unpacked(value, types.get(name, {})) if isinstance(value, str) else value
            for name, value in given.items()
        }


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
    if fault["type"] == "extra_forbidden":
        return "there is no such argument"
    return fault_words(fault["type"], fault["msg"], fault.get("ctx"))
