"""Reading of stored sessions: events, ballots, answers, exports and lists."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from witan.core.ballot import Ballot, Unreadable, kind_of, read_record
from witan.core.placing import StoredStanding, lead_standings
from witan.core.rules import RULES
from witan.core.scale_recognition import declare_native
from witan.core.session_ballots import AnswerEntry, ModelNames, SessionBallots
from witan.core.verdict import Decision
from witan.errors import (
    HistoryConflict,
    HistoryError,
    InvalidParameter,
    NothingToCount,
    UnknownName,
)
from witan.history.database import Database, blocks, in_list
from witan.history.engines import SqliteDatabase
from witan.history.rows import (
    COUNCIL,
    LATEST_ALIAS,
    damaged_history,
    is_storable,
    make_storable,
    read_events,
    read_names,
    to_datetime,
    to_microseconds,
)
from witan.history.schema import code_of

if TYPE_CHECKING:
    from witan.deliberation.record import SessionImport
    from witan.deliberation.session import Session

MAX_NAMES_COMPARED = 200
"""Number of latest sessions to suggest from for a misspelt name."""


def require_session(database: Database, session: str) -> tuple[Any, ...]:
    """Return a session's time, category, simulated, status, source and rule.

    Raises `UnknownName` if there is no such session; `InvalidParameter` if the name is not text.
    """
    sql = (
        "SELECT at_us, category, simulated, status, source, rule FROM sessions"
        " WHERE session = :session"
    )
    require_text(session)
    for row in database.rows(sql, {"session": session}) if is_storable(session) else ():
        return row
    latest_rows = database.rows(
        "SELECT session FROM sessions ORDER BY at_us DESC, session LIMIT :n",
        {"n": MAX_NAMES_COMPARED},
    )
    raise UnknownName("session", session, [name for (name,) in latest_rows])


def require_text(session: object) -> None:
    """Refuse a session's name that is not text."""
    if not isinstance(session, str):
        raise InvalidParameter("session", session, "the name of a session, as text")


def find_session(database: Database, session: str) -> "Session | None":
    """Read a council session, or None if it has no events."""
    from witan.deliberation.damage import restore_session  # most readers need no events

    events = read_events(database, session)
    try:
        return restore_session(events) if events else None
    except NothingToCount as error:
        raise damaged_history(database, f"{error} in the session {session}") from error


def find_damage(database: Database, on_session: Callable[[int], None] | None = None) -> str | None:
    """Read each session and its ballots; return why one cannot be read, or None.

    `on_session`: called before each session with the number of earlier ones.
    """
    sql = "SELECT MIN(session) FROM sessions WHERE session > :session"
    session, n_read = "", 0
    while (session := database.rows(sql, {"session": session})[0][0]) is not None:
        if on_session is not None:
            on_session(n_read)
        n_read += 1
        try:
            find_session(database, session)
            stored_ballots(database, session)
            waiting_votes(database, session)
        except HistoryError as error:
            if error.is_damage:
                return error.problem
            raise
    return None


def read_session(database: Database, session: str) -> "Session":
    """Read a council session, complete or interrupted."""
    with database.snapshot():
        source = require_session(database, session)[4]
        record = find_session(database, session)
    if record is None:
        origin = Path(source).name
        problem = f"the session {session} was imported as ballots, from {origin}, and has no events"
        raise HistoryConflict(database.location, problem, "read its ballots")
    return record


def read_ballots(database: Database, session: str) -> list[Ballot]:
    """Read the ballots of a session as cast, including people's."""
    with database.snapshot():
        require_session(database, session)
        ballots = stored_ballots(database, session)
        record = None if ballots else find_session(database, session)
        votes = waiting_votes(database, session)
    return [*(ballots if record is None else record.ballots), *votes]


def stored_ballots(database: Database, session: str) -> list[Ballot]:
    """Read the counted ballots of a session, including people's."""
    sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
    rows = database.rows(sql, {"session": session})
    return [read_ballot(database, session, body) for (body,) in rows]


def waiting_votes(database: Database, session: str) -> list[Ballot]:
    """Read people's ballots that wait, or could not be counted."""
    sql = "SELECT body FROM waiting_votes WHERE session = :session ORDER BY reviewer, number"
    rows = database.rows(sql, {"session": session})
    return [read_ballot(database, session, body) for (body,) in rows]


