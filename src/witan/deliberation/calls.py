"""Make calls to models: attempts, retries, hedges, deadlines.

A `Caller` repeats each call of a session until a reply or a final failure. An `Attempt` is one
request within its provider's limits, and a second one if the first stalls.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import ref

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from witan.core.escaping import is_blank
from witan.core.gate import SafetyCheck
from witan.core.random_stream import BACKOFF, RandomStream
from witan.deliberation.count_queue import CountQueue
from witan.deliberation.events import Event, FruitlessResume, SessionOpened
from witan.deliberation.money import NO_USAGE, Purse, Reservation, check_bill
from witan.deliberation.ports import (
    BilledFailure,
    Call,
    Clock,
    Expense,
    Hear,
    Member,
    Message,
    Model,
    Preparable,
    Reply,
    Stage,
    ignore_text,
)
from witan.deliberation.procedure import Limits, Procedure
from witan.deliberation.recorder import FailureNote, Recorder
from witan.deliberation.replies import ReasoningFilter, split_reasoning
from witan.deliberation.session import Authorship
from witan.deliberation.texts import masked_names
from witan.deliberation.throttle import Throttle, Throttles
from witan.errors import HistoryError, MissingExtra, MissingKey, ModelError, OverBudget, WitanError

GATEWAY_TIMEOUTS = (408, 504, 524)
"""Statuses of a gateway that gave up; the model behind it may still be billed."""

MOST_WITHDRAWALS = 8
"""Withdrawals after which a text is held back until it is complete."""

LONGEST_WORDS = 300
"""Most characters quoted from a foreign exception."""

RetryListener = Callable[[str, Stage, int, str, float], None]
"""A callback for an attempt that is repeated or hedged.

Its arguments are seat, stage, attempt, reason and the seconds until the next attempt.
"""

NO_MODEL_STATUSES = (401, 404, 405)
"""Statuses for an unknown key, address or model; 403 may be a model's filter."""

BACKOFF_SECONDS = 0.5
"""Longest first wait; most interruptions of a provider end within a second."""

LONGEST_BACKOFF_SECONDS = 20.0
"""Longest wait of all; a call of two minutes has room for all of its attempts."""

LONGEST_SECONDS = 60.0
"""Longest wait in seconds for models to start up; a longer start counts as call time."""


@dataclass(slots=True, eq=False)
class PendingCall:
    """One call in progress: its deadline, attempts and spending.

    `write`: writes the call once it has a slot: calls that wait hold no texts.
    `seconds`, `used_seconds`: time for attempts and the waits between them: allowed, and used so
    far; waiting for a slot does not count.
    `reservations`: one for every request sent.
    `started_at`: start of the first attempt, in the clock's seconds; None before it.
    `before_request`: awaited before each request, outside of its time; may be None.
    `on_withdraw`: called when the text so far turns out to be the model's reasoning.
    `holds_back`: true if the model may reason before a lone closing tag: its text is held back
    until the tag arrives, or certainly never will.
    `closed_alone`: true if a lone closing tag arrived in this call.
    `failure`: why the last attempt failed, if it did.
    """

    member: Member
    stage: Stage
    write: Callable[[], Call]
    hear: Hear
    throttle: Throttle
    purse: Purse
    clock: Clock
    seconds: float
    used_seconds: float = 0.0
    reservations: list[Reservation] = field(default_factory=list)
    started_at: float | None = None
    before_request: Callable[[], Awaitable[None]] | None = None
    on_withdraw: Callable[[], None] = lambda: None
    holds_back: bool = False
    closed_alone: bool = False
    failure: str | None = None
    _call: Call | None = None

    @property
    def call(self) -> Call:
        """The call, written when first needed."""
        if self._call is None:
            self._call = self.write()
        return self._call

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, if the call continues now."""
        return max(0.0, self.seconds - self.used_seconds)


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call's reply.

    `text`, `reasoning`: text of the reply, and the reasoning cut from it.
    """

    call: Call
    reply: Reply
    text: str
    reasoning: str = ""


