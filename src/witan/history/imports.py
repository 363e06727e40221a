"""Imports: a file enters whole, once, without merging into existing sessions."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from witan.core.ballot import Ballot
from witan.core.ballot_records import to_record
from witan.core.casts import Cast
from witan.core.entries import Entries
from witan.core.entry_builder import entries_of_many
from witan.deliberation.imported_session import ImportCounts, Imported
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, Remedy, Way, WitanError
from witan.history.counting import SessionRows, count_session
from witan.history.database import Database, in_list
from witan.history.events import event_rows, insert_events, read_events
from witan.history.locks import other_process
from witan.history.rows import (
    NOBODY,
    Rows,
    SessionRow,
    check_names,
    close_session,
    insert_sessions,
    lock_session,
    make_storable,
    to_microseconds,
)
from witan.history.votes import check_votes, vote

AT_ONCE = 500
"""Sessions counted and written at a time."""

_IMPORTS = ("digest", "path", "at_us", "n_sessions")


def import_sessions(
    database: Database, imported: Iterable[Imported], source: str, digest: str, at: datetime
) -> ImportCounts:
    """Import a file, all or nothing; importing it again changes nothing."""
    added, already = 0, 0
    cast = Counter[str]()
    with database.transaction():
        row = (digest, make_storable(source), to_microseconds(at), 0)
        if not database.insert("imports", _IMPORTS, [row], ignore_existing=True):
            return ImportCounts(0, find_import(database, digest) or 0, 0)
        for block in _blocks(imported):
            new, continued = _compare(database, block, source)
            already += len(block) - len(new) - len(continued)
            added += len(new) + len(continued)
            cast += Counter(ballot.kind for record in continued for ballot in record.ballots)
            cast += _vote(database, block, new)
            cast += _write(database, new, source, at)
            sessions = [(digest, session) for session in block]
            database.insert("imported", ("digest", "session"), sessions, ignore_existing=True)
        database.execute(
            "UPDATE imports SET n_sessions = :n WHERE digest = :digest",
            {"n": added + already, "digest": digest},
        )
    return ImportCounts(added, already, cast.total(), cast["human"])


def find_import(database: Database, digest: str) -> int | None:
    """Return an imported file's number of sessions; None for an unknown digest."""
    sql = "SELECT n_sessions FROM imports WHERE digest = :digest"
    return next((n for (n,) in database.rows(sql, {"digest": digest})), None)


def _blocks(imported: Iterable[Imported]) -> Iterator[dict[str, Imported]]:
    """Cut sessions into blocks without repeated names."""
    block: dict[str, Imported] = {}
    for one in imported:
        if one.session in block or len(block) == AT_ONCE:
            yield block
            block = {}
        block[one.session] = one
    if block:
        yield block


def _compare(
    database: Database, block: Mapping[str, Imported], source: str
) -> tuple[list[Imported], list[Session]]:
    """Return new sessions and continuations of stored ones; refuse others."""
    check_names(database, block)
    among, params = in_list(block)
    sql = f"SELECT session FROM sessions WHERE session IN {among} ORDER BY session"  # noqa: S608
    # The lock waits for a process that forgets one, and keeps the others from starting to.
    known = {session for (session,) in database.rows(sql + database.locking, params)}
    rows = Rows()
    continued = []
    for session in sorted(known):
        if _is_stored(database, block[session]):
            continue
        record = block[session].session_record
        if record is None or not complete_record(database, record, rows):
            raise HistoryError(
                source,
                f"the session {session} is in the history {database.where} with other ballots; "
                "nothing of the file was imported",
                Remedy(
                    "forget that session first", Way("import the file with ", {"prefix": "TEXT"})
                ),
            )
        continued.append(record)
    rows.write(database)
    return [one for session, one in block.items() if session not in known], continued


def _is_stored(database: Database, one: Imported) -> bool:
    """Tell whether this very session is stored, later votes aside."""
    if one.session_record is not None:
        events = list(one.session_record.events)
        # An earlier state of the session adds nothing.
        return read_events(database, one.session)[: len(events)] == events
    return Counter(_bodies(one.ballots)) <= _stored_bodies(database, one.session)


def _stored_bodies(database: Database, session: str) -> Counter[str]:
    sql = "SELECT body FROM ballots WHERE session = :session"
    return Counter(body for (body,) in database.rows(sql, {"session": session}))


def _bodies(ballots: Iterable[Ballot]) -> Iterator[str]:
    return (json.dumps(to_record(ballot)) for ballot in ballots)


