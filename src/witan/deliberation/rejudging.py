"""A session as it is opened that puts the answers of an earlier one before a jury."""

from collections.abc import Sequence
from dataclasses import replace

from witan.deliberation import events as e
from witan.deliberation.jury import Authorship, told_apart
from witan.deliberation.masking import mask, names_of
from witan.deliberation.opening import seat_of
from witan.deliberation.planning import plan_rejudging
from witan.deliberation.ports import Member, StoredAnswer
from witan.deliberation.session import Session
from witan.errors import NothingToCount

__all__ = ["rejudging", "stored_answers"]


def rejudging(
    opened: e.SessionOpened,
    session: Session,
    jury: Sequence[Member],
    chairmen: Sequence[Member],
) -> e.SessionOpened:
    """An opening as it is for a jury: the seats and answers of `session`, judged by others.

    Parameters
    ----------
    opened
        As the jury would be asked the question itself.
    jury, chairmen
        As they are called at home; where a seat that answered is called so, they get other names.

    Raises
    ------
    NothingToCount
        If the session has fewer than two answers.
    """
    if len(session.answers) < 2:
        has = "one answer" if session.answers else "no answer"
        raise NothingToCount(
            f"the session {session.id} has {has}: with fewer than two none is best"
        )
    seats = tuple(seat for seat in session.opened.seats if seat.name in session.answers)
    named = told_apart((*jury, *chairmen), seats)
    before = replace(
        opened,
        seats=seats,
        chairmen=tuple(seat_of(named[chairman.name]) for chairman in chairmen),
        jury=tuple(seat_of(named[juror.name]) for juror in jury),
        answers=stored_answers(session),
        parent=session.id,
        relation="rejudged",
        parent_ranking=() if session.outcome is None else session.outcome.ranking,
    )
    names = names_of((*before.seats, *before.jury))
    plan = plan_rejudging(
        before.jury,
        before.chairmen,
        before.procedure,
        before.question,
        conversation=before.conversation,
        files=before.files,
        answers={a.seat: mask(a.text, before.question, names) for a in before.answers},
        own=Authorship.of(before).own,
        substitutes=before.jury,
    )
    return replace(before, plan=plan)


def stored_answers(session: Session) -> tuple[StoredAnswer, ...]:
    """The answers of a session, each with what the safety gate found in it."""
    judged = {held.seat: held.flags for held in session.opened.answers}
    judged |= {x.seat: x.flags for x in session.events if isinstance(x, e.GateVerdict)}
    return tuple(
        StoredAnswer(said.seat, said.text, said.cut, said.spent, judged.get(said.seat))
        for said in session.answers.values()
    )