class Attempt:
    """One attempt: a request, and a hedge if the first stays silent.

    The hedge never queues, since it could then wait for its own first request: it takes a free slot
    or is not sent.

    `hedge_seconds`: seconds to wait for the first word; None for no limit.
    `tell`: called when the hedge is sent, with the reason and a wait of 0 seconds.
    """

    def __init__(
        self, pending: PendingCall, hedge_seconds: float | None, tell: Callable[[str, float], None]
    ) -> None:
        self._pending = pending
        self._hedge_seconds = hedge_seconds
        self._notify = tell
        if hedge_seconds is not None:  # otherwise no hedge waits for a first word
            self._activity = anyio.Event()
            self._wait_for_turn = anyio.CancelScope()
        # Weak, since a listener refers to its attempt: the call's texts are freed when it ends.
        self._speaker: ref[_ReplyListener] | None = None
        self._results: list[CallResult] = []
        self._failures: list[WitanError] = []

    async def result(self) -> CallResult:
        """Wait for a slot, then for a reply until the deadline.

        Raises `ModelError` if there is no reply; exceptions of a foreign model are wrapped in one;
        `OverBudget` if the call could exceed the ceiling.
        """
        pending = self._pending
        if pending.before_request is not None:
            # Before the slot is taken and time runs: waiting for the disk does not count.
            await pending.before_request()
        async with pending.throttle.slot():
            start_seconds = pending.clock.seconds()
            if pending.started_at is None:
                pending.started_at = start_seconds
            try:
                return await self._race()
            except BaseExceptionGroup as group:
                if len(group.exceptions) > 1:
                    raise
                raise group.exceptions[0] from None  # a single request needs no task group
            finally:
                pending.used_seconds += pending.clock.seconds() - start_seconds

    def claim_output(self, listener: "_ReplyListener") -> bool:
        """Claim the output for the first request with text; return whether granted."""
        if self._hedge_seconds is None:  # there is one request
            return True
        self.note_activity()
        if self._speaker is None:
            self._speaker = ref(listener)
        return self._speaker() is listener

    def note_activity(self) -> None:
        """Note a first word or an end, to send no hedge."""
        if self._hedge_seconds is not None and not self._activity.is_set():
            self._activity.set()
            self._wait_for_turn.cancel()

    async def _race(self) -> CallResult:
        """Return the first reply; if all fail, raise the first failure.

        A request runs in its own task, so that a model that cancels itself does not end others.
        Models that never do need one only for a hedged request.
        """
        pending, hedge_seconds = self._pending, self._hedge_seconds
        if hedge_seconds is None and getattr(pending.member.model, "never_cancels", False):
            with anyio.move_on_after(pending.seconds_left):
                return await self._request()
            raise self._timeout_error()
        async with anyio.create_task_group() as group:
            group.cancel_scope.deadline = anyio.current_time() + pending.seconds_left
            group.start_soon(self._send_first, group)
            if hedge_seconds is not None:
                with anyio.move_on_after(hedge_seconds):
                    await self._activity.wait()
                if not self._activity.is_set():
                    await self._send_hedge(group, f"said nothing for {hedge_seconds:g} s")
        if self._results:
            return self._results[0]
        # On one of the event loops, a model that cancels itself may also cancel the group.
        if anyio.current_time() >= group.cancel_scope.deadline:
            raise self._timeout_error()
        if self._failures:
            raise self._failures[0]
        raise ModelError(pending.member.name, "cancelled its own call", transient=True)

    def _timeout_error(self) -> ModelError:
        pending = self._pending
        earlier = "" if pending.failure is None else f"; the attempt before: {pending.failure}"
        return ModelError(pending.member.name, f"timed out after {pending.seconds:g} s{earlier}")

    async def _send_first(self, group: TaskGroup) -> None:
        try:
            self._results.append(await self._request())
            if self._hedge_seconds is not None:  # otherwise no other request is running
                group.cancel_scope.cancel()
        except WitanError as error:
            self._failures.append(error)
        self.note_activity()

    async def _send_hedge(self, group: TaskGroup, reason: str) -> None:
        throttle = self._pending.throttle
        with throttle.spare_slot() as is_free:
            if not is_free:
                return
            with self._wait_for_turn:
                await throttle.until_deadline()
            if self._activity.is_set():
                return
            with suppress(WitanError):  # the first failure is raised
                self._results.append(await self._request(lambda: self._notify(reason, 0.0)))
                group.cancel_scope.cancel()

    async def _request(self, tell: Callable[[], None] | None = None) -> CallResult:
        pending = self._pending
        with pending.purse.reserve(pending.member, pending.call) as reservation:
            pending.reservations.append(reservation)
            if tell is not None:
                await _announce(pending, reservation, tell)
            return await _complete(pending, reservation, _ReplyListener(self, pending))


