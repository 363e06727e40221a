"""The live view of a session, folded from its events one by one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import singledispatch
from typing import Literal

from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.deliberation.ports import Spent
from witan.service.text import counted

__all__ = ["Board", "LiveLine", "Phase", "State"]

Phase = Literal["opening", "answers", "reviews", "synthesis", "closed"]

State = Literal[
    "waiting", "answering", "answered", "failed", "reviewing", "voted", "abstained", "writing",
    "written",
]  # fmt: skip
"""What a seat does, or has done last."""

REASONED = "what it wrote at first was reasoning, and is withdrawn"

RUNNING = ("answering", "reviewing", "writing")
"""States in which a seat is waited for."""


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One seat as the view shows it.

    Parameters
    ----------
    words
        Of its text so far.
    since
        When what it does began; None: it does nothing.
    spent
        What all that it has done took, answers and reviews; None: nothing is over yet.
    note
        What is out of the ordinary.
    """

    name: str
    simulated: bool = False
    state: State = "waiting"
    words: int = 0
    since: datetime | None = None
    spent: Spent | None = None
    note: str = ""
    inside_word: bool = False

    @property
    def running(self) -> bool:
        """True while it is waited for."""
        return self.state in RUNNING

    @property
    def seconds(self) -> float | None:
        """Seconds of all its calls; None: none is over yet."""
        return None if self.spent is None else self.spent.seconds

    @property
    def amount(self) -> str:
        """Length of its texts, in tokens where its provider counts them."""
        if self.since is not None and self.state == "reviewing":
            return ""  # what it wrote before is not what its seconds run for
        tokens = None if self.spent is None else self.spent.usage.output_tokens
        if self.since is None and tokens is not None:
            return counted(tokens, "token")
        return counted(self.words, "word") if self.words else ""

    def start(self, state: State, at: datetime) -> "LiveLine":
        """Return the seat once it was asked for something."""
        return replace(self, state=state, since=at, note="")

    def hear(self, text: str) -> "LiveLine":
        """Return the seat with another piece of its text."""
        starts = len(text.split())
        if self.inside_word and starts and not text[0].isspace():
            starts -= 1
        ends_inside = not text[-1].isspace() if text else self.inside_word
        return replace(self, words=self.words + starts, inside_word=ends_inside)

    def write(self, state: State, text: str, spent: Spent, note: str = "") -> "LiveLine":
        """Return the seat once its text is complete."""
        return replace(
            self.stop(state, spent, note),
            words=len(text.split()),
            inside_word=False,
        )

    def stop(self, state: State, spent: Spent, note: str = "") -> "LiveLine":
        """Return the seat once it is done, well or not."""
        took = spent if self.spent is None else self.spent
        if self.spent is not None and spent.calls:
            took = self.spent + spent
        return replace(self, state=state, since=None, spent=took, note=note)

    def void(self, note: str) -> "LiveLine":
        """Return the seat once what it had written so far does not count."""
        return replace(self, words=0, inside_word=False, note=note)


@dataclass(frozen=True, slots=True)
class Board:
    """A session as the live view shows it, at one moment.

    Parameters
    ----------
    ending
        How the session ended; empty: it has not.
    writer
        Who writes the final answer; None: nobody does, or not yet.
    outcome, counted
        The ballots so far, counted; how many there were.
    news
        What changed the course of the session, newest last.
    answering
        How many seats are asked for an answer.
    jurors
        How many seats only review; none: the others review each other.
    scripted
        The seats and chairmen that play a script.
    provisional
        The latest event is not in the history yet.
    """

    phase: Phase = "opening"
    began: datetime | None = None
    ending: str = ""
    seats: tuple[LiveLine, ...] = ()
    writer: LiveLine | None = None
    outcome: Outcome | None = None
    counted: int = 0
    news: tuple[str, ...] = ()
    answering: int = 0
    jurors: int = 0
    scripted: tuple[str, ...] = ()
    provisional: bool = False

    def after(self, event: e.Event) -> "Board":
        """Return the board once this has happened, too."""
        board = _after(event, self)
        if isinstance(event, e.AnswerDelta | e.SynthesisDelta):
            return board
        if board.provisional == event.provisional:
            return board
        return replace(board, provisional=event.provisional)

    @property
    def judging(self) -> int:
        """Number of seats that review; those without an answer do not."""
        return self.jurors or self.answering - self.done(("failed",))

    def done(self, states: Sequence[State]) -> int:
        """Count the seats in one of these states."""
        return sum(line.state in states for line in self.seats)

    def seat(self, name: str, change: Callable[[LiveLine], LiveLine]) -> "Board":
        """Return the board with one seat changed."""
        seats = tuple(change(line) if line.name == name else line for line in self.seats)
        return replace(self, seats=seats)

    def hand_to(self, chairman: str | None, at: datetime) -> "Board":
        """Return the board once this chairman writes; None: nobody does."""
        if chairman is None:
            return replace(self, writer=None)
        line = LiveLine(chairman, simulated=chairman in self.scripted)
        return replace(self, writer=line.start("writing", at))

    def settled(self) -> "Board":
        """Return the board as it stays true for good: whoever is still waited for is so no more."""
        seats = tuple(replace(line, since=None) for line in self.seats)
        writing = self.writer is not None and self.writer.running
        return replace(self, seats=seats, writer=None if writing else self.writer)

    def write(self, change: Callable[[LiveLine], LiveLine]) -> "Board":
        """Return the board with whoever writes the final answer changed."""
        return self if self.writer is None else replace(self, writer=change(self.writer))


