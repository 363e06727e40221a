"""Counting of stored sessions: at closing, and later under other rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from types import MappingProxyType

from witan.core.ballot import Ballot
from witan.core.counting import CountColumn
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.session_ballots import AnswerEntry, Entries, SessionBallots
from witan.core.settings import AUTO, Settings
from witan.deliberation import events as e
from witan.deliberation.learning import model_of
from witan.deliberation.ports import Expense, Seat
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.history.database import Database, in_list
from witan.history.reading import find_session, read_session_ballots, stored_ballots, waiting_votes
from witan.history.rows import COUNCIL, Rows, SessionRow
from witan.history.schema import SUPERSEDED_SESSIONS

NO_COUNTS: Mapping[str, CountColumn] = MappingProxyType({})

_ANSWER_ENDS = (e.AnswerDone, e.AnswerFailed)

_FAILURES = (e.AnswerFailed, e.BallotAbstained)

_SUCCESSES = (e.AnswerDone, e.BallotCast, e.BallotRepaired)


def session_entries(session: Session, votes: Sequence[Ballot] = ()) -> Entries:
    """Return the entries of a closed session, complete or not.

    Ballots count as cast, with or without a quorum: only the council declares an outcome, a
    standing only reports the ballots. A model is named by the source of its seat; a model passed
    as an object is named by its seat.

    `votes`: people's later votes on the answers.

    Raises `TooLarge` or `InvalidParameter` if people's ballots cannot be counted.
    """
    ballots = session_ballots(session, votes)
    return entries_of(ballots, rules=_rules(session), settings=session.settings)


def _count_alike(
    sessions: Sequence[tuple[SessionBallots, tuple[str, ...], Settings]],
) -> list[Entries]:
    """Count sessions with equal rules and settings together, which is faster."""
    groups: list[tuple[tuple[str, ...], Settings, dict[str, int]]] = []
    for number, (one_session, rules, own_settings) in enumerate(sessions):
        settings = replace(own_settings, gates={}) if own_settings.gates else own_settings
        for other_rules, other_settings, names in groups:
            if (
                other_rules == rules
                and other_settings == settings
                and one_session.session not in names
            ):
                names[one_session.session] = number
                break
        else:
            groups.append((rules, settings, {one_session.session: number}))
    entries: dict[int, Entries] = {}
    for rules, settings, names in groups:
        group = [sessions[number] for number in names.values()]
        gates = {
            name: gate for *_, own_settings in group for name, gate in own_settings.gates.items()
        }
        sessions_of_group = (one_session for one_session, *_ in group)
        gated = replace(settings, gates=gates) if gates else settings
        all_entries = entries_of_many(sessions_of_group, rules=rules, settings=gated)
        entries.update(zip(names.values(), all_entries, strict=True))
    return [entries[number] for number in range(len(sessions))]


def _rules(session: Session) -> tuple[str, ...]:
    session_rule = session.settings.rule if session.outcome is None else session.outcome.rule
    return ("borda", *(() if session_rule == AUTO else (session_rule,)))


def session_ballots(
    session: Session, votes: Sequence[Ballot] = (), count: CountColumn | None = None
) -> SessionBallots:
    """Return the ballots and answers of a closed session, with later votes."""
    return SessionBallots(
        session=session.id,
        at=session.opening.at,
        ballots=(*counted_ballots(session), *votes),
        category=session.opening.category,
        simulated=session.is_simulated,
        models={
            seat.name: model_of(seat) for seat in (*session.opening.jury, *session.opening.seats)
        },
        answers=_answers(session),
        # Comparisons state themselves which pairs were judged in both orders.
        order_consistency={} if session.opening.procedure.pairs else session.consistency,
        repaired_reviewers=_repaired_reviewers(session),
        outcome=session.outcome,
        count=count if _ends_with_outcome(session) and not votes else None,
    )


def _ends_with_outcome(session: Session) -> bool:
    """Check that no ballot was cast after the outcome."""
    events = (x for x in reversed(session.events) if isinstance(x, e.OutcomeChanged | e.BallotCast))
    return isinstance(next(events, None), e.OutcomeChanged)


def counted_ballots(session: Session) -> tuple[Ballot, ...]:
    """Return the ballots and abstentions of seats whose model was reached.

    A seat whose calls never reached a model provides no data about it, and a session without
    answers provides none about any model. Neither does a session in which a model judges itself for
    comparison with a council.
    """
    opening = session.opening
    if not session.answers or (opening.relation == "compared" and opening.judging is None):
        return ()
    failed_seats = _unreached_seats(session)
    return tuple([ballot for ballot in session.ballots if ballot.reviewer not in failed_seats])


def _unreached_seats(session: Session) -> frozenset[str]:
    """Return the seats whose calls never reached a model."""
    unreached_seats = {
        x.seat for x in session.events if isinstance(x, _FAILURES) and x.misconfigured
    }
    if not unreached_seats:
        return frozenset()
    reached_seats = {x.seat for x in session.events if isinstance(x, _SUCCESSES)}
    return frozenset(unreached_seats - reached_seats)


def _answers(session: Session) -> tuple[AnswerEntry, ...]:
    """Return one entry per seat whose model was reached."""
    expenses_by_seat: dict[str, list[Expense]] = {seat.name: [] for seat in session.opening.seats}
    for event in session.events:
        if isinstance(event, _ANSWER_ENDS) and event.seat in expenses_by_seat and event.spent.calls:
            expenses_by_seat[event.seat].append(event.spent)
    if not session.answers:
        return ()
    unreached_seats = _unreached_seats(session)
    seats = (seat for seat in session.opening.seats if seat.name not in unreached_seats)
    return tuple([_answer(session, seat, expenses_by_seat[seat.name]) for seat in seats])


def _answer(session: Session, seat: Seat, calls: Sequence[Expense]) -> AnswerEntry:
    """Return the entry of a seat's answer, including all rounds and failures.

    A failure has no seconds: they measure a deadline, not an answer. An answer copied from another
    session has no time or cost in this one.
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
    """Return the reviewers whose final ballot was repaired."""
    repairs = [event for event in session.events if isinstance(event, e.BallotRepaired)]
    if not repairs:
        return frozenset()
    final_rounds = {
        event.seat: event.round for event in session.events if isinstance(event, e.BallotCast)
    }
    return frozenset(event.seat for event in repairs if final_rounds.get(event.seat) == event.round)


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The rows of a session.

    `entries`: None if it cannot be counted; then only its own row exists.
    `ballots`: the ballots of the entries, in the same order.
    `answers`: seat, or candidate, to text.
    """

    row: SessionRow
    entries: Entries | None
    ballots: Sequence[Ballot]
    answers: Mapping[str, str]

    def add_to(self, rows: Rows) -> None:
        """Add all rows except the session's own."""
        if self.entries is not None:
            rows.add(self.row.session, self.entries, self.ballots, self.answers)


