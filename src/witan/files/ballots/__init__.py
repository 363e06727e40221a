"""Reading and writing of ballot files."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import BallotTable
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

    Plain, gzip or Zstandard, in one of `FORMATS`, each detected from the content. An unreadable
    line is passed to `on_problem` and skipped; without `on_problem` the first one raises
    `BallotFileError`, as an unreadable file always does. With `reports_doubts`, `on_problem` also
    gets doubts about lines that were read. `columns` gives the column of a field, such as
    ``{"session": "task", "reviewer": "judge+version"}``. Content beyond `bounds` raises `TooLarge`;
    without them a file may have any size. `on_note` gets a note on how a file is read, if its
    columns do not make that obvious.

    `scale`, such as ``"0-1"``, is the scale of all grades. By default it is the scale of the
    ballot, else of the `rubric`, else the one that fits all grades of the file; if two fit,
    `BallotFileError` names both.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    make_report = partial(
        ProblemReport, on_problem=on_problem, reports_doubts=reports_doubts, on_note=on_note
    )
    stated_scale = Scale.parse(scale) if isinstance(scale, str) else scale
    scales = stated_scale, None if rubric is None else rubric.scale
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
    """Stream ballots as `read_ballots`, or one table if a file only grades.

    Parameters
    ----------
    reading
        Format and columns.
    make_report
        Creates the report of a file's problems.
    scales
        Scale of all grades, and default scale of ballots without one.
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
        # Importing sessions is slow, so only files with sessions do it.
        from witan.core.ballot_records import mark_simulated
        from witan.files.imports import read_sessions

        for one in read_sessions(content, reading[1], report, scales=scales, by_session=False):
            yield from map(mark_simulated, one.ballots) if one.simulated else one.ballots
