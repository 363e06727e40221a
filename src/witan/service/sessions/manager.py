"""The service: sessions for clients of every protocol."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.abc import TaskGroup

from witan.deliberation.call_headers import HOPS, server_name
from witan.deliberation.events import Event, Listener
from witan.deliberation.money import least_known
from witan.deliberation.plan import TYPICAL, Lengths, Plan, WrittenAnswers, least_call_usd
from witan.deliberation.ports import Message, SystemClock
from witan.deliberation.procedure import Limits, with_ceiling
from witan.deliberation.retries import plan_rest, plan_retry
from witan.deliberation.session import Session
from witan.errors import Busy, HistoryError, NothingToCount, UnknownName, WitanError
from witan.service.catalogue import redact
from witan.service.history_access import forget_expired
from witan.service.operations.ask import (
    CouncilRequest,
    JudgeRequest,
    NewSessionRequest,
    QuestionRequest,
    RejudgeRequest,
    ResumeRequest,
    RetryRequest,
    StartRequest,
)
from witan.service.sessions.running import (
    Observer,
    RunningSession,
    SessionRegistry,
    Stream,
    contain_errors,
    notify_over,
    watch_session,
)
from witan.service.sessions.spending import (
    LOCAL,
    RETRY_SECONDS,
    Client,
    ClientLimits,
    Ledger,
    SessionReservation,
)
from witan.service.stored_sessions import check_continued
from witan.service.text import count_noun

if TYPE_CHECKING:
    from witan.service.config.serve import ServeSettings
    from witan.service.council import Council
    from witan.service.operations.reports import HistoryReports
    from witan.service.sessions.councils import CouncilProfile, Councils, LocalCouncils


Seating: TypeAlias = "Councils | LocalCouncils"
"""The councils of a service: a server's or one command's."""

SessionRunner: TypeAlias = "Callable[[Council, Listener, SessionReservation], Awaitable[Session]]"


@dataclass(frozen=True, slots=True)
class SessionJob:
    """A session to run.

    `seat`: returns its council, given a ceiling in dollars or None.
    `run`: runs it, and reports its earlier cost to its account.
    `plan`: its calls, and their highest cost when nothing fails.
    `hops`: the servers that the question came through.
    `store`: whether it stays available after its end.
    `left_usd`: remaining dollars of its original ceiling, or None without one.
    `answers_written`: how many of the answers exist already.
    """

    seat: "Callable[[float | None], Council]"
    run: SessionRunner
    plan: "Callable[[Council], Plan]"
    hops: tuple[str, ...] = ()
    store: bool = True
    left_usd: float | None = None
    answers_written: WrittenAnswers = "some"

    def least_usd(self, council: "Council", plan: Plan, most: float | None) -> float | None:
        """Return the smallest sum that it needs; None if unknown or excessive.

        This is the most that a stage reserves at once, or the cost of its cheapest call.

        It is exact for a question without debate rounds, and for another jury with one order;
        otherwise it may be too low, because unknown prompts count as nothing.

        `most`: the client's ceiling for each session, or None.
        """
        seats = (*council.members, *council.jury, *council.chairmen)
        prices = {seat.name: seat.price for seat in seats}
        least = least_call_usd(plan, prices, self.answers_written)
        whole = plan.least_usd()
        if least is not None and whole is not None:
            least = max(least, whole[1])
        own = (self.left_usd, self.seat(most).procedure.limits.max_cost_usd)
        poor = least is not None and any(usd is not None and usd < least for usd in own)
        return None if poor else least


def question_job(
    councils: Seating,
    request: QuestionRequest,
    conversation: Sequence[Message],
    parent: str | None,
    hops: tuple[str, ...],
    *,
    store: bool,
    lengths: Lengths,
) -> SessionJob:
    """Put a question to a council, after a conversation or a session."""

    def seat(ceiling: float | None) -> "Council":
        council = councils.council(request, ceiling)
        if store:
            return council
        members, chairmen, jury = council.members, council.chairmen, council.jury
        teacher = councils.history
        return council.vary(council.procedure, members, chairmen, jury=jury, teacher=teacher)

    return SessionJob(
        seat,
        lambda council, listener, _: council.ask(
            request.question,
            conversation=conversation,
            files=request.files,
            seed=request.seed,
            category=request.category,
            parent=parent,
            listener=listener,
        ),
        lambda council: council.plan(
            request.question, conversation=conversation, files=request.files, lengths=lengths
        ),
        hops,
        store,
        answers_written="none",
    )


def resume_job(
    councils: Seating,
    session: Session,
    take_up: Callable[[], Awaitable[Session]],
    max_cost_usd: float | None = None,
    max_calls: int | None = None,
) -> SessionJob:
    """Resume an interrupted session, as returned by `take_up`."""
    own = session.opening.procedure.limits.max_cost_usd

    async def run(council: "Council", listener: Listener, account: SessionReservation) -> Session:
        taken_up = await take_up()
        account.before_usd = taken_up.cost.committed_usd
        return await council.resume(taken_up, listener=listener, max_calls=max_calls)

    bounds = [None if own is None else max(0.0, own - session.cost.committed_usd), max_cost_usd]
    seat = partial(councils.council_of, session, max_cost_usd=max_cost_usd)
    return SessionJob(seat, run, lambda _: plan_rest(session), left_usd=least_known(bounds))


def retry_job(councils: Seating, session: Session, request: RetryRequest) -> SessionJob:
    """Retry failed seats, by default all of them."""
    seats = request.seats or None
    return SessionJob(
        partial(
            councils.council_of,
            session,
            max_cost_usd=request.max_cost_usd,
            max_calls=request.max_calls,
        ),
        lambda council, listener, _: council.retry(session, seats, listener=listener),
        lambda council: plan_retry(session, seats, council.procedure.limits),
    )


def rejudge_job(
    councils: Seating, session: Session, request: CouncilRequest, hops: tuple[str, ...]
) -> SessionJob:
    """Review a session's stored answers again, with another jury."""
    return SessionJob(
        partial(councils.council_of_jurors, request),
        lambda council, listener, _: council.rejudge(session, seed=request.seed, listener=listener),
        lambda council: council.plan_rejudge(session),
        hops,
        answers_written="all",
    )


