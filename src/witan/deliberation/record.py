"""Write sessions and their events as JSON, and read them back.

Only the events of a session are read back, unchanged. The answers, ballots and outcome before them
are for other programs. Types come from the fields of the dataclasses, so a record has no second
definition. Integers stay integers and floats stay floats, so a stored session prints as the live
one did.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson

from witan.core.ballot import Ballot
from witan.core.bounds import MAY_BE_INFINITE, Bound
from witan.core.escaping import escape_json
from witan.core.scale_recognition import drop_native
from witan.core.session_ballots import AnswerEntry, Entries
from witan.deliberation.damage import DAMAGED, restore_session
from witan.deliberation.events import EVENTS, Event, SessionOpened, drop_sheet_labels
from witan.deliberation.procedure import Procedure
from witan.deliberation.session import Session
from witan.errors import NothingToCount, SessionFileError, WitanError

Reader = Callable[[object, str], Any]
"""Reads a plain value, given its location for error messages."""

_SCALARS = {str: "text", bool: "true or false", NoneType: "null", int: "a whole number"}
_INFINITE = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class FieldMismatch(Exception):
    """A plain value that does not fit its type, at `location`.

    The caller that knows the source of the value turns it into an error for users.
    """

    def __init__(self, location: str, problem: str) -> None:
        self.location, self.problem = location, problem
        super().__init__(location, problem)

    def within(self, location: str) -> "FieldMismatch":
        """Return the mismatch relative to the value that contains this field."""
        return type(self)(f"{location}.{self.location}", self.problem)


class OutOfBounds(FieldMismatch):
    """A value beyond the bound of its type, so no other fits."""


def to_plain(value: Any) -> Any:
    """Turn a value into plain JSON values, infinities into text."""
    if isinstance(value, Ballot):
        value = drop_native(value)
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if f.init}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


@cache
def make_reader(declaration: Any) -> Reader:
    """Make a reader of plain values for a type.

    It raises `FieldMismatch` if a value does not fit.

    Fields that a dataclass does not have are ignored, since a later Witan may write more.
    """
    origin = get_origin(declaration)
    if origin is Annotated:
        return _bounded(*get_args(declaration))
    if declaration in (Any, object):
        return lambda value, _: value
    if origin in _READERS:
        return _READERS[origin](get_args(declaration))
    if is_dataclass(declaration):
        return _dataclass(declaration)
    if declaration in (float, datetime):
        return _number if declaration is float else _moment
    return _scalar(declaration)


def _scalar(declaration: Any) -> Reader:
    def restore(value: object, location: str) -> Any:
        if type(value) is not declaration:
            raise FieldMismatch(location, f"is {_kind_of(value)}; expected {_SCALARS[declaration]}")
        return value

    return restore


def _bounded(declaration: Any, bound: Bound) -> Reader:
    read = _any_number if bound is MAY_BE_INFINITE else make_reader(declaration)
    holds, expected = bound.holds, bound.expected

    def restore(value: object, location: str) -> Any:
        value = read(value, location)
        if not holds(value):
            raise OutOfBounds(location, f"is {_kind_of(value)}; expected {expected}")
        return value

    return restore


def _number(value: object, location: str) -> float:
    number = _any_number(value, location)
    if type(number) is float and not isfinite(number):
        raise OutOfBounds(location, f"is {_kind_of(number)}; expected a finite number")
    return number


def _any_number(value: object, location: str) -> float:
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldMismatch(location, f"is {_kind_of(value)}; expected a number")
    return value


def _moment(value: object, location: str) -> datetime:
    expected = "expected a time with its zone, such as 2026-01-31T09:30:00Z"
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise FieldMismatch(location, f"is {_kind_of(value)}; {expected}") from None
    if moment.tzinfo is None:
        raise FieldMismatch(location, f"has no time zone; {expected}")
    return moment


def _literal(choices: tuple[Any, ...]) -> Reader:
    expected = " or ".join(map(repr, choices))

    def restore(value: object, location: str) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise FieldMismatch(location, f"is {_kind_of(value)}; expected {expected}")
        return value

    return restore


def _union(arms: tuple[Any, ...]) -> Reader:
    # Text first: the grade "inf" is text and not a number.
    may_be_null = NoneType in arms
    others = [arm for arm in arms if arm is not NoneType]
    tries = [make_reader(arm) for arm in sorted(others, key=lambda arm: arm is not str)]

    def restore(value: object, location: str) -> Any:
        if value is None and may_be_null:
            return None
        misfits: list[FieldMismatch] = []
        try:
            for attempt in tries:
                try:
                    return attempt(value, location)
                except OutOfBounds:
                    raise
                except FieldMismatch as misfit:
                    misfits.append(misfit)
            raise max(misfits, key=lambda misfit: len(misfit.location))
        finally:
            # Each refers to this frame: a cycle that keeps the session until garbage is collected.
            misfits.clear()

    return restore


def _tuple(arms: tuple[Any, ...]) -> Reader:
    endless = arms[-1] is Ellipsis
    each = [make_reader(arm) for arm in arms if arm is not Ellipsis]

    def restore(value: object, location: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise FieldMismatch(location, f"is {_kind_of(value)}; expected a list")
        if not endless and len(value) != len(each):
            raise FieldMismatch(location, f"has {len(value)} items; expected {len(each)}")
        makers = each * len(value) if endless else each
        return tuple(
            make(item, f"{location}[{i}]")
            for i, (make, item) in enumerate(zip(makers, value, strict=True))
        )

    return restore


def _mapping(arms: tuple[Any, ...]) -> Reader:
    inner = make_reader(arms[1])

    def restore(value: object, location: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise FieldMismatch(location, f"is {_kind_of(value)}; expected a map")
        try:
            return {key: inner(item, key) for key, item in value.items()}
        except FieldMismatch as misfit:
            raise misfit.within(location) from None

    return restore


def _dataclass(declaration: Any) -> Reader:
    hints = get_type_hints(declaration, include_extras=True)
    settable = [field for field in fields(declaration) if field.init]
    makers = {field.name: make_reader(hints[field.name]) for field in settable}
    required_fields = [
        f.name for f in settable if f.default is MISSING and f.default_factory is MISSING
    ]

    def restore(value: object, location: str) -> Any:
        if not isinstance(value, dict):
            raise FieldMismatch(location, f"is {_kind_of(value)}; expected a map")
        for name in required_fields:
            if name not in value:
                raise FieldMismatch(f"{location}.{name}", "is missing")
        try:
            arguments = {
                name: make(value[name], name) for name, make in makers.items() if name in value
            }
            return declaration(**arguments)
        except FieldMismatch as misfit:
            raise misfit.within(location) from None
        except WitanError as error:
            raise FieldMismatch(location, f"cannot be: {error}") from error

    return restore


def _kind_of(value: object) -> str:
    """Describe a value in JSON's words."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"the number {value}"


