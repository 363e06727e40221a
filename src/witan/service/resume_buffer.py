"""What follows in a session that is taken up: held back until something comes of it."""

from collections.abc import Sequence
from operator import gt

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

__all__ = ["TakenUp"]


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
        """What was held back until now."""
        passed, self._passed = self._passed, len(self._told)
        return self._told[passed:]

    def in_vain(self) -> tuple[Session, Sequence[Event]] | None:
        """The session as it is left where nothing came of it, and which of its events to keep yet.

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
        """Whether an event is of the end, which is taken back."""
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
    """Whether there is an answer, a ballot or a final answer more than before."""
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
