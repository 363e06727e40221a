"""A council: members with seats to answer, review and decide.

Nothing that it starts outlives its block.
"""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, suppress
from dataclasses import fields, replace
from datetime import datetime
from hashlib import blake2s
from math import inf
from types import MappingProxyType
from typing import Self

import anyio
import numpy as np

from witan.core.display import list_names
from witan.core.early_stopping import provable_settings
from witan.core.escaping import is_blank
from witan.core.gate import SafetyCheck
from witan.core.safety import check as safety_check
from witan.deliberation import events as e
from witan.deliberation.calls import (
    RETRY_WAITS,
    Caller,
    SessionContext,
    Throttles,
    drop_fruitless_resumes,
    wrap_foreign_errors,
)
from witan.deliberation.events import Event, SessionOpened
from witan.deliberation.learning import apply_history
from witan.deliberation.money import Purse, is_free
from witan.deliberation.pipeline import run_stages
from witan.deliberation.plan import (
    RAISE_CEILING,
    TYPICAL,
    Lengths,
    Plan,
    check_affordable,
    check_priced,
)
from witan.deliberation.planner import make_plan, plan_reviews, plan_session
from witan.deliberation.ports import (
    Clock,
    Member,
    Message,
    Model,
    Preparable,
    Seat,
    StoredAnswer,
    Teacher,
)
from witan.deliberation.procedure import Procedure, check_procedure
from witan.deliberation.recorder import FailureNote, Listener, Recorder
from witan.deliberation.retries import open_retry, plan_rest, plan_retry
from witan.deliberation.session import (
    Authorship,
    Session,
    disproved_prices,
    double_roles,
    rename_clashes,
)
from witan.deliberation.texts import mask, masked_names
from witan.errors import InvalidParameter, NoCouncil, NothingToCount, WitanError
from witan.version import __version__


def check_question(question: object) -> None:
    """Refuse an empty question or a non-text."""
    if not isinstance(question, str) or is_blank(question):
        raise InvalidParameter("the question", question, "some text")


def check_category(category: object) -> None:
    """Refuse an empty category or a non-text."""
    if category is not None and not (isinstance(category, str) and category.strip()):
        raise InvalidParameter("category", category, "some text, or None")


def check_attachments(conversation: object, files: object) -> None:
    """Refuse malformed conversations and files."""
    turns = isinstance(conversation, Sequence) and not isinstance(conversation, str)
    if not (turns and all(isinstance(turn, Message) for turn in conversation)):  # type: ignore[attr-defined]
        raise InvalidParameter("conversation", conversation, "a list of Message")
    texts = [*files, *files.values()] if isinstance(files, Mapping) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("files", files, "a table from name to text")


def check_same_seats(
    session: Session,
    members: Sequence[Member],
    reviewers: Sequence[Member],
    chairmen: Sequence[Member],
) -> None:
    """Refuse to resume a session with other seats than it began with."""
    opened = session.opened
    for who, here, there in (
        ("members", members, opened.members),
        ("jurors" if opened.members else "members", reviewers, opened.reviewers),
        ("chairmen", chairmen, opened.chairmen),
    ):
        if [(m.name, m.source) for m in here] != [(s.name, s.source) for s in there]:
            seats = ", ".join(f"{s.name} ({s.source})" if s.source else s.name for s in there)
            raise NoCouncil(
                f"the session {session.id} was begun by other {who}",
                f"seat {seats or 'none'} to take it up",
            )


def check_seats(
    members: Sequence[Member], jury: Sequence[Member], chairmen: Sequence[Member]
) -> None:
    """Refuse too few members or jurors and shared names."""
    if len(members) < 2:
        count = "there is one" if members else "there is none"
        raise NoCouncil(
            f"a council needs at least two members, and {count}",
            "seat another; the same model may hold several seats",
        )
    if len(jury) == 1:
        raise NoCouncil(
            "a jury needs at least two jurors, and there is one",
            "seat another, or none: then the members review each other",
        )
    seats: dict[str, Member] = {}
    n_apart = len(members) + len(jury)
    for number, seat in enumerate((*members, *jury, *chairmen)):
        # A chairman may have another seat; one under the name of another would pass for it.
        if seat.name in seats and (number < n_apart or seats[seat.name] != seat):
            expected = "a name that no other seat has"
            raise InvalidParameter("the name of a seat", seat.name, expected)
        seats[seat.name] = seat


