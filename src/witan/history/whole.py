"""Whole sessions on their way out: as an import takes them in."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from witan.core.ballot import Ballot
from witan.core.casts import Cast, Named
from witan.core.entries import AnswerEntry
from witan.deliberation.imported_session import Imported
from witan.deliberation.session import Session
from witan.history.database import Database
from witan.history.reading import ballot_of, moment_of, require
from witan.history.stored_events import read_events
from witan.history.writing import stored_text

__all__ = ["whole"]

_ANSWERS = (
    "SELECT a.body, a.seat, n.name, a.chars, a.seconds, a.cost_usd, a.output_tokens, a.failed"
    " FROM answers a JOIN names n ON n.code = a.model WHERE a.session = :session ORDER BY a.seat"
)

_BESIDE = (
    "SELECT n.name, b.kept, b.compared, b.repaired"
    " FROM ballots b JOIN names n ON n.code = b.reviewer"
    " WHERE b.session = :session ORDER BY b.ballot"
)


def whole(database: Database, session: str) -> Imported:
    """All that is kept of a session, people's votes included.

    Raises
    ------
    UnknownName
        If there is no such session.
    """
    with database.snapshot():
        at_us, category, simulated, *_ = require(database, session)
        cast = _ballots(database, session)
        if events := read_events(database, session):
            return _held(Session.of(events), category, cast)
        sql = "SELECT question, closing FROM sessions WHERE session = :session"
        [(question, closing)] = database.rows(sql, {"session": session})
        told = database.rows(_ANSWERS, {"session": session})
        beside = database.rows(_BESIDE, {"session": session})
    took = [_answer(*row) for _, *row in told]
    return Imported(
        session,
        moment_of(at_us),
        question,
        category,
        tuple(cast),
        answers={seat: body for body, seat, *_ in told if body is not None},
        lengths={seat: n for body, seat, _, n, *_ in told if body is None and n is not None},
        simulated=bool(simulated),
        closing=closing,
        models=_models(cast, took, [name for name, *_ in beside]),
        kept={
            ballot.reviewer: (kept, compared)
            for ballot, (_, kept, compared, _) in zip(cast, beside, strict=True)
            if compared and not ballot.paired
        },
        repaired=tuple(ballot.reviewer for ballot, row in zip(cast, beside, strict=True) if row[3]),
        took=tuple(took) if any(map(_tells, took)) else (),
    )


def _answer(*row: Any) -> AnswerEntry:
    seat, model, chars, seconds, cost_usd, output_tokens, failed = row
    return AnswerEntry(seat, model, chars, seconds, cost_usd, output_tokens, bool(failed))


def _models(
    cast: Sequence[Ballot], took: Sequence[AnswerEntry], reviewers: Sequence[str]
) -> dict[str, str]:
    """Who is behind a name, where the ballots alone would not say it."""
    named = Named(Cast("", datetime(1970, 1, 1, tzinfo=UTC), tuple(cast)))
    models = {
        answer.seat: answer.model
        for answer in took
        if stored_text(named.candidate(answer.seat)) != answer.model
    }
    models |= {
        ballot.reviewer: model
        for ballot, model in zip(cast, reviewers, strict=True)
        if stored_text(ballot.reviewer) != model
    }
    return models


def _tells(answer: AnswerEntry) -> bool:
    """Whether it says more than who wrote the answer, and how long it is."""
    numbers = (answer.seconds, answer.cost_usd, answer.output_tokens)
    return answer.failed or any(number is not None for number in numbers)


def _ballots(database: Database, session: str) -> list[Ballot]:
    sql = "SELECT body FROM ballots WHERE session = :session ORDER BY ballot"
    return [ballot_of(body) for (body,) in database.rows(sql, {"session": session})]


def _held(session: Session, category: str | None, cast: list[Ballot]) -> Imported:
    """A session of a council: what it cast itself is in its events."""
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