def judge_job(councils: Seating, request: JudgeRequest, hops: tuple[str, ...]) -> SessionJob:
    """Have a jury judge texts."""
    return SessionJob(
        partial(councils.council_of_jurors, request),
        lambda council, listener, _: council.judge(
            request.texts,
            request.question,
            pass_mark=request.pass_mark,
            expected=request.expected,
            files=request.sources,
            seed=request.seed,
            category=request.category,
            listener=listener,
        ),
        lambda council: council.plan_judge(
            request.texts,
            request.question,
            pass_mark=request.pass_mark,
            expected=request.expected,
            files=request.sources,
        ),
        hops,
        answers_written="all",
    )


_log = logging.getLogger("witan.service")

RETENTION_SECONDS = 3600.0
"""Seconds between two deletions of expired sessions."""


class Service:
    """Running and stored sessions.

    Open it with `Service.open`.

    `history`: the history that records sessions; None: they end with the process.
    `name`: its name in the calls of its members; empty for a command.
    `registry`: running, recently ended and stored sessions by name.
    """

    def __init__(
        self,
        councils: Seating,
        client_limits: ClientLimits,
        observers: Sequence[Observer],
        *,
        most: int,
        name: str,
        sessions: Sequence[Session] = (),
    ) -> None:
        self.history = councils.history
        self.name = name
        self.most = most
        self._seatings = councils
        self._client_limits = client_limits
        self._observers = tuple(observers)
        self._clock = SystemClock()
        self._running_sessions: set[RunningSession] = set()
        self.registry = SessionRegistry(councils.history, sessions)
        self.is_draining = False
        self._tasks: TaskGroup

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        councils: Seating,
        *,
        ledger: Ledger | None = None,
        observers: Sequence[Observer] = (),
        most: int = 64,
        local: bool = False,
        sessions: Sequence[Session] = (),
    ) -> "AsyncGenerator[Service, None]":
        """Seat the councils, and hold sessions while the block lasts.

        Running sessions at its end are interrupted and can be resumed.

        `ledger`: spending of clients; None: kept in memory only.
        `most`: maximum number of concurrent sessions.
        `local`: whether it is one command, not a server: its name is not sent with calls, and
        expired sessions are deleted after a session only, not hourly.
        `sessions`: sessions from files, which operations find by name like those of the history.
        """
        clock = SystemClock()
        client_limits = ClientLimits(Ledger(clock) if ledger is None else ledger, clock)
        await client_limits.reconcile(councils.history)
        async with AsyncExitStack() as stack:
            await councils.open(stack)
            service = cls(
                councils,
                client_limits,
                observers,
                most=most,
                name="" if local else server_name(),
                sessions=sessions,
            )
            tasks = AsyncExitStack()
            service._tasks = await tasks.enter_async_context(anyio.create_task_group())
            retention = anyio.CancelScope()
            if not local:
                service._tasks.start_soon(service._forget_expired_hourly, retention)
            try:
                yield service
            finally:
                with anyio.CancelScope(shield=True):
                    await service.drain(0)
                retention.cancel()
                # Closed here, so that an error of the block is not wrapped in an exception group.
                await tasks.aclose()

    @property
    def profiles(self) -> "Mapping[str, CouncilProfile]":
        """Councils by name: empty is the configured one, ``demo`` the demonstration."""
        return self._seatings.profiles

    @property
    def reports(self) -> "HistoryReports":
        """The source of leaderboards and audits."""
        from witan.service.operations.reports import HistoryReports

        return HistoryReports(self.history, self._seatings.config)

    async def plan(self, request: NewSessionRequest) -> tuple[Plan, Limits]:
        """Plan the calls of a request and their limits, without a call."""
        if isinstance(request, RetryRequest):  # the record suffices, without a council here
            record = await self.record_at_rest(request.session)
            procedure = with_ceiling(
                record.opening.procedure, request.max_cost_usd, request.max_calls
            )
            return plan_retry(record, request.seats or None, procedure.limits), procedure.limits
        lengths = TYPICAL
        if isinstance(request, QuestionRequest) and self.history is not None:
            with suppress(HistoryError):  # a plan works without a history
                lengths = await anyio.to_thread.run_sync(self.history.lengths)
        job = await self._make_job(request, lengths=lengths)
        council = job.seat(None)
        return job.plan(council), council.procedure.limits

    async def start(
        self,
        request: StartRequest,
        client: Client = LOCAL,
        hops: tuple[str, ...] = (),
        *,
        parent: str | None = None,
        store: bool = True,
    ) -> RunningSession:
        """Start a session as requested; it runs without any reader.

        `parent`: session that a question continues, if the request names none.
        `store`: whether it is recorded; otherwise it is lost after its end.

        Raises `WitanError` if it cannot be started; `Busy` if too many sessions are running, or the
        client has reached its limit.
        """
        if isinstance(request, ResumeRequest):
            return await self._resume(request, client)
        return await self._start(
            client, await self._make_job(request, hops, parent=parent, store=store)
        )

    async def _make_job(
        self,
        request: NewSessionRequest,
        hops: tuple[str, ...] = (),
        *,
        parent: str | None = None,
        store: bool = True,
        lengths: Lengths = TYPICAL,
    ) -> SessionJob:
        match request:
            case QuestionRequest():
                conversation, continued = await self._read_conversation(request)
                return question_job(
                    self._seatings,
                    request,
                    conversation,
                    continued or parent,
                    hops,
                    store=store,
                    lengths=lengths,
                )
            case JudgeRequest():
                return judge_job(self._seatings, request, hops)
            case RejudgeRequest():
                record = await self.registry.session(request.session)
                return rejudge_job(self._seatings, record, request, hops)
            case RetryRequest():
                record = await self.record_at_rest(request.session)
                return retry_job(self._seatings, record, request)

    async def _resume(self, request: ResumeRequest, client: Client) -> RunningSession:
        """Resume an interrupted session after its last finished seat."""
        whole = await self.registry.resolve_session(request.session)
        with self.registry.claim_session(whole):
            record = await self.registry.session(whole)
            if record.status != "interrupted":
                problem = f"the session {record.id} has ended: there is nothing to resume"
                raise NothingToCount(problem)

            async def take_up() -> Session:
                return await self._take_over(record) if request.take_over else record

            job = resume_job(
                self._seatings, record, take_up, request.max_cost_usd, request.max_calls
            )
            return await self._start(client, job)

    async def session(self, name: str) -> Session:
        """Return a redacted session by an unambiguous beginning of its name."""
        return redact(await self.registry.session(name))

    async def forget(self, session: str) -> str | None:
        """Delete a session completely; return where its text remains, and how long."""
        whole = await self.registry.resolve_session(session)
        with self.registry.claim_session(whole):
            note = None
            if self.history is not None:
                with suppress(UnknownName):  # it may never have been stored
                    note = (await anyio.to_thread.run_sync(self.history.forget, whole)).note
            self.registry.drop(whole)
        return note

    async def drain(self, seconds: float) -> None:
        """Start no more sessions; wait for running ones, then cancel them."""
        self.is_draining = True
        with anyio.move_on_after(seconds):
            for running_session in [*self._running_sessions]:
                await running_session.wait_for_end()
        with anyio.CancelScope(shield=True):
            for running_session in [*self._running_sessions]:
                running_session.cancel()
            for running_session in [*self._running_sessions]:
                await running_session.wait_for_end()

    async def _forget_expired_hourly(self, scope: anyio.CancelScope) -> None:
        history = self.history
        with scope:
            while history is not None and history.keep_days is not None:
                with contain_errors(_log, "older sessions could not be deleted"):
                    deletion = await anyio.to_thread.run_sync(forget_expired, history)
                    for session in deletion.sessions:
                        self.registry.drop(session)
                await anyio.sleep(RETENTION_SECONDS)

    async def record_at_rest(self, name: str) -> Session:
        """Return a recorded session; refuse a running one."""
        whole = await self.registry.resolve_session(name)
        self.registry.check_at_rest(whole)
        return await self.registry.session(whole)

    async def _take_over(self, session: Session) -> Session:
        """Return a session as its former process, now stopped, left it."""
        if self.history is None:
            return session
        take_up = partial(self.history.claim, session.id, force=True)
        try:
            return await anyio.to_thread.run_sync(take_up)
        except UnknownName:  # it came from a file
            return session

    async def _read_conversation(
        self, request: QuestionRequest
    ) -> tuple[tuple[Message, ...], str | None]:
        if request.parent is None:
            return tuple(Message(turn.role, turn.content) for turn in request.conversation), None
        parent_session = await self.registry.session(request.parent)
        check_continued(request.parent, parent_session)
        return parent_session.conversation, parent_session.id

    async def _start(self, client: Client, job: SessionJob) -> RunningSession:
        self._check_places()
        running_session = RunningSession(client, Stream(self._clock.seconds), store=job.store)
        self._running_sessions.add(running_session)
        with ExitStack() as undo:
            undo.callback(running_session.close)
            undo.callback(self._running_sessions.discard, running_session)
            council, account = await self._admit(client, job)
            undo.pop_all()
        self._tasks.start_soon(self._run_session, running_session, council, job, account)
        self._tasks.start_soon(running_session.stream.pace)
        with ExitStack() as undo:
            undo.callback(running_session.cancel)
            await running_session.wait_for_name()
            undo.pop_all()
        return running_session

    async def _admit(self, client: Client, job: SessionJob) -> "tuple[Council, SessionReservation]":
        """Seat a council and reserve money for its session."""
        most = self._client_limits.session_ceiling(client)
        council = job.seat(most)
        if client.daily_usd is not None:
            plan = job.plan(council)
            least = job.least_usd(council, plan, client.max_cost_usd)
            if least is not None:
                self._client_limits.check(client, least)
            own = council.procedure.limits.max_cost_usd
            bounds = (plan.worst_usd, job.left_usd, own, most)
            most = least_known(bounds)
            if most:  # otherwise it is free
                council = job.seat(most)
        self._client_limits.begin(client)
        return council, await self._client_limits.hold_back(client, most)

    def _check_places(self) -> None:
        if self.is_draining:
            raise Busy("the server is about to stop", "ask again when it is back", RETRY_SECONDS)
        if len(self._running_sessions) >= self.most:
            problem = f"the limit of {count_noun(self.most, 'concurrent session')} is reached"
            raise Busy(problem, "ask again when one has ended", RETRY_SECONDS)

    async def _run_session(
        self,
        running_session: RunningSession,
        council: "Council",
        job: SessionJob,
        account: SessionReservation,
    ) -> None:
        HOPS.set((*job.hops, self.name) if self.name else job.hops)
        session: Session | None = None
        failure: Exception | None = None
        try:
            guard = contain_errors(_log, "internal error in a session", reraise=WitanError)
            with guard as mishap, running_session.scope:
                async with council:
                    listener = self._listener(running_session, account)
                    session = await job.run(council, listener, account)
            failure = mishap.failure
        except HistoryError as error:
            if len(running_session.stream) and running_session.stream.is_closed:
                running_session.record_failure = error  # it ended; its record is elsewhere
            else:
                failure = error
        except WitanError as error:
            failure = error
        finally:  # also if the service is cancelled
            any_event = session is not None or len(running_session.stream)
            try:
                await account.settle((session or running_session.record) if any_event else None)
            finally:
                self._running_sessions.discard(running_session)
                running_session.close(session, failure)
                notify_over(self._observers, running_session)
                if job.store:
                    self.registry.retire_session(running_session)
                elif running_session.has_name:
                    self.registry.drop(running_session.id)

    def _listener(self, running_session: RunningSession, account: SessionReservation) -> Listener:
        watchers = [watch_session(observer, running_session) for observer in self._observers]
        listeners = [
            running_session.take,
            lambda _: self.registry.keep_session(running_session),
            *watchers,
        ]
        return _SessionListener(running_session, account, listeners)