@dataclass(frozen=True, slots=True)
class StoredVote:
    """A person's ballot on a session.

    Parameters
    ----------
    at, question
        When the session was asked, and what; an empty question is not stored.
    simulated
        True if a member of the session was scripted.
    is_open
        True if the session is not closed, so that the ballot does not count yet.
    why
        Why the ballot could not be counted at the end of its session; None otherwise.
    """

    session: str
    at: datetime
    question: str
    simulated: bool
    is_open: bool
    ballot: Ballot
    why: str | None = None


def votes_of(database: Database, person: str, search: "Search") -> list[StoredVote]:
    """Read a person's ballots on whole sessions, the earliest session first."""
    conditions, params = build_conditions(search)
    where = "".join(f" AND s.{condition}" for condition in conditions)
    sql = (
        "SELECT s.session, s.at_us, s.question, s.simulated, s.status, b.body, {why}"  # noqa: S608
        " FROM {table} b JOIN sessions s ON s.session = b.session WHERE {reviewer}" + where
    )
    counted = sql.format(
        table="ballots", why="NULL", reviewer="b.reviewer = :code AND b.human = 1 AND b.paired = 0"
    )
    waiting = sql.format(
        table="waiting_votes", why="b.why", reviewer="b.reviewer = :person AND b.number = 0"
    )
    params |= {"code": code_of(person), "person": make_storable(person)}
    rows = database.rows(f"{counted} UNION ALL {waiting} ORDER BY 2, 1", params)
    return [
        StoredVote(
            session,
            to_datetime(at_us),
            question,
            bool(simulated),
            status == "interrupted",
            read_ballot(database, session, body),
            why,
        )
        for session, at_us, question, simulated, status, body, why in rows
    ]


def has_final_answers(database: Database, session: str) -> bool:
    """Return true once reviews of an open session have begun.

    Its answers will not change then.
    """
    sql = (
        "SELECT 1 FROM events WHERE session = :session"
        " AND kind IN ('review_started', 'ballot_cast') LIMIT 1"
    )
    return bool(database.rows(sql, {"session": session}))


def read_answers(database: Database, session: str) -> dict[str, str]:
    """Read the answers of a session by seat, or by candidate."""
    sql = "SELECT seat, body FROM answers WHERE session = :session AND body IS NOT NULL"
    with database.snapshot():
        require_session(database, session)
        record = find_session(database, session)
        answers = dict(database.rows(sql + " ORDER BY seat", {"session": session}))
    if record is None:
        return answers
    return {seat: answer.text for seat, answer in record.answers.items()}


def parse_ballot(body: str) -> Ballot:
    """Parse a stored ballot; the default scale is 1-10."""
    try:
        record = json.loads(body)
    except RecursionError:
        raise Unreadable("its record", "is nested too deeply") from None
    if not isinstance(record, dict):
        raise Unreadable("its record", f"is {kind_of(record)}; expected a map")
    return declare_native(read_record(record))


def read_ballot(database: Database, session: str, body: str) -> Ballot:
    """Parse a ballot of the history, or raise that its session is damaged."""
    try:
        return parse_ballot(body)
    except ValueError as error:  # not JSON, or not a ballot
        raise damaged_history(
            database, f"a ballot of the session {session} cannot be read: {error}"
        ) from error


def sessions_sharing_answers(database: Database, session: str) -> list[str]:
    """Return a session and all sessions with the same answers."""
    sharing = "(rejudged = 1 OR relation = 'retried')"
    first, sessions = session, {session}
    up = f"SELECT parent FROM sessions WHERE session = :session AND {sharing}"  # noqa: S608
    while rows := database.rows(up, {"session": first}):
        [(parent,)] = rows
        if parent is None or parent in sessions:
            break
        sessions.add(first := parent)
    down = f"SELECT session FROM sessions WHERE parent = :parent AND {sharing} ORDER BY session"  # noqa: S608
    family = [first]
    for one in family:
        children = (name for (name,) in database.rows(down, {"parent": one}))
        family += [name for name in children if name not in family]
    return family if session in family else [*family, session]


