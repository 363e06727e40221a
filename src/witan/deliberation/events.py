"""The events of a session: one stream for every surface.

SessionOpened
├── per answer     AnswerStarted, AnswerDelta, AnswerDone | AnswerFailed, then GateVerdict
├── per review     SheetDrawn, ReviewStarted, BallotRepaired, BallotCast | BallotAbstained
├── counting       OutcomeChanged, Decided
├── synthesis      SynthesisStarted, SynthesisDelta, SynthesisFailedOver, SynthesisDone
├── any call       CallRetried, TextWithdrawn
├── FruitlessResume
└── SessionClosed

Deltas are shown and not stored: the event that ends a text contains all of it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Literal

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet
from witan.core.bounds import Amount, Count, Ordinal, Result, Share, VisibleText
from witan.core.outcome import Outcome
from witan.core.scale_recognition import declare_native
from witan.core.stats.calibration import Calibration
from witan.deliberation.call_headers import TraceContext
from witan.deliberation.plan import Plan
from witan.deliberation.ports import Expense, Message, Seat, Stage, StoredAnswer
from witan.deliberation.procedure import Mode, Procedure

Status = Literal["complete", "degraded", "failed"]

Relation = Literal["continued", "rejudged", "retried", "compared"]
"""Relation to the parent: continues its conversation, judges its answers, retries failed seats."""

ReadBy = Literal["schema", "tolerant"]
"""The reading of a review: by the schema, or tolerant."""


@dataclass(frozen=True, slots=True)
class Judging:
    """The terms of a judgment of texts.

    Parameters
    ----------
    pass_mark
        Lowest passing grade, from 1 to 10, if any.
    expected
        The text expected to lead, or ``tie``, if any.
    """

    pass_mark: float | None = None
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a session.

    Parameters
    ----------
    seq
        Its number in the session, from 1, without gaps as it happens.
    at
        The time of day, in UTC.
    provisional
        True if it is shown before it is durable, because the history could not store it in time.
        It is not recorded.
    """

    kind: ClassVar[str] = "event"
    seq: Ordinal
    at: datetime
    provisional: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(Event):
    """A question was put to a council: seats, procedure, plan and seed.

    Parameters
    ----------
    session
        Its name.
    question
        What was asked.
    seats
        Who answers.
    conversation
        Messages before the question, oldest first.
    files
        Text of the files that came with the question, by name.
    chairmen
        Writers of the final answer, in the order in which they are tried; may be empty.
    seed
        Seed of every sheet.
    witan
        The version that opened it.
    notes
        Notes on how the council was seated, one sentence each.
    category
        Kind of question as stated by the client, to filter leaderboards by.
    jury
        Reviewers in place of the seats; empty if these review each other.
    answers
        Stored answers of an earlier session, or texts to judge; then no member is called for an
        answer.
    parent, relation
        The session that this one is derived from, and how.
    parent_ranking
        The parent's ranking of the answers, best first, ties together.
    retried, kept
        Seats asked again; number of following events taken over from the parent.
    calibration
        Share of equally confident panels that had matched people by then; None if unknown.
    judging
        Terms by which texts are judged; None for a question.
    trace
        The trace of the client's request, if any.
    """

    kind: ClassVar[str] = "session_opened"
    session: str
    question: str
    conversation: tuple[Message, ...] = ()
    files: Mapping[str, str]
    seats: tuple[Seat, ...]
    chairmen: tuple[Seat, ...]
    procedure: Procedure
    plan: Plan
    seed: Count
    witan: str
    notes: tuple[str, ...] = ()
    category: str | None = None
    jury: tuple[Seat, ...] = ()
    answers: tuple[StoredAnswer, ...] = ()
    parent: str | None = None
    relation: Relation | None = None
    parent_ranking: tuple[tuple[str, ...], ...] = ()
    retried: tuple[str, ...] = ()
    kept: Count = 0
    calibration: Calibration | None = None
    judging: Judging | None = None
    trace: TraceContext | None = None

    @property
    def members(self) -> tuple[Seat, ...]:
        """Seats called for an answer."""
        return () if self.answers else self.seats

    @property
    def reviewers(self) -> tuple[Seat, ...]:
        """Seats called for a ballot."""
        return self.jury or self.seats

    @property
    def callable_seats(self) -> tuple[Seat, ...]:
        """Seats that may be called: members, jury and chairmen."""
        return (*self.members, *self.jury, *self.chairmen)

    @property
    def is_simulated(self) -> bool:
        """True if a seat plays a script."""
        return any(seat.simulated for seat in (*self.seats, *self.jury, *self.chairmen))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatEvent(Event):
    """An event of one seat; common fields are described here.

    Fields
    ------
    seat
        The seat.
    round
        1 is the first; later ones follow a debate or a repair.
    stage
        The stage of the call.
    mirrored
        True if the sheet is in reverse order.
    mode
        Whether it is a synthesis, a verdict, or the best answer.
    cut
        True if the text ended at its token limit.
    worst_usd
        The most that one attempt can cost; None if unknown.
    over_budget
        True if the ceiling forbade the call.
    misconfigured
        True if the call reached no model: wrong address or name, missing or refused key.
    """

    seat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEvent(SeatEvent):
    """An event of one seat in one round of answers or reviews."""

    round: Ordinal = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStarted(RoundEvent):
    """A member is called; rounds after the first are debate."""

    kind: ClassVar[str] = "answer_started"
    worst_usd: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDelta(RoundEvent):
    """The next piece of an answer."""

    kind: ClassVar[str] = "answer_delta"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDone(RoundEvent):
    """An answer is complete.

    Parameters
    ----------
    text
        Its answer.
    notes
        Sentences on dropped options of the call.
    reasoning
        Reasoning that the server left in the same text; not part of the answer.
    """

    kind: ClassVar[str] = "answer_done"
    text: VisibleText
    cut: bool = False
    notes: tuple[str, ...] = ()
    reasoning: str = ""
    spent: Expense


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFailed(RoundEvent):
    """A member did not answer in this round, and why.

    Parameters
    ----------
    reason
        Why there is no answer.
    """

    kind: ClassVar[str] = "answer_failed"
    reason: str
    over_budget: bool = False
    misconfigured: bool = False
    spent: Expense


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict(SeatEvent):
    """The safety gate judged an answer; without flags it passed.

    Parameters
    ----------
    flags
        Reasons why the answer failed; empty if it passed.
    """

    kind: ClassVar[str] = "gate_verdict"
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetDrawn(Event):
    """A reviewer's sheet was drawn; `mirrored` is the same in reverse order.

    Parameters
    ----------
    round
        Of reviews; 1 is the first.
    """

    kind: ClassVar[str] = "sheet_drawn"
    round: Ordinal = 1
    sheet: Sheet
    mirrored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStarted(RoundEvent):
    """A reviewer is called."""

    kind: ClassVar[str] = "review_started"
    worst_usd: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotRepaired(RoundEvent):
    """A review could not be read, and its reviewer is asked again.

    Parameters
    ----------
    problem
        What was wrong with its review.
    reply
        Its reply.
    """

    kind: ClassVar[str] = "ballot_repaired"
    mirrored: bool = False
    problem: str
    reply: str
    worst_usd: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotCast(RoundEvent):
    """A review was read as a ballot.

    Parameters
    ----------
    read_by
        How its review was read.
    replies
        The raw text that was read: one, or one per order if mirrored.
    notes
        Sentences on what the reader dropped.
    flipped, compared
        Pairs that the reviewer reversed, of those judged in both orders; 0 of 0 unless mirrored.
    lost
        Reason why only one of two orders, or not all pairs, could be read, if so.
    comparisons
        What the reviewer said of each pair that it saw, order by order, however intransitive;
        these count, and `ballot` only ranks by the share of rivals preferred to. Empty: it judged
        one sheet.
    """

    kind: ClassVar[str] = "ballot_cast"
    ballot: Ballot
    comparisons: tuple[Ballot, ...] = ()
    replies: tuple[str, ...]
    read_by: ReadBy
    notes: tuple[str, ...] = ()
    flipped: Count = 0
    compared: Count = 0
    lost: str | None = None
    spent: Expense

    def __post_init__(self) -> None:
        # A council's grades are from 1 to 10, and records do not name that scale.
        object.__setattr__(self, "ballot", declare_native(self.ballot))


