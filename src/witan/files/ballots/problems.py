"""Problems of a ballot file by line, and its grades' scale."""

import pickle
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import IO, Generic, TypeVar

from witan.core.ballot import Ballot, BallotTable, Unreadable, kind_of
from witan.core.scale import HOLISTIC, Scale, grade_on, is_empty, may_be_typing_error
from witan.core.scale_recognition import NATIVE_SCALE, GradeEvidence, Scales, put_on_scale
from witan.errors import BallotFileError, Remedy, UnclearScale


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A flaw of a ballot file; its line or row is skipped.

    Parameters
    ----------
    is_read
        True if the line is read anyway, as `problem` states.
    """

    path: str
    line: int
    field: str | None
    problem: str
    is_read: bool = False
    remedy: Remedy | str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"

    @property
    def sentence(self) -> str:
        """The sentence without the location."""
        way_on = str(self.remedy)
        return f"{self.flaw}{way_on and f'; {way_on}'}"

    @property
    def flaw(self) -> str:
        """The sentence without location and remedy."""
        return self.problem if self.field is None else f"field {self.field!r} {self.problem}"


class ProblemReport:
    """Reporter of problems to a callback; without one, raises the first.

    `reports_doubts`: also report doubts about lines that are read.
    `on_note`: called with a note on how the file is read, if its columns do not make that obvious.
    """

    def __init__(
        self,
        path: str,
        on_problem: Callable[[LineProblem], None] | None,
        *,
        reports_doubts: bool = False,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.on_problem, self.on_note = path, on_problem, on_note
        self.reports_doubts = reports_doubts and on_problem is not None
        self.n_problems = 0
        self.line = 0

    def __call__(self, line: int, flaw: Unreadable) -> None:
        """Report a flaw of `line`."""
        self.n_problems += 1
        problem = LineProblem(self.path, line, flaw.field, flaw.problem, flaw.is_read, flaw.remedy)
        if self.on_problem is None:
            raise BallotFileError(self.path, problem.flaw, line, flaw.remedy) from None
        self.on_problem(problem)

    def note(self, text: str) -> None:
        """Report how the file is read."""
        if self.on_note is not None:
            self.on_note(f"{self.path}: {text}")

    def doubt(self, line: int, flaw: Unreadable | None) -> None:
        """Report a doubt about a readable line, if requested."""
        self.line = line
        if self.reports_doubts and flaw is not None:
            self(line, flaw)


def doubt_of(ballot: Ballot) -> Unreadable | None:
    """Return the doubt about a ballot without ranking, grades or abstention."""
    if not (ballot.groups or ballot.grades or ballot.abstained or ballot.reason):
        problem = "is missing, as are grades and abstained; it counts as an abstention"
        return Unreadable("ranking", problem, is_read=True)
    return None


def off_scale(ballot: Ballot) -> Unreadable | None:
    """Return the doubt about unreadable grades, or grades outside the scale."""
    scale = Scale() if ballot.scale is None else ballot.scale
    unreadable, outside = [], []
    for candidate, cell in ballot.grades.items():
        grades = cell if isinstance(cell, Mapping) else {HOLISTIC: cell}
        for criterion, grade in grades.items():
            grade_value = grade_on(scale.of(criterion), grade)
            if grade_value is None and is_empty(grade):
                continue  # counting reports who has no grade
            if grade_value is None:
                reason = "which is not a grade" + " (a typing error?)" * may_be_typing_error(grade)
                unreadable.append((candidate, grade, reason, "dropped when counted"))
            elif grade_value[1]:
                reason_outside = f"outside the scale {scale.of(criterion)}"
                outside.append((candidate, grade, reason_outside, "counted as the nearer end"))
    if not (unreadable or outside):
        return None
    [(candidate, grade, reason, consequence), *others] = unreadable or outside
    more = f", and {len(others):,} more like it" if others else ""
    more += f", and {len(outside):,} outside the scale" if unreadable and outside else ""
    problem = f"has {kind_of(grade)} for {candidate!r}, {reason}{more}; {consequence}"
    return Unreadable("grades", problem, is_read=True)


class RepeatDetector:
    """Detector of a reviewer's repeated comparisons in one order; the last counts.

    Only in named sessions: comparisons without a session all count.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._keys, self._lines, self._results = array("q"), array("q"), array("b")

    def see(self, line: int, ballot: Ballot) -> None:
        """Add one comparison; one in unknown order is never a repeat."""
        order = sorted(ballot.positions or {}, key=(ballot.positions or {}).__getitem__)
        if len(order) != 2 or not ballot.session:
            return
        self._keys.append(hash((ballot.session, ballot.reviewer, *order)))
        self._lines.append(line)
        first_won = ballot.groups[0][0] == order[0] if len(ballot.groups) == 2 else None
        self._results.append(len(ballot.groups) if first_won is None else 2 + first_won)

    def report_repeats(self, report: ProblemReport) -> None:
        """Report the number of repeats at the end of the file."""
        if not self._keys:
            return
        # NumPy is slow to import, so only files with pairs do it.
        import numpy as np

        keys, values = np.array(self._keys), np.array(self._results)
        order = np.argsort(keys, kind="stable")
        repeats = keys[order][1:] == keys[order][:-1]
        if not repeats.any():
            return
        n_other = int((repeats & (values[order][1:] != values[order][:-1])).sum())
        first = int(np.array(self._lines)[order[1:][repeats]].min())
        n = int(repeats.sum())
        rows = (
            f"{n:,} rows in the file, {n_other:,} of them with another outcome; this is the first"
        )
        problem = f"compares a pair in the same order again ({rows}); the last row of each counts"
        report.doubt(first, Unreadable(self._field, problem, is_read=True))


