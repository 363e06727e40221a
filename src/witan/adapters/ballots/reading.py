"""Ballots from any file: unpack it, recognise its kind, and read it as a stream."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from witan.adapters.ballots.bounds import Bounds
from witan.adapters.ballots.cells import csv_rows
from witan.adapters.ballots.columns import check_columns
from witan.adapters.ballots.council_log import read_council_log
from witan.adapters.ballots.csv_long import read_long
from witan.adapters.ballots.csv_pairs import read_pairs
from witan.adapters.ballots.formats import check_format, recognise
from witan.adapters.ballots.jsonl import read_jsonl
from witan.adapters.ballots.opening import Source, open_source
from witan.adapters.ballots.preflib import read_preflib
from witan.adapters.ballots.problems import Problem, Report
from witan.core.ballot import Ballot
from witan.errors import InvalidParameter

__all__ = ["read_ballots"]


def read_ballots(
    path: str | Path | IO[Any],
    *,
    format: str | None = None,  # noqa: A002  the word users know from the command line
    columns: Mapping[str, str] | None = None,
    on_problem: Callable[[Problem], None] | None = None,
    doubting: bool = False,
    bounds: Bounds | None = None,
) -> Iterator[Ballot]:
    """Read the ballots of a file, a stream, or ``-`` for standard input, one after another.

    Plain, gzip or Zstandard, in one of `FORMATS`, each recognised from the content. A line that
    cannot be read goes to `on_problem` and is left out; without `on_problem` the first one raises
    `BallotFileError`, as a file that cannot be read at all always does. With `doubting`, it is told
    as well of what is odd about lines that are read. `columns` says which
    column holds a field, such as ``{"session": "task", "reviewer": "judge+version"}``. What is
    beyond `bounds` raises `TooLarge`; without them a file may be of any size.
    """
    if format is not None:
        check_format(format)
    check_columns(columns or {})
    telling = partial(Report, on_problem=on_problem, doubting=doubting)
    return _read(path, format, columns or {}, telling, bounds)


def _read(
    path: str | Path | IO[Any],
    kind: str | None,
    columns: Mapping[str, str],
    telling: Callable[[str], Report],
    bounds: Bounds | None,
) -> Iterator[Ballot]:
    with open_source(path, bounds) as source:
        report = telling(source.path)
        if source.is_empty:
            return
        if kind == "parquet" or (kind is None and source.is_parquet):
            # pyarrow is heavy and optional: only those who read Parquet wait for it.
            from witan.adapters.ballots.parquet import read_parquet

            yield from read_parquet(source, columns, report)
            return
        first = source.first_line()
        if first is not None:
            kind = kind or recognise(source.path, first, columns)
            yield from _text_reader(kind, source, columns, report)


def _text_reader(
    kind: str, source: Source, columns: Mapping[str, str], report: Report
) -> Iterator[Ballot]:
    if kind == "jsonl":
        return read_jsonl(source, columns, report)
    if kind == "csv":
        return read_long(csv_rows(source, report), columns, report)
    if kind == "csv-pairs":
        return read_pairs(csv_rows(source, report), columns, report)
    if columns:
        raise InvalidParameter("columns", dict(columns), f"nothing, for a {kind} file has none")
    return read_preflib(source, report) if kind == "preflib" else read_council_log(source, report)
