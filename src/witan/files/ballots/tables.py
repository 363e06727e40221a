"""Ballots in tables: rows per ballot or pair, columns per judge."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from sys import intern
from typing import Any

from witan.core.ballot import (
    Ballot,
    Groups,
    Unreadable,
    group_by_rank,
    name,
    position,
    scale_record,
)
from witan.core.scale import Scale, read_grade
from witan.errors import BallotFileError, Remedy, Way
from witan.files.ballots.columns import (
    ALIASES,
    BALLOT_CELLS,
    CRITERIA,
    CRITERION_PREFIX,
    LENGTHS,
    Header,
    Rows,
    fold_name,
    number,
    read_cell,
)
from witan.files.ballots.problems import ProblemReport, RepeatDetector, doubt_of

LONG_COLUMNS = (
    *("session", "reviewer", "candidate", "rank", "grade", "position", "author"),
    *BALLOT_CELLS,
)
"""Columns of a long table in written order, before the criteria."""

_CONTRADICTED = ("abstained", "weight", "category", "kind", "candidates", "scale")
"""Columns with one value per ballot; of other optional columns the first value counts."""


class _Sheet:
    """The rows of one ballot so far, in any order."""

    __slots__ = ("details", "line", "rows")

    def __init__(self, line: int) -> None:
        self.line = line
        self.rows: dict[str, tuple[float | None, Any, int | None, str | None]] = {}
        self.details: dict[str, Any] | None = None

    def ballot(self, session: str, reviewer: str) -> Ballot:
        """Return the ballot of all rows: rank, grade, position, author per candidate."""
        ranks = [(c, row[0]) for c, row in self.rows.items() if row[0] is not None]
        places = {c: row[2] for c, row in self.rows.items() if row[2] is not None}
        authors = {c: row[3] for c, row in self.rows.items() if row[3] is not None}
        return Ballot(
            reviewer=reviewer,
            groups=group_by_rank(ranks) if ranks else (),
            grades={c: row[1] for c, row in self.rows.items() if row[1] is not None},
            session=session,
            positions=places or None,
            authors=authors or None,
            **(self.details or {}),
        )


def read_long(rows: Rows, columns: Mapping[str, str], report: ProblemReport) -> Iterator[Ballot]:
    """Collect the rows of each ballot from the file, then yield ballots.

    If a candidate is repeated on one ballot, the last row counts; this is reported once per file.
    """
    numbered_rows = iter(rows)
    _, names = next(numbered_rows, (0, []))
    header = Header(names, columns, report.path)
    header.require("reviewer", "candidate")
    gatherer = _Gatherer(header)
    for line, row in numbered_rows:
        try:
            gatherer.add(line, row)
        except Unreadable as flaw:
            report(line, flaw)
    if gatherer.n_repeated:
        report(gatherer.first_repeated_line, _repetition(gatherer.n_repeated))
    sheets = gatherer.sheets
    for key in list(sheets):  # frees the memory of ballots already yielded
        sheet = sheets.pop(key)
        ballot = sheet.ballot(*key)
        if report.reports_doubts:
            report.doubt(sheet.line, doubt_of(ballot))
        yield ballot


def _repetition(rows: int) -> Unreadable:
    return Unreadable(
        "candidate",
        f"is repeated on one ballot ({rows:,} rows in the file, this is the first); the last row "
        "counts",
        is_read=True,
        remedy=Remedy(
            Way(
                "if another column distinguishes the rows, join it to the reviewer, such as ",
                {"columns": {"reviewer": "judge+version"}},
            )
        ),
    )


class _Gatherer:
    """Reads rows into sheets, by session and reviewer."""

    def __init__(self, header: Header) -> None:
        self.sheets: dict[tuple[str, str], _Sheet] = {}
        self.n_repeated = self.first_repeated_line = 0
        self._session, self._reviewer = header.cell("session"), header.cell("reviewer")
        self._candidate = header.cell("candidate")
        self._rank = header.cell("rank") if "rank" in header else None
        self._grade = header.cell("grade") if "grade" in header else None
        self._criteria, self._guesses = header.criteria()
        self._position = header.cell("position") if "position" in header else None
        self._author = header.cell("author") if "author" in header else None
        self._optional = header.getters(BALLOT_CELLS)

    def add(self, line: int, row: Sequence[str]) -> None:
        """Add one row, or nothing if it is unreadable."""
        reviewer = self._reviewer(row).strip()
        if not reviewer:
            raise Unreadable("reviewer", "is empty; expected the reviewer")
        key = (intern(self._session(row).strip()), intern(reviewer))
        candidate = intern(self._candidate(row).strip())
        values = self._values(row) if self._optional else {}
        if not candidate and "abstained" not in values:
            raise Unreadable("candidate", "is empty; expected the name of a candidate")
        rank = _rank(self._rank(row)) if self._rank else None
        grade = self._grades_of(row)
        place = _place(candidate, self._position(row)) if self._position else None
        sheet = self.sheets.get(key)
        if sheet is None:
            sheet = self.sheets[key] = _Sheet(line)
        if values:
            _agree(sheet, values)
        if not candidate:
            return
        if candidate in sheet.rows:
            self.n_repeated += 1
            self.first_repeated_line = self.first_repeated_line or line
        author = self._author(row).strip() or None if self._author else None
        sheet.rows[candidate] = (rank, grade, place, author)

    def _values(self, row: Sequence[str]) -> dict[str, Any]:
        return {
            field: read_cell(field, text)
            for field, cell in self._optional
            if (text := cell(row)) and not text.isspace()
        }

    def _grades_of(self, row: Sequence[str]) -> Any:
        """Return the holistic grade, or criteria with it as `overall`, or None."""
        overall = _grade(self._grade(row)) if self._grade else None
        if not self._criteria:
            return overall if overall is not None or not self._grade else self._check_empty(row)
        grades: dict[str, Any] = {}
        for criterion, places in self._criteria:
            text = row[places].strip()
            grade = number(text) if self._guesses else _grade(text)
            if grade is not None:
                grades[criterion] = grade
        if grades and overall is not None:
            grades.setdefault("overall", overall)
        return grades or (overall if overall is not None else self._check_empty(row))

    def _check_empty(self, row: Sequence[str]) -> str | None:
        """Return an empty grade, unless the row has other data."""
        cells = (self._rank, self._position, self._author)
        return None if any(cell and cell(row).strip() for cell in cells) else ""


def _rank(text: str) -> float | None:
    if not text:
        return None
    rank = number(text)
    if rank is None and not text.strip():
        return None
    if rank is None or rank < 1:
        raise Unreadable("rank", f"is {text.strip()!r}; expected a number from 1 up")
    return rank


def _grade(text: str) -> float | str | None:
    """Return a number if possible, else text, which counting checks."""
    if not text:
        return None
    grade = number(text)
    return grade if grade is not None else text.strip() or None


def _place(candidate: str, text: str) -> int | None:
    if not text.strip():
        return None
    place = number(text)
    try:
        return position(candidate, text.strip() if place is None else place)
    except Unreadable as flaw:
        raise Unreadable("position", flaw.problem) from None


def _agree(sheet: _Sheet, values: Mapping[str, Any]) -> None:
    earlier = sheet.details = sheet.details or {}
    for field, value in values.items():
        if earlier.setdefault(field, value) != value and field in _CONTRADICTED:
            raise Unreadable(
                field,
                f"is {_quote(value)} here and {_quote(earlier[field])} on an earlier row of this "
                f"ballot, which begins on line {sheet.line}; expected one value per ballot",
            )


def _quote(value: Any) -> str:
    return str(value) if isinstance(value, Scale) else repr(value)


class LongRows:
    """Converts ballots to long rows; unsupported ballots are refused."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.columns: dict[str, None] = dict.fromkeys(("session", "reviewer", "candidate"))
        self._keys: set[tuple[str, str]] = set()

    def rows(self, ballot: Ballot) -> list[dict[str, Any]]:
        """Return the rows of one ballot."""
        self._check(ballot)
        shared_cells = {
            "session": ballot.session,
            "reviewer": ballot.reviewer,
            **ballot_cells(ballot),
        }
        ranks = _ranks(ballot)
        names = dict.fromkeys([*ranks, *ballot.grades])
        names.update(dict.fromkeys([*(ballot.positions or ()), *(ballot.authors or ())]))
        rows = [{**shared_cells, "candidate": c, **self._row_of(ballot, c, ranks)} for c in names]
        if not rows:
            rows = [{**shared_cells, "candidate": "", "abstained": str(ballot.abstained).lower()}]
        for row in rows:
            self.columns.update(dict.fromkeys(row))
        return rows

    def column_order(self) -> list[str]:
        """Return the columns with values, criteria last."""
        criteria = [column for column in self.columns if column not in LONG_COLUMNS]
        return [column for column in LONG_COLUMNS if column in self.columns] + criteria

    def _row_of(self, ballot: Ballot, candidate: str, ranks: Mapping[str, int]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        if candidate in ranks:
            row["rank"] = ranks[candidate]
        grade = ballot.grades.get(candidate)
        if isinstance(grade, Mapping):
            row |= {
                criterion if criterion in CRITERIA else CRITERION_PREFIX + criterion: _cell(one)
                for criterion, one in grade.items()
            }
        elif grade is not None:
            row["grade"] = _cell(grade)
        if candidate in (ballot.positions or {}):
            row["position"] = (ballot.positions or {})[candidate]
        if candidate in (ballot.authors or {}):
            row["author"] = (ballot.authors or {})[candidate]
        return row

    def _check(self, ballot: Ballot) -> None:
        key = (ballot.session, ballot.reviewer)
        problem = None
        if ballot.paired:
            problem = "compares a pair; write jsonl or parquet"
        elif key in self._keys:
            problem = f"is its second in session {ballot.session!r}; write jsonl"
        elif len(_ranks(ballot)) < sum(map(len, ballot.groups)):
            problem = "ranks a candidate more than once; write jsonl"
        if problem:
            raise BallotFileError(
                self.path,
                f"cannot contain the ballot of {ballot.reviewer} as a long table: it {problem}",
            )
        self._keys.add(key)


def _ranks(ballot: Ballot) -> dict[str, int]:
    ranks: dict[str, int] = {}
    placed = 0
    for group in ballot.groups:
        ranks |= dict.fromkeys(group, placed + 1)
        placed += len(group)
    return ranks


def _cell(grade: Any) -> Any:
    return json.dumps(grade) if isinstance(grade, bool) else grade


_CELL_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "abstained": lambda value: "true" if value else None,
    "candidates": lambda value: json.dumps(value, ensure_ascii=False),
    "weight": lambda value: None if value == 1.0 else repr(value),
    "at": lambda value: value.isoformat(),
    "kind": lambda value: None if value == "model" else value,
    "scale": lambda value: value if isinstance(value, str) else json.dumps(value),
}


