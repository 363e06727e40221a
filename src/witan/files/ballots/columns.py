"""Columns and cells of ballot tables, safe to open in spreadsheets."""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import isfinite, isnan
from operator import itemgetter
from typing import IO, Any

from witan.core.ballot import KINDS, Unreadable, moment, name, scale_of, weight
from witan.core.escaping import STEERING
from witan.core.scale import Scale
from witan.errors import BallotFileError, InvalidParameter, Remedy, UnknownName, Way
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport

ALIASES: Mapping[str, tuple[str, ...]] = {
    "session": (
        *("session", "session_id", "prompt_id", "question_id", "query_id", "qid", "item"),
        *("item_id", "task", "task_id", "example_id", "instance_id", "sample_id"),
        "conversation_id",
    ),
    "reviewer": (
        *("reviewer", "judge", "voter", "rater", "annotator", "grader", "evaluator", "assessor"),
        *("labeler", "labeller", "reviewer_id", "judge_id", "rater_id", "annotator_id"),
        *("judge_model", "judge_name", "user", "user_id"),
    ),
    "candidate": (
        *("candidate", "model", "answer", "model_id", "model_name", "candidate_id"),
        *("system", "system_id", "llm", "generator"),
    ),
    "rank": ("rank",),
    "grade": ("grade", "score", "rating", "mark", "points"),
    "first": (
        *("first", "model_a", "model_1", "left", "model_left", "a", "option_a", "candidate_a"),
        *("system_a", "assistant_a", "first_model"),
    ),
    "second": (
        *("second", "model_b", "model_2", "right", "model_right", "b", "option_b", "candidate_b"),
        *("system_b", "assistant_b", "second_model"),
    ),
    "outcome": (
        *("outcome", "winner", "preference", "preferred", "choice", "verdict", "vote", "result"),
        *("winning_model",),
    ),
    "position": ("position", "positions"),
    "author": ("author", "authors"),
    "kind": ("kind", "judge_kind", "reviewer_kind"),
    "abstained": ("abstained",),
    "reason": ("reason",),
    "candidates": ("candidates",),
    "weight": ("weight",),
    "category": ("category",),
    "at": ("at",),
    "question": ("question", "prompt", "instruction"),
    "notes": ("notes",),
    "scale": ("scale",),
}
"""Names of a field's column, in order of preference, ignoring case and spaces."""

CRITERIA = (
    *("accuracy", "relevance", "completeness", "conciseness", "clarity"),
    *("correctness", "robustness", "craft", "originality", "fidelity", "effect", "calibration"),
    "overall",
)
"""Columns that are always criteria: those of the named rubrics, and `overall`, the holistic grade.

Listed here because importing the rubrics loads numpy.
"""

CRITERION_PREFIX = "grade:"
"""Prefix of columns that are criteria."""

TEXTS = ("text", "answer", "response", "output")
"""Fields with the text of an answer."""

LENGTHS = ("chars", "output_chars", "length", "n_chars")
"""Fields, or columns, with the length of an answer."""

CANDIDATES = ("candidate", "model", "model_id")
"""Fields with the author of an answer."""

QUESTIONS = ("text", "question", "prompt")
"""Fields with the text of a question."""

_RECORD_FIELDS = ("ranking", "grades", "positions", "authors", "paired")

Cell = Callable[[Sequence[str]], str]


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse fields that no format has."""
    field_names = (*ALIASES, *_RECORD_FIELDS, "criteria")
    for field, column in columns.items():
        if field not in field_names:
            raise UnknownName("field", field, field_names)
        if not column.strip():
            raise InvalidParameter(f"the column of {field!r}", column, "the name of a column")


def join_columns(parts: Iterable[object]) -> str:
    """Join the non-empty cells of several columns into one name."""
    return "@".join(text for part in parts if (text := "" if part is None else str(part).strip()))


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Normalise a header: ``Model A``, ``model-a`` and ``modelA`` become ``model_a``."""
    spaced_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", spaced_name).strip("_").casefold()


