"""One attempt at a call: in its provider's limits, in time, and made twice if it stalls."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import ref

import anyio
from anyio.abc import TaskGroup

from witan.deliberation.bills import check_bill
from witan.deliberation.blank import is_blank
from witan.deliberation.limits import Throttle
from witan.deliberation.money import NOTHING, Purse, Reservation
from witan.deliberation.ports import BilledFailure, Call, Clock, Hear, Member, Reply, Spent, deaf
from witan.deliberation.thoughts import ThoughtFilter, split_thoughts
from witan.errors import MissingExtra, MissingKey, ModelError, WitanError

__all__ = ["Attempt", "Errand"]

GATEWAY_TIMEOUTS = (408, 504, 524)
"""Statuses that say only that nobody waited: the model behind may have worked, and be billed."""

MOST_WITHDRAWALS = 8
"""A text that turns out to be reasoning more often is heard once it is whole."""

LONGEST_WORDS = 300
"""Characters of a foreign exception's words: enough to recognise it by, and no page."""


@dataclass(slots=True, eq=False)
class Errand:
    """One call on its way: where it goes, the time it has, and what it has taken so far.

    Parameters
    ----------
    seconds, used
        What all attempts and the waits between them may take, and took; not the waits for a slot.
    reservations
        One for every request sent.
    began
        On the clock's seconds, when the first attempt did; None: not yet.
    begun
        Awaited before every request, outside of its time; None: nothing is.
    withdraw
        Called when what was heard so far turns out to be the model's reasoning.
    holds_back
        The model may reason before a closing tag alone: nothing is heard until that comes, or it is
        certain that none will.
    closed_alone
        It did so in this call.
    """

    member: Member
    call: Call
    hear: Hear
    throttle: Throttle
    purse: Purse
    clock: Clock
    seconds: float
    used: float = 0.0
    reservations: list[Reservation] = field(default_factory=list)
    began: float | None = None
    begun: Callable[[], Awaitable[None]] | None = None
    withdraw: Callable[[], None] = lambda: None
    holds_back: bool = False
    closed_alone: bool = False

    @property
    def left(self) -> float:
        """Seconds until the deadline, were the call to go on now."""
        return max(0.0, self.seconds - self.used)

    def spent(self) -> Spent:
        """What the requests took together: tokens and money unknown where those of one are."""
        nothing = Spent(NOTHING, cost_usd=0.0, calls=0)
        took = 0.0 if self.began is None else self.clock.seconds() - self.began
        spent = sum((reservation.spent for reservation in self.reservations), nothing)
        return Spent(spent.usage, spent.cost_usd, took, spent.calls)


class Attempt:
    """One attempt: a request, and a second one if the first has not said a word in time.

    The second waits in no line, where it could wait for its own first to end: it takes a free slot,
    or is not sent.

    Parameters
    ----------
    hedge_seconds
        How long to wait for the first word; None: for ever.
    tell
        Told, when the second request is sent, why, and how long it was held back: not at all.
    """

    def __init__(
        self, errand: Errand, hedge_seconds: float | None, tell: Callable[[str, float], None]
    ) -> None:
        self._errand = errand
        self._hedge_seconds = hedge_seconds
        self._tell = tell
        self._stirred = anyio.Event()
        self._wait_for_turn = anyio.CancelScope()
        # Weak, as an ear holds its attempt: the call, with all its texts, goes when it is over.
        self._speaker: ref[_Ear] | None = None
        self._replies: list[Reply] = []
        self._failures: list[WitanError] = []

    async def reply(self) -> Reply:
        """Wait for a slot, then for a reply until the errand's time is up.

        Raises
        ------
        ModelError
            If it brings none; what a member's own model raises is told in one.
        OverBudget
            If it could cross the ceiling.
        """
        errand = self._errand
        if errand.begun is not None:
            await errand.begun()  # outside of the slot and the clock: the disk's time is nobody's
        async with errand.throttle.slot():
            began = errand.clock.seconds()
            if errand.began is None:
                errand.began = began
            try:
                return await self._race()
            except BaseExceptionGroup as group:
                if len(group.exceptions) > 1:
                    raise
                raise group.exceptions[0] from None  # of one request, which needs no group
            finally:
                errand.used += errand.clock.seconds() - began

    def take_floor(self, ear: "_Ear") -> bool:
        """Whether a request is the one that is heard: the first that said a word."""
        self.stir()
        if self._speaker is None:
            self._speaker = ref(ear)
        return self._speaker() is ear

    def stir(self) -> None:
        """Note a sign of life, or an end: a second request that still waits is not sent."""
        self._stirred.set()
        self._wait_for_turn.cancel()

    async def _race(self) -> Reply:
        """Whichever request finishes first; if both fail, the first one's failure counts.

        Each is a task of its own: a model that cancels itself then ends alone.
        """
        errand, hedge_seconds = self._errand, self._hedge_seconds
        async with anyio.create_task_group() as group:
            group.cancel_scope.deadline = anyio.current_time() + errand.left
            group.start_soon(self._first, group)
            if hedge_seconds is not None:
                with anyio.move_on_after(hedge_seconds):
                    await self._stirred.wait()
                if not self._stirred.is_set():
                    await self._second(group, f"said nothing for {hedge_seconds:g} s")
        if self._replies:
            return self._replies[0]
        # A model that cancels itself may cancel the group, too, on one of the event loops.
        if anyio.current_time() >= group.cancel_scope.deadline:
            raise ModelError(errand.member.name, f"timed out after {errand.seconds:g} s")
        if self._failures:
            raise self._failures[0]
        raise ModelError(errand.member.name, "cancelled its own call", transient=True)

    async def _first(self, group: TaskGroup) -> None:
        try:
            self._replies.append(await self._request())
            if self._hedge_seconds is not None:  # else there is nothing to stop
                group.cancel_scope.cancel()
        except WitanError as error:
            self._failures.append(error)
        self.stir()

    async def _second(self, group: TaskGroup, reason: str) -> None:
        throttle = self._errand.throttle
        with throttle.spare_slot() as is_free:
            if not is_free:
                return
            with self._wait_for_turn:
                await throttle.until_due()
            if self._stirred.is_set():
                return
            with suppress(WitanError):  # the first decides
                self._replies.append(await self._request(lambda: self._tell(reason, 0.0)))
                group.cancel_scope.cancel()

    async def _request(self, tell: Callable[[], None] | None = None) -> Reply:
        errand = self._errand
        with errand.purse.reserve(errand.member, errand.call) as reservation:
            errand.reservations.append(reservation)
            if tell is not None:
                await _announced(errand, reservation, tell)
            return await _complete(errand, reservation, _Ear(self, errand))


