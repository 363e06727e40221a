"""Rows of a batch: read from a file, and their results."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import chain
from math import isnan
from typing import Any, Literal

from witan.core.display import FrameSource
from witan.core.estimation import infer_share, number_questions
from witan.core.outcome import Interval
from witan.core.scale import FAILED, PASSED
from witan.core.verdict import TIE, MeanGrade, Verdict
from witan.deliberation.costs import Spending
from witan.deliberation.events import (
    AnswerDone,
    AnswerFailed,
    BallotAbstained,
    BallotCast,
    Event,
)
from witan.deliberation.ports import REFERENCE
from witan.deliberation.session import Session
from witan.errors import BallotFileError, InvalidParameter
from witan.service.batch_votes import PersonVote, name_questions, read_votes
from witan.service.text import list_text

Status = Literal["complete", "degraded", "failed", "error"]

QUESTION, TEXT, ID, CATEGORY = "question", "text", "id", "category"

RIGHT = "reference"

EXPECTED = "expected"

VOTES = "votes"

STATUSES = ("complete", "degraded", "failed", "error")

DECISIONS = ("passed", "failed", "too close to call")

COLUMNS = (QUESTION, TEXT, "texts", RIGHT, EXPECTED, CATEGORY, ID, VOTES)
"""Fields of a row, and the default names of their columns."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One row: a question, or texts to be judged.

    Parameters
    ----------
    number, id
        Number of its line or row, from 1, and its id in the file, if any.
    question
        The question; None: the texts answer none.
    texts
        Text by name; empty: the council answers the question.
    reference
        A reference answer to judge by.
    sources
        Files that come with the question, by name.
    parent
        The session to compare this row's with, or None.
    expected
        The text expected to lead, or ``tie``; of a single text, ``passed`` or ``failed``. None: the
        batch's.
    votes
        Person to vote: a grade, whether the text passes, or the winner. No model sees them.
    """

    number: int
    id: str | None = None
    question: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    reference: str | None = None
    category: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    parent: str | None = None
    expected: str | None = None
    votes: Mapping[str, PersonVote] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, str]:
        """A jury's material beside the question: files, and the right answer."""
        right = {} if self.reference is None else {REFERENCE: self.reference}
        return {**self.sources, **right}


class HasSpending:
    """The cost of sessions, known or not, in fields of a result."""

    __slots__ = ()

    cost_usd: float | None
    known_usd: float
    most_usd: float | None

    @property
    def spending(self) -> Spending:
        """The cost of its sessions."""
        return Spending(self.cost_usd, self.known_usd, self.most_usd)


@dataclass(frozen=True, slots=True)
class RowResult(HasSpending):
    """The result of one row.

    Parameters
    ----------
    row, id, session
        Its number and name in the file, and the name of its session.
    status
        The session's status; ``failed`` also if it produced nothing and is left open; ``error``: no
        session.
    decision
        The decision on its texts; None: no texts, or nothing to pass.
    text
        The final answer, or None.
    leaders
        Seats, or texts, on the first rank, however close; `verdict` has the one that leads clearly.
    verdict
        The verdict on its texts.
    missing
        What the session lacks.
    cost_usd
        Cost of the session; None: unknown.
    error
        Why there is no session, or None.
    simulated
        Whether a seat plays a script.
    known_usd, most_usd
        Known cost; and its highest possible cost, None: a price is unknown.
    expected
        The expectation of the row, or else of the batch; None: there is none.
    """

    row: int
    id: str | None
    session: str
    status: Status
    decision: str | None = None
    text: str | None = None
    leaders: tuple[str, ...] = ()
    verdict: Verdict | None = None
    missing: tuple[str, ...] = ()
    cost_usd: float | None = None
    error: str | None = None
    simulated: bool = False
    known_usd: float = 0.0
    most_usd: float | None = 0.0
    expected: str | None = None


class RowResults(list[RowResult], FrameSource):
    """The results of rows in the order in which they end: ``batch.run(results.append)``."""

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield a row of a data frame for each result."""
        for each in self:
            own = {name: getattr(each, name) for name in RowResult.__slots__ if name != "verdict"}
            yield own | {
                "probability": None if each.verdict is None else each.verdict.probability,
                "grade": _deciding_grade(each.verdict) or MeanGrade,
            }


def _deciding_grade(verdict: Verdict | None) -> MeanGrade | None:
    """Return the overall grade of the judged text, else the best's."""
    if verdict is None:
        return None
    best, *_ = (text for text in verdict.texts if verdict.text in (None, text.text))
    return best.overall


