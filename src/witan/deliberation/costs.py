"""Cost of a session, from its events."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from witan.deliberation import events as e
from witan.deliberation.money import Amount, is_free
from witan.deliberation.ports import Expense


@dataclass(frozen=True, slots=True)
class Cost:
    """A session's cost in US dollars and calls; some may be unknown.

    Parameters
    ----------
    total_usd
        Cost of all calls; None: that of some call is unknown.
    known_usd
        Cost of the calls with a known one.
    committed_usd
        Most that all calls may cost, unknown ones at their highest.
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


class CostTally:
    """Running cost of calls from events, unfinished ones included.

    Parameters
    ----------
    n_inherited
        Events after the opening that an earlier session already paid for.
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
        if event.seq <= self._n_paid:
            return
        match event:
            case e.AnswerStarted():
                self._ask("answer", event.seat, event.worst_usd)
            case e.ReviewStarted():
                self._ask("review", event.seat, event.worst_usd)
            case e.BallotRepaired():
                self._begin("review", event.seat, event.worst_usd)
            case e.SynthesisStarted(chairman=str(chairman)):
                self._ask("synthesis", chairman, event.worst_usd)
            case e.CallRetried():
                stage = "review" if event.stage == "repair" else event.stage
                self._begin(stage, event.seat, self._worst_usd.get((stage, event.seat)))
            case _:
                self._take_end(event)

    def _take_end(self, event: e.Event) -> None:
        match event:
            case e.AnswerDone() | e.AnswerFailed():
                self._end("answer", event.seat, event.spent)
            case e.BallotCast() | e.BallotAbstained():
                self._end("review", event.seat, event.spent)
            case e.SynthesisFailedOver() | e.SynthesisDone():
                self._end("synthesis", event.chairman or "", event.spent)

    def _ask(self, stage: str, seat: str, worst_usd: float | None) -> None:
        self._cut_off += self._open_calls.pop((stage, seat), [])
        self._begin(stage, seat, worst_usd)

    def _begin(self, stage: str, seat: str, worst_usd: float | None) -> None:
        self._worst_usd[stage, seat] = worst_usd
        self._open_calls.setdefault((stage, seat), []).append(worst_usd)

    def _end(self, stage: str, seat: str, expense: Expense) -> None:
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
