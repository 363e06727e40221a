"""Cost of a session, from its events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

from witan.deliberation import events as e
from witan.deliberation.money import Amount, is_free, sum_known
from witan.deliberation.ports import Expense

if TYPE_CHECKING:
    from witan.deliberation.session import Session


@dataclass(frozen=True, slots=True)
class Cost:
    """A session's cost in US dollars and calls; some may be unknown.

    Parameters
    ----------
    total_usd
        Cost of all calls; None if some call's cost is unknown.
    known_usd
        Cost of the calls whose cost is known.
    committed_usd
        The most that all calls may cost, with unknown costs at their highest.
    calls
        Calls begun, repeated and unfinished ones included.
    """

    total_usd: float | None
    known_usd: float
    committed_usd: float
    calls: int = 0

    @property
    def most(self) -> Amount:
        """The most that all calls may cost, and their number."""
        return Amount(self.committed_usd, self.calls)


class Spending(NamedTuple):
    """US dollars that sessions cost, as far as they are known.

    Parameters
    ----------
    cost_usd
        Total cost; None: unknown in part.
    known_usd
        Cost of calls with a known cost.
    most_usd
        Cost of all calls, unknown ones at their highest; None: some have no known price.
    """

    cost_usd: float | None = 0.0
    known_usd: float = 0.0
    most_usd: float | None = 0.0

    @classmethod
    def of(cls, session: "Session") -> "Spending":
        """Read what a session costs so far."""
        cost = session.cost
        is_bounded = cost.total_usd is not None or not session.opening.plan.unpriced_seats
        return cls(cost.total_usd, cost.known_usd, cost.committed_usd if is_bounded else None)

    @classmethod
    def sum(cls, spendings: "Iterable[Spending]") -> "Spending":
        """Sum what several sessions cost."""
        totals, known_costs, most = zip(cls(), *spendings, strict=True)
        return cls(sum_known(totals), fsum(known_costs), sum_known(most))


class CostTally:
    """Running cost of calls from events, unfinished ones included.

    `n_inherited`: events after the opening that an earlier session already paid for.
    """

    def __init__(self, n_inherited: int = 0) -> None:
        self._n_paid = 1 + n_inherited
        self._worst_usd: dict[tuple[str, str], float | None] = {}
        self._open_calls: dict[tuple[str, str], list[float | None]] = {}
        self._cut_off: list[float | None] = []
        self._n_calls = 0
        self._known_costs: list[float] = []
        self._worst_costs: list[float | None] = []

    def take(self, event: e.Event) -> None:
        """Note the beginning or end of a call."""
        note = _NOTES.get(type(event))
        if note is not None and event.seq > self._n_paid:
            note(self, event)

    def ask(self, stage: str, seat: str, worst_usd: float | None) -> None:
        """Note the first call of a seat in a stage."""
        self._cut_off += self._open_calls.pop((stage, seat), [])
        self.begin(stage, seat, worst_usd)

    def begin(self, stage: str, seat: str, worst_usd: float | None) -> None:
        """Note a call."""
        self._worst_usd[stage, seat] = worst_usd
        self._open_calls.setdefault((stage, seat), []).append(worst_usd)

    def repeat(self, stage: str, seat: str) -> None:
        """Note another attempt at a call."""
        stage = "review" if stage == "repair" else stage
        self.begin(stage, seat, self._worst_usd.get((stage, seat)))

    def end(self, stage: str, seat: str, expense: Expense) -> None:
        """Note the end of a seat's calls in a stage."""
        open_calls = self._open_calls.pop((stage, seat), [])
        self._n_calls += expense.calls
        if expense.cost_usd is None:
            self._worst_costs += open_calls or [None]
        else:
            self._known_costs.append(expense.cost_usd)

    def total(self) -> Cost:
        """Return the cost so far; unfinished calls may still be billed."""
        open_costs = [
            *self._cut_off,
            *(w for open_calls in self._open_calls.values() for w in open_calls),
        ]
        unknown = [*self._worst_costs, *(worst for worst in open_costs if worst != 0.0)]
        known_usd = fsum(self._known_costs)
        most = known_usd + fsum(worst for worst in unknown if worst is not None)
        n_calls = self._n_calls + len(open_costs)
        return Cost(None if unknown else known_usd, known_usd, most, n_calls)


def _ask_chairman(tally: CostTally, event: e.SynthesisStarted) -> None:
    if event.chairman is not None:  # otherwise the best answer is used, without a call
        tally.ask("synthesis", event.chairman, event.worst_usd)


_NOTES: Mapping[type[e.Event], Callable[[CostTally, Any], None]] = {
    e.AnswerStarted: lambda tally, event: tally.ask("answer", event.seat, event.worst_usd),
    e.AnswerDone: lambda tally, event: tally.end("answer", event.seat, event.spent),
    e.AnswerFailed: lambda tally, event: tally.end("answer", event.seat, event.spent),
    e.ReviewStarted: lambda tally, event: tally.ask("review", event.seat, event.worst_usd),
    e.BallotRepaired: lambda tally, event: tally.begin("review", event.seat, event.worst_usd),
    e.BallotCast: lambda tally, event: tally.end("review", event.seat, event.spent),
    e.BallotAbstained: lambda tally, event: tally.end("review", event.seat, event.spent),
    e.SynthesisStarted: _ask_chairman,
    e.SynthesisFailedOver: lambda tally, event: tally.end("synthesis", event.chairman, event.spent),
    e.SynthesisDone: lambda tally, event: tally.end("synthesis", event.chairman or "", event.spent),
    e.CallRetried: lambda tally, event: tally.repeat(event.stage, event.seat),
}
"""How a tally notes each kind of event; the others are no calls."""


def disproved_prices(events: Sequence[e.Event]) -> tuple[str, ...]:
    """Name seats with a price of 0 and billed calls."""
    free_seats: set[str] = set()
    seats_billed: dict[str, None] = {}
    for event in events:
        match event:
            case e.SessionOpened():
                seats = (*event.seats, *event.chairmen)
                free_seats |= {seat.name for seat in seats if is_free(seat.price)}
            case (
                e.AnswerDone(seat=str(name), spent=spent)
                | e.AnswerFailed(seat=str(name), spent=spent)
                | e.BallotCast(seat=str(name), spent=spent)
                | e.BallotAbstained(seat=str(name), spent=spent)
                | e.SynthesisFailedOver(chairman=str(name), spent=spent)
                | e.SynthesisDone(chairman=str(name), spent=spent)
            ) if name in free_seats and spent.cost_usd != 0.0:
                seats_billed[name] = None
    return tuple(seats_billed)