class Header:
    """The columns of one table.

    `columns` gives the column of a field; ``"judge+version"`` joins two columns as
    ``judge@version``, and ``{"criteria": "a,b"}`` lists further criteria. With `absent`, a missing
    column of `columns` is ignored, as in one record of many.
    """

    def __init__(
        self, names: Iterable[str], columns: Mapping[str, str], path: str, *, absent: bool = False
    ) -> None:
        self._absent = absent
        self.names = [name.strip() for name in names]
        self.path = path
        self._places = {name: place for place, name in reversed(list(enumerate(self.names)))}
        self._folded_places = {
            fold_name(name): self._places[name]
            for name in reversed(self.names)
            if not name.casefold().startswith(CRITERION_PREFIX)
        }
        criteria_names = columns.get("criteria", "")
        self._listed_criteria = [name.strip() for name in criteria_names.split(",") if name.strip()]
        self._field_places = {
            field: column for field in ALIASES if (column := self._find(field, columns))
        }

    def place(self, *names: str) -> int | None:
        """Return the position of the first of these columns, if any."""
        return next(
            (self._folded_places[name] for name in names if name in self._folded_places), None
        )

    def column(self, field: str) -> str:
        """Return the column name of a field."""
        return "+".join(self.names[place] for place in self._field_places[field])

    def places(self, fields: Iterable[str]) -> set[int]:
        """Return the positions of these fields' columns."""
        return {place for field in fields for place in self._field_places.get(field, ())}

    def __contains__(self, field: str) -> bool:
        return field in self._field_places

    def require(self, *fields: str) -> None:
        """Refuse a table without one of these fields."""
        for field in fields:
            if field not in self:
                names = ", ".join(self.names[:12])
                raise BallotFileError(
                    self.path,
                    f"has no column for the field {field!r}; its columns are {names}",
                    remedy=Remedy(
                        f"call one {' or '.join(ALIASES[field][:5])}",
                        Way("name it with ", {"columns": {field: "HEADER"}}),
                    ),
                )

    def cell(self, field: str) -> Cell:
        """Return a getter of the field's text in a row."""
        places = self._field_places.get(field, ())
        if not places:
            return lambda _row: ""
        if len(places) == 1:
            return itemgetter(places[0])
        return lambda row: join_columns(row[place] for place in places)

    def getters(self, fields: Iterable[str]) -> list[tuple[str, Cell]]:
        """Return the present fields among these, with getters."""
        return [(field, self.cell(field)) for field in fields if field in self]

    def criteria(self) -> tuple[list[tuple[str, int]], bool]:
        """Return criteria by name and position, and whether they are guessed.

        They are guessed only if the table has no ranks, grades or known criteria.
        """
        criteria = []
        for place, column in enumerate(self.names):
            if column.casefold().startswith(CRITERION_PREFIX):
                criteria.append((column[len(CRITERION_PREFIX) :].strip(), place))
            elif column in self._listed_criteria:
                criteria.append((column, place))
            elif fold_name(column) in CRITERIA:
                criteria.append((fold_name(column), place))
        if criteria or "rank" in self or "grade" in self:
            return criteria, False
        places = self.places(ALIASES)
        return [(n, p) for p, n in enumerate(self.names) if p not in places and n], True

    def _find(self, field: str, columns: Mapping[str, str]) -> tuple[int, ...]:
        if field in columns:
            return self._named_columns(columns[field].strip())
        for alias in ALIASES[field]:
            if alias in self._folded_places:
                return (self._folded_places[alias],)
        return ()

    def _named_columns(self, kind: str) -> tuple[int, ...]:
        if kind in self._places:
            return (self._places[kind],)
        parts = [part.strip() for part in kind.split("+")]
        for part in parts:
            if part not in self._places and self._absent:
                return ()
            if part not in self._places:
                raise BallotFileError(
                    self.path,
                    f"has no column {part!r}; its columns are {', '.join(self.names[:12])}",
                )
        return tuple(self._places[part] for part in parts)


