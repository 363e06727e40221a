"""Sessions and events as JSON, and back: the same value, and the same bytes again.

Only the events of a session are read back. The answers, ballots and outcome that stand before them
are for readers who are not Witan.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from witan.core.ballot import Ballot
from witan.core.escaping import escape_json
from witan.core.scale_recognition import undeclared
from witan.deliberation.events import EVENTS, Event
from witan.deliberation.restoring import Misfit, plain, restorer
from witan.deliberation.review_words import without_sheet_labels
from witan.deliberation.session import Session
from witan.errors import NothingToCount, SessionFileError

__all__ = ["SCHEMA", "event_from_json", "event_to_json", "session_from_json", "session_to_json"]

SCHEMA = 1
"""The version of the record; a later one may add fields to it, never change what one means."""


def session_to_json(session: Session, *, indent: int | None = None) -> str:
    """A session as one JSON object: for any reader what came of it, then the events."""
    record = {
        "witan_session": SCHEMA,
        "witan": session.opened.witan,
        "session": session.id,
        "simulated": session.simulated,
        "question": session.question,
        "status": session.status,
        "missing": session.missing,
        "notes": session.notes,
        "text": session.text,
        "answers": {seat: answer.text for seat, answer in session.answers.items()},
        "unanswered": session.unanswered,
        "safety": {"failed": session.failed},
        "ballots": [_ballot(ballot) for ballot in session.ballots],
        "outcome": session.outcome,
        **({"rankings": session.rankings} if session.rankings else {}),
        "synthesis": session.synthesis,
        "cost": session.cost,
        "seconds": session.seconds,
        "events": [_event(event) for event in session.events],
    }
    return _dumps(record, indent)


def session_from_json(text: str, source: str = "the session") -> Session:
    """The session that a record holds.

    Raises
    ------
    SessionFileError
        If it holds none, or one that this Witan cannot read; it names the field.
    """
    record = _loads(text, source)
    if "witan_session" not in record:
        raise SessionFileError(source, "is no session: it has no field witan_session")
    if record["witan_session"] != SCHEMA:
        raise SessionFileError(
            source,
            f"is a session of version {record['witan_session']!r}, and this Witan reads version "
            f"{SCHEMA}; update Witan to read it",
        )
    events = record.get("events")
    if not isinstance(events, list):
        raise SessionFileError(source, "is no whole session: events is not a list")
    try:
        return Session.of([_restored(event, f"events[{i}]") for i, event in enumerate(events)])
    except Misfit as misfit:
        raise SessionFileError(source, f"{misfit.where} {misfit.problem}") from misfit
    except NothingToCount as error:
        raise SessionFileError(source, str(error)) from error


def event_to_json(event: Event, *, simulated: bool = False) -> str:
    """An event as one line of JSON, marked where its session is `simulated`."""
    record = _event(event)
    if simulated:
        record["simulated"] = True
    return _dumps(record, None)


def event_from_json(line: str, source: str = "the event") -> Event:
    """The event that a line holds.

    Raises
    ------
    SessionFileError
        If it holds none, or one that this Witan does not know; it names the field.
    """
    try:
        return _restored(_loads(line, source), "event")
    except Misfit as misfit:
        raise SessionFileError(source, f"{misfit.where} {misfit.problem}") from misfit


def _event(event: Event) -> dict[str, Any]:
    held = _level(event)
    if not event.provisional:
        del held["provisional"]
    return {"event": event.kind, **held}


def _restored(record: object, where: str) -> Event:
    if not isinstance(record, dict) or "event" not in record:
        raise Misfit(where, "is no event; expected a map with the field 'event'")
    kind = record["event"]
    if not isinstance(kind, str) or kind not in EVENTS:
        raise Misfit(where, f"is of the unknown kind {kind!r}; a later Witan may know it")
    declared: Any = EVENTS[kind]
    # An event that was shown before it was durable is none the less what happened.
    given = {name: value for name, value in record.items() if name != "provisional"}
    event: Event = restorer(declared)(given, where)
    return without_sheet_labels(event)


def _ballot(ballot: Ballot) -> dict[str, Any]:
    """A ballot as a line of a ballot file has it, without what it leaves at its default."""
    ballot = undeclared(ballot)
    held = {"session": ballot.session, "reviewer": ballot.reviewer, "ranking": ballot.groups}
    for field in fields(ballot):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        value = getattr(ballot, field.name)
        if field.name != "groups" and value != default:
            held[field.name] = value
    return held if ballot.groups else {k: v for k, v in held.items() if k != "ranking"}


def _dumps(record: object, indent: int | None) -> str:
    try:
        written = _encoder(indent).encode(record)
    except ValueError:  # an infinity, which JSON has not: then every value is looked at
        written = _encoder(indent).encode(plain(record))
    return escape_json(written)


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    """Walks the values itself, and asks only where it meets a type of ours."""
    return json.JSONEncoder(
        ensure_ascii=False, check_circular=False, allow_nan=False, indent=indent, default=_level
    )


def _level(value: Any) -> Any:
    """One level of a value, as `plain` has it, for the encoder to go on with."""
    kind: Any = type(value)
    return _leveller(kind)(value)


@cache
def _leveller(kind: Any) -> Callable[[Any], Any]:
    if issubclass(kind, Mapping):
        return dict
    if issubclass(kind, datetime):
        return datetime.isoformat
    names = tuple(field.name for field in fields(kind) if field.init)
    if len(names) < 2:
        return lambda value: {name: getattr(value, name) for name in names}
    read = attrgetter(*names)
    if issubclass(kind, Ballot):
        return lambda value: dict(zip(names, read(undeclared(value)), strict=True))
    return lambda value: dict(zip(names, read(value), strict=True))


def _loads(text: str, source: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        opened, closed = text.lstrip().startswith("{"), text.rstrip().endswith("}")
        unended = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        cut = unended or (opened and not closed)
        why = "it breaks off there, as a file does that was cut short" if cut else error.msg
        raise SessionFileError(source, f"is no JSON at {where}: {why}") from error
    except (RecursionError, ValueError) as error:
        problem = "is no session: something in it is nested too deeply, or a number too long"
        raise SessionFileError(source, problem) from error
    if not isinstance(record, dict):
        raise SessionFileError(source, "is no JSON object; expected {…} with one session")
    return record