def ballot_cells(ballot: Ballot) -> dict[str, Any]:
    """Return the optional cells of a whole ballot, without defaults."""
    cells = {}
    for field in BALLOT_CELLS:
        value = scale_record(ballot) if field == "scale" else getattr(ballot, field)
        if value is not None:
            cells[field] = _CELL_WRITERS.get(field, lambda text: text)(value)
    return {field: cell for field, cell in cells.items() if cell is not None}


PAIR_COLUMNS = (
    *("session", "reviewer", "first", "second", "outcome"),
    *(field for field in BALLOT_CELLS if field not in ("abstained", "candidates", "scale")),
)
"""Columns of a table of pairs."""

OUTCOMES: Mapping[str, str] = {
    **dict.fromkeys(("first", "a", "model_a", "left"), "first"),
    **dict.fromkeys(("second", "b", "model_b", "right"), "second"),
    **dict.fromkeys(("tie", "draw", "both", "neither", "equal", "same"), "tie"),
    **dict.fromkeys(("bothbad", "both_bad", "tie_bothbad", "tie_both_bad"), "tie"),
    **dict.fromkeys(("abstain", "invalid", "skip", "skipped"), "abstain"),
}
"""Word for the outcome of a comparison, after `fold_name` → outcome."""


class PairSessions:
    """Name the session of a comparison row by id, else by question.

    Questions are identified by the line of their first occurrence. A row without either is a
    separate session with `by_session`, else part of the session without a name, where all
    comparisons count.
    """

    def __init__(self, stem: str, *, by_session: bool) -> None:
        self._stem, self._by_session = stem, by_session
        self._lines: dict[str, int] = {}

    def name(self, session: str, question: str, line: int) -> str:
        """Name the session of the row on this line."""
        if session:
            return session
        if question:
            return f"{self._stem}/{self._lines.setdefault(question, line)}"
        return f"{self._stem}/{line}" if self._by_session else ""


