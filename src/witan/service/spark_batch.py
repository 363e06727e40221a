"""Run a batch as a Spark job, with results in PostgreSQL.

Its rows run on many machines; PostgreSQL also stores the shared limits.

Every task of the job runs an ordinary batch over its rows. A repeated task finds finished rows in
the history, and waits for sessions of live processes.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2s
from math import ceil, inf
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Any

import anyio

from witan.analytics.sources import (
    explain_spark_error,
    running_session,
    spark_errors,
    start_session,
)
from witan.core.stats.learning import Lessons
from witan.deliberation.events import SessionOpened
from witan.deliberation.money import Allowance, Amount
from witan.deliberation.ports import Member, SystemClock
from witan.deliberation.procedure import Procedure
from witan.deliberation.session import Session
from witan.deliberation.throttle import Throttles
from witan.errors import HistoryConflict, HistoryError, NoCouncil, WitanError
from witan.history import History
from witan.history.database import blocks
from witan.history.engines import PostgresDatabase
from witan.history.shared_limits import BatchCeiling, TokenBucket, require_server
from witan.models.providers import PROVIDERS
from witan.models.seats import SeatSpec, key_variables, parse_seat
from witan.service.batch import AT_ONCE, Batch, BatchOptions, has_ceiling
from witan.service.batch_rows import BatchRow, RowResult, result_of
from witan.service.council import Council

POLL_SECONDS = 1.0
"""Seconds between two looks at the history for rows that ended."""

RETRY_SECONDS = 0.5
"""Seconds until a worker looks again at a session or a ceiling that others hold."""

CANCEL_SECONDS = 0.1
"""Seconds between two attempts to stop a job, which may not have begun."""

TASKS_PER_CORE = 3
"""Tasks of a job for each core, so that none ends long after the others."""

MAX_TASK_ROWS = 2_000
"""Most rows of a task; their texts are in the memory of its process."""

SETTINGS = {"spark.log.level": "FATAL", "spark.ui.showConsoleProgress": "false"}
"""Settings of a job: the batch reports its own progress and errors."""

_RAISED = (
    re.compile(r"^witan\.errors\.\w+: (.+)$", re.MULTILINE),
    re.compile(r"^[A-Z]\w+(?:Error|Exception): (.+)$", re.MULTILINE),
)
"""The last line of a worker's traceback, ours before Python's."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Everything that a worker needs besides its rows.

    Parameters
    ----------
    url
        The history, with any password.
    members, jury, chairmen
        Seats of the council.
    environment
        Variables with the keys and addresses of the seats; a worker's own take precedence.
    lessons
        Lessons that the batch learned before its first row.
    ceiling
        The name of its ceiling, or None.
    """

    url: str = field(repr=False)
    members: tuple[SeatSpec, ...]
    jury: tuple[SeatSpec, ...]
    chairmen: tuple[SeatSpec, ...]
    procedure: Procedure
    environment: Mapping[str, str] = field(repr=False)
    lessons: Lessons | None
    options: BatchOptions
    aliases: Mapping[str, str]
    ceiling: str | None

    def seat(self, history: History) -> Council:
        """Seat the council with the limits that all workers share."""
        procedure = self.procedure
        tokens = TokenBucket(require_server(history))
        return Council(
            self.members,
            self.chairmen,
            jury=self.jury,
            procedure=procedure,
            environment={**self.environment, **os.environ},
            throttles=Throttles(procedure.limits.providers, SystemClock(), tokens),
            progress=False,
        )


class SparkBatch(Batch):
    """A batch whose rows run on the machines of a Spark cluster.

    Workers need Witan, the extras of its seats and access to the history's server. Keys go to them
    with their tasks, not in Spark's settings, which its pages show.

    Parameters
    ----------
    council, history, tasks, options
        As of `Batch`; the history is in PostgreSQL, and seats are texts, not objects.
        ``concurrency`` applies to each task.
    allowance
        Counts the spending of this and other batches; workers enforce the ceiling of its name.
    master
        As Spark writes it, such as ``local[4]`` or ``spark://host:7077``; None leaves it to Spark's
        own configuration.
    session
        The caller's SparkSession, which stays open. None: the one running in this process,
        otherwise a new one, stopped after the job.

    Raises
    ------
    HistoryError
        If the history is a file, or reachable only from this host while the master is on another.
    NoCouncil
        If a seat is a model of the caller's own.
    """

    def __init__(
        self,
        council: Council,
        history: History,
        tasks: Sequence[BatchRow],
        options: BatchOptions,
        *,
        allowance: Allowance | None = None,
        master: str | None = None,
        session: Any = None,
    ) -> None:
        allowance = allowance or Allowance(None)
        super().__init__(council, history, tasks, options, allowance=allowance)
        if not allowance.name:  # the first of several batches under one ceiling names it
            of = "\n".join(self.names).encode()
            allowance.name = blake2s(of, digest_size=10).hexdigest()
        self._master, self._spark = master, session
        database = require_server(history)
        running = "" if session is None else session.sparkContext.master
        _require_reachable(database, master or running)
        members, jury, chairmen = (
            tuple(map(_spec, each)) for each in (council.members, council.jury, council.chairmen)
        )
        self._assignment = Assignment(
            database.url,
            members,
            jury,
            chairmen,
            council.procedure,
            _environment((*members, *jury, *chairmen)),
            None,
            options,
            history.aliases,
            allowance.name if has_ceiling(options) else None,
        )

    async def _run_rows(
        self,
        waiting: Sequence[tuple[BatchRow, str, bool]],
        on_result: Callable[[RowResult], None],
        report_progress: Callable[[], None],
    ) -> None:
        """Run open rows as Spark jobs until a job ends none."""
        if not waiting:
            return
        # Workers do not need people's votes, which are counted here.
        rows = {name: replace(task, votes={}) for task, name, _ in waiting}
        assignment = replace(self._assignment, lessons=self._lessons)
        ceiling = None
        if assignment.ceiling is not None:
            ceiling = BatchCeiling(self.history, assignment.ceiling)
            usd, calls = self.options.max_cost_usd, self.options.max_calls
            most = Amount(inf if usd is None else usd, inf if calls is None else calls)
            await anyio.to_thread.run_sync(ceiling.open, most, self._allowance.costs)
        with _Cluster(self._master, self._spark) as cluster:
            n_before = len(rows) + 1
            while rows and len(rows) < n_before:
                n_before = len(rows)
                try:
                    results = await self._run_job(
                        cluster, assignment, rows, on_result, report_progress
                    )
                except HistoryError:
                    if len(rows) == n_before:
                        raise
                    continue  # Spark gave the job up, but some rows ended
                ended = [(rows.pop(name), name) for name in results if name in rows]
                await self._count(ended)
                for _, name in ended:
                    self._finish(results[name], on_result)
        await self._count([(task, name) for name, task in rows.items()])
        if ceiling is not None:
            await anyio.to_thread.run_sync(ceiling.close)
        self._n_unaffordable = len(rows)
        report_progress()

    async def _run_job(
        self,
        cluster: "_Cluster",
        assignment: Assignment,
        rows: dict[str, BatchRow],
        on_result: Callable[[RowResult], None],
        report_progress: Callable[[], None],
    ) -> dict[str, RowResult]:
        """Run rows as one job; yield ended ones, return open ones."""
        job = cluster.submit(assignment, [*rows.items()])
        try:
            next_look = anyio.current_time() + POLL_SECONDS
            while not job.done():
                await anyio.sleep(POLL_SECONDS / 10)
                if (now := anyio.current_time()) >= next_look:
                    await self._take_closed(rows, on_result, report_progress)
                    took = anyio.current_time() - now
                    next_look = now + took + max(POLL_SECONDS, 5 * took)
        finally:
            if not job.cancel():
                cluster.cancel(job)
        await self._take_closed(rows, on_result, report_progress)
        results: dict[str, RowResult] = {}
        for each in job.result():
            if isinstance(each, WitanError):
                raise each
            results[each.session] = each
        return results

    async def _take_closed(
        self,
        rows: dict[str, BatchRow],
        on_result: Callable[[RowResult], None],
        report_progress: Callable[[], None],
    ) -> None:
        """Remove rows with closed sessions, and pass on their results."""
        statuses = await anyio.to_thread.run_sync(self.history.statuses, [*rows])
        closed = [name for name, status in statuses.items() if status != "interrupted"]
        self._n_running = len(statuses) - len(closed)
        for block in blocks(closed, AT_ONCE):
            pairs = [(rows[name], name) for name in block]
            for task, name, session in await anyio.to_thread.run_sync(self._find_all, pairs):
                if isinstance(session, HistoryError):
                    del rows[name]
                    self._finish(await self._report_damage(task, name, session), on_result)
                elif session is not None and session.status != "interrupted":
                    await self._settle(session)
                    del rows[name]
                    self._finish(result_of(task, session), on_result)
            report_progress()

    async def _count(self, rows: Sequence[tuple[BatchRow, str]]) -> None:
        """Count the cost of rows whose sessions stay open."""
        for block in blocks(rows, AT_ONCE):
            for *_, session in await anyio.to_thread.run_sync(self._find_all, block):
                if isinstance(session, Session):
                    await self._settle(session)


class _Cluster:
    """Spark, started with the first job; only our own is stopped."""

    def __init__(self, master: str | None, session: Any) -> None:
        self._master, self._session = master, session
        self._is_own = False
        self._group, self._is_cancelled = "", Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="witan-spark-batch")

    def __enter__(self) -> "_Cluster":
        return self

    def __exit__(self, *failure: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._is_own:
            with suppress(*spark_errors(), OSError):  # the session itself may be lost
                self._session.stop()

    def submit(
        self, assignment: Assignment, rows: Sequence[tuple[str, BatchRow]]
    ) -> "Future[list[RowResult | WitanError]]":
        """Run a job in the thread of this cluster."""
        self._group, self._is_cancelled = f"witan-{token_hex(8)}", Event()
        return self._thread.submit(self._run, assignment, rows, self._group, self._is_cancelled)

    def cancel(self, job: "Future[list[RowResult | WitanError]]") -> None:
        """Stop the job and wait for its workers; their sessions stay open.

        Other jobs of the caller's Spark go on.
        """
        self._is_cancelled.set()
        while not job.done():  # the job may not have reached Spark yet
            if self._session is not None:
                with suppress(*spark_errors(), OSError):
                    self._session.sparkContext.cancelJobGroup(self._group)
            wait([job], CANCEL_SECONDS)

    def _run(
        self,
        assignment: Assignment,
        rows: Sequence[tuple[str, BatchRow]],
        group: str,
        is_cancelled: Event,
    ) -> list[RowResult | WitanError]:
        if self._session is None:
            self._session = running_session()
        if self._session is None:
            self._session, self._is_own = start_session(self._master, SETTINGS), True
        try:
            context = self._session.sparkContext
            n_tasks = _count_tasks(
                len(rows), context.defaultParallelism, assignment.options.concurrency
            )
            context.setJobGroup(group, "witan batch", interruptOnCancel=True)
            tasks = context.parallelize(rows, n_tasks).mapPartitions(partial(run_task, assignment))
            if is_cancelled.is_set():
                return []
            results: list[RowResult | WitanError] = tasks.collect()
        except spark_errors() as error:
            problem = f"ended the job: {_find_cause(error)}"
            remedy = "remove the cause, then run the same batch again to continue"
            if "No module named" in problem or "Cannot run program" in problem:
                remedy = (
                    "install Witan with the extras of its seats on every worker, and name the"
                    " Python there in PYSPARK_PYTHON"
                )
            raise HistoryError("Spark", problem, remedy) from error
        return results


def _count_tasks(n_rows: int, n_cores: int, concurrency: int) -> int:
    """Return a number of tasks that fills all cores.

    No task is tiny or huge.
    """
    wanted = min(TASKS_PER_CORE * n_cores, ceil(n_rows / concurrency))
    return max(wanted, ceil(n_rows / MAX_TASK_ROWS))


def _find_cause(error: Exception) -> str:
    """Find a worker's exception in Spark's report, or why it was lost."""
    causes = (raised[1] for pattern in _RAISED if (raised := pattern.search(str(error))))
    return next(causes, explain_spark_error(error))


def run_task(
    assignment: Assignment, rows: Iterator[tuple[str, BatchRow]]
) -> Iterator[RowResult | WitanError]:
    """Run one task's rows; return what the history lacks.

    These are results of rows without a closed session, or a permanent error.
    """
    try:
        results = anyio.run(_run_task, assignment, [*rows])
    except HistoryError:
        raise  # Spark repeats the task
    except WitanError as error:
        return iter([error])
    return (each for each in results if each.status in ("error", "failed"))


async def _run_task(
    assignment: Assignment, rows: Sequence[tuple[str, BatchRow]]
) -> list[RowResult]:
    results: list[RowResult] = []
    with History.open(assignment.url) as history:
        history.aliases = assignment.aliases
        allowance = Allowance(None)
        if assignment.ceiling is not None:
            allowance = _SharedAllowance(BatchCeiling(history, assignment.ceiling))
        async with assignment.seat(history) as council:
            batch = _TaskBatch(
                council,
                history,
                [task for _, task in rows],
                assignment.options,
                allowance=allowance,
                lessons=assignment.lessons,
            )
            batch.names = [name for name, _ in rows]  # names depend on the whole data set
            await batch.run(results.append, lambda _: None)
    return results


class _TaskBatch(Batch):
    """A task's batch, which waits for sessions of other processes."""

    async def _hold_session(
        self,
        council: Council,
        opening: SessionOpened,
        stored: Session | None,
        worst: float | None,
        calls: float,
    ) -> Session:
        while True:
            try:
                return await super()._hold_session(council, opening, stored, worst, calls)
            except HistoryConflict:  # a repeated task, or a killed driver's, has the session
                await anyio.sleep(RETRY_SECONDS)
                await anyio.to_thread.run_sync(self.history.database.beat)
                stored = await anyio.to_thread.run_sync(self._find, opening.session)
                if stored is not None and stored.status != "interrupted":
                    return stored