def read_session_ballots(
    database: Database, session: str, at_us: int, category: str | None
) -> SessionBallots:
    """Read an imported session's ballots and answers, to count it again."""
    params = {"session": session}
    ballot_rows = database.rows(
        "SELECT b.body, n.name, b.kept, b.compared, b.repaired, b.paired"
        " FROM ballots b JOIN names n ON n.code = b.reviewer"
        " WHERE b.session = :session ORDER BY b.ballot",
        params,
    )
    seats = database.rows(
        "SELECT a.seat, n.name, a.chars FROM answers a JOIN names n ON n.code = a.model"
        " WHERE a.session = :session",
        params,
    )
    ballots = [(read_ballot(database, session, body), *rest) for body, *rest in ballot_rows]
    return SessionBallots(
        session,
        to_datetime(at_us),
        tuple(ballot for ballot, *_ in ballots),
        category=category,
        models={b.reviewer: model for b, model, *_ in ballots if model != b.reviewer}
        | {seat: model for seat, model, _ in seats},
        lengths={seat: chars for seat, _, chars in seats if chars is not None},
        order_consistency={
            b.reviewer: (k, n) for b, _, k, n, _, paired in ballots if n and not paired
        },
        repaired_reviewers=[b.reviewer for b, _, _, _, repaired, _ in ballots if repaired],
    )


_ANSWERS_SQL = (
    "SELECT a.body, a.seat, n.name, a.chars, a.seconds, a.cost_usd, a.output_tokens, a.failed"
    " FROM answers a JOIN names n ON n.code = a.model WHERE a.session = :session ORDER BY a.seat"
)

_BALLOT_FACTS_SQL = (
    "SELECT n.name, b.kept, b.compared, b.repaired"
    " FROM ballots b JOIN names n ON n.code = b.reviewer"
    " WHERE b.session = :session ORDER BY b.ballot"
)


def export_session(database: Database, session: str) -> "SessionImport":
    """Read everything stored about a session, including people's votes."""
    from witan.deliberation.record import SessionImport

    with database.snapshot():
        at_us, category, simulated, *_ = require_session(database, session)
        ballots = [*stored_ballots(database, session), *waiting_votes(database, session)]
        if (record := find_session(database, session)) is not None:
            return _export_record(record, category, ballots)
        sql = "SELECT question, closing FROM sessions WHERE session = :session"
        [(question, closing)] = database.rows(sql, {"session": session})
        answers = database.rows(_ANSWERS_SQL, {"session": session})
        ballot_facts = database.rows(_BALLOT_FACTS_SQL, {"session": session})
    entries = [_answer(*row) for _, *row in answers]
    return SessionImport(
        session,
        to_datetime(at_us),
        question,
        category,
        tuple(ballots),
        answers={seat: body for body, seat, *_ in answers if body is not None},
        lengths={seat: n for body, seat, _, n, *_ in answers if body is None and n is not None},
        simulated=bool(simulated),
        closing=closing,
        models=_models(ballots, entries, [name for name, *_ in ballot_facts]),
        kept={
            ballot.reviewer: (n_same, n_compared)
            for ballot, (_, n_same, n_compared, _) in zip(ballots, ballot_facts, strict=True)
            if n_compared and not ballot.paired
        },
        repaired=tuple(
            ballot.reviewer for ballot, row in zip(ballots, ballot_facts, strict=True) if row[3]
        ),
        took=tuple(entries) if any(map(_has_numbers, entries)) else (),
    )


def _answer(*row: Any) -> AnswerEntry:
    seat, model, chars, seconds, cost_usd, output_tokens, failed = row
    return AnswerEntry(seat, model, chars, seconds, cost_usd, output_tokens, bool(failed))


def _models(
    ballots: Sequence[Ballot], entries: Sequence[AnswerEntry], reviewers: Sequence[str]
) -> dict[str, str]:
    """Map names to models, unless the ballots state the model."""
    model_names = ModelNames(SessionBallots("", datetime(1970, 1, 1, tzinfo=UTC), tuple(ballots)))
    models = {
        answer.seat: answer.model
        for answer in entries
        if make_storable(model_names.candidate(answer.seat)) != answer.model
    }
    models |= {
        ballot.reviewer: model
        for ballot, model in zip(ballots, reviewers, strict=True)
        if make_storable(ballot.reviewer) != model
    }
    return models


def _has_numbers(answer: AnswerEntry) -> bool:
    """True if an entry has more than its model and length."""
    numbers = (answer.seconds, answer.cost_usd, answer.output_tokens)
    return answer.failed or any(number is not None for number in numbers)


