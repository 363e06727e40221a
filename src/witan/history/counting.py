"""Counting of stored sessions: when they close, and later under other rules.

A session, its retries and their retries are one family. They share answers and ballots, so only one
closed session of a family counts, and the others are superseded: that with the most ballots, then
the most answers, then the latest; a failed one only if all failed. A session that was retried in
vain therefore still counts. The choice follows from the stored rows alone: when the session that
counts is forgotten, the next one counts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import add, attrgetter
from typing import NamedTuple

from witan.core.ballot import Ballot
from witan.core.entries import AnswerEntry, Entries
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.session_ballots import SessionBallots
from witan.core.settings import AUTO, Settings
from witan.deliberation import events as e
from witan.deliberation.learning import model_of
from witan.deliberation.ports import Expense, Seat
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.history.database import Database, in_list
from witan.history.reading import read_session_ballots, stored_ballots
from witan.history.rows import COUNCIL, Rows, SessionRow, read_events

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
    cast = session_ballots(session, votes)
    return entries_of(cast, rules=_rules(session), settings=session.settings)


def entries_of_sessions(sessions: Sequence[Session]) -> list[Entries]:
    """Rows of closed sessions, equal to `session_entries` but for last digits."""
    return _count_alike([(session_ballots(one), _rules(one), one.settings) for one in sessions])


def _count_alike(
    sessions: Sequence[tuple[SessionBallots, tuple[str, ...], Settings]],
) -> list[Entries]:
    """Count sessions of equal rules and settings at once, at a fraction of the cost."""
    alike: list[tuple[tuple[str, ...], Settings, dict[str, int]]] = []
    for number, (cast, rules, own) in enumerate(sessions):
        settings = replace(own, gates={})
        for other_rules, other_settings, names in alike:
            if other_rules == rules and other_settings == settings and cast.session not in names:
                names[cast.session] = number
                break
        else:
            alike.append((rules, settings, {cast.session: number}))
    entries: dict[int, Entries] = {}
    for rules, settings, names in alike:
        group = [sessions[number] for number in names.values()]
        gates = {name: gate for *_, own in group for name, gate in own.gates.items()}
        casts = (cast for cast, *_ in group)
        counted = entries_of_many(casts, rules=rules, settings=replace(settings, gates=gates))
        entries.update(zip(names.values(), counted, strict=True))
    return [entries[number] for number in range(len(sessions))]


def _rules(session: Session) -> tuple[str, ...]:
    own = session.settings.rule if session.outcome is None else session.outcome.rule
    return ("borda", *(() if own == AUTO else (own,)))


def session_ballots(session: Session, votes: Sequence[Ballot] = ()) -> SessionBallots:
    """The ballots and answers of a closed session, with later votes."""
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
        order_agreement=session.consistency,
        repaired_reviewers=_repaired_reviewers(session),
        outcome=session.outcome,
    )


def counted_ballots(session: Session) -> tuple[Ballot, ...]:
    """Ballots and abstentions of seats with any event.

    A seat whose calls all went to no model says nothing about one; a session in which nobody
    answered says nothing about anybody. Nor does one in which a model judges itself, to be compared
    with a council.
    """
    opened = session.opening
    if not session.answers or (opened.relation == "compared" and opened.judging is None):
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
    spent: dict[str, list[Expense]] = {seat.name: [] for seat in session.opening.seats}
    for event in session.events:
        if isinstance(event, _ANSWERED) and event.seat in spent and event.spent.calls:
            spent[event.seat].append(event.spent)
    if not session.answers:
        return ()
    out = _unreached_seats(session)
    seats = (seat for seat in session.opening.seats if seat.name not in out)
    return tuple([_answer(session, seat, spent[seat.name]) for seat in seats])


def _answer(session: Session, seat: Seat, calls: Sequence[Expense]) -> AnswerEntry:
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


RETRY = "retried"
"""The relation of a session to the one it retries."""

_OF = f"r.parent IS NOT NULL AND r.relation = '{RETRY}'"

# In this order, because SQLite looks rows up by what stands on the left of CROSS JOIN.
_KIN = f"""
WITH RECURSIVE kin(session, family) AS (
    SELECT r.parent, r.parent FROM sessions r
    WHERE {_OF} AND r.parent NOT IN (SELECT r.session FROM sessions r WHERE {_OF})
    UNION
    SELECT r.session, kin.family FROM kin CROSS JOIN sessions r
    WHERE r.parent = kin.session AND {_OF}
)
"""  # noqa: S608 - texts of our own

SUPERSEDED_SESSIONS = f"""
{_KIN}
SELECT placed.session FROM (
    SELECT closed.session, ROW_NUMBER() OVER (
        PARTITION BY closed.family
        ORDER BY closed.in_vain, closed.n_ballots DESC, closed.n_answers DESC, closed.at_us DESC,
            closed.session DESC
    ) AS place
    FROM (
        SELECT kin.family, m.session, m.at_us,
            CASE m.status WHEN 'failed' THEN 1 ELSE 0 END AS in_vain,
            (SELECT COUNT(*) FROM ballots b WHERE b.session = m.session AND b.human = 0
                AND b.abstained = 0) AS n_ballots,
            (SELECT COUNT(*) FROM answers a WHERE a.session = m.session
                AND a.failed = 0) AS n_answers
        FROM kin CROSS JOIN sessions m
        WHERE m.session = kin.session AND m.holder = ''
    ) closed
) placed
WHERE placed.place > 1
"""  # noqa: S608 - texts of our own
"""Query of the sessions that do not count, because another of their family does."""

_FAMILIES = f"""
{_KIN}
SELECT kin.family, m.session, m.at_us, m.relation, m.parent FROM kin CROSS JOIN sessions m
WHERE m.session = kin.session
ORDER BY kin.family, m.at_us, m.session
"""  # noqa: S608 - texts of our own


def reparent_families(database: Database, sessions: Iterable[str]) -> None:
    """Link the rest of a family together before some are deleted."""
    gone = set(sessions)
    sql = "UPDATE sessions SET parent = :parent WHERE session = :session"
    for family in _families(database, gone):
        before: str | None = None
        for one in family:
            if one.session in gone:
                continue
            if one.relation == RETRY and one.parent in gone:
                database.execute(sql, {"session": one.session, "parent": before})
            before = one.session


class _Relative(NamedTuple):
    """A session of a family."""

    family: str
    session: str
    at_us: int
    relation: str | None
    parent: str | None


def _families(database: Database, sessions: Collection[str]) -> Iterator[list[_Relative]]:
    """Read the families of these sessions, each in the order of time."""
    rows = (_Relative(*row) for row in database.rows(_FAMILIES))
    for _, family in groupby(rows, key=attrgetter("family")):
        members = list(family)
        if any(one.session in sessions for one in members):
            yield members


@dataclass(frozen=True, slots=True)
class SessionRows:
    """The rows of a session.

    Parameters
    ----------
    entries
        None: it cannot be counted, and has no rows but its own.
    ballots
        The ballots that the entries were made from, in their order.
    answers
        Seat, or candidate, to text.
    """

    row: SessionRow
    entries: Entries | None
    ballots: Sequence[Ballot]
    answers: Mapping[str, str]

    def of_source(self, source: str, at: datetime) -> "SessionRows":
        """Return the rows of the same session as imported from a file."""
        return replace(self, row=replace(self.row, source=source, added=at))

    def add_to(self, rows: Rows) -> None:
        """Add every row but the session's own."""
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
    return _session_rows(session, entries, votes)