def read_pairs(
    rows: Rows, columns: Mapping[str, str], report: ProblemReport, sessions: PairSessions
) -> Iterator[Ballot]:
    """Read one ballot per row.

    People are often all named ``human``: a repeated vote on the same pair in the same order is
    another person, named ``human-2``, ``human-3`` and so on, so that no vote is lost.
    """
    numbered = iter(rows)
    _, names = next(numbered, (0, []))
    header = Header(names, columns, report.path)
    header.require("reviewer", "first", "second", "outcome")
    reader, repeat_detector = _PairReader(header, sessions), RepeatDetector("reviewer")
    for line, row in numbered:
        try:
            ballot = reader.read_row(row, line)
        except Unreadable as flaw:
            report(line, flaw)
            continue
        if report.reports_doubts:
            repeat_detector.see(line, ballot)
        yield ballot
    repeat_detector.report_repeats(report)


class _PairReader:
    """Reads rows of one table of pairs."""

    def __init__(self, header: Header, sessions: PairSessions) -> None:
        self._sessions = sessions
        self._session, self._reviewer = header.cell("session"), header.cell("reviewer")
        self._question = header.cell("question")
        if "session" in header:
            self._question = lambda _row: ""
        elif (place := header.place("id", "index")) is not None:
            self._session = itemgetter(place)
        self._first, self._second = header.cell("first"), header.cell("second")
        self._outcome = header.cell("outcome")
        fields = (field for field in PAIR_COLUMNS[5:] if field in header)
        self._optional = header.getters(fields)
        self._people: Counter[tuple[str, str, str]] = Counter()

    def read_row(self, row: Sequence[str], line: int) -> Ballot:
        """Return the ballot of one row."""
        reviewer = name("reviewer", self._reviewer(row))
        first, second = name("first", self._first(row)), name("second", self._second(row))
        if first == second:
            raise Unreadable(
                "second", f"is {second!r}, the same as the first; expected another candidate"
            )
        question = self._question(row).strip()
        session = self._sessions.name(self._session(row).strip(), question, line)
        outcome = _outcome(self._outcome(row).strip(), first, second)
        values: dict[str, Any] = {
            field: read_cell(field, text)
            for field, cell in self._optional
            if (text := cell(row)) and not text.isspace()
        }
        if reviewer == "human" and values.get("kind") == "human":
            self._people[session, first, second] += 1
            times = self._people[session, first, second]
            reviewer = "human" if times == 1 else f"human-{times}"
        return Ballot(
            reviewer=reviewer,
            groups=groups_of_outcome(outcome, first, second),
            grades={},
            session=session,
            abstained=outcome == "abstain",
            candidates=(first, second) if outcome == "abstain" else None,
            positions={first: 1, second: 2},
            paired=True,
            **values,
        )


