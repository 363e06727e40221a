"""The columns of a lake: what each of its folders holds.

    sessions/   a row per session, and the only place where its name stands
    standings/  a row per session, kind, rule and model
    matchups/   a row per session, kind and pair of models
    ballots/    a row per ballot that counts, with lists in the order of its candidates
    answers/    a row per answer
    names/      code → name; a name may stand in several files

The first five are parted into ``day=YYYY-MM-DD/*.parquet``. Each row carries what its session is
filtered by, so that no table has to be joined to another. `session` is a key of 64 bits made of the
session's name: a number is grouped and joined faster than a text. Pairs are rows and not lists:
summing rows took half the time of taking lists apart.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from witan.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow

__all__ = ["DAILY", "EXPORT", "TABLES", "arrow", "key_of", "repeating", "schema_of"]

_SESSION = {
    "session": "int64",
    "at_us": "int64",
    "bucket": "int16",
    "category": "string",
    "simulated": "int8",
    "rejudged": "int8",
}

TABLES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "sessions": {
            **_SESSION,
            "name": "string",
            "kendall_w": "float64",
            "agreement": "float64",
        },
        "standings": {
            **_SESSION,
            "human": "int8",
            "rule": "string",
            "model": "int64",
            "score": "float64",
            "z": "float64",
            "votes": "int32",
            "offered": "int32",
            "wins": "float64",
        },
        "matchups": {
            **_SESSION,
            "human": "int8",
            "i": "int64",
            "j": "int64",
            "wins": "float64",
            "losses": "float64",
            "ties": "float64",
            "p_beats": "float64",
        },
        "ballots": {
            **_SESSION,
            "ballot": "int32",
            "human": "int8",
            "reviewer": "int64",
            "paired": "int8",
            "abstained": "int8",
            "repaired": "int8",
            "flat": "int8",
            "kept": "int32",
            "compared": "int32",
            "weight": "float64",
            "models": "[int64]",
            "own": "[int8]",
            "shares": "[float64]",
            "grades": "[float64]",
            "positions": "[int32]",
            "chars": "[int32]",
            "criteria": "[int64]",
            "criterion_grades": "[[float64]]",
        },
        "answers": {
            **_SESSION,
            "seat": "string",
            "model": "int64",
            "chars": "int32",
            "seconds": "float64",
            "cost_usd": "float64",
            "failed": "int8",
        },
        "names": {"code": "int64", "name": "string"},
    }
)
"""Type by column by table; a list in brackets."""

MEASURED = {"z", "p_beats", "seconds", "cost_usd", "kendall_w", "agreement"}
"""The columns of which hardly two rows have the same value, so that no dictionary is of use."""

DAILY = tuple(table for table in TABLES if table != "names")
"""The tables that are parted by day."""

EXPORT = "witan.export"
"""Under what the metadata of a file of a day have the mark of its export, one for all tables."""


@cache
def arrow() -> ModuleType:
    """Arrow and its Parquet, imported when a lake is used."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("a lake of Parquet files", "lake") from None
    return cast("ModuleType", pyarrow)


@cache
def schema_of(table: str) -> "pyarrow.Schema":
    """The Arrow schema of a table."""
    return arrow().schema([(name, _typed(kind)) for name, kind in TABLES[table].items()])


@cache
def repeating(table: str) -> list[str]:
    """The columns of a table that are worth a dictionary, as Parquet names what lists hold."""
    return [
        name + kind.count("[") * ".list.element"
        for name, kind in TABLES[table].items()
        if name not in MEASURED
    ]


def _typed(kind: str) -> Any:
    if kind.startswith("["):
        return arrow().list_(_typed(kind[1:-1]))
    return getattr(arrow(), kind)()


def key_of(session: str) -> int:
    """The key of a session: 64 bits of a hash of its name; among a million two rarely share one.

    With n sessions the chance that any two do is about n²/2⁶⁵: 3 in 10⁸ for a million.
    """
    digest = blake2b(session.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)
