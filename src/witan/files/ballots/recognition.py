"""What format a file has, by its content."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from witan.errors import BallotFileError
from witan.files.ballots.cells import text_of
from witan.files.ballots.columns import (
    ALIASES,
    CANDIDATES,
    LENGTHS,
    QUESTIONS,
    TEXTS,
    Header,
    folded,
)
from witan.files.ballots.dialect import Dialect, cut
from witan.files.ballots.nearest import no_table, unrecognised
from witan.files.ballots.opening import Source
from witan.files.ballots.wide import SAMPLE, grade_columns, has_criteria, is_grade

__all__ = ["SESSION_MARKS", "first_value", "recognise", "table_format"]

SESSION_MARKS = ("witan_session", "witan_imported")
"""What a line that holds a whole session begins with."""

_LINE_STARTS = re.compile(r"#\s*[A-Z ]+\d*\s*:|\d+\s*$")
_COMPARED = frozenset({"first", "second"})
_VOTES = frozenset({"ranking", "grades", "abstained"})
"""Fields of a ballot that stands on a line by itself."""

_CAST = ("ranking", "rankings", "grades", "abstained", "first", "second", "type", "run_id")
"""Fields of a ballot, or of a line of a log, beside the names of a reviewer."""


def recognise(source: Source, columns: Mapping[str, str]) -> str:
    """The format of a text file that holds something.

    Raises
    ------
    BallotFileError
        If it is none; it says which one is near.
    """
    first = source.first_line() or ""
    if first.startswith("{"):
        return _json_format(source, first, columns)
    if _LINE_STARTS.match(first):
        return "preflib"
    dialect = Dialect.of(first, columns)
    below = int(dialect.separator_line)
    names = cut(source.glimpse(1 + below)[-1], dialect.delimiter)
    shape = header_format(Header(names, columns, source.path))
    if shape is None:
        sample = dialect.rows(source.glimpse(1 + below + SAMPLE)[1 + below :], len(names))
        shape = table_format(names, sample, columns, source.path)
        if shape is None and len(names) < 2:
            raise no_table(source.path, "".join(names))
        if shape is None:
            raise unrecognised(source.path, names, sample, columns, table_format)
    return shape


def header_format(header: Header) -> str | None:
    """The format of a table whose columns alone tell it."""
    if _prefers(header):
        return "preferences"
    told = "outcome" in header or header.place("winner_model_a") is not None
    if "first" in header and "second" in header and told:
        literal = {"model_a", "model_b"} <= {folded(name) for name in header.names}
        return "battles" if literal or "reviewer" not in header else "csv-pairs"
    return "csv" if "candidate" in header and "reviewer" in header else None


def table_format(
    names: Sequence[str],
    sample: Sequence[Sequence[str]],
    columns: Mapping[str, str],
    path: str,
) -> str | None:
    """The format of a table with these columns, and rows such as these; None: it is none."""
    header = Header(names, columns, path)
    if shape := header_format(header):
        return shape
    if "candidate" in header:
        if "grade" in header or "rank" in header or has_criteria(header):
            return None if _unknown_texts(header, sample) else "csv"
        several = len(grade_columns(header, ("session", "candidate"), sample)) > 1
        return "csv-judges" if several else None
    by_item = "session" in header or "reviewer" in header or "question" in header
    if not (by_item or header.place("id", "index") is not None) or "grade" in header:
        return None
    several = len(grade_columns(header, ("session", "reviewer"), sample)) > 1
    return "csv-models" if several and not has_criteria(header) else None


def _unknown_texts(header: Header, sample: Sequence[Sequence[str]]) -> bool:
    """Whether a column of text has no field: it may well name who judged."""
    known = header.places(ALIASES)
    return any(
        name and place not in known and _is_text(place, sample)
        for place, name in enumerate(header.names)
    )


def _is_text(place: int, sample: Sequence[Sequence[str]]) -> bool:
    cells = [row[place].strip() for row in sample if place < len(row) and row[place].strip()]
    return bool(cells) and not all(map(is_grade, cells))


def first_value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that holds something; None if none does."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def _json_format(source: Source, first: str, columns: Mapping[str, str]) -> str:
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl"  # the line is reported when it is read, and the others are not lost
    kind = _record_format(record)
    if kind is not None or not record or not record.keys().isdisjoint(_VOTES):
        return kind or "jsonl"
    if not columns and (beside := _beside(record)) is not None:
        path = source.path
        said = f"holds {beside} and no ballots; import the ballots with --{beside}"
        raise BallotFileError(path, f"{said} {shlex.quote(path)}")
    names = list(record)
    sample = [_object(line) for line in source.glimpse(SAMPLE)]
    rows = [[text_of(each.get(name)) for name in names] if each else [] for each in sample]
    shape = table_format(names, rows, columns, source.path)
    if shape is None and "reviewer" not in record and not columns:
        if any("reviewer" in each and not each.keys().isdisjoint(_VOTES) for each in sample):
            return "jsonl"  # the first line is reported, and the ballots below it are not lost
        raise unrecognised(source.path, names, rows, columns, table_format)
    return shape or "jsonl"


def _object(line: str) -> Mapping[str, Any]:
    """The object on a line of JSON; an empty one where it holds none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    return record if isinstance(record, dict) else {}


def _record_format(record: Mapping[str, Any]) -> str | None:
    """The format of a file that holds such objects; None: ballots, a line each."""
    compared = record.keys() >= _COMPARED and ("outcome" in record or "score" in record)
    about = record.get("eval")
    marks = {
        "sessions": any(mark in record for mark in SESSION_MARKS),
        "promptfoo": _is_promptfoo(record),
        "inspect": isinstance(about, dict) and "task" in about and "model" in about,
        "preferences": _prefers(Header(record, {}, "")),
        "conversations": isinstance(record.get("messages"), list),
        "battles": compared,
        "council-log": ("rankings" in record and "label_to_model" in record)
        or (isinstance(record.get("type"), str) and "run_id" in record),
    }
    return next((name for name, found in marks.items() if found), None)


def _is_promptfoo(record: Mapping[str, Any]) -> bool:
    held = record.get("results")
    if isinstance(held, dict):
        return isinstance(held.get("results"), list)
    summary = isinstance(held, list) and ("stats" in record or "evalId" in record)
    return summary or record.keys() >= {"testIdx", "promptIdx", "provider"}


def _prefers(header: Header) -> bool:
    """Whether a column holds what was chosen and another what was rejected."""
    return any(
        header.place(chosen) is not None
        and header.place(chosen.replace("chosen", "rejected")) is not None
        for chosen in ("chosen", "chosen_model")
    )


def _beside(record: Mapping[str, Any]) -> str | None:
    """``answers`` or ``questions``, as which a line without a ballot reads; None: as neither."""
    if first_value(record, ALIASES["session"]) is None or not record.keys().isdisjoint(
        (*ALIASES["reviewer"], *_CAST)
    ):
        return None
    if first_value(record, CANDIDATES) is not None:
        return "answers" if first_value(record, (*TEXTS, *LENGTHS)) is not None else None
    return "questions" if first_value(record, QUESTIONS) is not None else None