class _SharedAllowance(Allowance):
    """The ceiling that all workers share."""

    def __init__(self, ceiling: BatchCeiling) -> None:
        super().__init__(None)
        self._ceiling = ceiling

    async def reserve(self, session: str, most: Amount, least_calls: int) -> float | None:
        while True:
            calls, may_wait = await anyio.to_thread.run_sync(
                self._ceiling.reserve, session, most, least_calls
            )
            if calls is not None or not may_wait:
                return calls
            await anyio.sleep(RETRY_SECONDS)

    async def settle(self, session: str, cost: Amount) -> None:
        await anyio.to_thread.run_sync(self._ceiling.settle, session, cost)


def _require_reachable(database: PostgresDatabase, master: str) -> None:
    """Refuse a local address if the master is on another host."""
    is_own = database.host.startswith(("/", "@", "127.")) or database.host in ("localhost", "::1")
    if is_own and not _is_on_this_host(master):
        problem = f"is at {database.host}, which to the workers of {master} is their own host"
        remedy = "name the server as they reach it: --history postgresql://user@HOST/database"
        raise HistoryError(database.location, problem, remedy)


def _is_on_this_host(master: str) -> bool:
    """True if a master is, or may be, on this host."""
    match = re.fullmatch(r"(?:spark|k8s|mesos)://(?:https?://)?(.+)", master)
    hosts = [] if match is None else [each.rpartition(":")[0] for each in match[1].split(",")]
    return not hosts or any(_is_own_address(host.strip("[]")) for host in hosts)


def _is_own_address(host: str) -> bool:
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return True  # Spark reports the problem with the name
    for family, kind, _, _, address in addresses:
        with suppress(OSError), socket.socket(family, kind) as probe:
            probe.bind(address)
            return True
    return False


def _spec(member: Member) -> SeatSpec:
    """Write a member's seat, so that another process can seat it."""
    if not member.source:
        problem = f"{member.name} is a model of your own, which Spark's workers cannot seat"
        raise NoCouncil(problem, "write it as a seat, such as openai:gpt-5")
    return replace(
        parse_seat(member.source, key=member.name, base=Path.cwd()),
        name=member.name,
        url=member.url,
        key_variable=member.key_variable,
        options=member.options,
        price=member.price,
    )


def _environment(specs: Sequence[SeatSpec]) -> dict[str, str]:
    """Return the variables with the keys and addresses of seats."""
    names = ["OLLAMA_HOST"]
    for spec in specs:
        provider = PROVIDERS.get(spec.provider)
        names += [*key_variables(spec), *(() if provider is None else provider.url_variables)]
    return {name: os.environ[name] for name in names if name in os.environ}
