"""Run a data set through a council and its controls.

The council answers each row; the same session has its best member's answer. Then that member
answers several times and judges its own answers, in as many calls as the council, and its best one
counts. Finally a jury judges the answers of a row side by side, or they are compared with a
reference or people's votes. Up to three batches do this, found again by their sessions' names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from math import fsum, inf, nan
from typing import Any

import anyio
import numpy as np

from witan.analytics.leaderboards import leaderboard
from witan.core.arms import (
    ARMS,
    PAIRS,
    Arm,
    ArmAnswer,
    ArmComparison,
    ArmMeasure,
    ArmQuestion,
    Choice,
    check_references,
    check_votes,
    choose_best,
    compare_arms,
    measure_ballots,
    split_questions,
)
from witan.core.ballot import Ballot
from witan.core.stats.leaderboard import Terms, Window
from witan.deliberation.costs import Spending
from witan.deliberation.learning import model_of
from witan.deliberation.money import Allowance, least_known, sum_known
from witan.deliberation.openings import judging_procedure, make_seat
from witan.deliberation.plan import Plan
from witan.deliberation.planner import make_plan, sum_lines
from witan.deliberation.ports import MOST_TEXTS, Member, free_name
from witan.deliberation.retries import plan_rest
from witan.deliberation.session import is_author
from witan.deliberation.texts import are_identical
from witan.errors import HistoryError, InvalidParameter, NoCouncil, NothingToCount, UnknownName
from witan.history import History
from witan.service.arm_sessions import ArmSession
from witan.service.batch import (
    Batch,
    BatchBill,
    BatchOptions,
    BatchReport,
    Progress,
    has_ceiling,
    progress_listener,
    session_names,
)
from witan.service.batch_rows import (
    STATUSES,
    BatchRow,
    RowResult,
    Status,
    count_in_order,
    count_missing,
)
from witan.service.batch_votes import name_questions
from witan.service.council import Council

CHOICE = "'choose'"
"""Key of the hash that splits the questions, to choose the best member; quotes included."""

NOTHING_LEFT = {
    "self": "the best member by itself: no money or call left",
    "jury": "the jury: no money or call left",
}
"""Missing part of a row that the ceiling stopped, by stage."""


@dataclass(frozen=True, slots=True)
class ArmOptions:
    """Options of a comparison of arms.

    Parameters
    ----------
    arms
        Arms to compare; the council is always one of them.
    best
        The best member; None: chosen by earlier sessions, or by half of the questions.
    margin
        Smaller differences do not count; None: the default.
    measure
        The measure: a jury, the rows' references, or the rows' votes on arms.
    """

    arms: tuple[Arm, ...] = ARMS
    best: str | None = None
    margin: float | None = None
    measure: ArmMeasure = "jury"


@dataclass(frozen=True, slots=True)
class ArmRowResult(RowResult):
    """One row's result: the council's, the other arms and their judgment.

    Parameters
    ----------
    arms
        Arm to its answer.
    judgment
        The session that judged the arms; None: not judged, or all texts are the same.
    chooses
        Whether the row chose the best member, so it is not measured.
    """

    arms: Mapping[Arm, ArmAnswer] = field(default_factory=dict)
    judgment: str | None = None
    chooses: bool = False


@dataclass(frozen=True, slots=True)
class ArmBatchReport(BatchReport):
    """The report of a batch with arms.

    Parameters
    ----------
    comparison
        The comparison of the arms; None: nothing was judged.
    unanswered, unfinished
        Rows not compared: without an answer of the council, or with one but no money for the rest.
    unjudged
        Rows on which the jury came to no outcome, or without a reference or vote.
    measure
        What the arms were measured by.
    """

    comparison: ArmComparison | None = None
    unanswered: int = 0
    unfinished: int = 0
    unjudged: int = 0
    measure: ArmMeasure = "jury"


@dataclass(frozen=True, slots=True)
class ArmBill(BatchBill):
    """Calls and cost of a batch with arms, before any call.

    Parameters
    ----------
    parts
        The calls of the council, of its best member by itself, and of the jury.
    """

    parts: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Row:
    """A row with a council's answer, and what is known so far."""

    task: BatchRow
    council: ArmSession
    answers: dict[Arm, ArmAnswer]
    best: str = ""
    judgment: str | None = None
    chooses: bool = False
    results: list[RowResult] = field(default_factory=list)

    @property
    def answer_texts(self) -> dict[Arm, str]:
        """The answers to be compared."""
        return {arm: each.text for arm, each in self.answers.items() if each.text is not None}

    @property
    def same(self) -> frozenset[tuple[Arm, Arm]]:
        """Pairs of arms with the same text."""
        texts = self.answer_texts
        return frozenset(
            pair
            for pair in PAIRS
            if {*pair} <= texts.keys() and are_identical({arm: texts[arm] for arm in pair})
        )

    @property
    def is_alike(self) -> bool:
        """True if all arms have one text, so a judgment is unnecessary."""
        return len(self.answer_texts) < 2 or are_identical(dict(self.answer_texts.items()))

    @property
    def control_task(self) -> BatchRow:
        """The row as put to its best member."""
        return replace(self.task, reference=None, parent=self.council.id)

    @property
    def judging_task(self) -> BatchRow:
        """The row as the jury judges its answers."""
        return replace(self.task, texts=dict(self.answer_texts.items()), parent=self.council.id)

    def take_control(self, session: ArmSession) -> None:
        """Take the best member's best answer from its own session."""
        if session.interrupted is None:
            self.answers["self"] = session.answer(self.best, session.best_text)


