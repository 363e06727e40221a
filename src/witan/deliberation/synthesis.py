"""Stage three: a chairman writes the final answer."""

from collections.abc import Mapping, Sequence

import anyio

from witan.core.blinding import label_map
from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.deliberation.calls import CallResult
from witan.deliberation.context import SYNTHESIS_LABELS, SessionContext
from witan.deliberation.duplicates import are_identical, group_duplicates
from witan.deliberation.money import worst_usd
from witan.deliberation.ports import Member, Message, Spent
from witan.deliberation.prompts import read_verdict, synthesis_messages


async def synthesize(
    context: SessionContext,
    answers: Mapping[str, str],
    masked: Mapping[str, str],
    outcome: Outcome | None,
) -> None:
    """Have a chairman write the final answer, else take the best answer.

    `answers` are those that may be built upon: what the safety gate failed is not among them.
    `masked` are the same, and others, as a chairman may see them.
    """
    if any(isinstance(event, e.SynthesisDone) for event in context.earlier):
        return
    await _Synthesis(context, answers, masked, outcome).run()


class _Synthesis:
    """The chairmen one after the other, until one writes the final answer."""

    def __init__(
        self,
        context: SessionContext,
        answers: Mapping[str, str],
        masked: Mapping[str, str],
        outcome: Outcome | None,
    ) -> None:
        self.context = context
        self.answers = answers
        self.masked = masked
        self.outcome = outcome
        self.sheet = label_map("chairman", list(answers), (context.opened.seed, SYNTHESIS_LABELS))
        self.labels = dict(zip(self.sheet.labels, self.sheet.candidates, strict=True))

    async def run(self) -> None:
        """Try each chairman; if all fail, take the best answer."""
        mode = self.context.procedure.mode
        # One answer for all needs no chairman to merge it, but a verdict needs one to approve it.
        agreed = mode != "verdict" and self.outcome is None and are_identical(self.answers)
        chain = [] if agreed or mode == "best" else self._chain()
        tried = None
        with anyio.move_on_after(self.context.seconds_left()):
            for place, tried in enumerate(chain):
                following = chain[place + 1].name if place + 1 < len(chain) else None
                if await self._ask_chairman(tried, following):
                    return
            tried = None
        if tried is not None:
            self.context.recorder.emit(
                e.SynthesisFailedOver,
                chairman=tried.name,
                reason=self.context.out_of_time(),
                next=None,
                spent=self.context.caller.collect_spent(tried.name),
            )
        self._take_best_answer()

    def _chain(self) -> list[Member]:
        """Chairmen, then the best-ranked member, without earlier failures."""
        chain = list(self.context.chairmen)
        best = self._best_ranked()
        if best.name not in {chairman.name for chairman in chain}:
            chain.append(best)
        failed = {
            event.chairman
            for event in self.context.earlier
            if isinstance(event, e.SynthesisFailedOver) and event.seq <= self.context.final
        }
        return [chairman for chairman in chain if chairman.name not in failed]

    def _best_ranked(self) -> Member:
        """The author of the best answer, else the first member.

        Jurors may have written some of the answers of an earlier session.
        """
        context = self.context
        own = {member.name: (member.name,) for member in context.members}
        wrote = own or context.authorship.own
        authors = context.members or context.reviewers
        for candidate in self._ranked_names():
            for author in authors:
                if candidate in wrote[author.name]:
                    return author
        return authors[0]

    def _ranked_names(self) -> Sequence[str]:
        if self.outcome is None:
            return tuple(self.answers)
        lines = self.outcome.standings
        return [line.candidate for line in lines if line.candidate in self.answers]

    async def _ask_chairman(self, chairman: Member, following: str | None) -> bool:
        """Call one chairman; return True if it wrote the final answer."""
        context, recorder = self.context, self.context.recorder
        mode = context.procedure.mode
        call = context.call("synthesis", chairman, self._messages(chairman))
        worst = worst_usd(chairman, call)
        recorder.emit(e.SynthesisStarted, chairman=chairman.name, mode=mode, worst_usd=worst)

        def on_text(text: str) -> None:
            recorder.emit(e.SynthesisDelta, chairman=chairman.name, text=text)

        result = await context.caller.call(chairman, call, on_text)
        if not isinstance(result, CallResult):
            recorder.emit(
                e.SynthesisFailedOver,
                chairman=chairman.name,
                reason=result.reason,
                next=following,
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

    def _messages(self, chairman: Member) -> tuple[Message, ...]:
        context = self.context
        return synthesis_messages(
            context.opened.question,
            conversation=context.opened.conversation,
            files=context.opened.files,
            system=chairman.options.system,
            sheet=self.sheet,
            answers={seat: self.masked[seat] for seat in self.answers},
            outcome=self.outcome,
            mode=context.procedure.mode,
            votes={seat: read_verdict(text) for seat, text in self.answers.items()},
        )

    def _take_best_answer(self) -> None:
        """Let the leader's answer stand, or all those tied for best."""
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
            spent=Spent(cost_usd=0.0, calls=0),
        )