@dataclass(frozen=True, slots=True, kw_only=True)
class BallotAbstained(RoundEvent):
    """A seat without a ballot, and why.

    Parameters
    ----------
    reason
        Why there is no ballot.
    replies
        What it replied.
    awaited
        True if the ballot was waited for; false once no ballot could change the leader.
    """

    kind: ClassVar[str] = "ballot_abstained"
    reason: str
    replies: tuple[str, ...] = ()
    over_budget: bool = False
    awaited: bool = True
    misconfigured: bool = False
    spent: Expense


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeChanged(Event):
    """Outcome of the ballots so far; the last is the session's.

    Parameters
    ----------
    counted
        How many ballots are counted.
    """

    kind: ClassVar[str] = "outcome_changed"
    outcome: Outcome
    counted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Event):
    """The reviews end before all are in.

    Parameters
    ----------
    leader
        Who leads for certain or clearly, if anyone.
    cancelled
        Reviewers that were no longer awaited, or not asked.
    reason
        ``certain``: no outstanding ballot can change the leader. ``settled``: nothing is too close
        to call. ``hopeless``: more ballots would hardly settle it.
    p_settled
        Probability that the remaining ballots would have settled it; None if it is settled.
    """

    kind: ClassVar[str] = "decided"
    leader: str | None
    cancelled: tuple[str, ...]
    reason: Literal["certain", "settled", "hopeless"] = "certain"
    p_settled: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisStarted(Event):
    """A chairman is called for the final answer.

    Parameters
    ----------
    chairman
        Who writes; None if the best-ranked answer is used.
    """

    kind: ClassVar[str] = "synthesis_started"
    chairman: str | None
    mode: Mode
    worst_usd: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisDelta(Event):
    """The next piece of the final answer."""

    kind: ClassVar[str] = "synthesis_delta"
    chairman: str | None
    text: str