_READERS: Mapping[Any, Callable[[tuple[Any, ...]], Reader]] = {
    Literal: _literal,
    Mapping: _mapping,
    Union: _union,
    UnionType: _union,
    tuple: _tuple,
}


SCHEMA = 1
"""Version of the record; a later one may add fields, never change the meaning of one."""


def session_to_json(session: Session, *, indent: int | None = None) -> str:
    """Write a session as one JSON object: results first, then events."""
    return dump_record(record_fields(session), indent)


def record_fields(session: Session) -> dict[str, Any]:
    """Return the fields of a session's record; `dump_record` writes them."""
    return {
        "witan_session": SCHEMA,
        "witan": session.opening.witan,
        "session": session.id,
        "simulated": session.is_simulated,
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
        **({} if session.opening.judging is None else {"verdict": session.verdict}),
        **({"rankings": session.rankings} if session.rankings else {}),
        "synthesis": session.synthesis,
        "cost": session.cost,
        "seconds": session.seconds,
        "events": [_event(event) for event in session.events],
    }


def session_from_json(text: str, source: str = "the session") -> Session:
    """Read a session from its record.

    Raises
    ------
    SessionFileError
        If it contains no session, or one that this Witan cannot read; it names the field.
    """
    record = _loads(text, source)
    if "witan_session" not in record:
        raise SessionFileError(source, "is not a session: it has no field witan_session")
    if record["witan_session"] != SCHEMA:
        raise SessionFileError(
            source,
            f"is a session of version {record['witan_session']!r}, and this Witan reads version "
            f"{SCHEMA}; update Witan to read it",
        )
    events = record.get("events")
    if not isinstance(events, list):
        raise SessionFileError(source, "is not a complete session: events is not a list")
    try:
        return restore_session(
            [_read_event(event, _locate_event(event, i)) for i, event in enumerate(events)]
        )
    except FieldMismatch as misfit:
        location = misfit.location.replace(".", ": ", 1)
        raise SessionFileError(source, f"{location} {misfit.problem}") from misfit
    except NothingToCount as error:
        raise SessionFileError(source, f"{error}; {DAMAGED}") from error


