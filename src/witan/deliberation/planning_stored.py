"""Plans of sessions that were opened: as a whole, and of judging the answers that are there."""

from collections.abc import Mapping

from witan.deliberation.events import SessionOpened
from witan.deliberation.jury import Authorship
from witan.deliberation.masking import mask, names_of
from witan.deliberation.plan import Plan
from witan.deliberation.planning import make_plan, plan_rejudging

__all__ = ["plan_judging", "plan_whole"]


def plan_whole(opened: SessionOpened) -> Plan:
    """What a session asks for from its beginning."""
    if opened.answers:
        return plan_judging(opened, {held.seat: held.text for held in opened.answers})
    return make_plan(
        opened.seats,
        opened.chairmen,
        opened.procedure,
        opened.question,
        jury=opened.jury,
        conversation=opened.conversation,
        files=opened.files,
    )


def plan_judging(opened: SessionOpened, answers: Mapping[str, str]) -> Plan:
    """What a session asks for once all answers are there: who has none reviews none."""
    names = names_of((*opened.seats, *opened.jury))
    members = [seat for seat in opened.seats if seat.name in answers]
    own = Authorship.of(opened).own
    if opened.procedure.self_review and not opened.jury:
        own = dict.fromkeys(own, ())
    return plan_rejudging(
        opened.jury or members,
        opened.chairmen,
        opened.procedure,
        opened.question,
        conversation=opened.conversation,
        files=opened.files,
        answers={seat: mask(text, opened.question, names) for seat, text in answers.items()},
        own=own,
        substitutes=opened.jury if opened.answers else members,
    )