class _ReplyListener:
    """Forward the first speaking request's text, without reasoning."""

    __slots__ = (
        "__weakref__", "_attempt", "_holds_back", "_pending", "_reasoning", "_streaming",
        "_withheld_text", "active", "failure",
    )  # fmt: skip

    def __init__(self, attempt: Attempt, pending: PendingCall) -> None:
        self._attempt = attempt
        self._pending = pending
        self._reasoning = None if pending.hear is ignore_text else ReasoningFilter()
        self._withheld_text = ""
        self._streaming = False
        self._holds_back = pending.holds_back
        self.active = False
        self.failure = FailureNote()

    def __call__(self, text: str) -> None:
        if not text:
            return
        self.active = True
        if self._attempt.claim_output(self) and self._reasoning is not None:
            withdrawals = self._reasoning.withdrawals
            text = self._reasoning.feed(text)
            self._holds_back &= not self._reasoning.has_opened
            self._pass_on(text, withdrew=self._reasoning.withdrawals > withdrawals)

    def hear_reasoning(self) -> None:
        """Note reasoning sent apart from the text; stop withholding text."""
        self.active = True
        self._attempt.note_activity()
        self._holds_back = False

    def close(self) -> None:
        """Forward the withheld text."""
        if self.active and self._attempt.claim_output(self) and self._reasoning is not None:
            withdrawals = self._reasoning.withdrawals
            text = self._reasoning.close()
            self._holds_back = False
            self._pass_on(text, withdrew=self._reasoning.withdrawals > withdrawals)

    def _pass_on(self, text: str, *, withdrew: bool) -> None:
        pending = self._pending
        with self.failure:
            if withdrew:
                self._withdraw()
            self._withheld_text += text
            if self._withheld_text and not self._holds_back:
                text, self._withheld_text = self._withheld_text, ""
                self._streaming = True
                pending.hear(text)

    def _withdraw(self) -> None:
        """Take back the text so far, which was reasoning."""
        pending = self._pending
        pending.holds_back = pending.closed_alone = True
        assert self._reasoning is not None  # noqa: S101 - it found out
        self._holds_back = self._reasoning.withdrawals > MOST_WITHDRAWALS
        self._withheld_text = ""
        if self._streaming:
            self._streaming = False
            pending.on_withdraw()


async def _announce(
    pending: PendingCall, reservation: Reservation, tell: Callable[[], None]
) -> None:
    """Record the hedge durably; on failure release its reservation."""
    is_recorded = False
    try:
        tell()
        if pending.before_request is not None:
            await pending.before_request()
        is_recorded = True
    finally:
        if not is_recorded:
            reservation.release()


async def _complete(
    pending: PendingCall, reservation: Reservation, listener: _ReplyListener
) -> CallResult:
    """Send one request, settle its cost, translate foreign exceptions."""
    name, model, call = pending.member.name, pending.member.model, pending.call
    try:
        reply = await _translate_errors(
            name, listener.failure, lambda: model.complete(call, listener)
        )
        listener.close()
    except BilledFailure as error:
        reservation.settle(check_bill(pending.member, pending.call, error.bill))
        raise
    except WitanError as error:
        if not listener.active and _is_refusal(error):
            reservation.release()
        raise
    if not isinstance(reply, Reply):
        raise ModelError(name, f"returned {type(reply).__name__} instead of a Reply")
    reply = check_bill(pending.member, pending.call, reply)
    reservation.settle(reply)
    split = split_reasoning(reply.text or "")
    if is_blank(split.text):
        raise _blank_error(name, reply)
    pending.closed_alone |= split.closed_alone
    return CallResult(call, reply, split.text, split.reasoning)


def _blank_error(name: str, reply: Reply) -> ModelError:
    if not reply.text or is_blank(reply.text):
        return ModelError(name, "said nothing", transient=True)
    if reply.cut:
        problem = "was still reasoning when it reached its limit of tokens; raise max_tokens"
        return ModelError(name, problem)
    return ModelError(name, "sent its reasoning and no answer", transient=True)


def _is_refusal(error: WitanError) -> bool:
    """Return true for a request refused before any work, or never sent."""
    if isinstance(error, ModelError):
        has_answered = error.status is not None and error.status not in GATEWAY_TIMEOUTS
        return has_answered or not error.sent
    return isinstance(error, MissingKey | MissingExtra)


async def _translate_errors(
    name: str, listener: FailureNote, call: Callable[[], Awaitable[object]]
) -> object:
    """Call a model; translate its exceptions, but not those of its listener."""
    try:
        return await call()
    except WitanError:
        raise
    except Exception as error:  # foreign code may raise any exception
        if any(error is each for each in listener.errors):
            raise
        raise _wrap_foreign_error(name, error) from error


