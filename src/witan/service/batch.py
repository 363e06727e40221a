"""Run a data set through a council: exactly one session per row.

All sessions share the ceilings.

A session's name is a hash of its row and procedure, so a killed batch finds its finished sessions
in the history, resumes interrupted ones, and asks the rest.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2s
from math import fsum
from pathlib import Path
from shlex import quote
from typing import NoReturn

import anyio
import anyio.lowlevel

from witan.core.display import NotebookDisplay, open_live_view
from witan.core.stats.learning import Lessons
from witan.deliberation.costs import Spending
from witan.deliberation.events import SessionOpened
from witan.deliberation.learning import learn_lessons
from witan.deliberation.money import NOTHING, Allowance, Amount, least_known, sum_known
from witan.deliberation.openings import check_judging
from witan.deliberation.plan import Plan
from witan.deliberation.procedure import Procedure, check_question_reviews, with_ceiling
from witan.deliberation.record import dump_record
from witan.deliberation.retries import plan_rest
from witan.deliberation.session import Session
from witan.errors import (
    HistoryConflict,
    HistoryError,
    InvalidParameter,
    OverBudget,
    Remedy,
    UnknownName,
    Way,
    WitanError,
)
from witan.history import History
from witan.history.database import blocks
from witan.service.batch_rows import (
    DECISIONS,
    STATUSES,
    BatchRow,
    HasSpending,
    PassingRows,
    RowResult,
    check_expectations,
    count_expectations,
    count_in_order,
    count_missing,
    infer_passes,
    result_of,
)
from witan.service.batch_texts import (
    TextJudgment,
    TextSummary,
    mean_grades,
    read_judgments,
    summarize_texts,
)
from witan.service.batch_votes import (
    PeopleEstimate,
    check_votes,
    count_votes,
    name_questions,
)
from witan.service.council import Council
from witan.service.session_recording import SessionRecorder
from witan.service.text import count_noun, list_text

MOST_FILES = 3
"""Most files of sessions to name; of more, their folder."""

AT_ONCE = 20
"""Sessions of earlier runs to read at a time."""


@dataclass(frozen=True, slots=True)
class BatchReport(NotebookDisplay, HasSpending):
    """The report of a batch.

    Parameters
    ----------
    rows, earlier
        Rows of the file, and those whose sessions were closed before.
    statuses, decisions
        Rows by status, and by decision on their texts.
    passed
        Share of passing rows; None: no row that could pass and fail is decided.
    cost_usd
        Cost of all sessions; None: unknown in part.
    seconds
        How long this run took.
    unaffordable
        Rows not begun, because money or calls ran out.
    calls
        Calls of all sessions, earlier runs and repeated calls included.
    people
        The jury's means, corrected by people's votes, also those cast on the rows' sessions; None:
        no row has votes.
    simulated
        Rows with seats that play scripts.
    missing
        What rows lack, or why they have no session, to the number of rows; most frequent first.
    known_usd, most_usd
        Known cost of all sessions, interrupted ones included; and their highest possible cost,
        None: a price is unknown.
    texts
        The jury's grades of each text; empty: there are none to judge.
    expectations
        Of rows that expect a decision on a single text, or a tie, the expectation to the rows by
        decision.
    """

    rows: int
    earlier: int
    statuses: Mapping[str, int]
    decisions: Mapping[str, int]
    passed: PassingRows | None
    cost_usd: float | None
    seconds: float
    unaffordable: int = 0
    calls: int = 0
    people: PeopleEstimate | None = None
    simulated: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    known_usd: float = 0.0
    most_usd: float | None = 0.0
    texts: tuple[TextSummary, ...] = ()
    expectations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchBill(NotebookDisplay, HasSpending):
    """The calls and the cost of a batch, before any call.

    Parameters
    ----------
    rows, earlier
        Rows of the file, and those whose sessions were closed before.
    calls
        Calls for the other rows, when nothing fails.
    expected_usd, worst_usd
        Cost of the other rows; None: a price is unknown.
    spent_usd
        Part of the ceiling used by sessions begun before; unknown costs count at their highest.
    max_cost_usd, max_calls
        The ceilings of all rows together; None: there is none.
    made_calls
        Calls of the sessions begun before.
    cost_usd, known_usd, most_usd
        Cost of the sessions begun before, as in a report.
    cheapest_usd
        Highest cost of the cheapest session to run; None: a price is unknown, or no session is
        left.
    """

    rows: int
    earlier: int
    calls: int
    expected_usd: float | None
    worst_usd: float | None
    spent_usd: float
    max_cost_usd: float | None
    max_calls: int | None = None
    made_calls: int = 0
    cost_usd: float | None = 0.0
    known_usd: float = 0.0
    most_usd: float | None = 0.0
    cheapest_usd: float | None = None
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def fits_no_session(self) -> bool:
        """True if the ceiling leaves too little money for any session."""
        if self.max_cost_usd is None or self.cheapest_usd is None:
            return False
        return self.spent_usd + self.cheapest_usd > self.max_cost_usd


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a batch.

    Parameters
    ----------
    n_done, rows
        Rows done, and all rows.
    n_running
        Sessions under way.
    spent_usd
        Cost so far of all sessions of the batch; unknown costs count at their highest.
    expected_usd
        Expected cost of all rows, from those done; None: none was done in this run.
    seconds_left, rows_per_minute
        At the rate of this run; None: no row is done yet.
    stage
        The current one of several batches; empty for a single batch.
    is_exact
        False if some cost is unknown.
    """

    n_done: int
    rows: int
    n_running: int
    spent_usd: float
    expected_usd: float | None
    seconds_left: float | None
    rows_per_minute: float | None
    stage: str = ""
    is_exact: bool = True