def _outcome(text: str, first: str, second: str) -> str:
    outcome = OUTCOMES.get(fold_name(text))
    position_word = {first: "first", second: "second"}.get(text)
    if outcome and position_word and outcome != position_word:
        raise Unreadable(
            "outcome",
            f"is {text!r}, a word for the {outcome} and the name of the {position_word} candidate",
        )
    if outcome or position_word:
        return outcome or position_word or ""
    raise Unreadable(
        "outcome", f"is {text!r}; expected first, second, tie or abstain, or the winner's name"
    )


def groups_of_outcome(outcome: str, first: str, second: str) -> Groups:
    """Return the ranking of two candidates by an outcome."""
    if outcome == "tie":
        return ((first, second),)
    if outcome == "abstain":
        return ()
    return ((first,), (second,)) if outcome == "first" else ((second,), (first,))


LONG_FORMS = ("csv", "csv-judges", "csv-models")
"""Formats converted to a long table."""

_OTHER_FIELDS = ("author", "category", "at", "kind", "question", "notes", "weight", "position")
"""Fields of a wide table that apply to every grade in a row."""

_NOT_GRADES = frozenset(
    (
        *("rank", "position", "weight", "turn", "seed", "temperature", "index", "number", "no"),
        *("n", "count", "tokens", "input_tokens", "output_tokens", "latency", "latency_ms"),
        *("seconds", "cost", "cost_usd", "time", "timestamp", "year", "id"),
        *("elapsed", "runtime", "elapsed_time"),
        *("difficulty", "level", "length", "words", "turns", "duration", "price", "version", "age"),
        *("row", "line", "page", "batch", "run", "epoch", "step", "seq", "day", "month"),
        *("mean", "average", "avg", "median", "total", "sum", "std", "stdev", "sd", "variance"),
        *LENGTHS,
    )
)
"""Columns of numbers that are not grades, including sums of grades."""

