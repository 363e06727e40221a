"""Problems of a ballot file, line by line, and the scale of its grades."""

import pickle
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import IO, Generic, TypeVar

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, kind_of
from witan.core.ballot_table import BallotTable
from witan.core.scale import HOLISTIC, Scale, grade_on, is_empty, may_be_typing_error
from witan.core.scale_recognition import NATIVE_SCALE, GradeEvidence, Scales, put_on_scale
from witan.errors import BallotFileError, Remedy, UnclearScale


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A flaw of a ballot file; its line or row is skipped.

    Parameters
    ----------
    is_read
        The line counts all the same, as `problem` says.
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
        """The sentence without its place."""
        way_on = str(self.remedy)
        return f"{self.flaw}{way_on and f'; {way_on}'}"

    @property
    def flaw(self) -> str:
        """The sentence without place and remedy."""
        return self.problem if self.field is None else f"field {self.field!r} {self.problem}"


class ProblemReport:
    """Hands problems on, or raises the first where nobody asked for them.

    Parameters
    ----------
    reports_doubts
        Tell as well what is odd about lines that are read.
    on_note
        Is told how the file is read, where that is not plain from its columns.
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
        """Note how the file is read, unless obvious from its columns."""
        if self.on_note is not None:
            self.on_note(f"{self.path}: {text}")

    def doubt(self, line: int, flaw: Unreadable | None) -> None:
        """Report an oddity of a readable line, if wanted."""
        self.line = line
        if self.reports_doubts and flaw is not None:
            self(line, flaw)


def doubt_of(ballot: Ballot) -> Unreadable | None:
    """Describe a ballot without anything countable."""
    if not (ballot.groups or ballot.grades or ballot.abstained or ballot.reason):
        what = "is missing, as are grades and abstained; it counts as an abstention"
        return Unreadable("ranking", what, is_read=True)
    return None


def off_scale(ballot: Ballot) -> Unreadable | None:
    """Unreadable grades, and those outside the ballot's scale."""
    scale = Scale() if ballot.scale is None else ballot.scale
    none, outside = [], []
    for candidate, cell in ballot.grades.items():
        grades = cell if isinstance(cell, Mapping) else {HOLISTIC: cell}
        for criterion, grade in grades.items():
            read = grade_on(scale.of(criterion), grade)
            if read is None and is_empty(grade):
                continue  # counting says who has no grade
            if read is None:
                why = "which is no grade" + " (a typing error?)" * may_be_typing_error(grade)
                none.append((candidate, grade, why, "dropped when counted"))
            elif read[1]:
                where = f"outside the scale {scale.of(criterion)}"
                outside.append((candidate, grade, where, "its nearer end counts"))
    if not (none or outside):
        return None
    [(candidate, grade, why, fate), *others] = none or outside
    more = f", and {len(others):,} more like it" if others else ""
    more += f", and {len(outside):,} outside the scale" if none and outside else ""
    what = f"has {kind_of(grade)} for {candidate!r}, {why}{more}; {fate}"
    return Unreadable("grades", what, is_read=True)


