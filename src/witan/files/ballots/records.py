"""Ballots and answers as records: JSON Lines, logs of councils, and Parquet."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import isfinite, isnan
from operator import itemgetter
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, Any, cast

import orjson

from witan.core.ballot import (
    FIELDS,
    Ballot,
    BallotTable,
    Unreadable,
    is_text,
    read_record,
    scale_record,
    to_record,
)
from witan.core.escaping import escape_json
from witan.core.scale import NUMBER_TYPES
from witan.errors import BallotFileError, MissingExtra
from witan.files.ballots.columns import check_headings, join_columns, text_of
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport, doubt_of

_SCAN = json.JSONDecoder().raw_decode


def read_jsonl(
    source: OpenedFile, columns: Mapping[str, str], report: ProblemReport
) -> Iterator[Ballot]:
    """Read one ballot per line; `columns` maps fields to keys."""
    return read_rows(objects(source, report), lambda record: _rename(record, columns), report)


def read_rows(
    rows: Iterable[tuple[int, dict[str, Any]]],
    to_record: Callable[[dict[str, Any]], Mapping[str, Any]],
    report: ProblemReport,
) -> Iterator[Ballot]:
    """Read numbered rows as ballots, reporting flaws and doubts."""
    for number, row in rows:
        try:
            ballot = read_record(to_record(row))
        except Unreadable as flaw:
            report(number, flaw)
            continue
        if report.reports_doubts:
            report.doubt(number, doubt_of(ballot))
        yield ballot


MAX_TABLE_BYTES = 64 * 1024 * 1024
"""Maximum size of a file read as a table; a larger one is read ballot by ballot."""

_BLOCK_LINES = 4096
_MAX_EXACT = 2**53
_FIELDS = itemgetter("session", "reviewer", "grades")


def read_table(source: OpenedFile) -> BallotTable | None:
    """Read JSON Lines as one table, or return None and read nothing.

    For a table, every line must be a ballot with only session, reviewer and grades; its grades must
    be plain numbers, and its names must have no surrounding white space.
    """
    # Other files are streamed, so that a pipe yields its first ballot before it ends.
    first = source.peek_lines(1)
    if not first or _table([first[0].encode(errors="surrogatepass")]) is None:
        return None
    lines = source.read_lines(MAX_TABLE_BYTES)
    table = None if lines is None else _table(lines)
    if lines is not None and table is None:
        source.head = lines  # to be read again
    return table


def _table(lines: Sequence[bytes]) -> BallotTable | None:
    sessions: list[str] = []
    reviewers: list[str] = []
    grades: list[dict[str, float]] = []
    for start in range(0, len(lines), _BLOCK_LINES):
        try:
            records = list(map(orjson.loads, lines[start : start + _BLOCK_LINES]))
            names, voters, grades_by_record = zip(*map(_FIELDS, records), strict=True)
        except (ValueError, LookupError, TypeError):
            return None
        if {*map(len, records)} != {3}:
            return None
        sessions += names
        reviewers += voters
        grades += grades_by_record
    types = ({*map(type, sessions), *map(type, reviewers)}, {*map(type, grades)})
    if types != ({str}, {dict}) or not all(grades):
        return None
    texts = {*chain.from_iterable(grades), *sessions, *reviewers}
    if any(not text or text != text.strip() or "\0" in text for text in texts):
        return None
    numbers = list(chain.from_iterable(map(dict.values, grades)))
    if not {*map(type, numbers)} <= NUMBER_TYPES:
        return None
    # orjson reads larger integers as floats.
    low, high = ends = min(numbers), max(numbers)
    is_exact = low > -_MAX_EXACT and high < _MAX_EXACT
    return BallotTable(sessions, reviewers, grades, ends=ends) if is_exact else None


def objects(source: OpenedFile, report: ProblemReport) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON object of every non-blank line, with the line number."""
    for number, raw in enumerate(source.lines(), start=1):
        line = raw.strip()
        if not line:
            continue
        try:
            record, end = _SCAN(line)
        except json.JSONDecodeError as error:
            reason = error.msg.removesuffix(" starting at")
            report(number, _not_json(f"{reason} at column {error.colno}"))
        except RecursionError:
            report(number, _not_json("too deeply nested"))
        except ValueError:
            report(number, _not_json("a number has too many digits"))
        else:
            if end != len(line):
                report(number, _not_json(f"extra text after the object at column {end + 1}"))
            elif type(record) is not dict:
                report(number, Unreadable(None, "is not a JSON object; expected {…} on each line"))
            elif "\\u" in line and not is_text(json.dumps(record, ensure_ascii=False)):
                report(number, _not_json("it contains an unpaired surrogate"))
            else:
                yield number, record


def _not_json(reason: str) -> Unreadable:
    return Unreadable(None, f"is not JSON ({reason}); expected one JSON object per line")


