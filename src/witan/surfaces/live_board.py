"""Fold events into the live state, and describe each event."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import singledispatch
from typing import Literal, TypeAlias

from witan.core.display import level_percent
from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.deliberation.ports import Expense
from witan.deliberation.session import Answer
from witan.service.text import clean, count_noun, list_text, number
from witan.service.trust import duration_text, ending_text, leaders_text, p_best_text

Phase = Literal["opening", "answers", "reviews", "synthesis", "closed"]

State = Literal[
    "waiting", "answering", "answered", "failed", "reviewing", "voted", "abstained",
    "not needed", "writing", "written",
]  # fmt: skip
"""Current work of a seat, or the last that it finished."""

Mark = Literal["idle", "busy", "done", "bad"]

MARKS: dict[str, Mark] = {
    "waiting": "idle",
    "answering": "busy",
    "answered": "done",
    "failed": "bad",
    "reviewing": "busy",
    "voted": "done",
    "abstained": "bad",
    "not needed": "idle",
    "writing": "busy",
    "written": "done",
    "did not finish": "idle",
}
"""Mark before a state; the state's name is always next to it."""

UNSAVED = "not saved yet"
"""Remark on events shown before they are stored."""

REASONED = "its first text was reasoning and was withdrawn"

UNFINISHED = "did not finish"

NOT_NEEDED = "its review was not needed"

REVIEWED: tuple[State, ...] = ("voted", "abstained", "not needed")
"""States of a seat whose review is over."""

CUT = "cut at its token limit"

MANY_SEATS = 12
"""More seats than this are counted in one line instead of listed."""


def answer_facts(answer: "e.AnswerDone | Answer", flags: Sequence[str] = ()) -> tuple[str, ...]:
    """Summarize an answer: length, seconds, flags of the safety gate."""
    spent, tokens = answer.spent, answer.spent.usage.output_tokens
    facts = [count_noun(len(answer.text.split()), "word")]
    if spent.calls:  # a given text needed no call
        facts.append(duration_text(spent.seconds))
    if spent.calls and tokens is not None:
        facts.append(count_noun(tokens, "token"))
    if answer.round > 1:
        facts.append(f"round {answer.round}")
    if answer.cut:
        facts.append(CUT)
    return (*facts, *([gate_text(flags)] if flags else []))


def gate_text(flags: Sequence[str]) -> str:
    """Describe the flags of the safety gate."""
    return f"fails the safety gate: {', '.join(flags)}"


def reversal_text(event: e.BallotCast) -> str:
    """Describe how a ballot changed with the order of its sheet."""
    pairs = count_noun(event.compared, "pair")
    return f"judged {event.flipped} of {pairs} differently on the mirrored sheet"


def progress_lines(events: Iterable[e.Event]) -> str:
    """Write a line for each event that has one."""
    board, lines = Board(), []
    for event in events:
        board = board.apply_event(event)
        if board.line:
            lines.append(f"{board.line}\n")
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class LiveLine:
    """One seat as the view shows it.

    `since`: start of its current work; None: idle.
    `spent`: cost of its finished answers and reviews; None before the first.
    """

    name: str
    simulated: bool = False
    state: State = "waiting"
    words: int = 0
    since: datetime | None = None
    spent: Expense | None = None
    note: str = ""
    inside_word: bool = False
    round: int = 0

    @property
    def is_running(self) -> bool:
        """True while it is working."""
        return MARKS[self.state] == "busy"

    @property
    def status(self) -> str:
        """The seat's state in one word, closed with the session."""
        return UNFINISHED if self.is_running and self.since is None else self.state

    @property
    def at_rest(self) -> "LiveLine":
        """The line without values that change with every word."""
        return replace(self, words=0, inside_word=False, round=0)

    @property
    def mark(self) -> Mark:
        """The mark before its state."""
        return MARKS[self.status]

    def elapsed_seconds(self, now: datetime) -> float | None:
        """Return the seconds of its current work, or None."""
        return None if self.since is None else max((now - self.since).total_seconds(), 0.0)

    @property
    def seconds(self) -> str:
        """Seconds of all its calls; empty before the first ends."""
        return "" if self.spent is None else f"{self.spent.seconds:.1f} s"

    @property
    def amount(self) -> str:
        """Length of its texts, in tokens if its provider counts them."""
        if self.since is not None and self.state == "reviewing":
            return ""  # its earlier answer is unrelated to the running seconds
        tokens = None if self.spent is None else self.spent.usage.output_tokens
        if self.since is None and tokens is not None:
            return count_noun(tokens, "token")
        return count_noun(self.words, "word") if self.words else ""

    def start(self, state: State, at: datetime) -> "LiveLine":
        """Return the seat after a request to it."""
        return replace(self, state=state, since=at, note="")

    def hear(self, text: str, round_: int = 0) -> "LiveLine":
        """Return the seat after another piece of its text."""
        starts = len(text.split())
        if self.inside_word and starts and not text[0].isspace():
            starts -= 1
        ends_inside = not text[-1].isspace() if text else self.inside_word
        words, latest = self.words + starts, max(self.round, round_)
        return replace(self, words=words, inside_word=ends_inside, round=latest)

    def write(self, state: State, text: str, expense: Expense, note: str = "") -> "LiveLine":
        """Return the seat with its complete text."""
        return replace(
            self.stop(state, expense, note),
            words=len(text.split()),
            inside_word=False,
        )

    def stop(self, state: State, expense: Expense, note: str = "") -> "LiveLine":
        """Return the seat after it has finished or failed."""
        expense_so_far = expense if self.spent is None else self.spent
        if self.spent is not None and expense.calls:
            expense_so_far = self.spent + expense
        return replace(self, state=state, since=None, spent=expense_so_far, note=note)

    def spare(self) -> "LiveLine":
        """Return the seat after its review became unnecessary."""
        state: State = "not needed" if self.state == "waiting" else self.state
        return replace(self, state=state, note="" if state == "not needed" else NOT_NEEDED)

    def void(self, note: str) -> "LiveLine":
        """Return the seat with its earlier text discarded."""
        return replace(self, words=0, inside_word=False, note=note)


