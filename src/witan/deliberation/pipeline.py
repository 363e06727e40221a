"""Run a question through all stages; list what the session lacks."""

from collections.abc import Iterator

from witan.core.outcome import join_names
from witan.deliberation import events as e
from witan.deliberation.answers import answer, gate
from witan.deliberation.context import SessionContext
from witan.deliberation.counting import RunningCount
from witan.deliberation.duplicates import DuplicateGroups, are_identical, group_duplicates
from witan.deliberation.masking import mask
from witan.deliberation.retries import restore_reserve
from witan.deliberation.reviews import review
from witan.deliberation.session import Session
from witan.deliberation.synthesis import synthesize


async def run_stages(context: SessionContext) -> Session:
    """Answer, gate, review, count and synthesise; return the closed session."""
    began = context.clock.seconds()
    answers = await answer(context)
    failed = gate(context, answers)
    reviewed = restore_reserve(context, "review")
    same = () if context.procedure.self_review else group_duplicates(answers)
    count = RunningCount(reviewed, tuple(answers), failed, DuplicateGroups(same))
    for event in context.recorder.events:
        if isinstance(event, e.AnswerFailed) and event.seat not in answers:
            count.reasons[event.seat] = f"did not answer: {event.reason}"
    if len(answers) > 1:
        masked = {
            c: mask(text, context.opened.question, context.names) for c, text in answers.items()
        }
        if not (same and are_identical(answers)):
            await review(reviewed, masked, count)
            count.finish()
        sound = {name: text for name, text in answers.items() if name not in failed}
        if context.procedure.synthesis and sound:
            await synthesize(restore_reserve(reviewed, "synthesis"), sound, masked, count.outcome)
    return _close_session(context, count, began)


def _close_session(context: SessionContext, count: RunningCount, began: float) -> Session:
    session = Session.of(context.recorder.events)
    missing = tuple(_list_missing(session, count))
    status: e.Status = "degraded" if missing else "complete"
    context.recorder.emit(
        e.SessionClosed,
        status=status if session.answers else "failed",
        missing=missing,
        cost_usd=session.cost.total_usd,
        known_usd=session.cost.known_usd,
        seconds=context.clock.seconds() - began + _seconds_before(context),
    )
    return Session.of(context.recorder.events)


def _seconds_before(context: SessionContext) -> float:
    """Seconds of the interrupted session until its last event."""
    if not context.earlier:
        return 0.0
    return (context.earlier[-1].at - context.earlier[0].at).total_seconds()


def _list_missing(session: Session, count: RunningCount) -> Iterator[str]:
    """List what a complete session would have had, in order of loss."""
    for seat, reason in session.unanswered.items():
        yield f"{seat} did not answer: {reason}"
    for seat, final in session.answers.items():
        if final.cut:
            yield f"{seat}'s answer broke off at its token limit"
    yield from _list_unrevised(session)
    if len(session.answers) == 1:
        yield "nothing could be ranked: one member answered"
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
                what = "answer" if isinstance(event, e.AnswerFailed) else "ballot"
                ends[event.seat, what, event.round] = event
            case e.AnswerDone():
                ends[event.seat, "answer", event.round] = None
            case e.BallotCast():
                ends[event.seat, "ballot", event.round] = None
    for (seat, what, number), failed in ends.items():
        had = any(ends.get((seat, what, before), failed) is None for before in range(1, number))
        if failed is not None and had and getattr(failed, "awaited", True):
            yield f"{seat} did not revise its {what}: {failed.reason}"


def _list_uncounted(session: Session, count: RunningCount) -> Iterator[str]:
    """List missing ballots and ballots without effect."""
    last = {x.seat: x for x in session.events if isinstance(x, e.BallotCast | e.BallotAbstained)}
    for ballot in session.ballots:
        match last.get(ballot.reviewer):
            case e.BallotCast(lost=str(lost)):
                yield f"{ballot.reviewer} was heard in one order only: {lost}"
            case e.BallotAbstained(awaited=False):
                continue
        if ballot.abstained and (session.opened.jury or ballot.reviewer in session.answers):
            yield f"{ballot.reviewer} cast no ballot: {ballot.reason}"
    if session.outcome is None:
        yield f"there is no outcome: {count.problem}"
        return
    for reviewer in session.outcome.without_effect:
        yield f"{reviewer} gave no grades, and {session.outcome.rule} counts nothing else"


def _list_unwritten(session: Session) -> Iterator[str]:
    """List failed chairmen and faults of the final answer."""
    procedure = session.opened.procedure
    if procedure.synthesis and len(session.failed) == len(session.answers):
        yield "there is no final answer: every answer failed the safety gate"
    if session.synthesis is None:
        return
    for chairman, reason in session.synthesis.failed.items():
        yield f"{chairman} did not write the final answer: {reason}"
    if unresolved := session.synthesis.unresolved:
        verb = "names" if len(unresolved) == 1 else "name"
        cited = join_names([f"[{label}]" for label in unresolved])
        yield f"the final answer cites {cited}, which {verb} no answer"
    if session.synthesis.cut:
        yield "the final answer broke off at its token limit"
    if procedure.mode == "verdict" and session.synthesis.approved is None:
        yield "there is no verdict: the final answer does not end with one"
