"""The list of sessions: searches, pages, short names, and counts of the whole history."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from witan.errors import HistoryConflict, InvalidParameter
from witan.history.database import Database
from witan.history.locks import is_running
from witan.history.reading import require_session, require_text
from witan.history.rows import (
    COUNCIL,
    LAST,
    is_storable,
    make_storable,
    read_names,
    to_datetime,
    to_microseconds,
)
from witan.history.sqlite import SqliteDatabase

STATUSES = ("complete", "degraded", "failed", "interrupted")

MOST_FOUND = 2**53
"""What a list of sessions may be bounded by; nobody has so many."""

HAS_EVENTS = "EXISTS (SELECT 1 FROM events e WHERE e.session = sessions.session)"
"""A council held it: there is its record."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a list of sessions is chosen by; None: by everything.

    Parameters
    ----------
    text
        Words that the question and the closing text hold between them, in any case.
    since, until
        From, and before, these times.
    simulated
        Only those in which scripts sat, or only the others.
    session
        Its name.
    parent
        What it came of.
    held
        Only those that a council held, or only those that came in as ballots.
    after
        Only those that a list has below this time and name.

    Raises
    ------
    InvalidParameter
        If one is not of its kind.
    """

    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    category: str | None = None
    status: str | None = None
    limit: int | None = None
    simulated: bool | None = None
    session: str | None = None
    parent: str | None = None
    held: bool | None = None
    after: tuple[datetime, str] | None = None

    def __post_init__(self) -> None:
        for name in ("text", "category", "status", "session", "parent"):
            if (value := getattr(self, name)) is not None and not isinstance(value, str):
                raise InvalidParameter(name, value, "a text, or None")
        if self.status is not None and self.status not in STATUSES:
            raise InvalidParameter("status", self.status, f"one of {', '.join(STATUSES)}")
        for name in ("since", "until"):
            if (at := getattr(self, name)) is not None:
                require_datetime(name, at)
        if self.simulated is not None and not isinstance(self.simulated, bool):
            raise InvalidParameter("simulated", self.simulated, "True, False or None")
        whole = isinstance(self.limit, int) and not isinstance(self.limit, bool)
        if self.limit is not None and not (whole and 0 <= self.limit <= MOST_FOUND):
            expected = f"a whole number from 0 to {MOST_FOUND:,}, or None for all"
            raise InvalidParameter("limit", self.limit, expected)


def require_datetime(name: str, at: object) -> None:
    """Refuse what is no moment.

    Raises
    ------
    InvalidParameter
        If it is no time, or one without a zone.
    """
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidParameter(name, at, "a datetime with its zone, such as UTC")


def build_conditions(search: Search) -> tuple[list[str], dict[str, Any]]:
    """What has to be true of a session, in SQL, and the values in it."""
    wheres, given = [], dict[str, Any]()
    for name in ("category", "status", "simulated", "session", "parent"):
        if (value := getattr(search, name)) is not None:
            wheres.append(f"{name} = :{name}")
            given[name] = int(value) if name == "simulated" else make_storable(value)
    if search.held is not None:
        wheres.append(HAS_EVENTS if search.held else f"NOT {HAS_EVENTS}")
    for name, sign in (("since", ">="), ("until", "<")):
        if (at := getattr(search, name)) is not None:
            wheres.append(f"at_us {sign} :{name}")
            given[name] = to_microseconds(at)
    if search.after is not None:
        at, name = search.after
        wheres.append("at_us <= :after_us AND (at_us < :after_us OR session > :after)")
        given |= {"after_us": to_microseconds(at), "after": make_storable(name)}
    for k, word in enumerate(() if search.text is None else search.text.split()):
        wheres.append(f"searched LIKE :word{k} ESCAPE '!'")
        plain = make_storable(word).casefold()
        for sign in "!%_":
            plain = plain.replace(sign, f"!{sign}")
        given[f"word{k}"] = f"%{plain}%"
    return wheres, given


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


def find(database: Database, search: Search) -> list[SessionSummary]:
    """Sessions by the latest, those of one time by name."""
    wheres, given = build_conditions(search)
    sql = (
        "SELECT session, at_us, status, category, simulated, question, rule, cost_usd, source,"  # noqa: S608
        f" parent, relation, {HAS_EVENTS}, holder FROM sessions"
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
        spelt = read_names(database, sorted(set(best.values())))
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
        to_datetime(at_us),
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


def _in_blocks(names: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))


PageCursor = tuple[datetime, str]
"""Time and name of the last session of the page before."""


def read_page(
    database: Database, search: Search, size: int, after: PageCursor | None = None
) -> tuple[list[SessionSummary], PageCursor | None]:
    """So many sessions, and what the next page comes after; None: there is none.

    Every session stands on one page, however many are of one time, and whatever comes in above
    while pages are turned.
    """
    found = find(database, replace(search, limit=size + 1, after=after))
    if len(found) <= size:
        return found, None
    last = found[size - 1]
    return found[:size], (last.at, last.session)


SHORTEST = 15
"""A name is not made shorter: the date and time that council sessions begin with stay whole."""

SHOWN = 4
"""How many of those that share a beginning are named."""


def resolve_name(database: Database, name: str) -> str:
    """The whole name of a session, from it or an unambiguous beginning of it, or ``last``.

    Raises
    ------
    UnknownName
        If no session begins so.
    HistoryConflict
        If several do, or there is no session to be the last.
    """
    require_text(name)
    with database.snapshot():
        if not is_storable(name):
            require_session(database, name)
        if database.rows("SELECT 1 FROM sessions WHERE session = :name", {"name": name}):
            return name
        if name == LAST:
            return _last(database)
        sql = (
            "SELECT session FROM sessions WHERE substr(session, 1, :length) = :name"
            " ORDER BY at_us DESC, session"
        )
        found = database.rows(sql, {"length": len(name), "name": name}) if name else []
        if not found:
            require_session(database, name)
    if len(found) > 1:
        shown = ", ".join(session for (session,) in found[:SHOWN])
        more = ", …" if len(found) > SHOWN else ""
        problem = f"{name} begins the names of {len(found):,} sessions: {shown}{more}"
        raise HistoryConflict(database.where, problem, "give more of it")
    [(session,)] = found
    return str(session)


def _last(database: Database) -> str:
    """The first session of the list, so `last` and the list cannot disagree."""
    for found in find(database, Search(limit=1)):
        return found.session
    problem = "there is no session yet"
    remedy = "ask a question, import a file, or try witan demo"
    raise HistoryConflict(database.where, problem, remedy)


def short_names(database: Database, sessions: Sequence[str]) -> Mapping[str, str]:
    """Each session to the shortest beginning of its name that no other shares."""
    stems = sorted({session[:SHORTEST] for session in sessions})
    if not stems:
        return {}
    given = {f"s{k}": stem for k, stem in enumerate(stems)}
    among = ", ".join(f":{name}" for name in given)
    sql = f"SELECT session FROM sessions WHERE substr(session, 1, {SHORTEST}) IN ({among})"  # noqa: S608
    alike: dict[str, list[str]] = {}
    for (session,) in database.rows(sql, given):
        alike.setdefault(session[:SHORTEST], []).append(session)
    return {session: _short(session, alike.get(session[:SHORTEST], [])) for session in sessions}


def _short(session: str, alike: Sequence[str]) -> str:
    others = [other for other in alike if other != session]
    for length in range(SHORTEST, len(session)):
        if not any(other.startswith(session[:length]) for other in others):
            return session[:length]
    return session


@dataclass(frozen=True, slots=True)
class HistorySummary:
    """A history as a whole.

    Parameters
    ----------
    where
        The file, or the URL without a password.
    version
        How many migrations it has had; the last one at `migrated_at`, by the Witan `migrated_by`.
    n_bytes
        What the file, or the database, takes up.
    """

    where: str
    kind: str
    journal: str
    version: int
    migrated_at: datetime
    migrated_by: str
    n_sessions: int
    n_simulated: int
    n_interrupted: int
    n_bytes: int


def describe(database: Database) -> HistorySummary:
    """Count what a history holds."""
    with database.snapshot():
        [(n_sessions, n_simulated, n_interrupted)] = database.rows(
            "SELECT COUNT(*), COALESCE(SUM(simulated), 0),"
            " COALESCE(SUM(CASE WHEN status = 'interrupted' THEN 1 ELSE 0 END), 0) FROM sessions"
        )
        [(version, at_us, by)] = database.rows(
            "SELECT version, at_us, witan FROM migrations ORDER BY version DESC LIMIT 1"
        )
    return HistorySummary(
        where=database.where,
        kind="SQLite" if database.dialect == "sqlite" else "PostgreSQL",
        journal=database.journal,
        version=int(version),
        migrated_at=to_datetime(at_us),
        migrated_by=by,
        n_sessions=int(n_sessions),
        n_simulated=int(n_simulated),
        n_interrupted=int(n_interrupted),
        n_bytes=_size(database),
    )


def _size(database: Database) -> int:
    if isinstance(database, SqliteDatabase):
        beside = database.path.with_name(f"{database.path.name}-wal")
        return sum(path.stat().st_size for path in (database.path, beside) if path.exists())
    [(size,)] = database.rows("SELECT pg_database_size(current_database())")
    return int(size)