@dataclass(frozen=True, slots=True)
class Board:
    """A session as the live view shows it, at one moment.

    Parameters
    ----------
    ending
        How the session ended; empty while it runs.
    writer
        Who writes the final answer, or None.
    outcome, n_counted
        The outcome so far, and its number of ballots.
    news
        Events that changed the course of the session, newest last.
    n_answering
        Number of seats that answer.
    jurors
        Number of seats that only review; 0: members review each other.
    scripted_seats
        The seats and chairmen that play a script.
    provisional
        The latest event is not in the history yet.
    line
        The latest event in a line, marked if simulated; may be empty.
    review_round, voters, electorate
        The latest round of reviews, who voted in it, and how many may.
    """

    phase: Phase = "opening"
    began: datetime | None = None
    ending: str = ""
    seats: tuple[LiveLine, ...] = ()
    writer: LiveLine | None = None
    outcome: Outcome | None = None
    n_counted: int = 0
    news: tuple[str, ...] = ()
    n_answering: int = 0
    jurors: int = 0
    scripted_seats: tuple[str, ...] = ()
    provisional: bool = False
    line: str = ""
    review_round: int = 0
    voters: frozenset[str] = frozenset()
    electorate: int = 0

    def apply_event(self, event: e.Event) -> "Board":
        """Return the board after this event."""
        board, words = _take(event, self)
        delta = isinstance(event, e.DELTAS)
        provisional = board.provisional if delta else event.provisional
        if words:
            unsaved_mark = f" ({UNSAVED})" if event.provisional else ""
            words = f"{'simulated · ' if board.scripted_seats else ''}{clean(words)}{unsaved_mark}"
        if (board.line, board.provisional) == (words, provisional):
            return board
        return replace(board, line=words, provisional=provisional)

    @property
    def unsaved_remark(self) -> str:
        """Remark on the latest event if it is unsaved, otherwise empty."""
        return UNSAVED if self.provisional else ""

    @property
    def stage_text(self) -> str:
        """The stage and its progress in a few words."""
        return {
            "opening": "seating the council",
            "answers": f"answers: {self.count_seats(('answered', 'failed'))} of {self.n_answering}",
            "reviews": f"reviews: {self.count_seats(REVIEWED)} of {self.n_reviewing}",
            "synthesis": "the final answer is being written",
            "closed": self.ending,
        }[self.phase]

    @property
    def n_reviewing(self) -> int:
        """Number of seats that review; those without an answer do not."""
        return self.jurors or self.n_answering - self.count_seats(("failed",))

    def count_seats(self, states: Sequence[State]) -> int:
        """Count the seats in one of these states."""
        return sum(line.state in states for line in self.seats)

    def seat(self, name: str, change: Callable[[LiveLine], LiveLine]) -> "Board":
        """Return the board with one seat changed."""
        seats = tuple(change(line) if line.name == name else line for line in self.seats)
        return replace(self, seats=seats)

    def remark(self, name: str, note: str) -> "Board":
        """Return the board with a remark on a seat."""
        return self.seat(name, lambda line: replace(line, note=note))

    def tell(self, news: str) -> "Step":
        """Return the board with this news, and the news."""
        return replace(self, news=(*self.news, news)), news

    def hand_to(self, chairman: str | None, at: datetime) -> "Board":
        """Return the board with this chairman writing; None: no chairman."""
        if chairman is None:
            return replace(self, writer=None)
        line = LiveLine(chairman, simulated=chairman in self.scripted_seats)
        return replace(self, writer=line.start("writing", at))

    def settle(self) -> "Board":
        """Return the final board, with no seat working."""
        seats = tuple(replace(line, since=None) for line in self.seats)
        if self.writer is None or not self.writer.is_running:
            return replace(self, seats=seats)
        phase: Phase = "reviews" if self.count_seats(REVIEWED) else "answers"
        return replace(self, seats=seats, writer=None, phase=phase)

    def write(self, change: Callable[[LiveLine], LiveLine]) -> "Board":
        """Return the board with whoever writes the final answer changed."""
        return self if self.writer is None else replace(self, writer=change(self.writer))