_NOT_GRADES_LAST = frozenset(
    (
        *("id", "idx", "index", "no", "number", "count", "tokens", "chars", "words", "length"),
        *("seconds", "secs", "ms", "latency", "duration", "time", "timestamp", "cost", "usd"),
        *("price", "difficulty", "seed", "year"),
    )
)
"""Last words of such columns, as in ``prompt_tokens`` and ``latency_ms``."""

_BLANK_WORDS = frozenset(("", "na", "n_a", "nan", "na_n", "none", "null"))


def grade_columns(
    header: Header, fields: Sequence[str], sample: Sequence[Sequence[str]]
) -> list[int]:
    """Return the grade columns by sample rows, without known fields.

    Columns of other numbers are excluded by name only, because judges may use any scale.
    """
    places = header.places((*fields, *_OTHER_FIELDS))
    texts = {
        place: [
            row[place].strip()
            for row in sample
            if place < len(row) and fold_name(row[place]) not in _BLANK_WORDS
        ]
        for place, name in enumerate(header.names)
        if place not in places and fold_name(name) and not _is_other_number(fold_name(name))
    }
    return [place for place, column in texts.items() if column and all(map(is_grade, column))]


def _is_other_number(name: str) -> bool:
    return name in _NOT_GRADES or ("_" in name and name.rpartition("_")[2] in _NOT_GRADES_LAST)


def has_criteria(header: Header) -> bool:
    """True if a column is named as a criterion."""
    return any(
        fold_name(name) in CRITERIA or name.casefold().startswith(CRITERION_PREFIX)
        for name in header.names
    )


def is_grade(text: str) -> bool:
    """True if a cell is a grade on some scale."""
    return read_grade(text) is not None


def long_rows(
    rows: Rows, form: str, columns: Mapping[str, str], stem: str, report: ProblemReport
) -> tuple[Rows, Mapping[str, str]]:
    """Return the rows of a long table, and its columns by field.

    Without a reviewer column the judge is named after the file; so are sessions, with a number for
    each question, or row.
    """
    numbered = iter(rows)
    first, names = next(numbered, (0, []))
    header = Header(names, columns, report.path)
    is_whole = "reviewer" in header and ("session" in header or "question" not in header)
    if form == "csv" and is_whole:
        return chain([(first, names)], numbered), columns
    if form == "csv":
        return _complete(header, (first, names), numbered, stem, report), columns
    sample = list(islice(numbered, SAMPLE))
    sample_rows = [row for _, row in sample]
    return _melt(_Form(form, header, stem), sample_rows, chain(sample, numbered), report), {}


Namer = Callable[[Sequence[str], int], str]
"""Row and its line → name."""

SAMPLE = 200
"""Number of rows used to detect the columns of grades."""


