"""What format a file has, by its content."""

import csv
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from witan.adapters.ballots.columns import ALIASES, Header
from witan.errors import BallotFileError

__all__ = [
    "CANDIDATES",
    "LENGTHS",
    "QUESTIONS",
    "SESSION_MARKS",
    "TEXTS",
    "delimiter_of",
    "first_value",
    "is_battle",
    "recognise",
    "table_format",
]

SESSION_MARKS = ("witan_session", "witan_imported")
"""What a line that holds a whole session begins with."""

TEXTS = ("text", "answer", "response", "output")
"""Fields of a line that holds an answer, under which its text stands."""

LENGTHS = ("chars", "output_chars", "length", "n_chars")
"""Fields, or columns, under which the length of an answer stands."""

CANDIDATES = ("candidate", "model", "model_id")
"""Fields of a line that holds an answer, under which its author stands."""

QUESTIONS = ("text", "question", "prompt")
"""Fields of a line that holds a question, under which its text stands."""

_SHOWN = 1 << 16
"""Of a first line no more than this is looked at, well below what the csv module takes."""

_LINE_STARTS = re.compile(r"#\s*[A-Z ]+\d*\s*:|\d+\s*$")
_BATTLE = frozenset({"model_a", "model_b"})
_WINNERS = frozenset({"winner", "winner_model_a"})
_COMPARED = frozenset({"first", "second"})
_CAST = ("ranking", "rankings", "grades", "abstained", "first", "second", "type", "run_id")
"""Fields of a ballot, or of a line of a log, beside the names of a reviewer."""


def recognise(path: str, first: str, columns: Mapping[str, str]) -> str:
    """The format of a text file whose first line that is not blank is `first`."""
    if first.startswith("{"):
        return _json_format(path, first, columns)
    if _LINE_STARTS.match(first):
        return "preflib"
    cells = next(csv.reader([first[:_SHOWN]], delimiter=delimiter_of(first)), [])
    kind = table_format(cells, columns, path)
    if kind is None:
        shown = first if len(first) <= 60 else first[:60] + "…"
        raise BallotFileError(
            path,
            f"is not recognised as ballots by its first line, {shown!r}; expected JSON objects, a "
            "PrefLib header, or CSV columns 'reviewer' and 'candidate' (or 'first', 'second' and "
            "'outcome'); name other columns (--column field=header), or give the format",
        )
    return kind


def table_format(names: Iterable[str], columns: Mapping[str, str], path: str) -> str | None:
    """The format of a table with these columns; None: it is none of them."""
    header = Header(names, columns, path)
    return "battles" if is_battle(header.names) else header.kind


def delimiter_of(header: str) -> str:
    """What separates the cells of a header: a comma, unless there is none but a tab or ``;``."""
    if "," in header:
        return ","
    return next((mark for mark in "\t;" if mark in header), ",")


def is_battle(fields: Iterable[str]) -> bool:
    """Whether a row with these columns is a battle."""
    named = set(fields)
    return named >= _BATTLE and not _WINNERS.isdisjoint(named)


def first_value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that holds something; None if none does."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def _json_format(path: str, first: str, columns: Mapping[str, str]) -> str:
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl"  # the line is reported when it is read, and the others are not lost
    kind = _record_format(record)
    if kind is None and not columns and (beside := _beside(record)) is not None:
        said = f"holds {beside} and no ballots; import the ballots with --{beside}"
        raise BallotFileError(path, f"{said} {shlex.quote(path)}")
    return kind or "jsonl"


def _record_format(record: Mapping[str, Any]) -> str | None:
    """The format of a file that holds such objects; None: ballots, a line each."""
    if any(mark in record for mark in SESSION_MARKS):
        return "sessions"
    if isinstance(record.get("messages"), list):
        return "conversations"
    compared = record.keys() >= _COMPARED and ("outcome" in record or "score" in record)
    if is_battle(record) or compared:
        return "battles"
    session = "rankings" in record and "label_to_model" in record
    event = isinstance(record.get("type"), str) and "run_id" in record
    return "council-log" if session or event else None


def _beside(record: Mapping[str, Any]) -> str | None:
    """``answers`` or ``questions``, as which a line without a ballot reads; None: as neither."""
    if first_value(record, ALIASES["session"]) is None or not record.keys().isdisjoint(
        (*ALIASES["reviewer"], *_CAST)
    ):
        return None
    if first_value(record, CANDIDATES) is not None:
        return "answers" if first_value(record, (*TEXTS, *LENGTHS)) is not None else None
    return "questions" if first_value(record, QUESTIONS) is not None else None
