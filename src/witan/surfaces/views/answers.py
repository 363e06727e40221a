"""The answers side by side, and the final answer with links into them."""

from dataclasses import dataclass

from markupsafe import Markup

from witan.core.outcome import Outcome
from witan.deliberation.session import Session
from witan.service.text import clean, counted, listed
from witan.service.trust import duration_text, verdict_text
from witan.surfaces.views.naming import CHAIRMAN, Naming
from witan.surfaces.web.markdown import rendered

__all__ = ["AnswerCard", "FinalAnswer", "Unanswered", "answers", "is_long", "unanswered", "verdict"]


LINES, LINE = 11, 40
"""About how many lines of how many letters a card shows at once."""


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """One answer.

    Parameters
    ----------
    author
        Who wrote it; empty while names are hidden.
    facts
        Words, seconds, and whatever else is to be known before it is read.
    rank
        What the panel made of it; empty: nothing.
    long
        Its card may not hold it.
    """

    key: int
    label: str
    author: str
    source: str
    simulated: bool
    facts: tuple[str, ...]
    rank: str
    text: Markup
    long: bool


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A seat without an answer, and why."""

    seat: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The final answer.

    Parameters
    ----------
    by
        Who wrote it, in a few words.
    said
        In the mode ``verdict``: what it comes to.
    legend
        Label, where its answer stands, and who wrote that.
    unresolved
        Labels that the text cites and that stand for no answer.
    """

    text: Markup
    by: str
    said: str
    cut: bool
    fell: tuple[str, ...]
    legend: tuple[tuple[str, str, str], ...]
    unresolved: tuple[str, ...] = ()


def answers(session: Session, naming: Naming) -> tuple[AnswerCard, ...]:
    """Return every answer, by its label while names are hidden, else in seat order."""
    seats = {seat.name: seat for seat in session.opened.seats}
    outcome = None if session.outcome is None else naming.in_order(session.outcome)
    cards = []
    for name, answer in session.answers.items():
        seat = seats[name]
        told_apart = seat.source and not seat.simulated and not seat.source.endswith(seat.name)
        cards.append(
            AnswerCard(
                key=naming.places[name],
                label=naming.labels[name],
                author="" if naming.veiled else naming.name(name),
                source=clean(seat.source) if told_apart and not naming.veiled else "",
                simulated=seat.simulated,
                facts=tuple(_facts(session, name)),
                rank=_rank(outcome, name, naming),
                text=rendered(naming.quoted(answer.text)),
                long=is_long(answer.text),
            )
        )
    return tuple(sorted(cards, key=lambda card: card.label) if naming.veiled else cards)


def _facts(session: Session, name: str) -> list[str]:
    answer = session.answers[name]
    facts = [counted(len(answer.text.split()), "word"), duration_text(answer.spent.seconds)]
    if answer.spent.usage.output_tokens is not None:
        facts.append(counted(answer.spent.usage.output_tokens, "token"))
    if answer.round > 1:
        facts.append(f"round {answer.round}")
    if answer.cut:
        facts.append("cut at its token limit")
    if name in session.failed:
        facts.append(f"fails the safety gate: {', '.join(session.failed[name])}")
    return facts


def _rank(outcome: Outcome | None, name: str, naming: Naming) -> str:
    if outcome is None:
        return ""
    lines = [line for line in outcome.standings if line.candidate == name and line.votes]
    if not lines:
        return ""
    others = [
        naming.name(each)
        for pair in outcome.unresolved
        if name in pair
        for each in pair
        if each != name
    ]
    apart = f", too close to call against {listed(others, most=3)}" if others else ""
    return f"rank {lines[0].rank}{apart}"


def is_long(text: str) -> bool:
    """Return true if a text is longer than a card."""
    lines = (1 + len(line) // LINE for line in text.splitlines() if line.strip())
    return sum(lines) > LINES


def unanswered(session: Session, naming: Naming) -> tuple[Unanswered, ...]:
    """Return the seats without an answer, in an order that does not tell who is who."""
    result = [
        Unanswered(seat, naming.name(seat), naming.said(why))
        for seat, why in session.unanswered.items()
    ]
    return tuple(sorted(result, key=lambda one: one.name) if naming.veiled else result)


def verdict(session: Session, naming: Naming, *, recounted: bool = False) -> FinalAnswer | None:
    """Return the final answer; without one, the only answer there is; None: neither.

    `recounted`: the page counts otherwise than the session did.
    """
    if session.text is None:
        return None
    held = session.synthesis
    if held is None:
        return FinalAnswer(
            rendered(naming.quoted(session.text)), "the only answer", "", False, (), ()
        )
    cited = {
        label: naming.answer_at(seat)
        for label, seat in held.labels.items()
        if seat in session.answers
    }
    return FinalAnswer(
        text=rendered(naming.quoted(held.text), cited, held.unresolved),
        by=_written_by(held.chairman, naming, recounted=recounted),
        said=verdict_text(held.approved) if held.mode == "verdict" else "",
        cut=held.cut,
        fell=tuple(
            naming.said(f"chairman {chairman} failed: {why}")
            for chairman, why in held.failed.items()
        ),
        legend=tuple(
            (label, cited.get(label, "#answers"), "" if naming.veiled else naming.name(seat))
            for label, seat in held.labels.items()
        ),
        unresolved=held.unresolved,
    )


def _written_by(chairman: str | None, naming: Naming, *, recounted: bool) -> str:
    if chairman is None:
        by = " by the session’s own count" if recounted else ""
        return f"the answer ranked best{by}"
    if naming.veiled:
        return f"written by {CHAIRMAN}"
    return f"written by {naming.name(chairman)}"
