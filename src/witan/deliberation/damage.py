"""Detection of readable events that no council would record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from witan.core.ballot import Ballot
from witan.core.outcome import Outcome
from witan.core.scale import read_grade
from witan.deliberation import events as e
from witan.deliberation.session import Session
from witan.errors import NothingToCount

DAMAGED = "the session is damaged, or was written by a later version of Witan"


def restore_session(events: Iterable[e.Event]) -> Session:
    """Fold recorded events into a session.

    Raises `NothingToCount` if they are not a session, or no council would record one of them; the
    error names it.
    """
    session = Session.of(events)
    check = _EventCheck(session.opening)
    for event in session.events:
        for problem in check.find_problems(event):
            raise NothingToCount(f"event {event.seq} {problem}")
    return session


class _EventCheck:
    """Check of a session's events against its opening."""

    def __init__(self, opening: e.SessionOpened) -> None:
        self.n_review_rounds = opening.procedure.review_rounds
        self.n_answer_rounds = 1 + opening.procedure.debate_rounds
        self.candidates = {seat.name for seat in opening.seats}
        self.names = {seat.name for seat in (*opening.seats, *opening.jury, *opening.chairmen)}

    def find_problems(self, event: e.Event) -> Iterator[str]:
        """Yield what is wrong with an event, if anything."""
        match event:
            case e.AnswerStarted() | e.AnswerDone() | e.AnswerFailed():
                yield from _check_round(event.round, self.n_answer_rounds)
            case e.ReviewStarted() | e.BallotRepaired() | e.BallotAbstained():
                yield from _check_round(event.round, self.n_review_rounds)
            case e.BallotCast():
                yield from _check_round(event.round, self.n_review_rounds)
                for ballot in (event.ballot, *event.comparisons):
                    yield from self._check_ballot(ballot)
            case e.OutcomeChanged():
                yield from self._check_outcome(event.outcome)
                yield from _find_unknown(event.counted, self.names)
            case e.SynthesisStarted():
                yield from _find_unknown([event.chairman], self.names)
            case e.SynthesisFailedOver():
                yield from _find_unknown([event.chairman, event.next], self.names)
            case e.SynthesisDone():
                yield from _find_unknown([event.chairman], self.names)
                yield from _find_unknown(event.labels.values(), self.candidates)

    def _check_ballot(self, ballot: Ballot) -> Iterator[str]:
        yield from _find_unknown(ballot.candidate_names(), self.candidates)
        yield from _find_unknown(ballot.positions or (), self.candidates)
        for name, raw in ballot.grades.items():
            for grade in raw.values() if isinstance(raw, Mapping) else (raw,):
                if read_grade(grade) is None:
                    yield f"contains a ballot with an invalid grade of {name}"

    def _check_outcome(self, outcome: Outcome) -> Iterator[str]:
        standings = [line.candidate for line in outcome.standings]
        yield from _find_unknown(standings, self.candidates)
        if len({*standings}) < len(standings):
            yield "contains an outcome with two standings of one candidate"
        for matrix in (outcome.p_beats, outcome.margins):
            if [*map(len, matrix)] != [len(standings)] * len(standings):
                yield "contains an outcome with a matrix that does not fit its standings"
        placed = (
            *outcome.disputed_by,
            *_flatten(outcome.unresolved),
            *_flatten(outcome.cycles),
            *_flatten(_flatten(note.ranking for note in outcome.ballots)),
            outcome.condorcet_winner,
        )
        yield from _find_unknown(placed, {*standings})
        reviewers = (*(note.reviewer for note in outcome.ballots), *outcome.abstentions)
        yield from _find_unknown((*reviewers, *outcome.order_kept), self.names)


def _flatten(groups: Iterable[Sequence[Any]]) -> Iterator[Any]:
    return (item for group in groups for item in group)


def _check_round(number: int, n_rounds: int) -> Iterator[str]:
    if number > n_rounds:
        yield f"belongs to round {number} of {n_rounds}"


def _find_unknown(names: Iterable[str | None], known_names: Set[str]) -> Iterator[str]:
    for name in names:
        if name is not None and name not in known_names:
            yield f"refers to the unknown seat {name}"
