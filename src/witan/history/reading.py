"""What a history holds, read back: sessions, ballots, answers, and a list to choose from."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import read_record
from witan.core.casts import Cast
from witan.core.scale_recognition import declared
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, InvalidParameter, UnknownName
from witan.history.database import Database
from witan.history.holders import is_running
from witan.history.searching import HELD, Search, conditions
from witan.history.sessions import COUNCIL
from witan.history.stored_events import read_events
from witan.history.writing import names_of, storable

__all__ = [
    "SessionSummary",
    "answers",
    "answers_shared",
    "ballots",
    "cast_of",
    "find",
    "moment_of",
    "require",
    "require_name",
    "session_of",
]

SUGGESTED = 200
"""How many of the latest sessions a misspelt name is compared with."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line of a list of sessions.

    Parameters
    ----------
    status
        ``running``: it is recorded now, by a process of this machine; ``interrupted``: it is not
        closed, and no such process is known.
    leader
        The model with the highest score under the session's rule; None: none, or several.
    leader_seat
        The seat that it held, as the session itself calls it; None: none, or several.
    source
        ``council``, or the file that it came from.
    parent, relation
        The session that it came of, and how, such as ``rejudged``.
    held
        A council held it, and there is its record; else it came in as ballots.
    imported
        It came in from a file, with a record or as ballots.
    """

    session: str
    at: datetime
    status: str
    category: str | None
    simulated: bool
    question: str
    rule: str | None
    leader: str | None
    cost_usd: float | None
    source: str
    parent: str | None
    relation: str | None
    leader_seat: str | None = None
    held: bool = True
    imported: bool = False


def moment_of(at_us: int) -> datetime:
    """A time from microseconds of UTC since 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def require(database: Database, session: str) -> tuple[Any, ...]:
    """When a session was asked, its category, status, source, rule; and whether it is simulated.

    Raises
    ------
    UnknownName
        If there is no such session.
    InvalidParameter
        If it is no text.
    """
    sql = (
        "SELECT at_us, category, simulated, status, source, rule FROM sessions"
        " WHERE session = :session"
    )
    require_name(session)
    for row in database.rows(sql, {"session": session}) if storable(session) else ():
        return row
    latest = database.rows(
        "SELECT session FROM sessions ORDER BY at_us DESC, session LIMIT :n", {"n": SUGGESTED}
    )
    raise UnknownName("session", session, [name for (name,) in latest])


def require_name(session: object) -> None:
    """Refuse what is no text for the name of a session."""
    if not isinstance(session, str):
        raise InvalidParameter("session", session, "the name of a session, a text")


def session_of(database: Database, session: str) -> Session:
    """A council session, whole or as far as it came.

    Raises
    ------
    UnknownName
        If there is no such session.
    HistoryConflict
        If it was imported as ballots, and has no events.
    """
    with database.snapshot():
        source = require(database, session)[4]
        events = read_events(database, session)
    if not events:
        origin = Path(source).name
        problem = f"the session {session} came in as ballots, from {origin}, and has no events"
        raise HistoryConflict(database.where, problem, "read its ballots")
    return Session.of(events)


def ballots(database: Database, session: str) -> list[Ballot]:
    """The ballots of a session, people's included, as they were cast."""
    sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
    with database.snapshot():
        require(database, session)
        found = [ballot_of(body) for (body,) in database.rows(sql, {"session": session})]
        events = [] if found else read_events(database, session)
    return list(Session.of(events).ballots) if events else found


def answers(database: Database, session: str) -> dict[str, str]:
    """Seat, or candidate, to its answer, where there is one."""
    sql = "SELECT seat, body FROM answers WHERE session = :session AND body IS NOT NULL"
    with database.snapshot():
        require(database, session)
        events = read_events(database, session)
        found = dict(database.rows(sql + " ORDER BY seat", {"session": session}))
    if not events:
        return found
    return {seat: answer.text for seat, answer in Session.of(events).answers.items()}


def ballot_of(body: str) -> Ballot:
    """A ballot from its line, which names every scale but 1-10."""
    return declared(read_record(json.loads(body)))


def find(database: Database, search: Search) -> list[SessionSummary]:
    """Sessions by the latest, those of one time by name."""
    wheres, given = conditions(search)
    sql = (
        "SELECT session, at_us, status, category, simulated, question, rule, cost_usd, source,"  # noqa: S608
        f" parent, relation, {HELD}, holder FROM sessions"
    )
    if search.status == "interrupted" and (running := _running(database)):
        names = {f"running{k}": name for k, name in enumerate(running)}
        wheres.append(f"session NOT IN ({', '.join(f':{name}' for name in names)})")
        given |= names
    sql += f" WHERE {' AND '.join(wheres)}" if wheres else ""
    sql += " ORDER BY at_us DESC, session"
    if search.limit is not None:
        sql, given = sql + " LIMIT :limit", {**given, "limit": search.limit}
    with database.snapshot():
        rows = database.rows(sql, given)
        best = _best(database, {row[0]: row[6] for row in rows})
        seats = _seats(database, best)
        spelt = names_of(database, sorted(set(best.values())))
    return [_line(row, spelt.get(best.get(row[0], -1)), seats.get(row[0])) for row in rows]


