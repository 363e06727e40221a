"""Ballots from any file: unpack, recognise, stream."""

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from witan.core.ballot import Ballot
from witan.core.scale import Scale
from witan.core.scale_recognition import Evidence, Scales, put_on_scale
from witan.errors import BallotFileError, UnclearScale
from witan.files.ballots.columns import check_columns
from witan.files.ballots.formats import PLAIN, check_format, content_of, plain_ballots
from witan.files.ballots.opening import Bounds, open_source
from witan.files.ballots.problems import Problem, Report, off_scale

if TYPE_CHECKING:
    from witan.core.rubric import Rubric

Part = TypeVar("Part")

MOST_HELD = 100_000
"""Ballots held in memory until the scale of all is known; more of them are laid aside on disk."""


def scale_ballots(
    ballots: Iterable[Ballot],
    report: Report,
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
    report: Report,
    scale: Scale | None = None,
    fallback: Scale | None = None,
    most_held: int = MOST_HELD,
) -> Iterator[tuple[Part, tuple[Ballot, ...]]]:
    """`scale_ballots` for ballots with attachments."""
    evidence, open_ended = Evidence(), scale is None and fallback is None
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


def _scales_in_file(evidence: Evidence, path: str) -> Scales:
    """The scales of a file.

    Raises
    ------
    BallotFileError
        If its grades fit none, or two as well.
    """
    try:
        return evidence.scales()
    except UnclearScale as error:
        raise BallotFileError(path, str(error)) from error


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
    report: Report,
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


def read_ballots(  # noqa: PLR0913 - all but the path by name
    path: str | Path | IO[Any],
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    columns: Mapping[str, str] | None = None,
    on_problem: Callable[[Problem], None] | None = None,
    doubting: bool = False,
    bounds: Bounds | None = None,
    on_note: Callable[[str], None] | None = None,
    scale: Scale | str | None = None,
    rubric: "Rubric | None" = None,
) -> Iterator[Ballot]:
    """Stream the ballots of a file, a stream, or ``-`` (standard input).

    Plain, gzip or Zstandard, in one of `FORMATS`, each recognised from the content. A line that
    cannot be read goes to `on_problem` and is left out; without `on_problem` the first one raises
    `BallotFileError`, as a file that cannot be read at all always does. With `doubting`, it is told
    as well of what is odd about lines that are read. `columns` says which
    column holds a field, such as ``{"session": "task", "reviewer": "judge+version"}``. What is
    beyond `bounds` raises `TooLarge`; without them a file may be of any size. `on_note` is told how
    a file is read, where that is not plain from its columns.

    `scale`, such as ``"0-1"``, says on which scale all grades are given. Without it a ballot's own
    holds, then that of the `rubric`, then the one that all grades of the file fit; where that is
    unclear, `BallotFileError` names two that they could be on.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    telling = partial(Report, on_problem=on_problem, doubting=doubting, on_note=on_note)
    declared = Scale.parse(scale) if isinstance(scale, str) else scale
    scales = declared, None if rubric is None else rubric.scale
    return _read(path, (format, columns or {}), telling, bounds, scales)


def _read(
    path: str | Path | IO[Any],
    reading: tuple[str | None, Mapping[str, str]],
    telling: Callable[[str], Report],
    bounds: Bounds | None,
    scales: tuple[Scale | None, Scale | None],
) -> Iterator[Ballot]:
    with open_source(path, bounds) as source:
        report = telling(source.path)
        content = content_of(source, *reading)
        if content is None:
            return
        if content.format in PLAIN:
            yield from scale_ballots(plain_ballots(content, reading[1], report), report, *scales)
            return
        # Sessions load the history's modules: only those who read some wait for them.
        from witan.core.ballot_records import mark_simulated
        from witan.files.imports.reading import read_sessions

        for one in read_sessions(content, reading[1], report, scales=scales, apart=False):
            yield from map(mark_simulated, one.ballots) if one.simulated else one.ballots