def count_sessions(sessions: Sequence[Session]) -> list[SessionRows]:
    """Count closed sessions together; if one fails, each alone."""
    entries: Sequence[Entries | None]
    try:
        entries = entries_of_sessions(sessions)
    except WitanError:
        entries = [_entries(session) for session in sessions]
    return [_session_rows(session, one) for session, one in zip(sessions, entries, strict=True)]


def _session_rows(
    session: Session, entries: Entries | None, votes: Sequence[Ballot] = ()
) -> SessionRows:
    answers = {seat: answer.text for seat, answer in session.answers.items()}
    ballots = (*counted_ballots(session), *votes)
    return SessionRows(_row(session, entries), entries, ballots, answers)


def _entries(session: Session) -> Entries | None:
    if session.status == "interrupted":
        return None
    try:
        return session_entries(session)
    except WitanError:
        return None  # no answer or no ballot: it is stored, and adds nothing to the sums


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
        judges_only=bool(session.opening.answers) and session.opening.judging is None,
    )


AT_ONCE = 500
"""Sessions that are read, counted and written at a time."""

Weigh = Callable[[Sequence[SessionBallots]], Mapping[str, Mapping[str, float]]]
"""Casts of sessions → session to the reliability of its reviewers, where it has none."""


@dataclass(frozen=True, slots=True)
class _UncountedSession:
    """A session not yet counted under a rule.

    Parameters
    ----------
    state
        When it came in, and its revision: in another state it has to be counted again.
    """

    ballots: SessionBallots
    settings: Settings
    state: tuple[int, int]

    def weigh_ballots(self, weights: Mapping[str, float] | None) -> Settings:
        """Return its settings, with the learned reliability where they have none."""
        if self.settings.reliability is None and weights:
            return replace(self.settings, reliability=weights)
        return self.settings


