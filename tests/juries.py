"""Juries for stored answers: sessions to judge, jurors, and their prompts."""

from dataclasses import replace

import anyio

from councils import QUESTION, council, members
from witan.deliberation import events as e
from witan.deliberation.ports import Call, Hear, Model, Reply
from witan.deliberation.session import Session


class RecordingModel:
    """A model that records its calls."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls: list[Call] = []

    async def complete(self, call: Call, hear: Hear, /) -> Reply:
        self.calls.append(call)
        return await self.model.complete(call, hear)


def record_calls(seated):
    """Members whose calls are recorded."""
    return [replace(seat, model=RecordingModel(seat.model)) for seat in seated]


def prompts_of(seated, stage: str) -> list[str]:
    """Prompts of these members at a stage."""
    return [
        "\n".join(message.text for message in call.messages)
        for seat in seated
        for call in seat.model.calls
        if call.stage == stage
    ]


async def session_of_five(seated=None, **options) -> Session:
    """A session of five, who rank the answer of c first."""
    async with council(members() if seated is None else seated, **options) as opened:
        return await opened.ask(QUESTION, seed=5)


async def rejudge(session: Session, jury=None, chairmen=(), listener=None, **options) -> Session:
    """Rejudge the answers by a jury of three, who rank that of e first."""
    jury = members("xyz", "ebacd") if jury is None else jury
    with anyio.fail_after(60):
        async with council(jury, chairmen, **options) as opened:
            return await opened.rejudge(session, seed=7, listener=listener)


def sheets(session: Session) -> dict[str, tuple[str, ...]]:
    """The candidates on each reviewer's sheet."""
    drawn = [event.sheet for event in session.events if isinstance(event, e.SheetDrawn)]
    return {sheet.reviewer: tuple(sorted(sheet.candidates)) for sheet in drawn}


def votes(session: Session) -> dict[str, tuple[int, float]]:
    """Each candidate's number of ballots, and its coverage."""
    return {line.candidate: (line.votes, line.coverage) for line in session.outcome.standings}
