"""Sessions counted later, under one more rule: each under its own settings, and as it is by then.

What changes meanwhile, by a vote, is not what was counted: it is counted again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from witan.core.casts import Cast
from witan.core.entering import entries_of_many
from witan.core.entries import Entries
from witan.core.settings import Settings
from witan.deliberation.leaving import session_cast
from witan.deliberation.session import Session
from witan.history.database import Database
from witan.history.reading import ballot_of, cast_of
from witan.history.stored_events import read_events
from witan.history.superseding import SUPERSEDED
from witan.history.writing import Rows, microseconds

__all__ = ["Weigh", "count_under"]

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


def count_under(database: Database, rule: str, weigh: Weigh | None = None) -> int:
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
    return added + (count_under(database, rule, weigh) if n_stale else 0)


_MISSING = f"""
SELECT s.session, s.at_us, s.category, s.added_us, s.revision FROM sessions s
WHERE s.simulated = 0 AND s.rejudged = 0 AND s.session > :after
AND s.session NOT IN ({SUPERSEDED})
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
        return cast_of(database, session, at_us, category), Settings()
    sql = "SELECT body FROM ballots WHERE session = :session AND human = 1 ORDER BY ballot"
    votes = [ballot_of(body) for (body,) in database.rows(sql, {"session": session})]
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
                rows.mark(session, microseconds(entries.session.at), bucket)
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