def recount(database: Database, rule: str, weigh: Weigh | None = None) -> int:
    """Count sessions under a rule new to them; return their number.

    A session that changes meanwhile, by a vote, is counted again. One that the rule cannot count is
    noted, too, and not tried again.
    """
    added = n_stale = 0
    for block in _read_uncounted(database, rule):
        weights = {} if weigh is None else weigh([one.ballots for one in block])
        counted = _count_alike(
            [
                (one.ballots, (rule,), one.weigh_ballots(weights.get(one.ballots.session)))
                for one in block
            ]
        )
        states = {one.ballots.session: one.state for one in block}
        new, stale = _add_standings(database, rule, counted, states)
        added, n_stale = added + new, n_stale + stale
    return added + (recount(database, rule, weigh) if n_stale else 0)


_MISSING = f"""
SELECT s.session, s.at_us, s.category, s.added_us, s.revision FROM sessions s
WHERE s.simulated = 0 AND s.rejudged = 0 AND s.session > :after
AND s.session NOT IN ({SUPERSEDED_SESSIONS})
AND EXISTS (SELECT 1 FROM ballots b WHERE b.session = s.session)
AND NOT EXISTS (SELECT 1 FROM standings t WHERE t.session = s.session AND t.rule = :rule)
AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.session = s.session AND c.rule = :rule)
ORDER BY s.session LIMIT :size
"""  # noqa: S608 - texts of our own


def _read_uncounted(database: Database, rule: str) -> Iterator[list[_UncountedSession]]:
    """Read sessions not yet counted under a rule, in blocks."""
    after = ""
    while True:
        with database.snapshot():
            rows = database.rows(_MISSING, {"rule": rule, "after": after, "size": AT_ONCE})
            block = [
                _UncountedSession(*_read_session(database, *row), state=(added_us, revision))
                for *row, added_us, revision in rows
            ]
        if not block:
            return
        yield block
        after = block[-1].ballots.session


def _read_session(
    database: Database, session: str, at_us: int, category: str | None
) -> tuple[SessionBallots, Settings]:
    events = read_events(database, session)
    if not events:
        return read_session_ballots(database, session, at_us, category), Settings()
    votes = [one for one in stored_ballots(database, session) if one.kind == "human"]
    record = Session.of(events)
    return session_ballots(record, votes), record.settings


def _add_standings(
    database: Database,
    rule: str,
    session_entries: Sequence[Entries],
    states: Mapping[str, tuple[int, int]],
) -> tuple[int, int]:
    """Add standings of unchanged sessions; count the unchanged and the changed."""
    note = "INSERT INTO counted (session, rule) VALUES (:session, :rule) ON CONFLICT DO NOTHING"
    changed = "UPDATE sessions SET revision = revision + 1 WHERE session = :session"
    rows, added, stale = Rows(), 0, 0
    in_order = sorted(session_entries, key=lambda entries: entries.session.session)
    with database.transaction():
        stored = _lock(database, [entries.session.session for entries in in_order])
        for entries in in_order:
            session = entries.session.session
            if session not in stored:
                continue  # forgotten meanwhile
            if stored[session] != states[session]:
                stale += 1
            # If another process has counted it meanwhile, there is nothing to add.
            elif database.execute(note, {"session": session, "rule": rule}) == 1:
                rows.add_standings(session, [s for s in entries.standings if s.rule == rule])
                database.execute(changed, {"session": session})
                added += 1
        rows.write(database)
    return added, stale


def _lock(database: Database, sessions: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Lock sessions until the transaction ends; return the state of each."""
    among, params = in_list(sessions)
    sql = (
        "SELECT session, added_us, revision FROM sessions"  # noqa: S608
        f" WHERE session IN {among} ORDER BY session"
    )
    rows = database.rows(sql + database.locking, params)
    return {session: (added_us, revision) for session, added_us, revision in rows}
