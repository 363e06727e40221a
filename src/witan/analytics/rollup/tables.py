"""The tables that are rolled up: keys, counts and sums, as arrays of records.

A category and a rule stand there as the codes of their names, like a model: a roll-up only has to
tell them apart. A session without a category has `NO_CATEGORY`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from witan.history.schema import code_of

__all__ = [
    "KEYS",
    "NO_CATEGORY",
    "NO_RULE",
    "Records",
    "Sums",
    "added_up",
    "category_code",
    "joined",
    "kinds",
]

Records = NDArray[np.void]

NO_CATEGORY = -1

NO_RULE = ""

_MOST = 2**62
"""Numbers of places that an integer of 64 bits can tell apart."""

_DENSE = 16
"""Numbers of places for each row, up to which they are counted one by one."""

KEYS = {
    "standings": ("bucket", "category", "human", "rule", "model"),
    "matchups": ("bucket", "category", "human", "first", "second"),
    "answers": ("bucket", "category", "model"),
    "panel": ("bucket", "category"),
    "counted": ("bucket", "category", "rule"),
}
"""What the rows of each table are apart by."""

_COUNTS = {
    "standings": ("appearances", "sessions", "z_sessions", "votes", "offered"),
    "matchups": (),
    "answers": ("answers", "failed", "costed", "timed"),
    "panel": ("sessions", "concordant", "sure"),
    "counted": ("sessions", "models", "people"),
}

_TOTALS = {
    "standings": ("total", "squares", "z_total", "wins"),
    "matchups": ("wins", "losses", "ties"),
    "answers": ("cost_usd", "seconds"),
    "panel": ("kendall_w", "agreement"),
    "counted": (),
}

kinds: dict[str, np.dtype[np.void]] = {
    table: np.dtype(
        [(name, "<i8") for name in (*KEYS[table], *_COUNTS[table])]
        + [(name, "<f8") for name in _TOTALS[table]]
    )
    for table in KEYS
}
"""Table to the type of its records: names in order, whole numbers first, all of eight bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The sums of some sessions, a row per key; a key may stand in several.

    The columns are those of the tables of `witan.core.sums`, with the keys of `KEYS`; and beside
    them `counted`: of the sessions with ballots, those that were counted under a rule, though it
    may have left nothing, and of all sessions those with standings of models and of people.
    `NO_RULE` stands for all that have ballots.
    """

    standings: Records
    matchups: Records
    answers: Records
    panel: Records
    counted: Records

    def __len__(self) -> int:
        return sum(len(getattr(self, table)) for table in KEYS)


def category_code(category: str | None) -> int:
    """The code of a category."""
    return NO_CATEGORY if category is None else code_of(category)


def joined(parts: Iterable[Sums]) -> Sums:
    """The rows of all parts, one after another."""
    held = list(parts)
    return Sums(
        **{
            table: _end_to_end(kind, [getattr(part, table) for part in held])
            for table, kind in kinds.items()
        }
    )


def _end_to_end(kind: np.dtype[np.void], tables: Sequence[Records]) -> Records:
    # `np.concatenate` looks into every record type anew, which takes longer than the copying.
    whole = np.empty(sum(map(len, tables)), kind)
    at = 0
    for rows in tables:
        whole[at : at + len(rows)] = rows
        at += len(rows)
    return whole


def added_up(rows: Records, keys: Sequence[str]) -> Records:
    """The rows with equal keys made one, in the order of their keys."""
    if len(rows) < 2:
        return rows
    place, row, inverse = _places(rows, keys)
    whole = rows[row]
    for name in rows.dtype.names or ():
        if name not in keys:
            # A weight is a float: whole numbers are exact up to 2^53.
            whole[name] = np.bincount(inverse, np.ascontiguousarray(rows[name]), len(place))
    return whole


def _places(
    rows: Records, keys: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """The distinct keys as numbers, a row that has each, and which each row has."""
    place, size = np.zeros(len(rows), np.int64), 1
    for name in keys:
        column = np.ascontiguousarray(rows[name])
        least, most = int(column.min()), int(column.max())
        n = most - least + 1
        if n > len(rows):
            values, column = np.unique(column, return_inverse=True)
            n, least = len(values), 0
        if size > _MOST // n:
            found, place = np.unique(place, return_inverse=True)
            size = len(found)
        place = place * n + (column - least)
        size *= n
    if size > _DENSE * len(rows):
        return _sorted_places(place)
    # Where most numbers of places are taken, counting them takes less than sorting them.
    held = np.flatnonzero(np.bincount(place, minlength=size))
    rank = np.empty(size, np.int64)
    rank[held] = np.arange(len(held))
    inverse = rank[place]
    row = np.empty(len(held), np.intp)
    row[inverse] = np.arange(len(rows))
    return held, row, inverse


def _sorted_places(
    place: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """As `np.unique`, with any row that has a key: so the sorting need not be stable."""
    order = np.argsort(place)
    ordered = place[order]
    begins = np.empty(len(place), bool)
    begins[0], begins[1:] = True, ordered[1:] != ordered[:-1]
    inverse = np.empty(len(place), np.intp)
    inverse[order] = np.cumsum(begins) - 1
    return ordered[begins], order[begins], inverse
