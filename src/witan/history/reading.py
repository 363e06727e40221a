"""Reading of stored sessions: events, ballots, answers, and exports."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from witan.core.ballot import Ballot
from witan.core.ballot_records import read_record
from witan.core.casts import Cast, Named
from witan.core.entries import AnswerEntry
from witan.core.scale_recognition import declare_native
from witan.deliberation.imported_session import Imported
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, InvalidParameter, UnknownName
from witan.history.database import Database
from witan.history.events import read_events
from witan.history.rows import is_storable, make_storable, to_datetime

SUGGESTED = 200
"""Number of latest sessions that a misspelt name is compared with."""


def require_session(database: Database, session: str) -> tuple[Any, ...]:
    """Return the time, category, simulated, status, source and rule of a session.

    Raises
    ------
    UnknownName
        If there is no such session.
    InvalidParameter
        If the name is no text.
    """
    sql = (
        "SELECT at_us, category, simulated, status, source, rule FROM sessions"
        " WHERE session = :session"
    )
    require_text(session)
    for row in database.rows(sql, {"session": session}) if is_storable(session) else ():
        return row
    latest = database.rows(
        "SELECT session FROM sessions ORDER BY at_us DESC, session LIMIT :n", {"n": SUGGESTED}
    )
    raise UnknownName("session", session, [name for (name,) in latest])


def require_text(session: object) -> None:
    """Refuse a session's name unless it is text."""
    if not isinstance(session, str):
        raise InvalidParameter("session", session, "the name of a session, a text")


def read_session(database: Database, session: str) -> Session:
    """Read a council session, complete or interrupted."""
    with database.snapshot():
        source = require_session(database, session)[4]
        events = read_events(database, session)
    if not events:
        origin = Path(source).name
        problem = f"the session {session} came in as ballots, from {origin}, and has no events"
        raise HistoryConflict(database.where, problem, "read its ballots")
    return Session.of(events)


def read_ballots(database: Database, session: str) -> list[Ballot]:
    """Read the ballots of a session as cast, people's included."""
    with database.snapshot():
        require_session(database, session)
        ballots = stored_ballots(database, session)
        events = [] if ballots else read_events(database, session)
    return list(Session.of(events).ballots) if events else ballots


def stored_ballots(database: Database, session: str) -> list[Ballot]:
    """Read the counted ballots of a session, people's included."""
    sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
    return [parse_ballot(body) for (body,) in database.rows(sql, {"session": session})]


def read_answers(database: Database, session: str) -> dict[str, str]:
    """Read the answers of a session by seat, or by candidate."""
    sql = "SELECT seat, body FROM answers WHERE session = :session AND body IS NOT NULL"
    with database.snapshot():
        require_session(database, session)
        events = read_events(database, session)
        answers = dict(database.rows(sql + " ORDER BY seat", {"session": session}))
    if not events:
        return answers
    return {seat: answer.text for seat, answer in Session.of(events).answers.items()}


def parse_ballot(body: str) -> Ballot:
    """Parse a stored ballot, with every scale but 1-10 named."""
    return declare_native(read_record(json.loads(body)))


def sessions_sharing_answers(database: Database, session: str) -> list[str]:
    """Return a session and all others with the same answers."""
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


def read_cast(database: Database, session: str, at_us: int, category: str | None) -> Cast:
    """Read the cast of an imported session, to count it again."""
    params = {"session": session}
    cast = database.rows(
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
    ballots = [(parse_ballot(body), *rest) for body, *rest in cast]
    return Cast(
        session,
        to_datetime(at_us),
        tuple(ballot for ballot, *_ in ballots),
        category=category,
        models={b.reviewer: model for b, model, *_ in ballots if model != b.reviewer}
        | {seat: model for seat, model, _ in seats},
        lengths={seat: chars for seat, _, chars in seats if chars is not None},
        kept={b.reviewer: (k, n) for b, _, k, n, _, paired in ballots if n and not paired},
        repaired=[b.reviewer for b, _, _, _, repaired, _ in ballots if repaired],
    )


_ANSWERS = (
    "SELECT a.body, a.seat, n.name, a.chars, a.seconds, a.cost_usd, a.output_tokens, a.failed"
    " FROM answers a JOIN names n ON n.code = a.model WHERE a.session = :session ORDER BY a.seat"
)

_BESIDE = (
    "SELECT n.name, b.kept, b.compared, b.repaired"
    " FROM ballots b JOIN names n ON n.code = b.reviewer"
    " WHERE b.session = :session ORDER BY b.ballot"
)


def export_session(database: Database, session: str) -> Imported:
    """Read everything stored about a session, people's votes included."""
    with database.snapshot():
        at_us, category, simulated, *_ = require_session(database, session)
        cast = stored_ballots(database, session)
        if events := read_events(database, session):
            return _export_record(Session.of(events), category, cast)
        sql = "SELECT question, closing FROM sessions WHERE session = :session"
        [(question, closing)] = database.rows(sql, {"session": session})
        answers = database.rows(_ANSWERS, {"session": session})
        beside = database.rows(_BESIDE, {"session": session})
    entries = [_answer(*row) for _, *row in answers]
    return Imported(
        session,
        to_datetime(at_us),
        question,
        category,
        tuple(cast),
        answers={seat: body for body, seat, *_ in answers if body is not None},
        lengths={seat: n for body, seat, _, n, *_ in answers if body is None and n is not None},
        simulated=bool(simulated),
        closing=closing,
        models=_models(cast, entries, [name for name, *_ in beside]),
        kept={
            ballot.reviewer: (same, compared)
            for ballot, (_, same, compared, _) in zip(cast, beside, strict=True)
            if compared and not ballot.paired
        },
        repaired=tuple(ballot.reviewer for ballot, row in zip(cast, beside, strict=True) if row[3]),
        took=tuple(entries) if any(map(_has_numbers, entries)) else (),
    )


def _answer(*row: Any) -> AnswerEntry:
    seat, model, chars, seconds, cost_usd, output_tokens, failed = row
    return AnswerEntry(seat, model, chars, seconds, cost_usd, output_tokens, bool(failed))


def _models(
    cast: Sequence[Ballot], entries: Sequence[AnswerEntry], reviewers: Sequence[str]
) -> dict[str, str]:
    """Map names to models, where the ballots alone do not."""
    named = Named(Cast("", datetime(1970, 1, 1, tzinfo=UTC), tuple(cast)))
    models = {
        answer.seat: answer.model
        for answer in entries
        if make_storable(named.candidate(answer.seat)) != answer.model
    }
    models |= {
        ballot.reviewer: model
        for ballot, model in zip(cast, reviewers, strict=True)
        if make_storable(ballot.reviewer) != model
    }
    return models


def _has_numbers(answer: AnswerEntry) -> bool:
    """Tell whether an entry has more than its model and length."""
    numbers = (answer.seconds, answer.cost_usd, answer.output_tokens)
    return answer.failed or any(number is not None for number in numbers)


def _export_record(session: Session, category: str | None, cast: list[Ballot]) -> Imported:
    """Export a council session, its own ballots inside its events."""
    votes = (ballot for ballot in cast if ballot.kind == "human")
    return Imported(
        session.id,
        session.opened.at,
        session.question,
        category,
        (*session.ballots, *votes),
        answers={seat: answer.text for seat, answer in session.answers.items()},
        session_record=session,
        simulated=session.simulated,
        closing=session.text,
    )