def _wrap_foreign_error(name: str, error: Exception) -> ModelError:
    """Wrap a foreign exception; timeouts and dropped connections are transient."""
    words = " ".join(str(error).split())[:LONGEST_WORDS]
    problem = f"raised {type(error).__name__}" + (f": {words}" if words else "")
    return ModelError(name, problem, transient=isinstance(error, TimeoutError | ConnectionError))


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A call without a reply: its error."""

    error: WitanError

    @property
    def over_budget(self) -> bool:
        """True if the cost ceiling forbade the call."""
        return isinstance(self.error, OverBudget)

    @property
    def is_misconfigured(self) -> bool:
        """True if a wrong address, name or key reached no model."""
        if isinstance(self.error, ModelError):
            return not self.error.sent or self.error.status in NO_MODEL_STATUSES
        return isinstance(self.error, MissingKey | MissingExtra)

    @property
    def reason(self) -> str:
        """The reason, to follow a seat's name: "timed out after 120 s"."""
        match self.error:
            case ModelError(problem=problem):
                return problem
            case OverBudget(problem=problem) | HistoryError(problem=problem):
                return f"not called: {problem}"
        return str(self.error)


class Caller:
    """Caller of a session's models within limits, deadlines and purse.

    `seed`: seed of the waits between attempts: each depends only on seat, stage and attempt, not on
    the order in which calls fail.
    `on_withdraw`: called with seat and stage when its text so far turns out to be reasoning.
    `before_request`: awaited before each request, once its beginning is recorded; may be None.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        throttles: Throttles,
        purse: Purse,
        clock: Clock,
        seed: Sequence[int],
        on_retry: RetryListener,
        on_withdraw: Callable[[str, Stage], None],
        before_request: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._limits = limits
        self._throttles = throttles
        self._purse = purse
        self._clock = clock
        self._seed = tuple(seed)
        self._on_retry = on_retry
        self._before_request = before_request
        self._on_withdraw = on_withdraw
        self._pending_calls: dict[str, list[PendingCall]] = {}

    def call(
        self, member: Member, call: Call, hear: Hear = ignore_text
    ) -> Awaitable[CallResult | CallFailure]:
        """Make a call that is already written."""
        return self.write_and_call(member, call.stage, lambda: call, hear)

    async def write_and_call(
        self, member: Member, stage: Stage, write: Callable[[], Call], hear: Hear = ignore_text
    ) -> CallResult | CallFailure:
        """Call until a reply comes or attempts, time or money run out.

        `hear` receives the text of every attempt from its beginning. If an attempt was hedged, this
        is the text of the request that spoke first, which need not be the one that finished first;
        only the reply counts.
        """
        throttle = self._throttles[member.provider]
        model = " ".join((member.provider, member.source or member.name, member.url or ""))
        seconds = self._limits.call_seconds
        pending = PendingCall(
            member,
            stage,
            write,
            hear,
            throttle,
            self._purse,
            self._clock,
            seconds,
            before_request=self._before_request,
            on_withdraw=partial(self._on_withdraw, member.name, stage),
            holds_back=self._throttles.closes_alone.get(model, member.may_reason),
        )
        self._pending_calls.setdefault(member.name, []).append(pending)
        try:
            result = await self._persist(pending)
        except WitanError as error:
            return CallFailure(error)
        if pending.closed_alone:
            self._throttles.closes_alone[model] = True
        elif pending.call.schema is None:  # a reply by schema contains no reasoning
            self._throttles.closes_alone.setdefault(model, False)
        return result

    def collect_spent(self, seat: str) -> Expense:
        """Sum the expense of a seat's calls since last collected."""
        pending_calls = self._pending_calls.pop(seat, [])
        starts = [pending.started_at for pending in pending_calls if pending.started_at is not None]
        seconds = self._clock.seconds() - min(starts) if starts else 0.0
        reservations = [one for pending in pending_calls for one in pending.reservations]
        if len(reservations) == 1:  # as nearly always
            return reservations[0].expense(seconds)
        expenses = (one.expense() for one in reservations)
        return sum(expenses, Expense(NO_USAGE, 0.0, seconds, calls=0))

    async def _persist(self, pending: PendingCall) -> CallResult:
        attempt = 0
        while True:
            attempt += 1
            tell = partial(self._on_retry, pending.member.name, pending.stage, attempt)
            try:
                return await Attempt(pending, self._limits.hedge_seconds, tell).result()
            except ModelError as error:
                wait = self._wait(pending, attempt, error)
                pending.failure = reason = error.problem
            tell(reason, wait)
            await anyio.sleep(wait)
            pending.used_seconds += wait

    def _wait(self, pending: PendingCall, attempt: int, error: ModelError) -> float:
        """Return seconds until the next attempt; raise if there is none."""
        if not error.transient:
            raise error
        requested_wait = 0.0 if error.retry_after is None else error.retry_after
        if requested_wait > pending.seconds_left:
            problem = (
                f"{error.problem}; it asks to wait {requested_wait:g} s, "
                f"longer than the {round(pending.seconds_left, 1):g} s left"
            )
            raise ModelError(
                error.model, problem, error.status, error.retry_after, transient=True
            ) from error
        if requested_wait > 0:
            pending.throttle.pause(requested_wait)
        wait = max(requested_wait, self._backoff(pending, attempt))
        if attempt >= self._limits.attempts or wait >= pending.seconds_left:
            raise error
        return wait

    def _backoff(self, pending: PendingCall, attempt: int) -> float:
        """Draw a wait with full jitter, to spread out failed calls."""
        doublings = min(attempt - 1, 10)  # larger powers exceed the longest wait anyway
        longest: float = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**doublings)
        call_name = f"{pending.stage} {pending.member.name}".encode()
        return RandomStream(BACKOFF, (*self._seed, attempt, *call_name)).fraction() * longest