def _locate_event(record: object, index: int) -> str:
    """Name an event by its number, else by its index in the list."""
    seq = record.get("seq") if isinstance(record, dict) else None
    return f"event {seq}" if type(seq) is int else f"events[{index}]"


def event_to_json(event: Event, *, is_simulated: bool = False) -> str:
    """Write an event as one line of JSON, marked if `is_simulated`."""
    try:
        record = _event(event, is_simulated=is_simulated)
        _check_fields(record, type(event))
        options = _OUR_CLASSES if event.at.tzinfo is UTC else _OUR_CLASSES | _OUR_TIMES
        json_text = orjson.dumps(record, _flatten_finite, options).decode()
    except (TypeError, ValueError):  # an infinity, an integer beyond 64 bits, half a character
        return dump_record(_event(event, is_simulated=is_simulated))
    return escape_json(json_text)


def event_from_json(line: str, source: str = "the event") -> Event:
    """Read an event from its line."""
    try:
        return _read_event(_loads(line, source), "event")
    except FieldMismatch as misfit:
        place = misfit.location.removeprefix("event.")
        location = "the record" if place == "event" else place
        raise SessionFileError(source, f"{location} {misfit.problem}") from misfit


def procedure_to_json(procedure: Procedure) -> str:
    """Write a procedure as JSON, every field in a stable order.

    Different procedures have different JSON, in this process and in any other.
    """
    return dump_record(procedure)


def _event(event: Event, *, is_simulated: bool = False) -> dict[str, Any]:
    kind: Any = type(event)
    names, get_values = _event_fields(kind)
    record = dict(zip(names, get_values(event), strict=True))
    if not event.provisional:
        del record["provisional"]
    if is_simulated:
        record["simulated"] = True
    return record


@cache
def _event_fields(kind: Any) -> tuple[Sequence[str], Callable[[Event], tuple[Any, ...]]]:
    """Return the field names of an event's record, and their getter."""
    names = [field.name for field in fields(kind)]
    return ["event", *names], attrgetter("kind", *names)


def _read_event(record: object, location: str) -> Event:
    if not isinstance(record, dict) or "event" not in record:
        raise FieldMismatch(location, "is not an event; expected a map with the field 'event'")
    kind = record["event"]
    if not isinstance(kind, str) or kind not in EVENTS:
        raise FieldMismatch(
            location, f"is of the unknown kind {kind!r}; a later version of Witan may read it"
        )
    event_type: Any = EVENTS[kind]
    if kind == SessionOpened.kind:
        record = _name_spending(record)
    # Being shown before it was durable does not change an event.
    stored_fields = {name: value for name, value in record.items() if name != "provisional"}
    event: Event = make_reader(event_type)(stored_fields, location)
    return drop_sheet_labels(event)


def _name_spending(record: dict[str, Any]) -> dict[str, Any]:
    """Read the option of earlier versions that `spend` has replaced."""
    procedure = record.get("procedure")
    if isinstance(procedure, dict) and procedure.get("stop_when_decided") is True:
        return {**record, "procedure": {**procedure, "spend": "until_decided"}}
    return record


def _ballot(ballot: Ballot) -> dict[str, Any]:
    """Return a ballot as in ballot files, without fields at their default."""
    ballot = drop_native(ballot)
    record = {"session": ballot.session, "reviewer": ballot.reviewer, "ranking": ballot.groups}
    for each in fields(ballot):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        value = getattr(ballot, each.name)
        if each.name != "groups" and value != default:
            record[each.name] = value
    return record if ballot.groups else {k: v for k, v in record.items() if k != "ranking"}


def dump_record(record: object, indent: int | None = None) -> str:
    """Write the fields of a record as JSON."""
    try:
        json_text = _encoder(indent).encode(record)
    except ValueError:  # an infinity, which JSON lacks, so every value is checked
        json_text = _encoder(indent).encode(to_plain(record))
    return escape_json(json_text)


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False, check_circular=False, allow_nan=False, indent=indent, default=_flatten
    )


_OUR_CLASSES = orjson.OPT_PASSTHROUGH_DATACLASS
"""Option for dataclasses, of which a record omits derived fields and the scale 1-10."""

