"""The history: every session in one SQLite file or PostgreSQL database."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from witan.core.ballot import Ballot
from witan.core.stats.leaderboard import ALWAYS, Window
from witan.deliberation.ports import Clock, SystemClock
from witan.errors import HistoryConflict, HistoryError, Remedy, Way
from witan.history import reading
from witan.history.database import (
    Database,
    LockWait,
    blocks,
    in_list,
    lock_cached_sums,
    mark_recording,
    new_holder,
    unmark_recording,
)
from witan.history.engines import SqliteDatabase, is_damage
from witan.history.reading import (
    HistorySummary,
    PageCursor,
    Search,
    SessionSummary,
    StoredVote,
    describe,
    require_datetime,
    require_session,
    require_text,
)
from witan.history.rows import (
    ENTRY_TABLES,
    NO_HOLDER,
    is_storable,
    lock_session,
    to_microseconds,
)
from witan.history.schema import (
    CACHE_DAYS,
    KIN_SQL,
    RETRY,
    damage_error,
    open_database,
    read_version,
)

# Readers of the history need no module that counts, learns or records.
if TYPE_CHECKING:
    from witan.core.stats.learning import Lessons
    from witan.deliberation.plan import Lengths
    from witan.deliberation.record import ImportCounts, SessionImport
    from witan.deliberation.session import Session
    from witan.history.counting import Weigh
    from witan.history.writer import Recording, Writer

BLOCK_SIZE = 200
"""Number of sessions deleted in one transaction."""

SWEEP_SECONDS = 1.0
"""Seconds to wait for readers of the log after a deletion."""

_FAMILIES_SQL = f"""
{KIN_SQL}
SELECT kin.family, m.session, m.relation, m.parent FROM kin CROSS JOIN sessions m
WHERE m.session = kin.session
ORDER BY kin.family, m.at_us, m.session
"""  # noqa: S608 - texts of our own
"""Query of the sessions of each family, each in chronological order."""

_TABLES = ("sessions", *ENTRY_TABLES, "counted", "events", "imported", "waiting_votes")


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The deleted sessions.

    Parameters
    ----------
    note
        Where deleted text may remain, and how long; None if nowhere.
    """

    sessions: tuple[str, ...]
    note: str | None = None

    @property
    def n_sessions(self) -> int:
        """The number of deleted sessions."""
        return len(self.sessions)


def _forget_older(database: Database, column: str, at: datetime) -> ForgetResult:
    """Delete older sessions, a few per transaction."""
    require_datetime("the time", at)
    sql = (
        f"SELECT session FROM sessions WHERE {column} < :before"  # noqa: S608
        f" ORDER BY {column}, session LIMIT :n"
    )
    params = {"before": to_microseconds(at), "n": BLOCK_SIZE}
    deleted_sessions: list[str] = []
    if not database.rows(sql, params):  # a transaction would create a missing file
        return ForgetResult(())
    while True:
        with database.transaction():
            sessions = [name for (name,) in database.rows(sql, params)]
            _delete_cached_sums(database, _delete(database, sessions))
        deleted_sessions += sessions
        if len(sessions) < BLOCK_SIZE:
            return _clean_log(database, deleted_sessions)


def _delete(database: Database, sessions: Sequence[str]) -> list[int]:
    """Delete sessions; return the day of each existing one.

    Like every writer, it locks their rows in the order of their names. It deletes the rows first,
    so a waiting writer finds its session deleted and adds nothing.
    """
    days: list[int] = []
    people: set[int] = set()
    digests: set[str] = set()
    for block in blocks(sessions, BLOCK_SIZE):
        placeholders, params = in_list(block)
        sql = "SELECT session, day FROM sessions"
        sql += f" WHERE session IN {placeholders} ORDER BY session"
        days += [day for _, day in database.rows(sql + database.locking, params)]
        voters = (
            f"SELECT DISTINCT reviewer FROM ballots WHERE human = 1 AND session IN {placeholders}"  # noqa: S608
        )
        people |= {code for (code,) in database.rows(voters, params)}
        sources = f"SELECT DISTINCT digest FROM imported WHERE session IN {placeholders}"  # noqa: S608
        digests |= {digest for (digest,) in database.rows(sources, params)}
        _reparent_families(database, set(block))
        for table in _TABLES:
            database.execute(f"DELETE FROM {table} WHERE session IN {placeholders}", params)  # noqa: S608
        orphan = f"UPDATE sessions SET parent = NULL WHERE parent IN {placeholders}"  # noqa: S608
        database.execute(orphan, params)
    _delete_imports(database, digests)
    _delete_names(database, sorted(people))
    return days


