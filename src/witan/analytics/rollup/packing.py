"""Sums as bytes, as they lie in a history.

    4 bytes   WSUM
    rest      deflated: the number of rows of each table, in the order of `KEYS`, then
              table by table and column by column the values

All numbers have eight bytes, the least first: whole numbers signed, sums as IEEE 754. Column by
column the same bytes follow each other, which is what makes them small. `VERSION`, which the row
beside it holds, changes with the layout, with the columns, and with what they mean.
"""

import zlib
from collections.abc import Iterator

import numpy as np

from witan.analytics.rollup.tables import Records, Sums, kinds

__all__ = ["VERSION", "pack", "unpack"]

VERSION = 1

_MARK = b"WSUM"
_LEVEL = 1
"""More takes several times as long and saves a tenth."""

_EIGHT = 8


def pack(sums: Sums) -> bytes:
    """The bytes of sums."""
    tables = [getattr(sums, table) for table in kinds]
    counts = np.array([len(rows) for rows in tables], "<i8")
    columns = [
        np.ascontiguousarray(rows[name]).tobytes()
        for rows in tables
        for name in rows.dtype.names or ()
    ]
    return _MARK + zlib.compress(b"".join([counts.tobytes(), *columns]), _LEVEL)


def unpack(body: bytes) -> Sums:
    """The sums that bytes of this version hold.

    Raises
    ------
    ValueError
        If they hold none.
    """
    if body[: len(_MARK)] != _MARK:
        raise ValueError("no sums")
    try:
        return Sums(**dict(_tables(zlib.decompress(body[len(_MARK) :]))))
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _tables(held: bytes) -> Iterator[tuple[str, Records]]:
    counts = np.frombuffer(held, "<i8", len(kinds))
    at = counts.nbytes
    for (table, kind), n in zip(kinds.items(), counts.tolist(), strict=True):
        rows = np.empty(n, kind)
        for name in kind.names or ():
            rows[name] = np.frombuffer(held, kind[name], n, at)
            at += n * _EIGHT
        yield table, rows