_OUR_TIMES = orjson.OPT_PASSTHROUGH_DATETIME
"""Option for times of other zones than UTC, whose seconds orjson would round."""


def _flatten_finite(value: Any) -> Any:
    """Flatten a value; refuse an infinity in it, which orjson would write as null."""
    record = _flatten(value)
    _check_fields(record, type(value))
    return record


def _check_fields(record: dict[str, Any], kind: Any) -> None:
    for name in _fields_with_floats(kind):
        _check_finite(record[name])


def _check_finite(value: object) -> None:
    """Refuse an infinity in a number or in a container of numbers."""
    if type(value) is float:
        if not isfinite(value):
            raise ValueError(value)
    elif isinstance(value, Mapping | tuple | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            _check_finite(each)


@cache
def _fields_with_floats(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass that may contain an infinity."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple(f.name for f in fields(kind) if f.init and _may_be_float(hints[f.name]))


def _may_be_float(declaration: Any) -> bool:
    return declaration in (float, Any, object) or any(map(_may_be_float, get_args(declaration)))


def _flatten(value: Any) -> Any:
    kind: Any = type(value)
    return _flattener(kind)(value)


@cache
def _flattener(kind: Any) -> Callable[[Any], Any]:
    if issubclass(kind, Mapping):
        return dict
    if issubclass(kind, datetime):
        return datetime.isoformat
    names = [field.name for field in fields(kind) if field.init]
    if issubclass(kind, Ballot):
        return lambda value: _flatten_ballot({name: getattr(value, name) for name in names})
    return lambda value: {name: getattr(value, name) for name in names}


def _flatten_ballot(ballot: dict[str, Any]) -> dict[str, Any]:
    """Drop the scale 1-10 from a ballot's fields, and write its time."""
    if ballot["scale"] is not None and ballot["scale"].is_native:
        ballot["scale"] = None
    if ballot["at"] is not None:
        ballot["at"] = ballot["at"].isoformat()
    return ballot


def _loads(text: str, source: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        if error.msg == "Extra data":
            problem = f"holds more than one session: another value begins at {position}"
            raise SessionFileError(source, f"{problem}, as in a file of ballots") from error
        is_opened, is_closed = text.lstrip().startswith("{"), text.rstrip().endswith("}")
        unended = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        cut = unended or (is_opened and not is_closed)
        reason = "the file is truncated there" if cut else error.msg
        raise SessionFileError(source, f"is not JSON at {position}: {reason}") from error
    except (RecursionError, ValueError) as error:
        problem = "is not a session: something in it is nested too deeply, or a number is too long"
        raise SessionFileError(source, problem) from error
    if not isinstance(record, dict):
        raise SessionFileError(source, "is not a JSON object; expected {…} with one session")
    return record


@dataclass(frozen=True, slots=True)
class SessionImport:
    """One session of a file.

    Parameters
    ----------
    session
        Its name; unique in a history.
    at
        Time of the question; None if unknown, then the time of the import counts.
    answers, lengths
        Text by candidate, or its length if only that is known.
    session_record
        A whole council session with its events; ballots and answers then come from it.
    simulated
        True if a seat plays a script.
    closing
        The final answer of the council.
    question, category
        The question and its category, as far as the file says.
    ballots
        The ballots of models and people.
    models
        Model by candidate.
    kept
        By reviewer, pairs judged alike in both orders, and all pairs judged in both.
    repaired
        Reviewers whose reviews needed a repair.
    took
        Cost and time of answers.
    entries
        Rows of the history if counted already; else they are counted on import.
    """

    session: str
    at: datetime | None = None
    question: str = ""
    category: str | None = None
    ballots: Sequence[Ballot] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    session_record: Session | None = None
    simulated: bool = False
    closing: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    repaired: Collection[str] = ()
    took: tuple[AnswerEntry, ...] = ()
    entries: Entries | None = None


ImportRedactor = Callable[[SessionImport], tuple[SessionImport, Mapping[str, str]]]
"""Redacts an import for a reader, and maps hidden names to those shown instead."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """Counts of what an import added.

    Parameters
    ----------
    sessions
        New sessions.
    already
        Sessions that were already stored; votes on them may still be new.
    ballots, by_people
        New ballots, and how many of them people cast.
    """

    sessions: int
    already: int
    ballots: int
    by_people: int = 0
