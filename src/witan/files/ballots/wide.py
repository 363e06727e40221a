"""Tables of grades with a column per judge, or per model: found, and turned into long ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter

from witan.core.scale import read_grade
from witan.errors import BallotFileError
from witan.files.ballots.cells import Rows
from witan.files.ballots.columns import (
    ALIASES,
    CRITERIA,
    CRITERION_PREFIX,
    LENGTHS,
    Header,
    folded,
)
from witan.files.ballots.problems import Report

__all__ = ["LONG_FORMS", "SAMPLE", "grade_columns", "has_criteria", "is_grade", "long_rows"]

LONG_FORMS = ("csv", "csv-judges", "csv-models")
"""Formats that are read as a long table."""

_BESIDE = ("author", "category", "at", "kind", "question", "notes", "weight", "position")
"""Fields of a wide table that hold for every grade in a row."""

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
"""Columns of numbers that are no grades, sums of the others among them."""

_NOT_GRADES_LAST = frozenset(
    (
        *("id", "idx", "index", "no", "number", "count", "tokens", "chars", "words", "length"),
        *("seconds", "secs", "ms", "latency", "duration", "time", "timestamp", "cost", "usd"),
        *("price", "difficulty", "seed", "year"),
    )
)
"""Last words of the names of such columns, as in ``prompt_tokens`` and ``latency_ms``."""

_NOTHING = frozenset(("", "na", "n_a", "nan", "na_n", "none", "null"))


def grade_columns(
    header: Header, fields: Sequence[str], sample: Sequence[Sequence[str]]
) -> list[int]:
    """Columns that hold grades in a sample of rows, apart from those of these fields.

    Only its name tells a column of other numbers: judges may grade on scales of their own.
    """
    taken = header.places((*fields, *_BESIDE))
    cells = {
        place: [row[place] for row in sample if place < len(row)]
        for place, name in enumerate(header.names)
        if place not in taken and folded(name) and not _is_beside(folded(name))
    }
    return [place for place, held in cells.items() if _holds_grades(held)]


def _is_beside(name: str) -> bool:
    """Recognise a column whose numbers are no grades by its name."""
    return name in _NOT_GRADES or ("_" in name and name.rpartition("_")[2] in _NOT_GRADES_LAST)


def has_criteria(header: Header) -> bool:
    """Whether a column is that of a criterion by its name."""
    return any(
        folded(name) in CRITERIA or name.casefold().startswith(CRITERION_PREFIX)
        for name in header.names
    )


def _holds_grades(cells: Sequence[str]) -> bool:
    said = [cell.strip() for cell in cells if folded(cell) not in _NOTHING]
    return bool(said) and all(map(is_grade, said))


def is_grade(text: str) -> bool:
    """Whether a cell reads as a grade on some scale."""
    return read_grade(text) is not None


def long_rows(
    rows: Rows, form: str, columns: Mapping[str, str], stem: str, report: Report
) -> tuple[Rows, Mapping[str, str]]:
    """The rows of a long table, and which of its columns hold a field.

    A judge that no column names is called like the file; so are sessions, with a number for each
    question, or row.
    """
    numbered = iter(rows)
    first, names = next(numbered, (0, []))
    header = Header(names, columns, report.path)
    if form == "csv" and _is_whole(header):
        return chain([(first, names)], numbered), columns
    if form == "csv":
        return _completed(header, (first, names), numbered, stem, report), columns
    sample, numbered = _sampled(numbered)
    return _melted(_Form(form, header, stem), sample, numbered, report), {}


def _is_whole(header: Header) -> bool:
    return "reviewer" in header and ("session" in header or "question" not in header)


def _sampled(
    rows: Iterator[tuple[int, list[str]]],
) -> tuple[list[list[str]], Iterator[tuple[int, list[str]]]]:
    held = list(islice(rows, SAMPLE))
    return [row for _, row in held], chain(held, rows)


Namer = Callable[[Sequence[str], int], str]
"""Gives a row of a line a name."""

SAMPLE = 200
"""Rows that tell which columns hold grades."""


def _completed(
    header: Header,
    first: tuple[int, list[str]],
    rows: Iterator[tuple[int, list[str]]],
    stem: str,
    report: Report,
) -> Rows:
    """A long table with the columns of session and reviewer that it lacks."""
    header.require("candidate")
    session = _sessions(header, stem)
    added = [name for name in ("session", "reviewer") if name not in header]
    if "reviewer" in added:
        report.note(f"no column names who judged; {stem} stands for it")
    yield first[0], [*first[1], *added]
    for line, row in rows:
        more = {"session": session(row, line), "reviewer": stem}
        yield line, [*row, *(more[name] for name in added)]


def _sessions(header: Header, stem: str, *, rowwise: bool = False) -> Namer:
    """What names the session of a row."""
    if "session" in header:
        cell = header.cell("session")
        return lambda row, _: cell(row)
    place = header.place("id", "index") if rowwise else None
    if place is not None:
        return lambda row, _: row[place]
    if "question" in header:
        asked, numbers = header.cell("question"), dict[str, int]()
        return lambda row, _: f"{stem}/{numbers.setdefault(asked(row), len(numbers) + 1)}"
    return lambda _, line: f"{stem}/{line}" if rowwise else ""


@dataclass(frozen=True, slots=True)
class _Form:
    """A wide table: its format, its columns, and what stands for those that it lacks."""

    format: str
    header: Header
    stem: str

    @property
    def what(self) -> str:
        """What a column of grades belongs to."""
        return "judge" if self.format == "csv-judges" else "model"

    def graded(self, sample: Sequence[Sequence[str]], path: str) -> list[int]:
        """Its columns of grades."""
        fields = ("session", "candidate" if self.what == "judge" else "reviewer")
        found = grade_columns(self.header, fields, sample)
        if not found:
            shown = _listed(self.header.names)
            problem = f"has no column of grades, one per {self.what}; its columns are {shown}"
            raise BallotFileError(path, problem)
        return found

    def told(self, graded: Sequence[int]) -> str:
        """How the table is read: which columns are taken for what."""
        names = self.header.names
        used = {*graded, *self.header.places(ALIASES), self.header.place("id", "index")}
        over = [name for place, name in enumerate(names) if name and place not in used]
        columns = _listed([names[place] for place in graded])
        said = f"read as {self.format}, a column per {self.what}: {columns}"
        if self.what == "model" and "reviewer" not in self.header:
            said += f"; no column names who judged, and {self.stem} stands for it"
        return f"{said}; passed over: {_listed(over)}" if over else said


def _melted(
    form: _Form,
    sample: Sequence[Sequence[str]],
    rows: Iterator[tuple[int, list[str]]],
    report: Report,
) -> Rows:
    """A long table with a row for each grade of a wide one."""
    header, per_judge = form.header, form.what == "judge"
    if per_judge:
        header.require("candidate")
    graded = form.graded(sample, report.path)
    report.note(form.told(graded))
    session = _sessions(header, form.stem, rowwise=not per_judge)
    one = header.cell("candidate") if per_judge else _reviewer(header, form.stem)
    others = header.given(_BESIDE)
    length = header.place(*LENGTHS)
    if length is not None and per_judge:
        others.append((LENGTHS[0], itemgetter(length)))
    # A row without a judge is a question: who has no grade there may not have been asked.
    judged = per_judge or "reviewer" in header
    names = ("candidate", "reviewer") if per_judge else ("reviewer", "candidate")
    yield 0, ["session", *names, "grade", *(field for field, _ in others)]
    for line, row in rows:
        shared = [cell(row) for _, cell in others]
        for place in graded:
            if judged or folded(row[place]) not in _NOTHING:
                named = [session(row, line), one(row), header.names[place]]
                yield line, [*named, row[place], *shared]


def _reviewer(header: Header, stem: str) -> Callable[[Sequence[str]], str]:
    return header.cell("reviewer") if "reviewer" in header else lambda _: stem


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8:,} more"