def read_batch_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    path: str,
    columns: Mapping[str, str],
    texts: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> list[BatchRow]:
    """Read tasks from the rows of a file.

    Parameters
    ----------
    columns
        Field of a row to its column, where the names differ.
    texts
        Columns that each hold a text; their headings are the texts' names.
    say
        Called with a sentence about columns that are not used.

    Raises
    ------
    BallotFileError
        If a row has neither a question nor a text, or only some rows have texts; it names the line.
    """
    others = {*columns.values(), *texts}  # columns that have another meaning
    names = [name for name in COLUMNS if not (texts and name in (TEXT, "texts"))]
    of = {n: columns.get(n, n) for n in names if n in columns or n not in others}
    tasks: list[BatchRow] = []
    seen: dict[str, None] = {}
    for line, row in rows:
        seen |= dict.fromkeys(row)
        judged = _texts(row, of, texts, path, line)
        question = _text(row, of.get(QUESTION), path, line)
        if question is None and not judged:
            fields = [*filter(None, (of.get(QUESTION), *(texts or (of.get(TEXT),))))]
            if empty := [name for name in (*fields, of.get("texts")) if name in seen]:
                raise BallotFileError(path, f"has nothing in {' or '.join(empty)}", line)
            problem = f"has no {' or '.join(fields)}, but {list_text([*row]) or 'no column'}"
            remedy = f"name its columns: --column {QUESTION}=NAME; JSON, CSV and Parquet are read"
            raise BallotFileError(path, problem, line, remedy)
        if tasks and bool(tasks[0].texts) != bool(judged):
            has, lacks = ("a text", "none") if judged else ("no text", "one")
            problem = f"has {has}, but row {tasks[0].number} has {lacks}"
            remedy = "write questions and texts to be judged in files of their own"
            raise BallotFileError(path, problem, line, remedy)
        more = {key: _text(row, of.get(key), path, line) for key in (ID, CATEGORY, RIGHT)}
        task = BatchRow(line, more[ID], question, judged, more[RIGHT], more[CATEGORY])
        if judged and EXPECTED in of:
            read_expected = _text if len(judged) > 1 else _expected_decision
            task = replace(task, expected=read_expected(row, of[EXPECTED], path, line))
        if VOTES in of and not _is_empty(people := _read_map(row.get(of[VOTES]))):
            votes = read_votes(people, judged, (path, of[VOTES], line))
            task = replace(task, votes=votes)
        tasks.append(task)
    missing = [name for name in (*columns.values(), *texts) if name not in seen]
    if tasks and missing:
        remedy = f"it has {list_text([*seen])}"
        raise BallotFileError(path, f"has no column {missing[0]!r}", remedy=remedy)
    if tasks and not tasks[0].texts:  # nothing is expected of questions
        of.pop(EXPECTED, None)
    unused = [name for name in seen if name and name not in {*of.values(), *texts}]
    if unused:
        say(f"unused columns: {list_text(unused)}")
    return tasks


def _texts(
    row: Mapping[str, Any], of: Mapping[str, str], texts: Sequence[str], path: str, line: int
) -> dict[str, str]:
    """Read a row's texts; an empty cell is an empty text.

    So is a missing field of `texts` in a row that has another of them.
    """
    if texts:
        is_judged = not row.keys().isdisjoint(texts)
        return {name: _text(row, name, path, line) or "" for name in texts if is_judged}
    several = _read_map(row.get(of["texts"])) if "texts" in of else None
    if isinstance(several, list):
        several = {f"text {number}": text for number, text in enumerate(several, start=1)}
    if isinstance(several, Mapping):
        if None in several.values():
            raise BallotFileError(path, f"field {of['texts']!r} has an empty text", line)
        return {str(name): _text(several, name, path, line) or "" for name in several}
    if not _is_empty(several):
        problem = f"field {of['texts']!r} must be a list of texts, or texts by name"
        raise BallotFileError(path, problem, line)
    return {TEXT: _text(row, of[TEXT], path, line) or ""} if of.get(TEXT) in row else {}


def _text(row: Mapping[str, Any], column: str | None, path: str, line: int) -> str | None:
    value = None if column is None else row.get(column)
    if _is_empty(value):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal | date) and not isinstance(value, bool):
        return str(value)
    raise BallotFileError(path, f"field {column!r} must be text", line)


def _read_map(cell: object) -> Any:
    """Return a map column of Parquet, which is a list of pairs, as a mapping."""
    is_map = isinstance(cell, list) and cell and all(isinstance(each, tuple) for each in cell)
    return dict(cell) if is_map else cell  # type: ignore[call-overload]


def _expected_decision(
    row: Mapping[str, Any], column: str, path: str, line: int
) -> Literal["passed", "failed"] | None:
    """Read the decision that is expected on a single text."""
    cell = row.get(column)
    if _is_empty(cell):
        return None
    word = str(cell).strip().casefold()
    if word in PASSED:
        return "passed"
    if word in FAILED:
        return "failed"
    problem = f"field {column!r} of a single text must be passed or failed"
    remedy = f"for a right answer, write --column {RIGHT}={column}"
    raise BallotFileError(path, problem, line, remedy)


