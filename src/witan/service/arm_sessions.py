"""Sessions of a batch with arms, reduced to what their comparison needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from witan.core.arms import ArmAnswer, share_beaten
from witan.deliberation import events as e
from witan.deliberation.costs import Spending
from witan.deliberation.money import Amount
from witan.deliberation.ports import Expense
from witan.deliberation.session import Session


@dataclass(frozen=True, slots=True)
class ArmSession:
    """A stored session of a council, a control or a jury.

    Parameters
    ----------
    id, at, end
        Its name, its beginning, and when it was closed.
    text
        The final answer, or None.
    best_text
        The best-ranked answer; of several, or without an outcome, the first.
    calls, cost_usd
        Calls that have ended, and their cost; None: unknown in part.
    most, spending
        What all its calls so far may cost, and what is known of it.
    members
        Member to its first answer; empty unless it is a council's.
    shares
        Member to its share of rivals beaten; empty without an outcome.
    interrupted
        The session itself if it is open, to be resumed; None: it is closed.
    """

    id: str
    at: datetime
    end: datetime
    text: str | None
    best_text: str | None
    calls: int
    cost_usd: float | None
    most: Amount
    spending: Spending
    members: Mapping[str, ArmAnswer]
    shares: Mapping[str, float]
    interrupted: Session | None

    @classmethod
    def of(cls, session: Session) -> "ArmSession":
        """Reduce a session."""
        ends = [event.at for event in session.events if isinstance(event, e.SessionClosed)]
        spent = [getattr(event, "spent", None) for event in session.events]
        cost = session.cost
        is_council = session.opening.relation != "compared"
        return cls(
            session.id,
            session.opening.at,
            ends[0] if ends else session.events[-1].at,
            session.text,
            _best_text(session),
            sum(each.calls for each in spent if isinstance(each, Expense)),
            cost.total_usd,
            cost.most,
            Spending.of(session),
            {
                event.seat: ArmAnswer(
                    session.id, event.seat, event.text, event.spent.calls, event.spent.cost_usd
                )
                for event in session.events
                if is_council and isinstance(event, e.AnswerDone) and event.round == 1
            },
            {} if session.outcome is None else share_beaten(session.outcome, session.answers),
            session if session.status == "interrupted" else None,
        )

    def answer(self, member: str | None, text: str | None) -> ArmAnswer:
        """Return a text of this session as the answer of an arm."""
        return ArmAnswer(self.id, member, text, self.calls, self.cost_usd)


def _best_text(session: Session) -> str | None:
    leaders = () if session.outcome is None else session.outcome.leaders
    names = [name for name in session.answers if name in leaders] or [*session.answers]
    return session.answers[names[0]].text if names else None