def _reparent_families(database: Database, sessions: Collection[str]) -> None:
    """Link the remaining sessions of a family before some are deleted."""
    names, params = in_list(sessions)
    cut_off = (
        f"SELECT 1 FROM sessions WHERE parent IN {names} AND relation = '{RETRY}'"  # noqa: S608
        f" AND session NOT IN {names} LIMIT 1"
    )
    if not database.rows(cut_off, params):  # reading all families takes longer
        return
    sql = "UPDATE sessions SET parent = :parent WHERE session = :session"
    for _, family in groupby(database.rows(_FAMILIES_SQL), key=itemgetter(0)):
        last_session: str | None = None
        for _, session, relation, parent in family:
            if session in sessions:
                continue
            if relation == RETRY and parent in sessions:
                database.execute(sql, {"session": session, "parent": last_session})
            last_session = session


def _delete_imports(database: Database, digests: Collection[str]) -> None:
    """Delete digests of files without sessions, to allow another import."""
    for digest in sorted(digests):  # in the order in which others lock them
        # The lock lets the second of two processes see what the first deleted.
        sql = "SELECT digest FROM imports WHERE digest = :digest" + database.locking  # noqa: S608
        database.rows(sql, {"digest": digest})
        database.execute(
            "DELETE FROM imports WHERE digest = :digest"
            " AND NOT EXISTS (SELECT 1 FROM imported WHERE digest = :digest)",
            {"digest": digest},
        )


def _delete_names(database: Database, people: Sequence[int]) -> None:
    """Delete the names of people without any other vote.

    `people`: codes in ascending order, in which writers lock them too.
    """
    for block in blocks(people, BLOCK_SIZE):
        codes, params = in_list(block)
        # The lock waits for writers of further votes under these names.
        sql = f"SELECT code FROM names WHERE code IN {codes} ORDER BY code"  # noqa: S608
        database.rows(sql + database.locking, params)
        # One reading of each table for all names, because its column has no index.
        database.execute(
            f"DELETE FROM names WHERE code IN {codes}"  # noqa: S608
            f" AND code NOT IN (SELECT reviewer FROM ballots WHERE reviewer IN {codes})"
            f" AND code NOT IN (SELECT model FROM standings WHERE model IN {codes})"
            f" AND code NOT IN (SELECT model FROM answers WHERE model IN {codes})",
            params,
        )


def _clean_log(database: Database, names: Iterable[str]) -> ForgetResult:
    sessions = tuple(names)
    if not sessions or database.truncate_log(SWEEP_SECONDS):
        return ForgetResult(sessions)
    note = (
        "deleted text may remain in the log of the history until the other processes that read it"
        " close it"
    )
    return ForgetResult(sessions, note)