def count_session(session: Session, votes: Sequence[Ballot] = ()) -> SessionRows:
    """Count a closed session with people's votes on it."""
    entries = _entries(session)
    if votes and session.status != "interrupted":
        try:
            entries = session_entries(session, votes)
        except WitanError:
            if entries is not None:
                raise
    return _session_rows(session, entries, (*counted_ballots(session), *votes))


def count_waiting_votes(database: Database, session: Session) -> SessionRows | None:
    """Count a session at its end, with the votes waiting for it.

    None if it cannot be counted.

    Votes that cannot be counted stay in their table, with the reason, and the session is stored
    without them.
    """
    if session.status == "interrupted":
        return None
    votes = waiting_votes(database, session.id)
    if not votes:
        return None
    params = {"session": session.id}
    try:
        entries = session_entries(session, votes)
    except WitanError as error:
        sql = "UPDATE waiting_votes SET why = :why WHERE session = :session"
        database.execute(sql, params | {"why": str(error)})
        return None
    database.execute("DELETE FROM waiting_votes WHERE session = :session", params)
    return _session_rows(session, entries, (*counted_ballots(session), *votes))


def count_sessions(
    sessions: Sequence[Session], counts: Mapping[str, CountColumn] = NO_COUNTS
) -> list[SessionRows]:
    """Count closed sessions together; if one fails, count each alone.

    `counts`: session to the count behind its outcome, for sessions whose count is known.
    """
    cast = [session_ballots(session, count=counts.get(session.id)) for session in sessions]
    entries: Sequence[Entries | None]
    try:
        entries = _count_alike(
            [
                (own, _rules(session), session.settings)
                for session, own in zip(sessions, cast, strict=True)
            ]
        )
    except WitanError:
        entries = [_entries(session) for session in sessions]
    return [
        _session_rows(session, one, own.ballots)
        for session, one, own in zip(sessions, entries, cast, strict=True)
    ]


def _session_rows(
    session: Session, entries: Entries | None, ballots: Sequence[Ballot]
) -> SessionRows:
    answers = {seat: answer.text for seat, answer in session.answers.items()}
    return SessionRows(_row(session, entries), entries, ballots, answers)


def _entries(session: Session) -> Entries | None:
    if session.status == "interrupted":
        return None
    try:
        return session_entries(session)
    except WitanError:
        return None  # without an answer or ballot it is stored without entries


def _decide(session: Session) -> str | None:
    """Return the verdict on judged texts, if there is one."""
    try:
        verdict = session.verdict
    except WitanError:
        return None
    return None if verdict is None else verdict.decision


def _row(session: Session, entries: Entries | None) -> SessionRow:
    outcome = session.outcome
    return SessionRow(
        session=session.id,
        at=session.opening.at,
        category=session.opening.category,
        simulated=session.is_simulated,
        source=COUNCIL,
        status=session.status,
        question=session.question,
        closing=session.text,
        rule=None if outcome is None else outcome.rule,
        cost_usd=session.cost.total_usd,
        seconds=session.seconds,
        entry=None if entries is None else entries.session,
        parent=session.opening.parent,
        relation=session.opening.relation,
        decision=_decide(session),
        judges_only=bool(session.opening.answers) and session.opening.judging is None,
    )


