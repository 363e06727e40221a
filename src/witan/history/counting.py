"""Counting of stored sessions: when they close, and later under further rules.

A session that was retried, those that retry it, and those that retry these are one family. The same
answers and ballots stand in all of them, so only one that is closed counts: that with the most
ballots, of those that with the most answers, of those the latest; one that failed only where all
did. So a session that was retried in vain keeps its place. Which one it is follows from the rows of
the sessions alone: where it is forgotten, the next counts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from witan.core.ballot import Ballot
from witan.core.casts import Cast
from witan.core.entering import entries_of_many
from witan.core.entries import Entries
from witan.core.settings import Settings
from witan.deliberation.entries import (
    counted_ballots,
    entries_of_sessions,
    session_cast,
    session_entries,
)
from witan.deliberation.session import Session
from witan.errors import WitanError
from witan.history.database import Database
from witan.history.events import read_events
from witan.history.reading import parse_ballot, read_cast
from witan.history.rows import COUNCIL, Rows, SessionRow, to_microseconds

RETRY = "retried"
"""The relation of a session to the one that it retries."""

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
    SELECT held.session, ROW_NUMBER() OVER (
        PARTITION BY held.family
        ORDER BY held.in_vain, held.n_ballots DESC, held.n_answers DESC, held.at_us DESC,
            held.session DESC
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
    ) held
) placed
WHERE placed.place > 1
"""  # noqa: S608 - texts of our own
"""The sessions that count no more; few, however many sessions there are."""

_FAMILIES = f"""
{_KIN}
SELECT kin.family, m.session, m.at_us, m.relation, m.parent FROM kin CROSS JOIN sessions m
WHERE m.session = kin.session
ORDER BY kin.family, m.at_us, m.session
"""  # noqa: S608 - texts of our own


def mark_family(database: Database, rows: Rows, session: str) -> None:
    """Note that what is rolled up of the family of a session is not true, now that it is closed."""
    for family in _families(database, {session}):
        for one in family:
            rows.mark(one.session, one.at_us)


def reparent_families(database: Database, rows: Rows, sessions: Iterable[str]) -> None:
    """Keep a family together of which some are about to be deleted: the rest follow each other."""
    gone = set(sessions)
    sql = "UPDATE sessions SET parent = :parent WHERE session = :session"
    for family in _families(database, gone):
        before: str | None = None
        for one in family:
            if one.session in gone:
                continue
            rows.mark(one.session, one.at_us)
            if one.relation == RETRY and one.parent in gone:
                database.execute(sql, {"session": one.session, "parent": before})
            before = one.session


class _Kin(NamedTuple):
    """One of a family."""

    family: str
    session: str
    at_us: int
    relation: str | None
    parent: str | None


def _families(database: Database, sessions: Collection[str]) -> Iterator[list[_Kin]]:
    """The families that some of these are of, each in the order of time."""
    kin = (_Kin(*row) for row in database.rows(_FAMILIES))
    for _, family in groupby(kin, key=attrgetter("family")):
        held = list(family)
        if any(one.session in sessions for one in held):
            yield held


@dataclass(frozen=True, slots=True)
class SessionRows:
    """What a session leaves.

    Parameters
    ----------
    entries
        None: it cannot be counted, and leaves its row alone.
    ballots
        Those that the entries were read off, in their order.
    answers
        Seat, or candidate, to text.
    """

    row: SessionRow
    entries: Entries | None
    ballots: Sequence[Ballot]
    answers: Mapping[str, str]

    def of_source(self, source: str, at: datetime) -> "SessionRows":
        """The same, as it came in from a file at a time."""
        return replace(self, row=replace(self.row, source=source, added=at))

    def add_to(self, rows: Rows) -> None:
        """Hand on every row but the session's own."""
        if self.entries is not None:
            rows.add(self.row.session, self.entries, self.ballots, self.answers)
        rows.mark(self.row.session, self.row.at_us, self.row.own_bucket)


def count_session(session: Session, votes: Sequence[Ballot] = ()) -> SessionRows:
    """Count a closed session, and with it what people voted on it; another is not counted.

    Raises
    ------
    WitanError
        If it could be counted but for the votes.
    """
    entries = _entries(session)
    if votes and session.status != "interrupted":
        try:
            entries = session_entries(session, votes)
        except WitanError:
            if entries is not None:
                raise
    return _left(session, entries, votes)


def count_sessions(sessions: Sequence[Session]) -> list[SessionRows]:
    """Count closed sessions, all at once; where one cannot be counted, each by itself."""
    entries: Sequence[Entries | None]
    try:
        entries = entries_of_sessions(sessions)
    except WitanError:
        entries = [_entries(session) for session in sessions]
    return [_left(session, held) for session, held in zip(sessions, entries, strict=True)]


def _left(session: Session, entries: Entries | None, votes: Sequence[Ballot] = ()) -> SessionRows:
    answers = {seat: answer.text for seat, answer in session.answers.items()}
    ballots = (*counted_ballots(session), *votes)
    return SessionRows(_row(session, entries), entries, ballots, answers)