def _is_empty(cell: object) -> bool:
    """True for None, empty text, and NaN, data frames' empty cell."""
    if isinstance(cell, float):
        return isnan(cell)
    return cell is None or (isinstance(cell, str) and not cell)


def result_of(task: BatchRow, session: Session) -> RowResult:
    """Reduce a session to the result of its row."""
    judging, spending = session.opening.judging, Spending.of(session)
    is_open = session.status in ("interrupted", "running")
    verdict = None if is_open else session.verdict
    status: Status = "failed" if is_open else session.status  # type: ignore[assignment]
    return RowResult(
        task.number,
        task.id,
        session.id,
        status,
        None if verdict is None else verdict.decision,
        session.text,
        () if is_open or session.outcome is None else session.outcome.leaders,
        verdict,
        (*session.missing, *(_reasons(session) if status == "failed" else ())),
        spending.cost_usd,
        simulated=session.is_simulated,
        known_usd=spending.known_usd,
        most_usd=spending.most_usd,
        expected=task.expected or (None if judging is None else judging.expected),
    )


def _reasons(session: Session) -> Iterator[str]:
    """Explain why seats of an open session have no result.

    In a closed session, `missing` has them.
    """
    reasons: dict[tuple[type[Event], str], str] = {}
    for event in session.events if session.status == "interrupted" else ():
        match event:
            case AnswerFailed():
                reasons[AnswerDone, event.seat] = f"{event.seat} did not answer: {event.reason}"
            case BallotAbstained(awaited=True):
                reasons[BallotCast, event.seat] = f"{event.seat} cast no ballot: {event.reason}"
            case AnswerDone() | BallotCast():  # when it was resumed
                reasons.pop((type(event), event.seat), None)
    yield from reasons.values()


def count_missing(results: Iterable[RowResult]) -> dict[str, int]:
    """Count rows by missing part or error, most frequent first."""
    reasons = (
        dict.fromkeys(
            reason.replace(f"the session {each.session} ", "its session ")
            for reason in (*each.missing, *filter(None, [each.error]))
        )
        for each in results
    )
    return dict(Counter(chain.from_iterable(reasons)).most_common())


def count_in_order(values: Iterable[str | None], order: Sequence[str]) -> dict[str, int]:
    """Count values, in this order."""
    counts = Counter(values)
    return {value: counts[value] for value in order if counts[value]}


def check_expectations(tasks: Iterable[BatchRow], pass_mark: float | None) -> None:
    """Refuse the expected decision on a single text without a pass mark."""
    for task in tasks:
        if len(task.texts) == 1 and task.expected is not None and pass_mark is None:
            expected = f"a grade from 1 to 10, as row {task.number} has an expected decision"
            raise InvalidParameter("the pass mark", None, expected)


def count_expectations(
    tasks: Iterable[BatchRow], results: Iterable[RowResult]
) -> dict[str, dict[str, int]]:
    """Count decisions by the expected decision on a single text, or tie of several."""
    expectations: dict[int, Collection[str]] = {
        task.number: ("passed", "failed") if len(task.texts) == 1 else {TIE} - task.texts.keys()
        for task in tasks
    }
    pairs = Counter(
        (each.expected, each.decision)
        for each in results
        if each.decision is not None and each.expected in expectations[each.row]
    )
    return {
        expected: {decision: pairs[expected, decision] for decision in DECISIONS}
        for expected in ("passed", "failed", TIE)
        if any(expected == each for each, _ in pairs)
    }


@dataclass(frozen=True, slots=True)
class PassingRows:
    """The passing rows among those decided that could also fail, with their share.

    Parameters
    ----------
    passed, rows, questions
        The rows that passed, all of these rows, and their questions.
    interval
        Of the share.
    """

    passed: int
    rows: int
    questions: int
    interval: Interval


def infer_passes(
    tasks: Sequence[BatchRow],
    results: Iterable[RowResult],
    level: float,
    pass_mark: float | None = None,
) -> PassingRows | None:
    """Infer the share of passing rows, clustered by question; None: no row is decided.

    An expected tie can fail but not pass, and several texts without a pass mark or an expected one
    can pass but fail only at the safety gate; their rows are left out.
    """
    questions = dict(zip([task.number for task in tasks], name_questions(tasks), strict=True))
    ties = {task.number for task in tasks if TIE not in task.texts}
    decided = [
        each
        for each in results
        if each.decision in ("passed", "failed")
        and not (each.expected == TIE and each.row in ties)
        and (pass_mark is not None or each.expected is not None)
    ]
    decided.sort(key=lambda result: result.row)  # rows end in any order
    passed = [each.decision == "passed" for each in decided]
    clusters = [questions[each.row] for each in decided]
    interval = infer_share(passed, clusters, level)
    if interval is None:
        return None
    n_questions = len({*number_questions(clusters).tolist()})
    return PassingRows(sum(passed), len(passed), n_questions, interval)