def _export_record(
    session: "Session", category: str | None, ballots: list[Ballot]
) -> "SessionImport":
    """Export a council session, with its own ballots inside its events."""
    from witan.deliberation.record import SessionImport

    votes = (ballot for ballot in ballots if ballot.kind == "human")
    return SessionImport(
        session.id,
        session.opening.at,
        session.question,
        category,
        (*session.ballots, *votes),
        answers={seat: answer.text for seat, answer in session.answers.items()},
        session_record=session,
        simulated=session.is_simulated,
        closing=session.text,
    )


STATUSES = ("complete", "degraded", "failed", "interrupted")

MAX_LIMIT = 2**53
"""Largest limit of a list."""

HAS_EVENTS = "EXISTS (SELECT 1 FROM events e WHERE e.session = sessions.session)"
"""SQL condition of sessions recorded by a council."""


@dataclass(frozen=True, slots=True)
class Search:
    """Conditions on listed sessions; None sets no condition.

    Parameters
    ----------
    text
        Words in the question or the final answer, in any case.
    since, until
        From this time on, and before this time.
    simulated
        True for sessions with scripted members, false for the others.
    session
        Its name.
    parent
        The session from which it derives.
    has_events
        True for sessions with events, false for those imported as ballots.
    after
        Only sessions after this time and name in the list.

    Raises
    ------
    InvalidParameter
        If a condition has the wrong type.
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
    has_events: bool | None = None
    after: tuple[datetime, str] | None = None

    def __post_init__(self) -> None:
        for name in ("text", "category", "status", "session", "parent"):
            if (value := getattr(self, name)) is not None and not isinstance(value, str):
                raise InvalidParameter(name, value, "text, or None")
        if self.status is not None and self.status not in STATUSES:
            raise InvalidParameter("status", self.status, f"one of {', '.join(STATUSES)}")
        for name in ("since", "until"):
            if (at := getattr(self, name)) is not None:
                require_datetime(name, at)
        if self.simulated is not None and not isinstance(self.simulated, bool):
            raise InvalidParameter("simulated", self.simulated, "True, False or None")
        is_whole = isinstance(self.limit, int) and not isinstance(self.limit, bool)
        if self.limit is not None and not (is_whole and 0 <= self.limit <= MAX_LIMIT):
            expected = f"a whole number from 0 to {MAX_LIMIT:,}, or None for all"
            raise InvalidParameter("limit", self.limit, expected)


def require_datetime(name: str, at: object) -> None:
    """Refuse anything but a datetime with a time zone."""
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidParameter(name, at, "a datetime with a time zone, such as UTC")


def build_conditions(search: Search) -> tuple[list[str], dict[str, Any]]:
    """Return the conditions of a search in SQL, and their parameters."""
    conditions, params = [], dict[str, Any]()
    for name in ("category", "status", "simulated", "session", "parent"):
        if (value := getattr(search, name)) is not None:
            conditions.append(f"{name} = :{name}")
            params[name] = int(value) if name == "simulated" else make_storable(value)
    if search.has_events is not None:
        conditions.append(HAS_EVENTS if search.has_events else f"NOT {HAS_EVENTS}")
    for name, sign in (("since", ">="), ("until", "<")):
        if (at := getattr(search, name)) is not None:
            conditions.append(f"at_us {sign} :{name}")
            params[name] = to_microseconds(at)
    if search.after is not None:
        at, name = search.after
        conditions.append("at_us <= :after_us AND (at_us < :after_us OR session > :after)")
        params |= {"after_us": to_microseconds(at), "after": make_storable(name)}
    for k, word in enumerate(() if search.text is None else search.text.split()):
        conditions.append(f"searched LIKE :word{k} ESCAPE '!'")
        plain = make_storable(word).casefold()
        for sign in "!%_":
            plain = plain.replace(sign, f"!{sign}")
        params[f"word{k}"] = f"%{plain}%"
    return conditions, params


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list.

    Parameters
    ----------
    session, at
        Its name, and when its question was asked.
    status
        ``running`` if a process records it, ``interrupted`` if none does.
    category
        The kind of question.
    simulated
        True if a seat plays a script.
    question
        The question; empty if unknown.
    rule
        Rule that counts its ballots, if any.
    leader
        Model that leads by that rule and its own tie-break, whatever the safety gate says; None:
        several lead, or none.
    leader_seat
        Seat of the leader.
    cost_usd
        Its cost in US dollars.
    source
        ``council``, or the file that it was imported from.
    parent, relation
        The session from which it derives, and how, such as ``rejudged``.
    has_events
        True if it has a council's events, False if only ballots.
    imported
        True if it came from a file.
    p_best
        Probability that another draw of reviewers would place the leader best; unknown for imported
        ballots, which several rules may count.
    decision
        Verdict on judged texts; None: no text was judged, nothing was to decide, or an earlier
        version stored it.
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
    has_events: bool = True
    imported: bool = False
    p_best: float | None = None
    decision: Decision | None = None


def find(database: Database, search: Search) -> list[SessionSummary]:
    """List sessions, the latest first, then by name."""
    conditions, params = build_conditions(search)
    sql = (
        "SELECT session, at_us, status, category, simulated, question, rule, cost_usd, source,"  # noqa: S608
        f" parent, relation, {HAS_EVENTS}, holder, agreement, decision FROM sessions"
    )
    if search.status == "interrupted" and (running_sessions := _read_running(database)):
        names = {f"running{k}": name for k, name in enumerate(running_sessions)}
        conditions.append(f"session NOT IN ({', '.join(f':{name}' for name in names)})")
        params |= names
    sql += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql += " ORDER BY at_us DESC, session"
    if search.limit is not None:
        sql, params = sql + " LIMIT :limit", {**params, "limit": search.limit}
    with database.snapshot():
        rows = database.rows(sql, params)
        leaders = _leaders(database, {row[0]: row[6] for row in rows})
        best = {session: codes[0] for session, codes in leaders.items() if len(codes) == 1}
        seats = _seats(database, best)
        model_names = read_names(database, sorted(set(best.values())))
        is_running = {
            row[0]: row[2] == "interrupted" and database.is_running(row[12]) for row in rows
        }
    return [
        _line(
            row if row[0] in leaders else (*row[:6], None, *row[7:]),
            model_names.get(best.get(row[0], -1)),
            seats.get(row[0]),
            is_running[row[0]],
        )
        for row in rows
    ]


def _read_running(database: Database) -> list[str]:
    sql = "SELECT session, holder FROM sessions WHERE status = 'interrupted'"
    return [session for session, holder in database.rows(sql) if database.is_running(holder)]


def _line(
    row: tuple[Any, ...], leader: str | None, seat: str | None, is_running: bool
) -> SessionSummary:
    session, at_us, status, category, simulated, question, rule, cost_usd, *others = row
    source, parent, relation, has_events, _, p_best, decision = others
    if is_running:
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
        has_events=bool(has_events),
        imported=source != COUNCIL,
        p_best=None if rule is None else p_best,
        decision=decision,
    )


def _leaders(database: Database, rules: dict[str, str | None]) -> dict[str, list[int]]:
    """Map counted sessions to the codes of their leaders."""
    best: dict[str, list[int]] = {}
    for sessions in blocks(sorted(rules), BLOCK_SIZE):
        placeholders, params = in_list(sessions)
        sql = (
            "SELECT session, human, rule, model, score, votes, wins FROM standings"  # noqa: S608
            f" WHERE score IS NOT NULL AND session IN {placeholders} ORDER BY session, human"
        )
        for session, group in groupby(database.rows(sql, params), key=itemgetter(0)):
            _, lines = next(groupby(group, key=itemgetter(1)))
            best[session] = _leading_models(rules[session], [line[2:] for line in lines])
    return best


def _leading_models(name: str | None, standings: Iterable[tuple[Any, ...]]) -> list[int]:
    """Return the codes of the leaders by a rule, or by Borda without its scores."""
    by_rule: dict[str, dict[int, StoredStanding]] = {"borda": {}}
    for stored_rule, model, *line in standings:
        by_rule.setdefault(stored_rule, {})[model] = (line[0], line[1], line[2])
    rule = name if name in by_rule and name in RULES else "borda"
    return lead_standings(RULES[rule], by_rule[rule], by_rule["borda"])


def _seats(database: Database, best: dict[str, int]) -> dict[str, str]:
    """Map sessions to the seat of their leader."""
    seats: dict[str, list[str]] = {}
    for sessions in blocks(sorted(best), BLOCK_SIZE):
        placeholders, params = in_list(sessions)
        sql = f"SELECT session, seat, model FROM answers WHERE session IN {placeholders}"  # noqa: S608
        for session, seat, model in database.rows(sql, params):
            if model == best[session]:
                seats.setdefault(session, []).append(seat)
    return {session: names[0] for session, names in seats.items() if len(names) == 1}


PageCursor = tuple[datetime, str]
"""Time and name of the last session on a page."""


def read_page(
    database: Database, search: Search, size: int, after: PageCursor | None = None
) -> tuple[list[SessionSummary], PageCursor | None]:
    """Read a page of sessions, and the cursor of the next page.

    Every session is on exactly one page, even if many share a time or newer ones are added.
    """
    sessions = find(database, replace(search, limit=size + 1, after=after))
    if len(sessions) <= size:
        return sessions, None
    last = sessions[size - 1]
    return sessions[:size], (last.at, last.session)


BLOCK_SIZE = 500
"""Number of sessions in one statement."""

MIN_NAME_LENGTH = 15
"""Length of the shortest name, enough for the date and time of a council session."""

MAX_NAMES_LISTED = 4
"""Maximum number of names listed in a message."""


def resolve_name(database: Database, name: str) -> str:
    """Return a session's name from an unambiguous beginning of it, or ``last``."""
    require_text(name)
    with database.snapshot():
        if not is_storable(name):
            require_session(database, name)
        if database.rows("SELECT 1 FROM sessions WHERE session = :name", {"name": name}):
            return name
        if name == LATEST_ALIAS:
            return _latest_session(database)
        sql = (
            "SELECT session FROM sessions WHERE substr(session, 1, :length) = :name"
            " ORDER BY at_us DESC, session"
        )
        matches = database.rows(sql, {"length": len(name), "name": name}) if name else []
        if not matches:
            require_session(database, name)
    if len(matches) > 1:
        session_names = ", ".join(session for (session,) in matches[:MAX_NAMES_LISTED])
        more = ", …" if len(matches) > MAX_NAMES_LISTED else ""
        problem = f"{name} matches {len(matches):,} sessions: {session_names}{more}"
        raise HistoryConflict(database.location, problem, "give more of the name")
    [(session,)] = matches
    return str(session)


