"""The sessions that a chamber is asked for: who sits in them, how they are held, what they cost."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from witan.deliberation.ports import Message
from witan.deliberation.recorder import Listener
from witan.deliberation.replanning import plan_again, plan_jury, plan_rest
from witan.deliberation.session import Session
from witan.surfaces.chamber.asked import Asked, Judging
from witan.surfaces.chamber.seatings import Seatings
from witan.surfaces.council import Council

__all__ = ["Hold", "Undertaking", "asking", "rejudging", "resuming", "retrying"]

Hold: TypeAlias = Callable[[Council, Listener], Awaitable[Session]]


@dataclass(frozen=True, slots=True)
class Undertaking:
    """A session that is to be held.

    Parameters
    ----------
    seat
        Gives its council, whose session costs no more than so many dollars; None: no such limit.
    hold
        Holds it.
    worst_usd
        What it costs at most before any call fails; None: a price is unknown.
    via
        The servers that the question came through.
    paid_usd
        What it had cost, on whoever's account, before it is taken up.
    """

    seat: Callable[[float | None], Council]
    hold: Hold
    worst_usd: Callable[[Council], float | None]
    via: tuple[str, ...] = ()
    paid_usd: float = 0.0


def asking(
    seatings: Seatings, asked: Asked, conversation: Sequence[Message], parent: str | None
) -> Undertaking:
    """A question is put to a council, with what was said before, in which session."""
    judging = asked.judging

    async def hold(council: Council, listener: Listener) -> Session:
        return await council.ask(
            asked.question,
            conversation=conversation,
            files=asked.files,
            seed=judging.seed,
            category=asked.category,
            parent=parent,
            listener=listener,
        )

    def worst(council: Council) -> float | None:
        plan = council.plan(asked.question, conversation=conversation, files=asked.files)
        return plan.worst_usd

    return Undertaking(partial(seatings.council, judging), hold, worst, judging.via)


def resuming(
    seatings: Seatings, session: Session, take_up: Callable[[], Awaitable[Session]]
) -> Undertaking:
    """An interrupted session is gone on with, as `take_up` gives it once there is a place."""
    paid = session.cost.committed_usd
    own = session.opened.procedure.limits.max_cost_usd

    async def hold(council: Council, listener: Listener) -> Session:
        return await council.resume(await take_up(), listener=listener)

    def worst(_: Council) -> float | None:
        left = None if own is None else max(0.0, own - paid)
        bounds = (left, plan_rest(session).worst_usd)
        return min((bound for bound in bounds if bound is not None), default=None)

    return Undertaking(partial(seatings.council_of, session), hold, worst, paid_usd=paid)


def retrying(seatings: Seatings, session: Session, seats: Sequence[str]) -> Undertaking:
    """Seats that failed are asked once more; none named: all of them."""
    again = tuple(seats) or None

    async def hold(council: Council, listener: Listener) -> Session:
        return await council.retry(session, again, listener=listener)

    def worst(council: Council) -> float | None:
        return plan_again(session, again, council.procedure.limits).worst_usd

    return Undertaking(partial(seatings.council_of, session), hold, worst)


def rejudging(seatings: Seatings, session: Session, judging: Judging) -> Undertaking:
    """The stored answers of a session are put before another jury."""

    async def hold(council: Council, listener: Listener) -> Session:
        return await council.rejudge(session, seed=judging.seed, listener=listener)

    def worst(council: Council) -> float | None:
        plan = plan_jury(session, council.members, council.chairmen, council.procedure)
        return plan.worst_usd

    return Undertaking(partial(seatings.council, judging), hold, worst, judging.via)
