"""Sessions told by hand, event by event: for what shows them, without a model behind them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from elections import ballot
from witan.core.blinding import Sheet
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.plan import Plan
from witan.deliberation.ports import Expense, Seat, Usage
from witan.deliberation.procedure import Procedure

BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def program_seat(name: str) -> Seat:
    """A seat of a program that does nothing."""
    return Seat(name, "cmd:true", "cmd")


class Story:
    """Events in the order in which they are told, one second apart unless `wait` says otherwise."""

    def __init__(self, *seats: str, simulated: bool = False, **fields: Any) -> None:
        self.events: list[e.Event] = []
        self.at = BEGAN
        self.seats = seats
        self.simulated = simulated
        self._cast: dict[str, Any] = {}
        self.tell(
            e.SessionOpened,
            **{
                "session": "s1",
                "question": "Which?",
                "files": {},
                "seats": tuple(self.seat(name) for name in seats),
                "chairmen": (self.seat("chair"),),
                "procedure": Procedure(),
                "plan": Plan((), 0, 0.0),
                "seed": 1,
                "witan": "0",
            }
            | fields,
        )

    def __iter__(self) -> Iterator[e.Event]:
        return iter(self.events)

    def seat(self, name: str) -> Seat:
        """A seat as the record keeps it."""
        return Seat(name, f"script:{name}.toml", "script", simulated=self.simulated)

    def tell(self, kind: type[e.Event], **fields: Any) -> "Story":
        """Tell of one event."""
        self.events.append(kind(seq=len(self.events) + 1, at=self.at, **fields))
        self.at += timedelta(seconds=1)
        return self

    def answers(self, **texts: str) -> "Story":
        """Each seat is asked and answers."""
        for name in texts:
            self.tell(e.AnswerStarted, seat=name)
        for name, text in texts.items():
            self.tell(e.AnswerDone, seat=name, text=text, spent=expense())
        return self

    def casts(self, line: str, **fields: Any) -> "Story":
        """A reviewer casts ``"reviewer: a > b = c"``, and what there is so far is counted."""
        held = ballot(line, session="s1", candidates=self.seats, **fields)
        self._cast[held.reviewer] = held
        shown = held.candidate_names()
        sheet = Sheet(held.reviewer, shown, tuple("ABCDEFGHIJKLMNOP"[: len(shown)]), "n")
        self.tell(e.SheetDrawn, sheet=sheet).tell(e.ReviewStarted, seat=held.reviewer)
        self.tell(
            e.BallotCast, seat=held.reviewer, ballot=held, replies=("{}",), read_by="schema",
            spent=expense(),
        )  # fmt: skip
        given = self.events[0].procedure.counting
        settings = Settings.of("borda", prior=given.prior, rho=given.rho)
        [outcome] = tally_sessions(list(self._cast.values()), settings)
        return self.tell(e.OutcomeChanged, outcome=outcome, counted=tuple(self._cast))

    def abstains(self, seat: str, reason: str) -> "Story":
        """A reviewer casts no ballot."""
        return self.tell(e.BallotAbstained, seat=seat, reason=reason, spent=expense())

    def closing(self, text: str, **fields: Any) -> "Story":
        """A chairman writes the final answer."""
        self.tell(e.SynthesisStarted, chairman="chair", mode="consensus")
        done = {"chairman": "chair", "mode": "consensus", "labels": {}, "spent": expense()}
        return self.tell(e.SynthesisDone, **{**done, "text": text, **fields})

    def closed(self, *missing: str, **fields: Any) -> "Story":
        """The session ends; complete unless something is missing."""
        status = "degraded" if missing else "complete"
        ending = {"status": status, "cost_usd": 0.041, "known_usd": 0.041, "seconds": 38.2}
        return self.tell(e.SessionClosed, missing=missing, **{**ending, **fields})


def expense(**fields: Any) -> Expense:
    """What a call took, by default a cent and two seconds."""
    return Expense(**{"usage": Usage(10, 7), "cost_usd": 0.01, "seconds": 2.0, **fields})
