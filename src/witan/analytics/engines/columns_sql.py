"""The columns of a table of sums, for a query that fills some of them."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["columns_of"]

_NOUGHTS: Mapping[Any, str] = MappingProxyType(
    {NDArray[np.int64]: "CAST(0 AS BIGINT)", NDArray[np.float64]: "0.0"}
)


def columns_of(table: type[Any], **given: str) -> str:
    """Every column of a table in its order: what is given under its name, noughts elsewhere.

    Queries of one table can then be put one under the other. Whole numbers are cast, since sums of
    them are decimals on one engine and integers of 128 bits on another.

    Raises
    ------
    TypeError
        If there is no such column.
    """
    columns = {column.name: _NOUGHTS[column.type] for column in fields(table)}
    strange = given.keys() - columns.keys()
    if strange:
        raise TypeError(f"{table.__name__} has no column {min(strange)!r}")
    return ",\n    ".join(f"{text} AS {name}" for name, text in {**columns, **given}.items())
