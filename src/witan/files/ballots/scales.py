"""The scale of a file's grades: declared, or recognised over all."""

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Generic, TypeVar

from witan.core.ballot import Ballot
from witan.core.scale import Scale
from witan.core.scale_recognition import GradeEvidence, Scales, put_on_scale
from witan.errors import BallotFileError, UnclearScale
from witan.files.ballots.problems import ProblemReport, off_scale

Part = TypeVar("Part")

MOST_HELD = 100_000
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
    """The scales of a file.

    Raises
    ------
    BallotFileError
        If its grades fit none, or two as well.
    """
    try:
        return evidence.scales()
    except UnclearScale as error:
        raise BallotFileError(path, error.problem, remedy=error.remedy) from error


def _set_scale(ballot: Ballot, scale: Scale | None, otherwise: Scales | None) -> Ballot:
    """The ballot with this scale, or its own, or another."""
    if not ballot.grades:
        return ballot if ballot.scale is None else replace(ballot, scale=None)
    if scale is not None:
        return replace(ballot, scale=scale)
    return ballot if otherwise is None else put_on_scale(ballot, otherwise)


def _apply_scales(
    ballots: tuple[Ballot, ...],
    scales: tuple[Scale | None, Scales | None],
    line: int,
    report: ProblemReport,
) -> tuple[Ballot, ...]:
    known = tuple([_set_scale(ballot, *scales) for ballot in ballots])
    if report.doubting:
        for ballot in known:
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
