"""JSON Lines: one ballot a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, read_record, to_record
from witan.core.escaping import escape_json
from witan.files.ballots.columns import joined
from witan.files.ballots.doubts import doubt_of
from witan.files.ballots.opening import Source
from witan.files.ballots.problems import Report

__all__ = ["objects", "read_jsonl", "write_jsonl"]

_SCAN = json.JSONDecoder().raw_decode


def read_jsonl(source: Source, columns: Mapping[str, str], report: Report) -> Iterator[Ballot]:
    """Read one ballot a line; `columns` says under which key a field is found."""
    for number, record in objects(source, report):
        try:
            ballot = read_record(_renamed(record, columns) if columns else record)
        except Unreadable as flaw:
            report(number, flaw)
            continue
        if report.doubting:
            report.doubt(number, doubt_of(ballot))
        yield ballot


def objects(source: Source, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON object of every line that is not blank, with the line's number."""
    for number, raw in enumerate(source.lines(), start=1):
        line = raw.strip()
        if not line:
            continue
        try:
            record, end = _SCAN(line)
        except json.JSONDecodeError as error:
            report(number, _not_json(f"{error.msg} at column {error.colno}"))
        except RecursionError:
            report(number, _not_json("too deeply nested"))
        except ValueError:
            report(number, _not_json("a number has too many digits"))
        else:
            if end != len(line):
                report(number, _not_json(f"something follows the object at column {end + 1}"))
            elif type(record) is not dict:
                report(number, Unreadable(None, "is no JSON object; expected {…} with one ballot"))
            elif "\\u" in line and not _is_text(record):
                report(number, _not_json("half of a surrogate pair stands alone"))
            else:
                yield number, record


def _not_json(why: str) -> Unreadable:
    return Unreadable(None, f"is not JSON ({why}); expected one ballot object a line")


def _is_text(record: dict[str, Any]) -> bool:
    """Whether every text in it can be written as UTF-8."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _renamed(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for field, key in columns.items():
        if key in record:
            found[field] = record[key]
        elif "+" in key:
            parts = (record.get(part.strip()) for part in key.split("+"))
            found[field] = joined("" if part is None else str(part) for part in parts)
    return {**record, **found}


def write_jsonl(ballots: Iterable[Ballot], out: IO[bytes]) -> int:
    """Write one ballot a line; reading gives the same ballots back."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    written = 0
    for ballot in ballots:
        line = encode(to_record(ballot, declares=True))
        line.encode()  # refuses what is no text
        out.write(escape_json(line).encode() + b"\n")
        written += 1
    return written
