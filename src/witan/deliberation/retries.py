"""Retry failed seats of a session; plan what remains of one.

Everything after a seat's reply may depend on it. So the events of the parent are cut at the first
failure that is retried. The events before it open the new session, which then continues like an
interrupted one. The others wait in reserve: if the retried seats fail again, they are restored, and
no other seat is asked a second time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from witan.deliberation import events as e
from witan.deliberation.calls import SessionContext, drop_fruitless_resumes
from witan.deliberation.plan import Plan, PlanLine
from witan.deliberation.planner import plan_session, plan_stored_answers, sum_lines
from witan.deliberation.ports import Expense, Stage
from witan.deliberation.procedure import Limits
from witan.deliberation.reviews import IDLE
from witan.deliberation.session import Session
from witan.errors import InvalidParameter, NothingToCount, UnknownName

ANSWERS, GATE, REVIEWS, DECISION, SYNTHESIS = range(5)

Place = tuple[int, int]
"""A stage, and its round."""

END, AFTER_END = (SYNTHESIS + 1, 0), (SYNTHESIS + 1, 1)

Failure = tuple[Place, str]
"""Stage and round of a failure, and the seat that failed."""

NO_EXPENSE = Expense(cost_usd=0.0, calls=0)


@dataclass(frozen=True, slots=True)
class Retry:
    """The opening of a retry, with the events it keeps.

    `events`: the opening again, and the events that stay after it.
    `reserve`: events that are restored if every retried seat fails again.
    """

    opening: e.SessionOpened
    events: tuple[e.Event, ...]
    reserve: tuple[e.Event, ...]


def failed_seats(session: Session) -> tuple[str, ...]:
    """Name the retryable seats, chairmen last.

    Seats without an answer, a ballot or a text. A reviewer that was not awaited is included; one
    with nothing to compare is not.
    """
    failed_names = {seat for _, seat in _failures(session)}
    seats = (*session.opening.seats, *session.opening.callable_seats)
    return tuple(dict.fromkeys(seat.name for seat in seats if seat.name in failed_names))


def open_retry(
    template: e.SessionOpened, session: Session, seats: Iterable[str] | None = None
) -> Retry:
    """Open a session to retry these seats, by default all failed ones.

    `template`: opening as if the question were asked now, with the name, time and limits of the new
    session. Everything else, including the seed, comes from the parent.

    Raises `NothingToCount` if the session is not closed, or no seat failed in it; `UnknownName` or
    `InvalidParameter` if a seat does not exist, or did not fail.
    """
    seats_to_retry = _choose_seats(
        session, seats if seats is None or isinstance(seats, str) else tuple(seats)
    )
    parent_opening = session.opening
    failures = {failure for failure in _failures(session) if failure[1] in seats_to_retry}
    kept_events = [event for event in drop_fruitless_resumes(session.events) if _place(event) < END]
    events_to_keep = _cut_events(kept_events, failures)
    answers = {seat: answer.text for seat, answer in session.answers.items()}
    opening = replace(
        parent_opening,
        seq=template.seq,
        at=template.at,
        session=template.session,
        witan=template.witan,
        procedure=replace(parent_opening.procedure, limits=template.procedure.limits),
        parent=session.id,
        relation="retried",
        retried=seats_to_retry,
        kept=len(events_to_keep),
    )
    opening = replace(opening, plan=_plan(opening, failures, answers))
    names = (
        replace(_rename_session(event, opening.session), seq=number, at=opening.at)
        for number, event in enumerate(events_to_keep, start=opening.seq + 1)
    )
    reserve = (_rename_session(event, opening.session) for event in _reserve(kept_events, failures))
    return Retry(opening, (opening, *names), tuple(reserve))


def restore_reserve(context: SessionContext, stage: Stage) -> SessionContext:
    """Restore a stage of the parent if every retried seat failed.

    Its cost belongs to the parent and is not counted here.
    """
    closing = stage == "synthesis"
    restored = [x for x in context.reserve if (_place(x)[0] == SYNTHESIS) == closing]
    if not restored:
        return context
    n_attempts = 1 + context.opening.kept
    is_retried = any(
        isinstance(event, e.AnswerDone | e.BallotCast)
        and event.seq > n_attempts
        and event.spent.calls
        for event in context.recorder.events
    )
    if is_retried:
        return context
    for event in restored:
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        values |= {"spent": NO_EXPENSE} if "spent" in values else {}
        values |= {"worst_usd": 0.0} if "worst_usd" in values else {}
        del values["seq"], values["at"]
        context.recorder.emit(type(event), **values)
    events = tuple(context.recorder.events)
    return replace(context, earlier_events=events, final=events[-1].seq)


def _choose_seats(session: Session, seats: Iterable[str] | None) -> tuple[str, ...]:
    if session.status == "interrupted":
        problem = f"the session {session.id} was interrupted"
        raise NothingToCount(f"{problem}: resume it first, then retry")
    failed_names = failed_seats(session)
    if not failed_names:
        raise NothingToCount(f"no seat failed in session {session.id}; nothing to retry")
    if isinstance(seats, str):
        raise InvalidParameter("seats", seats, "a list of names")
    seat_names = {seat.name for seat in (*session.opening.seats, *session.opening.callable_seats)}
    for name in () if seats is None else seats:
        if name not in seat_names:
            raise _NoSuchSeat("seat", name, failed_names)
        if name not in failed_names:
            expected = f"a seat that failed: {', '.join(failed_names)}, and {name} did not"
            raise InvalidParameter("the seat to retry", name, expected)
    seats_to_retry = tuple(name for name in failed_names if seats is None or name in seats)
    if not seats_to_retry:
        raise InvalidParameter("seats", seats, f"at least one of {', '.join(failed_names)}")
    return seats_to_retry


class _NoSuchSeat(UnknownName):
    """An unknown seat; the error names the failed ones."""

    def __str__(self) -> str:
        names = ", ".join(self.known_names)
        return f"unknown seat {self.name!r}{self.suggestion} (failed here: {names})"


def _failures(session: Session) -> set[Failure]:
    """Return failed seats by stage and round, without later successes."""
    ends: dict[Failure, bool] = {}
    for event in drop_fruitless_resumes(session.events):
        place = _place(event)
        match event:
            case e.AnswerDone() | e.BallotCast():
                ends[place, event.seat] = False
            case e.AnswerFailed():
                ends[place, event.seat] = True
            case e.BallotAbstained():
                ends[place, event.seat] = event.reason not in IDLE
            case e.SynthesisFailedOver():
                ends[place, event.chairman] = True
            case e.SynthesisDone(chairman=str(chairman)):
                ends[place, chairman] = False
    return {at for at, is_failure in ends.items() if is_failure}


def _cut_events(events: Sequence[e.Event], failures: Collection[Failure]) -> list[e.Event]:
    """Return the events before the first failure, and those of other seats.

    A reviewer that failed keeps its sheets, which are balanced with those of the others. An outcome
    is counted again in any case.
    """
    cut = min((place for place, _ in failures), default=END)
    seats_again: set[str | None] = {seat for place, seat in failures if place == cut}
    if cut[0] == SYNTHESIS:
        seats_again |= {x.chairman for x in events if isinstance(x, e.SynthesisDone)}
    return [
        x
        for x in events
        if _place(x) < cut
        or (_place(x) == cut and (isinstance(x, e.SheetDrawn) or _seat(x) not in seats_again))
    ]


def _reserve(events: Sequence[e.Event], failures: Collection[Failure]) -> list[e.Event]:
    """Return the cut events, to restore if the retried seats fail again.

    There are none if a debate continued after the cut: it runs again.
    """
    cut = min(place for place, _ in failures)
    if any(cut < _place(event) < (GATE, 0) for event in events):
        return []
    later = [failure for failure in failures if failure[0][0] > ANSWERS]
    chairman_failures = [failure for failure in failures if failure[0][0] == SYNTHESIS]
    reserve = []
    if cut[0] == ANSWERS:
        reserve += [x for x in _cut_events(events, later) if GATE < _place(x)[0] < SYNTHESIS]
    if cut[0] < SYNTHESIS:
        reserve += [x for x in _cut_events(events, chairman_failures) if _place(x)[0] == SYNTHESIS]
    return reserve


def _plan(
    opening: e.SessionOpened, failures: Collection[Failure], answers: Mapping[str, str]
) -> Plan:
    """Plan the repeated calls."""
    cut = min(place for place, _ in failures)
    seats_again = {seat for place, seat in failures if place == cut}
    rounds = {
        ANSWERS: opening.procedure.debate_rounds + 1,
        REVIEWS: opening.procedure.review_rounds,
    }
    goes_on = cut[1] < rounds.get(cut[0], 1)
    stages: dict[Stage, int] = {"answer": ANSWERS, "review": REVIEWS, "repair": REVIEWS}
    whole_plan = (
        plan_session(opening) if cut[0] == ANSWERS else plan_stored_answers(opening, answers)
    )
    lines = []
    for line in whole_plan.lines:
        stage = stages.get(line.stage, SYNTHESIS)
        if stage > cut[0] or (stage == cut[0] and (goes_on or line.seat in seats_again)):
            lines.append(line)
    return sum_lines(lines)


def _place(event: e.Event) -> Place:
    """Return stage and round of an event; `AFTER_END` if never kept."""
    match event:
        case e.AnswerStarted() | e.AnswerDone() | e.AnswerFailed():
            return ANSWERS, event.round
        case e.GateVerdict():
            return GATE, 0
        case (
            e.SheetDrawn()
            | e.ReviewStarted()
            | e.BallotRepaired()
            | e.BallotCast()
            | e.BallotAbstained()
        ):
            return REVIEWS, event.round
        case e.Decided():
            return DECISION, 0
        case e.SynthesisStarted() | e.SynthesisFailedOver() | e.SynthesisDone():
            return SYNTHESIS, 0
    return AFTER_END


def _seat(event: e.Event) -> str | None:
    name: str | None = getattr(event, "seat", getattr(event, "chairman", None))
    return name


def _rename_session(event: e.Event, session: str) -> e.Event:
    """Move an event to another session."""
    if isinstance(event, e.BallotCast):
        return replace(
            event,
            ballot=replace(event.ballot, session=session),
            comparisons=tuple(replace(each, session=session) for each in event.comparisons),
        )
    return event


def plan_rest(session: Session) -> Plan:
    """Plan the remaining calls of an interrupted session, by whole lines.

    A seat has one line for all its rounds, which stays whole until the last of them ends. Existing
    answers are measured as they are.
    """
    return sum_lines([*_remaining_lines(session)])


def plan_retry(session: Session, seats: Iterable[str] | None, limits: Limits) -> Plan:
    """Plan a retry of these seats and of what depends on them."""
    opening = session.opening
    opening_with_limits = replace(opening, procedure=replace(opening.procedure, limits=limits))
    return open_retry(opening_with_limits, session, seats).opening.plan


def _remaining_lines(session: Session) -> Iterator[PlanLine]:
    procedure, events = session.opening.procedure, drop_fruitless_resumes(session.events)
    last_round = procedure.debate_rounds + 1
    answered_seats = {
        x.seat for x in events if isinstance(x, e.AnswerDone) and x.round == last_round
    }
    last_round = procedure.review_rounds
    seats_with_ballots = {
        x.seat for x in events if isinstance(x, e.BallotCast) and x.round == last_round
    }
    reviewing = any(isinstance(x, e.SheetDrawn) for x in events)
    closing = any(isinstance(x, e.Decided | e.SynthesisStarted) for x in events)
    line_by_seat: dict[tuple[str, str], PlanLine] = {}
    if reviewing:
        answers = {seat: answer.text for seat, answer in session.answers.items()}
        judging = plan_stored_answers(session.opening, answers)
        line_by_seat = {(line.seat, line.stage): line for line in judging.lines}
    for line in session.opening.plan.lines:
        match line.stage:
            case "answer":
                is_over = reviewing or line.seat in answered_seats
            case "review" | "repair":
                is_over = closing or line.seat in seats_with_ballots
            case _:
                is_over = False
        if not is_over:
            current = line_by_seat.get((line.seat, line.stage), line)
            yield replace(current, if_needed=line.if_needed, probability=line.probability)
