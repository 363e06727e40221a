"""Stage three: a chairman writes the final answer, or the best answer stands."""

from collections.abc import Mapping, Sequence

import anyio

from witan.core.blinding import label_map
from witan.core.outcome import Outcome
from witan.deliberation import events as e
from witan.deliberation.calls import Made
from witan.deliberation.context import Sitting
from witan.deliberation.duplicates import are_same, same_answers
from witan.deliberation.money import worst_usd
from witan.deliberation.ports import Member, Message, Spent
from witan.deliberation.prompts import read_verdict, synthesis_messages

SYNTHESIS = 4
"""Which of the session's draws the chairman's labels come from."""


async def close(
    sitting: Sitting,
    answers: Mapping[str, str],
    masked: Mapping[str, str],
    outcome: Outcome | None,
) -> None:
    """Have a chairman write the closing text, or let the best-ranked answer stand for it.

    `answers` are those that may be built upon: what the safety gate failed is not among them.
    `masked` are the same, and others, as a chairman may see them.
    """
    if any(isinstance(event, e.SynthesisDone) for event in sitting.earlier):
        return
    await _Closing(sitting, answers, masked, outcome).held()


class _Closing:
    """The chairmen in turn, until one has written the closing text."""

    def __init__(
        self,
        sitting: Sitting,
        answers: Mapping[str, str],
        masked: Mapping[str, str],
        outcome: Outcome | None,
    ) -> None:
        self.sitting = sitting
        self.answers = answers
        self.masked = masked
        self.outcome = outcome
        self.sheet = label_map("chairman", list(answers), (sitting.seed, SYNTHESIS))
        self.labels = dict(zip(self.sheet.labels, self.sheet.candidates, strict=True))

    async def held(self) -> None:
        """Try one after the other; when all fail, or time is up, take the best answer."""
        mode = self.sitting.procedure.mode
        # One answer for all needs no chairman to merge it, but a verdict needs one to approve it.
        agreed = mode != "verdict" and self.outcome is None and are_same(self.answers)
        chain = [] if agreed or mode == "best" else self._chain()
        tried = None
        with anyio.move_on_after(self.sitting.seconds_left()):
            for place, tried in enumerate(chain):
                following = chain[place + 1].name if place + 1 < len(chain) else None
                if await self._chaired(tried, following):
                    return
            tried = None
        if tried is not None:
            self.sitting.recorder.emit(
                e.SynthesisFailedOver,
                chairman=tried.name,
                reason=self.sitting.out_of_time(),
                next=None,
                spent=self.sitting.caller.taken(tried.name),
            )
        self._best()

    def _chain(self) -> list[Member]:
        """The chairmen, then the best-ranked member that answered, but for those who failed."""
        chain = list(self.sitting.chairmen)
        best = self._best_ranked()
        if best.name not in {chairman.name for chairman in chain}:
            chain.append(best)
        failed = {
            event.chairman
            for event in self.sitting.earlier
            if isinstance(event, e.SynthesisFailedOver) and event.seq <= self.sitting.final
        }
        return [chairman for chairman in chain if chairman.name not in failed]

    def _best_ranked(self) -> Member:
        """The author of the best answer that somebody here wrote; without one, the first of them.

        Where the answers come from an earlier session, its jurors may have written some of them.
        """
        sitting = self.sitting
        own = {member.name: (member.name,) for member in sitting.members}
        wrote = own or sitting.authorship.own
        authors = sitting.members or sitting.reviewers
        for candidate in self._ranked():
            for author in authors:
                if candidate in wrote[author.name]:
                    return author
        return authors[0]

    def _ranked(self) -> Sequence[str]:
        if self.outcome is None:
            return tuple(self.answers)
        lines = self.outcome.standings
        return [line.candidate for line in lines if line.candidate in self.answers]

    async def _chaired(self, chairman: Member, following: str | None) -> bool:
        """Ask one chairman; return whether it wrote the closing text."""
        sitting, recorder = self.sitting, self.sitting.recorder
        mode = sitting.procedure.mode
        call = sitting.call("synthesis", chairman, self._messages(chairman))
        worst = worst_usd(chairman, call)
        recorder.emit(e.SynthesisStarted, chairman=chairman.name, mode=mode, worst_usd=worst)

        def hear(text: str) -> None:
            recorder.emit(e.SynthesisDelta, chairman=chairman.name, text=text)

        made = await sitting.caller.call(chairman, call, hear)
        if not isinstance(made, Made):
            recorder.emit(
                e.SynthesisFailedOver,
                chairman=chairman.name,
                reason=made.reason,
                next=following,
                over_budget=made.over_budget,
                spent=sitting.caller.taken(chairman.name),
            )
            return False
        recorder.emit(
            e.SynthesisDone,
            chairman=chairman.name,
            mode=mode,
            text=made.text,
            labels=self.labels,
            approved=read_verdict(made.text) if mode == "verdict" else None,
            cut=made.reply.cut,
            notes=made.reply.notes,
            reasoning=made.reasoning,
            spent=sitting.caller.taken(chairman.name),
        )
        return True

    def _messages(self, chairman: Member) -> tuple[Message, ...]:
        sitting = self.sitting
        return synthesis_messages(
            sitting.question,
            conversation=sitting.conversation,
            files=sitting.files,
            system=chairman.options.system,
            sheet=self.sheet,
            answers={seat: self.masked[seat] for seat in self.answers},
            outcome=self.outcome,
            mode=sitting.procedure.mode,
            votes={seat: read_verdict(text) for seat, text in self.answers.items()},
        )

    def _best(self) -> None:
        """Let the leader's answer stand, or all those that cannot be told from it."""
        mode = self.sitting.procedure.mode
        self.sitting.recorder.emit(e.SynthesisStarted, chairman=None, mode=mode, worst_usd=0.0)
        tied = self.outcome.tied_for_best if self.outcome else ()
        best = [name for name in self._ranked() if name in tied] or list(self._ranked())
        others = {name for group in same_answers(self.answers) for name in group[1:]}
        best = [name for name in best if name not in others] or best[:1]
        shown = {label: seat for label, seat in self.labels.items() if seat in best}
        texts = [f"[{label}]\n{self.answers[seat]}" for label, seat in shown.items()]
        text = self.answers[best[0]] if len(best) == 1 else "\n\n".join(texts)
        self.sitting.recorder.emit(
            e.SynthesisDone,
            chairman=None,
            mode=mode,
            text=text,
            labels=shown,
            approved=read_verdict(text) if mode == "verdict" and len(best) == 1 else None,
            cut=False,
            spent=Spent(cost_usd=0.0, calls=0),
        )
