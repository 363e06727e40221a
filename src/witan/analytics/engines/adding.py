"""Rows of sums added up as they come, so that what is held does not grow with what is asked."""

from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from witan.analytics.engines.engine import Columns

Table = TypeVar("Table")

KEYS = frozenset(
    {
        *("bucket", "model", "first", "second", "reviewer", "other", "human", "own"),
        *("position", "shown", "measure", "criterion", "band"),
    }
)
"""The columns by which rows of sums are apart; all others are summed."""

AT_ONCE = 40_000
"""Rows that may wait to be added up, beside those that already are: 7 MB of the widest table."""


class Adding(Generic[Table]):
    """A table of sums under way, a row per key once there are many.

    Parameters
    ----------
    kind
        The table; columns that are not given are nought.
    """

    def __init__(self, kind: type[Table]) -> None:
        self._kind = kind
        self._types = {
            column.name: np.float64 if column.type == NDArray[np.float64] else np.int64
            for column in fields(kind)  # type: ignore[arg-type]
        }
        self._parts: list[dict[str, NDArray[Any]]] = []
        self._waiting = 0

    def add(self, found: Columns) -> None:
        """Take in the rows of a query."""
        n = len(found["bucket"])
        self._parts.append(
            {
                name: np.asarray(found[name]).astype(dtype, copy=False)
                if name in found
                else np.zeros(n, dtype)
                for name, dtype in self._types.items()
            }
        )
        self._waiting += n
        if self._waiting > AT_ONCE:
            self._parts = [_added_up(_joined(self._parts))]
            self._waiting = 0

    def table(self) -> Table:
        """The sums so far; a key may stand in several rows."""
        return self._kind(**_joined(self._parts))


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _added_up(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same sums with a row per key."""
    keys = [rows[name] for name in rows if name in KEYS]
    order = np.lexsort(keys)
    apart = np.zeros(len(order), np.bool_)
    apart[:1] = True
    for key in keys:
        apart[1:] |= np.diff(key[order]) != 0
    starts = np.flatnonzero(apart)
    return {
        name: column[order[starts]] if name in KEYS else np.add.reduceat(column[order], starts)
        for name, column in rows.items()
    }
