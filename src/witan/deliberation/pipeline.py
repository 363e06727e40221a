"""Run a question through all stages; list what the session lacks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio

from witan.core.blinding import draw_nonce, draw_sheets, label_map
from witan.core.outcome import Outcome, join_names
from witan.core.rules import RULES
from witan.deliberation import events as e
from witan.deliberation.call_headers import within_session
from witan.deliberation.calls import CallFailure, CallResult, SessionContext
from witan.deliberation.money import worst_usd
from witan.deliberation.ports import Call, Expense, Member, Message
from witan.deliberation.prompts import (
    REPAIR_STRUCTURE,
    answer_messages,
    debate_messages,
    longest_structure_repair,
    neutralize,
    read_verdict,
    repair_messages,
    synthesis_messages,
)
from witan.deliberation.replies import read_structure
from witan.deliberation.retries import restore_reserve
from witan.deliberation.reviews import RunningCount, review
from witan.deliberation.session import (
    ANSWER_FENCES,
    DEBATE_SHEETS,
    SYNTHESIS_LABELS,
    Session,
    SessionFold,
    elapsed_seconds,
)
from witan.deliberation.texts import DuplicateGroups, are_identical, group_duplicates, mask
from witan.errors import ModelError

PromptBuilder = Callable[[Member], tuple[Message, ...]]


async def answer(context: SessionContext) -> dict[str, str]:
    """Collect all members' answers by seat, debate included, in seat order.

    Stored answers of an earlier session are used without calls.
    """
    if context.opening.answers:
        return {each.seat: each.text for each in context.opening.answers}
    verdict = context.procedure.mode == "verdict"
    # Only files are fenced here.
    nonce = draw_nonce((context.opening.seed, ANSWER_FENCES)) if context.opening.files else ""

    def first_prompt(member: Member) -> tuple[Message, ...]:
        return answer_messages(
            context.opening.question,
            conversation=context.opening.conversation,
            files=context.opening.files,
            system=member.options.system,
            verdict=verdict,
            nonce=nonce,
        )

    most = len(context.members)
    enough = most if context.retries else context.procedure.enough or most
    answers = await _Round(context, 1, enough).run(context.members, first_prompt)
    for number in range(2, context.procedure.debate_rounds + 2):
        if len(answers) < 2:
            break
        answers |= await _debate(context, number, answers)
    return answers


async def _debate(
    context: SessionContext, number: int, answers: Mapping[str, str]
) -> dict[str, str]:
    """Run a round of revisions in view of the others' answers."""
    present = [member for member in context.members if member.name in answers]
    seats = [member.name for member in present]
    names = context.names
    masked = {
        seat: neutralize(mask(answers[seat], context.opening.question, names)) for seat in seats
    }
    sheets = draw_sheets(
        seats,
        seats,
        (context.opening.seed, DEBATE_SHEETS, number),
        hidden_candidates={seat: seat for seat in seats},
    )

    def debate_prompt(member: Member) -> tuple[Message, ...]:
        return debate_messages(
            context.opening.question,
            conversation=context.opening.conversation,
            files=context.opening.files,
            system=member.options.system,
            own_answer=answers[member.name],
            sheet=sheets[member.name],
            answers=masked,
            verdict=context.procedure.mode == "verdict",
        )

    return await _Round(context, number, len(present)).run(present, debate_prompt)


