"""Imports: a file comes in whole, once, and never into a session that has other ballots."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from witan.core.ballot import Ballot
from witan.core.ballot_records import to_record
from witan.core.casts import Cast
from witan.core.entering import entries_of_many
from witan.core.entries import Entries
from witan.deliberation.imported_session import Added, Imported
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError, WitanError
from witan.history.counting import SessionRows, count_session
from witan.history.database import Database
from witan.history.events import event_rows, insert_events, read_events
from witan.history.locks import other_process
from witan.history.rows import (
    Rows,
    SessionRow,
    check_names,
    close_session,
    insert_sessions,
    make_storable,
    to_microseconds,
)
from witan.history.votes import check, vote

AT_ONCE = 500
"""Sessions that are counted, and written, at a time."""

_IMPORTS = ("digest", "path", "at_us", "n_sessions")


def add(
    database: Database, imported: Iterable[Imported], source: str, digest: str, at: datetime
) -> Added:
    """Take in a file, all of it or nothing; one that is in already changes nothing.

    Raises
    ------
    HistoryError
        If a session of that name is there with other ballots, or is still under way.
    """
    added, already = 0, 0
    cast = Counter[str]()
    with database.transaction():
        row = (digest, make_storable(source), to_microseconds(at), 0)
        if not database.insert("imports", _IMPORTS, [row], ignore_existing=True):
            return Added(0, find_import(database, digest) or 0, 0)
        for block in _blocks(imported):
            new, further = _unknown(database, block, source)
            already += len(block) - len(new) - len(further)
            added += len(new) + len(further)
            cast += Counter(ballot.kind for record in further for ballot in record.ballots)
            cast += _vote(database, block, new)
            cast += _write(database, new, source, at)
            brought = [(digest, session) for session in block]
            database.insert("imported", ("digest", "session"), brought, ignore_existing=True)
        database.execute(
            "UPDATE imports SET n_sessions = :n WHERE digest = :digest",
            {"n": added + already, "digest": digest},
        )
    return Added(added, already, cast.total(), cast["human"])


def find_import(database: Database, digest: str) -> int | None:
    """How many sessions a file of this digest held when it came in; None: it never did."""
    sql = "SELECT n_sessions FROM imports WHERE digest = :digest"
    return next((n for (n,) in database.rows(sql, {"digest": digest})), None)


def _blocks(imported: Iterable[Imported]) -> Iterator[dict[str, Imported]]:
    """Sessions by name, a few at a time; one that comes twice is not in the same block."""
    block: dict[str, Imported] = {}
    for one in imported:
        if one.session in block or len(block) == AT_ONCE:
            yield block
            block = {}
        block[one.session] = one
    if block:
        yield block


def _unknown(
    database: Database, block: Mapping[str, Imported], source: str
) -> tuple[list[Imported], list[Session]]:
    """Those that are not in the history, and those of which it had less; refuse other ballots."""
    check_names(database, block)
    given = {f"s{k}": session for k, session in enumerate(block)}
    sql = (
        f"SELECT session FROM sessions WHERE session IN ({', '.join(':' + n for n in given)})"  # noqa: S608
        " ORDER BY session"
    )
    # Whoever is forgetting one is waited for: by then it is gone, or it stays until this is done.
    known = {session for (session,) in database.rows(sql + database.locking, given)}
    rows = Rows()
    further = []
    for session in sorted(known):
        if _same(database, block[session]):
            continue
        record = block[session].session_record
        if record is None or not complete_record(database, record, rows):
            raise HistoryError(
                source,
                f"the session {session} is in the history {database.where} with other ballots; "
                "nothing of the file was imported",
                "forget that session first, or import the file with a --prefix",
            )
        further.append(record)
    rows.write(database)
    return [one for session, one in block.items() if session not in known], further


def _same(database: Database, one: Imported) -> bool:
    """Whether the history holds this very session, votes that people added later aside."""
    if one.session_record is not None:
        events = list(one.session_record.events)
        # An earlier state of it brings nothing that is not there.
        return read_events(database, one.session)[: len(events)] == events
    return Counter(_bodies(one.ballots)) <= _there(database, one.session)


def _there(database: Database, session: str) -> Counter[str]:
    sql = "SELECT body FROM ballots WHERE session = :session"
    return Counter(body for (body,) in database.rows(sql, {"session": session}))


def _bodies(ballots: Iterable[Ballot]) -> Iterator[str]:
    return (json.dumps(to_record(ballot)) for ballot in ballots)


def _vote(
    database: Database, block: Mapping[str, Imported], new: Sequence[Imported]
) -> Counter[str]:
    """Add what people voted, by the file, on council sessions that are there without it."""
    unknown = {one.session for one in new}
    cast = Counter[str]()
    for session, one in block.items():
        votes = [ballot for ballot in one.ballots if ballot.kind == "human"]
        if session in unknown or one.session_record is None or not votes:
            continue
        there = _there(database, session)
        missing = [
            ballot for body, ballot in zip(_bodies(votes), votes, strict=True) if body not in there
        ]
        if missing:
            vote(database, session, missing)
            cast["human"] += len(missing)
    return cast


def _write(database: Database, new: Sequence[Imported], source: str, at: datetime) -> Counter[str]:
    rows = Rows()
    lefts = []
    for one, entries in zip(new, _entries(new, at), strict=True):
        left = _left(one, entries, source, at)
        lefts.append(left)
        left.add_to(rows)
    insert_sessions(database, [left.row for left in lefts])
    for one in new:
        if one.session_record is not None:
            insert_events(database, event_rows(one.session, one.session_record.events))
    rows.write(database)
    counted = (left for left in lefts if left.entries is not None)
    return Counter(ballot.kind for left in counted for ballot in left.ballots)


def _entries(new: Sequence[Imported], at: datetime) -> Iterator[Entries | None]:
    """The entries of each; None: they are read off its events, or brought along."""
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


def _left(one: Imported, entries: Entries | None, source: str, at: datetime) -> SessionRows:
    if one.session_record is not None:
        return _of_record(one, source, at)
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


def _of_record(one: Imported, source: str, at: datetime) -> SessionRows:
    """A whole session, and what people voted on it."""
    assert one.session_record is not None  # noqa: S101 - asked before
    held = one.session_record
    votes = tuple(
        replace(ballot, session=ballot.session or held.id)
        for ballot in one.ballots
        if ballot.kind == "human"
    )
    try:
        check(held.id, held.ballots, votes, held.answers)
        left = count_session(held, votes)
    except WitanError as error:
        raise _refused(source, held.id, f"has a vote that cannot be counted: {error}") from error
    if votes and held.status == "interrupted":
        raise _refused(source, held.id, "is not closed, and has votes all the same")
    return left.of_source(source, at)


def _refused(source: str, session: str, problem: str) -> HistoryError:
    problem = f"the session {session} {problem}; nothing was imported"
    return HistoryError(source, problem, "mend that session in the file")


def complete_record(database: Database, record: Session, rows: Rows) -> bool:
    """Add what a record has beyond the history; False: the history has another run of the session.

    Whatever an earlier writer still brings is refused from then on. `rows` take what it leaves.

    Raises
    ------
    HistoryConflict
        If another process is still at the session.
    """
    there = read_events(database, record.id)
    if not there or list(record.events[: len(there)]) != there:
        return False
    sql = "SELECT holder FROM sessions WHERE session = :session" + database.locking  # noqa: S608
    [(holder,)] = database.rows(sql, {"session": record.id})
    if (process := other_process(holder)) is not None:
        problem = f"the session {record.id} is under way in process {process}"
        raise HistoryConflict(database.where, problem, "let that end, then import the file again")
    insert_events(database, event_rows(record.id, record.events[len(there) :]))
    left = count_session(record)
    close_session(database, left.row.closing_values())
    left.add_to(rows)
    return True
