"""Rows of sessions and their events, ballots, answers and standings.

Events are written once, in order, by one holder.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from witan.core.ballot import Ballot, BallotTable, to_record
from witan.core.scale import NATIVE
from witan.core.session_ballots import (
    AnswerEntry,
    BallotEntry,
    Entries,
    GradedBlock,
    GradedEntries,
    SessionEntry,
    StandingEntry,
)
from witan.errors import (
    HistoryConflict,
    HistoryError,
    InvalidParameter,
    Remedy,
    SessionFileError,
    Way,
)
from witan.history.database import Database, blocks
from witan.history.schema import MICROSECONDS_A_DAY, bucket_of, code_of

if TYPE_CHECKING:
    from witan.deliberation.events import Event, SessionOpened
    from witan.deliberation.session import Session

ENTRY_TABLES = ("ballots", "answers", "standings", "matchups")
"""Tables filled by counting a session."""

BLOCK_SIZE = 500
"""Maximum number of values in one statement."""

_BALLOTS = (
    *("session", "ballot", "reviewer", "human", "paired", "abstained", "repaired", "flat"),
    *("kept", "compared", "weight", "models", "own", "shares", "grades", "positions", "chars"),
    *("criteria", "criterion_grades", "body"),
)

_ANSWERS = (
    *("session", "seat", "model", "chars", "seconds", "cost_usd", "output_tokens", "failed"),
    "body",
)

_STANDINGS = ("session", "human", "rule", "model", "score", "z", "votes", "offered", "wins")

_MATCHUPS = ("session", "human", "models", "wins", "losses", "ties", "p_beats")


_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def to_microseconds(at: datetime) -> int:
    """Convert a time to microseconds of UTC since 1970, exactly.

    Raises `InvalidParameter` if it has no time zone.
    """
    if at.tzinfo is None:
        raise InvalidParameter("a time", str(at), "a time with its zone, such as datetime.now(UTC)")
    return (at - _EPOCH) // _MICROSECOND


def to_datetime(at_us: int) -> datetime:
    """Convert microseconds of UTC since 1970 to a time."""
    return _EPOCH + timedelta(microseconds=at_us)


def make_storable(text: str) -> str:
    """Replace characters that no column can store."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def is_storable(text: str) -> bool:
    """True if a column can store a text unchanged."""
    return make_storable(text) == text


def finite(value: float | None) -> float | None:
    """Return a finite number, else None."""
    return None if value is None or not isfinite(value) else float(value)


_code_of = lru_cache(maxsize=4096)(code_of)