class FinalText:
    """The final answer as it is streamed, which cannot be taken back.

    Attributes
    ----------
    text
        The text streamed since it last started.
    """

    def __init__(self) -> None:
        self.text = ""

    def take(self, event: e.Event) -> tuple[str, str]:
        """Return the next piece, or a notice that earlier text is void."""
        match event:
            case e.SynthesisDelta():
                self.text += event.text
                return event.text, ""
            case e.SynthesisFailedOver():
                return "", self._void(f"{event.chairman} failed: {event.reason}")
            case e.CallRetried(stage="synthesis"):
                return "", self._void(f"attempt {event.attempt} failed: {event.reason}")
            case e.TextWithdrawn(stage="synthesis"):
                return "", self._void(f"the text so far was {event.seat}'s reasoning")
            case _:
                return "", ""

    def end(self, text: str) -> tuple[str, str]:
        """Return the remaining text, with a notice if it differs."""
        old_text, self.text = self.text, text
        if text.startswith(old_text):
            return text[len(old_text) :], ""
        if text.strip() == old_text.strip():
            return "", ""
        return text, "[interrupted: the final text follows]"

    def _void(self, reason: str) -> str:
        sent, self.text = self.text, ""
        return f"[interrupted: {clean(reason)}; it starts again]" if sent else ""


Step: TypeAlias = tuple[Board, str]
"""The board after an event, and the event in words."""


@singledispatch
def _take(event: e.Event, board: Board) -> Step:  # noqa: ARG001 - the general case
    """Most kinds do not change what is shown."""
    return board, ""


@_take.register
def _(event: e.SessionOpened, board: Board) -> Step:
    called = (*event.members, *event.jury)
    everyone = (*event.seats, *event.callable_seats)
    opened = replace(
        board,
        phase="answers" if event.members else "reviews",
        began=event.at,
        seats=tuple(LiveLine(seat.name, simulated=seat.simulated) for seat in called),
        n_answering=len(event.members),
        jurors=len(event.jury),
        scripted_seats=tuple(dict.fromkeys(seat.name for seat in everyone if seat.simulated)),
        electorate=len(event.reviewers),
    )
    names = list_text([seat.name for seat in event.seats], most=MANY_SEATS)
    judging = list_text([seat.name for seat in event.jury], most=MANY_SEATS)
    jury = f", judged by {judging}" if event.jury else ""
    return opened, f"the council: {names}{jury}"


@_take.register
def _(event: e.AnswerStarted, board: Board) -> Step:
    return board.seat(event.seat, lambda line: line.void("").start("answering", event.at)), ""


@_take.register
def _(event: e.AnswerDelta, board: Board) -> Step:
    begun = any(line.name == event.seat and line.round >= event.round for line in board.seats)
    after = board.seat(event.seat, lambda line: line.hear(event.text, event.round))
    return after, "" if begun else f"{event.seat} answers{_round_text(event.round)} …"


@_take.register
def _(event: e.AnswerDone, board: Board) -> Step:
    note = CUT if event.cut else ""
    after = board.seat(
        event.seat, lambda line: line.write("answered", event.text, event.spent, note)
    )
    return after, f"{event.seat} has answered: {', '.join(answer_facts(event))}"


@_take.register
def _(event: e.AnswerFailed, board: Board) -> Step:
    # After a failed debate round the previous answer counts.
    state: State = "failed" if event.round == 1 else "answered"
    after = board.seat(event.seat, lambda line: line.stop(state, event.spent, event.reason))
    return after, f"{event.seat} did not answer: {event.reason}"


