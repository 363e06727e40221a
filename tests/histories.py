"""Council sessions told by hand, for what keeps them: the same name is always the same session."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any

from witan.core.ballot import Ballot
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.plan import Plan
from witan.deliberation.ports import Expense, Seat, Usage
from witan.deliberation.procedure import Procedure

__all__ = ["ASKED", "BALLOTS_IN", "CLOSED", "MODELS", "crowd", "session_events", "stages"]

ASKED = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MODELS = ("ada", "bo", "cy", "di", "ed")

BALLOTS_IN, CLOSED = 2, 3
"""Stages: 0 opened, 1 answers in, 2 ballots in, 3 closed."""


def session_events(session: str, **fields: Any) -> list[e.Event]:
    """All events of a session; `fields` as for `stages`."""
    return [event for stage in stages(session, **fields) for event in stage]


def stages(
    session: str,
    *,
    at: datetime = ASKED,
    question: str = "Which of the five?",
    closing: str = "The first one [A].",
    simulated: bool = False,
    seats: Sequence[str] = MODELS,
    taste: str = "",
    category: str | None = None,
) -> Iterator[list[e.Event]]:
    """The events of a session, stage by stage; another `taste` casts other ballots."""
    told_once = _stages(session, at, question, closing, simulated, tuple(seats), taste, category)
    return map(list, told_once)


@cache
def _stages(
    session: str,
    at: datetime,
    question: str,
    closing: str,
    simulated: bool,
    seats: tuple[str, ...],
    taste: str,
    category: str | None,
) -> tuple[tuple[e.Event, ...], ...]:
    """Tell a session once: hundreds of tests keep the same ones."""
    tell = _teller(at)
    draw = Random(f"{session} {taste}")  # noqa: S311 - a test draws ballots
    held = tuple(Seat(name, f"test:{name}", "test", simulated=simulated) for name in seats)
    opened = tell(
        e.SessionOpened,
        session=session,
        question=question,
        files={},
        seats=held,
        chairmen=(),
        procedure=Procedure(),
        plan=Plan((), 0, 0.0),
        seed=1,
        category=category,
        witan="0",
    )
    answers = [
        tell(e.AnswerDone, seat=name, text=f"{name} says {session}.", spent=_expense())
        for name in seats
    ]
    ballots = [_ballot(session, reviewer, seats, draw) for reviewer in seats]
    cast = [
        tell(
            e.BallotCast,
            seat=ballot.reviewer,
            ballot=ballot,
            replies=('{"ranking": […]}',),
            read_by="schema",
            spent=_expense(),
        )
        for ballot in ballots
    ]
    [outcome] = tally_sessions(ballots, Settings.of("borda"))
    counted = tell(e.OutcomeChanged, outcome=outcome, counted=seats)
    synthesis = tell(
        e.SynthesisDone,
        chairman=None,
        mode="consensus",
        text=closing,
        labels={},
        spent=_expense(),
    )
    closed = tell(
        e.SessionClosed,
        status="complete",
        missing=(),
        cost_usd=0.11,
        known_usd=0.11,
        seconds=8.5,
    )
    return ((opened,), tuple(answers), (*cast, counted), (synthesis, closed))


def crowd(size: int) -> list[e.Event]:
    """A session of so many seats, one of which cast a ballot."""
    [opened], answers, ballots, closed = stages("s1")
    assert isinstance(opened, e.SessionOpened)
    assert isinstance(ballots[0], e.BallotCast)
    names = [f"m{n}" for n in range(size)]
    ballot = Ballot("m0", tuple((name,) for name in names), session="s1")
    events = [
        replace(opened, seats=tuple(Seat(name, f"test:{name}", "test") for name in names)),
        *(replace(answers[0], seat=name) for name in names),
        replace(ballots[0], seat="m0", ballot=ballot),
        *closed,
    ]
    return [replace(event, seq=seq) for seq, event in enumerate(events, start=1)]


def _teller(at: datetime) -> Callable[..., e.Event]:
    told: list[e.Event] = []

    def tell(kind: type[e.Event], **fields: Any) -> e.Event:
        moment = at + timedelta(seconds=len(told))
        told.append(kind(seq=len(told) + 1, at=moment, **fields))
        return told[-1]

    return tell


def _ballot(session: str, reviewer: str, seats: Sequence[str], draw: Random) -> Ballot:
    others = [name for name in seats if name != reviewer]
    draw.shuffle(others)
    grades = {name: 9.0 - place for place, name in enumerate(others)}
    groups = tuple((name,) for name in others)
    return Ballot(reviewer, groups, grades, session=session, candidates=tuple(sorted(others)))


def _expense() -> Expense:
    return Expense(Usage(10, 7), 0.01, 2.0)


def send(recording, events) -> None:
    """Pass events to a recording."""
    for event in events:
        recording(event)


def record_sessions(history, *names, **fields) -> None:
    """Record sessions of these names, one after another."""
    for name in names:
        with history.recording() as recording:
            send(recording, session_events(name, **fields))