class RepeatDetector:
    """A reviewer's repeated comparisons in one order; the last counts.

    Only in a session that has a name: comparisons without one all count.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._keys, self._lines, self._results = array("q"), array("q"), array("b")

    def see(self, line: int, ballot: Ballot) -> None:
        """Note one comparison; an unknown order is never a repeat."""
        order = sorted(ballot.positions or {}, key=(ballot.positions or {}).__getitem__)
        if len(order) != 2 or not ballot.session:
            return
        self._keys.append(hash((ballot.session, ballot.reviewer, *order)))
        self._lines.append(line)
        won = ballot.groups[0][0] == order[0] if len(ballot.groups) == 2 else None
        self._results.append(len(ballot.groups) if won is None else 2 + won)

    def tell(self, report: ProblemReport) -> None:
        """Say at the end of the file how many there were."""
        if not self._keys:
            return
        # NumPy is heavy: only those who have pairs doubted wait for it.
        import numpy as np

        keys, values = np.array(self._keys), np.array(self._results)
        order = np.argsort(keys, kind="stable")
        repeats = keys[order][1:] == keys[order][:-1]
        if not repeats.any():
            return
        other = int((repeats & (values[order][1:] != values[order][:-1])).sum())
        first = int(np.array(self._lines)[order[1:][repeats]].min())
        n = int(repeats.sum())
        rows = f"{n:,} rows in the file, {other:,} of them with another verdict, this the first"
        what = f"judges a pair in the same order again ({rows}); the last row of each counts"
        report.doubt(first, Unreadable(self._field, what, is_read=True))


Part = TypeVar("Part")

MOST_HELD = 250_000
"""Ballots held in memory until the scale of all is known; more of them are laid aside on disk."""


def scale_ballots(
    ballots: Iterable[Ballot],
    report: ProblemReport,
    scale: Scale | None = None,
    fallback: Scale | None = None,
    most_held: int = MOST_HELD,
) -> Iterator[Ballot]:
    """Put ballots on their scale; undeclared ones after reading all.

    Parameters
    ----------
    scale
        Holds whatever the ballots declare.
    fallback
        Holds where a ballot declares none; None: it is recognised.
    most_held
        Ballots that are held in memory; more of them are laid aside on disk.
    """
    parts = ((ballot, (ballot,)) for ballot in ballots)
    for _, (ballot,) in scale_parts(parts, report, scale, fallback, most_held):
        yield ballot


MOST_WHOLE = 2.0**53
"""Whole numbers up to this are the same in every reader of JSON."""


def scale_table(
    table: BallotTable, scale: Scale | None = None, fallback: Scale | None = None
) -> BallotTable | None:
    """Put a table on its scale, as `scale_ballots`; None where grades ask for a closer look."""
    low, high = table.range()
    if not -MOST_WHOLE < low <= high < MOST_WHOLE or (scale is None and fallback is not None):
        return None
    known = scale
    if known is None:
        evidence = GradeEvidence()
        evidence.add_table(table)
        try:
            scales = evidence.scales()
        except UnclearScale:
            return None
        if scales.reviewer_scales or not scales.takes_all:
            return None
        known = NATIVE_SCALE if scales.is_native else scales.shared_scale
    ends = known.whole.low, known.whole.high
    fits = min(ends) <= low and high <= max(ends)
    return table.put_on(known) if fits and not known.criteria else None


def scale_parts(
    parts: Iterable[tuple[Part, tuple[Ballot, ...]]],
    report: ProblemReport,
    scale: Scale | None = None,
    fallback: Scale | None = None,
    most_held: int = MOST_HELD,
) -> Iterator[tuple[Part, tuple[Ballot, ...]]]:
    """`scale_ballots` for ballots with attachments."""
    evidence, open_ended = GradeEvidence(), scale is None and fallback is None
    rubric_scale = None if fallback is None else Scales(fallback)
    with ExitStack() as stack:
        buffer = _Buffer[Part](stack, most_held)
        for part, ballots in parts:
            if buffer or (open_ended and any(b.grades and b.scale is None for b in ballots)):
                for ballot in ballots:
                    evidence.add(ballot)
                buffer.append(part, ballots, report.line)
            else:
                known = _apply_scales(ballots, (scale, rubric_scale), report.line, report)
                yield part, known
        recognised = _scales_in_file(evidence, report.path) if buffer else None
        for part, ballots, line in buffer:
            yield part, _apply_scales(ballots, (scale, recognised), line, report)


def _scales_in_file(evidence: GradeEvidence, path: str) -> Scales:
    """The scales of a file."""
    try:
        return evidence.scales()
    except UnclearScale as error:
        raise BallotFileError(path, error.problem, remedy=error.remedy) from error


def _set_scale(ballot: Ballot, scale: Scale | None, otherwise: Scales | None) -> Ballot:
    """The ballot with this scale, or its own, or another."""
    if not ballot.grades:
        return ballot if ballot.scale is None else replace(ballot, scale=None)
    if scale is not None:
        return ballot.with_scale(scale)
    return ballot if otherwise is None else put_on_scale(ballot, otherwise)


def _apply_scales(
    ballots: tuple[Ballot, ...],
    scales: tuple[Scale | None, Scales | None],
    line: int,
    report: ProblemReport,
) -> tuple[Ballot, ...]:
    declared, recognised = scales
    known = tuple([_set_scale(ballot, *scales) for ballot in ballots])
    fits = declared is None and recognised is not None and recognised.takes_all
    if report.reports_doubts:
        for ballot, before in zip(known, ballots, strict=True):
            if not fits or before.scale is not None:
                report.doubt(line, off_scale(ballot))
    return known


class _Buffer(Generic[Part]):
    """A buffer of ballots, attachments and lines, spooled to disk if large."""

    def __init__(self, stack: ExitStack, most: int) -> None:
        self._stack, self._most = stack, most
        self._file: IO[bytes] | None = None
        self._latest: list[tuple[Part, tuple[Ballot, ...], int]] = []

    def __bool__(self) -> bool:
        return bool(self._latest or self._file)

    def append(self, part: Part, ballots: tuple[Ballot, ...], line: int) -> None:
        self._latest.append((part, ballots, line))
        if len(self._latest) == self._most:
            if self._file is None:
                file = tempfile.TemporaryFile()  # noqa: SIM115 - the stack closes it
                self._file = self._stack.enter_context(file)
            pickle.dump(self._latest, self._file, -1)
            self._latest = []

    def __iter__(self) -> Iterator[tuple[Part, tuple[Ballot, ...], int]]:
        if self._file is not None:
            end = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < end:
                # They were pickled above, into a file that has no name.
                yield from pickle.load(self._file)  # noqa: S301
        yield from self._latest
