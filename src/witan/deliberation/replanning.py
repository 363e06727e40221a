"""What it takes at most to go on with a session that is there, before any call is made."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from witan.deliberation import events as e
from witan.deliberation.plan import Plan, PlanLine
from witan.deliberation.planning import plan_of
from witan.deliberation.planning_stored import plan_judging
from witan.deliberation.ports import Member
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.rejudging import rejudging
from witan.deliberation.retrying import retrying
from witan.deliberation.session import Session
from witan.deliberation.sitting import standing

__all__ = ["plan_again", "plan_jury", "plan_rest"]


def plan_rest(session: Session) -> Plan:
    """What an interrupted session still asks for when it is taken up, as far as a line tells.

    A seat has a line for all its rounds, which stays whole until the last of them is over. Once the
    answers are there, they are read as they are.
    """
    return plan_of([*_rest(session)])


def plan_again(session: Session, seats: Iterable[str] | None, limits: Limits) -> Plan:
    """What a retry asks for: of these seats that failed, and of whoever depends on them.

    Raises
    ------
    NothingToCount, UnknownName, InvalidParameter
        As of `retrying`.
    """
    asked = session.opened
    as_asked = replace(asked, procedure=replace(asked.procedure, limits=limits))
    return retrying(as_asked, session, seats).opened.plan


def plan_jury(
    session: Session, jury: Sequence[Member], chairmen: Sequence[Member], procedure: Procedure
) -> Plan:
    """What it takes to put the answers of a session before a jury.

    Raises
    ------
    NothingToCount
        If it has fewer than two.
    """
    asked = session.opened
    return rejudging(replace(asked, procedure=procedure), session, jury, chairmen).plan


def _rest(session: Session) -> Iterator[PlanLine]:
    procedure, events = session.opened.procedure, standing(session.events)
    last = procedure.debate_rounds + 1
    answered = {x.seat for x in events if isinstance(x, e.AnswerDone) and x.round == last}
    last = procedure.review_rounds
    voted = {x.seat for x in events if isinstance(x, e.BallotCast) and x.round == last}
    reviewing = any(isinstance(x, e.SheetDrawn) for x in events)
    closing = any(isinstance(x, e.Decided | e.SynthesisStarted) for x in events)
    known: dict[tuple[str, str], PlanLine] = {}
    if reviewing:
        answers = {seat: answer.text for seat, answer in session.answers.items()}
        judging = plan_judging(session.opened, answers)
        known = {(line.seat, line.stage): line for line in judging.lines}
    for line in session.opened.plan.lines:
        match line.stage:
            case "answer":
                over = reviewing or line.seat in answered
            case "review" | "repair":
                over = closing or line.seat in voted
            case _:
                over = False
        if not over:
            found = known.get((line.seat, line.stage), line)
            yield replace(found, if_needed=line.if_needed)