def link_parent(opened: SessionOpened, parent: object) -> SessionOpened:
    """Link an opening to its question's parent session, if any."""
    if parent is None:
        return opened
    if not (isinstance(parent, str) and parent.strip()):
        raise InvalidParameter("parent", parent, "the name of a session, or None")
    return replace(opened, parent=parent, relation="continued")


def draw_seed(seed: int | None) -> int:
    """Return the given seed, or draw a JSON-safe one from system entropy."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 11)
    if type(seed) is not int or not 0 <= seed < 2**53:
        raise InvalidParameter("seed", seed, "a whole number from 0 to 2**53 - 1")
    return seed


def make_session_name(now: datetime, seed: int, nth: int, question: str) -> str:
    """Name the nth session of a council uniquely."""
    distinct = f"{seed} {now.microsecond} {nth} {question}".encode(errors="replace")
    return f"{now:%Y%m%d-%H%M%S}-{blake2s(distinct, digest_size=5).hexdigest()}"


def make_seat(member: Member) -> Seat:
    """Make the recorded seat of a member, without its model."""
    return Seat(**{field.name: getattr(member, field.name) for field in fields(Seat)})


def open_rejudgment(
    opened: e.SessionOpened,
    session: Session,
    jury: Sequence[Member],
    chairmen: Sequence[Member],
) -> e.SessionOpened:
    """Open a session for a jury's judgment of another's answers.

    Parameters
    ----------
    opened
        The opening of the question, as the jury itself would be asked it.
    jury, chairmen
        Members of this council; those that share the name of a seat are renamed.
    """
    if len(session.answers) < 2:
        has = "one answer" if session.answers else "no answer"
        raise NothingToCount(
            f"the session {session.id} has {has}: with fewer than two none is best"
        )
    seats = tuple(seat for seat in session.opened.seats if seat.name in session.answers)
    named = rename_clashes((*jury, *chairmen), seats)
    before = replace(
        opened,
        seats=seats,
        chairmen=tuple(make_seat(named[chairman.name]) for chairman in chairmen),
        jury=tuple(make_seat(named[juror.name]) for juror in jury),
        answers=collect_answers(session),
        parent=session.id,
        relation="rejudged",
        parent_ranking=() if session.outcome is None else session.outcome.ranking,
    )
    names = masked_names((*before.seats, *before.jury))
    plan = plan_reviews(
        before.jury,
        before.chairmen,
        before.procedure,
        before.question,
        conversation=before.conversation,
        files=before.files,
        answers={a.seat: mask(a.text, before.question, names) for a in before.answers},
        own=Authorship.of(before).own,
        substitutes=before.jury,
    )
    return replace(before, plan=plan)


def collect_answers(session: Session) -> tuple[StoredAnswer, ...]:
    """The answers of a session with their safety flags."""
    judged = {stored.seat: stored.flags for stored in session.opened.answers}
    judged |= {x.seat: x.flags for x in session.events if isinstance(x, e.GateVerdict)}
    return tuple(
        StoredAnswer(answer.seat, answer.text, answer.cut, answer.spent, judged.get(answer.seat))
        for answer in session.answers.values()
    )


def plan_rejudgment(
    session: Session, jury: Sequence[Member], chairmen: Sequence[Member], procedure: Procedure
) -> Plan:
    """Plan a jury's review of a session's answers."""
    opened = session.opened
    return open_rejudgment(replace(opened, procedure=procedure), session, jury, chairmen).plan


LONGEST_SECONDS = 60.0
"""Seconds that calls wait for models to start up; the rest is part of the calls."""


class Preparation:
    """Starts up each model of a council once, all at once."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._start_models: list[Model] = []

    async def prepare(self, members: Iterable[Member]) -> None:
        """Wait until these members' models are ready to be called.

        A model that fails to start up says why when it is called.
        """
        async with self._lock:
            waiting: list[Model] = []
            for member in members:
                if not any(member.model is known for known in (*self._start_models, *waiting)):
                    waiting.append(member.model)
            with anyio.move_on_after(LONGEST_SECONDS):
                async with anyio.create_task_group() as group:
                    for model in waiting:
                        if isinstance(model, Preparable):
                            group.start_soon(_prepare, model)
            self._start_models += waiting


