"""The history: every session in one SQLite file or PostgreSQL database."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Self

from witan.core.ballot import Ballot
from witan.core.stats.learning import Learned
from witan.deliberation.imported_session import Added, Imported
from witan.deliberation.plan import Lengths
from witan.deliberation.ports import Clock, SystemClock
from witan.deliberation.session import Session
from witan.errors import HistoryConflict, HistoryError
from witan.history import counting, forgetting, imports, learning, listing, reading, votes
from witan.history.counting import Weigh
from witan.history.database import Database
from witan.history.events import read_events, unreadable_events
from witan.history.forgetting import ForgetResult
from witan.history.learning import read_lengths
from witan.history.listing import HistorySummary, PageCursor, Search, SessionSummary, describe
from witan.history.locks import LockWait, new_holder, other_process
from witan.history.opening import damage_error, open_database
from witan.history.rows import COUNCIL, is_storable
from witan.history.schema import read_version
from witan.history.sqlite import SqliteDatabase, is_damage
from witan.history.writer import Recording, Writer


class History:
    """A place where sessions are kept: a SQLite file, or a PostgreSQL database.

    Threads may share one, and processes may open the same place.
    """

    aliases: Mapping[str, str] = learning.NO_ALIASES
    """Old name → new name of a model, by which it is one reviewer in what is learned."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock
        self._writer = Writer(database.reopen, database.where)
        self._claims: dict[str, str] = {}
        self._claiming = Lock()

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

        It is made where there is none, and migrated where it is of an earlier version.

        Parameters
        ----------
        reading
            It is only read: it has to be there, and may lie where nothing can be written.
        patience
            How long to wait for other processes, and who is told of it; None: ten seconds, nobody.

        Raises
        ------
        HistoryError
            If the place cannot be reached or written, or holds something else, a history of a
            later version, or a damaged one; or another process keeps it locked.
        InvalidParameter
            If it is neither a text nor a path.
        MissingExtra
            If it is in PostgreSQL, and psycopg is not installed.
        """
        clock = SystemClock() if clock is None else clock
        lock_wait = LockWait() if lock_wait is None else lock_wait
        return cls(open_database(url, clock, lock_wait, reading=reading), clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        where = self.database.where
        return f"sqlite:///{where}" if self.database.dialect == "sqlite" else where

    @property
    def version(self) -> int:
        """How many migrations it has had."""
        return read_version(self.database)

    @property
    def journal(self) -> str:
        """How commits are made durable: ``wal``, ``truncate`` or ``postgresql``."""
        return self.database.journal

    @property
    def read_only(self) -> bool:
        """Whether it was opened to be read where it cannot be written."""
        return self.database.read_only

    def require_writable(self, lock_wait: LockWait | None = None) -> None:
        """Wait until it can be written, and no longer than `lock_wait` has.

        Raises
        ------
        HistoryError
            If it cannot be written, or another process keeps it locked.
        """
        (lock_wait or LockWait()).run(self.database.where, self.database.wait_until_writable)

    def close(self) -> None:
        """Write what recordings were told, then close; a second call does nothing."""
        self._writer.close()
        self.database.close()

    def check(self) -> None:
        """Read the whole file, to see whether it is sound; a server looks after its own.

        Raises
        ------
        HistoryError
            If it is damaged; it is then copied aside.
        """
        file = self.database
        if not isinstance(file, SqliteDatabase):
            return
        try:
            found = file.integrity_check() or next(unreadable_events(file), None)
        except HistoryError as error:
            if not is_damage(error, file.path):
                raise
            found = error.problem
        if found is not None:
            raise damage_error(file.path, found, self._clock.now())

    def recording(self) -> Recording:
        """Make a listener that keeps the sessions it is told of, one after another.

        Any number may be open at once; they share one thread, which commits what all were told.
        Leaving its block waits until everything is durable.
        """
        return Recording(self._writer, self._claimed)

    def claim(self, session: str, *, by_force: bool = False) -> Session:
        """Take an interrupted session over, to go on with it in the next recording.

        What an earlier writer still brings is refused from now on. A closed one is returned.

        Parameters
        ----------
        by_force
            Even if another process of this machine is still at it.

        Raises
        ------
        UnknownName
            If there is no such session.
        HistoryError
            If it was imported as ballots, and has no events; or another process is still at it.
        """
        token = new_holder()
        with self.database.transaction():
            reading.require_session(self.database, session)
            sql = "SELECT holder FROM sessions WHERE session = :session" + self.database.locking  # noqa: S608
            holder = next((h for (h,) in self.database.rows(sql, {"session": session})), "")
            if not by_force and (process := other_process(holder)) is not None:
                problem = f"the session {session} is under way in process {process}"
                remedy = "let that end, or take it over all the same (witan resume --take-over)"
                raise HistoryConflict(self.database.where, problem, remedy)
            self.database.execute(
                "UPDATE sessions SET holder = :token"
                " WHERE session = :session AND status = 'interrupted'",
                {"token": token, "session": session},
            )
            taken = self.session(session)
        if taken.status == "interrupted":
            with self._claiming:
                self._claims[session] = token
        return taken

    def _claimed(self, session: str) -> str | None:
        with self._claiming:
            return self._claims.pop(session, None)

    def session(self, session: str) -> Session:
        """A council session, whole or as far as it came.

        Raises
        ------
        UnknownName
            If there is no such session.
        HistoryError
            If it was imported as ballots, and has no events.
        """
        return reading.read_session(self.database, session)

    def sessions(self, size: int = 200) -> Iterator[Session]:
        """Every council session, by name, read a few at a time."""
        after = ""
        sql = (
            "SELECT session FROM sessions s WHERE session > :after"
            " AND EXISTS (SELECT 1 FROM events e WHERE e.session = s.session)"
            " ORDER BY session LIMIT :size"
        )
        while names := self.database.rows(sql, {"after": after, "size": size}):
            for (after,) in names:
                # It may have been forgotten meanwhile.
                if events := read_events(self.database, after):
                    yield Session.of(events)

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
        """List sessions by their time, the latest first.

        One that was imported stands by its own time; where its file says none, by that of the
        import.

        Parameters
        ----------
        text
            Words that the question and the closing text hold between them, in any case.
        since, until
            From, and before, these times.
        simulated
            Only sessions in which scripts sat, or only the others; None: both.
        parent
            The session that they came of.
        """
        search = Search(text, since, until, category, status, limit, simulated, parent=parent)
        return listing.find(self.database, search)

    def page(
        self, search: Search, size: int, after: PageCursor | None = None
    ) -> tuple[list[SessionSummary], PageCursor | None]:
        """Sessions as `find` lists them, so many, and what the next page comes after, if any."""
        return listing.read_page(self.database, search, size, after)

    def summary(self, session: str) -> SessionSummary:
        """One session, as `find` lists it.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        with self.database.snapshot():
            reading.require_session(self.database, session)
            [found] = listing.find(self.database, Search(session=session))
        return found

    def has_record(self, session: str) -> bool:
        """Whether a session was held by a council, and has events; else it came in as ballots."""
        sql = "SELECT 1 FROM events WHERE session = :session LIMIT 1"
        return is_storable(session) and bool(self.database.rows(sql, {"session": session}))

    def resolve_name(self, name: str) -> str:
        """The name of a session from an unambiguous beginning of it; ``last`` is the latest.

        Raises
        ------
        UnknownName
            If no session begins so.
        HistoryError
            If several do.
        """
        return listing.resolve_name(self.database, name)

    def short_names(self, sessions: Sequence[str]) -> Mapping[str, str]:
        """Each of these sessions to a beginning of its name that no other session shares."""
        return listing.short_names(self.database, sessions)

    def describe(self) -> HistorySummary:
        """What there is to say of it as a whole: its version, its size, its sessions."""
        return describe(self.database)

    def ballots(self, session: str) -> list[Ballot]:
        """The ballots of a session, people's included, as they were cast."""
        return reading.read_ballots(self.database, session)

    def answers(self, session: str) -> Mapping[str, str]:
        """Seat, or candidate, to its answer, where there is one."""
        return reading.read_answers(self.database, session)

    def add(self, imported: Iterable[Imported], source: str, digest: str) -> Added:
        """Take in a file, all of it or nothing; one that is in already changes nothing.

        Parameters
        ----------
        source
            What the file is called.
        digest
            Of its content, and of the options that change its meaning.

        Raises
        ------
        HistoryError
            If a session of that name is there with other ballots.
        """
        return imports.add(self.database, imported, source, digest, self._clock.now())

    def find_import(self, digest: str) -> int | None:
        """How many sessions a file of this digest held when it came in; None: it never did."""
        return imports.find_import(self.database, digest)

    def export(self, session: str) -> Imported:
        """All that is kept of a session, people's votes included, as an import takes it in.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        return reading.export_session(self.database, session)

    def vote(self, session: str, ballots: Sequence[Ballot], *, replacing: bool = False) -> None:
        """Add people's ballots to a closed session, and count it again.

        Parameters
        ----------
        replacing
            A ballot takes the place of an earlier one of its reviewer.

        Raises
        ------
        InvalidBallot
            If one is not a person's, is of another session, names an answer that is not there, is
            cast under the name of a candidate, or is the second of its reviewer.
        HistoryError
            If the session is not closed.
        """
        votes.vote(self.database, session, ballots, replacing=replacing)

    def learn(
        self,
        reviewers: Collection[str] = (),
        *,
        without: str | None = None,
        half: int | None = None,
    ) -> Learned:
        """What the newest sessions teach a council before it counts; simulated ones teach nothing.

        Parameters
        ----------
        reviewers
            Models whose reliability is asked for, which takes longer; none: nobody's.
        without
            A session that is left out, because it is the one to be decided.
        half
            Only sessions whose bucket is even (0), or odd (1), to count the others by.
        """
        return learning.learned(self.database, reviewers, without, half, self.aliases)

    def lengths(self) -> Lengths:
        """Return how long the replies of the newest sessions were, per model and stage."""
        return read_lengths(self.database, COUNCIL)

    def recount(self, rule: str, weigh: Weigh | None = None) -> int:
        """Count what was never counted under a rule, by its own settings; return how many were.

        Parameters
        ----------
        weigh
            Sessions as they were cast → session to the reliability of its reviewers, for those
            that were held without.
        """
        return counting.recount(self.database, rule, weigh)

    def forget(self, *sessions: str) -> ForgetResult:
        """Delete sessions wholly, from the file too; all of them or none.

        Raises
        ------
        UnknownName
            If there is no such session.
        """
        return forgetting.forget(self.database, sessions)

    def forget_before(self, at: datetime) -> ForgetResult:
        """Delete every session asked before a time."""
        return forgetting.forget_before(self.database, at)

    def forget_added_before(self, at: datetime) -> ForgetResult:
        """Delete every session that came into this history before a time, however old it is."""
        return forgetting.forget_added_before(self.database, at)


class FileGuard:
    """The file of a history that was just opened; what is written to a removed file is lost."""

    def __init__(self, history: History) -> None:
        database = history.database
        self._path = database.path if isinstance(database, SqliteDatabase) else None
        self._was = None if self._path is None else _identity(self._path)

    def check(self) -> None:
        """Make sure that what was written can be read again.

        Raises
        ------
        HistoryError
            If the file is no longer there, or is another.
        """
        if self._path is not None and _identity(self._path) != self._was:
            problem = "was removed, or replaced, while it was in use"
            remedy = "leave it where it is as long as sessions run"
            raise HistoryError(str(self._path), problem, remedy)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None: there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