DELTAS = (AnswerDelta, SynthesisDelta)
"""Events that are shown and not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisFailedOver(Event):
    """A chairman failed or went `over_budget`; `next` or the best answer follows.

    Parameters
    ----------
    chairman
        Who failed to write it.
    reason
        Why.
    next
        Who is tried next, if anyone.
    over_budget
        True if the cost ceiling forbade it.
    """

    kind: ClassVar[str] = "synthesis_failed_over"
    chairman: str
    reason: str
    next: str | None
    over_budget: bool = False
    spent: Expense


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisDone(Event):
    """The final answer.

    Parameters
    ----------
    text
        The final answer.
    notes
        Notes, a sentence each.
    chairman
        Its author; None if it is the best-ranked answer, or the tied ones.
    labels
        Seat by label: what [A] in the text means.
    approved
        In the mode ``verdict``: whether it approves; None if it does not say.
    reasoning
        Reasoning that the server left in the same text; not part of the final answer.
    """

    kind: ClassVar[str] = "synthesis_done"
    chairman: str | None
    mode: Mode
    text: VisibleText
    labels: Mapping[str, str]
    approved: bool | None = None
    cut: bool = False
    notes: tuple[str, ...] = ()
    reasoning: str = ""
    spent: Expense


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetried(SeatEvent):
    """An attempt failed and another follows, or a silent one is hedged.

    Parameters
    ----------
    attempt
        Its number; 1 is the first.
    reason
        Why the one before failed.
    wait_seconds
        Seconds of waiting before it.
    """

    kind: ClassVar[str] = "call_retried"
    stage: Stage
    attempt: Ordinal
    reason: str
    wait_seconds: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWithdrawn(SeatEvent):
    """The text so far was reasoning; it starts again."""

    kind: ClassVar[str] = "text_withdrawn"
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class FruitlessResume(Event):
    """A resume without progress, which may have a cost.

    The session can be resumed again from its earlier state, after the event `since`.

    Parameters
    ----------
    since
        Number of the last event before the fruitless resume.
    """

    kind: ClassVar[str] = "sitting_in_vain"
    since: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed(Event):
    """The end.

    Parameters
    ----------
    known_usd
        Cost of the calls whose cost is known.
    seconds
        How long the session took. Below 0 in records of earlier versions, if the clock was set
        back before it was resumed.
    status
        ``complete``; ``degraded``, and `missing` says exactly by what; ``failed``.
    missing
        Sentences, one for each thing that a complete session would have had.
    cost_usd
        Cost of all calls; None if that of some call is unknown.
    """

    kind: ClassVar[str] = "session_closed"
    status: Status
    missing: tuple[str, ...]
    cost_usd: Amount | None
    known_usd: Amount
    seconds: Result


EVENTS: Mapping[str, type[Event]] = {
    event.kind: event
    for event in (
        SessionOpened, AnswerStarted, AnswerDelta, AnswerDone, AnswerFailed, GateVerdict,
        SheetDrawn, ReviewStarted, BallotRepaired, BallotCast, BallotAbstained, OutcomeChanged,
        Decided, SynthesisStarted, SynthesisDelta, SynthesisFailedOver, SynthesisDone, CallRetried,
        TextWithdrawn, FruitlessResume, SessionClosed,
    )
}  # fmt: skip
"""Class of each kind of event, by its name in records."""


NOT_RANKED, NOT_GRADED = "left out of its ranking", "left without a grade"

NOT_ON_SHEET = "names answers that are not on its sheet; dropped"

_LABEL_LIST = "[A-Z]{1,3}(?:, [A-Z]{1,3})*"
_JUDGES_ONLY = re.compile(rf"judges only ({_LABEL_LIST}) of ({_LABEL_LIST})")
_LEFT_OUT = re.compile(rf"not (ranked|graded): ({_LABEL_LIST})")
_REPETITION_NOTE = re.compile(
    r"(ranked|graded) more than once: ['\"].*; the first (place|grade) counts"
)


def judges_only(n_judged: int, on_sheet: int) -> str:
    """Describe a ballot on too few answers."""
    return f"judges only {n_judged} of the {on_sheet} answers on its sheet"


def name_candidates(notes: str, sheet: Sheet) -> str:
    """Replace sheet labels in a reviewer's notes by candidates.

    Only a label that cannot be a word is replaced: in brackets, as the form requires (``[B]``,
    ``[B, C]``), or after a noun for an answer ("Answer B").
    """
    label, mention = _label_patterns(sheet.labels)
    candidates = dict(zip(sheet.labels, sheet.candidates, strict=True))

    def name(match: re.Match[str]) -> str:
        if (labels := match[1]) is not None:
            return f"[{label.sub(lambda one: candidates[one[0]], labels)}]"
        return f"{match[2]} [{candidates[match[3] or match[4]]}]"

    return mention.sub(name, notes)


@lru_cache(maxsize=64)
def _label_patterns(labels: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a label, and of certain mentions of one."""
    label = "|".join(map(re.escape, labels))
    bracketed = rf"\[((?:{label})(?: ?[,;&/] ?(?:{label}))*)\](?!\()"
    named_labels = (
        rf"(?i:\b(answer|candidate|response|option|reply|text)) (?:({label})\b|\*\*({label})\*\*)"
    )
    return re.compile(label), re.compile(rf"{bracketed}|{named_labels}")


