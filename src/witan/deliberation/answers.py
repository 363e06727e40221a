"""Stage one: members answer at once and may revise in debate."""

from collections.abc import Callable, Mapping, Sequence

import anyio

from witan.core.blinding import draw_nonce, draw_sheets
from witan.deliberation import events as e
from witan.deliberation.calls import CallResult
from witan.deliberation.context import ANSWER_FENCES, DEBATE_SHEETS, SessionContext
from witan.deliberation.masking import mask
from witan.deliberation.money import worst_usd
from witan.deliberation.ports import Call, Member, Message
from witan.deliberation.prompts import answer_messages, debate_messages

PromptBuilder = Callable[[Member], tuple[Message, ...]]


async def answer(context: SessionContext) -> dict[str, str]:
    """Collect all members' answers by seat, debate included, in seat order.

    Answers of an earlier session are taken as they are; nobody is called.
    """
    if context.opened.answers:
        return {stored.seat: stored.text for stored in context.opened.answers}
    verdict = context.procedure.mode == "verdict"
    nonce = draw_nonce((context.opened.seed, ANSWER_FENCES))

    def first(member: Member) -> tuple[Message, ...]:
        return answer_messages(
            context.opened.question,
            conversation=context.opened.conversation,
            files=context.opened.files,
            system=member.options.system,
            verdict=verdict,
            nonce=nonce,
        )

    most = len(context.members)
    enough = most if context.retries else context.procedure.enough or most
    answers = await _Round(context, 1, enough).run(context.members, first)
    for number in range(2, context.procedure.debate_rounds + 2):
        if len(answers) < 2:
            break
        answers |= await _debate(context, number, answers)
    return answers


async def _debate(
    context: SessionContext, number: int, answers: Mapping[str, str]
) -> dict[str, str]:
    """Hold a round of revisions with the others' answers in view."""
    present = [member for member in context.members if member.name in answers]
    seats = [member.name for member in present]
    masked = {seat: mask(answers[seat], context.opened.question, context.names) for seat in seats}
    sheets = draw_sheets(
        seats,
        seats,
        (context.opened.seed, DEBATE_SHEETS, number),
        hidden={seat: seat for seat in seats},
    )

    def again(member: Member) -> tuple[Message, ...]:
        return debate_messages(
            context.opened.question,
            conversation=context.opened.conversation,
            files=context.opened.files,
            system=member.options.system,
            own=answers[member.name],
            sheet=sheets[member.name],
            answers=masked,
            verdict=context.procedure.mode == "verdict",
        )

    return await _Round(context, number, len(present)).run(present, again)


def gate(context: SessionContext, answers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Run the safety gate on every answer; return flags by failed seat.

    Verdicts of an earlier session stand and are not recorded again.
    """
    failed = {stored.seat: stored.flags for stored in context.opened.answers if stored.flags}
    if not context.procedure.safety:
        return failed
    judged = {stored.seat for stored in context.opened.answers if stored.flags is not None}
    recorded = {event.seat for event in context.earlier if isinstance(event, e.GateVerdict)}
    for seat, text in answers.items():
        if seat in judged:
            continue
        verdict = context.check(text)
        if seat not in recorded:
            context.recorder.emit(e.GateVerdict, seat=seat, flags=verdict.flags)
        if not verdict.passed:
            failed[seat] = verdict.flags
    return failed


class _Round:
    """One round of answers, until all are done or time is up.

    Once enough have answered, the others get the grace period.
    """

    def __init__(self, context: SessionContext, number: int, enough: int) -> None:
        self.context = context
        self.number = number
        self.enough = enough
        self.answers = {
            event.seat: event.text
            for event in context.earlier
            if isinstance(event, e.AnswerDone) and event.round == number
        }
        self.failed = {
            event.seat
            for event in context.earlier
            if isinstance(event, e.AnswerFailed)
            and event.round == number
            and event.seq <= context.final
        }

    async def run(self, members: Sequence[Member], build_prompt: PromptBuilder) -> dict[str, str]:
        """Call members without an answer; record an end for every seat."""
        closed = any(isinstance(event, e.SheetDrawn) for event in self.context.earlier)
        settled = {*self.answers, *self.failed}
        waiting = [m for m in members if m.name not in settled and not closed]
        grace_ran_out = False
        with anyio.move_on_after(self.context.seconds_left()):
            async with anyio.create_task_group() as group:
                self.scope = group.cancel_scope
                self._begin_grace()
                for member in waiting:
                    # Told before it runs: a scheduler may start tasks in any order.
                    call = self.context.call("answer", member, build_prompt(member))
                    self.context.recorder.emit(
                        e.AnswerStarted,
                        seat=member.name,
                        round=self.number,
                        worst_usd=worst_usd(member, call),
                    )
                    group.start_soon(self._seat, member, call, name=f"answer:{member.name}")
            grace_ran_out = group.cancel_scope.cancelled_caught
        for member in waiting:
            if member.name not in self.answers and member.name not in self.failed:
                self._give_up(member, grace_ran_out)
        return {m.name: self.answers[m.name] for m in members if m.name in self.answers}

    async def _seat(self, member: Member, call: Call) -> None:
        context, recorder = self.context, self.context.recorder

        def on_text(text: str) -> None:
            recorder.emit(e.AnswerDelta, seat=member.name, round=self.number, text=text)

        result = await context.caller.call(member, call, on_text)
        if not isinstance(result, CallResult):
            self.failed.add(member.name)
            self._fail(
                member,
                result.reason,
                over_budget=result.over_budget,
                misconfigured=result.misconfigured,
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
            reason = f"did not finish within {waited:g} s of the {self.enough} answers awaited"
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
