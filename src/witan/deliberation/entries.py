"""Rows of a session for leaderboards and audits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from witan.core.ballot import Ballot
from witan.core.casts import Cast
from witan.core.entries import AnswerEntry, Entries
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.settings import AUTO, Settings
from witan.deliberation import events as e
from witan.deliberation.learning import model_of
from witan.deliberation.ports import Seat, Spent
from witan.deliberation.session import Session

_ANSWERED = (e.AnswerDone, e.AnswerFailed)


def session_entries(session: Session, votes: Sequence[Ballot] = ()) -> Entries:
    """Rows of a closed session, complete or not.

    Ballots count as they were cast, a quorum or not: an outcome is the council's to declare, a
    standing only says what the ballots say. Models are named as their seats are written; one that
    was handed over as an object, by its seat.

    Parameters
    ----------
    votes
        People's later votes on the answers.

    Raises
    ------
    TooLarge, InvalidParameter
        If people's ballots cannot be counted.
    """
    cast = session_cast(session, votes)
    return entries_of(cast, rules=_rules(session), settings=session.settings)


def entries_of_sessions(sessions: Sequence[Session]) -> list[Entries]:
    """Rows of closed sessions, equal to `session_entries` but for last digits.

    Those that are counted alike are counted at once, at a fraction of the cost.
    """
    alike: list[tuple[tuple[str, ...], Settings, dict[str, int]]] = []
    for number, session in enumerate(sessions):
        rules, settings = _rules(session), session.opened.procedure.counting
        for other_rules, other_settings, names in alike:
            if other_rules == rules and other_settings == settings and session.id not in names:
                names[session.id] = number
                break
        else:
            alike.append((rules, settings, {session.id: number}))
    entries: dict[int, Entries] = {}
    for rules, settings, names in alike:
        group = [sessions[number] for number in names.values()]
        gates = {name: gate for session in group for name, gate in session.settings.gates.items()}
        casts = (session_cast(session) for session in group)
        counted = entries_of_many(casts, rules=rules, settings=replace(settings, gates=gates))
        entries.update(zip(names.values(), counted, strict=True))
    return [entries[number] for number in range(len(sessions))]


def _rules(session: Session) -> tuple[str, ...]:
    own = session.settings.rule if session.outcome is None else session.outcome.rule
    return ("borda", *(() if own == AUTO else (own,)))


def session_cast(session: Session, votes: Sequence[Ballot] = ()) -> Cast:
    """The ballots and answers of a closed session, with later votes."""
    return Cast(
        session=session.id,
        at=session.opened.at,
        ballots=(*counted_ballots(session), *votes),
        category=session.opened.category,
        simulated=session.simulated,
        models={
            seat.name: model_of(seat) for seat in (*session.opened.jury, *session.opened.seats)
        },
        answers=_answers(session),
        kept=session.consistency,
        repaired=_repaired_reviewers(session),
        outcome=session.outcome,
    )


def counted_ballots(session: Session) -> tuple[Ballot, ...]:
    """Ballots and abstentions of seats with any event.

    A seat whose calls all went to no model says nothing about one; a session in which nobody
    answered says nothing about anybody.
    """
    if not session.answers:
        return ()
    out = _unreached_seats(session)
    return tuple([ballot for ballot in session.ballots if ballot.reviewer not in out])


def _unreached_seats(session: Session) -> frozenset[str]:
    """Seats with a call and an unreachable model."""
    unreached: set[str] = set()
    reached: set[str] = set()
    for event in session.events:
        match event:
            case e.AnswerFailed(misconfigured=True) | e.BallotAbstained(misconfigured=True):
                unreached.add(event.seat)
            case e.AnswerDone() | e.BallotCast() | e.BallotRepaired():
                reached.add(event.seat)
    return frozenset(unreached - reached)


def _answers(session: Session) -> tuple[AnswerEntry, ...]:
    """One entry per seat with a reached model."""
    spent: dict[str, list[Spent]] = {seat.name: [] for seat in session.opened.seats}
    for event in session.events:
        if isinstance(event, _ANSWERED) and event.seat in spent and event.spent.calls:
            spent[event.seat].append(event.spent)
    if not session.answers:
        return ()
    out = _unreached_seats(session)
    seats = (seat for seat in session.opened.seats if seat.name not in out)
    return tuple([_answer(session, seat, spent[seat.name]) for seat in seats])


def _answer(session: Session, seat: Seat, calls: Sequence[Spent]) -> AnswerEntry:
    """The entry of a seat's answer, all rounds and failures included.

    A failure has no seconds: they are those of a deadline, and of no answer. An answer that was
    taken over from another session took nothing in this one.
    """
    spent = reduce(add, calls) if calls else None
    answer = session.answers.get(seat.name)
    return AnswerEntry(
        seat=seat.name,
        model=model_of(seat),
        chars=None if answer is None else len(answer.text),
        seconds=None if answer is None or spent is None else spent.seconds,
        cost_usd=None if spent is None else spent.cost_usd,
        output_tokens=None if answer is None or spent is None else spent.usage.output_tokens,
        failed=answer is None,
    )


def _repaired_reviewers(session: Session) -> frozenset[str]:
    """Reviewers with a repaired final ballot."""
    stands = {
        event.seat: event.round for event in session.events if isinstance(event, e.BallotCast)
    }
    return frozenset(
        event.seat
        for event in session.events
        if isinstance(event, e.BallotRepaired) and stands.get(event.seat) == event.round
    )
