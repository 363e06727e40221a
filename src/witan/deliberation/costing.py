"""What the calls of a session cost, read off its events."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from witan.deliberation import events as e
from witan.deliberation.money import is_free
from witan.deliberation.ports import Spent

__all__ = ["Cost", "Costing", "disproved_prices"]


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars; `total_usd` is None when some call's cost is unknown.

    Parameters
    ----------
    committed_usd
        The most that it may be: calls of unknown cost at their worst, those broken off included,
        as far as their prices are known.
    """

    total_usd: float | None
    known_usd: float
    committed_usd: float


class Costing:
    """Adds the calls up as events come, those that were begun and never ended included.

    Parameters
    ----------
    kept
        Events after the opening that stand as they were in an earlier session, which paid for them.
    """

    def __init__(self, kept: int = 0) -> None:
        self._paid = 1 + kept
        self._one: dict[tuple[str, str], float | None] = {}
        self._under_way: dict[tuple[str, str], list[float | None]] = {}
        self._cut_off: list[float | None] = []
        self._known: list[float] = []
        self._worst: list[float | None] = []

    def take(self, event: e.Event) -> None:
        """Note which call an event begins, or ends."""
        if event.seq <= self._paid:
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
                self._begin(stage, event.seat, self._one.get((stage, event.seat)))
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
        """Note that a seat is asked; what it was asked before and never ended was cut off."""
        self._cut_off += self._under_way.pop((stage, seat), [])
        self._begin(stage, seat, worst_usd)

    def _begin(self, stage: str, seat: str, worst_usd: float | None) -> None:
        self._one[stage, seat] = worst_usd
        self._under_way.setdefault((stage, seat), []).append(worst_usd)

    def _end(self, stage: str, seat: str, spent: Spent) -> None:
        begun = self._under_way.pop((stage, seat), [])
        if spent.cost_usd is None:
            self._worst += begun or [None]
        else:
            self._known.append(spent.cost_usd)

    def total(self) -> Cost:
        """The sum so far; what was begun and not ended may have been billed."""
        unended = [*self._cut_off, *(w for begun in self._under_way.values() for w in begun)]
        unknown = [*self._worst, *(worst for worst in unended if worst != 0.0)]
        known = fsum(self._known)
        most = known + fsum(worst for worst in unknown if worst is not None)
        return Cost(None if unknown else known, known, most)


def disproved_prices(events: Sequence[e.Event]) -> tuple[str, ...]:
    """Name the seats that were to cost nothing, and whose servers billed calls all the same."""
    free: set[str] = set()
    billed: dict[str, None] = {}
    for event in events:
        match event:
            case e.SessionOpened():
                seats = (*event.seats, *event.chairmen)
                free |= {seat.name for seat in seats if is_free(seat.price)}
            case (
                e.AnswerDone(seat=str(name), spent=spent)
                | e.AnswerFailed(seat=str(name), spent=spent)
                | e.BallotCast(seat=str(name), spent=spent)
                | e.BallotAbstained(seat=str(name), spent=spent)
                | e.SynthesisFailedOver(chairman=str(name), spent=spent)
                | e.SynthesisDone(chairman=str(name), spent=spent)
            ) if name in free and spent.cost_usd != 0.0:
                billed[name] = None
    return tuple(billed)