@singledispatch
def _after(event: e.Event, board: Board) -> Board:  # noqa: ARG001 - the general case
    """Most kinds change nothing that is shown."""
    return board


@_after.register
def _(event: e.SessionOpened, board: Board) -> Board:
    called = (*event.members, *event.jury)
    seats = tuple(LiveLine(seat.name, simulated=seat.simulated) for seat in called)
    everyone = (*event.seats, *event.called)
    scripted = tuple(dict.fromkeys(seat.name for seat in everyone if seat.simulated))
    phase: Phase = "answers" if event.members else "reviews"
    return replace(
        board,
        phase=phase,
        began=event.at,
        seats=seats,
        answering=len(event.members),
        jurors=len(event.jury),
        scripted=scripted,
    )


@_after.register
def _(event: e.AnswerStarted, board: Board) -> Board:
    return board.seat(event.seat, lambda line: line.void("").start("answering", event.at))


@_after.register
def _(event: e.AnswerDelta, board: Board) -> Board:
    return board.seat(event.seat, lambda line: line.hear(event.text))


@_after.register
def _(event: e.AnswerDone, board: Board) -> Board:
    note = "cut at its token limit" if event.cut else ""
    return board.seat(
        event.seat, lambda line: line.write("answered", event.text, event.spent, note)
    )


@_after.register
def _(event: e.AnswerFailed, board: Board) -> Board:
    # A failed round of debate leaves the answer of the round before standing.
    state: State = "failed" if event.round == 1 else "answered"
    return board.seat(event.seat, lambda line: line.stop(state, event.spent, event.reason))


@_after.register
def _(event: e.GateVerdict, board: Board) -> Board:
    if not event.flags:
        return board
    note = f"fails the safety gate: {', '.join(event.flags)}"
    return board.seat(event.seat, lambda line: replace(line, note=note))


@_after.register
def _(event: e.ReviewStarted, board: Board) -> Board:
    started = board.seat(event.seat, lambda line: line.start("reviewing", event.at))
    return replace(started, phase="reviews")


@_after.register
def _(event: e.BallotRepaired, board: Board) -> Board:
    note = f"asked again: {event.problem}"
    return board.seat(event.seat, lambda line: replace(line, note=note))


@_after.register
def _(event: e.BallotCast, board: Board) -> Board:
    turned = f"judged {event.flipped} of {event.compared} pairs otherwise on its sheet turned round"
    note = "; ".join([*([turned] if event.flipped else []), *event.notes])
    return board.seat(event.seat, lambda line: line.stop("voted", event.spent, note))


@_after.register
def _(event: e.BallotAbstained, board: Board) -> Board:
    return board.seat(event.seat, lambda line: line.stop("abstained", event.spent, event.reason))


@_after.register
def _(event: e.OutcomeChanged, board: Board) -> Board:
    return replace(board, outcome=event.outcome, counted=len(event.counted))


@_after.register
def _(event: e.Decided, board: Board) -> Board:
    news = f"decided: no ballot still out could overtake {event.leader}"
    return replace(board, news=(*board.news, news))


@_after.register
def _(event: e.SynthesisStarted, board: Board) -> Board:
    return replace(board, phase="synthesis").hand_to(event.chairman, event.at)


@_after.register
def _(event: e.SynthesisDelta, board: Board) -> Board:
    return board.write(lambda line: line.hear(event.text))


@_after.register
def _(event: e.SynthesisFailedOver, board: Board) -> Board:
    instead = "the best answer is taken" if event.next is None else f"{event.next} writes instead"
    news = f"chairman {event.chairman} failed: {event.reason}; {instead}"
    return replace(board, news=(*board.news, news)).hand_to(event.next, event.at)


@_after.register
def _(event: e.SynthesisDone, board: Board) -> Board:
    return board.write(lambda line: line.write("written", event.text, event.spent))


@_after.register
def _(event: e.CallRetried, board: Board) -> Board:
    note = f"attempt {event.attempt} failed: {event.reason}"
    if event.stage == "synthesis":
        return board.write(lambda line: line.void(note))
    if event.stage == "answer":
        return board.seat(event.seat, lambda line: line.void(note))
    return board.seat(event.seat, lambda line: replace(line, note=note))


@_after.register
def _(event: e.TextWithdrawn, board: Board) -> Board:
    if event.stage == "synthesis":
        return board.write(lambda line: line.void(REASONED))
    return board.seat(event.seat, lambda line: line.void(REASONED))


@_after.register
def _(event: e.SessionClosed, board: Board) -> Board:
    return replace(board.settled(), phase="closed", ending=event.status)
