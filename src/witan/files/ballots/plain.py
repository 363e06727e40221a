"""Formats that hold ballots and little else."""

from collections.abc import Iterator, Mapping

from witan.core.ballot import Ballot
from witan.errors import InvalidParameter
from witan.files.ballots.contents import Content
from witan.files.ballots.council_log import read_council_log
from witan.files.ballots.csv_long import read_long
from witan.files.ballots.csv_pairs import PairSessions, read_pairs
from witan.files.ballots.jsonl import read_jsonl
from witan.files.ballots.preflib import read_preflib
from witan.files.ballots.problems import Report
from witan.files.ballots.wide import LONG_FORMS

__all__ = ["PLAIN", "plain_ballots", "refuse_columns"]

PLAIN = ("jsonl", *LONG_FORMS, "csv-pairs", "preflib", "parquet", "council-log")
"""Formats whose ballots are read one after another, without what else the file says."""


def plain_ballots(
    content: Content, columns: Mapping[str, str], report: Report, *, apart: bool = False
) -> Iterator[Ballot]:
    """The ballots of a file that holds little else.

    With `apart`, a row of a table of pairs that names no session is a session of its own.
    """
    if content.format == "jsonl":
        return read_jsonl(content.source, columns, report)
    if content.format in LONG_FORMS:
        return read_long(*content.long_rows(report), report)
    if content.format == "csv-pairs":
        sessions = PairSessions(content.source.stem, apart=apart)
        return read_pairs(content.rows(report), columns, report, sessions)
    if content.format == "parquet":
        from witan.files.ballots.parquet import read_parquet

        return read_parquet(content.table, columns, report)
    refuse_columns(content, columns)
    read = read_preflib if content.format == "preflib" else read_council_log
    return read(content.source, report)


def refuse_columns(content: Content, columns: Mapping[str, str]) -> None:
    """Refuse to name the columns of a format that has none."""
    if columns:
        what = f"nothing, for a {content.format} file has none"
        raise InvalidParameter("columns", dict(columns), what)