def _json_number(value: float | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return int.__repr__(value)
    return float.__repr__(value) if isfinite(value) else "null"


def _json_list(values: Sequence[float | None]) -> str:
    # Millions of these are written. Python's repr is JSON, except for spaces and None.
    text = repr([*values]).replace(" ", "").replace("None", "null")
    # nan, inf, False, True, or another library's number
    if "a" in text or "i" in text or "T" in text:
        return f"[{','.join([_json_number(value) for value in values])}]"
    return text


# In each of these columns equal numbers have one type, and the same few lists recur.
_OWN_LIST, _SHARES_LIST, _POSITIONS_LIST, _CHARS_LIST, _WINS_LIST, _P_BEATS_LIST = (
    lru_cache(maxsize=1 << 14)(_json_list) for _ in range(6)
)

# The same few grades recur, in ever new lists.
_GRADE = lru_cache(maxsize=1 << 14)(_json_number)


def _graded_lists(block: GradedBlock) -> list[tuple[Any, ...]]:
    """Return the columns of the rows of a block's ballots."""
    tables: tuple[NDArray[Any], ...] = (block.own, block.shares, block.grades, block.left_out)
    own, shares, grades, left_out = (cells.reshape(-1, cells.shape[2]) for cells in tables)
    ranked = ~np.isnan(shares)
    least, most = (np.where(ranked, shares, end) for end in (2.0, -1.0))
    flat = (ranked.sum(axis=1) > 1) & (least.min(axis=1) == most.max(axis=1))
    seats = np.where(left_out.any(axis=1), left_out.argmax(axis=1), -1)
    texts = [_json_lists(cells, left_out) for cells in (own.astype(np.int8), shares, grades)]
    return list(zip(seats.tolist(), flat.astype(int).tolist(), *texts, strict=True))


def _json_lists(cells: NDArray[Any], left_out: NDArray[np.bool_]) -> list[str]:
    """Encode each row of numbers, less one cell, as a JSON list."""
    shortened = left_out.any(axis=1)
    texts = np.full(len(cells), "", dtype=object)
    for rows in (~shortened, shortened):
        if rows.any():
            chosen = cells[rows][~left_out[rows]].reshape(rows.sum(), -1)
            written = orjson.dumps(chosen, option=orjson.OPT_SERIALIZE_NUMPY)[2:-2].decode()
            texts[rows] = [f"[{text}]" for text in written.split("],[")]
    return texts.tolist()


class _Codes(dict[str, int]):
    """The code of each name, made when it is first read."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def __missing__(self, name: str) -> int:
        code = self[name] = _code_of(name)
        stored_name = make_storable(name)
        other = self.names.setdefault(code, stored_name)
        if other != stored_name:
            problem = f"{name!r} and {other!r} would share a code"
            raise HistoryError("the history", problem, "rename one of them")
        return code


class Rows:
    """Rows of any number of counted sessions, inserted together."""

    def __init__(self) -> None:
        self._ballots: list[tuple[Any, ...]] = []
        self._answers: list[tuple[Any, ...]] = []
        self._standings: list[tuple[Any, ...]] = []
        self._matchups: list[tuple[Any, ...]] = []
        self._codes = _Codes()
        self._code_lists: dict[tuple[str, ...], str] = {}
        self._graded_lists: dict[GradedBlock, list[tuple[Any, ...]]] = {}

    def add(
        self, session: str, entries: Entries, ballots: Sequence[Ballot], answers: Mapping[str, str]
    ) -> None:
        """Collect the rows of one session."""
        if isinstance(entries.ballots, GradedEntries):
            self._ballots += self._graded_ballots(session, entries.ballots, ballot_bodies(ballots))
        else:
            numbered_ballots = zip(entries.ballots, ballot_bodies(ballots), strict=True)
            for number, (entry, body) in enumerate(numbered_ballots, start=1):
                self._ballots.append(self._ballot(session, number, entry, body))
        seats = {entry.seat for entry in entries.answers}
        unanswered = [
            AnswerEntry(seat, seat, chars=len(text))
            for seat, text in answers.items()
            if seat not in seats
        ]
        for answer in (*entries.answers, *unanswered):
            self._answers.append(self._answer(session, answer, answers.get(answer.seat)))
        self.add_standings(session, entries.standings)
        for matchup in entries.matchups:
            counts = map(_WINS_LIST, (matchup.wins, matchup.losses, matchup.ties))
            models, p_beats = self._codes_of(matchup.models), _P_BEATS_LIST(matchup.p_beats)
            human = int(matchup.kind == "human")
            self._matchups.append((session, human, models, *counts, p_beats))

    def add_standings(self, session: str, standings: Iterable[StandingEntry]) -> None:
        """Collect standings of one session."""
        self._standings += [
            (
                *(session, int(s.kind == "human"), s.rule, self._codes[s.model]),
                *(finite(s.score), finite(s.z), s.votes, s.offered, float(s.wins)),
            )
            for s in standings
        ]

    def write(self, database: Database) -> None:
        """Write all rows, within the caller's transaction.

        Names come first and in a fixed order, which rules out a deadlock of two writers.
        """
        self._write_names(database)
        database.insert("ballots", _BALLOTS, self._ballots)
        database.insert("answers", _ANSWERS, self._answers)
        database.insert("standings", _STANDINGS, self._standings)
        database.insert("matchups", _MATCHUPS, self._matchups)

    def _write_names(self, database: Database) -> None:
        new_names = dict(sorted(self._codes.names.items()))
        new: list[tuple[int, str]] = []
        while new_names:
            database.insert("names", ("code", "name"), new, ignore_existing=True)
            # Locked, so that no other process deletes them before this transaction ends.
            for code, name in read_names(database, list(new_names), lock=True).items():
                if new_names.pop(code) != name:
                    problem = f"{self._codes.names[code]!r} and {name!r} would share a code"
                    raise HistoryError(database.location, problem, "rename one of them")
            new = [*new_names.items()]

    def _codes_of(self, names: tuple[str, ...]) -> str:
        known_list = self._code_lists.get(names)
        if known_list is None:
            codes = map(str, map(self._codes.__getitem__, names))
            known_list = self._code_lists[names] = f"[{','.join(codes)}]"
        return known_list

    def _ballot(self, session: str, place: int, entry: BallotEntry, body: str) -> tuple[Any, ...]:
        criteria = by_criterion = "[]"
        if entry.criteria:
            criteria = self._codes_of(entry.criteria)
            rows = [f"[{','.join(map(_GRADE, row))}]" for row in entry.criterion_grades]
            by_criterion = f"[{','.join(rows)}]"
        return (
            session,
            place,
            self._codes[entry.reviewer],
            int(entry.kind == "human"),
            int(entry.paired),
            int(entry.abstained),
            int(entry.repaired),
            int(entry.flat),
            entry.kept,
            entry.compared,
            float(entry.weight),
            self._codes_of(entry.models),
            _OWN_LIST(entry.own),
            _SHARES_LIST(entry.shares),
            f"[{','.join(map(_GRADE, entry.grades))}]",
            _POSITIONS_LIST(entry.positions),
            _CHARS_LIST(entry.chars),
            criteria,
            by_criterion,
            body,
        )

    def _graded_ballots(
        self, session: str, entries: GradedEntries, bodies: Iterable[str]
    ) -> Iterator[tuple[Any, ...]]:
        """Rows like those of `_ballot`, from the lists of a block."""
        block, row = entries.reading.block, entries.reading.row
        if block not in self._graded_lists:
            self._graded_lists[block] = _graded_lists(block)
        lists = self._graded_lists[block][row * len(entries) : (row + 1) * len(entries)]
        columns = entries.reviewers, entries.reading.kinds, entries.repaired, entries.order_counts
        seat, texts = None, ("", "", "")
        for place, (
            reviewer,
            kind,
            repaired,
            pairs,
            (left_out, flat, *lists_of_ballot),
            body,
        ) in enumerate(zip(*columns, lists, bodies, strict=True), start=1):
            if seat != left_out:
                seat, texts = left_out, self._texts_without(left_out, entries)
            models, positions, chars = texts
            yield (
                *(session, place, self._codes[reviewer], int(kind == "human"), 0, 0, int(repaired)),
                *(flat, *pairs, 1.0, models, *lists_of_ballot, positions, chars, "[]", "[]", body),
            )

    def _texts_without(self, seat: int, entries: GradedEntries) -> tuple[str, str, str]:
        """Return a ballot's models, places and lengths without one seat."""
        end = len(entries.models) if seat < 0 else seat
        models = entries.models[:end] + entries.models[end + 1 :]
        chars = entries.chars[:end] + entries.chars[end + 1 :]
        return self._codes_of(models), _POSITIONS_LIST((0,) * len(models)), _CHARS_LIST(chars)

    def _answer(self, session: str, entry: AnswerEntry, text: str | None) -> tuple[Any, ...]:
        return (
            *(session, make_storable(entry.seat), self._codes[entry.model], entry.chars),
            *(finite(entry.seconds), finite(entry.cost_usd), entry.output_tokens),
            *(int(entry.failed), None if text is None else make_storable(text)),
        )


def read_names(database: Database, codes: Sequence[int], *, lock: bool = False) -> dict[int, str]:
    """Map known codes to names; `lock` them against deletion."""
    names: dict[int, str] = {}
    sharing = database.sharing if lock else ""
    for block in blocks(codes, BLOCK_SIZE):
        placeholders = ", ".join(str(int(code)) for code in block)
        sql = f"SELECT code, name FROM names WHERE code IN ({placeholders}) ORDER BY code"  # noqa: S608
        names.update((code, name) for code, name in database.rows(sql + sharing))
    return names


COUNCIL = "council"
"""Source of a council session that was not imported."""

LATEST_ALIAS = "last"
"""Name that means the latest session; no session may have it."""

NO_HOLDER = ""
"""Holder of a closed session, which no process writes to."""

_COLUMNS = (
    *("session", "at_us", "day", "bucket", "category", "simulated", "rejudged", "source"),
    *("parent", "relation", "added_us", "revision", "status", "holder"),
    *("question", "closing", "searched", "rule", "decision"),
    *("cost_usd", "seconds", "kendall_w", "agreement"),
    *("noise_unit", "noise_variance", "noise_df", "effect_variance"),
)

_CLOSING_COLUMNS = ("category", *_COLUMNS[_COLUMNS.index("status") :])
"""Columns written again when a session closes; the bucket stays."""

_CLOSE_SQL = (
    f"UPDATE sessions SET {', '.join(f'{name} = :{name}' for name in _CLOSING_COLUMNS)},"  # noqa: S608
    " revision = revision + 1 WHERE session = :session"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The row of a session, written when it opens, updated when counted.

    `source`: `COUNCIL`, or the file from which it was imported.
    `holder`: the token of the only writer allowed to add to it.
    `entry`: None if it is not counted.
    `parent`, `relation`: the session from which it derives, and how; written once, when it opens.
    `judges_only`: true if its answers come from another session, which counts them.
    `added`: when it was added to the history; None if when it was asked.
    """

    session: str
    at: datetime
    category: str | None
    simulated: bool
    source: str
    status: str
    question: str
    holder: str = NO_HOLDER
    closing: str | None = None
    rule: str | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    entry: SessionEntry | None = None
    parent: str | None = None
    relation: str | None = None
    decision: str | None = None
    judges_only: bool = False
    added: datetime | None = None

    @property
    def is_rejudged(self) -> bool:
        """True if its answers come from, or are compared with, another session."""
        return self.judges_only or self.relation in ("rejudged", "compared")

    @property
    def shares_answers(self) -> bool:
        """True if it contains answers of its parent."""
        return self.relation in ("rejudged", "retried", "compared")

    @property
    def at_us(self) -> int:
        """The time of the question in microseconds since 1970, UTC."""
        return to_microseconds(self.at)

    def values(self, bucket: int) -> tuple[Any, ...]:
        """Return the columns' values, in a bucket."""
        at_us = self.at_us
        added_us = at_us if self.added is None else to_microseconds(self.added)
        return (
            *(self.session, at_us, at_us // MICROSECONDS_A_DAY, bucket, _text(self.category)),
            *(int(self.simulated), int(self.is_rejudged), make_storable(self.source)),
            *(_text(self.parent), self.relation, added_us, 0, *self._results()),
        )

    def closing_values(self) -> dict[str, Any]:
        """Return the columns written at closing, by name."""
        values = zip(_CLOSING_COLUMNS, (_text(self.category), *self._results()), strict=True)
        return {"session": self.session, **dict(values)}

    def _results(self) -> tuple[Any, ...]:
        question, closing = make_storable(self.question), _text(self.closing)
        return (
            *(self.status, self.holder, question, closing),
            *(f"{question} {closing or ''}".casefold(), self.rule, self.decision),
            *(finite(self.cost_usd), finite(self.seconds), *_count_values(self.entry)),
        )


def _text(text: str | None) -> str | None:
    return None if text is None else make_storable(text)


def _count_values(entry: SessionEntry | None) -> tuple[Any, ...]:
    if entry is None:
        return (None,) * 6
    noise = entry.noise
    fit = (None,) * 4 if noise is None else (
        noise.unit,
        finite(noise.variance),
        finite(noise.df),
        finite(noise.effect_variance),
    )  # fmt: skip
    return (finite(entry.kendall_w), finite(entry.agreement), *fit)


def insert_sessions(
    database: Database, rows: Iterable[SessionRow], *, ignore_existing: bool = False
) -> int:
    """Insert the rows of sessions; return the number inserted."""
    sessions = list(rows)
    by_name = {row.session: row for row in sessions}
    check_names(database, [row.session for row in sessions])
    values = [row.values(_bucket(database, row, by_name)) for row in sessions]
    return database.insert("sessions", _COLUMNS, values, ignore_existing=ignore_existing)


def check_names(database: Database, sessions: Iterable[str]) -> None:
    """Refuse unstorable or reserved names of sessions."""
    for session in sessions:
        reason = ""
        if not is_storable(session):
            reason = "no database can store it"
        elif session == LATEST_ALIAS:
            reason = "it means the latest session"
        if reason:
            problem = f"{session!r} cannot name a session: {reason}"
            remedy = Remedy(
                "give it another name", Way("import the file with ", {"prefix": "TEXT"})
            )
            raise HistoryError(database.location, problem, remedy)


def _bucket(database: Database, row: SessionRow, new_rows: Mapping[str, SessionRow]) -> int:
    """Return the bucket of the answers' session of origin.

    An unknown parent counts as the origin.
    """
    origin = row
    for _ in new_rows:
        if not origin.shares_answers or origin.parent is None:
            break
        if origin.parent not in new_rows:
            sql = "SELECT bucket FROM sessions WHERE session = :session"
            parents = database.rows(sql, {"session": _text(origin.parent)})
            return int(parents[0][0]) if parents else bucket_of(origin.parent)
        origin = new_rows[origin.parent]
    return bucket_of(origin.session)


def close_session(database: Database, values: Mapping[str, Any]) -> None:
    """Overwrite the values of the opening with the closing ones."""
    database.execute(_CLOSE_SQL, values)


def lock_session(database: Database, session: str) -> str | None:
    """Lock a session's row for the transaction; return its holder, or None."""
    sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
    rows = database.rows(sql, {"session": session})
    return rows[0][0] if rows else None


def update_count(database: Database, entry: SessionEntry) -> None:
    """Store a new count of a session, and increase its revision."""
    names = _COLUMNS[-6:]
    values = dict(zip(names, _count_values(entry), strict=True))
    assignments = ", ".join(f"{name} = :{name}" for name in names)
    database.execute(
        f"UPDATE sessions SET {assignments}, revision = revision + 1 WHERE session = :session",  # noqa: S608
        {**values, "session": entry.session},
    )


_EVENT_COLUMNS = ("session", "seq", "kind", "at_us", "body")

EventRow = tuple[str, int, str, int, str]
"""A stored event, in the order of the columns."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The next events of one session from one writer.

    `closing`: the whole session, if its last event is in the batch.
    `is_continued`: its writer has stored everything before the batch, and nothing of it.
    """

    opening: "SessionOpened"
    holder: str
    events: "tuple[Event, ...]"
    closing: "Session | None" = None
    is_continued: bool = False

    @property
    def session(self) -> str:
        """The session's name."""
        return self.opening.session


def read_events(database: Database, session: str) -> "list[Event]":
    """Read the events of a session, in order."""
    return [_parse(database, session, seq, body) for seq, body in _bodies(database, session)]


def _parse(database: Database, session: str, seq: int, body: str) -> "Event":
    from witan.deliberation.record import event_from_json

    name = f"event {seq} of the session {session}"
    try:
        return event_from_json(body, name)
    except SessionFileError as error:
        raise damaged_history(database, str(error)) from error


def ballot_bodies(ballots: Sequence[Ballot]) -> Iterator[str]:
    """Write the records of ballots as JSON; those of a table without making its ballots."""
    if isinstance(ballots, BallotTable) and (ballots.scale is None or ballots.scale.is_native):
        columns = ballots.sessions, ballots.reviewers, ballots.grades
        for session, reviewer, grades in zip(*columns, strict=True):
            start = {"session": session} if session else {}
            yield _dump({**start, "reviewer": reviewer, "grades": grades})
    else:
        yield from (_dump(to_record(ballot)) for ballot in ballots)


def normalize_body(body: str) -> str:
    """Write a stored body as `ballot_bodies` does.

    Earlier versions wrote it with spaces, and with a recognised scale even if it was 1-10.
    """
    try:
        record = json.loads(body)
        if isinstance(record, dict) and record.get("scale") == str(NATIVE):
            del record["scale"]
        return _dump(record)
    except (ValueError, RecursionError):  # damaged, so it is no other's
        return body


def _dump(record: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(record).decode()
    except TypeError:
        body = json.dumps(record, separators=(",", ":"))
    try:
        return orjson.dumps(json.loads(body)).decode()  # numbers of NumPy, as they are read back
    except TypeError:  # an integer beyond 64 bits, or half a character
        return body


def damaged_history(database: Database, problem: str) -> HistoryError:
    """Return the error of a history with a session that cannot be read."""
    remedy = "run witan doctor, which makes a copy and explains how to continue"
    if database.dialect != "sqlite":  # of a server no copy is made
        remedy = "restore a backup of the database, or delete the session with witan forget"
    damage = "is damaged, or was written by a later version of Witan"
    return HistoryError(database.location, f"{damage}: {problem}", remedy)


def admit_events(database: Database, batch: EventBatch) -> "tuple[Event, ...] | HistoryError":
    """Return the events to store, or the error that prevents it.

    An error is returned, not raised: other sessions of the transaction continue.
    """
    if not batch.is_continued and _insert_opening(database, batch):
        return batch.events
    holder = lock_session(database, batch.session)
    if holder is None:
        problem = f"the session {batch.session} was deleted"
        return HistoryError(database.location, problem, "ask the question again")
    if batch.is_continued and holder == batch.holder:
        return batch.events  # only this writer may have added any
    new = _new_events(database, batch)
    if new != () and holder != batch.holder:
        problem = "was resumed by another process, or is closed"
        return _refusal(database, batch, problem, "let that process continue, or resume it again")
    if new is None:
        problem = "has continued differently in the history; two runs are never merged"
        return _refusal(database, batch, problem, "resume it from the history")
    return new


def insert_events(database: Database, rows: Sequence[EventRow]) -> None:
    """Insert admitted events of any number of sessions."""
    database.insert("events", _EVENT_COLUMNS, rows)


def opening_row(batch: EventBatch) -> SessionRow:
    """Make the row of an opening session."""
    opening = batch.opening
    return SessionRow(
        session=opening.session,
        at=opening.at,
        category=opening.category,
        simulated=opening.is_simulated,
        source=COUNCIL,
        status="interrupted",
        question=opening.question,
        holder=batch.holder,
        parent=opening.parent,
        relation=opening.relation,
        judges_only=bool(opening.answers) and opening.judging is None,
    )


def _insert_opening(database: Database, batch: EventBatch) -> bool:
    """Insert the row of an opening session; true if it is new."""
    is_opening = batch.events[:1] == (batch.opening,)
    return is_opening and insert_sessions(database, [opening_row(batch)], ignore_existing=True) == 1


def _new_events(database: Database, batch: EventBatch) -> "tuple[Event, ...] | None":
    """Return the events after the stored ones, or None if those differ."""
    params = {"session": batch.session}
    [(last,)] = database.rows("SELECT MAX(seq) FROM events WHERE session = :session", params)
    if last is None or not batch.events or batch.events[0].seq > last:
        return batch.events
    stored_bodies = dict(_bodies(database, batch.session))
    for event in batch.events:
        if event.seq <= last and not _is_same(event, stored_bodies.get(event.seq)):
            return None
    return tuple(event for event in batch.events if event.seq > last)


def _is_same(event: "Event", body: str | None) -> bool:
    from witan.deliberation.record import event_from_json, event_to_json

    # A record of an earlier version may lack fields; the values are still equal.
    return body is not None and (event_to_json(event) == body or event_from_json(body) == event)


def _refusal(database: Database, batch: EventBatch, problem: str, remedy: str) -> HistoryConflict:
    return HistoryConflict(database.location, f"the session {batch.session} {problem}", remedy)


def _bodies(database: Database, session: str) -> list[tuple[int, str]]:
    sql = "SELECT seq, body FROM events WHERE session = :session ORDER BY seq"
    return [(seq, body) for seq, body in database.rows(sql, {"session": session})]