def progress_listener(council: Council) -> Callable[[Progress], None]:
    """Return the progress display of a batch, in notebooks only."""
    view = open_live_view("batch") if council.progress else None
    return (lambda _: None) if view is None else view.show


def session_names(tasks: Sequence[BatchRow], procedure: str) -> list[str]:
    """Name each task's session by hashing task, procedure and repetition.

    `procedure` is its full description (`dump_record`), so any difference changes the name.
    """
    seen, names = Counter[str](), list[str]()
    described = json.dumps(procedure)
    for task in tasks:
        reference = task.reference if task.texts else None  # members never see it
        content = [task.question, dict(task.texts), reference, task.category, task.id]
        content += [dict(task.sources)] if task.sources else []
        if task.expected is not None and len(task.texts) > 1:
            content.append(task.expected)
        words = f"[{json.dumps(content, sort_keys=True)}, {described}]"
        key = blake2s(words.encode(errors="replace"), digest_size=10).hexdigest()
        seen[key] += 1
        names.append(f"batch-{key}" if seen[key] == 1 else f"batch-{key}-{seen[key]}")
    return names


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options of a batch.

    Parameters
    ----------
    concurrency
        Maximum concurrent sessions.
    max_cost_usd, max_calls
        Ceilings of all sessions together, earlier runs included; None: no ceiling.
    pass_mark, expected
        As for `Council.judge`.
    write_error
        Writes the error of a row, with its remedy in the words of a surface.
    """

    concurrency: int = 8
    max_cost_usd: float | None = None
    max_calls: int | None = None
    pass_mark: float | None = None
    expected: str | None = None
    write_error: Callable[[WitanError], str] = str


def has_ceiling(options: BatchOptions) -> bool:
    """True if money or calls of a batch are limited."""
    return options.max_cost_usd is not None or options.max_calls is not None


class Batch:
    """A data set and the council that it runs through.

    Parameters
    ----------
    council
        An open council without a history.
    history
        Where sessions are recorded, and found again.
    allowance
        Money and calls shared with other batches; None: its own, from the options.
    lessons
        Lessons learned before; None: it learns from the history before its first row.
    """

    def __init__(
        self,
        council: Council,
        history: History,
        tasks: Sequence[BatchRow],
        options: BatchOptions,
        *,
        allowance: Allowance | None = None,
        lessons: Lessons | None = None,
    ) -> None:
        self.council, self.history, self.options = council, history, options
        self.tasks = tuple(tasks)
        if not all(task.texts for task in self.tasks):
            check_question_reviews(council.procedure, len(council.members), len(council.jury))
        for n_texts in sorted({len(task.texts) for task in self.tasks if task.texts}):
            check_judging(council.procedure, options.pass_mark, n_texts)
        seated = (*council.members, *council.jury, *council.chairmen)
        check_expectations(self.tasks, options.pass_mark)
        check_votes(self.tasks, council.members, seated, options.pass_mark)
        seats = [(seat.name, seat.source, seat.url, seat.options) for seat in seated]
        # Limits do not change the prompts.
        how = replace(council.procedure, limits=type(council.procedure.limits)())
        described = dump_record([how, seats, options.pass_mark, options.expected])
        self.names = session_names(tasks, described)
        self._allowance = allowance or Allowance(options.max_cost_usd, options.max_calls)
        self.spendings: dict[str, Spending] = {}
        """What each session begun so far cost, by its name."""
        self._unknown_costs: set[str] = set()
        self._start()
        self._slots = anyio.Semaphore(options.concurrency, fast_acquire=True)
        self._run_lock = anyio.Lock()
        self._lessons = lessons

    def _start(self) -> None:
        """Begin a run without results."""
        self._results: list[RowResult] = []
        self._judgments: list[TextJudgment] = []
        self._n_earlier = self._n_unaffordable = self._n_running = 0
        self._failure: HistoryError | OSError | None = None
        self._rescued: list[Path] = []

    def plan(self, task: BatchRow) -> Plan:
        """Plan one row."""
        if task.texts:
            return self.council.plan_judge(
                task.texts,
                task.question,
                pass_mark=self.options.pass_mark,
                expected=self._expected(task),
                files=task.files,
            )
        return self.council.plan(task.question or "", files=task.sources)

    def bill(self) -> BatchBill:
        """Report the calls still to make and their cost."""
        plans, refused, costs, spendings = [], Counter[str](), [], []
        n_closed = 0
        for task, name in zip(self.tasks, self.names, strict=True):
            # One at a time, as all together may fill the memory.
            [(_, _, session)] = self._find_all([(task, name)])
            if isinstance(session, HistoryError):
                refused[self._describe_damage(name, session)] += 1
                continue
            if session is not None:
                costs.append(session.cost)
                spendings.append(Spending.of(session))
            if session is not None and session.status != "interrupted":
                n_closed += 1
                continue
            try:
                plans.append(self.plan(task) if session is None else plan_rest(session))
            except (InvalidParameter, UnknownName) as error:
                refused[self.options.write_error(error)] += 1
        return BatchBill(
            len(self.tasks),
            n_closed,
            sum(plan.calls for plan in plans),
            sum_known([plan.expected_usd for plan in plans]),
            sum_known([plan.worst_usd for plan in plans]),
            fsum(cost.committed_usd for cost in costs),
            self.options.max_cost_usd,
            self.options.max_calls,
            sum(cost.calls for cost in costs),
            *Spending.sum(spendings),
            least_known([plan.worst_usd for plan in plans]),
            dict(refused.most_common()),
        )

    async def run(
        self,
        on_result: Callable[[RowResult], None],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> BatchReport:
        """Run every row not done yet; yield each result once.

        Results of earlier runs come first. A second run at once waits for the end of the first.

        Parameters
        ----------
        on_progress
            Called after each row; None: a notebook shows the progress.
        """
        async with self._run_lock:
            return await self._run_all(on_result, on_progress or progress_listener(self.council))

    async def _run_all(
        self, on_result: Callable[[RowResult], None], on_progress: Callable[[Progress], None]
    ) -> BatchReport:
        self._start()
        began = anyio.current_time()
        waiting: list[tuple[BatchRow, str, bool]] = []
        for block in blocks([*zip(self.tasks, self.names, strict=True)], AT_ONCE):
            for task, name, stored in await anyio.to_thread.run_sync(self._find_all, block):
                if isinstance(stored, HistoryError):
                    self._finish(await self._report_damage(task, name, stored), on_result)
                    self._n_earlier += 1
                    continue
                if stored is not None:
                    await self._settle(stored)
                if stored is None or stored.status == "interrupted":
                    waiting.append((task, name, stored is None))
                else:
                    self._n_earlier += 1
                    self._finish(result_of(task, stored), on_result)

        def report_progress() -> None:
            on_progress(self._progress(began, len(waiting)))

        report_progress()
        if self._lessons is None:
            # Learned once, so that no row's count depends on the rows that ended before it.
            procedure = self.council.procedure
            judges = any(task.texts for task in self.tasks)
            self._lessons = await learn_lessons(
                self.history, procedure, self.council.reviewers, judges=judges
            )
        try:
            await self._run_rows(waiting, on_result, report_progress)
        except HistoryError as error:
            self._raise_with_files(error)
        people = await anyio.to_thread.run_sync(self._count_votes)
        return replace(self._report(anyio.current_time() - began), people=people)

    async def _settle(self, session: Session) -> None:
        """Count the cost of a session so far."""
        self._note_spending(session.id, Spending.of(session))
        await self._allowance.settle(session.id, session.cost.most)

    def _note_spending(self, name: str, spending: Spending) -> None:
        self.spendings[name] = spending
        # A set of its own, because checking all sessions after each row is quadratic.
        if spending.cost_usd is None:
            self._unknown_costs.add(name)
        else:
            self._unknown_costs.discard(name)

    def _count_votes(self) -> PeopleEstimate | None:
        """Store people's votes with their sessions, and correct the jury by them."""
        if not any(task.votes for task in self.tasks) and not self.history.has_votes(self.names):
            return None
        counting, mark = self.council.procedure.counting, self.options.pass_mark
        is_single = all(len(task.texts) == 1 for task in self.tasks)
        failed = {each.session for each in self._results if each.status == "error"}
        rows = zip(self.tasks, self.names, strict=True)
        tasks = {name: task for task, name in rows if name not in failed}
        judged = {task.number: name for name, task in tasks.items() if task.texts}
        return count_votes(
            self.history,
            tasks,
            counting,
            mark if is_single else None,
            verdicts=mean_grades(self._judgments, judged),
        )

    async def _run_rows(
        self,
        waiting: Sequence[tuple[BatchRow, str, bool]],
        on_result: Callable[[RowResult], None],
        report_progress: Callable[[], None],
    ) -> None:
        """Run the rows that are not done.

        Parameters
        ----------
        waiting
            Rows, each with the name of its session, and whether that is new.
        """
        rows = iter(waiting)
        async with (
            self._record(self.council.procedure) as council,
            anyio.create_task_group() as group,
        ):
            # Twice the slots: while models reply, other sessions open and close.
            for _ in range(min(2 * self.options.concurrency, max(1, len(waiting)))):
                work = partial(self._work, council, rows, on_result, report_progress)
                group.start_soon(work, group.cancel_scope)
        if self._failure is not None:
            raise self._failure

    def _raise_with_files(self, error: HistoryError) -> NoReturn:
        """Raise an error that names the files of sessions that were not stored."""
        if not self._rescued:
            raise error
        files = sorted({*map(str, self._rescued)})
        if len(files) > MOST_FILES:
            files = sorted({str(file.parent) for file in self._rescued})
        remedy = (
            f"{count_noun(len(self._rescued), 'session')} with calls went to files instead; once "
            f"it can be written, run witan import {' '.join(map(quote, files))} --history "
            f"{quote(error.location)}, then the batch again"
        )
        raise HistoryError(error.location, error.problem, remedy) from error

    def _record(self, procedure: Procedure) -> Council:
        """Make the council of the batch record its sessions, under this procedure."""
        base = self.council
        recorder = SessionRecorder(self.history)
        recorder.rescued = self._rescued
        return base.vary(
            procedure,
            base.members,
            base.chairmen,
            recorder,
            base.jury,
            teacher=self._lessons,
        )

    async def _work(
        self,
        council: Council,
        rows: Iterator[tuple[BatchRow, str, bool]],
        on_result: Callable[[RowResult], None],
        report_progress: Callable[[], None],
        scope: anyio.CancelScope,
    ) -> None:
        """Run rows until none is left, or history or reader fails."""
        for task, name, is_new in rows:  # shared by all workers
            try:
                result = await self._run_row(council, task, name, is_new=is_new)
                if result is None:
                    self._n_unaffordable += 1
                else:
                    self._finish(result, on_result)
                report_progress()
                if result is None or result.status == "error":
                    await anyio.lowlevel.checkpoint()  # let others run: nothing else waits here
            except (HistoryError, OSError) as error:
                self._failure = self._failure or error
                scope.cancel()
                return

    def _find(self, name: str) -> Session | None:
        return self.history.session(name) if self.history.has_record(name) else None

    def _find_all(
        self, rows: Sequence[tuple[BatchRow, str]]
    ) -> list[tuple[BatchRow, str, Session | HistoryError | None]]:
        """Find stored sessions, with the error of each damaged one."""
        sessions: list[tuple[BatchRow, str, Session | HistoryError | None]] = []
        for task, name in rows:
            try:
                sessions.append((task, name, self._find(name)))
            except HistoryError as error:
                if not error.is_damage:
                    raise
                sessions.append((task, name, error))
        return sessions

    async def _report_damage(self, task: BatchRow, name: str, error: HistoryError) -> RowResult:
        """Count what a damaged session cost; return the result of its row."""
        summary = await anyio.to_thread.run_sync(self.history.summary, name)
        usd = summary.cost_usd
        self._note_spending(name, Spending(usd, usd or 0.0, usd))
        await self._allowance.settle(name, Amount(usd or 0.0, 0))
        return self._fail(task, name, self._describe_damage(name, error))

    def _describe_damage(self, name: str, error: HistoryError) -> str:
        place = quote(self.history.database.location)
        return (
            f"its session {error.problem}; delete it with witan forget {name} --yes "
            f"--history {place}, then run the batch again to ask for this row"
        )

    async def _run_row(
        self, council: Council, task: BatchRow, name: str, *, is_new: bool
    ) -> RowResult | None:
        """Run one row; None: no money or call is left.

        Raises
        ------
        HistoryError
            If the history cannot store it; the batch then spends no more.
        """
        try:
            stored = None if is_new else await anyio.to_thread.run_sync(self._find, name)
            if stored is not None and stored.status != "interrupted":
                await self._settle(stored)
                return result_of(task, stored)  # another process finished it
            before = NOTHING if stored is None else stored.cost.most
            opening = await self._open(council, task, name) if stored is None else stored.opening
            plan = opening.plan if stored is None else plan_rest(stored)
            worst = self._worst(plan)
            most = Amount(worst or 0.0, plan.worst_calls)
            calls = await self._allowance.reserve(name, most, plan.least_calls)
            if calls is None:
                return None
        except WitanError as error:
            return self._fail(task, name, self.options.write_error(error))
        spent = before.plus(most._replace(calls=calls))
        try:
            session = await self._hold_session(council, opening, stored, worst, calls)
            spent = session.cost.most
            self._note_spending(name, Spending.of(session))
            return result_of(task, session)
        except WitanError as error:
            # A conflict is found before any call; any other error of the history ends the batch.
            is_conflict = isinstance(error, HistoryConflict)
            if isinstance(error, HistoryError) and not is_conflict:
                raise
            stored = await anyio.to_thread.run_sync(self._find, name)
            spent = before if stored is None else stored.cost.most
            self._note_spending(name, Spending() if stored is None else Spending.of(stored))
            if is_conflict and stored is not None and stored.status != "interrupted":
                return result_of(task, stored)  # another process finished it
            return self._fail(task, name, self.options.write_error(error))
        finally:
            with anyio.CancelScope(shield=True):
                await self._allowance.settle(name, spent)

    def _fail(self, task: BatchRow, name: str, words: str) -> RowResult:
        spending = self.spendings.get(name, Spending())
        return RowResult(
            task.number,
            task.id,
            name,
            "error",
            error=words,
            expected=task.expected or self.options.expected,
            **spending._asdict(),
        )

    def _worst(self, plan: Plan) -> float | None:
        """The most that a row can still cost; None: no limit."""
        if self.options.max_cost_usd is None:
            return None
        if plan.worst_usd is None:
            seats = list_text(plan.unpriced_seats)
            raise OverBudget(
                "the council",
                f"the price of {seats} is unknown, so the ceiling cannot be kept",
                Remedy(
                    Way(
                        "set it with ", {"price": {plan.unpriced_seats[0]: "IN,OUT"}}, command=True
                    ),
                    "set the price of the seat (US dollars per million tokens)",
                ),
            )
        return plan.worst_usd

    async def _hold_session(
        self,
        council: Council,
        opening: SessionOpened,
        stored: Session | None,
        worst: float | None,
        calls: float,
    ) -> Session:
        """Run an opened or stored session.

        It costs at most `worst`, and makes at most `calls` under a ceiling of calls.
        """
        max_calls, own = None, opening.procedure.limits.max_calls
        if self.options.max_calls is not None:
            made = 0 if stored is None else stored.cost.calls
            max_calls = int(calls if own is None else min(calls, max(0, own - made)))
        base, slot = self.council.procedure, self._slot()
        ceiling = least_known((base.limits.max_cost_usd, worst))
        if stored is None:
            if ceiling is not None:
                opening = replace(opening, procedure=with_ceiling(opening.procedure, ceiling))
            try:
                # The name is taken before any call, so only one of two processes continues.
                stored = await council.begin(opening)
            except HistoryError:
                stored = await anyio.to_thread.run_sync(self._find, opening.session)
                if stored is None:
                    raise
        elif worst is not None:
            async with self._record(with_ceiling(base, ceiling)) as limited:
                return await limited.resume(stored, slot=slot, max_calls=max_calls)
        return await council.resume(stored, slot=slot, max_calls=max_calls)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None, None]:
        """Hold the slot of a session that calls models."""
        async with self._slots:
            self._n_running += 1
            try:
                yield
            finally:
                self._n_running -= 1

    def _expected(self, task: BatchRow) -> str | None:
        """The text expected to lead; whether a single text passes depends on no expectation."""
        if task.expected is None:
            return self.options.expected
        return task.expected if len(task.texts) > 1 else None

    async def _open(self, council: Council, task: BatchRow, name: str) -> SessionOpened:
        if task.texts:
            opening = await council.open_judgment(
                task.texts,
                task.question,
                pass_mark=self.options.pass_mark,
                expected=self._expected(task),
                files=task.files,
                category=task.category,
                name=name,
            )
        else:
            opening = await council.open_question(
                task.question or "", files=task.sources, category=task.category, name=name
            )
        if task.parent is None:
            return opening
        return replace(opening, parent=task.parent, relation="compared")

    def _finish(self, result: RowResult, on_result: Callable[[RowResult], None]) -> None:
        # A report needs neither answers nor the rest of a verdict.
        self._judgments += read_judgments(result.row, result.verdict)
        self._results.append(replace(result, text=None, verdict=None))
        on_result(result)

    def _progress(self, began: float, waiting: int) -> Progress:
        done = len(self._results)
        fresh = done - self._n_earlier
        took = anyio.current_time() - began
        expected = left = rate = None
        if fresh:
            rate = 60 * fresh / took if took > 0 else 0.0
            left = took / fresh * (waiting - fresh - self._n_unaffordable)
            expected = self._allowance.spent / done * len(self.tasks)
        return Progress(
            done,
            len(self.tasks),
            self._n_running,
            self._allowance.spent,
            expected,
            left,
            rate,
            is_exact=not self._unknown_costs,
        )

    def _report(self, seconds: float) -> BatchReport:
        level = self.council.procedure.counting.level
        spending = Spending.sum(self.spendings.values())
        numbers = [task.number for task in self.tasks]
        questions = dict(zip(numbers, name_questions(self.tasks), strict=True))
        return BatchReport(
            len(self.tasks),
            self._n_earlier,
            count_in_order((each.status for each in self._results), STATUSES),
            count_in_order((each.decision for each in self._results), DECISIONS),
            infer_passes(self.tasks, self._results, level, self.options.pass_mark),
            spending.cost_usd,
            seconds,
            self._n_unaffordable,
            int(self._allowance.calls),
            simulated=sum(each.simulated for each in self._results),
            missing=count_missing(self._results),
            known_usd=spending.known_usd,
            most_usd=spending.most_usd,
            texts=summarize_texts(self._judgments, questions, level),
            expectations=count_expectations(self.tasks, self._results),
        )
