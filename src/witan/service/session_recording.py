"""Record a session while it runs: in the history, else in a file."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import gt
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread

from witan.deliberation.events import (
    AnswerDone,
    BallotCast,
    Event,
    FruitlessResume,
    SessionClosed,
    SynthesisDone,
    SynthesisStarted,
)
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.files.session_files import write_session
from witan.models.seats import describe_risk
from witan.service.history_access import RecordingPlace, forget_expired
from witan.service.rescue_files import set_aside
from witan.service.text import clean


class TakenUp:
    """One session that goes on.

    Closed, it could never be taken up again, even if whoever was still to answer failed once more.
    So what happens is held back until there is an answer, a ballot or a final answer more than
    before, or until a call is begun whose cost may not be forgotten.

    Parameters
    ----------
    before
        The session as it was taken up.

    Attributes
    ----------
    last
        The number of its last event.
    """

    def __init__(self, before: Session) -> None:
        self.before = before
        self.last = before.events[-1].seq
        self._told: list[Event] = []
        self._passed = 0
        self._came = False

    def take(self, event: Event) -> Sequence[Event]:
        """Note an event; return those that are to be kept from now on."""
        self._told.append(event)
        self._came = self._came or self._counts(event)
        return self.let_go() if self._came else ()

    def let_go(self) -> Sequence[Event]:
        """Release the events that were held back."""
        passed, self._passed = self._passed, len(self._told)
        return self._told[passed:]

    def in_vain(self) -> tuple[Session, Sequence[Event]] | None:
        """Return the session without fruitless events, and its events to keep.

        It is as it was, but for what the calls may have cost. None: something came of it.
        """
        if self._came:
            return None
        ending = next(event for event in self._told if self._ends(event))
        stood = [event for event in self._told if event.seq < ending.seq]
        stood.append(FruitlessResume(seq=ending.seq, at=ending.at, since=self.last))
        left = Session.of(stood)
        if left.cost == self.before.cost and self._passed <= len(self.before.events):
            return self.before, ()
        return left, stood[self._passed :]

    def _ends(self, event: Event) -> bool:
        """Check for an event of the end of a session."""
        by_nobody = isinstance(event, SynthesisStarted) and event.chairman is None
        return event.seq > self.last and (by_nobody or isinstance(event, SessionClosed))

    def _counts(self, event: Event) -> bool:
        if event.seq <= self.last:
            return False
        if isinstance(event, SessionClosed):
            return _got_on(self.before, Session.of(self._told))
        by_nobody = isinstance(event, SynthesisDone) and event.chairman is None
        return isinstance(event, AnswerDone | BallotCast | SynthesisDone) and not by_nobody


def _got_on(before: Session, after: Session) -> bool:
    """Check for more answers, ballots or a final answer than before."""
    had, has = (
        (len(s.answers), sum(not ballot.abstained for ballot in s.ballots), _has_ended(s))
        for s in (before, after)
    )
    return after.status == "complete" or any(map(gt, has, had))


def _has_ended(session: Session) -> bool:
    """Check for a final answer that somebody wrote, or an outcome."""
    procedure = session.opened.procedure
    if procedure.mode == "best" or not procedure.synthesis:
        return session.outcome is not None
    return session.synthesis is not None and session.synthesis.chairman is not None


class Record:
    """The record of one session: told event by event, it is kept whatever ends the session.

    Parameters
    ----------
    place
        The history it goes into; None: it is kept in a file, and only if that is asked for or the
        session is interrupted.
    save
        The file that was asked for.
    say
        Is told what the end waits for, if that lasts.

    Attributes
    ----------
    unkept
        The history was to have the session, and has not.
    """

    def __init__(
        self,
        place: RecordingPlace | None,
        save: Path | None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.place, self.save = place, save
        self.unkept = False
        self._say = say
        self._meanwhile = None if place is None else place.lock_wait()
        self._recording = None if place is None else place.history.recording()
        self._option = " --no-history" if place is None else place.option
        self._taken_up: TakenUp | None = None
        self._file_is_due = False
        self._filing = Lock()
        self._filed = 0

    def goes_on_from(self, session: Session, *, apart: bool = False) -> None:
        """Hold back what happens until something comes of it; or keep it `apart` from the history.

        It is kept apart where the history has the session closed.
        """
        self._taken_up = TakenUp(session)
        if apart:
            self.place = self._recording = None

    def take(self, event: Event) -> None:
        """Take an event in for the history; nothing is waited for."""
        self._pass_on((event,) if self._taken_up is None else self._taken_up.take(event))

    def _pass_on(self, events: Iterable[Event]) -> None:
        if self._recording is not None:
            for event in events:
                self._recording.append(event)

    def flush(self) -> None:
        """Hold nothing back: a call is about to be made, whose cost may not be forgotten."""
        if self._taken_up is not None:
            self._pass_on(self._taken_up.let_go())
            self._file_is_due = True

    async def commit(self, events: Sequence[Event]) -> int | None:
        """Wait until what was taken in is durable; of a file that is taken up, there too.

        What cannot be kept is said at the end.

        Returns
        -------
        int or None
            The number of the last event that is durable; None: it goes into no history.
        """
        told = tuple(events)
        durable = None
        if self._recording is not None and self._meanwhile is not None:
            # What is in the way now may be gone at the end.
            durable = await self._recording.commit(self._meanwhile)
        if self._taken_up is not None and self.save is not None and self._file_is_due:
            await anyio.to_thread.run_sync(self._file, told)
        if durable is None or self._taken_up is None:
            return durable
        return max(durable, self._taken_up.last)

    def _file(self, events: Sequence[Event]) -> None:
        """Write the file that was asked for, unless it holds more already."""
        with self._filing, suppress(WitanError, OSError):
            if self.save is not None and len(events) > self._filed:
                write_session(Session.of(events), self.save)
                self._filed = len(events)

    def left_in_vain(self) -> Session | None:
        """Return the session if taking it up was fruitless, else None."""
        assert self._taken_up is not None  # noqa: S101 - asked of what was taken up
        found = self._taken_up.in_vain()
        if found is None:
            return None
        left, events = found
        self._pass_on(events)
        return left

    def broken_off(self, why: str, events: Sequence[Event]) -> str:
        """Keep what came in; say where it is, and how to go on."""
        if not events:
            return f"{why} before the session was opened"
        session = Session.of(events)
        if self._taken_up is not None:
            self._pass_on(self._taken_up.let_go())
        problem = self._problem()
        held = self.place is not None and problem is None
        again = session.id
        unkept = "" if problem is None else f"the history did not keep it ({problem}); "
        try:
            with self._filing:
                if not held:
                    again = shlex.quote(str(self._write_file(session)))
                elif self.save is not None:
                    write_session(session, self.save)
                self._filed = len(events)
        except (WitanError, OSError) as error:
            if not held:
                return f"{why}; {unkept}nothing is kept: {clean(str(error))}"
            unkept = f"{clean(str(error))}; "
        trust = " --trust" if self._asks_for_trust(session, held=held) else ""
        again = f"witan resume {again}{self._option}{trust}"
        return f"{why}; {unkept}{session.progress} kept; resume with: {again}"

    def closed(self, session: Session) -> str | None:
        """Wait until the session is durable in the history; say where its record is if it is not.

        Sessions beyond the age that is configured are forgotten then.
        """
        if self.place is None or (problem := self._problem()) is None:
            return self._forgetting()
        self.unkept = True
        words = f"the history did not keep the session: {problem}"
        try:
            path = self._write_file(session)
        except (WitanError, OSError) as error:
            return f"{words}; nor could its record be written: {clean(str(error))}"
        again = f"witan import {shlex.quote(str(path))}{self._option}"
        return f"{words}; its record is {path}; put it in with: {again}"

    def _write_file(self, session: Session) -> Path:
        """Write the file that was asked for; one among the user's state where that fails."""
        if self.save is not None:
            try:
                write_session(session, self.save)
            except (WitanError, OSError):
                return set_aside(session)
            return self.save
        return set_aside(session)

    def _problem(self) -> str | None:
        """Word what keeps the session out of the history; None: nothing."""
        if self._recording is None or self.place is None:
            return None
        try:
            self._recording.flush(self.place.lock_wait(self._say))
            self.place.opened_file.check()
        except HistoryError as error:
            return clean(str(error))
        return None

    def _asks_for_trust(self, session: Session, *, held: bool) -> bool:
        if held and self.place is not None and self.place.own:
            return False
        return any(map(describe_risk, session.opened.called))

    def _forgetting(self) -> str | None:
        if self.place is None:
            return None
        try:
            forgotten = forget_expired(self.place.history, self.place.lock_wait(self._say))
        except HistoryError as error:
            return f"older sessions could not be forgotten: {clean(str(error))}"
        return None if forgotten.note is None else f"older sessions are forgotten; {forgotten.note}"
