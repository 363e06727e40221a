"""Rows of a data set in JSON, CSV or Parquet."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from witan.errors import BallotFileError
from witan.files.ballots.formats import content_of
from witan.files.ballots.opening import open_source
from witan.files.ballots.problems import ProblemReport

NO_ROWS = "has no rows; expected JSON Lines, a JSON list, CSV or Parquet"
"""The problem of an empty data set."""


def read_rows(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each row with its line number, without empty cells.

    Raises
    ------
    BallotFileError
        If the file cannot be read or has no row, or a line is not an object; it names the line.
    """
    with open_source(path) as source:
        content = content_of(source, "rows", {})
        if content is None:
            raise BallotFileError(source.path, NO_ROWS)
        for line, row in content.records(ProblemReport(source.path, None)):
            yield line, {name: cell for name, cell in row.items() if cell not in (None, "")}