def gate(context: SessionContext, answers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Run the safety gate on every answer; return flags by failed seat.

    Verdicts of an earlier session stay and are not recorded again.
    """
    flags_by_seat = {each.seat: each.flags for each in context.opening.answers if each.flags}
    if not context.procedure.safety:
        return flags_by_seat
    gated_seats = {each.seat for each in context.opening.answers if each.flags is not None}
    recorded = {event.seat for event in context.earlier_events if isinstance(event, e.GateVerdict)}
    for seat, text in answers.items():
        if seat in gated_seats:
            continue
        verdict = context.check(text)
        if seat not in recorded:
            context.recorder.emit(e.GateVerdict, seat=seat, flags=verdict.flags)
        if not verdict.is_safe:
            flags_by_seat[seat] = verdict.flags
    return flags_by_seat


class _Round:
    """One round of answers, until all are done or time runs out.

    Once enough members have answered, the others get the grace period.
    """

    def __init__(self, context: SessionContext, number: int, enough: int) -> None:
        self.context = context
        self.number = number
        self.enough = enough
        self.answers = {
            event.seat: event.text
            for event in context.earlier_events
            if isinstance(event, e.AnswerDone) and event.round == number
        }
        self.failed_seats = {
            event.seat
            for event in context.earlier_events
            if isinstance(event, e.AnswerFailed)
            and event.round == number
            and event.seq <= context.final
        }

    async def run(self, members: Sequence[Member], build_prompt: PromptBuilder) -> dict[str, str]:
        """Call members without an answer; record an end for every seat."""
        has_begun_reviews = any(
            isinstance(event, e.SheetDrawn) for event in self.context.earlier_events
        )
        seats_done = {*self.answers, *self.failed_seats}
        members_to_call = [m for m in members if m.name not in seats_done and not has_begun_reviews]
        async with anyio.create_task_group() as group:
            self.scope = group.cancel_scope
            stage_end = anyio.current_time() + self.context.seconds_left()
            self.scope.deadline = stage_end
            self._begin_grace()
            for member in members_to_call:
                # Recorded before it runs, as a scheduler may start tasks in any order.
                write = partial(self._write_call, member, build_prompt)
                self.context.recorder.emit(
                    e.AnswerStarted,
                    seat=member.name,
                    round=self.number,
                    worst_usd=worst_usd(member, write),
                )
                group.start_soon(self._seat, member, write, name=f"answer:{member.name}")
        grace_ran_out = self.scope.deadline < stage_end
        for member in members_to_call:
            if member.name not in self.answers and member.name not in self.failed_seats:
                self._give_up(member, grace_ran_out)
        return {m.name: self.answers[m.name] for m in members if m.name in self.answers}

    def _write_call(self, member: Member, build_prompt: PromptBuilder) -> Call:
        return self.context.call("answer", member, build_prompt(member))

    async def _seat(self, member: Member, write: Callable[[], Call]) -> None:
        context, recorder = self.context, self.context.recorder

        def on_text(text: str) -> None:
            recorder.emit(e.AnswerDelta, seat=member.name, round=self.number, text=text)

        result = await context.caller.write_and_call(member, "answer", write, on_text)
        if not isinstance(result, CallResult):
            self.failed_seats.add(member.name)
            self._fail(
                member,
                result.reason,
                over_budget=result.over_budget,
                misconfigured=result.is_misconfigured,
            )
            return
        self.answers[member.name] = result.text
        recorder.emit(
            e.AnswerDone,
            seat=member.name,
            round=self.number,
            text=result.text,
            cut=result.reply.cut,
            notes=result.reply.notes,
            reasoning=result.reasoning,
            spent=context.caller.collect_spent(member.name),
        )
        self._begin_grace()

    def _begin_grace(self) -> None:
        if len(self.answers) >= self.enough:
            grace = anyio.current_time() + self.context.limits.grace_seconds
            self.scope.deadline = min(self.scope.deadline, grace)

    def _give_up(self, member: Member, grace_ran_out: bool) -> None:
        reason = self.context.out_of_time()
        if grace_ran_out:
            waited = self.context.limits.grace_seconds
            reason = f"did not finish within {waited:g} s of the first {self.enough} answers"
        self._fail(member, reason)

    def _fail(self, member: Member, reason: str, **flags: bool) -> None:
        self.context.recorder.emit(
            e.AnswerFailed,
            seat=member.name,
            round=self.number,
            reason=reason,
            spent=self.context.caller.collect_spent(member.name),
            **flags,
        )


async def synthesize(
    context: SessionContext,
    answers: Mapping[str, str],
    masked_answers: Mapping[str, str],
    outcome: Outcome | None,
) -> None:
    """Have a chairman write the final answer, else take the best answer.

    `answers` are those that may be used, without those that failed the safety gate.
    `masked_answers` are all answers as a chairman may see them.
    """
    if any(isinstance(event, e.SynthesisDone) for event in context.earlier_events):
        return
    await _Synthesis(context, answers, masked_answers, outcome).run()


class _Synthesis:
    """Calls of one chairman after another, until one writes the final answer."""

    def __init__(
        self,
        context: SessionContext,
        answers: Mapping[str, str],
        masked_answers: Mapping[str, str],
        outcome: Outcome | None,
    ) -> None:
        self.context = context
        self.answers = answers
        self.masked_answers = masked_answers
        self.outcome = outcome
        self.sheet = label_map("chairman", list(answers), (context.opening.seed, SYNTHESIS_LABELS))
        self.labels = dict(zip(self.sheet.labels, self.sheet.candidates, strict=True))

    async def run(self) -> None:
        """Try each chairman; if all fail, take the best answer."""
        mode = self.context.procedure.mode
        # A common answer needs no chairman to merge it, but a verdict needs one to approve it.
        prose = mode != "verdict" and self.context.procedure.json_schema is None
        agreed = prose and self.outcome is None and are_identical(self.answers)
        chain = [] if agreed or mode == "best" else self._chain()
        failed_chairman = None
        with anyio.move_on_after(self.context.seconds_left()):
            for place, failed_chairman in enumerate(chain):
                following = chain[place + 1].name if place + 1 < len(chain) else None
                if await self._ask_chairman(failed_chairman, following):
                    return
            failed_chairman = None
        if failed_chairman is not None:
            self.context.recorder.emit(
                e.SynthesisFailedOver,
                chairman=failed_chairman.name,
                reason=self.context.out_of_time(),
                next=None,
                spent=self.context.caller.collect_spent(failed_chairman.name),
            )
        if self.context.procedure.json_schema is None:  # prose would not satisfy a schema
            self._take_best_answer()

    def _chain(self) -> list[Member]:
        """Return the chairmen, then the best-ranked member, without earlier failures."""
        chain = list(self.context.chairmen)
        best = self._find_best_author()
        if best.name not in {chairman.name for chairman in chain}:
            chain.append(best)
        failed_chairmen = {
            event.chairman
            for event in self.context.earlier_events
            if isinstance(event, e.SynthesisFailedOver) and event.seq <= self.context.final
        }
        return [chairman for chairman in chain if chairman.name not in failed_chairmen]

    def _find_best_author(self) -> Member:
        """Return the author of the best answer, else the first member.

        Jurors may have written some of the answers of an earlier session.
        """
        context = self.context
        candidates_by_author = {member.name: (member.name,) for member in context.members}
        authors_by_candidate = candidates_by_author or context.authorship.candidates_by_author
        authors = context.members or context.reviewers
        for candidate in self._ranked_names():
            for author in authors:
                if candidate in authors_by_candidate[author.name]:
                    return author
        return authors[0]

    def _ranked_names(self) -> Sequence[str]:
        if self.outcome is None:
            return tuple(self.answers)
        lines = self.outcome.standings
        return [line.candidate for line in lines if line.candidate in self.answers]

    async def _ask_chairman(self, chairman: Member, previous: str | None) -> bool:
        """Call one chairman; return True if it wrote the final answer."""
        context, recorder = self.context, self.context.recorder
        mode = context.procedure.mode
        schema = context.procedure.json_schema
        dearest = self._write_call if schema is None else self._write_longest_repair
        worst = worst_usd(chairman, partial(dearest, chairman))
        recorder.emit(e.SynthesisStarted, chairman=chairman.name, mode=mode, worst_usd=worst)
        write = partial(self._write_call, chairman)

        def on_text(text: str) -> None:
            if schema is None:  # JSON is shown once it is complete and satisfies the schema
                recorder.emit(e.SynthesisDelta, chairman=chairman.name, text=text)

        result = await context.caller.write_and_call(chairman, "synthesis", write, on_text)
        if schema is not None and isinstance(result, CallResult):
            result = await self._ensure_structure(chairman, result, schema)
        if not isinstance(result, CallResult):
            recorder.emit(
                e.SynthesisFailedOver,
                chairman=chairman.name,
                reason=result.reason,
                next=previous,
                over_budget=result.over_budget,
                spent=context.caller.collect_spent(chairman.name),
            )
            return False
        recorder.emit(
            e.SynthesisDone,
            chairman=chairman.name,
            mode=mode,
            text=result.text,
            labels=self.labels,
            approved=read_verdict(result.text) if mode == "verdict" else None,
            cut=result.reply.cut,
            notes=result.reply.notes,
            reasoning=result.reasoning,
            spent=context.caller.collect_spent(chairman.name),
        )
        return True

    async def _ensure_structure(
        self, chairman: Member, result: CallResult, schema: str
    ) -> CallResult | CallFailure:
        """Read a reply as JSON; on failing the schema request one repair."""
        text, problem = read_structure(result.text, schema)
        if not problem:
            return replace(result, text=text)
        self.context.recorder.record_retry(chairman.name, "synthesis", 1, f"it {problem}", 0.0)
        call = result.call
        messages = repair_messages(call.messages, result.text, problem, REPAIR_STRUCTURE)
        repair = replace(call, messages=messages)
        repair_reply = await self.context.caller.call(chairman, repair)
        if not isinstance(repair_reply, CallResult):
            return repair_reply
        text, remaining_problem = read_structure(repair_reply.text, schema)
        if remaining_problem:
            words = f"its final answer {remaining_problem}, even after a repair"
            return CallFailure(ModelError(chairman.name, words))
        return replace(repair_reply, text=text)

    def _write_longest_repair(self, chairman: Member) -> Call:
        call = self._write_call(chairman)
        return replace(call, messages=longest_structure_repair(call.messages))

    def _write_call(self, chairman: Member) -> Call:
        context = self.context
        schema = context.procedure.json_schema
        messages = synthesis_messages(
            context.opening.question,
            conversation=context.opening.conversation,
            files=context.opening.files,
            system=chairman.options.system,
            sheet=self.sheet,
            answers={seat: self.masked_answers[seat] for seat in self.answers},
            outcome=self.outcome,
            mode=context.procedure.mode,
            votes={seat: read_verdict(text) for seat, text in self.answers.items()}
            if context.procedure.mode == "verdict"
            else {},
            schema=schema,
        )
        form = None if schema is None else json.loads(schema)
        return context.call("synthesis", chairman, messages, form)

    def _take_best_answer(self) -> None:
        """Use the leader's answer, or all tied answers, as final answer."""
        mode = self.context.procedure.mode
        self.context.recorder.emit(e.SynthesisStarted, chairman=None, mode=mode, worst_usd=0.0)
        tied = self.outcome.tied_for_best if self.outcome else ()
        best = [name for name in self._ranked_names() if name in tied] or list(self._ranked_names())
        others = {name for group in group_duplicates(self.answers) for name in group[1:]}
        best = [name for name in best if name not in others] or best[:1]
        leaders = {label: seat for label, seat in self.labels.items() if seat in best}
        texts = [f"[{label}]\n{self.answers[seat]}" for label, seat in leaders.items()]
        text = self.answers[best[0]] if len(best) == 1 else "\n\n".join(texts)
        self.context.recorder.emit(
            e.SynthesisDone,
            chairman=None,
            mode=mode,
            text=text,
            labels=leaders,
            approved=read_verdict(text) if mode == "verdict" and len(best) == 1 else None,
            cut=False,
            spent=Expense(cost_usd=0.0, calls=0),
        )


async def run_stages(context: SessionContext) -> Session:
    """Answer, gate, review, count and synthesise; return the closed session."""
    with within_session(context.opening.trace):
        return await _run_stages(context)


async def _run_stages(context: SessionContext) -> Session:
    start_seconds = context.clock.seconds()
    answers = await answer(context)
    flags_by_seat = gate(context, answers)
    restored_reviews = restore_reserve(context, "review")
    duplicates = () if context.procedure.self_review else group_duplicates(answers)
    count = RunningCount(
        restored_reviews, tuple(answers), flags_by_seat, DuplicateGroups(duplicates)
    )
    for event in context.recorder.events:
        if isinstance(event, e.AnswerFailed) and event.seat not in answers:
            count.reasons[event.seat] = f"did not answer: {event.reason}"
    judging = context.opening.judging is not None
    has_several, schema = len(answers) > 1, context.procedure.json_schema
    if has_several or judging or (answers and schema is not None):
        names = context.names
        masked = {
            c: neutralize(mask(text, context.opening.question, names))
            for c, text in answers.items()
        }
        if judging or (has_several and not (duplicates and are_identical(answers))):
            await review(restored_reviews, masked, count)
            if not context.procedure.synthesis:
                await context.end_calls()
            await count.finish()
        usable_answers = {name: text for name, text in answers.items() if name not in flags_by_seat}
        if context.procedure.synthesis and usable_answers:
            await synthesize(
                restore_reserve(restored_reviews, "synthesis"),
                usable_answers,
                masked,
                count.outcome,
            )
    return _close_session(context, count, start_seconds)


def _close_session(context: SessionContext, count: RunningCount, start_seconds: float) -> Session:
    fold = SessionFold.of(context.recorder.events)
    session = fold.state()
    seconds_before = elapsed_seconds(context.earlier_events)
    missing = tuple(_list_missing(session, count))
    status: e.Status = "degraded" if missing else "complete"
    closing = context.recorder.emit(
        e.SessionClosed,
        status=status if session.answers else "failed",
        missing=missing,
        cost_usd=session.cost.total_usd,
        known_usd=session.cost.known_usd,
        seconds=context.clock.seconds() - start_seconds + seconds_before,
    )
    fold.take(closing)
    return fold.session()


def _list_missing(session: Session, count: RunningCount) -> Iterator[str]:
    """List what the session lacks, in the order of the stages."""
    for seat, reason in session.unanswered.items():
        yield f"{seat} did not answer: {reason}"
    for seat, final in session.answers.items():
        if final.cut:
            yield f"{seat}'s answer was cut off at its token limit"
    yield from _list_unrevised(session)
    if len(session.answers) == 1 and session.opening.judging is None:
        yield "only one member answered, so there is no ranking"
        yield from _list_unwritten(session)
    elif session.answers:
        if not session.answers_agree:
            yield from _list_uncounted(session, count)
        yield from _list_unwritten(session)


def _list_unrevised(session: Session) -> Iterator[str]:
    """List seats with an earlier text after a failed revision."""
    ends: dict[tuple[str, str, int], e.AnswerFailed | e.BallotAbstained | None] = {}
    for event in session.events:
        match event:
            case e.AnswerFailed() | e.BallotAbstained():
                item = "answer" if isinstance(event, e.AnswerFailed) else "ballot"
                ends[event.seat, item, event.round] = event
            case e.AnswerDone():
                ends[event.seat, "answer", event.round] = None
            case e.BallotCast():
                ends[event.seat, "ballot", event.round] = None
    for (seat, item, number), failure in ends.items():
        if failure is None or not getattr(failure, "awaited", True):
            continue
        if any(ends.get((seat, item, earlier), failure) is None for earlier in range(1, number)):
            yield f"{seat} did not revise its {item}: {failure.reason}"


def _list_uncounted(session: Session, count: RunningCount) -> Iterator[str]:
    """List missing ballots and ballots without effect."""
    last_events = {
        x.seat: x for x in session.events if isinstance(x, e.BallotCast | e.BallotAbstained)
    }
    for ballot in session.reviewer_ballots.values():
        match last_events.get(ballot.reviewer):
            case e.BallotCast(lost=str(loss)) as cast:
                read = "not all pairs" if cast.comparisons else "only one of two orders"
                yield f"{read} by {ballot.reviewer} could be read: {loss}"
            case e.BallotAbstained(awaited=False):
                continue
        if ballot.abstained and (session.opening.jury or ballot.reviewer in session.answers):
            yield f"{ballot.reviewer} cast no ballot: {ballot.reason}"
    if session.outcome is None:
        yield f"there is no outcome: {count.problem}"
        return
    for reviewer in session.outcome.without_effect:
        rule = RULES[session.outcome.rule]
        yield f"{reviewer} {rule.why_ignored}: the ballot does not count by {rule}"


def _list_unwritten(session: Session) -> Iterator[str]:
    """List failed chairmen and faults of the final answer."""
    procedure = session.opening.procedure
    if procedure.synthesis and len(session.failed) == len(session.answers):
        yield "there is no final answer: every answer failed the safety gate"
    if session.synthesis is None:
        if procedure.json_schema is not None and len(session.failed) < len(session.answers):
            yield from _list_unstructured(session)
        return
    for chairman, reason in session.synthesis.failed.items():
        yield f"{chairman} did not write the final answer: {reason}"
    if unresolved := session.synthesis.unresolved:
        verb = "names" if len(unresolved) == 1 else "name"
        labels_text = join_names([f"[{label}]" for label in unresolved])
        yield f"the final answer cites {labels_text}, which {verb} no answer"
    if session.synthesis.cut:
        yield "the final answer was cut off at its token limit"
    if procedure.mode == "verdict" and session.synthesis.approved is None:
        yield "there is no verdict: the final answer does not end with one"


def _list_unstructured(session: Session) -> Iterator[str]:
    """List chairmen if no final answer satisfies the schema."""
    yield "there is no final answer that satisfies the schema"
    for event in session.events:
        if isinstance(event, e.SynthesisFailedOver):
            yield f"{event.chairman} did not write the final answer: {event.reason}"
