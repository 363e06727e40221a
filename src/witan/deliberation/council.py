"""A council: members with seats, and how they deliberate. Nothing it starts outlives its block."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from hashlib import blake2s
from math import inf
from types import MappingProxyType
from typing import Self

import anyio
import numpy as np

from witan.core.decided import check_offered
from witan.core.gate import SafetyCheck
from witan.core.safety import check as safety_check
from witan.deliberation.calls import Caller
from witan.deliberation.events import CallRetried, Event, Seat, SessionOpened
from witan.deliberation.limits import Throttles
from witan.deliberation.money import Purse
from witan.deliberation.pipeline import sit
from witan.deliberation.plan import Plan
from witan.deliberation.planning import make_plan
from witan.deliberation.ports import Clock, Member, Message, Stage
from witan.deliberation.procedure import Procedure
from witan.deliberation.recorder import Listener, Recorder
from witan.deliberation.rehearsal import rehearse
from witan.deliberation.session import Session
from witan.deliberation.sitting import Sitting
from witan.errors import InvalidParameter, NoCouncil
from witan.version import __version__

__all__ = ["Council"]

JITTER = 5
"""Which of the session's draws the waits between attempts come from."""

NO_FILES: Mapping[str, str] = MappingProxyType({})


class Council:
    """Members, their chairmen, and how they deliberate.

    Parameters
    ----------
    chairmen
        Who writes the closing text, in the order in which they are tried. None: the best-ranked
        member.
    clock
        The time as it is recorded.
    check
        What the safety gate judges an answer by.
    closing
        Called when the block ends, to close what the members hold open.
    notes
        What to know about how the council was seated, a sentence each.

    Raises
    ------
    NoCouncil
        With fewer than two members.
    InvalidParameter
        If two seats share a name, or the procedure asks for what the rule does not offer.
    """

    def __init__(
        self,
        members: Sequence[Member],
        chairmen: Sequence[Member] = (),
        procedure: Procedure | None = None,
        *,
        clock: Clock,
        check: SafetyCheck = safety_check,
        closing: Iterable[Callable[[], Awaitable[None]]] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self.members = tuple(members)
        self.chairmen = tuple(chairmen)
        self.procedure = procedure or Procedure()
        self._clock = clock
        self._check = check
        self._closing = tuple(closing)
        self._open: AsyncExitStack | None = None
        self._asked = 0
        self._check_seats()
        seated = {member.name for member in self.members}
        both = [f"the chairman {c.name} is a member too" for c in self.chairmen if c.name in seated]
        self.notes = (*notes, *both)
        for name in ("quorum", "enough"):
            most = getattr(self.procedure, name)
            if most is not None and most > len(self.members):
                expected = f"at most the {len(self.members)} members"
                raise InvalidParameter(name, most, expected)
        if self.procedure.stop_when_decided:
            check_offered(self.procedure.counting, graded=self.procedure.graded)
        rehearse(self.procedure, len(self.members))

    def _check_seats(self) -> None:
        if len(self.members) < 2:
            count = "there is one" if self.members else "there is none"
            raise NoCouncil(
                f"a council needs at least two members, and {count}",
                "seat another; the same model may hold several seats",
            )
        held: dict[str, Member] = {}
        for number, seat in enumerate((*self.members, *self.chairmen)):
            # A chairman may be a member; another under a member's name would pass for it.
            if seat.name in held and (number < len(self.members) or held[seat.name] != seat):
                expected = "a name that no other seat has"
                raise InvalidParameter("the name of a seat", seat.name, expected)
            held[seat.name] = seat

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for close in self._closing:
                stack.push_async_callback(close)
            self._group = await stack.enter_async_context(anyio.create_task_group())
            self._throttles = Throttles(self.procedure.limits.providers, self._clock)
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._open is not None  # noqa: S101 - entered before it is left
        stack, self._open = self._open, None
        self._group.cancel_scope.cancel()
        # What the caller's block raised is not the group's: it would come out wrapped in a group.
        await stack.aclose()

    def plan(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
    ) -> Plan:
        """Say what this question would ask for, and cost at most, without a call."""
        _check_question(question)
        _check_material(conversation, files)
        return make_plan(
            self.members,
            self.chairmen,
            self.procedure,
            question,
            conversation=conversation,
            files=files,
        )

    async def ask(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        listener: Listener | None = None,
    ) -> Session:
        """Put a question to the council; return everything that came of it.

        Parameters
        ----------
        seed
            What sheets and labels are drawn from, 0 ≤ seed < 2**53; None: drawn afresh.
        listener
            Told of every event as it happens.

        Raises
        ------
        InvalidParameter
            If the question is empty.
        NoCouncil
            Outside the council's own block.
        """
        _check_question(question)
        _check_material(conversation, files)
        opening = self._opened(question, tuple(conversation), dict(files), seed)
        return await _sat(self._sitting(opening, (), listener))

    async def resume(self, session: Session, *, listener: Listener | None = None) -> Session:
        """Take up an interrupted session at its last finished seat; a closed one is returned.

        The listener is told of what had happened before, too.

        Raises
        ------
        NoCouncil
            If the session was begun by other members or chairmen.
        """
        if session.status != "interrupted":
            return session
        for who, here, there in (
            ("members", self.members, session.opened.seats),
            ("chairmen", self.chairmen, session.opened.chairmen),
        ):
            if [(m.name, m.source) for m in here] != [(s.name, s.source) for s in there]:
                seats = ", ".join(f"{s.name} ({s.source})" if s.source else s.name for s in there)
                raise NoCouncil(
                    f"the session {session.id} was begun by other {who}",
                    f"seat {seats or 'none'} to take it up",
                )
        return await _sat(self._sitting(session.opened, session.events, listener))

    async def deliberate(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Put a question to the council; yield every event as it happens.

        Leaving the loop early cancels what is still running: at once under `contextlib.aclosing`,
        else when the iterator is collected, and at the latest with the council's block.
        """
        _check_question(question)
        _check_material(conversation, files)
        send, receive = anyio.create_memory_object_stream[Event](inf)
        scope = anyio.CancelScope()
        opening = self._opened(question, tuple(conversation), dict(files), seed)

        def tell(event: Event) -> None:
            with suppress(anyio.BrokenResourceError):  # nobody listens any more
                send.send_nowait(event)

        failures: list[Exception] = []

        async def run() -> None:
            with scope, send:
                try:
                    await sit(self._sitting(opening, (), tell))
                except Exception as error:  # noqa: BLE001 - for whoever reads this stream alone
                    failures.append(error)

        self._group.start_soon(run, name=f"session:{opening.session}")
        try:
            with receive:
                async for event in receive:
                    yield event
            if failures:
                raise failures[0]
        finally:
            scope.cancel()

    def _opened(
        self,
        question: str,
        conversation: tuple[Message, ...],
        files: Mapping[str, str],
        seed: int | None,
    ) -> SessionOpened:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        drawn = _fresh_seed() if seed is None else seed
        if type(drawn) is not int or not 0 <= drawn < 2**53:
            raise InvalidParameter("seed", seed, "a whole number from 0 to 2**53 - 1")
        now = self._clock.now()
        self._asked += 1
        told_apart = f"{drawn} {now.microsecond} {self._asked} {question}".encode(errors="replace")
        return SessionOpened(
            seq=1,
            at=now,
            session=f"{now:%Y%m%d-%H%M%S}-{blake2s(told_apart, digest_size=5).hexdigest()}",
            question=question,
            conversation=conversation,
            files=files,
            seats=tuple(_seat(member) for member in self.members),
            chairmen=tuple(_seat(member) for member in self.chairmen),
            procedure=self.procedure,
            plan=self.plan(question, conversation=conversation, files=files),
            seed=drawn,
            witan=__version__,
            notes=self.notes,
        )

    def _sitting(
        self, opened: SessionOpened, earlier: tuple[Event, ...], listener: Listener | None
    ) -> Sitting:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        recorder = Recorder(self._clock, listener, earlier or (opened,))

        def notice(seat: str, stage: Stage, attempt: int, reason: str, wait: float) -> None:
            recorder.emit(
                CallRetried,
                seat=seat,
                stage=stage,
                attempt=attempt,
                reason=reason,
                wait_seconds=wait,
            )

        limits = opened.procedure.limits
        before = Session.of(earlier).cost.committed_usd if earlier else 0.0
        caller = Caller(
            limits=limits,
            throttles=self._throttles,
            purse=Purse(limits.max_cost_usd, before),
            clock=self._clock,
            rng=np.random.default_rng((opened.seed, JITTER)),
            notice=notice,
        )
        return Sitting(
            session=opened.session,
            question=opened.question,
            conversation=opened.conversation,
            files=opened.files,
            members=self.members,
            chairmen=self.chairmen,
            procedure=opened.procedure,
            seed=opened.seed,
            recorder=recorder,
            caller=caller,
            check=self._check,
            clock=self._clock,
            deadline=self._clock.seconds() + limits.session_seconds,
            earlier=earlier,
        )


async def _sat(sitting: Sitting) -> Session:
    """Hold a session; what its listener raises comes out as it is, not in a group of tasks."""
    try:
        return await sit(sitting)
    except BaseExceptionGroup:
        if sitting.recorder.failure is None:
            raise
        raise sitting.recorder.failure from None


def _check_question(question: object) -> None:
    if not (isinstance(question, str) and question.strip()):
        raise InvalidParameter("the question", question, "some text")


def _check_material(conversation: object, files: object) -> None:
    turns = isinstance(conversation, Sequence) and not isinstance(conversation, str)
    if not (turns and all(isinstance(turn, Message) for turn in conversation)):  # type: ignore[attr-defined]
        raise InvalidParameter("conversation", conversation, "a list of Message")
    texts = [*files, *files.values()] if isinstance(files, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("files", files, "a table from name to text")


def _fresh_seed() -> int:
    """A seed from the system's entropy, small enough to survive JSON."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 11)


def _seat(member: Member) -> Seat:
    return Seat(
        member.name,
        member.source,
        member.provider,
        member.options,
        member.price,
        member.simulated,
        member.url,
        member.key_variable,
    )
