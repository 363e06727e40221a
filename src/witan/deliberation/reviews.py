"""Stage two: reviewers judge the answers, each on its own sheet.

Every seat ends in a ballot or a reason. No reviewer sees its own answer as a candidate, unless
self-preference is measured.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

import anyio

from witan.core.attributes import cached_property
from witan.core.ballot import Ballot
from witan.core.blinding import Sheet, draw_pair_sheets, draw_sheets, mirror
from witan.core.display import list_some
from witan.core.early_stopping import find_decided_leader
from witan.core.gate import Gate
from witan.core.outcome import Outcome, join_names
from witan.core.rules import RULES
from witan.core.scale import HOLISTIC
from witan.core.settings import Settings
from witan.deliberation import events as e
from witan.deliberation.ballots import (
    MergedBallot,
    Review,
    as_comparison,
    merge,
    rank_comparisons,
    read_review,
)
from witan.deliberation.calls import CallFailure, CallResult, SessionContext
from witan.deliberation.money import sum_known, worst_usd
from witan.deliberation.planner import Look, look_at, order_sheets
from witan.deliberation.ports import Call, Member, Message
from witan.deliberation.prompts import neutralize, repair_messages, review_messages, review_schema
from witan.deliberation.session import MIRRORED_SHEETS, REVIEW_SHEETS
from witan.deliberation.texts import DuplicateGroups
from witan.errors import InvalidBallot, UnsuitableBallots

SETTLE_SECONDS = 0.03
"""Seconds within which ballots that arrive are counted together."""


class RunningCount:
    """Count of a session's ballots as they come in."""

    def __init__(
        self,
        context: SessionContext,
        roster: Sequence[str],
        failures: Mapping[str, tuple[str, ...]],
        duplicates: DuplicateGroups | None = None,
    ) -> None:
        self.context = context
        self.roster = tuple(roster)
        self.ballots: dict[str, Ballot] = {}
        self.comparisons: dict[str, tuple[Ballot, ...]] = {}
        self.reasons: dict[str, str] = {}
        outcomes = [x.outcome for x in context.earlier_events if isinstance(x, e.OutcomeChanged)]
        self.outcome: Outcome | None = outcomes[-1] if outcomes else None
        self.problem: str | None = None
        self.leader: str | None = None
        self._outstanding_reviewers: dict[str, str | None] = {}
        self._reviewers_without_bound: set[str] = set()
        self._is_settling = False
        self._is_last_round = True
        self.n_second = 0
        self.uncalled_reviewers: set[str] = set()
        self._failures = failures
        self.duplicates = DuplicateGroups() if duplicates is None else duplicates

    @cached_property
    def settings(self) -> Settings:
        """Settings of the count, the safety gate included."""
        if len(self.roster) == 1:  # a single candidate has no lead to lose
            return self.settings_so_far
        return self._with_gate(self.context.procedure.counting)

    @cached_property
    def settings_so_far(self) -> Settings:
        """The settings before the last ballot, without the test of the lead."""
        return self._with_gate(replace(self.context.procedure.counting, flips=False))

    def _with_gate(self, settings: Settings) -> Settings:
        if not self._failures:
            return settings
        gate = Gate(self._failures, self.context.procedure.safety_cap)
        return replace(settings, gates={self.context.opening.session: gate})

    def await_ballots(self, reviewers: Sequence[str], *, is_last_round: bool) -> None:
        """Expect a ballot or abstention from each; only the last round decides.

        The ballot of a reviewer recused from several candidates has no known bound.
        """
        candidates_by_author = self.context.authorship.candidates_by_author
        own_candidates = {
            name: [
                c
                for c in self.duplicates.with_duplicates(candidates_by_author[name])
                if c in self.roster
            ]
            for name in reviewers
        }
        self._outstanding_reviewers = {
            name: candidates[0] if candidates else None
            for name, candidates in own_candidates.items()
        }
        self._reviewers_without_bound = {
            name for name, candidates in own_candidates.items() if len(candidates) > 1
        }
        self._complete = anyio.Event()
        self._is_last_round = is_last_round
        self.leader = None

    @property
    def outstanding_reviewers(self) -> tuple[str, ...]:
        """Reviewers without ballot or abstention so far."""
        return tuple(self._outstanding_reviewers)

    async def take(self, reviewer: str, ballot: Ballot | None) -> bool:
        """Take a ballot or an abstention; return True once decided."""
        self._outstanding_reviewers.pop(reviewer, None)
        if ballot is not None:
            self.ballots[reviewer] = ballot
        if not self._outstanding_reviewers:
            self._complete.set()
        if self._is_settling:
            return False
        if ballot is not None:
            await self._settle()
        if not self._outstanding_reviewers:
            return False
        if ballot is not None:
            await self._count(self.settings_so_far, final=False)
        return self._is_decided()

    async def _settle(self) -> None:
        """Wait a moment for near-simultaneous ballots."""
        self._is_settling = True
        try:
            with anyio.move_on_after(SETTLE_SECONDS):
                await self._complete.wait()
        finally:
            self._is_settling = False

    async def look(self, n_planned: int) -> Look:
        """Count the ballots so far; check whether they settle the question."""
        await self._count(self.settings_so_far, final=False)
        outcome = None if self.problem else self.outcome
        judging, ballots = self.context.opening.judging, self._in_seat_order()
        growth = n_planned / max(self.n_looked_at, 1)
        return look_at(ballots, outcome, self.settings, judging, growth)

    @property
    def n_looked_at(self) -> int:
        """Sheets read: ballots, and second orders merged with them."""
        return len(self.ballots) + self.n_second

    async def finish(self) -> Outcome | None:
        """Count all ballots; return None below the quorum."""
        await self._count(self.settings, final=True)
        return self.outcome

    def _in_seat_order(self) -> list[Ballot]:
        """Return the ballot, or comparisons, of every called seat.

        Abstentions count in coverage only.
        """
        ballots: list[Ballot] = []
        for member in self.context.reviewers:
            name = member.name
            if name in self.comparisons:
                ballots += self.comparisons[name]
            elif name not in self.uncalled_reviewers:
                ballots.append(self.ballots.get(name) or self._abstention(name))
        return ballots

    def _abstention(self, name: str) -> Ballot:
        abstained = Ballot(
            name,
            session=self.context.opening.session,
            abstained=True,
            reason=self.reasons.get(name, "did not finish"),
            candidates=self.roster,
        )
        return self.context.authorship.sign(abstained)

    def _is_decided(self) -> bool:
        stops = self.context.procedure.spend == "until_decided" and not self.context.retries
        if not (self._is_last_round and stops) or not self._reviewers_without_bound.isdisjoint(
            self._outstanding_reviewers
        ):
            return False
        if len(self.ballots) < self.context.procedure.quorum:
            return False
        ballots_cast = [ballot for ballot in self._in_seat_order() if not ballot.abstained]
        self.leader = find_decided_leader(
            ballots_cast, self._outstanding_reviewers, self.settings, self.roster
        )
        return self.leader is not None

    async def _count(self, settings: Settings, *, final: bool) -> None:
        quorum = self.context.procedure.quorum
        if len(self.ballots) < quorum:
            self.problem = f"{len(self.ballots)} of the {quorum} ballots required"
            return
        try:
            outcome = await self.context.counts.count(
                self._in_seat_order(), settings, wait=final and len(self.roster) == 1
            )
        except UnsuitableBallots as error:
            self.problem = str(error)
            return
        if not outcome.leaders:
            silent = [f"{name} {why}" for name, why in outcome.abstentions.items()]
            reasons = f" ({'; '.join(list_some(silent, 3))})" if silent else ""
            self.problem = f"no ballot counts for any answer{reasons}"
            return
        if outcome.n_ballots < quorum:
            without = ", ".join(outcome.without_effect)
            self.problem = (
                f"{outcome.n_ballots} of the {quorum} ballots required count by {outcome.rule}: "
                f"{without} {RULES[outcome.rule].why_ignored}"
            )
            return
        self.problem = None
        if outcome != self.outcome:
            self.outcome = outcome
            counted_reviewers = tuple(
                m.name for m in self.context.reviewers if m.name in self.ballots
            )
            self.context.recorder.emit(e.OutcomeChanged, outcome=outcome, counted=counted_reviewers)


