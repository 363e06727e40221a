"""The sessions that a service is asked for: who sits in them, how they are held, what they cost."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from witan.deliberation.opening import plan_rejudgment
from witan.deliberation.plan import Plan, WrittenAnswers, least_call_usd
from witan.deliberation.ports import Message
from witan.deliberation.recorder import Listener
from witan.deliberation.retries import plan_remaining, plan_retry
from witan.deliberation.session import Session
from witan.service.council import Council
from witan.service.requests import CouncilRequest, QuestionRequest
from witan.service.sessions.councils import Councils
from witan.service.sessions.reservations import SessionReservation

__all__ = ["Hold", "SessionJob", "asking", "rejudging", "resuming", "retrying"]

Hold: TypeAlias = Callable[[Council, Listener, SessionReservation], Awaitable[Session]]


@dataclass(frozen=True, slots=True)
class SessionJob:
    """A session that is to be held.

    Parameters
    ----------
    seat
        Gives its council, whose session costs no more than so many dollars; None: no such limit.
    hold
        Holds it, and says to its account what it had cost before.
    plan
        What it asks for, and costs at most before any call fails.
    via
        The servers that the question came through.
    left_usd
        What is left of the ceiling that it was begun under; None: there was none.
    written
        How many of the answers are there.
    """

    seat: Callable[[float | None], Council]
    hold: Hold
    plan: Callable[[Council], Plan]
    hops: tuple[str, ...] = ()
    left_usd: float | None = None
    written: WrittenAnswers = "some"

    def planned(self) -> Plan:
        """What it asks for where nobody has less for it than it may cost."""
        return self.plan(self.seat(None))

    def least_usd(self, council: Council, plan: Plan, most: float | None) -> float | None:
        """What it needs at least; None: nobody knows, or it has no money of its own for that.

        That is the most that a stage sets aside at once, or else what its least call may cost.

        That is exact for a question without debate rounds, and where another jury judges in one
        order. Else it may be less than that: a prompt that is not known yet counts for nothing.

        Parameters
        ----------
        most
            The ceiling that its client has for each session; None: none.
        """
        seats = (*council.members, *council.jury, *council.chairmen)
        prices = {seat.name: seat.price for seat in seats}
        least = least_call_usd(plan, prices, self.written)
        whole = plan.least_usd()
        if least is not None and whole is not None:
            least = max(least, whole[1])
        own = (self.left_usd, self.seat(most).procedure.limits.max_cost_usd)
        poor = least is not None and any(usd is not None and usd < least for usd in own)
        return None if poor else least


def asking(
    councils: Councils,
    asked: QuestionRequest,
    conversation: Sequence[Message],
    parent: str | None,
    hops: tuple[str, ...],
) -> SessionJob:
    """A question is put to a council, with what was said before, in which session."""

    async def hold(council: Council, listener: Listener, _: SessionReservation) -> Session:
        return await council.ask(
            asked.question,
            conversation=conversation,
            files=asked.files,
            seed=asked.seed,
            category=asked.category,
            parent=parent,
            listener=listener,
        )

    def plan(council: Council) -> Plan:
        return council.plan(asked.question, conversation=conversation, files=asked.files)

    return SessionJob(partial(councils.council, asked), hold, plan, hops, written="none")


def resuming(
    councils: Councils,
    session: Session,
    take_up: Callable[[], Awaitable[Session]],
    max_cost_usd: float | None = None,
) -> SessionJob:
    """An interrupted session is gone on with, as `take_up` gives it once there is a place."""
    own = session.opened.procedure.limits.max_cost_usd

    async def hold(council: Council, listener: Listener, account: SessionReservation) -> Session:
        taken_up = await take_up()
        account.before_usd = taken_up.cost.committed_usd
        return await council.resume(taken_up, listener=listener)

    def plan(_: Council) -> Plan:
        return plan_remaining(session)

    bounds = [None if own is None else max(0.0, own - session.cost.committed_usd), max_cost_usd]
    left = min((each for each in bounds if each is not None), default=None)
    seat = partial(councils.council_of, session, max_cost_usd=max_cost_usd)
    return SessionJob(seat, hold, plan, left_usd=left)


def retrying(
    councils: Councils, session: Session, seats: Sequence[str], max_cost_usd: float | None = None
) -> SessionJob:
    """Seats that failed are asked once more; none named: all of them."""
    again = tuple(seats) or None

    async def hold(council: Council, listener: Listener, _: SessionReservation) -> Session:
        return await council.retry(session, again, listener=listener)

    def plan(council: Council) -> Plan:
        return plan_retry(session, again, council.procedure.limits)

    seat = partial(councils.council_of, session, max_cost_usd=max_cost_usd)
    return SessionJob(seat, hold, plan)


def rejudging(
    councils: Councils, session: Session, judging: CouncilRequest, hops: tuple[str, ...] = ()
) -> SessionJob:
    """The stored answers of a session are put before another jury."""

    async def hold(council: Council, listener: Listener, _: SessionReservation) -> Session:
        return await council.rejudge(session, seed=judging.seed, listener=listener)

    def plan(council: Council) -> Plan:
        return plan_rejudgment(session, council.reviewers, council.chairmen, council.procedure)

    seat = partial(councils.council_of_jurors, judging)
    return SessionJob(seat, hold, plan, hops, written="all")
