"""Long tables: one row per session, reviewer and candidate."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, by_rank, position, scale_record
from witan.errors import BallotFileError
from witan.files.ballots.cells import BALLOT_CELLS, Rows, number, read_cell
from witan.files.ballots.columns import CRITERIA, CRITERION_PREFIX, Header
from witan.files.ballots.doubts import doubt_of
from witan.files.ballots.problems import Report

__all__ = ["LONG_COLUMNS", "LongRows", "read_long"]

LONG_COLUMNS = (
    *("session", "reviewer", "candidate", "rank", "grade", "position", "author"),
    *BALLOT_CELLS,
)
"""The columns of a long table in the order in which they are written, before the criteria."""

_CONTRADICTED = ("abstained", "weight", "category", "kind", "candidates", "scale")
"""Of these a ballot has one; of the other optional columns the first that is given stands."""


class _Sheet:
    """What the rows of one ballot have said so far; rows may come in any order."""

    __slots__ = ("given", "line", "said")

    def __init__(self, line: int) -> None:
        self.line = line
        self.given: dict[str, tuple[float | None, Any, int | None, str | None]] = {}
        self.said: dict[str, Any] | None = None

    def ballot(self, session: str, reviewer: str) -> Ballot:
        """The ballot of all rows: of a candidate its rank, grade, position and author."""
        ranks = [(c, row[0]) for c, row in self.given.items() if row[0] is not None]
        places = {c: row[2] for c, row in self.given.items() if row[2] is not None}
        authors = {c: row[3] for c, row in self.given.items() if row[3] is not None}
        return Ballot(
            reviewer=reviewer,
            groups=by_rank(ranks) if ranks else (),
            grades={c: row[1] for c, row in self.given.items() if row[1] is not None},
            session=session,
            positions=places or None,
            authors=authors or None,
            **(self.said or {}),
        )


def read_long(rows: Rows, columns: Mapping[str, str], report: Report) -> Iterator[Ballot]:
    """Gather the rows of each ballot, wherever they stand, then yield the ballots.

    A candidate that stands twice on one ballot counts as its last row says; the file is told once.
    """
    numbered = iter(rows)
    _, names = next(numbered, (0, []))
    header = Header(names, columns, report.path)
    header.require("reviewer", "candidate")
    gatherer = _Gatherer(header)
    for line, row in numbered:
        try:
            gatherer.add(line, row)
        except Unreadable as flaw:
            report(line, flaw)
    if gatherer.repeated:
        report(gatherer.first_repeated, _repetition(gatherer.repeated))
    sheets = gatherer.sheets
    for key in list(sheets):  # what has been yielded need not be held any longer
        sheet = sheets.pop(key)
        ballot = sheet.ballot(*key)
        if report.doubting:
            report.doubt(sheet.line, doubt_of(ballot))
        yield ballot


def _repetition(rows: int) -> Unreadable:
    return Unreadable(
        "candidate",
        f"stands on one ballot more than once ({rows:,} rows in the file, this the first); the "
        "last row of each counts; where a further column tells the rows apart, join it to the "
        "reviewer, such as --column reviewer=judge+version",
        read=True,
    )


class _Gatherer:
    """Reads rows into sheets, by session and reviewer."""

    def __init__(self, header: Header) -> None:
        self.sheets: dict[tuple[str, str], _Sheet] = {}
        self.repeated = self.first_repeated = 0
        self._session, self._reviewer = header.cell("session"), header.cell("reviewer")
        self._candidate = header.cell("candidate")
        self._rank = header.cell("rank") if "rank" in header else None
        self._grade = header.cell("grade") if "grade" in header else None
        self._criteria, self._guessed = header.criteria()
        self._position = header.cell("position") if "position" in header else None
        self._author = header.cell("author") if "author" in header else None
        self._optional = header.given(BALLOT_CELLS)

    def add(self, line: int, row: Sequence[str]) -> None:
        """Add one row; nothing of a row that cannot be read is kept."""
        reviewer = self._reviewer(row).strip()
        if not reviewer:
            raise Unreadable("reviewer", "is empty; expected who cast the ballot")
        key = (intern(self._session(row).strip()), intern(reviewer))
        candidate = intern(self._candidate(row).strip())
        said = self._said(row) if self._optional else {}
        if not candidate and "abstained" not in said:
            raise Unreadable("candidate", "is empty; expected the name of a candidate")
        rank = _rank(self._rank(row)) if self._rank else None
        grade = self._graded(row)
        place = _place(candidate, self._position(row)) if self._position else None
        sheet = self.sheets.get(key)
        if sheet is None:
            sheet = self.sheets[key] = _Sheet(line)
        if said:
            _agree(sheet, said)
        if not candidate:
            return
        if candidate in sheet.given:
            self.repeated += 1
            self.first_repeated = self.first_repeated or line
        author = self._author(row).strip() or None if self._author else None
        sheet.given[candidate] = (rank, grade, place, author)

    def _said(self, row: Sequence[str]) -> dict[str, Any]:
        return {
            field: read_cell(field, text)
            for field, cell in self._optional
            if (text := cell(row)) and not text.isspace()
        }

    def _graded(self, row: Sequence[str]) -> Any:
        """A holistic grade, or criteria with the holistic grade as `overall`, or None."""
        overall = _grade(self._grade(row)) if self._grade else None
        if not self._criteria:
            return overall if overall is not None or not self._grade else self._empty(row)
        given: dict[str, Any] = {}
        for criterion, where in self._criteria:
            text = row[where].strip()
            grade = number(text) if self._guessed else _grade(text)
            if grade is not None:
                given[criterion] = grade
        if given and overall is not None:
            given.setdefault("overall", overall)
        return given or (overall if overall is not None else self._empty(row))

    def _empty(self, row: Sequence[str]) -> str | None:
        """An empty grade, unless the row says something else of its candidate."""
        said = (self._rank, self._position, self._author)
        return None if any(cell and cell(row).strip() for cell in said) else ""


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
    """A number where it is one, else the text, for whoever counts to read or to drop aloud."""
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
        raise Unreadable("position", flaw.what) from None


def _agree(sheet: _Sheet, said: Mapping[str, Any]) -> None:
    earlier = sheet.said = sheet.said or {}
    for field, value in said.items():
        if earlier.setdefault(field, value) != value and field in _CONTRADICTED:
            raise Unreadable(
                field,
                f"is {value!r} here and {earlier[field]!r} on an earlier row of this ballot "
                f"(it begins on line {sheet.line}); expected one value per ballot",
            )


class LongRows:
    """Turns ballots into rows of a long table, and refuses what such a table cannot hold."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.columns: dict[str, None] = dict.fromkeys(("session", "reviewer", "candidate"))
        self._seen: set[tuple[str, str]] = set()

    def rows(self, ballot: Ballot) -> list[dict[str, Any]]:
        """The rows of one ballot."""
        self._check(ballot)
        shared = {"session": ballot.session, "reviewer": ballot.reviewer, **told(ballot)}
        ranks = _ranks(ballot)
        names = dict.fromkeys([*ranks, *ballot.grades])
        names.update(dict.fromkeys([*(ballot.positions or ()), *(ballot.authors or ())]))
        rows = [{**shared, "candidate": c, **self._of(ballot, c, ranks)} for c in names]
        if not rows:
            rows = [{**shared, "candidate": "", "abstained": str(ballot.abstained).lower()}]
        for row in rows:
            self.columns.update(dict.fromkeys(row))
        return rows

    def ordered(self) -> list[str]:
        """The columns that some row has, criteria last."""
        criteria = [column for column in self.columns if column not in LONG_COLUMNS]
        return [column for column in LONG_COLUMNS if column in self.columns] + criteria

    def _of(self, ballot: Ballot, candidate: str, ranks: Mapping[str, int]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        if candidate in ranks:
            row["rank"] = ranks[candidate]
        grade = ballot.grades.get(candidate)
        if isinstance(grade, Mapping):
            row |= {_column(criterion): _cell(one) for criterion, one in grade.items()}
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
            problem = "compares a pair; write csv-pairs, jsonl or parquet"
        elif key in self._seen:
            problem = f"is the second one in session {ballot.session!r}; write jsonl"
        elif len(_ranks(ballot)) < sum(map(len, ballot.groups)):
            problem = "ranks a candidate more than once; write jsonl"
        if problem:
            raise BallotFileError(
                self.path, f"a long table cannot hold the ballot of {ballot.reviewer}: it {problem}"
            )
        self._seen.add(key)


def _ranks(ballot: Ballot) -> dict[str, int]:
    ranks: dict[str, int] = {}
    placed = 0
    for group in ballot.groups:
        ranks |= dict.fromkeys(group, placed + 1)
        placed += len(group)
    return ranks


def _column(criterion: str) -> str:
    return criterion if criterion in CRITERIA else CRITERION_PREFIX + criterion


def _cell(grade: Any) -> Any:
    return json.dumps(grade) if isinstance(grade, bool) else grade


_TOLD: Mapping[str, Callable[[Any], Any]] = {
    "abstained": lambda value: "true" if value else None,
    "candidates": lambda value: json.dumps(value, ensure_ascii=False),
    "weight": lambda value: None if value == 1.0 else repr(value),
    "at": lambda value: value.isoformat(),
    "kind": lambda value: None if value == "model" else value,
    "scale": lambda value: value if isinstance(value, str) else json.dumps(value),
}


def told(ballot: Ballot) -> dict[str, Any]:
    """The optional cells that speak of a whole ballot, without those at their default."""
    cells = {}
    for field in BALLOT_CELLS:
        value = scale_record(ballot) if field == "scale" else getattr(ballot, field)
        if value is not None:
            cells[field] = _TOLD.get(field, lambda same: same)(value)
    return {field: cell for field, cell in cells.items() if cell is not None}