NOT_AWAITED = "was cancelled: the leader could no longer change"

ONE_OTHER_ANSWER = "has nothing to compare: there is one answer besides its own"
OWN_PAIRS_ALONE = "compared its own answer alone, which does not count"

AUTHOR = "has nothing to judge: it wrote every answer"

ONLY_OWN_ANSWERS = "has nothing to judge: the other answers are the same as its own"

IDLE = (ONE_OTHER_ANSWER, AUTHOR, ONLY_OWN_ANSWERS)
"""Reasons not to ask a reviewer at all, as stored sessions spell them."""

SheetCalls = Sequence[tuple[Sheet, Callable[[], Call]]]
"""One or two sheets that a reviewer sees, with what writes the call for each."""


@dataclass(frozen=True, slots=True)
class _SheetResult:
    """The result of one sheet: a review, or the reason for none."""

    review: Review | None
    reason: str
    replies: tuple[str, ...]
    over_budget: bool = False
    notes: tuple[str, ...] = ()
    misconfigured: bool = False


async def review(context: SessionContext, answers: Mapping[str, str], count: RunningCount) -> None:
    """Have members or a jury review the answers, round by round.

    `answers` are masked: nothing in them reveals their author.
    """
    for number in range(1, context.procedure.review_rounds + 1):
        peers = dict(count.ballots) if number > 1 else {}
        await _Round(context, number, answers, count, peers).run()


