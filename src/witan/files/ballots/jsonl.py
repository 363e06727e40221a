"""JSON Lines: one ballot a line."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO, Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import Unreadable, read_record, to_record
from witan.core.escaping import escape_json
from witan.files.ballots.columns import join_columns
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport, doubt_of

_SCAN = json.JSONDecoder().raw_decode


def read_jsonl(
    source: OpenedFile, columns: Mapping[str, str], report: ProblemReport
) -> Iterator[Ballot]:
    """Read one ballot a line; `columns` maps fields to keys."""
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
        if report.doubting:
            report.doubt(number, doubt_of(ballot))
        yield ballot


def objects(source: OpenedFile, report: ProblemReport) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON object of every non-blank line, with its number."""
    for number, raw in enumerate(source.lines(), start=1):
        line = raw.strip()
        if not line:
            continue
        try:
            record, end = _SCAN(line)
        except json.JSONDecodeError as error:
            report(number, _not_json(f"{error.msg} at column {error.colno}"))
        except RecursionError:
            report(number, _not_json("too deeply nested"))
        except ValueError:
            report(number, _not_json("a number has too many digits"))
        else:
            if end != len(line):
                report(number, _not_json(f"something follows the object at column {end + 1}"))
            elif type(record) is not dict:
                report(number, Unreadable(None, "is no JSON object; expected {…} with one ballot"))
            elif "\\u" in line and not _is_text(record):
                report(number, _not_json("half of a surrogate pair stands alone"))
            else:
                yield number, record


def _not_json(why: str) -> Unreadable:
    return Unreadable(None, f"is not JSON ({why}); expected one ballot object a line")


def _is_text(record: dict[str, Any]) -> bool:
    """Check that all text inside can be written as UTF-8."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _rename(record: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    if not columns:
        return record
    renamed = {}
    for field, key in columns.items():
        if key in record:
            renamed[field] = record[key]
        elif "+" in key:
            parts = (record.get(part.strip()) for part in key.split("+"))
            renamed[field] = join_columns("" if part is None else str(part) for part in parts)
    return {**record, **renamed}


def write_jsonl(ballots: Iterable[Ballot], out: IO[bytes]) -> int:
    """Write one ballot a line; reading gives the same ballots back."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    written = 0
    for ballot in ballots:
        line = encode(to_record(ballot, declares=True))
        line.encode()  # refuses what is no text
        out.write(escape_json(line).encode() + b"\n")
        written += 1
    return written


def read_council_log(source: OpenedFile, report: ProblemReport) -> Iterator[Ballot]:
    """Read a ballot per reviewer, labels resolved to models.

    Labels are in the order of the sheet: the first one stood at position 1.
    """
    for number, record in objects(source, report):
        try:
            if "rankings" in record and "label_to_model" in record:
                records = _ballots_of_session(record)
            elif isinstance(record.get("type"), str):
                records = _ballot_of_event(record)
            else:
                raise Unreadable(
                    None, "is no session of a council; expected 'rankings' and 'label_to_model'"
                )
        except Unreadable as flaw:
            report(number, flaw)
            continue
        for one in records:
            try:
                ballot = read_record(one)
            except Unreadable as flaw:
                report(number, Unreadable(f"rankings.{one['reviewer']}", flaw.what))
                continue
            yield ballot


def _ballots_of_session(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    rankings = record["rankings"]
    if not isinstance(rankings, dict):
        raise Unreadable("rankings", "is no map; expected reviewer and list of labels")
    sheet = _sheet("label_to_model", record["label_to_model"])
    shared = {
        "session": _session(record),
        "category": record.get("category"),
        "question": record.get("question"),
    }
    return [
        {**shared, "reviewer": reviewer, **_resolve_labels(ranking, sheet)}
        for reviewer, ranking in rankings.items()
    ]


def _ballot_of_event(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ballot of a ranking event; other events hold none."""
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
        ballot |= {"abstained": True, "reason": "the log calls the ballot invalid"}
    return [ballot]


def _session(record: Mapping[str, Any]) -> str:
    """A readable id, distinct for the same question in two sources."""
    name = record.get("session", record.get("question_id"))
    if name is None:
        raise Unreadable("question_id", "is missing; expected the session's id")
    source = record.get("source")
    if "session" in record or not isinstance(source, str) or not source:
        return str(name)
    path = PurePosixPath(source)
    return f"{path.parent.name or path.stem}/{name}"


def _sheet(field: str, labels: object) -> dict[str, str]:
    """Model by label."""
    if not isinstance(labels, dict) or not all(isinstance(m, str) for m in labels.values()):
        raise Unreadable(field, "is no map from label to model; expected {'A': 'name', …}")
    models = list(labels.values())
    if repeated := next((model for model in models if models.count(model) > 1), None):
        raise Unreadable(field, f"names {repeated!r} twice; expected one label per model")
    return {label.strip(): model for label, model in labels.items()}


def _resolve_labels(ranking: object, sheet: Mapping[str, str]) -> dict[str, Any]:
    """Ranking, roster and positions; unknown labels stay."""
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
