"""Events of a session in short lines."""

from collections.abc import Iterable
from functools import singledispatch

from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.service.text import UNSAVED, clean, counted, listed, number
from witan.service.trust import duration_text, p_best_text

__all__ = ["Progress", "told_in_short"]

MANY_SEATS = 12
"""More seats than this are counted in one line instead of listed."""


class Progress:
    """Tells one session event by event, the simulated marked on every line.

    Attributes
    ----------
    voted, electorate
        Ballots that are in, of so many that are asked for.
    """

    def __init__(self) -> None:
        self.voted, self.electorate = 0, 0
        self._mark = ""
        self._told: set[str] = set()

    def after(self, event: e.Event) -> str:
        """Word an event in one line; empty: it has none."""
        if isinstance(event, e.SessionOpened):
            self.electorate = len(event.reviewers)
            self._mark = "simulated · " if event.simulated else ""
        if isinstance(event, e.BallotCast):
            self.voted += 1
        if isinstance(event, e.ReviewStarted) and event.round > 1:
            self.voted = 0
        words = clean(_said(event, self))
        yet = f" ({UNSAVED})" if event.provisional else ""
        return f"{self._mark}{words}{yet}" if words else ""

    def once(self, said: str) -> str:
        """Return a sentence once, and nothing after that."""
        if said in self._told:
            return ""
        self._told.add(said)
        return said


def told_in_short(events: Iterable[e.Event]) -> str:
    """Write a line for each event that has one."""
    progress = Progress()
    lines = (progress.after(event) for event in events)
    return "".join(f"{line}\n" for line in lines if line)


@singledispatch
def _said(event: e.Event, seen: Progress) -> str:  # noqa: ARG001 - the general case
    """Most kinds are not worth a line."""
    return ""


@_said.register
def _(event: e.SessionOpened, seen: Progress) -> str:  # noqa: ARG001
    names = listed([seat.name for seat in event.seats], most=MANY_SEATS)
    judging = listed([seat.name for seat in event.jury], most=MANY_SEATS)
    jury = f", judged by {judging}" if event.jury else ""
    return f"the council sits: {names}{jury}"


@_said.register
def _(event: e.AnswerDelta, seen: Progress) -> str:
    return seen.once(f"{event.seat} answers{_again(event.round)} …")


@_said.register
def _(event: e.AnswerDone, seen: Progress) -> str:  # noqa: ARG001
    parts = [counted(len(event.text.split()), "word"), duration_text(event.spent.seconds)]
    if (tokens := event.spent.usage.output_tokens) is not None:
        parts.append(counted(tokens, "token"))
    if event.cut:
        parts.append("cut at its token limit")
    return f"{event.seat} has answered: {', '.join(parts)}"


@_said.register
def _(event: e.AnswerFailed, seen: Progress) -> str:  # noqa: ARG001
    return f"{event.seat} has not answered: {event.reason}"


@_said.register
def _(event: e.GateVerdict, seen: Progress) -> str:  # noqa: ARG001
    return f"{event.seat} fails the safety gate: {', '.join(event.flags)}" if event.flags else ""


@_said.register
def _(event: e.ReviewStarted, seen: Progress) -> str:
    return seen.once(f"the answers are reviewed blind{_again(event.round)}")


@_said.register
def _(event: e.BallotRepaired, seen: Progress) -> str:  # noqa: ARG001
    return f"{event.seat} is asked for its ballot again: {event.problem}"


@_said.register
def _(event: e.BallotCast, seen: Progress) -> str:
    return f"{event.seat} has voted: {seen.voted} of {seen.electorate}"


@_said.register
def _(event: e.BallotAbstained, seen: Progress) -> str:  # noqa: ARG001
    return f"{event.seat} abstains: {event.reason}"


@_said.register
def _(event: e.OutcomeChanged, seen: Progress) -> str:  # noqa: ARG001
    outcome = event.outcome
    if not outcome.leaders:
        return ""
    ballots = counted(len(event.counted), "ballot")
    return f"after {ballots} {_lead(outcome)}"


@_said.register
def _(event: e.Decided, seen: Progress) -> str:  # noqa: ARG001
    return f"decided: no ballot still out could overtake {event.leader}"


@_said.register
def _(event: e.SynthesisStarted, seen: Progress) -> str:  # noqa: ARG001
    if event.chairman is None:
        return "the best answer stands for the final answer"
    return f"{event.chairman} writes the final answer …"


@_said.register
def _(event: e.SynthesisFailedOver, seen: Progress) -> str:  # noqa: ARG001
    instead = "the best answer is taken" if event.next is None else f"{event.next} writes instead"
    return f"chairman {event.chairman} has failed: {event.reason}; {instead}"


@_said.register
def _(event: e.CallRetried, seen: Progress) -> str:  # noqa: ARG001
    return f"attempt {event.attempt} of {event.seat} has failed: {event.reason}"


def _again(round_: int) -> str:
    """Name the round, after the first."""
    return "" if round_ == 1 else f" once more, in round {round_}"


def _lead(outcome: Outcome) -> str:
    """Word the lead: its size, and its probability."""
    line = outcome.standings[0]
    if len(outcome.leaders) > 1:
        return f"{listed(outcome.leaders)} share the first place"
    within = ""
    if line.interval is not None:
        low, high = number(line.interval.low), number(line.interval.high)
        within = f" ({low} to {high} at {outcome.level * 100:g}%)"
    sure = "" if line.p_best is None else f", best with probability {p_best_text(line.p_best)}"
    others = [name for name in outcome.tied_for_best if name != line.candidate]
    tied = f", too close to call against {listed(others)}" if others else ""
    score = "" if line.score is None else f" with {number(line.score)}"
    return f"{line.candidate} leads{score}{within}{sure}{tied}"