BLOCK_SIZE = 500
"""Number of sessions read, counted and written together."""

Weigh = Callable[[Sequence[SessionBallots]], Mapping[str, Mapping[str, float]]]
"""Sessions → session to the reliability of its reviewers, if it has none."""


@dataclass(frozen=True, slots=True)
class _UncountedSession:
    """A session not yet counted under a rule.

    `state`: when it was added, and its revision; if the state changes, it must be counted again.
    """

    ballots: SessionBallots
    settings: Settings
    state: tuple[int, int]

    def weigh_ballots(self, weights: Mapping[str, float] | None) -> Settings:
        """Return a session's settings, with learned reliability if they have none."""
        if self.settings.reliability is None and weights:
            return replace(self.settings, reliability=weights)
        return self.settings


def recount(
    database: Database, rule: str, weigh: Weigh | None = None, damaged: set[str] | None = None
) -> int:
    """Count sessions under a rule new to them; return their number.

    A session that a vote changes meanwhile is counted again. A session that the rule cannot count
    is also recorded, and not tried again. Damaged sessions are added to `damaged`; without it, the
    first is an error.
    """
    added = n_stale = 0
    for block in _read_uncounted(database, rule, damaged):
        weights = {} if weigh is None else weigh([one.ballots for one in block])
        counted_sessions = _count_alike(
            [
                (one.ballots, (rule,), one.weigh_ballots(weights.get(one.ballots.session)))
                for one in block
            ]
        )
        states = {one.ballots.session: one.state for one in block}
        new, stale = _add_standings(database, rule, counted_sessions, states)
        added, n_stale = added + new, n_stale + stale
    return added + (recount(database, rule, weigh, damaged) if n_stale else 0)


_UNCOUNTED_SQL = f"""
SELECT s.session, s.at_us, s.category, s.added_us, s.revision FROM sessions s
WHERE s.simulated = 0 AND s.rejudged = 0 AND s.session > :after
AND s.session NOT IN ({SUPERSEDED_SESSIONS})
AND EXISTS (SELECT 1 FROM ballots b WHERE b.session = s.session)
AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.session = s.session AND t.rule = :rule)
AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.session = s.session AND c.rule = :rule)
ORDER BY s.session LIMIT :size
"""  # noqa: S608 - texts of our own


def _read_uncounted(
    database: Database, rule: str, damaged: set[str] | None
) -> Iterator[list[_UncountedSession]]:
    """Read sessions not yet counted under a rule, in blocks."""
    last_session = ""
    while True:
        with database.snapshot():
            rows = database.rows(
                _UNCOUNTED_SQL, {"rule": rule, "after": last_session, "size": BLOCK_SIZE}
            )
            block = []
            for *row, added_us, revision in rows:
                try:
                    ballots, settings = _read_session(database, *row)
                except HistoryError as error:
                    if damaged is None or not error.is_damage:
                        raise
                    damaged.add(row[0])
                else:
                    block.append(_UncountedSession(ballots, settings, (added_us, revision)))
        if not rows:
            return
        if block:
            yield block
        last_session = rows[-1][0]


def _read_session(
    database: Database, session: str, at_us: int, category: str | None
) -> tuple[SessionBallots, Settings]:
    record = find_session(database, session)
    if record is None:
        return read_session_ballots(database, session, at_us, category), Settings()
    votes = [one for one in stored_ballots(database, session) if one.kind == "human"]
    return session_ballots(record, votes), record.settings


def _add_standings(
    database: Database,
    rule: str,
    session_entries: Sequence[Entries],
    states: Mapping[str, tuple[int, int]],
) -> tuple[int, int]:
    """Add standings of unchanged sessions; return how many were unchanged and changed."""
    note = "INSERT INTO counted (session, rule) VALUES (:session, :rule) ON CONFLICT DO NOTHING"
    changed = "UPDATE sessions SET revision = revision + 1 WHERE session = :session"
    rows, added, stale = Rows(), 0, 0
    in_order = sorted(session_entries, key=lambda entries: entries.session.session)
    with database.transaction():
        stored_revisions = _lock(database, [entries.session.session for entries in in_order])
        for entries in in_order:
            session = entries.session.session
            if session not in stored_revisions:
                continue  # deleted meanwhile
            if stored_revisions[session] != states[session]:
                stale += 1
            # If another process has counted it meanwhile, nothing is added.
            elif database.execute(note, {"session": session, "rule": rule}) == 1:
                rows.add_standings(session, [s for s in entries.standings if s.rule == rule])
                database.execute(changed, {"session": session})
                added += 1
        rows.write(database)
    return added, stale


def _lock(database: Database, sessions: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Lock sessions until the transaction ends; return the state of each."""
    placeholders, params = in_list(sessions)
    sql = (
        "SELECT session, added_us, revision FROM sessions"  # noqa: S608
        f" WHERE session IN {placeholders} ORDER BY session"
    )
    rows = database.rows(sql + database.locking, params)
    return {session: (added_us, revision) for session, added_us, revision in rows}
