"""Sessions as they happen: told event by event, and committed by a thread of their own.

Whoever deliberates never waits for the disk. What has been told while one commit was under way goes
into the next, so that many sessions share the price of one.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Self

from witan.adapters.history.committing import Line
from witan.adapters.history.holders import new_token
from witan.adapters.history.patience import Patience
from witan.adapters.history.sqlite import is_busy
from witan.adapters.history.writer import Writer
from witan.deliberation.events import (
    AnswerDelta,
    Event,
    SessionClosed,
    SessionOpened,
    SynthesisDelta,
)
from witan.errors import HistoryError

__all__ = ["Recording"]


class Recording:
    """A listener that keeps what it is told: one session after another.

    Any number of recordings may be open at once; they share the history's writer.

    Parameters
    ----------
    claim
        The token by which a session was taken up, if it was.

    Attributes
    ----------
    failure
        The first thing that went wrong; what is told after it of that session is not kept. Once a
        flush has raised it, it is that of its session alone, and goes when another begins.
    """

    def __init__(self, writer: Writer, claim: Callable[[str], str | None]) -> None:
        self._writer = writer
        self._claim = claim
        self._line: Line | None = None
        self._failures: dict[str, Exception] = {}
        self._raised: set[str] = set()

    @property
    def failure(self) -> Exception | None:
        """The first thing that went wrong."""
        return next(iter([*self._failures.values()]), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        if kind is None:
            self.flush()
            return
        with suppress(HistoryError):  # what the block raised says more
            self.flush()

    def __call__(self, event: Event) -> None:
        """Queue an event, deltas aside; return at once."""
        if isinstance(event, AnswerDelta | SynthesisDelta):
            return
        if isinstance(event, SessionOpened):
            while self._raised:  # another thread may be adding to it
                self._failures.pop(self._raised.pop(), None)
            claimed = self._claim(event.session)
            self._line = Line(event, new_token() if claimed is None else claimed, self)
        if self._line is None:
            problem = "was told of a session whose opening it was not told of"
            raise HistoryError("the recording", problem, "tell it the session from its beginning")
        line = self._line
        line.events.append(event)
        if isinstance(event, SessionClosed):
            self._line = None
        self._writer.tell(line, len(line.events))

    def wait(self, patience: Patience) -> bool:
        """Wait until everything told so far was dealt with, as long as `patience` has; whether so.

        What another process is in the way of may still be kept later.
        """
        try:
            patience.through(self._writer.where, self._writer.drain)
        except HistoryError as error:
            if not is_busy(error):
                raise
            return False
        return True

    def flush(self, patience: Patience | None = None) -> None:
        """Wait until everything told so far is durable.

        Parameters
        ----------
        patience
            How long to wait for another process that keeps the history locked, after which what was
            told is given up, and who is told of it; None: as long as any opening, nobody.

        Raises
        ------
        HistoryError
            If some of it is not kept.
        """
        patience = Patience() if patience is None else patience
        try:
            patience.through(self._writer.where, self._writer.drain)
        except HistoryError as error:
            if not is_busy(error):
                raise
            self._writer.give_up(self, error)
        failures = [*self._failures.items()]
        if failures:
            session, failure = failures[0]
            self._raised.add(session)
            raise failure

    def fail(self, session: str, error: Exception) -> None:
        """Note why what was told of a session is not kept."""
        self._failures.setdefault(session, error)