# Also full-width signs, which some spreadsheets treat as plain ones.
_FORMULA = re.compile("[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

_CODE = r"x\{([0-9a-f]{1,6})\}"
_UNSAFE_START = re.compile(rf"(?<!\\)(\\*+)(?:([{STEERING}])|(?={_CODE}))")
_ESCAPE = re.compile(rf"(?<!\\)(\\++){_CODE}")


def safe_cell(text: str) -> str:
    r"""Escape text for spreadsheets and terminals.

    Text that begins like a formula gets an apostrophe, the mark of text in spreadsheets; a control
    character becomes ``\x{1b}``. `plain_cell` restores the text.
    """
    text = escape_controls(text)
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def plain_cell(text: str) -> str:
    """Restore text escaped by `safe_cell`."""
    if text.startswith("'") and _is_formula(text.lstrip("'")):
        text = text[1:]
    return restore_controls(text)


def escape_controls(text: str) -> str:
    r"""Write control characters as ``\x{1b}``, except line ends and tabs.

    Backslashes are doubled if they could be read as part of such an escape.
    """
    return (
        text if text.isprintable() and "\\" not in text else _UNSAFE_START.sub(_column_text, text)
    )


def restore_controls(text: str) -> str:
    """Restore text escaped by `escape_controls`."""
    return _ESCAPE.sub(_decode_escape, text) if "\\" in text else text


def _column_text(match: re.Match[str]) -> str:
    slashes, char, _ = match.groups()
    return slashes * 2 + (f"\\x{{{ord(char):x}}}" if char else "")


def _decode_escape(match: re.Match[str]) -> str:
    slashes, code = match.groups()
    half = slashes[: len(slashes) // 2]
    if len(slashes) % 2 == 0:
        return f"{half}x{{{code}}}"
    return half + chr(int(code, 16)) if int(code, 16) <= sys.maxunicode else match[0]


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


_DELIMITERS = (",", ";", "\t", "|")
_QUOTED_TEXT = re.compile(r'"(?:[^"]|"")*"')
_SEPARATOR_LINE = re.compile(r"sep=(.)$", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*(?:%|/\s*\d+(?:,\d+)?)?\s*")
_KNOWN_HEADERS = frozenset((*(name for names in ALIASES.values() for name in names), *CRITERIA))
_TEXTS = (
    *("session", "reviewer", "candidate", "first", "second", "outcome", "author", "kind"),
    *("reason", "candidates", "category", "at", "question", "notes"),
)
"""Text fields, in which a comma between digits is not a decimal comma."""

_SNIFF_CHARACTERS = 1 << 16
"""Characters of the first line to examine, far below the limit of the csv module."""

_MAX_CELL = 1 << 26
"""Maximum characters of a cell."""


@dataclass(frozen=True, slots=True)
class CellDialect:
    """Delimiter of cells, with or without following blanks.

    `separator_line`: true if the first line only gives the delimiter, as Excel writes it:
    ``sep=;``.
    """

    delimiter: str
    skips_blanks: bool = False
    separator_line: bool = False

    @classmethod
    def of(cls, first: str, columns: Mapping[str, str]) -> "CellDialect":
        """Detect a file's dialect by its first line's known columns."""
        if match := _SEPARATOR_LINE.match(first):
            return cls(match[1], separator_line=True)
        unquoted = _QUOTED_TEXT.sub("", first)
        present = [mark for mark in _DELIMITERS if mark in unquoted]
        names = {part.strip() for name in columns.values() for part in name.split("+")}
        known_names = _KNOWN_HEADERS | {fold_name(name) for name in names}

        def fit(mark: str) -> tuple[int, int]:
            cells = split_cells(first, mark)
            prefixed = (cell.casefold().startswith(CRITERION_PREFIX) for cell in cells)
            n_known = sum(fold_name(cell) in known_names for cell in cells)
            return n_known + sum(prefixed), unquoted.count(mark)

        delimiter = max(present, key=fit) if len(present) > 1 else next(iter(present), ",")
        return cls(delimiter, skips_blanks=f"{delimiter} " in unquoted)

    def rows(self, lines: Sequence[str], width: int) -> list[list[str]]:
        """Return the cells of a few lines, skipping incomplete ones."""
        lines_with_ends = (f"{line}\n" for line in lines)
        reader = csv.reader(
            lines_with_ends, delimiter=self.delimiter, skipinitialspace=self.skips_blanks
        )
        cells: list[list[str]] = []
        with suppress(csv.Error):  # reading the line reports it
            cells.extend([c.strip() for c in row[:width]] for row in reader if len(row) >= width)
        return cells

    def numeric(self, names: Sequence[str], columns: Mapping[str, str], path: str) -> list[int]:
        """Return the columns with decimal commas; none if commas separate cells."""
        if self.delimiter == ",":
            return []
        texts = Header(names, columns, path, absent=True).places(_TEXTS)
        return [place for place in range(len(names)) if place not in texts]


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line into cells, tolerating a stray carriage return."""
    try:
        cells = next(
            csv.reader([line[:_SNIFF_CHARACTERS]], delimiter=delimiter, skipinitialspace=True), []
        )
    except csv.Error:
        cells = line[:_SNIFF_CHARACTERS].split(delimiter)
    return [cell.strip() for cell in cells]


def replace_commas(row: list[str], places: Sequence[int]) -> list[str]:
    """Return the row with decimal points instead of commas."""
    if not any("," in row[place] for place in places):
        return row
    new_row = list(row)
    for place in places:
        if _DECIMAL_COMMA.fullmatch(row[place]):
            new_row[place] = row[place].replace(",", ".")
    return new_row


Rows = Iterable[tuple[int, list[str]]]
"""Rows of a table with their line numbers, the header first."""


@lru_cache(maxsize=4096)
def number(text: str) -> int | float | None:
    """Return the finite number in a cell, or None."""
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


def _read_abstained(text: str) -> bool:
    word = text.casefold()
    if word in ("true", "yes", "1"):
        return True
    if word in ("false", "no", "0"):
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
        names = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable(
            "candidates", "is not a JSON list; expected names separated by |"
        ) from None
    return tuple(name("candidates", part) for part in names)


def _scale(text: str) -> Scale:
    if not text.startswith("{"):
        return scale_of(text)
    try:
        return scale_of(json.loads(text))
    except (ValueError, RecursionError):
        raise Unreadable("scale", f"is {text[:40]!r}; expected a JSON object of scales") from None


_CELLS: Mapping[str, Callable[[str], Any]] = {
    "abstained": _read_abstained,
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
"""Optional columns that describe a whole ballot."""


def read_cell(field: str, text: str) -> Any:
    """Read an optional, non-empty cell."""
    convert_cell = _CELLS[field]
    return text if convert_cell is str else convert_cell(text.strip())


def text_of(value: Any) -> str:
    """Return a value of a record as the cell of a table."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def check_headings(names: Iterable[str], path: str) -> None:
    """Refuse two columns with the same heading."""
    places: dict[str, list[str]] = {}
    for place, heading in enumerate(names, start=1):
        places.setdefault(heading.strip(), []).append(str(place))
    for heading, column_places in places.items():
        if heading and len(column_places) > 1:
            columns = f"{', '.join(column_places[:-1])} and {column_places[-1]}"
            raise BallotFileError(
                path,
                f"has the heading {heading!r} more than once, in columns {columns}",
                remedy="rename or remove all but one",
            )


BARE_CR = "has a line that ends in CR alone; save the file with LF or CRLF line ends"


def csv_rows(
    source: OpenedFile, report: ProblemReport, columns: Mapping[str, str]
) -> Iterator[tuple[int, list[str]]]:
    """Yield non-blank CSV rows as cells, padded to the header's width.

    The delimiter is a comma, semicolon, tab or bar. Unless it is a comma, ``7,5`` is a number.
    """
    dialect = CellDialect.of(source.first_line() or "", columns)
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))  # 131,072 is too short for texts
    rows = csv.reader(
        source.lines(),
        delimiter=dialect.delimiter,
        skipinitialspace=dialect.skips_blanks,
        strict=True,
    )
    width, start = 0, 1
    numeric: list[int] = []
    skipping = dialect.separator_line
    while True:
        try:
            for row_in in rows:
                row = _unescape_row(row_in)
                blank = skipping or not any(cell.strip() for cell in row)
                if not width and not blank:
                    check_headings(row, source.path)
                    width = len(row)
                    numeric = dialect.numeric(row, columns, source.path)
                skipping = skipping and not row
                overflow = any(cell.strip() for cell in row[width:])
                if overflow and not blank:
                    report(start, _too_wide(len(row), width))
                elif not blank:
                    padded = (row + [""] * (width - len(row)))[:width]
                    yield start, replace_commas(padded, numeric)
                start = rows.line_num + 1
            return
        except csv.Error as error:
            problem = f"is not CSV ({error}); expected quotes in pairs"
            problem = BARE_CR if "new-line character" in str(error) else problem
            report(start, Unreadable(None, problem))
            start = rows.line_num + 1


def _unescape_row(row: list[str]) -> list[str]:
    text = "".join(row)
    return list(map(plain_cell, row)) if "'" in text or "\\" in text else row


def _too_wide(cells: int, width: int) -> Unreadable:
    problem = f"has {cells} cells where the header has {width}"
    return Unreadable(None, f"{problem}; expected quotes around a cell that contains the delimiter")


def write_rows(rows: Iterable[Mapping[str, Any]], columns: list[str], stream: IO[str]) -> None:
    """Write a table; a missing value is an empty cell."""
    table = csv.writer(stream)  # noqa: TID251 - the gate of tables
    table.writerow(map(_escape_cell, columns))
    table.writerows([_escape_cell(row.get(column, "")) for column in columns] for row in rows)


def _escape_cell(value: Any) -> Any:
    return safe_cell(value) if isinstance(value, str) else value