def _delete_cached_sums(database: Database, days: Iterable[int]) -> None:
    """Delete the cached sums of these days.

    Each may be the sum of a single session.
    """
    spans = sorted({day // CACHE_DAYS for day in days})
    if not spans:
        return
    lock_cached_sums(database)
    for span in spans:
        database.execute("DELETE FROM cached_sums WHERE span = :span", {"span": span})


class History:
    """A SQLite file or a PostgreSQL database of sessions.

    Threads may share one object, and several processes may open the same history.
    """

    aliases: Mapping[str, str] = MappingProxyType({})
    """Old name → new name of a model; `learn` counts both as one reviewer."""

    keep_days: int | None = None
    """Age in days, counted from when it was added, at which recorders delete a session."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock
        self._writer: Writer | None = None
        self._start_lock = Lock()
        self._is_closed = False
        self._claims: dict[str, str] = {}
        self._claim_lock = Lock()

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        clock: Clock | None = None,
        reading: bool = False,
        lock_wait: LockWait | None = None,
    ) -> Self:
        """Open the history at a path, ``sqlite:///path`` or ``postgresql://user@host/database``.

        A missing one is empty, and created by its first write; one of an earlier version is
        migrated.

        Parameters
        ----------
        reading
            Read only: the history must exist, and may be write-protected.
        lock_wait
            Limit of the wait for other processes; by default ten seconds, without a message. Later
            transactions wait as long, with the same message.

        Raises
        ------
        HistoryError
            If it cannot be reached or written, is not a history, has a later version, is damaged,
            or is locked by another process.
        InvalidParameter
            If the URL is neither text nor a path.
        MissingExtra
            If it is in PostgreSQL and psycopg is not installed.
        """
        clock = SystemClock() if clock is None else clock
        lock_wait = LockWait() if lock_wait is None else lock_wait
        database = open_database(url, clock, lock_wait, reading=reading)
        database.on_wait, database.lock_seconds = lock_wait.on_wait, lock_wait.seconds
        return cls(database, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Its URL without a password."""
        location = self.database.location
        return f"sqlite:///{location}" if self.database.dialect == "sqlite" else location

    @property
    def version(self) -> int:
        """The number of its migrations."""
        return read_version(self.database)

    @property
    def journal(self) -> str:
        """The journal mode: ``wal``, ``truncate`` or ``postgresql``; ``memory`` without a file."""
        return self.database.journal

    @property
    def read_only(self) -> bool:
        """True if it is open for reading only."""
        return self.database.read_only

    def require_writable(
        self, lock_wait: LockWait | None = None, *, creating: bool = False
    ) -> None:
        """Wait until it can be written, within `lock_wait`.

        Parameters
        ----------
        creating
            Whether to create a missing one now instead of by its first write.

        Raises
        ------
        HistoryError
            If it cannot be written, or is locked by another process.
        """
        if creating or self.database.exists:
            (lock_wait or LockWait()).run(self.database.location, self.database.wait_until_writable)

    def close(self) -> None:
        """Write pending events, then close; a second call does nothing."""
        with self._start_lock:
            self._is_closed = True
        if self._writer is not None:
            self._writer.close()
        self.database.close()

    def check(self, on_session: Callable[[int], None] | None = None) -> None:
        """Check the whole file, and read each session; a PostgreSQL server checks its own.

        Parameters
        ----------
        on_session
            Called at first and before each session is read, with the number of earlier ones.

        Raises
        ------
        HistoryError
            If the file is damaged; a copy is then made.
        """
        file = self.database
        if not isinstance(file, SqliteDatabase):
            return
        if on_session is not None:
            on_session(0)
        try:
            damage = file.integrity_check() or reading.find_damage(file, on_session)
        except HistoryError as error:
            if not is_damage(error, file.path):
                raise
            damage = error.problem
        if damage is not None:
            raise damage_error(file.path, damage, self._clock.now())

    def recording(self) -> "Recording":
        """Make a listener that stores the events of successive sessions.

        Any number may be open at once; they share one thread, which commits all events.
        Leaving its block waits until everything is durable.
        """
        from witan.history.writer import Recording, Writer

        with self._start_lock:
            if self._writer is None:
                self._writer = Writer(self.database.reopen, self.database.location)
                if self._is_closed:
                    self._writer.close()  # no more events will come
        return Recording(self._writer, self._pop_claim)

    def claim(
        self,
        session: str,
        *,
        force: bool = False,
        check: "Callable[[Session], object] | None" = None,
        is_running: bool = False,
    ) -> "Session":
        """Take over an interrupted session, to continue it in the next recording.

        Its earlier writer can add no more events. A closed session is returned unchanged.

        Parameters
        ----------
        force
            Take it over even if this or another process still records it.
        check
            Called with the stored session; by an exception it leaves that as it is.
        is_running
            Whether it counts as running from now on, until its recording or `end_claim` ends it.

        Raises
        ------
        UnknownName
            If there is no such session.
        HistoryError
            If it was imported as ballots, or this or another process still records it.
        """
        require_session(self.database, session)  # a transaction would create a missing file
        new_token = new_holder()
        self.database.beat()  # before others can see its new holder
        with ExitStack() as undo:
            if is_running:
                mark_recording(new_token)
                undo.callback(unmark_recording, new_token)
            with self.database.transaction():
                require_session(self.database, session)
                holder = lock_session(self.database, session) or NO_HOLDER
                if not force and self.database.is_running(holder):
                    process = self.database.find_process(holder) or "this process"
                    problem = f"the session {session} is running in {process}"
                    resume_parameters = {"take_over": True}
                    take_over = Way("take it over anyway (", resume_parameters, "resume", after=")")
                    remedy = Remedy("wait until it ends", take_over)
                    raise HistoryConflict(self.database.location, problem, remedy)
                self.database.execute(
                    "UPDATE sessions SET holder = :holder"
                    " WHERE session = :session AND status = 'interrupted'",
                    {"holder": new_token, "session": session},
                )
                session_state = self.session(session)
                if check is not None:
                    check(session_state)
            if session_state.status == "interrupted":
                with self._claim_lock:
                    self._claims[session] = new_token
                undo.pop_all()
        return session_state

    def end_claim(self, session: str) -> None:
        """Let others claim a session that was claimed here, but not recorded since."""
        if (holder := self._pop_claim(session)) is not None:
            unmark_recording(holder)

    def _pop_claim(self, session: str) -> str | None:
        with self._claim_lock:
            return self._claims.pop(session, None)

    def session(self, session: str) -> "Session":
        """Read a council session, complete or interrupted.

        Raises
        ------
        UnknownName
            If there is no such session.
        HistoryError
            If it was imported as ballots and has no events.
        """
        return reading.read_session(self.database, session)

    def statuses(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the status of each of these sessions that exists."""
        statuses: dict[str, str] = {}
        for block in blocks(sessions, 1_000):
            placeholders, params = in_list(block)
            sql = f"SELECT session, status FROM sessions WHERE session IN {placeholders}"  # noqa: S608
            statuses |= dict(self.database.rows(sql, params))
        return statuses

    def has_votes(self, sessions: Sequence[str]) -> bool:
        """Return whether people have voted on any of these sessions."""
        for block in blocks(sessions, 1_000):
            placeholders, params = in_list(block)
            sql = f"SELECT 1 FROM ballots WHERE session IN {placeholders} AND human = 1 LIMIT 1"  # noqa: S608
            if self.database.rows(sql, params):
                return True
        return False

    def sessions(self, size: int = 200) -> "Iterator[Session]":
        """Yield every council session by name, reading a few at a time."""
        last_session = ""
        sql = (
            "SELECT session FROM sessions s WHERE session > :after"
            " AND EXISTS (SELECT 1 FROM events e WHERE e.session = s.session)"
            " ORDER BY session LIMIT :size"
        )
        while names := self.database.rows(sql, {"after": last_session, "size": size}):
            for (last_session,) in names:
                # Another process may have deleted it meanwhile.
                if (record := reading.find_session(self.database, last_session)) is not None:
                    yield record

    def find(
        self,
        text: str | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        category: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        simulated: bool | None = None,
        parent: str | None = None,
    ) -> list[SessionSummary]:
        """List sessions, the latest first.

        An imported session has the time in its file, or else the time of the import.

        Parameters
        ----------
        text
            Words in the question or the final answer, in any case.
        since, until
            From this time on, and before this time.
        simulated
            True for sessions with scripted members, false for the others, None for both.
        parent
            The session from which they derive.
        """
        search = Search(text, since, until, category, status, limit, simulated, parent=parent)
        return reading.find(self.database, search)

    def page(
        self, search: Search, size: int, after: PageCursor | None = None
    ) -> tuple[list[SessionSummary], PageCursor | None]:
        """Read a page of sessions, and the cursor of the next page."""
        return reading.read_page(self.database, search, size, after)

    def votes_of(self, person: str, window: Window = ALWAYS) -> list[StoredVote]:
        """Read a person's ballots in a window, the earliest first."""
        search = Search(since=window.since, until=window.until, category=window.category)
        return reading.votes_of(self.database, person, search)

    def has_final_answers(self, session: str) -> bool:
        """Return true if the answers of an open session will not change."""
        return reading.has_final_answers(self.database, session)

    def summary(self, session: str) -> SessionSummary:
        """Return one session as `find` lists it.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        with self.database.snapshot():
            require_session(self.database, session)
            [summary] = reading.find(self.database, Search(session=session))
        return summary

    def has_record(self, session: str) -> bool:
        """True if a session has events instead of imported ballots only."""
        sql = "SELECT 1 FROM events WHERE session = :session LIMIT 1"
        return is_storable(session) and bool(self.database.rows(sql, {"session": session}))

    def resolve_name(self, name: str) -> str:
        """Return a session's name from an unambiguous beginning of it, or ``last``.

        Raises
        ------
        UnknownName
            If no session begins with it.
        HistoryError
            If several sessions begin with it.
        """
        return reading.resolve_name(self.database, name)

    def short_names(self, sessions: Sequence[str]) -> Mapping[str, str]:
        """Map sessions to the shortest unambiguous beginning of their name."""
        return reading.short_names(self.database, sessions)

    def describe(self) -> HistorySummary:
        """Return its version, size and number of sessions."""
        return describe(self.database)

    def ballots(self, session: str) -> list[Ballot]:
        """Read the ballots of a session as cast, people's included."""
        return reading.read_ballots(self.database, session)

    def recent_ballots(self, most: int = 2_000) -> list[Ballot]:
        """Read the ballots of the newest sessions, excluding simulated and rejudged ones."""
        from witan.history.learning import recent_ballots

        return recent_ballots(self.database, most)

    def answers(self, session: str) -> Mapping[str, str]:
        """Read the answers of a session by seat, or by candidate."""
        return reading.read_answers(self.database, session)

    def add(
        self, session_imports: "Iterable[SessionImport]", source: str, digest: str
    ) -> "ImportCounts":
        """Import a file, all or nothing; importing it again changes nothing.

        Parameters
        ----------
        source
            The name of the file.
        digest
            The digest of its content and of the options affecting its meaning.

        Raises
        ------
        HistoryError
            If one of its sessions is stored with other ballots.
        """
        from witan.history.ballots import import_sessions

        return import_sessions(self.database, session_imports, source, digest, self._clock.now())

    def find_import(self, digest: str) -> int | None:
        """Return an imported file's number of sessions, or None if unknown."""
        from witan.history.ballots import find_import

        return find_import(self.database, digest)

    def export(self, session: str) -> "SessionImport":
        """Read everything stored about a session, in the form that `add` accepts.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        return reading.export_session(self.database, session)

    def vote(
        self, session: str, ballots: Sequence[Ballot], *, replace_earlier: bool = False
    ) -> None:
        """Add people's ballots to a closed session, and count it again.

        Parameters
        ----------
        replace_earlier
            Whether a ballot replaces an earlier one of its reviewer.

        Raises
        ------
        InvalidBallot
            If one is not a person's, belongs to another session, names an unknown answer, is cast
            under a reserved name or that of a seat or candidate, cannot be read back, or is its
            reviewer's second one.
        HistoryError
            If the session is not closed.
        """
        from witan.history.ballots import vote

        vote(self.database, session, ballots, replace_earlier=replace_earlier)

    def learn(
        self,
        reviewers: Collection[str] = (),
        *,
        exclude: str | None = None,
        half: int | None = None,
        judges: Collection[str] = (),
    ) -> "Lessons":
        """Learn priors, reliability and severity from the newest unsimulated sessions.

        Parameters
        ----------
        reviewers
            Models whose reliability is learned, which takes longer.
        exclude
            The session that will be counted; it is excluded.
        half
            Only sessions in even (0) or odd (1) buckets, to count the other half by the result.
        judges
            Models whose severity is learned.
        """
        from witan.history.learning import learn

        return learn(self.database, reviewers, exclude, half, self.aliases, judges=judges)

    def lengths(self) -> "Lengths":
        """Return the mean lengths of replies, per model and stage."""
        from witan.history.learning import read_lengths

        return read_lengths(self.database)

    def recount(
        self, rule: str, weigh: "Weigh | None" = None, damaged: set[str] | None = None
    ) -> int:
        """Count sessions under a rule new to them; return their number.

        Parameters
        ----------
        weigh
            Returns the reliability of reviewers for sessions counted without it.
        damaged
            Takes the names of damaged sessions, which are left out; None: the first is an error.
        """
        from witan.history.counting import recount

        return recount(self.database, rule, weigh, damaged)

    def forget(self, *sessions: str) -> ForgetResult:
        """Delete sessions completely, also from the file; all of them or none.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        for session in sessions:
            require_text(session)
        names = sorted(set(sessions))
        for name in names:  # before a transaction, which would create a missing file
            require_session(self.database, name)
        if not names:
            return ForgetResult(())
        with self.database.transaction():
            for name in names:
                require_session(self.database, name)
            _delete_cached_sums(self.database, _delete(self.database, names))
        return _clean_log(self.database, names)

    def forget_before(self, at: datetime) -> ForgetResult:
        """Delete every session asked before a time."""
        return _forget_older(self.database, "at_us", at)

    def forget_added_before(self, at: datetime) -> ForgetResult:
        """Delete sessions added to this history before a time."""
        return _forget_older(self.database, "added_us", at)
