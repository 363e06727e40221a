"""A council: members with seats to answer, review and decide.

Everything that it starts ends with its block.
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
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from math import inf
from typing import Self

import anyio

from witan.core.display import dollars, list_names
from witan.core.early_stopping import provable_settings
from witan.core.gate import SafetyCheck
from witan.core.safety import check as safety_check
from witan.core.stats.learning import Lessons
from witan.deliberation.call_headers import TRACE
from witan.deliberation.calls import Caller, Preparation, SessionContext, drop_fruitless_resumes
from witan.deliberation.costs import Cost, disproved_prices
from witan.deliberation.count_queue import CountQueue
from witan.deliberation.events import Event, Judging, Listener, SessionOpened
from witan.deliberation.learning import LessonCache, apply_history
from witan.deliberation.money import Purse, is_free, least_known
from witan.deliberation.openings import (
    Texts,
    check_attachments,
    check_category,
    check_judgment,
    check_question,
    check_seats,
    check_stored_session,
    draw_seed,
    judging_procedure,
    link_parent,
    make_seat,
    make_session_name,
    name_texts,
    open_judgment,
    open_rejudgment,
    own_question,
    plan_judgment,
)
from witan.deliberation.pipeline import run_stages
from witan.deliberation.plan import (
    TYPICAL,
    Lengths,
    Plan,
    check_affordable,
    check_calls,
    check_further_calls,
    check_priced,
)
from witan.deliberation.planner import NO_FILES, fit_pairs, make_plan, plan_session
from witan.deliberation.ports import Clock, Member, Message, Seat, Teacher
from witan.deliberation.procedure import Limits, Procedure, check_procedure, with_looks
from witan.deliberation.recorder import Recorder
from witan.deliberation.retries import open_retry, plan_rest, plan_retry
from witan.deliberation.session import (
    RETRY_WAITS,
    Authorship,
    Session,
    double_roles,
    rename_clashes,
)
from witan.deliberation.throttle import START, Throttles
from witan.errors import NoCouncil
from witan.version import __version__

STOPS_BY_RANKINGS = (
    "spend=until_decided counts by borda: no leader by calibrated grades is certain before the "
    "last ballot"
)
"""Note on the rule that replaces ``auto`` if reviewers grade."""

KEEPS_CEILING = "a resumed session keeps its ceiling; ask the question again with a higher one"
"""Remedy if the ceiling of an interrupted session is used up."""


Slot = AbstractAsyncContextManager[None]
"""A context that a session enters to call models."""

NO_SLOT: Slot = nullcontext()

NO_COST = Cost(0.0, 0.0, 0.0)

UNPLANNED = Plan((), 0, 0.0)
"""Plan of an opening whose caller plans it."""


class BaseCouncil:
    """A council: its members, chairmen, jury and procedure.

    Parameters
    ----------
    chairmen
        Writers of the final answer, in the order in which they are tried; None for the best-ranked
        member.
    jury
        Reviewers in place of the members; they do not answer; None if members review each other.
    clock
        Source of recorded times.
    check
        Check by which the safety gate judges an answer.
    closing
        Called when the block ends, to close the members' connections.
    notes
        Notes on how the council was seated, one sentence each.
    teacher
        Earlier sessions to learn from before counting, or lessons; None to learn nothing.
    throttles
        Limits of the providers, shared with other councils; None for separate ones.

    Raises
    ------
    NoCouncil
        With fewer than two members, or one juror.
    InvalidParameter
        If two seats share a name, the rule does not suit the procedure, or jurors
        would review their own answers.
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
        teacher: Teacher | Lessons | None = None,
        throttles: Throttles | None = None,
    ) -> None:
        self.members = tuple(members)
        self.jury = tuple(jury)
        self.chairmen = tuple(chairmen)
        self.procedure = procedure or Procedure()
        self._clock = clock
        self._check = check
        self._teacher = teacher
        self._lesson_cache = LessonCache(clock)
        self._shared_throttles = throttles
        self._closing = tuple(closing)
        self._open: AsyncExitStack | None = None
        self._n_questions = 0
        self._opened_names: set[str] = set()  # checked, and not yet run
        self._counts = CountQueue()
        check_seats(self.members, self.jury, self.chairmen)
        self._seating_notes = tuple(notes)
        check_procedure(self.procedure, len(self.members), len(self.jury))
        if self.procedure.spend == "until_decided":
            counting = provable_settings(self.procedure.counting)
            if counting is not self.procedure.counting and self.procedure.asks_grades:
                self._seating_notes += (STOPS_BY_RANKINGS,)
            self.procedure = replace(self.procedure, counting=counting)
        self.procedure = with_looks(self.procedure, len(self.reviewers), authors=not self.jury)
        self._judging_procedure = judging_procedure(self.procedure, len(self.reviewers))

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
        """Name the seats that the ceiling excludes."""
        ceiling = self.procedure.limits.max_cost_usd
        seats = (*self.members, *self.jury, *self.chairmen)
        unpriced = dict.fromkeys(seat.name for seat in seats if seat.price is None)
        if ceiling is not None and unpriced:
            names = ", ".join(unpriced)
            yield f"skipped, price unknown (ceiling {dollars(ceiling)}): {names}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for close in self._closing:
                stack.push_async_callback(close)
            self._group = await stack.enter_async_context(anyio.create_task_group())
            own_throttles = Throttles(self.procedure.limits.providers, self._clock)
            self._throttles = (
                own_throttles if self._shared_throttles is None else self._shared_throttles
            )
            self._preparation = Preparation()
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._open is not None  # noqa: S101 - set on entering the block
        stack, self._open = self._open, None
        self._group.cancel_scope.cancel()
        # An exception of the caller's block would otherwise be wrapped in an exception group.
        await stack.aclose()

    def plan(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        lengths: Lengths = TYPICAL,
    ) -> Plan:
        """Plan the calls and the cost of this question without calling.

        Parameters
        ----------
        lengths
            Expected lengths of replies.
        """
        check_question(question)
        check_attachments(conversation, files)
        return self._fit_plan(question, conversation, files, lengths)[1]

    def _fit_plan(
        self,
        question: str,
        conversation: Sequence[Message],
        files: Mapping[str, str],
        lengths: Lengths,
    ) -> tuple[Procedure, Plan]:
        """Plan a question in as many pairs as the ceiling allows."""

        def plan(procedure: Procedure) -> Plan:
            return make_plan(
                self.members,
                self.chairmen,
                procedure,
                question,
                jury=self.jury,
                conversation=conversation,
                files=files,
                lengths=lengths,
            )

        procedure = fit_pairs(self.procedure, len(self.members), len(self.reviewers), plan)
        return procedure, plan(procedure)

    async def ask(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        parent: str | None = None,
        name: str | None = None,
        listener: Listener | None = None,
    ) -> Session:
        """Ask the council a question; return the closed session.

        Parameters
        ----------
        seed
            Seed of sheets and labels, 0 ≤ seed < 2**53; random by default.
        category
            Kind of question, such as ``coding``, to filter leaderboards by.
        parent
            Session whose conversation the question continues, after its final answer.
        name
            Unique name of the session; by default made from the time.
        listener
            Called with every event as it happens.

        Raises
        ------
        InvalidParameter
            If the question is empty, or the category, or two members would only rank each other.
        NoCouncil
            Outside the council's own block.
        """
        opening = await self.open_question(
            question,
            conversation=conversation,
            files=files,
            seed=seed,
            category=category,
            parent=parent,
            name=name,
        )
        return await self._run(self._make_context(opening, (), listener))

    async def open_question(
        self,
        question: str,
        *,
        conversation: Sequence[Message] = (),
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        parent: str | None = None,
        name: str | None = None,
    ) -> SessionOpened:
        """Open a session without a call; `resume` runs it.

        Parameters and errors are those of `ask`.
        """
        check_question(question)
        check_attachments(conversation, files)
        procedure, plan = self._fit_plan(question, conversation, files, TYPICAL)
        opening = self._open_session(
            question,
            tuple(conversation),
            dict(files),
            seed,
            category=category,
            name=name,
            plan=plan,
            procedure=procedure,
        )
        self._check_affordable(opening.plan, self.procedure.limits)
        opening = link_parent(opening, parent)
        return await apply_history(opening, self._teacher, self._lesson_cache)

    async def resume(
        self,
        session: Session,
        *,
        listener: Listener | None = None,
        slot: Slot = NO_SLOT,
        max_calls: int | None = None,
    ) -> Session:
        """Resume an interrupted session; return a closed one unchanged.

        Its own limits hold, and the remaining calls also stay under this council's ceiling. Once
        its ballots reach the quorum, it continues with the calls that the ceiling allows. The
        listener also receives the earlier events.

        Parameters
        ----------
        slot
            Entered before the session's time begins, and left after its last call: before ballots
            are counted, if nobody writes a final answer.
        max_calls
            Most further calls, in place of the session's ceiling; None: both ceilings hold.

        Raises
        ------
        NoCouncil
            If the session was started with other members or chairmen.
        OverBudget
            If its ballots are below the quorum and the remaining calls exceed its ceiling.
        """
        if session.status != "interrupted":
            return session
        is_begun = session.id in self._opened_names and len(session.events) == 1
        if not is_begun:
            self._check_stored_session(session)
        n_ballots = sum(not ballot.abstained for ballot in session.ballots)
        if not is_begun and n_ballots < session.opening.procedure.quorum:
            remaining_plan = plan_rest(self._update_prices(session))
            limits = self._limits(session.opening, session.cost, max_calls)
            self._check_affordable(
                remaining_plan, limits, session.cost, is_raised=max_calls is not None
            )
        context = self._make_context(session.opening, session.events, listener, max_calls)
        return await self._run(context, slot)

    async def retry(
        self,
        session: Session,
        seats: Iterable[str] | None = None,
        *,
        listener: Listener | None = None,
    ) -> Session:
        """Call failed seats, by default all, again in a new session.

        Results that do not depend on them stay and cost nothing; this council's limits apply.

        Raises
        ------
        NothingToCount, UnknownName, InvalidParameter
            If the session is not closed, no seat failed in it, or none of these.
        NoCouncil
            If the session was started with other members or chairmen.
        OverBudget
            If the repeated calls exceed the ceiling.
        """
        self._check_stored_session(session)
        seats = seats if seats is None or isinstance(seats, str) else tuple(seats)
        limits = self.procedure.limits
        retry_plan = plan_retry(self._update_prices(session), seats, limits)
        self._check_affordable(retry_plan, limits, is_whole_session=False)
        opening = session.opening
        retry_opening = self._open_session(
            opening.question,
            opening.conversation,
            opening.files,
            opening.seed,
            category=opening.category,
        )
        retry = open_retry(retry_opening, session, seats)
        context = self._make_context(retry.opening, retry.events, listener)
        return await self._run(replace(context, reserve=retry.reserve))

    def _check_stored_session(self, session: Session) -> None:
        check_stored_session(session, *self._match_seats(session.opening))

    async def rejudge(
        self, session: Session, *, seed: int | None = None, listener: Listener | None = None
    ) -> Session:
        """Have this council review the stored answers of a session.

        The result is a new session with the seats and answers of its parent, judged by this
        council's jury, or else its members. A juror never sees an answer of its own model. The
        flags of the safety gate stay.

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
        opened = session.opening
        reopened = self._open_session(
            opened.question, opened.conversation, opened.files, seed, category=opened.category
        )
        rejudgment = open_rejudgment(reopened, session, self.reviewers, self.chairmen)
        self._check_affordable(rejudgment.plan, self.procedure.limits)
        opening = await apply_history(rejudgment, self._teacher, self._lesson_cache)
        return await self._run(self._make_context(opening, (), listener))

    def plan_judge(
        self,
        texts: Mapping[str, str],
        question: str | None = None,
        *,
        pass_mark: float | None = None,
        expected: str | None = None,
        files: Mapping[str, str] = NO_FILES,
    ) -> Plan:
        """Plan the calls and the cost of `judge` without calling.

        Parameters and errors are those of `judge`.
        """
        texts = name_texts(texts)
        question = own_question(texts) if question is None else question
        judging = Judging(pass_mark, expected)
        check_judgment(self._judging_procedure, texts, question, judging, files)
        return plan_judgment(self.reviewers, self._judging_procedure, texts, question, files)

    async def judge(  # noqa: PLR0913 - all but two by name
        self,
        texts: Texts,
        question: str | None = None,
        *,
        pass_mark: float | None = None,
        expected: str | None = None,
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        name: str | None = None,
        listener: Listener | None = None,
    ) -> Session:
        """Judge texts by the jury, or else the members; return the session.

        Its `verdict` states which texts pass, which leads, and how certain that is.

        Parameters
        ----------
        texts
            One text, a list of them, or text by name; reviewers see labels instead of names.
        question
            Question that the texts answer; without it they are judged on their own.
        pass_mark
            Lowest passing grade, from 1 to 10.
        expected
            The text expected to lead, or ``tie``.
        files
            Name to text of files with the question; the file `REFERENCE` is a reference answer.
        seed, category, name, listener
            As of `ask`.

        Raises
        ------
        InvalidParameter, UnknownName
            If there is no text, one is empty, or no such text or grade exists.
        NoCouncil
            Outside the council's own block.
        """
        opening = await self.open_judgment(
            texts,
            question,
            pass_mark=pass_mark,
            expected=expected,
            files=files,
            seed=seed,
            category=category,
            name=name,
        )
        return await self._run(self._make_context(opening, (), listener))

    async def open_judgment(
        self,
        texts: Texts,
        question: str | None = None,
        *,
        pass_mark: float | None = None,
        expected: str | None = None,
        files: Mapping[str, str] = NO_FILES,
        seed: int | None = None,
        category: str | None = None,
        name: str | None = None,
    ) -> SessionOpened:
        """Open a session without a call; `resume` runs it.

        Parameters and errors are those of `judge`.
        """
        texts = name_texts(texts)
        question = own_question(texts) if question is None else question
        judging = Judging(pass_mark, expected)
        check_judgment(self._judging_procedure, texts, question, judging, files)
        opening = self._open_session(
            question,
            (),
            dict(files),
            seed,
            category=category,
            name=name,
            procedure=self._judging_procedure,
        )
        judgment = open_judgment(opening, texts, judging, self.reviewers)
        self._check_affordable(judgment.plan, self.procedure.limits)
        return await apply_history(judgment, self._teacher, self._lesson_cache)

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
        """Ask the council a question; yield every event as it happens.

        Leaving the loop early cancels the running calls: at once under `contextlib.aclosing`, else
        when the iterator is collected, and at the latest when the council's block ends.
        """
        send, receive = anyio.create_memory_object_stream[Event](inf)
        scope = anyio.CancelScope()
        opening = await self.open_question(
            question,
            conversation=conversation,
            files=files,
            seed=seed,
            category=category,
            parent=parent,
        )

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
        limits: Limits,
        cost: Cost | None = None,
        *,
        is_whole_session: bool = True,
        is_raised: bool = False,
    ) -> None:
        """Refuse a plan beyond the ceiling of calls or concurrent calls' money.

        `cost` is that of a resumed session so far; `is_raised` if its calls have a new ceiling.
        """
        ceiling, before = limits.max_cost_usd, cost or NO_COST
        if is_raised and limits.max_calls is not None:
            check_further_calls(plan, limits.max_calls - before.calls)
        else:
            check_calls(plan, limits.max_calls, before.calls)
        check_priced(plan, ceiling, is_whole_session=is_whole_session and cost is None)
        remedy = "" if cost is None else KEEPS_CEILING
        providers = self.procedure.limits.providers.values()
        if all((each.concurrency or START) >= len(plan.lines) for each in providers):
            check_affordable(plan, ceiling, before.committed_usd, remedy)

    def _limits(self, opening: SessionOpened, cost: Cost, max_calls: int | None = None) -> Limits:
        """Return a session's limits under its own and the council's ceilings.

        `max_calls`, of further calls, replaces both.
        """
        own, base = opening.procedure.limits, self.procedure.limits
        most_usd = None if base.max_cost_usd is None else cost.committed_usd + base.max_cost_usd
        if max_calls is not None:
            most_calls: int | None = cost.calls + max_calls
        else:
            most_calls = None if base.max_calls is None else cost.calls + base.max_calls
            most_calls = least_known((own.max_calls, most_calls))
        most_usd = least_known((own.max_cost_usd, most_usd))
        if (most_usd, most_calls) == (own.max_cost_usd, own.max_calls):
            return own
        return replace(own, max_cost_usd=most_usd, max_calls=most_calls)

    def _update_prices(self, session: Session) -> Session:
        """Give a session's seats today's prices and plan it again."""
        opening = session.opening
        prices = {each.name: each.price for seats in self._match_seats(opening) for each in seats}

        def update_prices(seats: Sequence[Seat]) -> tuple[Seat, ...]:
            return tuple(replace(s, price=prices.get(s.name, s.price)) for s in seats)

        current_opening = replace(
            opening,
            seats=update_prices(opening.seats),
            jury=update_prices(opening.jury),
            chairmen=update_prices(opening.chairmen),
        )
        if current_opening == opening:
            return session
        current_opening = replace(current_opening, plan=plan_session(current_opening))
        return Session.of((current_opening, *session.events[1:]))

    def _open_session(
        self,
        question: str,
        conversation: tuple[Message, ...],
        files: Mapping[str, str],
        seed: int | None,
        *,
        category: str | None,
        name: str | None = None,
        plan: Plan = UNPLANNED,
        procedure: Procedure | None = None,
    ) -> SessionOpened:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        check_category(category)
        now, seed_value = self._clock.now(), draw_seed(seed)
        self._n_questions += 1
        session = name or make_session_name(now, seed_value, self._n_questions, question)
        self._opened_names.add(session)
        return SessionOpened(
            seq=1,
            at=now,
            session=session,
            question=question,
            conversation=conversation,
            files=files,
            seats=tuple(map(make_seat, self.members)),
            jury=tuple(map(make_seat, self.jury)),
            chairmen=tuple(map(make_seat, self.chairmen)),
            procedure=procedure or self.procedure,
            plan=plan,
            seed=seed_value,
            witan=__version__,
            notes=self._seating_notes,
            category=category,
            trace=TRACE.get(),
        )

    def _match_seats(
        self, opening: SessionOpened
    ) -> tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]]:
        """Return members, reviewers and chairmen of a session.

        If answers are stored, clashing names are changed so that its seats stay distinct.
        """
        if opening.members:
            return self.members, self.reviewers, self.chairmen
        # Judged texts have no final answer, so they have no chairman.
        chairmen = self.chairmen if opening.judging is None else ()
        seats = rename_clashes((*self.reviewers, *chairmen), opening.seats)
        reviewers = tuple(seats[juror.name] for juror in self.reviewers)
        return (), reviewers, tuple(seats[chairman.name] for chairman in chairmen)

    def _make_context(
        self,
        opening: SessionOpened,
        earlier_events: tuple[Event, ...],
        listener: Listener | None,
        max_calls: int | None = None,
    ) -> SessionContext:
        if self._open is None:
            raise NoCouncil("the council is not open", "use it as: async with council: …")
        recorder = Recorder(self._clock, listener, earlier_events or (opening,))
        members, reviewers, chairmen = self._match_seats(opening)
        self._opened_names.discard(opening.session)
        cost = Session.of(earlier_events).cost if len(earlier_events) > 1 else NO_COST
        free_members = {m.name for m in (*self.members, *self.chairmen) if is_free(m.price)}
        limits = self._limits(opening, cost, max_calls)
        caller = Caller(
            limits=limits,
            throttles=self._throttles,
            purse=Purse(
                limits.max_cost_usd,
                cost.committed_usd,
                [name for name in disproved_prices(earlier_events) if name in free_members],
                max_calls=limits.max_calls,
                n_calls=cost.calls,
            ),
            clock=self._clock,
            seed=(opening.seed, RETRY_WAITS),
            on_retry=recorder.record_retry,
            on_withdraw=recorder.record_withdrawal,
            before_request=recorder.before_call,
        )
        return SessionContext(
            opening=opening,
            members=members,
            reviewers=reviewers,
            chairmen=chairmen,
            authorship=Authorship.of(opening),
            recorder=recorder,
            caller=caller,
            check=self._check,
            counts=self._counts,
            clock=self._clock,
            deadline=self._clock.seconds() + limits.session_seconds,
            final=1 + opening.kept,
            earlier_events=drop_fruitless_resumes(earlier_events),
        )

    async def _run(self, context: SessionContext, slot: Slot = NO_SLOT) -> Session:
        """Run a session; unwrap exceptions of its listener."""
        created_at = self._clock.seconds()
        try:
            async with context.recorder.show_events(), AsyncExitStack() as calling:
                await calling.enter_async_context(slot)
                seats = (*context.members, *context.reviewers, *context.chairmen)
                await self._preparation.prepare(seats)
                seconds_waited = self._clock.seconds() - created_at  # before its time begins
                with self._counts.running():
                    return await run_stages(
                        replace(
                            context,
                            deadline=context.deadline + seconds_waited,
                            end_calls=calling.aclose,
                        )
                    )
        except ExceptionGroup:
            if context.recorder.failure is None:
                raise
            raise context.recorder.failure from None
        finally:
            self._lesson_cache.n_ended += 1