def _entries(session: Session) -> Entries | None:
    """What the session leaves without votes."""
    if session.status == "interrupted":
        return None
    try:
        return session_entries(session)
    except WitanError:
        return None  # no answer, no ballot: it is kept, and nothing is summed from it


def _row(session: Session, entries: Entries | None) -> SessionRow:
    outcome = session.outcome
    return SessionRow(
        session=session.id,
        at=session.opened.at,
        category=session.opened.category,
        simulated=session.simulated,
        source=COUNCIL,
        status=session.status,
        question=session.question,
        closing=session.text,
        rule=None if outcome is None else outcome.rule,
        cost_usd=session.cost.total_usd,
        seconds=session.seconds,
        entry=None if entries is None else entries.session,
        parent=session.opened.parent,
        relation=session.opened.relation,
        judges_only=bool(session.opened.answers),
    )


AT_ONCE = 500
"""Sessions that are read, counted and written at a time."""

Weigh = Callable[[Sequence[Cast]], Mapping[str, Mapping[str, float]]]
"""Sessions as they were cast → session to the reliability of its reviewers, where it has none."""


@dataclass(frozen=True, slots=True)
class _Uncounted:
    """A session that was never counted under a rule.

    Parameters
    ----------
    state
        When it came in, and how often it was changed since: another state is another session.
    """

    cast: Cast
    settings: Settings
    state: tuple[int, int]


def recount(database: Database, rule: str, weigh: Weigh | None = None) -> int:
    """Count the sessions that were never counted under a rule; return how many were added.

    A session that the rule cannot count is noted as well, and is not asked for again.
    """
    added = n_stale = 0
    for block in _uncounted(database, rule):
        weights = {} if weigh is None else weigh([one.cast for one in block])
        counted = [*_counted(block, rule, weights)]
        states = {one.cast.session: one.state for one in block}
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


def _uncounted(database: Database, rule: str) -> Iterator[list[_Uncounted]]:
    """Sessions that were never counted under a rule, in blocks, as they were cast."""
    after = ""
    while True:
        with database.snapshot():
            rows = database.rows(_MISSING, {"rule": rule, "after": after, "size": AT_ONCE})
            block = [
                _Uncounted(*_read(database, *row), state=(added_us, revision))
                for *row, added_us, revision in rows
            ]
        if not block:
            return
        yield block
        after = block[-1].cast.session


def _read(
    database: Database, session: str, at_us: int, category: str | None
) -> tuple[Cast, Settings]:
    events = read_events(database, session)
    if not events:
        return read_cast(database, session, at_us, category), Settings()
    sql = "SELECT body FROM ballots WHERE session = :session AND human = 1 ORDER BY ballot"
    votes = [parse_ballot(body) for (body,) in database.rows(sql, {"session": session})]
    held = Session.of(events)
    return session_cast(held, votes), held.settings


def _counted(
    block: Sequence[_Uncounted], rule: str, weights: Mapping[str, Mapping[str, float]]
) -> Iterator[Entries]:
    """Count sessions, those of equal settings as one batch; what a gate failed is per session."""
    alike: list[tuple[Settings, list[_Uncounted]]] = []
    for one in block:
        settings = replace(one.settings, gates={})
        learned = weights.get(one.cast.session)
        if settings.reliability is None and learned:
            settings = replace(settings, reliability=learned)
        group = next((held for known, held in alike if known == settings), None)
        if group is None:
            alike.append((settings, group := []))
        group.append(one)
    for settings, group in alike:
        gates = {name: gate for one in group for name, gate in one.settings.gates.items()}
        yield from entries_of_many(
            (one.cast for one in group), rules=[rule], settings=replace(settings, gates=gates)
        )


def _add_standings(
    database: Database, rule: str, counted: Sequence[Entries], states: Mapping[str, tuple[int, int]]
) -> tuple[int, int]:
    """Add standings of sessions that are still in the state that was counted.

    Return how many were added, and how many have changed and are to be counted again.
    """
    note = "INSERT INTO counted (session, rule) VALUES (:session, :rule) ON CONFLICT DO NOTHING"
    rows, added, stale = Rows(), 0, 0
    held = sorted(counted, key=lambda entries: entries.session.session)
    with database.transaction():
        there = _locked(database, [entries.session.session for entries in held])
        for entries in held:
            session = entries.session.session
            if session not in there:
                continue  # forgotten meanwhile
            *state, bucket = there[session]
            if (*state,) != states[session]:
                stale += 1
            # Else another process may have counted it: there is nothing to add.
            elif database.execute(note, {"session": session, "rule": rule}) == 1:
                rows.add_standings(session, [s for s in entries.standings if s.rule == rule])
                rows.mark(session, to_microseconds(entries.session.at), bucket)
                added += 1
        rows.write(database)
    return added, stale


def _locked(database: Database, sessions: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Session to its state and its bucket; nobody changes or deletes it before the end."""
    given = {f"s{k}": session for k, session in enumerate(sessions)}
    sql = (
        "SELECT session, added_us, revision, bucket FROM sessions"  # noqa: S608
        f" WHERE session IN ({', '.join(':' + name for name in given)}) ORDER BY session"
    )
    found = database.rows(sql + database.locking, given)
    return {session: (added_us, revision, bucket) for session, added_us, revision, bucket in found}