def _running(database: Database) -> list[str]:
    """The sessions that a process of this machine records now."""
    sql = "SELECT session, holder FROM sessions WHERE status = 'interrupted'"
    return [session for session, holder in database.rows(sql) if is_running(holder)]


def _line(row: tuple[Any, ...], leader: str | None, seat: str | None) -> SessionSummary:
    session, at_us, status, category, simulated, question, rule, cost_usd, *beside = row
    source, parent, relation, held, holder = beside
    if status == "interrupted" and is_running(holder):
        status = "running"
    return SessionSummary(
        session,
        moment_of(at_us),
        status,
        category,
        bool(simulated),
        question,
        rule,
        leader,
        cost_usd,
        source,
        parent,
        relation,
        leader_seat=seat,
        held=bool(held),
        imported=source != COUNCIL,
    )


def _best(database: Database, rules: dict[str, str | None]) -> dict[str, int]:
    """Session to its single best model, by the models' ballots or, without any, by people's."""
    best: dict[str, list[int]] = {}
    for sessions in _in_blocks(sorted(rules)):
        names = {f"s{k}": session for k, session in enumerate(sessions)}
        sql = (
            "SELECT session, human, rule, model, score FROM standings"  # noqa: S608
            f" WHERE score IS NOT NULL AND session IN ({', '.join(':' + name for name in names)})"
            " ORDER BY session, human"
        )
        for session, group in groupby(database.rows(sql, names), key=itemgetter(0)):
            rows = list(group)
            rule = rules[session] or "borda"
            mine = [row for row in rows if row[1] == rows[0][1]]
            scored = [row for row in mine if row[2] == rule] or [
                row for row in mine if row[2] == "borda"
            ]
            top = max((row[4] for row in scored), default=None)
            best[session] = [row[3] for row in scored if row[4] == top]
    return {session: codes[0] for session, codes in best.items() if len(codes) == 1}


def _seats(database: Database, best: dict[str, int]) -> dict[str, str]:
    """Session to the one seat that its best model held."""
    held: dict[str, list[str]] = {}
    for sessions in _in_blocks(sorted(best)):
        names = {f"s{k}": session for k, session in enumerate(sessions)}
        sql = (
            "SELECT session, seat, model FROM answers"  # noqa: S608
            f" WHERE session IN ({', '.join(':' + name for name in names)})"
        )
        for session, seat, model in database.rows(sql, names):
            if model == best[session]:
                held.setdefault(session, []).append(seat)
    return {session: seats[0] for session, seats in held.items() if len(seats) == 1}


def answers_shared(database: Database, session: str) -> list[str]:
    """A session, and all in which the same answers stand: what it came of, what came of that."""
    sharing = "(rejudged = 1 OR relation = 'retried')"
    first, seen = session, {session}
    up = f"SELECT parent FROM sessions WHERE session = :session AND {sharing}"  # noqa: S608
    while rows := database.rows(up, {"session": first}):
        [(parent,)] = rows
        if parent is None or parent in seen:
            break
        seen.add(first := parent)
    down = f"SELECT session FROM sessions WHERE parent = :parent AND {sharing} ORDER BY session"  # noqa: S608
    found = [first]
    for one in found:
        children = (name for (name,) in database.rows(down, {"parent": one}))
        found += [name for name in children if name not in found]
    return found if session in found else [*found, session]


def _in_blocks(names: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))


def cast_of(database: Database, session: str, at_us: int, category: str | None) -> Cast:
    """An imported session as it was cast, to be counted again."""
    given = {"session": session}
    cast = database.rows(
        "SELECT b.body, n.name, b.kept, b.compared, b.repaired, b.paired"
        " FROM ballots b JOIN names n ON n.code = b.reviewer"
        " WHERE b.session = :session ORDER BY b.ballot",
        given,
    )
    seats = database.rows(
        "SELECT a.seat, n.name, a.chars FROM answers a JOIN names n ON n.code = a.model"
        " WHERE a.session = :session",
        given,
    )
    read = [(ballot_of(body), *rest) for body, *rest in cast]
    return Cast(
        session,
        moment_of(at_us),
        tuple(ballot for ballot, *_ in read),
        category=category,
        models={b.reviewer: model for b, model, *_ in read if model != b.reviewer}
        | {seat: model for seat, model, _ in seats},
        lengths={seat: chars for seat, _, chars in seats if chars is not None},
        kept={b.reviewer: (k, n) for b, _, k, n, _, paired in read if n and not paired},
        repaired=[b.reviewer for b, _, _, _, repaired, _ in read if repaired],
    )