@_take.register
def _(event: e.GateVerdict, board: Board) -> Step:
    if not event.flags:
        return board, ""
    note = gate_text(event.flags)
    return board.remark(event.seat, note), f"{event.seat} {note}"


@_take.register
def _(event: e.ReviewStarted, board: Board) -> Step:
    after = board.seat(event.seat, lambda line: line.start("reviewing", event.at))
    if event.round <= board.review_round:
        return replace(after, phase="reviews"), ""
    after = replace(after, phase="reviews", review_round=event.round, voters=frozenset())
    return after, f"the answers are reviewed blind{_round_text(event.round)}"


@_take.register
def _(event: e.BallotRepaired, board: Board) -> Step:
    note = f"asked again: {event.problem}"
    return board.remark(event.seat, note), f"{event.seat} is {note}"


@_take.register
def _(event: e.BallotCast, board: Board) -> Step:
    note = "; ".join([*([reversal_text(event)] if event.flipped else []), *event.notes])
    after = board.seat(event.seat, lambda line: line.stop("voted", event.spent, note))
    after = replace(after, voters=board.voters | {event.seat})
    return after, f"{event.seat} has voted: {len(after.voters)} of {board.electorate}"


@_take.register
def _(event: e.BallotAbstained, board: Board) -> Step:
    after = board.seat(event.seat, lambda line: line.stop("abstained", event.spent, event.reason))
    return after, f"{event.seat} abstains: {event.reason}"


@_take.register
def _(event: e.OutcomeChanged, board: Board) -> Step:
    after = replace(board, outcome=event.outcome, n_counted=len(event.counted))
    if not event.outcome.can_be_won:
        return after, ""
    return after, f"after {count_noun(after.n_counted, 'ballot')} {_lead(event.outcome)}"


@_take.register
def _(event: e.Decided, board: Board) -> Step:
    if event.reason == "certain":
        return board.tell(f"decided: no remaining ballot could overtake {event.leader}")
    for name in event.cancelled:
        board = board.seat(name, lambda line: line.spare())
    return board.tell(ending_text(event, board.electorate))


@_take.register
def _(event: e.SynthesisStarted, board: Board) -> Step:
    after = replace(board, phase="synthesis").hand_to(event.chairman, event.at)
    if event.chairman is None:
        return after, "the best answer is used as the final answer"
    return after, f"{event.chairman} writes the final answer …"


@_take.register
def _(event: e.SynthesisDelta, board: Board) -> Step:
    return board.write(lambda line: line.hear(event.text)), ""


@_take.register
def _(event: e.SynthesisFailedOver, board: Board) -> Step:
    instead = "using the best answer" if event.next is None else f"{event.next} takes over"
    after = board.hand_to(event.next, event.at)
    return after.tell(f"chairman {event.chairman} failed: {event.reason}; {instead}")


@_take.register
def _(event: e.SynthesisDone, board: Board) -> Step:
    return board.write(lambda line: line.write("written", event.text, event.spent)), ""


@_take.register
def _(event: e.CallRetried, board: Board) -> Step:
    note = f"attempt {event.attempt} failed: {event.reason}"
    words = f"{event.seat}: {note}"
    if event.stage == "synthesis":
        return board.write(lambda line: line.void(note)), words
    if event.stage == "answer":
        return board.seat(event.seat, lambda line: line.void(note)), words
    return board.remark(event.seat, note), words


@_take.register
def _(event: e.TextWithdrawn, board: Board) -> Step:
    if event.stage == "synthesis":
        return board.write(lambda line: line.void(REASONED)), ""
    return board.seat(event.seat, lambda line: line.void(REASONED)), ""


@_take.register
def _(event: e.SessionClosed, board: Board) -> Step:
    return replace(board.settle(), phase="closed", ending=event.status), ""


def _round_text(round_: int) -> str:
    """Name the round, after the first."""
    return "" if round_ == 1 else f" once more, in round {round_}"


def _lead(outcome: Outcome) -> str:
    """Describe the lead: its size, and its probability."""
    line = outcome.standings[0]
    if len(outcome.leaders) > 1:
        return leaders_text(outcome.leaders)
    interval_text = ""
    if line.interval is not None:
        low, high = number(line.interval.low), number(line.interval.high)
        interval_text = f" ({low} to {high} at {level_percent(outcome.level)})"
    chance_text = (
        "" if line.p_best is None else f", best with probability {p_best_text(line.p_best)}"
    )
    others = [name for name in outcome.tied_for_best if name != line.candidate]
    tied_text = f", too close to call against {list_text(others)}" if others else ""
    score = "" if line.score is None else f" with {number(line.score)}"
    return f"{leaders_text(outcome.leaders)}{score}{interval_text}{chance_text}{tied_text}"