def drop_sheet_labels(event: Event) -> Event:  # noqa: PLR0911 - one a kind
    """Replace sheet labels in the sentences of earlier versions' events."""
    match event:
        case BallotRepaired(problem=problem):
            return _replace_changed(event, problem=_count_labels(problem))
        case BallotAbstained(reason=reason):
            return _replace_changed(event, reason=_count_labels(reason))
        case BallotCast(notes=notes, lost=loss, ballot=ballot):
            named_notes = tuple(_name_omissions(note, ballot) for note in notes)
            return _replace_changed(event, notes=named_notes, lost=loss and _count_labels(loss))
        case OutcomeChanged(outcome=outcome):
            reasons = {name: _count_labels(why) for name, why in outcome.abstentions.items()}
            if reasons == dict(outcome.abstentions):
                return event
            return replace(event, outcome=replace(outcome, abstentions=reasons))
        case SessionClosed(missing=missing):
            return _replace_changed(event, missing=tuple(map(_count_labels, missing)))
        case _:
            return event


def _replace_changed(event: Event, **fields: object) -> Event:
    is_unchanged = all(getattr(event, name) == value for name, value in fields.items())
    return event if is_unchanged else replace(event, **fields)  # type: ignore[arg-type]


def _count_labels(sentence: str) -> str:
    return _JUDGES_ONLY.sub(
        lambda match: judges_only(*(group.count(",") + 1 for group in match.groups())), sentence
    )


def _name_omissions(note: str, ballot: Ballot) -> str:
    if left_out := _LEFT_OUT.fullmatch(note):
        words, n_judged_names = _left_out(left_out[1], ballot)
        missing = [name for name in ballot.positions or () if name not in n_judged_names]
        n_missing = left_out[2].count(",") + 1
        # A ballot merged from two sheets may contain candidates that one of them left out.
        many = "an answer" if n_missing == 1 else f"{n_missing} answers"
        return f"{words}: {', '.join(missing) if len(missing) == n_missing else many}"
    if repeated := _REPETITION_NOTE.fullmatch(note):
        return f"an answer is {repeated[1]} more than once; the first {repeated[2]} counts"
    return NOT_ON_SHEET if note.startswith("not on the sheet: ") else _count_labels(note)


def _left_out(verb: str, ballot: Ballot) -> tuple[str, Iterable[str] | Mapping[str, object]]:
    if verb == "graded":
        return NOT_GRADED, ballot.grades
    return NOT_RANKED, {name for group in ballot.groups for name in group}


Listener = Callable[[Event], None]
"""A callback for every event, in order; it must not block."""


def skip_past_events(listener: Listener, since: datetime) -> Listener:
    """Forward the opening and later events, skipping those of the past.

    A resumed session or a retry begins with earlier events, whose calls have already been counted
    and timed.
    """
    stands = 0

    def forward(event: Event) -> None:
        nonlocal stands
        if isinstance(event, SessionOpened):
            stands = event.seq + event.kept
            listener(event)
        elif event.at >= since and event.seq > stands:
            listener(event)

    return forward