async def _prepare(model: Preparable) -> None:
    # Whatever it is, the call itself fails by it and says so.
    with suppress(WitanError), wrap_foreign_errors("a model", FailureNote()):
        await model.prepare()


STOPS_BY_RANKINGS = (
    "stop-when-decided counts by borda: no leader by calibrated grades is certain before the last "
    "ballot"
)
"""Says which rule ``auto`` became, where reviewers grade."""

KEEPS_CEILING = (
    "a session that is taken up keeps its ceiling; put its question anew under a higher one"
)
"""The remedy where the ceiling of an interrupted session is used up."""

NO_FILES: Mapping[str, str] = MappingProxyType({})


class BaseCouncil:
    """A council: its members, chairmen, jury and procedure.

    Parameters
    ----------
    chairmen
        Writers of the final answer, in the order in which they are tried. None: the best-ranked
        member.
    jury
        Reviewers in place of the members, who answer nothing. None: members review each other.
    clock
        The time as it is recorded.
    check
        Check by which the safety gate judges an answer.
    closing
        Called when the block ends, to close what the members hold open.
    notes
        Notes on how the council was seated, a sentence each.
    teacher
        Earlier sessions to learn from before counting; None: nothing is learned.
    throttles
        The limits of the providers, where other councils share them; None: its own.

    Raises
    ------
    NoCouncil
        With fewer than two members, or one juror.
    InvalidParameter
        If two seats share a name, the procedure asks for what the rule does not offer, or jurors
        are to review answers of their own.
    """

    def __init__(  # noqa: PLR0913 - all but three by name
        self,
        members: Sequence[Member],
        chairmen: Sequence[Member] = (),
        procedure: Procedure | None = None,
        *,
        jury: Sequence[Member] = (),
        clock: Clock,
        check: SafetyCheck = safety_check,
        closing: Iterable[Callable[[], Awaitable[None]]] = (),
        notes: Iterable[str] = (),
        teacher: Teacher | None = None,
        throttles: Throttles | None = None,
    ) -> None:
        self.members = tuple(members)
        self.jury = tuple(jury)
        self.chairmen = tuple(chairmen)
        self.procedure = procedure or Procedure()
        self._clock = clock
        self._check = check
        self._teacher = teacher
        self._shared_throttles = throttles
        self._closing = tuple(closing)
        self._open: AsyncExitStack | None = None
        self._n_asked = 0
        check_seats(self.members, self.jury, self.chairmen)
        self._seating_notes = tuple(notes)
        check_procedure(self.procedure, len(self.members), len(self.jury))
        if self.procedure.stop_when_decided:
            counting = provable_settings(self.procedure.counting)
            if counting is not self.procedure.counting and self.procedure.graded:
                self._seating_notes += (STOPS_BY_RANKINGS,)
            self.procedure = replace(self.procedure, counting=counting)

    def __repr__(self) -> str:
        chairmen = (
            f"; chairman {list_names(c.name for c in self.chairmen)}" if self.chairmen else ""
        )
        jury = f"; jury {list_names(juror.name for juror in self.jury)}" if self.jury else ""
        return f"<Council of {list_names(member.name for member in self.members)}{jury}{chairmen}>"

    @property
    def reviewers(self) -> tuple[Member, ...]:
        """The reviewers: the jury, or else the members."""
        return self.jury or self.members

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the council is seated, a sentence each."""
        return (
            *self._seating_notes,
            *double_roles(self.members, self.jury, self.chairmen),
            *self._note_unpriced(),
        )

    def _note_unpriced(self) -> Iterator[str]:
        """Name the seats left uncalled by the ceiling."""
        ceiling = self.procedure.limits.max_cost_usd
        seats = (*self.members, *self.jury, *self.chairmen)
        unpriced = dict.fromkeys(seat.name for seat in seats if seat.price is None)
        if ceiling is not None and unpriced:
            names = ", ".join(unpriced)
            yield f"not called under the ceiling of ${ceiling:.4f}, for want of a price: {names}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for close in self._closing:
                stack.push_async_callback(close)
            self._group = await stack.enter_async_context(anyio.create_task_group())
            own = Throttles(self.procedure.limits.providers, self._clock)
            self._throttles = own if self._shared_throttles is None else self._shared_throttles
            self._preparation = Preparation()
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
        lengths: Lengths = TYPICAL,
    ) -> Plan:
        """Plan the calls and the cost of this question; nothing is called.

        Parameters
        ----------
        lengths
            Expected lengths of replies.
        """
        check_question(question)
        check_attachments(conversation, files)
        return make_plan(
            self.members,
            self.chairmen,
            self.procedure,
            question,
            jury=self.jury,
            conversation=conversation,
            files=files,
            lengths=lengths,
        )

    async def ask(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        parent: str | None = None,
        listener: Listener | None = None,
    ) -> Session:
        """Put a question to the council; return the closed session.

        Parameters
        ----------
        seed
            Seed of sheets and labels, 0 ≤ seed < 2**53; None: drawn afresh.
        category
            Kind of question, such as ``coding``, to filter leaderboards by.
        parent
            The session whose conversation this is; the question goes on from its final answer.
        listener
            Called with every event as it happens.

        Raises
        ------
        InvalidParameter
            If the question is empty, or the category.
        NoCouncil
            Outside the council's own block.
        """
        check_question(question)
        check_attachments(conversation, files)
        opening = self._open_session(
            question, tuple(conversation), dict(files), seed, category=category
        )
        self._check_affordable(opening.plan, self.procedure.limits.max_cost_usd)
        opening = await apply_history(link_parent(opening, parent), self._teacher)
        return await self._run(self._make_context(opening, (), listener))

    async def resume(self, session: Session, *, listener: Listener | None = None) -> Session:
        """Resume an interrupted session; return a closed one as it is.

        It keeps to its own limits, and what is still to come costs no more than this council's
        ceiling either; once its ballots make a quorum, it goes on with what the ceiling allows. The
        listener gets the earlier events, too.

        Raises
        ------
        NoCouncil
            If the session was begun by other members or chairmen.
        OverBudget
            If its ballots make no quorum, and its ceiling cannot hold what is still to come.
        """
        if session.status != "interrupted":
            return session
        self._check_same_seats(session)
        spent = session.cost.committed_usd
        cast = sum(not ballot.abstained for ballot in session.ballots)
        if cast < session.opened.procedure.quorum:
            rest = plan_rest(self._update_prices(session))
            self._check_affordable(rest, self._ceiling(session.opened, spent), spent)
        return await self._run(self._make_context(session.opened, session.events, listener))

    async def retry(
        self,
        session: Session,
        seats: Iterable[str] | None = None,
        *,
        listener: Listener | None = None,
    ) -> Session:
        """Call failed seats (None: all) again, in a new session.

        Whatever does not depend on them stands and costs nothing; this council's limits apply.

        Raises
        ------
        NothingToCount, UnknownName, InvalidParameter
            If the session is not closed, or no seat failed in it, or not these.
        NoCouncil
            If the session was begun by other members or chairmen.
        OverBudget
            If the ceiling cannot hold what is asked again.
        """
        self._check_same_seats(session)
        seats = seats if seats is None or isinstance(seats, str) else tuple(seats)
        limits = self.procedure.limits
        again = plan_retry(self._update_prices(session), seats, limits)
        self._check_affordable(again, limits.max_cost_usd, whole=False)
        opened = session.opened
        reopened = self._open_session(
            opened.question,
            opened.conversation,
            opened.files,
            opened.seed,
            category=opened.category,
        )
        retry = open_retry(reopened, session, seats)
        context = self._make_context(retry.opened, retry.events, listener)
        return await self._run(replace(context, reserve=retry.reserve))

    def _check_same_seats(self, session: Session) -> None:
        check_same_seats(session, *self._match_seats(session.opened))

    async def rejudge(
        self, session: Session, *, seed: int | None = None, listener: Listener | None = None
    ) -> Session:
        """Have this council review the stored answers of a session.

        The result is a session of its own: its seats and answers are those of its parent, and this
        council's jury, or else its members, judge them. A juror never sees what
        its own model wrote. What the safety gate found in an answer stands.

        Parameters
        ----------
        session
            The parent; it may be interrupted, or itself judged by a jury.
        seed
            As of `ask`.
        listener
            Called with every event as it happens.

        Raises
        ------
        NothingToCount
            If the session has fewer than two answers.
        NoCouncil
            Outside the council's own block.
        """
        opened = session.opened
        reopened = self._open_session(
            opened.question, opened.conversation, opened.files, seed, category=opened.category
        )
        rejudgment = open_rejudgment(reopened, session, self.reviewers, self.chairmen)
        self._check_affordable(rejudgment.plan, self.procedure.limits.max_cost_usd)
        opening = await apply_history(rejudgment, self._teacher)
        return await self._run(self._make_context(opening, (), listener))

    async def deliberate(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        parent: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Put a question to the council; yield every event as it happens.

        Leaving the loop early cancels what is still running: at once under `contextlib.aclosing`,
        else when the iterator is collected, and at the latest with the council's block.
        """
        check_question(question)
        check_attachments(conversation, files)
        send, receive = anyio.create_memory_object_stream[Event](inf)
        scope = anyio.CancelScope()
        opening = self._open_session(
            question, tuple(conversation), dict(files), seed, category=category
        )
        self._check_affordable(opening.plan, self.procedure.limits.max_cost_usd)
        opening = await apply_history(link_parent(opening, parent), self._teacher)

        def tell(event: Event) -> None:
            with suppress(anyio.BrokenResourceError):  # the reader has left the loop
                send.send_nowait(event)

        failures: list[Exception] = []

        async def run() -> None:
            with scope, send:
                try:
                    await self._run(self._make_context(opening, (), tell))
                except Exception as error:  # noqa: BLE001 - raised to the reader of the stream below
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

    def _check_affordable(
        self,
        plan: Plan,
        ceiling: float | None,
        spent_usd: float | None = None,
        *,
        whole: bool = True,
    ) -> None:
        """Refuse what the ceiling cannot hold if called at once.

        `spent_usd` is of a session that is taken up.
        """
        check_priced(plan, ceiling, whole=whole and spent_usd is None)
        remedy = RAISE_CEILING if spent_usd is None else KEEPS_CEILING
        providers = self.procedure.limits.providers.values()
        if all(each.concurrency >= len(plan.lines) for each in providers):
            check_affordable(plan, ceiling, spent_usd or 0.0, remedy)

    def _ceiling(self, opened: SessionOpened, spent_usd: float) -> float | None:
        """The lower of the session's own ceiling and this council's."""
        more = self.procedure.limits.max_cost_usd
        own = opened.procedure.limits.max_cost_usd
        ceilings = (own, None if more is None else spent_usd + more)
        return min((each for each in ceilings if each is not None), default=None)

    def _update_prices(self, session: Session) -> Session:
        """Set a session's seats to today's prices and plan it anew."""
        opened = session.opened
        prices = {each.name: each.price for seats in self._match_seats(opened) for each in seats}

        def priced(seats: Sequence[Seat]) -> tuple[Seat, ...]:
            return tuple(replace(s, price=prices.get(s.name, s.price)) for s in seats)

        today = replace(
            opened,
            seats=priced(opened.seats),
            jury=priced(opened.jury),
            chairmen=priced(opened.chairmen),
        )
        if today == opened:
            return session
        today = replace(today, plan=plan_session(today))
        return Session.of((today, *session.events[1:]))

    def _open_session(
        self,
        question: str,
        conversation: tuple[Message, ...],
        files: Mapping[str, str],
        seed: int | None,
        *,
        category: str | None,
    ) -> SessionOpened:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        drawn = draw_seed(seed)
        check_category(category)
        now = self._clock.now()
        self._n_asked += 1
        return SessionOpened(
            seq=1,
            at=now,
            session=make_session_name(now, drawn, self._n_asked, question),
            question=question,
            conversation=conversation,
            files=files,
            seats=tuple(map(make_seat, self.members)),
            jury=tuple(map(make_seat, self.jury)),
            chairmen=tuple(map(make_seat, self.chairmen)),
            procedure=self.procedure,
            plan=self.plan(question, conversation=conversation, files=files, lengths=TYPICAL),
            seed=drawn,
            witan=__version__,
            notes=self._seating_notes,
            category=category,
        )

    def _match_seats(
        self, opened: SessionOpened
    ) -> tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]]:
        """Members, reviewers and chairmen in a session.

        Where answers are stored, clashing names are changed so that its seats stay distinct.
        """
        if opened.members:
            return self.members, self.reviewers, self.chairmen
        named = rename_clashes((*self.reviewers, *self.chairmen), opened.seats)
        reviewers = tuple(named[juror.name] for juror in self.reviewers)
        return (), reviewers, tuple(named[chairman.name] for chairman in self.chairmen)

    def _make_context(
        self, opened: SessionOpened, earlier: tuple[Event, ...], listener: Listener | None
    ) -> SessionContext:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        recorder = Recorder(self._clock, listener, earlier or (opened,))
        members, reviewers, chairmen = self._match_seats(opened)
        limits = opened.procedure.limits
        before = Session.of(earlier).cost.committed_usd if earlier else 0.0
        caller = Caller(
            limits=limits,
            throttles=self._throttles,
            purse=Purse(self._ceiling(opened, before), before, self._list_disproved(earlier)),
            clock=self._clock,
            rng=np.random.default_rng((opened.seed, RETRY_WAITS)),
            on_retry=recorder.record_retry,
            on_withdraw=recorder.record_withdrawal,
            before_request=recorder.before_call,
        )
        return SessionContext(
            opened=opened,
            members=members,
            reviewers=reviewers,
            chairmen=chairmen,
            authorship=Authorship.of(opened),
            recorder=recorder,
            caller=caller,
            check=self._check,
            clock=self._clock,
            deadline=self._clock.seconds() + limits.session_seconds,
            final=1 + opened.kept,
            earlier=drop_fruitless_resumes(earlier),
        )

    def _list_disproved(self, earlier: Sequence[Event]) -> list[str]:
        free = {m.name for m in (*self.members, *self.chairmen) if is_free(m.price)}
        return [name for name in disproved_prices(earlier) if name in free]

    async def _start_models(self, context: SessionContext) -> SessionContext:
        """Start up the models of a session before its time begins."""
        began = self._clock.seconds()
        await self._preparation.prepare((*context.members, *context.reviewers, *context.chairmen))
        took = self._clock.seconds() - began
        return replace(context, deadline=context.deadline + took)

    async def _run(self, context: SessionContext) -> Session:
        """Run a session; unwrap what its listener raises."""
        try:
            async with context.recorder.show_events():
                return await run_stages(await self._start_models(context))
        except ExceptionGroup:
            if context.recorder.failure is None:
                raise
            raise context.recorder.failure from None