@dataclass(frozen=True, slots=True)
class _SessionListener:
    """Notifies observers of a session, and its account before each call."""

    running_session: RunningSession
    account: SessionReservation
    listeners: Sequence[Listener]

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        for listener in self.listeners:
            listener(event)

    async def before_call(self, *, is_recorded: bool) -> None:
        await self.account.await_record(self.running_session.id, is_recorded=is_recorded)


def spent_path(settings: "ServeSettings") -> Path | None:
    """Return the file of clients' spending, or None without limits."""
    from platformdirs import user_state_path

    spending = any(token.daily_usd is not None for token in settings.tokens.values())
    return user_state_path("witan") / "spent.jsonl" if spending else None


@asynccontextmanager
async def open_service(
    councils: "Councils",
    settings: "ServeSettings",
    observers: Sequence[Observer] = (),
    *,
    spending_path: Path | None = None,
) -> AsyncGenerator[Service, None]:
    """Open a server's service, with tracing if the environment configures it."""
    from witan.service.telemetry import SpanExport, Spans, is_configured

    with Ledger(SystemClock(), spending_path) as ledger:
        exporting = SpanExport() if is_configured() else None
        spans = [] if exporting is None else [Spans(exporting.provider)]
        try:
            async with Service.open(
                councils, ledger=ledger, observers=[*observers, *spans], most=settings.max_sessions
            ) as service:
                yield service
        finally:
            if exporting is not None:
                await anyio.to_thread.run_sync(exporting.close)
