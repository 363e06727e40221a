"""The cells of a table as values: text where nothing else is said, empty where nothing is given."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from math import isfinite, isnan
from typing import IO, Any

from witan.core.ballot_records import KINDS, Unreadable, moment, name, scale_of, weight
from witan.core.scale import Scale
from witan.files.ballots.dialect import Dialect, with_points
from witan.files.ballots.escaping import plain_cell, safe_cell
from witan.files.ballots.opening import Source
from witan.files.ballots.problems import Report

__all__ = ["BALLOT_CELLS", "Rows", "csv_rows", "number", "read_cell", "text_of", "write_rows"]

Rows = Iterable[tuple[int, list[str]]]
"""Rows of a table with their line numbers, the header first."""


@lru_cache(maxsize=4096)
def number(text: str) -> int | float | None:
    """The finite number a cell holds; None where it holds none."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _weight(text: str) -> float:
    value = number(text)
    return weight(text if value is None else value)


def _abstained(text: str) -> bool:
    folded = text.casefold()
    if folded in ("true", "yes", "1"):
        return True
    if folded in ("false", "no", "0"):
        return False
    raise Unreadable("abstained", f"is {text!r}; expected true or false")


def _kind(text: str) -> str:
    if text.casefold() not in KINDS:
        raise Unreadable("kind", f"is {text!r}; expected 'model' or 'human'")
    return KINDS[text.casefold()]


def _candidates(text: str) -> tuple[str, ...]:
    if not text.startswith("["):
        return tuple(name("candidates", part) for part in text.split("|"))
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("candidates", "is no JSON list; expected names separated by |") from None
    return tuple(name("candidates", part) for part in listed)


def _scale(text: str) -> Scale:
    if not text.startswith("{"):
        return scale_of(text)
    try:
        return scale_of(json.loads(text))
    except (ValueError, RecursionError):
        raise Unreadable("scale", f"is {text[:40]!r}, no JSON object of scales") from None


_CELLS: Mapping[str, Callable[[str], Any]] = {
    "abstained": _abstained,
    "reason": str,
    "candidates": _candidates,
    "weight": _weight,
    "category": str,
    "at": moment,
    "kind": _kind,
    "question": str,
    "notes": str,
    "scale": _scale,
}

BALLOT_CELLS = tuple(_CELLS)
"""The optional columns that speak of a whole ballot."""


def read_cell(field: str, text: str) -> Any:
    """The value of an optional cell that is not empty."""
    read = _CELLS[field]
    return text if read is str else read(text.strip())


def text_of(value: Any) -> str:
    """A value of a record as the cell of a table."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def csv_rows(
    source: Source, report: Report, columns: Mapping[str, str]
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, cut into cells and as wide as the header.

    Comma, semicolon, tab or bar separates. Where it is no comma, ``7,5`` is a number.
    """
    dialect = Dialect.of(source.first_line() or "", columns)
    rows = csv.reader(
        source.lines(),
        delimiter=dialect.delimiter,
        skipinitialspace=dialect.spaced,
        strict=True,
    )
    width, start = 0, 1
    numeric: list[int] = []
    skipping = dialect.separator_line
    while True:
        try:
            for written in rows:
                row = _read(written)
                blank = skipping or not any(cell.strip() for cell in row)
                if not width and not blank:
                    width = len(row)
                    numeric = dialect.numeric(row, columns, source.path)
                skipping = skipping and not row
                over = any(cell.strip() for cell in row[width:])
                if over and not blank:
                    report(start, _too_wide(len(row), width))
                elif not blank:
                    yield start, with_points(_as_wide(row, width), numeric)
                start = rows.line_num + 1
            return
        except csv.Error as error:
            report(start, Unreadable(None, f"is not CSV ({error}); expected quotes in pairs"))
            start = rows.line_num + 1


def _as_wide(row: list[str], width: int) -> list[str]:
    return row if len(row) == width else (row + [""] * (width - len(row)))[:width]


def _read(row: list[str]) -> list[str]:
    whole = "".join(row)
    return list(map(plain_cell, row)) if "'" in whole or "\\" in whole else row


def _too_wide(cells: int, width: int) -> Unreadable:
    what = f"has {cells} cells where the header has {width}"
    return Unreadable(None, f"{what}; expected quotes around a cell with the delimiter in it")


def write_rows(rows: Iterable[Mapping[str, Any]], columns: list[str], out: IO[str]) -> None:
    """Write a table, an empty cell for what a row does not give."""
    table = csv.writer(out)
    table.writerow(map(_written, columns))
    table.writerows([_written(row.get(column, "")) for column in columns] for row in rows)


def _written(value: Any) -> Any:
    return safe_cell(value) if isinstance(value, str) else value