def _complete(
    header: Header,
    first: tuple[int, list[str]],
    rows: Iterator[tuple[int, list[str]]],
    stem: str,
    report: ProblemReport,
) -> Rows:
    header.require("candidate")
    session = _sessions(header, stem)
    added_columns = [name for name in ("session", "reviewer") if name not in header]
    if "reviewer" in added_columns:
        report.note(f"no reviewer column; {stem} is used as the reviewer")
    yield first[0], [*first[1], *added_columns]
    for line, row in rows:
        more = {"session": session(row, line), "reviewer": stem}
        yield line, [*row, *(more[name] for name in added_columns)]


def _sessions(header: Header, stem: str, *, rowwise: bool = False) -> Namer:
    if "session" in header:
        cell = header.cell("session")
        return lambda row, _: cell(row)
    place = header.place("id", "index") if rowwise else None
    if place is not None:
        return lambda row, _: row[place]
    if "question" in header:
        question, numbers = header.cell("question"), dict[str, int]()
        return lambda row, _: f"{stem}/{numbers.setdefault(question(row), len(numbers) + 1)}"
    return lambda _, line: f"{stem}/{line}" if rowwise else ""


@dataclass(frozen=True, slots=True)
class _Form:
    """A wide table: format, columns, and defaults for missing columns."""

    format: str
    header: Header
    stem: str

    @property
    def column_owner(self) -> str:
        return "judge" if self.format == "csv-judges" else "model"

    def find_grade_columns(self, sample: Sequence[Sequence[str]], path: str) -> list[int]:
        """Return its columns of grades."""
        fields = ("session", "candidate" if self.column_owner == "judge" else "reviewer")
        columns = grade_columns(self.header, fields, sample)
        if not columns:
            listing = _join_few(self.header.names)
            problem = (
                f"has no column of grades, one per {self.column_owner}; its columns are {listing}"
            )
            raise BallotFileError(path, problem)
        return columns

    def describe(self, grade_columns: Sequence[int]) -> str:
        """Describe how the table is read: columns and their meaning."""
        names = self.header.names
        used_places = {
            *grade_columns,
            *self.header.places(ALIASES),
            self.header.place("id", "index"),
        }
        skipped_columns = [
            name for place, name in enumerate(names) if name and place not in used_places
        ]
        columns = _join_few([names[place] for place in grade_columns])
        note = f"read as {self.format}, a column per {self.column_owner}: {columns}"
        if self.column_owner == "model" and "reviewer" not in self.header:
            note += f"; no reviewer column, so {self.stem} is used as the reviewer"
        return f"{note}; skipped columns: {_join_few(skipped_columns)}" if skipped_columns else note


def _melt(
    form: _Form,
    sample: Sequence[Sequence[str]],
    rows: Iterator[tuple[int, list[str]]],
    report: ProblemReport,
) -> Rows:
    header, per_judge = form.header, form.column_owner == "judge"
    if per_judge:
        header.require("candidate")
    graded = form.find_grade_columns(sample, report.path)
    report.note(form.describe(graded))
    session = _sessions(header, form.stem, rowwise=not per_judge)
    one = header.cell("candidate") if per_judge else _reviewer(header, form.stem)
    others = header.getters(_OTHER_FIELDS)
    length = header.place(*LENGTHS)
    if length is not None and per_judge:
        others.append((LENGTHS[0], itemgetter(length)))
    # A row without a judge is a question: a judge without a grade may not have been asked.
    has_reviewer = per_judge or "reviewer" in header
    names = ("candidate", "reviewer") if per_judge else ("reviewer", "candidate")
    yield 0, ["session", *names, "grade", *(field for field, _ in others)]
    for line, row in rows:
        shared = [cell(row) for _, cell in others]
        for place in graded:
            if has_reviewer or fold_name(row[place]) not in _BLANK_WORDS:
                cells = [session(row, line), one(row), header.names[place]]
                yield line, [*cells, row[place], *shared]


def _reviewer(header: Header, stem: str) -> Callable[[Sequence[str]], str]:
    return header.cell("reviewer") if "reviewer" in header else lambda _: stem


def _join_few(names: Sequence[str]) -> str:
    listing = ", ".join(names[:8])
    return listing if len(names) <= 8 else f"{listing} and {len(names) - 8:,} more"
