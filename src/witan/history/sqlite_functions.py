"""Functions of one number that some builds of SQLite lack, and that sums for an audit need."""

from collections.abc import Callable, Mapping
from math import log, sqrt
from types import MappingProxyType
from typing import Any

__all__ = ["MATHEMATICS", "lend"]

Function = Callable[[float], float]

MATHEMATICS: Mapping[str, Function] = MappingProxyType({"LN": log, "SQRT": sqrt})


def lend(connection: Any, functions: Mapping[str, Function] = MATHEMATICS) -> None:
    """Give a connection those of the functions that its library does not have.

    They are NULL of NULL, and where they are not defined, as SQLite's own are.
    """
    for name, function in functions.items():
        try:
            connection.execute(f"SELECT {name}(1.0)").fetchall()
        except connection.OperationalError:
            connection.create_function(name, 1, _or_null(function), deterministic=True)


def _or_null(function: Function) -> Callable[[object], float | None]:
    def of(value: object) -> float | None:
        if not isinstance(value, int | float):
            return None
        try:
            return function(value)
        except ValueError:
            return None

    return of
