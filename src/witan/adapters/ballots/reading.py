"""Ballots from any file: unpack it, recognise its format, and read it as a stream."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from witan.adapters.ballots.bounds import Bounds
from witan.adapters.ballots.columns import check_columns
from witan.adapters.ballots.contents import content_of
from witan.adapters.ballots.formats import check_format
from witan.adapters.ballots.opening import open_source
from witan.adapters.ballots.plain import PLAIN, plain_ballots
from witan.adapters.ballots.problems import Problem, Report
from witan.core.ballot import Ballot

__all__ = ["read_ballots"]


def read_ballots(
    path: str | Path | IO[Any],
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    columns: Mapping[str, str] | None = None,
    on_problem: Callable[[Problem], None] | None = None,
    doubting: bool = False,
    bounds: Bounds | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[Ballot]:
    """Read the ballots of a file, a stream, or ``-`` for standard input, one after another.

    Plain, gzip or Zstandard, in one of `FORMATS`, each recognised from the content. A line that
    cannot be read goes to `on_problem` and is left out; without `on_problem` the first one raises
    `BallotFileError`, as a file that cannot be read at all always does. With `doubting`, it is told
    as well of what is odd about lines that are read. `columns` says which
    column holds a field, such as ``{"session": "task", "reviewer": "judge+version"}``. What is
    beyond `bounds` raises `TooLarge`; without them a file may be of any size. `on_note` is told how
    a file is read, where that is not plain from its columns.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    telling = partial(Report, on_problem=on_problem, doubting=doubting, on_note=on_note)
    return _read(path, format, columns or {}, telling, bounds)


def _read(
    path: str | Path | IO[Any],
    given: str | None,
    columns: Mapping[str, str],
    telling: Callable[[str], Report],
    bounds: Bounds | None,
) -> Iterator[Ballot]:
    with open_source(path, bounds) as source:
        report = telling(source.path)
        content = content_of(source, given, columns)
        if content is None:
            return
        if content.format in PLAIN:
            yield from plain_ballots(content, columns, report)
            return
        # Sessions load the history's modules: only those who read some wait for them.
        from witan.adapters.imports.reading import sessions_of
        from witan.adapters.simulated_ballots import marked

        for one in sessions_of(content, columns, report, apart=False):
            yield from map(marked, one.ballots) if one.simulated else one.ballots
