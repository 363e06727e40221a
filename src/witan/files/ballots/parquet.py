"""Parquet: ballots per row, or a CSV form's columns; pyarrow on demand."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import isfinite, isnan
from types import ModuleType
from typing import IO, Any, cast

from witan.core.ballot import Ballot
from witan.core.ballot_records import FIELDS, Unreadable, scale_record
from witan.errors import BallotFileError, MissingExtra
from witan.files.ballots.cells import text_of
from witan.files.ballots.columns import join_columns
from witan.files.ballots.jsonl import read_rows
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport

_BATCH = 10_000


def open_parquet(source: OpenedFile) -> Any:
    """Open a file's table for reading by row group."""
    arrow = _arrow(f"reading {source.path}, which is Parquet,")
    try:
        table = arrow.parquet.ParquetFile(source.seekable())
    except (arrow.ArrowException, OSError) as error:
        raise BallotFileError(source.path, f"is no readable Parquet file: {error}") from error
    if source.bounds is not None:
        source.bounds.check_table(table.metadata.num_rows, _unpacked_bytes(table))
    return table


def _unpacked_bytes(table: Any) -> int:
    about = table.metadata
    return sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))


def _arrow(feature: str) -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(feature, "lake") from None
    return cast("ModuleType", pyarrow)


def _rows(table: Any, path: str) -> Iterator[dict[str, Any]]:
    try:
        for batch in table.iter_batches(batch_size=_BATCH):
            yield from batch.to_pylist()
    except OSError as error:
        raise BallotFileError(path, f"is damaged inside: {error}") from error


def records(table: Any, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows by column, numbered from 1."""
    return enumerate(_rows(table, path), start=1)


def cells(table: Any, path: str) -> Iterator[tuple[int, list[str]]]:
    """Rows as text cells like CSV, header first."""
    yield 0, list(table.schema_arrow.names)
    for number, row in enumerate(_rows(table, path), start=1):
        yield number, [text_of(value) for value in row.values()]


def read_parquet(table: Any, columns: Mapping[str, str], report: ProblemReport) -> Iterator[Ballot]:
    """Read one ballot a row; a problem's line is its row, from 1."""
    rows = records(table, report.path)
    return read_rows(rows, lambda row: _to_record(row, columns), report)


def _column(row: Mapping[str, Any], column: str) -> Any:
    if column in row or "+" not in column:
        return row.get(column)
    return join_columns(text_of(row.get(part.strip())) for part in column.split("+"))


def _to_record(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """A row as JSON record: maps for Arrow's lists of pairs."""
    record = {**row, **{field: _column(row, column) for field, column in columns.items()}}
    for field in ("positions", "authors", "ranking", "grades"):
        value = record.get(field)
        if isinstance(value, list) and all(isinstance(each, tuple) for each in value):
            record[field] = {key: _to_mapping(grade) for key, grade in value}
    if isinstance(record.get("grades"), list):
        record["grades"] = _grades(record["grades"])
    elif isinstance(record.get("grades"), dict):
        record["grades"] = _drop_nulls(record["grades"])
    if isinstance(scale := record.get("scale"), str) and scale.startswith("{"):
        record["scale"] = json.loads(scale)
    weight = record.get("weight")
    if isinstance(weight, float) and isnan(weight):
        record["weight"] = None  # how tables say that nothing is given
    return record


def _drop_nulls(grades: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a structure with values; the others belong to other rows."""
    return {
        key: _drop_nulls(grade) if isinstance(grade, dict) else grade
        for key, grade in grades.items()
        if grade is not None
    }


def _to_mapping(value: Any) -> Any:
    return dict(value) if isinstance(value, list) else value


def _grades(listed: list[Any]) -> dict[str, Any]:
    """Grades by candidate from rows of candidate, criterion and grade."""
    grades: dict[str, Any] = {}
    for one in listed:
        if not isinstance(one, dict) or "candidate" not in one:
            raise Unreadable(
                "grades", "is a list of something else than candidate, criterion and grade"
            )
        grade = one.get("grade") if one.get("text") is None else one["text"]
        criterion = one.get("criterion")
        if criterion is None:
            grades[one["candidate"]] = grade
        elif isinstance(by_criterion := grades.setdefault(one["candidate"], {}), dict):
            by_criterion[criterion] = grade
        else:
            raise Unreadable("grades", f"gives {one['candidate']!r} criteria and one grade as well")
    return grades


def write_parquet(ballots: Iterable[Ballot], out: IO[bytes]) -> int:
    """Write one row per ballot, ten thousand to a row group."""
    arrow = _arrow("writing Parquet")
    schema = _schema(arrow)
    written = 0
    source = iter(ballots)
    with arrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while rows := [_row(ballot) for ballot in islice(source, _BATCH)]:
            writer.write_table(arrow.Table.from_pylist(rows, schema))
            written += len(rows)
    return written


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    grade = arrow.struct(
        [("candidate", text), ("criterion", text), ("grade", arrow.float64()), ("text", text)]
    )
    special = {
        "ranking": arrow.list_(arrow.list_(text)),
        "grades": arrow.list_(grade),
        "abstained": arrow.bool_(),
        "candidates": arrow.list_(text),
        "authors": arrow.map_(text, text),
        "positions": arrow.map_(text, arrow.int32()),
        "weight": arrow.float64(),
        "at": arrow.timestamp("us", tz="UTC"),
        "paired": arrow.bool_(),
    }
    return arrow.schema([(field, special.get(field, text)) for field in FIELDS])


def _row(ballot: Ballot) -> dict[str, Any]:
    row = {field: getattr(ballot, field) for field in FIELDS if field not in ("ranking", "grades")}
    for field in ("positions", "authors"):
        row[field] = None if row[field] is None else list(row[field].items())
    grades = []
    for candidate, grade in ballot.grades.items():
        criteria = grade if isinstance(grade, Mapping) else {None: grade}
        grades += [_grade(candidate, criterion, one) for criterion, one in criteria.items()]
    scale = scale_record(ballot)
    row["scale"] = scale if scale is None or isinstance(scale, str) else json.dumps(scale)
    return row | {"ranking": ballot.groups, "grades": grades}


def _grade(candidate: str, criterion: str | None, grade: Any) -> dict[str, Any]:
    """One grade: a number, or text if not a countable number."""
    named = {"candidate": candidate, "criterion": criterion}
    if isinstance(grade, int | float) and not isinstance(grade, bool) and isfinite(grade):
        return named | {"grade": float(grade)}
    return named | {"text": grade if isinstance(grade, str) else json.dumps(grade)}