def drop_fruitless_resumes(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop the events of failed resumes."""
    remaining: list[Event] = []
    for event in events:
        if isinstance(event, FruitlessResume):
            remaining = [one for one in remaining if one.seq <= event.since]
        remaining.append(event)
    return tuple(remaining)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """State of one session, shared by all stages.

    `members`: members to be called for answers; empty if answers are stored.
    `reviewers`: members or jurors to be called for ballots.
    `earlier_events`: events of the interrupted session that is resumed.
    `deadline`: end of the session's time, in the clock's seconds.
    `end_calls`: called after the last call, to leave the slot.
    `reserve`: events of the parent, restored if every retried seat fails again.
    `final`: number of the last event taken over from the parent; failures among these are final.
    """

    opening: SessionOpened
    members: tuple[Member, ...]
    reviewers: tuple[Member, ...]
    chairmen: tuple[Member, ...]
    authorship: Authorship
    recorder: Recorder
    caller: Caller
    check: SafetyCheck
    counts: CountQueue
    clock: Clock
    deadline: float
    end_calls: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    earlier_events: tuple[Event, ...] = ()
    reserve: tuple[Event, ...] = ()
    final: int = 0

    @property
    def procedure(self) -> Procedure:
        """The procedure of the council."""
        return self.opening.procedure

    @property
    def limits(self) -> Limits:
        """Time, attempts and money."""
        return self.procedure.limits

    @property
    def names(self) -> tuple[str, ...]:
        """Names of seats and models, to be masked in answers."""
        return masked_names((*self.opening.seats, *self.reviewers))

    @property
    def retries(self) -> bool:
        """True if this session retries another, so it waits for every seat."""
        return self.opening.relation == "retried"

    def seconds_left(self) -> float:
        """Return the seconds of a stage that begins now."""
        return max(0.0, min(self.limits.stage_seconds, self.deadline - self.clock.seconds()))

    def out_of_time(self) -> str:
        """Return the reason why a stage ran out of time."""
        if self.clock.seconds() >= self.deadline:
            return f"the session timed out after {self.limits.session_seconds:g} s"
        return f"did not finish within the stage's {self.limits.stage_seconds:g} s"

    def call(
        self,
        stage: Stage,
        member: Member,
        messages: tuple[Message, ...],
        schema: Mapping[str, Any] | None = None,
    ) -> Call:
        """Make a call of one member with its own options."""
        own_limit = member.options.max_tokens
        most = self.limits.max_tokens if own_limit is None else own_limit
        return Call(stage, messages, most, member.options, schema)


class Preparation:
    """Concurrent start-up of a council's models, once each."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._models: dict[int, Model] = {}  # by identity

    async def prepare(self, members: Iterable[Member]) -> None:
        """Wait until these members' models are ready to be called.

        A model that fails to start up reports why when it is called.
        """
        models = {id(member.model): member.model for member in members}
        if models.keys() <= self._models.keys():
            return
        async with self._lock:
            models_to_start = [model for key, model in models.items() if key not in self._models]
            with anyio.move_on_after(LONGEST_SECONDS):
                async with anyio.create_task_group() as group:
                    for model in models_to_start:
                        if isinstance(model, Preparable):
                            group.start_soon(_prepare, model)
            self._models |= models


async def _prepare(model: Preparable) -> None:
    # The call itself fails with the same error and reports it.
    with suppress(WitanError):
        await _translate_errors("a model", FailureNote(), model.prepare)