def _rename(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    if not columns:
        return record
    new_record = {}
    for field, key in columns.items():
        if key in record:
            new_record[field] = record[key]
        elif "+" in key:
            parts = (record.get(part.strip()) for part in key.split("+"))
            new_record[field] = join_columns("" if part is None else str(part) for part in parts)
    return {**record, **new_record}


def write_jsonl(ballots: Iterable[Ballot], out: IO[bytes]) -> int:
    """Write one ballot per line; reading restores the same ballots."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    n_written = 0
    for ballot in ballots:
        line = encode(to_record(ballot, declares=True))
        line.encode()  # raises for anything that is not text
        out.write(escape_json(line).encode() + b"\n")
        n_written += 1
    return n_written


def read_council_log(source: OpenedFile, report: ProblemReport) -> Iterator[Ballot]:
    """Read a ballot per reviewer, labels resolved to models.

    Labels are in the order of the sheet: the first one was at position 1.
    """
    for number, record in objects(source, report):
        try:
            if "rankings" in record and "label_to_model" in record:
                records = _ballots_of_session(record)
            elif isinstance(record.get("type"), str):
                records = _ballot_of_event(record)
            else:
                raise Unreadable(
                    None, "is not a session of a council; expected 'rankings' and 'label_to_model'"
                )
        except Unreadable as flaw:
            report(number, flaw)
            continue
        for one in records:
            try:
                ballot = read_record(one)
            except Unreadable as flaw:
                report(number, Unreadable(f"rankings.{one['reviewer']}", flaw.problem))
                continue
            yield ballot


def _ballots_of_session(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    rankings = record["rankings"]
    if not isinstance(rankings, dict):
        raise Unreadable("rankings", "is not a map; expected reviewer and list of labels")
    sheet = _sheet("label_to_model", record["label_to_model"])
    shared_fields = {
        "session": _session(record),
        "category": record.get("category"),
        "question": record.get("question"),
    }
    return [
        {**shared_fields, "reviewer": reviewer, **_resolve_labels(ranking, sheet)}
        for reviewer, ranking in rankings.items()
    ]


def _ballot_of_event(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ballot of a ranking event; other events have none."""
    if record["type"] != "stage2_ranking":
        return []
    ballot = {
        "session": record.get("run_id"),
        "reviewer": record.get("model"),
        "at": record.get("timestamp"),
        **_resolve_labels(
            record.get("parsed_ranking"), _sheet("label_mapping", record.get("label_mapping"))
        ),
    }
    if record.get("is_valid_ballot") is False:
        del ballot["ranking"]
        ballot |= {"abstained": True, "reason": "the log marks the ballot as invalid"}
    return [ballot]


def _session(record: Mapping[str, Any]) -> str:
    """Return a readable id, distinct for the same question in two sources."""
    name = record.get("session", record.get("question_id"))
    if name is None:
        raise Unreadable("question_id", "is missing; expected the session's id")
    source = record.get("source")
    if "session" in record or not isinstance(source, str) or not source:
        return str(name)
    path = PurePosixPath(source)
    return f"{path.parent.name or path.stem}/{name}"


def _sheet(field: str, labels: object) -> dict[str, str]:
    """Return label to model."""
    if not isinstance(labels, dict) or not all(isinstance(m, str) for m in labels.values()):
        raise Unreadable(field, "is not a map from label to model; expected {'A': 'name', …}")
    models = list(labels.values())
    if repeated := next((model for model in models if models.count(model) > 1), None):
        raise Unreadable(field, f"names {repeated!r} twice; expected one label per model")
    return {label.strip(): model for label, model in labels.items()}


def _resolve_labels(ranking: object, sheet: Mapping[str, str]) -> dict[str, Any]:
    """Return ranking, roster and positions; unknown labels stay."""
    if isinstance(ranking, list):
        ranking = [
            [_model(label, sheet) for label in place]
            if isinstance(place, list)
            else _model(place, sheet)
            for place in ranking
        ]
    return {
        "ranking": ranking,
        "candidates": list(sheet.values()),
        "positions": {model: place for place, model in enumerate(sheet.values(), start=1)},
    }


def _model(label: object, sheet: Mapping[str, str]) -> object:
    return sheet.get(label.strip(), label) if isinstance(label, str) else label


_BATCH = 10_000


def open_parquet(source: OpenedFile) -> Any:
    """Open a Parquet file for reading by row group."""
    arrow = _arrow(f"reading {source.path}, which is Parquet,")
    try:
        table = arrow.parquet.ParquetFile(source.seekable())
    except (arrow.ArrowException, OSError) as error:
        raise BallotFileError(source.path, f"is not a readable Parquet file: {error}") from error
    check_headings(table.schema_arrow.names, source.path)
    if source.bounds is not None:
        about = table.metadata
        groups = map(about.row_group, range(about.num_row_groups))
        n_bytes = sum(group.total_byte_size for group in groups)
        source.bounds.check_table(about.num_rows, n_bytes)
    return table


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
        raise BallotFileError(path, f"is damaged: {error}") from error


def parquet_records(table: Any, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows by column, numbered from 1."""
    return enumerate(_rows(table, path), start=1)


def parquet_cells(table: Any, path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as text cells like CSV, with the header first."""
    yield 0, list(table.schema_arrow.names)
    for number, row in enumerate(_rows(table, path), start=1):
        yield number, [text_of(value) for value in row.values()]


def read_parquet(table: Any, columns: Mapping[str, str], report: ProblemReport) -> Iterator[Ballot]:
    """Read one ballot per row; problems have row numbers, from 1."""
    rows = parquet_records(table, report.path)
    return read_rows(rows, lambda row: _to_record(row, columns), report)


def _column(row: Mapping[str, Any], column: str) -> Any:
    if column in row or "+" not in column:
        return row.get(column)
    return join_columns(text_of(row.get(part.strip())) for part in column.split("+"))


def _to_record(row: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return a row as JSON record; Arrow's lists of pairs become maps."""
    record = {**row, **{field: _column(row, column) for field, column in columns.items()}}
    for field in ("positions", "authors", "ranking", "grades"):
        value = record.get(field)
        if isinstance(value, list) and all(isinstance(each, tuple) for each in value):
            record[field] = {
                key: dict(grade) if isinstance(grade, list) else grade for key, grade in value
            }
    if isinstance(record.get("grades"), list):
        record["grades"] = _grades(record["grades"])
    elif isinstance(record.get("grades"), dict):
        record["grades"] = _drop_nulls(record["grades"])
    if isinstance(scale := record.get("scale"), str) and scale.startswith("{"):
        record["scale"] = json.loads(scale)
    weight = record.get("weight")
    if isinstance(weight, float) and isnan(weight):
        record["weight"] = None  # an empty list in a table is a missing value
    return record


def _drop_nulls(grades: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _drop_nulls(grade) if isinstance(grade, dict) else grade
        for key, grade in grades.items()
        if grade is not None
    }


def _grades(entries: list[Any]) -> dict[str, Any]:
    """Return grades by candidate from rows of candidate, criterion and grade."""
    grades: dict[str, Any] = {}
    for one in entries:
        if not isinstance(one, dict) or "candidate" not in one:
            raise Unreadable("grades", "is not a list of candidate, criterion and grade")
        grade = one.get("grade") if one.get("text") is None else one["text"]
        criterion = one.get("criterion")
        if criterion is None:
            grades[one["candidate"]] = grade
        elif isinstance(by_criterion := grades.setdefault(one["candidate"], {}), dict):
            by_criterion[criterion] = grade
        else:
            raise Unreadable(
                "grades", f"gives {one['candidate']!r} both criteria and a single grade"
            )
    return grades


def write_parquet(ballots: Iterable[Ballot], out: IO[bytes]) -> int:
    """Write one row per ballot, in row groups of ten thousand."""
    arrow = _arrow("writing Parquet")
    schema = _schema(arrow)
    n_written = 0
    source = iter(ballots)
    with arrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while rows := [_row(ballot) for ballot in islice(source, _BATCH)]:
            writer.write_table(arrow.Table.from_pylist(rows, schema))
            n_written += len(rows)
    return n_written


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
    place = {"candidate": candidate, "criterion": criterion}
    if isinstance(grade, int | float) and not isinstance(grade, bool) and isfinite(grade):
        return place | {"grade": float(grade)}
    return place | {"text": grade if isinstance(grade, str) else json.dumps(grade)}


Answers = Mapping[str, Mapping[str, str]]
"""Session to candidate to text."""


def load_answers(path: str) -> Answers:
    """Read a file of answers; ``-`` is standard input."""
    name = "standard input" if path == "-" else path
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return parse_answers(content.decode(), name)
    except UnicodeDecodeError:
        raise BallotFileError(name, "is not UTF-8 text") from None
    except OSError as error:
        raise BallotFileError(name, f"cannot be read: {error.strerror or error}") from error


def parse_answers(text: str, name: str = "answers") -> Answers:
    """Read answers as JSON Lines."""
    answers: dict[str, dict[str, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BallotFileError(name, f"is not JSON ({error})", number) from None
        if not isinstance(record, dict):
            raise BallotFileError(name, "is not an object", number)
        for field in ("candidate", "text"):
            if not isinstance(record.get(field), str):
                raise BallotFileError(name, f"the field {field!r} is missing or not text", number)
        session = str(record.get("session") or "")
        answers.setdefault(session, {})[record["candidate"]] = record["text"]
    return answers