def _notes(results: Sequence[_SheetResult]) -> Iterator[str]:
    """Collect notes on dropped parts of replies and options of calls."""
    for result in results:
        yield from result.notes
        if result.review is not None:
            yield from result.review.notes


class _Round:
    """One round of reviews, all reviewers at once."""

    def __init__(
        self,
        context: SessionContext,
        number: int,
        answers: Mapping[str, str],
        count: RunningCount,
        peers: Mapping[str, Ballot],
    ) -> None:
        self.context, self.procedure = context, context.procedure
        self.number = number
        self.answers = answers
        self.count = count
        self.peers = peers
        self.duplicates = count.duplicates
        self.settled_seats: set[str] = set()
        opening = context.opening
        self.question = neutralize(opening.question)  # once, not for every sheet
        self.files = {name: neutralize(text) for name, text in opening.files.items()}
        self.recorded_sheets: set[Sheet] = set()
        self.ballot_events: dict[str, e.BallotCast] = {}
        self.second: set[str] = set()
        self.rubric = self.procedure.graded_rubric
        self.results: dict[str, dict[int, _SheetResult]] = {}

    async def run(self) -> None:
        """Hand out the sheets and collect the ballots."""
        jury = bool(self.context.opening.jury)
        reviewers = [m for m in self.context.reviewers if jury or m.name in self.answers]
        self._restore_progress()
        reviewers_to_call = [
            member for member in reviewers if member.name not in self.settled_seats
        ]
        is_last = self.number == self.procedure.review_rounds
        self.count.await_ballots(
            [member.name for member in reviewers_to_call], is_last_round=is_last
        )
        if self._is_over():
            self._excuse_cancelled(reviewers_to_call)
            return
        sheets = self._draw_sheets([member.name for member in reviewers])
        if self.procedure.spend == "adaptive":
            await self._spend_adaptively(reviewers, sheets)
            return
        for member in reviewers_to_call:
            for turn, sheet in enumerate(sheets[member.name]):
                self._record_sheet(sheet, turn)
        await self._call([(member, sheets[member.name]) for member in reviewers_to_call])

    async def _call(self, wave: Sequence[tuple[Member, Sequence[Sheet]]]) -> None:
        """Call reviewers at once, each for its sheets, until time runs out."""
        async with anyio.create_task_group() as group:
            self.scope = group.cancel_scope
            self.scope.deadline = anyio.current_time() + self.context.seconds_left()
            for member, sheets in wave:
                # Recorded before it runs, as a scheduler may start tasks in any order.
                pairs = self._calls(member, sheets)
                worst = [worst_usd(member, write) for _, write in pairs]
                self.context.recorder.emit(
                    e.ReviewStarted, seat=member.name, round=self.number, worst_usd=sum_known(worst)
                )
                group.start_soon(self._seat, member, pairs, name=f"review:{member.name}")
        for member, _ in wave:
            if member.name not in self.settled_seats:
                self._give_up(member)

    async def _spend_adaptively(
        self, reviewers: Sequence[Member], sheets: Mapping[str, tuple[Sheet, ...]]
    ) -> None:
        """Call the fewest reviewers, then others while too close to call."""
        looks = self.procedure.counting.looks
        n_orders = max(map(len, sheets.values()), default=1)
        queue = [
            (m, turn)
            for m, turn in order_sheets(reviewers, self.count.settings, n_orders)
            if m.name not in (self.settled_seats, self.second)[turn]
        ]
        retried_seats = self.context.opening.retried
        queue.sort(key=lambda unit: unit[0].name not in retried_seats)
        n_wanted = sum(member.name in retried_seats for member, turn in queue if not turn)
        while queue:
            n_sheets = self.count.n_looked_at
            self.count.uncalled_reviewers = {m.name for m, turn in queue if not turn}
            if n_sheets in looks and not n_wanted:
                look = await self.count.look(n_sheets + len(queue))
                if look.ends:
                    self._end(look)
                    return
            target = next((n for n in looks if n > n_sheets), n_sheets + len(queue))
            size = max(target - n_sheets, n_wanted)
            # A seat's second order is merged with its first, so it comes later.
            _, sheets_of_turn = next(groupby(queue, key=itemgetter(1)))
            wave = [*sheets_of_turn][:size]
            await self._call_wave(wave, sheets)
            n_wanted = 0
            failed_reviewers = self.count.reasons.keys() - self.count.ballots.keys()
            queue = [
                (member, turn)
                for member, turn in queue
                if (member, turn) not in wave and not (turn and member.name in failed_reviewers)
            ]

    async def _call_wave(
        self, wave: Sequence[tuple[Member, int]], sheets: Mapping[str, tuple[Sheet, ...]]
    ) -> None:
        """Call some reviewers, each for one order of its sheet."""
        for member, turn in wave:
            self._record_sheet(sheets[member.name][turn], turn)
        names = [member.name for member, _ in wave]
        self.second |= {member.name for member, turn in wave if turn}
        self.settled_seats -= {*names}
        self.count.uncalled_reviewers -= {*names}
        self.count.await_ballots(names, is_last_round=False)
        await self._call([(m, sheets[m.name][turn : turn + 1]) for m, turn in wave])

    def _end(self, look: Look) -> None:
        """Record that no more reviewers are needed."""
        self.context.recorder.emit(
            e.Decided,
            leader=look.leader,
            cancelled=tuple(
                m.name for m in self.context.reviewers if m.name in self.count.uncalled_reviewers
            ),
            reason="settled" if look.is_settled else "hopeless",
            p_settled=None if look.is_settled else look.p_settled,
        )

    def _is_over(self) -> bool:
        """Return true if the interrupted session was beyond this round."""
        return any(
            isinstance(event, e.SynthesisStarted | e.Decided)
            or (isinstance(event, e.SheetDrawn) and event.round > self.number)
            for event in self.context.earlier_events
        )

    def _excuse_cancelled(self, members: Sequence[Member]) -> None:
        """Record the reviewers that a decision cancelled as not awaited."""
        for event in self.context.earlier_events:
            if isinstance(event, e.Decided) and event.reason != "certain":
                self.count.uncalled_reviewers = set(event.cancelled)
            elif isinstance(event, e.Decided):
                for member in members:
                    if member.name in event.cancelled and member.name not in self.count.reasons:
                        self._abstain(member, NOT_AWAITED, is_awaited=False)

    def _draw_sheets(self, reviewers: Sequence[str]) -> Mapping[str, tuple[Sheet, ...]]:
        """Draw a sheet per reviewer, two in opposite orders, or pairs.

        They depend only on seed and answers, so a resumed session draws the same again.
        """
        context = self.context
        shows_own = self.procedure.self_review and not context.opening.jury
        candidates_by_author = {
            name: self.duplicates.with_duplicates(each)
            for name, each in context.authorship.candidates_by_author.items()
        }
        candidates = self.duplicates.representatives(self.answers)
        seed, number = context.opening.seed, self.number
        drawing = (seed, REVIEW_SHEETS, number)
        hidden = {} if shows_own else candidates_by_author
        most = self.procedure.pairs
        if most is not None:
            return draw_pair_sheets(reviewers, candidates, drawing, most, hidden_candidates=hidden)
        sheets = draw_sheets(reviewers, candidates, drawing, hidden_candidates=hidden)
        if not self.procedure.mirrored:
            return {name: (sheet,) for name, sheet in sheets.items()}
        return {
            name: (sheet, mirror(sheet, (seed, MIRRORED_SHEETS, number, seat)))
            for seat, (name, sheet) in enumerate(sheets.items())
        }

    def _record_sheet(self, sheet: Sheet, turn: int) -> None:
        """Record a sheet unless the interrupted session had recorded it."""
        if sheet not in self.recorded_sheets:
            self.context.recorder.emit(
                e.SheetDrawn, round=self.number, sheet=sheet, mirrored=turn % 2 == 1
            )

    def _restore_progress(self) -> None:
        """Restore the results of the interrupted session."""
        for event in self.context.earlier_events:
            match event:
                case e.SheetDrawn() if event.round == self.number:
                    self.recorded_sheets.add(event.sheet)
                case e.BallotCast() if event.round == self.number:
                    self.count.ballots[event.seat] = event.ballot
                    if event.comparisons:
                        self.count.comparisons[event.seat] = event.comparisons
                    if event.seat in self.ballot_events and self.procedure.spend == "adaptive":
                        self.second.add(event.seat)
                        self.count.n_second += event.lost is None
                    self.ballot_events[event.seat] = event
                    self.settled_seats.add(event.seat)
                case e.BallotAbstained() if event.round == self.number:
                    self.count.reasons[event.seat] = event.reason
                    if event.seq <= self.context.final:
                        self.settled_seats.add(event.seat)

    async def _seat(self, member: Member, pairs: SheetCalls) -> None:
        if not pairs:
            results = [_SheetResult(None, self._explain_idle(member), ())]
        elif len(pairs) == 1:
            is_mirrored = member.name in self.second
            results = [await self._ask(member, *pairs[0], is_mirrored=is_mirrored)]
        else:
            results = await self._ask_all(member, pairs)
        ballot = self._record_result(member, results)
        if await self.count.take(member.name, ballot):
            self._stop_waiting()

    async def _ask_all(self, member: Member, pairs: SheetCalls) -> list[_SheetResult]:
        """Have all of the reviewer's sheets read at once."""
        results = self.results[member.name] = {}

        async def one(turn: int, sheet: Sheet, write: Callable[[], Call]) -> None:
            results[turn] = await self._ask(member, sheet, write, is_mirrored=turn % 2 == 1)

        async with anyio.create_task_group() as group:
            for turn, (sheet, write) in enumerate(pairs):
                group.start_soon(one, turn, sheet, write)
        return [results[turn] for turn in sorted(results)]

    def _calls(self, member: Member, sheets: Sequence[Sheet]) -> SheetCalls:
        """Plan one call per sheet with anything to compare."""
        least = 1 if self.procedure.asks_grades else 2
        if not sheets or len(sheets[0].candidates) < least:
            return []
        return [(sheet, partial(self._write_call, member, sheet)) for sheet in sheets]

    def _write_call(self, member: Member, sheet: Sheet) -> Call:
        return self.context.call(
            "review",
            member,
            self._messages(member, sheet),
            review_schema(sheet, self.rubric, holistic=self.procedure.holistic),
        )

    def _explain_idle(self, member: Member) -> str:
        """Return the reason not to call a reviewer, if any."""
        own_candidates = set(self.context.authorship.candidates_by_author[member.name])
        if own_candidates >= self.answers.keys():
            return AUTHOR
        return (
            ONLY_OWN_ANSWERS
            if self.duplicates.groups
            and {*self.duplicates.with_duplicates(own_candidates)} >= self.answers.keys()
            else ONE_OTHER_ANSWER
        )

    async def _ask(
        self, member: Member, sheet: Sheet, write: Callable[[], Call], *, is_mirrored: bool
    ) -> _SheetResult:
        """Request one review, and one repair if it is incomplete."""
        result = await self.context.caller.write_and_call(member, "review", write)
        if not isinstance(result, CallResult):
            return _SheetResult(
                None, result.reason, (), result.over_budget, misconfigured=result.is_misconfigured
            )
        first = result.reply.text
        review, problem = self._read_reply(first, sheet)
        sheet_result = _SheetResult(review, problem, (first,), notes=result.reply.notes)
        if not problem:
            return sheet_result
        call = result.call
        repair = replace(
            call, stage="repair", messages=repair_messages(call.messages, result.text, problem)
        )
        self.context.recorder.emit(
            e.BallotRepaired,
            seat=member.name,
            round=self.number,
            mirrored=is_mirrored,
            problem=problem,
            reply=first,
            worst_usd=worst_usd(member, lambda: repair),
        )
        result = await self.context.caller.call(member, repair)
        return self._choose_review(sheet_result, result, sheet)

    def _choose_review(
        self, first_result: _SheetResult, result: CallResult | CallFailure, sheet: Sheet
    ) -> _SheetResult:
        """Choose the repair, the fuller first review, or neither."""
        first = first_result.review
        if not isinstance(result, CallResult):
            if first is not None:
                return replace(
                    first_result, notes=(*first_result.notes, f"no second review: {result.reason}")
                )
            reason = f"its review {first_result.reason}, and the repair failed: {result.reason}"
            return replace(first_result, reason=reason, over_budget=result.over_budget)
        second = result.reply.text
        review, remaining = self._read_reply(second, sheet)
        if review and (first is None or len(review.ballot.grades) >= len(first.ballot.grades)):
            return _SheetResult(review, "", (second,), notes=result.reply.notes)
        if first is not None:
            return first_result
        retry = (
            "even after a retry"
            if remaining == first_result.reason
            else f"and the repair {remaining}"
        )
        reason = f"its review {first_result.reason}, {retry}"
        return _SheetResult(None, reason, (*first_result.replies, second))

    def _messages(self, member: Member, sheet: Sheet) -> tuple[Message, ...]:
        context = self.context
        return review_messages(
            self.question,
            sheet,
            self.answers,
            self.rubric,
            holistic=self.procedure.holistic,
            conversation=context.opening.conversation,
            files=self.files,
            system=member.options.system,
            peers={name: b for name, b in self.peers.items() if name != member.name} or None,
            own_ballot=self.peers.get(member.name),
            weighs=self.procedure.weighed_rubric,
        )

    def _read_reply(self, reply: str, sheet: Sheet) -> tuple[Review | None, str]:
        """Read a reply; return its review and the problem to repair."""
        try:
            parsed_review = read_review(
                reply,
                sheet,
                rubric=self.rubric,
                holistic=self.procedure.holistic,
                session=self.context.opening.session,
                roster=tuple(self.answers),
            )
        except InvalidBallot as error:
            return None, error.problem
        ballot = self.context.authorship.sign(parsed_review.ballot)
        signed_review = Review(ballot, parsed_review.read_by, parsed_review.notes)
        return signed_review, self._list_missing_grades(ballot, sheet)

    def _list_missing_grades(self, ballot: Ballot, sheet: Sheet) -> str:
        """Name missing grades to repair; return "" if there are none.

        An answer left out counts as graded lowest.
        """
        graded = sum(name in ballot.grades for name in sheet.candidates)
        if not graded:
            are_needed = self.procedure.needs_grades
            return "ranks the answers without grading them" if are_needed else ""
        if self.procedure.asks_grades and graded < len(sheet.candidates):
            return f"grades {graded} of the {len(sheet.candidates)} answers on its sheet"
        missing = self._list_missing_criteria(ballot)
        return f"has no grades on {missing}, more than half of the rubric" if missing else ""

    def _list_missing_criteria(self, ballot: Ballot) -> str:
        """Name the criteria that an answer lacks for an overall grade."""
        if self.rubric is None:
            return ""
        cells = [cell for cell in ballot.grades.values() if isinstance(cell, Mapping)]
        missing = [self.rubric.missing_criteria(cell) for cell in cells if HOLISTIC not in cell]
        return join_names([*dict.fromkeys(chain.from_iterable(missing))])

    def _record_result(self, member: Member, results: Sequence[_SheetResult]) -> Ballot | None:
        """Record a seat's ballot, or the reason for none."""
        self.settled_seats.add(member.name)
        replies = tuple(reply for result in results for reply in result.replies)
        reviews = [result.review for result in results if result.review is not None]
        if member.name in self.second:
            return self._record_second(member, results[0])
        if not reviews:
            is_over_budget = any(result.over_budget for result in results)
            is_misconfigured = all(result.misconfigured for result in results)
            self._abstain(
                member,
                results[0].reason,
                replies,
                over_budget=is_over_budget,
                is_misconfigured=is_misconfigured,
            )
            return None
        own_candidates = self.context.authorship.candidates_by_author[member.name]
        comparisons: tuple[Ballot, ...] = ()
        if self.procedure.pairs is not None:
            comparisons = tuple(
                pair
                for each in reviews
                for pair in self.duplicates.expand_pair(as_comparison(each.ballot), own_candidates)
            )
            if not comparisons:
                self._abstain(member, OWN_PAIRS_ALONE, replies)
                return None
            self.count.comparisons[member.name] = comparisons
            merged_ballot = rank_comparisons(comparisons, self.answers)
        else:
            merged_ballot = self._merge(reviews, own_candidates)
        self.ballot_events[member.name] = self.context.recorder.emit(
            e.BallotCast,
            seat=member.name,
            round=self.number,
            ballot=merged_ballot.ballot,
            comparisons=comparisons,
            replies=replies,
            read_by="tolerant" if any(r.read_by == "tolerant" for r in reviews) else "schema",
            notes=tuple(dict.fromkeys(_notes(results))),
            flipped=merged_ballot.n_flipped,
            compared=merged_ballot.n_compared,
            lost=next((result.reason for result in results if result.review is None), None),
            spent=self.context.caller.collect_spent(member.name),
        )
        return merged_ballot.ballot

    def _merge(self, reviews: Sequence[Review], own_candidates: Sequence[str]) -> MergedBallot:
        merged_ballot = MergedBallot(reviews[0].ballot, 0, 0)
        if len(reviews) == 2:
            counting = self.procedure.counting.counting
            merged_ballot = merge(reviews[0].ballot, reviews[1].ballot, counting)
        expanded = self.duplicates.expand(merged_ballot.ballot, own_candidates)
        return MergedBallot(expanded, merged_ballot.n_flipped, merged_ballot.n_compared)

    def _record_second(self, member: Member, result: _SheetResult) -> Ballot:
        """Record a ballot again, merged with its other order if any."""
        first, review = self.ballot_events[member.name], result.review
        merged_ballot, read_by = MergedBallot(first.ballot, 0, 0), first.read_by
        if review is not None:
            own_candidates = self.context.authorship.candidates_by_author[member.name]
            second = self.duplicates.expand(review.ballot, own_candidates)
            merged_ballot = merge(first.ballot, second, self.procedure.counting.counting)
            read_by = review.read_by if first.read_by == "schema" else first.read_by
            self.count.n_second += 1
        self.context.recorder.emit(
            e.BallotCast,
            seat=member.name,
            round=self.number,
            ballot=merged_ballot.ballot,
            replies=(*first.replies, *result.replies),
            read_by=read_by,
            notes=tuple(dict.fromkeys((*first.notes, *_notes([result])))),
            flipped=merged_ballot.n_flipped,
            compared=merged_ballot.n_compared,
            lost=result.reason if review is None else None,
            spent=self.context.caller.collect_spent(member.name),
        )
        return merged_ballot.ballot

    def _abstain(
        self,
        member: Member,
        reason: str,
        replies: tuple[str, ...] = (),
        *,
        over_budget: bool = False,
        is_awaited: bool = True,
        is_misconfigured: bool = False,
    ) -> None:
        self.count.reasons[member.name] = reason
        self.context.recorder.emit(
            e.BallotAbstained,
            seat=member.name,
            round=self.number,
            reason=reason,
            replies=replies,
            over_budget=over_budget,
            awaited=is_awaited,
            misconfigured=is_misconfigured,
            spent=self.context.caller.collect_spent(member.name),
        )

    def _stop_waiting(self) -> None:
        """Cancel outstanding reviewers: the leader cannot change."""
        assert self.count.leader is not None  # noqa: S101 - a decision needs a leader
        self.context.recorder.emit(
            e.Decided, leader=self.count.leader, cancelled=self.count.outstanding_reviewers
        )
        self.scope.cancel()

    def _give_up(self, member: Member) -> None:
        results = [*self.results.get(member.name, {}).values()]
        if self.procedure.pairs is not None and any(each.review for each in results):
            late = _SheetResult(None, self.context.out_of_time(), ())
            ballot = self._record_result(member, [*results, late])
            if ballot is not None:
                self.count.ballots[member.name] = ballot
        elif member.name in self.second:
            self._record_second(member, _SheetResult(None, self.context.out_of_time(), ()))
        elif self.count.leader is None:
            self._abstain(member, self.context.out_of_time())
        else:
            self._abstain(member, NOT_AWAITED, is_awaited=False)
