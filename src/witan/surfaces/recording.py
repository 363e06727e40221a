"""What becomes of a session's record while it is held and after: the history, else a file."""

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import gt
from pathlib import Path

from witan.adapters.session_files import write_session
from witan.deliberation.events import AnswerDone, BallotCast, Event, SessionClosed, SynthesisDone
from witan.deliberation.session import Session
from witan.errors import HistoryError, WitanError
from witan.surfaces.histories import Place
from witan.surfaces.seating import to_trust
from witan.surfaces.text import clean, counted

__all__ = ["Record", "got_on", "set_aside"]


class Record:
    """The record of one session: told event by event, it is kept whatever ends the session.

    Parameters
    ----------
    place
        The history it goes into; None: it is kept in a file, and only if that is asked for or the
        session is broken off.
    save
        The file that was asked for.
    """

    def __init__(self, place: Place | None, save: Path | None) -> None:
        self.place, self.save = place, save
        self._recording = None if place is None else place.history.recording()
        self._before: Session | None = None
        self._held_back: list[Event] = []

    def goes_on_from(self, session: Session, *, apart: bool = False) -> None:
        """Hold back what happens until something comes of it; or keep it `apart` from the history.

        In the history a session that was closed could never be taken up again, even if whoever was
        still to answer failed once more.
        """
        self._before = session
        if apart:
            self.place = self._recording = None

    def take(self, event: Event) -> None:
        """Queue an event for the history; nothing is waited for."""
        if self._recording is None:
            return
        if self._before is None:
            self._recording(event)
            return
        self._held_back.append(event)
        if self._counts(event, self._before):
            self._let_go()

    def _counts(self, event: Event, before: Session) -> bool:
        if event.seq <= before.events[-1].seq:
            return False
        if isinstance(event, SessionClosed):
            return got_on(before, Session.of(self._held_back))
        by_nobody = isinstance(event, SynthesisDone) and event.chairman is None
        return isinstance(event, AnswerDone | BallotCast | SynthesisDone) and not by_nobody

    def _let_go(self) -> None:
        held, self._held_back, self._before = self._held_back, [], None
        for event in held:
            if self._recording is not None:
                self._recording(event)

    def broken_off(self, why: str, heard: Sequence[Event]) -> str:
        """Keep what came in; say where it is, and how to go on."""
        if not heard:
            return f"{why} before the session was opened"
        session = Session.of(heard)
        self._let_go()
        problem = self._problem()
        held = self.place is not None and problem is None
        again = f"{session.id}{self.place.option}" if held and self.place is not None else ""
        unkept = "" if problem is None else f"the history did not keep it ({problem}); "
        try:
            if not held:
                again = shlex.quote(str(self._written(session)))
            elif self.save is not None:
                write_session(session, self.save)
        except (WitanError, OSError) as error:
            if not held:
                return f"{why}; {unkept}nothing is kept: {clean(str(error))}"
            unkept = f"{clean(str(error))}; "
        trust = " --trust" if self._asks_for_trust(session, held=held) else ""
        return f"{why}; {unkept}{_kept(session)}; resume with: witan resume {again}{trust}"

    def closed(self, session: Session) -> str | None:
        """Wait until the session is durable in the history; say where its record is if it is not.

        Sessions beyond the age that is configured are forgotten then.
        """
        if self.place is None or (problem := self._problem()) is None:
            return self._forgetting()
        said = f"the history did not keep the session: {problem}"
        try:
            path = self._written(session)
        except (WitanError, OSError) as error:
            return f"{said}; nor could its record be written: {clean(str(error))}"
        return f"{said}; its record is {path}"

    def _written(self, session: Session) -> Path:
        if self.save is not None:
            write_session(session, self.save)
            return self.save
        return set_aside(session)

    def _problem(self) -> str | None:
        """Why something of the session is not in the history; None: all of it is."""
        if self._recording is None:
            return None
        try:
            self._recording.flush()
        except Exception as error:  # noqa: BLE001 - the writer's thread hands over whatever it was
            return clean(str(error) or type(error).__name__)
        return None

    def _asks_for_trust(self, session: Session, *, held: bool) -> bool:
        if held and self.place is not None and self.place.own:
            return False
        return any(map(to_trust, session.opened.called))

    def _forgetting(self) -> str | None:
        if self.place is None or self.place.keep_days is None:
            return None
        try:
            before = datetime.now(UTC) - timedelta(days=self.place.keep_days)
            forgotten = self.place.history.forget_added_before(before)
        except (HistoryError, OverflowError) as error:
            return f"older sessions could not be forgotten: {clean(str(error))}"
        return None if forgotten.note is None else f"older sessions are forgotten; {forgotten.note}"


def got_on(before: Session, after: Session) -> bool:
    """Whether there is an answer, a ballot or a closing text more than before."""
    had, has = (
        (len(s.answers), sum(not ballot.abstained for ballot in s.ballots), _has_ended(s))
        for s in (before, after)
    )
    return after.status == "complete" or any(map(gt, has, had))


def _has_ended(session: Session) -> bool:
    """Whether it has what it is to close with: a text that somebody wrote, or an outcome."""
    procedure = session.opened.procedure
    if procedure.mode == "best" or not procedure.synthesis:
        return session.outcome is not None
    return session.synthesis is not None and session.synthesis.chairman is not None


def _kept(session: Session) -> str:
    """How much of an interrupted session is there: of a jury, its ballots."""
    if session.opened.jury:
        cast = sum(not ballot.abstained for ballot in session.ballots)
        return f"{cast} of {counted(len(session.ballots), 'ballot')} kept"
    return f"{len(session.answers)} of {counted(len(session.opened.seats), 'answer')} kept"


def set_aside(session: Session) -> Path:
    """Write a session to a file of its own among the user's state, which nobody else may read.

    Raises
    ------
    SessionFileError, OSError
        If it cannot be written.
    """
    from platformdirs import user_state_path

    name = re.sub(r"[^\w.-]", "_", session.id).lstrip(".")
    path = user_state_path("witan") / "interrupted" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    write_session(session, path, private=True)
    return path