def _vote(
    database: Database, block: Mapping[str, Imported], new: Sequence[Imported]
) -> Counter[str]:
    """Add people's votes in the file to stored council sessions."""
    unknown = {one.session for one in new}
    cast = Counter[str]()
    for session, one in block.items():
        votes = [ballot for ballot in one.ballots if ballot.kind == "human"]
        if session in unknown or one.session_record is None or not votes:
            continue
        stored = _stored_bodies(database, session)
        missing = [
            ballot for body, ballot in zip(_bodies(votes), votes, strict=True) if body not in stored
        ]
        if missing:
            vote(database, session, missing)
            cast["human"] += len(missing)
    return cast


def _write(database: Database, new: Sequence[Imported], source: str, at: datetime) -> Counter[str]:
    rows = Rows()
    all_rows = []
    for one, entries in zip(new, _entries(new, at), strict=True):
        own = _session_rows(one, entries, source, at)
        all_rows.append(own)
        own.add_to(rows)
    insert_sessions(database, [own.row for own in all_rows])
    for one in new:
        if one.session_record is not None:
            insert_events(database, event_rows(one.session, one.session_record.events))
    rows.write(database)
    counted = (own for own in all_rows if own.entries is not None)
    return Counter(ballot.kind for own in counted for ballot in own.ballots)


def _entries(new: Sequence[Imported], at: datetime) -> Iterator[Entries | None]:
    """Yield each session's entries: counted, brought along, or None for a record."""
    counted = entries_of_many(
        _cast(one, at) for one in new if one.entries is None and one.session_record is None
    )
    for one in new:
        needed = one.entries is None and one.session_record is None
        yield next(counted) if needed else one.entries


def _cast(one: Imported, at: datetime) -> Cast:
    return Cast(
        one.session,
        at if one.at is None else one.at,
        one.ballots,
        category=one.category,
        simulated=one.simulated,
        models=one.models,
        answers=one.took,
        kept=one.kept,
        repaired=one.repaired,
        lengths={**one.lengths, **{name: len(text) for name, text in one.answers.items()}},
    )


def _session_rows(one: Imported, entries: Entries | None, source: str, at: datetime) -> SessionRows:
    if one.session_record is not None:
        return _record_rows(one, source, at)
    assert entries is not None  # noqa: S101 - counted above, or brought along
    row = SessionRow(
        session=one.session,
        at=at if one.at is None else one.at,
        category=one.category,
        simulated=one.simulated,
        source=source,
        status="complete",
        question=one.question,
        closing=one.closing,
        entry=entries.session,
        added=at,
    )
    return SessionRows(row, entries, one.ballots, one.answers)


def _record_rows(one: Imported, source: str, at: datetime) -> SessionRows:
    """Make the rows of a council's record with people's votes."""
    assert one.session_record is not None  # noqa: S101 - checked before
    record = one.session_record
    votes = tuple(
        replace(ballot, session=ballot.session or record.id)
        for ballot in one.ballots
        if ballot.kind == "human"
    )
    try:
        check_votes(record.id, record.ballots, votes, record.answers)
        rows = count_session(record, votes)
    except WitanError as error:
        raise _refusal(source, record.id, f"has a vote that cannot be counted: {error}") from error
    if votes and record.status == "interrupted":
        raise _refusal(source, record.id, "is not closed, and has votes all the same")
    return rows.of_source(source, at)


def _refusal(source: str, session: str, problem: str) -> HistoryError:
    problem = f"the session {session} {problem}; nothing was imported"
    return HistoryError(source, problem, "mend that session in the file")


def complete_record(database: Database, record: Session, rows: Rows) -> bool:
    """Add a record's events beyond the stored ones; false if those differ.

    Later events of an earlier writer are refused. The counted rows are added to `rows`.

    Raises
    ------
    HistoryConflict
        If another process still records the session.
    """
    stored = read_events(database, record.id)
    if not stored or list(record.events[: len(stored)]) != stored:
        return False
    holder = lock_session(database, record.id) or NOBODY
    if (process := other_process(holder)) is not None:
        problem = f"the session {record.id} is under way in process {process}"
        raise HistoryConflict(database.where, problem, "let that end, then import the file again")
    insert_events(database, event_rows(record.id, record.events[len(stored) :]))
    own = count_session(record)
    close_session(database, own.row.closing_values())
    own.add_to(rows)
    return True
