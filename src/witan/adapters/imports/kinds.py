"""The kinds of file that hold sessions, and how one is recognised from what it holds."""

import csv
import json
import shlex
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from witan.adapters.ballots import FORMATS
from witan.adapters.ballots.formats import delimiter_of, recognise
from witan.adapters.imports.answers import kind_beside
from witan.errors import BallotFileError, UnknownName

__all__ = ["KINDS", "check_kind", "is_battle", "kind_of_record", "kind_of_text"]

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "sessions": "JSON Lines: one whole session a line, as `witan export` writes them.",
        "conversations": "JSON: a saved conversation of the web app karpathy/llm-council.",
        "battles": "JSON, CSV or Parquet: one battle of two models a row, as arenas publish them.",
        **FORMATS,
    }
)
"""Name and one sentence per kind of file that can be imported."""

SESSION_MARKS = ("witan_session", "witan_imported")
"""What a line that holds a whole session begins with."""

_SHOWN = 1 << 16
_BATTLE = frozenset({"model_a", "model_b"})
_WINNERS = frozenset({"winner", "winner_model_a"})
_COMPARED = frozenset({"first", "second"})


def check_kind(name: str) -> None:
    """Refuse a kind that does not exist."""
    if name not in KINDS:
        raise UnknownName("kind of file", name, KINDS)


def is_battle(fields: Iterable[str]) -> bool:
    """Whether a row with these columns is a battle."""
    named = set(fields)
    return named >= _BATTLE and not _WINNERS.isdisjoint(named)


def kind_of_record(record: Mapping[str, Any]) -> str | None:
    """The kind of file that holds such objects; None: one of ballots, to be told by others."""
    if any(mark in record for mark in SESSION_MARKS):
        return "sessions"
    if isinstance(record.get("messages"), list):
        return "conversations"
    said = record.keys() >= _COMPARED and ("outcome" in record or "score" in record)
    return "battles" if is_battle(record) or said else None


def kind_of_text(path: str, first: str, columns: Mapping[str, str]) -> str:
    """The kind of a text file whose first line that is not blank is `first`."""
    if first.startswith("{"):
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):
            record = {}  # the line is reported when it is read, and the others are not lost
        kind = kind_of_record(record) if isinstance(record, dict) else None
        if kind is None and not columns and (beside := kind_beside(record)) is not None:
            said = f"holds {beside} and no ballots; import the ballots with --{beside}"
            raise BallotFileError(path, f"{said} {shlex.quote(path)}")
        return kind or recognise(path, first, columns)
    cells = next(csv.reader([first[:_SHOWN]], delimiter=delimiter_of(first)), [])
    if is_battle({cell.strip() for cell in cells}):
        return "battles"
    return recognise(path, first, columns)