Part = TypeVar("Part")

MAX_BUFFERED = 250_000
"""Maximum number of ballots buffered in memory until the scale is known."""


def scale_ballots(
    ballots: Iterable[Ballot],
    report: ProblemReport,
    scale: Scale | None = None,
    fallback: Scale | None = None,
    max_buffered: int = MAX_BUFFERED,
) -> Iterator[Ballot]:
    """Set the scale of ballots, reading all first if some declare none.

    `max_buffered`: maximum number of ballots in memory; more are written to disk.
    """
    parts = ((ballot, (ballot,)) for ballot in ballots)
    for _, (ballot,) in scale_parts(parts, report, scale, fallback, max_buffered):
        yield ballot


def scale_table(
    table: BallotTable, scale: Scale | None = None, fallback: Scale | None = None
) -> BallotTable | None:
    """Set a table's scale as `scale_ballots`; None if ballots need checks."""
    low, high = table.range()
    if scale is None and fallback is not None:
        return None
    scale_of_ballots = scale
    if scale_of_ballots is None:
        evidence = GradeEvidence()
        evidence.add_table(table)
        try:
            scales = evidence.scales()
        except UnclearScale:
            return None
        if scales.reviewer_scales or not scales.takes_all:
            return None
        scale_of_ballots = NATIVE_SCALE if scales.is_native else scales.shared_scale
    ends = scale_of_ballots.whole.low, scale_of_ballots.whole.high
    fits = min(ends) <= low and high <= max(ends)
    return table.put_on(scale_of_ballots) if fits and not scale_of_ballots.criteria else None


def scale_parts(
    parts: Iterable[tuple[Part, tuple[Ballot, ...]]],
    report: ProblemReport,
    scale: Scale | None = None,
    fallback: Scale | None = None,
    max_buffered: int = MAX_BUFFERED,
) -> Iterator[tuple[Part, tuple[Ballot, ...]]]:
    """Set the scale as `scale_ballots`, of ballots with attachments."""
    evidence, open_ended = GradeEvidence(), scale is None and fallback is None
    rubric_scale = None if fallback is None else Scales(fallback)
    with ExitStack() as stack:
        buffer = _Buffer[Part](stack, max_buffered)
        for part, ballots in parts:
            if buffer or (open_ended and any(b.grades and b.scale is None for b in ballots)):
                for ballot in ballots:
                    evidence.add(ballot)
                buffer.append(part, ballots, report.line)
            else:
                scaled_ballots = _apply_scales(ballots, (scale, rubric_scale), report.line, report)
                yield part, scaled_ballots
        recognised = _scales_in_file(evidence, report.path) if buffer else None
        for part, ballots, line in buffer:
            yield part, _apply_scales(ballots, (scale, recognised), line, report)


def _scales_in_file(evidence: GradeEvidence, path: str) -> Scales:
    try:
        return evidence.scales()
    except UnclearScale as error:
        problem = f"cannot be read: {error.problem}"
        raise BallotFileError(path, problem, remedy=error.remedy) from error


def _set_scale(ballot: Ballot, scale: Scale | None, default_scale: Scales | None) -> Ballot:
    if not ballot.grades:
        return ballot if ballot.scale is None else replace(ballot, scale=None)
    if scale is not None:
        return ballot.with_scale(scale)
    return ballot if default_scale is None else put_on_scale(ballot, default_scale)


def _apply_scales(
    ballots: tuple[Ballot, ...],
    scales: tuple[Scale | None, Scales | None],
    line: int,
    report: ProblemReport,
) -> tuple[Ballot, ...]:
    stated_scale, recognised = scales
    ballots_with_scale = tuple([_set_scale(ballot, *scales) for ballot in ballots])
    fits = stated_scale is None and recognised is not None and recognised.takes_all
    if report.reports_doubts:
        for ballot, original in zip(ballots_with_scale, ballots, strict=True):
            if not fits or original.scale is not None:
                report.doubt(line, off_scale(ballot))
    return ballots_with_scale


class _Buffer(Generic[Part]):
    """A buffer of ballots, attachments and lines, spooled to disk if large."""

    def __init__(self, stack: ExitStack, most: int) -> None:
        self._stack, self._most = stack, most
        self._file: IO[bytes] | None = None
        self._last_ballots: list[tuple[Part, tuple[Ballot, ...], int]] = []

    def __bool__(self) -> bool:
        return bool(self._last_ballots or self._file)

    def append(self, part: Part, ballots: tuple[Ballot, ...], line: int) -> None:
        self._last_ballots.append((part, ballots, line))
        if len(self._last_ballots) == self._most:
            if self._file is None:
                file = tempfile.TemporaryFile()  # noqa: SIM115 - the stack closes it
                self._file = self._stack.enter_context(file)
            pickle.dump(self._last_ballots, self._file, -1)
            self._last_ballots = []

    def __iter__(self) -> Iterator[tuple[Part, tuple[Ballot, ...], int]]:
        if self._file is not None:
            end = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < end:
                # They were pickled above, into a file without a name.
                yield from pickle.load(self._file)  # noqa: S301
        yield from self._last_ballots