class _Ear:
    """What one request says: noted, and passed on without its reasoning while it has the floor."""

    def __init__(self, attempt: Attempt, errand: Errand) -> None:
        self._attempt = attempt
        self._errand = errand
        self._thoughts = ThoughtFilter()
        self._withheld = ""
        self._shown = False
        self._holds_back = errand.holds_back
        self.heard = False
        self.fault: Exception | None = None

    def __call__(self, text: str) -> None:
        if not text:
            return
        self.heard = True
        if self._attempt.take_floor(self):
            withdrawals = self._thoughts.withdrawals
            said = self._thoughts.feed(text)
            self._holds_back &= not self._thoughts.has_opened
            self._pass_on(said, withdrawals)

    def hear_reasoning(self) -> None:
        """Note a sign of life, and hold nothing back: the server tells reasoning from text."""
        self.heard = True
        self._attempt.stir()
        self._holds_back = False

    def close(self) -> None:
        """Pass on what was held back until it was certain to be said."""
        if self.heard and self._attempt.take_floor(self):
            withdrawals = self._thoughts.withdrawals
            said = self._thoughts.close()
            self._holds_back = False
            self._pass_on(said, withdrawals)

    def _pass_on(self, said: str, withdrawals: int) -> None:
        errand = self._errand
        try:
            if self._thoughts.withdrawals > withdrawals:
                errand.holds_back = errand.closed_alone = True
                self._holds_back = self._thoughts.withdrawals > MOST_WITHDRAWALS
                self._withheld = ""
                if self._shown:
                    self._shown = False
                    errand.withdraw()
            self._withheld += said
            if self._withheld and not self._holds_back:
                said, self._withheld = self._withheld, ""
                self._shown = errand.hear is not deaf
                errand.hear(said)
        except Exception as error:  # a listener may raise anything, which is no fault of the model
            self.fault = error
            raise


async def _announced(errand: Errand, reservation: Reservation, tell: Callable[[], None]) -> None:
    """Wait until it outlives this process that the request was begun; else it is not sent."""
    is_begun = False
    try:
        tell()
        if errand.begun is not None:
            await errand.begun()
        is_begun = True
    finally:
        if not is_begun:
            reservation.release()


async def _complete(errand: Errand, reservation: Reservation, ear: _Ear) -> Reply:
    """Send one request; settle what it costs, and tell every failure in an error of ours."""
    name = errand.member.name
    try:
        reply: object = await errand.member.model.complete(errand.call, ear)
        ear.close()
    except BilledFailure as error:
        reservation.settle(check_bill(errand.member, errand.call, error.bill))
        raise
    except WitanError as error:
        if not ear.heard and _refused(error):
            reservation.release()
        raise
    except Exception as error:  # a model may be anybody's code, and raise anything
        if error is ear.fault:
            raise
        raise _told(name, error) from error
    if not isinstance(reply, Reply):
        raise ModelError(name, f"returned {type(reply).__name__} where a Reply was due")
    reply = check_bill(errand.member, errand.call, reply)
    reservation.settle(reply)
    if not reply.text or is_blank(reply.text):
        raise ModelError(name, "said nothing", transient=True)
    if is_blank(split_thoughts(reply.text).text):
        raise _only_thought(name, reply)
    return reply


def _only_thought(name: str, reply: Reply) -> ModelError:
    """Make the error of a reply that holds reasoning alone."""
    if reply.cut:
        problem = "was still reasoning when it reached its limit of tokens; raise max_tokens"
        return ModelError(name, problem)
    return ModelError(name, "sent its reasoning and no answer", transient=True)


def _refused(error: WitanError) -> bool:
    """Whether the provider refused before it worked, if the request left this machine at all."""
    if isinstance(error, ModelError):
        answered = error.status is not None and error.status not in GATEWAY_TIMEOUTS
        return answered or not error.sent
    return isinstance(error, MissingKey | MissingExtra)


def _told(name: str, error: Exception) -> ModelError:
    """What a model that is not ours raised; time-outs and dropped connections may pass."""
    words = " ".join(str(error).split())[:LONGEST_WORDS]
    problem = f"raised {type(error).__name__}" + (f": {words}" if words else "")
    return ModelError(name, problem, transient=isinstance(error, TimeoutError | ConnectionError))
