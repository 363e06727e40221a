"""Whole sessions as JSON Lines, with events or imported."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from witan.core.ballot import Ballot
from witan.core.ballot_records import (
    MOST,
    Unreadable,
    check_years,
    length,
    moment,
    name,
    read_record,
    session_name,
)
from witan.core.entries import AnswerEntry
from witan.deliberation.record import Imported, session_from_json
from witan.errors import SessionFileError
from witan.files.ballots.opening import OpenedFile
from witan.files.ballots.problems import ProblemReport
from witan.files.ballots.recognition import SESSION_MARKS

IMPORTED = "witan_imported"
"""Marks a line that holds a session without events, as it was imported."""

VERSION = 1
"""The version of such a line."""

VOTES = "votes"
"""Under it a session holds the ballots of people that it is not counted by."""


def read_session_lines(source: OpenedFile, report: ProblemReport) -> Iterator[Imported]:
    """Read one session a line."""
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        try:
            yield _read(line)
        except Unreadable as flaw:
            report(number, flaw)
        except SessionFileError as error:
            report(number, Unreadable(None, error.problem))


def _read(line: str) -> Imported:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Unreadable(None, f"is not JSON ({error}); expected one session a line") from None
    if not isinstance(record, dict) or not any(mark in record for mark in SESSION_MARKS):
        raise Unreadable(
            None, f"is no session; expected an object with {' or '.join(SESSION_MARKS)}"
        )
    return _imported_session(record) if IMPORTED in record else _council_session(line, record)


def _council_session(line: str, record: Mapping[str, Any]) -> Imported:
    """A council session from its events."""
    session = session_from_json(line)
    session_name("session", session.id)
    check_years("at", session.opened.at)
    votes = _ballots(VOTES, record.get(VOTES, []), session.id)
    return Imported(
        session=session.id,
        at=session.opened.at,
        question=session.question,
        ballots=(*session.ballots, *votes),
        answers={seat: answer.text for seat, answer in session.answers.items()},
        session_record=session,
        simulated=session.simulated,
        closing=session.text,
    )


def _imported_session(record: Mapping[str, Any]) -> Imported:
    if record[IMPORTED] != VERSION:
        raise Unreadable(
            IMPORTED,
            f"is {record[IMPORTED]!r}, and this Witan reads {VERSION}; update Witan to read it",
        )
    session = session_name("session", name("session", record.get("session")))
    simulated = record.get("simulated", False)
    if not isinstance(simulated, bool):
        raise Unreadable("simulated", f"is {simulated!r}; expected true or false")
    return Imported(
        session=session,
        at=None if record.get("at") is None else moment(record["at"]),
        question=_text("question", record.get("question")) or "",
        category=_text("category", record.get("category")),
        ballots=(
            *_ballots("ballots", record.get("ballots", []), session),
            *_ballots(VOTES, record.get(VOTES, []), session),
        ),
        answers=_map("answers", record.get("answers", {}), str),
        lengths={
            c: length("lengths", n)
            for c, n in _map("lengths", record.get("lengths", {}), int).items()
        },
        simulated=simulated,
        closing=_text("closing", record.get("closing")),
        models=_map("models", record.get("models", {}), str),
        kept={
            who: _order_count(pair)
            for who, pair in _map("kept", record.get("kept", {}), list).items()
        },
        repaired=_names("repaired", record.get("repaired", [])),
        took=_took(record.get("took", [])),
    )


def _order_count(pair: list[Any]) -> tuple[int, int]:
    """Pairs judged alike in both orders, of so many."""
    if len(pair) != 2 or not all(_is_whole(n) for n in pair) or pair[0] > pair[1]:
        raise Unreadable("kept", f"has {pair!r}; expected pairs judged alike, and pairs")
    return pair[0], pair[1]


def _names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unreadable(field, "is no list of names")
    return tuple(name(field, one) for one in value)


def _took(records: object) -> tuple[AnswerEntry, ...]:
    """Usage of answers; missing numbers are unknown."""
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable("took", "is no list of what answers took")
    return tuple(_answer(one) for one in records)


def _answer(record: Mapping[str, Any]) -> AnswerEntry:
    whole = {field: record.get(field) for field in ("chars", "output_tokens")}
    real = {field: record.get(field) for field in ("seconds", "cost_usd")}
    for field, value in whole.items():
        if value is not None and not _is_whole(value):
            raise Unreadable(f"took.{field}", f"is {value!r}; expected a whole number")
    for field, value in real.items():
        if value is not None and not _is_amount(value):
            raise Unreadable(f"took.{field}", f"is {value!r}; expected a number of 0 or more")
    failed = record.get("failed", False)
    if not isinstance(failed, bool):
        raise Unreadable("took.failed", f"is {failed!r}; expected true or false")
    return AnswerEntry(
        name("took.seat", record.get("seat")),
        name("took.model", record.get("model")),
        chars=whole["chars"],
        seconds=real["seconds"],
        cost_usd=real["cost_usd"],
        output_tokens=whole["output_tokens"],
        failed=failed,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_amount(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) <= MOST


def _ballots(field: str, records: object, session: str) -> tuple[Ballot, ...]:
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise Unreadable(field, "is no list of ballots")
    read = []
    for place, record in enumerate(records):
        try:
            read.append(read_record({**record, "session": session}))
        except Unreadable as flaw:
            where = f"{field}[{place}]" + ("" if flaw.field is None else f".{flaw.field}")
            raise Unreadable(where, flaw.what) from None
    return tuple(read)


def _text(field: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise Unreadable(field, f"is {value!r}; expected text")
    return value


def _map(field: str, value: object, kind: type) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(item) is kind for item in value.values()):
        expected = {str: "text", int: "whole numbers", list: "lists"}[kind]
        raise Unreadable(field, f"is no map from candidate to {expected}")
    return value
