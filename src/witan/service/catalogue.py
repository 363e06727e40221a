"""The catalogue: every operation, declared once; surfaces are made from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar

from witan.service.parameters import Parameters

__all__ = ["CATALOGUE", "Operation", "Row", "find_operation", "operation"]

P = TypeVar("P", bound=Parameters)
R = TypeVar("R")

Kind = Literal["value", "session", "stream"]


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of an operation before its module is imported.

    Parameters
    ----------
    summary
        One line for lists of commands, routes and tools.
    module
        Where it is declared, under ``witan.service.operations``.
    """

    name: str
    summary: str
    module: str


CATALOGUE: Mapping[str, Row] = MappingProxyType(
    {
        row.name: row
        for row in (
            Row("leaderboard", "Rank models by their scores across sessions.", "leaderboard"),
        )
    }
)
"""Every operation by name, in the order of help and reference."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[P, R]):
    """An operation: its parameters, its result and the function that does it.

    Parameters
    ----------
    description
        A paragraph: what it does and what a caller has to know.
    kind
        ``value``: returns a result; ``session``: starts a session; ``stream``: yields events.
    method, path
        The HTTP route.
    changes, destroys
        It changes what is stored; it may delete something.
    """

    name: str
    summary: str
    description: str
    parameters: type[P]
    result: type[R]
    handler: Callable[[Any, P], R]
    method: str
    path: str
    tag: str
    kind: Kind = "value"
    changes: bool = False
    destroys: bool = False


def operation(
    name: str,
    *,
    get: str | None = None,
    post: str | None = None,
    delete: str | None = None,
    tag: str,
    kind: Kind = "value",
    changes: bool = False,
    destroys: bool = False,
) -> Callable[[Callable[[Any, P], R]], Operation[P, R]]:
    """Declare the operation of that name; its parameters and result are the handler's types."""
    [(method, path)] = [
        (method, path)
        for method, path in (("GET", get), ("POST", post), ("DELETE", delete))
        if path is not None
    ]

    def declare(handler: Callable[[Any, P], R]) -> Operation[P, R]:
        hints = {**handler.__annotations__}
        result = hints.pop("return")
        parameters = list(hints.values())[-1]
        return Operation(
            name,
            CATALOGUE[name].summary,
            cleandoc(handler.__doc__ or ""),
            parameters,
            result,
            handler,
            method,
            path,
            tag,
            kind,
            changes,
            destroys,
        )

    return declare


@cache
def find_operation(name: str) -> Operation[Any, Any]:
    """Import the operation of that name."""
    row = CATALOGUE[name]
    module = import_module(f"witan.service.operations.{row.module}")
    found: Operation[Any, Any] = getattr(module, name)
    return found
