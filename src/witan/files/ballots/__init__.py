"""Ballots in files, read and written."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from witan.core.ballot import Ballot
from witan.core.ballot_table import BallotTable
from witan.core.scale import Scale
from witan.files.ballots.columns import check_columns
from witan.files.ballots.formats import FORMATS, PLAIN, check_format, content_of, scaled_ballots
from witan.files.ballots.opening import Bounds, open_source
from witan.files.ballots.problems import LineProblem, ProblemReport
from witan.files.ballots.writing import write_ballots

if TYPE_CHECKING:
    from witan.core.rubric import Rubric

__all__ = [
    "FORMATS",
    "Bounds",
    "LineProblem",
    "ProblemReport",
    "read_ballots",
    "read_parts",
    "write_ballots",
]


def read_ballots(  # noqa: PLR0913 - all but the path by name
    path: str | Path | IO[Any],
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    columns: Mapping[str, str] | None = None,
    on_problem: Callable[[LineProblem], None] | None = None,
    reports_doubts: bool = False,
    bounds: Bounds | None = None,
    on_note: Callable[[str], None] | None = None,
    scale: Scale | str | None = None,
    rubric: "Rubric | None" = None,
) -> Iterator[Ballot]:
    """Stream the ballots of a file, a stream, or ``-`` (standard input).

    Plain, gzip or Zstandard, in one of `FORMATS`, each recognised from the content. A line that
    cannot be read goes to `on_problem` and is left out; without `on_problem` the first one raises
    `BallotFileError`, as a file that cannot be read at all always does. With `reports_doubts`
    it is told as well of what is odd about lines that are read. `columns` says which column holds
    a field, such as ``{"session": "task", "reviewer": "judge+version"}``. What is
    beyond `bounds` raises `TooLarge`; without them a file may be of any size. `on_note` is told how
    a file is read, where that is not plain from its columns.

    `scale`, such as ``"0-1"``, says on which scale all grades are given. Without it a ballot's own
    holds, then that of the `rubric`, then the one that all grades of the file fit; where that is
    unclear, `BallotFileError` names two that they could be on.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    make_report = partial(
        ProblemReport, on_problem=on_problem, reports_doubts=reports_doubts, on_note=on_note
    )
    declared = Scale.parse(scale) if isinstance(scale, str) else scale
    scales = declared, None if rubric is None else rubric.scale
    parts = read_parts(path, (format, columns or {}), make_report, scales, bounds)
    tables = ((part,) if isinstance(part, Ballot) else part for part in parts)
    return chain.from_iterable(tables)


def read_parts(
    path: str | Path | IO[Any],
    reading: tuple[str | None, Mapping[str, str]],
    make_report: Callable[[str], ProblemReport],
    scales: tuple[Scale | None, Scale | None],
    bounds: Bounds | None = None,
) -> Iterator[Ballot | BallotTable]:
    """Stream ballots as `read_ballots`; those of a file that only grade are one table.

    Parameters
    ----------
    reading
        Format and columns.
    make_report
        Makes the report of a file's problems.
    scales
        On which all grades are given, and on which those are whose ballot declares none.
    """
    if reading[0] is not None:
        check_format(reading[0])
    check_columns(reading[1])
    with open_source(path, bounds) as source:
        report = make_report(source.path)
        content = content_of(source, *reading)
        if content is None:
            return
        if content.format in PLAIN:
            yield from scaled_ballots(content, reading[1], report, scales)
            return
        # Sessions load the history's modules: only those who read some wait for them.
        from witan.core.ballot_records import mark_simulated
        from witan.files.imports import read_sessions

        for one in read_sessions(content, reading[1], report, scales=scales, apart=False):
            yield from map(mark_simulated, one.ballots) if one.simulated else one.ballots