class ArmBatch:
    """A data set, its council, its controls, and the jury of both.

    Parameters
    ----------
    council
        An open council without a history.
    jury
        Likewise: its jury, or else its members, judge. None of them has a seat in the council. None
        if references or votes alone measure the arms.
    history
        Where sessions are recorded, and found again.
    sessions
        Names of the council's sessions; None: the batch's own.
    make_batch
        Makes each batch; ``partial(SparkBatch, master="yarn")`` runs them on Spark.

    Raises
    ------
    NoCouncil
        If a judge has a seat in the council.
    InvalidParameter, UnknownName
        If fewer than two arms are compared, a row has texts, or the member is unknown.
    """

    def __init__(
        self,
        council: Council,
        jury: Council | None,
        history: History,
        tasks: Sequence[BatchRow],
        options: BatchOptions,
        *,
        arms: ArmOptions | None = None,
        sessions: Sequence[str] | None = None,
        make_batch: Callable[..., Batch] = Batch,
    ) -> None:
        self.council, self.jury, self.history = council, jury, history
        self.arms = arms or ArmOptions()
        self._votes = {task.number: task.votes for task in tasks}
        # Votes name arms, which no session of the council has as candidates.
        self.tasks, self.options = tuple(replace(task, votes={}) for task in tasks), options
        self._check()
        self._allowance = Allowance(options.max_cost_usd, options.max_calls)
        self._make_batch = partial(make_batch, allowance=self._allowance)
        self._controls: dict[str, ArmSession | None] = dict.fromkeys({"self"} & {*self.arms.arms})
        plain = self._make_batch(council, history, self.tasks, options)
        if jury is not None:
            self._controls["jury"] = None
            # Refuse a batch that the jury cannot run, before the first call.
            self._make_batch(jury, history, (), options)
        self.names = plain.names if sessions is None else [*sessions]
        self._choice: Choice = "name"
        self._n_choosing = 0
        self._leaders: dict[datetime | None, str | None] = {}
        self._spendings: dict[str, Spending] = {}
        self._closed: dict[str, ArmSession] = {}
        """Closed sessions that this run or bill has read; some may be deleted before the next."""

    def _check(self) -> None:
        chosen = self.arms.arms
        if len({*chosen}) < 2 or "council" not in chosen or not {*chosen} <= {*ARMS}:
            raise InvalidParameter("arms", list(chosen), "council and at least one of best, self")
        numbers = Counter(task.number for task in self.tasks)
        if repeated := [number for number, times in numbers.items() if times > 1]:
            raise InvalidParameter("rows", repeated, "rows with different numbers")
        names = [member.name for member in self.council.members]
        written = {member.source: member.name for member in self.council.members if member.source}
        best = self.arms.best
        if best is not None and best not in names:
            if best not in written:
                raise UnknownName("member", best, names)
            self.arms = replace(self.arms, best=written[best])
        if any(task.texts for task in self.tasks):
            raise InvalidParameter("arms", list(chosen), "none for texts to be judged")
        procedure = self.council.procedure
        if not procedure.synthesis or procedure.json_schema is not None:
            expected = "a final answer in prose, to compare with the members' answers"
            raise InvalidParameter("the final answer of the council", None, expected)
        if procedure.mode == "verdict" and "self" in chosen:
            expected = "consensus or best with the arm self, whose answers have no verdict"
            raise InvalidParameter("mode", "verdict", expected)
        self._check_measure()
        seats = (*self.council.members, *self.council.jury, *self.council.chairmen)
        for judge in () if self.jury is None else self.jury.reviewers:
            if own := next((s for s in seats if s == judge or is_author(judge, s)), None):
                raise NoCouncil(
                    f"{judge.source or judge.name} has a seat in the council, as {own.name}, and "
                    "would judge its own work",
                    "have others judge the arms",
                )

    def _check_measure(self) -> None:
        """Check that an arm comparison has exactly one usable measure."""
        measure = self.arms.measure
        if (self.jury is None) == (measure == "jury"):
            expected = "a jury" if measure == "jury" else f"None: the measure is {measure}"
            raise InvalidParameter("jury", self.jury, expected)
        if measure == "references":
            check_references({task.number: task.reference for task in self.tasks})
        else:
            check_votes(self._votes, self.arms.arms)

    def bill(self) -> ArmBill:
        """Report the calls still to make and their cost.

        As long as the best member is unknown, the most expensive one counts.
        """
        self._closed.clear()
        plain = Batch(self.council, self.history, self.tasks, self.options)
        plain.names = self.names
        council = plain.bill()
        rest = self._plan_rest()
        plans = {
            part: [parts[part] for parts in rest.values() if part in parts]
            for part in (("self",) if self.jury is None else ("self", "jury"))
        }
        more = [plan for part in plans.values() for plan in part]
        calls = {name: sum(plan.calls for plan in part) for name, part in plans.items()}
        earlier = self._list_earlier()
        return ArmBill(
            rows=len(self.tasks),
            earlier=sum(not parts for parts in rest.values()),
            calls=council.calls + sum(calls.values()),
            expected_usd=sum_known([council.expected_usd, *(each.expected_usd for each in more)]),
            worst_usd=sum_known([council.worst_usd, *(each.worst_usd for each in more)]),
            spent_usd=council.spent_usd + fsum(each.most.usd for each in earlier),
            max_cost_usd=self.options.max_cost_usd,
            max_calls=self.options.max_calls,
            made_calls=council.made_calls + int(sum(each.most.calls for each in earlier)),
            **Spending.sum([council.spending, *(each.spending for each in earlier)])._asdict(),
            cheapest_usd=least_known([council.cheapest_usd, *(each.worst_usd for each in more)]),
            refused=council.refused,
            parts={"council": council.calls, **calls},
        )

    def _plan_rest(self) -> dict[int, dict[str, Plan]]:
        """Plan each row's needs by part; none if it cannot be planned."""
        rows = self._read_rows()
        choosing = self._choose([*rows.values()])
        waits = {row.task.number: parts for row, parts in self._find_open([*rows.values()])}
        councils = {"council": self.council}
        rest: dict[int, dict[str, Plan]] = {}
        for task, name in zip(self.tasks, self.names, strict=True):
            parts = rest[task.number] = {}
            needs = waits.get(task.number)
            if needs is None:
                stored = self._find(name)
                if not _is_open(stored):
                    continue  # it has no answer to compare
                needs = {"council": stored, **({} if task.number in choosing else self._controls)}
            for part, stored in needs.items():
                with suppress(InvalidParameter):  # `run` reports the problem of this row
                    if stored is not None and stored.interrupted is not None:
                        parts[part] = plan_rest(stored.interrupted)
                    elif part == "jury":
                        parts[part] = self._plan_judgment(task)
                    else:
                        asked = councils[part] = councils.get(part) or self._seat_dearest(task)
                        parts[part] = asked.plan(task.question or "", files=task.sources)
        return rest

    def _seat_dearest(self, task: BatchRow) -> Council:
        """Seat the best member's control, or the most expensive one's."""
        names = [self.arms.best] if self.arms.best else [m.name for m in self.council.members]

        def worst(control: Council) -> float:
            usd = control.plan(task.question or "").worst_usd
            return inf if usd is None else usd

        return max(map(self._control, names), key=worst)

    def _admit(self) -> list[BatchRow]:
        """Admit as many rows as the ceiling holds with all arms.

        Otherwise the council's answers could use up the money for their comparison.
        """
        max_usd, max_calls = self.options.max_cost_usd, self.options.max_calls
        if max_usd is max_calls is None:
            return [*self.tasks]
        left_usd = inf if max_usd is None else max_usd - self._allowance.spent
        left_calls = inf if max_calls is None else max_calls - self._allowance.calls
        admitted = []
        for task, parts in zip(self.tasks, self._plan_rest().values(), strict=True):
            usd = sum_known([plan.expected_usd for plan in parts.values()]) or 0.0
            calls = sum(plan.calls for plan in parts.values())
            if calls <= max(left_calls, 0) and (usd == 0.0 or usd <= left_usd):
                admitted.append(task)
                left_usd, left_calls = left_usd - usd, left_calls - calls
        return admitted

    def _plan_judgment(self, task: BatchRow) -> Plan:
        """Plan one row's judgment, before its texts are written."""
        assert self.jury is not None  # noqa: S101 - rows wait only for a jury
        authors = [replace(self.council.members[0], name=arm) for arm in self.arms.arms]
        whole = make_plan(
            authors,
            (),
            judging_procedure(self.jury.procedure, len(self.jury.reviewers)),
            task.question or "",
            jury=self.jury.reviewers,
            files=task.files,
        )
        return sum_lines([line for line in whole.lines if line.stage in ("review", "repair")])

    async def run(
        self,
        on_result: Callable[[ArmRowResult], None],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> ArmBatchReport:
        """Run every row not done yet; yield each once, after its judgment."""
        on_progress = on_progress or progress_listener(self.council)
        began = anyio.current_time()
        self._closed.clear()
        if has_ceiling(self.options):
            for session in await anyio.to_thread.run_sync(self._list_all):
                self._spendings[session.id] = session.spending
                await self._allowance.settle(session.id, session.most)
        results: list[ArmRowResult] = []

        def finish(result: ArmRowResult) -> None:
            results.append(replace(result, text=None, arms={}))  # a report needs no answers
            on_result(result)

        council: dict[int, RowResult] = {}
        admitted = await anyio.to_thread.run_sync(self._admit)
        first = await self._run_batch(
            "council",
            self.council,
            admitted,
            lambda result: council.update({result.row: result}),
            on_progress,
        )
        rows = await anyio.to_thread.run_sync(self._read_rows)
        for number, result in council.items():
            if number in rows:
                rows[number].results.append(result)
            else:  # it has no answer to compare
                finish(_extend(result))
        # All rows, not only the admitted: a lower ceiling must not change the best member.
        await anyio.to_thread.run_sync(self._choose, [*rows.values()])
        answered = [row for row in rows.values() if row.results]
        earlier = {*[*council][: first.earlier]}  # a batch yields earlier results first
        n_earlier = 0
        for row in answered:
            if row.chooses:
                n_earlier += row.task.number in earlier
                finish(_join(row))
        measured = [row for row in answered if not row.chooses]
        if self.jury is None:
            waits = await anyio.to_thread.run_sync(lambda: [*self._find_open(measured)])
            n_earlier += sum(row.task.number in earlier and not parts for row, parts in waits)
        controlled = await self._run_controls(measured, on_progress)
        n_earlier += await self._run_judgments(controlled, finish, on_progress)
        done = {result.row for result in results}
        ballots = await anyio.to_thread.run_sync(self._read_ballots, controlled)
        unjudged = [row for row in controlled if not row.is_alike and not ballots[row.task.number]]
        has_control = {row.task.number for row in controlled}
        unfinished = [row for row in measured if row.task.number not in done]
        for row in unfinished:
            stage = "jury" if row.task.number in has_control else "self"
            finish(_join(row, "degraded", NOTHING_LEFT[stage]))
        return ArmBatchReport(
            rows=len(self.tasks),
            earlier=n_earlier,
            statuses=count_in_order((each.status for each in results), STATUSES),
            decisions={},
            passed=None,
            **Spending.sum(self._spendings.values())._asdict(),
            calls=int(self._allowance.calls),
            seconds=anyio.current_time() - began,
            unaffordable=len(self.tasks) - len(admitted) + first.unaffordable,
            comparison=await anyio.to_thread.run_sync(self._compare, controlled, ballots),
            unanswered=len(council.keys() - rows.keys()),
            unfinished=len(unfinished),
            unjudged=sum(row.task.number in done for row in unjudged),
            measure=self.arms.measure,
            simulated=sum(each.simulated for each in results),
            missing=count_missing(results),
        )

    async def _run_batch(
        self,
        stage: str,
        council: Council,
        tasks: Sequence[BatchRow],
        on_result: Callable[[RowResult], None],
        on_progress: Callable[[Progress], None],
    ) -> BatchReport:
        """Run a batch under the common ceiling."""
        batch = self._make_batch(council, self.history, tasks, self.options)
        if council is self.council:
            names = dict(zip((task.number for task in self.tasks), self.names, strict=True))
            batch.names = [names[task.number] for task in tasks]
        report = await batch.run(on_result, lambda each: on_progress(replace(each, stage=stage)))
        self._spendings |= batch.spendings
        return report

    def _read_rows(self) -> dict[int, _Row]:
        """Read the rows that the council has answered, by number."""
        rows = {}
        for task, name in zip(self.tasks, self.names, strict=True):
            session = self._find(name)
            if session is not None and not _is_open(session) and session.text:
                rows[task.number] = _Row(
                    task, session, {"council": session.answer(None, session.text)}
                )
        return rows

    def _find(self, name: str) -> ArmSession | None:
        """Find a stored session; a closed one is read only once.

        None also for a damaged one, which the batch of its stage reports.
        """
        if name in self._closed:
            return self._closed[name]
        if not self.history.has_record(name):
            return None
        try:
            session = ArmSession.of(self.history.session(name))
        except HistoryError as error:
            if not error.is_damage:
                raise
            return None
        if session.interrupted is None:
            self._closed[name] = session
        return session

    def _list_all(self) -> list[ArmSession]:
        return [*filter(None, map(self._find, self.names)), *self._list_earlier()]

    def _list_earlier(self, rows: Sequence[_Row] | None = None) -> list[ArmSession]:
        """List earlier runs' controls and judgments, for any best member."""
        rows = [*self._read_rows().values()] if rows is None else rows
        everyone = [member.name for member in self.council.members]
        earlier: dict[str, ArmSession] = {}
        for name in everyone if self.arms.best is None else [self.arms.best]:
            chosen = [replace(row, answers={**row.answers}) for row in rows]
            for row in chosen:
                self._take_best(row, name)
            for _, *sessions in self._find_stored(chosen):
                earlier |= {session.id: session for session in sessions if session is not None}
        return [*earlier.values()]

    def _find_stored(
        self, rows: Sequence[_Row]
    ) -> list[tuple[_Row, ArmSession | None, ArmSession | None]]:
        """Find each row's control and judgment.

        The row takes its answer from the former.
        """
        controls: list[ArmSession | None] = [None] * len(rows)
        if "self" in self.arms.arms:
            for name in dict.fromkeys(row.best for row in rows):
                at = [number for number, row in enumerate(rows) if row.best == name]
                tasks = [rows[number].control_task for number in at]
                batch = Batch(self._control(name), self.history, tasks, self.options)
                for number, session in zip(at, batch.names, strict=True):
                    controls[number] = self._find(session)
        for row, control in zip(rows, controls, strict=True):
            if control is not None:
                row.take_control(control)
        if self.jury is None:
            return [(row, control, None) for row, control in zip(rows, controls, strict=True)]
        tasks = [row.judging_task for row in rows]
        names = Batch(self.jury, self.history, tasks, self.options).names
        return [*zip(rows, controls, map(self._find, names), strict=True)]

    def _find_open(
        self, rows: Sequence[_Row]
    ) -> Iterator[tuple[_Row, dict[str, ArmSession | None]]]:
        """Yield each row's open stages, with any interrupted session."""
        measured = [row for row in rows if not row.chooses]
        yield from ((row, {}) for row in rows if row.chooses)
        for row, control, judgment in self._find_stored(measured):
            waits: dict[str, ArmSession | None] = {}
            if "self" in self.arms.arms and _is_open(control):
                waits = {**self._controls, "self": control}
            elif self.jury is not None and not row.is_alike and _is_open(judgment):
                waits = {"jury": judgment}
            yield row, waits

    def _choose(self, rows: Sequence[_Row]) -> Collection[int]:
        """Choose the best member; return the tasks set apart for that."""
        name = self.arms.best
        choosing: frozenset[int] = frozenset()
        self._choice = "name"
        if name is None:
            self._choice = "history"
            name = self._find_leader(rows)
        if name is None:
            # By the question alone, so that every council has the same halves.
            apart = split_questions(session_names(self.tasks, CHOICE), name_questions(self.tasks))
            choosing = frozenset(self.tasks[at].number for at in apart)
            self._choice = "other questions" if choosing else "these questions"
            some = [row for row in rows if row.task.number in choosing or not choosing]
            name = self._choose_by(some, rows)
        for row in rows:
            row.chooses = row.task.number in choosing
            if not row.chooses:
                self._take_best(row, name)
        return choosing

    def _choose_by(self, rows: Sequence[_Row], everything: Sequence[_Row]) -> str:
        """Choose by these rows, as they were before the first comparison.

        So a resumed batch keeps the member whose controls are already paid for.
        """
        first = min((each.at for each in self._list_earlier(everything)), default=None)
        before = [row for row in rows if first is None or row.council.end <= first]
        names = [member.name for member in self.council.members]
        counted = [row for row in before or rows if row.council.shares]
        shares = [[row.council.shares.get(name, nan) for name in names] for row in counted]
        if self._choice == "other questions":
            self._n_choosing = len({*name_questions(row.task for row in counted)})
        return names[choose_best(np.array(shares).reshape(-1, len(names)))]

    def _find_leader(self, rows: Sequence[_Row]) -> str | None:
        """Find the member that leads the leaderboard of all sessions before these."""
        until = min((row.council.at for row in rows), default=None)
        if until not in self._leaders:
            self._leaders[until] = _best_before(self.history, self.council.members, until)
        return self._leaders[until]

    def _take_best(self, row: _Row, name: str) -> None:
        row.best = name
        if "best" in self.arms.arms and name in row.council.members:
            row.answers["best"] = row.council.members[name]

    async def _run_controls(
        self, rows: Sequence[_Row], on_progress: Callable[[Progress], None]
    ) -> list[_Row]:
        """Ask the best members by themselves; return the rows done."""
        if "self" not in self.arms.arms:
            return [*rows]
        results: dict[int, RowResult] = {}

        def take(result: RowResult) -> None:
            results[result.row] = replace(result, verdict=None)

        for name in dict.fromkeys(row.best for row in rows):
            tasks = [row.control_task for row in rows if row.best == name]
            async with self._control(name) as control:
                await self._run_batch("self", control, tasks, take, on_progress)
        done = [row for row in rows if row.task.number in results]
        for row in done:
            result = results[row.task.number]
            row.results.append(result)
            session = await anyio.to_thread.run_sync(self._find, result.session)
            if session is not None:
                row.take_control(session)
        return done

    def _control(self, name: str) -> Council:
        """Seat one member to match the council's calls.

        Its answers and reviews together are as many calls.
        """
        [member] = [each for each in self.council.members if each.name == name]
        n_calls = self.council.plan("?").calls
        seats: dict[str, Member] = {}
        for _ in range(min(max(2, n_calls // 2), MOST_TEXTS)):
            seat = replace(member, name=free_name(name, seats))
            seats[seat.name] = seat
        before = self.council.procedure
        procedure = replace(
            judging_procedure(replace(before, spend="all"), len(seats)),
            counting=replace(before.counting, weights={}, looks=()),
            debate_rounds=0,
            review_rounds=1,
            mirrored=False,
            pairs=None,
            self_review=False,
            enough=None,
            quorum=min(before.quorum, len(seats)),
        )
        return Council([*seats.values()], procedure=procedure)

    async def _run_judgments(
        self,
        rows: Sequence[_Row],
        finish: Callable[[ArmRowResult], None],
        on_progress: Callable[[Progress], None],
    ) -> int:
        """Have the jury judge the rows; return the number of finished ones."""
        rows_to_judge = [] if self.jury is None else rows
        waiting = {row.task.number: row for row in rows_to_judge if not row.is_alike}

        def take(result: RowResult) -> None:
            row = waiting[result.row]
            row.results.append(replace(result, verdict=None))  # only its status and cost are joined
            row.judgment = result.session if result.leaders else None  # None without an outcome
            finish(_join(row))

        for row in rows:
            if row.task.number not in waiting:
                finish(_join(row))
        if self.jury is None:
            return 0
        tasks = [row.judging_task for row in waiting.values()]
        report = await self._run_batch("jury", self.jury, tasks, take, on_progress)
        return report.earlier

    def _compare(
        self, rows: Sequence[_Row], ballots: Mapping[int, tuple[Ballot, ...]]
    ) -> ArmComparison | None:
        """Compare the arms over rows with a judgment, or one text."""
        questions = [
            ArmQuestion(
                {arm: each for arm, each in row.answers.items() if each.text is not None},
                row.same,
                ballots[row.task.number],
                row.task.category,
                *name_questions([row.task]),
            )
            for row in rows
            if row.is_alike or ballots[row.task.number]
        ]
        try:
            return compare_arms(
                questions,
                (self.jury or self.council).procedure.counting,
                margin=self.arms.margin,
                choice=self._choice,
                choosing=self._n_choosing,
                measure=self.arms.measure,
            )
        except NothingToCount:
            return None

    def _read_ballots(self, rows: Sequence[_Row]) -> dict[int, tuple[Ballot, ...]]:
        return {row.task.number: self._ballots(row) for row in rows}

    def _ballots(self, row: _Row) -> tuple[Ballot, ...]:
        """Read the ballots or reference that measure a row's answers."""
        if self.arms.measure == "jury" and row.judgment is None:
            return ()
        stored = () if row.judgment is None else self.history.ballots(row.judgment)
        votes = {} if row.is_alike else self._votes[row.task.number]
        reference = None if row.is_alike else row.task.reference
        own = measure_ballots(self.arms.measure, row.answer_texts, reference, votes)
        return (*stored, *own)


def _is_open(session: ArmSession | None) -> bool:
    return session is None or session.interrupted is not None


def _best_before(history: History, members: Sequence[Member], until: datetime | None) -> str | None:
    """Return the leader of all earlier sessions, if they rank one."""
    try:
        board = leaderboard(history, Terms(window=Window(until=until)))
    except NothingToCount:
        return None
    names = {model_of(make_seat(member)): member.name for member in reversed(members)}
    ranked = [line.model for line in board.lines if not line.provisional]
    return next((names[model] for model in ranked if model in names), None)


def _extend(result: RowResult, **more: Any) -> ArmRowResult:
    own = {each.name: getattr(result, each.name) for each in fields(RowResult)}
    return ArmRowResult(**{**own, **more})


def _join(row: _Row, status: Status = "complete", *missing: str) -> ArmRowResult:
    """Merge one row's results into the council's, with the worst status."""
    return _extend(
        row.results[0],
        status=max((status, *(each.status for each in row.results)), key=STATUSES.index),
        missing=(*(lack for each in row.results for lack in each.missing), *missing),
        **Spending.sum(each.spending for each in row.results)._asdict(),
        error=next((each.error for each in row.results if each.error is not None), None),
        arms={arm: row.answers[arm] for arm in ARMS if arm in row.answers},
        judgment=row.judgment,
        chooses=row.chooses,
        simulated=any(each.simulated for each in row.results),
    )