def _latest_session(database: Database) -> str:
    for summary in find(database, Search(limit=1)):
        return summary.session
    problem = "contains no sessions yet"
    remedy = "ask a question, or import a file"
    raise HistoryConflict(database.location, problem, remedy)


def short_names(database: Database, sessions: Sequence[str]) -> Mapping[str, str]:
    """Map sessions to the shortest unambiguous beginning of their name."""
    stems = sorted({session[:MIN_NAME_LENGTH] for session in sessions})
    if not stems:
        return {}
    placeholders, params = in_list(stems)
    sql = "SELECT session FROM sessions"
    sql += f" WHERE substr(session, 1, {MIN_NAME_LENGTH}) IN {placeholders}"
    sessions_by_stem: dict[str, list[str]] = {}
    for (session,) in database.rows(sql, params):
        sessions_by_stem.setdefault(session[:MIN_NAME_LENGTH], []).append(session)
    return {
        session: _shorten(session, sessions_by_stem.get(session[:MIN_NAME_LENGTH], []))
        for session in sessions
    }


def _shorten(session: str, similar_names: Sequence[str]) -> str:
    others = [other for other in similar_names if other != session]
    for length in range(MIN_NAME_LENGTH, len(session)):
        if not any(other.startswith(session[:length]) for other in others):
            return session[:length]
    return session


@dataclass(frozen=True, slots=True)
class HistorySummary:
    """The size, version and counts of a history.

    Parameters
    ----------
    where
        The file, or the URL without a password.
    version
        The number of its migrations; the last one was applied at `migrated_at`, by Witan
        `migrated_by`.
    n_bytes
        The size of the file or the database.
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
    """Count the sessions and the size of a history."""
    with database.snapshot():
        [(n_sessions, n_simulated, n_interrupted)] = database.rows(
            "SELECT COUNT(*), COALESCE(SUM(simulated), 0),"
            " COALESCE(SUM(CASE WHEN status = 'interrupted' THEN 1 ELSE 0 END), 0) FROM sessions"
        )
        [(version, at_us, by)] = database.rows(
            "SELECT version, at_us, witan FROM migrations ORDER BY version DESC LIMIT 1"
        )
    return HistorySummary(
        where=database.location,
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
        log = database.path.with_name(f"{database.path.name}-wal")
        return sum(path.stat().st_size for path in (database.path, log) if path.exists())
    [(size,)] = database.rows("SELECT pg_database_size(current_database())")
    return int(size)
